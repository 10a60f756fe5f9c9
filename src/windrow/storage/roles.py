"""The role of each file, told from the graph of a workflow: who writes it, and which programs read
it.

endpoint: the first input or a last output, which has to cross to where the user's data live.
pipeline: written and read within one pipeline. batch: not written here, and read by several tasks
of one kind, so by several pipelines. shared: written here, and read by several tasks of one kind.
What the user says of a file wins; a contradiction is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.model import Workflow


class Role(StrEnum):
    """What a file is to the pipelines of a workflow."""

    ENDPOINT = "endpoint"
    PIPELINE = "pipeline"
    BATCH = "batch"
    SHARED = "shared"


def role(readers: Sequence[str], *, is_written: bool, is_result: bool = False) -> Role:
    """The role of a file that tasks of these kinds read. `is_result`: the user wants to have it in
    the end."""
    if is_result or (is_written and not readers):
        return Role.ENDPOINT
    if len(set(readers)) < len(readers):
        if is_written:
            return Role.SHARED
        return Role.BATCH
    if is_written:
        return Role.PIPELINE
    return Role.ENDPOINT


def _kinds_of_readers(workflow: Workflow) -> list[list[str]]:
    """Of each file."""
    readers: list[list[str]] = [[] for _ in workflow.files]
    for task, number in workflow.inputs.pairs():
        readers[number].append(workflow.kinds[task])
    return readers


def roles(workflow: Workflow) -> tuple[list[Role], list[str]]:
    """The role of each file, and what the graph says against roles that were declared."""
    readers = _kinds_of_readers(workflow)
    written = set(workflow.outputs.index.tolist())
    found = list[Role]()
    against = list[str]()
    for number, file in enumerate(workflow.files):
        is_written = number in written
        seen = role(
            readers[number], is_written=is_written, is_result=is_written and file.keep is True
        )
        found.append(Role(file.role) if file.role else seen)
        if found[-1] != seen and file.keep is not False:
            against.append(
                f"{file.id} is declared as {file.role}, but the workflow uses it as {seen}"
            )
    return found, against
