"""A run that has several sites: where its tasks are to run, what is kept of it, and what is learned
from it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.unit.app.test_learning import a_dispatch

from windrow.app import execute, sites
from windrow.app.execute import managed, prepare, start_run
from windrow.app.facts import RunFacts, RunRequest
from windrow.app.learning import Learning, LearningPlace
from windrow.app.runs import past_predictions
from windrow.app.sites import Reached, placing, site_of
from windrow.errors import UserError
from windrow.forecast.base import AtOnce
from windrow.forecast.runtimes import RunTimes
from windrow.forecast.waits import FromHistory, History, PastWait
from windrow.formats import read_runnable
from windrow.model import NodeShape, Task, Workflow
from windrow.model.attempt import Attempt
from windrow.queues.port import Limits
from windrow.queues.simulated import Mood, SimulatedQueue
from windrow.sim.cluster import Cluster
from windrow.story import events as e
from windrow.story.journal import PredictedStart, Record, RunJournal
from windrow.strategies import Decision, JobPlan

SMALL = Limits(4, NodeShape(2), max_walltime_s=100)
WIDE = Limits(16, NodeShape(8), max_walltime_s=5000, usable_nodes=10)


def reached(name: str, limits: Limits, speed: float = 1.0) -> Reached:
    queue = SimulatedQueue(Cluster(nodes=limits.nodes))
    return Reached(replace(site_of(name, limits), speed=speed), limits, queue, name, Path("w.yaml"))


def test_each_task_may_run_at_every_site_that_can_take_it() -> None:
    tasks = [
        Task("small", 50),
        Task("long", 200),
        Task("fat", 50, cores=4),
        Task("wide", 50, nodes=8),
    ]
    workflow = Workflow.from_tasks("w", tasks)
    every = [True] * 4

    def able(*sites: Reached) -> list[list[bool]]:
        found: list[list[bool]] = placing(sites, workflow).tolist()
        return found

    assert able(reached("a", SMALL), reached("b", WIDE)) == [[True, False, False, False], every]
    assert able(reached("a", SMALL, speed=4.0), reached("b", WIDE)) == [
        [True, True, False, False],
        every,
    ]
    closed = replace(SMALL, closed="it is drained")  # it may open again
    assert able(reached("a", closed), reached("b", WIDE)) == [[True, False, False, False], every]
    assert able(reached("b", WIDE)) == [every]


@pytest.mark.parametrize(
    ("task", "why"),
    [
        (
            Task("t", 50, cores=9),
            "a: task t needs 9 cores; a node of a has 2; .*b: task t needs 9 cores; a node of b "
            "has 8",
        ),
        (
            Task("t", 6000),
            "a: task t needs .* but a allows .*b: task t needs 100.2 min, but b allows",
        ),
        (
            Task("t", 50, nodes=12),
            "a: task t needs 12 nodes; a has 4; .*b: task t needs 12 nodes, but only 10 of the 16",
        ),
    ],
)
def test_what_fits_nowhere_is_refused_with_the_reason_of_each_site(task: Task, why: str) -> None:
    with pytest.raises(UserError, match=f"task t can run at no site \\({why}"):
        placing([reached("a", SMALL), reached("b", WIDE)], Workflow.from_tasks("w", [task]))


def test_a_run_of_two_sites_is_kept_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while one of them is silent; what was predicted of its jobs counts for that site
    alone."""
    queues = {
        name: SimulatedQueue(Cluster(nodes=nodes)) for name, nodes in (("north", 2), ("south", 5))
    }
    for module in (execute, sites):
        monkeypatch.setattr(module, "open_queue", lambda name, _shell=None: queues[name])
    monkeypatch.chdir(tmp_path)
    file, root = tmp_path / "w.yaml", tmp_path / "runs"
    file.write_text(
        "name: w\ntasks:\n  - {id: a, command: 'true', nodes: 1}\n  - {id: b, command: 'true', "
        "nodes: 3}\n"
    )
    prepared = prepare(RunRequest(file, on="north", also=("south",), strategy="individual"))
    assert [one.site.name for one in prepared.sites] == ["north", "south"]
    paths = start_run(prepared, root)
    limits = queues["south"].limits
    monkeypatch.setattr(
        queues["south"], "limits", lambda: queues["south"]._answer("limits") and limits()
    )
    queues["south"].mood = lambda _: Mood.DOWN
    with managed(paths) as manager:
        assert [at.site.nodes for at in manager.core.sites] == [2, 5]
        assert manager.core.site_of == [0, 1]
        manager.begin()
        assert [job.plan.site for job in manager.core.jobs.values()] == ["north"]
        assert (
            manager.trouble_with_queue
            == "the queue of south does not answer: the queue does not answer"
        )
        queues["south"].mood = lambda _: Mood.GOOD
        manager.outposts[1].asking.last_s = float("-inf")
        manager.step()
        assert [job.plan.site for job in manager.core.jobs.values()] == ["north", "south"]
        assert [list(queue.jobs) for queue in queues.values()] == [["c1"], ["c1"]]
        manager.stop()
    told = {p.tag[-2:] for p in past_predictions(root, "south", "simulated")}
    assert (told, {p.tag[-2:] for p in past_predictions(root)}) == ({"-1"}, {"-0", "-1"})
    assert not past_predictions(root, "south", "elsewhere")


def test_queues_of_one_name_in_two_places_are_not_mixed(tmp_path: Path) -> None:
    for number, place in enumerate(["", "slurm.a", "slurm.b"]):
        (tmp_path / f"r-{number}").mkdir()
        request = RunRequest(Path("w.yaml"), on="slurm")
        facts = RunFacts(request=request, uid=str(number), place=place).written()
        journal = RunJournal.create(tmp_path / f"r-{number}" / "journal.sqlite", facts)
        journal.predict([PredictedStart(0, "twin", 1.0, 1, 60, 2.0, 1)])
        journal.close()
    assert [p.tag for p in past_predictions(tmp_path, "slurm", "slurm.a")] == [
        "windrow-0-0",
        "windrow-1-0",
    ]
    assert len(past_predictions(tmp_path, "slurm")) == 3


def test_waits_are_kept_by_place_and_those_of_older_versions_are_used_until_there_are_some(
    tmp_path: Path,
) -> None:
    waits = History(tmp_path / "w.sqlite")
    for place, wait_s in (("slurm", 100), ("slurm.a", 7)):
        waits.record(place, [PastWait(f"{place}-{i}", 1, 60, 0.0, wait_s) for i in range(20)])
    said = [
        FromHistory(waits, place, lambda: 0.0, AtOnce(), "slurm")
        for place in ("slurm.a", "slurm.b")
    ]
    assert [int(one.known_s(np.array([1]), np.array([60]))[0]) for one in said] == [7, 100]


def test_what_is_learnt_of_a_fast_site_is_scaled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDROW_HISTORY", str(tmp_path / "h.sqlite"))
    waits, dispatch = History(tmp_path / "w.sqlite"), a_dispatch()
    learning = Learning(
        dispatch, {"a": LearningPlace("x.a"), "b": LearningPlace("x.b", 2.0)}, (), waits
    )
    attempt = Attempt(0, begun=20.0)
    learning(
        [
            Record(e.JobsPlanned(0, Decision((JobPlan((0,), 1, 5, 60, site="b"),)), "b")),
            Record(e.JobSubmitted(10, 0, "c1")),
            Record(e.JobStarted(15, 0)),
            Record(e.TaskFinished(50, 0), None, 50.0, attempt),
        ]
    )
    workflow = dispatch.runnable.workflow
    assert RunTimes().times(workflow.name, workflow.kinds[0]) == [60.0]
    assert waits.bounds("x.a", [(1, 60)], 0.0) == [None]
    rows = (
        sqlite3.connect(tmp_path / "w.sqlite").execute("SELECT queue, wait_s FROM waits").fetchall()
    )
    assert rows == [("x.b", 5.0)]


def test_tasks_say_where_they_may_run(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(
        "stays: {genome.fa: b}\n"
        "tasks:\n"
        "  - {id: any, command: x}\n"
        "  - {id: named, command: x, site: a}\n"
        "  - {id: fast, command: x, where: speed > 1 && cores >= 8}\n"
        "  - {id: reads, command: x, inputs: genome.fa}\n"
        "  - {id: coast, command: x, where: region == 'coast'}\n"
    )
    runnable = read_runnable(file)
    a, b = reached("a", SMALL), reached("b", WIDE, speed=2.0)
    b = replace(b, site=replace(b.site, attributes={"Region": "Coast"}))
    found = placing([a, b], runnable.workflow, runnable.steps).tolist()
    assert found == [[True, True, False, False, False], [True, False, True, True, True]]
    with pytest.raises(
        UserError, match=r"task named says where: site == 'a', which does not hold for b"
    ):
        placing([b], runnable.workflow, runnable.steps)
    with pytest.raises(
        UserError, match=r"task fast can run at no site \(a: .*speed > 1.*; c: .*speed > 1"
    ):
        placing([a, reached("c", WIDE)], runnable.workflow, runnable.steps)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "tasks: [{id: a, command: x, where: 'gpus >'}]",
            "w.yaml:1: character 7: expected a number",
        ),
        ("tasks: [{id: a, command: x, where: 'memory > big'}]", "compares numbers only"),
        ("tasks: [{id: a, command: x, site: 'a,b'}]", "write the name of a site"),
        (
            "stays: {x: west}\ntasks: [{id: a, command: x}]",
            "x is to stay at west, but no task reads or writes it",
        ),
        ("stays: west\ntasks: [{id: a, command: x}]", "write files with sites"),
    ],
)
def test_conditions_that_cannot_be_read_are_told(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "w.yaml").write_text(text)
    with pytest.raises(UserError, match=words):
        read_runnable(tmp_path / "w.yaml")
