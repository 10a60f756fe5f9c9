"""How often each fault struck and each invariant was really put to the test, over many runs.

What never happens in a large campaign with all features proves nothing, so it is a failure of the
prover: a fault that cannot strike any more, an invariant that has nothing to hold against.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from windrow.trials.virtual.kinds import Kind


class Invariant(StrEnum):
    """What must hold, each with the occasions at which it could have been broken (`invariants`)."""

    JOURNAL = "the core hears only of what is journaled"
    FENCED = "an agent that was given up starts nothing"
    ALONE = "a task starts in no job beside another"
    INPUTS = "inputs are right at a start"
    TOLD = "what agents begin is told"
    ONCE_DONE = "what is done is not done again"
    ONCE_SUBMITTED = "a job is submitted once"
    ONE_MIND = "core, journal and story agree"
    NO_JOB_LEFT = "no job is left"
    RIGHT = "results are right"
    THERE = "results are there"
    UNTOUCHED = "places of unfinished tasks have what they had"
    NO_DRAFT = "no draft is left"
    USERS = "files of the user stay"
    HOME = "results come home"
    KEPT = "checkpoints are not lost"
    UNMIXED = "checkpoints are not mixed"
    DELETED = "what nothing needs is deleted"
    NEEDED = "what is needed is not deleted"
    SPACE = "files take no more than they may"
    LIMITS = "tasks take no more of limits than there is"
    DISKS_EMPTY = "disks of nodes are empty in the end"
    HELD = "jobs hold no more nodes than there are"
    RELIED = "what is relied on outlives a crash"
    BLOCKS = "what nodes share is what its home has"
    CAUSE = "failures have a cause"
    REASON = "runs give up for a reason"
    REFUSED = "what disks refuse again and again ends the run"
    NOT_BELIEVED = "what is gone is not believed to be there"
    TRIED = "what is to move is tried again"
    LAST_WORDS = "what an agent says last is awaited"
    HEARD = "ends of jobs are heard soon"
    SAVED = "no more is told of checkpoints than they have"
    TRIES = "tasks are tried as often as they may be"
    SENT_BACK = "no task is sent to wait again and again"
    ENDS = "ends of jobs are told as they are"
    BUSY = "something is done while nothing goes wrong"
    RECALLED = "what the user cancelled ends soon"
    CHANGED = "tasks do what they were changed to"
    STAYS_OPEN = "a run that is held stays open"
    CLOSES = "a run that is held no more ends"
    WITHIN = "no attempt runs for longer than it may"
    TURN = "the most urgent starts first"
    LOOSE = "what comes after another in any way waits for its end"
    IN_TIME = "what starts should end in time"
    MORE = "a task gets what its next try asks for"
    BEATEN = "what another job has done ends soon"
    ATTEMPTS = "what is told of attempts is what became of them"
    ROOM = "nodes hold what runs on them"
    GROWN = "what tasks say comes after them joins the run"
    REUSED = "what is kept of an earlier run is not run again"
    BOUNDED = "work has an end while something stays wrong"


def never(met: Mapping[str, int], exercised: Mapping[str, int]) -> list[str]:
    """The faults that never struck, and the invariants that nothing ever put to the test."""
    faults = [str(kind) for kind in Kind if not met.get(kind)]
    return faults + [str(invariant) for invariant in Invariant if not exercised.get(invariant)]


def with_zeros(exercised: Mapping[Invariant, int]) -> dict[str, int]:
    """The counts of all invariants, those that nothing put to the test among them."""
    return {str(invariant): exercised.get(invariant, 0) for invariant in Invariant}
