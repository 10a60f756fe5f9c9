"""Data on the disks of nodes: what came there over which link, by the role of files, and what it
took over time. Pure.

Attempts tell what was brought for them, found on their node, and committed (`agent.order.Moved`).
What stayed, and for how long, follows from the journal: what was brought, or made and committed, is
there until the job ends; what is on a node alone, until the last task that reads it has finished.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
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
    readers = _readers(story.workflow)
    for task, attempt in attempts(story) if _has_data(story) else ():
        node = _node_of(story, attempt)
        for size, until_s in _kept_until(story, task, attempt, readers):
            over_s = max(attempt.started_s, min(until_s, run.until_s))
            changes[node][attempt.started_s - run.begun_s] += size
            changes[node][over_s - run.begun_s] -= size if until_s < inf else 0
    return {name: _summed(steps) for name, steps in sorted(changes.items())}


def _readers(workflow: Workflow) -> dict[str, list[int]]:
    """The tasks that read each file."""
    found: dict[str, list[int]] = {}
    inputs = workflow.inputs
    for task, file in inputs.pairs():
        found.setdefault(workflow.files[file].id, []).append(task)
    return found


def _node_of(story: RunStory, attempt: TaskAttempt) -> str:
    """The node on whose disk the files of an attempt are."""
    hosts = story.jobs[attempt.job].hosts
    place = attempt.nodes[0] if attempt.nodes else 0
    if place < len(hosts):
        return hosts[place]
    return f"node {place} of job {attempt.job}"


def _kept_until(
    story: RunStory, task: int, attempt: TaskAttempt, readers: Mapping[str, list[int]]
) -> Iterator[tuple[int, float]]:
    """How large each file of an attempt was on its node, and until when it was there."""
    holder = story.jobs[attempt.job]
    if holder.taken_by is not None:
        holder = story.jobs[holder.taken_by]
    over_s = inf if holder.ended_s is None else holder.ended_s
    for _, link, size in attempt.moved:
        if link in (HOME, NODES, COMMIT):
            yield size, over_s
    for name, size in _stayed(story.workflow, task, attempt):
        if (name, attempt.job) in story.local.committed:
            yield size, over_s
        else:
            yield size, min(over_s, _last_read_s(story, readers.get(name, []), attempt))


def _summed(steps: Mapping[float, int]) -> Points:
    """What is taken after each change."""
    found: Points = []
    used = 0
    for at_s in sorted(steps):
        used += steps[at_s]
        found.append((at_s, used))
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
