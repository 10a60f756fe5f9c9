"""Figures of traces, against bytes counted one by one and caches replayed one by one."""

from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import some

from windrow.kernels.jit import in_python
from windrow.model.trace import READ, WRITE, Files, Records, Stage, Trace
from windrow.profile.measures import BLOCK_BYTES, Measures, merged
from windrow.profile.roles import infer
from windrow.profile.summary import summary

# Stage, file, whether it is a write, offset, bytes.
CALLS = st.lists(
    st.tuples(
        st.integers(0, 2), st.integers(0, 3), st.booleans(), st.integers(0, 40), st.integers(0, 12)
    ),
    max_size=40,
)
Call = tuple[int, int, bool, int, int]


def trace_of(calls: list[Call], scale: int = 1) -> Trace:
    """Three stages of one pipeline, on four files."""
    records, files = Records(), Files()
    for name in "abcd":
        files.number(f"/w/{name}", made=True)
    for stage in range(3):
        records.begin()
        for number, file, is_write, offset, size in calls:
            if number == stage:
                at = len(records.op)
                records.add(
                    float(at), 1, WRITE if is_write else READ, file, offset * scale, size * scale
                )
    return Trace.of(records, [Stage(name) for name in ("one", "two", "three")], files)


@given(CALLS)
def test_amounts_are_those_of_single_bytes(calls: list[Call]) -> None:
    measures = Measures(trace_of(calls))
    for stages in ({0}, {1, 2}, {0, 1, 2}):
        for ways in ({False}, {True}, {False, True}):
            chosen = np.isin(measures.stage, sorted(stages)) & np.isin(
                measures.is_write, sorted(ways)
            )
            wanted = [call for call in calls if call[0] in stages and call[2] in ways]
            amount = measures.amount(chosen)
            assert amount.files == len({file for _, file, *_ in wanted})
            assert amount.traffic == sum(size for *_, size in wanted)
            assert amount.unique == len(
                {(f, b) for _, f, _, at, size in wanted for b in range(at, at + size)}
            )
            longest = {
                (stage, file): max(
                    (at + size for s, f, _, at, size in calls if (s, f) == (stage, file) and size),
                    default=0,
                )
                for stage, file, *_ in wanted
            }
            touched = {file for _, file, *_ in wanted}
            assert amount.static == sum(
                max(size for (_, f), size in longest.items() if f == file) for file in touched
            )


@given(CALLS)
def test_files_are_told_as_if_each_were_alone(calls: list[Call]) -> None:
    measures = Measures(trace_of(calls))
    columns = measures.files()
    for number in range(4):
        uses = measures.file == number
        read, written, all_of_it = (
            measures.amount(uses & way) for way in (~measures.is_write, measures.is_write, uses)
        )
        assert [
            columns[f"{way}_bytes"][number] for way in ("read", "written", "unique", "static")
        ] == [
            read.traffic,
            written.traffic,
            all_of_it.unique,
            all_of_it.static,
        ]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(1, 9)), max_size=30))
def test_merged_ranges_are_unions_with_gaps(ranges: list[tuple[int, int, int]]) -> None:
    columns = np.array(ranges, dtype=np.int64).reshape(-1, 3)
    group, start, end = merged(columns[:, 0], columns[:, 1], columns[:, 1] + columns[:, 2])
    found = [(g, b) for g, s, e in zip(group, start, end, strict=True) for b in range(s, e)]
    assert len(found) == len(set(found))
    assert set(found) == {(g, b) for g, s, n in ranges for b in range(s, s + n)}
    assert all(
        g1 < g2 or e1 < s2 for g1, e1, g2, s2 in zip(group, end, group[1:], start[1:], strict=False)
    )


@pytest.mark.parametrize("compiled", some(False, True))
@given(CALLS)
def test_one_pass_tells_what_replays_of_every_size_tell(compiled: bool, calls: list[Call]) -> None:
    measures = Measures(trace_of(calls, BLOCK_BYTES // 3))
    with in_python(really=not compiled):
        sizes, rates = measures.cache_curve(measures.everything)
    blocks = [
        (file, block)
        for stage in range(3)
        for number, file, _, offset, size in calls
        if number == stage and size
        for at, length in [(offset * (BLOCK_BYTES // 3), size * (BLOCK_BYTES // 3))]
        for block in range(at // BLOCK_BYTES, (at + length - 1) // BLOCK_BYTES + 1)
    ]
    assert len(sizes) <= max(1, len(set(blocks)))
    for size, rate in zip(sizes.tolist(), rates.tolist(), strict=True):
        assert rate == pytest.approx(replayed(blocks, size // BLOCK_BYTES) / len(blocks))
    if blocks:
        assert rates[-1] == pytest.approx(1 - len(set(blocks)) / len(blocks))


def replayed(blocks: list[tuple[int, int]], size: int) -> int:
    """Hits in an LRU cache of this size."""
    cache: OrderedDict[tuple[int, int], None] = OrderedDict()
    hits = 0
    for block in blocks:
        hits += block in cache
        cache[block] = None
        cache.move_to_end(block)
        if len(cache) > size:
            cache.popitem(last=False)
    return hits


def test_kinds_sizes_and_timeline() -> None:
    measures = Measures(trace_of([(0, 0, False, 0, 4), (0, 0, False, 0, 4), (1, 1, True, 0, 9)]))
    assert {kind: count for kind, count in measures.kinds(range(3)).items() if count} == {
        "read": 2,
        "write": 1,
    }
    assert measures.kinds([1])["write"] == 1
    assert [column.tolist() for column in measures.sizes(measures.everything)] == [[4, 9], [2, 3]]
    assert measures.timeline(
        measures.everything, measures.trace.time_s, np.array([0.0, 0.5, 2.5])
    ).tolist() == [4, 13]


def test_what_is_moved_in_a_moment_is_no_rate() -> None:
    """24 MB in hundredths of a second are 24 MB in the first second; the system's own files feed no
    verdict."""
    calls = [(0, n % 3, False, 1_000_000 * n, 1_000_000) for n in range(24)]
    trace = trace_of(calls)
    trace = replace(trace, time_s=trace.time_s / trace.time_s.max() * 0.03)
    trace.files.paths[:3] = ["/usr/lib/libc.so.6", "/etc/passwd", "/work/in"]
    measures = Measures(trace)
    told = summary(measures, infer(measures, "/work"))
    assert max(max(rates) for rates in told["timeline"]["mb_s"].values()) <= 24
    assert sum(sum(rates) for rates in told["timeline"]["mb_s"].values()) == pytest.approx(24)
    assert any("too short to say" in words for words in told["verdicts"])
    assert not any("data-intensive" in words for words in told["verdicts"])
    fed = {
        row["discipline"]: row["nodes"]["local network"]
        for row in told["scalability"]
        if row["time"] == "real"
    }
    assert (fed["without batch"] or 0) == (fed["all"] or 0)
