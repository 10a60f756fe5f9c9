"""Why jobs wait, in plain words, as Slurm 22.05 and PBS say it."""

from __future__ import annotations

import pytest

from windrow.queues.reasons import reason

DOWN = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"


@pytest.mark.parametrize(
    "word",
    [
        "PartitionDown", "PartitionInactive", "PartitionNodeLimit", "PartitionTimeLimit", DOWN,
        "JobHeldUser",
        "ReqNodeNotAvail, UnavailableNodes:n[1-2]", "JobHeldAdmin", "launch failed requeued held",
        "BadConstraints",
        "QOSMaxWallDurationPerJobLimit", "QOSMaxNodePerJobLimit", "QOSMaxCpuPerJobLimit",
        "AssocMaxNodePerJobLimit",
        "AssocMaxWallDurationPerJobLimit", "InvalidQOS", "InvalidAccount",
        "AssocGrpCPUMinutesLimit",
        "QOSGrpBillingMinutes", "DependencyNeverSatisfied", "QOSMinCpuNotSatisfied",
        "MaxMemPerLimit",
        "QOSMaxCpuPerNode", "AssocMaxMemPerNode",
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
        "Priority", "Resources", "Licenses", "BeginTime", "Dependency", "JobArrayTaskLimit",
        "Reservation",
        "ReqNodeNotAvail, UnavailableNodes:", "ReqNodeNotAvail, May be reserved for other job",
        "QOSMaxJobsPerUserLimit", "QOSMaxNodePerUserLimit", "QOSMaxCpuPerUserLimit",
        "QOSGrpNodeLimit",
        "AssocGrpCpuLimit", "AssociationJobLimit", "MaxCpuPerAccount", "QOSMaxGRESPerUser",
        "Not Running: Insufficient amount of resource: ncpus (R: 8 A: 2 T: 8)",
    ],
)  # fmt: skip
def test_what_passes_by_itself_has_none(word: str) -> None:
    found = reason(word)
    assert not found.is_lasting
    assert found.words
    assert str(found) == f"{found.words} ({word})"


@pytest.mark.parametrize(
    "word", ["QOSMaxCpuPerUserLimit", "QOSMaxGRESPerUser", "MaxCpuPerAccount", "QOSGrpCpuLimit"]
)
def test_a_limit_that_a_job_may_exceed_alone_is_not_said_to_pass(word: str) -> None:
    """As Slurm 22.05 says it of a job that runs into a limit, whether others run or not."""
    assert "if none of them runs, it can never start" in reason(word).words
    assert not reason(word).is_foreseen


@pytest.mark.parametrize(
    "word", ["QOSMaxJobsPerUserLimit", "AssocGrpJobsLimit", "AssociationJobLimit"]
)
def test_a_limit_on_the_number_of_jobs_passes_when_others_end(word: str) -> None:
    assert (
        reason(word).words
        == "other jobs under the same limits of user, account or QOS have to end first"
    )
    assert not reason(word).is_foreseen


@pytest.mark.parametrize(
    "word", ["Priority", "Resources", "NovelReason", "other jobs hold the nodes"]
)
def test_a_wait_for_nodes_can_be_foreseen(word: str) -> None:
    assert reason(word).is_foreseen


def test_a_word_that_nobody_knows_is_told_as_it_is() -> None:
    assert str(reason("other jobs hold the nodes")) == "other jobs hold the nodes"
    assert not reason("NovelReason").is_lasting


def test_maintenance_is_called_so_and_forecasts_know_of_it() -> None:
    found = reason("ReqNodeNotAvail, Reserved for maintenance")
    assert "it cannot end before announced maintenance" in found.words
    assert found.is_foreseen
    assert found.is_dated
    assert not reason("Resources").is_dated
    assert not found.is_lasting
