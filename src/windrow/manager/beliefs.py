"""What the core of a run holds of one job and of one site. Only the core changes it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from windrow.manager.losses import Avoidance, Losses
from windrow.manager.terms import Terms
from windrow.model.requests import Requests
from windrow.model.site import Site
from windrow.strategies.base import JobPlan, OwnJob
from windrow.strategies.levels import Work


@dataclass(slots=True)
class Job:
    """A job of this run that is in the system.

    `taken_by`: the job whose allocation it runs in, where that is another. `has_begun`: a task of it has started.
    `has_given_up`: it had no time for a task. `is_stopping`: it was told to go, or has nothing left to do.
    """

    plan: JobPlan
    open_tasks: set[int]
    at: AtSite
    running_since_s: dict[int, int] = field(default_factory=dict)
    expected_end_s: int = 0
    is_running: bool = False
    taken_by: int | None = None
    has_begun: bool = False
    has_finished_a_task: bool = False
    has_given_up: bool = False
    is_stopping: bool = False

    def as_own(self, number: int) -> OwnJob:
        """As those who play courses ahead must know it."""
        open_tasks, since = tuple(sorted(self.open_tasks)), dict(self.running_since_s)
        return OwnJob(number, self.plan, open_tasks, self.is_running, self.expected_end_s, since)


@dataclass(slots=True, eq=False)
class AtSite:
    """What a run holds of one site. Jobs lost there and nodes that fail there say nothing of another site.

    `name` is that of the site, or empty where there is no other. `work` are the tasks as they would run there; `mine`
    marks those that are to, None where all are. `jobs` counts own jobs in its system.
    """

    name: str
    work: Work
    requests: Requests
    losses: Losses
    mine: NDArray[np.bool_] | None = None
    avoidance: Avoidance = field(default_factory=Avoidance)
    individually: bool = False
    jobs: int = 0

    @property
    def site(self) -> Site:
        """The site itself."""
        return self.work.site

    def of(self, tasks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Those of the tasks that are to run there."""
        return tasks if self.mine is None else tasks & self.mine


def at_sites(works: list[Work], terms: Terms, site_of: list[int]) -> list[AtSite]:
    """One for each work. `site_of` says of each task to which it belongs."""
    sites, one = np.array(site_of), len(works) == 1
    return [
        AtSite(
            name="" if one else work.site.name,
            work=work,
            requests=terms.requests(work.site),
            losses=Losses(terms.patience),
            mine=None if one else sites == number,
        )
        for number, work in enumerate(works)
    ]
