"""Everybody's past jobs in sacct's words. The rows are as Slurm 22.05 printed them, with other
names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from windrow.model.cause import Cause
from windrow.queues.command import Answer
from windrow.queues.port import Accounts, Life, PastJob
from windrow.queues.slurm.queue import SlurmQueue
from windrow.queues.slurm.text import FOREVER_S, parse_lives, parse_past, past_argv

ROWS = """\
1|COMPLETED|1794758715|1794758716|1794758718|2|1|n[1-2]|ann|wrap
2|RUNNING|1794758715|1794758718|Unknown|8|3|n[1-8]|bob|a|b
3|PENDING|1794758715|Unknown|Unknown|8|UNLIMITED|None assigned|ann|wrap
4_[0-2]|PENDING|1794758716|Unknown|Unknown|4|3|None assigned|ann|wrap
4_3|TIMEOUT|1794758716|1794758720|1794758900|4|3|n[1-4]|ann|wrap
5|CANCELLED by 0|1794758716|1794758717|1794758717|3|3|None assigned|bob|wrap
6|CANCELLED by 0|1794758716|1794758717|1794758757|3|Partition_Limit|n[1-3]|bob|wrap
7|COMPLETED|1794758716|1794758717|1794758757|1|3|n1|me|windrow-12ab-4
8|COMPLETED|1794758716|1794758717|1794758757|1|3|n1|bob|windrow-77ff-0
not a row
"""


def test_rows_are_read_and_what_is_no_arrival_is_left_out() -> None:
    base = 1794758700.0
    assert parse_past(ROWS, 7200, "me") == [
        PastJob("1", "ann", 2, 60, base + 15, base + 16, base + 18),
        PastJob("2", "bob", 8, 180, base + 15, base + 18, None),
        PastJob("3", "ann", 8, FOREVER_S, base + 15, None, None),
        PastJob("4_3", "ann", 4, 180, base + 16, base + 20, base + 200),
        PastJob("6", "bob", 3, 7200, base + 16, base + 17, base + 57),
        PastJob("8", "bob", 1, 180, base + 16, base + 17, base + 57),
    ]


def test_the_question_is_relative_since_sacct_takes_no_epoch() -> None:
    argv = past_argv("main", 1000.0, 4600.0)
    assert argv[0] == "sacct"
    assert {
        "--allusers",
        "--allocations",
        "--partition=main",
        "--starttime=now-3600seconds",
    } <= set(argv)


class Site:
    """Answers of a Slurm with one partition; `accounting` is its AccountingStorageType."""

    def __init__(self, accounting: str) -> None:
        self.accounting = accounting

    def __call__(
        self, argv: Sequence[str], *, stdin: str, env: Mapping[str, str], timeout_s: float
    ) -> Answer:
        del stdin, env, timeout_s
        match argv[:3]:
            case ["scontrol", "show", "config"]:
                return Answer(
                    0, f"ClusterName = big\nAccountingStorageType = {self.accounting}\n", ""
                )
            case ["scontrol", "-o", "show"]:
                return Answer(0, "PartitionName=main Default=YES MaxTime=UNLIMITED\n", "")
            case ["sinfo", *_]:
                return Answer(0, "n1|idle|up|2|1000|0|(null)|(null)\n", "")
            case ["sacct", *_]:
                return Answer(0, ROWS, "")
            case _:
                return Answer(0, "", "")


def test_a_queue_tells_what_its_site_remembers() -> None:
    queue = SlurmQueue(run=Site("accounting_storage/slurmdbd"))
    assert isinstance(queue, Accounts)
    assert queue.place == "slurm.big.main"
    jobs = queue.past_jobs(0.0)
    assert jobs is not None
    assert len(jobs) >= 6


LIVES = """\
1|COMPLETED|1794758716|1794758718|2|n[1-2]
2|RUNNING|1794758718|Unknown|8|n[1-8]
3|PENDING|Unknown|Unknown|8|None assigned
4|NODE_FAIL|1794758000|1794758900|2|n[3-4]
4|PREEMPTED|1794758950|1794758980|2|n[5-6]
5|CANCELLED by 0|1794758717|1794758717|3|None assigned
"""


def test_lives_tell_what_ended_jobs_each_time_that_they_ran() -> None:
    base = 1794758000.0
    assert parse_lives(LIVES, base + 100, base + 1000) == [
        Life("1", 2, base + 716, base + 718, None, ("n1", "n2")),
        Life("2", 8, base + 718, base + 1000, None, tuple(f"n{i}" for i in range(1, 9))),
        Life("4", 2, base + 100, base + 900, Cause.NODE_FAILED, ("n3", "n4")),
        Life("4", 2, base + 950, base + 980, Cause.PREEMPTED, ("n5", "n6")),
    ]


def test_a_site_without_accounts_remembers_nothing() -> None:
    queue = SlurmQueue(run=Site("accounting_storage/none"))
    assert queue.past_jobs(0.0) is None
    assert queue.lives(0.0) is None
