"""What a run of root writes outside of the folder of its workflow file, where nothing else would
stop it: said before it starts."""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from windrow.model import Runnable
from windrow.model.wording import listed


def notes_on_outside(workflow: Path, runnable: Runnable) -> Iterator[str]:
    """A sentence for root; nothing if all outputs are inside."""
    base = os.path.realpath(workflow.absolute().parent)

    @cache
    def is_inside(folder: str) -> bool:
        real = f"{os.path.realpath(folder or '/')}/"
        return real.startswith(f"{base.rstrip('/')}/")

    found = list[str]()
    files = runnable.workflow.files
    for task, f in runnable.workflow.outputs.pairs():
        path = os.path.normpath(Path(runnable.steps[task].workdir, files[f].id))
        if not is_inside(path.rpartition("/")[0]):
            found.append(path)
    if found:
        yield f"as root, this run writes outside of {base}: {listed(found)}"
