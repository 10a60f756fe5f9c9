"""The cases of `pays.py`: a synthetic log, 600 times compressed, and workflows of sleeps at moments
of it.

A load opens with what ran and waited in the log at that moment, so that no cell waits for a queue
to fill. What had ended by then is the past, which a site's accounts would know.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from tests.slurm.settings import Settings

from windrow.app.facts import RunRequest
from windrow.model import Log, Workflow
from windrow.queues.port import PastJob
from windrow.recipes import generate_log, generate_workflow
from windrow.sim import simulate

COMPRESSION = 600
SHORTEST_S = 5
"""Shorter jobs of the log are left out: Slurm's least limit, a minute, says nothing of them."""
LOAD = 0.6
"""Work offered to the machine; limits are so generous that the queue is never empty for long."""
LEAD_S = 15
"""The least time that a load runs before the workflow comes."""
LULL_S = 20
"""No job comes for this long after a workflow that waits for a lull: Windrow starts in 3 s, or 15
on a busy machine."""
HORIZON_S = 1500
"""A load lasts so long; the longest run must be over by then."""
PAST_S = 7200
"""What ended in this time before a load begins is in the accounts, as far as the log reaches."""
POLICY = "conservative-replan"
"""What is taken for Slurm in the simulator: it plans as Slurm's backfilling does."""


@dataclass(frozen=True)
class Case:
    """One workflow under one load."""

    name: str
    workflow: Workflow
    load: Log
    past: tuple[PastJob, ...] = ()
    """What had ended when the load begins; times count from then."""
    lead_s: int = LEAD_S
    """The workflow comes so long after the load."""

    @cached_property
    def order(self) -> RunRequest:
        """The terms of every run."""
        return RunRequest(Path("workflow.yaml"), on="slurm", cap=16, margin=1.2)


SHAPES = (
    # name, recipe, tasks, seconds of work, second of the log
    ("level", "level", 48, 2000, 9162),
    ("montage", "montage", 60, 1500, 18690),
    ("fork-join", "fork-join", 60, 1500, 9162),
    ("eman", "eman", 40, 1500, 8429),
    ("short montage", "montage", 60, 900, 3246),
)


def all_cases() -> list[Case]:
    """Shapes, each at a moment of one log.

    Cases were chosen in the simulator alone, by two rules: no run takes longer than ten minutes;
    and in all but the last one `glume` cuts, and ends before `one-job`.
    """
    log = compressed(generate_log("lublin", nodes=Settings().nodes, jobs=4000, seed=1))
    return [
        Case(name, sleeping(recipe, tasks, work_s), opening(log, at_s))
        for name, recipe, tasks, work_s, at_s in SHAPES
    ]


DRAWN = ("montage", "fork-join", "level", "eman", "sipht")


def drawn_cases(count: int, seed: int = 1, *, lull: bool = False) -> list[Case]:
    """Shapes in turn, each at a moment of the log that chance picked: no one looked at what comes
    of them.

    With `lull`, a workflow comes when no job of the load does: where an hour takes six seconds,
    half a second more or less to start Windrow would decide who is before whom in line.
    """
    log = compressed(generate_log("lublin", nodes=Settings().nodes, jobs=4000, seed=1))
    rng = np.random.default_rng(seed)
    moments = rng.integers(0, int(log.submit_s[-1]) - HORIZON_S, size=count)
    works = rng.integers(900, 1801, size=count)
    rows = zip(DRAWN * count, moments.tolist(), works.tolist(), strict=False)
    return [_drawn(log, recipe, at_s, work_s, lull=lull) for recipe, at_s, work_s in rows]


def _drawn(log: Log, recipe: str, at_s: int, work_s: int, *, lull: bool) -> Case:
    load = opening(log, at_s)
    lead_s = first_lull(load) if lull else LEAD_S
    return Case(
        f"{recipe} at {at_s}", sleeping(recipe, 50, work_s), load, before(log, at_s), lead_s
    )


def first_lull(load: Log) -> int:
    """The first second, not before `LEAD_S`, after which no job comes for `LULL_S`."""
    at_s = LEAD_S
    for submit_s in load.submit_s.tolist():
        if at_s <= submit_s < at_s + LULL_S:
            at_s = submit_s + 1
    return at_s


def compressed(log: Log, load: float = LOAD) -> Log:
    """The log in fewer seconds. Limits are whole minutes, as Slurm has them, and no job runs into
    its own."""
    requested = 60 * np.ceil(log.requested_s / COMPRESSION / 60).astype(np.int64)
    run = np.minimum(np.round(log.run_s / COMPRESSION).astype(np.int64), requested)
    kept = run >= SHORTEST_S
    submit = log.submit_s[kept] - log.submit_s[kept][0]
    span = (log.nodes * run)[kept].sum() / (log.machine_nodes * load)
    submit = (submit * (span / submit[-1])).astype(np.int64)
    return Log(
        log.name,
        log.machine_nodes,
        log.job[kept],
        submit,
        log.nodes[kept],
        requested[kept],
        run[kept],
        log.user[kept],
    )


def opening(log: Log, at_s: int) -> Log:
    """The load from that second on: first what ran then, for what was left of it, then what waited,
    then what came."""
    played = simulate(log, policy=POLICY)
    start = played.start_s
    end = played.end_s
    running = np.flatnonzero((start < at_s) & (end > at_s))
    running = running[np.lexsort((running, start[running]))]
    waiting = np.flatnonzero((log.submit_s < at_s) & (start >= at_s))
    coming = np.flatnonzero((log.submit_s >= at_s) & (log.submit_s < at_s + HORIZON_S))
    rows = np.concatenate([running, waiting, coming])
    gone = np.where(start[rows] < at_s, at_s - start[rows], 0)
    return Log(
        f"{log.name} from {at_s} s",
        log.machine_nodes,
        log.job[rows],
        np.maximum(0, log.submit_s[rows] - at_s),
        log.nodes[rows],
        60 * np.ceil((log.requested_s[rows] - gone) / 60).astype(np.int64),
        log.run_s[rows] - gone,
        log.user[rows],
    )


def before(log: Log, at_s: int) -> tuple[PastJob, ...]:
    """The jobs of the log that were over by that second, from which on times count."""
    played = simulate(log, policy=POLICY)
    rows = np.flatnonzero((log.submit_s >= at_s - PAST_S) & (played.end_s <= at_s)).tolist()
    return tuple(
        PastJob(
            id=str(int(log.job[row])),
            user=str(int(log.user[row])),
            nodes=int(log.nodes[row]),
            requested_s=int(log.requested_s[row]),
            submitted_s=float(log.submit_s[row] - at_s),
            started_s=float(played.start_s[row] - at_s),
            ended_s=float(played.end_s[row] - at_s),
        )
        for row in rows
    )


def sleeping(recipe: str, tasks: int, work_s: float) -> Workflow:
    """The recipe's shape with tasks of whole seconds that do nothing but sleep; `work_s` in sum,
    about."""
    drawn = generate_workflow(recipe, tasks=tasks, work_s=work_s, seed=1)
    parents = [drawn.parents.of(n).tolist() for n in range(len(drawn))]
    made = [
        replace(
            task,
            parents=tuple(drawn.ids[p] for p in parents[n]),
            inputs=(),
            outputs=(),
            runtime_s=float(max(2, round(task.runtime_s))),
            command=("sleep", str(max(2, round(task.runtime_s)))),
        )
        for n, task in enumerate(drawn)
    ]
    return Workflow.from_tasks(recipe, made)


def write_native(workflow: Workflow, path: Path) -> None:
    """The workflow as a file that `windrow run` takes."""
    lines = [f"name: {workflow.name}", "tasks:"]
    for task in workflow:
        entry = {"id": task.id, "command": list(task.command), "runtime": task.runtime_s}
        lists = {"after": task.parents, "inputs": task.inputs, "outputs": task.outputs}
        lines.append(
            f"  - {json.dumps(entry | {key: list(names) for key, names in lists.items() if names})}"
        )
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
