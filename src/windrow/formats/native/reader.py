"""Native workflow files (`.yaml`, `.yml`): tasks with real commands, read into a Runnable.

Rule 1: a task comes after those that `after` names and after those that write what it reads.
Rule 2: every file has at most one writer. Rule 3: what a file says never reaches a shell as code,
except the shell code that stands in `command` itself (see `text`).

The way of a file: text, to parts with lines (`yaml_source`), to checked forms (`schema`),
multiplied by their matrix (`matrix`) and linked here. docs/reference/native-workflows.md describes
the format.
"""

from __future__ import annotations

import difflib
import math
import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import intern

from windrow.errors import InputError
from windrow.formats.disk import AnyPath, format_suffix
from windrow.formats.draft import Draft, FileTable
from windrow.formats.native.commands import Commands, refuse_unknown_placeholders
from windrow.formats.native.inside import NOWHERE, Inside
from windrow.formats.native.places import Places, files_like
from windrow.formats.native.schema import (
    IF_FAILED,
    OK,
    Field,
    FileFacts,
    FileForm,
    TaskForm,
    VolumeForm,
    read_form,
    stem_of,
)
from windrow.formats.native.yaml_source import fault_at, read_yaml
from windrow.model import CycleError, Runnable, Step, WorkflowError, order_and_levels
from windrow.model.checkpoint import Checkpoint
from windrow.model.graph import Adjacency
from windrow.model.resources import GPUS, gpu_type
from windrow.model.rules import PLAIN, Rules, Take
from windrow.model.runnable import Made
from windrow.model.volume import Extract, VolumeMount

DEFAULT_RUNTIME_S = 60.0
"""The run time of a task that states none, until one is learned: a placeholder, and marked as
such."""

SUFFIXES = (".yaml", ".yml")
TASKS_MAX = 1_000_000
DEPENDENCIES_MAX = 10_000_000


def read_native(
    path: AnyPath, run: Runnable | None = None, values: Mapping[str, str] | None = None
) -> Runnable:
    """The workflow in a native file, with a step for each task. InputError, with line and fix,
    if there is none.

    `values`: of names in its `vars`, in place of what the file says. If it adds to a `run`, the
    tasks of the run follow its own, without steps.
    """
    form = read_form(path, read_yaml(path))
    for name in values or ():
        if name not in form.values:
            known = ", ".join(form.values) or "none"
            near = difflib.get_close_matches(name, form.values, n=1)
            fix = f"did you mean {near[0]}?" if near else f"its vars are: {known}"
            raise InputError(path, f"there is no {name} in vars to be set", fix=fix)
    form = form._replace(values={**form.values, **(values or {})})
    return _Expansion(path, form, run).runnable()


class _Names:
    """Which of many names does `align-*` mean? Names are numbered as given, and answers come in
    that order.

    `*` stands for any characters; for paths, for any but `/`. It costs little if the pattern
    begins with text.
    """

    def __init__(self, names: Iterable[str], *, are_paths: bool = False) -> None:
        self._sorted = sorted((name, number) for number, name in enumerate(names))
        if are_paths:
            self._any = "[^/]*"
        else:
            self._any = ".*"
        self._found: dict[str, tuple[int, ...]] = {}

    def matching(self, pattern: str) -> tuple[int, ...]:
        """The numbers of the names that the pattern means, ascending."""
        if pattern in self._found:
            return self._found[pattern]
        pieces = pattern.split("*")
        whole = re.compile(self._any.join(map(re.escape, pieces)), re.DOTALL)
        found: list[int] = []
        for place in range(bisect_left(self._sorted, (pieces[0], 0)), len(self._sorted)):
            name, number = self._sorted[place]
            if not name.startswith(pieces[0]):
                break
            if whole.fullmatch(name):
                found.append(number)
        self._found[pattern] = tuple(sorted(found))
        return self._found[pattern]


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task: its form, and the values of its matrix."""

    form: TaskForm
    id: str
    values: dict[str, str]
    workdir: str


@dataclass(frozen=True, slots=True)
class _TaskFiles:
    """What a task reads and writes: first what its form names, then what volumes bring along, or
    what is extracted from them."""

    inputs: list[str]
    outputs: list[str]
    inputs_named: int
    outputs_named: int


class _Expansion:
    """The forms of one file, multiplied and linked. Tasks are known by number, files by the names
    the Workflow has."""

    def __init__(self, path: AnyPath, file: FileForm, run: Runnable | None) -> None:
        forms = file.tasks
        self._path = path
        self._outside: Sequence[str] = ()
        if run is not None:
            self._outside = run.workflow.ids
        self._name = file.name
        self._base = str(Path(path).absolute().parent)
        self._values = file.values
        self._limits = _limits_of(run) | file.limits
        for form in forms:
            refuse_unknown_placeholders(path, form, file.values)
        self._rows = list(self._expanded(forms))
        self._checkpoints: list[tuple[str, str, int]] = []  # pattern, task, line
        # If tasks run in different folders, only whole paths name a file in the same way for all
        # of them.
        self._whole_paths = any(row.workdir != self._base for row in self._rows)
        self._number = self._numbers()
        self._families = self._families_of(forms, run)
        self._places = Places(path)
        for row in self._rows:
            self._refuse_places(row)
        self._there: dict[str, list[str]] = {}  # files that exist, by patterns
        self._outputs = [self._files(row, row.form.outputs) for row in self._rows]
        self._writer = self._writers(run)
        self._ids = _Names(self._number)
        self._written = _Names(self._writer, are_paths=True)
        self._written_list = list(self._writer)
        self._told = {
            self._called(joined(self._base, name)): facts for name, facts in file.files.items()
        }
        self._mounts: Sequence[tuple[VolumeMount, ...]] = ()
        self._extracts: Sequence[tuple[Extract, ...]] = ()
        if file.volumes or any(form.mounts or form.extract for form in forms):
            self._mount(file.volumes)

    def _families_of(self, forms: Sequence[TaskForm], run: Runnable | None) -> dict[str, list[int]]:
        """The tasks of each form with a matrix, and of each kind of the run. A name that both have
        means those of this file."""
        families: dict[str, list[int]] = {}
        if run is not None:
            for number, kind in enumerate(run.workflow.kinds, len(self._rows)):
                if kind not in self._number:
                    families.setdefault(kind, []).append(number)
        for stem in {_stem(form) for form in forms if form.matrix}:
            families.pop(stem, None)
        for number, row in enumerate(self._rows):
            if row.form.matrix and (stem := _stem(row.form)):
                families.setdefault(stem, []).append(number)
        return families

    def runnable(self) -> Runnable:
        """The workflow and its steps."""
        draft = Draft(self._name, [row.id for row in self._rows], self._outside)
        steps: list[Step] = []
        commands = Commands(self._path)
        edges = 0
        for number, row in enumerate(self._rows):
            files = self._all_files(number)
            parents = self._parents(number, files.inputs)
            loose = self._loose(number, parents)
            parents += [parent for parent in loose if parent not in parents]
            edges += len(parents)
            if edges > DEPENDENCIES_MAX:
                problem = f"more than {DEPENDENCIES_MAX:,} dependencies"
                fix = "put a task between the families that meet here"
                raise self._fault(row.form.line, problem, fix)
            draft.parents.append(parents)
            draft.children.append(())
            self._draft_task(draft, number, files)
            if (rules := self._rules(number, loose)) != PLAIN:
                draft.rules[number] = rules
            steps.append(self._step(commands, number, files))
            draft.commands[number] = steps[-1].command
        if self._checkpoints:
            self._refuse_shared_checkpoints(file.id for file in draft.files.files())
        self._tell_of_files(draft.files)
        self._tell_of_volumes(draft.files)
        try:
            return Runnable(draft.workflow(), tuple(steps))
        except WorkflowError as error:
            line = self._line_of_circle(draft.parents.adjacency())
            raise InputError(self._path, str(error), line=line, fix="break it") from None

    def _loose(self, number: int, parents: Sequence[int]) -> list[int]:
        """The tasks of which it is enough that they are over. `parents` have to succeed."""
        row = self._rows[number]
        at_end = [n for n in parents if n < len(self._rows) and self._rows[n].form.at_end]
        if at_end and not row.form.at_end:
            problem = f"{row.id} comes after {self._rows[at_end[0]].id}, which runs at the end"
            raise self._fault(row.form.line, problem, "write at-end: true for it, too")
        loose = dict[int, None]()
        for field, edge in zip(row.form.after, row.form.edges, strict=True):
            for task in self._named(row, field) if edge != OK else ():
                if task in parents:
                    problem = (
                        f"{row.id} comes after {list(self._number)[task]}, whatever becomes of "
                        "it, and needs it to succeed"
                    )
                    raise self._fault(
                        field.line, problem, "write ok, or read nothing that it makes"
                    )
                loose[task] = None
        if row.form.at_end:
            others = (n for n, other in enumerate(self._rows) if not other.form.at_end)
            needed = set(parents)
            loose |= dict.fromkeys(n for n in others if n not in needed)
        if number in loose:
            raise self._fault(row.form.line, f"{row.id} comes after itself", "name others in after")
        return list(loose)

    def _rules(self, number: int, loose: Sequence[int]) -> Rules:
        form = self._rows[number].form
        takes = []
        for name, taken, line in form.takes:
            if name not in self._limits:
                fix = f"write limits: {{{name}: 2}} at the top of the file"
                if near := difflib.get_close_matches(name, self._limits, n=1):
                    fix = f"did you mean {near[0]}?"
                raise self._fault(line, f"takes has {name}, which is not a limit", fix)
            if taken > (most := self._limits[name]):
                problem = (
                    f"{self._rows[number].id} takes {taken} of {name}, of which there is {most}"
                )
                raise self._fault(line, problem, "take less, or raise the limit")
            takes.append(Take(name, taken, most))
        return Rules(
            tuple(takes),
            form.priority,
            tuple(self._ids_of(loose)),
            form.stops,
            form.memories,
            form.limits_s,
            self._expands(number),
            tuple(self._ids_of(self._must_fail(number))),
        )

    def _must_fail(self, number: int) -> list[int]:
        row = self._rows[number]
        edges = zip(row.form.after, row.form.edges, strict=True)
        fields = (field for field, edge in edges if edge == IF_FAILED)
        return list(dict.fromkeys(task for field in fields for task in self._named(row, field)))

    def _expands(self, number: int) -> str:
        """The file that says which tasks join the run after this one."""
        row = self._rows[number]
        if row.form.expands is None:
            return ""
        (file,) = self._files(row, [row.form.expands])
        if format_suffix(file) not in SUFFIXES:
            problem = f"{row.id} expands {file}, which is not a workflow file by its name"
            raise self._fault(row.form.expands.line, problem, "name one: expands: more.yaml")
        return file

    def _ids_of(self, numbers: Iterable[int]) -> Iterator[str]:
        own = len(self._rows)
        for n in numbers:
            yield self._rows[n].id if n < own else self._outside[n - own]

    def _all_files(self, number: int) -> _TaskFiles:
        row = self._rows[number]
        inputs = self._inputs(row)
        inputs_named = len(inputs)
        inputs = list(dict.fromkeys([*inputs, *self._files(row, row.form.code)]))
        outputs = list(dict.fromkeys(self._outputs[number]))
        outputs_named = len(outputs) - len(row.form.extract)
        if self._mounts:
            for mount in self._mounts[number]:
                if mount.before and "://" not in mount.before:
                    inputs.append(self._called(mount.before))
                if mount.after:
                    outputs.append(self._called(mount.after))
        return _TaskFiles(inputs, outputs, inputs_named, outputs_named)

    def _draft_task(self, draft: Draft, number: int, files: _TaskFiles) -> None:
        """What its form says of the task, and its files."""
        row = self._rows[number]
        form = row.form
        draft.kinds[number] = intern(_kind(row))
        _draft_needs(draft, number, form)
        draft.inputs.append(draft.files.numbers(files.inputs))
        draft.outputs.append(draft.files.numbers(files.outputs))
        for file, facts in zip(self._outputs[number], form.made, strict=True):
            _tell(draft.files, file, facts)

    def _step(self, commands: Commands, number: int, files: _TaskFiles) -> Step:
        """What it takes to run the task."""
        row = self._rows[number]
        form = row.form
        command, env, elsewhere = commands.filled(
            form,
            row.id,
            row.values,
            files.inputs[: files.inputs_named],
            files.outputs[: files.outputs_named],
            self._parts(number, files),
        )
        if form.replicas > 1:
            self._refuse_replicas(row, has_folders=bool(elsewhere))
        volumes: tuple[tuple[VolumeMount, ...], tuple[Extract, ...]] = ((), ())
        if self._mounts:
            volumes = (self._mounts[number], self._extracts[number])
        return Step(
            command,
            row.workdir,
            env,
            form.retries,
            form.runtime_s is not None,
            elsewhere,
            form.where,
            form.replicas,
            self._checkpoint(row),
            *volumes,
            form.limit_s,
            form.worker,
            *self._inside(row, files, env, row.form.inside),
            tuple(
                (site, self._inside(row, files, env, inside)[0])
                for site, inside in row.form.inside_at
            ),
        )

    def _inside(
        self,
        row: TaskRow,
        files: _TaskFiles,
        env: Sequence[tuple[str, str]],
        inside: Inside,
    ) -> tuple[tuple[str, ...], Made | None]:
        """What stands before its command, and what has to be made for that."""
        if inside == NOWHERE:
            return (), None
        whole = (joined(row.workdir, name) for name in (*files.inputs, *files.outputs))
        folders = (posixpath.dirname(path) for path in whole)
        far = (path for path in folders if not f"{path}/".startswith(f"{self._base}/"))
        places = dict.fromkeys([self._base, *far])
        if not f"{row.workdir}/".startswith(f"{self._base}/"):
            places[row.workdir] = None
        names = [name for name, _ in env]
        has_gpus = any(name == GPUS or gpu_type(name) for name, _ in row.form.counts)
        words = inside.words(self._base, list(places), names, has_gpus=has_gpus)
        return words, inside.made(self._base)

    def _refuse_replicas(self, row: TaskRow, *, has_folders: bool) -> None:
        """Attempts that run at once need outputs of their own, and have one set of checkpoints."""
        if row.form.checkpoint:
            what = "no checkpoints"
            fix = "leave one of them out"
        elif not has_folders:
            what = "no outputs"
            fix = "name them by {outputs} alone in the command, or leave replicas out"
        else:
            return
        problem = f"task {row.id} has replicas, but {what} that can be kept apart"
        raise self._fault(row.form.line, problem, fix)

    def _tell_of_volumes(self, files: FileTable) -> None:
        """What a mount leaves goes when nothing needs it; what caches come from stays."""
        for mount in dict.fromkeys(mount for mounts in self._mounts for mount in mounts):
            if "://" in mount.before:
                continue
            facts = FileFacts(mount.size_bytes)
            if not mount.is_cache:
                facts = FileFacts(mount.size_bytes, keep=False, role="pipeline")
            _tell(files, self._called(mount.after or mount.before), facts)

    def _mount(self, volumes: Mapping[str, VolumeForm]) -> None:
        """What tasks leave in scratch volumes for the next are files, too."""
        from windrow.formats.native.volumes import Volumes  # noqa: PLC0415  (few files have some)

        read = [self._inputs(row) for row in self._rows]
        parents = [self._parents(number, files) for number, files in enumerate(read)] + [
            [] for _ in self._outside
        ]
        whole = [
            [[joined(self._base, file) for file in files] for files in sides]
            for sides in (read, self._outputs)
        ]
        every = list(zip(*whole, strict=True))
        self._mounts, self._extracts = Volumes(self._base, self._name, volumes, self._fault).mounts(
            self._rows, every, parents
        )
        for number, mounts in enumerate(self._mounts):
            self._writer |= {self._called(mount.after): number for mount in mounts if mount.after}

    def _tell_of_files(self, files: FileTable) -> None:
        """What is said of files outside of tasks; then what tasks say of their outputs, if tasks
        read them."""
        if self._told:
            self._tell_of_outside(files)
        if any(row.form.keep is not None for row in self._rows):
            read = {file for row in self._rows for file in self._inputs(row)}
            for number, row in enumerate(self._rows):
                if row.form.keep is not None:
                    for file in read.intersection(self._outputs[number]):
                        files.more.setdefault(file, {}).setdefault("keep", row.form.keep)

    def _refuse_unused(self, pattern: str, facts: FileFacts) -> None:
        what = "is described"
        if facts.stays:
            what = f"is to stay at {facts.stays}"
        problem = f"{pattern} {what}, but no task reads or writes it"
        raise self._fault(1, problem, "correct its name")

    def _expanded(self, forms: Sequence[TaskForm]) -> Iterator[TaskRow]:
        total = 0
        for form in forms:
            combinations: Iterable[dict[str, str]] = ({},)
            if form.matrix:
                combinations = form.matrix.combinations()
            for values in combinations:
                total += 1
                if total > TASKS_MAX:
                    raise self._fault(
                        form.line, f"more than {TASKS_MAX:,} tasks", "split the workflow"
                    )
                known = {**self._values, **values}
                task_id = form.id.template.fill(known)
                if values and not form.matrix_names:
                    task_id = "-".join((task_id, *values.values()))
                workdir = self._base
                if form.workdir is not None:
                    workdir = joined(self._base, form.workdir.template.fill(known))
                yield TaskRow(form, task_id, known, workdir)

    def _tell_of_outside(self, files: FileTable) -> None:
        ids = [file.id for file in files.files()]
        names = _Names(ids, are_paths=True)
        for pattern, facts in self._told.items():
            if pattern in files:
                named = [pattern]
            else:
                named = [ids[n] for n in names.matching(pattern)]
            if not named:
                self._refuse_unused(pattern, facts)
            for file in named:
                _tell(files, file, facts)

    def _checkpoint(self, row: TaskRow) -> Checkpoint | None:
        """How the task keeps what it has done. The patterns of its files are noted."""
        form = row.form
        values = {**row.values, "id": row.id}
        if form.checkpoint is None:
            return None
        files = tuple(field.template.fill(values) for field in form.checkpoint_files)
        for file, field in zip(files, form.checkpoint_files, strict=True):
            path = joined(row.workdir, file)
            self._check_place_of_checkpoint(row, path, file, field.line)
            self._checkpoints.append((self._called(path), row.id, field.line))
        return form.checkpoint._replace(files=files)

    def _check_place_of_checkpoint(self, row: TaskRow, path: str, file: str, line: int) -> None:
        if not path.startswith(f"{row.workdir}/"):
            problem = f"checkpoint files of {row.id} cannot be {file}"
            raise self._fault(line, problem, "keep them in its folder")
        if what := self._places.why_no_checkpoint(path):
            problem = f"the checkpoint files {file} of {row.id} may be {what}"
            raise self._fault(line, problem, 'give them a name of their own: "{id}.state-*"')

    def _refuse_shared_checkpoints(self, files: Iterable[str]) -> None:
        """They are removed when their task has finished, so nothing else may be meant by their
        patterns."""
        names = _Names(files, are_paths=True)
        open_ = list[tuple[str, str, str]]()
        for pattern, task, line in sorted(self._checkpoints):
            (before, *_), after = pattern.split("*"), pattern.rpartition("*")[2]
            if names.matching(pattern):
                problem = (
                    f"the checkpoint files {pattern} of {task} may be a file that a task "
                    "reads or writes"
                )
                raise self._fault(line, problem, "give them a name that no input or output has")
            # In this order, whatever may mean the same file begins with a beginning of it.
            open_ = [one for one in open_ if before.startswith(one[0])]
            for _, other, end in open_:
                if other != task and (after.endswith(end) or end.endswith(after)):
                    problem = f"the checkpoint files {pattern} of {task} may be those of {other}"
                    raise self._fault(line, problem, 'put the task into their name: "{id}.state-*"')
            open_.append((before, task, after))

    def _numbers(self) -> dict[str, int]:
        numbers: dict[str, int] = {}
        outside = frozenset(self._outside)
        for number, row in enumerate(self._rows):
            if row.id in outside:
                raise self._fault(
                    row.form.id.line, f"the run already has a task {row.id!r}", "rename this one"
                )
            first = numbers.setdefault(row.id, number)
            if first != number:
                other = self._rows[first].form
                fix = "rename one of them"
                if other is row.form:
                    fix = "put every name of the matrix into the id, as {name}, or none of them"
                problem = f"the task id {row.id!r} is given twice (first in line {other.id.line})"
                raise self._fault(row.form.id.line, problem, fix)
        return numbers | {
            task: len(self._rows) + number for number, task in enumerate(self._outside)
        }

    def _files(self, row: TaskRow, fields: Iterable[Field]) -> list[str]:
        """The one name of each file that the task names: from the workflow's folder if it lies
        in there."""
        return [
            self._called(joined(row.workdir, field.template.fill(row.values))) for field in fields
        ]

    def _refuse_places(self, row: TaskRow) -> None:
        for field in row.form.outputs:
            path = joined(row.workdir, name := field.template.fill(row.values))
            why, fix = self._places.why_not(path, outside=row.form.outside)
            if why:
                raise self._fault(field.line, f"{row.id} writes {name}, {why}", fix)

    def _called(self, path: str) -> str:
        if self._whole_paths:
            return path
        return path.removeprefix(f"{self._base}/")

    def _made_by(self, run: Runnable) -> dict[str, int]:
        """Which task of the run writes each file, as numbers and names are here."""
        files = run.workflow.files
        writers = {}
        for task, step in enumerate(run.steps):
            for f in run.workflow.outputs.of(task).tolist():
                writers[self._called(joined(step.workdir, files[f].id))] = len(self._rows) + task
        return writers

    def _writers(self, run: Runnable | None) -> dict[str, int]:
        writers: dict[str, int] = {}
        if run is not None:
            writers = self._made_by(run)
        for number, row in enumerate(self._rows):
            for file, field in zip(self._outputs[number], row.form.outputs, strict=True):
                if any("*" in literal for literal in field.template.literals):
                    raise self._fault(
                        field.line, f"{row.id} writes {file}", "name outputs one by one, without *"
                    )
                first = writers.setdefault(file, number)
                if first != number:
                    problem = (
                        f"{row.id} writes {file}, and so does {list(self._number)[first]} "
                        f"({self._place(first)})"
                    )
                    raise self._fault(field.line, problem, "let one task write each file")
        return writers

    def _place(self, number: int) -> str:
        if number < len(self._rows):
            return f"line {self._rows[number].form.line}"
        return "in the run"

    def _inputs(self, row: TaskRow) -> list[str]:
        """The files that the task reads, each once; a pattern means all that some task writes and
        it matches."""
        return list(dict.fromkeys(file for files in self._read(row) for file in files))

    def _read(self, row: TaskRow) -> list[list[str]]:
        """The files that each entry of `inputs` means."""
        fields = row.form.inputs
        named = zip(self._files(row, fields), fields, strict=True)
        return [self._meaning(row, file, field) for file, field in named]

    def _meaning(self, row: TaskRow, file: str, field: Field) -> list[str]:
        """The file of this name; of a pattern, all that tasks write, or else all that exist."""
        if "*" not in file or file in self._writer:
            return [file]
        if found := self._written.matching(file):
            return [self._written_list[number] for number in found]
        if file not in self._there:
            self._there[file] = files_like(self._base, file)
        if not self._there[file]:
            problem = f"{row.id} reads {file}, but no task writes such a file, and none exists"
            fix = "check the outputs of the other tasks, or put the files there first"
            raise self._fault(field.line, problem, fix)
        return self._there[file]

    def _parts(self, number: int, files: _TaskFiles) -> dict[str, list[str]]:
        """Which files commands mean by `inputs[0]`, `inputs.NAME` and so on."""
        row = self._rows[number]
        form = row.form
        if not form.part_names:
            return {}
        made = [[file] for file in self._outputs[number]]
        inputs = files.inputs[: files.inputs_named]
        outputs = files.outputs[: files.outputs_named]
        return _parts_of("inputs", inputs, zip(form.input_names, self._read(row), strict=True)) | (
            _parts_of("outputs", outputs, zip(form.output_names, made, strict=True))
        )

    def _writer_of(self, file: str) -> int | None:
        """The task that writes it, or the nearest folder that holds it."""
        while file not in self._writer and (folder := posixpath.dirname(file)) not in ("", file):
            file = folder
        return self._writer.get(file)

    def _parents(self, number: int, inputs: Iterable[str]) -> list[int]:
        row = self._rows[number]
        parents: dict[int, None] = {}
        for field, edge in zip(row.form.after, row.form.edges, strict=True):
            if edge == OK:
                parents.update(dict.fromkeys(self._named(row, field)))
        if number in parents:
            raise self._fault(row.form.line, f"{row.id} comes after itself", "name others in after")
        for file in inputs:
            if (writer := self._writer_of(file)) is not None:
                parents[writer] = None
        if number in parents:
            raise self._fault(
                row.form.line,
                f"{row.id} reads a file that it writes",
                "give the two different names",
            )
        return list(parents)

    def _named(self, row: TaskRow, field: Field) -> Sequence[int]:
        """The tasks that an entry of `after` means: one by its id, a family by its name, or those
        of a pattern."""
        name = field.template.fill(row.values)
        task = self._number.get(name)
        family = self._families.get(name, ())
        if task is not None and family and task not in family:
            problem = f"{name} is a task ({self._place(task)}) and also a family"
            raise self._fault(field.line, problem, f"rename one, or write {name}-* for the family")
        if task is not None:
            return (task,)
        if family:
            return family
        found: Sequence[int] = ()
        if "*" in name:
            found = self._ids.matching(name)
        if not found:
            problem = f"{row.id} comes after {name}, which is not a task"
            raise self._fault(field.line, problem, self._meant(name))
        return found

    def _meant(self, name: str) -> str:
        """Which task or family could be meant by a name that none has."""
        known = list(dict.fromkeys([*self._families, *list(self._number)[:10_000]]))
        near = difflib.get_close_matches(name, known, n=1)
        if near:
            return f"did you mean {near[0]}?"
        if self._outside:
            return "name tasks of this file or of the run, by id, family or pattern"
        return "name tasks of this file, by id, family or pattern"

    def _line_of_circle(self, parents: Adjacency) -> int | None:
        try:
            order_and_levels(parents, parents.reversed())
        except CycleError as error:
            return self._rows[error.cycle[0]].form.line
        return None

    def _fault(self, line: int, problem: str, fix: str) -> InputError:
        return fault_at(self._path, line, problem, fix)


def _limits_of(run: Runnable | None) -> dict[str, int]:
    """Those that tasks of the run take of."""
    if run is None:
        return {}
    return {take.name: take.most for one in run.workflow.rules.values() for take in one.takes}


def _tell(files: FileTable, file: str, facts: FileFacts) -> None:
    files.state_size(file, facts.size_bytes, by_writer=facts.size_bytes > 0)
    said = {
        name: value
        for name, value in facts._asdict().items()
        if name != "size_bytes" and value not in (None, "")
    }
    if said:
        files.more[file] = files.more.get(file, {}) | said


def joined(folder: str, path: str) -> str:
    """The path from a folder, as one of its many spellings. By text alone: links are not
    followed."""
    whole = posixpath.normpath(posixpath.join(folder, path))
    if whole.startswith("//"):
        return whole[1:]
    return whole


def _kind(row: TaskRow) -> str:
    """What a task is compared by: its family, or itself, unless it says more."""
    if row.form.kind:
        return row.form.kind
    if row.form.matrix:
        return _stem(row.form) or "task"
    return row.id


def _stem(form: TaskForm) -> str:
    return stem_of(form.id.template)


def _draft_needs(draft: Draft, number: int, form: TaskForm) -> None:
    """How long the task runs, and what it takes of nodes."""
    draft.runtime_s[number] = form.runtime_s or min(DEFAULT_RUNTIME_S, form.limit_s or math.inf)
    draft.guessed_run_times += form.runtime_s is None
    draft.cores[number] = form.cores
    draft.nodes[number] = form.nodes
    draft.memory_bytes[number] = form.memory_bytes
    draft.disk_bytes[number] = form.disk_bytes
    draft.count(number, form.counts)


def _parts_of(
    what: str, files: Iterable[str], named: Iterable[tuple[str, Iterable[str]]]
) -> dict[str, list[str]]:
    """Files by `what[N]`, and those that have a name by `what.NAME`."""
    parts = {f"{what}[{n}]": [file] for n, file in enumerate(files)}
    for name, some in named:
        if name:
            parts.setdefault(f"{what}.{name}", []).extend(some)
    return parts
