"""From jobs of Snakemake to tasks of Windrow: their names, needs and commands."""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from windrow.api import NewTask

WORKER = (
    # What Snakemake imports would start threads, and a process with threads cannot be forked.
    *("env", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "MKL_NUM_THREADS=1"),
    *(sys.executable, "-m", "windrow.agent.worker"),
    *("snakemake.cli", "snakemake.api", "snakemake.workflow", "snakemake.executors.local"),
)
"""What is loaded once on each node."""
_MEGABYTE = 1_000_000
_LONGEST = 80


def task_id(job: Any) -> str:
    """What a job is called as a task: the same in each invocation of Snakemake."""
    if job.is_group():
        name = f"group-{job.groupid}"
    else:
        values = (str(value) for value in job.wildcards_dict.values())
        name = "-".join([job.rule.name, *values])
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:_LONGEST].strip("._-") or "job"
    if plain == name and not job.is_group():
        return plain
    # Different jobs have different outputs, whatever their names are shortened to.
    told = "\0".join(sorted(map(str, job.output)) or [str(job.jobid)])
    return f"{plain}-{hashlib.sha256(f'{name}{told}'.encode()).hexdigest()[:8]}"


def kind(job: Any) -> str:
    """Jobs of which are expected to run alike."""
    return f"group {job.groupid}" if job.is_group() else str(job.rule.name)


@dataclass(frozen=True)
class Needs:
    """What a job needs of a node, as far as that is known."""

    cores: int
    memory: int
    gpus: int
    time_limit: float | None


def needs(job: Any, most_cores: int) -> Needs:
    """What the job says it needs. What depends on files that are not there yet is left out.

    `disk_mb` is of the working folder, which nodes share, and Snakemake says 50 GB of its own
    accord; what Windrow asks of nodes is their own disks.
    """
    said = {name: value for name, value in job.resources.items() if _is_count(value)}
    limit = said.get("runtime", 0) * 60
    return Needs(
        cores=min(max(1, int(job.threads)), most_cores),
        memory=said.get("mem_mb", 0) * _MEGABYTE,
        gpus=said.get("gpu", 0),
        time_limit=float(limit) if limit else None,
    )


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def plain(value: object) -> object:
    """A resource as Snakemake's older versions have it, which is a value without a wrapping."""
    return getattr(value, "value", value)


def takes(job: Any, limits: Mapping[str, int]) -> dict[str, int]:
    """How much the job takes of what the whole workflow has only so much of."""
    said = {name: plain(job.resources.get(name)) for name in limits}
    return {
        name: min(value, limits[name])
        for name, value in said.items()
        if _is_count(value) and value > 0
    }


def command(text: str) -> tuple[str, ...]:
    """What runs this text, which Snakemake made for a shell: without one, if none is needed."""
    words = shlex.split(text)
    if words[:1] == [sys.executable] and not {"&&", "||", ";", "|", "export"} & set(words):
        return tuple(words)
    return ("bash", "-c", text)


def new_task(
    job: Any,
    name: str,
    text: str,
    after: Iterable[str],
    needed: Needs,
    env: Mapping[str, str],
    limits: Mapping[str, int],
    *,
    cold: bool,
) -> NewTask:
    """The job as a task that comes after these."""
    run = command(text)
    taken = takes(job, limits)
    return NewTask(
        id=name,
        command=run,
        after=tuple(after),
        cores=needed.cores,
        memory=needed.memory,
        gpus=needed.gpus,
        time_limit=needed.time_limit,
        env=dict(env),
        kind=kind(job),
        takes=taken,
        limits={limit: limits[limit] for limit in taken},
        worker=() if cold or run[0] != sys.executable or _computes_here(job) else WORKER,
    )


def _computes_here(job: Any) -> bool:
    """Whether its own code runs in the process of Snakemake, and may use threads."""
    return not job.is_group() and job.is_run and int(job.threads) > 1


def ahead(
    jobs: Iterable[Any], dependencies: Any, handed: Mapping[Any, str], limits: Iterable[str]
) -> Iterator[Any]:
    """Those jobs that can be handed over though Snakemake has not submitted them, parents first:
    all that they need is handed over or done, and nothing has to be seen before.

    `dependencies`: the jobs on which one depends. `handed`: what was handed over before.
    """
    open_jobs = list(jobs)
    unfinished = set(open_jobs)
    known: dict[Any, bool] = dict.fromkeys(handed, True)
    limited = frozenset(limits)

    def visit(first: Any) -> Iterator[Any]:
        """Depth first, without recursion: workflows are deeper than Python's stack."""
        stack = [first]
        while stack:
            job = stack[-1]
            if job in known:
                stack.pop()
                continue
            parents = [one for one in dependencies(job) if one in unfinished]
            new = [one for one in parents if one not in known]
            if new:
                stack += new
                continue
            stack.pop()
            known[job] = all(known[one] for one in parents) and _may_go_ahead(job, limited)
            if known[job]:
                yield job

    for job in open_jobs:
        yield from visit(job)


def _may_go_ahead(job: Any, limited: frozenset[str]) -> bool:
    is_seen_first = job.is_local or job.is_norun or job.incomplete_input_expand
    is_together = job.group is not None or job.is_pipe or job.is_service
    is_handover = getattr(job.rule, "is_handover", False)
    if is_seen_first or is_together or is_handover:
        return False
    # How much it takes of a limit may depend on files that are not there yet.
    return all(_is_count(job.resources.get(name, 0)) for name in limited)
