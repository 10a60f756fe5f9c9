"""`windrow lab`: the example runs, a killed campaign continues, and array jobs run what is left and
nothing else."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.waiting import children, is_alive, wait_until

from windrow.cli.main import main
from windrow_lab.campaign.file import read_campaign
from windrow_lab.campaign.shards import run_sweep
from windrow_lab.campaign.slurm_array import ranges

SMALL = """\
submit = ["1d", "30h"]
strategies = ["one-job", "glume"]
caps = [2, 4]
workflows = [{ recipe = "fork-join", tasks = [12, 20], work = "5h" }]
logs = [{ model = "lublin", nodes = 16, days = 3, seed = 3 }]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose name would harm a careless shell or a pattern of file names."""
    folder = tmp_path / 'it\'s $(touch harm); 100%a "x"'
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "c.toml").write_text(SMALL)
    return folder


def answers(table: pa.Table) -> pa.Table:
    return table.drop_columns(["wall_s"])


def wanted(here: Path) -> pa.Table:
    return answers(run_sweep(read_campaign(here / "c.toml"), here / "wanted", workers=1).rows)


@pytest.mark.slow
def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["lab", "--example"]) == 0
    printed = capsys.readouterr().out
    assert main(["lab", "--example", "campaign.toml"]) == 0
    assert Path("campaign.toml").read_text() == printed
    assert main(["lab", "campaign.toml", "--workers", "1"]) == 0
    out = capsys.readouterr().out
    assert "campaign example: 432 trials" in out
    assert "table: windrow-example/example.parquet" in out
    rows = [
        line.split("  ")[0] for line in out.splitlines() if line.startswith(("glume", "one-job"))
    ]
    assert sorted(rows) == ["glume beat=0.0", "glume beat=0.1", "one-job"]
    assert main(["lab", "--summary", "windrow-example"]) == 0
    assert capsys.readouterr().out == out
    assert len(parquet.read_table("windrow-example/example.parquet")) == 432


def test_a_name_is_shown_as_it_is(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = SMALL.replace('"glume"', '{ strategy = "glume", name = "[red]mine" }')
    (here / "c.toml").write_text(named.replace("[2, 4]", "2").replace("[12, 20]", "12"))
    assert main(["lab", "c.toml", "--workers", "1"]) == 0
    assert "\n[red]mine  " in capsys.readouterr().out


def test_json_agrees_with_the_table(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["lab", "c.toml", "-o", "out", "--workers", "1", "--by", "cap,workflow", "--json"])
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    rows = parquet.read_table(found["table"]).to_pylist()
    assert (found["campaign"], found["trials"], found["done"], found["failed"]) == (
        "c",
        16,
        len(rows),
        0,
    )
    assert len(found["strategies"]) == 2 * 2 * 2
    for summary in found["strategies"]:
        mine = [r for r in rows if all(r[k] == summary[k] for k in ("cap", "workflow", "strategy"))]
        assert summary["visible_wait_s_mean"] == pytest.approx(
            sum(r["visible_wait_s"] for r in mine) / 2
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "give a campaign file; windrow lab --example FILE writes one"),
        (["no.toml"], "no.toml: no such file"),
        (["c.toml", "--by", "caps"], "unknown column to group by 'caps'; did you mean cap?"),
        (["c.toml", "--shard", "3/2"], "'3/2' is not a shard"),
        (["c.toml", "--array", "3"], "give --on slurm too"),
        (["c.toml", "--on", "slurm", "--workers", "3"], "leave out --shard and --workers"),
        (["c.toml", "--on", "slurm", "--set", "array=1-3"], "--set array: this cannot be set"),
        (["c.toml", "--on", "slurm", "--set", "wrap x=1"], "this cannot be set"),
        (["c.toml", "--summary", "out"], "not allowed with"),
        (["--example", "c.toml"], "c.toml already exists"),
        (["--summary", "."], "no campaign was run there"),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_cannot_be_done_is_refused(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", *options]) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert [path.name for path in Path().iterdir()] == ["c.toml"]  # and nothing was made


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_killed_and_continued_gives_the_same_table(here: Path, workers: str) -> None:
    (here / "c.toml").write_text(SMALL.replace("caps = [2, 4]", "caps = [1, 2, 3, 4, 5, 6, 7, 8]"))
    command = [
        sys.executable,
        "-m",
        "windrow.cli.main",
        "lab",
        "c.toml",
        "-o",
        "out",
        "--workers",
        workers,
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait_until(lambda: process.poll() is not None or list(here.glob("out/chunks/*.parquet")))
    assert process.poll() is None
    process.send_signal(signal.SIGSTOP)  # no more workers from here on
    of_campaign = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not any(map(is_alive, of_campaign)))
    before = {path: path.stat().st_mtime_ns for path in here.glob("out/chunks/*.parquet")}
    assert not (here / "out" / "c.parquet").exists() or len(before) == 16
    assert main(["lab", "c.toml", "-o", "out", "--workers", "1"]) == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert answers(parquet.read_table("out/c.parquet")).equals(wanted(here))


# A batch system that only takes notes: each argument of sbatch on a line of its own, and what
# squeue should say.
SBATCH = """#!/bin/sh
printf "%s\\n" "$@" > "$NOTES/sbatch"
test ! -e "$NOTES/refuse" || { echo "sbatch: error: no" >&2; exit 1; }
echo "4711;cluster"
"""
SQUEUE = """#!/bin/sh
test ! -e "$NOTES/queue" || { cat "$NOTES/queue"; exit 0; }
echo "slurm_load_jobs error: Invalid job id specified" >&2
exit 1
"""


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE)):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("NOTES", str(folder))
    return folder


def submitted(notes: Path) -> dict[str, str]:
    """The options that sbatch was given, and its script under "script"."""
    *options, script = (notes / "sbatch").read_text().splitlines()
    (notes / "sbatch").unlink()
    found = dict(option.removeprefix("--").partition("=")[::2] for option in options)
    return found | {"script": script}


def run_element(script: str, index: int) -> None:
    env = os.environ | {"SLURM_ARRAY_TASK_ID": str(index)}
    subprocess.run(
        ["sh", script], env=env, check=True, stdout=subprocess.DEVNULL, cwd="/", timeout=60
    )


@pytest.mark.slow
def test_an_array_job_gives_the_same_table_and_continues(
    here: Path, notes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "c.toml").write_text(SMALL.replace("[12, 20]", "12"))  # one chunk for each of two caps
    ask = ["lab", "c.toml", "-o", "out", "--on", "slurm"]
    assert main([*ask, "--array", "2", "--partition", "short; rm", "--set", "time=1:00:00"]) == 0
    told = capsys.readouterr().out
    assert "submitted array job 4711: 2 of 2 shards" in told
    job = submitted(notes)
    assert (job["array"], job["partition"], job["time"], job["job-name"]) == (
        "1-2",
        "short; rm",
        "1:00:00",
        "windrow-c",
    )
    assert job["output"] == str(here / "out" / "slurm").replace("%", "%%") + "/%A_%a.out"
    run_element(job["script"], 2)
    assert main(["lab", "--summary", "out", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["table"] is None

    (notes / "queue").write_text("4711_1\n")
    assert main(ask) == 2
    assert (
        "array job 4711 is still in the queue; wait for it, or scancel 4711"
        in capsys.readouterr().err
    )
    assert not (notes / "sbatch").exists()

    (notes / "queue").unlink()
    assert main([*ask, "--json"]) == 0  # as many shards as before
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1,
        "job": "4711",
        "shards": 2,
        "submitted": [1],
        "folder": "out",
    }
    job = submitted(notes)
    assert job["array"] == "1"
    run_element(job["script"], 1)
    assert answers(parquet.read_table("out/c.parquet")).equals(wanted(here))
    assert main(ask) == 0
    shown = capsys.readouterr()
    assert "nothing left to run" in shown.err
    assert "table: out/c.parquet" in shown.out
    assert not (notes / "sbatch").exists()
    assert not list(here.parent.rglob("harm"))


@pytest.mark.usefixtures("here")
def test_a_batch_system_that_refuses_is_quoted(
    notes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (notes / "refuse").touch()
    assert main(["lab", "c.toml", "--on", "slurm"]) == 1
    assert "sbatch refused the array job: sbatch: error: no" in capsys.readouterr().err
    (notes / "refuse").unlink()
    assert (
        main(["lab", "c.toml", "--on", "slurm", "--array", "99"]) == 0
    )  # never more shards than chunks
    assert submitted(notes)["array"] == "1-4"


@pytest.mark.usefixtures("here")
def test_without_slurm_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert shutil.which("sbatch") is None
    assert main(["lab", "c.toml", "--on", "slurm"]) == 2
    assert (
        "cannot run sbatch: No such file or directory; run Windrow where" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([1], "1"), ([1, 2], "1-2"), ([1, 2, 3, 5, 7, 8], "1-3,5,7-8"), ([4, 9], "4,9")],
)
def test_ranges(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text
