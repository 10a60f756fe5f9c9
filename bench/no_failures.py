"""What the possibility that nodes fail costs where none does: the kernels with it and without it,
in turns.

Without it are the same sources, from which the lines that ask for failures are cut, compiled into
their own folder. Each of the two runs in a process that is asked again and again, and times are
those of the processor.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.table import Table

from bench.logs import KTH, SDSC
from bench.progress import Progress
from bench.tables import ratio, seconds, table

ROOT = Path(__file__).resolve().parents[1]
MOST = 1.02
"""The target: times as long as without, for noise of the clock."""
CASES = ((KTH, "easy"), (KTH, "conservative"), (SDSC, "conservative"))
ADVANCE = "advance.py"
JOBS = "jobs.py"
CUTS = (
    (ADVANCE, "    if is_due(s, log):\n        fail_all(s, log, starts)\n"),
    (
        ADVANCE,
        "    if s[c.FAILURE] < log.shape[0]:\n        at = min(at, log[s[c.FAILURE], c.SUBMIT])\n",
    ),
    (
        ADVANCE,
        "    while failure < log.shape[0] and log[failure, c.SUBMIT] <= at:\n        failure += "
        "1\n",
    ),
    (JOBS, "    if s[r + c.JOB] == c.DOWN:\n        return  # a node is back, which no user had\n"),
)
ASKED = """
import sys, time
from bench.logs import load_logs
from windrow.sim import simulate
logs = load_logs().logs
for line in sys.stdin:
    log, policy = line.rstrip().split("|")
    begin = time.process_time()
    mean = simulate(logs[log], policy=policy).summary().mean_wait_s
    print(time.process_time() - begin, mean, flush=True)
"""


@dataclass(frozen=True, slots=True)
class WithAndWithout:
    """Medians of both, and of the ratios of each two in a row."""

    log: str
    policy: str
    with_s: float
    without_s: float
    ratio: float
    repetitions: int
    met: bool
    same: bool


def run(progress: Progress, *, quick: bool) -> list[WithAndWithout]:
    """Measure every case."""
    with tempfile.TemporaryDirectory() as folder, _asked(ROOT / "src") as ours:
        shutil.copytree(
            ROOT / "src", Path(folder, "src"), ignore=shutil.ignore_patterns("__pycache__")
        )
        for name, lines in CUTS:
            path = Path(folder, "src", "windrow", "kernels", "cluster", name)
            text = path.read_text()
            assert text.count(lines) == 1, f"{name} has changed: {lines}"
            path.write_text(text.replace(lines, ""))
        with _asked(Path(folder, "src"), XDG_CACHE_HOME=folder) as bare:
            found = []
            for log, policy in CASES[:2] if quick else CASES:
                progress.say(f"{log}, {policy}, with and without failures")
                found.append(_measured(ours, bare, log, policy, 7 if quick else 101))
            return found


@contextmanager
def _asked(source: Path, **more: str) -> Iterator[subprocess.Popen[str]]:
    env = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}", **more}
    command = [sys.executable, "-c", ASKED]
    with subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _measured(
    ours: subprocess.Popen[str], bare: subprocess.Popen[str], log: str, policy: str, times: int
) -> WithAndWithout:
    for process in (ours, bare):
        _ask(process, log, policy)  # loads kernels or compiles them
    pairs = [(_ask(ours, log, policy), _ask(bare, log, policy)) for _ in range(times)]
    with_s = median(a for (a, _), _ in pairs)
    without_s = median(b for _, (b, _) in pairs)
    part = median(a / b for (a, _), (b, _) in pairs)
    is_same = all(a == b for (_, a), (_, b) in pairs)
    return WithAndWithout(log, policy, with_s, without_s, part, times, part <= MOST, is_same)


def _ask(process: subprocess.Popen[str], log: str, policy: str) -> tuple[float, float]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{log}|{policy}\n")
    process.stdin.flush()
    took_s, mean_wait_s = map(float, process.stdout.readline().split())
    return took_s, mean_wait_s


def tables(found: Sequence[WithAndWithout]) -> list[Table]:
    """One row per case."""
    columns = (
        "log",
        "policy",
        "as it is",
        "without failures",
        "ratio",
        "pairs",
        "target met",
        "result",
    )
    rows = [
        (
            *(one.log, one.policy, seconds(one.with_s), seconds(one.without_s), ratio(one.ratio)),
            *(
                f"{one.repetitions}",
                "met" if one.met else "MISSED",
                "the same" if one.same else "WRONG",
            ),
        )
        for one in found
    ]
    notes = [
        "The simulator where no node fails, and the same kernels without a word of failures, in "
        "turns; CPU time."
    ]
    return [table("What the possibility of failures costs", columns, rows, notes)]
