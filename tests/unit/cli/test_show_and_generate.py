"""`windrow generate` and `windrow show`, end to end on files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from windrow.cli.commands import show
from windrow.cli.main import main
from windrow.formats import read_log, read_workflow, write_workflow
from windrow.model import Task, Workflow
from windrow.recipes import LOG_MODELS, WORKFLOW_RECIPES
from windrow.shape import shape


def printed_json(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    value = json.loads(capsys.readouterr().out)
    assert isinstance(value, dict)
    return value


def test_the_same_seed_writes_the_same_file(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.json", "b.json", "c.json")]
    for file, seed in zip(files, ("1", "1", "2"), strict=True):
        assert (
            main(
                [
                    "generate",
                    "montage",
                    "--tasks",
                    "60",
                    "--work",
                    "500h",
                    "--seed",
                    seed,
                    "-o",
                    str(file),
                ]
            )
            == 0
        )
    one, again, other = (file.read_bytes() for file in files)
    assert one == again
    assert one != other


def test_size_work_and_parameters_arrive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "w.json.gz"
    options = ["--tasks", "40", "--work", "10h", "--set", "first_share=0.9"]
    assert main(["generate", "eman", *options, "-o", str(file)]) == 0
    told = capsys.readouterr().out
    workflow = read_workflow(file)
    assert len(workflow) == 40
    assert workflow.work_s == pytest.approx(36_000, rel=1e-3)
    assert shape(workflow).width > 25, "nine tenths of the parallel tasks stand on one level"
    assert told.startswith(f"{file}: 40 tasks on {workflow.depth} levels")


def test_a_log_of_the_length_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "log.swf.gz"
    assert (
        main(["generate", "log", "--jobs", "200", "--nodes", "64", "--seed", "3", "-o", str(file)])
        == 0
    )
    log = read_log(file)
    assert (len(log), log.machine_nodes) == (200, 64)
    assert "200 jobs" in capsys.readouterr().out


def test_the_list_has_every_recipe_model_and_parameter(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    firsts = {line.split()[0] for line in lines if line.strip()}
    assert set(WORKFLOW_RECIPES) | set(LOG_MODELS) <= firsts
    assert {p.name for recipe in WORKFLOW_RECIPES.values() for p in recipe.parameters} <= firsts
    assert {p.name for model in LOG_MODELS.values() for p in model.parameters} <= firsts


def diamond(name: str = "diamond", kind: str = "step") -> Workflow:
    tasks = [
        Task("a", 60, kind),
        Task("b", 600, kind, parents=("a",)),
        Task("c", 30, kind, parents=("a",)),
        Task("d", 60, kind, parents=("b", "c")),
    ]
    return Workflow.from_tasks(name, tasks)


def test_show_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "diamond.json"
    write_workflow(diamond(), file)
    assert main(["show", str(file), "--json"]) == 0
    found = printed_json(capsys)
    expected = {
        "tasks": 4,
        "edges": 4,
        "levels": 3,
        "width": 2,
        "widths": [1, 2, 1],
        "work_s": 750,
        "level_work_s": [60, 630, 60],
        "critical_path_s": 720,
        "critical_tasks": ["a", "b", "d"],
        "token_parallelism": 2,
        "level_of_parallelism": 2,
    }
    assert {name: found[name] for name in expected} == expected


def test_show_in_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "diamond.json"
    write_workflow(diamond(name="[red]diamond[/red]", kind="[bold]"), file)
    assert main(["show", str(file)]) == 0
    out = capsys.readouterr().out
    rows = {tuple(line.split()) for line in out.splitlines()}
    assert ("critical", "path", "12.0", "min", "along", "3", "tasks") in rows
    assert ("1", "2", "█" * 40, "10.5", "min") in rows
    assert ("0", "1", "█" * 20, "60", "s") in rows
    assert ("[bold]", "4", "3.1", "min", "12.5", "min") in rows, "names are text, not markup"
    assert "\x1b" not in out, "no colours where there is no terminal"


def test_many_levels_are_shown_as_ranges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = [Task(f"t{i}", 1, parents=(f"t{i - 1}",) if i else ()) for i in range(100)]
    file = tmp_path / "chain.json"
    write_workflow(Workflow.from_tasks("chain", tasks), file)
    assert main(["show", str(file)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["0–3", "1", "█" * 40, "4", "s"] in rows
    assert ["96–99", "1", "█" * 40, "4", "s"] in rows


def test_show_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, page = tmp_path / "diamond.json", tmp_path / "diamond.html"
    write_workflow(diamond(), file)
    assert main(["show", str(file), "--html", str(page), "--json"]) == 0
    assert printed_json(capsys)["tasks"] == 4
    assert page.read_text().count("<circle") >= 4


def test_the_exact_measure_is_left_out_of_large_workflows_unless_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(show, "_EXACT_UP_TO", 3)
    file = tmp_path / "diamond.json"
    write_workflow(diamond(), file)
    assert main(["show", str(file), "--json"]) == 0
    assert printed_json(capsys)["level_of_parallelism"] is None
    assert main(["show", str(file)]) == 0
    assert "compute it with --exact" in capsys.readouterr().out
    assert main(["show", str(file), "--json", "--exact"]) == 0
    assert printed_json(capsys)["level_of_parallelism"] == 2
