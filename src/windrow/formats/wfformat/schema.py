"""WfFormat's JSON as types: what we read of it (1.4 to 1.6) and write of it (1.5). Fields not named
here are ignored.

1.5 split a task in two: `workflow.specification.tasks` says what it is, `workflow.execution.tasks`
how it ran. 1.6 only adds summaries that can be computed, and forbids some characters in ids. 1.4
has one list, `workflow.tasks`, with each task's files inside it. `category`, `nodeCount`,
`diskInBytes` and `resources` are not fields of 1.5; the format allows extra fields, and with
these a workflow written and read again is the same (see `writer`).

Lists of tasks are decoded in two steps: first into `Raw` slices of the text, then one by one, so
that a million tasks never exist as objects all at once.
"""

from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

LARGEST = 2**53
"""Numbers beyond this are refused: no machine has them, and they would not fit the columns."""

Number = (
    Annotated[int, Meta(ge=-LARGEST, le=LARGEST)] | Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
)


class CommandLine(Struct, gc=False):
    """A task's program and its arguments."""

    program: str | None = None
    arguments: list[str] = []


class TaskId(Struct, gc=False):
    """The one field of a specified task that is needed before all others."""

    id: str


class SpecifiedTask(Struct, gc=False, rename="camel"):
    """A task in `workflow.specification.tasks`."""

    name: str
    id: str
    parents: list[str] = []
    children: list[str] = []
    input_files: list[str] = []
    output_files: list[str] = []
    category: str | UnsetType | None = UNSET


class SpecifiedFile(Struct, gc=False, rename="camel"):
    """A file in `workflow.specification.files`."""

    id: str
    size_in_bytes: Number


class ExecutedTask(Struct, gc=False, rename="camel", omit_defaults=True):
    """A task in `workflow.execution.tasks`."""

    id: str
    runtime_in_seconds: float | None = None
    command: CommandLine | None = None
    core_count: Number | None = None
    memory_in_bytes: Number | None = None
    node_count: Annotated[int, Meta(ge=-LARGEST, le=LARGEST)] | None = None
    disk_in_bytes: Number | None = None
    resources: dict[str, Annotated[int, Meta(ge=0, le=LARGEST)]] = {}


class OldNames(Struct, gc=False):
    """What a 1.4 task is called: others may refer to it by either."""

    name: str
    id: str | None = None


class OldFile(Struct, gc=False, rename="camel"):
    """A file inside a 1.4 task."""

    name: str
    link: str
    size_in_bytes: Number = 0
    path: str = ""


class OldTask(Struct, gc=False, rename="camel"):
    """A task in 1.4's `workflow.tasks`."""

    name: str
    id: str | None = None
    category: str | None = None
    parents: list[str] = []
    children: list[str] = []
    files: list[OldFile] = []
    runtime_in_seconds: float | None = None
    command: CommandLine | None = None
    cores: Number | None = None
    memory_in_bytes: Number | None = None


class Specification(Struct, gc=False):
    """`workflow.specification`."""

    tasks: list[Raw]
    files: list[Raw] = []


class Execution(Struct, gc=False):
    """`workflow.execution`."""

    tasks: list[Raw] = []


class Body(Struct, gc=False):
    """`workflow`: a specification, or the tasks of 1.4."""

    specification: Specification | None = None
    execution: Execution | None = None
    tasks: list[Raw] | None = None


class Instance(Struct, gc=False, rename="camel"):
    """The whole file."""

    schema_version: str | None = None
    workflow: Body | None = None
    name: str | None = None
