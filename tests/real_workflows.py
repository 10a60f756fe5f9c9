"""Workflows that really run: every recipe's shape, with commands that read their inputs, compute
and write outputs.

    path = write_real("montage", 50, folder)        # folder/montage.yaml, a script, and the entry files
    ... run it there ...
    assert output_checksums(path) == serial_checksums(path)

Laws: what a task writes depends on its id and the content of its inputs alone, so equal checksums
mean that every task ran after its parents, on whole files. A task whose input is missing fails.
"""  # noqa: E501

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from windrow.formats import read_runnable, write_workflow
from windrow.model import Task, Workflow
from windrow.recipes import WORKFLOW_RECIPES, generate_workflow

RECIPES = tuple(WORKFLOW_RECIPES)
"""The names of all shapes."""

ROUNDS_PER_S = 1_000_000
"""Rounds of key derivation that take about a second; the amount of work is fixed, the time it takes
is not."""

# This very interpreter is called by its path: what `python3` finds may be a slow wrapper around it.
SCRIPT = """\
import hashlib, os, sys
task, rounds, files = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
gap = files.index("--")
seen = hashlib.sha256(task.encode())
for name in files[:gap]:
    with open(name, "rb") as file:
        seen.update(file.read())
key = hashlib.pbkdf2_hmac("sha256", seen.digest(), b"windrow", max(1, rounds)).hex()
for name in files[gap + 1:]:
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name + ".part", "w") as file:
        file.write(f"{key} {task} {os.path.basename(name)}\\n" * 20)
    os.replace(name + ".part", name)
"""


def real_tasks(
    recipe: str,
    tasks: int,
    *,
    seed: int = 1,
    work_s: float = 0.02,
    python: str = sys.executable,
) -> Workflow:
    """The recipe's workflow with commands; `work_s` is about what each task computes, on top of
    starting Python.

    Files lie under `data/`. A task that writes nothing in the recipe writes a file of its own here.
    """
    drawn = generate_workflow(recipe, tasks=tasks, seed=seed)
    rounds = str(round(work_s * ROUNDS_PER_S))
    made: list[Task] = []
    for task in drawn:
        inputs = tuple(f"data/{name}" for name in task.inputs)
        outputs = tuple(f"data/{name}" for name in task.outputs) or (f"data/{task.id}.done",)
        command = (python, "-S", "-E", "step.py", task.id, rounds, *inputs, "--", *outputs)
        made.append(
            replace(
                task, inputs=inputs, outputs=outputs, command=command, runtime_s=max(1.0, work_s)
            )
        )
    return Workflow.from_tasks(f"{recipe}-{len(drawn)}", made)


def write_real(
    recipe: str,
    tasks: int,
    folder: Path,
    *,
    seed: int = 1,
    work_s: float = 0.02,
    python: str = sys.executable,
) -> Path:
    """Write the workflow as a native file into the folder, with all that it needs. Returns the
    file. `python`: what its tasks run."""
    workflow = real_tasks(recipe, tasks, seed=seed, work_s=work_s, python=python)
    _write_surroundings(workflow, folder)
    lines = [f"name: {workflow.name}", "tasks:"]
    for task in workflow:
        entry = {
            "id": task.id,
            "kind": task.kind,
            "command": list(task.command),
            "inputs": list(task.inputs),
            "outputs": list(task.outputs),
            "runtime": task.runtime_s,
        }
        lines.append(f"  - {json.dumps(entry)}")  # JSON is YAML; no name of a recipe has braces
    path = folder / f"{recipe}.yaml"
    path.write_text("\n".join([*lines, ""]))
    return path


def write_real_wfformat(
    recipe: str, tasks: int, folder: Path, *, seed: int = 1, work_s: float = 0.02
) -> Path:
    """The same as a WfFormat file."""
    workflow = real_tasks(recipe, tasks, seed=seed, work_s=work_s)
    _write_surroundings(workflow, folder)
    path = folder / f"{recipe}.json"
    write_workflow(workflow, path)
    return path


def output_checksums(path: Path) -> dict[str, str]:
    """The SHA-256 of every file that a task of the workflow writes, where it is now.
    FileNotFoundError without one."""
    runnable = read_runnable(path)
    found: dict[str, str] = {}
    for number, step in enumerate(runnable.steps):
        for name in runnable.workflow.task(number).outputs:
            found[name] = hashlib.sha256(Path(step.workdir, name).read_bytes()).hexdigest()
    return found


def serial_checksums(path: Path) -> dict[str, str]:
    """Run the workflow task by task in a fresh copy of its folder; the checksums of all it
    wrote."""
    with tempfile.TemporaryDirectory() as fresh:
        copy = Path(fresh, "copy", path.name)
        shutil.copytree(path.parent, copy.parent, ignore=_written_by(path))
        run_serially(copy)
        return output_checksums(copy)


def run_serially(path: Path) -> None:
    """Run each task where the workflow lies, in topological order. CalledProcessError for the first
    that fails."""
    runnable = read_runnable(path)
    for number in runnable.workflow.order.tolist():
        step = runnable.steps[number]
        subprocess.run(step.command, cwd=step.workdir, check=True, timeout=600)


def _write_surroundings(workflow: Workflow, folder: Path) -> None:
    """The script, and each file that is read but not written by any task."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "step.py").write_text(SCRIPT)
    written = {name for task in workflow for name in task.outputs}
    for file in workflow.files:
        if file.id not in written:
            entry = folder / file.id
            entry.parent.mkdir(parents=True, exist_ok=True)
            entry.write_text(f"entry file {file.id}\n" * 50)


def _written_by(path: Path) -> Callable[[str, list[str]], list[str]]:
    """What copytree shall leave out of each folder: what earlier runs of the workflow wrote
    there."""
    runnable = read_runnable(path)
    written = {
        str(Path(step.workdir, name))
        for number, step in enumerate(runnable.steps)
        for name in runnable.workflow.task(number).outputs
    }
    return lambda folder, names: [
        name for name in names if str(Path(folder, name).absolute()) in written
    ]
