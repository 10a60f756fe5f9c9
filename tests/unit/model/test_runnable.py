"""Workflows that can be executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.errors import InputError
from windrow.model import Runnable, Step, Task, Workflow
from windrow.model.runnable import refuse_missing_inputs


def a_runnable() -> Runnable:
    tasks = [
        Task("a", 1.0, inputs=("given", "/far/given"), outputs=("made",)),
        Task("b", 1.0, parents=("a",), inputs=("made",)),
    ]
    return Runnable(
        Workflow.from_tasks("w", tasks), (Step(("true",), "/here"), Step(("true",), "/there"))
    )


@pytest.mark.parametrize("missing", ["/here/given", "/far/given"])
def test_an_input_that_nobody_makes_must_be_there(missing: str) -> None:
    with pytest.raises(
        InputError,
        match=r"w\.yaml: task a reads .*given, which no task writes and which is not in /here",
    ):
        refuse_missing_inputs(Path("w.yaml"), a_runnable(), lambda path: str(path) != missing)


def test_what_tasks_make_need_not_be_there() -> None:
    asked: list[str] = []

    def exists(path: Path) -> bool:
        asked.append(str(path))
        return True

    refuse_missing_inputs(Path("w.yaml"), a_runnable(), exists)
    assert asked == ["/here/given", "/far/given"]
