"""What the pages show: their blocks of code in order. Nothing else is there for a reader, or for a
test.

A block for a shell that begins with `# prepare` makes what later blocks of its page need. A block
that begins with the name of a file, as in `# samples.yaml` or `# windrow.toml`, is that file.
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
HOW_TOS = sorted(
    [
        ROOT / "README.md",
        ROOT / "docs" / "reference" / "command-line.md",
        *(ROOT / "docs" / "start").glob("*.md"),
        *(ROOT / "docs" / "how-to").glob("*.md"),
    ]
)
REFERENCES = sorted(set((ROOT / "docs" / "reference").glob("*.md")) - set(HOW_TOS))

_PIECE = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```", re.M | re.S)
_NAMED = re.compile(r"# (\S+\.(?:yaml|toml))\n")
_PREPARE = "# prepare\n"


@dataclass(frozen=True)
class Block:
    """A block of code."""

    page: Path
    number: int
    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The name of the file that it is, where its first line says one."""
        named = _NAMED.match(self.text) if self.language in ("yaml", "toml") else None
        return named[1] if named else None

    @property
    def prepares(self) -> bool:
        """Whether it is code for a shell that makes what later blocks need."""
        return self.language == "sh" and self.text.startswith(_PREPARE)

    def set_up(self, folder: Path) -> None:
        """Do what a reader does with it before any command: run it, or write the file that it
        is."""
        if self.prepares:
            in_a_shell(self.text, folder)
        elif self.file is not None:
            (folder / self.file).write_text(self.text)

    @property
    def label(self) -> str:
        """For the names of tests."""
        return f"{self.page.stem}-{self.number}"


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, in order."""
    for number, piece in enumerate(_PIECE.finditer(page.read_text()), 1):
        yield Block(page, number, piece["language"], piece["text"])


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
