"""No two places give different numbers for one run: the page, what it exports, `status --json`,
`report --json`, the terminal and `compare`. Runs are interrupted: managers, agents and nodes die.

What the page's columns add up to is calculated here again, task by task, as its reader would.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from tests.examples import FUZZ

from windrow.app.facts import RunFacts, RunRequest
from windrow.app.runs import RunPaths, RunView, new_run
from windrow.app.strategies import STRATEGIES
from windrow.cli import run_screen
from windrow.model import Log, NodeShape, Runnable, Step
from windrow.model.failures import Failures
from windrow.model.wording import node_span, span
from windrow.recipes import generate_log, generate_workflow
from windrow.records.runnable_file import write_runnable
from windrow.report.run.page import page_now
from windrow.report.run.view import report_view, status_view
from windrow.story.journal import RunJournal
from windrow.trials.figures import Figures
from windrow.trials.scenario import Scenario
from windrow.trials.trial import Trial

pytestmark = pytest.mark.slow

SEEDS = 100 if os.environ.get("WINDROW_FULL") else 8 * max(1, FUZZ)
CORES = 4
NAMES = ("individual", "glume", "zhang", "level-by-level", "giant")


@cache
def log() -> Log:
    return generate_log("lublin", seed=3, days=6, nodes=32)


@cache
def interrupted(seed: int) -> Trial:
    """A run in which much goes wrong: the shipped manager, agents and journal in virtual time."""
    workflow = generate_workflow("montage", tasks=20 + seed % 3 * 5, work_s=12 * 3600, seed=seed)
    failures = Failures(
        nodes_s=400_000.0, tasks=0.1, agents_s=30_000.0, manager_s=8_000.0, away_s=900.0
    )
    scenario = Scenario(
        workflow, log(), shape=NodeShape(CORES), noise=0.5, seed=seed, failures=failures
    )
    cluster = scenario.warm(scenario.cluster(), 90_000)
    return scenario.trial(cluster, STRATEGIES[NAMES[seed % len(NAMES)]])


def kept(trial: Trial, folder: Path) -> RunPaths:
    """The run as a journal has it, in a folder."""

    def fill(paths: RunPaths) -> None:
        steps = tuple(Step(("true",), str(folder)) for _ in trial.workflow.ids)
        write_runnable(paths.workflow, Runnable(trial.workflow, steps))
        request = RunRequest(folder / "w.yaml", on="slurm", strategy=trial.strategy)
        facts = RunFacts(request=request, uid="1", created_s=1.0, node_cores=CORES)
        journal = RunJournal.create(paths.journal, facts.written())
        journal.append(list(trial.records()))
        journal.close()

    return new_run("w", folder / "runs", fill)


def columns(page: str) -> dict[str, Any]:
    """The data of a page, unpacked as its script does."""
    found = re.search(r'id="data">([^<]*)<', page)
    assert found is not None
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    return data


def summed(data: dict[str, Any]) -> dict[str, float]:
    """Node time and counts as they follow from the columns alone, in seconds."""
    tries, tasks = data["attempts"], data["tasks"]
    states = data["attempt_states"]
    used = lost = 0.0
    for i, task in enumerate(tries["task"]):
        nodes = len(tries["more_nodes"].get(str(i), [tries["node"][i]]))
        taken = nodes if tasks["nodes"][task] else min(tasks["cores"][task], CORES) / CORES
        time_s = taken * tries["ran_ms"][i] / 1000
        if states[tries["outcome"][i]] in ("failed", "lost", "superseded"):
            lost += time_s
        else:
            used += time_s
    jobs = [job for job in data["jobs"] if job["started_ms"] >= 0 and "taken_by" not in job]
    allocated = sum(job["nodes"] * max(0, job["ran_ms"]) / 1000 for job in jobs)
    return {"allocated_node_s": allocated, "used_node_s": used, "lost_node_s": lost}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_all_places_tell_the_same_of_an_interrupted_run(seed: int, tmp_path: Path) -> None:
    trial = interrupted(seed)
    paths = kept(trial, tmp_path)
    told = RunView(paths)
    now_s = told.story.last_s
    recorded = told.recorded(now_s)
    page = page_now(told, now_s)
    status = to_builtins(status_view(told))
    report = to_builtins(report_view(recorded, Path("page.html"), None))
    screen = "\n".join(run_screen.summary(told, now_s))
    told.close()

    data = columns(page)
    exported = {k: v for k, v in data["figures"].items() if v is not None}
    assert exported.items() <= {k: v for k, v in report.items() if v is not None}.items()
    for name, value in status["node_time"].items():
        assert report[name] == value, name

    compared = Figures.of(trial)
    assert compared.makespan_s == report["took_s"]
    assert compared.node_time.parts() == pytest.approx(
        {
            f"{part}_node_s": report[f"{part}_node_s"]
            for part in ("allocated", "used", "idle", "lost")
        }
    )
    assert compared.jobs == report["jobs"] == len(status["jobs"]) == len(data["jobs"])

    again = summed(data)
    for name, value in again.items():
        assert value == pytest.approx(report[name], rel=1e-6, abs=0.01), name
    assert again["used_node_s"] + again["lost_node_s"] <= again["allocated_node_s"] * (1 + 1e-9)
    assert again["allocated_node_s"] <= 32 * report["took_s"], "no more nodes than there are"

    finished = data["task_states"].index("finished")
    assert data["tasks"]["state"].count(finished) == report["finished"] == len(trial.workflow)
    assert status["tasks"]["finished"] == report["finished"]

    verdict = re.sub(r"<[^>]*>", "", page[page.index('id="verdict"') : page.index('id="tasks"')])
    assert f"took {span(report['took_s'])}" in verdict
    assert node_span(report["allocated_node_s"]) in verdict
    assert f"{node_span(report['allocated_node_s'])} allocated" in screen


def test_the_runs_above_are_interrupted() -> None:
    """So that the test is about something."""
    resumed = [len(interrupted(seed).story.resumed_s) for seed in range(4)]
    assert sum(resumed) > 2
