"""Makes the pictures of the documentation: real runs, and their pages as a browser shows them.

`make docs` calls it for pictures that are missing; delete one to have it made again. It takes three
minutes, and needs Chromium (`sh tests/install-browser`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
WIDTH = 1200
FAILING = """\
name: genome
tasks:
  - {id: fetch, command: "echo reads > reads", outputs: reads, runtime: 1s}
  - id: align-{i}
    kind: align
    matrix: {i: 1..24}
    command: sleep 0.3; test {i} -ne 17 || { echo cannot read chunk {i} >&2; exit 5; }; echo {i} > {outputs}
    inputs: reads
    outputs: aligned-{i}
    runtime: 1s
  - {id: merge, command: "cat {inputs} > {outputs}", inputs: "aligned-*", outputs: merged, runtime: 1s}
"""  # noqa: E501


def demo(folder: Path) -> Path:
    """The run of `make demo`, played again by every strategy; its page."""
    command(folder, "sh", str(ROOT / "examples" / "demo.sh"), str(ROOT / "examples"))
    command(folder, "windrow", "report", "primes-1", "--what-if", "--html", "run.html")
    return folder / "run.html"


def failed(folder: Path) -> Path:
    """A run of which one task fails."""
    (folder / "genome.yaml").write_text(FAILING)
    command(folder, "windrow", "run", "genome.yaml", code=1)
    command(folder, "windrow", "report", "--html", "failed.html")
    return folder / "failed.html"


def command(folder: Path, *words: str, code: int = 0) -> None:
    """Run this there, with a queue and a history of its own."""
    env = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("STATE", "DATA", "CONFIG")}
    env["PATH"] = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
    done = subprocess.run(words, cwd=folder, env={**os.environ, **env}, check=False)
    if done.returncode != code:
        raise SystemExit(f"{' '.join(words)}: exit code {done.returncode}, not {code}")


def main() -> None:
    """What is missing."""
    wanted = {
        "run.png": (demo, ("h1", "#the-run-over-time")),
        "what-if.png": (demo, ("#what-if", "#what-if")),
        "failed.png": (failed, ("h1", "#tiles")),
    }
    missing = {name: what for name, what in wanted.items() if not (IMAGES / name).exists()}
    if not missing:
        return
    sys.path.insert(0, str(ROOT))
    from tests.browser import opened, programs  # noqa: PLC0415  (it is not there before)

    if programs() is None:
        raise SystemExit(f"no Chromium to make {', '.join(missing)}: sh tests/install-browser")
    with tempfile.TemporaryDirectory(prefix="windrow-pictures-") as place, opened() as browser:
        pages = {}
        for make in dict.fromkeys(make for make, _ in missing.values()):
            folder = Path(place, make.__name__)
            folder.mkdir()
            pages[make] = make(folder)
        for name, (make, (first, last)) in missing.items():
            browser.size(WIDTH, 900)
            browser.open(pages[make].as_uri())
            browser.wait("document.querySelectorAll('.table .line').length > 0")
            browser.picture_of(IMAGES / name, first, last)


if __name__ == "__main__":
    main()
