"""`python -m windrow.lab.virtual --seed 7`: play a run with drawn faults and tell its story; or many, and count.

It prints by itself, as it is a tool of those who develop Windrow, and what a broken invariant names to play it again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import asdict, replace

from windrow.lab.virtual.drawn import STRATEGIES, Played, Scenario, play
from windrow.lab.virtual.faults import Kind


def main(words: list[str]) -> int:
    """Play what is asked for; 1 where an invariant is broken."""
    parser = argparse.ArgumentParser(prog="python -m windrow.lab.virtual", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="which run to play (default: 0)")
    parser.add_argument("--runs", type=int, default=1, help="how many, from this seed on (default: 1)")
    parser.add_argument("--strategy", default="", choices=STRATEGIES, help="default: drawn")
    parser.add_argument("--lanes", type=int, default=6, help="tasks side by side (default: 6)")
    parser.add_argument("--levels", type=int, default=10, help="tasks one after another (default: 10)")
    parser.add_argument("--faults", type=int, default=8, help="the most that go wrong (default: 8)")
    parser.add_argument("--kind", default="", choices=[str(kind) for kind in Kind], help="only this fault, at --record")
    parser.add_argument("--record", type=int, help="the record of the journal at which it strikes")
    parser.add_argument("--json", action="store_true", help="as JSON")
    given = parser.parse_args(words)
    names = "strategy", "lanes", "levels", "faults", "kind", "record"
    first = Scenario(given.seed, **{name: getattr(given, name) for name in names})
    began = time.process_time()
    found = [play(replace(first, seed=first.seed + i), tells=given.runs == 1) for i in range(given.runs)]
    took_s = time.process_time() - began
    (_print_json if given.json else _print)(found, took_s)
    return 1 if any(played.violation for played in found) else 0


def _print_json(found: list[Played], took_s: float) -> None:
    print(json.dumps({"cpu_s": round(took_s, 3), "runs": [asdict(played) for played in found]}, indent=1))


def _print(found: list[Played], took_s: float) -> None:
    for played in found:
        for fault in played.story.get("faults", ()):
            print(f"{fault['at_s'] if fault['record'] is None else 'record ' + str(fault['record'])}: {fault['kind']}")
        for job in played.story.get("jobs", ()):
            times = " -> ".join(str(job[name]) for name in ("planned_s", "started_s", "ended_s"))
            what = f"job {job['job']} ({job['id']}): {job['tasks']} tasks on {job['nodes']}"
            print(f"{what}, {times}, {job['state']} {job['note']}")
        if played.violation:
            print(f"VIOLATION: {played.violation}")
    met = sum((played.met for played in found), Counter[str]())
    hours = sum(played.run_s for played in found) / 3600
    print("met:", ", ".join(f"{kind} {count}" for kind, count in sorted(met.items())) or "no fault")
    bad = sum(bool(played.violation) for played in found)
    print(f"{len(found)} runs, {sum(played.managers for played in found)} managers, {bad} violations")
    print(f"{hours:.1f} hours in {took_s:.1f} s of CPU: {hours / max(took_s, 0.001):.0f} run-hours a second")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
