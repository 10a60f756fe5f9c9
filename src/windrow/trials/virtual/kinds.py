"""What can go wrong, as values."""

from dataclasses import dataclass
from enum import StrEnum
from math import inf


class Kind(StrEnum):
    """What goes wrong."""

    NODE = "node fails"
    CUT_OFF = "node is cut off"
    PREEMPTED = "job is preempted"
    CANCELLED = "job is cancelled"
    LOST = "job is lost"
    FORGOTTEN = "job is forgotten and runs on"
    HELD = "jobs are held"
    AGENT = "agent is killed"
    AGENT_WRITING = "agent is killed while it writes"
    MANAGER = "manager is killed"
    DOWN = "queue is down"
    SILENT = "submission gets no answer"
    DEAF = "submission is not heard"
    LATE = "submission arrives late"
    SLOW = "queue answers late"
    DISK = "disk is full"
    TASK = "task fails"
    LONG = "task takes long"
    CLOCK = "clock is set"
    FILE = "output is deleted"
    NOTICED = "job is preempted after a notice"
    NODE_OF_JOB = "one node of a job fails"
    NODE_DISK = "disk of a node is full"
    COPYING = "agent is killed while it copies"
    AWAY = "nodes cannot reach the shared files"
    MACHINE = "machine of the manager fails"
    POWER = "all machines fail"
    NO_COMMIT = "outputs cannot come to their place"
    NO_MOVE = "files cannot move between places"
    NO_SUBMISSION = "queue refuses every job"
    NO_ANSWER = "queue answers no question"
    STAYS_FULL = "disk stays full"
    NODES_FULL = "disks of nodes stay full"
    LIMIT = "a limit holds jobs"
    HIDDEN = "job is hidden"
    WRONG = "queue tells of other states"
    SEEN_LATE = "what agents write is seen late"
    NODE_CLOCK = "clock of a node is wrong"
    NOT_ALL = "task leaves an output out"
    LATE_OUTPUT = "output shows up late"
    ROT = "blocks rot"
    STUMBLES = "file system stumbles"
    GONE = "a file is gone when it is to move"
    CANCELS = "user cancels a task"
    AMENDS = "user changes a task"
    REPEATS = "user runs a task again"
    HOLDS = "user holds the run open"


LOCAL = (Kind.NODE_OF_JOB, Kind.NODE_DISK, Kind.COPYING, Kind.AWAY)
"""What goes wrong if jobs use disks of their nodes."""
FAR = (Kind.GONE,)
"""What goes wrong if files are at two places."""
FORGETTING = (Kind.MACHINE, Kind.POWER)
"""What takes with it what was not synced."""
FOR_EVER = (
    *(Kind.NO_COMMIT, Kind.NO_MOVE, Kind.NO_SUBMISSION, Kind.NO_ANSWER),
    *(Kind.STAYS_FULL, Kind.NODES_FULL, Kind.LIMIT),
)
"""What stays wrong until someone repairs it."""
STRANGE = (
    *(Kind.HIDDEN, Kind.WRONG, Kind.SEEN_LATE, Kind.NODE_CLOCK),
    *(Kind.NOT_ALL, Kind.LATE_OUTPUT, Kind.ROT, Kind.STUMBLES),
)
"""What machines and programs do that they should not do."""
USERS = (Kind.CANCELS, Kind.AMENDS, Kind.REPEATS, Kind.HOLDS)
"""What people do to a run that goes. It is right, and comes at any time."""
WORSE = (*FORGETTING, *FOR_EVER, *STRANGE)
"""What goes wrong in worlds that are worse than most."""
ONLY_LOCAL = (*LOCAL, Kind.NODES_FULL)
ONLY_FAR = (*FAR, Kind.NO_MOVE)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong: when (a time, or a record of the journal), for how long, and
    `pick` says to which.

    Of an agent that is killed while it copies, `at_record` is not a record, but the number of the
    copy.
    """

    kind: Kind
    at_s: float = inf
    at_record: int | None = None
    pick: int = 0
    length_s: int = 60

    @property
    def counts_copies(self) -> bool:
        """Whether it waits for a copy, by its number."""
        return self.kind is Kind.COPYING and self.at_record is not None
