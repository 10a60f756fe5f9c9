"""`python -m windrow.lab.virtual --seed 7`: play a run with drawn faults and tell its story; or many, and count.

It prints by itself, as it is a tool of those who develop Windrow, and what a broken invariant names to play it again.
"""

import argparse
import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from windrow.lab.virtual.drawn import STRATEGIES, USUAL, Ending, VirtualScenario, every_record, play_all
from windrow.lab.virtual.faults import Kind
from windrow.model import format_duration

TELLS_EVERY_S = 2.0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m windrow.lab.virtual", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="which run to play (default: 0)")
    parser.add_argument("--runs", type=int, default=1, help="how many, from this seed on (default: 1)")
    parser.add_argument("--strategy", default="", choices=STRATEGIES, help="default: drawn")
    parser.add_argument("--lanes", type=int, default=6, help="tasks side by side (default: 6)")
    parser.add_argument("--levels", type=int, default=10, help="tasks one after another (default: 10)")
    parser.add_argument("--faults", type=int, default=8, help="the most that go wrong (default: 8)")
    parser.add_argument("--copies", type=int, default=1, help="jobs that run the same tasks (default: 1)")
    parser.add_argument("--reliability", type=float, default=0.0, help="so likely is one of a task's attempts not lost")
    parser.add_argument("--speculate", type=int, default=0, choices=(0, 1), help="1: copies of tasks that are late")
    parser.add_argument("--replicas", type=int, default=1, help="the most replicas of a task (default: 1)")
    parser.add_argument("--far", type=int, default=0, choices=(0, 1), help="1: a second place, with files of its own")
    parser.add_argument("--shape", type=float, default=0.0, help="nodes fail, with Weibull lives of this shape")
    parser.add_argument("--checkpoints", type=int, default=0, choices=(0, 1), help="1: tasks have checkpoints")
    parser.add_argument("--temporary", type=int, default=0, choices=(0, 1), help="1: most files are not to be kept")
    parser.add_argument("--space", type=int, default=0, choices=(0, 1), help="1: and what they take is limited")
    parser.add_argument("--local", type=int, default=0, choices=(0, 1), help="1: jobs use disks of their nodes")
    parser.add_argument("--kind", default="", choices=[str(kind) for kind in Kind], help="only this fault, at --record")
    parser.add_argument("--record", type=int, help="the record of the journal at which it strikes")
    parser.add_argument("--every-record", action="store_true", help="each kind of fault at each record of the run")
    parser.add_argument("--workers", type=int, default=1, help="processes that play (default: 1)")
    parser.add_argument("--json", action="store_true", help="as JSON")
    return parser


def main(words: list[str]) -> int:
    """Play what is asked for; 1 where an invariant is broken."""
    given = _parser().parse_args(words)
    names = "strategy", "kind", "record", *USUAL
    first = VirtualScenario(given.seed, **{name: getattr(given, name) for name in names})
    asked = (
        every_record(first) if given.every_record else [replace(first, seed=first.seed + i) for i in range(given.runs)]
    )
    found = summary(_counted(play_all(asked, given.workers, tells=len(asked) == 1), len(asked)))
    print(json.dumps(found, indent=1)) if given.json else _print(found)
    return 1 if found["violations"] else 0


def summary(found: Iterable[Ending]) -> dict[str, Any]:
    """What came of these runs; of a single one its story, too."""
    met, counts, violations, story, began_s = Counter[str](), Counter[str](), list[str](), dict[str, Any](), _cpu_s()
    for played in found:
        met.update(played.met)
        counts.update(runs=1, managers=played.managers, records=played.records, seconds=played.run_s)
        violations += [played.violation] if played.violation else []
        story = played.story
    hours, cpu_s = counts.pop("seconds") / 3600, _cpu_s() - began_s
    told = {"hours": hours, "cpu_s": cpu_s, "met": dict(sorted(met.items())), "violations": violations}
    return {**counts, **told, **story}


def _counted(found: Iterable[Ending], total: int) -> Iterator[Ending]:
    """The same runs, told on the way: how many are done, and how long the others should take."""
    began_s = told_s = time.monotonic()
    for done, played in enumerate(found, 1):
        yield played
        if (now_s := time.monotonic()) - told_s > TELLS_EVERY_S and done < total:
            told_s, left = now_s, format_duration((now_s - began_s) / done * (total - done))
            print(f"{done:,} of {total:,} runs, about {left} left", file=sys.stderr, flush=True)


def _cpu_s() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _print(found: dict[str, Any]) -> None:
    for fault in found.get("faults", ()):
        print(f"{fault['at_s'] if fault['record'] is None else 'record ' + str(fault['record'])}: {fault['kind']}")
    for job in found.get("jobs", ()):
        times = " -> ".join(str(job[name]) for name in ("planned_s", "started_s", "ended_s"))
        what = f"job {job['job']} ({job['id']}): {job['tasks']} tasks on {job['nodes']}"
        print(f"{what}, {times}, {job['state']} {job['note']}")
    for violation in found["violations"]:
        print(f"VIOLATION: {violation}")
    print("met:", ", ".join(f"{kind} {count}" for kind, count in found["met"].items()) or "no fault")
    print(f"{found['runs']} runs, {found['managers']} managers, {len(found['violations'])} violations")
    hours, cpu_s = found["hours"], found["cpu_s"]
    print(f"{hours:.1f} hours in {cpu_s:.1f} s of CPU: {hours / max(cpu_s, 0.001):.1f} run-hours a second")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
