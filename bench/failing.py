"""What do failures of nodes cost on KTH, and what does it help foresight to know of them?

    python bench/failing.py [--times 8] [--seeds 2] [--workers 2] [--json FILE]

Workflows of 100 tasks and 500 hours of work come at times spread over the log and are run by each
strategy on the same failures of nodes (exponential, out for four hours; other users' jobs that are
hit run again, except where it says otherwise). `foresight` is there three times: it expects
failures as often as it has seen some so far; it is told how often they come; or it expects none.
Differences are paired: the same workflow, time and draw.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, cast

sys.path[0] = str(Path(__file__).resolve().parents[1])  # so that `bench` is a folder of the project

from bench.logs import KTH, load_logs  # noqa: E402
from windrow.app.strategies import find_strategy  # noqa: E402
from windrow.foresight.course import Sampling  # noqa: E402
from windrow.foresight.strategy import Foresight  # noqa: E402
from windrow.formats.failure_log import read_failures  # noqa: E402
from windrow.model import Log  # noqa: E402
from windrow.model.failures import Failures  # noqa: E402
from windrow.recipes import generate_workflow  # noqa: E402
from windrow.strategies import Strategy  # noqa: E402
from windrow.trials.compare import compare  # noqa: E402

DAY_S = 86400
RATES = {
    "no failure": "none",
    "one a day": "nodes=100d",
    "two a day": "nodes=50d",
    "one an hour, others' jobs lost": "nodes=100h,jobs=lost",
}
"""How often some of the 100 nodes fails, and what that is for each of them.

Beyond two a day KTH cannot do its work any more if all jobs that are hit run again: the queue only
grows.
"""
RECIPES = ("montage", "genome")
OTHERS = ("glume", "one-job", "individual", "level-by-level")
SEEN = "foresight, as seen"
TOLD = "foresight, told"
UNAWARE = "foresight, expecting none"
Case = tuple[str, str, int, int]
Row = dict[str, Any]


@cache
def log() -> Log:
    """The log, read once in each process."""
    return load_logs().logs[KTH]


def strategies(failures: Failures) -> list[Strategy]:
    """All that are compared."""
    usual = cast(Foresight, find_strategy("foresight"))
    ways = {
        SEEN: usual.sampling,
        TOLD: Sampling(failures=failures),
        UNAWARE: Sampling(failures=None),
    }
    return [
        *(replace(usual, name=name, sampling=way) for name, way in ways.items()),
        *map(find_strategy, OTHERS),
    ]


def run(case: Case) -> list[Row]:
    """One workflow at one time, by each strategy."""
    rate, recipe, at_s, seed = case
    failures = read_failures(RATES[rate])
    workflow = generate_workflow(recipe, tasks=100, work_s=500 * 3600, seed=seed)
    found = compare(
        workflow, log(), times=[at_s], strategies=strategies(failures), failures=failures, seed=seed
    )
    return [
        {"rate": rate, "recipe": recipe, "seed": seed, "node_failures": 0, **row}
        for row in found.rows
    ]


def cases(times: int, seeds: int) -> Iterator[Case]:
    """From day 20 on, so that there is a past, over 280 days of the log."""
    for rate in RATES:
        for recipe in RECIPES:
            for seed in range(1, seeds + 1):
                for n in range(times):
                    yield rate, recipe, 20 * DAY_S + round(n * 280 / times * DAY_S), seed


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Mean makespans in hours, node-hours held, and own jobs that lost a node."""
    yield f"| {' | '.join(['strategy', *RATES])} |"
    yield "| --- |" + " ---: |" * len(RATES)
    for name in dict.fromkeys(row["strategy"] for row in rows):
        cells = []
        for rate in RATES:
            mine = [row for row in rows if (row["strategy"], row["rate"]) == (name, rate)]
            hours, used, lost = (
                fmean(row[key] for row in mine)
                for key in ("makespan_s", "allocated_node_s", "node_failures")
            )
            cells.append(f"{hours / 3600:.1f} h, {used / 3600:,.0f}, {lost:.2f}")
        yield f"| {name} | {' | '.join(cells)} |"


def paired(rows: Sequence[Row], knowing: str) -> Iterator[str]:
    """How much sooner runs end that know, and how many node-hours they save; each with twice its
    standard error."""
    for rate in list(RATES)[1:]:
        here = [row for row in rows if row["rate"] == rate]
        both = [[row for row in here if row["strategy"] == name] for name in (UNAWARE, knowing)]
        gains = {
            key: [(a[key] - b[key]) / 3600 for a, b in zip(*both, strict=True)]
            for key in ("makespan_s", "allocated_node_s")
        }
        sooner, saved = (
            f"{fmean(gain):.1f} ± {2 * stdev(gain) / sqrt(len(gain)):.1f}"
            for gain in gains.values()
        )
        ends = gains["makespan_s"]
        counts = (
            f"{sum(one > 0 for one in ends)} runs end sooner, {sum(one < 0 for one in ends)} later"
        )
        yield (
            f"- {rate}: {knowing} ends {sooner} h sooner than expecting none, and saves "
            f"{saved} node-hours; {counts}."
        )


def main() -> int:
    """Run all, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=8, help="submission times (default: 8)")
    parser.add_argument(
        "--seeds", type=int, default=2, help="draws of failures and workflows (default: 2)"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every run there")
    given = parser.parse_args()
    asked = list(cases(given.times, given.seeds))
    rows: list[Row] = []
    with ProcessPoolExecutor(given.workers) as pool:
        for done, found in enumerate(pool.map(run, asked), 1):
            rows += found
            if done % 20 == 0:
                print(f"{done} of {len(asked)}", file=sys.stderr, flush=True)
    count = len(asked) // len(RATES)
    print(
        f"{count} runs in each cell: mean makespan, node-hours held, own jobs that lost a node.",
        "",
        sep="\n",
    )
    print(*table(rows), "", *paired(rows, SEEN), *paired(rows, TOLD), sep="\n")
    if given.json:
        given.json.write_text(json.dumps(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
