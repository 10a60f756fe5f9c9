"""All tasks, attempts and jobs of a run as columns, small enough to be part of its page.

A column has one value for each task (or attempt, or job), so that names are written once; the whole
is compressed. Times are whole milliseconds since the run began; -1 stands for nothing. Commands are
kept as templates: what many have in common is written once. The script of the page
(`report/script/data.js`) is the reader; `SCHEMA` changes with what it has to know.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from windrow.report.plot import thinned
from windrow.report.run.about import NOTHING, About
from windrow.report.workflow import kind_colours
from windrow.story.figures import RecordedRun, attempt_s, attempts, ran_s
from windrow.story.states import ACTIVE, AttemptState, TaskState
from windrow.story.story import JobStory, TaskAttempt

if TYPE_CHECKING:
    from windrow.trials.background import Background, Steps

SCHEMA = 1
MOST_TAILS = 200
_TAIL_CHARACTERS = 4000
_COMMAND_CHARACTERS = 8000
_EDGES_PER_TASK = 8
_NONE = -1
_TASK_STATES = tuple(TaskState)
_ATTEMPT_STATES = tuple(AttemptState)
_WORDS = re.compile(r"(\s+)")

Columns = dict[str, Any]


def packed(columns: Mapping[str, Any]) -> str:
    """As text that is safe anywhere in a page: base64 of compressed JSON. The same for the same
    run."""
    plain = json.dumps(columns, separators=(",", ":"), allow_nan=False).encode()
    return base64.b64encode(gzip.compress(plain, 9, mtime=0)).decode()


def columns_of(
    told: RecordedRun,
    about: About = NOTHING,
    background: Background | None = None,
    figures: Mapping[str, Any] | None = None,
) -> Columns:
    """The run as columns. `figures` are those of `report --json`, which the page exports as they
    are."""
    kinds = list(dict.fromkeys(told.story.workflow.kinds))
    colours = kind_colours(told.story.workflow)[0]
    return {
        "schema": SCHEMA,
        "run": told.name,
        "workflow": told.story.workflow.name,
        "state": str(told.state),
        "is_active": told.state in ACTIVE,
        "is_simulated": told.is_simulated,
        "begun_at": told.begun_s,
        "until_ms": _ms(told, told.until_s),
        "cores": told.cores,
        "kinds": kinds,
        "colours": [colours[kind] for kind in kinds],
        "task_states": _TASK_STATES,
        "attempt_states": _ATTEMPT_STATES,
        "out": about.out,
        "tasks": _tasks(told, about, kinds),
        "attempts": _attempts(told, about),
        "parents": _parents(told),
        "jobs": [_job(told, number, job) for number, job in told.story.jobs.items()],
        "background": _background(told, background),
        "figures": dict(figures or {}),
        "provenance": list(about.provenance),
    }


def _ms(told: RecordedRun, at_s: float | None) -> int:
    if at_s is None:
        return _NONE
    return round((at_s - told.begun_s) * 1000)


def _whole_ms(seconds: float | None) -> int:
    """Of a duration."""
    return _NONE if seconds is None else round(seconds * 1000)


def _tasks(told: RecordedRun, about: About, kinds: Sequence[str]) -> Columns:
    workflow = told.story.workflow
    tasks = told.story.tasks
    number_of = {kind: i for i, kind in enumerate(kinds)}
    return {
        "id": list(workflow.ids),
        "kind": [number_of[kind] for kind in workflow.kinds],
        "state": [_TASK_STATES.index(task.state) for task in tasks],
        "job": [_NONE if task.job is None else task.job for task in tasks],
        "level": workflow.levels.tolist(),
        "expected_ms": [round(s * 1000) for s in workflow.runtime_s.tolist()],
        "cores": workflow.cores.tolist(),
        "nodes": workflow.nodes.tolist(),
        "memory_bytes": workflow.memory_bytes.tolist(),
        "made_by": {
            one.first + i: one.event.maker
            for one in told.story.additions
            if one.event.maker
            for i in range(one.count)
        },
        "kept": {i: task.kept.run for i, task in enumerate(tasks) if task.kept is not None},
        **_commands(about, workflow.kinds),
    }


def _commands(about: About, kinds: Sequence[str]) -> Columns:
    """What each task executes, and in which folder."""
    folders = list(dict.fromkeys(step.workdir for step in about.steps))
    folder_of = {folder: i for i, folder in enumerate(folders)}
    commands = [about.command(i)[:_COMMAND_CHARACTERS] for i in range(len(about.steps))]
    return {
        "folders": folders,
        "folder": [folder_of[step.workdir] for step in about.steps],
        "commands": templates(commands, kinds),
    }


def templates(commands: Sequence[str], kinds: Sequence[str]) -> Columns:
    """Commands as templates, lists of words in which null is a gap, and what fills the gaps of
    each."""
    words = [_WORDS.split(command) for command in commands]
    found: list[list[str | None]] = []
    of = [0] * len(commands)
    filled: list[list[str]] = [[] for _ in commands]
    for members in _alike(words, kinds):
        first = words[members[0]]
        gaps = _gaps([words[i] for i in members])
        for i in members:
            of[i] = len(found)
            filled[i] = [words[i][k] for k in gaps]
        found.append(_with_gaps(first, gaps))
    return {"templates": found, "of": of, "filled": filled}


def _alike(commands: Sequence[Sequence[str]], kinds: Sequence[str]) -> Iterable[Sequence[int]]:
    """Commands of one kind and one length, by their numbers."""
    groups: dict[tuple[str, int], list[int]] = {}
    for i, words in enumerate(commands):
        groups.setdefault((kinds[i], len(words)), []).append(i)
    return groups.values()


def _gaps(commands: Sequence[Sequence[str]]) -> list[int]:
    """In which places they differ."""
    return [k for k, found in enumerate(zip(*commands, strict=True)) if len(set(found)) > 1]


def _with_gaps(words: Sequence[str], gaps: Sequence[int]) -> list[str | None]:
    template: list[str | None] = list(words)
    for k in gaps:
        template[k] = None
    return template


def _attempts(told: RecordedRun, about: About) -> Columns:
    """Every attempt, in the order of starts; the start is the time since the start before it."""
    every = sorted(attempts(told.story), key=lambda one: (one[1].started_s, one[0]))
    only = [attempt for _, attempt in every]
    return {
        "task": [task for task, _ in every],
        **_places(only),
        "start_ms": _steps([_ms(told, attempt.started_s) for attempt in only]),
        "ran_ms": [round(attempt_s(attempt, told.until_s) * 1000) for attempt in only],
        **_endings(only),
        "has_log": [int(bool(about.log(task, one.number))) for task, one in every],
        "tail": _tails(told, every),
    }


def _steps(times: Sequence[int]) -> list[int]:
    """From each to the next; the first from 0."""
    return [now - before for before, now in pairwise([0, *times])]


def _places(every: Sequence[TaskAttempt]) -> Columns:
    """Which attempt each was, and where."""
    return {
        "number": [attempt.number for attempt in every],
        "job": [attempt.job for attempt in every],
        "node": [min(attempt.nodes, default=0) for attempt in every],
        "more_nodes": {
            i: list(attempt.nodes) for i, attempt in enumerate(every) if len(attempt.nodes) > 1
        },
    }


def _endings(every: Sequence[TaskAttempt]) -> Columns:
    """How each ended, and what it took."""
    return {
        "outcome": [_ATTEMPT_STATES.index(attempt.outcome) for attempt in every],
        "exit": [_NONE if attempt.exit is None else attempt.exit for attempt in every],
        "cpu_ms": [round(attempt.cpu_s * 1000) for attempt in every],
        "peak_bytes": [_rounded(attempt.peak_bytes) for attempt in every],
        "why": {i: attempt.why for i, attempt in enumerate(every) if attempt.why},
        "signal": {
            i: attempt.signal for i, attempt in enumerate(every) if attempt.signal is not None
        },
    }


def _rounded(size: int) -> int:
    """Three digits of it: more says nothing of a peak, and takes space."""
    unit = int("1" + "0" * (len(str(size)) - 3))
    return size // unit * unit


def _tails(told: RecordedRun, every: Sequence[tuple[int, TaskAttempt]]) -> dict[int, str]:
    """The last lines of attempts that failed; those of tasks that failed for good come first."""
    tasks = told.story.tasks
    failed = [i for i, (_, attempt) in enumerate(every) if attempt.tail]
    failed.sort(key=lambda i: tasks[every[i][0]].state is not TaskState.FAILED)
    return {i: every[i][1].tail[-_TAIL_CHARACTERS:] for i in failed[:MOST_TAILS]}


def _parents(told: RecordedRun) -> list[list[int]] | None:
    """What each task waits for; None if that is more than a page should hold."""
    workflow = told.story.workflow
    parents = [workflow.parents.of(i).tolist() for i in range(len(workflow))]
    if sum(map(len, parents)) > _EDGES_PER_TASK * len(workflow) + 1000:
        return None
    return parents


def _job(told: RecordedRun, number: int, job: JobStory) -> Columns:
    plan = job.plan
    found = {
        "job": number,
        "id": job.id or "",
        "state": str(job.state),
        "site": plan.site,
        "nodes": plan.nodes,
        "tasks": len(plan.all_tasks),
        "hosts": list(job.hosts),
        "planned_ms": _ms(told, job.planned_s),
        "submitted_ms": _ms(told, job.submitted_s),
        "started_ms": _ms(told, job.started_s),
        "ended_ms": _ms(told, job.ended_s),
        "ran_ms": _whole_ms(ran_s(job, told.until_s)),
        "run_ms": plan.run_s * 1000,
        "limit_ms": _whole_ms(job.limit_s),
        "taken_by": job.taken_by,
        "note": job.note,
        "predicted": _predicted(told, number),
    }
    return {key: value for key, value in found.items() if value not in ("", [], None)}


def _predicted(told: RecordedRun, number: int) -> list[Any]:
    return [
        [one.source, _ms(told, one.start_s), one.used]
        for one in told.predictions
        if one.job == number
    ]


def _background(told: RecordedRun, background: Background | None) -> Columns | None:
    """What the cluster did meanwhile, if that is known."""
    if background is None:
        return None

    def steps(curve: Steps) -> list[list[int]]:
        times, values = thinned(*curve)
        return [[_ms(told, float(at)) for at in times.tolist()], values.tolist()]

    return {
        "begin_ms": _ms(told, background.begin_s),
        "end_ms": _ms(told, background.end_s),
        "nodes": background.machine_nodes,
        "others": steps(background.others_nodes),
        "busy": steps(background.busy_nodes),
        "waiting": steps(background.jobs_waiting),
    }
