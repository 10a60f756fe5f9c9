"""One run on two sites. Where nothing crosses, each part goes as it would alone; a site in trouble
holds up nobody."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.survival.several import SitesRun
from tests.survival.toy import BEGIN_S, Fate, braid
from tests.unit.strategies.test_listing import workflows

from windrow.forecast.base import AtOnce
from windrow.manager.terms import Terms
from windrow.model import Runnable, Step, Workflow
from windrow.model.site import Site
from windrow.queues.simulated import Mood
from windrow.story import events as e
from windrow.story.journal import Record
from windrow.trials.virtual.disk import scratch
from windrow.trials.virtual.faults import Kind, draw
from windrow.trials.virtual.shell import TERMS
from windrow.trials.virtual.world import World, empty_queue

NAMES = ("north", "south")
ELSEWHERE = {Kind.MANAGER, Kind.DISK, Kind.CLOCK, Kind.SLOW}
"""What goes wrong with a whole run, not with one of its sites."""


class Sites(SitesRun):
    """A run on several worlds at once, which nobody else uses."""

    def __init__(
        self,
        path: Path,
        worlds: Sequence[World],
        runnable: Runnable,
        site_of: Sequence[int] | None = None,
        strategy: str = "individual",
        terms: Terms = TERMS,
        speeds: Sequence[float] = (1.0, 1.0),
    ) -> None:
        rows = zip(worlds, NAMES, speeds, strict=False)
        sites = [
            Site.of(w.queue.cluster.nodes, name=name, speed=speed, max_array=3)
            for w, name, speed in rows
        ]
        able = (
            np.ones((len(sites), len(runnable.workflow)), dtype=bool)
            if site_of is None
            else site_of
        )
        forecaster = AtOnce() if site_of is not None else None
        super().__init__(
            path, worlds, sites, runnable, able, strategy, terms, lambda w: forecaster or w.queue
        )
        self.site_of = site_of or ()

    def check_all(self) -> None:
        """Every task is done, once, and each queue is empty."""
        assert self.is_complete
        for world in self.worlds:
            assert set(world.started.values()) <= {1}
            assert not world.queue.left
            assert set(world.queue.taken.values()) <= {1}
        assert {tag for world in self.worlds for tag in world.queue.taken}
        self.check_beliefs()


def runnable(*parts: Workflow) -> Runnable:
    """All of these in one workflow, without a tie between them."""
    tasks = [
        replace(
            task,
            id=f"{part}-{task.id}",
            parents=tuple(f"{part}-{parent}" for parent in task.parents),
        )
        for part, workflow in enumerate(parts)
        for task in workflow
    ]
    return Runnable(
        Workflow.from_tasks("parts", tasks), tuple(Step(("true",), "/", ()) for _ in tasks)
    )


def drawn_world(seed: int, first: int, faults: int) -> tuple[World, float]:
    """A cluster, what its tasks take and what goes wrong there: the same whoever else there is; and
    its speed."""
    chance = random.Random(seed)
    took = [chance.choice([1, 3, 5, 9, 14]) for _ in range(20)]
    world = World(empty_queue(chance.choice([2, 3, 4])), lambda task: took[task - first])
    world.queue.memory_s = chance.choice([30.0, 300.0])
    world.faults = [
        fault for fault in draw(seed, 60, BEGIN_S, faults) if fault.kind not in ELSEWHERE
    ]
    return world, chance.choice([0.5, 1.0, 2.0])


def records_of(
    path: Path, strategy: str, parts: Sequence[Workflow], seeds: Sequence[int], faults: int
) -> list[Record]:
    """What is recorded of a run of these parts, each at a site of its own."""
    firsts = [sum(map(len, parts[:number])) for number in range(len(parts))]
    worlds = [drawn_world(seed, first, faults) for seed, first in zip(seeds, firsts, strict=True)]
    site_of, speeds = (
        [number for number, part in enumerate(parts) for _ in part],
        [speed for _, speed in worlds],
    )
    terms = replace(TERMS, patience=None)
    run = Sites(
        path, [world for world, _ in worlds], runnable(*parts), site_of, strategy, terms, speeds
    )
    assert run.go_on()
    records = run.records()
    run.close()
    return records


def part_of(records: list[Record], site: str, tasks: range) -> list[object]:
    """What was recorded of the jobs of one site and of these tasks, with numbers as if nothing else
    were there."""
    jobs: list[int] = []
    planned = 0
    found: list[object] = []
    for record in records:
        event, detail = record.event, dict(record.detail or {})
        if record.attempt is not None:
            detail |= {**record.attempt.told(), "task": None}
        if isinstance(event, e.JobsPlanned):
            plans = event.decision.jobs
            planned += len(plans)
            if event.site != site:
                continue
            jobs += range(planned - len(plans), planned)
            plans = tuple(
                replace(p, site="", tasks=tuple(t - tasks.start for t in p.tasks)) for p in plans
            )
            event = replace(event, site="", decision=replace(event.decision, jobs=plans))
        task, job = getattr(event, "task", tasks.start), getattr(event, "job", None)
        if task not in tasks or (job is not None and job not in jobs):
            continue
        told = {
            name: value - tasks.start for name, value in (("task", task),) if hasattr(event, name)
        }
        told |= {
            name: jobs.index(value)
            for name in ("job", "by")
            if (value := getattr(event, name, None)) is not None
        }
        detail |= {
            name: jobs.index(detail[name])
            for name in ("job", "by_job")
            if detail.get(name) is not None
        }
        if "why" in detail:
            detail["why"] = re.sub(
                r"'\d-|\btask \d+", "", detail["why"]
            )  # names of tasks have the part's number
        if isinstance(
            event, e.JobStarted
        ):  # queue and agent say so in one second: which is heard first is no matter
            detail = {}
        found.append((replace(event, **told), detail, record.at_s))  # type: ignore[arg-type]
    return found


@pytest.mark.slow
@examples(12)
@given(
    workflows(mixed=False),
    workflows(mixed=False),
    st.sampled_from(["individual", "giant", "level-by-level", "glume"]),
    st.integers(0, 10**6),
    st.sampled_from([0, 3, 8]),
)
def test_two_parts_that_nothing_ties_go_as_each_would_alone(
    north: Workflow, south: Workflow, strategy: str, seed: int, faults: int
) -> None:
    """Queues that are silent or down, nodes that fail, tasks that fail, sites of other speeds: each
    has its own."""
    n, m = len(north), len(south)
    with scratch() as folder:
        both = records_of(folder / "both", strategy, [north, south], [seed, seed + 1], faults)
        first = records_of(folder / "north", strategy, [north], [seed], faults)
        second = records_of(folder / "south", strategy, [south], [seed + 1], faults)
    assert part_of(both, "north", range(n)) == part_of(first, "", range(n))
    assert part_of(both, "south", range(n, n + m)) == part_of(second, "", range(m))


def crossing(path: Path, strategy: str = "individual") -> Sites:
    """A braid of which each second task is to run at the other site."""
    worlds = [World(empty_queue(nodes), lambda _: 3.0) for nodes in (2, 3)]
    return Sites(
        path, worlds, braid(), [task % 2 for task in range(len(braid().workflow))], strategy
    )


@pytest.mark.parametrize("strategy", ["individual", "giant", "level-by-level"])
def test_tasks_wait_for_those_of_the_other_site(folder: Path, strategy: str) -> None:
    run = crossing(folder / "run", strategy)
    words = set[str]()
    run.each_look = lambda: words.add(run.manager.trouble_with_queue if run.manager else "")
    assert run.go_on()
    run.check_all()
    assert words == {""}
    story = run.story()
    assert {job.plan.site for job in story.jobs.values()} == set(NAMES)
    for number, task in enumerate(story.tasks):
        assert story.jobs[task.attempts[0].job].plan.site == NAMES[run.site_of[number]]
        ends = [
            story.tasks[parent].attempts[0].ended_s
            for parent in braid().workflow.parents.of(number).tolist()
        ]
        latest_s = max((end for end in ends if end is not None), default=0.0)
        assert task.attempts[0].started_s >= latest_s - 1, "one world's clock may be a second ahead"


@pytest.mark.parametrize("strategy", ["individual", "level-by-level"])
def test_a_manager_of_two_sites_dies_and_the_next_goes_on(folder: Path, strategy: str) -> None:
    for deadly in range(1, 60, 4):
        run = crossing(folder / f"{deadly}", strategy)
        if not run.go_on(Fate(deadly)):
            assert run.go_on()
        run.check_all()
        run.close()


def test_a_site_that_does_not_answer_holds_up_no_other(folder: Path) -> None:
    part = braid().workflow
    worlds = [World(empty_queue(4), lambda _: 3.0) for _ in NAMES]
    run = Sites(folder / "run", worlds, runnable(part, part), [0] * len(part) + [1] * len(part))
    north, south = worlds
    words = set[str]()
    north.mood = lambda _: Mood.DOWN if len(south.started) < len(part) else Mood.GOOD
    run.each_look = lambda: words.add(run.manager.trouble_with_queue if run.manager else "")
    assert run.go_on()
    run.check_all()
    assert words == {"", "the queue of north does not answer: the queue does not answer"}
    alone = Sites(
        folder / "alone", [World(empty_queue(4), lambda _: 3.0)], runnable(part), [0] * len(part)
    )
    assert alone.go_on()
    assert [start.at_s for start in south.starts] == [start.at_s for start in alone.world.starts]
    assert min(start.at_s for start in north.starts) > max(start.at_s for start in south.starts)


@pytest.mark.parametrize("strategy", ["individual", "level-by-level", "giant", "glume"])
def test_what_must_run_at_the_other_site_is_not_forgotten(folder: Path, strategy: str) -> None:
    """Its turn comes when a job ends at a site that has nothing left to do."""
    workflow = braid().workflow
    able = np.ones((2, len(workflow)), dtype=bool)
    able[0, 1::3] = able[1, ::3] = False
    worlds = [World(empty_queue(nodes), lambda _: 3.0) for nodes in (2, 3)]
    sites = [
        Site.of(world.queue.cluster.nodes, name=name)
        for world, name in zip(worlds, NAMES, strict=True)
    ]
    run = SitesRun(folder / "run", worlds, sites, braid(), able, strategy)
    assert run.go_on()
    assert run.is_complete
