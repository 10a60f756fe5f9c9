"""A workflow whose every text is meant to fool a shell, and what must be true after it ran.

`probe.py` writes down what it was given; a file named `canary` appears where a shell has run what
it should not have.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

from tests.survival.world import World

FOLDER = 'it\'s; $(touch canary) `touch canary` "here" \\ ü'

NASTY = (
    "a b",
    "it's",
    'say "hi"',
    "; touch canary",
    "$(touch canary)",
    "`touch canary`",
    "line\ntouch canary\nline",
    "back\\slash\\",
    "ünï ☂",
    "--help",
    "-rf",
    "&& touch canary &",
    "| touch canary",
    "> canary",
    "$HOME",
    "*",
    "~",
    "!!",
    "#",
    " ",
)

PROBE = """\
import json, os, sys
name, args, outputs = sys.argv[1], sys.argv[2:sys.argv.index("OUT")], sys.argv[sys.argv.index("OUT") + 1:]
record = {"name": name, "args": args, "odd": os.environ.get("ODD"), "task": os.environ["WINDROW_TASK"]}
record["cwd"] = os.getcwd()
with open(sys.argv[0] + ".seen", "a") as file:
    file.write(json.dumps(record) + "\\n")
for output in outputs:
    with open(output, "x") as file:
        file.write(name)
"""  # noqa: E501


def file_name(text: str) -> str:
    """A file's name that holds the text as far as names may."""
    return f"made {text}.out".replace("/", "_").replace("*", "star").replace("{", "(")


def write(world: World) -> list[dict[str, Any]]:
    """Put the workflow into the world; its tasks."""
    probe = world.folder / "probe.py"
    probe.write_text(PROBE)
    inner = f"work in {NASTY[2]} {NASTY[4]}"
    (world.folder / inner).mkdir()
    tasks: list[dict[str, Any]] = []
    for i, text in enumerate(NASTY):
        shown = text.replace("\n", " ")  # ids with control characters are refused
        name = f"{shown} {i}" if i % 2 else f"t{i}{shown}"
        output = file_name(text)
        tasks.append(
            {
                "id": name,
                "command": [
                    sys.executable,
                    "-S",
                    "-E",
                    str(probe),
                    name,
                    *NASTY,
                    text,
                    "OUT",
                    output,
                ],
                "outputs": [output],
                "env": {"ODD": text},
                "workdir": inner,
                "runtime": 1,
            }
        )
        if i:
            tasks[-1]["inputs"] = [file_name(NASTY[i - 1])]
    # A text for the shell, into which values are put: they are quoted, or the file is refused.
    values = [text for text in NASTY if text != " " and "\n" not in text]  # they become part of ids
    tasks.append(
        {
            "id": "shell-{value}",
            "matrix": {"value": values},
            "command": f"{sys.executable} -S -E ../probe.py {{value}} {{value}} OUT",
            "workdir": inner,
            "runtime": 1,
        }
    )
    rows = [f"  - {json.dumps(task)}" for task in tasks]
    world.write("\n".join([f"name: {json.dumps('odd ' + NASTY[4])}", "tasks:", *rows, ""]))
    return tasks


def check(world: World, tasks: list[dict[str, Any]]) -> None:
    """Every program got exactly what the file says, and no shell saw any of it."""
    seen = [json.loads(line) for line in (world.folder / "probe.py.seen").read_text().splitlines()]
    probed = {record["task"]: record for record in seen}
    assert len(probed) == len(seen)
    for i, task in enumerate(tasks[:-1]):
        record = probed.pop(task["id"])
        assert record["args"] == [*NASTY, NASTY[i]]
        assert record["odd"] == NASTY[i]
        assert record["cwd"] == str(world.folder / task["workdir"])
        assert (world.folder / task["workdir"] / task["outputs"][0]).read_text() == task["id"]
    assert {(record["name"], *record["args"]) for record in probed.values()} == {
        (value, value) for value in tasks[-1]["matrix"]["value"]
    }
    assert not list(world.folder.parent.rglob("canary*"))


def listing(folder: Path) -> set[str]:
    """Every file and folder below, but for the runs' own."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if ".windrow" not in path.relative_to(folder).parts
    }


def check_private(run: Path) -> None:
    """A run's folder and all that is in it belong to its owner alone."""
    for path in (run.parent.parent, run.parent, run, *run.rglob("*")):
        if path.is_dir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o700, path
        assert path.stat().st_uid == os.getuid(), path
