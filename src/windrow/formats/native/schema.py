"""From the parts of a native file to task forms: keys known, values of the right kind, defaults
applied.

A form is one entry under `tasks`, not yet multiplied by its matrix and with its placeholders still
open. `native.schema.json`, which says the same for editors and other programs, is made from the
tables at the end of this module (`json_schema.py`).
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from windrow.errors import InputError
from windrow.formats.disk import AnyPath, bare_name
from windrow.formats.native.inside import NOWHERE, RUNTIMES, Container, Inside
from windrow.formats.native.text import Template
from windrow.formats.native.yaml_source import (
    Items,
    Node,
    Scalar,
    YamlTable,
    fault_at,
    read_included,
)
from windrow.model.bounds import COUNT_MAX, DURATION_S_MAX, SIZE_BYTES_MAX
from windrow.model.checkpoint import SIGNALS, Checkpoint
from windrow.model.duration import seconds_in
from windrow.model.resources import GPUS, Counts, is_name, typed_gpus
from windrow.model.rules import PRIORITY_MAX
from windrow.model.size import size_in
from windrow.model.volume import POLICIES

if TYPE_CHECKING:
    from windrow.formats.native.matrix import Matrix

SCHEMA_PATH = Path(__file__).with_name("native.schema.json")
"""The JSON Schema of the format."""

SHELL_NAMES = ("strict", "bash", "sh")
"""What `shell` may be, beside a list."""

RETRIES_MAX = 100
REPLICAS_MAX = 3

_AFTER = "write after: with the ids of other tasks"
_RUNTIME = "write runtime: for the time that you expect, time-limit: for the most that it may take"
_SITE = "write site: with the name of a site of windrow.toml, which says how jobs reach it"
_COMMAND = "write command: with what it runs; code: names a script among the files that it needs"
_VARS = "write vars: at the top of the file, or matrix: if the task is to be repeated"
_CONTAINER = "write container: with an image"
_UNSUPPORTED = {
    **dict.fromkeys(("gpu", "ngpus"), "write gpus: with a number"),
    **dict.fromkeys(("depends", "depends_on", "needs", "dependencies", "parents", "deps"), _AFTER),
    **dict.fromkeys(("threads", "cpus", "cpu", "ncpus", "ppn"), "write cores: with a number"),
    **dict.fromkeys(("mem", "mem_mb", "ram"), "write memory: with a size, such as 4GiB"),
    **dict.fromkeys(("time", "walltime", "time_min", "timelimit", "duration"), _RUNTIME),
    **dict.fromkeys(("script", "run", "shellcmd", "cmd", "exec", "executable", "rule"), _COMMAND),
    **dict.fromkeys(("params", "parameters", "config", "variables", "wildcards"), _VARS),
    **dict.fromkeys(("queue", "partition", "account", "executor", "cluster"), _SITE),
    **dict.fromkeys(("image", "docker", "singularity", "apptainer", "podman"), _CONTAINER),
    **dict.fromkeys(("module", "envmodules"), "write modules: with a list: [gcc/12]"),
    **dict.fromkeys(("virtualenv", "requirements", "pip"), "write venv: requirements.txt"),
    **dict.fromkeys(("environment", "environ", "variables_env"), "write env: {NAME: value}"),
    **dict.fromkeys(("cwd", "dir", "directory", "chdir"), "write workdir: with a folder"),
    **dict.fromkeys(("foreach", "for_each", "scatter", "expand"), "write matrix: {name: [a, b]}"),
    **dict.fromkeys(
        ("log", "logs", "stdout", "stderr"), "leave it out: windrow logs TASK shows it"
    ),
    **dict.fromkeys(("tmp", "tmpdir", "scratch"), "write mounts: with a scratch volume"),
    **dict.fromkeys(("retry", "attempts", "max_retries"), "write retries: with a number"),
    "timeout": "write time-limit: with the time after which it is ended",
}
_PART_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENV_NAME = re.compile(r"[^=\0]+")
_CHECKPOINT_EXAMPLE = 'write {files: "state-*", signal: USR1, notice: 2m}'
_VOLUME_EXAMPLE = (
    "write {from: db/, size: 600MB} for a read-only one, {scratch: 2GB} for one to write to"
)


@dataclass(frozen=True, slots=True)
class Field:
    """Text of the file with its placeholders, and the line where it stands."""

    template: Template
    line: int


class FileFacts(NamedTuple):
    """What is said of a file beside its name: its size, 0 if that is not known, and as in a
    `File`."""

    size_bytes: int = 0
    keep: bool | None = None
    role: str = ""
    stays: str = ""


class VolumeForm(NamedTuple):
    """One entry under `volumes`. `source`: where the files of a cache volume are. `per`: of which
    text each has one."""

    line: int
    size_bytes: int
    source: str = ""
    policy: str = ""
    per: Template | None = None


class FileForm(NamedTuple):
    """What a file says: the workflow's name, its tasks, and what it says of files and volumes
    outside of tasks."""

    name: str
    tasks: list[TaskForm]
    files: dict[str, FileFacts]
    """By names or patterns."""
    volumes: dict[str, VolumeForm]
    values: dict[str, str]
    """What `vars` says, for all tasks."""
    limits: dict[str, int]
    """How much of what tasks take there is for all of them together."""


@dataclass(frozen=True, slots=True)
class TaskForm:
    """One entry under `tasks`. A command with `is_shell` is one field of code, else a field for
    each argument.

    `shell` is what runs such code: one of SHELL_NAMES, or a program and its options. `keep` is for
    those of its outputs that tasks read, if the file itself says nothing. `mounts` are paths
    with names of volumes; `extract` says of the last ones of its `outputs` from where in its
    volumes they are taken.
    """

    line: int
    id: Field
    command: tuple[Field, ...]
    is_shell: bool
    shell: tuple[str, ...] = ("strict",)
    worker: tuple[str, ...] = ()
    inside: Inside = NOWHERE
    inside_at: tuple[tuple[str, Inside], ...] = ()
    """The same at sites where it is another one, by name."""
    inputs: tuple[Field, ...] = ()
    input_names: tuple[str, ...] = ()
    """What commands call each of them; empty: nothing."""
    code: tuple[Field, ...] = ()
    """More files that it reads, which are none of its `{inputs}`."""
    outputs: tuple[Field, ...] = ()
    output_names: tuple[str, ...] = ()
    expands: Field | None = None
    """Which of them is a workflow file, whose tasks join the run."""
    made: tuple[FileFacts, ...] = ()
    keep: bool | None = None
    outside: bool = False
    after: tuple[Field, ...] = ()
    edges: tuple[str, ...] = ()
    """Of each of them, one of EDGES."""
    at_end: bool = False
    env: tuple[tuple[str, Field], ...] = ()
    workdir: Field | None = None
    kind: str | None = None
    cores: int = 1
    nodes: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    counts: Counts = ()
    runtime_s: float | None = None
    limit_s: float = 0.0
    memories: tuple[int, ...] = ()
    limits_s: tuple[float, ...] = ()
    takes: tuple[tuple[str, int, int], ...] = ()
    """Names of limits, with what it takes of each and the line."""
    priority: int = 0
    stops: bool = False
    retries: int = 0
    replicas: int = 1
    where: str = ""
    matrix: Matrix | None = None
    checkpoint: Checkpoint | None = None
    checkpoint_files: tuple[Field, ...] = ()
    mounts: tuple[tuple[str, str, int], ...] = ()
    extract: tuple[Field, ...] = ()

    @property
    def part_names(self) -> frozenset[str]:
        """What the command calls some of its files, if it names them one by one."""
        return frozenset(name for name in _names_in(self.command) if "[" in name or "." in name)

    @property
    def common_kind(self) -> str:
        """What its tasks are compared by, unless each is alone."""
        return _common_kind(self.id, self.kind, self.matrix is not None)

    @property
    def matrix_names(self) -> frozenset[str]:
        """Names of the matrix that stand in its id."""
        return _names_in([self.id]) & frozenset(self.matrix.names if self.matrix else ())


def _names_in(fields: Iterable[Field]) -> frozenset[str]:
    return frozenset(name for field in fields for name in field.template.names)


def _common_kind(id_: Field, kind: str | None, has_matrix: bool) -> str:
    if kind:
        return kind
    if has_matrix:
        return stem_of(id_.template) or "task"
    return id_.template.fill(dict.fromkeys(id_.template.names, ""))


def stem_of(template: Template) -> str:
    """What all tasks of an id are called together: its text before the first placeholder, else all
    its text."""
    literals = template.literals
    return literals[0].rstrip("-_.:/ ") or "".join(literals).strip("-_.:/ ")


def read_form(path: AnyPath, root: Node) -> FileForm:
    """What the file says. InputError, with line and fix, for the first thing that cannot be
    used."""
    return _Reader(path).workflow(root)


class _Reader:
    """Turns nodes into values. Each method raises an InputError that names the key, the line and
    the fix."""

    def __init__(self, path: AnyPath) -> None:
        self._path = path
        self._home = ""
        self._open = [Path(path)]  # files that include each other

    def workflow(self, root: Node) -> FileForm:
        """What the file says, with those that it includes."""
        if not isinstance(root, YamlTable):
            raise self._fault(
                root, "not a workflow", "write a mapping with the keys name and tasks"
            )
        entries = self._entries(root, WORKFLOW_KEYS, "a workflow")
        if "tasks" not in entries and "include" not in entries:
            raise self._fault(root, "a workflow without tasks", "add tasks: with a list under it")
        if "name" in entries:
            name = self._name(entries["name"])
        else:
            name = bare_name(self._path)
        if "home" in entries:
            self._home = self.kind(entries["home"], "home")
        form = self._part(name, entries)
        if not form.tasks:
            raise self._fault(root, "a workflow without tasks", "add tasks: with a list under it")
        return form

    def _part(self, name: str, entries: Mapping[str, Node]) -> FileForm:
        """What one file says, behind what it includes."""
        included = self._included(entries["include"]) if "include" in entries else []
        defaults: dict[str, Any] = {}
        if "defaults" in entries:
            defaults = self._values(entries["defaults"], DEFAULT_KEYS, "defaults")
        files = self._facts(entries.get("files"), entries.get("stays"))
        volumes: dict[str, VolumeForm] = {}
        if "volumes" in entries:
            volumes = self._volumes(entries["volumes"])
        values: dict[str, str] = {}
        if "vars" in entries:
            values = self.variables(entries["vars"])
        limits: dict[str, int] = {}
        if "limits" in entries:
            limits = self.resources(entries["limits"], "limits")
        forms: list[TaskForm] = []
        if "tasks" in entries:
            kinds = self._kinds(entries.get("kinds"))
            sites = self._sites(entries.get("sites"))
            tasks = self._list_of_tasks(entries["tasks"])
            forms = [self._task(node, defaults, kinds, sites) for node in tasks.items]
            self._refuse_unused_kinds(entries.get("kinds"), forms)
        form = FileForm(name, forms, files, volumes, values, limits)
        for node, other in included:
            form = self._joined(node, form, other)
        return form

    def _included(self, node: Node) -> list[tuple[Node, FileForm]]:
        """What the files say that are named here, from the folder of the file that is read."""
        found = []
        for item in node.items if isinstance(node, Items) else (node,):
            path = Path(self._path).parent / self.kind(item, "include")
            if path in self._open:
                raise self._fault(item, f"{path.name} includes itself", "leave one of them out")
            if len(self._open) > INCLUDES_MAX:
                problem = f"more than {INCLUDES_MAX} files include each other"
                raise self._fault(item, problem, "include them side by side")
            self._open.append(path)
            root = read_included(path)
            if not isinstance(root, YamlTable):
                raise self._fault(root, "no part of a workflow", "write a mapping with tasks")
            entries = self._entries(root, INCLUDED_KEYS, "a file that is included")
            found.append((item, self._part("", entries)))
            self._open.pop()
        return found

    def _joined(self, node: Node, own: FileForm, other: FileForm) -> FileForm:
        """Both together, the other's tasks first. Of vars the own ones count."""
        for what in ("files", "volumes", "limits"):
            if both := getattr(own, what).keys() & getattr(other, what).keys():
                problem = f"{min(both)} is in {what} here and in a file that is included"
                raise self._fault(node, problem, "keep one of them")
        return FileForm(
            own.name,
            [*other.tasks, *own.tasks],
            {**other.files, **own.files},
            {**other.volumes, **own.volumes},
            {**other.values, **own.values},
            {**other.limits, **own.limits},
        )

    def _kinds(self, node: Node | None) -> dict[str, dict[str, Any]]:
        """Defaults for tasks of some kinds."""
        if node is None:
            return {}
        if not isinstance(node, YamlTable):
            fix = "write kinds with values: kinds: {align: {cores: 4}}"
            raise self._fault(node, f"kinds is {_shown(node)}", fix)
        return {
            name.text: self._values(values, DEFAULT_KEYS, f"kind {name.text}")
            for name, values in node.entries
        }

    def _sites(self, node: Node | None) -> dict[str, dict[str, Any]]:
        """What tasks run in at sites."""
        if node is None:
            return {}
        if not isinstance(node, YamlTable):
            fix = "write sites with values: sites: {west: {modules: [gcc/12]}}"
            raise self._fault(node, f"sites is {_shown(node)}", fix)
        return {
            self.site(name, "a name in sites"): self._values(values, AT_SITES, f"site {name.text}")
            for name, values in node.entries
        }

    def _refuse_unused_kinds(self, node: Node | None, forms: Iterable[TaskForm]) -> None:
        if not isinstance(node, YamlTable):
            return
        known = list(dict.fromkeys(form.common_kind for form in forms))
        for name, _ in node.entries:
            if name.text not in known:
                near = difflib.get_close_matches(name.text, known, n=1)
                fix = f"did you mean {near[0]}?" if near else f"the kinds are {', '.join(known)}"
                raise self._fault(name, f"no task is of the kind {name.text}", fix)

    def _list_of_tasks(self, tasks: Node) -> Items:
        if not isinstance(tasks, Items):
            raise self._fault(
                tasks,
                f"tasks is {_shown(tasks)}, not a list of tasks",
                "write each task as - id: NAME",
            )
        if not tasks.items:
            raise self._fault(
                tasks, "the list of tasks is empty", "write at least one task: - id: NAME"
            )
        return tasks

    def _facts(self, files: Node | None, stays: Node | None) -> dict[str, FileFacts]:
        """What is said of files outside of tasks, by name or pattern."""
        if not isinstance(stays, YamlTable | None):
            raise self._fault(
                stays, f"stays is {_shown(stays)}", "write files with sites: stays: {big.dat: west}"
            )
        if not isinstance(files, YamlTable | None):
            raise self._fault(
                files,
                f"files is {_shown(files)}",
                'write files: {"part-*": {size: 2GB, keep: false}}',
            )
        told: dict[str, FileFacts] = {}
        if files is not None:
            for file, facts in files.entries:
                told[file.text] = self.file(facts, f"files {file.text}")
        if stays is not None:
            for file, site in stays.entries:
                known = told.get(file.text, FileFacts())
                told[file.text] = known._replace(stays=self.site(site, "stays"))
        return told

    def _task(
        self,
        node: Node,
        usual: Mapping[str, Any],
        kinds: Mapping[str, Mapping[str, Any]],
        sites: Mapping[str, Mapping[str, Any]],
    ) -> TaskForm:
        values = self._values(node, TASK_KEYS, "a task")
        for key, example in (("id", "id: align"), ("command", "command: [program, argument]")):
            if key not in values:
                raise self._fault(node, f"a task without {key}", f"add {example}")
        of_kind: Mapping[str, Any] = {}
        if kinds:
            kind = _common_kind(values["id"], values.get("kind"), "matrix" in values)
            of_kind = kinds.get(kind, {})
        layers = (usual, of_kind, values)
        env = {name: value for one in layers for name, value in one.get("env", {}).items()}
        counts = {name: n for one in layers for name, n in one.get("resources", {}).items()}
        own = values
        values = {**usual, **of_kind, **values, "env": tuple(env.items())}
        counts |= values.pop(GPUS, ())
        values.pop("resources", None)
        values["counts"] = tuple(sorted((name, count) for name, count in counts.items() if count))
        values["where"] = _condition(values.pop("site", ""), values.get("where"))
        self._pair(values)
        self._spread_tries(values)
        self._refuse_short_limit(node, values)
        at = []
        if "worker" not in values:  # which is started outside of all this
            at = [(site, _at_site(values, said, own)) for site, said in sites.items()]
        values["inside"] = self._inside(node, values)
        if at:
            values["inside_at"] = tuple((site, self._inside(node, one)) for site, one in at)
        fields, is_shell = values.pop("command")
        if is_shell and "worker" in values:
            fix = "write the command as a list, which no shell reads: [python, fit.py, 3]"
            raise self._fault(node, "a task with a worker, and a command for the shell", fix)
        return TaskForm(line=node.line, command=fields, is_shell=is_shell, **values)

    def _inside(self, node: Node, values: dict[str, Any]) -> Inside:
        """What the command runs in."""
        said = {key: values.pop(key) for key in Inside._fields if key in values}
        inside = Inside(**{key: value for key, value in said.items() if value is not None})
        both = [key for key in ("venv", "conda", "container") if getattr(inside, key)]
        if len(both) > 1:
            fix = f"keep one of them; {both[1]}: none leaves out that of defaults"
            raise self._fault(node, f"a task with {both[0]} and {both[1]}", fix)
        if inside != NOWHERE and "worker" in values:
            problem = f"a task with a worker, and {next(key for key in said if said[key])}"
            raise self._fault(node, problem, "start the worker so that it has what it needs")
        return inside

    def plain_texts(self, node: Node, key: str) -> tuple[str, ...]:
        """Texts without placeholders; none at all is possible."""
        items = node.items if isinstance(node, Items) else (node,)
        return tuple(self.kind(item, key) for item in items)

    def lines(self, node: Node, key: str) -> tuple[str, ...]:
        """Lines for a shell, as they are."""
        items = node.items if isinstance(node, Items) else (node,)
        for item in items:
            self.text(item, key)
        return tuple(item.text for item in items if isinstance(item, Scalar))

    def place(self, node: Node, key: str) -> str | None:
        """A name or a path; None: none, whatever defaults say."""
        name = self.kind(node, key)
        return None if name == "none" else name

    def container(self, node: Node, key: str) -> Container | None:
        if not isinstance(node, YamlTable):
            image = self.place(node, key)
            return None if image is None else Container(image)
        entries = self._entries(node, CONTAINER_KEYS, key)
        if "image" not in entries:
            raise self._fault(node, f"a {key} without image", "name one: {image: debian:12}")
        options: tuple[str, ...] = ()
        if "options" in entries:
            options = self.plain_texts(entries["options"], f"options of {key}")
        runtime = self._one_of(entries.get("runtime"), RUNTIMES, key)
        return Container(self.kind(entries["image"], f"image of {key}"), runtime, options)

    @staticmethod
    def _pair(values: dict[str, Any]) -> None:
        """What was read together, as the form has it: files, and what is said of each."""
        extract = values.pop("extract", ())
        outputs = values.pop("outputs", ())
        expands = values.get("expands")
        if expands is not None and expands.template not in [one.template for one, *_ in outputs]:
            outputs = (*outputs, (expands, FileFacts(keep=True), "expands"))
        made = (*outputs, *((field, FileFacts(), "") for _, field in extract))
        values["extract"] = tuple(field for field, _ in extract)
        values["outputs"] = tuple(field for field, _, _ in made)
        values["made"] = tuple(facts for _, facts, _ in made)
        values["output_names"] = tuple(name for _, _, name in made)
        read = values.pop("inputs", ())
        values["inputs"] = tuple(field for field, _ in read)
        values["input_names"] = tuple(name for _, name in read)
        if "checkpoint" in values:
            values["checkpoint"], values["checkpoint_files"] = values["checkpoint"]
        after = values.pop("after", ())
        values["after"] = tuple(field for field, _ in after)
        values["edges"] = tuple(edge for _, edge in after)

    @staticmethod
    def _spread_tries(values: dict[str, Any]) -> None:
        """Lists with one entry for each try: the first counts, and the others are for retries."""
        for name, of_tries in (("memory_bytes", "memories"), ("limit_s", "limits_s")):
            if len(tries := values.pop(name, ())) > 1:
                values[of_tries] = tries
                values["retries"] = max(len(tries) - 1, values.get("retries", 0))
            if tries:
                values[name] = tries[0]

    def _refuse_short_limit(self, node: Node, values: Mapping[str, Any]) -> None:
        limit_s, runtime_s = values.get("limit_s"), values.get("runtime_s")
        if limit_s and runtime_s and runtime_s > limit_s:
            problem = f"a task that is expected to run for {runtime_s:g} s, and may for {limit_s:g}"
            raise self._fault(node, problem, "make time-limit longer than runtime")

    def _values(self, node: Node, known: tuple[str, ...], what: str) -> dict[str, Any]:
        """The values of the keys that are there, by the form's names for them."""
        if not isinstance(node, YamlTable):
            raise self._fault(
                node, f"{what} is not a mapping", f"write keys with values: {known[0]}: ..."
            )
        entries = self._entries(node, known, what)
        return {
            _FORM_NAMES.get(key, key): READERS[key](self, value, key)
            for key, value in entries.items()
        }

    def _entries(self, table: YamlTable, known: tuple[str, ...], what: str) -> dict[str, Node]:
        for key, _ in table.entries:
            if key.text not in known:
                near = difflib.get_close_matches(key.text, known, n=1, cutoff=0.75)
                fix = f"the keys are {', '.join(known)}"
                if near:
                    fix = f"did you mean {near[0]}?"
                fix = _UNSUPPORTED.get(key.text.lower()) or fix
                raise self._fault(key, f"{what} has no key {key.text!r}", fix)
        return {key.text: value for key, value in table.entries}

    def command(self, node: Node, key: str) -> tuple[tuple[Field, ...], bool]:
        if isinstance(node, Scalar):
            return (self.text(node, key),), True
        fix = "write command: [program, argument, ...], or a string for the shell"
        if not isinstance(node, Items) or not node.items:
            raise self._fault(node, "command is neither a string nor a list", fix)
        first = node.items[0]
        if not isinstance(first, Scalar) or not first.text.strip():
            raise self._fault(first, "command does not begin with a program", fix)
        return tuple(self._field(item, "an argument of command") for item in node.items), False

    def shell(self, node: Node, _key: str) -> tuple[str, ...]:
        fix = f"write {', '.join(SHELL_NAMES)}, or a program and its options: [python3, -c]"
        if isinstance(node, Scalar) and node.value in SHELL_NAMES:
            return (node.text,)
        if not isinstance(node, Items) or len(node.items) < 2:
            raise self._fault(node, f"shell is {_shown(node)}", fix)
        words = [self._field(item, "an option of shell") for item in node.items]
        if any(word.template.names for word in words) or not words[0].template.fill({}).strip():
            raise self._fault(
                node, "shell is not a program and its options, without placeholders", fix
            )
        return tuple(word.template.fill({}) for word in words)

    def worker(self, node: Node, key: str) -> tuple[str, ...]:
        """A program and its arguments, the same for all tasks of the entry."""
        if not isinstance(node, Items) or not node.items:
            fix = "write a program and its arguments: [python, -m, windrow.agent.worker, numpy]"
            raise self._fault(node, f"{key} is {_shown(node)}", fix)
        return tuple(self.kind(item, f"an argument of {key}") for item in node.items)

    def text(self, node: Node, key: str) -> Field:
        """A text with placeholders that says something."""
        field = self._field(node, key)
        if isinstance(node, Scalar) and not node.text.strip():
            raise self._fault(node, f"{key} is empty", "write something, or remove it")
        return field

    def texts(self, node: Node, key: str) -> tuple[Field, ...]:
        if isinstance(node, Items):
            items = node.items
        else:
            items = (node,)
        return tuple(self.text(item, key) for item in items)

    def inputs(self, node: Node, key: str) -> tuple[tuple[Field, str], ...]:
        """Each with the name that commands have for it, if it has one."""
        if not isinstance(node, YamlTable):
            return tuple((field, "") for field in self.texts(node, key))
        found: list[tuple[Field, str]] = []
        for name, files in node.entries:
            if not _PART_NAME.fullmatch(name.text):
                fix = "name inputs with letters, digits and _: inputs: {ref: genome.fa}"
                raise self._fault(name, f"the name {name.text!r} of an input", fix)
            fields = self.texts(files, f"{key} {name.text}")
            if not fields:
                raise self._fault(files, f"{key} {name.text} is an empty list", "name a file")
            found += ((field, name.text) for field in fields)
        return tuple(found)

    def outputs(self, node: Node, key: str) -> tuple[tuple[Field, FileFacts, str], ...]:
        """Each with what is said of it, and the name that commands have for it, if it has one."""
        if not isinstance(node, YamlTable):
            return tuple((field, FileFacts(), "") for field in self.texts(node, key))
        found: list[tuple[Field, FileFacts, str]] = []
        for name, said in node.entries:
            if _PART_NAME.fullmatch(name.text) and _is_path(said):
                found.append((self.text(said, key), FileFacts(), name.text))
            else:
                field = self.text(name, key)
                found.append((field, self.file(said, f"{key} {name.text}"), ""))
        return tuple(found)

    def after(self, node: Node, key: str) -> tuple[tuple[Field, str], ...]:
        """Each with what is wanted of it."""
        if not isinstance(node, YamlTable):
            return tuple((field, OK) for field in self.texts(node, key))
        return tuple(
            (self.text(name, key), self._one_of(kind, EDGES, f"{key} {name.text}"))
            for name, kind in node.entries
        )

    def memories(self, node: Node, key: str) -> tuple[int, ...]:
        """For each try."""
        return self._rising(node, key, [self.memory(item, key) for item in self._items(node, key)])

    def durations(self, node: Node, key: str) -> tuple[float, ...]:
        """For each try."""
        return self._rising(
            node, key, [self.duration(item, key) for item in self._items(node, key)]
        )

    def _items(self, node: Node, key: str) -> tuple[Node, ...]:
        if not isinstance(node, Items):
            return (node,)
        if not node.items:
            raise self._fault(node, f"{key} is an empty list", "write something, or remove it")
        return tuple(node.items)

    def _rising(self, node: Node, key: str, tries: list[Any]) -> tuple[Any, ...]:
        if tries != sorted(tries):
            raise self._fault(
                node, f"{key} becomes less", "give each try as much as the one before"
            )
        return tuple(tries)

    def takes(self, node: Node, key: str) -> tuple[tuple[str, int, int], ...]:
        """Names alone take one each."""
        if isinstance(node, YamlTable):
            self.resources(node, key)
            return tuple((name.text, self.count(n, key), name.line) for name, n in node.entries)
        return tuple((self.kind(item, key), 1, item.line) for item in self._items(node, key))

    def on_fail(self, node: Node, key: str) -> bool:
        return self._one_of(node, ON_FAIL, key) == "stop"

    def variables(self, node: Node) -> dict[str, str]:
        """What placeholders stand for in all tasks."""
        if not isinstance(node, YamlTable):
            fix = "write names with values: vars: {ref: genome.fa}"
            raise self._fault(node, f"vars is {_shown(node)}", fix)
        from windrow.formats.native.matrix import RESERVED  # noqa: PLC0415  (few files have any)

        found = {}
        for name, value in node.entries:
            if not _PART_NAME.fullmatch(name.text) or name.text in RESERVED:
                fix = f"use letters, digits and _, and none of {', '.join(sorted(RESERVED))}"
                raise self._fault(name, f"the name {name.text!r} in vars", fix)
            found[name.text] = self._variable(name, value)
        return found

    def _variable(self, name: Scalar, value: Node) -> str:
        if not isinstance(value, Scalar) or value.value is None or "\0" in value.text:
            fix = "write text or a number"
            raise self._fault(value, f"{name.text} in vars is {_shown(value)}", fix)
        return value.text

    def file(self, node: Node, key: str) -> FileFacts:
        """A size, nothing, or a mapping."""
        if not isinstance(node, YamlTable) or not node.entries:
            unknown = isinstance(node, Scalar) and node.value is None
            if unknown:
                return FileFacts()
            return FileFacts(self.memory(node, key))
        entries = self._entries(node, FILE_KEYS, key)
        role = entries.get("role")
        if role is not None:
            from windrow.storage.roles import Role  # noqa: PLC0415  (most are inferred)

            if not (isinstance(role, Scalar) and role.text in list(Role)):
                raise self._fault(
                    role, f"role of {key} is {_shown(role)}", f"write one of {', '.join(Role)}"
                )
        facts = FileFacts()
        if "size" in entries:
            facts = facts._replace(size_bytes=self.memory(entries["size"], f"size of {key}"))
        if "keep" in entries:
            facts = facts._replace(keep=self.truth(entries["keep"], f"keep of {key}"))
        if role is not None:
            facts = facts._replace(role=role.text)
        return facts

    def truth(self, node: Node, key: str) -> bool:
        if isinstance(node, Scalar):
            value = node.value
        else:
            value = None
        if not isinstance(value, bool):
            raise self._fault(
                node, f"{key} is {_shown(node)}", "write true or false, without quotes"
            )
        return value

    def env(self, node: Node, key: str) -> dict[str, Field]:
        if not isinstance(node, YamlTable):
            raise self._fault(
                node, "env is not a mapping", "write names with values: env: {LEVEL: 3}"
            )
        for name, _ in node.entries:
            if not _ENV_NAME.fullmatch(name.text):
                raise self._fault(
                    name, f"the variable {name.text!r}", "a name is not empty and has no ="
                )
        return {name.text: self._field(value, f"{key} {name.text}") for name, value in node.entries}

    def resources(self, node: Node, key: str) -> dict[str, int]:
        if not isinstance(node, YamlTable):
            raise self._fault(
                node, f"{key} is not a mapping", f"write names with numbers: {key}: {{matlab: 1}}"
            )
        for name, _ in node.entries:
            if name.text == GPUS or not is_name(name.text):
                fix = (
                    "write gpus, disk, memory, cores and nodes beside it; other names are of "
                    "letters, digits and _"
                )
                raise self._fault(name, f"the resource {name.text!r}", fix)
        return {name.text: self.count(value, key) for name, value in node.entries}

    def kind(self, node: Node, key: str) -> str:
        field = self.text(node, key)
        if field.template.names:
            name = field.template.names[0]
            raise self._fault(
                node, f"{key} has the placeholder {{{name}}}, but is one for all", "write it out"
            )
        return field.template.fill({})

    def site(self, node: Node, key: str) -> str:
        name = self.kind(node, key)
        if "'" in name or "," in name:
            raise self._fault(
                node, f"{key} is {name!r}", "write the name of a site, as --on takes it"
            )
        return name

    def where(self, node: Node, key: str) -> str:
        from windrow.model.conditions import parse_condition  # noqa: PLC0415  (few files have one)

        parse_condition(text := self.kind(node, key), str(self._path), node.line)
        return text

    def checkpoint(self, node: Node, key: str) -> tuple[Checkpoint, tuple[Field, ...]]:
        """What it says but for the files, whose names may have placeholders."""
        if not isinstance(node, YamlTable):
            raise self._fault(node, f"{key} is {_shown(node)}", _CHECKPOINT_EXAMPLE)
        entries = self._entries(node, CHECKPOINT_KEYS, key)
        if "files" not in entries:
            raise self._fault(
                node, f"a {key} without files", f"name those that it writes: {_CHECKPOINT_EXAMPLE}"
            )
        files = self._checkpoint_files(entries["files"], key)
        signal = self._checkpoint_signal(entries.get("signal"), key)
        if not signal and "every" in entries:
            raise self._fault(
                entries["every"],
                f"every of {key} without a signal",
                f"name the signal too: {_CHECKPOINT_EXAMPLE}",
            )
        times = {
            f"{name}_s": self.duration(entries[name], f"{name} of {key}")
            for name in _TIMES
            if name in entries
        }
        stays = "keep_existing" in entries and self.truth(
            entries["keep_existing"], f"keep_existing of {key}"
        )
        return Checkpoint((), signal, **times, keep_existing=stays), files

    def _checkpoint_files(self, node: Node, key: str) -> tuple[Field, ...]:
        files = self.texts(node, f"files of {key}")
        if not files:
            raise self._fault(node, f"files of {key} is an empty list", _CHECKPOINT_EXAMPLE)
        for field in files:
            path = "x".join(field.template.literals)
            is_outside = path.startswith("/") or ".." in path.split("/")
            if is_outside or not path.replace("*", "").strip("./ "):
                raise InputError(
                    self._path,
                    f"files of {key} cannot be {path!r}",
                    line=field.line,
                    fix='name some in the folder of the task: "state-*"',
                )
        return files

    def _checkpoint_signal(self, node: Node | None, key: str) -> str:
        if node is None:
            return ""
        if not (isinstance(node, Scalar) and node.text in SIGNALS):
            raise self._fault(
                node, f"signal of {key} is {_shown(node)}", f"write one of {', '.join(SIGNALS)}"
            )
        return node.text

    def _volumes(self, node: Node) -> dict[str, VolumeForm]:
        if not isinstance(node, YamlTable):
            fix = f"write names with what they are: {_VOLUME_EXAMPLE}"
            raise self._fault(node, f"volumes is {_shown(node)}", fix)
        found = {}
        for name, said in node.entries:
            key = f"volume {name.text}"
            if not is_name(name.text):
                fix = "name it by letters, digits and _, a letter first"
                raise self._fault(name, f"the volume {name.text!r}", fix)
            found[name.text] = self._volume(name, said, key)
        return found

    def _volume(self, name: Scalar, said: Node, key: str) -> VolumeForm:
        if not isinstance(said, YamlTable):
            raise self._fault(said, f"{key} is {_shown(said)}", _VOLUME_EXAMPLE)
        is_scratch = any(entry.text == "scratch" for entry, _ in said.entries)
        read = self._scratch if is_scratch else self._cache
        return read(name.line, said, key)

    def _scratch(self, line: int, said: YamlTable, key: str) -> VolumeForm:
        """A volume that tasks write to."""
        from windrow.agent.data.replicas import RULES  # noqa: PLC0415  (few files have volumes)

        entries = self._entries(said, SCRATCH_KEYS, key)
        policy = self._one_of(entries.get("replicas"), RULES, key)
        per = None
        if "per" in entries:
            per = self.text(entries["per"], f"per of {key}").template
        size_bytes = self.memory(entries["scratch"], f"scratch of {key}")
        return VolumeForm(line, size_bytes, "", policy, per)

    def _cache(self, line: int, said: YamlTable, key: str) -> VolumeForm:
        """A volume of files that already exist."""
        entries = self._entries(said, CACHE_KEYS, key)
        missing = {"from", "size"} - {entry.text for entry, _ in said.entries}
        if missing:
            raise self._fault(said, f"{key} without {min(missing)}", _VOLUME_EXAMPLE)
        policy = self._one_of(entries.get("policy"), POLICIES, key)
        source = self._at_home(self.kind(entries["from"], f"from of {key}"))
        size_bytes = self.memory(entries["size"], f"size of {key}")
        return VolumeForm(line, size_bytes, source, policy, None)

    def _one_of(self, node: Node | None, rules: Collection[str], key: str) -> str:
        if node is None:
            return ""
        if not (isinstance(node, Scalar) and node.text in rules):
            raise self._fault(node, f"{key} has {_shown(node)}", f"write one of {', '.join(rules)}")
        return node.text

    def _at_home(self, path: str) -> str:
        """The path from home, if that is given."""
        if not self._home or path.startswith("/") or "://" in path:
            return path
        return f"{self._home.rstrip('/')}/{path}"

    def mounts(self, node: Node, key: str) -> tuple[tuple[str, str, int], ...]:
        """Paths with volumes; of a list of volumes, each goes by its own name."""
        if not isinstance(node, YamlTable):
            items = node.items if isinstance(node, Items) else (node,)
            return tuple(
                (name, name, item.line) for item in items if (name := self.kind(item, key))
            )
        for path, _ in node.entries:
            if not _is_absolute(path.text):
                fix = "write absolute paths with volumes, like {/db: genome}, or a list of volumes"
                raise self._fault(path, f"{key} has the path {path.text!r}", fix)
        return tuple(
            (path.text, self.kind(name, f"{key} {path.text}"), path.line)
            for path, name in node.entries
        )

    def extract(self, node: Node, key: str) -> tuple[tuple[Field, Field], ...]:
        """Paths in volumes with the names as which they are kept, at home."""
        if not isinstance(node, YamlTable):
            raise self._fault(
                node, f"{key} is {_shown(node)}", "write extract: {/tmp/best: best.txt}"
            )
        fields = [
            (self.text(path, key), self.text(name, f"{key} {path.text}"))
            for path, name in node.entries
        ]
        return tuple(
            (path, replace(kept, template=kept.template.after(self._at_home)))
            for path, kept in fields
        )

    def matrix(self, node: Node, _key: str) -> Matrix:
        from windrow.formats.native.matrix import MatrixReader  # noqa: PLC0415  (few files have one)

        return MatrixReader(self._path).read(node)

    def duration(self, node: Node, key: str) -> float:
        if isinstance(node, Scalar):
            value = node.value
        else:
            value = None
        seconds = math.nan
        if isinstance(value, str):
            seconds = seconds_in(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            seconds = float(value)
        if seconds > DURATION_S_MAX:
            raise self._fault(
                node,
                f"{key} is {_shown(node)}",
                f"write at most {DURATION_S_MAX // 86400:,}d (31 years)",
            )
        if not seconds > 0:
            raise self._fault(
                node, f"{key} is {_shown(node)}", "write a time above 0, like 90, 90s, 5m or 1.5h"
            )
        return seconds

    def memory(self, node: Node, key: str) -> int:
        has_unit = isinstance(node, Scalar) and node.text[-1:].isalpha()
        if isinstance(node, Scalar):
            size = size_in(node.text)
        else:
            size = None
        if size is not None and size > SIZE_BYTES_MAX:
            raise self._fault(node, f"{key} is {_shown(node)}", "write at most 8192TiB (9 PB)")
        if not size or not has_unit:
            raise self._fault(
                node, f"{key} is {_shown(node)}", "write a size with its unit, like 500MB or 4GiB"
            )
        return math.ceil(size)

    def gpus(self, node: Node, key: str) -> Counts:
        """How many GPUs, of any type or of one."""
        if isinstance(node, Scalar) and isinstance(node.value, str):
            found = typed_gpus(node.value)
            if found is None or not 1 <= found[0][1] <= COUNTS[key][1]:
                raise self._fault(
                    node,
                    f"{key} is {_shown(node)}",
                    "write a whole number without quotes, or a type with one: a100:2",
                )
            return found
        return ((GPUS, self.count(node, key)),)

    def count(self, node: Node, key: str) -> int:
        least, most = COUNTS[key]
        value = node.whole if isinstance(node, Scalar) else None
        if value is None:
            fix = "write a whole number, without quotes"
            raise self._fault(node, f"{key} is {_shown(node)}", fix)
        if not least <= value <= most:
            fix = f"write a number from {least} to {most:,}"
            raise self._fault(node, f"{key} is {_shown(node)}", fix)
        return value

    def _name(self, node: Node) -> str:
        self.text(node, "name")
        if isinstance(node, Scalar):
            return node.text
        return ""

    def _field(self, node: Node, key: str) -> Field:
        if not isinstance(node, Scalar) or node.value is None:
            braces = 'put text that begins with a brace in quotes, like "{name}"'
            if isinstance(node, YamlTable):
                fix = braces
            else:
                fix = 'write text; "" is an empty one'
            raise self._fault(node, f"{key} is {_shown(node)}, not text", fix)
        if "\0" in node.text:
            raise self._fault(node, f"{key} has a NUL character", "remove it")
        return Field(Template.parse(node.text), node.line)

    def _fault(self, node: Node, problem: str, fix: str) -> InputError:
        return fault_at(self._path, node.line, problem, fix)


def _shown(node: Node) -> str:
    match node:
        case Items():
            return "a list"
        case YamlTable():
            return "a mapping"
        case Scalar():
            text = node.text if len(node.text) <= 60 else f"{node.text[:57]}..."
            if node.value is None:
                return "nothing"
            return repr(text)


WORKFLOW_KEYS = (
    *("name", "include", "vars", "defaults", "kinds", "sites", "limits", "tasks"),
    *("files", "stays", "home", "volumes"),
)
INCLUDED_KEYS = tuple(key for key in WORKFLOW_KEYS if key not in ("name", "stays", "home", "sites"))
INCLUDES_MAX = 10
OK = "ok"
IF_FAILED = "failed"
EDGES = (OK, "any", IF_FAILED)
"""What a task may want of one that it comes after: that it succeeds, that it is over, or that it
fails."""
ON_FAIL = ("continue", "stop")
CACHE_KEYS = ("from", "size", "policy")
SCRATCH_KEYS = ("scratch", "per", "replicas")
FILE_KEYS = ("size", "keep", "role")
AT_SITES = ("setup", "modules", "container")
"""What a site may say of what tasks run in."""
CONTAINER_KEYS = ("image", "runtime", "options")
_TIMES = ("notice", "every")
CHECKPOINT_KEYS = ("files", "signal", *_TIMES, "keep_existing")
COUNTS = {
    "cores": (1, COUNT_MAX),
    "retries": (0, RETRIES_MAX),
    "priority": (-PRIORITY_MAX, PRIORITY_MAX),
    "limits": (1, COUNT_MAX),
    "takes": (1, COUNT_MAX),
    "replicas": (1, REPLICAS_MAX),
} | dict.fromkeys(("nodes", GPUS, "resources"), (0, COUNT_MAX))
_FORM_NAMES = {
    "memory": "memory_bytes",
    "disk": "disk_bytes",
    "runtime": "runtime_s",
    "time-limit": "limit_s",
    "on-fail": "stops",
    "at-end": "at_end",
}
READERS: Mapping[str, Callable[[_Reader, Node, str], Any]] = {
    "id": _Reader.text,
    "command": _Reader.command,
    "shell": _Reader.shell,
    "worker": _Reader.worker,
    "setup": _Reader.lines,
    "modules": _Reader.plain_texts,
    "venv": _Reader.place,
    "conda": _Reader.place,
    "container": _Reader.container,
    "inputs": _Reader.inputs,
    "code": _Reader.texts,
    "outputs": _Reader.outputs,
    "expands": _Reader.text,
    "keep": _Reader.truth,
    "outside": _Reader.truth,
    "after": _Reader.after,
    "at-end": _Reader.truth,
    "cores": _Reader.count,
    "nodes": _Reader.count,
    "memory": _Reader.memories,
    "gpus": _Reader.gpus,
    "disk": _Reader.memory,
    "resources": _Reader.resources,
    "runtime": _Reader.duration,
    "time-limit": _Reader.durations,
    "retries": _Reader.count,
    "on-fail": _Reader.on_fail,
    "takes": _Reader.takes,
    "priority": _Reader.count,
    "replicas": _Reader.count,
    "env": _Reader.env,
    "workdir": _Reader.text,
    "kind": _Reader.kind,
    "site": _Reader.site,
    "where": _Reader.where,
    "matrix": _Reader.matrix,
    "checkpoint": _Reader.checkpoint,
    "mounts": _Reader.mounts,
    "extract": _Reader.extract,
}

WAYS = {key: how.__name__ for key, how in READERS.items()}
"""How each key of a task is read."""

TASK_KEYS = tuple(READERS)
"""What a task may say."""

DEFAULT_KEYS = (
    *(
        "shell",
        "cores",
        "nodes",
        "memory",
        "gpus",
        "disk",
        "resources",
        "runtime",
        "time-limit",
        "retries",
        "on-fail",
        "takes",
        "priority",
        "env",
        "workdir",
    ),
    *("site", "where", "checkpoint", "keep"),
    *("setup", "modules", "venv", "conda", "container"),
)
"""What `defaults` may say for all tasks."""


def _at_site(
    values: Mapping[str, Any], said: Mapping[str, Any], own: Mapping[str, Any]
) -> dict[str, Any]:
    """What a task runs in at a site that says this: what is its `own` stays."""
    ways = ("venv", "conda", "container")
    mine = {key: own[key] for key in Inside._fields if key in own}
    said = {key: one for key, one in said.items() if key not in ways or not mine.keys() & {*ways}}
    usual = {key: one for key, one in values.items() if key in Inside._fields}
    if "container" in said:
        usual = {key: one for key, one in usual.items() if key not in ways}
    return {**usual, **said, **mine}


def _condition(site: str, where: str | None) -> str:
    """Both, as one condition."""
    conditions = []
    if site:
        conditions.append(f"site == '{site}'")
    if where is not None:
        conditions.append(f"({where})")
    return " && ".join(conditions)


def _is_path(said: Node) -> bool:
    """Whether what is said of an output is its path, and not its size."""
    return (
        isinstance(said, Scalar)
        and isinstance(said.value, str)
        and not said.text[:1].isdigit()
        and bool(said.text.strip())
    )


def _is_absolute(path: str) -> bool:
    return path.startswith("/") and bool(path.strip("/.")) and not {"{", "\0"}.intersection(path)
