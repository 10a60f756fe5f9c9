"""What says nothing is not written, and what is read back is the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import UserError
from windrow.model import File, Step, Task
from windrow.model.checkpoint import Checkpoint
from windrow.records.compact import as_json
from windrow.story.events import JobsPlanned
from windrow.strategies.base import Candidate, Decision, JobPlan


@dataclass(frozen=True, slots=True)
class One:
    name: str


@dataclass(frozen=True)
class Nested:
    needed: int
    ones: tuple[One, ...] = ()
    word: str = "usual"
    lists: list[int] = field(default_factory=list)


TEXTS = st.text(st.characters(codec="utf-8"))


@given(st.builds(Nested, st.integers(0, 9), st.lists(st.builds(One, TEXTS)).map(tuple), TEXTS))
def test_what_is_read_back_is_the_same(value: Nested) -> None:
    written = as_json([value, value])
    assert msgspec.json.decode(written, type=list[Nested]) == [value, value]
    assert (b'"word"' in written) == (value.word != "usual")


@pytest.mark.parametrize(
    ("value", "kind", "fields"),
    [
        (Task("a", 5.0), Task, {"id", "runtime_s"}),
        (File("f"), File, {"id"}),
        (Step(("true",), "/w"), Step, {"command", "workdir"}),
        (
            Step(("true",), "/w", checkpoint=Checkpoint(("x",))),
            Step,
            {"command", "workdir", "checkpoint"},
        ),
        (
            JobsPlanned(3, Decision((JobPlan((0, 1), 2, 3, 4),), (Candidate("x", 1, 2, 3, 4, 5),))),
            JobsPlanned,
            {"at_s", "decision"},
        ),
    ],
)
def test_only_what_differs_is_written(value: Any, kind: type[Any], fields: set[str]) -> None:
    written = as_json(value)
    assert set(msgspec.json.decode(written)) == fields
    assert msgspec.json.decode(written, type=kind) == value


def test_numbers_of_numpy_are_numbers() -> None:
    assert as_json({"a": np.int64(3)}) == b'{"a":3}'


def test_texts_that_are_none_are_the_users_error() -> None:
    with pytest.raises(UserError, match="not UTF-8"):
        as_json(One("\udcff"))
