"""What passes between those who look ahead and those who draw futures: courses, futures, and how a
course ends in one.

Law: only values and the protocol. `strategy` makes courses and asks, `futures` and `live` answer.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from windrow.model.failures import Failures
from windrow.strategies.base import JobPlan


@dataclass(frozen=True, slots=True)
class Later:
    """Levels of what is left that are one job later on. `how` says when it is submitted."""

    first: int
    last: int
    how: Literal["when started", "when done", "by task", "dealt"] = "when started"


@dataclass(frozen=True, slots=True)
class Course:
    """A course of action: jobs to submit now, and what to do with the levels that are left then.

    Levels by task are one job for each task, as they become ready; dealt, all that are ready go out
    at once, in as many jobs as the cap allows, with room for all of their tasks. No later job asks
    for more than `max_nodes`.
    """

    name: str
    jobs: tuple[JobPlan, ...] = ()
    then: tuple[Later, ...] = ()
    max_nodes: int | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """How futures are drawn: how run times are predicted, whether others still arrive, and the
    seed.

    `spread` is by how much own task times are off, as a part, if that is known before the first
    tasks have shown it. With "truth" the one future that comes is shown; only a simulation can do
    that, and only a study should. `failures` are those of nodes that are drawn: as often as was
    seen here, or as said, or none.
    """

    runs: Literal["mixed", "shares", "last two", "requests", "truth"] = "mixed"
    arrivals: bool = True
    spread: float = 0.0
    seed: int = 0
    failures: Failures | Literal["seen"] | None = "seen"


LONG_QUEUE = 70
"""Jobs of others that wait, beyond which plays cost so much that they are cut as short as they can
be, and are played side by side."""
LONGEST_QUEUE = 1000
"""Jobs of others that wait, beyond which plays are coarser."""


@dataclass(frozen=True, slots=True)
class CourseEnd:
    """How a course ends in one future: when the last task is done, counted from now, and what jobs
    held."""

    makespan_s: int
    node_s: int


class Futures(Protocol):
    """Ways in which the cluster may continue from now, drawn from what a user can see. Numbered
    from 0, without end."""

    @property
    def waiting(self) -> tuple[JobPlan, ...]:
        """Own jobs that wait."""

    @property
    def is_exact(self) -> bool:
        """Whether own tasks are known to keep their expected times."""

    def late_s(self, job: JobPlan) -> int:
        """How much longer than expected the job may run, as far as own tasks may err: time to ask
        for as well."""

    @property
    def others_waiting(self) -> int:
        """How many jobs of others wait: what a play costs depends on it."""

    def play(self, course: Course, future: int, within_s: int | None = None) -> CourseEnd:
        """What comes of the course in that future. The same course in the same future ends the same
        way.

        One that takes longer than `within_s` need not be played to its end: its makespan is then
        any above that.
        """
