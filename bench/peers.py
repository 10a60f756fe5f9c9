"""Part 3: what one would use instead, on the same log in the same run, and what others measured
elsewhere.

Fairness. A peer and Windrow get the same cleaned jobs, and each pair of times covers the same work:
SimPy's jobs are in memory, as Windrow's are; AccaSim reads the SWF file while it simulates, so
Windrow's time then includes reading it. A peer that is too slow gets fewer jobs, and so does
Windrow: nothing is extrapolated.

Left out, with reasons: pybatsim, batsim-py and evalys need the Batsim server, which is not on PyPI;
hpcsim models GPU training, whose run times it derives itself; pyss, CQSim, Alea, WRENCH and
schedgym are not on PyPI at all.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from rich.table import Table

from bench.logs import KTH, BenchLogs
from bench.peer_process import HERE, Answer, PeerMissingError, TooSlowError, accasim_python, ask
from bench.progress import Progress
from bench.tables import ratio, seconds, table
from bench.timing import measure
from bench.whole_logs import WholeLog
from windrow.formats import read_log, write_log
from windrow.model import Log
from windrow.sim import simulate

PEERS = (("SimPy", "fcfs"), ("AccaSim", "easy"), ("AccaSim", "fcfs"))
KNOWN_WRONG = {("AccaSim", "easy"): "jobs pass the head and delay it"}

_FEWEST_JOBS = 500

# Whole KTH-SP2, 28,467 jobs; wall seconds in this order, measured once on another two-core machine.
ORDER = ("fcfs", "easy", "conservative")
ELSEWHERE: Sequence[tuple[str, float | None, float | None, float | None, str]] = (
    ("pyss (Python 2.7)", 1.34, 4.15, 7.9, "the fastest correct one"),
    ("CQSim (Python 3.11)", 127.4, 7.2, 9.9, "fixed: as published it plans with real run times"),
    (
        "WRENCH 2.8 (C++)",
        13.1,
        9.7,
        10.3,
        "fixed: its conservative accepts holes that are too short",
    ),
    ("Alea (Java 17)", 7.5, 7.4, 25.5, "clock drifts, so starts differ slightly"),
    ("Batsim 4.2 + Batsched (C++)", 17.1, 18.5, 20.0, "nodes with identities"),
    ("Batsim 4.2 + pybatsim", None, 21.5, None, "demands neighbouring nodes"),
    ("AccaSim 1.1.3 (Python 3.9)", 31.8, 14.1, None, "its EASY is not EASY"),
    ("SimPy 4.1.2", 0.55, None, None, "written by hand"),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A peer beside Windrow on the same jobs. `problem` says why there are no times, where there
    are none."""

    tool: str
    policy: str
    jobs: int = 0
    peer_s: float | None = None
    windrow_s: float | None = None
    reading: bool = False
    mean_wait_s: float | None = None
    same: bool | None = None
    known_wrong: str = ""
    problem: str = ""


def run(logs: BenchLogs, progress: Progress, *, quick: bool) -> list[Comparison]:
    """Run every peer on the log, or on as much of it as it can do in time."""
    log = _killed_at_request(logs.logs[KTH])
    log = _first(log, 4_000) if quick else log
    found = []
    for tool, policy in PEERS:
        progress.say(f"{tool}, {policy}")
        try:
            found.append(_compared(tool, policy, log, progress, limit_s=15 if quick else 60))
        except PeerMissingError as reason:
            found.append(Comparison(tool, policy, problem=str(reason)))
    return found


def _compared(tool: str, policy: str, log: Log, progress: Progress, limit_s: float) -> Comparison:
    python = _python(tool)
    while len(log) >= _FEWEST_JOBS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                return _beside(tool, policy, log, python, Path(folder), progress, limit_s)
            except TooSlowError:
                log = _first(log, len(log) // 4)
    raise PeerMissingError(f"it did not finish {_FEWEST_JOBS} jobs within {limit_s:.0f} s")


def _beside(
    tool: str, policy: str, log: Log, python: str, folder: Path, progress: Progress, limit_s: float
) -> Comparison:
    swf = folder / "log.swf"
    write_log(log, swf)

    def waiting(left_s: float) -> None:
        progress.say(f"{tool}, {policy}, {len(log):,} jobs; it is given another {left_s:.0f} s")

    reading = tool == "AccaSim"
    answer = ask([python, *_arguments(tool, policy, log, swf)], limit_s=limit_s, waiting=waiting)

    def ours() -> None:
        simulate(read_log(swf) if reading else log, policy=policy)

    ours()  # the warm-up call
    return _comparison(
        tool, policy, log, answer, measure(ours, budget_s=1.0, least=5).median_s, reading
    )


def _comparison(
    tool: str, policy: str, log: Log, answer: Answer, windrow_s: float, reading: bool
) -> Comparison:
    wait_s = simulate(log, policy=policy).summary().mean_wait_s
    same = answer.jobs == len(log) and f"{answer.mean_wait_s:.3f}" == f"{wait_s:.3f}"
    return Comparison(
        tool=f"{tool} {answer.version}",
        policy=policy,
        jobs=len(log),
        peer_s=answer.wall_s,
        windrow_s=windrow_s,
        reading=reading,
        mean_wait_s=answer.mean_wait_s,
        same=same,
        known_wrong=KNOWN_WRONG.get((tool, policy), ""),
    )


def _python(tool: str) -> str:
    if tool == "AccaSim":
        return accasim_python()
    if find_spec("simpy") is None:
        raise PeerMissingError("it is not installed; pip install 'windrow-hpc[bench]'")
    return sys.executable


def _arguments(tool: str, policy: str, log: Log, swf: Path) -> list[str]:
    if tool == "AccaSim":
        return [str(HERE / "peer_accasim.py"), str(swf), str(log.machine_nodes), policy]
    jobs = [
        list(row)
        for row in zip(log.submit_s.tolist(), log.nodes.tolist(), log.run_s.tolist(), strict=True)
    ]
    path = swf.with_name("jobs.json")
    path.write_text(json.dumps({"nodes": log.machine_nodes, "jobs": jobs}), encoding="utf-8")
    return [str(HERE / "peer_simpy.py"), str(path), policy]


def _killed_at_request(log: Log) -> Log:
    """The same jobs with runs cut at the request, since peers do not kill."""
    return replace(log, run_s=np.minimum(log.run_s, log.requested_s))


def _first(log: Log, jobs: int) -> Log:
    columns = ("job", "submit_s", "nodes", "requested_s", "run_s", "user")
    return replace(log, **{name: getattr(log, name)[:jobs] for name in columns})


def tables(found: Sequence[Comparison], logs: BenchLogs, whole: Sequence[WholeLog]) -> list[Table]:
    """What was run now, and apart from it what was measured elsewhere."""
    columns = (
        "tool",
        "policy",
        "jobs",
        "tool takes",
        "Windrow takes",
        "ratio",
        "mean wait s",
        "result",
    )
    notes = [
        "AccaSim reads the SWF file as it simulates; Windrow's time beside it includes reading "
        "the file too."
    ]
    rows = [_row(one) for one in found]
    return [
        table(f"3. Peers from PyPI, run now on {logs.title(KTH)}", columns, rows, notes),
        *([_elsewhere(whole, found)] if logs.real else []),
    ]


def _row(one: Comparison) -> tuple[str, ...]:
    if one.peer_s is None or one.windrow_s is None or one.mean_wait_s is None:
        return (one.tool, one.policy, "-", "-", "-", "-", "-", f"left out: {one.problem}")
    differs = (
        f"known wrong ({one.known_wrong})" if one.known_wrong else "WRONG: differs from Windrow"
    )
    result = "the same" if one.same else differs
    times = (seconds(one.peer_s), seconds(one.windrow_s), ratio(one.peer_s / one.windrow_s))
    return (one.tool, one.policy, f"{one.jobs:,}", *times, f"{one.mean_wait_s:,.3f}", result)


def _elsewhere(whole: Sequence[WholeLog], found: Sequence[Comparison]) -> Table:
    ours_s = {one.policy: one.median_s for one in whole if one.log == KTH}
    rows = [
        (
            tool,
            *(
                _against(time_s, ours_s[policy])
                for time_s, policy in zip(times_s, ORDER, strict=True)
            ),
            note,
        )
        for tool, *times_s, note in ELSEWHERE
    ]
    notes = [
        "Not run now: measured once, on another two-core machine. In brackets: how many times "
        "Windrow's time above."
    ]
    if slower := _slower_elsewhere(found, whole):
        shown = f"{min(slower):.1f} to {max(slower):.1f}"
        notes.append(
            f"Tools run in both places took {shown} times as long there; the brackets may "
            "flatter Windrow by that."
        )
    return table(f"   Measured elsewhere: {KTH}, whole log", ("tool", *ORDER, "note"), rows, notes)


def _slower_elsewhere(found: Sequence[Comparison], whole: Sequence[WholeLog]) -> list[float]:
    """How many times as long the same tool took there as here, for each whole log that it did in
    both places."""
    there_s = {
        (tool.split()[0], policy): times[i]
        for tool, *times, _ in ELSEWHERE
        for i, policy in enumerate(ORDER)
    }
    jobs = max(one.jobs for one in whole if one.log == KTH)
    pairs = [
        (there_s.get((one.tool.split()[0], one.policy)), one.peer_s)
        for one in found
        if one.jobs == jobs
    ]
    return [there / here for there, here in pairs if there and here]


def _against(time_s: float | None, ours_s: float) -> str:
    return "-" if time_s is None else f"{seconds(time_s)} ({ratio(time_s / ours_s)})"
