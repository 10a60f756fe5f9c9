"""What the pages show: their blocks of code in order, each with what a reader would have beside it.

A comment of Markdown, which no reader sees, says what that is, as code for a shell:

    <!-- given
    mkdir books; seq 9 > books/emma.txt
    -->

It belongs to the next block of code.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOW_TOS = sorted([ROOT / "README.md", *(ROOT / "docs" / "how-to").glob("*.md")])
REFERENCES = sorted((ROOT / "docs" / "reference").glob("*.md"))

_PIECE = re.compile(r"^<!-- given\n(?P<given>.*?)^-->|^```(?P<language>\w+)\n(?P<text>.*?)^```", re.M | re.S)
_NAMED = re.compile(r"# (\S+\.yaml)\n")


@dataclass(frozen=True)
class Block:
    """A block of code. `given` is the shell code that makes what it needs."""

    page: Path
    number: int
    language: str
    text: str
    given: str

    @property
    def file(self) -> str | None:
        """The name of the workflow that it is, where its first line says one."""
        named = _NAMED.match(self.text) if self.language == "yaml" else None
        return named[1] if named else None

    @property
    def label(self) -> str:
        """For the names of tests."""
        return f"{self.page.stem}-{self.number}"


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, in order."""
    given = ""
    for number, piece in enumerate(_PIECE.finditer(page.read_text()), 1):
        if piece["language"] is None:
            given += piece["given"]
        else:
            yield Block(page, number, piece["language"], piece["text"], given)
            given = ""


def a_home_of_its_own(folder: Path) -> dict[str, str]:
    """Variables that give a test its own queue, history and settings."""
    return {f"XDG_{name}_HOME": str(folder / "home" / name) for name in ("STATE", "DATA", "CONFIG")}


def in_a_shell(code: str, folder: Path, env: dict[str, str] | None = None) -> str:
    """Run this code as a reader would, with `windrow` on the path; what it printed as a result."""
    path = f"{Path(sys.executable).parent}:{(env or os.environ).get('PATH', os.defpath)}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        cwd=folder,
        env={**(os.environ if env is None else env), **a_home_of_its_own(folder), "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{code}\n{done.stdout}{done.stderr}"
    return done.stdout
