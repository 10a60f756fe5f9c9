"""Commands and variables of native tasks, with their placeholders filled.

Rule 1: a command that is a list reaches no shell; each item is one argument, whatever it holds. Rule 2: in a command
that is a text, values are quoted for the shell, or refused where quoting cannot hold (native_text.py).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence

from windrow.errors import InputError
from windrow.formats.disk import AnyPath
from windrow.formats.native_schema import Field, TaskForm
from windrow.formats.native_text import ShellTemplate, UnsafePlaceError

SHELL = ("/bin/sh", "-c")
"""What runs a command that is a text."""

ARGUMENT_BYTES_MAX = 131_071
"""Linux starts no program with a longer argument (MAX_ARG_STRLEN, its end included)."""

COMMAND_BYTES_MAX = 1_500_000
"""Linux lets arguments and variables together have a quarter of the stack, usually 2 MiB; the rest is for variables."""

_LISTS = ("inputs", "outputs")
_OF_TASK = ("id", "cores")

Env = tuple[tuple[str, str], ...]


def refuse_unknown_placeholders(path: AnyPath, form: TaskForm) -> None:
    """InputError for the first placeholder that stands for nothing where it is."""
    names = form.matrix.names if form.matrix else ()
    for field, more in _fields(form):
        known = (*names, *more)
        for name in field.template.names:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                meant = f"did you mean {{{near[0]}}}? " if near else ""
                fix = f"{meant}name it in matrix, or write {{{{{name}}}}} for the braces themselves"
                raise InputError(path, f"{{{name}}} stands for nothing here", line=field.line, fix=fix)


def _fields(form: TaskForm) -> Iterator[tuple[Field, Sequence[str]]]:
    """Every text of the form, and the names beside the matrix that may stand in it."""
    yield form.id, ()
    yield from ((field, (*_OF_TASK, *_LISTS)) for field in form.command)
    yield from ((field, _OF_TASK) for _, field in form.env)
    yield from ((field, ()) for field in (*form.inputs, *form.outputs, *form.after))
    if form.workdir is not None:
        yield form.workdir, ()


class Commands:
    """Fills the commands of one file. What is the same for all tasks of a form is worked out once."""

    def __init__(self, path: AnyPath) -> None:
        self._path = path
        self._shell: dict[int, ShellTemplate] = {}

    def filled(
        self, form: TaskForm, task_id: str, values: Mapping[str, str], inputs: Sequence[str], outputs: Sequence[str]
    ) -> tuple[tuple[str, ...], Env]:
        """The command, program first, and the variables of one task."""
        single = {**values, "id": task_id, "cores": str(form.cores)}
        env = tuple((name, field.template.fill(single)) for name, field in form.env)
        lists = {"inputs": inputs, "outputs": outputs}
        command: tuple[str, ...]
        if form.is_shell:
            command = (*SHELL, self._code(form.command[0], single, lists))
        else:
            command = self._arguments(form, single, lists)
        self._refuse_too_long(form, task_id, command)
        return command, env

    def _arguments(
        self, form: TaskForm, single: Mapping[str, str], lists: Mapping[str, Sequence[str]]
    ) -> tuple[str, ...]:
        arguments: list[str] = []
        for field in form.command:
            lone = field.template.lone_name
            if lone in _LISTS:
                arguments += lists[lone]
            else:
                arguments.append(self._argument(field, single, lists))
        return tuple(arguments)

    def _refuse_too_long(self, form: TaskForm, task_id: str, command: tuple[str, ...]) -> None:
        if sum(map(len, command)) * 4 <= ARGUMENT_BYTES_MAX:  # a character has at most four bytes
            return
        sizes = [len(argument.encode()) for argument in command]
        if max(sizes) > ARGUMENT_BYTES_MAX or sum(sizes) + len(sizes) > COMMAND_BYTES_MAX:
            problem = f"the command of {task_id} has {sum(sizes):,} bytes, more than Linux lets a program start with"
            fix = "let the shell find the files (cat parts/*.txt), or write their names into a file"
            raise InputError(self._path, problem, line=form.command[0].line, fix=fix)

    def _code(self, field: Field, single: Mapping[str, str], lists: Mapping[str, Sequence[str]]) -> str:
        shell = self._shell.get(id(field))
        if shell is None:
            shell = self._shell[id(field)] = ShellTemplate.of(field.template)
        words = {name: (value,) for name, value in single.items()}
        try:
            return shell.fill({**words, **lists})
        except UnsafePlaceError as error:
            problem = (
                f"{{{error.name}}} is {error.value!r}, which has characters that mean something to the shell, and it"
                " stands in quotes or other code where it cannot be made safe"
            )
            fix = f"write {{{error.name}}} outside of quotes (Windrow quotes it), or make the command a list"
            raise InputError(self._path, problem, line=field.line, fix=fix) from None

    def _argument(self, field: Field, single: Mapping[str, str], lists: Mapping[str, Sequence[str]]) -> str:
        values = dict(single)
        for name in _LISTS:
            if name in field.template.names:
                if len(lists[name]) != 1:
                    problem = f"{{{name}}} stands for {len(lists[name])} files inside one argument"
                    fix = f'make "{{{name}}}" an argument of its own, which becomes one for each file'
                    raise InputError(self._path, problem, line=field.line, fix=fix)
                values[name] = lists[name][0]
        return field.template.fill(values)
