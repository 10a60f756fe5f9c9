"""A generated workflow as one that runs: tasks read all of their inputs, wait as long as they would
run, and write.

What they read and write has the sizes of the workflow's files, so that disks, tracers and limits of
space meet the real thing. Inputs that no task writes are made beside the file, with holes in place
of data; names have no folders.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from shlex import join, quote

from windrow.formats.disk import replace_text
from windrow.model import Task, Workflow


def write_stand_in(workflow: Workflow, path: str | Path) -> None:
    """Write it as a native workflow (YAML), and its inputs."""
    sizes = {_flat(file.id): file.size_bytes for file in workflow.files}
    lines = []
    written = set[str]()
    for task in workflow:
        lines.append(_entry(task, sizes))
        written.update(map(_flat, task.outputs))
    _write_inputs(Path(path), {name: sizes[name] for name in sizes.keys() - written})
    files = json.dumps(
        {name: f"{sizes[name]}B" for name in sizes if name not in written and sizes[name]}
    )
    head = f"name: {workflow.name}\nfiles: {files}\ntasks:\n"
    replace_text(path, head + "".join(f"  - {line}\n" for line in lines))


def _flat(name: str) -> str:
    """Without a folder."""
    return name.replace("/", "_")


def _entry(task: Task, sizes: Mapping[str, int]) -> str:
    """A task that reads, waits and writes."""
    inputs = list(map(_flat, task.inputs))
    outputs = list(map(_flat, task.outputs))
    steps = []
    if inputs:
        steps.append(f"{join(['cat', *inputs])} > /dev/null")
    steps.append(f"sleep {task.runtime_s:.3f}")
    steps += [f"head -c {sizes[one]} /dev/zero > {quote(one)}" for one in outputs]
    said = {
        "id": task.id,
        "kind": task.kind,
        "command": " && ".join(steps),
        "inputs": inputs,
        "outputs": {one: f"{sizes[one]}B" for one in outputs},
        "runtime": max(task.runtime_s, 0.001),
    }
    return json.dumps(said)


def _write_inputs(beside: Path, sizes: Mapping[str, int]) -> None:
    for name, size in sizes.items():
        with beside.with_name(name).open("wb") as made:
            made.truncate(size)
