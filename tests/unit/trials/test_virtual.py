"""Runs in virtual time with drawn faults: they hold what is promised, and bugs put in by hand are
found."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import FUZZ, examples

from windrow import files
from windrow.agent import checkpoints, claim, desk, event_file, loop, outputs
from windrow.agent.data.peers import Peers
from windrow.agent.kept_files import Found, KeptFiles
from windrow.app import changes
from windrow.app.strategies import find_strategy
from windrow.manager.losses import Losses
from windrow.manager.manager import Manager
from windrow.manager.outpost import Outpost
from windrow.manager.transfers import Transfers
from windrow.model import Log
from windrow.queues.simulated import SimulatedQueue
from windrow.recipes import generate_log, generate_workflow
from windrow.sim import Cluster
from windrow.storage.admission import Admission
from windrow.storage.demand import SpaceLimit
from windrow.story import local_places
from windrow.story.events import (
    FilesMoved,
    JobsPlanned,
    TaskDropped,
    TaskFailed,
    TaskFinished,
    TaskUndone,
)
from windrow.story.journal import QueueWords, Record, RunJournal
from windrow.strategies import Work, whole_seconds
from windrow.trials.compare import compare
from windrow.trials.trial import run_trial
from windrow.trials.virtual import crew
from windrow.trials.virtual.__main__ import main
from windrow.trials.virtual.counted import Invariant, never
from windrow.trials.virtual.disk import scratch
from windrow.trials.virtual.drawn import VirtualScenario, braid, play, play_all
from windrow.trials.virtual.faults import LOCAL, SOMETIMES, Fault, Kind
from windrow.trials.virtual.invariants import Violation
from windrow.trials.virtual.shell import VirtualRun
from windrow.trials.virtual.views import LateView
from windrow.trials.virtual.world import BEGIN_S, World, empty_queue

pytestmark = pytest.mark.slow


@cache
def busy_log() -> Log:
    return generate_log("lublin", nodes=32, days=3, seed=3)


def small(seed: int, kind: str = "", record: int | None = None) -> VirtualScenario:
    return VirtualScenario(seed, lanes=3, levels=5, kind=kind, record=record)


def test_drawn_runs_hold_what_is_promised() -> None:
    met = Counter[str]()
    for seed in range(24 * max(1, FUZZ)):
        played = play(small(seed))
        assert not played.violation
        met.update(played.met)
    assert not set(Kind) - set(SOMETIMES) - set(met)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_of_fault_at_some_records(kind: Kind) -> None:
    """All of them: `make prove`."""
    for record in (29,):
        played = play(small(list(Kind).index(kind), kind, record))
        assert not played.violation


def test_drawn_runs_of_which_several_jobs_run_each_task() -> None:
    for seed in range(8 * max(1, FUZZ)):
        assert not play(replace(small(seed), copies=2 + seed % 2)).violation


@pytest.mark.parametrize("rule", ["replicas", "reliability", "speculate"])
def test_drawn_runs_whose_tasks_get_copies(rule: str) -> None:
    value: dict[str, Any] = {rule: {"replicas": 3, "reliability": 0.95, "speculate": 1}[rule]}
    for seed in range(2 * max(1, FUZZ)):
        assert not play(replace(small(seed), **value)).violation


def test_drawn_runs_at_two_places_of_files() -> None:
    for seed in range(5 * max(1, FUZZ)):
        assert not play(replace(small(seed), far=1)).violation


def test_drawn_runs_on_nodes_that_fail_all_the_time() -> None:
    met = Counter[str]()
    for seed in range(6 * max(1, FUZZ)):
        played = play(replace(small(seed), faults=2, shape=(0.7, 12.0)[seed % 2]))
        assert not played.violation
        met.update(played.met)
    assert met["node is down for a while"] > 6


def test_drawn_runs_of_tasks_with_checkpoints() -> None:
    """Jobs are shorter than some tasks: these are cut into pieces, and continued after whatever
    ends one."""
    for seed in range(3 * max(1, FUZZ)):
        assert not play(replace(small(seed), lanes=2, levels=4, checkpoints=1)).violation


def test_checkpoints_are_known_as_the_task_s_own_after_a_crash_of_its_node() -> None:
    """Their record is synced: without it they would pass for files of others, and stay."""
    for seed in (77135, 77007):
        scenario = VirtualScenario(seed, lanes=3, levels=4, faults=1, checkpoints=1)
        assert not play(scenario).violation


@pytest.mark.parametrize("kind", [Kind.AGENT_WRITING, Kind.CUT_OFF, Kind.NOTICED, Kind.MANAGER])
def test_tasks_with_checkpoints_meet_faults_at_some_records(kind: Kind) -> None:
    for record in range(10, 40, 15 if FUZZ < 2 else 1):
        assert not play(
            replace(small(record, kind, record), lanes=2, levels=2, checkpoints=1)
        ).violation


def test_drawn_runs_that_keep_only_some_files() -> None:
    """Deleted at the last reader, whatever goes wrong: nothing that is needed, and all that is
    not."""
    for seed in range(4 * max(1, FUZZ)):
        assert not play(
            replace(small(seed), temporary=1, far=seed % 4 // 3, copies=1 + seed % 3 // 2)
        ).violation


@pytest.mark.parametrize("kind", [Kind.AGENT_WRITING, Kind.FILE, Kind.MANAGER, Kind.DISK])
def test_runs_that_delete_files_meet_faults_at_some_records(kind: Kind) -> None:
    for record in range(9, 40, 15 if FUZZ < 2 else 1):
        assert not play(
            replace(small(record, kind, record), lanes=2, levels=3, temporary=1)
        ).violation


def test_drawn_runs_that_keep_files_on_nodes() -> None:
    """Nothing is read by another job before it is committed, and what goes with a node is made
    again."""
    for seed in range(4 * max(1, FUZZ)):
        assert not play(replace(small(seed), local=1, temporary=seed % 2)).violation


def test_an_attempt_that_waits_for_a_copy_does_not_start_when_its_job_is_given_up() -> None:
    scenario = VirtualScenario(910029, lanes=3, levels=4, local=1)
    assert not play(scenario).violation


@pytest.mark.parametrize(
    "kind", [Kind.AGENT_WRITING, Kind.CUT_OFF, Kind.MANAGER, Kind.PREEMPTED, *LOCAL]
)
def test_runs_with_files_on_nodes_meet_faults_at_some_records(kind: Kind) -> None:
    for record in range(9, 40, 15 if FUZZ < 2 else 1):
        assert not play(replace(small(record, kind, record), lanes=2, levels=3, local=1)).violation


def test_a_reader_that_does_not_wait_for_a_commit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not planned before, and waits if it was."""
    monkeypatch.setattr(local_places.LocalPlaces, "makers_for", lambda *_: set())
    monkeypatch.setattr(Manager, "_readers_of_nodes", lambda _: set())
    assert "starts without" in first_found(
        [replace(small(seed), lanes=2, levels=3, local=1) for seed in (36, 115, 129)]
    )


@pytest.mark.parametrize("seed", [100018, 100027])
def test_older_files_of_the_same_names_are_not_taken_for_what_stayed_on_nodes(seed: int) -> None:
    """They are replaced; and tasks that join the run when a node is gone do not read them."""
    assert not play(VirtualScenario(seed, lanes=3, levels=4, local=1)).violation


@pytest.mark.parametrize(
    "scenario",
    [
        VirtualScenario(1128, lanes=3, levels=4, local=1),
        VirtualScenario(1137, lanes=3, levels=3, local=1, few=1),
    ],
)
def test_no_jobs_are_lost_waiting_for_files_on_nodes_of_others(scenario: VirtualScenario) -> None:
    """Of a task that joined the run, and of copies that are slow: such tasks are not planned before
    the files are there, and the run does not give up for jobs that waited in vain."""
    assert not play(scenario).violation


def test_tasks_wait_without_a_job_for_files_on_their_way() -> None:
    """These take longer to come than jobs have: the run gave up after three jobs in a row."""
    with scratch() as folder:
        (folder / "work").mkdir()
        runnable = braid(2, 3, folder / "work", random.Random(5))
        world = World(empty_queue(3), lambda _: 60, move_s=200)
        run = VirtualRun(folder / "run", world, runnable, far=folder / "far")
        assert run.go_on()
        assert run.is_complete
        assert len(world.queue.jobs) <= 3 * len(runnable.workflow)
        dropped = [one.event for one in run.records() if isinstance(one.event, TaskDropped)]
        assert any(event.lacks_files for event in dropped)
        run.close()


def test_a_run_tells_which_files_results_from_elsewhere_found_in_their_place() -> None:
    with scratch() as folder:
        (folder / "work").mkdir()
        runnable = braid(2, 3, folder / "work", random.Random(5))
        run = VirtualRun(
            folder / "run",
            World(empty_queue(3), lambda _: 60),
            runnable,
            "level-by-level",
            far=folder / "far",
        )
        for file in runnable.workflow.files:
            (folder / "work" / file.id).write_text("of the user")
        assert run.go_on()
        with closing(RunJournal.open(run.path / "journal.sqlite")) as journal:
            notes = QueueWords.read(journal.facts()).notes
        moved = [one.event for one in run.records() if isinstance(one.event, FilesMoved)]
        home = {path for event in moved if event.to == "" for path in event.files}
        kept = {f"{folder}/work/{Path(path).name}.before-1" for path in home}
        run.close()
        assert kept
        assert {note.rpartition(" ")[2] for note in notes} == kept
        assert {Path(path).read_text() for path in kept} == {"of the user"}


def test_what_is_gone_everywhere_is_made_again_when_its_reader_is_planned_once_more() -> None:
    """Its reader was in a job when that came to light, and came back from it. Without that the run
    gave up after three jobs that waited for the file."""
    assert not play(replace(small(3), far=1)).violation


def test_no_task_starts_on_what_is_being_made_again() -> None:
    """Its maker ran again in place, since someone had deleted the file, and its own job was planned
    before that."""
    scenario = VirtualScenario(20000168, lanes=2, levels=2, far=1, worse=1, few=1)
    assert not play(scenario).violation


def test_no_jobs_are_sent_to_wait_for_what_takes_long_at_another_place() -> None:
    """One came back after 25 s, and another took its place, until what they waited for was done."""
    scenario = VirtualScenario(20000282, lanes=1, levels=3, surely=str(Kind.GONE), far=1, few=1)
    assert not play(scenario).violation


@pytest.mark.parametrize(
    "scenario",
    [
        # its maker had the same site, and a clock that was set made it late for ever
        VirtualScenario(31000028, lanes=2, levels=3, surely=str(Kind.GONE), far=1, few=1),
        # an agent took a job over that its queue had refused, and no one listened to it
        VirtualScenario(31002057, lanes=3, levels=3, surely=str(Kind.FILE), worse=1, few=1),
        # run again while the attempt that the user had cancelled still ended
        VirtualScenario(31003069, lanes=3, levels=3, surely=str(Kind.REPEATS), users=1, few=1),
        # or while one still ran whose task a job had done that was given up
        VirtualScenario(31000011, lanes=2, levels=3, surely=str(Kind.GONE), far=1, few=1),
    ],
)
def test_what_campaigns_have_found(scenario: VirtualScenario) -> None:
    assert not play(scenario).violation


def test_drawn_runs_of_few_kinds_of_faults() -> None:
    for seed in range(6 * max(1, FUZZ)):
        has: dict[str, Any] = ({"local": 1}, {"far": 1}, {"checkpoints": 1})[seed % 3]
        assert not play(replace(small(seed), lanes=2, levels=3, few=1, worse=1, **has)).violation


def test_drawn_runs_on_machines_that_forget_what_was_not_synced() -> None:
    for seed in range(6 * max(1, FUZZ)):
        assert not play(replace(small(seed), worse=1, local=seed % 2)).violation


@pytest.mark.parametrize(
    ("kind", "module", "lost"),
    [
        (Kind.NODE, files, "claim"),
        (Kind.MACHINE, files, "job.json"),
        (Kind.NODE, event_file, "events"),
    ],
)
def test_what_is_not_synced_is_lost(
    monkeypatch: pytest.MonkeyPatch, kind: Kind, module: object, lost: str
) -> None:
    monkeypatch.setattr(module, "sync", lambda _: None)
    found = (
        played_with([Fault(kind, BEGIN_S + at_s)], seed)
        for seed in range(5)
        for at_s in range(15, 60, 6)
    )
    assert any(lost in violation for violation in found)


@pytest.mark.parametrize(
    ("what", "has"), [("delete", {"space": 1}), ("remove_files", {"checkpoints": 1})]
)
def test_what_goes_when_a_task_has_finished_stays_until_that_is_on_disk(
    monkeypatch: pytest.MonkeyPatch, what: str, has: dict[str, Any]
) -> None:
    """Else a crash of the node brings back a task that has lost its inputs, or its checkpoints."""
    writers = list[event_file.Writer]()
    begin, go, dues = event_file.Writer.__init__, getattr(loop, what), []

    def begins(self: event_file.Writer, *given: Any, **more: Any) -> None:
        writers.append(self)
        begin(self, *given, **more)

    def goes(*given: Any) -> Any:
        dues.append(writers[-1].sync_due_s())
        return go(*given)

    monkeypatch.setattr(event_file.Writer, "__init__", begins)
    monkeypatch.setattr(loop, what, goes)
    plan = replace(small(3), lanes=1, faults=0, strategy="one-job", **has)
    assert not play(plan).violation
    assert set(dues) == {None}


def test_a_checkpoint_outlives_the_word_that_its_task_has_finished() -> None:
    """The machine fails in the second after a task has finished: its word is lost."""
    assert not play(replace(small(1125), checkpoints=1, worse=1)).violation


def played_with(faults: Sequence[Fault], seed: int) -> str:
    """What is wrong with a small run that meets these faults."""
    with scratch() as folder:
        (folder / "work").mkdir()
        runnable = braid(2, 2, folder / "work", random.Random(seed))
        world = World(empty_queue(3), lambda _: 60, chance=random.Random(seed), faults=list(faults))
        run = VirtualRun(folder / "run", world, runnable, "individual")
        try:
            run.survive()
        except Violation as violation:
            return str(violation)
        finally:
            run.close()
    return ""


def test_drawn_runs_in_worse_worlds() -> None:
    """What goes wrong stays wrong until the run gives up, or for hours."""
    exercised = Counter[str]()
    for seed in range(12 * max(1, FUZZ)):
        played = play(replace(small(seed), worse=1, local=seed % 3 == 1, far=seed % 3 == 2))
        assert not played.violation
        exercised.update(played.exercised)
    assert exercised[Invariant.BOUNDED] > 0


def test_drawn_runs_that_people_change() -> None:
    exercised = Counter[str]()
    kinds = (Kind.HOLDS, Kind.AMENDS, Kind.CANCELS, Kind.REPEATS)
    for seed in range(1000, 1000 + 12 * max(1, FUZZ)):
        surely = str(kinds[seed % len(kinds)])
        played = play(replace(small(seed), lanes=2, levels=2, users=1, few=1, surely=surely))
        assert not played.violation
        exercised.update(played.exercised)
    assert exercised[Invariant.STAYS_OPEN]
    assert exercised[Invariant.CLOSES]
    assert exercised[Invariant.CHANGED]


def test_a_held_run_whose_kept_agent_gave_a_task_back_has_an_end() -> None:
    """The agent took each job with the changed task over, and had nothing to do, once a second."""
    scenario = VirtualScenario(20_000_135, lanes=1, levels=4, temporary=1, users=1, few=1)
    assert not play(replace(scenario, surely=Kind.AMENDS)).violation


def test_drawn_runs_on_nodes_with_room_for_several_tasks() -> None:
    exercised = Counter[str]()
    for seed in range(6 * max(1, FUZZ)):
        played = play(replace(small(seed), levels=3, needs=1, parts=seed % 2))
        assert not played.violation
        exercised.update(played.exercised)
    assert exercised[Invariant.ROOM]
    assert exercised[Invariant.WITHIN]


def test_an_edited_workflow_keeps_what_has_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [replace(small(seed), levels=3, edited=1) for seed in range(4 * max(1, FUZZ))]
    found = [play(run) for run in runs]
    assert not any(played.violation for played in found)
    assert sum(played.exercised[Invariant.REUSED] for played in found)
    monkeypatch.setattr(changes, "_plain", lambda _: "")
    assert "are kept" in first_found(runs)


@pytest.mark.parametrize("kind", [Kind.NO_COMMIT, Kind.NODES_FULL])
def test_work_without_an_end_is_found(monkeypatch: pytest.MonkeyPatch, kind: Kind) -> None:
    """A run that submits jobs for as long as its outputs find no room."""
    monkeypatch.setattr(Losses, "refused", lambda *_: "")
    monkeypatch.setattr(Losses, "add", lambda *_: "")
    runs = [replace(small(seed, kind, 20), local=1) for seed in range(8)]
    assert "the work has no end" in first_found(runs)


def test_an_output_that_is_not_made_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs.Outputs, "why_not_made", lambda *_: "")
    runs = [replace(small(seed, Kind.NOT_ALL, 9), worse=1) for seed in range(8)]
    assert first_found(runs)


def test_rotten_blocks_that_are_believed_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Peers, "_prove", lambda *_: None)
    runs = [replace(small(seed, Kind.ROT, 9), lanes=2, levels=2) for seed in range(20)]
    assert "is not what home has" in first_found(runs)


def test_what_never_happened_is_named() -> None:
    met = {str(kind): kind is not Kind.POWER for kind in Kind}
    exercised = {str(invariant): invariant is not Invariant.HOME for invariant in Invariant}
    assert never(met, exercised) == ["all machines fail", "results come home"]


@pytest.mark.parametrize(("late_s", "seen"), [(10, [1, 1, 4]), (1, [3, 6, 6])])
def test_what_is_written_is_seen_late_and_whole_again(
    tmp_path: Path, late_s: int, seen: list[int]
) -> None:
    now_s = 0.0
    view = LateView(lambda: now_s)
    view.folders.append(tmp_path)
    (tmp_path / "jobs/1").mkdir(parents=True)
    events = tmp_path / "jobs/1/events"
    events.write_bytes(b"")
    view.begin(late_s, 1000)
    sizes = []
    for at_s, written in ((0.0, b"abc"), (5.0, b"def"), (10.0, b"")):
        now_s = at_s
        with events.open("ab") as file:
            file.write(written)
        view.note()
        now_s = at_s + 4
        view.enter()
        sizes.append(events.stat().st_size)
        view.leave()
    assert sizes == seen
    assert events.read_bytes() == b"abcdef"


def test_a_wrong_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task whose command writes something else now and then."""
    finish = crew._result
    monkeypatch.setattr(
        crew, "_result", lambda run, name: finish(run, name) + "!" * (run.order.task == 14)
    )
    assert "which is done, and should have" in first_found([replace(small(1), faults=0)])


def test_files_that_did_not_arrive_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Transfers._ended
    monkeypatch.setattr(
        Transfers, "_ended", lambda self, moved: ended(self, replace(moved, why=""))
    )
    found = first_found([replace(small(seed), far=1) for seed in range(40, 100)])
    assert "starts without" in found or "gives up" in found


def test_files_that_go_with_their_nodes_unnoticed_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_places.LocalPlaces, "void", lambda *_: {})
    assert "gives up" in first_found([replace(small(8), lanes=1, levels=2, local=1)])


def test_drawn_runs_within_a_limit_on_space() -> None:
    """Never above it, never stuck, and nothing left over, whatever goes wrong."""
    for seed in range(4 * max(1, FUZZ)):
        assert not play(replace(small(seed), space=1)).violation


@pytest.mark.parametrize("kind", [Kind.AGENT, Kind.MANAGER])
def test_runs_within_a_limit_meet_faults_at_some_records(kind: Kind) -> None:
    for record in range(9, 40, 15 if FUZZ < 2 else 1):
        assert not play(replace(small(record, kind, record), lanes=2, levels=3, space=1)).violation


def test_what_agents_left_that_were_killed_takes_no_space_of_the_next_job() -> None:
    """Drafts and halves: the next job may run other tasks first, and would count with their
    room."""
    for seed in (66, 141):
        assert not play(
            VirtualScenario(seed, lanes=4, levels=4, shape=0.7, faults=2, space=1)
        ).violation


def test_within_a_limit_what_is_gone_is_made_again_for_the_next_job() -> None:
    """No attempt fails for it, though the manager was not started again."""
    with scratch() as folder:
        (folder / "work").mkdir()
        runnable = braid(1, 3, folder / "work", random.Random(1))
        world = World(empty_queue(1), lambda _: 60)
        run = VirtualRun(folder / "run", world, runnable, "giant")
        run.work = Work(
            runnable.workflow, whole_seconds(runnable.workflow), run.site, space=SpaceLimit(100)
        )
        world.faults = [Fault(kind, BEGIN_S + 70) for kind in (Kind.FILE, Kind.AGENT)]
        run.survive()
        records = run.records()
        run.close()
    assert [r.event.task for r in records if isinstance(r.event, TaskUndone)] == [0]
    assert not [r for r in records if isinstance(r.event, TaskFailed)]


def test_a_limit_that_is_passed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def always(self: Admission, task: int) -> bool:
        self._begin(task)
        self._start(task)
        return True

    monkeypatch.setattr(Admission, "admit", always)
    assert "files take" in first_found(
        [replace(small(seed), space=1, faults=0) for seed in range(4)]
    )


def test_files_that_stay_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "delete", lambda _path, _workdir, _run: "")
    assert "not deleted" in first_found(
        [replace(small(1), temporary=1, faults=0, lanes=2, levels=2)]
    )


def test_two_writers_of_checkpoints_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "HANDOVER_S", 0.0)
    found = first_found(
        [replace(small(seed, Kind.CUT_OFF, 12), checkpoints=1) for seed in range(40)]
    )
    assert "may write its checkpoints" in found


def test_checkpoints_that_go_too_early_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = KeptFiles.begin

    def always_first(self: KeptFiles, here: Found, *, left_s: float | None = None) -> None:
        self.has_begun = False
        begin(self, here, left_s=left_s)

    monkeypatch.setattr(KeptFiles, "begin", always_first)
    found = first_found([replace(small(seed), checkpoints=1, faults=0) for seed in range(10)])
    assert "are kept, not" in found


def test_a_manager_that_moves_files_is_killed_at_some_records() -> None:
    """At every record, with WINDROW_FUZZ."""
    first = replace(small(7), levels=4, far=1, kind=Kind.MANAGER)
    records = play(first).records
    for record in range(1, records + 1, 1 if FUZZ > 1 else 9):
        assert not play(replace(first, record=record)).violation


def test_what_a_replacement_left_half_written_is_made_again() -> None:
    """A job that was given up finishes a task, while its replacement writes the same file in place,
    and is killed."""
    for seed in (100215, 2206):
        assert not play(small(seed)).violation


def test_outputs_that_are_not_claimed_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "commit", lambda _path, _job: True)
    assert "finished again" in first_found(
        [replace(small(seed), copies=2, faults=0) for seed in range(20)]
    )


def test_several_processes_play_the_same() -> None:
    asked = [small(seed) for seed in range(1)]
    assert list(play_all(asked, 2)) == list(play_all(asked))


def first_found(scenarios: Sequence[VirtualScenario]) -> str:
    """The first violation in these runs."""
    return next((played.violation for one in scenarios if (played := play(one)).violation), "")


def test_a_lost_record_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    append = RunJournal.append

    def dropping(
        self: RunJournal, records: Sequence[Record], offsets: Mapping[int, int] | None = None
    ) -> None:
        append(
            self,
            [
                r
                for r in records
                if r.event.at_s < 1_000_100 or type(r.event).__name__ != "TaskFinished"
            ],
            offsets,
        )

    monkeypatch.setattr(RunJournal, "append", dropping)
    found = first_found([small(0)])
    assert "which is not record" in found
    assert "python -m windrow.trials.virtual --seed 0 --lanes 3 --levels 5" in found


def test_a_double_submission_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def trusting(self: Outpost) -> None:
        for job in self.placed.values():
            job.is_doubtful = False

    monkeypatch.setattr(Outpost, "_resolve_doubts", trusting)
    assert "submitted twice" in first_found([small(seed) for seed in range(50)])


@pytest.mark.parametrize("where", [(loop, desk), (desk,)])
def test_an_agent_without_a_fence_is_found(
    monkeypatch: pytest.MonkeyPatch, where: Sequence[object]
) -> None:
    for module in where:
        monkeypatch.setattr(module, "is_fenced", lambda *_: False)
    assert "which was given up" in first_found([small(seed) for seed in range(50)])


def test_an_agent_without_a_claim_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "claim", lambda *_: "")
    found = first_found([small(seed) for seed in range(50)])
    assert any(words in found for words in ("while it runs in", "finished again", "which has"))


def test_a_seed_is_a_run_whatever_the_hash_seed(capsys: pytest.CaptureFixture[str]) -> None:
    """Here it is a random one."""
    words = ["--seed", "7", "--lanes", "3", "--levels", "5", "--json"]
    command = [sys.executable, "-m", "windrow.trials.virtual", *words]
    env = {**os.environ, "PYTHONHASHSEED": "12345"}
    other = subprocess.run(command, env=env, capture_output=True, check=True, text=True).stdout
    assert main(words) == 0
    here = json.loads(capsys.readouterr().out)
    assert {**json.loads(other), "cpu_s": 0} == {**here, "cpu_s": 0}


def test_it_tells_the_story_and_where_it_breaks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["--seed", "3", "--lanes", "2", "--levels", "2"]) == 0
    said = capsys.readouterr().out
    assert "job 0 (c1): " in said
    assert "1 runs, " in said
    monkeypatch.setattr(RunJournal, "append", lambda *_: None)
    assert main(["--seed", "3", "--lanes", "2", "--levels", "2"]) == 1
    assert "VIOLATION" in capsys.readouterr().out


LOOK_S = 5
"""The longest time between two looks of an agent at other jobs, for whose tasks its own wait."""


@examples(10)
@given(
    seed=st.integers(0, 2**32),
    strategy=st.sampled_from(("individual", "level-by-level", "one-job", "glume", "zhang")),
)
def test_without_faults_a_run_goes_as_in_a_trial(seed: int, strategy: str) -> None:
    """The same jobs, in the same order but for those of tasks that end at the same time.

    In virtual time agents have a grace and look at other jobs now and then: each level may begin so
    much later. Where tasks share nodes, another may then be the next to start, which moves the end
    by as much as a task takes.
    """
    chance = random.Random(seed)
    with scratch() as folder:
        (folder / "work").mkdir()
        levels = chance.randint(1, 6)
        runnable = braid(chance.randint(1, 5), levels, folder / "work", chance)
        takes_s = [
            max(1, round(s * chance.choice([0.6, 1.0])))
            for s in whole_seconds(runnable.workflow).tolist()
        ]
        cluster = Cluster(
            busy_log(), nodes=32, policy=chance.choice(["easy", "conservative"]), start_s=100_000
        )
        cluster.advance(chance.randrange(110_000, 200_000))
        run = VirtualRun(
            folder / "run",
            World(SimulatedQueue(cluster.clone()), takes_s.__getitem__),
            runnable,
            strategy,
        )
        began_s = run.world.now_s
        run.survive()
        records = run.records()
        (work,) = run.works()
        run.close()
    trial = run_trial(
        cluster,
        runnable.workflow,
        find_strategy(strategy),
        terms=run.terms,
        work=work,
        actual_s=np.array(takes_s),
    )
    found = [
        plan for r in records if isinstance(r.event, JobsPlanned) for plan in r.event.decision.jobs
    ]
    expected = [
        plan
        for event, _ in trial.events
        if isinstance(event, JobsPlanned)
        for plan in event.decision.jobs
    ]
    assert (
        sorted(found, key=repr) == sorted(expected, key=repr)
        if strategy == "individual"
        else found == expected
    )
    ended_s = max(r.event.at_s for r in records if isinstance(r.event, TaskFinished))
    other_s = 0 if strategy == "individual" else max(takes_s)
    assert abs(ended_s - began_s - trial.makespan_s) <= LOOK_S * (levels - 1) + other_s


def test_what_failures_cost_that_only_the_shell_shows() -> None:
    """Figures come from the journal; the same seed gives the same; less fails, less is lost."""
    workflow = generate_workflow("fork-join", tasks=12, work_s=12 * 1800.0, seed=1)
    worst = "tasks=20%,agents=20m,manager=30m,queue=30m,away=5m"
    texts = (worst, worst, "tasks=0.01%", "none")
    rows = [
        compare(
            workflow, busy_log(), times=[30_000], strategies=["one-job"], failures=t, seed=4
        ).rows
        for t in texts
    ]
    assert rows[0] == rows[1]
    (bad,), _, (good,), (none,) = rows
    assert bad["killed_jobs"] > good["killed_jobs"] == 0
    assert bad["makespan_s"] > good["makespan_s"] == pytest.approx(none["makespan_s"], abs=LOOK_S)


def test_drawn_runs_of_tasks_with_limits_priorities_and_loose_ends() -> None:
    exercised = Counter[str]()
    for seed in range(8 * max(1, FUZZ)):
        played = play(replace(small(seed), rules=1))
        assert not played.violation
        exercised.update(played.exercised)
    assert exercised[Invariant.LIMITS] > 20
