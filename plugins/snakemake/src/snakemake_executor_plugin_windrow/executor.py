"""The executor.

Rule 1: Snakemake decides what is to run, and sees every result; Windrow runs it. What can be handed
over ahead is, at the first submission and whenever something new is submitted. Rule 2: a task is a
job, known by its name in every invocation. A job that is tried again is the same task, amended.
Rule 3: Snakemake starts the thread that looks for ends before `__post_init__`, so all that it needs
is there from the beginning. Rule 4: only `windrow.api` is used.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.real import RealExecutor
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.utils import format_cli_arg, join_cli_args

from snakemake_executor_plugin_windrow import tasks
from windrow import api
from windrow.errors import WindrowError

_HERE = Path(".snakemake") / "windrow"
_RUN = _HERE / "run"
"""Which run the jobs of this folder belong to, for an invocation after this one has died."""
_MANY_FILES = 20
_SOON_S = 0.05
_LATER_S = 1.0
_ALIVE_S = 5.0
_OVER = ("finished", "failed", "blocked", "cancelled")


class Executor(RemoteExecutor):
    """Hands jobs of Snakemake to one run of Windrow."""

    _hold: api.Hold | None = None
    _watch: api.Watch | None = None
    _general: str | None = None
    _most_cores: int = 0
    _is_left: bool = False
    _seen_to_s: float = 0.0
    _given_up: str = ""

    def __post_init__(self) -> None:
        """Nothing is submitted yet."""
        self._guard = threading.Lock()
        self._handed: dict[Any, str] = {}
        """Tasks of jobs, by job."""
        self._states: dict[str, str] = {}
        """How tasks stand, by name."""
        self._ends: dict[str, api.Event] = {}
        self._submitted: set[str] = set()
        self._scanned = False
        self._waits_for_more = True
        said = self.workflow.executor_settings
        self._on = said.on or "local"
        given = self.workflow.resource_settings.resources or {}
        sizes = {name: tasks.plain(size) for name, size in given.items()}
        self._limits = {
            name: size
            for name, size in sizes.items()
            if name not in ("_cores", "_nodes") and isinstance(size, int)
        }

    # What Snakemake calls.

    def run_jobs(self, jobs: list[Any]) -> None:
        """These are ready. They are handed over, if that was not done before, and what can be
        handed over ahead with them."""
        try:
            self._run_jobs(jobs)
        except WindrowError as error:
            raise WorkflowError(f"windrow: {error}") from error

    def run_job(self, job: Any) -> None:
        """One that is ready."""
        self.run_jobs([job])

    async def check_active_jobs(
        self, active_jobs: list[SubmittedJobInfo]
    ) -> AsyncGenerator[SubmittedJobInfo, None]:
        """Tell of those that have ended; the others are still active."""
        if not self._look() and active_jobs:
            self._see_to_run()
        ended = 0
        for info in active_jobs:
            name = info.aux["task"]
            state = self._state_of(name)
            if state == "finished":
                ended += 1
                self.report_job_success(info)
            elif state in _OVER:
                ended += 1
                self.report_job_error(info, msg=self._why(name, info.job))
            else:
                yield info
        # A level of the graph costs one look: look again at once while there is news.
        self.next_seconds_between_status_checks = _SOON_S if ended else self._pause_s()

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        """The user wants Snakemake to stop."""
        hold = self._hold
        if hold is None:
            return
        if sys.stdin.isatty() and sys.stderr.isatty():
            print("Stop the run, or leave it running? [stop/leave] ", end="", file=sys.stderr)
            if input().strip().lower().startswith("l"):
                self._is_left = True
                self._say_how_to_watch()
                return
        with contextlib.suppress(WindrowError):
            hold.run.cancel()

    def shutdown(self) -> None:
        """Snakemake ends. What it has not submitted is not wanted any more."""
        super().shutdown()
        hold = self._hold
        if hold is None:
            return
        self._hold = None
        with contextlib.suppress(WindrowError):
            if not self._is_left:
                self._look()
                unwanted = [
                    name
                    for name in self._handed.values()
                    if name not in self._submitted and self._states.get(name) not in _OVER
                ]
                if unwanted:
                    hold.cancel(*unwanted)
                with contextlib.suppress(OSError):
                    _RUN.unlink()
            hold.close()

    def get_job_args(self, job: Any, **more: Any) -> str:
        """As of every executor; files are waited for that this invocation does not remove."""
        args = RealExecutor.get_job_args(self, job, **more)
        files = [str(file) for file in job.get_wait_for_files()]
        if not files:
            return args
        if len(files) <= _MANY_FILES:
            return f"{args} {format_cli_arg('--wait-for-files', files)}"
        listed = _HERE.absolute() / f"wait-{tasks.task_id(job)}"
        listed.parent.mkdir(parents=True, exist_ok=True)
        listed.write_text("".join(f"{file}\n" for file in files))
        return f"{args} {format_cli_arg('--wait-for-files-file', str(listed))}"

    def format_job_exec(self, job: Any) -> str:
        """As of every executor; what is the same for all jobs is made once."""
        if self._general is None:
            factory = self.workflow.spawned_job_args_factory
            common = self.common_settings
            precommand = factory.precommand(executor_common_settings=common)
            self._before = f"{precommand} &&" if precommand else ""
            self._general = factory.general_args(executor_common_settings=common)
        return join_cli_args(
            [
                self._before,
                self.get_python_executable(),
                "-m snakemake",
                format_cli_arg("--snakefile", self.get_snakefile()),
                self.get_job_args(job),
                self._general,
                self.additional_general_args(),
                format_cli_arg("--mode", self.get_exec_mode().item_to_choice()),
            ]
        )

    # Handing over.

    def _run_jobs(self, jobs: list[Any]) -> None:
        for job in jobs:
            self.run_job_pre(job)
        if self._hold is None:
            self._attach(jobs)
        again = [job for job in jobs if self._is_again(job)]
        new = [job for job in jobs if job not in self._handed and job not in again]
        self._amend(again)
        if new or not self._scanned:
            self._hand_over(new)
        for job in jobs:
            name = self._handed[job]
            self._submitted.add(name)
            assert self._hold is not None
            info = SubmittedJobInfo(
                job,
                external_jobid=f"{self._hold.run.name}/{name}",
                aux={"task": name},
            )
            self.report_job_submission(info)

    def _is_again(self, job: Any) -> bool:
        """Whether it was handed over, and has failed."""
        name = self._handed.get(job)
        return name is not None and self._states.get(name) in ("failed", "blocked")

    def _hand_over(self, ready: list[Any]) -> None:
        """These, and what can go ahead of their submission."""
        self._scanned = True
        dag = self.workflow.dag
        with self._guard:
            handed = dict(self._handed)
        for job in ready:
            handed[job] = self._name_of(job)
        jobs = list(ready)
        seen = tasks.ahead(dag.needrun_jobs(), self._parents, handed, self._limits)
        for job in seen:
            handed[job] = self._name_of(job)
            jobs.append(job)
        made = [self._task(job, handed) for job in jobs]
        new = [task for task in made if task.id not in self._states]
        self._send(new)
        with self._guard:
            self._handed = handed
            for task in new:
                self._states[task.id] = "pending"

    def _name_of(self, job: Any) -> str:
        """The task of a job. One that a run before this invocation has done with is not used
        again."""
        name = tasks.task_id(job)
        number = 1
        found = name
        while self._states.get(found) in _OVER and not self._is_ours(job, found):
            number += 1
            found = f"{name}.{number}"
        return found

    def _is_ours(self, job: Any, name: str) -> bool:
        """Whether Snakemake still waits for what this task has done: an invocation that has died
        had submitted it, and not seen its end."""
        if self._states.get(name) != "finished" or self._hold is None:
            return False
        find = getattr(self.workflow.persistence, "external_jobids", None)
        with contextlib.suppress(Exception):
            return find is not None and f"{self._hold.run.name}/{name}" in find(job)
        return False

    def _parents(self, job: Any) -> Iterable[Any]:
        dag = self.workflow.dag
        if job.is_group():
            inside = set(job.jobs)
            return [one for each in inside for one in self._of(dag, each) if one not in inside]
        return self._of(dag, job)

    @staticmethod
    def _of(dag: Any, job: Any) -> Iterable[Any]:
        if hasattr(dag, "job_dependencies"):  # newer releases
            return list(dag.job_dependencies(job))
        return list(dag.dependencies[job])

    def _task(self, job: Any, handed: dict[Any, str]) -> api.NewTask:
        if not self._most_cores:
            self._most_cores = api.largest_node(self._on).cores
        needed = tasks.needs(job, self._most_cores)
        if needed.cores < job.threads:
            self.logger.info(
                f"windrow: {tasks.task_id(job)} gets {needed.cores} cores of {job.threads}: "
                f"no node of {self._on} has more"
            )
        after = [handed[one] for one in self._parents(job) if one in handed]
        open_ones = [name for name in after if self._states.get(name) != "finished"]
        return tasks.new_task(
            job,
            handed[job],
            self.format_job_exec(job),
            open_ones,
            needed,
            self.envvars(),
            self._limits,
            cold=self.workflow.executor_settings.cold,
        )

    def _send(self, made: list[api.NewTask]) -> None:
        if self._hold is not None:
            self._hold.add(*made)
            return
        said = self.workflow.executor_settings
        order: dict[str, Any] = {
            name: getattr(said, name)
            for name in ("objective", "max_nodes", "cap")
            if getattr(said, name) is not None
        }
        hold = api.hold_tasks(
            made,
            first=_remember,
            who=f"snakemake, process {os.getpid()}",
            keep_s=said.hold,
            name=Path(self.workflow.main_snakefile).stem,
            on=self._on,
            source="snakemake",
            **order,
        )
        self._adopt(hold)
        self.logger.info(
            f"windrow: {len(made)} jobs are the run {hold.run.name}; windrow status "
            f"{hold.run.name} shows it"
        )

    def _adopt(self, hold: api.Hold) -> None:
        self._hold = hold
        watch = hold.run.watch()
        self._take_in(watch)  # what is past, before the other thread looks
        self._watch = watch

    def _attach(self, jobs: list[Any]) -> None:
        """Go on with the run of an invocation that has died, if it has something left to tell."""
        try:
            run = api.attach(_RUN.read_text().strip())
            states = {name: str(view.state) for name, view in run.tasks.items()}
        except (OSError, WindrowError):
            return
        is_open = any(state not in _OVER for state in states.values())
        find = getattr(self.workflow.persistence, "external_jobids", None)
        is_waited_for = find is not None and any(
            name.startswith(f"{run.name}/") for job in jobs for name in _external(find, job)
        )
        if not is_open and not is_waited_for:
            return
        self._adopt(run.hold(f"snakemake, process {os.getpid()}"))
        with self._guard:
            self._states |= states
        self.logger.info(f"windrow: attached to {run.name}, which an earlier invocation started")

    def _amend(self, jobs: list[Any]) -> None:
        """They have failed, and are tried again: with what they need now."""
        changes = []
        for job in jobs:
            needed = tasks.needs(job, self._most_cores)
            name = self._handed[job]
            changes.append(
                api.Amendment(
                    id=name,
                    command=tasks.command(self.format_job_exec(job)),
                    cores=needed.cores,
                    memory=needed.memory,
                    time_limit=needed.time_limit,
                )
            )
        if changes:
            assert self._hold is not None
            self._hold.amend(*changes)
            with self._guard:
                for change in changes:
                    self._states[change.id] = "pending"

    # Looking.

    def _look(self) -> bool:
        """Whether anything has happened."""
        return self._watch is not None and self._take_in(self._watch)

    def _see_to_run(self) -> None:
        """Nothing happens: a manager that was killed is replaced, and a run that has given up ends
        what waits for it."""
        now = time.monotonic()
        if self._hold is None or now < self._seen_to_s + _ALIVE_S:
            return
        self._seen_to_s = now
        try:
            self._hold.revive()
        except WindrowError as error:
            self._given_up = str(error)
            self._stopped()

    def _take_in(self, watch: api.Watch) -> bool:
        events = watch.look()
        for event in events:
            if event.task is None:
                if event.what == "RunStopped":
                    self._stopped()
                continue
            state = {
                "TaskStarted": "running",
                "TaskFinished": "finished",
                "TaskFailed": "failed",
                "TaskUndone": "pending",
            }.get(event.what)
            if state is not None:
                with self._guard:
                    self._states[event.task] = state
                    self._ends[event.task] = event
        return bool(events)

    def _stopped(self) -> None:
        with self._guard:
            for name, state in self._states.items():
                if state not in _OVER:
                    self._states[name] = "cancelled"

    def _state_of(self, name: str) -> str | None:
        with self._guard:
            return self._states.get(name)

    def _pause_s(self) -> float:
        given = self.workflow.remote_execution_settings.seconds_between_status_checks
        return min(_LATER_S, max(_SOON_S, given))

    def _why(self, name: str, job: Any) -> str:
        """What became of a job, for people."""
        event = self._ends.get(name)
        detail = {} if event is None else event.detail
        why = [str(detail.get("why") or self._given_up or f"it was {self._state_of(name)}")]
        for log in getattr(job, "log", ()):
            with contextlib.suppress(OSError):
                last = Path(str(log)).read_text(errors="replace").splitlines()[-20:]
                why += [f"{log}:", *last]
        if len(why) == 1 and detail.get("tail"):
            why.append(str(detail["tail"]))
        if self._hold is not None:
            why.append(f"windrow logs {name} -f {self._hold.run.name} shows all that it printed")
        return "\n".join(why) + "\n"

    def _say_how_to_watch(self) -> None:
        assert self._hold is not None
        name = self._hold.run.name
        self.logger.info(
            f"windrow: {name} keeps running: windrow watch {name}; windrow cancel {name} stops it; "
            "snakemake --rerun-incomplete attaches to it"
        )


def _remember(run: Path) -> None:
    """Before any task can run: an invocation that is killed must leave none that is not known."""
    _HERE.mkdir(parents=True, exist_ok=True)
    _RUN.write_text(run.name)


def _external(find: Any, job: Any) -> list[str]:
    """The names that an earlier invocation has written down; older Snakemakes also tell of none."""
    with contextlib.suppress(Exception):
        return [name for name in find(job) if name]
    return []
