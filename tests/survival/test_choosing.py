"""Runs whose tasks may go to either of two sites: what is chosen, and chosen again, and what if a
site is lost."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.survival.several import SitesRun
from tests.survival.test_two_sites import NAMES, Sites, runnable
from tests.survival.toy import BEGIN_S, Fate, braid

from windrow.errors import UserError
from windrow.forecast.base import Ints
from windrow.manager.manager import Manager
from windrow.manager.moving import LOOK_S, OVER_S, SILENT_S
from windrow.model import Runnable, Step, Task, Workflow
from windrow.model.cause import Cause
from windrow.model.hazard import NO_HAZARD, Hazard
from windrow.model.site import Site
from windrow.queues.port import JobState
from windrow.queues.simulated import Mood
from windrow.records.runnable_file import RunnableRecord
from windrow.story import events as e
from windrow.story.figures import ran_s
from windrow.trials.virtual.world import World, empty_queue

STRATEGIES = ["individual", "giant", "level-by-level", "glume"]


def worlds(*nodes: int, takes_s: float = 3.0) -> list[World]:
    return [World(empty_queue(count), lambda _: takes_s) for count in nodes]


def chain(*times: float, wide: int = 1) -> Runnable:
    """Levels of tasks, each of which needs all of the level before."""
    tasks = [
        Task(
            f"t{n}-{lane}",
            time,
            parents=tuple(f"t{n - 1}-{other}" for other in range(wide)) if n else (),
        )
        for n, time in enumerate(times)
        for lane in range(wide)
    ]
    return Runnable(Workflow.from_tasks("chain", tasks), tuple(Step(("true",), "/") for _ in tasks))


def jobs_at(run: SitesRun) -> Counter[str]:
    return Counter(job.plan.site for job in run.story().jobs.values())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_task_is_done_once_wherever_it_goes(folder: Path, strategy: str) -> None:
    run = Sites(folder / "run", worlds(2, 3), braid(), strategy=strategy)
    assert run.go_on()
    run.check_all()
    planned = [record.event for record in run.records() if isinstance(record.event, e.JobsPlanned)]
    told = [{row.site for row in plan.decision.candidates if row.site} for plan in planned]
    assert set(NAMES) in told, "why there and not elsewhere is journaled"


def test_a_bag_of_tasks_fills_both_sites(folder: Path) -> None:
    run = Sites(folder / "run", worlds(4, 2, takes_s=30.0), chain(30, wide=12))
    assert run.go_on()
    run.check_all()
    assert jobs_at(run) == {"north": 8, "south": 4}


@pytest.mark.parametrize(
    ("speeds", "where"), [((1.0, 3.0), "south"), ((3.0, 1.0), "north"), ((1.0, 1.0), "north")]
)
def test_the_faster_site_wins_and_of_equals_the_first(
    folder: Path, speeds: tuple[float, float], where: str
) -> None:
    run = Sites(
        folder / "run",
        worlds(4, 4, takes_s=100.0),
        chain(300, 300, wide=4),
        strategy="glume",
        speeds=speeds,
    )
    assert run.go_on()
    assert set(jobs_at(run)) == {where}


class Told:
    """A forecaster that says what a test wants."""

    name = "told"

    def __init__(self, fresh_s: Callable[[], int], waiting_s: Callable[[], int]) -> None:
        self._fresh_s, self._waiting_s = fresh_s, waiting_s

    def waits_s(self, nodes: Ints, requested_s: Ints) -> Ints:
        del requested_s
        return np.full(np.shape(nodes), self._fresh_s(), dtype=np.int64)

    def waits_of(self, ids: Collection[str]) -> Mapping[str, int]:
        return dict.fromkeys(ids, self._waiting_s())


def hold(world: World, until_s: int) -> None:
    """No job starts there before."""
    world.queue.holds = lambda _: world.now_s < until_s
    world.dues.append((until_s, world.queue.release))


def late_site(folder: Path, waiting_s: int, *, there_s: int = 100) -> tuple[SitesRun, list[World]]:
    """North promises a start in 50 s, and when a job waits there says that it will take so long."""
    both = worlds(4, 4, takes_s=30.0)
    hold(both[0], BEGIN_S + 3000)
    sites = [Site.of(4, name=name, max_array=3) for name in NAMES]
    told = {
        id(both[0]): Told(lambda: 50, lambda: waiting_s),
        id(both[1]): Told(lambda: there_s, lambda: there_s),
    }
    work = chain(30, 30, wide=4)
    able = np.ones((2, len(work.workflow)), dtype=bool)
    return SitesRun(
        folder, both, sites, work, able, "giant", forecaster=lambda w: told[id(w)]
    ), both


def test_a_job_that_waits_moves_where_it_ends_clearly_earlier(folder: Path) -> None:
    run, (north, south) = late_site(folder / "run", 2000)
    assert run.go_on()
    assert not north.starts
    assert len(south.starts) == 8
    withdrawn = [
        record.event for record in run.records() if isinstance(record.event, e.JobWithdrawn)
    ]
    assert len(withdrawn) == 1
    assert "at north" in withdrawn[0].why
    assert "at south" in withdrawn[0].why
    assert run.story().jobs[0].note == withdrawn[0].why
    run.check_beliefs()
    run.close()


def test_a_job_stays_where_little_is_to_be_gained(folder: Path) -> None:
    run, (north, _) = late_site(folder / "run", 140)
    assert run.go_on()
    assert len(north.starts) == 8
    assert not any(isinstance(record.event, e.JobWithdrawn) for record in run.records())


def test_a_manager_that_moves_a_job_dies_at_every_place_and_the_next_goes_on(folder: Path) -> None:
    for deadly in range(1, 90, 3):
        run, both = late_site(folder / f"{deadly}", 2000)
        for _ in range(3):
            if run.go_on(Fate(deadly)):
                break
        else:
            assert run.go_on()
        assert run.is_complete
        assert sum(len(world.starts) for world in both) == 8, "a task ran twice"
        assert not any(world.queue.left for world in both)
        run.check_beliefs()
        run.close()


@pytest.mark.parametrize("strategy", ["individual", "glume"])
def test_a_site_is_silent_for_the_whole_run(folder: Path, strategy: str) -> None:
    both = worlds(2, 4)
    both[1].mood = lambda _: Mood.DOWN
    run = Sites(folder / "run", both, braid(), strategy=strategy)
    assert run.go_on()
    run.check_beliefs()
    assert run.is_complete
    assert not both[1].queue.taken
    assert run.world.now_s < BEGIN_S + 2000, "nothing waits for it"


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("back_s", [200, 1500, None])
def test_a_site_is_gone_halfway_and_may_return(
    folder: Path, strategy: str, back_s: int | None
) -> None:
    """With all that ran there, if it is gone for good; nothing is lost, nor done twice but what ran
    then."""
    both = worlds(2, 4, takes_s=100.0)
    south, gone_s = both[1], BEGIN_S + 130
    south.mood = lambda _: (
        Mood.DOWN if gone_s <= south.now_s < (back_s or 10**6) + gone_s else Mood.GOOD
    )

    def lose() -> None:
        south.queue.holds = lambda _: True
        for queue_id in list(south.agents):
            south.kill_agent(queue_id)

    if back_s is None:
        south.dues.append((gone_s, lose))
    run = Sites(folder / "run", both, chain(*[100] * 5, wide=4), strategy=strategy)
    assert run.go_on()
    assert run.is_complete
    run.check_beliefs()
    starts = Counter(start.task for world in both for start in world.starts)
    at_fault = {start.task for start in south.starts if gone_s - 100 <= start.at_s <= gone_s}
    assert all(
        times == 1 or (back_s is None and task in at_fault) for task, times in starts.items()
    )
    if back_s is not None:
        assert not south.queue.left
    run.close()


def test_jobs_that_waited_at_a_site_that_is_lost_are_cancelled_when_it_returns(
    folder: Path,
) -> None:
    run, (north, south) = late_site(folder / "run", 140)
    down = (BEGIN_S + 60, BEGIN_S + 60 + int(SILENT_S) + 300)
    north.mood = lambda _: Mood.DOWN if down[0] <= north.now_s < down[1] else Mood.GOOD
    assert run.go_on()
    killed = [record.event for record in run.records() if isinstance(record.event, e.JobKilled)]
    assert [one.cause for one in killed] == [Cause.UNREACHABLE]
    assert down[0] + SILENT_S <= killed[0].at_s <= down[1]
    assert not north.starts
    assert len(south.starts) == 8
    run.wait(1000)
    assert set(north.queue.left) <= {
        "c1"
    }  # the run was over before it could be asked: its agent finds the fence
    run.check_beliefs()


def test_a_site_that_refuses_jobs_leaves_the_group(folder: Path) -> None:
    both = worlds(3, 4)
    run = Sites(folder / "run", both, braid(), strategy="level-by-level", speeds=(1.0, 2.0))
    run.sites = [
        run.sites[0],
        replace(run.sites[1], kinds=(replace(run.sites[1].kinds[0], count=9),)),
    ]  # it has 4
    assert run.go_on()
    assert run.is_complete
    assert set(jobs_at(run)) == {"north", "south"}
    assert not both[1].starts or run.manager is not None
    run.check_beliefs()


def test_a_budget_holds(folder: Path) -> None:
    both = worlds(4, 4)
    run = Sites(
        folder / "run",
        both,
        chain(*[300] * 6, wide=4),
        strategy="level-by-level",
        speeds=(1.0, 2.0),
    )
    run.sites = [run.sites[0], replace(run.sites[1], max_node_hours=1.0)]
    for world in both:
        world.takes_s = lambda _: 150.0
    assert run.go_on()
    jobs = [job for job in run.story().jobs.values() if job.plan.site == "south"]
    used_s = sum(job.plan.nodes * ((job.ended_s or 0) - (job.started_s or 0)) for job in jobs)
    assert 0 < used_s <= 3600
    assert jobs_at(run)["north"] > 0


def _manager(run: SitesRun) -> Manager:
    assert run.manager is not None
    return run.manager


def test_parts_that_nothing_ties_may_share_both_sites(folder: Path) -> None:
    part = braid().workflow
    run = Sites(folder / "run", worlds(3, 3), runnable(part, part), strategy="individual")
    assert run.go_on()
    run.check_all()
    assert len(_manager(run).core.sites[0].group) == 2


def test_tasks_that_join_go_where_they_fit(folder: Path) -> None:
    both = worlds(2, 4)
    run = Sites(folder / "run", both, chain(3))
    more = [Task("wide", 3, nodes=3, parents=("t0-0",)), Task("any", 3)]
    added = RunnableRecord("chain", more, [], [Step(("true",), "/")] * 2)
    run.additions = [(BEGIN_S, e.TasksAdded(BEGIN_S, "more", added))]
    assert run.go_on()
    assert run.is_complete
    assert [job.plan.site for job in run.story().jobs.values() if job.plan.nodes == 3] == ["south"]
    too_wide = msgspec.structs.replace(
        added, tasks=[Task("huge", 3, nodes=9)], steps=added.steps[:1]
    )
    with pytest.raises(UserError, match="task huge needs 9 nodes"):
        _manager(run).add(e.TasksAdded(BEGIN_S, "again", too_wide))


@pytest.mark.parametrize("most", [1, 2, 4])
@pytest.mark.parametrize("is_spot", [True, False])
def test_what_is_preempted_too_often_goes_elsewhere(
    folder: Path, most: int, *, is_spot: bool
) -> None:
    """Each job at north is preempted as soon as its tasks run; south has a long queue, by
    forecast."""
    north, south = both = worlds(4, 4, takes_s=30.0)
    hazard = Hazard(preemption_rate=1 / 7200) if is_spot else NO_HAZARD
    sites = [
        Site.of(4, name=name, max_array=3, max_preemptions=most, hazard=hazard) for name in NAMES
    ]
    sites[1] = replace(sites[1], hazard=NO_HAZARD)
    told = {id(north): Told(lambda: 0, lambda: 0), id(south): Told(lambda: 900, lambda: 900)}
    work, left = chain(30, wide=4), [6]
    able = np.ones((2, 4), dtype=bool)
    run = SitesRun(
        folder / "run", both, sites, work, able, "giant", forecaster=lambda w: told[id(w)]
    )

    def preempt() -> None:
        if (
            left[0]
            and north.queue.running
            and len(north.starts) % 4 == 0
            and len(north.starts) > 4 * (6 - left[0])
        ):
            left[0] -= 1
            north.remove(north.queue.running[0], JobState.PREEMPTED)

    run.each_look = preempt
    assert run.go_on()
    run.check_beliefs()
    assert run.is_complete
    assert run.story().trouble == ""
    assert jobs_at(run) == ({"north": most, "south": 1} if is_spot else {"north": 7})


def test_runs_on_spot_nodes_take_as_long_as_expected(folder: Path) -> None:
    """Tasks of 30 s on nodes that are taken away every 100 s on average: only what ran then is
    lost."""
    seeds = range(60 if os.environ.get("WINDROW_FULL") else 1)
    took_s = []
    for seed in seeds:
        (world,) = worlds(4, takes_s=30.0)
        run = SitesRun(
            folder / str(seed),
            [world],
            [Site.of(4, max_array=3)],
            chain(*[30] * 8, wide=4),
            [0] * 32,
            "giant",
        )
        times = BEGIN_S + np.cumsum(
            1 + np.random.default_rng(seed).exponential(100, 40).astype(int)
        )

        def take_away(world: World = world) -> None:
            if world.queue.running:
                world.remove(world.queue.running[0], JobState.PREEMPTED)

        world.dues += [(int(at_s), take_away) for at_s in times]
        assert run.go_on()
        took_s.append(world.now_s - BEGIN_S)
        run.close()
    expected_s = Hazard(preemption_rate=1 / 100).expected_s(4, 240, piece_s=30)
    assert np.mean(took_s) == pytest.approx(expected_s, rel=0.05 if len(seeds) > 1 else 0.5)
    print(f"{np.mean(took_s):.0f} s in the mean of {len(seeds)}, {expected_s:.0f} expected")


def test_a_job_at_a_dead_site_is_not_waited_for_beyond_its_time_limit(folder: Path) -> None:
    """Nor does it hold nodes any longer, by the figures."""
    both = worlds(2, 4, takes_s=100.0)
    south, gone_s = both[1], BEGIN_S + 30
    south.mood = lambda _: Mood.DOWN if gone_s <= south.now_s else Mood.GOOD

    def lose() -> None:
        for queue_id in list(south.agents):
            south.kill_agent(queue_id)

    south.dues.append((gone_s, lose))
    run = Sites(folder / "run", both, chain(100, wide=4), strategy="giant", speeds=(1.0, 2.0))
    assert run.go_on()
    assert run.is_complete
    story = run.story()
    lost = story.jobs[0]
    assert lost.plan.site == "south"
    assert lost.cause == Cause.UNREACHABLE
    assert lost.started_s is not None
    assert lost.ended_s == lost.started_s + lost.plan.requested_s < gone_s + SILENT_S
    assert lost.ended_s < story.jobs[1].planned_s <= lost.ended_s + OVER_S + LOOK_S + 5
    assert ran_s(replace(lost, ended_s=None), lost.ended_s + 10_000) == lost.plan.requested_s, (
        "while it is silent"
    )
