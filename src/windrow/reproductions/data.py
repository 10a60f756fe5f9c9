"""Where the logs and workflows of papers are looked for: logs in the data folder and in `swf/` there."""

from __future__ import annotations

from pathlib import Path

from windrow.lab.campaign.sources import LogSource

LOGS = {
    "KTH": "KTH-SP2-1996-2.1-cln.swf.gz",
    "SDSC": "SDSC-SP2-1998-4.2-cln.swf.gz",
    "CTC": "CTC-SP2-1996-3.1-cln.swf.gz",
    "SDSC-BLUE": "SDSC-BLUE-2000-4.2-cln.swf.gz",
}
"""Public logs, by the names that papers use."""


def find_log(name: str, data: str | Path | None) -> LogSource | None:
    """The public log of that name; None where its file is not there."""
    places = [] if data is None else [Path(data, "swf", LOGS[name]), Path(data, LOGS[name])]
    return next((LogSource(name, path=str(place)) for place in places if place.is_file()), None)


def missing_log(name: str, fate: str) -> str:
    """A sentence about a log that was not found; `fate` says what becomes of it."""
    return f"The log {name} was not found ({LOGS[name]}): {fate}."
