"""A workflow that a program builds: `windrow.Flow`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.waiting import PATIENCE_S

import windrow


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def study() -> windrow.Flow:
    flow = windrow.Flow("study")
    parts = [
        flow.task(f"echo {n} >> {n}.txt", outputs=f"{n}.txt", runtime="1s", kind="part")
        for n in range(3)
    ]
    flow.task("cat *.txt > sum", id="sum", inputs=["0.txt", "1.txt"], after=parts, outputs="sum")
    return flow


@pytest.mark.slow
def test_a_flow_is_planned_and_run() -> None:
    flow = study()
    assert [task.id for task in flow.tasks] == ["part-1", "part-2", "part-3", "sum"]
    assert "<td>part</td><td>3</td>" in flow._repr_html_()
    planned = flow.plan()
    assert {task for job in planned.jobs for task in job.tasks} == {task.id for task in flow.tasks}
    assert not Path(".windrow").exists()
    run = flow.run(wait=True)
    assert (run.name, run.state) == ("study-1", "complete")
    assert Path("sum").read_text() == "0\n1\n2\n"
    assert "<td>part</td>" in run._repr_html_()
    again = flow.run(wait=True)
    assert (again.name, again.state) == ("study-2", "complete"), "there is no file to compare with"


@pytest.mark.slow
def test_what_failed_of_a_flow_is_tried_again_though_it_has_no_file() -> None:
    flow = windrow.Flow("tries")
    flow.task("test -e ok", id="try", runtime=1)
    run = flow.run(wait=True)
    assert run.state == "failed"
    Path("ok").touch()
    run.retry()
    assert run.wait(PATIENCE_S) == "complete"
    assert "is not a workflow" not in (run.folder / "manager.log").read_text()


FILE = """\
name: read
limits: {files: 2}
tasks:
  - {id: "a-{i}", matrix: {i: 1..3}, command: "echo {i} > a-{i}", outputs: "a-{i}", runtime: 1s, takes: files}
  - {id: b, command: [cat, a-1, a-2], inputs: [a-1, a-2], after: a-3, cores: 2, memory: 1GiB, retries: 2, env: {N: "1"}}
"""  # noqa: E501


@pytest.mark.slow
def test_a_flow_is_read_from_a_file_and_goes_on() -> None:
    Path("read.yaml").write_text(FILE)
    flow = windrow.Flow.read("read.yaml")
    b = flow.tasks[-1]
    assert (b.command, b.cores, b.memory, b.retries) == (("cat", "a-1", "a-2"), 2, 2**30, 2)
    assert set(b.after) == {"a-1", "a-2", "a-3"}
    assert flow.tasks[0].takes == {"files": 1}
    flow.task("cat a-* > all", id="all", after=[task.id for task in flow.tasks], runtime=1)
    assert flow.run(wait=True).state == "complete"
    assert Path("all").read_text() == "1\n2\n3\n"


@pytest.mark.parametrize("more", ["container: image.sif", "setup: export A=1", "after: {a: any}"])
def test_what_a_flow_cannot_hold_is_refused(more: str) -> None:
    first = "tasks:\n  - {id: a, command: 'true', runtime: 1s}\n"
    Path("read.yaml").write_text(first)
    assert len(windrow.Flow.read("read.yaml")) == 1
    Path("read.yaml").write_text(f"{first}  - {{id: b, command: 'true', runtime: 1s, {more}}}\n")
    with pytest.raises(windrow.UserError, match="of task b, which a flow cannot hold"):
        windrow.Flow.read("read.yaml")


def test_mistakes_are_told_before_anything_is_there() -> None:
    flow = windrow.Flow("bad")
    flow.task("true", id="a")
    with pytest.raises(windrow.UserError, match="there is a task a"):
        flow.task("true", id="a")
    flow.task("true", inputs="nothere")
    with pytest.raises(windrow.WindrowError, match="reads nothere"):
        flow.run()
    with pytest.raises(windrow.UserError, match="cannot be called"):
        windrow.Flow("a/b").run()
    with pytest.raises(windrow.WindrowError, match="no tasks"):
        windrow.Flow("empty").run()
    assert not list(Path(".windrow").glob("runs/*-1"))


def test_a_node_is_described() -> None:
    from windrow import api

    assert api.largest_node("local").cores >= 1
    with pytest.raises(windrow.WindrowError):
        api.largest_node("nosuch")
