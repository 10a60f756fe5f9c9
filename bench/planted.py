"""Bugs put in by hand, to see whether runs in virtual time find them.

    python bench/planted.py [name ...]

Each is a file `tests/planted/NAME.patch`: what it breaks (`Bug:`), of which kind it is (`Kind:`),
why it need not be found (`Excuse:`, where that can be shown), and lines before and after, as in a
patch without line numbers. What stands before must be in today's source exactly once. A bug is put
into a copy of `src`, and up to `MOST_RUNS` worlds of all kinds are played with it. What came of it
is kept for as long as neither the source nor the bug changes, so that hunting can be stopped and
continued.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # so that `bench` is this folder's name

from bench.campaigns import KEPT, ROOT, source, workers

PATCHES = ROOT / "tests" / "planted"
MOST_RUNS = 300
SEED = 20_000_000
WORLDS = f"--seed {SEED} --runs {MOST_RUNS} --with mixed --until-found"
LONGEST_S = 900
"""How much CPU all runs with one bug may take: where one hangs, that is found, too."""
_PLAYS = f"""
import resource, runpy
resource.setrlimit(resource.RLIMIT_CPU, ({LONGEST_S}, {LONGEST_S + 9}))
runpy.run_module("windrow.trials.virtual", run_name="__main__")
"""
_WIDTH = 160


@dataclass(frozen=True, slots=True)
class Edit:
    """In this file this text becomes that one."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Bug:
    """What is put in. `excuse`: why it cannot change what the code does."""

    name: str
    what: str
    kind: str
    edits: tuple[Edit, ...]
    text: str
    excuse: str = ""


@dataclass(frozen=True, slots=True)
class Hunt:
    """After how many runs something was wrong, and what; 0: never."""

    runs: int
    found: str = ""


def read_bug(path: Path) -> Bug:
    """The bug in this file. ValueError where it says none."""
    text = path.read_text()
    head, _, patch = text.partition("\n--- ")
    told = dict(re.findall(r"^([A-Z]\w+): (.+)$", head, re.M))
    edits = tuple(_edits(f"--- {patch}"))
    if unknown := told.keys() - {"Bug", "Kind", "Excuse"}:
        raise ValueError(f"{path.name}: {', '.join(sorted(unknown))} means nothing")
    if not edits or not {"Bug", "Kind"} <= told.keys():
        raise ValueError(f"{path.name}: no Bug, no Kind or nothing to change")
    return Bug(path.stem, told["Bug"], told["Kind"], edits, text, told.get("Excuse", ""))


def _edits(patch: str) -> Iterator[Edit]:
    for part in re.split(r"^--- ", patch, flags=re.M)[1:]:
        path, *hunks = re.split(r"^@@.*\n", part, flags=re.M)
        for hunk in hunks:
            lines = hunk.splitlines()
            before = "\n".join(line[1:] for line in lines if line[:1] in (" ", "-"))
            after = "\n".join(line[1:] for line in lines if line[:1] in (" ", "+"))
            yield Edit(path.strip(), before, after)


def all_bugs() -> list[Bug]:
    """Those of the repository."""
    return [read_bug(path) for path in sorted(PATCHES.glob("*.patch"))]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _places(edit: Edit, lines: Sequence[str]) -> list[int]:
    """Where these lines stand, however far to the right."""
    wanted = edit.before.splitlines()
    bare = [line.strip() for line in wanted]

    def fits(at: int) -> bool:
        there = lines[at : at + len(wanted)]
        if [line.strip() for line in there] != bare:
            return False
        shifts = {_indent(one) - _indent(other) for one, other in zip(there, wanted, strict=True)}
        return len(shifts) == 1

    return [at for at in range(len(lines)) if fits(at)]


def changed(edit: Edit, text: str) -> str:
    """The text with this edit. ValueError where it does not go in exactly once."""
    lines = text.splitlines()
    places = _places(edit, lines)
    if len(places) != 1 or edit.before == edit.after:
        raise ValueError(f"{edit.path} has these lines {len(places)} times:\n{edit.before}")
    (at,) = places
    before = edit.before.splitlines()
    shift = _indent(lines[at]) - _indent(before[0])
    after = [" " * (_indent(line) + shift) + line.strip() for line in edit.after.splitlines()]
    return "\n".join([*lines[:at], *after, *lines[at + len(before) :], ""])


def put_in(bug: Bug, root: Path) -> None:
    """Change the source below this folder. ValueError where that cannot be done."""
    for edit in bug.edits:
        path = root / edit.path
        path.write_text(changed(edit, path.read_text()))


def _copy_of_source() -> Path:
    """A fresh copy, at a place of this thread's own: what is compiled belongs to its path and
    times."""
    root = KEPT / threading.current_thread().name
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(ROOT / "src", root / "src")
    return root


def hunt(bug: Bug | None, worlds: str = WORLDS) -> Hunt:
    """Play until this bug is found; None: the source as it is, of which nothing may be found."""
    root = _copy_of_source()
    if bug is not None:
        put_in(bug, root)
    command = [sys.executable, "-c", _PLAYS, *worlds.split(), "--json"]
    env = {**os.environ, "PYTHONPATH": str(root / "src")}
    done = subprocess.run(command, cwd=root, env=env, check=False, capture_output=True, text=True)
    if done.returncode == -signal.SIGXCPU:
        return Hunt(MOST_RUNS, f"no end within {LONGEST_S} s of CPU")
    if not done.stdout:
        raise RuntimeError(f"{bug.name if bug else 'no bug'}: {done.stderr[-2000:]}")
    found = json.loads(done.stdout)
    if not found["violations"]:
        return Hunt(0)
    return Hunt(found["runs"], _in_short(found["violations"][0], str(root)))


def _in_short(violation: str, root: str) -> str:
    """What was said of it: of an error that the code raised the last line."""
    said, _, _ = violation.replace(root, "").partition("; to play it again")
    line = said.strip().splitlines()[-1].replace("|", "/")
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]} ..."


def kept_hunt(bug: Bug | None) -> Hunt:
    """As `hunt`, once for each bug and source."""
    of = f"{source()} {WORLDS} {bug.text if bug else ''}"
    path = KEPT / f"{hashlib.sha256(of.encode()).hexdigest()[:20]}.json"
    if path.exists():
        return Hunt(**json.loads(path.read_text()))
    found = hunt(bug)
    path.write_text(json.dumps(asdict(found)))
    return found


def rows(bugs: Sequence[Bug | None]) -> Iterator[tuple[Bug | None, Hunt]]:
    """What came of each, in order; as many at a time as may play."""
    with ThreadPoolExecutor(workers(), "copy") as pool:
        yield from zip(bugs, pool.map(kept_hunt, bugs), strict=True)


def table(names: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """A table in Markdown, and what failed: bugs that were not found, or runs that fail without."""
    bugs: list[Bug | None] = [bug for bug in all_bugs() if not names or bug.name in names]
    lines = ["| bug | of which kind | runs | what was found |", "| --- | --- | ---: | --- |"]
    wrong = []
    for bug, found in rows([None, *bugs]):
        lines.append(_row(bug, found))
        is_right = not found.runs if bug is None else bool(found.runs or bug.excuse)
        wrong += [] if is_right else [bug.name if bug else "runs without a bug"]
        print(lines[-1], flush=True)
    return lines, wrong


def _row(bug: Bug | None, found: Hunt) -> str:
    if bug is None:
        return f"| none | | {found.runs or MOST_RUNS} | {found.found or 'nothing'} |"
    runs = str(found.runs) if found.runs else f"not in {MOST_RUNS}"
    return f"| {bug.what} | {bug.kind} | {runs} | {found.found or bug.excuse or '**nothing**'} |"


def main(names: Sequence[str]) -> int:
    """Hunt these bugs, or all."""
    wrong = table(names)[1]
    print(f"not as it should be: {', '.join(wrong) or 'nothing'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
