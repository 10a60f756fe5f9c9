"""The Standard Workload Format, version 2.2: logs of batch jobs as lines of 18 numbers under a
header of `;` lines.

What a log must look like to be simulated is settled here, once, by the rules below; each is counted
in `Repairs`.

1. A job that ran for zero seconds or less is dropped; then one without processors (allocated, else
   requested, or with `processors="requested"` the other way round); then one wider than the
   machine. With `keep_cancelled`, a job that never ran but asked for time and processors stays
   instead, with a run of one second: until its user took it back it stood in the queue, and in the
   plans of the batch system.
2. A job without a requested time (zero or less) is taken to have asked for its run time.
3. A job that ran longer than it asked keeps its run time, and is killed at its request when the log
   is simulated.
4. Jobs out of order are sorted by submission, then job number. A file in order is left as it is, so
   that jobs submitted in the same second keep their places.
5. The first submission becomes second 0; users become 0, 1, 2 in order of appearance (-1, unknown,
   is one of them).

Times with decimals are allowed by the format: submissions are rounded down, run and requested times
up.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from windrow.errors import InputError, UserError, unknown_name
from windrow.formats.disk import AnyPath, bare_name, open_bytes, read_text, replace_bytes
from windrow.formats.swf.rows import Rows, header_end, line_of_row, parse_rows
from windrow.model import Log, Repairs
from windrow.model.bounds import NODES_MAX

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Processors = Literal["allocated", "requested"]
"""How wide a job is: what it was given, or what it asked for; the other one if that is
unknown."""

_LABEL = "[A-Za-z][A-Za-z0-9]*"
_HEADER_LINE = re.compile(
    rf";\s{{0,4}}({_LABEL}):(?!//)(.*)"
)  # a deeper indent continues the line before
_ROWS_PER_WRITE = 4096
# Wait, status and the other columns a Log does not know are -1. Users count from 1, as the format
# wants.
_JOB = "%d %d -1 %d %d -1 -1 %d %d -1 -1 %d -1 -1 -1 -1 -1 -1\n"


def read_log(
    path: AnyPath,
    *,
    nodes: int | None = None,
    keep_cancelled: bool = False,
    processors: Processors = "allocated",
) -> Log:
    """The log in an SWF file, cleaned by the rules above. `nodes` overrides the machine's size.

    A node of the log is a processor of the file: the machine has MaxProcs of them, or MaxNodes
    if the header has no MaxProcs. InputError with the line where the file is malformed. Cost,
    unpacking included: about 25 ms for 28,000 jobs and 0.3 s for 243,000; memory about 800 bytes a
    job for a moment, 48 in the end.
    """
    text = read_text(path)
    rows = parse_rows(path, text)
    machine = _machine_size(path, parse_header(text[: header_end(text)].splitlines()), nodes)
    rows = _of_one_width(rows, processors)
    if keep_cancelled:
        never_ran = (rows.run_s <= 0) & (rows.requested_s > 0)
        rows = rows._replace(run_s=np.where(never_ran, 1, rows.run_s))
    kept, repairs = _usable(rows, machine)
    if not kept.any():
        raise InputError(
            path, f"none of its {len(kept):,} jobs can be used: {'; '.join(repairs.lines())}"
        )
    negative = kept & (rows.submit_s < 0)
    if negative.any():
        line = line_of_row(text, int(np.argmax(negative)))
        raise InputError(
            path, "the submit time is negative", line=line, fix="fix or delete the line"
        )
    return _cleaned(bare_name(path), machine, Rows(*(column[kept] for column in rows)), repairs)


def _of_one_width(rows: Rows, processors: Processors) -> Rows:
    """With the width that counts as `allocated`."""
    if processors not in get_args(Processors):
        raise unknown_name("kind of processors", processors, get_args(Processors))
    if processors == "allocated":
        width = np.where(rows.allocated > 0, rows.allocated, rows.asked)
    else:
        width = np.where(rows.asked > 0, rows.asked, rows.allocated)
    return rows._replace(allocated=width)


def read_swf_header(path: AnyPath) -> dict[str, str]:
    """What the `;` lines at the top say, by their labels; lines of one label, and lines without,
    joined by newlines.

    Reads no further than the header.
    """
    with open_bytes(path) as stream:
        lines: list[str] = []
        for raw in stream:
            line = raw.decode("utf-8", errors="replace").strip()
            if line and not line.startswith(";"):
                break
            lines.append(line)
    return parse_header(lines)


def parse_header(lines: Iterable[str]) -> dict[str, str]:
    """The same from lines already read."""
    header: dict[str, list[str]] = {}
    label = ""
    for line in lines:
        match = _HEADER_LINE.match(line.strip())
        if match:
            label = match[1]
            header.setdefault(label, []).append(match[2].strip())
        elif label and (text := line.lstrip("; \t").rstrip()):
            header[label].append(text)
    return {label: "\n".join(texts).strip() for label, texts in header.items()}


def write_log(log: Log, path: AnyPath, *, header: Mapping[str, str] | None = None) -> None:
    """Write the log as SWF 2.2, gzip if the name ends in `.gz`; `header` adds or overrides
    header lines.

    Reading it back gives the same columns, except that read_log moves the first submission to 0 and
    numbers users by appearance; a log that came from read_log does not change at all. A header's
    MaxProcs is what read_log takes for the machine's size.
    """
    lines = _header_lines(log, header or {})
    columns = (
        log.job,
        log.submit_s,
        log.run_s,
        log.nodes,
        log.nodes,
        log.requested_s,
        log.user + 1,
    )
    with replace_bytes(path) as stream:
        stream.write("\n".join([*lines, ";", ""]).encode())
        for first in range(0, len(log), _ROWS_PER_WRITE):
            some = (column[first : first + _ROWS_PER_WRITE].tolist() for column in columns)
            text = "".join(_JOB % row for row in zip(*some, strict=True))
            stream.write(text.encode("ascii"))


def _header_lines(log: Log, more: Mapping[str, str]) -> list[str]:
    """One line for each line of each value, so that nothing can spill into the jobs."""
    jobs = str(len(log))
    nodes = str(log.machine_nodes)
    labels = {"Version": "2.2", "MaxJobs": jobs, "MaxRecords": jobs, "Preemption": "No"}
    labels |= {"MaxNodes": nodes, "MaxProcs": nodes, **more}
    for label in labels:
        if not re.fullmatch(_LABEL, label):
            raise UserError(
                f"{label!r} cannot label a line of an SWF header; use letters and digits only"
            )
    return [
        f"; {label}: {text}".rstrip()
        for label, value in labels.items()
        for text in value.splitlines() or [""]
    ]


def _machine_size(path: AnyPath, header: Mapping[str, str], nodes: int | None) -> int:
    if nodes is not None:
        if not 1 <= nodes <= NODES_MAX:
            raise UserError(
                f"a machine has 1 to {NODES_MAX:,} nodes, not {nodes:,}; give --nodes another "
                "number"
            )
        return nodes
    for label in ("MaxProcs", "MaxNodes"):
        match = re.match(r"[0-9]{1,30}", header.get(label, ""))
        if match and int(match[0]) > NODES_MAX:
            problem = (
                f"its header says {label}: {match[0]}, and a machine has at most {NODES_MAX:,}"
            )
            raise InputError(path, problem, fix="correct the header, or give --nodes")
        if match and int(match[0]) > 0:
            return int(match[0])
    raise InputError(
        path,
        "its header does not say how large the machine is (MaxProcs, MaxNodes)",
        fix="give --nodes",
    )


def _usable(rows: Rows, machine: int) -> tuple[Mask, Repairs]:
    """Which rows stay, and how many went by which rule; each job is counted by the first rule that
    applies."""
    no_run = rows.run_s <= 0
    no_processors = ~no_run & (rows.allocated <= 0)
    too_wide = ~no_run & (rows.allocated > machine)
    dropped = Repairs(*(int(rule.sum()) for rule in (no_run, no_processors, too_wide)))
    return ~(no_run | no_processors | too_wide), dropped


def _cleaned(name: str, machine: int, rows: Rows, dropped: Repairs) -> Log:
    late = rows.submit_s < np.maximum.accumulate(rows.submit_s)
    if late.any():
        rows = _sorted(rows)
    unasked = rows.requested_s <= 0
    requested = np.where(unasked, rows.run_s, rows.requested_s)
    repairs = replace(
        dropped,
        mended_no_request=int(unasked.sum()),
        mended_ran_longer=int((rows.run_s > requested).sum()),
        mended_unsorted=int(late.sum()),
    )
    user, user_ids = _renumbered(rows.user)
    return Log(
        name=name,
        machine_nodes=machine,
        job=rows.job,
        submit_s=rows.submit_s - rows.submit_s[0],
        nodes=rows.allocated,
        requested_s=requested,
        run_s=rows.run_s,
        user=user,
        repairs=repairs,
        user_ids=user_ids,
    )


def _renumbered(values: Ints) -> tuple[Ints, tuple[int, ...]]:
    """Equal values become equal numbers 0, 1, 2 ... in order of first appearance; the values."""
    known, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(first), dtype=np.int64)
    rank[order] = np.arange(len(first))
    return rank[inverse], tuple(known[order].tolist())


def _sorted(rows: Rows) -> Rows:
    """By submission; jobs of one second by their numbers."""
    order = np.lexsort((rows.job, rows.submit_s))
    return Rows(*(column[order] for column in rows))
