"""Everybody's past jobs from `sacct --allusers`. Checked with 22.05.

Rule 1: jobs of our own runs are left out: they are known by their names, and nobody else submits them again.
Rule 2: a job that was cancelled before it had nodes is left out. So is an array that waits (`12_[0-9]`): its members
have ids of their own in squeue, and here as soon as they start.
"""

from __future__ import annotations

from windrow.queues.accounts import PastJob
from windrow.queues.slurm.text import FOREVER_S, NO_HOSTS, STATES, parse_count, parse_time, split_rows

PAST_FORMAT = "JobID,State,Submit,Start,End,NNodes,TimelimitRaw,NodeList,User,JobName"
OWN_NAME = "windrow-"  # what the tags of all runs begin with


def past_argv(partition: str, since_s: float, now_s: float) -> list[str]:
    """The question: all jobs that waited, ran or ended since then. sacct takes no seconds of the epoch."""
    ago = max(1, round(now_s - since_s))
    return [
        *("sacct", "--allusers", "--allocations", "--noheader", "--parsable2", f"--partition={partition}"),
        *(f"--starttime=now-{ago}seconds", f"--format={PAST_FORMAT}"),
    ]


def parse_past(out: str, default_s: int, me: str) -> list[PastJob]:
    """The rows that count, in sacct's order. `default_s` is the limit of jobs that have none of their own."""
    rows = (_past_job(fields, default_s, me) for fields in split_rows(out, 10))
    return [job for job in rows if job is not None]


def _past_job(fields: list[str], default_s: int, me: str) -> PastJob | None:
    id_, words, submit, start, end, nodes, minutes, hosts, user, name = fields
    submitted = parse_time(submit)
    if submitted is None or "[" in id_ or (user == me and name.startswith(OWN_NAME)):
        return None
    is_over = (state := STATES.get(words.partition(" ")[0].rstrip("+"))) is not None and state.is_over
    has_nodes = hosts not in NO_HOSTS
    if (is_over and not has_nodes) or not nodes[:1].isdecimal() or parse_count(nodes) < 1:
        return None
    requested_s = 60 * int(minutes) if minutes.isdecimal() else FOREVER_S if minutes == "UNLIMITED" else default_s
    return PastJob(
        id=id_,
        user=user,
        nodes=parse_count(nodes),
        requested_s=max(1, requested_s),
        submitted_s=submitted,
        started_s=parse_time(start) if has_nodes else None,
        ended_s=parse_time(end) if is_over else None,
    )
