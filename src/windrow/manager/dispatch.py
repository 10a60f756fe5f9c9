"""From a job of the core to a job of the queue: the file that its agent reads, and what is
submitted."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from windrow.agent import outputs
from windrow.agent.claim import fence, holder
from windrow.agent.folder import RunFolder
from windrow.agent.job_file import JobFile, TaskSpec, write_job
from windrow.agent.made import Made
from windrow.agent.order import absolute, order_for
from windrow.files import append_lines, disk_faults
from windrow.manager.core import Core
from windrow.manager.specs import clean_up, shared_outputs, task_spec
from windrow.model import NodeShape, Runnable, Step, Task, Workflow
from windrow.model.nodes import NOTHING, Need
from windrow.model.rules import PLAIN
from windrow.queues.port import JobSpec
from windrow.storage.lifetimes import Lifetimes
from windrow.story.events import Abandon
from windrow.story.local_places import LocalPlaces

if TYPE_CHECKING:
    from windrow.data.mirror import Mirror
    from windrow.manager.transfers import Transfers
    from windrow.storage.places import Staying
    from windrow.strategies import JobPlan
    from windrow.strategies.levels import Work

SMALL_BYTES = 1 << 20
"""Files up to this size cost next to nothing to copy, so a node should not take them with it when
it fails."""


def job_tag(uid: str, job: int) -> str:
    """The name of a job in the queue, and of its wait in the history: `uid` is the run's. No two
    jobs have the same."""
    return f"windrow-{uid}-{job}"


def _with_memory(spec: TaskSpec, need: Need, work: Work) -> TaskSpec:
    """The same with the memory that the task is to have now, which may be more than it states."""
    most = work.most_memory_bytes(need)
    if need.memory_bytes == spec.memory_bytes and most <= need.memory_bytes:
        return spec
    return replace(
        spec,
        memory_bytes=need.memory_bytes,
        most_memory_bytes=most if most > need.memory_bytes else 0,
    )


def _shape(core: Core, number: int) -> tuple[NodeShape, Need]:
    """What each node of a job gives it, or each part of one, and what the job must request of each
    node."""
    job = core.jobs[number]
    if job.plan.part is not None:
        return job.plan.part, NOTHING
    return job.at.work.job_shape(np.array(job.plan.all_tasks))


def _size(path: Path) -> int:
    """Bytes of a file; 0 if it is not there."""
    if path.exists():
        return path.stat().st_size
    return 0


@dataclass
class Dispatch:
    """Prepares the jobs of one run. `uid` sets its tags apart from those of all other runs."""

    folder: RunFolder
    runnable: Runnable
    uid: str
    run: str
    attempts: dict[int, int] = field(default_factory=dict)
    copies: bool = False
    """Whether tasks may be in several jobs, so that each attempt needs a claim on its outputs."""
    offers: bool = False
    """Whether jobs of copies are offered to running ones with idle nodes."""
    undone: Counter[int] = field(default_factory=Counter)
    """How often a task was to run again although it had finished."""
    mirrors: Mapping[str, Mirror] = field(default_factory=dict)
    """The run's folders at places with files of their own, by name."""
    transfers: Transfers | None = None
    """Where there are any."""
    sizes: dict[int, int] = field(default_factory=dict)
    """Of files that were made, by number."""
    scratch: str = ""
    """Where nodes have disks of their own, which jobs are to use."""
    keep: Sequence[str] = ()
    """Patterns of files that must not stay there."""
    share: str = ""
    """How what many tasks read comes there."""
    small_bytes: int = SMALL_BYTES
    """Up to this size, files leave a node of several at once."""
    local: LocalPlaces = field(default_factory=LocalPlaces)
    """What is on nodes alone."""
    _may_copy: dict[int, bool] = field(default_factory=dict)

    @cached_property
    def _shared(self) -> frozenset[str]:
        return shared_outputs(self.runnable.workflow)

    @cached_property
    def staying(self) -> Staying:
        """Which files may stay on nodes."""
        from windrow.storage.places import Staying  # noqa: PLC0415  (few runs use disks of nodes)

        return Staying(self.runnable.workflow, self.keep)

    def extend(self, workflow: Workflow, steps: Iterable[Step]) -> None:
        """Tasks joined the run: its workflow now, and how the new ones are executed."""
        more = tuple(steps)
        self.runnable = Runnable(workflow, self.runnable.steps + more)
        self.offers |= any(step.replicas > 1 for step in more)
        self.copies |= self.offers
        self.__dict__.pop("_shared", None)
        self.__dict__.pop("staying", None)

    def amend(self, workflow: Workflow, tasks: Sequence[Task], steps: Sequence[Step]) -> None:
        """These tasks have changed: the workflow now, and how they are executed."""
        self.runnable = Runnable(workflow, self.runnable.with_steps(tasks, steps))
        self.offers |= any(step.replicas > 1 for step in steps)
        self.copies |= self.offers
        self._may_copy.clear()

    def tag(self, number: int) -> str:
        """The name of a job in the queue."""
        return job_tag(self.uid, number)

    def count_attempt(self, task: int, number: int) -> None:
        """A task was started once more, by an agent that gave the attempt this number."""
        self.attempts[task] = max(self.attempts.get(task, 0) + 1, number)

    def may_copy(self, task: int) -> bool:
        """Whether several jobs may run the task at the same time (`outputs.may_be_copied`)."""
        if task not in self._may_copy:
            spec = task_spec(self.runnable, task, self._shared)
            out = self.folder.task_out(task, 1)
            order = order_for(
                spec, 1, run=self.run, out=out, hosts=(), node=NodeShape(1), patience_s=0.0
            )
            rules = self.runnable.workflow.rules.get(task)
            is_limited = rules is not None and bool(rules.takes)
            self._may_copy[task] = not is_limited and outputs.may_be_copied(order)
        return self._may_copy[task]

    def spec(self, core: Core, number: int, avoid: tuple[str, ...] = ()) -> JobSpec:
        """What is submitted for a job that is not to run on the nodes to avoid."""
        plan = core.jobs[number].plan
        site = core.jobs[number].at.site
        # -P: a file in the working folder must not pass for a module
        there = str(self.folder.path)
        agent: tuple[str, ...] = (sys.executable, "-P", "-m", "windrow.agent")
        if site.files:
            there = self.mirrors[site.files].there
            agent = (*self.mirrors[site.files].agent, "__main__")
        if (
            site.files or site.setup
        ):  # modules are known in login shells; without the variable, steps have what we have
            script = f'{site.setup}\nunset SLURM_EXPORT_ENV\nexec "$0" "$@"'
            agent = ("bash", "-lc", script, *agent)
        return JobSpec(
            tag=self.tag(number),
            nodes=plan.nodes,
            walltime_s=site.walltime_s(plan.requested_s),
            command=(*agent, there, str(number)),
            workdir=there,
            output=f"{there}/jobs/{number}/output",
            avoid=avoid,
            per_node=_shape(core, number)[1],
            notice_s=self.runnable.notice_s(plan.all_tasks),
            part=plan.part,
        )

    def alike(self, numbers: Sequence[int], core: Core, most: int) -> Iterator[list[int]]:
        """Jobs that can go out together: consecutive numbers, the same nodes and times; at most
        this many at once."""
        plans = {n: core.jobs[n].plan for n in numbers}
        notice_s = self.runnable.notice_s
        size = {
            n: (p.nodes, p.requested_s, notice_s(p.all_tasks), *_shape(core, n))
            for n, p in plans.items()
        }
        group: list[int] = []
        for number in numbers:
            if group and (
                len(group) >= most or number != group[-1] + 1 or size[number] != size[group[0]]
            ):
                yield group
                group = []
            group.append(number)
        if group:
            yield group

    def prepare(
        self, core: Core, number: int, heard: Mapping[int, int], avoid: tuple[str, ...]
    ) -> JobSpec:
        """Write what the job's agent is to do; then what is submitted for it.

        `heard` is how much of each job's events the core knows, those of jobs that were given up
        among them, as long as they may finish something. A task that failed, was abandoned and is
        tried again must not look lost to jobs of its second life.
        """
        folder = self.folder_of(core, number)
        job = self._job_file(core, number, heard)
        with disk_faults(f"{folder.path}: cannot write job {number}"):
            folder.make(number)
            if self.copies:
                folder.commits.mkdir(mode=0o700, exist_ok=True)
            write_job(folder.job_file(number), job)
        return self.spec(core, number, avoid)

    def _job_file(self, core: Core, number: int, heard: Mapping[int, int]) -> JobFile:
        """What a job's agent is to do, and what it has to know of the others."""
        plan = core.jobs[number].plan
        at = core.jobs[number].at
        shape = _shape(core, number)[0]
        folder = self.folder_of(core, number)
        given_up = sorted(heard.keys() - core.jobs.keys())
        first = min((*core.jobs, *given_up))
        return JobFile(
            run=self.run,
            job=number,
            nodes=plan.nodes,
            cores=shape.cores,
            memory_bytes=shape.memory_bytes,
            disk_bytes=shape.disk_bytes,
            counts=shape.counts,
            walltime_s=at.site.walltime_s(plan.requested_s),
            tasks=tuple(self._tasks(core, number)),
            over=tuple(
                n for n in range(first, core.submitted) if n not in core.jobs and n not in given_up
            ),
            given_up=tuple(given_up),
            over_below=first,
            heard_bytes={str(n): heard[n] for n in sorted(heard) if n != number and heard[n]},
            abandoned_bytes=_size(folder.abandoned),
            site=at.name,
            loss_rate=at.site.hazard.rate(plan.nodes) if self._is_by_losses(plan) else 0.0,
            arrived_bytes=_size(folder.arrived),
            offered=bool(plan.offered_s) if self.offers else None,
            space=self._space(core, number, shape),
            scratch=self.scratch,
            share=self.share if self.scratch else "",
            small_bytes=self.small_bytes if self.scratch else 0,
            has_parts=plan.part is not None,
            takes=plan.takes,
            holds=core.jobs[number].at.site.holds and plan.part is not None,
            shares=tuple(core.jobs[number].shares.items()),
        )

    def _is_by_losses(self, plan: JobPlan) -> bool:
        """Whether its agent decides something by how often nodes are lost."""
        steps = self.runnable.steps
        has_volumes = bool(self.scratch) and any(steps[task].mounts for task in plan.all_tasks)
        return has_volumes or self.runnable.notice_s(plan.all_tasks) > 0

    def _space(self, core: Core, number: int, shape: NodeShape) -> tuple[Any, ...]:
        """What the files of a job may take; empty if there is no limit."""
        if core.work.space is None:
            return ()
        from windrow.manager.space import space_for  # noqa: PLC0415  (few runs have a limit)

        space = space_for(core, number, shape, self.sizes, self.attempts)
        if space is None:
            return ()
        return tuple(space.record())

    def folder_at(self, place: str) -> RunFolder:
        """The run's folder for jobs at this place of files; of one that is not home, its mirror."""
        if place:
            return self.mirrors[place].folder
        return self.folder

    def folder_of(self, core: Core, number: int) -> RunFolder:
        """The one in which a job is."""
        return self.folder_at(core.jobs[number].at.site.files)

    def fence(self, core: Core, number: int) -> None:
        """Let the agent of a job that is given up begin nothing more, should it live."""
        fence(self.folder_of(core, number), number)

    def abandon(self, action: Abandon) -> None:
        """Tell all agents that these tasks will not run, or not where they are."""
        told = {"ends": action.ends, "again": action.again}
        said = {name: 1 for name, is_so in told.items() if is_so}
        self._tell_agents({"task": task, **said} for task in action.tasks)

    def rank(self, priorities: Mapping[int, int]) -> None:
        """Tell all agents that tasks have these priorities."""
        self._tell_agents({"task": task, "priority": n} for task, n in priorities.items())

    def _tell_agents(self, said: Iterable[dict[str, int]]) -> None:
        lines = [json.dumps(one) for one in said]
        for folder in (self.folder, *(mirror.folder for mirror in self.mirrors.values())):
            if lines:
                append_lines(folder.abandoned, lines)

    def clean_up(self, core: Core) -> str:
        """When there is no job: throw away what tasks left that have not finished; what could not
        be done.

        And temporary files that an agent which was given up has made again.
        """
        left = clean_up(
            self.folder,
            self.runnable,
            self.attempts,
            core.is_done,
            copied=self.copies or bool(self.scratch),
        )
        return self.delete(core.temporary, core.temporary.gone) or left

    def delete(self, files: Lifetimes, names: Iterable[str]) -> str:
        """Remove these temporary files, as far as tasks made them; what could not be done."""
        trouble = ""
        for name in names:
            workdir = self.runnable.steps[files.maker[name]].workdir
            (path,) = absolute(workdir, [name])
            try:
                trouble = outputs.delete(path, workdir, self.folder.path) or trouble
            except OSError as error:
                trouble = (
                    f"{error.filename}, which is no longer needed, cannot be removed: "
                    f"{error.strerror}"
                )
        return trouble

    def make_way(self, paths: Iterable[str]) -> list[str]:
        """These come home from where tasks made them: what is there and no run made is kept beside
        it. What the user should know of that."""
        made = Made(str(self.folder.path))
        for path in paths:
            if not made.may_replace(path):
                made.out_of_the_way(path)
        return made.notes

    def arrived(self, files: Lifetimes, paths: Collection[str]) -> None:
        """These have come home from where tasks made them: record them as they are."""
        made = Made(str(self.folder.path))
        temporary = {
            path
            for name in files.temporary
            for path in absolute(self.runnable.steps[files.maker[name]].workdir, [name])
        }
        made.note(*(path for path in paths if path not in temporary))
        made.note(*(path for path in paths if path in temporary), lasting=True)

    def _tasks(self, core: Core, number: int) -> Iterator[TaskSpec]:
        workflow = self.runnable.workflow
        place = core.jobs[number].at.site.files
        members = core.members(number)
        stays = bool(self.scratch) and not self.copies
        for task, member in members.items():
            commit = ""
            attempts = self.attempts.get(task, 0)
            if self.copies and self.may_copy(task):  # numbers that no attempt in another job has
                commit = self._commit(core, task, place)
                attempts = number * (self.runnable.steps[task].retries + 1)
            waits = core.open_parents(task)
            waits |= self.local.makers_for(workflow, task, number)
            if self.transfers is not None:
                waits |= self.transfers.waits_for(task, number, place)
            done_s, idle = core.pieces.saved.get(task, (0, 0))
            spec = task_spec(
                self.runnable,
                task,
                self._shared,
                core.jobs[number].at.site.name,
                expected_s=member.expected_s,
                attempts=attempts,
                parents=tuple(sorted(waits)),
                children=tuple(member.children),
                commit=commit,
                done_s=float(done_s),
                idle=idle,
                failed=core.tries[task],
                takes=member.takes,
                local=self._local(core, task, members) if stays else (),
            )
            spec = _with_memory(spec, member.need, core.jobs[number].at.work)
            if member.priority != spec.priority:
                spec = replace(spec, priority=member.priority)
            yield self._moved(spec, place) if place else spec

    def _local(self, core: Core, task: int, members: Collection[int]) -> tuple[str, ...]:
        """Which of its outputs may stay on its node: none beside an older one, which would be taken
        for it, and none that says which tasks come next."""
        workflow = self.runnable.workflow
        folder = self.runnable.steps[task].workdir
        may_stay = self.staying.of(workflow.task(task).outputs, members, core.is_done)
        read_here = workflow.rules.get(task, PLAIN).expands
        return tuple(
            name
            for name in may_stay
            if name != read_here and not os.path.lexists(Path(folder, name))
        )

    def _moved(self, spec: TaskSpec, place: str) -> TaskSpec:
        """The same task for a place whose files are elsewhere: all paths below the run's root are
        below another."""
        assert self.transfers is not None
        here = self.transfers.catalogue.paths.root
        there = f"{self.mirrors[place].there}/files"

        def moved(path: str) -> str:
            if path[:1] == "/":
                return os.path.normpath(f"{there}/{os.path.relpath(path, here)}")
            return path

        names: dict[str, Any] = {
            name: tuple(map(moved, getattr(spec, name)))
            for name in ("inputs", "outputs", "shared", "temporary")
        }
        names["mounts"] = tuple(
            m._replace(before=moved(m.before), after=moved(m.after)) for m in spec.mounts
        )
        names["extracts"] = tuple(
            (volume, inside, moved(kept)) for volume, inside, kept in spec.extracts
        )
        return replace(spec, workdir=moved(spec.workdir), **names)

    def _commit(self, core: Core, task: int, place: str) -> str:
        """The name of the claim on the task's outputs: the first that was not made by a job that is
        over."""

        def is_over(path: Path) -> bool:
            job = holder(path)
            if job is None:  # its maker died before it had said who it is, or is about to
                runs = [other for other in core.jobs.values() if other.is_running]
                return not any(task in other.open_tasks or task in other.copies for other in runs)
            return job not in core.jobs

        names = (f"{task}.{self.undone[task]}.{life}" for life in count())
        paths = (self.folder_at(place).commits / name for name in names)
        return next(path.name for path in paths if not path.exists() or not is_over(path))
