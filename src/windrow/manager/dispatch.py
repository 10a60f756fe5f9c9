"""From a job of the core to a job of the queue: the file that its agent reads, and what is submitted."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path

import numpy as np

from windrow.agent.claim import fence, holder
from windrow.agent.folder import RunFolder
from windrow.agent.job_file import JobFile, TaskSpec, write_job
from windrow.agent.order import order_for
from windrow.agent.outputs import may_be_copied
from windrow.files import append_whole, disk_faults
from windrow.manager.core import Core
from windrow.manager.specs import clean_up, shared_outputs, task_spec
from windrow.model import NodeShape, Runnable, Step, Workflow
from windrow.model.nodes import Need
from windrow.queues.port import JobSpec


def job_tag(uid: str, job: int) -> str:
    """The name of a job in the queue, and of its wait in the history: `uid` is the run's. No two jobs have the same."""
    return f"windrow-{uid}-{job}"


def alike(numbers: Sequence[int], core: Core, most: int) -> Iterator[list[int]]:
    """Jobs that can go out together: consecutive numbers, the same nodes and times; at most so many at once."""
    plans = {number: core.jobs[number].plan for number in numbers}
    size = {number: (plan.nodes, plan.requested_s, *_shape(core, number)) for number, plan in plans.items()}
    group: list[int] = []
    for number in numbers:
        if group and (len(group) >= most or number != group[-1] + 1 or size[number] != size[group[0]]):
            yield group
            group = []
        group.append(number)
    if group:
        yield group


def _shape(core: Core, number: int) -> tuple[NodeShape, Need]:
    """What each node of a job gives it, and what the job must request of each."""
    job = core.jobs[number]
    return job.at.work.job_shape(np.array(job.plan.all_tasks))


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
    undone: Counter[int] = field(default_factory=Counter)
    """How often a task was to run again although it had finished."""
    _may_copy: dict[int, bool] = field(default_factory=dict)

    @cached_property
    def _shared(self) -> frozenset[str]:
        return shared_outputs(self.runnable.workflow)

    def extend(self, workflow: Workflow, steps: Iterable[Step]) -> None:
        """Tasks joined the run: its workflow now, and how the new ones are executed."""
        self.runnable = Runnable(workflow, (*self.runnable.steps, *steps))
        self.__dict__.pop("_shared", None)

    def tag(self, number: int) -> str:
        """The name of a job in the queue."""
        return job_tag(self.uid, number)

    def count_attempt(self, task: int, number: int) -> None:
        """A task was started once more, by an agent that gave the attempt this number."""
        self.attempts[task] = max(self.attempts.get(task, 0) + 1, number)

    def may_copy(self, task: int) -> bool:
        """Whether several jobs may run the task at the same time (`outputs.may_be_copied`)."""
        if task not in self._may_copy:
            spec, out = task_spec(self.runnable, task, self._shared), self.folder.task_out(task, 1)
            order = order_for(spec, 1, run=self.run, out=out, hosts=(), node=NodeShape(1), patience_s=0.0)
            self._may_copy[task] = may_be_copied(order)
        return self._may_copy[task]

    def spec(self, core: Core, number: int, avoid: tuple[str, ...] = ()) -> JobSpec:
        """What is submitted for a job that is not to run on the nodes to avoid."""
        plan = core.jobs[number].plan
        return JobSpec(
            tag=self.tag(number),
            nodes=plan.nodes,
            walltime_s=core.jobs[number].at.site.walltime_s(plan.requested_s),
            # -P: a file in the working folder must not pass for a module
            command=(sys.executable, "-P", "-m", "windrow.agent", str(self.folder.path), str(number)),
            workdir=str(self.folder.path),
            output=str(self.folder.jobs / str(number) / "output"),
            avoid=avoid,
            per_node=_shape(core, number)[1],
        )

    def prepare(self, core: Core, number: int, heard: Mapping[int, int], avoid: tuple[str, ...]) -> JobSpec:
        """Write what the job's agent is to do; then what is submitted for it.

        `heard` is how much of each job's events the core knows, those of jobs that were given up among them, as long as
        they may finish something. A task that failed, was abandoned and is tried again must not look lost to jobs of
        its second life.
        """
        plan, (shape, _) = core.jobs[number].plan, _shape(core, number)
        given_up = sorted(heard.keys() - core.jobs.keys())
        first = min((*core.jobs, *given_up))
        job = JobFile(
            run=self.run,
            job=number,
            nodes=plan.nodes,
            cores=shape.cores,
            memory_bytes=shape.memory_bytes,
            disk_bytes=shape.disk_bytes,
            counts=shape.counts,
            walltime_s=core.jobs[number].at.site.walltime_s(plan.requested_s),
            tasks=tuple(self._tasks(core, number)),
            over=tuple(n for n in range(first, core.submitted) if n not in core.jobs and n not in given_up),
            given_up=tuple(given_up),
            over_below=first,
            heard_bytes={str(n): heard[n] for n in sorted(heard) if n != number and heard[n]},
            abandoned_bytes=self.folder.abandoned.stat().st_size if self.folder.abandoned.exists() else 0,
            site=core.jobs[number].at.name,
        )
        with disk_faults(f"{self.folder.path}: cannot write job {number}"):
            self.folder.make(number)
            if self.copies:
                self.folder.commits.mkdir(mode=0o700, exist_ok=True)
            write_job(self.folder.job_file(number), job)
        return self.spec(core, number, avoid)

    def fence(self, number: int) -> None:
        """Let the agent of a job that is given up begin nothing more, should it live."""
        fence(self.folder, number)

    def abandon(self, tasks: Iterable[int]) -> None:
        """Tell all agents that these tasks will not run."""
        lines = "".join(json.dumps({"task": task}) + "\n" for task in tasks)
        if not lines:
            return
        with disk_faults(f"{self.folder.abandoned} cannot be written"):
            descriptor = os.open(self.folder.abandoned, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                append_whole(descriptor, lines.encode(), os.fstat(descriptor).st_size)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def clean_up(self, core: Core) -> str:
        """When no job is left: throw away what tasks left that have not finished; what could not be done."""
        return clean_up(self.runnable, self.attempts, core.is_done, copied=self.copies)

    def _tasks(self, core: Core, number: int) -> Iterator[TaskSpec]:
        parents = self.runnable.workflow.parents
        for task, member in core.members(number).items():
            commit, attempts = "", self.attempts.get(task, 0)
            if self.copies and self.may_copy(task):  # numbers that no attempt in another job has
                commit, attempts = self._commit(core, task), number * (self.runnable.steps[task].retries + 1)
            yield task_spec(
                self.runnable,
                task,
                self._shared,
                expected_s=member.expected_s,
                attempts=attempts,
                parents=tuple(p for p in parents.of(task).tolist() if not core.is_done(p)),
                children=tuple(member.children),
                commit=commit,
            )

    def _commit(self, core: Core, task: int) -> str:
        """The name of the claim on the task's outputs: the first that was not made by a job that is over."""

        def is_over(path: Path) -> bool:
            job = holder(path)
            if job is None:  # its maker died before it had said who it is, or is about to
                runs = [other for other in core.jobs.values() if other.is_running]
                return not any(task in other.open_tasks or task in other.copies for other in runs)
            return job not in core.jobs

        names = (f"{task}.{self.undone[task]}.{life}" for life in count())
        paths = (self.folder.commits / name for name in names)
        return next(path.name for path in paths if not path.exists() or not is_over(path))
