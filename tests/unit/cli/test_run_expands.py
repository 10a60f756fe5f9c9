"""`expands`: a task writes which tasks come after it; edits, retries and bad files, really run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from windrow.app.runs import RunView, find_run
from windrow.cli.main import main

pytestmark = pytest.mark.slow

WORKFLOW = """
name: m
defaults: {runtime: 1s}
tasks:
  - {id: split, command: "sh split.sh SIZE all.txt {outputs}", inputs: all.txt, expands: more.yaml}
  - {id: side, command: "echo > {outputs}; echo side >> ran", outputs: s}
"""
SPLIT = """
split -l $1 -d $2 part.
echo "tasks:"
for p in part.*; do
    echo "  - {id: count-$p, command: 'wc -l < {inputs} > {outputs}', inputs: $p, outputs: $p.n}"
done
echo "  - {id: sum, command: 'cat {inputs} > {outputs}', inputs: 'part.*.n', outputs: total}"
"""


@pytest.fixture(autouse=True)
def _here(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "p").mkdir()
    monkeypatch.chdir(home / "p")
    Path("all.txt").write_text("1\n2\n3\n4\n5\n")
    Path("split.sh").write_text(f"rm -f part.*; ( {SPLIT} ) > $3; echo split >> ran\n")


def write(size: int) -> str:
    Path("m.yaml").write_text(WORKFLOW.replace("SIZE", str(size)))
    return "m.yaml"


def told() -> RunView:
    return RunView(find_run(None))


def said(capsys: pytest.CaptureFixture[str]) -> str:
    heard = capsys.readouterr()
    return heard.out + heard.err


def test_tasks_that_a_task_made_are_replaced_when_it_runs_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", write(2)]) == 0
    assert Path("total").read_text().split() == ["2", "2", "1"]
    assert told().runnable.workflow.ids[2:] == (*(f"count-part.0{n}" for n in range(3)), "sum")
    said(capsys)
    assert main(["explain", "sum"]) == 0
    assert " by split" in said(capsys)
    assert main(["report", "-o", "page.html"]) == 0
    assert main(["resume"]) == 0
    assert "complete and up to date" in said(capsys)
    assert main(["run", "-n", "--resume", write(3)]) == 0
    assert "4 tasks belong to tasks that run again, and will be replaced: count-" in said(capsys)
    assert main(["resume"]) == 0
    assert "1 task stays finished, 1 to run" in said(capsys)
    assert Path("total").read_text().split() == ["3", "2"]
    assert told().runnable.workflow.ids[2:] == ("count-part.00", "count-part.01", "sum")
    assert main(["retry", "split"]) == 0
    assert "m-3 continues m-2: it runs split again" in said(capsys)
    assert Path("ran").read_text().split().count("split") == 3
    assert Path("ran").read_text().split().count("side") == 1
    assert (told().paths.name, told().story.added, told().state) == ("m-3", 3, "complete")


def test_a_bad_file_fails_its_task_and_is_corrected(capsys: pytest.CaptureFixture[str]) -> None:
    good = Path("split.sh").read_text()
    Path("split.sh").write_text("echo 'tasks: [{id: x, comand: y}]' > $3")
    assert main(["run", write(2)]) == 1
    assert "more.yaml:1: a task has no key 'comand'; did you mean command?" in said(capsys)
    assert told().story.added == 0
    Path("split.sh").write_text(good)
    assert main(["resume"]) == 0
    assert told().story.is_complete
    Path("split.sh").write_text(": > $3")
    Path("all.txt").write_text("")
    assert main(["resume"]) == 0
    assert told().state == "complete"
    assert [one.count for one in told().story.belonging_to("split")] == [0]


def test_what_a_task_adds_by_command_belongs_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    Path("split.sh").write_text(
        '( echo "tasks: [{id: n$1, command: echo}]" ) > own.yaml; : > $3; '
        f'{Path(sys.executable).parent}/windrow run --add own.yaml "$WINDROW_RUN"'
    )
    assert main(["run", write(2)]) == 0
    assert [one.event.maker for one in told().story.additions] == ["split", "split"]
    said(capsys)
    assert main(["run", "--resume", write(3)]) == 0
    assert "1 task belongs to tasks that run again, and will be replaced: n2" in said(capsys)
    assert told().runnable.workflow.ids == ("split", "side", "n3")
