"""The private site whose users share nodes is what it says: whatever else is tested on it rests on
this."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.slurm.cluster import ClusterError, SlurmCluster
from tests.slurm.shared import OTHER, QOS, THIN, USER, allocated, reserved, submit, told

SLEEP = "--wrap=exec sleep 600"
GIVEN = (
    # what is asked, what is given
    ("-n1", {"cpu": "1", "mem": "400M", "node": "1", "billing": "1"}),
    ("-n5", {"cpu": "5", "mem": "2000M", "billing": "5"}),
    ("-n1 --mem=3000", {"cpu": "1", "mem": "3000M", "billing": "2"}),
    ("-n1 --gres=gpu:1", {"cpu": "1", "gres/gpu": "1", "gres/gpu:a100": "1", "billing": "9"}),
    ("-n1 --gres=gpu:a100:2 -p gpus", {"gres/gpu": "2"}),
    ("-N1 --exclusive --mem=0", {"cpu": "4", "mem": "2000M", "node": "1", "billing": "4"}),
    ("-n1 -p whole", {"cpu": "4", "mem": "2000M"}),
    ("-n1 -p unsaid", {"cpu": "1", "mem": "2000M"}),
    ("-n1 -p capped --mem=1000", {"cpu": "2", "mem": "1000M"}),
    ("-n1 -p dear", {"cpu": "1", "billing": "2"}),
)


def wait_running(slurm: SlurmCluster, *jobs: str) -> None:
    slurm.wait(
        lambda: all(told(slurm, job)["JobState"] == "RUNNING" for job in jobs),
        f"start of {', '.join(jobs)}",
        "slurmctld",
    )


@pytest.mark.parametrize(("asked", "given"), GIVEN, ids=[asked for asked, _ in GIVEN])
def test_a_job_of_an_ordinary_user_has_what_it_asks_for_and_pays_that(
    shared: SlurmCluster, asked: str, given: dict[str, str]
) -> None:
    job = submit(shared, SLEEP, *asked.split(), user=USER)
    wait_running(shared, job)
    assert {name: allocated(shared, job).get(name) for name in given} == given


def test_users_share_a_node_unless_it_is_one_users(shared: SlurmCluster) -> None:
    if os.getuid() != 0:
        pytest.skip("needs two users")
    ours, theirs = (submit(shared, SLEEP, "-n1", user=user) for user in (USER, OTHER))
    wait_running(shared, ours, theirs)
    assert {told(shared, job)["BatchHost"] for job in (ours, theirs)} == {THIN[0]}
    alone = [submit(shared, SLEEP, "-n1", "-p", "mine", user=user) for user in (USER, OTHER)]
    wait_running(shared, *alone)
    assert len({told(shared, job)["BatchHost"] for job in alone}) == 2


def test_a_second_job_on_a_gpu_node_has_the_other_gpu(shared: SlurmCluster, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("devices are only counted here")
    file = f"--output={tmp_path}/%j"
    show = '--wrap=echo "$CUDA_VISIBLE_DEVICES"; exec sleep 600'
    jobs = []
    for _ in range(2):  # one after the other, so that the first is there when the second comes
        jobs.append(submit(shared, show, file, "-n1", "-w", "n5", "--gres=gpu:1", user="root"))
        wait_running(shared, *jobs)
    texts = [tmp_path / job for job in jobs]
    shared.wait(lambda: all(t.exists() and t.read_text() for t in texts), "output", "n5")
    assert [text.read_text() for text in texts] == ["0\n", "1\n"]


@pytest.mark.parametrize("qos", QOS)
def test_limits_are_those_of_users_and_jobs(shared: SlurmCluster, qos: str) -> None:
    """A job that keeps within the limit runs; what is beyond waits, or is refused."""
    beyond = {
        "cores": "-n5",
        "core": "-n2",
        "job": "-n5",
        "memory": "-n1 --mem=4000",
        "gpu": "-n1 --gres=gpu:2",
        "no-gpu": "-n1 --gres=gpu:1",
        "jobs": "--array=0-4",
        "node": "-N2",
        "express": "-n1 --time=4",
    }
    within = submit(shared, SLEEP, f"--qos={qos}", "-n1", "--time=2", user=USER)
    wait_running(shared, within)
    try:
        job = submit(shared, SLEEP, f"--qos={qos}", *beyond[qos].split(), user=USER)
    except ClusterError:
        assert qos == "jobs"
        return
    shared.wait(lambda: told(shared, job)["Reason"].startswith("QOS"), "a reason", "slurmctld")


def test_an_account_as_a_whole_has_a_limit(shared: SlurmCluster) -> None:
    first = submit(shared, SLEEP, "-n7", "-A", "physics", user=USER)
    wait_running(shared, first)
    second = submit(shared, SLEEP, "-n2", "-A", "physics", user=USER)
    shared.wait(
        lambda: told(shared, second)["Reason"] == "AssocGrpCpuLimit", "a reason", "slurmctld"
    )


def test_a_reservation_keeps_others_off_its_nodes(shared: SlurmCluster) -> None:
    with reserved(
        shared, "course", "starttime=now", "duration=60", "nodes=n7,n8", f"users={OTHER}"
    ):
        ours = submit(shared, SLEEP, "-n1", "-C", "big", user=USER)
        shared.wait(
            lambda: told(shared, ours)["Reason"].startswith(("Resources", "ReqNodeNotAvail")),
            "a reason",
            "slurmctld",
        )
        if os.getuid() != 0:
            return  # only root can submit as those whose it is
        theirs = submit(shared, SLEEP, "-n1", "--reservation=course", "-A", "physics")
        wait_running(shared, theirs)


def test_what_shares_a_slurm_is_dealt_to_one_worker(
    request: pytest.FixtureRequest, shared_site: SlurmCluster
) -> None:
    """Else each worker starts one of its own."""
    if getattr(request.config.option, "loadgroup", False):
        assert request.node.nodeid.endswith("@shared_site")
    assert shared_site.node_states()


@pytest.fixture
def outputs(bound: SlurmCluster, tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    bound.clear()


def test_jobs_are_bound_to_their_cores(bound: SlurmCluster, outputs: Path) -> None:
    show = "--wrap=grep Cpus_allowed_list /proc/self/status; exec sleep 600"
    jobs = [
        bound.run("sbatch", "--parsable", f"--output={outputs}/%j", "-n1", "-wn1", show).strip()
        for _ in range(2)
    ]
    texts = [outputs / job for job in jobs]
    bound.wait(lambda: all(t.exists() and t.read_text() for t in texts), "output", "n1")
    assert {text.read_text().split()[-1] for text in texts} == {"0", "1"}


def test_accounts_tell_the_bill(shared: SlurmCluster) -> None:
    job = submit(shared, "--wrap=true", "-n1", "--gres=gpu:1", user=USER)

    def bill() -> str:
        return shared.run("sacct", "-n", "-X", "-P", "-j", job, "-o", "AllocTRES,State").strip()

    shared.wait(lambda: "COMPLETED" in bill(), "word of its end", "slurmdbd")
    assert "billing=9,cpu=1,gres/gpu:a100=1,gres/gpu=1,mem=400M,node=1" in bill()
