"""The papers' algorithms worked through by hand: each docstring holds the arithmetic, each test
compares with it.

The texts print no numbers with their figures, so the numbers here are chosen; the steps are theirs.
"Zhang" is Zhang, Koelbel and Cooper 2009 with the errata that the GLUME thesis names, "GLUME" the
thesis. Everywhere a job asks for exactly its run and leeway (margin 1, whole seconds), and waits
are a table, by the number of nodes or by the length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import Task, Workflow
from windrow.model.site import Site
from windrow.sim import Cluster
from windrow.sim.cluster import Event, EventKind
from windrow.story.figures import attempts, visible_wait_s
from windrow.strategies import Decision, Glume, JobPlan, OneJob, View, Work, Zhang
from windrow.strategies.giant import Giant
from windrow.strategies.leeway import binary_leeway, halving_leeway
from windrow.strategies.level_by_level import LevelByLevel
from windrow.trials.trial import Ints, Trial, run_trial

Wait = Callable[[int, int], int]
"""The wait of a job of so many nodes and so long a request."""


EXACT = Terms(margin=1.0, round_s=1)


def chain(*runs_s: int) -> Workflow:
    """Levels of one task each."""
    tasks = [
        Task(f"t{k}", run, parents=(f"t{k - 1}",) if k else ()) for k, run in enumerate(runs_s)
    ]
    return Workflow.from_tasks("chain", tasks)


def bag(count: int, run_s: int) -> Workflow:
    """One level of so many equal tasks."""
    return Workflow.from_tasks("bag", [Task(f"t{k}", run_s) for k in range(count)])


def work_of(workflow: Workflow, cluster_nodes: int) -> Work:
    return Work(workflow, workflow.runtime_s.astype(np.int64), Site.of(cluster_nodes))


def view_of(workflow: Workflow, wait: Wait, *, busy_s: int = 0, cluster_nodes: int = 8) -> View:
    """What a strategy sees before anything was submitted; with `busy_s`, beside one job that runs
    so long yet."""

    def forecast(nodes: Ints, requested_s: Ints) -> Ints:
        return np.array(
            [wait(int(n), int(r)) for n, r in zip(nodes, requested_s, strict=True)], dtype=np.int64
        )

    view = Core(work_of(workflow, cluster_nodes), EXACT).view(0, forecast)
    return replace(view, busy_s=busy_s, jobs_running=1 if busy_s else 0)


def by_length(table: Mapping[int, int]) -> Wait:
    return lambda _nodes, requested_s: table[requested_s]


def by_nodes(table: Sequence[int]) -> Wait:
    return lambda nodes, _requested_s: table[nodes - 1]


def only(decision: Decision) -> JobPlan:
    (plan,) = decision.jobs
    return plan


class TestNumberOfNodes:
    """GLUME Algorithm 3, and OneJob and LevelByLevel (section 5.2), on four tasks of 600 s.

    List scheduling on 1, 2, 3, 4 nodes takes 4, 2, 2, 1 rounds: 2400, 1200, 1200, 600 s. Waits: 0,
    100, 900, 1100 s.
    """

    WAIT = staticmethod(by_nodes([0, 100, 900, 1100]))

    def test_without_delay_the_sum_of_wait_and_run_decides(self) -> None:
        """0 + 2400 = 2400; 100 + 1200 = 1300; 900 + 1200 = 2100; 1100 + 600 = 1700: two nodes."""
        view = view_of(bag(4, 600), self.WAIT)
        for strategy in (OneJob(), LevelByLevel(), Glume()):
            plan = only(strategy.decide(view))
            assert (plan.nodes, plan.run_s, plan.requested_s) == (2, 1200, 1200)

    def test_the_naive_baseline_takes_full_width(self) -> None:
        plan = only(Giant().decide(view_of(bag(4, 600), self.WAIT)))
        assert (plan.nodes, plan.run_s) == (4, 600)

    def test_a_delay_hides_waits(self) -> None:
        """With 1100 s to go all waits are hidden: max(1100, wait) + run = 3500, 2300, 2300, 1700:
        four nodes.

        Its wait of 1100 s ends just when the running job does, so that no leeway is needed.
        """
        plan = only(Glume().decide(view_of(bag(4, 600), self.WAIT, busy_s=1100)))
        assert (plan.nodes, plan.run_s, plan.leeway_s, plan.requested_s) == (4, 600, 0, 600)

    def test_usable_nodes_end_at_the_cluster(self) -> None:
        """Algorithm 3 line 1: on two nodes the candidates are 2400 and 1300 s."""
        plan = only(OneJob().decide(view_of(bag(4, 600), self.WAIT, cluster_nodes=2)))
        assert plan.nodes == 2

    def test_zhang_takes_full_width_and_with_enhancement_2_the_best(self) -> None:
        """Section 5.3. At full width the job waits 1100 s, within twice its run of 600 s, so it is
        one job."""
        view = view_of(bag(4, 600), self.WAIT)
        assert only(Zhang(sizing=False).decide(view)).nodes == 4
        assert only(Zhang(sizing=True).decide(view)).nodes == 2

    def test_zhang_runs_a_level_wider_than_the_cluster_on_fewer_nodes(self) -> None:
        """Section 5.1: four tasks of 600 s on a cluster of two nodes run in two rounds of 600 s."""
        plan = only(Zhang(sizing=False).decide(view_of(bag(4, 600), self.WAIT, cluster_nodes=2)))
        assert (plan.nodes, plan.run_s, len(plan.tasks)) == (2, 1200, 4)


class TestLeeway:
    """Sections 5.1 and 5.3: a running job ends in t = 7200 s; the next runs r = 3600 s and would
    wait w = 1200 s.

    Each second of leeway L makes the wait 1.2 s longer: w(L) = 1200 + 1.2 L. Naive leeway: t - w =
    6000 s, with which the job would start 1200 s late. "Close enough" is a start at most 600 s
    before t.
    """

    @staticmethod
    def wait(_nodes: int, requested_s: int) -> int:
        return 1200 + 6 * (requested_s - 3600) // 5

    def view(self) -> View:
        return view_of(chain(3600), self.wait, busy_s=7200)

    def test_half_of_what_is_missing_is_added_each_round(self) -> None:
        """Missing 6000: L = 3000, w = 4800. Missing 2400: L = 4200, w = 6240. Missing 960: L =
        4680, w = 6816.

        Missing 384: close enough. The job has its leeway of 4680 s and needs 384 s of it.
        """
        assert halving_leeway(self.view(), 1, 3600, 7200) == (4680, 6816)

    def test_its_bounds_are_parameters(self) -> None:
        """As above: within 1,000 s after two rounds; or one round, and 2400 s are missing."""
        assert halving_leeway(self.view(), 1, 3600, 7200, tolerance_s=1000) == (4200, 6240)
        assert halving_leeway(self.view(), 1, 3600, 7200, rounds=1) == (3000, 4800)
        assert only(Zhang(rounds=1).decide(self.view())).leeway_s == 3000
        assert only(Zhang(tolerance_s=1000).decide(self.view())).leeway_s == 4200

    def test_how_long_a_wait_is_long_is_a_parameter(self) -> None:
        """The whole waits 6816 s and runs 3600 s."""
        decided = Zhang(long_wait=1.5).decide(self.view())
        assert decided.individually
        assert "more than 1.5 times as long" in decided.why

    def test_binary_search(self) -> None:
        """In [0, 6000]: 3000 misses 2400, up. 4500: w = 6600 misses 600, up. 5250: w = 7500, 300
        late, down.

        4875: w = 7050 misses 150: found.
        """
        assert binary_leeway(self.view(), 1, 3600, 7200) == (4875, 7050)

    @pytest.mark.parametrize(("binary", "leeway_s"), [(False, 4680), (True, 4875)])
    def test_zhang_asks_for_run_and_leeway(self, binary: bool, leeway_s: int) -> None:
        """One level is left, so it is the whole; its wait without leeway, 1200 s, is within twice
        its run.

        With leeway it waits 6816 or 7050 s, just within twice 3600 s: it stays one job.
        """
        plan = only(Zhang(binary=binary).decide(self.view()))
        assert (plan.run_s, plan.leeway_s, plan.requested_s) == (3600, leeway_s, 3600 + leeway_s)

    def test_no_leeway_where_the_wait_is_longer_than_the_predecessor(self) -> None:
        """Zhang figure 6, right: t = 1000 s is over when the job starts after 1200 s."""
        for search in (halving_leeway, binary_leeway):
            assert search(self.view(), 1, 3600, 1000) == (0, 1200)


class TestPeelAndGroup:
    """Zhang figures 4 and 5 as their prose has them; ratios are wait to run, and a smaller one is
    better."""

    def levels(self, decision: Decision) -> list[int]:
        return sorted(only(decision).tasks)

    def test_levels_are_added_while_the_ratio_improves(self) -> None:
        """Levels of 1000 s. One: 800/1000 = 0.8; two: 1000/2000 = 0.5; three: 1800/3000 = 0.6,
        worse: stop at two.

        The whole is no better: 3600/4000 = 0.9.
        """
        wait = by_length({1000: 800, 2000: 1000, 3000: 1800, 4000: 3600})
        assert self.levels(Zhang().decide(view_of(chain(1000, 1000, 1000, 1000), wait))) == [0, 1]

    def test_enhancement_1_looks_beyond_a_local_minimum(self) -> None:
        """Section 5.3: 0.5 for one level, 0.8 for two, 0.3 for three, 0.9 for all. Greedy stops at
        one."""
        wait = by_length({1000: 500, 2000: 1600, 3000: 900, 4000: 3600})
        view = view_of(chain(1000, 1000, 1000, 1000), wait)
        assert self.levels(Zhang().decide(view)) == [0]
        assert self.levels(Zhang(global_search=True).decide(view)) == [0, 1, 2]

    def test_a_group_must_be_worth_its_wait_first(self) -> None:
        """Figure 5, lines 19-26: the first level waits 400 s for a run of 100 s, so a level is
        added.

        Two levels wait 1000 s for 2000 s: viable, 0.5. The whole, 2800/4000 = 0.7, is worse.
        """
        wait = by_length({100: 400, 2000: 1000, 4000: 2800})
        assert self.levels(Zhang().decide(view_of(chain(100, 1900, 2000), wait))) == [0, 1]

    def test_only_the_wait_that_shows_makes_a_group_unworthy(self) -> None:
        """Lines 19-23: 400 s wait beside a job that runs 350 s yet shows for 50 s, less than the
        run of 100 s: viable.

        Its ratio, 400/100 = 4, is compared only since 400 > 350; the whole's is 20000/4000 = 5. Two
        levels, 9600/2000 = 4.8, are worse than 4: the first level goes alone.
        """
        wait = by_length({100: 400, 2000: 9600, 4000: 20000})
        view = view_of(chain(100, 1900, 2000), wait, busy_s=350)
        assert self.levels(Zhang().decide(view)) == [0]

    @pytest.mark.parametrize(("wait_s", "is_one_job"), [(3900, True), (4000, True), (4001, False)])
    def test_when_nothing_is_better_than_the_whole(self, wait_s: int, is_one_job: bool) -> None:
        """The prose to figure 4 (print has the branches swapped): a wait above twice the run means
        task by task.

        Both run 2000 s. The first level, 1900 s for 1000 s, is not viable, so that no group is
        found. Task by task, the one ready task goes out on one node.
        """
        wait = by_length({1000: 1900, 2000: wait_s})
        decision = Zhang().decide(view_of(chain(1000, 1000), wait))
        assert decision.individually is not is_one_job
        assert self.levels(decision) == ([0, 1] if is_one_job else [0])


class TestGlume:
    """GLUME Algorithm 1 on three levels of 3600, 3600 and 7200 s; waits depend on the length alone.

    All: 10000 + 14400 = 24400 s. After level 0: 600 + max(3600, 5000) + 10800 = 16400 s. After
    level 1: the rest would wait 2000 s beside a job of 7200 s, so that its leeway is above a tenth
    of its run of 7200 s: left out.
    """

    WORKFLOW = chain(3600, 3600, 7200)

    @staticmethod
    def wait(_nodes: int, requested_s: int) -> int:
        return {3600: 600, 7200: 2000, 10800: 5000, 14400: 10000}.get(requested_s, 2000)

    def decide(self, beat: float = 0.0) -> Decision:
        return Glume(beat).decide(view_of(self.WORKFLOW, self.wait))

    def test_makespans_as_in_figure_6_1(self) -> None:
        decision = self.decide()
        assert [c.makespan_s for c in decision.candidates[:2]] == [24400, 16400]
        assert [bool(c.note) for c in decision.candidates] == [False, False, True]
        plan = only(decision)
        assert (plan.tasks, plan.nodes, plan.leeway_s, plan.requested_s) == ((0,), 1, 0, 3600)

    @pytest.mark.parametrize(
        ("beat", "said"),
        [
            (0.0, ("level 0, then the rest", "4.6 h", "6.8 h")),
            (0.33, ("one job", "6.8 h", "no allowed cut")),
        ],
    )
    def test_the_reason_reads_as_people_speak(self, beat: float, said: tuple[str, ...]) -> None:
        """16400 and 24400 s, and one level: no bare seconds, no `levels 0-0`."""
        decision = self.decide(beat)
        assert all(words in decision.why for words in said)
        assert [c.what for c in decision.candidates[1:]] == [
            "level 0, then the rest",
            "levels 0-1, then the rest",
        ]
        assert not re.search(r"\d{4,} s|0-0", decision.why)

    @pytest.mark.parametrize(("beat", "last"), [(0.32, 0), (0.33, 2)])
    def test_beat(self, beat: float, last: int) -> None:
        """Line 18: 24400 x 0.68 = 16592 > 16400, good enough; 24400 x 0.67 = 16348 < 16400, not."""
        assert only(self.decide(beat)).tasks[-1] == last

    def test_a_second_job_that_starts_early_waits_for_the_first(self) -> None:
        """Two levels of 7200 s. Such a job waits 6900 s, and with a leeway of 300 s as well; both
        together 20000 s.

        The first job runs from 6900 to 14100. The second is submitted at 6900 and starts at 13800,
        300 s early: that is its leeway, within a tenth of its run. It works from 14100 to 21300.
        Print (line 17): 6900 + 6900 + 300 + 7200.
        """
        wait = by_length({7200: 6900, 7500: 6900, 14400: 20000})
        decision = Glume().decide(view_of(chain(7200, 7200), wait))
        assert [c.makespan_s for c in decision.candidates] == [34400, 21300]
        assert only(decision).tasks == (0,)

    def test_where_we_depart_from_print_leeway_that_is_not_needed_is_no_time(self) -> None:
        """Levels of 7200 and 3600 s; the first waits 0 s, the second as in `TestLeeway`, with a
        leeway of 4875 s.

        It starts at 7050, so that 150 s of its leeway are needed, and works from 7200 to 10800.
        Print (line 17) comes to 0 + 7050 + 4875 + 3600 = 15525 s, though a job is stopped when its
        tasks are done. One job: 5000 + 10800 s.
        """

        def wait(_nodes: int, requested_s: int) -> int:
            known = {7200: 0, 10800: 5000}
            return known[requested_s] if requested_s in known else TestLeeway.wait(1, requested_s)

        decision = Glume(leeway_bound=2).decide(view_of(chain(7200, 3600), wait))
        assert [c.makespan_s for c in decision.candidates] == [15800, 10800]


class ToldQueue:
    """A cluster whose waits are a script: the k-th job starts so long after its submission, as
    every estimate said."""

    def __init__(self, nodes: int, waits: Sequence[Wait]) -> None:
        self.nodes, self.now_s, self._waits = nodes, 0, list(waits)
        self._due: list[tuple[int, EventKind, int]] = []
        self._length: dict[int, int] = {}

    def waits_s(self, nodes: Ints, requested_s: Ints) -> Ints:
        wait = self._waits[len(self._length)]
        pairs = zip(nodes.tolist(), requested_s.tolist(), strict=True)
        return np.array([wait(n, r) for n, r in pairs], dtype=np.int64)

    def submit(self, nodes: int, requested_s: int) -> int:
        job = len(self._length)
        start = self.now_s + self._waits[job](nodes, requested_s)
        self._length[job] = requested_s
        self._due += [(start, EventKind.STARTED, job), (start + requested_s, EventKind.KILLED, job)]
        return job

    def cancel(self, job: int) -> bool:
        if all(due[2] != job for due in self._due):
            return False
        self._due = [due for due in self._due if due[2] != job]
        self._due.append((self.now_s, EventKind.CANCELLED, job))
        return True

    def advance(self, until_s: int | None) -> list[Event]:
        at = min((due[0] for due in self._due), default=until_s)
        assert at is not None
        if until_s is not None and at > until_s:
            self.now_s = until_s
            return []
        self.now_s = at
        happened = sorted(due for due in self._due if due[0] == at)
        self._due = [due for due in self._due if due[0] != at]
        return [Event(*due) for due in happened]


def played(workflow: Workflow, waits: Sequence[Wait]) -> Trial:
    queue = cast(Cluster, ToldQueue(1, waits))
    return run_trial(queue, workflow, Zhang(), terms=EXACT, work=work_of(workflow, 1), checked=True)


def test_four_jobs_as_in_figure_5_1() -> None:
    """GLUME figure 5.1, on four levels of 1000 s.

    t1 = 0: one level waits 500 s (0.5), two 1500 (0.75), three 2700 (0.9), all 4000 (1.0): job 1 is
    level 0. t2 = 500: job 1 starts and has 1000 s to run. One level waits 1000 s, just hidden; two
    wait 2500 (1.25 > 1.0), all three 4500: job 2 is level 1, starts when job 1 ends, no leeway. t3
    = 1500: job 2 starts. One level waits 200 s, 800 too few: 400 s of leeway make it 450, 550 too
    few, which is close enough; at least those 550 s must be asked for, and then it waits 450 s too.
    Both levels would wait 4200 s: job 3 is level 2. t4 = 1950: job 3 starts, finds level 1
    unfinished and idles; job 4, level 3, is submitted all the same. It waits 1900 s, less than
    twice its run, so it is one job. t5 = 2500: job 2 ends, job 3 begins to work, and ends at 3500,
    exactly when its 1000 + 550 s are up. t6 = 3850: job 4 starts; nothing ran since 3500. It ends
    at 4850. Nothing ran for 500 + 350 s.
    """
    waits = [
        by_length({1000: 500, 2000: 1500, 3000: 2700, 4000: 4000}),
        by_length({1000: 1000, 2000: 2500, 3000: 4500}),
        by_length({1000: 200, 1400: 450, 1550: 450, 2000: 4200}),
        by_length({1000: 1900}),
    ]
    trial = played(chain(1000, 1000, 1000, 1000), waits)
    assert [job.plan.tasks for job in trial.story.jobs.values()] == [(0,), (1,), (2,), (3,)]
    assert [job.submitted_s for job in trial.story.jobs.values()] == [0, 500, 1500, 1950]
    assert [job.started_s for job in trial.story.jobs.values()] == [500, 1500, 1950, 3850]
    assert [job.plan.leeway_s for job in trial.story.jobs.values()] == [0, 0, 550, 0]
    assert [job.plan.requested_s for job in trial.story.jobs.values()] == [1000, 1000, 1550, 1000]
    assert [(a.started_s, a.ended_s) for _, a in attempts(trial.story)] == [
        (500, 1500),
        (1500, 2500),
        (2500, 3500),
        (3850, 4850),
    ]
    assert [job.outcome for job in trial.story.jobs.values()] == ["ended"] * 4
    assert (trial.makespan_s, visible_wait_s(trial.recorded)) == (4850, 850)


@pytest.mark.parametrize(("second_wait_s", "visible_s"), [(1600, 600), (1000, 0)])
def test_waits_overlap_with_runs_as_in_zhang_figure_2(second_wait_s: int, visible_s: int) -> None:
    """Two levels of 1000 s; the first job starts at once, and the second is submitted when the
    first starts.

    Left: the second waits 1600 s, of which 600 s show. Right: it waits 1000 s, all hidden. As one
    job both levels would wait 1900 s, and as the second level alone is then all there is, 1600 s
    are within twice its run.
    """
    waits = [by_length({1000: 0, 2000: 1900}), by_length({1000: second_wait_s})]
    trial = played(chain(1000, 1000), waits)
    assert [job.submitted_s for job in trial.story.jobs.values()] == [0, 0]
    assert visible_wait_s(trial.recorded) == visible_s
    assert trial.makespan_s == 2000 + visible_s
