"""`windrow sites`: what each site offers now."""

import argparse

from windrow.cli import options, terminal
from windrow.model import format_duration, is_never


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.adder(parser)("--on SITE[,SITE...]", help=f"{options.ON}; several, separated by commas")
    options.add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Ask each and show."""
    from windrow.app.settings import find_settings, read_settings
    from windrow.app.sites import offering

    asked = options.on_of(args.on) if args.on else {}
    names = [asked["on"], *asked["also"]] if asked else [*read_settings(find_settings())] or ["local"]
    with terminal.waiting(f"asking {', '.join(names)}"):
        found = [offering(name) for name in names]
    if args.json:
        terminal.print_json({"sites": found})
        return
    rows = []
    for one in found:
        numbers = [str(one.get(key, "")) for key in ("nodes", "open_nodes", "free_nodes", "jobs_waiting")]
        waits_s = [one[key] for key in ("wait_s", "wide_wait_s") if key in one]
        waits = ["never" if is_never(wait_s) else format_duration(wait_s) for wait_s in waits_s] or ["", ""]
        rows.append([one["site"], *numbers, *waits, f"{one['speed']:g}", f"{one['price']:g}", one["trouble"]])
    heads = ("site", "nodes", "open", "free", "jobs waiting", "wait, 1 node", "wait, half", "speed", "price", "")
    terminal.show(terminal.table(heads, rows, "lrrrrrrrrl"))
