"""The logs that are timed: the real ones where they are at hand, else stand-ins of the same size
and load."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from windrow.formats import read_log
from windrow.model import Log
from windrow.recipes import generate_log

KTH = "KTH-SP2"
SDSC = "SDSC-SP2"
BLUE = "SDSC-BLUE"

_FILES = {
    KTH: "KTH-SP2-1996-2.1-cln",
    SDSC: "SDSC-SP2-1998-4.2-cln",
    BLUE: "SDSC-BLUE-2000-4.2-cln",
}
_SIZES = {
    KTH: (28_467, 100, 0.70),
    SDSC: (54_034, 128, 0.82),
    BLUE: (232_536, 1_152, 0.77),
}  # jobs, nodes, load


@dataclass(frozen=True, slots=True)
class BenchLogs:
    """The logs in memory. Targets and agreed results hold for the real ones only."""

    logs: dict[str, Log]
    real: bool
    source: str

    def title(self, name: str) -> str:
        """How a log is called in tables: a stand-in never goes by the name of the recorded one."""
        return name if self.real else f"like {name}"


def load_logs() -> BenchLogs:
    """The real logs from `$WINDROW_DATA`, or from `../shared/data` beside the checkout; failing
    both, stand-ins."""
    root = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("WINDROW_DATA") or root.parent / "shared" / "data") / "swf"
    paths = {name: folder / f"{file}.swf.gz" for name, file in _FILES.items()}
    if all(path.is_file() for path in paths.values()):
        return BenchLogs(
            {name: read_log(path) for name, path in paths.items()}, True, "recorded logs, cleaned"
        )
    return BenchLogs(
        {name: _stand_in(*size) for name, size in _SIZES.items()},
        False,
        f"no recorded logs in {folder} (set WINDROW_DATA): generated Lublin logs of the same "
        "size and load stand in,"
        " and neither targets nor agreed results apply",
    )


def lublin(jobs: int, *, nodes: int = 128, load: float = 0.7, widest: int = 0) -> Log:
    """A generated log; `widest` 0 lets jobs be as wide as the machine."""
    return generate_log(
        "lublin", jobs=jobs, nodes=nodes, parameters={"load": str(load), "widest": str(widest)}
    )


def _stand_in(jobs: int, nodes: int, load: float) -> Log:
    return lublin(jobs, nodes=nodes, load=load)
