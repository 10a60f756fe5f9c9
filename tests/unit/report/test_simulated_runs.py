"""What is told of a simulated run is told by the code that tells of real ones."""

from __future__ import annotations

import json

from tests.unit.report.still import still

from windrow.app.strategies import STRATEGIES
from windrow.manager.core import Core
from windrow.model import NodeShape
from windrow.recipes import generate_log, generate_workflow
from windrow.report.run.crate import CrateOf, crate_metadata
from windrow.report.run.explanation import (
    LINES_MAX,
    answer_job,
    answer_task,
    explain_job,
    explain_task,
)
from windrow.report.run.page import run_page
from windrow.story.events import Event
from windrow.story.figures import attempts, node_time
from windrow.trials.scenario import Scenario
from windrow.trials.trial import Trial

LOG = generate_log("lublin", seed=3, days=6, nodes=32)
WORKFLOW = generate_workflow("montage", tasks=40, work_s=60 * 3600, seed=2)


def played() -> Trial:
    """With tasks that are lost, since none of them takes what it should, and nothing more is asked
    for."""
    scenario = Scenario(WORKFLOW, LOG, shape=NodeShape(4), noise=0.5, seed=1, margin=1.0)
    return scenario.trial(scenario.warm(scenario.cluster(), 90_000), STRATEGIES["zhang"])


def test_it_is_explained_with_times_from_its_beginning() -> None:
    run = played().recorded
    lost = next(task for task, attempt in attempts(run.story) if attempt.outcome == "lost")
    lines = explain_task(run, lost)
    assert lines[0] == f"task {WORKFLOW.ids[lost]}: finished (job {run.story.tasks[lost].job})"
    assert "lost: its job ended" in lines[1]
    assert ", from +" in lines[1]
    job = explain_job(run, 0)
    assert job[1].startswith("planned at +0 s: expected to run ")
    assert any(line.startswith("started at +") for line in job)
    assert len(answer_task(run, lost)) <= LINES_MAX
    assert answer_job(run, 0)[0].startswith("job 0: ")


def test_it_has_a_crate_without_files() -> None:
    run = played().recorded
    crate = crate_metadata(CrateOf(run, (), "me", "montage.json", 0.0, lambda _path: None))
    assert json.dumps(crate)
    actions = [entity for entity in crate["@graph"] if entity["@type"] == "CreateAction"]
    assert len(actions) == 1 + sum(1 for _ in attempts(run.story))
    done = [
        action for action in actions if action["actionStatus"].endswith("CompletedActionStatus")
    ]
    assert len(done) == 1 + len(WORKFLOW)
    assert not [entity for entity in crate["@graph"] if entity["@type"] == "File"]


def test_it_has_the_page_of_a_real_run() -> None:
    page = still(run_page(played().recorded))
    for head in (
        "The run over time",
        "Node time",
        "Failed and lost attempts",
        "Jobs",
        "Decisions",
        "Tasks",
    ):
        assert f">{head}</h2>" in page
    assert "Predicted and actual starts" not in page, "nobody predicted anything"
    for measured in ("CPU time", "CPU efficiency", "peak memory", "id -"):
        assert measured not in page, "a simulation measures none of these"


def test_its_node_time_adds_up() -> None:
    used = node_time(played().recorded)
    assert used.lost_s > 0
    assert used.allocated_s == used.used_s + used.lost_s + used.idle_s


def test_a_core_that_hears_its_records_is_done_with_all_tasks() -> None:
    """The rule of journals: whoever replays the events has the core that the run had."""
    trial = played()
    scenario = Scenario(WORKFLOW, LOG, shape=NodeShape(4), margin=1.0)
    core = Core(scenario.work, scenario.terms)
    events: list[Event] = [record.event for record in trial.records()]
    for event in events:
        core.handle(event)
        core.check()
    assert core.is_complete
    assert not core.jobs
