"""`windrow init`: a first workflow, and settings as far as this machine shows them."""

from __future__ import annotations

import argparse
from pathlib import Path

from windrow.cli import terminal
from windrow.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", default=".", metavar="FOLDER", help="where (default: here)"
    )


def run(args: argparse.Namespace) -> None:
    """Write what is not there yet; nothing is replaced."""
    from windrow.app.starting import first_files
    from windrow.files import disk_faults

    folder = Path(args.folder)
    files = {folder / name: text for name, text in first_files().items()}
    there = [path for path in files if path.exists()]
    if len(there) == len(files):
        raise UserError(f"{' and '.join(map(str, there))} exist; nothing was written")
    with disk_faults(f"{folder}: cannot be written"):
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            if path in there:
                terminal.say(f"{path} exists, and stays as it is")
                continue
            with path.open("x") as file:
                file.write(text)
            terminal.say(f"wrote {path}")
    terminal.hint(f"windrow run {folder / 'first.yaml'} runs the first workflow")
