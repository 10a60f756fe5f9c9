"""One command, or one for each of some values, as a workflow: `windrow run -- ./sim {} ::: 1 2 3`.

Law: words reach the program as they are typed. No shell reads them again.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from windrow.errors import UserError
from windrow.files import disk_faults
from windrow.formats.disk import replace_text
from windrow.places import project_folder

VALUES = ":::"
MOST = 1_000_000
_SPAN = re.compile(r"\{(\d{1,12})\.\.(\d{1,12})\}")
_LIST = re.compile(r"\{([^{},]*(?:,[^{},]*)+)\}")
_HOLE = re.compile(r"\{(\d*)\}")
_NAME = re.compile(r"(?<!\$)\{((?:[A-Za-z_][A-Za-z0-9_]*)(?:\[[^\[\]{}\s]*\]|\.[A-Za-z0-9_]+)?)\}")


def commands_of(words: Sequence[str]) -> list[tuple[str, ...]]:
    """The commands that these words mean. UserError if they mean none."""
    lists: list[list[str]] = [[]]
    for word in words:
        if word == VALUES:
            lists.append([])
        else:
            lists[-1].append(word)
    command, *given = lists
    if not command or not command[0]:
        raise UserError("after -- comes a program, with its arguments; none is there")
    if any(not values for values in given):
        raise UserError(f"after {VALUES} come values; none are there")
    expanded = [[one for value in values for one in _expanded(value)] for values in given]
    total = 1
    for values in expanded:
        total *= len(values)
    if total > MOST:
        raise UserError(f"{total:,} commands, more than {MOST:,}; write fewer values")
    return [_filled(command, chosen) for chosen in product(*expanded)]


def _expanded(value: str) -> list[str]:
    """`{1..100}` and `{a,b}` where no shell has read them; any other value as it is."""
    if span := _SPAN.fullmatch(value):
        first, last = int(span[1]), int(span[2])
        if abs(last - first) >= MOST:
            raise UserError(f"{value} has more than {MOST:,} numbers; write fewer")
        width = len(span[1]) if span[1].startswith("0") else 0
        step = 1 if last >= first else -1
        return [str(number).zfill(width) for number in range(first, last + step, step)]
    if several := _LIST.fullmatch(value):
        return several[1].split(",")
    return [value]


def _filled(command: Sequence[str], chosen: Sequence[str]) -> tuple[str, ...]:
    """The command with these values where it has holes for them, or else behind it."""
    if not chosen:
        return tuple(command)
    if not any(_HOLE.search(word) for word in command):
        return (*command, *chosen)

    def value(hole: re.Match[str]) -> str:
        if not hole[1]:
            return " ".join(chosen)
        number = int(hole[1])
        if not 1 <= number <= len(chosen):
            raise UserError(
                f"{hole[0]} stands for nothing: there {'is' if len(chosen) == 1 else 'are'} "
                f"{len(chosen)} {VALUES}"
            )
        return chosen[number - 1]

    return tuple(_HOLE.sub(value, word) for word in command)


def write_workflow_of(words: Sequence[str]) -> Path:
    """The file of a workflow that runs these commands in this folder."""
    commands = commands_of(words)
    if bad := next((word for one in commands for word in one if "\0" in word), None):
        raise UserError(f"{bad!r} has a zero byte; no program takes one")
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(commands[0][0]).name).strip("-.") or "run"
    here = str(Path.cwd())
    width = len(str(len(commands)))
    tasks = [
        {
            "id": f"{name}-{number:0{width}d}" if len(commands) > 1 else name,
            "kind": name,
            "workdir": _NAME.sub(r"{{\1}}", here),
            "command": [_NAME.sub(r"{{\1}}", word) for word in command],
        }
        for number, command in enumerate(commands, 1)
    ]
    text = json.dumps({"name": name, "tasks": tasks}, indent=1)
    digest = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
    folder = Path.cwd() / project_folder() / "once"
    path = folder / f"{name}-{digest}.yaml"
    with disk_faults(f"{path} cannot be written"):
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        replace_text(path, text)
    return path
