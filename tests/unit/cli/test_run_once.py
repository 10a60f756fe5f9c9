"""What one process of a run does once: opens each database, asks what a queue allows, reads
the workflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_FIVE_LINES = """\
name: squares
tasks:
  - id: "square-{i}"
    matrix: {i: 1..8}
    command: "echo $(( {i} * {i} )) > square-{i}"
    outputs: "square-{i}"
    runtime: 1s
  - {id: sum, command: "cat square-* > sum", inputs: "square-*", outputs: sum, runtime: 1s}
"""
_COUNTING = """\
import json, sys
from collections import Counter
from pathlib import Path
from windrow.app import settings
from windrow.cli.main import main
from windrow.model import Workflow
from windrow.queues.local.queue import LocalQueue

counts = Counter()

def opened(event, args):
    if event == "sqlite3.connect":
        counts[Path(str(args[0]).split("?")[0]).name] += 1

def counted(owner, name):
    plain = getattr(owner, name)
    def instead(*args, **more):
        counts[name if name != "__init__" else owner.__name__] += 1
        return plain(*args, **more)
    setattr(owner, name, instead)

sys.addaudithook(opened)
counted(Workflow, "__init__")
counted(LocalQueue, "limits")
counted(settings, "find_settings")
code = main(["run", "squares.yaml", "--json"])
Path("counts.json").write_text(json.dumps(counts))
sys.exit(code)
"""


@pytest.mark.slow
def test_a_run_opens_asks_and_reads_once(tmp_path: Path) -> None:
    (tmp_path / "squares.yaml").write_text(_FIVE_LINES)
    env = os.environ | {
        "HOME": str(tmp_path / "home"),
        **{f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("STATE", "DATA", "CONFIG")},
    }
    for name in [name for name in env if name.startswith("WINDROW_")]:
        del env[name]
    subprocess.run(
        [sys.executable, "-P", "-c", _COUNTING], cwd=tmp_path, env=env, check=True, timeout=120
    )
    counts = json.loads((tmp_path / "counts.json").read_text())
    assert counts.pop("find_settings") <= 5
    assert counts == {
        "queue.sqlite": 1,
        "journal.sqlite": 4,  # made whole under another name, written, shown, shown when it is over
        "history.sqlite": 1,
        "waits.sqlite": 1,  # the wait that was seen; on this machine none is looked up
        "limits": 2,  # by the run; by the queue itself, which checks what it is given
        "Workflow": 2,  # as the file says; with the run times that were learned
    }
