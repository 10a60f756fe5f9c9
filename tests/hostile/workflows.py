"""Bad workflows: each kind of field with values that are wrong, or would do harm.

Values that must be refused are apart from those with which a run may start. After either kind
nothing of the user's has changed (`MINE`), and nothing in a name was executed (`HACKED`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.hostile.case import EMPTY, FAILED, RAN, REFUSED, TABLE, Case, Kind
from tests.hostile.options import Draw

HACKED = "hacked"
MINE = ("mine.dat", "sub/mine.txt", "../outside/thesis.txt", "other.yaml")
"""Files of the user, in the folder of each case and beside it."""

HARMFUL = (
    *(f"$(touch {HACKED})", f"`touch {HACKED}`", f";touch {HACKED};", f"|touch {HACKED}"),
    *(f"x\ntouch {HACKED}", f"'; touch {HACKED}; '", f'"; touch {HACKED}; "', "-rf", "--help"),
    *("../x", "/x", "a/b", "~", "%s%n", "\\", "'", '"', "*", "?", "[a]", "{x}", "{{x}}", "$HOME"),
    *("", " ", "\t", "\0", "\x1b[31m", "\u202egnp", "é" * 200, "x" * 300, "x" * 100_000, ".", ".."),
)
"""Names that are no names, or would do harm where they are taken for something else."""

Fields = Mapping[str, Any]


def _written(
    folder: Path, draw: Draw, task: Fields, top: Fields | None = None, commands: Sequence[str] = ()
) -> tuple[str, ...]:
    """The command line for a workflow of one task with these fields; its file is written."""
    whole = {"name": "w", "tasks": [{"id": "a", "command": "true", "runtime": "1s", **task}]}
    (folder / "w.yaml").write_text(json.dumps(whole | dict(top or {})))  # JSON is YAML
    return (*draw.choice(list(commands) or ["run", "run -n"]).split(), "w.yaml")


def _kind(
    name: str, weight: int, refused: Sequence[Fields], ran: Sequence[Fields] = (), top: bool = False
) -> Kind:
    """Of fields of a task, or of the whole file: those that must be refused, and those that may
    run."""

    def make(draw: Draw, folder: Path) -> Case:
        at = draw.randrange(len(refused) + len(ran))
        fields = (*refused, *ran)[at]
        if at < len(refused):
            codes = REFUSED
        else:
            codes = RAN
        if top:
            return Case(_written(folder, draw, TABLE, fields), codes=codes)
        return Case(_written(folder, draw, fields), codes=codes)

    return Kind(f"workflow: {name}", make, weight)


def _of(key: str, values: Sequence[Any]) -> list[Fields]:
    return [{key: value} for value in values]


# What belongs to the user, to Windrow, or to the system.
_NOT_OURS = (
    *("*", "**", "../x", "/x", "w.yaml", "./w.yaml", "windrow.toml", ".windrow", ".windrow/*"),
    *(".", "..", "out/thesis.txt", "/etc/passwd", "sub/../../outside/thesis.txt"),
)
_THERE = [name for name in _NOT_OURS if "*" not in name and name != "."]
_CHECKPOINTS = [
    *({"files": files} for files in (*_NOT_OURS, "*.dat", "sub/*", "out/*", "{nosuch}", "", EMPTY)),
    *({"files": "s-*", "signal": value} for value in ("KILL", "STOP", "USR3", 10, "", None, EMPTY)),
    *(
        {"files": "s-*", "signal": "USR1", "notice": value}
        for value in ("-1s", "x", "nan", EMPTY, TABLE)
    ),
    *({"files": "s-*", "signal": "USR1", "every": value} for value in ("-1s", "x", "1e300", EMPTY)),
    *({"files": "s-*", "every": "1m"}, {"files": "s-*", "nosuch": 1}, TABLE, {"signal": "USR1"}),
    *({"files": "s-*", "keep_existing": value} for value in ("x", 2, EMPTY)),
]
_CONDITIONS = (
    *("cores >=", "((", "x = 'y", "cores => 1", "'", "\\", "1 ==", "cores >= 1 &&", "&&", "!", "("),
    *("(" * 5000, "!" * 5000, "cores >= 1 && " * 3000, "__import__('os')", "cores >= nan", "\0"),
    *("cores >= 9999999", "nosuch == 'x'", "memory > 900TiB", EMPTY, TABLE, 7, True, None),
)
_WORDS = (
    *("threads", "params", "script", "run", "time", "walltime", "queue", "environment", "cwd"),
    *("image", "retry", "log", "foreach", "tmp", "needs", "depends", "input", "output", "timeout"),
    *("name", "cmd", "mem", "cpu", "gpu", "partition", "account"),
    *("", "\x1b[31m", "id ", "ID", "command2", "x" * 5000, "é"),
)
_TOP = (
    *(
        "variables",
        "params",
        "config",
        "include",
        "jobs",
        "steps",
        "task",
        "workflow",
        "version",
        "on",
    ),
    *("env", "import", "rules", "process", "", "\x1b[31m", "x" * 5000, "Tasks"),
)
_JUNK = (
    -1,
    "x",
    "nan",
    1e300,
    2**63,
    2**64,
    10**30,
    [1],
    {"x": 1},
    [EMPTY],
    "\0",
    "1_0",
    "-5GB",
    "½",
)
_NUMBERS = ("cores", "nodes", "gpus", "memory", "disk", "runtime", "retries", "replicas")
_ODD = (0, 1.5, "2", True, "0x10", "", None, "1e3", 10_000_000, "1h30m")
_NO_PARTS = (
    *("inputs[1]", "inputs[-1]", "inputs[]", "inputs[x]", "inputs[0:1]", "inputs[99999999999]"),
    *("inputs.ref", "inputs.__class__", "outputs[0]", "outputs.x", "input[0]", "output.x"),
)
_VALUES: list[Fields] = [
    *(
        {key: value}
        for key in ("inputs", "outputs", "after")
        for value in ({"x": EMPTY}, [EMPTY], "\0")
    ),
    *({key: value} for key in ("env", "resources", "mounts", "extract") for value in ("x", 7, [7])),
    *({"shell": value} for value in ("nosuch", 7, TABLE, [EMPTY])),
    *({"worker": value} for value in ("x", 7, TABLE, [], [EMPTY], ["{i}"])),
    *({"keep": value} for value in ("x", 7, EMPTY)),
    *(
        {key: value}
        for key in ("conda", "container", "modules", "setup", "venv")
        for value in ("", None, TABLE, {"x": 1}, [TABLE], "\0")
    ),
    *({"expands": value} for value in ("x", 7, EMPTY, "../x.yaml", "w.yaml", "{nosuch}.yaml", "")),
    *({"env": {name: "x"}} for name in ("A=B", "", "\0")),
    *({"env": {"A": value}} for value in (EMPTY, TABLE, "\0")),
    *({"workdir": value} for value in (EMPTY, TABLE, "\0")),
    *({"outputs": name} for name in _THERE),
    *({"inputs": name} for name in ("nosuch", "*.nosuch", "{nosuch}")),
    *({"inputs": {name: "mine.dat"}} for name in ("", "a b", "a.b", "0", "\x1b[31m")),
    *({"inputs": {"ref": name}} for name in (EMPTY, TABLE, "", "nosuch", None, "\0")),
    *({"code": name} for name in ("nosuch", TABLE, "", None, "*.nosuch", "{nosuch}")),
    *({"command": f"cat {{{name}}}", "inputs": "mine.dat"} for name in _NO_PARTS),
    *({"matrix": {"i": name}} for name in ("nosuch/{}", "{}{}", "{}*", "{x}", "/nosuch/{}")),
    *({"after": name} for name in ("nosuch", "a", "*nosuch", "{x}")),
    *({"site": value} for value in (7, EMPTY, "nosuch")),
    *(
        {"matrix": value}
        for value in (7, EMPTY, TABLE, {"i": TABLE}, {"i": EMPTY}, {"i": "9..1"}, {"1": [1]})
    ),
    {"matrix": {"i": "1..999999999"}},
]
_MOUNTED = ("/", "/proc", "/sys/x", "/dev/shm", "/etc", "/usr/lib", "rel/path", "", "../x", 7)
_VOLUMES: list[Fields] = [
    *({"mounts": {place: "v"}} for place in _MOUNTED),
    *({"mounts": {"/v/x": name}} for name in ("nosuch", "", 7, EMPTY)),
    *({"mounts": {"/v/x": "v", "/v/x/y": "v"}}, {"mounts": ["nosuch"]}, {"mounts": "w"}),
    *({"mounts": {"/v/x": "v"}, "extract": {"/v/x/f": name}} for name in (*_THERE, "", EMPTY)),
    *({"extract": {place: "r.txt"}} for place in ("/v/x/f", "f", "", "/etc/passwd", "../x")),
]
_OF_VOLUMES = (
    *({"scratch": value} for value in ("x", "-1GB", 7, EMPTY, None, "", "1e400GB")),
    *({"from": value, "size": "1GB"} for value in (7, EMPTY, "", None, "nosuch/there")),
    *({"from": "mine.dat", "size": value} for value in ("x", "-1", EMPTY, None, 1.5)),
    *({"from": "mine.dat", "size": "1GB", "policy": value} for value in ("x", 7, EMPTY)),
    *({"scratch": "1GB", "replicas": value} for value in ("x", 7, EMPTY)),
    *({"scratch": "1GB", "per": value} for value in (EMPTY, "{nosuch}")),
    *(TABLE, EMPTY, 7, "x", None, {"nosuch": 1}, {"scratch": "1GB", "from": "mine.dat"}),
)


def _of_volumes(draw: Draw, folder: Path) -> Case:
    if draw.random() < 0.5:
        fields = draw.choice(_VOLUMES)
        volumes: Any = {"v": {"scratch": "1MB"}}
    else:
        fields = {"mounts": {"/v/x": "v"}}
        volumes = {draw.choice(["v", "v", "v", "a b", "", "é"]): draw.choice(_OF_VOLUMES)}
    return Case(_written(folder, draw, fields, {"volumes": volumes}), codes=REFUSED)


def _names(draw: Draw, folder: Path) -> Case:
    """Names of tasks, and values of a matrix, that would do harm where they were taken for code."""
    name = draw.choice(HARMFUL)
    where = draw.choice(["id", "matrix", "name", "file", "kind", "env"])
    fields: dict[str, Fields] = {
        "id": {"id": name},
        "matrix": {
            "matrix": {"i": [name, "b"]},
            "command": "echo {i} > {outputs}",
            "outputs": "o-{i}.x",
        },
        "file": {"command": "echo > {outputs}", "outputs": f"n{name}"},
        "kind": {"kind": name},
        "env": {"env": {"A": name}, "command": "echo $A"},
        "name": TABLE,
    }
    if where == "name":
        top: Fields = {"name": name}
    else:
        top = {}
    return Case(_written(folder, draw, fields[where], top), codes=RAN)


_NO_COMMANDS = (
    *(None, "", " ", "\n", EMPTY, [""], {"a": 1}, "{nosuch}", "\0", ["\0"], [EMPTY], ["", "x"]),
)
_FAILING = (
    *(
        "exit 3",
        "kill -9 $$",
        "false | true",
        "cat nosuch",
        "nosuch-command",
        "echo $nosuch",
        "((0))",
    ),
    *(
        "exec 1>&- 2>&-; exit 1",
        "sleep 0 & exit 1",
        "(exit 255)",
        "kill -SEGV $$",
        "if",
        "'",
        "EOF <<",
    ),
    *(
        ["false"],
        ["nosuch-command"],
        7,
        [1],
        "{",
        ["/"],
        ["./w.yaml"],
        ["sh", "-c", "exit 7"],
        "ulimit -t 0; exit 4",
    ),
)
_ODD_COMMANDS = (
    *(
        "true # {",
        "echo '{}'",
        "echo {{x}}",
        "echo \x1b[31m",
        "yes | head -c 2000000",
        "cd /; rm -f x",
    ),
    *(
        ["true", "x" * 100_000],
        "echo " + "x" * 100_000,
        "exec 0<&- 1>&- 2>&-; true",
        "trap '' TERM; true",
    ),
)


def _commands(draw: Draw, folder: Path) -> Case:
    at = draw.randrange(3)
    if at == 0:
        return Case(
            _written(
                folder,
                draw,
                {"command": draw.choice(_NO_COMMANDS)},
            ),
            codes=REFUSED,
        )
    if at == 1:
        fields = {"command": draw.choice(_FAILING)}
        return Case(_written(folder, draw, fields, commands=["run"]), codes=FAILED)
    fields = {"command": draw.choice(_ODD_COMMANDS)}
    return Case(_written(folder, draw, fields), codes=RAN)


def _no_output(draw: Draw, folder: Path) -> Case:
    """A task that does not make what it should, or makes something else of it."""
    command = draw.choice(
        [
            "true",
            "mkdir {outputs}.d",
            "ln -s nosuch o.x",
            "rm -rf sub/nosuch",
            "touch ../o.x",
        ]
    )
    fields = {"command": command, "outputs": draw.choice(["o.x", "d/o.x", ["o.x", "p.x"]])}
    return Case(_written(folder, draw, fields, commands=["run"]), codes=FAILED)


def kinds_of_workflows() -> list[Kind]:
    """All of them."""
    numbers = [{key: value} for key in _NUMBERS for value in _JUNK]
    odd = [{key: value} for key in _NUMBERS for value in _ODD]
    several: list[tuple[str, int, Callable[[Draw, Path], Case]]] = [
        ("volumes, mounts, extracts", 46, _of_volumes),
        ("ids and values", 32, _names),
        ("commands", 42, _commands),
        ("outputs that are not made", 10, _no_output),
    ]
    return [
        _kind("checkpoints", 15, _of("checkpoint", [*_CHECKPOINTS, 7, EMPTY, "s-*"])),
        _kind("conditions", 16, _of("where", _CONDITIONS)),
        _kind("task keys", 30, [{word: "x"} for word in _WORDS]),
        _kind("values of task keys", 30, _VALUES),
        _kind(
            "top keys",
            18,
            [*({word: "x"} for word in _TOP), *_of("tasks", (None, TABLE, EMPTY, "x", 7))],
            top=True,
        ),
        _kind("numbers", 96, numbers, odd),
        *(Kind(f"workflow: {name}", make, weight) for name, weight, make in several),
    ]
