"""What if: a finished run again, by each strategy, on the queue as the run saw it.

Rule 1: tasks take what they really took, others come and go as they were seen to: they do not react
to what is submitted instead. Rule 2: the strategy of the run is replayed like all others, so that
what a simulation leaves out (starts of agents, rounds of the scheduler) is the same for all; next
to it stands what really happened. Rule 3: the answer is kept beside the run, and holds for as long
as nothing more happens in the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from windrow.app.runs import RunPaths, RunView
from windrow.app.strategies import STRATEGIES
from windrow.errors import UserError
from windrow.files import disk_faults, replacing
from windrow.foresight.seen import Seen, read_seen
from windrow.manager.terms import Terms
from windrow.sim.cluster import Cluster
from windrow.story.figures import RecordedRun, attempt_s, node_time, visible_wait_s
from windrow.story.states import ACTIVE, AttemptState
from windrow.strategies import Work, whole_seconds
from windrow.trials.background import Background, Steps, within
from windrow.trials.figures import trial_figures

Ints = NDArray[np.int64]
FORMAT = 1
_MOST_TASKS = 20_000  # a job for each task of a larger workflow takes minutes to play


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a strategy would have come to, in seconds and node-seconds."""

    strategy: str
    makespan_s: float
    visible_wait_s: float
    allocated_node_s: float
    jobs: int


@dataclass(frozen=True, slots=True)
class WhatIf:
    """All of them, and the run itself. `others` jobs of others were seen, for `seen_s`; `last_s` is
    when something happened in the run last."""

    strategy: str
    last_s: float
    others: int
    seen_s: float
    actual: Replayed
    replayed: tuple[Replayed, ...]
    format: int = FORMAT

    @property
    def by_makespan(self) -> list[Replayed]:
        """The quickest first."""
        return sorted(self.replayed, key=lambda one: (one.makespan_s, one.allocated_node_s))

    @property
    def as_it_was(self) -> Replayed:
        """The replay by the strategy of the run: what the others are compared with."""
        return next(one for one in self.replayed if one.strategy == self.strategy)


def what_if(told: RunView, tell: Callable[[str], None] = lambda _: None) -> WhatIf:
    """Replay it by every strategy. UserError if that cannot be. `tell` hears the names."""
    run = told.recorded(told.story.last_s)
    seen = _seen(told, run)
    request = told.facts.request
    own = {job.id for job in run.story.jobs.values() if job.id}
    log = seen.log(own)
    workflow = run.story.workflow
    work = Work(workflow, whole_seconds(workflow), seen.site(request.cap, request.max_nodes))
    cluster = Cluster(log, nodes=seen.nodes, policy=seen.policy)
    actual_s = took_s(run)
    names = [request.strategy, *(name for name in STRATEGIES if name != request.strategy)]
    found = list[Replayed]()
    for name in names:
        tell(name)
        figures = trial_figures(
            cluster.clone(),
            workflow,
            STRATEGIES[name],
            terms=Terms(request.margin),
            actual_s=actual_s,
            work=work,
        )
        found.append(
            Replayed(
                name,
                figures.makespan_s,
                figures.visible_wait_s,
                figures.allocated_node_s,
                figures.jobs,
            )
        )
    actual = Replayed(
        request.strategy,
        run.makespan_s,
        visible_wait_s(run),
        node_time(run).allocated_s,
        len(run.story.jobs),
    )
    seen_s = seen.until_s - seen.at_s
    return WhatIf(request.strategy, told.story.last_s, len(log), seen_s, actual, tuple(found))


def _seen(told: RunView, run: RecordedRun) -> Seen:
    """What the run saw. UserError if there is nothing to replay, with the reason."""
    name = told.paths.name
    if told.state in ACTIVE:
        raise UserError(f"{name} is still running; ask again when it has ended")
    seen = read_seen(told.paths.seen)
    if seen is None:
        raise UserError(
            f"{name} cannot be replayed: it kept no readings of its queue. Runs do where jobs "
            "wait, at one site, in whole nodes"
        )
    if len(run.story.tasks) > _MOST_TASKS:
        raise UserError(f"{name} cannot be replayed: it has more than {_MOST_TASKS:,} tasks")
    if told.facts.request.strategy not in STRATEGIES:
        raise UserError(
            f"{name} cannot be replayed: there is no strategy {told.facts.request.strategy!r}"
        )
    return seen


def took_s(run: RecordedRun) -> Ints:
    """What each task really took, in whole seconds; what was expected, if it did not finish."""
    took = whole_seconds(run.story.workflow).copy()
    for number, task in enumerate(run.story.tasks):
        for attempt in task.attempts:
            if attempt.outcome is AttemptState.FINISHED:
                took[number] = max(1, math.ceil(attempt.before_s + attempt_s(attempt, run.until_s)))
    return took


def kept(paths: RunPaths, last_s: float) -> WhatIf | None:
    """The answer that was kept; None if there is none, or the run has continued since."""
    try:
        found = msgspec.json.decode(paths.what_if.read_bytes(), type=WhatIf)
    except (OSError, msgspec.DecodeError):
        return None
    if found.format == FORMAT and found.last_s == last_s:
        return found
    return None


def keep(paths: RunPaths, found: WhatIf) -> None:
    """Beside the run."""
    with disk_faults(f"{paths.what_if}: cannot be written"), replacing(paths.what_if) as file:
        file.write(msgspec.json.encode(found))


def around(told: RunView) -> Background | None:
    """What others did on the nodes meanwhile, as far as the run saw it; None if it saw no one."""
    seen = read_seen(told.paths.seen)
    if seen is None:
        return None
    own = {job.id for job in told.story.jobs.values() if job.id}
    held = list(seen.held(own))
    if not held:
        return None
    begin = math.floor(min(seen.at_s, told.story.begun_s or seen.at_s))
    end = math.ceil(max(seen.until_s, told.story.last_s))
    running = [(start, end_s or end, nodes) for _, start, end_s, nodes in held if start is not None]
    waiting = [(came, end if start is None else start, 1) for came, start, _, _ in held]
    mine = [
        (job.started_s, job.ended_s or end, job.plan.nodes)
        for job in told.story.jobs.values()
        if job.started_s is not None
    ]
    others = within(_columns(running), begin, end)
    own_steps = within(_columns(mine), begin, end)
    others, busy = _together(others, own_steps, seen.nodes)
    waits = within(_columns(waiting), begin, end)
    return Background(begin, end, seen.nodes, others, busy, waits)


def _together(others: Steps, mine: Steps, nodes: int) -> tuple[Steps, Steps]:
    """What others have of the nodes, and what all have. An end that was seen late leaves them no
    more than our jobs, whose times are exact, have left."""
    times = np.union1d(others[0], mine[0])
    theirs, ours = (
        steps[np.searchsorted(at, times, side="right") - 1] for at, steps in (others, mine)
    )
    theirs = np.clip(theirs, 0, np.maximum(0, nodes - ours))
    return (times, theirs), (times, theirs + ours)


def _columns(spans: Sequence[tuple[float, float, int]]) -> Ints:
    """From when, until when, how many: a row of each."""
    return np.array(spans, dtype=np.int64).reshape(-1, 3).T
