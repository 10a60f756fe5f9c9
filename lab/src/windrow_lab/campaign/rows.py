"""The rows of a chunk: what one process does.

Within a process a log is loaded once, and one cluster moves through the submission times once for
each log, kind of requests and rules; a trial starts from a clone. All trials of a chunk share one
`Work`, and with it its estimates. A trial that fails gives a row with `error` and no figures: one
bad trial must not lose a campaign.

A strategy whose rows are not trials of its own has a method `rows_of(chunk)` that makes them; then
its chunk holds no other kind.
"""

import time
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from itertools import product

import pyarrow as pa

from windrow.errors import WindrowError
from windrow.manager.terms import Terms
from windrow.model import Log
from windrow.model.failures import Failures
from windrow.model.site import Site
from windrow.sim.cluster import Cluster
from windrow.strategies import Strategy, Work, whole_seconds
from windrow.trials.figures import trial_figures
from windrow.trials.scenario import failing, task_times
from windrow_lab.campaign.campaign import BatchRules, Chunk
from windrow_lab.campaign.sources import LogSource

KEY = ("log", "requests", "policy", "workflow", "cap", "strategy", "seed", "submit_s")
"""The columns that name a row; tables are sorted by them."""

_COLUMNS = (
    (pa.string(), ("log", "requests", "policy", "workflow")),
    (pa.int64(), ("tasks", "submit_s")),
    (pa.string(), ("strategy",)),
    (pa.int64(), ("cap", "seed", "makespan_s", "visible_wait_s", "queue_wait_s")),
    (pa.int64(), ("allocated_node_s", "used_node_s", "idle_node_s", "lost_node_s")),
    (pa.int64(), ("jobs", "killed_jobs", "node_failures")),
    (pa.bool_(), ("individually",)),
    (pa.float64(), ("wall_s",)),
    (pa.string(), ("error",)),
)
SCHEMA = pa.schema([(name, kind) for kind, names in _COLUMNS for name in names])
"""All columns. `wall_s` is how long the trial took here: the only one that is not the same each
time."""

# What a fault in a strategy or in the core looks like; anything else is a fault of the machine and
# ends the campaign.
_FAULTS = (AssertionError, LookupError, ArithmeticError, ValueError, TypeError, WindrowError)

Row = dict[str, object]


def rows_of(chunk: Chunk) -> pa.Table:
    """The rows of the chunk: made by its strategies themselves if they know how, else by running
    all trials."""
    make: Callable[[Chunk], pa.Table] = getattr(chunk.strategies[0], "rows_of", chunk_table)
    return make(chunk)


def chunk_table(chunk: Chunk) -> pa.Table:
    """Run all trials of the chunk."""
    warm = {seed: _warm_of(chunk, seed) for seed in chunk.seeds}
    workflow = chunk.workflow.load()
    site = Site.of(warm[chunk.seeds[0]][0].nodes, cap=chunk.cap)
    work = Work(workflow, whole_seconds(workflow), site)
    times = list(enumerate(chunk.submit_s))
    rows = [
        _row(chunk, work, strategy, warm[seed][i], seed, submit_s)
        for strategy, seed, (i, submit_s) in product(chunk.strategies, chunk.seeds, times)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _row(
    chunk: Chunk, work: Work, strategy: Strategy, warm: Cluster, seed: int, submit_s: int
) -> Row:
    """What one trial gives, or why it failed."""
    row = _key(chunk, strategy, seed, submit_s) | {"tasks": len(work.workflow)}
    began = time.perf_counter()
    try:
        row |= _figures(chunk, work, strategy, warm.clone(), seed, submit_s)
    except _FAULTS as fault:
        row["error"] = f"{type(fault).__name__}: {fault}"
    row["wall_s"] = time.perf_counter() - began
    return row


def _key(chunk: Chunk, strategy: Strategy, seed: int, submit_s: int) -> Row:
    """The columns that name the row of a trial."""
    cell = (chunk.log.name, chunk.requests, chunk.rules.label, chunk.workflow.name, chunk.cap)
    return dict(zip(KEY, (*cell, strategy.name, seed, submit_s), strict=True))


def _figures(
    chunk: Chunk, work: Work, strategy: Strategy, cluster: Cluster, seed: int, submit_s: int
) -> Row:
    """What one trial gives."""
    run = trial_figures(
        cluster,
        work.workflow,
        strategy,
        terms=Terms(**dict(chunk.terms)),  # type: ignore[arg-type]
        actual_s=task_times(work.workflow, chunk.workflow.name, chunk.noise, seed, submit_s),
        work=work,
        failures=chunk.failures,
        seed=seed,
    )
    parts = run.node_time.parts()
    return asdict(run) | {name: int(node_s) for name, node_s in parts.items()}


@lru_cache(maxsize=8)
def _log(source: LogSource, _content: str, requests: str) -> Log:
    return source.load(requests)


def _warm_of(chunk: Chunk, seed: int) -> tuple[Cluster, ...]:
    """Failures that are not drawn are the same whatever the seed."""
    if not chunk.failures.is_drawn:
        seed = 0
    content = chunk.log.content
    rules = chunk.rules
    return _warm(chunk.log, content, chunk.requests, rules, chunk.submit_s, chunk.failures, seed)


@lru_cache(maxsize=6)
def _warm(
    source: LogSource,
    content: str,
    requests: str,
    rules: BatchRules,
    submit_s: tuple[int, ...],
    failures: Failures,
    seed: int,
) -> tuple[Cluster, ...]:
    """The cluster at each submission time, after the log's first job. Each takes about 50 kB."""
    log = _log(source, content, requests)
    first = int(log.submit_s[0])
    cluster = Cluster(log, start_s=first, failures=failing(log, failures, seed), **asdict(rules))
    clones = []
    for at in submit_s:
        cluster.advance(first + at)
        clones.append(cluster.clone())
    return tuple(clones)
