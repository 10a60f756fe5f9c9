"""One run on two real queues at once, the local one and Slurm: each task where it fits, one after
the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.other_user import python_path
from tests.slurm.cluster import SlurmCluster

from windrow.app import execute, sites
from windrow.app.execute import drive, managed, prepare, start_run
from windrow.app.facts import RunRequest
from windrow.app.runs import RunView
from windrow.queues.local.queue import LocalQueue
from windrow.queues.port import Queue
from windrow.queues.slurm.queue import SlurmQueue


def test_tasks_of_one_run_go_to_the_local_queue_and_to_slurm(
    slurm: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.clear()
    monkeypatch.chdir(tmp_path)
    for name, place in (
        ("XDG_STATE_HOME", "state"),
        ("WINDROW_HISTORY", "h.sqlite"),
        ("WINDROW_WAITS", "w.sqlite"),
    ):
        monkeypatch.setenv(name, str(tmp_path / place))
    here = LocalQueue(tmp_path / "state" / "windrow", nodes=2, idle_s=1)
    queues: dict[str, Queue] = {
        "here": here,
        "slurm": SlurmQueue(env={**slurm.env, **python_path()}),
    }
    for module in (execute, sites):
        monkeypatch.setattr(module, "open_queue", lambda name, _shell=None: queues[name])
    rows = [
        "{id: a, command: echo a >> ran, runtime: 2s}",
        "{id: b, command: echo b >> ran, runtime: 2s, nodes: 4, after: [a]}",
        "{id: c, command: echo c >> ran, runtime: 2s, after: [b]}",
    ]
    file = tmp_path / "w.yaml"
    file.write_text("name: both\ntasks:\n" + "".join(f"  - {row}\n" for row in rows))
    paths = start_run(
        prepare(RunRequest(file, on="here", also=("slurm",), strategy="individual")),
        tmp_path / "runs",
    )
    with managed(paths) as manager:
        manager.begin()
        drive(manager)
        assert manager.core.is_complete, manager.core.trouble
    assert (tmp_path / "ran").read_text().split() == ["a", "b", "c"]
    told = RunView(paths)
    assert [job.plan.site for job in told.story.jobs.values()] == ["here", "slurm", "here"]
    told.close()
    assert slurm.run("squeue", "-h").strip() == ""
