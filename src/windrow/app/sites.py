"""The sites of a run: a queue for each, within what the user wants of it. What could never run
there is refused."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from windrow.agent.machine import this_machine
from windrow.app.facts import CAP
from windrow.app.queues import open_queue
from windrow.app.settings import settings_of
from windrow.errors import UserError, WindrowError
from windrow.forecast.best_effort import known_hazard
from windrow.model import Step, Workflow, format_duration
from windrow.model.parts import Sharing
from windrow.model.resources import GPUS, NodeShape
from windrow.model.site import NodeKind, Site
from windrow.queues.port import Checked, Limits, Queue, QueueError, Shares, place_of
from windrow.strategies.levels import Mask, able, misfits, missing

if TYPE_CHECKING:
    from windrow.app.facts import RunFacts, RunRequest

Ints = NDArray[np.int64]

_NARROW_CAP = 4 * CAP
"""The most jobs of a run that asks for parts of nodes, unless its user says otherwise: they are
narrow, and many start sooner than few."""
OVERHEAD_S = 15
"""What a job needs beside its tasks: to start its agent, and to leave in good order."""


def site_of(
    name: str,
    limits: Limits,
    queue: Queue | None = None,
    *,
    cap: int = 16,
    max_nodes: int | None = None,
) -> Site:
    """The site behind a queue, within what the user wants of it."""
    settings = settings_of()
    said = settings.of(name)
    rooms = [room for room in (limits.room_bytes, said.room_bytes) if room is not None]
    if said.max_preemptions is None:
        more = {}
    else:
        more = {"max_preemptions": said.max_preemptions}
    return Site(
        name=name,
        kinds=limits.kinds or (NodeKind(limits.shape, limits.nodes),),
        queue=name,
        cap=cap if limits.max_jobs is None else min(cap, limits.max_jobs),
        max_nodes=min((n for n in (limits.max_nodes, max_nodes) if n is not None), default=None),
        max_request_s=limits.max_walltime_s,
        max_array=limits.max_array,
        starts_at_once=limits.starts_at_once,
        room_bytes=min(rooms, default=None),
        settings=dict(queue.shell) if isinstance(queue, Checked) else {},
        speed=said.speed,
        price=said.price,
        max_node_hours=said.max_node_hours,
        files=settings.files_of(name),
        host=said.host,
        data_host=said.data_host,
        folder=said.folder,
        setup=said.setup,
        attributes=said.attributes,
        hazard=said.hazard,
        sharing=limits.sharing,
        holds=said.hold,
        **more,
    )


def offering(name: str) -> dict[str, Any]:
    """What a site has now, by name. Waits are those of jobs of an hour on one node, and on half of
    the open ones."""
    from windrow.forecast.twin import Twin  # noqa: PLC0415  (runs on this machine do without)

    found: dict[str, Any] = {
        "site": name,
        "speed": 1.0,
        "price": 0.0,
        "max_node_hours": None,
        "trouble": "",
    }
    try:
        said = settings_of().of(name)
        queue = open_queue(name)
        limits = queue.limits()
        twin = Twin(queue, time.time, policy=queue.policy)
        found |= {
            "speed": said.speed,
            "price": said.price,
            "max_node_hours": said.max_node_hours,
        }
        found |= {"trouble": limits.closed, "nodes": limits.nodes}
        now = twin.snapshot()
        hour = min(3600, limits.max_walltime_s or 3600)
        wide = max(1, now.open_nodes // 2)
        if limits.starts_at_once:
            waits = [0, 0]
        else:
            waits = twin.waits_s(np.array([1, wide]), np.array([hour, hour])).tolist()
        free = now.nodes - sum(job.nodes for job in now.jobs if job.is_running)
        found |= {"open_nodes": now.open_nodes, "free_nodes": max(0, min(free, now.open_nodes))}
        found |= {"jobs_waiting": sum(not job.is_running for job in now.jobs), "wait_s": waits[0]}
        return found | {"wide_wait_s": waits[1]}
    except WindrowError as error:
        return found | {"trouble": str(error)}


@dataclass(frozen=True)
class Reached:
    """A site of a run with its queue. `max_nodes` is what the user wants, `file` the workflow's.

    `place` is the name under which it is learned how long jobs wait there.
    """

    site: Site
    limits: Limits
    queue: Queue
    place: str
    file: Path
    max_nodes: int | None = None

    def refuse(self, workflow: Workflow, tasks: Ints) -> None:
        """UserError if one of the tasks could not run here, or nothing can."""
        self._refuse_closed(workflow, tasks)
        if isinstance(self.queue, Checked):
            self.queue.check()
        self._refuse_long(workflow, tasks)
        self._refuse_misfits(workflow, tasks)

    def holds(self, workflow: Workflow) -> NDArray[np.bool_]:
        """Which tasks could run here now."""
        fits = np.full(len(workflow), not self.limits.closed)
        fits[misfits(workflow, self.site)] = False
        now: NDArray[np.bool_] = fits & (workflow.nodes <= self._usable) & self.in_time(workflow)
        return now

    def in_time(self, workflow: Workflow) -> NDArray[np.bool_]:
        """Which tasks end within the longest time that may be requested here."""
        if self.site.max_request_s is None:
            limit_s = np.inf
        else:
            limit_s = self.site.max_request_s
        found: NDArray[np.bool_] = self._needed_s(workflow) <= limit_s
        return found

    @property
    def _usable(self) -> int:
        if self.limits.usable_nodes is None:
            return self.limits.nodes
        return self.limits.usable_nodes

    def _needed_s(self, workflow: Workflow) -> NDArray[np.float64]:
        needed_s: NDArray[np.float64] = workflow.runtime_s / self.site.speed + OVERHEAD_S
        return needed_s

    def _refuse_closed(self, workflow: Workflow, tasks: Ints) -> None:
        """A job that cannot start as the queue stands would wait without a word."""
        limits = self.limits
        on = self.site.name
        fix = "use another queue (--on), or wait until this changes"
        if limits.closed:
            raise UserError(f"nothing can start on {on}: {limits.closed}; {fix}")
        widest = int(tasks[workflow.nodes[tasks].argmax()])
        if self._usable < (needed := int(workflow.nodes[widest])) <= limits.nodes:
            offered = f"only {self._usable} of the {limits.nodes} nodes of {on} can be used now"
            task = f"task {workflow.ids[widest]} needs {needed} nodes"
            raise UserError(f"{task}, but {offered}; request fewer nodes, {fix}")

    def _refuse_misfits(self, workflow: Workflow, tasks: Ints) -> None:
        """A task that needs more than any node has would never start."""
        limits = self.limits
        site = self.site
        on = self.site.name
        found = sorted(set(misfits(workflow, site)).intersection(tasks.tolist()))
        if not found:
            return
        task = workflow.task(found[0])
        if site.sharing is not None and (why := site.sharing.refusal(task.need, site.kinds)):
            fix = f"lower what it needs in {self.file}, or use another queue, QOS or account"
            raise UserError(f"task {task.id} needs more than {on} gives a job: {why}; {fix}")
        key, needs, has = missing(task.need, site)
        why = limits.narrow if key == "nodes" else limits.left_out
        fix = f"lower {key} of the task in {self.file}" + (f" ({why})" if why else "")
        owner = self._owner(key)
        if key == "nodes" and self.max_nodes == site.job_nodes:
            owner = "--max-nodes allows"
            fix = f"{fix}, or raise --max-nodes"
        elif self._is_set(key):
            if limits.starts_at_once and site.shape != this_machine():
                owner = "windrow.toml allows"
            is_known = key in ("nodes", "cores", "memory", "disk", GPUS)
            setting = key if is_known else f"resources.{key}"
            fix = f"{fix}, or raise {setting} in [queues.{on}] of windrow.toml"
        raise UserError(f"task {task.id} needs {needs}; {owner} {has}; {fix}")

    def _owner(self, key: str) -> str:
        """Who has too little of it."""
        on = self.site.name
        if key == "nodes" and self.limits.narrow:
            return f"a job of {on} has"
        if self.limits.starts_at_once:
            return "this machine has"
        return f"{on} has" if key == "nodes" else f"a node of {on} has"

    def _is_set(self, key: str) -> bool:
        """Whether settings limit it, and not what this machine has."""
        is_all = self.site.shape == this_machine() and key in ("cores", "memory")
        is_of_machine = self.limits.starts_at_once and (key == "nodes" or is_all)
        return self.limits.from_settings and not is_of_machine

    def _refuse_long(self, workflow: Workflow, tasks: Ints) -> None:
        limit = self.site.max_request_s
        needed_s = self._needed_s(workflow)
        longest = int(tasks[needed_s[tasks].argmax()])
        if limit is not None and needed_s[longest] > limit:
            raise UserError(
                f"task {workflow.ids[longest]} needs {format_duration(needed_s[longest])}, but "
                f"{self.site.name} allows "
                f"a job at most {format_duration(limit)}; split the task, give it a checkpoint "
                "(with a short "
                "notice), or use a queue with longer times"
            )


def placing(sites: Sequence[Reached], workflow: Workflow, steps: Sequence[Step] = ()) -> Mask:
    """Which tasks may run at which site: a row for each site. UserError if one can now run at
    none.

    A site that is closed, or lacks nodes for a while, keeps its row: it may open again.
    """
    pieces = {n: s.checkpoint.piece_s for n, s in enumerate(steps) if s.checkpoint}
    workflow = _in_pieces(workflow, pieces)
    rows = np.stack([able(workflow, reached.site, steps) for reached in sites])
    if len(sites) == 1:
        sites[0].refuse(workflow, np.arange(len(workflow)))
        for task in np.flatnonzero(~rows[0])[:1]:
            raise UserError(
                f"{_kept_away(workflow, steps, task)}, which does not hold for {sites[0].site.name}"
            )
        return rows
    _refuse_without_place(sites, workflow, steps, rows)
    rows &= np.stack([reached.in_time(workflow) for reached in sites])
    places = np.array([reached.site.files for reached in sites])
    for task in pieces:  # checkpoint files stay where they are
        rows[:, task] &= places == places[rows[:, task].argmax()]
    return rows


def _in_pieces(workflow: Workflow, pieces: Mapping[int, float]) -> Workflow:
    """The workflow whose tasks with checkpoints need no more time than one of their pieces: they
    are continued in other jobs."""
    if not pieces:
        return workflow
    times = enumerate(workflow.runtime_s.tolist())
    return workflow.with_times(np.array([min(time, pieces.get(n, time)) for n, time in times]))


def _refuse_without_place(
    sites: Sequence[Reached], workflow: Workflow, steps: Sequence[Step], rows: Mask
) -> None:
    """UserError if a task could now run at none of several sites, or not where it should."""
    now = rows & np.stack([reached.holds(workflow) for reached in sites])
    for task in np.flatnonzero(~now.any(axis=0))[:1]:
        why = _why_nowhere(sites, workflow, steps, task, rows[:, task])
        raise UserError(f"task {workflow.ids[task]} can run at no site ({'; '.join(why)})")
    for reached, mine in zip(sites, map(np.flatnonzero, now), strict=True):
        if not reached.limits.closed and len(mine):
            reached.refuse(workflow, mine)


def _why_nowhere(
    sites: Sequence[Reached],
    workflow: Workflow,
    steps: Sequence[Step],
    task: int,
    may: NDArray[np.bool_],
) -> Iterator[str]:
    """Of each site, why the task cannot run there; `may`: at which it could by what is said of
    it."""
    for reached, may_here in zip(sites, may, strict=True):
        try:
            reached.refuse(workflow, np.array([task]))
            if not may_here:
                yield f"{reached.site.name}: {_kept_away(workflow, steps, task)}"
        except UserError as error:
            yield f"{reached.site.name}: {error}"


def _kept_away(workflow: Workflow, steps: Sequence[Step], task: int) -> str:
    """What a task says of where it may run."""
    where = [f"where: {step.where}" for step in steps[task : task + 1] if step.where]
    files = (
        workflow.files[f]
        for one in (workflow.inputs, workflow.outputs)
        for f in one.of(task).tolist()
    )
    stays = [f"{file.id} stays at {file.stays}" for file in files if file.stays]
    return f"task {workflow.ids[task]} says {', '.join([*where, *stays])}"


def able_again(facts: RunFacts, tasks: int) -> Sequence[int] | Mask:
    """Which tasks may run at which site of a run that has started."""
    if facts.unable is None:
        return [0] * tasks
    able = np.ones((len(facts.unable), tasks), dtype=bool)
    for row, unable in zip(able, facts.unable, strict=True):
        row[list(unable)] = False
    return able


def _with_hazard(site: Site, place: str) -> Site:
    """How its jobs were lost before, but for what its settings say."""
    learned = known_hazard(place, time.time())
    said = site.hazard.preemption_rate
    return replace(site, hazard=replace(learned, preemption_rate=said or learned.preemption_rate))


def reach(
    order: RunRequest,
    name: str,
    queue: Queue,
    limits: Limits,
    place: str = "",
    workflow: Workflow | None = None,
) -> Reached:
    """The site behind a queue that has answered. If users share its nodes, it counts in parts that
    suit the workflow."""
    sharing = limits.sharing
    if workflow is not None and sharing is not None and isinstance(queue, Shares):
        if workflow.nodes.any():  # whole ones: then all jobs have such
            queue = queue.in_nodes()
            limits = queue.limits()
        else:
            queue = queue.in_parts(usual_part(workflow, limits.kinds, sharing))
    is_narrow = order.cap == CAP and limits.sharing is not None
    cap = _NARROW_CAP if is_narrow else order.cap
    site = site_of(name, limits, queue, cap=cap, max_nodes=order.max_nodes)
    place = place or place_of(queue)
    return Reached(_with_hazard(site, place), limits, queue, place, order.workflow, order.max_nodes)


def usual_part(workflow: Workflow, kinds: Sequence[NodeKind], sharing: Sharing) -> NodeShape:
    """The part of nodes that most of the work takes: in such parts the queue is counted."""
    work_s = Counter[NodeShape]()
    for need, runtime_s in zip(workflow.needs(), workflow.runtime_s.tolist(), strict=True):
        part = sharing.part_for(need)
        work_s[part] += runtime_s * part.cores
    every = (part for part, _ in work_s.most_common())
    held = (part for part in every if sharing.parts_of_job(part, kinds))
    return next(held, NodeShape(1, sharing.core_bytes))


def sites_again(order: RunRequest, facts: RunFacts, workflow: Workflow) -> list[Reached]:
    """The sites of a run that has started. If there are several, one that does not answer is taken
    as recorded."""
    if not order.also:
        queue = open_queue(order.on, order.shell)
        return [reach(order, order.on, queue, queue.limits(), facts.place, workflow)]
    from windrow.queues.apart import apart  # noqa: PLC0415  (most runs have one site)

    settings = settings_of()
    sites = []
    for told in facts.sites:
        queue = open_queue(told.name, told.shell)
        if not settings.files_of(told.name):
            queue = apart(queue, {"place": told.place})
        limits = told.limits
        with suppress(QueueError):
            limits = queue.limits()
        sites.append(reach(order, told.name, queue, limits, told.place, workflow))
    return sites
