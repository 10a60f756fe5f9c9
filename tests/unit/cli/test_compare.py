"""`windrow compare` and `windrow timeline`: keys, agreement with the library, refusals, and nothing
left to chance."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from windrow.app.strategies import STRATEGIES
from windrow.cli import arguments, progress, terminal
from windrow.cli.main import main
from windrow.formats import write_log, write_workflow
from windrow.model import NodeShape, Task, Workflow
from windrow.model.wording import node_span
from windrow.recipes import generate_log, generate_workflow
from windrow.report.comparison import verdict
from windrow.story.figures import NODE_TIME
from windrow.trials import scenario
from windrow.trials.compare import Comparison, compare

LOG = generate_log("lublin", seed=4, days=5, nodes=24)
WORKFLOW = generate_workflow("montage", tasks=24, work_s=20 * 3600, seed=1)
KEYS = [
    "strategy",
    "runs",
    "makespan_s_mean",
    "makespan_s_median",
    "makespan_s_p10",
    "makespan_s_p90",
    "visible_wait_s_mean",
    "hidden_wait_s_mean",
    "allocated_node_h_mean",
    "used_node_h_mean",
    "idle_node_h_mean",
    "lost_node_h_mean",
    "jobs_mean",
    "killed_jobs_mean",
    "wins",
]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_log(LOG, "log.swf")
    write_workflow(WORKFLOW, "w.json")
    write_workflow(
        Workflow.from_tasks("wide", [Task("small", 60), Task("large", 60, cores=4)]), "wide.json"
    )
    return tmp_path


def compared(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, object]:
    assert main(["compare", "w.json", "--log", "log.swf", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("files")
def test_json_agrees_with_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    options = (
        "--from 1d --to 3d --every 1d --cap 3 --policy easy --margin 1.3 --requests "
        "accurate --noise 0.2 --seed 5"
    )
    found = compared(capsys, *options.split(), "--cores", "2", "--memory", "1TB")
    expected = compare(
        WORKFLOW,
        LOG,
        times=[86400, 2 * 86400, 3 * 86400],
        cap=3,
        policy="easy",
        margin=1.3,
        requests="accurate",
        noise=0.2,
        seed=5,
        shape=NodeShape(2, 10**12),
    )
    strategies = found["strategies"]
    assert isinstance(strategies, list)
    assert [list(one) for one in strategies] == [KEYS] * len(STRATEGIES)
    assert [{key: one[key] for key in KEYS[:-1]} for one in strategies] == expected.summaries()
    assert {one["strategy"]: one["wins"] for one in strategies} == expected.wins()
    assert (found["workflow"], found["log"], found["nodes"], found["cap"]) == (
        WORKFLOW.name,
        "log",
        24,
        3,
    )
    assert found["times_at"] == [86400, 172800, 259200]
    assert found["best"] == expected.best()
    assert found["log_is_synthetic_default"] is False


@pytest.mark.usefixtures("files")
def test_some_strategies_at_one_time(capsys: pytest.CaptureFixture[str]) -> None:
    found = compared(capsys, "--at", "30h", "--strategies", "Glume, one-job,glume")
    strategies = found["strategies"]
    assert isinstance(strategies, list)
    assert [(one["strategy"], one["runs"]) for one in strategies] == [("glume", 1), ("one-job", 1)]
    assert found["times_at"] == [108000]


@pytest.mark.slow
@pytest.mark.usefixtures("files")
def test_the_table_the_plot_and_the_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        terminal, "LINE_S", 3600.0
    )  # a busy machine takes long enough for lines of progress
    times = ["--from", "1d", "--to", "3d", "--every", "2d"]
    assert main(["compare", "w.json", "--log", "log.swf", *times, "--html", "page.html"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    for name in STRATEGIES:
        assert len([line for line in lines if line.startswith(f"{name} ")]) >= 2, (
            "a row of the table, a row of the plot"
        )
    best = compare(WORKFLOW, LOG, times=[86400, 3 * 86400]).best()
    assert re.search(rf"mean makespans? over 2 submission times: {best}, ", captured.out)
    assert "2 submission times are few: try more" in captured.out
    assert "Shortest makespan, of 2 submission times: " in captured.out
    assert "page: page.html" in lines
    assert best in Path("page.html").read_text()


def test_where_all_take_the_same_none_is_called_best() -> None:
    alone = Workflow.from_tasks("alone", [Task("a", 600.0)])
    words = verdict(compare(alone, LOG, times=[86400], strategies=["giant", "one-job"]))
    assert words[0].startswith("All strategies have the same mean makespan")
    assert not any("Best" in line for line in words)


@pytest.mark.parametrize(
    ("second_s", "first_line"),
    [
        (
            [7300, 7100] * 10,
            "Shortest mean makespans over 20 submission times: a, 2.0 h, and b, 2.0 h; a "
            "difference that ",
        ),
        (
            [7201] * 20,
            "Shortest mean makespans over 20 submission times: a, 2.0 h, and b, 2.0 h; less than "
            "1 % apart.",
        ),
        (
            [14400] * 20,
            "Best by mean makespan over 20 submission times: a, 2.0 h; next b, 4.0 h, so 50 % "
            "less.",
        ),
        (
            [14400],
            "Shortest mean makespans at one submission time: a, 2.0 h, and b, 4.0 h; one "
            "submission time says nothing",
        ),
    ],
)
def test_the_verdict_says_over_how_many_times_and_whether_it_is_chance(
    second_s: list[int], first_line: str
) -> None:
    rest = dict.fromkeys(
        ("visible_wait_s", "hidden_wait_s", "idle_node_s", "lost_node_s", "jobs", "killed_jobs"), 0
    )
    times = tuple(range(len(second_s)))
    rows = [
        {
            "at_s": at,
            "strategy": name,
            "makespan_s": span_s,
            "allocated_node_s": 3600,
            "used_node_s": 3600,
            **rest,
        }
        for at in times
        for name, span_s in (("a", 7199 if second_s[0] == 7300 else 7200), ("b", second_s[at]))
    ]
    words = verdict(Comparison(scenario.Scenario(WORKFLOW, LOG), times, ("a", "b"), rows))
    assert words[0].startswith(first_line)
    assert not any("so 0 % less" in line for line in words)
    assert any("few: try more" in line for line in words) == (len(times) < 10)


@pytest.mark.usefixtures("files")
def test_without_a_log_a_synthetic_one_serves_and_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["compare", "w.json", "--at", "2d", "--strategies", "one-job"]) == 0
    out = capsys.readouterr().out
    assert "no log given, so a synthetic one" in out
    assert "on 128 nodes" in out
    assert "no other strategy was tried" in out


@pytest.mark.parametrize("verb", ["compare", "plan", "timeline"])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["w.json", "--log", "log.swf", "--at", "50d"],
            "--at is after the end of the log: the last job of log is submitted",
        ),
        (
            ["wide.json", "--log", "log.swf"],
            "task large of wide needs 4 cores, and a node has 1; give --cores 4 or more",
        ),
        (["w.json", "--log", "log.swf", "--policy", "esy"], "did you mean easy"),
        (["w.json", "--log", "log.swf", "--noise", "-2"], "is not a spread"),
        (["w.json", "--log", "log.swf", "--margin", "0.5"], "is not a factor"),
        (["w.json", "--log", "log.swf", "--memory", "lots"], "is not a size"),
        (["w.json", "--log", "none.swf"], "none.swf"),
        (["none.json"], "none.json"),
    ],
)
def test_what_cannot_work_is_refused(
    verb: str, arguments: list[str], words: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["-o", "page.html"] if verb == "timeline" else []
    assert main([verb, *arguments, *options]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.splitlines()[-1].startswith("windrow: error: ")
    assert captured.out == ""
    assert not (files / "page.html").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--strategies", "glum"], "unknown strategy 'glum'; did you mean glume?"),
        (["--strategies", ","], "--strategies needs at least one name"),
        (["--at", "1d", "--every", "1h"], "give one or the other"),
        (["--from", "3d", "--to", "2d"], "--from must not be after --to"),
        (["--to", "90d"], "--to is after the end of the log"),
        (["--every", "0"], "--every must be at least a second"),
    ],
)
@pytest.mark.usefixtures("files")
def test_what_cannot_be_compared_is_refused(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "w.json", "--log", "log.swf", *options]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("256GB", 256 * 10**9),
        ("1.5tb", 1_500_000_000_000),
        ("1.5t", 3 * 2**39),
        ("64 GiB", 64 * 2**30),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert arguments.size_bytes(text) == size


@pytest.mark.usefixtures("files")
def test_interrupted_while_comparing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("windrow.trials.compare.measured", interrupt)
    assert main(["compare", "w.json", "--log", "log.swf", "--html", "page.html"]) == 130
    assert capsys.readouterr().err == "windrow: interrupted\n"
    assert not Path("page.html").exists()


def test_progress_shows_only_when_it_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    now = [0.0]
    monkeypatch.setattr("windrow.cli.progress.time.monotonic", lambda: now[0])
    with progress.counting("comparing") as tell:
        assert tell is not None
        tell(1, 10)
    assert "comparing" not in capsys.readouterr().err
    with progress.counting("comparing") as tell:
        assert tell is not None
        tell(1, 10)
        now[0] = 3.0
        tell(5, 10)
    assert "5/10" in capsys.readouterr().err


@pytest.mark.usefixtures("files")
def test_a_run_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "timeline",
        "w.json",
        "--log",
        "log.swf",
        "--at",
        "2d",
        "--strategy",
        "zhang",
        "-o",
        "run.html",
    ]
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith(f"run.html: {WORKFLOW.name} by zhang: done in ")
    assert "</html>" in Path("run.html").read_text()


@pytest.mark.slow
def test_no_hash_decides(files: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """The same answers, to the byte, under different PYTHONHASHSEEDs: here it is a random one."""
    pages = [files / name for name in ("compare.html", "run.html")]
    program = (
        "from windrow.cli.main import main\n"
        "common = ['w.json', '--log', 'log.swf', '--noise', '0.5', '--seed', '3', '--cap', '5']\n"
        "main(['compare', *common, '--every', '2d', '--json', '--html', 'compare.html'])\n"
        "main(['plan', *common, '--at', '2d', '--strategy', 'zhang', '--json'])\n"
        "main(['timeline', *common, '--at', '2d', '-o', 'run.html'])\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    command = [sys.executable, "-c", program]
    other = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    answers = [(other, *(page.read_bytes() for page in pages))]
    exec(program)
    answers.append((capsysbinary.readouterr().out, *(page.read_bytes() for page in pages)))
    assert answers[0] == answers[1]


@pytest.mark.usefixtures("files")
def test_failures_are_named_where_they_are_on(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--at", "1d", "--strategies", "individual,one-job"]
    found = compared(capsys, *given, "--failures", "nodes=2d,repair=1h")
    assert found["failures"] == "nodes=2d,repair=1h"
    assert isinstance(found["strategies"], list)
    assert "node_failures_mean" in found["strategies"][0]
    assert "failures" not in compared(capsys, *given)
    assert (
        main(
            [
                "compare",
                "w.json",
                "--log",
                "log.swf",
                *given,
                "--failures",
                "nodes=2d",
                "--html",
                "p.html",
            ]
        )
        == 0
    )
    for text in (capsys.readouterr().out, Path("p.html").read_text()):
        assert "a node fails after 2.0 d on average and is repaired after 4.0 h" in text
        assert "node failures" in text
    assert main(["compare", "w.json", "--failures", "nodes"]) == 2
    assert "give nodes once, with a value, as in nodes=30d,repair=4h" in capsys.readouterr().err


def test_data_near_and_far_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("""
files: {db: 500MB, "mid-*": 300MB}
tasks:
  - {id: "a-{n}", matrix: {n: 1..4}, command: x, inputs: db, outputs: "mid-{n}", runtime: 60}
  - {id: "b-{n}", matrix: {n: 1..4}, command: x, inputs: "mid-{n}", outputs: "out-{n}", runtime: 60}
""")
    argv = [
        "compare",
        str(path),
        "--data",
        "--strategies",
        "one-job",
        "--at",
        "1d",
        "--home-rate",
        "10MB",
    ]
    assert main([*argv, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["data"]
    sizes = {row["scope"]: row["home_bytes"] // 10**8 for row in told}
    assert sizes == {"remote": 44, "localised": 20, "cached": 29, "both": 5}
    spans = {row["scope"]: row["strategies"][0]["makespan_s_median"] for row in told}
    assert spans["both"] < min(spans["localised"], spans["cached"]) < spans["remote"]
    assert main(argv) == 0
    assert "4.4 GB" in capsys.readouterr().out
    assert main([*argv, "--html", "x.html"]) == 2
    path.write_text("tasks: [{id: a, command: x}]\n")
    assert main(argv) == 2
    assert "no file of" in capsys.readouterr().err


@pytest.mark.usefixtures("files")
def test_a_run_has_the_same_node_time_in_every_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The table, `--json`, the page of a comparison and that of the run itself; jobs are killed on
    the way."""
    options = [
        "w.json",
        "--log",
        "log.swf",
        "--at",
        "2d",
        "--noise",
        "0.8",
        "--margin",
        "1",
        "--seed",
        "4",
    ]
    assert (
        main(["compare", *options, "--strategies", "individual", "--json", "--html", "c.html"]) == 0
    )
    (found,) = json.loads(capsys.readouterr().out)["strategies"]
    allocated_h, used_h, idle_h, lost_h = (found[f"{part}_node_h_mean"] for part in NODE_TIME)
    assert allocated_h == pytest.approx(used_h + idle_h + lost_h)
    assert lost_h > 0
    assert main(["timeline", *options, "--strategy", "individual", "-o", "t.html"]) == 0
    page = (tmp_path / "t.html").read_text()
    for name, node_h in zip(NODE_TIME, (allocated_h, used_h, idle_h, lost_h), strict=True):
        assert re.search(rf"<dt>{name}</dt><dd>{re.escape(node_span(3600 * node_h))}", page), name
    assert f"{idle_h:,.1f}" in (tmp_path / "c.html").read_text()
    assert "wasted" not in page + (tmp_path / "c.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "option", [["--speculate"], ["--noise", "0.3"], ["--failures", "agents=1d"]]
)
def test_checkpoints_count_whatever_else_is_asked_for(
    option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ck.yaml").write_text(
        "defaults: {checkpoint: {files: '{id}.state', signal: USR1, notice: 60, every: 600}}\n"
        "tasks:\n"
        "  - {id: a, command: 'true', runtime: 1h}\n"
        "  - {id: b, command: 'true', runtime: 1h}\n"
    )
    shown = ["compare", str(tmp_path / "ck.yaml"), "--at", "1d", "--strategies", "one-job"]
    assert main([*shown, *option]) == 0
    assert "2 tasks continue from checkpoints after a loss" in capsys.readouterr().out
