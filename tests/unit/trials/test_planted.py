"""Bugs put in by hand: each still goes into today's source, in exactly one place."""

from __future__ import annotations

import pytest
from bench.planted import ROOT, Bug, Edit, all_bugs, changed

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
