"""Which nodes failed when, and for how long: a line for each failure, with commas or tabs between
its columns.

Columns are known by the names in the first line, which may begin with #; without names they are
time, node and repair.

own         `time`, `node`, `repair`: durations (90, 4h, 3d), the first one from the log's first submission on
FTA         `event_start_time`, `node_id`, `event_end_time` (or `_stop_`), in seconds; of `event_type` 0: not available
Los Alamos  `Prob Started`, `nodenumz` (or `nodenum`), `Prob Fixed`, like 6/21/2005 10:54; lines of one `System`

The times of the last two count from the first failure. Nodes are whole numbers from 0; if one is
not, all are numbered in the order in which they are first named. What ends when it begins counts
for a second.
"""  # noqa: E501

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path

from windrow.errors import InputError, UserError
from windrow.formats.disk import AnyPath, read_text
from windrow.model import parse_duration
from windrow.model.failures import Failures, Rows

_OWN = ("time", "node", "repair")
_KNOWN = (
    ("time", "event_start_time", "prob started"),
    ("node", "node_id", "nodenumz", "nodenum"),
    ("repair", "event_end_time", "event_stop_time", "prob fixed"),
)
_DIGITS = 12  # of a number that is not too long
_FIX = "write time, node and repair, like 3d,17,4h"


def read_failures(text: str, folder: AnyPath = "") -> Failures:
    """What `--failures` means by this text; a failure log is looked for from the folder on."""
    return Failures.parse(text, lambda name: read_failure_log(Path(folder, name)))


def read_failure_log(path: AnyPath) -> Rows:
    """The failures of a file, by time. InputError with the line where it cannot be used."""
    lines = read_text(path).splitlines() or [""]
    numbered = list(enumerate(lines, 1))
    names = [name.lower() for name in _cells(lines[0].lstrip("#"))]
    if any(name in _KNOWN[0] for name in names):
        numbered = numbered[1:]
    else:
        names = [*_OWN]
    at = [next((names.index(name) for name in known if name in names), -1) for known in _KNOWN]
    if -1 in at:
        raise InputError(path, f"no column is called {_OWN[at.index(-1)]}", line=1, fix=_FIX)
    found = list(_failures(path, numbered, names, at))
    if not found:
        raise InputError(path, "it has no failure", fix=_FIX)
    first = 0
    if names[at[0]] != "time":
        first = min(since for since, _, _ in found)
    number = _node_numbers(dict.fromkeys(node for _, node, _ in found))
    rows = (
        (since - first, number[node], max(since + 1, end) - first) for since, node, end in found
    )
    return tuple(sorted(rows))


def _node_numbers(names: Collection[str]) -> dict[str, int]:
    """Their own, if all are whole numbers; else in this order."""
    if all(node.isdecimal() and len(node) < _DIGITS for node in names):
        return {node: int(node) for node in names}
    return {node: place for place, node in enumerate(names)}


def _failures(
    path: AnyPath, lines: list[tuple[int, str]], names: list[str], at: list[int]
) -> Iterator[tuple[int, str, int]]:
    """When each failure began, of which node, and when it ended."""
    begins, node, ends = at
    kind = _place(names, "event_type")
    system = _place(names, "system")
    systems: set[str] = set()
    for line, text in lines:
        if not text.strip() or text.startswith("#"):
            continue
        cells = _cells(text)
        if len(cells) <= max(*at, kind, system):
            raise InputError(path, f"{len(cells)} of {len(names)} columns", line=line, fix=_FIX)
        if kind >= 0 and cells[kind] != "0":
            continue
        if system >= 0:
            systems.add(cells[system])
        if len(systems) > 1:
            raise InputError(
                path, "another system than before", line=line, fix="keep the lines of one system"
            )
        try:
            since = _seconds(cells[begins])
            end = _seconds(cells[ends])
        except (UserError, ValueError) as error:
            raise InputError(path, str(error), line=line, fix=_FIX) from None
        if names[ends] == "repair":
            end += since
        yield since, cells[node], end


def _place(names: list[str], name: str) -> int:
    """Which column that is; -1: none."""
    if name in names:
        return names.index(name)
    return -1


def _cells(text: str) -> list[str]:
    return [cell.strip(' "') for cell in text.split("\t" if "\t" in text else ",")]


def _seconds(text: str) -> int:
    """A duration or an epoch time, or a date and time of the day."""
    if "/" in text:
        return int(datetime.strptime(text, "%m/%d/%Y %H:%M").replace(tzinfo=UTC).timestamp())
    if text.isdecimal() and len(text) < _DIGITS:
        return int(text)
    return int(parse_duration(text))
