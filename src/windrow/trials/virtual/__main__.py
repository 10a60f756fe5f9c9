"""`python -m windrow.trials.virtual --seed 7`: play a run with drawn faults and tell its story; or
many, and count.

It prints by itself, as it is a tool of those who develop Windrow, and what a broken invariant names
to play it again. Of many runs the first one that fails is played again, ever smaller (`shrink`).
What never happened in a large campaign is a failure of these worlds: then nothing was shown.
"""

import argparse
import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from windrow.model import format_duration
from windrow.trials.virtual.chart import chart
from windrow.trials.virtual.counted import never
from windrow.trials.virtual.drawn import (
    FEATURES,
    STRATEGIES,
    USUAL,
    Ending,
    VirtualScenario,
    every_record,
    play_all,
)
from windrow.trials.virtual.faults import Kind
from windrow.trials.virtual.mixed import mixed
from windrow.trials.virtual.shrink import Shrinking

TELLS_EVERY_S = 2.0
LARGE = 1000
"""In that many runs, each fault must have struck and each invariant been exercised."""
MIXED = "mixed"


_GIVEN = ("strategy", "kind", "record", "surely", "only")


def _features(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := [name for name in names if name not in (*FEATURES, MIXED)]:
        known = ", ".join((*FEATURES, MIXED))
        raise argparse.ArgumentTypeError(f"no world has {unknown[0]!r}; there are {known}")
    if MIXED in names and len(names) > 1:
        raise argparse.ArgumentTypeError("mixed draws the others for each run: give it alone")
    return names


def _numbers(text: str) -> tuple[int, ...]:
    if text == "none":
        return ()
    return tuple(map(int, text.split(",")))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m windrow.trials.virtual",
        description=__doc__.partition("\n\n")[0].replace("\n", " "),
        epilog="What a world may have: "
        + "; ".join(f"{name}: {one.meaning}" for name, one in FEATURES.items())
        + "; mixed: each run draws which of them, and its sizes.",
    )
    add = parser.add_argument
    add("--seed", type=int, default=0, help="which run to play (default: 0)")
    add("--runs", type=int, default=1, help="how many, from this seed on (default: 1)")
    add("--strategy", default="", choices=STRATEGIES, help="default: drawn")
    add("--lanes", type=int, default=6, help="tasks side by side (default: 6)")
    add("--levels", type=int, default=10, help="tasks one after another (default: 10)")
    add("--faults", type=int, default=8, help="the most that go wrong (default: 8)")
    add(
        "--with",
        dest="features",
        type=_features,
        default=(),
        metavar="NAME,...",
        help="what the world has besides, see below",
    )
    add("--copies", type=int, default=1, help="jobs that run the same tasks (default: 1)")
    add("--replicas", type=int, default=1, help="the most replicas of a task (default: 1)")
    add(
        "--reliability",
        type=float,
        default=0.0,
        help="tasks get copies until one of the attempts succeeds with this probability",
    )
    add("--shape", type=float, default=0.0, help="nodes fail, with Weibull lives of this shape")
    add("--only", type=_numbers, metavar="N,...", help="of the faults drawn these, or none")
    kinds = [str(kind) for kind in Kind]
    add("--kind", default="", choices=kinds, metavar="KIND", help="only this fault, at --record")
    add("--surely", default="", choices=kinds, metavar="KIND", help="this fault, besides others")
    add("--record", type=int, help="the record of the journal at which it strikes")
    add("--every-record", action="store_true", help="each kind of fault at each record of the run")
    add("--until-found", action="store_true", help="stop at the first run that fails")
    add("--workers", type=int, default=1, help="processes that play (default: 1)")
    add("--json", action="store_true", help="as JSON")
    return parser


def _asked(given: argparse.Namespace) -> list[VirtualScenario]:
    """The runs to play, in order."""
    values = {name: getattr(given, name) for name in (*_GIVEN, *USUAL)}
    values |= {FEATURES[name].field: 1 for name in given.features if name != MIXED}
    first = VirtualScenario(given.seed, **values)
    if given.every_record:
        return every_record(first)
    runs = [replace(first, seed=first.seed + n) for n in range(given.runs)]
    if MIXED in given.features:
        return [mixed(one) for one in runs]
    return runs


def main(words: list[str]) -> int:
    """Play what is asked for; 1 if an invariant is broken, or was never looked at."""
    given = _parser().parse_args(words)
    asked = _asked(given)
    told = _Told(has_all=MIXED in given.features)
    played = play_all(asked, given.workers, tells=len(asked) == 1)
    for ending in _counted(played, len(asked)):
        told.add(ending)
        if ending.violation and given.until_found:
            break
    found = told.summary()
    if given.json:
        print(json.dumps(found, indent=1))
    else:
        _print(found)
        _print_smaller(told.failed, len(asked))
    if found["violations"] or found["never"]:
        return 1
    return 0


def _cpu_s() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


@dataclass
class _Told:
    """What came of these runs so far."""

    has_all: bool
    """Whether they are in worlds of all kinds."""
    counts: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    exercised: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    failed: Ending | None = None
    """The first that failed."""
    last: Ending | None = None
    began_s: float = field(default_factory=_cpu_s)

    def add(self, played: Ending) -> None:
        """This run has ended."""
        self.met.update(played.met)
        self.exercised.update(played.exercised)
        self.counts.update(runs=1, managers=played.managers, records=played.records)
        self.counts.update(seconds=played.run_s)
        if played.violation:
            self.violations.append(played.violation)
            self.failed = self.failed or played
        self.last = played

    def summary(self) -> dict[str, Any]:
        """All of it; of a single run its story, too."""
        counts = dict(self.counts)
        hours = counts.pop("seconds", 0) / 3600
        return {
            **counts,
            "hours": hours,
            "cpu_s": _cpu_s() - self.began_s,
            "met": dict(sorted(self.met.items())),
            "exercised": dict(sorted(self.exercised.items())),
            "never": self.never(),
            "violations": self.violations,
            **(self.last.story if self.last else {}),
        }

    def never(self) -> list[str]:
        """What these runs were to show and did not meet, if they are many."""
        if self.counts["runs"] < LARGE or not self.has_all:
            return []
        return never(self.met, self.exercised)


def _counted(found: Iterable[Ending], total: int) -> Iterator[Ending]:
    """The same runs, told on the way: how many are done, and how long the others should take."""
    began_s = told_s = time.monotonic()
    for done, played in enumerate(found, 1):
        yield played
        if (now_s := time.monotonic()) - told_s > TELLS_EVERY_S and done < total:
            told_s = now_s
            left = format_duration((now_s - began_s) / done * (total - done))
            print(f"{done:,} of {total:,} runs, about {left} left", file=sys.stderr, flush=True)


def _print(found: dict[str, Any]) -> None:
    for fault in found.get("faults", ()):
        if fault["record"] is None:
            print(f"{fault['at_s']}: {fault['kind']}")
        else:
            print(f"record {fault['record']}: {fault['kind']}")
    for job in found.get("jobs", ()):
        times = " -> ".join(str(job[name]) for name in ("planned_s", "started_s", "ended_s"))
        what = f"job {job['job']} ({job['id']}): {job['tasks']} tasks on {job['nodes']}"
        print(f"{what}, {times}, {job['state']} {job['note']}")
    if found.get("jobs"):
        print("\n".join(chart(found)))
    for violation in found["violations"]:
        print(f"VIOLATION: {violation}")
    for name in found["never"]:
        print(f"NEVER MET: {name}, in {found['runs']} runs")
    print("met:", _listed(found["met"]) or "no fault")
    print("looked at:", _listed(found["exercised"]) or "nothing")
    counts = f"{found['runs']} runs, {found['managers']} managers"
    print(f"{counts}, {len(found['violations'])} violations")
    hours = found["hours"]
    cpu_s = found["cpu_s"]
    pace = hours / max(cpu_s, 0.001)
    print(f"{hours:.1f} hours in {cpu_s:.1f} s of CPU: {pace:.1f} run-hours a second")


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _print_smaller(failed: Ending | None, runs: int) -> None:
    """Of many runs that were played: the smallest one like the first that failed."""
    if failed is None or runs == 1:
        return
    best = Shrinking(failed).smallest()
    print(f"smallest run that fails: {best.violation}")
    print(f"its story: {best.scenario.command}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
