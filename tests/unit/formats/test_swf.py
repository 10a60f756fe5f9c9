from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import InputError, UserError
from windrow.formats.swf import rows as swf_rows
from windrow.formats.swf.reader import read_log, read_swf_header, write_log
from windrow.model import Log, Repairs

COLUMNS = ("job", "submit_s", "nodes", "requested_s", "run_s", "user")
HEADER = "; MaxNodes: 4\n; MaxProcs: 8\n"


def row(
    job: object = 1, submit: object = 0, run: object = 10, procs: object = 1, **other: object
) -> str:
    """One line of SWF: asked (requested processors), requested (time) and user may be given too."""
    cells: list[object] = [-1] * 18
    cells[0], cells[1], cells[3], cells[4] = job, submit, run, procs
    cells[7], cells[8], cells[11] = (
        other.get("asked", -1),
        other.get("requested", 100),
        other.get("user", 1),
    )
    return " ".join(str(cell) for cell in cells)


def parse(folder: Path, *rows: str, header: str = HEADER, nodes: int | None = None) -> Log:
    path = folder / "log.swf"
    path.write_text(header + "".join(r + "\n" for r in rows))
    return read_log(path, nodes=nodes)


def columns(log: Log) -> dict[str, list[int]]:
    return {name: getattr(log, name).tolist() for name in COLUMNS}


def test_jobs_that_cannot_have_run_are_dropped_and_counted(tmp_path: Path) -> None:
    log = parse(
        tmp_path,
        row(1, run=0),
        row(2, run=-1, procs=-1),
        row(3, procs=-1, asked=-1),
        row(4, procs=0, asked=0),
        row(5, procs=9),
        row(6, procs=8),
    )
    assert log.job.tolist() == [6]
    assert log.repairs == Repairs(
        dropped_no_run_time=2, dropped_no_processors=2, dropped_too_wide=1
    )


def test_cancelled_jobs_may_stay_for_a_second(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(
        "\n".join(["; MaxProcs: 8", row(1, run=0), row(2, run=-1, requested=-1), row(3), ""])
    )
    log = read_log(tmp_path / "log.swf", keep_cancelled=True)
    assert (log.job.tolist(), log.run_s.tolist()[0]) == ([1, 3], 1)
    assert log.repairs == Repairs(dropped_no_run_time=1)


def test_processors_are_the_allocated_else_the_requested(tmp_path: Path) -> None:
    log = parse(
        tmp_path, row(1, procs=2, asked=5), row(2, procs=-1, asked=5), row(3, procs=0, asked=6)
    )
    assert log.nodes.tolist() == [2, 5, 6]


def test_a_missing_request_is_the_run_and_a_long_run_is_kept_and_counted(tmp_path: Path) -> None:
    log = parse(
        tmp_path,
        row(1, run=7, requested=-1),
        row(2, run=7, requested=0),
        row(3, run=7, requested=5),
        row(4, run=5),
    )
    assert log.requested_s.tolist() == [7, 7, 5, 100]
    assert log.run_s.tolist() == [7, 7, 7, 5]
    assert log.repairs == Repairs(mended_no_request=2, mended_ran_longer=1)


def test_unsorted_jobs_are_sorted_by_submission_then_number_and_counted(tmp_path: Path) -> None:
    log = parse(tmp_path, row(9, 50), row(8, 40), row(7, 50), row(6, 45), row(5, 60))
    assert log.job.tolist() == [8, 6, 7, 9, 5]
    assert log.submit_s.tolist() == [0, 5, 10, 10, 20]
    assert log.repairs == Repairs(mended_unsorted=2)


def test_a_sorted_file_keeps_its_order_within_a_second(tmp_path: Path) -> None:
    log = parse(tmp_path, row(9, 50), row(7, 50), row(8, 50), row(1, 60))
    assert log.job.tolist() == [9, 7, 8, 1]
    assert log.repairs == Repairs()


def test_users_are_numbered_by_appearance_and_unknown_is_one_of_them(tmp_path: Path) -> None:
    log = parse(
        tmp_path, *(row(i, i, user=user) for i, user in enumerate([77, -1, 3, 77, -1, 500]))
    )
    assert log.user.tolist() == [0, 1, 2, 0, 1, 3]


def test_dropped_jobs_count_neither_for_the_start_nor_for_users(tmp_path: Path) -> None:
    log = parse(tmp_path, row(1, 5, run=0, user=9), row(2, 30, user=8), row(3, 31, user=9))
    assert log.submit_s.tolist() == [0, 1]
    assert log.user.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("header", "nodes", "machine"),
    [
        ("; MaxNodes: 4\n; MaxProcs: 8\n", None, 8),
        ("; MaxNodes: 338 (batch partition; 512 total)\n", None, 338),
        (";MaxProcs:6\n", None, 6),
        ("; MaxProcs: -1\n; MaxNodes: 5\n", None, 5),
        ("; MaxProcs: 8\n", 3, 3),
        ("", 3, 3),
    ],
)
def test_machine_size(tmp_path: Path, header: str, nodes: int | None, machine: int) -> None:
    assert parse(tmp_path, row(), header=header, nodes=nodes).machine_nodes == machine


def test_machine_size_must_be_known(tmp_path: Path) -> None:
    with pytest.raises(
        InputError,
        match=r"log\.swf: its header does not say how large the machine is.*; give --nodes",
    ):
        parse(tmp_path, row(), header="; Computer: unknown\n")
    with pytest.raises(UserError, match="has 1 to 10,000,000 nodes, not 0"):
        parse(tmp_path, row(), nodes=0)


def test_decimal_times_are_rounded_so_that_no_run_vanishes(tmp_path: Path) -> None:
    log = parse(
        tmp_path,
        row(1, "10.9", run="0.4", requested="2.5"),
        row("2.0", "12.1", run="3.0", procs="4.0", requested="1e2"),
        row(3, "12.9", run="-0.5"),
    )
    assert columns(log) == {
        "job": [1, 2],
        "submit_s": [0, 2],
        "nodes": [1, 4],
        "requested_s": [3, 100],
        "run_s": [1, 3],
        "user": [0, 0],
    }
    assert log.repairs == Repairs(dropped_no_run_time=1)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (row() + " 5", "19 columns where SWF has 18"),
        (row().rsplit(" ", 1)[0], "17 columns where SWF has 18"),
        (row(run="ten"), "column 4 is 'ten', not a number"),
        (row(run="nan"), "column 4 is 'nan', not a number"),
        (row(requested="inf"), "column 9 is 'inf', not a number"),
        (row(requested="1e999"), "column 9 is '1e999', not a number"),
        (row().replace(" -1", " nan", 1), "column 3 is 'nan', not a number"),
        (row(procs="1_0"), "column 5 is '1_0', not a number"),
        (row(procs="2.5"), "column 5 (allocated processors) is 2.5, not a whole number"),
        (
            row(run=2**60),
            "column 4 (run time) is 1152921504606846976; the maximum is 68,719,476,736",
        ),
        (row(submit=-5), "the submit time is negative"),
        (row(run="٣"), "column 4 is '٣', not a number"),
    ],
)
def test_a_faulty_line_is_refused_with_its_number(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(tmp_path, row(1), "", "; a comment between", line, row(3, 99))
    assert words in str(caught.value)
    assert caught.value.line == 6
    assert "delete the line" in caught.value.fix


def test_a_line_cut_off_at_the_end_is_called_that(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"log\.swf:4: 2 columns where SWF has 18; the file seems cut off"
    ):
        parse(tmp_path, row(1), "2 7", "")


def test_a_file_without_jobs_is_refused(tmp_path: Path) -> None:
    for header in (HEADER, "\n\n" + HEADER, HEADER.rstrip()):
        with pytest.raises(InputError, match=r"log\.swf: no jobs in it; an SWF file holds"):
            parse(tmp_path, header=header)
    with pytest.raises(
        InputError, match="none of its 2 jobs can be used: dropped: 1 job had no run time"
    ):
        parse(tmp_path, row(1, run=0), row(2, procs=99))


def test_comments_blank_lines_tabs_and_windows_line_ends_are_no_matter(tmp_path: Path) -> None:
    plain = parse(tmp_path, row(1, 3), row(2, 9))
    (tmp_path / "odd.swf").write_bytes(
        (HEADER + "\n" + row(1, 3).replace(" ", "\t") + "\n;x\n\n  " + row(2, 9) + " ; ended well")
        .replace("\n", "\r\n")
        .encode()
    )
    assert columns(read_log(tmp_path / "odd.swf")) == columns(plain)


ODD = [
    "+5",
    "007",
    "1.",
    ".5",
    "1e2",
    "4.0",
    "nan",
    "x",
    "--1",
    "1-1",
    "",
    "9" * 25,
    ";",
    "1,0",
    "-0",
    "1 2",
    "\x0c",
    "\r",
]


@st.composite
def nearly_swf(draw: st.DrawFn) -> list[list[str]]:
    """Rows of 18 small integers, of which up to two cells are odd."""
    rows = [
        [str(draw(st.integers(-1, 300))) for _ in range(18)] for _ in range(draw(st.integers(1, 3)))
    ]
    for _ in range(draw(st.integers(0, 2))):
        rows[draw(st.integers(0, len(rows) - 1))][draw(st.integers(0, 17))] = draw(
            st.sampled_from(ODD)
        )
    return rows


@given(nearly_swf())
def test_both_looks_read_alike_whatever_both_accept(rows: list[list[str]]) -> None:
    text = "\n".join(" ".join(cells) for cells in rows)
    quick = swf_rows._quick_look(text)
    try:
        careful = swf_rows._careful_look("x.swf", text)
    except InputError:
        assert quick is None
        return
    if quick is not None:
        assert [c.tolist() for c in quick] == [c.tolist() for c in careful]


@st.composite
def swf_jobs(draw: st.DrawFn) -> list[tuple[int, int, int, int, int, int]]:
    """Job, submit, run, allocated, asked, requested, with all the faults that logs have."""
    count = draw(st.integers(1, 12))
    few = st.integers(-1, 12)
    return [
        (i, draw(st.integers(0, 6)), draw(few), draw(few), draw(few), draw(few))
        for i in draw(st.permutations(range(count)))
    ]


@pytest.mark.slow
@given(jobs=swf_jobs(), machine=st.integers(1, 12))
def test_cleaning_against_the_rule_applied_job_by_job(
    tmp_path_factory: pytest.TempPathFactory,
    jobs: list[tuple[int, int, int, int, int, int]],
    machine: int,
) -> None:
    kept = []
    for job, submit, run, allocated, asked, requested in jobs:
        processors = allocated if allocated > 0 else asked
        if run > 0 and 0 < processors <= machine:
            limit = requested if requested > 0 else run
            kept.append((submit, job, processors, limit, run))
    rows = [row(j, s, r, a, asked=q, requested=t) for j, s, r, a, q, t in jobs]
    folder = tmp_path_factory.getbasetemp()
    if not kept:
        with pytest.raises(InputError, match="can be used"):
            parse(folder, *rows, nodes=machine)
        return
    if any(a[0] > b[0] for a, b in itertools.pairwise(kept)):
        kept.sort(key=lambda k: k[:2])
    log = parse(folder, *rows, nodes=machine)
    seen = list(
        zip(log.submit_s + kept[0][0], log.job, log.nodes, log.requested_s, log.run_s, strict=True)
    )
    assert seen == kept
    assert len(log) + log.repairs.dropped == len(jobs)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Logs as read_log gives them: from second 0, users by appearance."""
    n = draw(st.integers(1, 8))
    machine = draw(st.integers(1, 1000))
    lists = {
        name: draw(st.lists(st.integers(1, 10**9), min_size=n, max_size=n))
        for name in ("requested", "run", "job")
    }
    gaps = [0, *draw(st.lists(st.integers(0, 10**6), min_size=n - 1, max_size=n - 1))]
    user: list[int] = []
    for _ in range(n):
        user.append(draw(st.integers(0, max(user, default=-1) + 1)))
    return Log(
        name="made",
        machine_nodes=machine,
        job=np.array(lists["job"]),
        submit_s=np.cumsum(gaps),
        nodes=np.array(draw(st.lists(st.integers(1, machine), min_size=n, max_size=n))),
        requested_s=np.array(lists["requested"]),
        run_s=np.array(lists["run"]),
        user=np.array(user),
    )


@pytest.mark.slow
@given(log=logs(), packed=st.booleans())
def test_a_written_log_reads_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, log: Log, packed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / ("made.swf.gz" if packed else "made.swf")
    write_log(log, path)
    again = read_log(path)
    assert columns(again) == columns(log)
    longer = Repairs(mended_ran_longer=int((log.run_s > log.requested_s).sum()))
    assert (again.name, again.machine_nodes, again.repairs) == ("made", log.machine_nodes, longer)
    write_log(again, path.with_name("twice" + path.name))
    assert path.with_name("twice" + path.name).read_bytes() == path.read_bytes()


def test_the_written_file_is_swf(tmp_path: Path) -> None:
    log = parse(tmp_path, row(3, 5, run=20, procs=2, requested=60, user=4))
    write_log(
        log,
        tmp_path / "out.swf",
        header={"Computer": "Toy\nwith a second line", "MaxJobs": "7", "Note": ""},
    )
    lines = (tmp_path / "out.swf").read_text().splitlines()
    assert lines[0] == "; Version: 2.2"
    assert lines[-1] == "3 0 -1 20 2 -1 -1 2 60 -1 -1 1 -1 -1 -1 -1 -1 -1"
    assert all(line.startswith(";") for line in lines[:-1])
    header = read_swf_header(tmp_path / "out.swf")
    assert header["Computer"] == "Toy\nwith a second line"
    assert (header["MaxJobs"], header["MaxProcs"], header["Note"]) == ("7", "8", "")


def test_a_header_label_cannot_smuggle_in_a_job(tmp_path: Path) -> None:
    log = parse(tmp_path, row())
    with pytest.raises(UserError, match="cannot label a line"):
        write_log(log, tmp_path / "out.swf", header={"Note\n" + row(): "x"})
    assert not (tmp_path / "out.swf").exists()


def test_header_lines_are_gathered_by_label(tmp_path: Path) -> None:
    (tmp_path / "h.swf").write_text(
        ";   stray\n; Information: http://one/\n;              http://two/\n;\n; Queue: 1 a\n; "
        "Queue: 2 b\n"
        "; Note: mind: this\n" + row() + "\n; Later: no header\n"
    )
    assert read_swf_header(tmp_path / "h.swf") == {
        "Information": "http://one/\nhttp://two/",
        "Queue": "1 a\n2 b",
        "Note": "mind: this",
    }


def test_the_header_is_read_without_the_rest(tmp_path: Path) -> None:
    packed = gzip.compress((HEADER + (row() + "\n") * 100_000).encode())
    (tmp_path / "cut.swf.gz").write_bytes(packed[: len(packed) // 2])
    assert read_swf_header(tmp_path / "cut.swf.gz")["MaxProcs"] == "8"


PUBLISHED = {  # jobs, processors, load, clipped, same-second submits
    "KTH-SP2-1996-2.1-cln": (28_467, 100, 0.699, 475, 332),
    "SDSC-SP2-1998-4.2-cln": (54_034, 128, 0.825, 4_134, 100),
    "SDSC-BLUE-2000-4.2-cln": (232_536, 1_152, 0.767, 23_434, 1_188),
}


@pytest.mark.slow
@pytest.mark.parametrize("file", PUBLISHED)
def test_real_logs_against_the_published_counts(logs: Path, file: str) -> None:
    log = read_log(logs / f"{file}.swf.gz")
    same_second = int((np.diff(log.submit_s) == 0).sum())
    figures = (
        len(log),
        log.machine_nodes,
        round(log.load, 3),
        log.repairs.mended_ran_longer,
        same_second,
    )
    assert figures == PUBLISHED[file]
    assert log.repairs.mended_unsorted == 0
    assert log.submit_s[0] == 0


def test_ctc_has_no_requested_processors_and_loads_all_the_same(logs: Path) -> None:
    log = read_log(logs / "CTC-SP2-1996-3.1-cln.swf.gz")
    # Counted with awk in the file itself: 77,222 lines, 17 without a run time, none without
    # allocated processors.
    assert (len(log), log.repairs.dropped_no_run_time, log.repairs.dropped) == (77_205, 17, 17)
    assert (log.machine_nodes, log.name) == (338, "CTC-SP2-1996-3.1-cln")


def test_a_real_log_goes_out_and_in_unchanged(logs: Path, tmp_path: Path) -> None:
    source = logs / "SDSC-SP2-1998-4.2-cln.swf.gz"
    log = read_log(source)
    write_log(
        log, tmp_path / "again.swf", header={"Copyright": read_swf_header(source)["Copyright"]}
    )
    again = read_log(tmp_path / "again.swf")
    assert all(np.array_equal(getattr(log, name), getattr(again, name)) for name in COLUMNS)
    assert "Regents of the University" in read_swf_header(tmp_path / "again.swf")["Copyright"]


def test_a_machine_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"its header says MaxNodes: 1000000000000, .* has at most 10,000,000"
    ):
        parse(tmp_path, row(), header="; MaxNodes: 1000000000000\n")


@pytest.mark.parametrize("text", ['{"name": "w"}', "\0" * 50, "some words\n"])
def test_what_is_no_log_is_not_asked_for_its_machine(tmp_path: Path, text: str) -> None:
    (tmp_path / "log.swf").write_text(text)
    with pytest.raises(InputError, match=r"log\.swf:1: [0-9] columns where SWF has 18"):
        read_log(tmp_path / "log.swf")
