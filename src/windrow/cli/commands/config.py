"""`windrow config`: the settings that count here, and where each was said."""

from __future__ import annotations

import argparse
import os
from typing import Any

from windrow.cli import options, terminal
from windrow.cli.usual import USUAL, usual

_DEFAULT = "default"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.adder(parser)("--profile NAME", help="with the options of [profiles.NAME]")
    options.add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Read and show."""
    from windrow.app.settings import settings_of

    settings = settings_of()
    values = _values(args.profile)
    kept = _kept()
    if args.json:
        terminal.print_json(
            {
                "file": str(settings.file) if settings.file else None,
                "run": values,
                "queues": [name for name in settings.tables if name not in settings.sites],
                "sites": list(settings.sites),
                "profiles": list(settings.profiles),
                "kept": kept,
            }
        )
        return
    rows = [(one["name"], _shown(one["value"]), one["from"]) for one in values]
    file = "no windrow.toml counts here"
    if settings.file is not None:
        file = str(settings.file)
    about = [("settings", file)]
    about += [("queues and sites", ", ".join(settings.tables) or "none described")]
    about += [("profiles", ", ".join(settings.profiles) or "none described")]
    about += [(name, path) for name, path in kept.items()]
    terminal.show(
        terminal.table(("windrow run takes", "value", "from"), rows, "<ll"),
        terminal.table(None, about, "<l"),
    )


def _values(profile: str | None) -> list[dict[str, Any]]:
    """Each option, what it is here, and why."""
    from windrow.cli.main import parser_of

    parser = parser_of("run")
    said = {one.name: one for one in usual(profile)}
    found = []
    for name in sorted(USUAL):
        value = parser.get_default(name)
        place = _DEFAULT
        if name == "on":
            value = "local"
        if name in said:
            value = said[name].value
            place = said[name].place
        found.append({"name": name, "value": value, "from": place})
    return found


def _shown(value: object) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _kept() -> dict[str, str]:
    """Where what Windrow keeps is."""
    from windrow.app.runs import runs_root
    from windrow.forecast.runtimes import default_path
    from windrow.places import user_folder

    return {
        "runs": str(runs_root()),
        "run times of tasks": str(default_path()),
        "compiled code": os.environ.get("WINDROW_CACHE") or str(user_folder("cache")),
    }
