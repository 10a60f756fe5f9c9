"""What a run of root writes outside of the folder of its workflow file, where nothing else would
stop it: said before it starts."""

import os
from collections.abc import Iterator
from pathlib import Path

from windrow.model import Runnable
from windrow.model.wording import listed


def notes_on_outside(workflow: Path, runnable: Runnable) -> Iterator[str]:
    """A sentence for root; nothing if all outputs are inside."""
    base = os.path.realpath(workflow.absolute().parent)
    inside: dict[str, bool] = {}
    found = list[str]()
    files = runnable.workflow.files
    for task, step in enumerate(runnable.steps):
        for f in runnable.workflow.outputs.of(task).tolist():
            path = os.path.normpath(Path(step.workdir, files[f].id))
            folder = path.rpartition("/")[0]
            if folder not in inside:
                real = f"{os.path.realpath(folder or '/')}/"
                inside[folder] = real.startswith(f"{base.rstrip('/')}/")
            if not inside[folder]:
                found.append(path)
    if found:
        yield f"as root, this run writes outside of {base}: {listed(found)}"
