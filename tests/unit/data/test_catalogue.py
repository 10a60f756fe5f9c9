"""What is where: held against an obvious account of every file at every place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from windrow.data.catalogue import FADING, HOME, Catalogue, Paths, paths_of
from windrow.errors import UserError
from windrow.model import File, Runnable, Step, Task, Workflow

PLACES = (HOME, "west", "east")
# Three tasks in a row, and a result of each; the first reads what no task makes.
PATHS = Paths("/w", (("in",), ("a",), ("b",)), (("a", "ra"), ("b", "rb"), ("c",)))


@examples(60)
@given(st.data())
def test_files_are_where_they_were_made_or_moved_and_moves_lead_there(data: st.DataObject) -> None:
    catalogue = Catalogue(PATHS)
    known = {"in": {HOME}} | {path: set[str]() for made in PATHS.makes for path in made}
    done: set[int] = set()
    for _ in range(data.draw(st.integers(0, 12))):
        what = data.draw(st.sampled_from(("made", "undone", "moved")))
        task, place = data.draw(st.sampled_from(range(3))), data.draw(st.sampled_from(PLACES))
        if what == "made":
            catalogue.made(task, place, (1, 2))
            known |= {path: {place} for path in PATHS.makes[task] if task not in done}
            done.add(task)
        elif what == "undone":
            catalogue.undone(task)
            known |= {path: set() for path in PATHS.makes[task]}
            done.discard(task)
        else:
            needs = {place: PATHS.reads[task]}
            for link, files in catalogue.moves(needs).items():
                assert HOME in link
                assert all(link[0] in known[path] and link[1] not in known[path] for path in files)
                catalogue.moved(files, *link, 0, 1.0)
                for path in files:
                    known[path].add(link[1])
            twice = catalogue.moves(needs)  # two others are reached through home
            assert all(link[0] == HOME for link in twice)
    for path, places in known.items():
        assert [catalogue.is_at(path, place) for place in PLACES] == [
            place in places for place in PLACES
        ]
        assert catalogue.is_nowhere(path) == (not places)
    homeless = {path for path in ("ra", "rb", "c") if known[path] and HOME not in known[path]}
    assert set(catalogue.results) == homeless


def test_a_link_is_learned_with_fading_and_tells_how_long_data_take() -> None:
    catalogue = Catalogue(PATHS, {"in": 4_000_000})
    catalogue.moved((), HOME, "west", 1_000_000, 2.0)
    catalogue.moved((), HOME, "west", 2_000_000, 2.0)
    assert catalogue.s_per_mb[HOME, "west"] == pytest.approx(FADING * 2.0 + (1 - FADING) * 1.0)
    assert catalogue.data_s([0], "west") == pytest.approx(4 * 1.7)
    assert catalogue.data_s([0], HOME) == 0
    catalogue.moved(["in"], HOME, "west", 0, 1.0)
    assert catalogue.data_s([0, 1, 2], "west") == 0, "what tasks make for each other is there"


def runnable(command: str, workdir: str, *files: File, **more: Any) -> Runnable:
    return Runnable(
        Workflow.from_tasks("w", [Task("t", 1.0, **more)], files),
        (Step(("sh", "-c", command), workdir),),
    )


def test_what_a_command_names_travels_and_what_is_outside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tool.sh").touch()
    (tmp_path / "in").touch()
    here = str(tmp_path / "work")
    found = paths_of(
        runnable("sh ../tool.sh <../in >out", here, inputs=("../in",), outputs=("out",)),
        os.path.isfile,
    )
    assert (found.root, found.reads, found.makes) == (
        str(tmp_path),
        (("in", "tool.sh"),),
        (("work/out",),),
    )
    with pytest.raises(UserError, match="outside of"):
        paths_of(runnable("cat /etc/x", here, inputs=("/etc/x",)), lambda _: False)
    with pytest.raises(UserError, match="write the path relative"):
        paths_of(runnable(f"cat {here}/x", here), lambda _: True)
    kept = paths_of(runnable("x", here, File("r", stays="west"), outputs=("r",)), lambda _: False)
    catalogue = Catalogue(kept)
    catalogue.made(0, "west")
    assert kept.stays == frozenset({"r"})
    assert not catalogue.results
    assert not catalogue.moves({HOME: ["r"]})
