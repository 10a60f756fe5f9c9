"""How much a run asks of the controller, by sdiag: little, and the same for any number of tasks."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest
from tests.real.works import IS_FULL
from tests.slurm.cluster import SlurmCluster
from tests.slurm.home import Home
from tests.slurm.parts import Case, written
from tests.slurm.shared import USER, submit

from windrow.story.events import JobsPlanned
from windrow.story.journal import RunJournal

A_MINUTE = 6
A_DECISION = 15
TO_BEGIN = 25
"""What a run asks before it decides: what the site is, and allows."""


def rpcs(slurm: SlurmCluster) -> int:
    """All that the ordinary user's commands have asked of the controller."""
    by_user = slurm.run("sdiag").partition("statistics by user")[2]
    found = re.search(rf"^\s*{USER}\s.*?count:(\d+)", by_user, re.M)
    return int(found[1]) if found else 0


def asked(slurm: SlurmCluster, home: Home, tasks: int, takes_s: int) -> tuple[int, float, int]:
    """How much a run of a wide level and a task after it asks, its minutes, its decisions."""
    folder = home.room()
    written(Case("few", {}), folder)
    level = [
        {"id": f"t{n}", "command": f"sleep {takes_s}", "runtime": f"{takes_s}s"}
        for n in range(tasks)
    ]
    last = {"id": "last", "command": "true", "after": [one["id"] for one in level], "runtime": "1s"}
    (folder / "few.yaml").write_text(json.dumps({"name": "few", "tasks": [*level, last]}))
    home.give(folder)
    before = rpcs(slurm)
    began_s = time.monotonic()
    subprocess.run(
        [*home.windrow, "run", "few.yaml", "--on", "slurm", "--json"],
        cwd=folder,
        env=home.environment(slurm, folder),
        capture_output=True,
        timeout=600,
        check=True,
    )
    minutes = (time.monotonic() - began_s) / 60
    return rpcs(slurm) - before, minutes, _decisions(folder)


def _decisions(folder: Path) -> int:
    (run,) = (folder / ".windrow" / "runs").iterdir()
    journal = RunJournal.open(run / "journal.sqlite")
    found = sum(1 for _ in journal.records(kinds=[JobsPlanned]))
    journal.close()
    return found


CASES = [(is_busy, tasks) for is_busy in (True, False) for tasks in (40, 4)]


@pytest.mark.parametrize(("is_busy", "tasks"), CASES if IS_FULL else CASES[:1])
def test_a_run_asks_little_whatever_it_has_to_do(
    shared: SlurmCluster, home: Home, is_busy: bool, tasks: int
) -> None:
    if is_busy:  # a core of each thin node is free
        for node in range(1, 9):
            cores = f"-n{3 if node < 5 else 8}"
            submit(shared, "--wrap=exec sleep 600", "--time=60", cores, "--mem=100", f"-wn{node}")
    count, minutes, decisions = asked(shared, home, tasks, 2)
    assert decisions <= 1 + minutes, (count, minutes, decisions)
    allowed = TO_BEGIN + A_MINUTE * minutes + A_DECISION * decisions
    assert count <= allowed, (count, minutes, decisions)
