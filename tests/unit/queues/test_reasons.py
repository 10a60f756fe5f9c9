"""Why jobs wait, in plain words, as Slurm 22.05 and PBS say it."""

from __future__ import annotations

import pytest

from windrow.queues.reasons import reason

DOWN = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"


@pytest.mark.parametrize(
    "word",
    [
        "PartitionDown", "PartitionInactive", "PartitionNodeLimit", "PartitionTimeLimit", DOWN, "JobHeldUser",
        "ReqNodeNotAvail, UnavailableNodes:n[1-2]", "JobHeldAdmin", "launch failed requeued held", "BadConstraints",
        "QOSMaxWallDurationPerJobLimit", "QOSMaxNodePerJobLimit", "QOSMaxCpuPerJobLimit", "AssocMaxNodePerJobLimit",
        "AssocMaxWallDurationPerJobLimit", "InvalidQOS", "InvalidAccount", "AssocGrpCPUMinutesLimit",
        "QOSGrpBillingMinutes", "DependencyNeverSatisfied", "QOSMinCpuNotSatisfied", "MaxMemPerLimit",
        "Can Never Run: Insufficient amount of resource: ncpus (R: 64 A: 8 T: 8)",
    ],
)  # fmt: skip
def test_what_time_does_not_cure_has_a_fix(word: str) -> None:
    found = reason(word)
    assert found.is_lasting
    assert found.fix
    assert str(found) == f"{found.words} ({word})"


@pytest.mark.parametrize(
    "word",
    [
        "Priority", "Resources", "Licenses", "BeginTime", "Dependency", "JobArrayTaskLimit", "Reservation",
        "ReqNodeNotAvail, UnavailableNodes:", "ReqNodeNotAvail, May be reserved for other job",
        "QOSMaxJobsPerUserLimit", "QOSMaxNodePerUserLimit", "QOSMaxCpuPerUserLimit", "QOSGrpNodeLimit",
        "AssocGrpCpuLimit", "AssociationJobLimit",
        "Not Running: Insufficient amount of resource: ncpus (R: 8 A: 2 T: 8)",
    ],
)  # fmt: skip
def test_what_passes_by_itself_has_none(word: str) -> None:
    found = reason(word)
    assert not found.is_lasting
    assert found.words
    assert str(found) == f"{found.words} ({word})"


def test_a_word_that_nobody_knows_is_told_as_it_is() -> None:
    assert str(reason("other jobs hold the nodes")) == "other jobs hold the nodes"
    assert not reason("NovelReason").is_lasting
