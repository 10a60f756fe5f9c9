"""`windrow lab --on slurm` on a real Slurm: one array job, the table of a run here, and only what
is left again."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.slurm.cluster import SlurmCluster

from windrow.cli.main import main
from windrow_lab.campaign.file import read_campaign
from windrow_lab.campaign.shards import deal, run_sweep
from windrow_lab.campaign.store import ChunkStore

CAMPAIGN = """\
submit = ["1d", "30h"]
strategies = ["one-job", "glume"]
caps = [2, 4]
workflows = [{ recipe = "fork-join", tasks = [12, 20], work = "5h" }]
logs = [{ model = "lublin", nodes = 16, days = 3, seed = 3 }]
"""


def told(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, object]:
    assert main(["lab", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def wait_for_the_end(cluster: SlurmCluster, job: object) -> None:
    deadline = time.monotonic() + 150
    while cluster.run("squeue", "--noheader", "--jobs", str(job)).strip():
        assert time.monotonic() < deadline, "the array job does not end"
        time.sleep(0.5)


def answers(table: pa.Table) -> pa.Table:
    return table.drop_columns(["wall_s"])


def test_one_array_job_gives_the_table_of_a_run_here(
    slurm: SlurmCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "it's 100%a $HOME"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, slurm.env[name])
    Path("c.toml").write_text(CAMPAIGN)
    sweep = read_campaign("c.toml")
    wanted = answers(run_sweep(sweep, "wanted", workers=1).rows)
    ask = ("c.toml", "-o", "out", "--on", "slurm", "--array", "3")

    held = told(capsys, *ask, "--set", "begin=now+1hour")
    assert main(["lab", *ask]) == 2
    assert f"array job {held['job']} is still in the queue" in capsys.readouterr().err
    slurm.run("scancel", str(held["job"]))
    wait_for_the_end(slurm, held["job"])

    first = told(capsys, *ask)
    assert first["submitted"] == [1, 2, 3]
    wait_for_the_end(slurm, first["job"])
    said = {path.name: path.read_text() for path in Path("out/slurm").glob(f"{first['job']}_*.out")}
    assert sorted(said) == [f"{first['job']}_{k}.out" for k in (1, 2, 3)]
    assert answers(parquet.read_table("out/c.parquet")).equals(wanted), said

    lost = deal(sweep.chunks(), 3)[1]
    for chunk in lost:
        ChunkStore("out").path(chunk).unlink()
    again = told(capsys, *ask)
    assert again["submitted"] == [2]
    wait_for_the_end(slurm, again["job"])
    assert told(capsys, "--summary", "out")["done"] == sweep.trials
    assert answers(parquet.read_table("out/c.parquet")).equals(wanted)
