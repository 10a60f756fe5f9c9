"""`windrow simulate`: what is printed and written agrees with each other and with schedules worked
out by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from pyarrow import parquet

from windrow.cli.main import main
from windrow.sim.settings import POLICIES

COLUMNS = ["job", "submit_s", "start_s", "end_s", "wait_s", "nodes", "requested_s", "run_s"]

# job, submit, run, processors, requested; a machine of 4. The second is dropped, the fourth killed
# at its request.
JOBS = [
    (1, 100, 50, 3, 60),
    (2, 105, 0, 1, 10),
    (3, 110, 40, 4, 40),
    (4, 120, 90, 1, 20),
    (5, 400, 10, 2, 10),
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rows = [
        f"{j} {s} -1 {run} {p} -1 -1 {p} {req} -1 1 {j} 1 -1 -1 -1 -1 -1"
        for j, s, run, p, req in JOBS
    ]
    path = tmp_path / "small.swf"
    path.write_text("; MaxProcs: 4\n" + "\n".join(rows) + "\n")
    return path


def simulated(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, object]:
    assert main(["simulate", *map(str, arguments), "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert isinstance(value, dict)
    return value


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("fate", ["again", "lost"])
def test_a_node_fails_by_hand(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], fate: str
) -> None:
    # Job 1 loses a node at 30 and goes behind 3, which needs all nodes and starts with the repair,
    # and 4; or is lost.
    out, failures, page = tmp_path / "jobs.csv", tmp_path / "failures.csv", tmp_path / "page.html"
    failures.write_text("30,0,5\n32,0,9\n")
    given = (f"log={failures},jobs={fate}", "--jobs-out", out, "--html", page)
    found = simulated(capsys, log, "--policy", "fcfs", "--failures", *given)
    times = [
        tuple(int(row[name]) for name in ("job", "start_s", "end_s", "runs_hit", "lost"))
        for row in rows_of(out)
    ]
    first = (1, 75, 125, 1, 0) if fate == "again" else (1, 0, 30, 1, 1)
    assert times == [first, (3, 35, 75, 0, 0), (4, 75, 95, 0, 0), (5, 300, 310, 0, 0)]
    assert [found[name] for name in ("node_failures", "runs_hit", "jobs_lost")] == [
        1,
        1,
        int(fate == "lost"),
    ]
    assert found["lost_node_h"] == pytest.approx(3 * 30 / 3600)
    assert found["out_node_h"] == pytest.approx(5 / 3600)
    assert found["failures"] == given[0]
    assert "runs that lost a node" in page.read_text()
    assert "node_failures" not in simulated(capsys, log)
    assert main(["simulate", str(log), "--failures", "tasks=1%"]) == 2
    assert (
        "a log has no tasks, agents or managers; here only nodes can fail"
        in capsys.readouterr().err
    )


def test_first_come_first_served_by_hand(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # From the first submission (100) on: 1 runs 0-50; 3 waits for all nodes, 50-90; 4 behind it,
    # 90-110; 5 300-310.
    out = tmp_path / "jobs.csv"
    found = simulated(capsys, log, "--policy", "fcfs", "--jobs-out", out)
    rows = rows_of(out)
    assert list(rows[0]) == COLUMNS
    assert [tuple(int(row[name]) for name in COLUMNS) for row in rows] == [
        (1, 0, 0, 50, 0, 3, 60, 50),
        (3, 10, 50, 90, 40, 4, 40, 40),
        (4, 20, 90, 110, 70, 1, 20, 20),
        (5, 300, 300, 310, 0, 2, 10, 10),
    ]
    assert found["jobs"] == 4
    assert found["mean_wait_s"] == 27.5
    assert found["median_wait_s"] == 20
    assert found["max_wait_s"] == 70
    assert found["makespan_s"] == 310
    assert found["utilization"] == pytest.approx((3 * 50 + 4 * 40 + 1 * 20 + 2 * 10) / (310 * 4))
    assert found["mean_bounded_slowdown"] == pytest.approx((1 + 80 / 40 + 90 / 20 + 1) / 4)
    assert found["dropped"] == {"no_run_time": 1, "no_processors": 0, "too_wide": 0}
    assert found["repaired"] == {"no_request": 0, "ran_longer": 1, "unsorted": 0}
    assert (found["policy"], found["nodes"], found["log"], found["cap"]) == (
        "fcfs",
        4,
        "small",
        None,
    )


def test_backfilling_lets_the_short_job_pass(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Job 4 asks for 20 s at 20 and one node is free until job 1's request ends at 60: it starts at
    # once.
    for policy in ("easy", "conservative", "conservative-replan", "depth:2"):
        out = tmp_path / "jobs.csv"
        simulated(capsys, log, "--policy", policy, "--jobs-out", out)
        assert [int(row["start_s"]) for row in rows_of(out)] == [0, 50, 20, 300]


def test_several_policies_side_by_side(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, table = tmp_path / "jobs.csv", tmp_path / "jobs.parquet"
    both = ["--policy", "fcfs", "--policy", "EASY", "--policy", "fcfs"]
    found = simulated(capsys, log, *both, "--jobs-out", out)
    simulated(capsys, log, *both, "--jobs-out", table)
    simulations = found["simulations"]
    assert isinstance(simulations, list)
    assert [one["policy"] for one in simulations] == ["fcfs", "easy"]
    assert list(found) == ["schema", "simulations"]
    rows = rows_of(out)
    assert list(rows[0]) == ["policy", *COLUMNS]
    assert [row["policy"] for row in rows] == ["fcfs"] * 4 + ["easy"] * 4
    packed = [
        {name: str(value) for name, value in row.items()}
        for row in parquet.read_table(table).to_pylist()
    ]
    assert packed == rows
    for one in simulations:
        waits = [int(row["wait_s"]) for row in rows if row["policy"] == one["policy"]]
        assert one["mean_wait_s"] == sum(waits) / len(waits)


def test_a_window_counts_only_its_jobs(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "jobs.csv"
    window = ["--from", "15", "--to", "5m", "--policy", "fcfs", "--jobs-out", out]
    found = simulated(capsys, log, *window)
    assert (found["jobs"], found["simulated_jobs"], found["mean_wait_s"]) == (1, 4, 70)
    assert (found["from_at"], found["to_at"]) == (15, 300)
    assert [row["job"] for row in rows_of(out)] == ["4"]
    # With a short warm-up the machine is empty when job 4 comes: jobs 1 and 3 are never simulated.
    found = simulated(capsys, log, *window, "--warmup", "3s")
    assert (found["jobs"], found["simulated_jobs"], found["mean_wait_s"]) == (1, 2, 0)
    assert found["dropped"] == {"no_run_time": 1, "no_processors": 0, "too_wide": 0}


def test_options_reach_the_simulator(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    narrow = simulated(capsys, log, "--nodes", "3")
    assert (narrow["jobs"], narrow["nodes"]) == (3, 3)
    assert narrow["dropped"] == {"no_run_time": 1, "no_processors": 0, "too_wide": 1}
    options = {
        "requests": "accurate",
        "events": "one-by-one",
        "placement": "leftmost",
        "priority": "fs",
    }
    found = simulated(
        capsys, log, "--cap", "1", *(word for k, v in options.items() for word in (f"--{k}", v))
    )
    assert {name: found[name] for name in options} == options
    assert found["cap"] == 1


def test_the_table_for_people(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(log), "--policy", "fcfs", "--policy", "easy"]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()]
    assert "small: 4 jobs on 4 nodes" in out
    assert "1 job ran longer than requested" in out
    assert ["fcfs", "easy"] in rows
    assert ["mean", "wait", "27.5", "s", "10.0", "s"] in rows
    assert ["makespan", "310", "s", "(5.2", "min)", "310", "s", "(5.2", "min)"] in rows


def test_a_report_is_written(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "report.html"
    assert main(["simulate", str(log), "--policy", "easy", "--html", str(page)]) == 0
    assert f"page: {page}" in capsys.readouterr().out
    text = page.read_text()
    assert POLICIES["easy"] in text
    assert "4 jobs on 4 nodes" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--policy", "esy"], "did you mean easy"),
        (["--priority", "fast"], "unknown priority 'fast'"),
        (["--events", "never"], "unknown order of events 'never'"),
        (["--from", "2h", "--to", "1h"], "--from must be before --to"),
        (["--from", "10d"], "no job is submitted between --from and --to"),
        (["--warmup", "1d"], "give --from too"),
        (
            ["--jobs-out", "jobs.xlsx"],
            "jobs.xlsx: jobs are written to a file whose name ends in .csv",
        ),
        (["--report", "no/such/folder/page.html"], "no/such/folder"),
    ],
)
def test_what_cannot_work_is_refused(
    log: Path,
    options: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(log.parent)
    assert main(["simulate", str(log), *options]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.splitlines()[-1].startswith("windrow: error: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "mean_wait_s"),
    [("fcfs", 354_175.950), ("easy", 6_890.577), ("conservative", 7_349.467)],
)
def test_published_means_of_kth(
    policy: str, mean_wait_s: float, logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = simulated(capsys, logs / "KTH-SP2-1996-2.1-cln.swf.gz", "--policy", policy)
    assert found["jobs"] == 28_467
    assert found["mean_wait_s"] == pytest.approx(mean_wait_s, abs=5e-4)


def test_it_does_not_boast(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = simulated(capsys, log)
    assert not {"wall_s", "jobs_per_s"} & found.keys()
    assert main(["simulate", str(log)]) == 0
    shown = capsys.readouterr().out
    assert "per second" not in shown
    assert "wall time" not in shown


RULES = """
policy = "easy"
cap = 2

[priority]
wait = 1
nodes = {weight = -3, cap = 2}
users = {3 = 500}
"""


def test_rules_from_a_file_are_those_of_the_options(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(RULES)
    weights = "wait=1,nodes^2=-3,user:3=500"
    same = simulated(
        capsys, log, "--policy", "easy", "--cap", 2, "--priority", weights, "--events", "ends-first"
    )
    assert simulated(capsys, log, "--rules", path, "--events", "ends-first") == same
    assert (same["policy"], same["cap"], same["priority"]) == ("easy", 2, weights)
    assert simulated(capsys, log, "--rules", path, "--policy", "fcfs")["policy"] == "fcfs"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('policy = "esay"', "rules.toml:1: unknown policy"),
        ("\ncap = 0", "rules.toml:2: the cap"),
        ("\n[priority]\ncolour = 1", "rules.toml:2: unknown priority weight 'colour'"),
        ("priority = 3", "rules.toml:1: priority must be the name of a priority"),
        ("[priority]\nnodes = {weight = 1}", "nodes must be a number, or {weight"),
        ("depth = 3", "rules.toml:1: unknown key 'depth'"),
        ('requests = "exact"', "unknown kind of requests"),
    ],
)
def test_rules_that_cannot_be_used(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, hint: str
) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    assert main(["simulate", str(log), "--rules", str(path)]) == 2
    assert hint in capsys.readouterr().err


def test_the_queue_at_a_moment_tells_waiting_jobs_their_starts(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At 25 s job 1 runs until 60 at most; 3, of all nodes, waits, and behind it 4, which would
    end before 60."""
    found = simulated(capsys, log, "--at", 25, "--policy", "fcfs", "--policy", "easy")
    queues = found["queues"]
    assert isinstance(queues, list)
    fcfs, easy = queues
    third = {"job": 3, "nodes": 4, "requested_s": 40, "waited_s": 15, "start_at": 60}
    fourth = {"job": 4, "nodes": 1, "requested_s": 20, "waited_s": 5, "start_at": 100}
    assert fcfs["waiting"] == [third, fourth]
    assert easy["waiting"] == [third]
    assert (easy["running_jobs"], easy["busy_nodes"], easy["nodes"]) == (2, 4, 4)
    assert main(["simulate", str(log), "--at", "25"]) == 0
    assert "should start in" in capsys.readouterr().out


def test_a_moment_has_no_rows_of_jobs(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(log), "--at", "25", "--jobs-out", "jobs.csv"]) == 2
    assert "leave out --jobs-out" in capsys.readouterr().err
