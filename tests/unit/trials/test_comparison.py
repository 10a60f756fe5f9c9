"""Comparisons, plans and backgrounds: against trials run one by one, and against counting second by
second."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from windrow.app.strategies import STRATEGIES
from windrow.errors import UserError
from windrow.formats.failure_log import read_failures
from windrow.manager.terms import NO_COPIES, CopyRules, Terms
from windrow.model import Log, NodeShape, Task, Workflow
from windrow.model.checkpoint import Checkpoint
from windrow.model.site import Site
from windrow.recipes import generate_log, generate_workflow
from windrow.sim import Cluster
from windrow.sim.settings import ClusterSettings
from windrow.storage.demand import SpaceLimit
from windrow.story.figures import NODE_TIME, attempts, node_time, queue_waits_s
from windrow.story.states import AttemptState
from windrow.strategies import Glume, Work, whole_seconds
from windrow.strategies.copied import WithCopies
from windrow.trials.background import run_with_background, within
from windrow.trials.compare import Comparison, compare, compare_in, measured
from windrow.trials.figures import Figures
from windrow.trials.plan import make_plan
from windrow.trials.scenario import Scenario, embedded_log, submission_times
from windrow.trials.trial import Trial, recorded_trial, run_trial
from windrow_lab.campaign.campaign import Campaign
from windrow_lab.campaign.sources import LogSource, WorkflowSource
from windrow_lab.campaign.workers import run_campaigns

LOG = generate_log("lublin", seed=3, days=6, nodes=32)
WORKFLOW = generate_workflow("montage", tasks=30, work_s=40 * 3600, seed=2)
TIMES = (20_000, 90_000, 200_000)
DAY_S = 86400


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare(WORKFLOW, LOG, times=TIMES, cap=4, policy="easy", margin=1.2)


@pytest.mark.slow
def test_rows_are_trials_run_one_by_one(comparison: Comparison) -> None:
    """Each on a cluster of its own, moved to its time in one go, with nothing shared."""
    zero = int(LOG.submit_s[0])
    expected = []
    for at_s in TIMES:
        for name, strategy in STRATEGIES.items():
            cluster = Cluster(LOG, policy="easy")
            cluster.advance(zero + at_s)
            trial = run_trial(
                cluster, WORKFLOW, strategy, terms=Terms(1.2), site=Site.of(32, cap=4)
            )
            found = Figures.of(trial)
            killed = len([job for job in trial.story.jobs.values() if job.outcome == "killed"])
            expected.append(
                (
                    at_s,
                    name,
                    found.makespan_s,
                    found.visible_wait_s,
                    found.allocated_node_s,
                    len(trial.story.jobs),
                    killed,
                )
            )
            assert found.node_time.parts() == node_time(trial.recorded).parts()
    keys = (
        "at_s",
        "strategy",
        "makespan_s",
        "visible_wait_s",
        "allocated_node_s",
        "jobs",
        "killed_jobs",
    )
    assert [tuple(row[key] for key in keys) for row in comparison.rows] == expected


def test_summaries_are_plain_statistics(comparison: Comparison) -> None:
    for summary in comparison.summaries():
        mine = [row for row in comparison.rows if row["strategy"] == summary["strategy"]]
        makespans = [row["makespan_s"] for row in mine]
        assert summary["runs"] == len(TIMES)
        assert summary["makespan_s_mean"] == pytest.approx(statistics.mean(makespans))
        assert summary["makespan_s_median"] == statistics.median(makespans)
        assert (
            min(makespans)
            <= summary["makespan_s_p10"]
            <= summary["makespan_s_p90"]
            <= max(makespans)
        )
        for key in NODE_TIME:
            hours = statistics.mean(row[f"{key}_node_s"] for row in mine) / 3600
            assert summary[f"{key}_node_h_mean"] == pytest.approx(hours)


def test_wins_count_ties_for_each(comparison: Comparison) -> None:
    wins = dict.fromkeys(STRATEGIES, 0)
    for at_s in TIMES:
        rows = [row for row in comparison.rows if row["at_s"] == at_s]
        least = min(row["makespan_s"] for row in rows)
        for row in rows:
            wins[row["strategy"]] += row["makespan_s"] == least
    assert comparison.wins() == wins
    means = {s["strategy"]: s["makespan_s_mean"] for s in comparison.summaries()}
    assert means[comparison.best()] == min(means.values())


def test_the_table_holds_the_rows(comparison: Comparison) -> None:
    assert comparison.to_table().to_pylist() == comparison.rows


def test_a_time_alone_gives_the_trial_that_it_gives_among_others() -> None:
    noisy = compare(WORKFLOW, LOG, times=TIMES, noise=0.4, seed=7, strategies=["zhang", "glume"])
    alone = windrow.compare(
        WORKFLOW, LOG, times=TIMES[1:2], noise=0.4, seed=7, strategies=[Glume()]
    )
    assert alone.rows == [
        row for row in noisy.rows if (row["at_s"], row["strategy"]) == (TIMES[1], "glume")
    ]
    other = compare(WORKFLOW, LOG, times=TIMES[1:2], noise=0.4, seed=8, strategies=["glume"])
    assert other.rows != alone.rows


@pytest.mark.slow
def test_noise_keeps_the_median() -> None:
    tasks = [Task(f"t{i}", 10_000) for i in range(20_000)]
    drawn = Scenario(Workflow.from_tasks("many", tasks), LOG, noise=0.5).given(3)["actual_s"]
    assert np.median(drawn) == pytest.approx(10_000, rel=0.02)
    assert drawn.mean() == pytest.approx(10_000 * np.exp(0.5**2 / 2), rel=0.02)
    assert np.log(drawn).std() == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("failures", ["none", "nodes=3d,repair=2h,shape=0.7"])
def test_a_comparison_and_a_campaign_give_the_same_trials(tmp_path: Path, failures: str) -> None:
    """The same workflow, cluster, times and seed: one answer, whichever of the two is asked."""
    drawn = WorkflowSource(WORKFLOW.name, recipe="montage", tasks=30, work_s=40 * 3600, seed=2)
    log = LogSource("l", model="lublin", seed=3, days=6, nodes=32)
    campaign = Campaign("c", (log,), (drawn,), TIMES, (Glume(),), seeds=(4, 5), noise=0.4)
    campaign = replace(campaign, failures=read_failures(failures))
    table = run_campaigns([campaign], tmp_path, workers=1)[0].to_pylist()
    rows = compare(
        WORKFLOW, LOG, times=TIMES, noise=0.4, seed=5, strategies=["glume"], failures=failures
    ).rows
    keys = [
        "makespan_s",
        "visible_wait_s",
        *(f"{part}_node_s" for part in NODE_TIME),
        "jobs",
        "killed_jobs",
    ]
    keys += ["node_failures"] if failures != "none" else []
    assert [[row[key] for key in keys] for row in table if row["seed"] == 5] == [
        [r[key] for key in keys] for r in rows
    ]


def test_checkpoints_keep_what_was_done_before_nodes_failed() -> None:
    """A task of a day on nodes that fail once in eight hours, beside the same that keeps what it
    did each hour."""
    workflow, log = (
        Workflow.from_tasks("long", [Task("a", 86400.0)]),
        generate_log("lublin", seed=1, days=3, nodes=8),
    )
    plain = Scenario(workflow, log, failures=read_failures("nodes=8h,repair=1h"), margin=2.0)
    kept = replace(plain, checkpoints={0: Checkpoint(("state",), "USR1", 60.0, 3600.0)})
    lost, short = (compare_in(one, [0, 40_000], ["one-job"]) for one in (plain, kept))
    assert lost.column("one-job", "killed_jobs").sum() > 0
    assert short.column("one-job", "makespan_s").sum() < lost.column("one-job", "makespan_s").sum()
    done = kept.trial(kept.warm(kept.cluster(), 0), STRATEGIES["one-job"])
    assert done.makespan_s == short.rows[0]["makespan_s"]
    assert [a.before_s % 3600 for a in done.story.tasks[0].attempts] == [0] * len(
        done.story.tasks[0].attempts
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failures", "copies"), [("agents=20m", NO_COPIES), ("agents=20m", CopyRules(speculate=True))]
)
def test_checkpoints_count_whatever_fails_and_has_copies(failures: str, copies: CopyRules) -> None:
    """A task of an hour whose agent is killed each twenty minutes would hardly ever end."""
    workflow = Workflow.from_tasks("long", [Task("a", 3600.0)])
    log = generate_log("lublin", seed=1, days=1, nodes=8)
    kept = Scenario(
        workflow,
        log,
        failures=read_failures(failures),
        copies=copies,
        margin=2.0,
        checkpoints={0: Checkpoint(("state",), "USR1", 5.0, 300.0)},
    )
    trial = kept.trial(kept.warm(kept.cluster(), 0), STRATEGIES["one-job"])
    before_s = [one.before_s for _, one in attempts(trial.story)]
    assert len(before_s) > 1
    assert max(before_s) >= 300
    assert Figures.of(trial).lost_node_s < Figures.of(trial).used_node_s


def test_trials_refuse_what_they_do_not_know() -> None:
    workflow = Workflow.from_tasks("w", [Task("a", 60.0)])
    log = generate_log("lublin", seed=1, days=1, nodes=8)
    scenario = Scenario(workflow, log, failures=read_failures("agents=1h"))
    cluster = scenario.warm(scenario.cluster(), 0)
    limited = Work(workflow, scenario.work.expected_s, scenario.work.site, space=SpaceLimit(10))
    for unknown, words in (
        ({"additions": [(10, [Task("b", 1.0)])]}, "know nothing of tasks that join the run"),
        ({"work": limited}, "know nothing of a limit on space"),
    ):
        with pytest.raises(UserError, match=words):
            recorded_trial(
                cluster.clone(),
                workflow,
                STRATEGIES["one-job"],
                **{**scenario.given(0), **unknown},
            )
    copied = WithCopies(STRATEGIES["one-job"], 2, lambda _: True)
    with pytest.raises(UserError, match="copies whole jobs"):
        run_trial(cluster.clone(), workflow, copied)


def test_all_strategies_meet_the_same_failures() -> None:
    """A strategy alone gives the rows that it gives among others; a node that fails is not a time
    limit."""
    given: dict[str, Any] = {"times": TIMES, "seed": 3, "failures": "nodes=2d,repair=1h"}
    among = compare(WORKFLOW, LOG, strategies=["individual", "one-job", "zhang"], **given)
    alone = compare(WORKFLOW, LOG, strategies=["one-job"], **given)
    assert alone.rows == [row for row in among.rows if row["strategy"] == "one-job"]
    assert sum(row["node_failures"] for row in among.rows) > 0
    assert all(
        row["killed_jobs"] == row["node_failures"] for row in among.rows
    )  # exact times never run out
    assert all("node_failures_mean" in summary for summary in among.summaries())
    assert (
        "node_failures" not in compare(WORKFLOW, LOG, strategies=["one-job"], times=TIMES).rows[0]
    )


def counted_hidden_s(trial: Trial) -> int:
    """By looking at every second."""
    works: set[int] = set()
    for _, a in attempts(trial.story):
        if a.outcome is AttemptState.FINISHED:
            works.update(range(int(a.started_s), int(a.ended_s or 0)))
    jobs = trial.story.jobs.values()
    waits = [
        range(int(j.submitted_s or 0), int(j.started_s)) for j in jobs if j.started_s is not None
    ]
    return sum(second in works for wait in waits for second in wait)


@pytest.mark.slow
@given(st.integers(0, 10**6), st.sampled_from(sorted(STRATEGIES)), st.sampled_from([1, 3]))
def test_waits_and_waste_by_counting(seed: int, name: str, cores: int) -> None:
    rng = np.random.default_rng(seed)
    tasks = [
        Task(
            f"t{i}",
            int(rng.integers(1, 90)),
            cores=int(rng.integers(1, cores + 1)),
            parents=_parents(rng, i),
        )
        for i in range(12)
    ]
    submit = np.sort(rng.integers(0, 900, size=30))
    run, nodes, jobs = rng.integers(1, 300, size=30), rng.integers(1, 5, size=30), np.arange(30)
    log = Log("small", 4, jobs, submit, nodes, run + 60, run, jobs % 3)
    scenario = Scenario(
        Workflow.from_tasks("tiny", tasks), log, cap=3, shape=NodeShape(cores), noise=0.3, seed=seed
    )
    trial = scenario.trial(
        scenario.warm(scenario.cluster(), scenario.last_s // 2), STRATEGIES[name]
    )
    row = measured(Figures.of(trial))
    assert row["hidden_wait_s"] == counted_hidden_s(trial) <= queue_waits_s(trial.recorded)[0]
    node_s = [row[f"{part}_node_s"] for part in NODE_TIME]
    assert node_s[0] == pytest.approx(sum(node_s[1:]))
    assert min(node_s) >= -1e-9
    assert row["used_node_s"] > 0
    if cores == 1 and name == "individual" and row["killed_jobs"] == 0:
        assert (
            row["idle_node_s"] == row["lost_node_s"] == 0
        )  # a job of one task on one node ends with it


def _parents(rng: np.random.Generator, task: int) -> tuple[str, ...]:
    return tuple(f"t{p}" for p in range(task) if rng.random() < 0.2)


def test_part_of_a_node_counts_for_that_part() -> None:
    workflow = Workflow.from_tasks("two", [Task("a", 100, cores=1), Task("b", 100, cores=3)])
    trial = run_trial(
        Cluster(nodes=1), workflow, STRATEGIES["giant"], site=Site.of(1, NodeShape(8))
    )
    used = node_time(trial.recorded)
    assert (used.allocated_s, used.used_s) == (100, 100 * (1 + 3) / 8)
    assert measured(Figures.of(trial))["idle_node_s"] == 50


def test_times_of_the_thesis_and_of_short_logs() -> None:
    assert len(submission_times(embedded_log(), DAY_S, 7 * DAY_S, 1800)) == 289
    usual = submission_times(embedded_log())
    assert (usual[0], usual[-1], usual.step) == (DAY_S, 7 * DAY_S, 6 * 3600)
    ones, nines = np.array([1, 1]), np.array([9, 9])
    short = Log("short", 2, np.array([1, 2]), np.array([50, 750]), ones, nines, nines, ones)
    times = submission_times(short)
    assert (times[0], len(times)) == (100, 5)
    assert times[-1] <= 700


def test_what_cannot_be_compared_is_refused() -> None:
    last = int(LOG.submit_s[-1] - LOG.submit_s[0])
    with pytest.raises(UserError, match="outside log"):
        compare(WORKFLOW, LOG, times=[0, last + 1])
    with pytest.raises(UserError, match="names that differ"):
        compare(WORKFLOW, LOG, times=[0], strategies=["glume", Glume(beat=0.2)])
    with pytest.raises(UserError, match="did you mean glume"):
        compare(WORKFLOW, LOG, times=[0], strategies=["gloom"])
    with pytest.raises(UserError, match="at least one submission time"):
        compare(WORKFLOW, LOG, times=[])
    with pytest.raises(UserError, match="noise must be a spread"):
        compare(WORKFLOW, LOG, times=[0], noise=-1)
    with pytest.raises(UserError, match="task t needs 2 cores, but a node has 1"):
        compare(Workflow.from_tasks("wide", [Task("t", 5, cores=2)]), LOG, times=[0])


@pytest.mark.parametrize("name", STRATEGIES)
def test_looking_at_a_plan_changes_nothing(name: str) -> None:
    scenario = Scenario(WORKFLOW, LOG, cap=5)
    plan = make_plan(scenario, STRATEGIES[name], TIMES[1])
    plain = scenario.trial(scenario.warm(scenario.cluster(), TIMES[1]), STRATEGIES[name])
    assert plan.trial.story == plain.story
    jobs, begun_s = list(plain.story.jobs.values()), plain.story.begun_s or 0
    assert [job.submitted_s for job in plan.jobs] == [
        (job.submitted_s or 0) - begun_s for job in jobs
    ]
    first = plan.first.jobs[0]
    cluster = scenario.warm(scenario.cluster(), TIMES[1])
    told = int(cluster.estimate(first.nodes, first.requested_s)[0]) - cluster.now_s
    assert plan.jobs_now[0].expected_wait_s == told
    assert sum(len(job.plan.tasks) for job in jobs if job.outcome == "ended") >= len(WORKFLOW)
    levels = WORKFLOW.levels[list(first.tasks)]
    assert (plan.jobs[0].first_level, plan.jobs[0].last_level) == (levels.min(), levels.max())


def test_recording_the_background_changes_nothing() -> None:
    scenario = Scenario(WORKFLOW, LOG)
    run, background = run_with_background(scenario, Glume(), TIMES[0])
    plain = scenario.trial(scenario.warm(scenario.cluster(), TIMES[0]), Glume())
    assert run.story == plain.story
    times, busy = background.busy_nodes
    assert (busy >= 0).all()
    assert (busy <= LOG.machine_nodes).all()
    assert (times[0], times[-1]) == (background.begin_s, background.end_s)
    # At the moment of submission, what the cluster itself says; all jobs of the run are still to
    # start or just have.
    cluster = scenario.warm(scenario.cluster(), TIMES[0])
    at = np.searchsorted(background.others_nodes[0], cluster.now_s, side="right") - 1
    assert background.others_nodes[1][at] == LOG.machine_nodes - cluster.free_nodes
    at = np.searchsorted(background.jobs_waiting[0], cluster.now_s, side="right") - 1
    assert background.jobs_waiting[1][at] == len(cluster.queue())


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(1, 5)), max_size=8))
def test_steps_within_a_window_by_counting(intervals: list[tuple[int, int, int]]) -> None:
    columns = (
        np.array([(min(a, b), max(a, b), w) for a, b, w in intervals], dtype=np.int64)
        .reshape(-1, 3)
        .T
    )
    times, values = within(columns, 10, 30)
    for second in range(10, 30):
        found = values[np.searchsorted(times, second, side="right") - 1]
        assert found == sum(w for a, b, w in columns.T.tolist() if a <= second < b)


def test_the_estimates_are_shared_and_harmless() -> None:
    scenario = Scenario(WORKFLOW, LOG)
    work = scenario.work
    before = work.expected_s.copy()
    for strategy in STRATEGIES.values():
        scenario.trial(scenario.warm(scenario.cluster(), TIMES[2]), strategy)
    assert scenario.work is work
    assert (work.expected_s == before).all()
    assert (before == whole_seconds(WORKFLOW)).all()


def test_the_order_of_the_queue_and_identities_of_nodes_are_the_clusters() -> None:
    found = compare(
        WORKFLOW, LOG, times=[86400], strategies=["giant"], priority="fl", placement="contiguous"
    )
    assert found.scenario.cluster().settings == ClusterSettings(
        "conservative", "fl", placement="contiguous"
    )
