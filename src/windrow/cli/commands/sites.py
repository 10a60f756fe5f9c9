"""`windrow sites`: what each site offers now, or whether one can be used."""

import argparse
from dataclasses import asdict

from windrow.cli import options, terminal
from windrow.errors import printable
from windrow.model import format_duration, is_never


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.adder(parser)("--on SITE[,SITE...]", help=f"{options.ON}; several, separated by commas")
    words = "check all that a run needs from the site (default: local); a fix for each problem"
    parser.add_argument("--check", action="store_true", help=words)
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Ask each and show; 1 if one cannot be used."""
    if args.check:
        return _check(args.on or options.usual_on(), as_json=args.json)
    from windrow.app.settings import settings_of
    from windrow.app.sites import offering

    settings = settings_of()
    if args.on:
        asked = options.on_of(args.on)
    else:
        asked = {}
    if asked:
        names = [asked["on"], *asked["also"]]
    else:
        names = [*settings.tables] or ["local"]
    with terminal.waiting(f"asking {', '.join(names)}"):
        found = [offering(name) for name in names]
    code = int(any(one["trouble"] for one in found))
    if args.json:
        terminal.print_json({"sites": found})
        return code
    rows = []
    for one in found:
        numbers = [
            str(one.get(key, "")) for key in ("nodes", "open_nodes", "free_nodes", "jobs_waiting")
        ]
        waits_s = [one[key] for key in ("wait_s", "wide_wait_s") if key in one]
        waits = [
            "never" if is_never(wait_s) else format_duration(wait_s) for wait_s in waits_s
        ] or ["", ""]
        rows.append(
            [
                one["site"],
                *numbers,
                *waits,
                f"{one['speed']:g}",
                f"{one['price']:g}",
                one["trouble"],
            ]
        )
    heads = (
        "site",
        "nodes",
        "open",
        "free",
        "jobs waiting",
        "wait, 1 node",
        "wait, half",
        "speed",
        "price",
        "",
    )
    terminal.show(terminal.table(heads, rows, "lrrrrrrrrl"))
    return code


def _check(name: str, *, as_json: bool) -> int:
    """Try one thing after the other, and say at once what came of it; 1 if something is wrong."""
    from windrow.app.doctor import examine

    found = []
    for finding in examine(name):
        found.append(finding)
        if not as_json:
            print(
                printable(
                    f"{'problem' if finding.fix else 'ok':>8}  {finding.what}: {finding.said}"
                ),
                flush=True,
            )
            if finding.fix:
                print(printable(f"          fix: {finding.fix}"), flush=True)
    if as_json:
        terminal.print_json({"on": name, "findings": [asdict(finding) for finding in found]})
    if any(finding.fix for finding in found):
        return 1
    return 0
