"""Many runs in virtual time, piece by piece, so that a campaign can be stopped and continued.

    python bench/campaigns.py --seed 1000000 --runs 10000 --with mixed

Seeds are played in pieces of `PIECE` runs, in order. What came of each is kept for as long as the
source does not change, in `bench/.planted`; a campaign that is asked for again continues with the
first piece that is not there. `WINDROW_WORKERS` says how many processes play.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "bench" / ".planted"
PIECE = 1000
"""In fewer runs, what never happens is not counted (`windrow.trials.virtual`)."""
_SUMS = ("runs", "managers", "records", "hours", "cpu_s")


def workers() -> int:
    """How many processes play."""
    return int(os.environ.get("WINDROW_WORKERS") or os.cpu_count() or 1)


@cache
def source() -> str:
    """What is played, as a hash of all of it."""
    paths = sorted((ROOT / "src").rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def pieces(words: str, size: int = PIECE) -> list[str]:
    """The same runs, at most this many at a time. Those of --every-record are one piece."""
    asked = {name: re.search(rf"--{name} (\d+)", words) for name in ("seed", "runs")}
    if "--every-record" in words or asked["seed"] is None or asked["runs"] is None:
        return [words]
    first, runs = int(asked["seed"][1]), int(asked["runs"][1])
    rest = re.sub(r" *--(seed|runs) \d+", "", f" {words}").strip()
    return [
        f"--seed {first + n} --runs {min(size, runs - n)} {rest}".strip()
        for n in range(0, runs, size)
    ]


def together(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What came of all pieces. What never happened in any of them has never happened."""
    counts = {name: sum(one[name] for one in found) for name in _SUMS}
    told = {}
    for name in ("met", "exercised"):
        total = Counter[str]()
        for one in found:
            total.update(one[name])
        told[name] = dict(sorted(total.items()))
    never = [name for name in found[0]["never"] if all(name in one["never"] for one in found)]
    violations = [violation for one in found for violation in one["violations"]]
    return {**counts, **told, "never": never, "violations": violations}


def _played(words: str) -> dict[str, Any]:
    of = f"{source()} {words}"
    path = KEPT / f"{hashlib.sha256(of.encode()).hexdigest()[:20]}.json"
    if path.exists():
        kept: dict[str, Any] = json.loads(path.read_text())
        return kept
    command = [sys.executable, "-m", "windrow.trials.virtual", *words.split("\0")]
    done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    KEPT.mkdir(exist_ok=True)
    path.write_text(json.dumps(found))
    return found


def _split(words: str) -> str:
    """The words as separate arguments: one in quotes is one."""
    return "\0".join(re.sub(r'"', "", part) for part in re.findall(r'"[^"]*"|\S+', words))


def played(words: str) -> Iterator[dict[str, Any]]:
    """What came of each piece of these runs."""
    for piece in pieces(words):
        yield _played(_split(f"{piece} --workers={workers()} --json"))


def campaign(words: str) -> dict[str, Any]:
    """All of it."""
    return together(list(played(words)))


def main(words: Sequence[str]) -> int:
    """Play on, and tell after each piece what there is so far."""
    found = []
    for one in played(" ".join(f'"{word}"' if " " in word else word for word in words)):
        found.append(one)
        far = together(found)
        print(f"{far['runs']:,} runs, {len(far['violations'])} violations", flush=True)
        for violation in one["violations"]:
            print(violation, flush=True)
    return 1 if found and together(found)["violations"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
