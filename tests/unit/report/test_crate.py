"""The RO-Crate of a run: what the profiles demand of it, checked on the graph itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rocrate.rocrate import ROCrate
from tests.unit.report import told_runs as run

from windrow.model import Step, Task, Workflow
from windrow.model.attempt import Attempt
from windrow.report.run.crate import PROFILES, CrateFile, CrateOf, crate_metadata
from windrow.story import events as e
from windrow.story.journal import Record
from windrow.strategies import JobPlan

TASKS = [
    Task("make it", 1.0, kind="make", inputs=("raw data",), outputs=("a#1",)),
    Task("use", 1.0, kind="use", parents=("make it",), inputs=("a#1",), outputs=("b",)),
    Task("never", 1.0, kind="use", parents=("use",), inputs=("b",)),
]
PRESENT = {"/w/raw data": CrateFile(4, "0" * 64), "/w/a#1": CrateFile(2, "1" * 64)}


def retried(at_s: float, task: int, begun_s: float) -> Record:
    return Record(
        e.TaskRetried(int(at_s), 0, task),
        None,
        at_s,
        Attempt(task, begun=begun_s, why="exit code 9"),
    )


def metadata() -> dict[str, Any]:
    """A run in which the second task failed once, then for good, so that the third never ran."""
    records = [
        *run.one_job(3),
        run.task_started(1016, 0, 0),
        run.finished(1018.5, 0, 1016.25),
        run.task_started(1019, 0, 1),
        retried(1020, 1, 1019),
        run.task_started(1021, 0, 1),
        run.failed(1022, 1, 1021),
        run.ended(1023, 0),
    ]
    told = run.told(Workflow.from_tasks("toy", TASKS), records, until_s=1023, state="failed")
    steps = [Step(("sh", "-c", f"echo '{task.id}'"), "/w") for task in TASKS]
    return crate_metadata(
        CrateOf(told, steps, "ada", "toy flow.yaml", 2000.0, lambda path: PRESENT.get(str(path)))
    )


def by_id(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = {entity["@id"]: entity for entity in content["@graph"]}
    assert len(found) == len(content["@graph"]), "an id is there twice"
    return found


def references(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [v["@id"] for v in values if isinstance(v, dict)]


def test_the_root_is_found_the_way_readers_look_for_it() -> None:
    entities = by_id(metadata())
    descriptor = entities["ro-crate-metadata.json"]
    assert {"@id": "https://w3id.org/ro/crate/1.1"} in descriptor["conformsTo"]
    root = entities[descriptor["about"]["@id"]]
    assert root["@type"] == "Dataset"
    assert all(root[name] for name in ("name", "description", "datePublished", "license"))
    assert references(root["conformsTo"]) == list(PROFILES)


def test_every_reference_leads_somewhere() -> None:
    entities = by_id(metadata())
    outside = {"https://w3id.org/ro/crate/1.1"}
    for entity in entities.values():
        for key, value in entity.items():
            assert set(references(value)) - outside <= set(entities), f"{entity['@id']} {key}"


def test_the_workflow_is_the_instrument_of_the_run() -> None:
    entities = by_id(metadata())
    workflow = entities[entities["./"]["mainEntity"]["@id"]]
    assert set(workflow["@type"]) == {"File", "SoftwareSourceCode", "ComputationalWorkflow"}
    assert workflow["@id"] == "toy%20flow.yaml"
    action = entities["#run"]
    assert references(action["instrument"]) == [workflow["@id"]]
    assert (action["startTime"], action["endTime"]) == (
        "1970-01-01T00:16:40.000+00:00",
        "1970-01-01T00:17:03.000+00:00",
    )
    assert action["actionStatus"] == "http://schema.org/FailedActionStatus"
    assert action["error"]
    assert references(action["object"]) == ["file:///w/raw%20data"]


def test_each_attempt_is_an_action_of_its_program() -> None:
    entities = by_id(metadata())
    actions = [x for x in entities.values() if x["@type"] == "CreateAction" and x["@id"] != "#run"]
    assert [x["name"] for x in actions] == ["make it", "use", "use, attempt 2"]
    workflow = entities["toy%20flow.yaml"]
    for action in actions:
        (tool,) = references(action["instrument"])
        assert entities[tool]["@type"] == "SoftwareApplication"
        assert tool in references(workflow["hasPart"])
        assert action["@id"] in references(entities["./"]["mentions"])
        assert entities[references(action["agent"])[0]]["name"] == "ada"
    made, first, second = actions
    assert made["startTime"] == "1970-01-01T00:16:56.250+00:00"
    assert made["actionStatus"].endswith("/CompletedActionStatus")
    assert made["description"] == "sh -c 'echo '\"'\"'make it'\"'\"''"
    assert references(made["result"]) == ["file:///w/a%231"] == references(first["object"])
    assert [x["error"] for x in (first, second)] == ["exit code 9", "exit code 3"]
    assert "result" not in second


def test_files_that_are_there_have_size_and_checksum() -> None:
    entities = by_id(metadata())
    assert entities["file:///w/a%231"] == {
        "@id": "file:///w/a%231",
        "@type": "File",
        "name": "a#1",
        "contentSize": "2",
        "sha256": "1" * 64,
    }
    assert not [address for address in entities if address.endswith("/b")], "b was never written"


def test_a_run_that_goes_on_has_no_end() -> None:
    plan = JobPlan((0,), 1, 60, 120)
    records = [
        Record(e.RunBegan(1000)),
        run.planned(1000, plan),
        run.started(1001, 0),
        run.task_started(1002, 0, 0),
    ]
    told = run.told(run.independent(1), records, until_s=1010)
    content = crate_metadata(
        CrateOf(told, [Step(("true",), "/w")], "ada", "toy.yaml", 1010, lambda _: None)
    )
    for name in ("#run", "#task/0/1"):
        action = by_id(content)[name]
        assert action["actionStatus"].endswith("/ActiveActionStatus")
        assert "endTime" not in action
        assert "error" not in action


def test_the_reference_reader_reads_it(tmp_path: Path) -> None:
    (tmp_path / "ro-crate-metadata.json").write_text(json.dumps(metadata()))
    (tmp_path / "toy flow.yaml").write_text("tasks: []\n")
    crate = ROCrate(tmp_path)
    assert crate.mainEntity.type == ["File", "SoftwareSourceCode", "ComputationalWorkflow"]
    assert len([x for x in crate.get_entities() if x.type == "CreateAction"]) == 4
