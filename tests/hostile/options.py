"""Bad values for the options of every command, by type, and what stands first in a command."""

from __future__ import annotations

import random
from collections.abc import Callable

Draw = random.Random

# Values that no option of a type takes.


def bad_word(draw: Draw) -> str:
    words = [
        "x",
        "none",
        "-",
        "--",
        " ",
        "\x1b[31mred",
        "a\nb",
        "ä" * 40,
        "/",
        "../..",
        "%s%n",
        "*",
    ]
    return draw.choice([*words, "\u202egnp", "x" * 5000])


def bad_whole(draw: Draw, least: int, most: int) -> str:
    """Text that is no whole number from `least` to `most`."""
    far = [
        str(least - 1),
        str(most + 1),
        str(2**63),
        str(2**64),
        str(most * draw.randint(2, 10**9)),
        "9" * 400,
    ]
    return draw.choice(
        [
            *far,
            "-1",
            "1.5",
            "1e3",
            "nan",
            "inf",
            "0x10",
            "1_0",
            "½",
            "",
            "1 2",
            "9" * 5000,
            bad_word(draw),
        ]
    )


def bad_number(draw: Draw) -> str:
    """Text that is no number of any use."""
    return draw.choice(
        [
            "nan",
            "inf",
            "-inf",
            "1e300",
            "-1",
            "-1e300",
            "1,5",
            "",
            "0x1p3",
            "1e-300x",
            bad_word(draw),
        ]
    )


def bad_time(draw: Draw) -> str:
    """Text that is no duration of at least a second."""
    return draw.choice(
        [
            "nan",
            "inf",
            "1e300",
            "-5",
            "5y",
            "h",
            "1h30m",
            "99999999999999d",
            "1e18",
            "",
            bad_word(draw),
        ]
    )


def bad_size(draw: Draw) -> str:
    """Text that is no size."""
    return draw.choice(
        [
            "0",
            "-1",
            "5XB",
            "nan",
            "1e400",
            "99999999TiB",
            "",
            "GB",
            "9" * 400 + "GB",
            bad_word(draw),
        ]
    )


def bad_name(draw: Draw) -> str:
    """Text that names nothing there is."""
    return draw.choice(
        [
            "nosuch",
            "x" * 256,
            "y/" * 3000,
            "z" * 5000,
            "a\x1b]0;b",
            "a/b",
            "\u202ex",
            "ö" * 200,
            "no such",
        ]
    )


def bad_choice(draw: Draw) -> str:
    """Text that is none of the words an option knows."""
    return draw.choice(
        ["nosuch", "", "EASY!", "depth:", "depth:0", "depth:9999999999", "=", "a=b", bad_word(draw)]
    )


def bad_scratch(draw: Draw) -> str:
    """Text that names no folder on a disk of a node."""
    return draw.choice(["tmp", "./disk", "C:\\disk", "$NOSUCH/x", "~nosuch/x"])


def bad_weights(draw: Draw) -> str:
    """Text that is no priority."""
    weights = [
        "wait=1,wait=2",
        "wait^-1=3",
        "wait^0=3",
        "wait=nan",
        "wait=1e300",
        "x=1",
        "wait=",
        "share^3=1",
    ]
    return draw.choice(
        [*weights, "half_life=0", "half_life=-1,share=1", "wait_cap=1", "=1", ",", bad_choice(draw)]
    )


# Options: where they stand, and what is no value of theirs.


def no_page(draw: Draw) -> str:
    """Where no file can be written."""
    return draw.choice(["no/such.html", ".", "x" * 300])


_MILLION, _NODES, _SEED = 10**6, 10**7, 2**63 - 1
LOG, WORKFLOW = "l.swf", "m.json"
_SCENARIO = {
    "--cap": lambda d: bad_whole(d, 1, _MILLION),
    "--cores": lambda d: bad_whole(d, 1, _MILLION),
    "--memory": bad_size,
    "--disk": bad_size,
    "--gpus": lambda d: bad_whole(d, 0, _MILLION),
    "--resource": lambda d: d.choice(["x", "=2", f"x={bad_whole(d, 0, _MILLION)}"]),
    "--margin": bad_number,
    "--noise": bad_number,
    "--reliability": bad_number,
    "--failures": lambda d: d.choice(
        ["nodes=1d,repair=0", f"nodes={bad_time(d)}", "log=none.csv", bad_choice(d)]
    ),
    "--seed": lambda d: bad_whole(d, 0, _SEED),
    "--policy": bad_choice,
    "--requests": bad_choice,
    "--log": bad_name,
}
OPTIONS: dict[tuple[str, ...], dict[str, Callable[[Draw], str]]] = {
    ("simulate", LOG): {
        "--nodes": lambda d: bad_whole(d, 1, _NODES),
        **{name: _SCENARIO[name] for name in ("--cap", "--failures", "--seed", "--policy")},
        "--priority": bad_weights,
        "--events": bad_choice,
        "--placement": bad_choice,
        "--from": bad_time,
        "--to": bad_time,
        "--jobs-out": lambda d: d.choice(["x", "x.txt", "no/such.csv", "x" * 300 + ".csv"]),
        "--requests": bad_choice,
        "--warmup": bad_time,
        "--at": bad_time,
        "--rules": bad_name,
        "--html": no_page,
    },
    ("compare", WORKFLOW): {
        "--home-rate": bad_size,
        "--disk-rate": bad_size,
        **_SCENARIO,
        "--priority": bad_weights,
        "--placement": bad_choice,
        "--strategies": bad_choice,
        "--from": bad_time,
        "--to": bad_time,
        "--every": lambda d: d.choice(["0", bad_time(d)]),
        "--at": bad_time,
        "--html": no_page,
    },
    ("plan", WORKFLOW): {
        "--html": no_page,
        **_SCENARIO,
        "--at": bad_time,
        "--strategy": bad_choice,
        "--on": bad_choice,
        "--placement": bad_choice,
        "--environment": bad_name,
        "--space": bad_size,
        "--space-order": bad_choice,
        "--scratch": bad_scratch,
        "--priority": bad_weights,
    },
    ("reliability",): {
        "--on": bad_choice,
        "--nodes": lambda d: bad_whole(d, 1, _NODES),
        **dict.fromkeys(("--time", "--since"), lambda d: d.choice(["0", bad_time(d)])),
    },
    ("timeline", WORKFLOW): {"--at": bad_time, "--priority": bad_weights, "--strategy": bad_choice},
    ("run", "ok.yaml"): {
        **dict.fromkeys(("--on", "--strategy", "--objective"), bad_choice),
        "--deadline": lambda d: d.choice(["0", bad_time(d)]),
        "--think": lambda d: bad_whole(d, 1, 1000),
        "--cap": lambda d: bad_whole(d, 1, _MILLION),
        "--margin": bad_number,
        "--max-nodes": lambda d: bad_whole(d, 1, _NODES),
        "--copies": lambda d: bad_whole(d, 1, 10),
        "--scratch": bad_scratch,
        "--reliability": bad_number,
        "--risk": lambda d: d.choice(["0", "1", bad_number(d)]),
        "--guess": lambda d: d.choice(["0", bad_time(d)]),
        "--add": bad_name,
        "--space": bad_size,
        "--space-order": bad_choice,
        "--profile": bad_name,
        "--accept": bad_name,
        "--set": lambda d: d.choice(["x", "=1", "nosuch=1", bad_name(d)]),
    },
    ("generate", "montage", "-o", "new.json"): {
        "--tasks": lambda d: bad_whole(d, 1, _MILLION),
        "--work": lambda d: d.choice(["0", bad_time(d)]),
        "--ccr": lambda d: d.choice(["0", bad_number(d)]),
        "--bandwidth": bad_size,
        "--seed": lambda d: bad_whole(d, 0, _SEED),
        "--set": bad_word,
        "--output": no_page,
    },
    ("generate", "log", "-o", "new.swf"): {
        "--jobs": lambda d: bad_whole(d, 1, 20_000_000),
        "--days": lambda d: d.choice(["0", bad_number(d)]),
        "--nodes": lambda d: bad_whole(d, 1, _NODES),
        "--model": bad_choice,
        "--set": lambda d: d.choice(
            ["load=nan", "load=-1", "load=1e300", "users=0", "users=1e9", "nosuch=1", bad_word(d)]
        ),
    },
    ("grid", "generate", "many-cluster", "-o", "new.toml"): {
        "--seed": lambda d: bad_whole(d, 0, _SEED),
        "--set": lambda d: d.choice(
            ["more=-1", "more=1e9", "nodes=nan", "spread=-1", "x=1", bad_word(d)]
        ),
    },
    ("grid", "select", "g.toml"): {
        "--describe": lambda d: d.choice(
            ["ClusterOf(n)[1:", "ClusterOf(" * 99, "x = 'y", "=" * 5000, bad_name(d)]
        ),
        "--fastest": lambda d: bad_whole(d, 1, _NODES),
        "--for": bad_name,
    },
    ("grid", "schedule", "g.toml", WORKFLOW): {
        "--schedulers": bad_choice,
        "--tight": bad_number,
        "--run-times": bad_name,
    },
    ("stream",): {
        "--nodes": lambda d: bad_whole(d, 1, 10**5),
        "--workflows": lambda d: bad_whole(d, 1, 10**5),
        "--utilization": lambda d: d.choice(["0", "1e-300", "3", bad_number(d)]),
        "--jobs": lambda d: d.choice(["1.1", bad_number(d)]),
        "--policy": bad_choice,
        "--workload": bad_choice,
        "--arrivals": bad_name,
        "--file": bad_name,
        "--selection": bad_choice,
        "--estimates": bad_choice,
        "--seed": lambda d: bad_whole(d, 0, _SEED),
    },
    ("forecast",): {
        "--on": bad_choice,
        "--policy": bad_choice,
        "--nodes": lambda d: bad_whole(d, 1, _NODES),
        "--time": lambda d: d.choice(["0", bad_time(d)]),
        "--part": lambda d: d.choice(["0", "1", "nan", "95", "half"]),
        "--confidence": lambda d: d.choice(["0", "1", "-0.5", "inf", "sure"]),
        "--start-at": lambda d: d.choice(["soon", "25:00", "2030-13-01", "2030-05-01 99:00"]),
    },
    ("pool", "lab"): {
        "--nodes": lambda d: bad_whole(d, 1, _NODES),
        "--cores": lambda d: bad_whole(d, 1, _MILLION),
        "--memory": bad_size,
        "--policy": bad_choice,
        "--selection": bad_choice,
        "--seed": lambda d: bad_whole(d, 0, _SEED),
        "--cancel": lambda d: bad_whole(d, 1, _MILLION),
    },
    ("lab",): {
        "--summary": bad_name,
        "--shard": lambda d: d.choice(["0/2", "3/2", "1/0", "1/9e9", bad_word(d)]),
    },
    ("lab", "campaign.toml"): {"--workers": lambda d: bad_whole(d, 1, 1000), "--by": bad_word},
    ("reproduce", "glume"): {"--workers": lambda d: bad_whole(d, 1, 1000), "--data": bad_name},
    ("show", WORKFLOW): {
        "--html": no_page,
        "--bandwidth": bad_size,
    },
    ("profile", "show", WORKFLOW): {
        "--cpu-speed": lambda d: d.choice(["0", bad_number(d)]),
        "--detail": bad_choice,
    },
    ("profile", "ok.yaml"): {
        **dict.fromkeys(("--tasks", "--into", "--again"), bad_name),
        **dict.fromkeys(("--output", "--html", "--parquet"), no_page),
    },
    ("status",): {"--pool": bad_name, "--run": bad_name, "--color": bad_choice},
    **{(name,): {"--run": bad_name} for name in ("cancel", "wait", "watch", "files")},
    ("retry", "a"): {"--run": bad_name},
    ("priority", "1", "a"): {"--run": bad_name},
    ("resume",): {"--run": bad_name, "--space": bad_size, "--accept": bad_name},
    ("clean",): {"--older": lambda d: d.choice(["0", bad_time(d)])},
    ("report",): {"--run": bad_name, "--html": no_page, "--crate": bad_name},
    ("config",): {"--profile": bad_name},
    ("submit", "ok.yaml"): {"--pool": bad_name},
    ("explain", "a"): {"--run": bad_name},
    ("tasks",): {"--run": bad_name, "--state": bad_choice},
    ("logs", "a"): {
        "--run": bad_name,
        "--attempt": lambda d: bad_whole(d, 1, _MILLION),
        "--job": lambda d: bad_whole(d, 0, _MILLION),
    },
    ("shell", "a"): {"--run": bad_name},
    ("serve",): {"--port": lambda d: bad_whole(d, 1024, 65_535)},
}

ANY_TEXT = {
    ("sites", "--on"),
    ("shell", "-c"),
    ("run", "--notify"),
}
"""Options of which a bad value is told in the answer, or is nothing of ours."""

_FIRST = [
    "status",
    "watch",
    "report",
    "resume",
    "cancel",
    "run",
    "show",
    "compare",
    "plan",
    "timeline",
    "simulate",
    "lab",
]
PLACES: dict[str, Callable[[Draw], str]] = {
    **dict.fromkeys(
        (
            *_FIRST,
            "grid show",
            "grid select --fastest 1",
            "help",
            "run -n",
            "run --add ok.yaml",
            "pool --stop",
        ),
        bad_name,
    ),
    "generate": bad_choice,
    "reproduce": bad_choice,
}
"""What stands first in a command: a file, a run, a name."""

TWICE = (
    ("simulate", LOG, "--priority", "fl", "--priority", "fs"),
    ("compare", WORKFLOW, "--cap", "4", "--cap", "5"),
    ("plan", WORKFLOW, "--at", "1d", "--at", "2d"),
    ("run", "ok.yaml", "--strategy", "glume", "--strategy", "one-job"),
    ("stream", "--workload", "sipht", "--workload", "mixture"),
    ("generate", "montage", "--tasks", "50", "--tasks", "60", "-o", "new.json"),
    ("generate", "montage", "-o", "a.json", "--output", "b.json"),
    ("generate", "montage", "--set", "x=1", "--set", "x=2", "-o", "new.json"),
)
