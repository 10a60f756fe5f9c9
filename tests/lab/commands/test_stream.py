"""`windrow stream`: agreement with the library, refusals, the page, and nothing left to chance."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from windrow.cli.main import main
from windrow.errors import UserError
from windrow.recipes import generate_log, generate_workflow
from windrow.streams import find_policy
from windrow.streams.policies import PLAIN
from windrow_lab.commands import stream as command
from windrow_lab.stream.comparison import compare_streams
from windrow_lab.stream.page import summary
from windrow_lab.stream.simulation import Simulator
from windrow_lab.stream.workload import SIZES, arriving_like, draw_workload, own_workload

_SMALL = ["--workflows", "60", "--nodes", "40", "--seed", "3"]


def run(*words: str) -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    command.add_arguments(parser)
    command.run(parser.parse_args([*_SMALL, *words]))


@pytest.mark.slow
def test_json_says_what_the_library_says(capsys: pytest.CaptureFixture[str]) -> None:
    run(
        "--policy",
        "bf",
        "--policy",
        "due",
        "--utilization",
        "0.9",
        "--estimates",
        "learned",
        "--json",
    )
    told = json.loads(capsys.readouterr().out)
    found = compare_streams(
        ["bf", "due"], utilization=0.9, slots=40, workflows=60, estimates="learned", seed=3
    )
    assert [p["policy"] for p in told["policies"]] == ["bf", "due:1"]
    assert [p["slowdown"] for p in told["policies"]] == [run.figures.slowdown for run in found.runs]
    assert all(p["slowdown"] >= 1 and 0 < p["utilization"] <= 1 for p in told["policies"])
    assert (told["workload"], told["processors"], told["workflows"]) == ("mixture", 40, 60)


@pytest.mark.slow
def test_the_table_has_a_row_for_each_policy_and_the_page_stands_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "stream.html"
    run("--policy", "sr", "--policy", "bf", "--workload", "sipht", "--html", str(page))
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines() if line.startswith(("sr ", "bf "))]
    assert [line[0] for line in lines] == ["sr", "bf"]
    assert "small" in out
    assert "job" not in out
    assert str(page) in out
    text = page.read_text()
    assert text.count("<svg") >= 3
    assert "<script" not in text
    assert "://" not in text


@pytest.mark.slow
def test_the_same_under_any_hash_seed(capsys: pytest.CaptureFixture[str]) -> None:
    """Here it is a random one."""
    words = ["--json", "--policy", "slop:0.2", "--policy", "due"]
    code = (
        "import argparse; from windrow_lab.commands import stream as s; p = "
        "argparse.ArgumentParser();"
        "s.add_arguments(p);"
        f"s.run(p.parse_args({[*_SMALL, *words]!r}))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    run(*words)
    assert other == capsys.readouterr().out != ""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--policy", "srr"], "did you mean sr"),
        (["--workload", "epigenomics"], "unknown workload"),
        (["--selection", "best"], "unknown selection"),
        (["--estimates", "perfect"], "unknown kind of estimates"),
        (["--workflows", "5"], "at least 30 workflows"),
        (["--jobs", "0.9", "--nodes", "4"], "the pool has 4"),
    ],
)
def test_bad_requests_are_refused_in_one_line(words: list[str], says: str) -> None:
    with pytest.raises(UserError, match=says) as refused:
        run(*words)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "much", "3"])
def test_a_utilization_must_be_one(text: str) -> None:
    with pytest.raises(argparse.ArgumentError, match="is not a share from 0 to 1"):
        run("--jobs", "1.5")
    with pytest.raises(argparse.ArgumentError, match="not a utilization"):
        run("--utilization", text)


def test_a_page_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no folder"):
        run("--policy", "bf", "--html", str(tmp_path / "nowhere" / "stream.html"))


@pytest.mark.slow
def test_batch_jobs_have_a_column_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    run("--policy", "bf", "--jobs", "0.5", "--json")
    told = json.loads(capsys.readouterr().out)
    classes = {size["size"]: size["workflows"] for size in told["policies"][0]["sizes"]}
    assert classes["job"] > 0
    assert sum(classes.values()) == told["policies"][0]["measured"]


def test_every_policy_that_a_pool_or_a_page_knows_is_in_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["pool", "--help"])
    policies = capsys.readouterr().out.partition("policies:")[2]
    listed = re.findall(r"^  ([a-z-]+)(?::[A-Z]+)? {2,}", policies, re.MULTILINE)
    assert set(PLAIN) <= set(listed)
    page = (Path(__file__).resolve().parents[3] / "docs/how-to/share-a-pool.md").read_text()
    named = set(re.findall(r"`(?:windrow pool --policy )?(bf|due|fes|slop|sr[a-z-]*)`", page))
    assert "sr-exact" in named
    assert named <= set(listed)


def test_ties_and_chance_are_said() -> None:
    found = compare_streams(["bf", "due"], slots=40, workflows=60, seed=3)
    first, other = found.runs

    def told(slowdown: list[float]) -> str:
        rival = replace(
            other,
            keeps_up=True,
            figures=replace(other.figures, slowdown=float(np.mean(slowdown))),
            run=replace(first.run, slowdown=np.array(slowdown)),
        )
        return summary(replace(found, runs=(first, rival)))[0]

    own = np.nan_to_num(first.run.slowdown, nan=2.0)
    first = replace(
        first,
        keeps_up=True,
        figures=replace(first.figures, slowdown=float(own.mean())),
        run=replace(first.run, slowdown=own, measured=np.ones(len(own), bool)),
    )
    assert told([*own]).endswith("; a tie.")
    assert told([*(own + 0.5 * (-1) ** (np.arange(len(own)) // 3) + 0.001)]).endswith(
        "that chance alone could give."
    )
    assert told([*(own + 0.5)]).startswith("Lowest mean slowdown: bf ")


@pytest.mark.parametrize("selection", ["random", "descendants"])
def test_policies_that_kernels_do_not_know_run_on_the_pool(selection: str) -> None:
    """Figures by the pool are those of the kernels, where these know a policy, too."""
    drawn = draw_workload("sipht", workflows=6, seed=2)
    simulator = Simulator(drawn, 20, selection=selection, seed=5)
    arrival_s = drawn.arrivals_s(0.8, 20)
    policy = find_policy("sr")
    until_s = float(arrival_s[-1])
    compiled = simulator.run(policy, arrival_s, until_s=until_s)
    pooled = simulator._by_pool(policy, arrival_s, until_s)
    np.testing.assert_allclose(pooled.end_s, compiled.end_s)
    np.testing.assert_allclose(pooled.start_s, compiled.start_s)
    assert pooled.busy_s == pytest.approx(compiled.busy_s)
    assert pooled.in_system == compiled.in_system
    exact = simulator.run(find_policy("sr-exact"), arrival_s, until_s=until_s)
    assert np.isnan(exact.kept_s)
    assert exact.busy_s > 0


def test_own_workflows_arrive_in_turn_as_the_jobs_of_a_log() -> None:
    two = [generate_workflow("eman", tasks=20), generate_workflow("montage", tasks=50)]
    drawn = own_workload(two, workflows=5)
    assert [len(w) for w in drawn.workflows] == [20, 50, 20, 50, 20]
    assert [SIZES[k] for k in drawn.sizes] == ["small", "medium", "small", "medium", "small"]
    log = generate_log("lublin", jobs=6, seed=4)
    like = arriving_like(drawn, log)
    assert like.gaps.mean() == pytest.approx(1)
    gaps = np.diff(log.submit_s)
    assert like.gaps == pytest.approx(gaps / gaps.mean())
    work_s = sum(w.work_s for w in two) / 2
    assert like.arrivals_s(0.5, 10)[-1] == pytest.approx(5 * work_s / (10 * 0.5))
    with pytest.raises(UserError, match="has 6 jobs; 6 workflows need the times between 7"):
        arriving_like(own_workload(two, workflows=6), log)


def test_files_and_a_workload_together_are_refused(home: Path) -> None:
    with pytest.raises(UserError, match="leave one out"):
        run("--file", "a.json", "--workload", "sipht")


@pytest.mark.slow
def test_files_and_a_log_at_the_command_line(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", "eman", "--tasks", "20", "-o", "a.json"]) == 0
    assert main(["generate", "log", "--jobs", "80", "-o", "l.swf"]) == 0
    capsys.readouterr()
    run("--file", "a.json", "--arrivals", "l.swf", "--policy", "bf", "--policy", "sr-exact")
    shown = capsys.readouterr().out
    assert "60 workflows (own)" in shown
    assert "unfairness" in shown
    assert "sr-exact" in shown
