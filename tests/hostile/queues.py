"""Bad settings, grids and environments: each table with values that are wrong, or would do harm."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.hostile.case import EMPTY, FAILED, RAN, REFUSED, TABLE, Case, Kind
from tests.hostile.options import WORKFLOW, Draw
from tests.hostile.workflows import HACKED, HARMFUL

from windrow.app.settings import SiteTable


def toml(value: Any) -> str:
    """As TOML has it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def _settings(folder: Path, table: str, keys: Mapping[str, Any]) -> None:
    lines = [f"{json.dumps(key)} = {toml(value)}" for key, value in keys.items()]
    (folder / "windrow.toml").write_text("\n".join([f"[{table}]", *lines, ""]))


_JUNK = (
    -1,
    0,
    1.5,
    "x",
    "",
    "nan",
    "1e999",
    10**18,
    True,
    EMPTY,
    [1],
    [EMPTY],
    TABLE,
    {"a": EMPTY},
    "\0",
    "\x1b[31m",
)
_QUEUE_KEYS = (
    *("nodes", "cores", "memory", "gpus", "disk", "resources", "policy", "walltime", "partition"),
    *("account", "qos", "constraint", "extra", "kind", "cluster", "nosuch", ""),
)


def _site(draw: Draw, folder: Path) -> Case:
    """Any key of a site or a queue with any value. What cannot be used is no success."""
    table = draw.choice(["sites.west", "queues.west"])
    kind = {"sites.west": "queue", "queues.west": "kind"}[table]
    key = draw.choice([*SiteTable.__struct_fields__, *_QUEUE_KEYS])
    value = draw.choice(_JUNK)
    _settings(
        folder, table, {kind: draw.choice(["local", "local", "slurm", "pbs", "nosuch"]), key: value}
    )
    commands = (
        "sites --on west",
        "sites",
        "doctor --on west",
        "run ok.yaml --on west",
        "run -n ok.yaml --on west",
    )
    return Case(tuple(draw.choice(commands).split()), codes=RAN)


def _no_site(draw: Draw, folder: Path) -> Case:
    """A site of which something is wrong for certain."""
    wrong: Sequence[Mapping[str, Any]] = (
        *({"queue": value} for value in ("nosuch", "", 7, EMPTY, "Slurm", "local,pbs")),
        *({"queue": "local", key: value} for key in ("nosuch", "nodez", "") for value in ("x", 1)),
        *({"queue": "local", "speed": value} for value in (0, -1, "x", EMPTY, True)),
        *({"queue": "local", "price": value} for value in (-1, "x", EMPTY, True)),
        *({"queue": "local", "room": value} for value in ("x", 7, "-1GB", EMPTY)),
        *({"queue": "local", "preempted_every": value} for value in ("x", "0s", 7, "-1h")),
        *({"queue": "local", "shares_files_with": value} for value in (["nosuch"], "x", 7)),
        *({"queue": "local", key: "x"} for key in ("host", "data_host", "folder")),
        *({"queue": "local", "nodes": value} for value in (-1, 0, "x", 1.5, 10**18, True, EMPTY)),
        *({"queue": "local", "memory": value} for value in ("x", 7, "-1GB", EMPTY, "")),
        *(
            {"queue": "local", "nodes": 2, "policy": value}
            for value in ("nosuch", 7, "depth:", EMPTY)
        ),
    )
    _settings(folder, "sites.west", draw.choice(wrong))
    command = draw.choice(["sites", "doctor", "run -n ok.yaml", "run ok.yaml"])
    return Case((*command.split(), "--on", "west"), codes=FAILED)


def _host(draw: Draw, folder: Path) -> Case:
    """Names of hosts that ssh would take for options, or a shell for code."""
    hosts = (
        *("-oProxyCommand=touch hacked", "-F/etc/passwd", "--", "-", "a b", "", " ", "\0", "a\nb"),
        *(
            f"a;touch {HACKED}",
            f"$(touch {HACKED})",
            f"`touch {HACKED}`",
            "a|b",
            "a&b",
            "a>b",
            "a'b",
        ),
        *(
            'a"b',
            "\x1b[31m",
            "\u202ea",
            "x" * 5000,
            7,
            EMPTY,
            TABLE,
            True,
            f"u@-oProxyCommand=touch {HACKED}",
        ),
    )
    key = draw.choice(["host", "data_host"])
    table = {
        "queue": draw.choice(["slurm", "pbs"]),
        "host": "west.invalid",
        key: draw.choice(hosts),
    }
    _settings(folder, "sites.west", table)
    command = draw.choice(["sites", "doctor", "run -n ok.yaml", "run ok.yaml"])
    return Case((*command.split(), "--on", "west"), codes=FAILED)


def _partition(draw: Draw, folder: Path) -> Case:
    """What is handed to sbatch; here is none, so nothing can succeed."""
    key = draw.choice(["partition", "account", "qos", "constraint", "cluster", "extra"])
    value: Any = draw.choice(
        [*HARMFUL, 7, EMPTY, TABLE, f"--wrap=touch {HACKED}", f"x --wrap='touch {HACKED}'"]
    )
    if key == "extra":
        value = draw.choice(
            [value, [value], [f"--wrap=touch {HACKED}"], [7], [EMPTY], ["\0"], ["a\nb"]]
        )
    _settings(folder, "queues.west", {"kind": "slurm", key: value})
    command = draw.choice(["sites", "doctor", "run -n ok.yaml", "run ok.yaml", "forecast"])
    return Case((*command.split(), "--on", "west"), codes=FAILED)


def _data(draw: Draw, folder: Path) -> Case:
    """[data] that must be refused."""
    wrong: Sequence[Mapping[str, Any]] = (
        *({"limit": value} for value in ("x", "", 7, EMPTY, TABLE, "-1GB", "nan", "1e400GB", True)),
        *({"folder": value} for value in (7, EMPTY, TABLE, True)),
        *({"scratch": value} for value in (7, EMPTY, TABLE, "rel/path", "C:\\x", "-x", True)),
        *({"keep": value} for value in (7, "x", [7], [EMPTY], TABLE, True)),
        *({"share": value} for value in (7, "x", "", EMPTY, "peer", "sbcast")),
        *({"scratch": "/tmp", "share": value} for value in (7, "x", "", EMPTY)),
        *({"late": value} for value in (7, "x", "", EMPTY, "-1s", "nan", "1e300")),
        *({name: "x"} for name in ("nosuch", "", "limits", "\x1b[31m")),
    )
    _settings(folder, "data", draw.choice(wrong))
    return Case((*draw.choice(["run", "run -n"]).split(), "ok.yaml"), codes=REFUSED)


def _scratch(draw: Draw, folder: Path) -> Case:
    """Disks of nodes that cannot be used, and limits of other folders."""
    odd: Sequence[Mapping[str, Any]] = (
        *(
            {"scratch": value}
            for value in ("$NOSUCH", "$HOME/$NOSUCH", "/nosuch/there", "/etc/passwd")
        ),
        *({"scratch": value} for value in ("/proc", "/dev/null", "~nosuch/x", "/", "${")),
        *({"limit": "1GB", "folder": value} for value in ("/nosuch", "..", "~", "", "$HOME")),
        *({"limit": value} for value in ("0B", "1B", "8000TiB")),
        *({"late": value} for value in ("0s", "1s")),
    )
    _settings(folder, "data", draw.choice(odd))
    return Case(("run", "-n", "ok.yaml"), codes=RAN)


_NO_TOML = (
    *("[", "[[", "a=", "a=[", "[queues]\nx", "=1", "a=1\na=2", "[queues.local]\n[queues.local]"),
    *("a={", 'a="""', "[sites.a]\n[sites.a.b", "\0", "a='\0'", "a = 1979-13-45", "a = 0x", "[a]]"),
    *("a=" + "[" * 5000, "a=" + "{x=" * 5000, "[" + "a." * 5000 + "a", "a=" + "9" * 5000 + "e9e9"),
    *(
        "[queues.local]\nnodes = 1_",
        "\ufeff\ufeff[",
        "[queues]\nlocal = 3",
        "queues = 3",
        "[nosuch]",
    ),
    *(
        "[[queues.local]]\nnodes = 1",
        "[sites]\nwest = []",
        '[sites."a,b"]',
        "[sites.here]",
        "data = 3",
    ),
    *("[data]\n[data.limit]", '[queues."\x1b[31m', "<xml/>", "{}", "- a", "a: 1"),
)


def _no_toml(draw: Draw, folder: Path) -> Case:
    text = draw.choice(_NO_TOML)
    encoding = draw.choice(["utf-8", "utf-8", "utf-16", "utf-32"])
    (folder / "windrow.toml").write_bytes(text.encode(encoding))
    commands = (
        "sites",
        "run ok.yaml",
        "run -n ok.yaml",
        "plan ok.yaml --on local",
        "doctor",
        "forecast",
    )
    command = draw.choice(commands)
    if command == "doctor":
        return Case(("doctor",), codes=FAILED)
    return Case(tuple(command.split()), codes=REFUSED)


_DESCRIPTIONS = (
    *(
        "",
        " ",
        "(",
        ")",
        "ClusterOf(n)",
        "ClusterOf(n)[1:",
        "ClusterOf(" * 99,
        "TightBagOf(n)[0:0]",
    ),
    *("ClusterOf(n)[9:1]", "ClusterOf(n)[1:5]{Clock>}", "x = 'y", "=" * 5000, "\0", "nosuch.vgdl"),
    *("ClusterOf(n)[-1:5]", "ClusterOf(n)[1:1e99]", "[n=", "{" * 5000, "\x1b[31m", "n" * 100_000),
)


def _grid(draw: Draw, folder: Path) -> Case:
    """Grid files of which a field is wrong, and descriptions that are none."""
    if draw.random() < 0.5:
        return Case(
            ("grid", "select", "g.toml", f"--describe={draw.choice(_DESCRIPTIONS)}"), codes=REFUSED
        )
    good = {"name": "c", "nodes": 4, "speed": 1.0}
    wrong: Sequence[Mapping[str, Any]] = (
        *(good | {"nodes": value} for value in (-1, 0, "x", 1.5, 10**18, EMPTY, True)),
        *(good | {"speed": value} for value in (-1, 0, "x", EMPTY, True)),
        *(good | {"name": value} for value in (7, EMPTY, TABLE)),
        *({"name": "c"}, TABLE, {"nodes": 4}),
    )
    table = draw.choice(wrong)
    lines = ["[[clusters]]", *(f"{json.dumps(k)} = {toml(v)}" for k, v in table.items()), ""]
    (folder / "bad.toml").write_text("\n".join(lines))
    return Case(
        ("grid", draw.choice(["show", "schedule"]), "bad.toml", WORKFLOW)[: draw.choice([3, 4])],
        codes=REFUSED,
    )


def _environment(draw: Draw, folder: Path) -> Case:
    """Environment files of which a field is wrong."""
    good: dict[str, Any] = {
        "nodes": 5,
        "disk": "5GB",
        "remote": {"bandwidth_bytes_s": "1MB"},
        "local": {"bandwidth_bytes_s": "9MB"},
    }
    junk = (-1, "x", "", EMPTY, TABLE, True, "nan", "1e999", 10**30)
    key = draw.choice([*good, "memory", "node_mtbf", "nosuch"])
    value = draw.choice(junk)
    if key == "memory" and value == "":
        value = "-"
    if key == "node_mtbf" and value == "":
        value = "0s"
    content = good | {key: value}
    if draw.random() < 0.2:
        del content[draw.choice(["nodes", "remote", "local"])]
    (folder / "e.toml").write_text("".join(f"{k} = {toml(v)}\n" for k, v in content.items()))
    return Case(("plan", WORKFLOW, "--environment", "e.toml"), codes=REFUSED)


def kinds_of_queues() -> list[Kind]:
    """All of them."""
    return [
        Kind("settings: sites and queues", _site, 150),
        Kind("settings: sites that cannot be used", _no_site, 54),
        Kind("settings: hosts", _host, 36),
        Kind("settings: partitions and extra", _partition, 39),
        Kind("settings: [data]", _data, 60),
        Kind("settings: scratch and limits", _scratch, 25),
        Kind("settings: broken TOML", _no_toml, 24),
        Kind("grids and descriptions", _grid, 33),
        Kind("environments", _environment, 18),
    ]
