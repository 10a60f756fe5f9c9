"""How much work and time a run may need at most, whatever goes wrong: what needs more has no end.

Law: with T tasks, of which each may be in C jobs at a time and is tried R times in a row in each;
F things that went wrong so far, node failures included; and G times that the run gave up:

    attempts <= (1 + F + G) * T * C * R + P * (1 + G)
    jobs     <= (1 + F + G) * T * C * B + P * (1 + G)

B is in how many jobs, one after the other, a task may be cut by their limits on time, if it has
checkpoints; else 1. P is the sum of all patience with lost jobs (`manager.losses`). Each fault may
undo all that was done, and each time that a run gives up a user may try again. A
run of a braid is at most as long as all its attempts one after the other, and each of these may
wait for a whole outage:

    seconds  <= attempts * S + F * (L + W)

with S for the longest task, the wait for its job and the patience after it; L for the time until
someone repairs what lasts; W for a step of a clock, which is waited for at most once.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.manager.losses import PATIENCE
from windrow.trials.virtual.lasting import LASTS_S

_PATIENCE = sum(PATIENCE.values())
_CLOCK_STEP_S = 2 * 86_400
_AROUND_S = 600
"""For the wait for a job, and the patience after its end."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one run: how many tasks, in how many jobs each, how often tried, and the longest one."""

    tasks: int
    copies: int = 1
    tries: int = 2
    longest_s: int = 200
    pieces: int = 1
    """In how many jobs, one after the other, it may be cut."""

    def attempts(self, faults: int, given_up: int) -> int:
        """The most that may begin after this number of faults."""
        rounds = 1 + faults + given_up
        return rounds * self.tasks * self.copies * self.tries + _PATIENCE * (1 + given_up)

    def jobs(self, faults: int, given_up: int) -> int:
        """The most that may be submitted."""
        rounds = 1 + faults + given_up
        return rounds * self.tasks * self.copies * self.pieces + _PATIENCE * (1 + given_up)

    def seconds(self, faults: int, given_up: int) -> int:
        """The longest that it may take."""
        each_s = self.longest_s + _AROUND_S
        lasting_s = faults * (LASTS_S + _CLOCK_STEP_S)
        return self.attempts(faults, given_up) * each_s + lasting_s

    def broken(self, *, attempts: int, jobs: int, seconds: int, faults: int, given_up: int) -> str:
        """What there is more of than may be; empty if nothing."""
        had = {"attempts": attempts, "jobs": jobs, "seconds": seconds}
        most = {
            "attempts": self.attempts(faults, given_up),
            "jobs": self.jobs(faults, given_up),
            "seconds": self.seconds(faults, given_up),
        }
        return "; ".join(
            f"{had[what]} {what} of {most[what]}" for what in had if had[what] > most[what]
        )
