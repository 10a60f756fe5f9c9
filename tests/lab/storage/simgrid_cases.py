"""When transfers over one shared link end, by SimGrid: `python -m tests.lab.storage.simgrid_cases`
writes simgrid.json.

A case: the wide area's bandwidth, that of each node, and transfers (begin, size, weight). One of
weight k is k of a k-th each, to as many nodes. SimGrid's model is CM02 (max-min), without
latencies, TCP's window and its replies.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

UNIT = 3000
"""SimGrid takes whole bytes: so many are one here."""
FIGURES = Path(__file__).with_name("simgrid.json")


def cases() -> list[dict[str, Any]]:
    draw = Random(16)
    return [
        {
            "remote": draw.choice([1.0, 2.5, 10.0]),
            "local": draw.choice([0.75, 3.0, 50.0]),
            "transfers": [
                (
                    draw.choice([0.0, round(draw.uniform(0, 9), 3)]),
                    draw.randint(1, 40),
                    draw.choice([1, 1, 3]),
                )
                for _ in range(draw.randint(1, 7))
            ],
        }
        for _ in range(12)
    ]


def ends(case: dict[str, Any]) -> list[float]:
    """The end of each transfer, in this process, of which SimGrid takes hold."""
    from simgrid import Engine, Mailbox, this_actor

    options = (
        "model:CM02",
        "TCP-gamma:0",
        "bandwidth-factor:1",
        "latency-factor:0",
        "crosstraffic:0",
    )
    engine = Engine(
        ["cases", *(f"--cfg=network/{option}" for option in options), "--log=root.threshold:error"]
    )
    zone = engine.netzone_root.add_netzone_full("zone")
    home, wide = zone.add_host("home", 1e9), zone.add_link("wide", UNIT * case["remote"])
    found = [0.0] * len(case["transfers"])

    def send(box: Any, begin: float, size: int) -> None:
        this_actor.sleep_for(begin)
        box.put("data", size)

    def receive(box: Any, number: int) -> None:
        box.get()
        found[number] = max(found[number], Engine.clock)

    for number, (begin, size, weight) in enumerate(case["transfers"]):
        for part in range(weight):
            host = zone.add_host(f"n{number}-{part}", 1e9)
            zone.add_route(
                home, host, [wide, zone.add_link(f"l{number}-{part}", UNIT * case["local"])]
            )
            box = Mailbox.by_name(f"{number}-{part}")
            home.add_actor("send", send, box, begin, UNIT * size // weight)
            host.add_actor("receive", receive, box, number)
    zone.seal()
    engine.run()
    return found


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(ends(json.loads(sys.argv[1]))))
    else:  # SimGrid has one engine for each process
        command = [sys.executable, "-m", "tests.lab.storage.simgrid_cases"]
        told = [
            subprocess.check_output([*command, json.dumps(case)], text=True) for case in cases()
        ]
        rows = [case | {"ends": json.loads(each)} for case, each in zip(cases(), told, strict=True)]
        FIGURES.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
