"""Ways to share a pool: how many processors a workflow should hold, and where it stands in the
queue.

All else is the pool's: it goes through the queue in order, starts what is eligible, and keeps back
what a workflow should hold beyond its eligible tasks. So a policy is one small class, and its line
in `find_policy`. All but `due` are those of Ilyushkin, Ghit and Epema (2015), sections III-D to
III-G.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from windrow.errors import UserError, unknown_name
from windrow.streams.help_texts import POLICY_FORMS
from windrow.streams.progress import Progress

_ROUNDING = 1e-9  # so that 0.2 x 15 is 3 and not the 4 that binary fractions would make of it


class Policy(Protocol):
    """One way to share a pool."""

    @property
    def name(self) -> str:
        """As users write it."""

    def target(self, progress: Progress) -> int:
        """Processors that the workflow should hold now, at work or idle; what is below its eligible
        set means none."""

    def place(self, at_s: float, length_s: float) -> float:
        """Where in the queue a workflow stands that arrived then and would take that long alone:
        the least first.

        Equals stand in the order of arrival.
        """


class _Plain:
    """In the order of arrival, and nothing is held beyond the eligible tasks."""

    __slots__ = ()

    def target(self, progress: Progress) -> int:  # noqa: ARG002
        return 0

    def place(self, at_s: float, length_s: float) -> float:  # noqa: ARG002
        return at_s


@dataclass(frozen=True, slots=True)
class Backfilling(_Plain):
    """BF: nothing is ever held back; the queue is served greedily in the order of arrival (section
    III-G)."""

    name: str = "bf"


@dataclass(frozen=True, slots=True)
class StrictReservation(_Plain):
    """SR: every workflow holds as many processors as it may ever use (section III-D).

    No workflow is ever delayed by one behind it. The price is processors that stand idle for the
    day they are needed. `exact`: hold the exact level of parallelism instead of the widest
    generation, as the paper does.
    """

    exact: bool = False

    @property
    def name(self) -> str:
        """As users write it."""
        if self.exact:
            return "sr-exact"
        return "sr"

    def target(self, progress: Progress) -> int:
        """The level of parallelism."""
        if self.exact:
            return progress.exact_parallelism
        return progress.parallelism


@dataclass(frozen=True, slots=True)
class ScaledParallelism(_Plain):
    """SLoP(f), scaled level of parallelism: hold the fraction f of what the workflow may ever use
    (section III-E).

    f = 1 is `sr`, f = 0 is `bf`. A fraction of a processor counts as a whole one.
    """

    fraction: float

    def __post_init__(self) -> None:
        if not 0 <= self.fraction <= 1:
            raise UserError(
                f"slop needs a fraction between 0 and 1, not {self.fraction:g}; for example "
                "slop:0.2"
            )

    @property
    def name(self) -> str:
        """As users write it."""
        return f"slop:{self.fraction:g}"

    def target(self, progress: Progress) -> int:
        """The fraction of the widest generation, rounded up."""
        return math.ceil(self.fraction * progress.parallelism - _ROUNDING)


@dataclass(frozen=True, slots=True)
class FutureEligibleSets(_Plain):
    """FES(depth): hold as many processors as the next `depth` generations may use (section III-F).

    Depth 0 is `bf`; a depth beyond the workflow's last generation is `sr`.
    """

    depth: int

    def __post_init__(self) -> None:
        if self.depth < 0:
            raise UserError(f"fes needs a depth of at least 0, not {self.depth}; for example fes:1")

    @property
    def name(self) -> str:
        """As users write it."""
        return f"fes:{self.depth}"

    def target(self, progress: Progress) -> int:
        """The widest generation within the depth."""
        return progress.widest(self.depth)


@dataclass(frozen=True, slots=True)
class DueDates(_Plain):
    """As `bf`, but the queue is in the order of arrival + patience x the workflow's length alone.
    Ours.

    The slowdown of a workflow is its response over its length, the makespan that it would have
    alone on the pool. So an hour of waiting weighs most on the shortest. Each workflow is due at
    its arrival plus `patience` times its length, and the earliest due goes first.

    Law: none starves. A workflow that arrives after another is due never stands before it, so each
    is overtaken by no more than those who arrive within `patience` times its length. Lengths are
    estimates; how good they must be is measured in docs/theory/streams.md. Patience 0 is `bf`.
    """

    patience: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.patience) and self.patience >= 0):
            raise UserError(
                f"due needs a patience of at least 0, not {self.patience:g}; for example due:2"
            )

    @property
    def name(self) -> str:
        """As users write it."""
        return f"due:{self.patience:g}"

    def place(self, at_s: float, length_s: float) -> float:
        """When the workflow is due."""
        return at_s + self.patience * length_s


PLAIN: Mapping[str, Callable[[], Policy]] = {
    "bf": Backfilling,
    "due": DueDates,
    "sr": StrictReservation,
    "sr-exact": lambda: StrictReservation(exact=True),
}
"""Policies that need no number, by name."""
_NUMBERED: Mapping[str, tuple[Callable[[str], Policy], str]] = {
    "slop": (lambda value: ScaledParallelism(float(value)), "slop:0.2"),
    "fes": (lambda value: FutureEligibleSets(int(value)), "fes:1"),
    "due": (lambda value: DueDates(float(value)), "due:2"),
}


def find_policy(text: str) -> Policy:
    """The policy that `text` names, such as `bf` or `due:2`. UserError if there is none, or its
    number is wrong."""
    name, colon, value = text.strip().lower().partition(":")
    if not colon and name in PLAIN:
        return PLAIN[name]()
    if name not in _NUMBERED:
        raise unknown_name("policy", text, POLICY_FORMS)
    make, example = _NUMBERED[name]
    try:
        return make(value)
    except ValueError:
        raise UserError(
            f"policy {text!r} needs a number after its name; for example {example}"
        ) from None
