"""The workflow as a run took it: it comes back as it was, or is refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.errors import InputError, UserError
from windrow.model import File, Runnable, Step, Task, Workflow
from windrow.pool.folder import PoolFolder
from windrow.records.runnable_file import read_runnable, write_runnable


def one(workdir: str = "/") -> Runnable:
    tasks = [
        Task("a \n;'é", 1.5, outputs=("x",)),
        Task("b", 2.0, parents=("a \n;'é",), inputs=("x",), cores=2),
    ]
    steps = (
        Step(("echo", "$(1)"), workdir, env=(("A", "1"),)),
        Step(("echo", ""), workdir, retries=2),
    )
    return Runnable(Workflow.from_tasks("one", tasks, [File("x", 7)]), steps)


def test_a_workflow_comes_back_as_it_was(tmp_path: Path) -> None:
    path, given = tmp_path / "workflow.json", one()
    write_runnable(path, given)
    found = read_runnable(path)
    assert list(found.workflow) == list(given.workflow)
    assert found.workflow.files == given.workflow.files
    assert found.steps == given.steps


def test_a_folder_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    """Names of folders may be any bytes; Python stands in for those that are no text."""
    folder = PoolFolder(tmp_path / "lab")
    folder.make()
    path, given = (
        tmp_path / "workflow.json",
        one(b"/data/\xff\xfe".decode(errors="surrogateescape")),
    )
    with pytest.raises(
        UserError, match=r"'/data/\\udcff\\udcfe' has bytes that are not UTF-8; rename it"
    ):
        write_runnable(path, given)
    with pytest.raises(UserError, match="not UTF-8"):
        folder.submit(given)
    assert not path.exists()
    assert list(folder.workflows.iterdir()) == []


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[1]"])
def test_what_is_no_workflow_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "workflow.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(
        InputError, match=r"workflow\.json: cannot be read .*; start the workflow again"
    ):
        read_runnable(path)
