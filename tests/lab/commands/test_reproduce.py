"""`windrow reproduce` from end to end, interrupted, and what it refuses. (More of glume is in
tests/unit/trials.)"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.waiting import wait_until

from windrow.cli.main import main
from windrow_lab.campaign.campaign import Campaign
from windrow_lab.reproductions.foresight import plan as foresight
from windrow_lab.reproductions.paper import PaperPlan
from windrow_lab.reproductions.zhang import plan as zhang

pytestmark = pytest.mark.usefixtures("few_bars")


@pytest.mark.parametrize(
    "option", [["--policy", "easy"], ["--placement", "count"], ["--as-thesis"]]
)
def test_options_of_glume_are_refused(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "zhang", *option]) == 2
    assert (
        f"{option[0]} is not for zhang, which has its own three policies" in capsys.readouterr().err
    )


def test_the_option_of_zhang_is_refused_for_glume(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "glume", "--data", str(tmp_path), "--cap", "16"]) == 2
    assert "--cap is not for glume" in capsys.readouterr().err


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "zhang", "--data", str(tmp_path / "no")]) == 2
    assert "give the one with the logs as --data" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--policy", "--placement"])
def test_an_unknown_policy_of_glume_is_named(
    option: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["reproduce", "glume", "--data", str(tmp_path), option, "nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_runs_from_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(zhang, "_QUICK_TIMES", 1)
    monkeypatch.setattr(zhang, "_QUICK_DAYS", 10)
    out = tmp_path / "out"
    arguments = ["reproduce", "zhang", "--data", str(tmp_path), "--out", str(out), "--workers", "1"]
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert "private" in shown.err
    assert f"page: {out / 'zhang.html'}" in shown.out
    numbers = json.loads((out / "zhang.json").read_text())
    assert (numbers["failed"], numbers["trials"]) == (0, 5 * 3 * 10 * 1 * 3)
    first = {p: p.stat().st_mtime_ns for p in (out / "chunks").iterdir()}
    assert main(arguments) == 0
    assert {p: p.stat().st_mtime_ns for p in (out / "chunks").iterdir()} == first


def thinned(plan: PaperPlan) -> PaperPlan:
    """The same campaigns with one small workflow at one time."""
    few = ("C-50-short",)

    def cut(campaign: Campaign) -> Campaign:
        return replace(
            campaign,
            workflows=workflows,
            submit_s=grid.submit_s[:1],
            strategies=campaign.strategies[:7],
        )

    grid = plan.campaigns[0]
    workflows = tuple(w for w in grid.workflows if w.name in few)
    return replace(plan, campaigns=tuple(map(cut, plan.campaigns)), calls=(list,))


@pytest.mark.slow
def test_foresight_runs_from_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = thinned(foresight.plan_foresight(None, full=False))
    monkeypatch.setattr(foresight, "plan_foresight", lambda *_, **__: plan)
    out = tmp_path / "out"
    arguments = [
        "reproduce",
        "foresight",
        "--data",
        str(tmp_path),
        "--out",
        str(out),
        "--workers",
        "1",
    ]
    assert main(arguments) == 0
    assert f"page: {out / 'foresight.html'}" in capsys.readouterr().out
    numbers = json.loads((out / "foresight.json").read_text())
    assert numbers["failed"] == 0
    assert set(numbers["cells"]) == {c.name for c in plan.campaigns}
    page, text = (out / "foresight.html").read_text(), (out / "foresight.md").read_text()
    for words in (
        "Where it was tuned: makespans",
        "Distance to the best that could be known",
        "Ablation",
    ):
        assert words in page
        assert words in text


@pytest.mark.slow
def test_an_interruption_is_one_message_and_the_same_command_continues(tmp_path: Path) -> None:
    """The signal goes to the whole group, as Ctrl-C does, while the workers are still loading their
    modules."""
    command = [
        sys.executable,
        "-m",
        "windrow.cli.main",
        "reproduce",
        "glume",
        "--data",
        str(tmp_path),
        "--workers",
        "2",
    ]
    with subprocess.Popen(
        [*command, "--out", str(tmp_path / "out")],
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            wait_until(lambda: len(workers_of(process.pid)) == 2)
        finally:
            os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert [line for line in said.splitlines() if "interrupted" in line] == [said.splitlines()[-1]]
    assert "the same command continues" in said
    wait_until(lambda: not workers_of(process.pid))


def workers_of(session: int) -> list[int]:
    """Processes of the session that run a spawned interpreter, from the table of processes."""
    listed = subprocess.run(
        ["ps", "-ww", "-eo", "pid,sess,args"], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split(None, 2) for line in listed.splitlines()[1:])
    return [int(pid) for pid, sess, args in rows if sess == str(session) and "spawn_main" in args]
