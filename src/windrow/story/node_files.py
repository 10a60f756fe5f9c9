"""Data on the disks of nodes: what came there over which link, by the role of files, and what it
took over time. Pure.

Attempts tell what was brought for them, found on their node, and committed (`agent.order.Moved`).
What stayed, and for how long, follows from the journal: what was brought, or made and committed, is
there until the job ends; what is on a node alone, until the last task that reads it has finished.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from windrow.agent.order import COMMIT, HIT, HOME, NODES, WRONG
from windrow.model import Workflow
from windrow.storage.roles import Role, roles
from windrow.storage.timeline import Points
from windrow.story.figures import RecordedRun, attempts
from windrow.story.states import AttemptState
from windrow.story.story import RunStory, TaskAttempt


@dataclass(slots=True)
class RoleData:
    """Bytes of files of one role: what came to nodes, was there already, stayed, and left.

    `brought`: how many files came; `hits`: how many were there already when an attempt was to read
    them.
    """

    role: str
    home_bytes: int = 0
    nodes_bytes: int = 0
    hit_bytes: int = 0
    stayed_bytes: int = 0
    committed_bytes: int = 0
    brought: int = 0
    hits: int = 0


_FIELDS = {HOME: "home_bytes", NODES: "nodes_bytes", HIT: "hit_bytes", COMMIT: "committed_bytes"}


def data_by_role(story: RunStory) -> list[RoleData]:
    """Role by role; nothing if no attempt told of data on its node. A cache volume, which is no
    file, is batch."""
    if not _has_data(story):
        return []
    named = {
        file.id: role
        for file, role in zip(story.workflow.files, roles(story.workflow)[0], strict=True)
    }
    found = {role: RoleData(role) for role in Role}
    for task, attempt in attempts(story):
        for name, link, size in attempt.moved:
            if link.startswith(WRONG):
                continue
            role = found[named.get(name, Role.BATCH)]
            setattr(role, _FIELDS[link], getattr(role, _FIELDS[link]) + size)
            role.hits += link == HIT
            role.brought += (
                link == HOME
            )  # which is told of each, though all of it may come from other nodes
        for name, size in _stayed(story.workflow, task, attempt):
            found[named[name]].stayed_bytes += size
            found[named[name]].committed_bytes += (
                size if (name, attempt.job) in story.local.committed else 0
            )
    return [role for role in found.values() if role != RoleData(role.role)]


def space_on_nodes(run: RecordedRun) -> dict[str, Points]:
    """What files of the run took on the disk of each node, in seconds since the run began: until
    now, or to its end."""
    story = run.story
    changes = defaultdict[str, dict[float, int]](lambda: defaultdict(int))
    readers: dict[str, list[int]] = {}
    for file, task in zip(
        story.workflow.inputs.index.tolist(), story.workflow.inputs.sources().tolist(), strict=True
    ):
        readers.setdefault(story.workflow.files[file].id, []).append(task)
    for task, attempt in attempts(story) if _has_data(story) else ():
        job = story.jobs[attempt.job]
        if job.taken_by is None:
            holder = job
        else:
            holder = story.jobs[job.taken_by]
        if holder.ended_s is None:
            over_s = inf
        else:
            over_s = holder.ended_s
        spans = [(size, over_s) for _, link, size in attempt.moved if link in (HOME, NODES, COMMIT)]
        for name, size in _stayed(story.workflow, task, attempt):
            is_removed = (name, attempt.job) not in story.local.committed
            if is_removed:
                read_s = _last_read_s(story, readers.get(name, []), attempt)
            else:
                read_s = inf
            spans.append((size, min(over_s, read_s)))
        if attempt.nodes:
            place = attempt.nodes[0]
        else:
            place = 0
        if place < len(job.hosts):
            node = job.hosts[place]
        else:
            node = f"node {place} of job {attempt.job}"
        for size, until_s in spans:
            changes[node][attempt.started_s - run.begun_s] += size
            changes[node][max(attempt.started_s, min(until_s, run.until_s)) - run.begun_s] -= (
                size if until_s < inf else 0
            )
    found: dict[str, Points] = {}
    for name, steps in sorted(changes.items()):
        used = 0
        found[name] = []
        for at_s in sorted(steps):
            used += steps[at_s]
            found[name].append((at_s, used))
    return found


def _has_data(story: RunStory) -> bool:
    return any(attempt.moved for _, attempt in attempts(story))


def _stayed(workflow: Workflow, task: int, attempt: TaskAttempt) -> Iterator[tuple[str, int]]:
    """Outputs that were on the node alone when the attempt finished, with their bytes."""
    if attempt.local:
        names = (workflow.files[file].id for file in workflow.outputs.of(task).tolist())
        yield from (
            (name, size)
            for name, size in zip(names, attempt.sizes, strict=False)
            if name in attempt.local
        )


def _last_read_s(story: RunStory, readers: list[int], made: TaskAttempt) -> float:
    """When the last of these had read what this attempt made; never, if some have not."""
    made_s = made.ended_s or 0.0
    ends = [made_s]
    for task in readers:
        done = (
            a.ended_s or inf
            for a in story.tasks[task].attempts
            if a.outcome is AttemptState.FINISHED
        )
        ends.append(min((end for end in done if end >= made_s), default=inf))
    return max(ends)
