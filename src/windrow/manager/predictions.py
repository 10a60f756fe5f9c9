"""What forecasters say of a run's jobs, and whom to believe: the one that was right most often.

Rule: a forecast more or less does not justify holding a job back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from windrow.errors import OutsideError
from windrow.forecast import ledger
from windrow.forecast.base import AtOnce, CountingForecaster, Forecaster, Ints, Prediction, predict
from windrow.story.journal import PredictedStart
from windrow.strategies import JobPlan


@dataclass
class Predictions:
    """The forecasters of one run, the most trusted first, with what each has said; none if no
    job ever waits."""

    forecasters: Sequence[Forecaster]
    tag: Callable[[int], str]
    """The name of a job in the queue, by its number."""
    earlier: Sequence[ledger.PastPrediction] = ()
    """What was predicted in earlier runs, and what came true."""
    said: list[PredictedStart] = field(default_factory=list)
    starts_s: dict[int, float] = field(default_factory=dict)
    """When jobs of this run started."""

    def best(self, jobs: int) -> Forecaster:
        """Who was right most often, by what was said of jobs that have started since. `jobs` are in
        the system."""
        if not self.forecasters:
            return AtOnce()
        name = ledger.choose(self._known(jobs), default=self.forecasters[0].name)
        return next((f for f in self.forecasters if f.name == name), self.forecasters[0])

    def part_waited(self, source: str, jobs: int) -> float:
        """Which part of what this source predicts jobs do wait here."""
        return ledger.part_waited(self._known(jobs), source)

    def _known(self, jobs: int) -> list[ledger.PastPrediction]:
        # Only the last starts count, so the cost of looking back must not grow with the run.
        most = len(self.forecasters) * (4 * ledger.LAST + jobs)
        return [
            *self.earlier[-most:],
            *(self._past(prediction) for prediction in self.said[-most:]),
        ]

    def _past(self, said: PredictedStart) -> ledger.PastPrediction:
        started_s = self.starts_s.get(said.job)
        return ledger.PastPrediction(
            said.source, self.tag(said.job), said.at_s, said.start_s, started_s
        )

    def ask(
        self, jobs: Mapping[int, JobPlan], used: Forecaster, now_s: float
    ) -> list[PredictedStart]:
        """What each forecaster says of these jobs, which go out together, to be compared with what
        happens."""
        nodes = np.array([plan.nodes for plan in jobs.values()], dtype=np.int64)
        requested_s = np.array([plan.requested_s for plan in jobs.values()], dtype=np.int64)
        new: list[PredictedStart] = []
        for forecaster in self.forecasters:
            try:
                answers = _one_after_the_other(forecaster, nodes, requested_s, now_s)
            except OutsideError:
                continue
            new += [
                PredictedStart(
                    number,
                    p.source,
                    now_s,
                    p.nodes,
                    p.requested_s,
                    p.start_s,
                    int(forecaster is used),
                )
                for number, p in zip(jobs, answers, strict=True)
                if p is not None
            ]
        self.said += new
        return new


def _one_after_the_other(
    forecaster: Forecaster, nodes: Ints, requested_s: Ints, now_s: float
) -> list[Prediction | None]:
    """What a forecaster says of jobs that are submitted together, in this order."""
    if not isinstance(forecaster, CountingForecaster):
        return predict(forecaster, nodes, requested_s, now_s)
    said: list[Prediction | None] = []
    for i in range(len(nodes)):
        said += predict(forecaster, nodes[i : i + 1], requested_s[i : i + 1], now_s)
        forecaster.add(int(nodes[i]), int(requested_s[i]))
    return said
