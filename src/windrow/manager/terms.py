"""What a run wants, wherever its jobs go. What a site has and allows is `model.site`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from windrow.errors import UserError
from windrow.model import Step
from windrow.model.cause import Cause
from windrow.model.requests import Requests
from windrow.model.site import Site


@dataclass(frozen=True, slots=True)
class Terms:
    """How a run deals with its sites.

    margin, round_s: a requested time is the run times `margin`, in whole `round_s`.
    forecast_with_margin: waits are asked for the time that will be requested, or (as in the GLUME
    thesis code) for the bare run. busy_is_request: a running job is taken to last as long as it
    asked for (also as there), or as it should. overhead_s: what a job needs beside its tasks.
    patience: how many jobs in a row may be lost to each cause, without a task finished in between,
    before the run gives up; None if it never does.
    """

    margin: float = 1.1
    round_s: int = 60
    forecast_with_margin: bool = True
    busy_is_request: bool = False
    overhead_s: int = 0
    patience: Mapping[Cause, int] | None = None

    def __post_init__(self) -> None:
        if self.margin < 1 or self.round_s < 1:
            raise UserError("a run needs a margin of at least 1 and whole seconds of rounding")

    def requests(self, site: Site) -> Requests:
        """How long to ask for there."""
        return Requests(self.margin, self.round_s, self.overhead_s, site.max_request_s)


@dataclass(frozen=True, slots=True)
class CopyRules:
    """What the user wants beside the `replicas` of tasks. A `reliability` of 0 asks for nothing."""

    reliability: float = 0.0
    speculate: bool = False

    def __bool__(self) -> bool:
        """Whether any task may get copies."""
        return self.speculate or self.reliability > 0

    @property
    def words(self) -> list[str]:
        """For people."""
        said = []
        if self.reliability > 0:
            wanted = f"reliability {self.reliability:g}"
            said.append(f"tasks that would hold up the workflow get copies: {wanted}")
        if self.speculate:
            said.append("tasks that are late get another attempt")
        return said

    def are_needed(self, steps: Iterable[Step]) -> bool:
        """Whether a task may, of those that are executed so."""
        return bool(self) or any(step.replicas > 1 for step in steps)


NO_COPIES = CopyRules()
