"""Which files may stay on the node that makes them, against a law that looks at every pair of file
and task."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from windrow.model import File, Task, Workflow
from windrow.storage.places import Staying

NAMES = ["a", "b", "d", "d/x", "d/x/y", "e.bam"]


@given(st.data())
def test_what_stays_is_read_in_its_job_alone(data: st.DataObject) -> None:
    makers = data.draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    tasks = [Task(f"m{n}", 1, outputs=(name,)) for n, name in enumerate(makers)]
    reads = data.draw(
        st.lists(st.lists(st.sampled_from(makers), unique=True, min_size=1), max_size=4)
    )
    parents = {name: f"m{n}" for n, name in enumerate(makers)}
    tasks += [
        Task(f"r{n}", 1, parents=tuple(parents[name] for name in names), inputs=tuple(names))
        for n, names in enumerate(reads)
    ]
    files = [
        File(
            name,
            keep=data.draw(st.sampled_from([None, True, False])),
            stays=data.draw(st.sampled_from(["", "s"])),
        )
        for name in makers
    ]
    workflow, keep = (
        Workflow.from_tasks("w", tasks, files),
        data.draw(st.sampled_from([[], ["*.bam"], ["d/*"]])),
    )
    everyone = list(range(len(tasks)))
    job = set(data.draw(st.lists(st.sampled_from(everyone), unique=True, min_size=1)))
    done = set(data.draw(st.lists(st.sampled_from(everyone), unique=True))) - job
    staying = Staying(workflow, keep)
    for maker in job:
        for name in tasks[maker].outputs:
            readers = {n for n, task in enumerate(tasks) if name in task.inputs}
            file = next(file for file in files if file.id == name)
            other = [
                n
                for n in makers
                if n != name and (n.startswith(f"{name}/") or name.startswith(f"{n}/"))
            ]
            asked = (
                file.keep is True
                or file.stays
                or any(fnmatchcase(name, pattern) for pattern in keep)
            )
            is_used = bool(readers & job) or (file.keep is False and not readers)
            expected = is_used and readers <= job | done and not asked and not other
            assert (staying.of([name], job, done.__contains__) == (name,)) == expected
