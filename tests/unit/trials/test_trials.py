"""Every strategy, on random workflows and clusters: what must hold of any run."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.sim.test_invariants import random_log
from tests.unit.strategies.test_listing import workflows

from windrow.app.strategies import STRATEGIES, find_strategy
from windrow.manager.terms import Terms
from windrow.model import Log, NodeShape, Task, Workflow
from windrow.model.checkpoint import Checkpoint
from windrow.model.failures import NO_FAILURES, Failures
from windrow.model.site import Site
from windrow.sim import Cluster
from windrow.story.figures import attempt_s, attempts, visible_wait_s, wait_s
from windrow.story.states import AttemptState
from windrow.story.story import RunStory
from windrow.strategies import Decision, Glume, Strategy, View, Work, Zhang
from windrow.trials.figures import Figures
from windrow.trials.trial import Ints, Trial, run_trial

ALL = [
    *STRATEGIES.values(),
    Zhang(global_search=True, sizing=False, binary=True, whole_is_baseline=False),
    Glume(0.1, 1.0),
]


def known(time_s: float | None) -> int:
    assert time_s is not None
    return int(time_s)


def check(trial: Trial, actual: Ints, site: Site) -> None:
    story = trial.story
    assert story.is_complete
    assert not story.strays
    assert replayed(trial) == story
    done = [(task, a) for task, a in attempts(story) if a.outcome is AttemptState.FINISHED]
    assert [task for task, _ in done] == list(range(len(trial.workflow)))  # each task exactly once
    end = {task: known(a.ended_s) for task, a in done}
    for task, a in attempts(story):
        assert known(story.jobs[a.job].started_s) <= a.started_s
        assert all(
            end[p] <= a.started_s for p in trial.workflow.parents.of(task).tolist()
        )  # precedence in time
    for task, a in done:
        assert end[task] == a.started_s + actual[task]
        assert end[task] <= known(story.jobs[a.job].ended_s)
    check_allocations(trial, site)
    check_cap(trial, site.cap)
    check_makespan(trial, actual)


def replayed(trial: Trial) -> RunStory:
    """The story that its records tell, as a journal would hand them out."""
    return RunStory.of(trial.workflow, trial.records())


def check_allocations(trial: Trial, site: Site) -> None:
    """At no time do the tasks on a node need more than it has."""
    for number, job in trial.story.jobs.items():
        mine = [(task, a) for task, a in attempts(trial.story) if a.job == number]
        for at, node in itertools.product({a.started_s for _, a in mine}, range(job.plan.nodes)):
            here = [
                task for task, a in mine if node in a.nodes and a.started_s <= at < known(a.ended_s)
            ]
            whole = [t for t in here if trial.workflow.nodes[t]]
            assert not whole or len(here) == 1
            if not whole:
                assert trial.workflow.cores[here].sum() <= site.shape.cores
                assert trial.workflow.memory_bytes[here].sum() <= known(site.shape.memory_bytes)


def check_cap(trial: Trial, cap: int) -> None:
    jobs = trial.story.jobs.values()
    for at in [known(job.submitted_s) for job in jobs]:
        assert len([j for j in jobs if known(j.submitted_s) <= at < known(j.ended_s)]) <= cap


def check_makespan(trial: Trial, actual: Ints) -> None:
    longest: dict[int, int] = {}
    for v in trial.workflow.order.tolist():
        longest[v] = max(
            (longest[p] for p in trial.workflow.parents.of(v).tolist()), default=0
        ) + int(actual[v])
    assert trial.makespan_s >= max(longest.values())
    story, until_s = trial.story, trial.recorded.until_s
    tried = sum(attempt_s(a, until_s) for _, a in attempts(story))
    waited = sum(wait_s(job, until_s) for job in story.jobs.values())
    assert trial.makespan_s <= tried + waited  # whenever no task runs, some job waits


SOME_FAILURES = st.builds(
    Failures,
    st.sampled_from([20.0, 200.0, 2e3, 2e4]),
    st.sampled_from([1.0, 60.0, 600.0]),
    st.sampled_from([0.5, 1.0, 5.0]),
)


def some_world(
    rng: np.random.Generator,
    seed: int,
    workflow: Workflow,
    noise: float,
    policy: str,
    failures: Failures = NO_FAILURES,
    placement: str = "count",
) -> tuple[Cluster, Ints, Ints]:
    """A cluster of six nodes at some moment of a random log, and what the tasks should and will
    take."""
    log = random_log(seed, 60, 6)
    table = failures.draw(seed, 6, 0, int(log.submit_s[-1]) + 1000)
    requests = str(rng.choice(["actual", "accurate"]))
    cluster = Cluster(log, policy=policy, requests=requests, placement=placement, failures=table)
    cluster.advance(int(rng.integers(0, log.submit_s[-1] + 1)))
    expected = (workflow.runtime_s * 60).astype(np.int64)
    actual = np.maximum(1, expected * np.exp(noise * rng.normal(size=len(workflow)))).astype(
        np.int64
    )
    return cluster, expected, actual


@pytest.mark.slow
@examples(400)
@given(
    st.booleans().flatmap(lambda mixed: workflows(mixed=mixed)),
    st.sampled_from(ALL),
    st.integers(0, 10**6),
    st.sampled_from([1.0, 1.1, 2.0]),
    st.sampled_from([0.0, 0.0, 0.5, 2.0]),
    st.integers(1, 4),
    st.sampled_from(["conservative", "easy", "fcfs"]),
    st.one_of(st.just(NO_FAILURES), st.just(NO_FAILURES), SOME_FAILURES),
)
def test_any_run(
    workflow: Workflow,
    strategy: Strategy,
    seed: int,
    margin: float,
    noise: float,
    cap: int,
    policy: str,
    failures: Failures,
) -> None:
    rng = np.random.default_rng(seed)
    cluster, expected, actual = some_world(rng, seed, workflow, noise, policy, failures)
    site, terms = (
        Site.of(6, NodeShape(4, 8), cap=cap),
        Terms(margin=margin, round_s=int(rng.choice([1, 60]))),
    )
    work = Work(workflow, expected, site)
    trial = run_trial(
        cluster, workflow, strategy, terms=terms, work=work, actual_s=actual, checked=True
    )
    check(trial, actual, site)


def fork_join() -> Workflow:
    fork = [Task("a", 10), Task("b", 20), Task("c", 30)]
    return Workflow.from_tasks("fork-join", [*fork, Task("join", 5, parents=("a", "b", "c"))])


EXACT = Terms(margin=1.0, round_s=1)


@pytest.mark.parametrize(
    ("name", "makespan", "node_s", "jobs"),
    [
        ("individual", 35, 65, 4),
        ("giant", 35, 3 * 35, 1),
        (
            "one-job",
            35,
            2 * 35,
            1,
        ),  # 20 and 10 after each other beside 30: two nodes are as quick as three
        ("level-by-level", 35, 2 * 30 + 5, 2),
    ],
)
def test_fork_join_on_an_empty_cluster(name: str, makespan: int, node_s: int, jobs: int) -> None:
    trial = run_trial(Cluster(nodes=4), fork_join(), STRATEGIES[name], terms=EXACT)
    found = Figures.of(trial)
    assert (found.makespan_s, found.allocated_node_s, found.jobs) == (makespan, node_s, jobs)
    assert (found.visible_wait_s, found.used_node_s) == (0, 65)


def held_by_others(nodes: int, busy: list[tuple[int, int]]) -> Cluster:
    """A cluster on which others hold all nodes but one for each (begin, end), by jobs submitted at
    time 0."""
    begin, end = (np.array(column) for column in zip(*busy, strict=True))
    zero = np.zeros(len(busy), dtype=np.int64)
    width = np.full(len(busy), nodes - 1)
    return Cluster(
        Log("others", nodes, np.arange(len(busy)), zero, width, end - begin, end - begin, zero)
    )


def test_the_wait_of_the_next_job_hides_behind_the_run_of_this_one() -> None:
    """A task of 100 s on one node, then three of 50 s on three. Others hold three of the four nodes
    up to second 96.

    One job on three nodes starts at 96. Cut in two, the first starts at 0 and the second at 96,
    behind the first, whose end at 100 it awaits in its allocation; level by level the second is
    submitted at 100 only, but then fits at once.
    """
    wide = [Task(f"w{i}", 50, parents=("first",)) for i in range(3)]
    workflow = Workflow.from_tasks("wide", [Task("first", 100), *wide])
    runs = {
        name: run_trial(held_by_others(4, [(0, 96)]), workflow, STRATEGIES[name], terms=EXACT)
        for name in STRATEGIES
    }
    assert runs["giant"].makespan_s == 96 + 150
    assert runs["glume"].makespan_s == runs["individual"].makespan_s == 150
    first, second = runs["glume"].story.jobs.values()
    visible_s = visible_wait_s(runs["glume"].recorded)
    assert (first.started_s, second.submitted_s, second.started_s, visible_s) == (0, 0, 96, 0)


def test_a_killed_job_loses_what_ran_and_its_followers_are_cut_anew() -> None:
    """The first task takes three times as long as expected: its job is killed, and all comes right
    in the end."""
    chain = Workflow.from_tasks("chain", [Task("a", 100), Task("b", 50, parents=("a",))])
    trial = run_trial(
        Cluster(nodes=2),
        chain,
        STRATEGIES["one-job"],
        terms=EXACT,
        actual_s=np.array([300, 50]),
    )
    assert [job.outcome for job in trial.story.jobs.values()] == ["killed", "ended"]
    assert [task for task, a in attempts(trial.story) if a.outcome is AttemptState.LOST] == [0]
    assert (
        trial.makespan_s == 150 + 350
    )  # after 150 s in vain, twice that is expected, and asked for


@dataclass(frozen=True)
class Scripted:
    """Cuts as told: (levels, nodes) for one job after the other."""

    script: tuple[tuple[int, int], ...]
    name: str = "scripted"

    def decide(self, view: View) -> Decision:
        if view.jobs_waiting or not view.left.any():
            return Decision()
        done = int(view.work.workflow.levels.max()) + 1 - view.levels.count
        for levels, nodes in self.script:
            if done == 0:
                last = min(levels, view.levels.count) - 1
                return Decision(
                    (
                        view.plan(
                            0, last, min(nodes, view.levels.usable(0, last)), leeway_s=view.busy_s
                        ),
                    )
                )
            done -= levels
        raise AssertionError("the script is too short")


def all_cuts(levels: int, nodes: int) -> list[tuple[tuple[int, int], ...]]:
    if levels == 0:
        return [()]
    return [
        ((size, n), *rest)
        for size in range(1, levels + 1)
        for n in range(1, nodes + 1)
        for rest in all_cuts(levels - size, nodes)
    ]


@pytest.mark.slow
@given(st.integers(0, 10**6))
def test_no_cut_by_levels_is_better_than_the_best(seed: int) -> None:
    """Brute force over all cuts by levels and all sizes, each job submitted when the one before
    starts."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, size=3).tolist()
    ids = [[f"l{k}t{i}" for i in range(size)] for k, size in enumerate(sizes)]
    tasks = [
        Task(name, int(rng.integers(60, 600)), parents=tuple(ids[k - 1]) if k else ())
        for k, level in enumerate(ids)
        for name in level
    ]
    workflow = Workflow.from_tasks("tiny", tasks)
    log = random_log(seed, 40, 3)
    warm = Cluster(log, requests="accurate")
    warm.advance(
        int(log.submit_s[-1])
    )  # nobody else will arrive, so that all cuts meet the same queue
    terms = EXACT
    best = min(
        run_trial(warm.clone(), workflow, Scripted(cut), terms=terms).makespan_s
        for cut in all_cuts(3, 3)
    )
    assert run_trial(warm.clone(), workflow, Glume(), terms=terms).makespan_s >= best


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy",
    [Glume(), find_strategy("individual"), find_strategy("foresight")],
    ids=lambda strategy: strategy.name,
)
def test_tasks_join_a_run_while_it_goes_on_and_after_it_was_done(strategy: Strategy) -> None:
    cluster, workflow = Cluster(random_log(5, 60, 6)), fork_join()
    cluster.advance(100)
    last = workflow.ids[-1]
    early = [Task(f"early-{i}", 50 + i, parents=(workflow.ids[0],)) for i in range(4)]
    late = [Task("late-1", 30, parents=("late-0", "early-1")), Task("late-0", 20, parents=(last,))]
    trial = run_trial(
        cluster, workflow, strategy, additions=[(10**6, late), (130, early)], checked=True
    )
    story = trial.story
    assert story.is_complete
    assert not story.strays
    assert [(one.at_s, one.first) for one in story.additions] == [
        (130, len(workflow)),
        (10**6, len(workflow) + 4),
    ]
    begun = {
        name: story.tasks[number].attempts[0].started_s
        for number, name in enumerate(story.workflow.ids)
    }
    assert min(begun[f"early-{i}"] for i in range(4)) >= 130
    assert begun["late-1"] > begun["late-0"] >= 10**6


def test_a_task_with_checkpoints_crosses_five_jobs() -> None:
    """1,200 s in jobs of 300 s, of which its notice takes 30 s each: 270 s a piece, and what is
    left is requested."""
    workflow = Workflow.from_tasks("long", [Task("long", 1200.0)])
    site = Site.of(2, max_request_s=300)
    kept = {0: Checkpoint(("state-*",), "USR1", 30.0)}
    trial = run_trial(
        Cluster(nodes=2),
        workflow,
        STRATEGIES["one-job"],
        terms=Terms(1.0, 1),
        site=site,
        checkpoints=kept,
        checked=True,
    )
    assert replayed(trial) == trial.story
    (task,) = trial.story.tasks
    assert [a.outcome for a in task.attempts] == [AttemptState.KEPT] * 4 + [AttemptState.FINISHED]
    assert [a.before_s for a in task.attempts] == [0, 270, 540, 810, 1080]
    assert [job.plan.run_s for job in trial.story.jobs.values()] == [1200, 930, 660, 390, 120]
    assert trial.makespan_s == 4 * 300 + 120
