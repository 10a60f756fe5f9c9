"""A log as the GLUME thesis's own simulator replayed it: what WRENCH made of the lines of an SWF
file in early 2020.

1. A job whose run time is unknown (below 0; SWF has that for jobs that their users took back before
   they ran) runs for as long as it asked. This is what weighs: 5,640 jobs of SDSC-SP2 never ran,
   and the 53 of them that were submitted in the first eight days add half of the work that was done
   in those days.
2. A job that ran longer than it asked gets a request as long as its run, and runs to its end.
3. A request is the next whole minute and six seconds; with accurate requests, that of the run.
4. A job ends one second before its recorded run is over.

Rules 1 and 2 are defects of a replay, not a better reading of a log: everywhere else Windrow reads
logs by the rules in `windrow.formats.swf.reader`.
"""

from dataclasses import dataclass, replace

import numpy as np

from windrow.errors import UserError
from windrow.formats import read_log
from windrow.formats.disk import read_text
from windrow.formats.swf.rows import parse_rows
from windrow.model import Log
from windrow_lab.campaign.sources import LogSource

_ROUND_S = 60
_EXTRA_S = 6
_EARLY_S = 1


@dataclass(frozen=True, slots=True)
class ThesisLog(LogSource):
    """An SWF file under a name of its own, replayed by the rules at the head of this file."""

    def __post_init__(self) -> None:
        if not self.path or self.model:
            raise UserError(f"log {self.name}: only a file can be replayed as in the thesis")

    @property
    def content(self) -> str:
        """What the log will hold, in a few words that change whenever it does."""
        plain = LogSource(self.name, path=self.path, nodes=self.nodes)
        return f"replayed as in the thesis, {_ROUND_S} {_EXTRA_S} {_EARLY_S}: {plain.content}"

    def load(self, requests: str) -> Log:
        """The log itself, with actual or accurate requests. InputError if the file cannot be
        used."""
        log = read_log(self.path, nodes=self.nodes, keep_cancelled=True)
        rows = parse_rows(self.path, read_text(self.path))
        never_ran = np.isin(log.job, rows.job[rows.run_s < 0])
        run = np.where(never_ran, log.requested_s, log.run_s)
        if requests == "accurate":
            asked = run
        else:
            asked = np.maximum(log.requested_s, run)
        replayed = replace(log, requested_s=asked, run_s=np.maximum(1, run - _EARLY_S))
        return replayed.padded(round_s=_ROUND_S, extra_s=_EXTRA_S)
