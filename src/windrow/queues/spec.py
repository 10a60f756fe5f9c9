"""What a job must be like before a queue takes it.

Rule 1: a refusal names the tag, what is wrong, and what would do. Rule 2: a batch system is not
asked for what it can only refuse, or would accept and let wait for ever.
"""

import re
from collections.abc import Container, Sequence

from windrow.queues.port import JobSpec, Limits, SpecError

TAG = re.compile(r"[A-Za-z0-9._-]+")


def check(specs: Sequence[JobSpec], limits: Limits, taken: Container[str] = ()) -> None:
    """Raise SpecError unless all of these can be submitted together. `taken` are tags that are in
    use."""
    check_count(len(specs), limits)
    new: set[str] = set()
    for spec in specs:
        check_spec(spec, limits)
        if spec.tag in taken or spec.tag in new:
            raise SpecError(
                f"job {spec.tag!r}: a job with this tag already exists; every job needs its own tag"
            )
        new.add(spec.tag)


def check_count(jobs: int, limits: Limits) -> None:
    """Raise SpecError unless this number of jobs can be submitted together."""
    if jobs > limits.max_array:
        raise SpecError(
            f"an array has at most {limits.max_array} jobs, not {jobs}; submit several arrays"
        )


def check_spec(spec: JobSpec, limits: Limits, where: str = "this queue") -> None:
    """Raise SpecError unless this job can run within these limits. `where` is what sets them, in
    the user's words."""
    if problem := _form_problem(spec) or _size_problem(spec.nodes, spec.walltime_s, limits, where):
        raise SpecError(f"job {spec.tag!r}: {problem}")


def check_form(spec: JobSpec) -> None:
    """Raise SpecError if no queue at all could run this, whatever its limits."""
    if problem := _form_problem(spec):
        raise SpecError(f"job {spec.tag!r}: {problem}")


def check_size(nodes: int, walltime_s: int, limits: Limits) -> None:
    """Raise SpecError unless a job of this size can ever run."""
    if problem := _size_problem(nodes, walltime_s, limits, "this queue"):
        raise SpecError(problem)


def _form_problem(spec: JobSpec) -> str:
    if not TAG.fullmatch(spec.tag):
        return "a tag has letters, digits, '-', '_' and '.', and nothing else"
    if not spec.command or not spec.command[0]:
        return "it has no command"
    if any("\0" in text for text in (*spec.command, spec.workdir, spec.output)):
        return "the NUL character cannot be part of a command or a path"
    return ""


def _size_problem(nodes: int, walltime_s: int | None, limits: Limits, where: str) -> str:
    most = min(limits.nodes, limits.max_nodes or limits.nodes)
    if not 1 <= nodes <= most:
        return f"it requests {nodes} nodes; {where} allows 1 to {most}"
    if walltime_s is None:
        if limits.starts_at_once:
            return ""
        return f"it has no walltime; {where} needs one"
    if walltime_s < 1:
        return f"it requests {walltime_s} s; a job requests at least 1 s"
    if limits.max_walltime_s is not None and walltime_s > limits.max_walltime_s:
        return f"it requests {walltime_s} s; {where} allows at most {limits.max_walltime_s} s"
    return ""
