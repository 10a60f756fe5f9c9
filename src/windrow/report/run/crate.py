"""A run as an RO-Crate: what was executed, on which files, when, by whom, as linked data that other
tools can read.

It follows RO-Crate 1.1 and the Workflow Run RO-Crate profiles 0.5: one CreateAction for the run,
whose instrument is the workflow, and one for each attempt at a task, whose instrument is the task's
program. Files are named where they are; they are not copied. Pure: the caller looks at the files.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from windrow.model import Step
from windrow.story.figures import RecordedRun
from windrow.story.states import ACTIVE, AttemptState, RunState, TaskState
from windrow.story.story import TaskAttempt
from windrow.version import __version__

CONTEXT = (
    "https://w3id.org/ro/crate/1.1/context",
    "https://w3id.org/ro/terms/workflow-run/context",
)
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/provenance/0.5": ("Provenance Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
METADATA = "ro-crate-metadata.json"
_LANGUAGES = {
    ".yaml": "Windrow",
    ".yml": "Windrow",
    ".dax": "DAX",
    ".xml": "DAX",
    ".json": "WfFormat",
}
_STATUS = {
    AttemptState.FINISHED: "CompletedActionStatus",
    AttemptState.RUNNING: "ActiveActionStatus",
}

Entity = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CrateFile:
    """A file, or a folder, as it is now. A folder has no size and no checksum."""

    size_bytes: int | None
    sha256: str | None

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.size_bytes is None


@dataclass(frozen=True, slots=True)
class CrateOf:
    """What goes into a crate: a run, what its tasks execute, who ran it, the workflow's name in the
    crate.

    A simulated run executed nothing: it has no steps, thus no files, and its times are on its log's
    clock.

    `look` says how a file is now; None if it is not there.
    """

    told: RecordedRun
    steps: Sequence[Step]
    who: str
    workflow_name: str
    made_s: float
    look: Callable[[Path], CrateFile | None]


def crate_metadata(crate: CrateOf) -> dict[str, Any]:
    """The content of `ro-crate-metadata.json`."""
    files = _files(crate)
    actions = [_run_action(crate, files)]
    for number, task in enumerate(crate.told.story.tasks):
        actions += [
            _task_action(crate, files, number, i, attempt)
            for i, attempt in enumerate(task.attempts, 1)
        ]
    tools = [
        {"@id": _tool_id(kind), "@type": "SoftwareApplication", "name": kind or "task"}
        for kind in dict.fromkeys(crate.told.story.workflow.kinds)
    ]
    graph = [
        _descriptor(),
        _root(crate, files, actions),
        *_made_with(crate, tools),
        *_profiles(),
        *tools,
        *actions,
        *files.values(),
    ]
    return {"@context": list(CONTEXT), "@graph": graph}


def _made_with(crate: CrateOf, tools: Sequence[Entity]) -> list[Entity]:
    """The workflow with its language, what executed it, and who."""
    suffixes = Path(crate.workflow_name.removesuffix(".gz")).suffixes
    language = "Windrow"
    if suffixes:
        language = _LANGUAGES.get(suffixes[-1].lower(), language)
    return [
        {
            "@id": quote(crate.workflow_name),
            "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
            "name": crate.told.story.workflow.name,
            "programmingLanguage": _ref("#language"),
            "hasPart": [_ref(tool["@id"]) for tool in tools],
        },
        {"@id": "#language", "@type": "ComputerLanguage", "name": language},
        {
            "@id": "#engine",
            "@type": "SoftwareApplication",
            "name": "Windrow",
            "softwareVersion": crate.told.version or __version__,
        },
        {"@id": "#agent", "@type": "Person", "name": crate.who},
    ]


def _root(crate: CrateOf, files: Mapping[str, Entity], actions: Sequence[Entity]) -> Entity:
    told = crate.told
    words = f"{told.state}, by the strategy {told.strategy} on the queue {told.queue}"
    return {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Run {told.name}",
        "description": f"A run of the workflow {told.story.workflow.name}: {words}.",
        "datePublished": _iso(crate.made_s),
        "license": "Not stated. Ask the person who made the run.",
        "conformsTo": [_ref(address) for address in PROFILES],
        "mainEntity": _ref(quote(crate.workflow_name)),
        "mentions": [_ref(action["@id"]) for action in actions],
        "hasPart": [
            _ref(quote(crate.workflow_name)),
            *(_ref(file["@id"]) for file in files.values()),
        ],
    }


def _tool_id(kind: str) -> str:
    return f"#tool/{quote(kind, safe='')}"


def _descriptor() -> Entity:
    return {
        "@id": METADATA,
        "@type": "CreativeWork",
        "about": _ref("./"),
        "conformsTo": [_ref("https://w3id.org/ro/crate/1.1"), _ref(list(PROFILES)[-1])],
    }


def _profiles() -> Iterator[Entity]:
    for profile, (name, version) in PROFILES.items():
        yield {"@id": profile, "@type": "CreativeWork", "name": name, "version": version}


def _created(number: str, name: str) -> Entity:
    return {"@id": number, "@type": "CreateAction", "name": name}


def _run_action(crate: CrateOf, files: Mapping[str, Entity]) -> Entity:
    told = crate.told
    workflow = told.story.workflow
    made = set(workflow.outputs.index.tolist())
    read = set(workflow.inputs.index.tolist()) - made
    paths = _paths(crate)
    action: Entity = {
        **_created("#run", f"Run {told.name}"),
        "instrument": _ref(quote(crate.workflow_name)),
        "agent": _ref("#agent"),
        "startTime": _iso(told.begun_s),
        "actionStatus": _schema(f"{_status(told)}ActionStatus"),
        "object": _present(files, (paths.get(f, "") for f in sorted(read))),
        "result": _present(files, (paths.get(f, "") for f in sorted(made))),
    }
    return action | _end(told)


def _end(told: RecordedRun) -> Entity:
    end: Entity = {}
    if told.state not in ACTIVE:
        end["endTime"] = _iso(told.until_s)
    if _status(told) == "Failed":
        end["error"] = told.story.trouble or _error(told)
    return end


def _status(told: RecordedRun) -> str:
    if told.state in ACTIVE:
        return "Active"
    if told.state == RunState.COMPLETE:
        return "Completed"
    return "Failed"


def _error(told: RecordedRun) -> str:
    failed = told.story.count(TaskState.FAILED)
    if failed:
        return f"{failed} tasks failed"
    return f"the run was {told.state}"


def _task_action(
    crate: CrateOf, files: Mapping[str, Entity], number: int, i: int, attempt: TaskAttempt
) -> Entity:
    task = crate.told.story.workflow.task(number)
    step = crate.steps[number] if crate.steps else None
    description = "simulated" if step is None else shlex.join(step.command)
    name = task.id if i == 1 else f"{task.id}, attempt {i}"
    action: Entity = {
        **_created(f"#task/{number}/{i}", name),
        "description": description,
        "instrument": _ref(_tool_id(task.kind)),
        "agent": _ref("#agent"),
        "startTime": _iso(attempt.started_s),
        "actionStatus": _schema(_STATUS.get(attempt.outcome, "FailedActionStatus")),
        "object": _present(files, _step_paths(step, task.inputs)),
    }
    if attempt.outcome is AttemptState.FINISHED:
        action["result"] = _present(files, _step_paths(step, task.outputs))
    return action | _end_of_attempt(attempt)


def _end_of_attempt(attempt: TaskAttempt) -> Entity:
    end: Entity = {}
    if attempt.ended_s is not None:
        end["endTime"] = _iso(attempt.ended_s)
    if attempt.outcome not in (AttemptState.FINISHED, AttemptState.RUNNING):
        end["error"] = attempt.why or attempt.outcome
    return end


def _files(crate: CrateOf) -> dict[str, Entity]:
    """The files that tasks read and write, by path; those that are not there are left out."""
    found: dict[str, Entity] = {}
    names = crate.told.story.workflow.files
    sizes = crate.told.story.sizes()
    for f, path in sorted(_paths(crate).items(), key=lambda item: item[1]):
        seen = crate.look(Path(path))
        if seen is None or path in found:
            continue
        found[path] = _file(Path(path), names[f].id, seen, sizes.get(f))
    return found


def _file(path: Path, name: str, seen: CrateFile, measured: int | None) -> Entity:
    """A file or a folder; of a folder, the size is what was measured when it was made."""
    if not seen.is_folder:
        return {
            "@id": path.as_uri(),
            "@type": "File",
            "name": name,
            "contentSize": str(seen.size_bytes),
            "sha256": seen.sha256,
        }
    folder: Entity = {"@id": f"{path.as_uri()}/", "@type": "Dataset", "name": name}
    if measured is not None:
        folder["contentSize"] = str(measured)
    return folder


def _paths(crate: CrateOf) -> dict[int, str]:
    """Where each file of the workflow is: as the first task that writes it says, else the first
    that reads it."""
    workflow = crate.told.story.workflow
    found: dict[int, str] = {}
    for links in (workflow.outputs, workflow.inputs):
        for number, step in enumerate(crate.steps):
            for f in links.of(number).tolist():
                found.setdefault(f, _path(step, workflow.files[f].id))
    return found


def _step_paths(step: Step | None, names: Sequence[str]) -> Iterator[str]:
    if step is not None:
        return (_path(step, name) for name in names)
    return iter(())


def _path(step: Step, name: str) -> str:
    return str(Path(step.workdir, name))


def _present(files: Mapping[str, Entity], paths: Iterator[str]) -> list[Entity]:
    return [_ref(files[path]["@id"]) for path in dict.fromkeys(paths) if path in files]


def _ref(address: str) -> Entity:
    return {"@id": address}


def _schema(name: str) -> str:
    return f"http://schema.org/{name}"


def _iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")
