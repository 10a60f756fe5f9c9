"""Speed of Windrow, side by side with what one would use instead.

    python bench/bench.py [--quick] [--no-peers] [--json FILE]

Tables go to stdout, progress to stderr; nothing is written unless asked, save AccaSim's environment
in bench/.peers. The exit status is 1 where a result is wrong: a fast wrong answer is worth nothing.
A missed target is only told.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path[0] = str(
    Path(__file__).resolve().parents[1]
)  # so that `bench` is this folder and not this file

from rich.table import Table  # noqa: E402
from rich.text import Text  # noqa: E402

from bench import (  # noqa: E402
    grid_schedules,
    growth,
    live_cluster,
    long_queues,
    no_failures,
    peers,
    trials,
    whole_logs,
    workflow_size,
)
from bench.logs import load_logs, lublin  # noqa: E402
from bench.progress import Progress  # noqa: E402
from bench.tables import console, seconds  # noqa: E402
from windrow.kernels.jit import is_compiled  # noqa: E402
from windrow.sim import simulate  # noqa: E402

# Seconds on a quiet two-core machine, for the time left: (in full, quick).
EXPECTED_S: Mapping[str, tuple[float, float]] = {
    "kernels and logs": (1, 1),
    "whole logs": (15, 5),
    "failures": (25, 15),
    "cluster under way": (3, 2),
    "peers": (32, 6),
    "growth": (80, 8),
    "workflows": (15, 2),
    "trials": (8, 2),
    "schedules": (60, 8),
    "long queues": (60, 5),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say whether all results were right."""
    options = _parser().parse_args(arguments)
    parts = {
        name: s[options.quick] for name, s in EXPECTED_S.items() if options.peers or name != "peers"
    }
    progress = Progress(parts)
    screen = console()
    facts = machine()
    screen.print(Text(" · ".join(f"{key} {value}" for key, value in facts.items())))
    records: dict[str, Any] = {"machine": facts, "quick": options.quick}
    for found, shown in _parts(progress, quick=options.quick, with_peers=options.peers):
        records |= found
        progress.clear()
        for grid in shown:
            screen.print("", grid)
    progress.finish()
    screen.print("", *_verdicts(records), sep="\n")
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    return 1 if _wrong(records) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench.py", description="Times Windrow, and what one would use instead."
    )
    parser.add_argument(
        "--quick", action="store_true", help="smaller sizes, fewer repetitions: under a minute"
    )
    parser.add_argument(
        "--no-peers", dest="peers", action="store_false", help="leave the other simulators out"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every number there")
    return parser


def machine() -> dict[str, str]:
    """Where the times were taken. A load near or above the number of cores makes them too long."""
    versions = {name: version(name) for name in ("windrow", "numpy", "numba")}
    load = {"load before": f"{os.getloadavg()[0]:.1f}"} if hasattr(os, "getloadavg") else {}
    return {
        "Python": platform.python_version(),
        **versions,
        "CPU": _cpu(),
        "cores": str(os.cpu_count()),
        **load,
    }


def _cpu() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _parts(
    progress: Progress, *, quick: bool, with_peers: bool
) -> Iterator[tuple[dict[str, Any], list[Table]]]:
    """Each part's numbers, by name, and its tables."""
    progress.part("kernels and logs")
    if not is_compiled():
        progress.say("compiling the kernels, once; up to half a minute")
    simulate(lublin(100))  # loads them, or compiles them
    logs = load_logs()
    progress.part("whole logs")
    whole = whole_logs.run(logs, progress, quick=quick)
    yield (
        {"logs": logs.source, "recorded": logs.real, "whole_logs": _plain(whole)},
        whole_logs.tables(whole, logs),
    )
    progress.part("failures")
    turns = no_failures.run(progress, quick=quick)
    yield {"no_failures": _plain(turns)}, no_failures.tables(turns)
    progress.part("cluster under way")
    states, spread = live_cluster.run(logs, progress, quick=quick)
    yield (
        {"states": _plain(states), "spread": asdict(spread)},
        live_cluster.tables(states, spread, logs),
    )
    if with_peers:
        progress.part("peers")
        compared = peers.run(logs, progress, quick=quick)
        yield {"peers": _plain(compared)}, peers.tables(compared, logs, whole)
    progress.part("growth")
    points, exponents = growth.run(progress, quick=quick)
    yield (
        {"growth": _plain(points), "exponents": _plain(exponents)},
        growth.tables(points, exponents),
    )
    progress.part("workflows")
    sizes = workflow_size.run(progress, quick=quick)
    yield {"workflows": _plain(sizes)}, workflow_size.tables(sizes)
    progress.part("trials")
    speeds, decision = trials.run(logs, progress, quick=quick)
    yield (
        {"trials": _plain(speeds), "decision": asdict(decision)},
        trials.tables(speeds, decision, logs),
    )
    progress.part("schedules")
    timed = grid_schedules.run(progress, quick=quick, with_peers=with_peers)
    yield {"schedules": _plain(timed)}, grid_schedules.tables(timed)
    progress.part("long queues")
    queues = long_queues.run(progress, quick=quick)
    yield {"long_queues": _plain(queues)}, long_queues.tables(queues)


def _plain(rows: Sequence[Any]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]


def _targets(records: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """Every target that applied, by name, and whether it was met."""
    found = [(f"{one['log']} {one['policy']}", one["met"]) for one in records["whole_logs"]]
    found += [
        (f"{one['log']} {one['policy']} beside no failures", one["met"])
        for one in records["no_failures"]
    ]
    for one in records["states"]:
        found += [
            (f"{name} at the {one['state']}", one[f"{name}_met"]) for name in ("clone", "estimate")
        ]
    found += [(f"{one['tasks']:,} tasks", one["met"]) for one in records["workflows"]]
    found.append(("a glume decision", records["decision"]["met"]))
    found += [
        (f"HEFT on {one['processors']:,} processors", one["met"]) for one in records["schedules"]
    ]
    found += [
        (f"{one['waiting']:,} waiting, {one['policy']}", one["met"])
        for one in records["long_queues"]
    ]
    return [(name, met) for name, met in found if met is not None]


def _wrong(records: Mapping[str, Any]) -> list[str]:
    """Results that are not what they must be; a peer that is right in general counts against
    Windrow."""
    found = [
        f"{one['log']} {one['policy']}" for one in records["whole_logs"] if one["right"] is False
    ]
    found += [
        f"{one['log']} {one['policy']} beside no failures"
        for one in records["no_failures"]
        if not one["same"]
    ]
    for one in records.get("peers", ()):
        if one["same"] is False and not one["known_wrong"]:
            found.append(f"{one['policy']} beside {one['tool']}")
    found += [
        f"HEFT beside saga on {one['processors']}"
        for one in records["schedules"]
        if one["same"] is False
    ]
    return found + [f"{one['tasks']:,} tasks" for one in records["workflows"] if not one["right"]]


def _verdicts(records: Mapping[str, Any]) -> list[Text]:
    targets = _targets(records)
    wrong = _wrong(records)
    missed = [name for name, met in targets if not met]
    lines = [
        Text(f"Targets: {len(targets) - len(missed)} met, {len(missed)} MISSED{_list(missed)}")
    ]
    spread = records["spread"]
    if not records["recorded"]:
        lines = [Text("Targets are for the recorded logs, which are not here.")]
    elif spread["over_target"]:
        share = (
            f"{spread['over_target']} of {spread['instants']} instants, at worst "
            f"{seconds(spread['worst_s'])}"
        )
        lines.append(Text(f"Estimates take longer than their target at {share}."))
    if float(records["machine"].get("load before", 0)) > (os.cpu_count() or 1) / 2:
        lines.append(Text("The machine was busy before this began; the times may be too long."))
    if wrong:
        lines.append(Text(f"WRONG results{_list(wrong)}", style="bold red"))
    return lines


def _list(names: Sequence[str]) -> str:
    return f": {', '.join(names)}" if names else ""


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped")
