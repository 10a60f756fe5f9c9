"""Which nodes failed when, and for how long: a line for each failure, with commas or tabs between its columns.

Columns are known by the names in the first line, which may begin with #; without names they are time, node and repair.

own         `time`, `node`, `repair`: durations (90, 4h, 3d), the first one from the log's first submission on
FTA         `event_start_time`, `node_id`, `event_end_time` (or `_stop_`), in seconds; of `event_type` 0: not available
Los Alamos  `Prob Started`, `nodenumz` (or `nodenum`), `Prob Fixed`, like 6/21/2005 10:54; lines of one `System`

The times of the last two count from the first failure. Nodes are whole numbers from 0; where one is not, all are
numbered in the order in which they are first named. What ends when it begins counts for a second.
"""

from collections.abc import Iterator
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
    names = [name.lower() for name in _cells(lines[0].lstrip("#"))]
    is_named = any(name in _KNOWN[0] for name in names)
    names = names if is_named else [*_OWN]
    at = [next((names.index(name) for name in known if name in names), -1) for known in _KNOWN]
    if -1 in at:
        raise InputError(path, f"no column is called {_OWN[at.index(-1)]}", line=1, fix=_FIX)
    found = list(_failures(path, list(enumerate(lines, 1))[is_named:], names, at))
    if not found:
        raise InputError(path, "it has no failure", fix=_FIX)
    first = 0 if names[at[0]] == "time" else min(since for since, _, _ in found)
    called = dict.fromkeys(node for _, node, _ in found)
    are_numbers = all(node.isdecimal() and len(node) < _DIGITS for node in called)
    number = {node: int(node) if are_numbers else place for place, node in enumerate(called)}
    return tuple(sorted((since - first, number[node], max(since + 1, end) - first) for since, node, end in found))


def _failures(
    path: AnyPath, lines: list[tuple[int, str]], names: list[str], at: list[int]
) -> Iterator[tuple[int, str, int]]:
    """When each failure began, of which node, and when it ended."""
    kind, system = (names.index(name) if name in names else -1 for name in ("event_type", "system"))
    systems: set[str] = set()
    for line, text in lines:
        if not text.strip() or text.startswith("#"):
            continue
        cells = _cells(text)
        if len(cells) <= max(*at, kind, system):
            raise InputError(path, f"{len(cells)} of {len(names)} columns", line=line, fix=_FIX)
        if kind >= 0 and cells[kind] != "0":
            continue
        systems |= {cells[system]} if system >= 0 else set()
        if len(systems) > 1:
            raise InputError(path, "another system than before", line=line, fix="keep the lines of one system")
        try:
            since, end = _seconds(cells[at[0]]), _seconds(cells[at[2]])
        except (UserError, ValueError) as error:
            raise InputError(path, str(error), line=line, fix=_FIX) from None
        yield since, cells[at[1]], end + (since if names[at[2]] == "repair" else 0)


def _cells(text: str) -> list[str]:
    return [cell.strip(' "') for cell in text.split("\t" if "\t" in text else ",")]


def _seconds(text: str) -> int:
    """A duration or an epoch time, or a date and time of the day."""
    if "/" in text:
        return int(datetime.strptime(text, "%m/%d/%Y %H:%M").replace(tzinfo=UTC).timestamp())
    return int(text) if text.isdecimal() and len(text) < _DIGITS else int(parse_duration(text))
