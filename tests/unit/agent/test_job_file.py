"""The job file: what goes in comes out, and what is broken is named."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.steps import steps
from tests.unit.agent.jobs import task

from windrow.agent.job_file import JobFile, TaskSpec, read_job, write_job
from windrow.errors import InputError

# Any text, and the escapes by which Python stands for bytes that are no text.
texts = st.text(
    st.characters(exclude_categories=()) | st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF)
)
numbers = st.lists(st.integers(0, 10**6), max_size=4).map(tuple)
specs = st.builds(
    TaskSpec,
    task=st.integers(0, 10**6),
    id=texts,
    kind=texts,
    command=st.lists(texts, min_size=1, max_size=4).map(tuple),
    workdir=texts,
    env=st.dictionaries(texts, texts, max_size=3),
    inputs=st.lists(texts, max_size=3).map(tuple),
    outputs=st.lists(texts, max_size=3).map(tuple),
    expected_s=st.floats(0, 1e6),
    parents=numbers,
    children=numbers,
)
jobs = st.builds(
    JobFile,
    run=texts,
    job=st.integers(0, 100),
    nodes=st.integers(1, 9),
    cores=st.integers(1, 9),
    memory_bytes=st.none() | st.integers(1, 2**50),
    walltime_s=st.floats(1, 1e6),
    tasks=st.lists(specs, max_size=4).map(tuple),
    over=numbers,
)


@pytest.mark.slow
@given(jobs)
def test_what_is_written_is_read(job: JobFile) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "job.json")
        write_job(path, job)
        assert read_job(path) == job
        assert list(Path(folder).iterdir()) == [path]


def test_it_is_for_its_owner_alone(tmp_path: Path) -> None:
    write_job(tmp_path / "job.json", JobFile("r", 0, 1, 1, None, 60.0, ()))
    assert [(p.name, p.stat().st_mode & 0o777) for p in tmp_path.iterdir()] == [("job.json", 0o600)]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"job\.json: cannot be read: No such file"):
        read_job(tmp_path / "job.json")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"tasks": [{}]}', '{"tasks": 3}', '{"tasks": [], "colour": "red"}']
)
def test_anything_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "job.json"
    path.write_text(text)
    with pytest.raises(InputError, match="is not a job file"):
        read_job(path)


def test_a_task_without_command_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    write_job(path, JobFile("r", 0, 1, 1, None, 60, (task(7, "true"),)))
    record = json.loads(path.read_text())
    record["tasks"][0]["command"] = []
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match="'t7' has no command"):
        read_job(path)


def test_reading_costs_the_same_for_each_task(tmp_path: Path) -> None:
    def reading(tasks: int) -> int:
        many = tuple(
            task(n, "prog", "--in", f"file-{n}", outputs=(f"out-{n}",), parents=(n,))
            for n in range(tasks)
        )
        write_job(tmp_path / "job.json", JobFile("r", 0, 1, 1, None, 60, many))
        return steps(lambda: read_job(tmp_path / "job.json"))

    assert reading(1000) < 4.1 * reading(250)
