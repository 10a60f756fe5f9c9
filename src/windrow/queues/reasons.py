"""Why a job waits, in plain words, from the batch system's own word. Pure: tables of what is known.

Rule 1: the system's word is never lost: it stands in parentheses, or alone where nobody here knows it.
Rule 2: a reason has a fix where time alone does not cure it. What is not known is taken to pass by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SITE = "ask the site's support, or cancel the run and start it on another queue (--on)"
_LESS = "request less, or use another queue, QOS or account"
_BUDGET = "request more, or charge another account"
_SMALLER = "windrow cancel, then windrow resume, which cuts new jobs for the nodes that are up"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason. `fix` is empty where the job only has to wait."""

    word: str
    words: str = ""
    fix: str = ""

    @property
    def is_lasting(self) -> bool:
        """Whether waiting alone does not help."""
        return bool(self.fix)

    def __str__(self) -> str:
        return f"{self.words} ({self.word})" if self.words else self.word


# Slurm's words (squeue's manual page, and slurm_protocol_defs.c of 22.05), then PBS's. The first that fits counts.
_KNOWN: tuple[tuple[str, str, str], ...] = (
    (r"Priority", "jobs of higher priority come first", ""),
    (r"Resources", "the nodes that it needs are busy", ""),
    (r"Licenses", "its licenses are in use", ""),
    (r"BeginTime", "its earliest start time has not been reached", ""),
    (r"DependencyNeverSatisfied", "a job that it depends on did not succeed", "windrow cancel, then windrow resume"),
    (r"Dependency", "a job that it depends on has not ended", ""),
    (r"JobArrayTaskLimit", "enough jobs of its array are running", ""),
    (r"JobHeldUser", "it is held by its user", "scontrol release JOBID"),
    (r"JobHeldAdmin|.*requeued held", "it is held by an administrator", _SITE),
    (r"PartitionDown", "its partition is down", _SITE),
    (r"PartitionInactive", "its partition is inactive", _SITE),
    (r"PartitionNodeLimit", "it requests more nodes than its partition gives, or than are up", _SMALLER),
    (r"PartitionTimeLimit", "it requests more time than its partition allows", _LESS),
    (r"Nodes required for job are DOWN", "nodes that it needs are down, drained or reserved", _SMALLER),
    (r"ReqNodeNotAvail.*UnavailableNodes:\S", "nodes that it needs are down or drained", _SMALLER),
    (r"ReqNodeNotAvail", "nodes that it needs are reserved or in use", ""),
    (r"NodeDown|FrontEndDown", "a node that it needs is down", _SMALLER),
    (r"BadConstraints", "no node has what it requests", "correct constraint and extra in windrow.toml"),
    (r"ReservationDeleted|InvalidReservation", "its reservation does not exist", "correct extra in windrow.toml"),
    (r"Reservation", "its reservation has not started", ""),
    (r"InvalidAccount|AccountNotAllowed", "its account may not be used here", "correct account in windrow.toml"),
    (r"InvalidQOS|QOSNotAllowed", "its QOS may not be used here", "correct qos in windrow.toml"),
    (r"(QOS|Assoc)\w*Min\w*(Cpu|Node|GRES|Memory)", "it requests less than its QOS demands", _LESS),
    (r"(QOS|Assoc)Grp\w*Minutes|QOSUsageThreshold", "the budget of its account or QOS is spent", _BUDGET),
    (r"QOS(Max\w*(PerJob|Wall)|TimeLimit)", "it requests more than its QOS allows one job", _LESS),
    (r"Assoc(Max\w*(PerJob|Wall)|iationTimeLimit)", "it requests more than its account allows one job", _LESS),
    (r"MaxMemPerLimit", "it requests more memory than its partition allows", _LESS),
    (r"(QOS|Assoc)", "other jobs under the same limits of user, account or QOS have to end first", ""),
    (r"Can Never Run", "no nodes of this queue can ever run it", _LESS),
    (r"Not Running: Queue not started", "its queue is stopped", _SITE),
    (r"Not Running: Insufficient amount", "the nodes that it needs are busy", ""),
)


def reason(word: str) -> Reason:
    """What the batch system's word means."""
    for pattern, words, fix in _KNOWN:
        if re.match(pattern, word):
            return Reason(word, words, fix)
    return Reason(word)
