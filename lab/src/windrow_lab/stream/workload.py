"""Streams of workflows, drawn as Ilyushkin, Ghit and Epema (2015) draw theirs (section IV).

Sizes: 75 % small (30 to 38 tasks), 20 % medium (40 to 198), 5 % large (200 to 600), even numbers,
all as likely within a class. Work: two-stage hyper-gamma with a mean of one hour, whatever the
application and the size; run times are stretched to it. Arrivals: Poisson. Applications: Montage,
LIGO (our recipe `inspiral`), SIPHT, or the three in turn.

Laws: what arrives does not depend on the utilization, only when, and gaps are stretched versions of
the same draws, so that two utilizations differ in nothing else. Each workflow has one entry and one
exit; if the application has more, a task of no run time is added before or behind them, beyond
the size (section II).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from windrow.errors import UserError, unknown_name
from windrow.model import Adjacency, Log, Task, Workflow
from windrow.model.graph import Ints
from windrow.model.workflow import Floats
from windrow.recipes import generate_workflow
from windrow.recipes.chance import Chance, seeded

_THREE = {"montage": "montage", "ligo": "inspiral", "sipht": "sipht"}
WORKLOADS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {name: (recipe,) for name, recipe in _THREE.items()} | {"mixture": tuple(_THREE.values())}
)
"""Recipes by the name of the workload."""

SIZES = ("small", "medium", "large")
SIZE_SHARES = (0.75, 0.20, 0.05)
SIZE_RANGES = ((30, 38), (40, 198), (200, 600))
WORKFLOWS = 3000

JOB = len(SIZES)
"""The class of ordinary batch jobs, after those of workflows."""
CLASSES = (*SIZES, "job")
JOB_CORES = (1, 2, 4, 8, 16, 32)

GAMMA_SHARES = (0.7, 0.3)
GAMMA_SHAPES = (5.0, 45.0)
GAMMA_SCALES = (501.266, 136.709)
MEAN_WORK_S = 3600.0
"""0.7 x 5 x 501.266 + 0.3 x 45 x 136.709, to a hundredth of a second."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Workflows in the order of their arrival. `gaps` are times between arrivals, in units of their
    mean."""

    name: str
    workflows: tuple[Workflow, ...]
    sizes: Ints
    """Place in `CLASSES` of each workflow's class."""
    gaps: Floats
    mean_work_s: float = MEAN_WORK_S

    def __len__(self) -> int:
        return len(self.workflows)

    @property
    def work_s(self) -> Floats:
        """Of each workflow: core-seconds of all its tasks."""
        return np.array([float(w.runtime_s @ w.cores) for w in self.workflows])

    def arrivals_s(self, utilization: float, slots: int) -> Floats:
        """When each workflow arrives, so that this share of `slots` processors is asked for in the
        long run."""
        if not utilization > 0:
            raise UserError(f"the utilization must be above 0, not {utilization:g}")
        return np.cumsum(self.gaps) * (self.mean_work_s / (slots * utilization))


def draw_workload(
    name: str,
    *,
    workflows: int = WORKFLOWS,
    seed: int = 0,
    single_ends: bool = True,
    jobs: float = 0.0,
) -> Workload:
    """A workload by its name. Some 3 ms for each workflow. `single_ends`: add entries and exits as
    the paper does.

    `jobs` is the share of arrivals that are ordinary batch jobs of the same work; the others stay
    as they are.
    """
    name = {recipe: workload for workload, recipe in _THREE.items()}.get(name, name)
    if name not in WORKLOADS:
        raise unknown_name("workload", name, WORKLOADS)
    if workflows < 1:
        raise UserError(f"a workload needs at least 1 workflow, not {workflows}")
    rng = seeded(seed, f"stream-{name}")
    sizes = rng.choice(len(SIZES), workflows, p=SIZE_SHARES).astype(np.int64)
    tasks = draw_sizes(rng, sizes)
    work_s = draw_work_s(rng, workflows)
    gaps = rng.exponential(1.0, workflows)
    seeds = rng.integers(0, 2**62, workflows)
    recipes = WORKLOADS[name]
    drawn: list[Workflow] = []
    for i in range(workflows):
        recipe = recipes[i % len(recipes)]
        flow = generate_workflow(
            recipe, tasks=int(tasks[i]), work_s=float(work_s[i]), seed=int(seeds[i])
        )
        if single_ends:
            flow = with_single_ends(flow)
        drawn.append(flow)
    return with_jobs(Workload(name, tuple(drawn), sizes, gaps), jobs, seed)


def own_workload(
    given: Sequence[Workflow], *, workflows: int = WORKFLOWS, seed: int = 0
) -> Workload:
    """These workflows, in turn, as often as it takes; arrivals as in any workload."""
    gaps = seeded(seed, "stream-own").exponential(1.0, workflows)
    turns = tuple(given[i % len(given)] for i in range(workflows))
    counts = np.array([len(w) for w in turns])
    sizes = np.searchsorted([low for low, _ in SIZE_RANGES[1:]], counts, side="right")
    work_s = float(np.mean([float(w.runtime_s @ w.cores) for w in given]))
    if not work_s:
        raise UserError("the workflows take no time; give them run times")
    return Workload("own", turns, sizes.astype(np.int64), gaps, mean_work_s=work_s)


def arriving_like(workload: Workload, log: Log) -> Workload:
    """The workload with gaps between arrivals in proportion to those of the log's first jobs."""
    count = len(workload)
    if len(log) <= count:
        raise UserError(
            f"log {log.name} has {len(log):,} jobs; {count:,} workflows need the times between "
            f"{count + 1:,}: take fewer workflows"
        )
    gaps = np.diff(log.submit_s[: count + 1]).astype(np.float64)
    if not gaps.any():
        raise UserError(f"the first {count:,} jobs of log {log.name} are submitted at once")
    return replace(workload, gaps=gaps / gaps.mean())


def with_jobs(workload: Workload, share: float, seed: int) -> Workload:
    """The workload with about this share of its workflows, at random, replaced by batch jobs of the
    same work.

    A job is a workflow of one task that needs 1, 2, 4, ... 32 processors at once, each as likely as
    the others.
    """
    if not 0 <= share <= 1:
        raise UserError(f"the share of batch jobs must be between 0 and 1, not {share:g}")
    rng = seeded(seed, f"stream-{workload.name}-jobs")
    chosen = rng.random(len(workload)) < share
    cores = rng.choice(JOB_CORES, len(workload))
    flows = tuple(
        Workflow.from_tasks(f"job-{c}", [Task("job", w.work_s / c, kind="job", cores=c)])
        if is_job
        else w
        for w, c, is_job in zip(workload.workflows, cores.tolist(), chosen, strict=True)
    )
    return replace(workload, workflows=flows, sizes=np.where(chosen, JOB, workload.sizes))


def draw_sizes(rng: Chance, sizes: Ints) -> Ints:
    """An even number of tasks for each class given."""
    low, high = np.array(SIZE_RANGES).T // 2
    return np.asarray(2 * rng.integers(low[sizes], high[sizes] + 1), dtype=np.int64)


def draw_work_s(rng: Chance, count: int) -> Floats:
    """`count` values of the hyper-gamma distribution."""
    stage = rng.choice(2, count, p=GAMMA_SHARES)
    return rng.gamma(np.array(GAMMA_SHAPES)[stage], np.array(GAMMA_SCALES)[stage])


def with_single_ends(workflow: Workflow) -> Workflow:
    """The workflow with one entry and one exit; added tasks take no time and are of kind `entry` or
    `exit`."""
    entries = np.flatnonzero(workflow.parents.degrees() == 0).tolist()
    exits = np.flatnonzero(workflow.children.degrees() == 0).tolist()
    parents = [workflow.parents.of(v).tolist() for v in range(len(workflow))]
    added = []
    if len(entries) > 1:
        for v in entries:
            parents[v] = [len(parents)]
        parents.append([])
        added.append("entry")
    if len(exits) > 1:
        parents.append(exits)
        added.append("exit")
    if added:
        return _with_empty_tasks(workflow, added, parents)
    return workflow


def _with_empty_tasks(
    workflow: Workflow, kinds: Sequence[str], parents: Sequence[Sequence[int]]
) -> Workflow:
    """With a task of no run time of each kind behind the others; `parents` are those of all."""
    return Workflow(
        workflow.name,
        ids=[*workflow.ids, *(f"stream-{kind}" for kind in kinds)],
        kinds=[*workflow.kinds, *kinds],
        runtime_s=np.concatenate([workflow.runtime_s, np.zeros(len(kinds))]),
        cores=np.concatenate([workflow.cores, np.ones(len(kinds), dtype=np.int64)]),
        parents=Adjacency.from_lists(parents),
    )
