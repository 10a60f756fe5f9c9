"""Jobs whose nodes have disks of their own: what stays there, what leaves when, and that nothing is
left."""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.jobs import Run, shell
from tests.unit.agent.test_nodes import cluster  # noqa: F401  (a fixture)
from tests.waiting import read_pid, wait_until

from windrow.agent.event_file import (
    AttemptFinished,
    AttemptLost,
    AttemptStarted,
    OutputsCommitted,
    TaskDeclined,
)
from windrow.agent.job_file import TaskSpec


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "disk").mkdir()
    (tmp_path / "work" / "in").write_text("in\n")
    return tmp_path / "work"


def chain(work: Path, *middle: TaskSpec, **more: Any) -> list[TaskSpec]:
    """A task that makes `mid`, which may stay, and one that reads it and makes a result."""
    given: dict[str, Any] = {"workdir": str(work), **more}
    return [
        shell(
            0,
            "cat in > mid; echo t > undeclared",
            inputs=("in",),
            outputs=("mid",),
            local=("mid",),
            children=(1,),
            **given,
        ),
        shell(1, "cat mid mid > out", inputs=("mid",), outputs=("out",), parents=(0,), **given),
    ]


def scratch(work: Path) -> dict[str, Any]:
    return {"scratch": str(work.parent / "disk")}


def left(work: Path) -> list[str]:
    return sorted(path.name for path in (work.parent / "disk").iterdir())


def files(work: Path) -> list[str]:
    return sorted(str(path.relative_to(work)) for path in work.rglob("*"))


@pytest.mark.slow
def test_what_only_this_job_reads_never_leaves_its_node(run: Run, work: Path) -> None:
    code, printed = run.run(*chain(work), **scratch(work))
    assert (code, printed) == (0, "")
    assert files(work) == ["in", "out"]
    assert (work / "out").read_text() == "in\nin\n"
    assert left(work) == []
    first, second = run.of(AttemptFinished)
    assert (first.of.local, first.of.sizes, second.of.local, second.of.sizes) == (
        ("mid",),
        (3,),
        (),
        (6,),
    )
    assert [start.of.near_bytes for start in run.of(AttemptStarted)] == [0, 3]
    assert (first.of.moved, second.of.moved) == (
        (("in", "home", 3),),
        (("mid", "hit", 3), ("out", "commit", 6)),
    )


@pytest.mark.slow
def test_outputs_are_committed_by_the_one_mechanism(run: Run, work: Path) -> None:
    """Folders, several files, older versions, failures: the shared files are as without a disk of
    the node's own."""
    (work / "old").write_text("old\n")
    (work / "tree").mkdir()
    (work / "tree" / "old").write_text("old\n")
    given: dict[str, Any] = {"workdir": str(work)}
    tasks = [
        shell(
            0,
            "mkdir -p deep; echo a > deep/a; echo b > b; mkdir tree; echo x > tree/new",
            outputs=("deep/a", "b", "tree"),
            **given,
        ),
        shell(1, "echo half > old; exit 3", outputs=("old",), **given),
        shell(2, "echo half > none; kill -9 $$", outputs=("none",), **given),
        shell(3, "true", outputs=("old2",), **given),
        shell(4, "cat nothing > c", inputs=("nothing",), outputs=("c",), **given),
    ]
    run.run(*tasks, **scratch(work))
    assert run.finished() == [0]
    assert files(work) == [
        "b",
        "deep",
        "deep/a",
        "in",
        "old",
        "tree",
        "tree.before-1",
        "tree.before-1/old",
        "tree/new",
    ]
    assert (work / "old").read_text() == "old\n"
    whys = {failed.task: failed.of.why for failed in run.failed()}
    assert whys[3] == f"exit code 0, but its output {work}/old2 is missing"
    assert left(work) == []


@pytest.mark.slow
def test_what_a_task_reads_that_will_not_run_here_is_committed(run: Run, work: Path) -> None:
    first, second = chain(work)
    late = shell(
        2,
        "cat mid > late",
        inputs=("mid",),
        outputs=("late",),
        parents=(0,),
        workdir=str(work),
        expected_s=900,
    )
    first = TaskSpec(
        **{**{n: getattr(first, n) for n in first.__dataclass_fields__}, "children": (1, 2)}
    )
    run.run(first, second, late, **scratch(work))
    assert sorted(run.finished()) == [0, 1]
    assert [declined.task for declined in run.of(TaskDeclined)] == [2]
    assert files(work) == ["in", "mid", "out"]
    assert [(c.task, c.files, c.local) for c in run.of(OutputsCommitted)] == [(0, ("mid",), ())]
    assert left(work) == []


@pytest.mark.slow
def test_a_job_that_is_stopped_commits_what_its_tasks_read(run: Run, work: Path) -> None:
    first, _ = chain(work)
    stuck = shell(
        1,
        "cat mid > out; echo $$ > ../pid; sleep 60",
        inputs=("mid",),
        outputs=("out",),
        parents=(0,),
        workdir=str(work),
    )
    run.write(first, stuck, **scratch(work))
    with run.begin() as agent:
        read_pid(work.parent / "pid")
        agent.terminate()
        agent.communicate(timeout=60)
    assert [lost.task for lost in run.of(AttemptLost)] == [1]
    assert files(work) == ["in", "mid"]
    assert left(work) == []


@pytest.mark.slow
def test_an_agent_that_is_killed_leaves_nothing_on_the_node(run: Run, work: Path) -> None:
    first, _ = chain(work)
    stuck = shell(
        1,
        "cat mid > out; echo $$ > ../pid; sleep 60",
        inputs=("mid",),
        outputs=("out",),
        parents=(0,),
        workdir=str(work),
    )
    run.write(first, stuck, **scratch(work))
    with run.begin() as agent:
        read_pid(work.parent / "pid")
        os.kill(run.agent_pid(), signal.SIGKILL)
        agent.communicate(timeout=60)
    assert files(work) == ["in"]
    assert left(work) == []


@pytest.mark.slow
def test_what_jobs_that_are_over_left_is_removed(run: Run, work: Path) -> None:
    name = hashlib.sha256(os.fsencode(run.folder.path)).hexdigest()[:12]
    for job in (1, 3, 4, 5, 7, 12):
        (work.parent / "disk" / f"windrow-{name}-{job}-0").mkdir()
    (work.parent / "disk" / f"windrow-{name}-7-shared").mkdir()
    (work.parent / "disk" / "windrow-other-1-0").mkdir()
    at_work = os.open(work.parent / "disk" / f"windrow-{name}-5-0", os.O_RDONLY)
    fcntl.flock(at_work, fcntl.LOCK_EX)  # of 5 and 7 nothing was heard; a process of 5 lives
    run.run(*chain(work), job=6, over_below=3, over=(4,), given_up=(5, 7), **scratch(work))
    os.close(at_work)
    stay = [f"windrow-{name}-{job}-0" for job in (12, 3, 5)]
    assert left(work) == [*stay, "windrow-other-1-0"]


@pytest.mark.slow
def test_a_reader_on_another_node_gets_the_file_through_the_shared_folder(
    cluster: Run,  # noqa: F811
    work: Path,
) -> None:
    given: dict[str, Any] = {"workdir": str(work), "cores": 2}
    make = shell(
        0, "echo m > mid; sleep 0.2", outputs=("mid",), local=("mid",), children=(1, 2), **given
    )
    readers = [
        shell(
            n,
            f"cat mid > out{n}; sleep 0.5",
            inputs=("mid",),
            outputs=(f"out{n}",),
            parents=(0,),
            **given,
        )
        for n in (1, 2)
    ]
    code, printed = cluster.run(make, *readers, nodes=2, **scratch(work))
    assert (code, printed) == (0, "")
    starts = {
        start.task: (start.of.nodes, start.of.near_bytes) for start in cluster.of(AttemptStarted)
    }
    assert starts[1] == (starts[0][0], 2)
    assert starts[2][0] != starts[0][0]
    assert files(work) == ["in", "mid", "out1", "out2"]
    wait_until(lambda: left(work) == [])


@pytest.mark.slow
def test_without_namespaces_a_folder_of_links_does(run: Run, work: Path) -> None:
    """No nsenter is found: relative names lead to the node's disk; a command with whole names runs
    on shared files."""
    (work.parent / "bin").mkdir()
    (work.parent / "bin" / "cat").symlink_to("/bin/cat")
    run.extra_env["PATH"] = str(work.parent / "bin")
    (work / "tool").write_text("#!/bin/sh\ncat in\n")
    (work / "tool").chmod(0o755)
    whole = shell(
        2,
        f"cat {work}/mid > {work}/whole",
        inputs=("mid",),
        outputs=("whole",),
        parents=(0,),
        workdir=str(work),
    )
    first = shell(
        0,
        "./tool > mid; echo x > undeclared",
        inputs=("in",),
        outputs=("mid",),
        local=("mid",),
        children=(1, 2),
        workdir=str(work),
    )
    code, printed = run.run(first, chain(work)[1], whole, **scratch(work))
    assert (code, printed) == (0, "")
    assert sorted(run.finished()) == [0, 1, 2]
    assert files(work) == ["in", "mid", "out", "tool", "whole"]
    assert (work / "whole").read_text() == "in\n"
    assert left(work) == []
