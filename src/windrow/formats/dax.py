"""Reading DAX, the XML of the Pegasus workflow system: version 2.1 (the gallery's generators) and
3.x.

A `<job>` becomes a task: `id`, `name` (its kind), `runtime` (or the profile pegasus:runtime), the
profiles pegasus:cores, pegasus:nodes and pegasus:memory (megabytes), and its `<argument>` as a
command. `<uses>` gives its files; one that is inout is both read and written. `<child>` and
`<parent>` give the edges, and nothing else does: files shared by two tasks make no edge that is not
also said. Real files repeat parents and uses, which then count once, and state different sizes for
one file (see `FileTable` for what holds).

Sub-workflows (`<dax>`, `<dag>`) are refused: the tasks in them are not in the file.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern

from windrow.errors import InputError
from windrow.formats.disk import AnyPath, bare_name
from windrow.formats.draft import Draft, FileTable, unique_numbers
from windrow.formats.xml_elements import Element, stream_elements
from windrow.model import Workflow

_MEGABYTE = 10**6
_LARGEST = 2**53
_NO_NAMES = ("", "test")  # the Pegasus generator calls every workflow "test"
_LINKS = {"input": (True, False), "output": (False, True), "inout": (True, True)}
_IDLE_LINKS = ("none", "checkpoint")
_NEEDS = ("runtime", "cores", "nodes", "memory")


_Ref = tuple[str, int]  # which job a `<child>` or `<parent>` means, and the line where it does


@dataclass(slots=True)
class _Job:
    """What a `<job>` says, and the parents that `<child>` gives it."""

    id: str
    kind: str
    runtime_s: float
    cores: int
    nodes: int
    memory_bytes: int
    command: tuple[str, ...]
    inputs: list[str]
    outputs: list[str]
    parents: list[int] = field(default_factory=list)


def read_dax(path: AnyPath, outside: Sequence[str] = ()) -> Workflow:
    """The workflow in a DAX file, `outside` as for `Draft`. InputError or WorkflowError if there
    is none. Linear."""
    return _Dax(path).draft(outside).workflow()


class _Dax:
    """One file being read: jobs by id, in file order."""

    def __init__(self, path: AnyPath) -> None:
        self._path = path
        self._jobs: list[_Job] = []
        self._files = FileTable()
        self._edges: list[tuple[_Ref, _Ref]] = []
        elements = stream_elements(path)
        root = next(elements)
        if root.tag != "adag":
            raise self._fault(
                root, f"not DAX: its outermost element is <{root.tag}>, not <adag>", ""
            )
        name = root.attributes.get("name", "")
        if name in _NO_NAMES:
            self._name = bare_name(path)
        else:
            self._name = name
        for element in elements:
            self._add(element)

    def draft(self, outside: Sequence[str]) -> Draft:
        """The jobs as columns, edges resolved."""
        ids = [job.id for job in self._jobs]
        number = unique_numbers(ids, outside)
        own = unique_numbers(ids)
        for child, parent in self._edges:
            self._jobs[self._known(child, own)].parents.append(self._known(parent, number))
        draft = Draft(self._name, ids, outside)
        draft.files = self._files
        for i, job in enumerate(self._jobs):
            draft.kinds[i] = intern(job.kind)
            draft.runtime_s[i] = job.runtime_s
            draft.memory_bytes[i] = job.memory_bytes
            draft.cores[i] = job.cores
            draft.nodes[i] = job.nodes
            draft.parents.append(job.parents)
            draft.children.append(())
            draft.inputs.append(draft.files.numbers(job.inputs))
            draft.outputs.append(draft.files.numbers(job.outputs))
            if job.command:
                draft.commands[i] = job.command
        return draft

    def _add(self, element: Element) -> None:
        match element.tag:
            case "job":
                self._jobs.append(self._job(element))
            case "child":
                child = self._ref(element)
                self._edges.extend(
                    (child, self._ref(parent)) for parent in element.children("parent")
                )
            case "file":
                self._state_size(self._attribute(element, "name", "file"), element, by_writer=False)
            case "dax" | "dag":
                problem = f"the sub-workflow <{element.tag}> is in another file"
                raise self._fault(element, problem, "plan it into this one, or leave it out")

    def _needs(self, element: Element) -> dict[str, float]:
        """What profiles say; the run time is rather the job's own attribute, if it has one."""
        needs: dict[str, float] = {}
        for profile in element.children("profile"):
            key = profile.attributes.get("key", "").lower()
            if profile.attributes.get("namespace", "").lower() == "pegasus" and key in _NEEDS:
                needs[key] = self._number(profile, key, profile.text)
        if "runtime" in element.attributes:
            needs["runtime"] = self._number(element, "runtime", element.attributes["runtime"])
        return needs

    def _job(self, element: Element) -> _Job:
        kind = self._attribute(element, "name")
        inputs, outputs = self._uses(element)
        needs = self._needs(element)
        return _Job(
            id=self._attribute(element, "id"),
            kind=kind,
            runtime_s=needs.get("runtime", math.nan),
            cores=math.ceil(needs.get("cores", 1)),
            nodes=math.ceil(needs.get("nodes", 0)),
            memory_bytes=math.ceil(needs.get("memory", 0) * _MEGABYTE),
            command=_command(kind, next(element.children("argument"), None)),
            inputs=inputs,
            outputs=outputs,
        )

    def _uses(self, job: Element) -> tuple[list[str], list[str]]:
        inputs: list[str] = []
        outputs: list[str] = []
        for uses in job.children("uses"):
            link = self._attribute(uses, "link").lower()
            if link in _IDLE_LINKS:
                continue
            if link not in _LINKS:
                raise self._fault(uses, f"link is {link!r}", "use input, output or inout")
            file_id = self._attribute(uses, "name", "file")
            reads, writes = _LINKS[link]
            self._state_size(file_id, uses, by_writer=writes)
            inputs += [file_id] * reads
            outputs += [file_id] * writes
        return inputs, outputs

    def _state_size(self, file_id: str, element: Element, *, by_writer: bool) -> None:
        texts = [
            item.text
            for item in element.children("metadata")
            if item.attributes.get("key") == "size"
        ]
        text = element.attributes.get("size", texts[0] if texts else None)
        if text is None:
            self._files.number(file_id)
        else:
            self._files.state_size(
                file_id, math.ceil(self._number(element, "size", text)), by_writer=by_writer
            )

    def _attribute(self, element: Element, *names: str) -> str:
        """The first of these attributes that the element has."""
        for name in names:
            if name in element.attributes:
                return element.attributes[name]
        wanted = " or ".join(repr(name) for name in names)
        raise self._fault(element, f"<{element.tag}> without the attribute {wanted}", "add it")

    def _number(self, element: Element, what: str, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not abs(value) <= _LARGEST:
            raise self._fault(element, f"{what} is {text!r}, not a valid number", "fix it")
        return value

    def _ref(self, element: Element) -> _Ref:
        return self._attribute(element, "ref"), element.line

    def _known(self, ref: _Ref, number: Mapping[str, int]) -> int:
        job, line = ref
        if job not in number:
            problem = f"a dependency on the unknown job {job}"
            fix = "add that job, or remove the dependency"
            raise InputError(self._path, problem, line=line, fix=fix)
        return number[job]

    def _fault(self, element: Element, problem: str, fix: str) -> InputError:
        return InputError(self._path, problem, line=element.line, fix=fix)


def _command(kind: str, argument: Element | None) -> tuple[str, ...]:
    """The program, then the argument's words, with the names of files written out; () if there
    is no argument."""
    if argument is None:
        return ()
    items = argument.content
    parts = (
        i if isinstance(i, str) else i.attributes.get("name", i.attributes.get("file", ""))
        for i in items
    )
    return (kind, *"".join(parts).split())
