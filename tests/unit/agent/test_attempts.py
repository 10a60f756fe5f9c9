"""What attempts leave behind, by a real agent: outputs that they made, whole, or what was there
before."""

from __future__ import annotations

import os
import select
import signal
import sys
from pathlib import Path

import pytest
from tests.unit.agent.jobs import Run, shell, task
from tests.waiting import PATIENCE_S, read_pid, wait_until

from windrow.agent.event_file import AttemptLost
from windrow.agent.job_file import TaskSpec
from windrow.agent.order import Order
from windrow.agent.remote import RemoteNode
from windrow.model.attempt import Attempt

pytestmark = pytest.mark.slow


def elsewhere(number: int, script: str, *outputs: str, **more: object) -> TaskSpec:
    """A task whose script gets the names of its outputs as $1, $2, ... and may write them
    elsewhere."""
    marks = tuple((4 + i, name.rfind("/") + 1, i) for i, name in enumerate(outputs))
    command = ("/bin/sh", "-c", script, "sh", *outputs)
    return task(number, *command, outputs=outputs, elsewhere=marks, **more)


def names(folder: Path) -> list[str]:
    return sorted(
        str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() or p.is_symlink()
    )


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def test_a_stale_file_is_no_output(run: Run, here: Path) -> None:
    (here / "old.txt").write_text("stale")
    run.run(
        task(0, "true", outputs=("old.txt",), workdir=str(here)),
        elsewhere(1, "true", "old.txt", workdir=str(here), parents=()),
        cores=1,
    )
    old = here / "old.txt"
    why = (
        f"exit code 0, but its output {old} was not created (an older {old} exists and was "
        "left unchanged)"
    )
    assert [failed.of.why for failed in run.failed()] == [why, why]
    assert names(here) == ["old.txt"]
    assert old.read_text() == "stale"


def test_what_a_failed_attempt_wrote_is_gone_and_the_old_file_is_back(run: Run, here: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (here / name).write_text("last week's")
    run.run(
        shell(
            0,
            "echo half > a.txt; mkdir new; echo half > new/x; false",
            outputs=("a.txt", "new"),
            workdir=str(here),
        ),
        elsewhere(1, "echo half > $1; false", "b.txt", workdir=str(here)),
    )
    assert [failed.of.why for failed in run.failed()] == ["exit code 1", "exit code 1"]
    assert names(here) == ["a.txt", "b.txt"]
    assert {(here / name).read_text() for name in ("a.txt", "b.txt")} == {"last week's"}
    assert not (here / "new").exists()


def test_a_retry_finds_nothing_of_the_attempt_before(run: Run, here: Path) -> None:
    script = "test ! -e $1 || exit 9; echo $WINDROW_ATTEMPT > $1; test $WINDROW_ATTEMPT -eq 3"
    run.run(
        shell(0, script.replace("$1", "a.txt"), outputs=("a.txt",), workdir=str(here), retries=5),
        elsewhere(1, script, "b.txt", workdir=str(here), retries=5),
    )
    assert sorted(run.finished()) == [0, 1]
    assert {failed.of.exit for failed in run.failed()} == {1}
    assert [(name, (here / name).read_text()) for name in names(here)] == [
        ("a.txt", "3\n"),
        ("b.txt", "3\n"),
    ]


def test_folders_of_outputs_are_made(run: Run, here: Path) -> None:
    run.run(
        shell(0, "echo x > deep/down/a.txt", outputs=("deep/down/a.txt",), workdir=str(here)),
        elsewhere(1, "echo x > $1", "deeper/still/b.txt", workdir=str(here)),
    )
    assert sorted(run.finished()) == [0, 1]
    assert names(here) == ["deep/down/a.txt", "deeper/still/b.txt"]


def test_outputs_written_elsewhere_come_together_with_what_lies_beside_them(
    run: Run, here: Path
) -> None:
    (here / "out").mkdir()
    (here / "out" / "x.bam").write_text("old")
    script = """
        test "$(cat out/x.bam)" = old && test ! -e out/x.bam.bai || exit 7
        case $1 in *.bam) ;; *) exit 8;; esac
        echo bam > $1; echo bai > $1.bai; echo log > $(dirname $1)/x.log; echo txt > $2
    """
    run.run(elsewhere(0, script, "out/x.bam", "other/y.txt", workdir=str(here)))
    assert run.failed() == []
    made = ["out/x.bam", "out/x.bam.bai", "out/x.bam.before-1", "out/x.log"]
    assert names(here) == ["other/y.txt", *made]
    assert (here / "out" / "x.bam").read_text() == "bam\n"
    assert sorted(f"out/{p.name}" for p in (here / "out").iterdir()) == made


@pytest.mark.parametrize("way", ["in place", "elsewhere"])
def test_a_stopped_task_leaves_nothing_half_written(run: Run, here: Path, way: str) -> None:
    (here / "a.txt").write_text("old")
    script = (
        f"trap '' TERM; echo half > $1; echo $$ > '{here.parent}/pid'; while :; do sleep 0.05; done"
    )
    if way == "elsewhere":
        spec = elsewhere(0, script, "a.txt", workdir=str(here))
    else:
        spec = shell(0, script.replace("$1", "a.txt"), outputs=("a.txt",), workdir=str(here))
    run.write(spec, grace_s=1.0)
    with run.begin() as agent:
        read_pid(here.parent / "pid")
        agent.terminate()
        agent.communicate(timeout=PATIENCE_S)
    assert [event.task for event in run.of(AttemptLost)] == [0]
    assert names(here) == ["a.txt"]
    assert (here / "a.txt").read_text() == "old"


@pytest.mark.parametrize("way", ["in place", "elsewhere"])
@pytest.mark.parametrize("ends", ["0", "1"])
def test_the_attempt_after_a_killed_agent_makes_all_right(
    run: Run, here: Path, way: str, ends: str
) -> None:
    (here / "a.txt").write_text("old")
    script = f"""
        if test $WINDROW_ATTEMPT = 1; then echo half > $1; echo $$ > '{here.parent}/pid'; sleep 1000; fi
        test ! -e $1 || exit 9
        echo whole > $1
        exit {ends}
    """  # noqa: E501
    if way == "elsewhere":
        spec = elsewhere(0, script, "a.txt", workdir=str(here))
    else:
        spec = shell(0, script.replace("$1", "a.txt"), outputs=("a.txt",), workdir=str(here))
    run.write(spec)
    with run.begin() as agent:
        read_pid(here.parent / "pid")
        os.kill(run.agent_pid(), signal.SIGKILL)
        agent.communicate(timeout=PATIENCE_S)
    if way == "elsewhere":
        assert (
            here / "a.txt"
        ).read_text() == "old"  # nothing half written under its name, even now
    else:
        assert (here / ".a.txt.windrow-old").read_text() == "old"
    again = TaskSpec(
        **{**{name: getattr(spec, name) for name in TaskSpec.__slots__}, "attempts": 1}
    )
    run.run(again, job=1)
    assert [failed.of.exit for failed in run.failed(1)] == ([1] if ends == "1" else [])
    if ends == "0":
        assert names(here) == ["a.txt", "a.txt.before-1"]
        assert (here / "a.txt.before-1").read_text() == "old"
        assert (here / "a.txt").read_text() == "whole\n"
    else:
        assert names(here) == ["a.txt"]
        assert (here / "a.txt").read_text() == "old"


def test_what_is_in_the_way_is_said(run: Run, here: Path) -> None:
    (here / "file").write_text("x")
    run.run(
        shell(0, "true", outputs=("file/a.txt",), workdir=str(here)),
        elsewhere(1, "true", "file/b.txt", workdir=str(here)),
        elsewhere(
            2, "echo x > $1; mkdir -p d.txt/x; rm -r $(dirname $1)", "d.txt", workdir=str(here)
        ),
        task(3, "true"),
    )
    whys = {failed.task: failed.of.why for failed in run.failed()}
    assert whys[0].startswith("cannot prepare its outputs: ")
    assert whys[0].endswith("Not a directory")
    assert whys[1].endswith("Not a directory")
    assert "d.txt was not created (an older" in whys[2]
    assert run.finished() == [3]


def test_exit_codes_of_shells_are_explained(run: Run, here: Path) -> None:
    (here / "text").write_text("hello")
    scripts = [
        "seq 1 1000000 | head -n 1; exit 141",
        "echo a | grep b",
        "./text",
        "no-such-program-here",
        "exit 1",
    ]
    run.run(
        *(shell(n, script, workdir=str(here)) for n, script in enumerate(scripts)),
        task(9, "grep", "x", "/dev/null"),
    )
    whys = {failed.task: failed.of.why for failed in run.failed()}
    assert whys[0].startswith(
        "exit code 141: a program in a pipe wrote to one that had already exited (SIGPIPE)"
    )
    assert "`|| true`" in whys[0]
    assert (
        whys[1]
        == "exit code 1: grep exits with 1 when nothing matches; write `grep ... || true` if "
        "that is fine"
    )
    assert whys[2].startswith("exit code 126: ")
    assert whys[3].startswith("exit code 127: a program was not found")
    assert (whys[4], whys[9]) == ("exit code 1", "exit code 1")


def test_an_output_that_shows_up_late_is_waited_for_and_put_in_place(here: Path) -> None:
    """By way of another node: orders travel as lines."""
    node = RemoteNode("here", (sys.executable, "-P", "-m", "windrow.agent.node"))
    out, made = here.parent / "out", here / "a.txt"
    command = ("/bin/sh", "-c", ": made is a.txt")
    mark = ((2, len(": made is "), 0),)
    files = {"outputs": (str(made),), "elsewhere": mark, "patience_s": 600.0}
    node.start(Order(1, 1, command, str(here), {}, str(out), **files))  # type: ignore[arg-type]
    hidden = here / ".windrow-a.txt.1"
    wait_until(hidden.exists)
    (hidden / "a.txt").write_text("late")
    results: list[Attempt] = []
    while not results:
        wait_until(lambda: bool(select.select([node.fd], [], [], 0.1)[0]))
        results += node.collect()
    node.close()
    wait_until(lambda: bool(node.collect() or node.is_lost))
    assert [(result.task, result.why) for result in results] == [(1, "")]
    assert names(here) == ["a.txt"]
    assert made.read_text() == "late"
