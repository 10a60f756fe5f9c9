"""Bugs put in by hand: each still goes into today's source, in exactly one place."""

from __future__ import annotations

import pytest
from bench.campaigns import ROOT, pieces, together
from bench.planted import Bug, Edit, all_bugs, changed

BUGS = all_bugs()


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_goes_into_the_source_exactly_once(bug: Bug) -> None:
    """ValueError, with the lines, where it does not: then put it in where they are today."""
    for edit in bug.edits:
        compile(changed(edit, (ROOT / edit.path).read_text()), edit.path, "exec")


def test_there_are_enough_and_few_are_excused() -> None:
    assert len(BUGS) >= 30
    assert sum(bool(bug.excuse) for bug in BUGS) <= 3
    assert len({bug.edits for bug in BUGS}) == len(BUGS)


def test_lines_are_found_wherever_they_are_indented() -> None:
    edit = Edit("a.py", "        x = 1\n        y = 2", "        pass")
    assert changed(edit, "def f():\n    x = 1\n    y = 2\n") == "def f():\n    pass\n"
    for text in ("x = 1\n    y = 2\n", "x = 1\ny = 2\nx = 1\ny = 2\n"):
        with pytest.raises(ValueError, match="has these lines"):
            changed(edit, text)


def test_a_campaign_is_split_and_put_together_again() -> None:
    assert pieces("--seed 7 --runs 5 --with mixed", 2) == [
        "--seed 7 --runs 2 --with mixed",
        "--seed 9 --runs 2 --with mixed",
        "--seed 11 --runs 1 --with mixed",
    ]
    assert pieces("--every-record --seed 4", 2) == ["--every-record --seed 4"]
    one = {"runs": 1, "managers": 2, "records": 3, "hours": 0.5, "cpu_s": 1.0}
    parts = [
        {**one, "met": {"a": 1}, "exercised": {}, "never": ["x", "y"], "violations": []},
        {**one, "met": {"a": 2, "b": 1}, "exercised": {}, "never": ["y"], "violations": ["v"]},
    ]
    whole = together(parts)
    assert (whole["runs"], whole["met"]) == (2, {"a": 3, "b": 1})
    assert (whole["never"], whole["violations"]) == (["y"], ["v"])
