"""The simulated cluster against figures that independent simulators agree on, and against their
schedules job by job.

Mean waits and mean bounded slowdowns are compared to the last digit that is known. Sources: pyss,
CQSim (mended), Batsched under Batsim, and independent throwaway kernels, all on logs cleaned by the
rule of `formats.swf.reader`.
"""

from __future__ import annotations

import csv
import gzip
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.real.works import IS_FULL

from windrow.formats import read_log
from windrow.model import Log
from windrow.sim import simulate
from windrow.sim.simulation import Simulation

KTH, SDSC, BLUE = "KTH-SP2-1996-2.1-cln", "SDSC-SP2-1998-4.2-cln", "SDSC-BLUE-2000-4.2-cln"

# log, policy, events, placement, mean wait, mean bounded slowdown (None: not known)
FIGURES = [
    (KTH, "fcfs", "batched", "count", "354175.950", "6821.935"),
    (KTH, "easy", "batched", "count", "6890.577", "92.8306"),
    (KTH, "easy", "one-by-one", "count", "6892.864", "92.7193"),
    (KTH, "easy", "ends-first", "count", "6892.834", "92.7172"),
    (KTH, "easy", "batched", "leftmost", "6611.497", "82.4604"),
    (KTH, "conservative", "one-by-one", "count", "7343.789", "88.9357"),
    (KTH, "conservative", "batched", "count", "7349.467", "88.9040"),
    (KTH, "conservative", "batched", "leftmost", "7589.105", "84.3035"),
    (KTH, "conservative-replan", "ends-first", "count", "8001.942", "101.8839"),
    (KTH, "conservative-replan", "batched", "count", "7988.186", "101.7970"),
    (KTH, "depth:1", "batched", "count", "6890.6", None),
    (KTH, "depth:2", "batched", "count", "7108.7", None),
    (KTH, "depth:4", "batched", "count", "7165.2", None),
    (KTH, "depth:8", "batched", "count", "7802.8", None),
    (KTH, "depth:16", "batched", "count", "7944.1", None),
    (KTH, "depth:64", "batched", "count", "7988.2", None),
    (SDSC, "fcfs", "batched", "count", "1536403.104", "13860.61"),
    (SDSC, "easy", "batched", "count", "20576.237", "88.5411"),
    (SDSC, "easy", "one-by-one", "count", "20503.193", "88.6066"),
    (SDSC, "easy", "ends-first", "count", "20502.263", "88.5977"),
    (SDSC, "easy", "batched", "leftmost", "21824.145", "92.1613"),
    (SDSC, "conservative", "one-by-one", "count", "21921.000", "89.9421"),
    (SDSC, "conservative", "batched", "count", "21757.7", "89.47"),
    (SDSC, "conservative", "batched", "leftmost", "33983.613", "120.86"),
    (SDSC, "conservative-replan", "batched", "count", "24342.313", "101.9816"),
    (SDSC, "conservative-replan", "ends-first", "count", "24449.266", "101.3708"),
    (SDSC, "depth:2", "batched", "count", "22187", None),
    (SDSC, "depth:4", "batched", "count", "22448", None),
    (SDSC, "depth:8", "batched", "count", "23374", None),
    (SDSC, "depth:16", "batched", "count", "23790", None),
    (SDSC, "depth:64", "batched", "count", "24433", None),
    (BLUE, "easy", "batched", "count", "7792.548", "37.5670"),
    (BLUE, "conservative-replan", "batched", "count", "10110.207", "55.4268"),
    (BLUE, "conservative", "one-by-one", "count", "7694.174", "34.9596"),
]


@cache
def log_of(logs: Path, name: str) -> Log:
    return read_log(logs / f"{name}.swf.gz")


def printed(value: float, like: str) -> str:
    """The value with as many decimals as the published figure."""
    return f"{value:.{len(like.partition('.')[2])}f}"


@pytest.mark.parametrize(("name", "policy", "events", "placement", "wait", "slowdown"), FIGURES)
def test_figure(
    logs: Path, name: str, policy: str, events: str, placement: str, wait: str, slowdown: str | None
) -> None:
    summary = simulate(
        log_of(logs, name), policy=policy, events=events, placement=placement
    ).summary()
    assert printed(summary.mean_wait_s, wait) == wait
    if slowdown:
        assert printed(summary.mean_bounded_slowdown, slowdown) == slowdown


@pytest.mark.parametrize(
    ("name", "jobs", "ran_longer"), [(KTH, 28467, 475), (SDSC, 54034, 4134), (BLUE, 232536, 23434)]
)
def test_cleaned_logs(logs: Path, name: str, jobs: int, ran_longer: int) -> None:
    log = log_of(logs, name)
    assert (len(log), log.repairs.mended_ran_longer) == (jobs, ran_longer)


def test_fcfs_makespan(logs: Path) -> None:
    assert simulate(log_of(logs, KTH), policy="fcfs").summary().makespan_s == 28_781_494


@pytest.mark.parametrize("name", [KTH, SDSC, BLUE] if IS_FULL else [KTH, SDSC])
@pytest.mark.parametrize("events", ["batched", "one-by-one", "ends-first"])
def test_depth_one_is_easy(logs: Path, name: str, events: str) -> None:
    a, b = (
        simulate(log_of(logs, name), policy=policy, events=events) for policy in ("easy", "depth:1")
    )
    np.testing.assert_array_equal(a.start_s, b.start_s)


@pytest.mark.parametrize("name", [KTH, SDSC, BLUE] if IS_FULL else [KTH, SDSC])
def test_depth_without_end_is_replan(logs: Path, name: str) -> None:
    log = log_of(logs, name)
    deep, replan = (
        simulate(log, policy=f"depth:{len(log)}"),
        simulate(log, policy="conservative-replan"),
    )
    np.testing.assert_array_equal(deep.start_s, replan.start_s)


@pytest.mark.parametrize(
    ("name", "jobs", "wait", "slowdown"),
    [("KTH-SP2", 28481, "6836.87", "92.58"), ("SDSC-SP2", 54006, "20497.76", "87.87")],
)
def test_easy_schedules_of_pyss_job_by_job(
    data: Path, name: str, jobs: int, wait: str, slowdown: str
) -> None:
    path = data / "oracle" / f"{name}.easy_reqtime.swf.gz"
    waits = {int(row[0]): int(row[2]) for row in swf_rows(path)}
    replay = simulate(read_log(path), policy="easy", events="one-by-one")
    assert len(replay.log) == jobs == len(waits)
    assert replay.wait_s.tolist() == [waits[job] for job in replay.log.job.tolist()]
    summary = replay.summary()
    assert (
        printed(summary.mean_wait_s, wait),
        printed(summary.mean_bounded_slowdown, slowdown),
    ) == (wait, slowdown)


def swf_rows(path: Path) -> list[list[str]]:
    with gzip.open(path, "rt") as lines:
        return [line.split() for line in lines if not line.startswith(";")]


@pytest.mark.parametrize(("policy", "mean_wait"), [("conservative", "9.852"), ("easy", "9.516")])
def test_schedules_of_batsched_job_by_job(data: Path, policy: str, mean_wait: str) -> None:
    """801 jobs on 32 nodes with identities. Times there have six decimals, so here a tick is a
    microsecond."""
    with gzip.open(data / "oracle" / f"batsim_{policy}.out_jobs.csv.gz", "rt") as lines:
        rows = sorted(
            csv.DictReader(lines),
            key=lambda row: (ticks(row["submission_time"]), int(row["job_id"])),
        )
    replay = replay_of(rows, policy)
    np.testing.assert_allclose(
        replay.start_s, [ticks(row["starting_time"]) for row in rows], rtol=0, atol=2
    )
    assert printed(float(replay.wait_s.mean()) / 1e6, mean_wait) == mean_wait


def ticks(seconds: str) -> int:
    return round(float(seconds) * 1_000_000)


def replay_of(rows: list[dict[str, str]], policy: str) -> Simulation:
    ints = {
        name: np.array([ticks(row[name]) for row in rows])
        for name in ("submission_time", "requested_time", "execution_time")
    }
    log = Log(
        "batsim",
        32,
        job=np.arange(len(rows)),
        submit_s=ints["submission_time"],
        nodes=np.array([int(row["requested_number_of_resources"]) for row in rows]),
        requested_s=ints["requested_time"],
        run_s=ints["execution_time"],
        user=np.zeros(len(rows), dtype=np.int64),
    )
    return simulate(log, policy=policy, placement="leftmost")


def test_batsched_job_count(data: Path) -> None:
    with gzip.open(data / "oracle" / "batsim_medium_late.json.gz", "rt") as text:
        assert len(json.load(text)["jobs"]) == 801
