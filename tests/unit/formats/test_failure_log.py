"""Failure logs: three layouts, and what is wrong with one is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.errors import UserError
from windrow.formats.failure_log import read_failure_log, read_failures

HEADS = {
    "fta": "# "
    "event_id\tcomponent_id\tnode_id\tplatform_id\tnode_name\tevent_type\tevent_start_time\tevent_end_time\n",
    "lanl": "System,nodes,nodenum,nodenumz,Prob Started,Prob Fixed,Down Time\n",
}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("2d, 1, 4h\n# a comment\n\n90,0,30\n", ((90, 0, 120), (172800, 1, 187200))),
        (
            "# node,time,why,repair\nb,5,disk,1\na,3,?,0\nb,9,,2\n",
            ((3, 1, 4), (5, 0, 6), (9, 0, 11)),
        ),
        (
            f"{HEADS['fta']}1\t1\t7\t1\tx\t0\t1000000100\t1000000160\n"
            "2\t1\t7\t1\tx\t1\t1000000160\t1000000900\n3\t1\t2\t1\ty\t0\t1000000000\t1000000010\n",
            ((0, 2, 10), (100, 7, 160)),
        ),
        (
            f"{HEADS['lanl']}2,4,1,0,6/21/2005 10:54,6/21/2005 11:00,6\n2,4,13,12,6/22/2005 "
            "10:54,6/22/2005 10:54,0\n",
            ((0, 0, 360), (86400, 12, 86401)),
        ),
    ],
)
def test_layouts(tmp_path: Path, text: str, rows: object) -> None:
    path = tmp_path / "failures.csv"
    path.write_text(text)
    assert read_failure_log(path) == rows


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "# nothing",
            "failures.csv: it has no failure; write time, node and repair, like 3d,17,4h",
        ),
        ("time,host,repair\n", "failures.csv:1: no column is called node"),
        ("1,2\n", "failures.csv:1: 2 of 3 columns"),
        ("1,2,3\nsoon,2,3\n", "failures.csv:2: 'soon' is not a duration"),
        ("1,2,-3\n", "failures.csv:1: '-3' is not a duration"),
        (
            f"{HEADS['lanl']}2,1,1,0,21/6/2005 10:54,6/21/2005 11:00,6\n",
            "failures.csv:2: time data '21/6/2005 10:54'",
        ),
        (
            f"{HEADS['lanl']}2,1,1,0,6/1/2005 1:00,6/1/2005 2:00,6\n3,1,1,0,,,6\n",
            "csv:3: anoth",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "failures.csv"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        read_failure_log(path)
    assert words in str(error.value)


def test_as_an_option(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("1h,0,2h\n2h,40,1h\n")
    failures = read_failures("log=f.csv,jobs=lost", tmp_path)
    assert failures
    assert not failures.is_drawn
    assert failures.draw(5, 64, 100, 9999).tolist() == [[3700, 0, 10900, 1], [7300, 40, 10900, 1]]
    assert len(failures.draw(5, 64, 100, 7300)) == 1
    with pytest.raises(
        UserError, match=r"f\.csv has a node 40, and the machine has nodes 0 to 39; leave it out"
    ):
        failures.draw(5, 40, 0, 9999)
    with pytest.raises(UserError, match=r"by chance or as f\.csv says; give either nodes or log"):
        read_failures("nodes=3d,log=f.csv", tmp_path)
    with pytest.raises(UserError, match=r"none\.csv"):
        read_failures("log=none.csv", tmp_path)
