"""`windrow run --add`: tasks for runs that go on and runs that are over, on a queue of their
own."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest
from tests.waiting import wait_until

from windrow.app.adding import add_tasks, prepare_addition
from windrow.app.continuing import standing
from windrow.app.runs import RunView, find_run, runnable_of
from windrow.cli.main import main
from windrow.errors import UserError
from windrow.formats import read_addition, read_runnable

FIRST = """
name: m
tasks:
  - {id: gen, command: "echo 1 > x; echo gen >> ran", outputs: x, runtime: 1s}
  - {id: use, command: "cat x > y; GATE echo use >> ran", inputs: x, outputs: y, runtime: 1s}
"""
MORE = """
tasks:
  - {id: sum, command: "cat x y > s; echo sum >> ran", inputs: [x, y], outputs: s, runtime: 1s}
  - {id: end, command: "echo end >> ran", after: ["u*", sum], runtime: 1s}
"""


@pytest.fixture(autouse=True)
def _here(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "p").mkdir()
    monkeypatch.chdir(home / "p")


def write(name: str, text: str) -> str:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(text.replace("GATE", ""))
    return name


def said(capsys: pytest.CaptureFixture[str]) -> str:
    heard = capsys.readouterr()
    return heard.out + heard.err


@pytest.mark.slow
def test_a_run_that_is_over_goes_on_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", write("m.yaml", FIRST)]) == 0
    before = Path(".windrow/runs/m-1/workflow.json").read_bytes()
    more = write("more.yaml", MORE)
    assert main(["run", "--dry-run", "--add", more, "--json"]) == 0
    heard = capsys.readouterr()
    assert "more.yaml would be added to m-1: 2 tasks (sum, end)" in heard.err
    found = json.loads(heard.out[heard.out.rindex("\n{\n") :])
    told = {"run": "m-1", "state": "complete", "is_added": False, "tasks": ["sum", "end"]}
    assert found == {"schema": 1, **told}
    assert len(RunView(find_run(None)).story.tasks) == 2
    assert main(["run", "--add", more, "m-1"]) == 0
    assert main(["run", "--add", more, "m-1"]) == 0
    assert "more.yaml was already added to m-1" in said(capsys)
    assert Path("ran").read_text().split() == ["gen", "use", "sum", "end"]
    assert Path(".windrow/runs/m-1/workflow.json").read_bytes() == before
    assert runnable_of(find_run(None)).workflow.ids == ("gen", "use", "sum", "end")
    assert (
        main(
            ["run", "--add", write("third.yaml", MORE.replace("sum", "sum2").replace("s;", "s2;"))]
        )
        == 2
    )
    assert "the run already has a task 'end'; rename this one" in said(capsys)
    for words in (
        ["status", "--json"],
        ["explain", "end"],
        ["report", "--crate", "crate"],
        ["tasks"],
        ["runs"],
    ):
        assert main(words) == 0
    assert "added to the run at" in said(capsys)
    assert {
        task["id"] for task in json.loads(Path("crate/workflow.json").read_text())["tasks"]
    } >= {"gen", "end"}
    assert main(["run", "m.yaml"]) == 0
    assert "--again runs all 2 tasks again" in said(capsys)


@pytest.mark.slow
def test_a_run_that_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    gated = FIRST.replace("GATE", "while [ ! -e go ]; do sleep 0.05; done;")
    Path("m.yaml").write_text(gated)
    assert main(["run", "m.yaml", "--detach"]) == 0
    wait_until(lambda: Path("y").exists() or Path("ran").exists())
    told = RunView(find_run(None))
    # Two ask at the same time for tasks of the same names: one is told that it came too late.
    asked = [
        prepare_addition(told, Path(write(name, MORE + extra)))
        for name, extra in (("a.yaml", ""), ("b.yaml", "\n"))
    ]
    refused: list[str] = []

    def ask(number: int) -> None:
        try:
            assert add_tasks(RunView(find_run(None)), asked[number])
        except UserError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=ask, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (why,) = refused
    assert why.startswith("m-1 has changed meanwhile")
    assert why.endswith("nothing was added")
    told.refresh()
    assert (len(told.story.additions), len(told.runnable.steps)) == (1, 4)
    (late,) = (
        name
        for name, one in zip(("a.yaml", "b.yaml"), asked, strict=True)
        if told.story.addition(one.id) is None
    )
    assert main(["run", "--add", late]) == 2
    Path("go").touch()
    assert main(["watch"]) == 0
    assert Path("ran").read_text().split() == ["gen", "use", "sum", "end"]
    assert not list(Path(".windrow/runs/m-1").glob("add-*"))
    said(capsys)


@pytest.mark.slow
def test_from_another_folder_and_after_the_file_has_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", write("m.yaml", FIRST)]) == 0
    more = (
        "tasks:\n  - {id: sum, command: 'cat ../x ../y > s', inputs: [../x, ../y], outputs: "
        "s, runtime: 1s}\n"
    )
    assert main(["run", "--add", write("sub/more.yaml", more)]) == 0
    assert Path("sub/s").read_text() == "1\n1\n"
    workflow = runnable_of(find_run(None)).workflow
    assert workflow.task(2).parents == ("gen", "use")
    assert workflow.task(2).inputs == tuple(str(Path(name).absolute()) for name in ("x", "y"))
    assert standing(RunView(find_run(None))).is_up_to_date
    Path("y").unlink()
    write("m.yaml", FIRST.replace("cat x > y", "cat x x > y"))
    said(capsys)
    assert main(["resume"]) == 0
    words = said(capsys)
    assert "2 finished tasks run again: use (its command changed), sum (it depends on use)" in words
    assert Path("sub/s").read_text() == "1\n1\n1\n"
    told = RunView(find_run(None))
    assert (told.paths.name, told.story.added, told.story.is_complete) == ("m-2", 1, True)
    assert standing(told).is_up_to_date
    assert (
        main(["run", "--add", write("other.yaml", "tasks: [{id: other, command: 'true'}]"), "m-1"])
        == 2
    )
    assert "m-1 is continued by m-2; use windrow resume m-2" in said(capsys)
    write("m.yaml", FIRST.replace("id: use", "id: used"))
    assert (
        "the tasks added to m-2 no longer fit the workflow: task sum has unknown parents: use"
        in standing(told).unread
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "tasks:\n  - {id: use, command: x}",
            "more.yaml:2: the run already has a task 'use'; rename this one",
        ),
        (
            "tasks:\n  - {id: c, command: x, after: us}",
            "more.yaml:2: c comes after us, which is not a task; did you mean use?",
        ),
        (
            "tasks:\n  - {id: c, command: x, outputs: y}",
            "more.yaml:2: c writes y, and so does use (in the run)",
        ),
        (
            "tasks:\n  - {id: c, command: x, after: d}\n  - {id: d, command: x, after: c}",
            "cycle: c -> d -> c",
        ),
        ("tasks:\n  - {id: c, command: x, inputs: nix}", "task c reads nix, which no task writes"),
        ("tasks:\n  - {id: c, command: x, cores: 9999}", "task c needs 9,999 cores"),
        ("tasks: []", "more.yaml:1: the list of tasks is empty"),
    ],
)
def test_what_cannot_be_added_changes_nothing(
    text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from windrow.app.execute import prepare, start_run
    from windrow.app.facts import RunRequest

    paths = start_run(prepare(RunRequest(Path(write("m.yaml", FIRST)))))
    assert main(["run", "--add", write("more.yaml", text)]) == 2
    assert words in said(capsys)
    assert len(RunView(paths).story.tasks) == 2


def wf(parents: list[str]) -> str:
    task = {
        "id": "c",
        "name": "c",
        "parents": parents,
        "children": [],
        "inputFiles": [],
        "outputFiles": [],
    }
    ran = {
        "id": "c",
        "runtimeInSeconds": 1,
        "command": {"program": sys.executable, "arguments": ["-c", "pass"]},
    }
    body = {"specification": {"tasks": [task]}, "execution": {"tasks": [ran]}}
    return json.dumps({"name": "more", "schemaVersion": "1.5", "workflow": body})


DAX = '<adag name="more"><job id="c" name="true" runtime="1"><argument>x</argument></job>%s</adag>'


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("more.json", wf(["use"]), wf(["nix"])),
        (
            "more.dax",
            DAX % '<child ref="c"><parent ref="use"/></child>',
            DAX % '<child ref="use"><parent ref="c"/></child>',
        ),
    ],
)
def test_other_formats(name: str, good: str, bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    from windrow.app.execute import prepare, start_run
    from windrow.app.facts import RunRequest

    paths = start_run(prepare(RunRequest(Path(write("m.yaml", FIRST)))))
    assert main(["run", "--dry-run", "--add", write(name, good)]) == 0
    added = prepare_addition(RunView(paths), Path(name))
    assert [(task.id, task.parents) for task in added.added.tasks] == [("c", ("use",))]
    assert main(["run", "--add", write(name, bad)]) == 2
    assert "unknown" in said(capsys)


def test_families_and_patterns_of_the_run() -> None:
    Path("a.yaml").write_text(
        "tasks: [{id: 'sq-{i}', matrix: {i: 1..3}, command: 'x {i}'}, {id: sum, command: y}]"
    )
    run = read_runnable("a.yaml")
    Path("b.yaml").write_text(
        "tasks: [{id: c, command: z, after: sq}, {id: d, command: z, after: [sum, 's*-1']}]"
    )
    tasks = tuple(read_addition("b.yaml", run)[0].workflow)[4:]
    assert [task.parents for task in tasks] == [("sq-1", "sq-2", "sq-3"), ("sum", "sq-1")]
    Path("c.yaml").write_text(
        "tasks: [{id: 'sq-{i}', matrix: {i: 7..8}, command: 'x {i}'}, {id: c, command: z, after: "
        "sq}]"
    )
    assert read_addition("c.yaml", run)[0].workflow.task(6).parents == (
        "sq-7",
        "sq-8",
    )  # those of the file itself


@pytest.mark.slow
def test_an_addition_retries_nothing_that_failed() -> None:
    tasks = (
        '{id: bad, command: "echo bad >> ran; test -e ok"}, {id: after, after: bad, command: '
        '"echo after >> ran"}'
    )
    write("m.yaml", f"name: m\ndefaults: {{runtime: 1s}}\ntasks: [{tasks}]\n")
    assert main(["run", "m.yaml"]) == 1
    one = write("one.yaml", 'tasks: [{id: one, command: "echo one >> ran", runtime: 1s}]')
    assert main(["run", "--add", one]) == 1, "the run has a task that failed"
    two = write("two.yaml", 'tasks: [{id: two, command: "echo two >> ran", runtime: 1s}]')
    main(["run", "--add", two, "--detach"])
    wait_until(lambda: "two" in Path("ran").read_text() and RunView(find_run(None)).holder is None)
    assert Path("ran").read_text().split() == ["bad", "one", "two"]
    told = RunView(find_run(None))
    assert [task.state for task in told.story.tasks] == [
        "failed",
        "blocked",
        "finished",
        "finished",
    ]
    assert told.state == "failed"
    assert not told.story.strays
    Path("ok").touch()
    assert main(["resume"]) == 0
    assert Path("ran").read_text().split() == ["bad", "one", "two", "bad", "after"]


@pytest.mark.slow
def test_what_a_new_task_reads_of_deleted_files_is_made_again() -> None:
    """Also if something has the name of one by then: an agent that was late may have put it there,
    and it would be deleted once more."""
    temporary = FIRST.replace("outputs: x", "outputs: {x: {keep: false}}")
    assert main(["run", write("m.yaml", temporary)]) == 0
    assert not Path("x").exists()
    write("x", "late\n")
    assert main(["run", "--add", write("more.yaml", MORE)]) == 0
    assert Path("ran").read_text().split() == ["gen", "use", "gen", "sum", "end"]
    assert Path("s").read_text() == "1\n1\n"
