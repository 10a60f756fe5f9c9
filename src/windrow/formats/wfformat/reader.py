"""Reading WfFormat, the JSON of the WfCommons project: versions 1.4, 1.5 and 1.6.

What becomes of it: `id` the task's id; `runtimeInSeconds`, `coreCount` (rounded up),
`memoryInBytes`, `command` as they are; `parents` and `children` are united; files with their sizes.
A task's kind is its `category`, if it has one; else its `name`, if that differs from its id;
else what its id begins with: the name of its program, or whatever stands before the running number
(`mProject_ID0000001` is an mProject).

A 1.4 task goes by its name if names are distinct and contain the id (`mProject_ID01` of `ID01`,
as 1.5 has it), else by its id; others may refer to it by either.

Cost, for a million tasks and two million edges: see docs/reference/formats.md. Memory is that of
the text, plus about 70 bytes for each item in its lists, plus the workflow.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from sys import intern
from typing import Any

from msgspec import Raw

from windrow.errors import InputError
from windrow.formats.disk import AnyPath, bare_name
from windrow.formats.draft import Draft, unique_numbers
from windrow.formats.json_source import JsonSource, Section
from windrow.formats.wfformat import schema
from windrow.model import Workflow

VERSIONS = ("1.4", "1.5", "1.6")
"""Versions of the format that are read."""

_RUNNING_NUMBER = re.compile(r"[-_.]?(?:ID)?[0-9]+$")


def read_wfformat(path: AnyPath, outside: Sequence[str] = ()) -> Workflow:
    """The workflow in a WfFormat file, `outside` as for `Draft`. InputError or WorkflowError if
    there is none."""
    return _read_draft(
        path, outside
    ).workflow()  # by now the text is forgotten, which halves the peak


def _read_draft(path: AnyPath, outside: Sequence[str]) -> Draft:
    source = JsonSource(path)
    instance = source.decode(schema.Instance)
    body = _body(path, instance)
    name = bare_name(path) if instance.name is None else instance.name
    if body.specification is not None:
        return _read_current(
            source, name, body.specification, body.execution or schema.Execution(), outside
        )
    if body.tasks is not None:
        return _read_old(source, name, body.tasks, outside)
    raise InputError(path, "no tasks in it", fix="they belong in workflow.specification.tasks")


def _body(path: AnyPath, instance: schema.Instance) -> schema.Body:
    """The workflow in it, of a version that can be read."""
    body = instance.workflow
    if instance.schema_version is None or body is None:
        raise InputError(
            path,
            "not WfFormat: it has no schemaVersion or no workflow",
            fix="see wfcommons.org/format",
        )
    if instance.schema_version not in VERSIONS:
        problem = f"WfFormat {instance.schema_version} is not read, only {', '.join(VERSIONS)}"
        raise InputError(path, problem, fix="migrate it with the WfFormat project's own tool")
    return body


def _read_current(
    source: JsonSource,
    name: str,
    specification: schema.Specification,
    execution: schema.Execution,
    outside: Sequence[str],
) -> Draft:
    """1.5 and 1.6."""
    where = "workflow.specification.tasks"
    ids = [task.id for task in Section(source, where, specification.tasks, schema.TaskId)]
    number = unique_numbers(ids, outside)
    draft = Draft(name, ids, outside)
    where_files = "workflow.specification.files"
    _read_files(draft, Section(source, where_files, specification.files, schema.SpecifiedFile))
    unnamed = _read_specified(
        draft, number, Section(source, where, specification.tasks, schema.SpecifiedTask)
    )
    executed = Section(source, "workflow.execution.tasks", execution.tasks, schema.ExecutedTask)
    _read_executed(draft, number, executed, unnamed)
    for i in unnamed:
        draft.kinds[i] = intern(_kind_in_id(ids[i], ""))
    return draft


def _read_specified(
    draft: Draft, number: Mapping[str, int], section: Section[schema.SpecifiedTask]
) -> dict[int, None]:
    """Fills in what the specification says; returns the tasks whose kind it does not say."""
    unnamed: dict[int, None] = {}
    for i, task in enumerate(section):
        if isinstance(task.category, str):
            draft.kinds[i] = intern(task.category)
        elif task.name and task.name != task.id:
            draft.kinds[i] = intern(task.name)
        else:
            unnamed[i] = None
        _link(draft, number, section, i, task)
        draft.inputs.append(draft.files.numbers(task.input_files))
        draft.outputs.append(draft.files.numbers(task.output_files))
    return unnamed


def _read_files(draft: Draft, files: Section[schema.SpecifiedFile]) -> None:
    for place, file in enumerate(files):
        if file.id in draft.files:
            raise files.fault(place, f"the file {file.id} is listed twice", "list each file once")
        draft.files.state_size(file.id, math.ceil(file.size_in_bytes), by_writer=True)


def _read_executed(
    draft: Draft,
    number: Mapping[str, int],
    section: Section[schema.ExecutedTask],
    unnamed: dict[int, None],
) -> None:
    seen = bytearray(len(draft.ids))
    for place, task in enumerate(section):
        i = number.get(task.id, -1)
        is_own = 0 <= i < len(draft.ids) - draft.outside
        if not is_own or seen[i]:
            problem = f"the task {task.id} is not in the specification"
            if is_own:
                problem = f"the task {task.id} is listed twice"
            raise section.fault(place, problem, "list each task of the specification once")
        seen[i] = 1
        if task.node_count is not None:
            draft.nodes[i] = task.node_count
        draft.disk_bytes[i] = math.ceil(task.disk_in_bytes or 0)
        draft.count(i, task.resources.items())
        program = _set_run(draft, i, task, task.core_count)
        if i in unnamed:
            draft.kinds[i] = intern(_kind_in_id(task.id, program))
            del unnamed[i]


def _read_old(source: JsonSource, name: str, tasks: Sequence[Raw], outside: Sequence[str]) -> Draft:
    """1.4: everything about a task in one place, and its files inside it."""
    names = list(Section(source, "workflow.tasks", tasks, schema.OldNames))
    section = Section(source, "workflow.tasks", tasks, schema.OldTask)
    distinct = len({n.name for n in names}) == len(names)
    ids = [n.name if n.id is None or (distinct and n.id in n.name) else n.id for n in names]
    number = {
        **_unambiguous(n.name for n in names),
        **_unambiguous(n.id for n in names),
        **unique_numbers(ids, outside),
    }
    draft = Draft(name, ids, outside)
    for i, task in enumerate(section):
        _link(draft, number, section, i, task)
        _read_old_files(draft, task, section, i)
        program = _set_run(draft, i, task, task.cores)
        if task.name != ids[i]:
            other_name = task.name
        else:
            other_name = None
        if task.category is not None:
            kind = task.category
        else:
            kind = other_name or _kind_in_id(ids[i], program)
        draft.kinds[i] = intern(kind)
    return draft


def _read_old_files(
    draft: Draft, task: schema.OldTask, section: Section[schema.OldTask], place: int
) -> None:
    used: dict[str, list[str]] = {"input": [], "output": []}
    for file in task.files:
        link = file.link.lower()
        if link not in used:
            raise section.fault(
                place, f"the file {file.name} has link {file.link!r}", "use input or output"
            )
        file_id = file.path + file.name
        draft.files.state_size(file_id, math.ceil(file.size_in_bytes), by_writer=link == "output")
        used[link].append(file_id)
    draft.inputs.append(draft.files.numbers(used["input"]))
    draft.outputs.append(draft.files.numbers(used["output"]))


def _unambiguous(names: Iterable[str | None]) -> dict[str, int]:
    """Where each name stands, for names that stand for one task only."""
    places: dict[str, int] = {}
    for i, name in enumerate(names):
        if name is not None:
            places[name] = i if name not in places else -1
    return {name: i for name, i in places.items() if i >= 0}


def _link(
    draft: Draft,
    number: Mapping[str, int],
    section: Section[Any],
    i: int,
    task: schema.SpecifiedTask | schema.OldTask,
) -> None:
    try:
        draft.parents.append_mapped(task.parents, number)
        draft.children.append_mapped(task.children, number)
    except KeyError as error:
        problem = f"the unknown task {error.args[0]} is among its parents or children"
        fix = "add that task, or remove it from the list of parents or children"
        raise section.fault(i, problem, fix) from None


def _set_run(
    draft: Draft, i: int, task: schema.ExecutedTask | schema.OldTask, cores: schema.Number | None
) -> str:
    """Fills in how the task ran; returns its program, or nothing."""
    if task.runtime_in_seconds is not None:
        draft.runtime_s[i] = task.runtime_in_seconds
    if cores is not None:
        draft.cores[i] = math.ceil(cores)
    if task.memory_in_bytes is not None:
        draft.memory_bytes[i] = math.ceil(task.memory_in_bytes)
    if task.command is None or task.command.program is None:
        return ""
    draft.commands[i] = (task.command.program, *task.command.arguments)
    return task.command.program


def _kind_in_id(task_id: str, program: str) -> str:
    if program and (task_id == program or task_id.startswith(f"{program}_")):
        return program
    return _RUNNING_NUMBER.sub("", task_id) or program
