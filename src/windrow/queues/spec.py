"""What a job must be like before a queue on this machine, or a simulated one, takes it.

Rule: a refusal names the tag, what is wrong, and what would do.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from windrow.queues.port import JobSpec, Limits, SpecError

_TAG = re.compile(r"[A-Za-z0-9._-]+")


def check(specs: Sequence[JobSpec], limits: Limits, taken: Container[str] = ()) -> None:
    """Raise SpecError unless all of these can be submitted together. `taken` are tags that are in use."""
    if len(specs) > limits.max_array:
        raise SpecError(f"an array has at most {limits.max_array} jobs, not {len(specs)}; submit several arrays")
    new: set[str] = set()
    for spec in specs:
        problem = _problem(spec, limits)
        if problem:
            raise SpecError(f"job {spec.tag!r}: {problem}")
        if spec.tag in taken or spec.tag in new:
            raise SpecError(f"job {spec.tag!r}: there is a job with this tag; every job needs a tag of its own")
        new.add(spec.tag)


def check_size(nodes: int, walltime_s: int, limits: Limits) -> None:
    """Raise SpecError unless a job of this size can ever run."""
    problem = _size_problem(nodes, walltime_s, limits)
    if problem:
        raise SpecError(problem)


def _size_problem(nodes: int, walltime_s: int, limits: Limits) -> str:
    if not 1 <= nodes <= limits.nodes:
        return f"it asks for {nodes} nodes; this queue gives 1 to {limits.nodes}"
    if walltime_s < 1:
        return f"it asks for {walltime_s} s; a job asks for at least 1 s"
    return ""


def _problem(spec: JobSpec, limits: Limits) -> str:
    if not _TAG.fullmatch(spec.tag):
        return "a tag has letters, digits, '-', '_' and '.', and nothing else"
    if not spec.command or not spec.command[0]:
        return "it has no command"
    if any("\0" in text for text in (*spec.command, spec.workdir, spec.output)):
        return "the NUL character cannot be part of a command or a path"
    return _size_problem(spec.nodes, spec.walltime_s, limits)
