"""`windrow sites`: what each site offers now."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from windrow.cli import options, terminal
from windrow.model import format_duration, is_never

SUMMARY = "Show what each site offers now: nodes, how long jobs would wait, speed, trouble."

EPILOG = """
Without --on: every queue and site of windrow.toml, or this machine. A wait is that of a job of one hour, submitted now,
on one node and on half of the nodes, by the simulation of the live queue that a run uses.

examples:
  windrow sites
  windrow sites --on short,long                 two partitions of Slurm
  windrow sites --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.adder(parser)("--on SITE[,SITE...]", help=f"{options.ON}; several with commas between them")
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Ask each and show."""
    from windrow.app.settings import find_settings, read_settings
    from windrow.app.sites import offering

    asked = options.on_of(args.on) if args.on else {}
    names = [asked["on"], *asked["also"]] if asked else [*read_settings(find_settings())] or ["local"]
    found = []
    for name in names:
        with terminal.waiting(f"asking {name}"):
            found.append(offering(name))
    if args.json:
        terminal.print_json({"sites": [asdict(one) for one in found]})
        return 0
    rows = []
    for one in found:
        waits = ["never" if is_never(s) else format_duration(s) for s in (one.wait_s, one.wide_wait_s) if s is not None]
        numbers = [str(n) for n in (one.nodes, one.open_nodes, one.free_nodes, one.jobs_waiting) if n is not None]
        cells = [*(numbers or [""] * 4), *(waits or [""] * 2), f"{one.speed:g}", f"{one.price:g}"]
        rows.append([one.site, *cells, one.trouble])
    heads = ("site", "nodes", "open", "free", "jobs waiting", "wait, 1 node", "wait, half", "speed", "price", "")
    terminal.show(terminal.table(heads, rows, "lrrrrrrrrl"))
    return 0
