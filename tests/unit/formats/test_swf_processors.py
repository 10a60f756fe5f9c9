"""How wide a job of a log is: what it was given, or what it asked for."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import UserError
from windrow.formats.swf.reader import read_log

COUNT = st.integers(-1, 12)


@given(
    st.lists(st.tuples(COUNT, COUNT), min_size=1, max_size=6),
    st.sampled_from(["allocated", "requested"]),
)
def test_the_width_is_the_kind_wanted_else_the_other(
    tmp_path_factory: pytest.TempPathFactory,
    counts: list[tuple[int, int]],
    processors: Literal["allocated", "requested"],
) -> None:
    """Job by job: a job is there if the width by the rule is from 1 to the machine's 10; a last one
    is always there."""
    path = tmp_path_factory.mktemp("swf") / "log.swf"
    rows = [*counts, (1, 1)]
    text = "".join(
        f"{k} {k} -1 60 {a} -1 -1 {r} 90 -1 1 1 1 -1 -1 -1 -1 -1\n"
        for k, (a, r) in enumerate(rows, 1)
    )
    path.write_text("; MaxProcs: 10\n" + text)
    expected = {}
    for number, (allocated, requested) in enumerate(rows, 1):
        wanted, other = (
            (allocated, requested) if processors == "allocated" else (requested, allocated)
        )
        width = wanted if wanted > 0 else other
        if 1 <= width <= 10:
            expected[number] = width
    log = read_log(path, processors=processors)
    assert dict(zip(log.job.tolist(), log.nodes.tolist(), strict=True)) == expected
    assert log.repairs.dropped == len(rows) - len(expected)


def test_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs: 10\n1 0 -1 60 4 -1 -1 8 90 -1 1 1 1 -1 -1 -1 -1 -1\n")
    with pytest.raises(UserError, match=r"unknown kind of processors 'asked'"):
        read_log(path, processors="asked")  # type: ignore[arg-type]


def test_on_a_real_log_the_widths_differ_where_the_columns_do(logs: Path) -> None:
    """Counted with awk's means: columns 5 and 8 of jobs that ran, as plain text."""
    path = logs / "KTH-SP2-1996-2.1-cln.swf.gz"
    with gzip.open(path, "rt") as lines:
        cells = [line.split() for line in lines if not line.startswith(";") and line.strip()]
    ran = [row for row in cells if int(row[3]) > 0]
    differ = {int(row[0]) for row in ran if 0 < int(row[7]) != int(row[4]) > 0}
    given_to, asked_for = read_log(path), read_log(path, processors="requested")
    widths = dict(zip(given_to.job.tolist(), given_to.nodes.tolist(), strict=True))
    changed = {
        j
        for j, n in zip(asked_for.job.tolist(), asked_for.nodes.tolist(), strict=True)
        if widths[j] != n
    }
    assert len(differ) > 200  # else this would show nothing
    assert changed == differ
