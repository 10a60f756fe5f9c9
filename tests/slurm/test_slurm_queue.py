"""What only Slurm does, on a real one: hands that cancel, nodes that die, controllers that are
down, site limits."""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.slurm.cluster import ClusterError, SlurmCluster, missing
from tests.slurm.harness import SlurmHarness, slurm_harness
from tests.slurm.settings import Settings
from tests.unit.queues.contract import fresh_tag, spec, wait_for, wait_over, wait_state

from windrow.errors import UserError
from windrow.forecast.twin import Twin
from windrow.queues.port import JobState, OutcomeUnknown, QueueError, SpecError
from windrow.queues.slurm.profile import SlurmProfile
from windrow.queues.slurm.queue import SlurmQueue


@pytest.fixture
def harness(slurm: SlurmCluster, tmp_path: Path) -> SlurmHarness:
    return slurm_harness(slurm, tmp_path)


@pytest.fixture
def with_accounting(slurm_with_accounting: SlurmCluster, tmp_path: Path) -> SlurmHarness:
    return slurm_harness(slurm_with_accounting, tmp_path)


@pytest.fixture
def breakable(tmp_path: Path) -> Iterator[SlurmHarness]:
    """A Slurm of its own for a test that breaks it: two nodes start in half a second."""
    if reason := missing():
        pytest.skip(f"no private Slurm: {reason}")
    with SlurmCluster(Settings(nodes=2, node_timeout_s=5, message_timeout_s=4)) as cluster:
        yield slurm_harness(cluster, tmp_path)


def test_a_job_cancelled_by_hand_is_cancelled(harness: SlurmHarness) -> None:
    job = harness.queue.submit(spec(harness, harness.sleeping(500)))
    wait_state(harness, job, JobState.RUNNING)
    harness.cluster.run("scancel", job)
    assert wait_state(harness, job, JobState.CANCELLED).reason.startswith("CANCELLED")


def test_a_member_of_a_waiting_array_is_cancelled_with_a_record(
    with_accounting: SlurmHarness,
) -> None:
    queue = with_accounting.queue
    blocker = queue.submit(spec(with_accounting, with_accounting.sleeping(500), nodes=8))
    wait_state(with_accounting, blocker, JobState.RUNNING)
    prefix = fresh_tag()
    jobs = queue.submit_array(
        [spec(with_accounting, ("true",), tag=f"{prefix}-{n}") for n in (9, 10, 11)]
    )
    queue.cancel([jobs[1]])
    gone = wait_state(with_accounting, jobs[1], JobState.CANCELLED)
    assert gone.started_s is None
    assert dict(queue.find([f"{prefix}-10"])) == {f"{prefix}-10": jobs[1]}
    queue.cancel([blocker, *jobs])
    wait_over(with_accounting, [blocker, *jobs])


def test_a_job_whose_node_dies_is_told_apart(breakable: SlurmHarness) -> None:
    queue, cluster = breakable.queue, breakable.cluster
    job = queue.submit(spec(breakable, breakable.sleeping(500)))
    wait_state(breakable, job, JobState.RUNNING)
    node = cluster.run("squeue", "-h", "-j", job, "-o", "%N").strip()
    cluster.kill_node(node)
    assert wait_state(breakable, job, JobState.NODE_FAILED).reason.startswith("NODE_FAIL")
    assert queue.snapshot().nodes == 1
    assert queue.limits().nodes == 2
    cluster.start_node(node)
    assert queue.snapshot().nodes == 2


def test_a_controller_that_is_down_may_be_asked_again(breakable: SlurmHarness) -> None:
    queue, cluster = breakable.queue, breakable.cluster
    job = queue.submit(spec(breakable, breakable.sleeping(15)))
    wait_state(breakable, job, JobState.RUNNING)
    again = spec(breakable, ("true",))
    queue.limits()
    cluster.stop_controller()
    for attempt in (
        lambda: queue.status([job]),
        lambda: queue.submit(again),
        lambda: queue.cancel([job]),
    ):
        with pytest.raises(QueueError, match="Unable to contact slurm controller"):
            attempt()
    cluster.start_controller()
    assert dict(queue.find([again.tag])) == {}
    assert wait_state(breakable, job, JobState.ENDED).exit_code == 0
    wait_state(breakable, queue.submit(again), JobState.ENDED)


@pytest.mark.parametrize("patience_s", [1.0, 60.0], ids=["we gave up", "sbatch gave up"])
def test_a_submission_without_an_answer_is_unknown(
    breakable: SlurmHarness, patience_s: float
) -> None:
    queue = SlurmQueue(env=breakable.cluster.env, timeout_s=patience_s)
    queue.limits()
    one = spec(breakable, ("true",))
    with breakable.cluster.frozen_controller(), pytest.raises(OutcomeUnknown):
        queue.submit(one)
    # The controller read the request when it woke up: the job that nobody heard of is there.
    wait_for(breakable, "the job", lambda: one.tag in queue.find([one.tag]))


def test_what_slurm_refuses_is_told_in_its_own_words(with_accounting: SlurmHarness) -> None:
    env, one = with_accounting.cluster.env, spec(with_accounting, ("true",))
    for profile, words in (
        (SlurmProfile(account="nobody"), "Invalid account"),
        (SlurmProfile(qos="golden"), "Invalid qos"),
        (SlurmProfile(extra=("--reservation=none",)), "reservation"),
    ):
        with pytest.raises(SpecError, match=words):
            SlurmQueue(profile, env=env).submit(one)
    with pytest.raises(UserError, match="no partition 'nowhere'; it has main, small"):
        SlurmQueue(SlurmProfile(partition="nowhere"), env=env).submit(one)
    assert dict(with_accounting.queue.find([one.tag])) == {}


def test_limits_of_partitions_and_accounts(with_accounting: SlurmHarness) -> None:
    cluster = with_accounting.cluster
    small = SlurmQueue(SlurmProfile(partition="small"), env=cluster.env).limits()
    assert (small.nodes, small.max_nodes, small.max_walltime_s, small.max_array) == (
        2,
        1,
        600,
        1001,
    )
    assert (small.shape.cores, small.shape.memory_bytes) == (2, 1000 * 1024**2)
    cluster.run(
        "sacctmgr",
        "-i",
        "modify",
        "user",
        cluster.place.user,
        "set",
        "MaxSubmitJobs=3",
        "MaxWall=00:30:00",
    )
    try:
        limited = SlurmQueue(env=cluster.env)
        assert (limited.limits().max_jobs, limited.limits().max_walltime_s) == (3, 1800)
        jobs = [limited.submit(spec(with_accounting, ("sleep", "500"), nodes=8)) for _ in range(3)]
        # One too many is refused for now, not for ever.
        with pytest.raises(QueueError, match="MaxSubmitJobLimit"):
            limited.submit(spec(with_accounting, ("true",)))
        limited.cancel(jobs)
    finally:
        cluster.run(
            "sacctmgr",
            "-i",
            "modify",
            "user",
            cluster.place.user,
            "set",
            "MaxSubmitJobs=-1",
            "MaxWall=-1",
        )


@pytest.mark.parametrize("accounting", [False, True])
def test_forgotten_jobs_are_absent_or_come_from_the_accounts(
    accounting: bool, tmp_path: Path
) -> None:
    if reason := missing(accounting):
        pytest.skip(f"no private Slurm: {reason}")
    with SlurmCluster(Settings(nodes=2, accounting=accounting, min_job_age_s=2)) as cluster:
        harness = slurm_harness(cluster, tmp_path)
        one = spec(harness, harness.failing(5))
        job = harness.queue.submit(one)
        before = wait_state(harness, job, JobState.ENDED)
        # The controller looks for old jobs only now and then.
        wait_for(
            harness,
            "the controller to forget",
            lambda: not cluster.run("squeue", "-h", "-t", "all"),
        )
        after = harness.queue.status([job])
        if not accounting:
            assert dict(after) == {}
            return
        assert (after[job].state, after[job].exit_code) == (JobState.ENDED, 5)
        assert (after[job].submitted_s, after[job].ended_s) == (before.submitted_s, before.ended_s)
        assert dict(harness.queue.find([one.tag])) == {one.tag: job}


def test_snapshot_leaves_out_jobs_that_are_not_in_line(harness: SlurmHarness) -> None:
    queue, run = harness.queue, harness.cluster.run
    first = queue.submit(spec(harness, harness.sleeping(500), nodes=8))
    wait_state(harness, first, JobState.RUNNING)
    held = queue.submit(spec(harness, ("true",)))
    run("scontrol", "hold", held)
    after = run(
        "sbatch", "--parsable", f"--dependency=afterok:{first}", "-o", "/dev/null", "--wrap=true"
    ).strip()
    late = queue.submit(spec(harness, ("true",)))
    urgent = queue.submit(spec(harness, ("true",)))
    run("scontrol", "update", f"JobId={urgent}", "Priority=4000000")
    assert [job.id for job in queue.snapshot().jobs] == [first, urgent, late]
    assert {held, after} & {job.id for job in queue.snapshot().jobs} == set()


def test_announced_maintenance_is_in_the_forecast_as_slurm_itself_has_it(
    harness: SlurmHarness,
) -> None:
    slurm, now = harness.cluster, time.time()
    when = (
        "starttime=now+30minutes",
        "duration=60",
        "flags=maint,ignore_jobs",
        f"users={getpass.getuser()}",
    )
    slurm.run("scontrol", "create", "reservation", "reservationname=service", *when, "nodes=n[1-6]")
    try:
        ((start_s, end_s, closed),) = harness.queue.snapshot().closures
        assert (closed, end_s - start_s) == (6, 3600)
        assert start_s - now == pytest.approx(1800, abs=60)
        twin = Twin(harness.queue, time.time)
        for nodes, minutes in ((1, 20), (8, 20), (2, 90)):
            assert int(twin.waits_s(np.array([nodes]), np.array([60 * minutes]))[0]) == 0
            assert harness.queue.probe(nodes, 60 * minutes) == pytest.approx(time.time(), abs=30)
        ours_s = time.time() + int(twin.waits_s(np.array([3]), np.array([90 * 60]))[0])
        late = harness.queue.submit(spec(harness, ("true",), nodes=3, walltime_s=90 * 60))
        wait_for(
            harness,
            "an estimate",
            lambda: bool(harness.queue.status([late])[late].expected_start_s),
        )
        assert harness.queue.status([late])[late].expected_start_s == pytest.approx(ours_s, abs=70)
        harness.queue.cancel([late])
    finally:
        slurm.run("scontrol", "delete", "reservation=service")
    asked_anew = SlurmQueue(env=slurm.env)  # one that has asked keeps the answer for minutes
    assert asked_anew.snapshot().closures == ()


def test_the_job_does_not_see_how_windrow_asks(harness: SlurmHarness) -> None:
    one = spec(
        harness, ("sh", "-c", 'echo "${SLURM_TIME_FORMAT-unset} $SLURM_JOB_NUM_NODES"'), nodes=2
    )
    wait_state(harness, harness.queue.submit(one), JobState.ENDED)
    assert Path(one.output).read_text() == "unset 2\n"


def test_the_shown_command_submits_the_job(harness: SlurmHarness) -> None:
    one = spec(harness, ("printf", "%s", "it's $HOME\n#SBATCH --nodes=7\nEOF\n"))
    (shown,) = harness.queue.commands([one])
    subprocess.run(
        ["sh", "-c", shown], env=harness.cluster.env, check=True, capture_output=True, timeout=30
    )
    wait_state(harness, harness.queue.find([one.tag])[one.tag], JobState.ENDED)
    assert Path(one.output).read_text() == "it's $HOME\n#SBATCH --nodes=7\nEOF\n"


def test_a_cluster_leaves_nothing_behind() -> None:
    if reason := missing():
        pytest.skip(f"no private Slurm: {reason}")
    cluster = SlurmCluster(Settings(nodes=2)).start()
    # A job that ignores every polite word, and a child of it that has left its session.
    stubborn = "trap '' TERM HUP INT; setsid sleep 98765 & sleep 98765"
    cluster.run("sbatch", "-N2", "-t", "5", "-o", "/dev/null", f"--wrap={stubborn}")
    deadline = time.monotonic() + 30
    while len(_sleepers()) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(_sleepers()) == 2
    cluster.close()
    assert _sleepers() == []
    assert _mentioning(str(cluster.place.directory)) == []
    assert not cluster.place.directory.exists()
    cluster.close()


def test_a_cluster_stops_at_ctrl_c() -> None:
    if reason := missing():
        pytest.skip(f"no private Slurm: {reason}")
    root = Path(__file__).resolve().parents[2]
    argv = [sys.executable, "-m", "tests.slurm.cluster", "--nodes", "2"]
    program = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=root)
    assert program.stdout is not None
    program.stdout.readline()
    directory = (
        program.stdout.readline()
        .strip()
        .removeprefix("export SLURM_CONF=")
        .removesuffix("/slurm.conf")
    )
    assert Path(directory).is_dir()
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=30)
    assert program.returncode == 0
    assert not Path(directory).exists()
    assert _mentioning(directory) == []


def test_where_slurm_is_missing_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.slurm.cluster.PATH", "/nowhere")
    assert "slurmctld" in missing()
    assert "mariadbd" not in missing()
    assert "mariadbd" in missing(accounting=True)
    with pytest.raises(ClusterError, match="tests/slurm/install"):
        SlurmCluster()


def _sleepers() -> list[int]:
    return [pid for pid in _pids() if _read(pid, "cmdline") == b"sleep\x0098765\0"]


def _mentioning(directory: str) -> list[int]:
    return [
        pid for pid in _pids() if pid != os.getpid() and directory.encode() in _read(pid, "environ")
    ]


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _read(pid: int, what: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:
        return b""
