"""`windrow doctor`: whether a queue or site can be used, and what to do where it cannot."""

import argparse
from dataclasses import asdict

from windrow.cli import options, terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_on(parser)
    options.add_json(parser, "instead of lines")


def run(args: argparse.Namespace) -> int:
    """Try one thing after the other, and say at once what came of it."""
    from windrow.app.doctor import examine

    found = []
    for finding in examine(args.on):
        found.append(finding)
        if not args.json:
            terminal.say(f"{'problem' if finding.fix else 'ok':>8}  {finding.what}: {finding.said}")
            if finding.fix:
                terminal.say(f"          fix: {finding.fix}")
    if args.json:
        terminal.print_json({"on": args.on, "findings": [asdict(finding) for finding in found]})
    return 1 if any(finding.fix for finding in found) else 0
