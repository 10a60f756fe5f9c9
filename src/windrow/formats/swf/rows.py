"""The rows of an SWF text as columns of whole numbers, before any cleaning.

Two looks. The quick one hands the text to numpy's C parser, strictly typed: 18 columns, integers
everywhere but in column 6 (average CPU time, where logs hold decimals). If it refuses, the
careful one goes line by line in Python: it either finds the faulty line and says so, or it accepts
what the quick one was too strict for (decimals, exponents). Law: whatever both accept, both read
alike.

Cost: quick, about 0.9 microseconds a job; careful, about 7.
"""

import io
import math
import re
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.errors import InputError
from windrow.formats.disk import AnyPath
from windrow.model.bounds import LOG_TIME_S_MAX

Ints = NDArray[np.int64]

COLUMNS = 18
LARGEST = 2**53
"""Counts beyond this are refused: they are no longer exact in a float, and no log has them."""

_CPU_TIME = 6
_TABLE = np.dtype(
    [(str(c), np.float64 if c == _CPU_TIME else np.int64) for c in range(1, COLUMNS + 1)]
)
_PLAIN = re.compile(r"[-+.0-9eE]*")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_COMMENT_LINES = re.compile(r"(?:[ \t\r]*(?:;[^\n]*)?\n)*")
_ROUNDED_UP = {4: "run time", 9: "requested time"}
_ROUNDED_DOWN = {2: "submit time"}
_WHOLE = {1: "job number", 5: "allocated processors", 8: "requested processors", 12: "user"}
_FIX = "a job is one line of 18 numbers, -1 where unknown; fix or delete the line"


class Rows(NamedTuple):
    """The columns that matter, one entry per job, in file order. Values of zero or less mean
    unknown."""

    job: Ints
    submit_s: Ints
    run_s: Ints
    allocated: Ints
    asked: Ints
    requested_s: Ints
    user: Ints


_USED = dict(zip(Rows._fields, (1, 2, 4, 5, 8, 9, 12), strict=True))


def parse_rows(path: AnyPath, text: str) -> Rows:
    """All jobs in `text`; `path` is for messages. InputError at the line that is wrong, or if
    there is no job."""
    body = text[header_end(text) :]
    if body.isascii():
        quick = _quick_look(body)
    else:
        quick = None
    if quick is None:
        return _careful_look(path, text)
    return quick


def header_end(text: str) -> int:
    """Where the comments at the top of the file end: the place of the first other line."""
    match = _COMMENT_LINES.match(text)
    if match:
        return match.end()
    return 0


def line_of_row(text: str, row: int) -> int:
    """The line on which job number `row` (from 0) stands. Linear: for messages only."""
    seen = -1
    for number, line in enumerate(text.split("\n"), start=1):
        seen += bool(line.partition(";")[0].split())
        if seen == row:
            return number
    raise IndexError(row)


def _quick_look(body: str) -> Rows | None:
    """None if anything at all is unusual."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # no data, or (older numpy) decimals read as integers
            table = np.loadtxt(io.StringIO(body), dtype=_TABLE, comments=";", ndmin=1)
    except (ValueError, Warning):
        return None
    rows = Rows(*(np.ascontiguousarray(table[str(column)]) for column in _USED.values()))
    usual = all(len(c) and c.min() >= -LOG_TIME_S_MAX and c.max() <= LOG_TIME_S_MAX for c in rows)
    if usual and np.isfinite(table[str(_CPU_TIME)]).all():
        return rows
    return None


def _careful_look(path: AnyPath, text: str) -> Rows:
    found: list[list[int]] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        cells = line.partition(";")[0].split()
        if not cells:
            continue
        if len(cells) != COLUMNS:
            last = not any(rest.strip() for rest in lines[number:])
            if last and found:
                fix = "the file seems cut off here: copy or download it again"
            else:
                fix = _FIX
            raise InputError(
                path, f"{len(cells)} columns where SWF has {COLUMNS}", line=number, fix=fix
            )
        try:
            values = _numbers(cells)
            found.append(
                [_whole(column, values[column - 1], cells[column - 1]) for column in _USED.values()]
            )
        except ValueError as error:
            raise InputError(path, str(error), line=number, fix=_FIX) from None
    if not found:
        raise InputError(
            path, "no jobs in it", fix="an SWF file holds one line of 18 numbers for each job"
        )
    return Rows(*np.array(found, dtype=np.int64).T.copy())


def _numbers(cells: list[str]) -> list[float]:
    """What the cells say. ValueError names the first that is not a plain finite number (so no nan,
    1_000 or 0x10)."""
    if _PLAIN.fullmatch("".join(cells)):
        try:
            values = [float(cell) for cell in cells]
        except ValueError:
            values = [math.nan]
        if math.isfinite(sum(values)):
            return values
    for column, cell in enumerate(cells, start=1):
        if not _NUMBER.fullmatch(cell) or not math.isfinite(float(cell)):
            raise ValueError(f"column {column} is {cell!r}, not a number")
    return [float(cell) for cell in cells]


def _whole(column: int, value: float, cell: str) -> int:
    """The value as a whole number. Submit times are rounded down, durations up, so that 0.4 s of
    run is not nothing."""
    if column in _WHOLE:
        most = LARGEST
    else:
        most = LOG_TIME_S_MAX
    if value.is_integer() and abs(value) <= most:
        return int(value)
    name = _ROUNDED_UP.get(column) or _ROUNDED_DOWN.get(column) or _WHOLE[column]
    if abs(value) > most:
        raise ValueError(f"column {column} ({name}) is {cell[:40]}; the maximum is {most:,}")
    if column in _WHOLE:
        raise ValueError(f"column {column} ({name}) is {cell}, not a whole number")
    if column in _ROUNDED_UP and value > 0:
        return math.ceil(value)
    return math.floor(value)
