"""The files that a run made: how many, how large, the largest of them with who makes and reads
each."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath

from windrow.model.size import format_size
from windrow.model.wording import count
from windrow.report.page import note, table
from windrow.report.run.about import About
from windrow.story.figures import RecordedRun

_MOST = 15


def files(told: RecordedRun, about: About) -> str:
    """A line and a table; empty if the sizes of no files are known."""
    workflow = told.story.workflow
    sizes = told.story.measured()
    if not sizes:
        return ""
    makers = {file: task for task, file in workflow.outputs.pairs()}
    readers = Counter(workflow.inputs.index.tolist())
    largest = sorted(sizes, key=lambda file: (-sizes[file], file))[:_MOST]
    rows = []
    for file in largest:
        name = workflow.files[file].id
        maker = makers[file]
        if maker < len(about.steps):
            name = str(PurePath(about.steps[maker].workdir, name))
        rows.append((name, format_size(sizes[file]), workflow.ids[maker], f"{readers[file]:,}"))
    total = format_size(sum(sizes.values()))
    words = f"{count(len(sizes), 'file')} with {total}, as measured when each was made."
    return note(words) + table(
        ["file", "size", "made by", "readers"], rows, len(sizes) - len(rows), " files"
    )
