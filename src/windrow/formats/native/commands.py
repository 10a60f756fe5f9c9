"""Commands and variables of native tasks, with their placeholders filled.

Rule 1: a command that is a list reaches no shell; each item is one argument, whatever it holds.
Rule 2: in a command that is a text, values are quoted for the shell, or refused if quoting
cannot hold (`text`). Rule 3: which shell that is, is decided here and stays in the command: a run
that is resumed keeps it.

A command *may write elsewhere* if it learns the names of its outputs from `{outputs}` alone and
takes them for names of files and nothing else. Then the agent lets each attempt write into a folder
of its own (agent/outputs.py). Wherever we are not sure it may not: `{outputs}` is part of a longer
word (an address, a path), a name also stands in the command or its variables, or has no suffix, so
that it may be a folder in which paths are kept; or a program goes by the name.
"""

from __future__ import annotations

import difflib
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from windrow.errors import InputError
from windrow.formats.disk import AnyPath
from windrow.formats.native.schema import SHELL_NAMES, Field, TaskForm
from windrow.formats.native.text import ShellTemplate, UnsafePlaceError
from windrow.formats.native.yaml_source import fault_at

_SH = "/bin/sh"
_SHELLS = ("sh", "bash", "dash", "ksh", "mksh", "ash")
_TAKES_CODE = re.compile(r"-[A-Za-z]*c")

ARGUMENT_BYTES_MAX = 131_071
"""Linux starts no program with a longer argument (MAX_ARG_STRLEN, its end included)."""

COMMAND_BYTES_MAX = 1_500_000
"""Linux lets arguments and variables together have a quarter of the stack, usually 2 MiB; the rest
is for variables."""

_ELSEWHERE_BYTES = 300  # a name that is at most this much longer is one of its own
_LISTS = ("inputs", "outputs")
_OF_TASK = ("id", "cores")
_BLANK = "\0"  # stands for files
# What may stand on both sides of {outputs} if it is a word.
_WORD_BEGINS = re.compile(r"""(?:^|[\s;&|()<>=])["']?\Z""")
_WORD_ENDS = re.compile(r"""["']?(?:\Z|[\s;&|()<>])|["'],""")
# Programs to which a name is more than a place to write: what to make or unpack, or where a link is
# seen from.
_GOES_BY_NAME = re.compile(r"(?<![\w.-])(?:make|tar|unzip|git|ln)(?![\w.-])")

Env = tuple[tuple[str, str], ...]
Elsewhere = tuple[tuple[int, int, int], ...]
"""See `model.Step.elsewhere`."""


def refuse_unknown_placeholders(path: AnyPath, form: TaskForm, values: Mapping[str, str]) -> None:
    """InputError for the first placeholder that stands for nothing if it is."""
    names = tuple(values)
    if form.matrix:
        names += tuple(form.matrix.names)
        if both := [name for name in form.matrix.names if name in values]:
            fix = "rename one of them"
            raise fault_at(path, form.line, f"{both[0]} is in vars and in this matrix", fix)
    # Every text of the form, and the names beside the matrix that may stand in it.
    fields: list[tuple[Field, tuple[str, ...]]] = [(form.id, ())]
    fields += [(field, (*_OF_TASK, *_LISTS)) for field in form.command]
    fields += [(field, _OF_TASK) for _, field in form.env]
    fields += [(field, ("id",)) for field in form.checkpoint_files]
    fields += [(field, ()) for field in (*form.inputs, *form.code, *form.outputs, *form.after)]
    if form.workdir is not None:
        fields.append((form.workdir, ()))
    fields += [(field, ()) for field in form.extract]
    for field, more in fields:
        for name in field.template.names:
            if name not in (*names, *more) and not _is_part(path, field, name, more):
                raise _unknown(path, field.line, name, (*names, *more))
    for field in form.command:
        _refuse_unknown_parts(path, field, form)


def _is_part(path: AnyPath, field: Field, name: str, known: Sequence[str]) -> bool:
    """Whether it means one of the task's files, and may here."""
    base = re.split(r"[\[.]", name)[0]
    if base == name:
        return False
    right = base if base.endswith("s") else f"{base}s"
    if right != base:
        fix = f"write {{{name.replace(base, right, 1)}}}"
        raise fault_at(path, field.line, f"{{{name}}} stands for nothing", fix)
    if base not in known:
        fix = "files of a task can stand in its command alone; write the name itself"
        raise fault_at(path, field.line, f"{{{name}}} stands for nothing here", fix)
    return True


def _refuse_unknown_parts(path: AnyPath, field: Field, form: TaskForm) -> None:
    """InputError for a name that none of the files has, and for what is not a number."""
    called = {"inputs": form.input_names, "outputs": form.output_names}
    for name in field.template.names:
        base, dot, part = name.partition(".")
        if dot and base in called and part not in called[base]:
            known = ", ".join(filter(None, dict.fromkeys(called[base])))
            fix = f"the names are {known}" if known else f"name one: {base}: {{{part}: FILE}}"
            raise fault_at(path, field.line, f"{{{name}}} stands for no file", fix)
        base, bracket, number = name.partition("[")
        if bracket and not number[:-1].isdecimal():
            fix = f"write a number, {{{base}[0]}} for the first, or {{{base}.NAME}} for a named one"
            raise fault_at(path, field.line, f"{{{name}}} stands for no file", fix)


def _unknown(path: AnyPath, line: int, name: str, known: Sequence[str]) -> InputError:
    near = difflib.get_close_matches(name, known, n=1)
    fix = f"name it in matrix, or write {{{{{name}}}}} for the braces themselves"
    if near:
        fix = f"did you mean {{{near[0]}}}? {fix}"
    return fault_at(path, line, f"{{{name}}} stands for nothing here", fix)


class Commands:
    """Fills the commands of one file. What is the same for all tasks of a form is worked out
    once."""

    def __init__(self, path: AnyPath) -> None:
        self._path = path
        self._codes: dict[int, ShellTemplate] = {}
        self._shells: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._words: dict[int, bool] = {}

    def filled(
        self,
        form: TaskForm,
        task_id: str,
        values: Mapping[str, str],
        inputs: Sequence[str],
        outputs: Sequence[str],
        parts: Mapping[str, Sequence[str]],
    ) -> tuple[tuple[str, ...], Env, Elsewhere]:
        """The command, program first, and the variables of one task; and where the attempt's own
        folders go in. `parts` are some of the files, by the names that the command has for them."""
        single = {**values, "id": task_id, "cores": str(form.cores)}
        env = tuple((name, field.template.fill(single)) for name, field in form.env)
        lists = {**parts, "inputs": inputs, "outputs": outputs}
        self._refuse_missing_parts(form, task_id, lists)
        command: tuple[str, ...]
        if form.is_shell:
            shell = self._shell(form)
            code, places = self._code(form, single, lists)
            # whatever the shell
            command = (*shell, code)
            found = [(-1, place) for place in places]
        else:
            command, found = self._arguments(form, single, lists)
        self._refuse_too_long(form, task_id, command)
        elsewhere: Elsewhere = ()
        names_outputs = any(name.startswith("outputs") for name in form.part_names)
        if (
            found
            and not names_outputs
            and self._may_write_elsewhere(form, single, env, outputs, command)
        ):
            elsewhere = tuple((at, place, i % len(outputs)) for i, (at, place) in enumerate(found))
        return command, env, elsewhere

    def _refuse_missing_parts(
        self, form: TaskForm, task_id: str, lists: Mapping[str, Sequence[str]]
    ) -> None:
        for name in form.part_names:
            if name not in lists:
                base = name.partition("[")[0]
                has = len(lists[base])
                raise fault_at(
                    self._path,
                    form.command[0].line,
                    f"{{{name}}} stands for no file: {task_id} has {has} {base}",
                    f"count from 0: {{{base}[0]}} is the first",
                )

    def _shell(self, form: TaskForm) -> Sequence[str]:
        if form.shell not in self._shells:
            self._shells[form.shell] = shell_named(form.shell)
        shell = self._shells[form.shell]
        if not shell:
            raise fault_at(
                self._path,
                form.line,
                "there is no bash on this machine",
                "install bash, or write shell: sh",
            )
        return shell

    def _arguments(
        self, form: TaskForm, single: Mapping[str, str], lists: Mapping[str, Sequence[str]]
    ) -> tuple[tuple[str, ...], list[tuple[int, int]]]:
        arguments: list[str] = []
        found: list[tuple[int, int]] = []
        filled = {**single, **{name: files[0] for name, files in lists.items() if files}}
        for field in form.command:
            before = len(arguments)
            lone = field.template.lone_name
            if lone is not None and lone in lists:
                arguments += lists[lone]
            else:
                self._refuse_many(field, lists)
                arguments.append(field.template.fill(filled))
            # At the end of the argument, or it is not a word (see there).
            if "outputs" in field.template.names:
                for at in range(before, len(arguments)):
                    found.append((at, arguments[at].rfind("/") + 1))
        return tuple(arguments), found

    def _refuse_many(self, field: Field, lists: Mapping[str, Sequence[str]]) -> None:
        """Within one argument a list must be one file."""
        for name in lists:
            if name in field.template.names and len(lists[name]) != 1:
                raise fault_at(
                    self._path,
                    field.line,
                    f"{{{name}}} stands for {len(lists[name])} files inside one argument",
                    f'make "{{{name}}}" a separate argument, which becomes one for each file',
                )

    def _is_of_words(self, form: TaskForm) -> bool:
        """Whether the placeholders of its command are words of their own."""
        words = self._words.get(id(form))
        if words is None:
            words = self._words[id(form)] = all(
                _are_words(field, is_shell=form.is_shell) for field in form.command
            )
        return words

    def _may_write_elsewhere(
        self,
        form: TaskForm,
        single: Mapping[str, str],
        env: Env,
        outputs: Sequence[str],
        command: tuple[str, ...],
    ) -> bool:
        if (
            not self._is_of_words(form)
            or (sum(map(len, command)) + _ELSEWHERE_BYTES * len(outputs)) * 4 > ARGUMENT_BYTES_MAX
        ):
            return False
        filled = {**single, **dict.fromkeys((*_LISTS, *form.part_names), _BLANK)}
        rest = [field.template.fill(filled) for field in form.command]
        text = _BLANK.join((*rest, *(value for _, value in env)))
        return not _GOES_BY_NAME.search(text) and not any(_is_named(name, text) for name in outputs)

    def _refuse_too_long(self, form: TaskForm, task_id: str, command: tuple[str, ...]) -> None:
        if sum(map(len, command)) * 4 <= ARGUMENT_BYTES_MAX:  # a character has at most four bytes
            return
        sizes = [len(argument.encode()) for argument in command]
        if max(sizes) > ARGUMENT_BYTES_MAX or sum(sizes) + len(sizes) > COMMAND_BYTES_MAX:
            problem = (
                f"the command of {task_id} has {sum(sizes):,} bytes, more than Linux lets "
                "a program start with"
            )
            fix = "let the shell find the files (cat parts/*.txt), or write their names into a file"
            raise fault_at(self._path, form.command[0].line, problem, fix)

    def _code(
        self, form: TaskForm, single: Mapping[str, str], lists: Mapping[str, Sequence[str]]
    ) -> tuple[str, list[int]]:
        field = form.command[0]
        code = self._codes.get(id(field))
        if code is None:
            code = self._codes[id(field)] = ShellTemplate.of(
                field.template, knows_quotes=_knows_quotes(form.shell)
            )
        words = {name: (value,) for name, value in single.items()}
        try:
            return code.fill({**words, **lists}, "outputs")
        except UnsafePlaceError as error:
            problem, fix = _explained(error, form.shell)
            problem = f"{{{error.name}}} is {error.value!r}, which {problem}"
            raise fault_at(self._path, field.line, problem, fix) from None


def shell_named(words: tuple[str, ...]) -> tuple[str, ...]:
    """The program and its options for one of the names, or for what the file says itself; () if
    there is none."""
    # Where it is usually, since compute nodes may have another PATH; else where it is here.
    bash = "/bin/bash" if Path("/bin/bash").exists() else shutil.which("bash")
    match words:
        case ("strict",):
            if bash:
                return (bash, "-euo", "pipefail", "-c")
            return (_SH, "-eu", "-c")
        case ("bash",):
            if bash:
                return (bash, "-c")
            return ()
        case ("sh",):
            return (_SH, "-c")
    return words


def _knows_quotes(shell: tuple[str, ...]) -> bool:
    """Whether what runs the text is a shell, with the quotes of a shell."""
    if len(shell) == 1:
        return shell[0] in SHELL_NAMES
    return _TAKES_CODE.fullmatch(shell[-1]) is not None and any(
        PurePosixPath(w).name in _SHELLS for w in shell[:-1]
    )


def _are_words(field: Field, *, is_shell: bool) -> bool:
    """Whether each {outputs} in this text is a word, or the value of an option."""
    literals = field.template.literals
    names = field.template.names
    for number, name in enumerate(names):
        is_first = number == 0
        is_last = number + 1 == len(names)
        before = literals[number]
        after = literals[number + 1]
        begins = before.endswith("=") or (is_first and not before)
        ends = is_last and not after
        if is_shell:
            begins = _WORD_BEGINS.search(before) is not None and (is_first or before != "")
            ends = _WORD_ENDS.match(after) is not None and (is_last or after != "")
        if name == "outputs" and not (begins and ends):
            return False
    return True


def _is_named(output: str, text: str) -> bool:
    """Whether this text may name the output, or the output may be a folder: then no other name will
    do."""
    folder, _, base = output.rpartition("/")
    stem, dot, _ = base.partition(".")
    if not stem or not dot or base in text:
        return True
    if folder:
        path = f"{folder}/{stem}"
    else:
        path = stem
    at = text.find(path)
    while at >= 0:
        around = text[at - 1 : at] + text[at + len(path) : at + len(path) + 1]
        if not any(character.isalnum() or character == "_" for character in around):
            return True
        at = text.find(path, at + 1)
    return False


def _explained(error: UnsafePlaceError, shell: tuple[str, ...]) -> tuple[str, str]:
    """Why a value cannot stand in the code of this shell, and what to write instead."""
    if _knows_quotes(shell):
        return (
            "has characters that mean something to the shell, and it stands in quotes or other "
            "code where it cannot be made safe",
            f"write {{{error.name}}} outside of quotes (Windrow quotes it), or make the command a "
            "list",
        )
    return (
        f"Windrow cannot quote for {shell[0]}",
        "make the command a list with the value as a separate argument, or put the value into env",
    )
