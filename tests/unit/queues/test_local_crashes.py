"""The server of the local queue may be killed anywhere: nothing is lost, nothing runs twice, exit
codes are learned."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.unit.queues.contract import spec, wait_for, wait_over, wait_state
from tests.unit.queues.test_local import LocalHarness, kill_server, server_pid
from tests.waiting import children, is_alive, wait_until

from windrow.queues.local.queue import LocalQueue
from windrow.queues.local.rendezvous import is_served, start_server
from windrow.queues.local.supervisor import claimant, outcome
from windrow.queues.port import JobState, QueueError


def number_of(job: str) -> int:
    """A job as its folder knows it."""
    return int(job.rpartition(".")[2])


# A server that is killed, as by kill -9, at one place: before or after the nth call of one of its
# functions.
CRASHING = """
import os, signal, sys
from pathlib import Path
from windrow.queues.local import supervisor
from windrow.queues.local import server as local_server
from windrow.queues.local import store as local_store
owner, name, when, folder = sys.argv[1:]
place = {"store": local_store.QueueStore, "supervisor": supervisor}[owner]
real = getattr(place, name)
def dying(*values, **named):
    if when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    real(*values, **named)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(place, name, dying)
sys.exit(local_server.main(Path(folder)))
"""

# A server whose supervisors dawdle before they claim their jobs.
SLOW = """
import sys, time
from pathlib import Path
from windrow.queues.local import supervisor
from windrow.queues.local import server as local_server
real = supervisor.claim
def slow(*values):
    time.sleep(float(sys.argv[1]))
    return real(*values)
supervisor.claim = slow
sys.exit(local_server.main(Path(sys.argv[2])))
"""


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalHarness]:
    made = LocalHarness(LocalQueue(tmp_path / "queue", nodes=4, grace_s=0.2), tmp_path)
    yield made
    made.clean()
    kill_server(made.queue.folder)


def serve(program: str, *arguments: str) -> None:
    """Start a server that is not quite sound."""
    subprocess.run([sys.executable, "-c", program, *arguments], timeout=60, check=True)


def tracing(local: LocalHarness, code: int, sleep_s: float = 0.0) -> tuple[str, ...]:
    """A command that leaves one line per run and ends with this code."""
    return ("sh", "-c", f"echo {code} >> '{local.folder}/trace'; sleep {sleep_s}; exit {code}")


def traces(local: LocalHarness) -> list[int]:
    return sorted(int(line) for line in (local.folder / "trace").read_text().split())


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("store", "start"),
        ("store", "launch"),
        ("supervisor", "fork_supervisor"),
        ("supervisor", "outcome"),
        ("store", "finish"),
        ("supervisor", "clear"),
    ],
)
def test_killed_at_each_step_of_a_job(
    local: LocalHarness, owner: str, name: str, when: str
) -> None:
    folder = local.queue.folder
    serve(CRASHING, owner, name, when, str(folder))
    doomed = server_pid(folder)
    job = local.queue.submit(spec(local, tracing(local, 7)))
    wait_for(local, "the crash", lambda: not is_alive(doomed))
    assert wait_state(local, job, JobState.ENDED).exit_code == 7
    assert traces(local) == [7]
    kill_server(folder)
    start_server(folder)
    files = folder / "jobs"
    wait_for(
        local,
        "no files of jobs that are over",
        lambda: [f for f in files.iterdir() if f.suffix == ".exit"] == [],
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_killed_again_and_again(local: LocalHarness, seed: int) -> None:
    chance = random.Random(seed)
    jobs = {}
    for code in range(1, 25):
        jobs[
            local.queue.submit(spec(local, tracing(local, code, 0.02), nodes=chance.randint(1, 4)))
        ] = code
        if chance.random() < 0.4:
            time.sleep(chance.random() * 0.05)
            kill_server(local.queue.folder)
    over = wait_over(local, jobs)
    assert {job: s.exit_code for job, s in over.items()} == jobs
    assert traces(local) == sorted(jobs.values())
    spans = {job: (s.started_s or 0.0, s.ended_s or 0.0) for job, s in over.items()}
    assert all(start_s <= end_s for start_s, end_s in spans.values())


def test_jobs_go_on_without_a_server_and_time_still_counts(local: LocalHarness) -> None:
    ends = local.queue.submit(spec(local, tracing(local, 3, 0.3)))
    endless = local.queue.submit(spec(local, ("sleep", "600"), walltime_s=1))
    for number in map(
        number_of, (ends, endless)
    ):  # before a supervisor has it, only another server would start it
        wait_for(
            local,
            "a supervisor",
            lambda n=number: claimant(local.queue.folder, n) is not None,  # type: ignore[misc]
        )
    kill_server(local.queue.folder)
    wait_until(lambda: all(outcome(local.queue.folder, number_of(job)) for job in (ends, endless)))
    assert not is_served(local.queue.folder)
    back_s = time.time()
    over = wait_over(local, [ends, endless])
    assert (over[ends].state, over[ends].exit_code) == (JobState.ENDED, 3)
    assert over[endless].state is JobState.TIMED_OUT
    # The times are those of the ends, not of their discovery.
    for job, least_s in ((ends, 0.3), (endless, 1.0)):
        ended_s, started_s = over[job].ended_s, over[job].started_s
        assert ended_s is not None
        assert started_s is not None
        assert started_s + least_s <= ended_s < back_s


def test_an_adopted_job_is_cancelled(local: LocalHarness) -> None:
    job = local.queue.submit(spec(local, ("sleep", "600")))
    wait_state(local, job, JobState.RUNNING)
    kill_server(local.queue.folder)
    local.queue.cancel([job])
    wait_state(local, job, JobState.CANCELLED)


def test_a_supervisor_that_comes_late_finds_the_job_done(local: LocalHarness) -> None:
    """Its server died, and the next one's supervisor ran the whole job meanwhile."""
    serve(SLOW, "0.8", str(local.queue.folder))
    job = local.queue.submit(spec(local, tracing(local, 4)))
    wait_state(local, job, JobState.RUNNING)
    wait_until(lambda: children(server_pid(local.queue.folder)))
    late = children(server_pid(local.queue.folder))
    kill_server(local.queue.folder)
    assert wait_state(local, job, JobState.ENDED).exit_code == 4
    wait_until(lambda: not any(map(is_alive, late)))
    assert traces(local) == [4]


def test_the_supervisor_of_a_dead_server_may_win(local: LocalHarness) -> None:
    """The next server's supervisor gives way, and the server watches the other."""
    serve(SLOW, "0.4", str(local.queue.folder))
    job = local.queue.submit(spec(local, tracing(local, 5, 0.8)))
    wait_state(local, job, JobState.RUNNING)
    kill_server(local.queue.folder)
    serve(SLOW, "0.7", str(local.queue.folder))
    assert wait_state(local, job, JobState.ENDED).exit_code == 5
    assert traces(local) == [5]


def claimed_by(local: LocalHarness, job: str) -> int:
    file = local.queue.folder / "jobs" / f"{number_of(job)}.claim"
    wait_for(local, "the claim", file.exists)
    return int(json.loads(file.read_text())["pid"])


def test_a_job_whose_supervisor_is_killed_is_over_and_gone(local: LocalHarness) -> None:
    one = spec(local, ("sh", "-c", "setsid sleep 600 & echo $!; wait"))
    job = local.queue.submit(one)
    output = Path(one.output)
    wait_for(local, "the child", lambda: output.exists() and output.read_text().endswith("\n"))
    os.kill(claimed_by(local, job), signal.SIGKILL)
    assert "killed" in wait_state(local, job, JobState.KILLED).reason
    wait_for(local, "the end of the child", lambda: not is_alive(int(output.read_text())))


def test_a_process_number_that_came_again_is_not_mistaken(local: LocalHarness) -> None:
    """The claim names a process that lives, but began at another time."""
    job = local.queue.submit(spec(local, ("sleep", "600")))
    supervisor = claimed_by(local, job)
    kill_server(local.queue.folder)
    os.kill(supervisor, signal.SIGKILL)
    time.sleep(0.05)  # start times are known to a hundredth of a second
    stranger = subprocess.Popen(["sleep", "600"])
    file = local.queue.folder / "jobs" / f"{number_of(job)}.claim"
    file.write_text(json.dumps({**json.loads(file.read_text()), "pid": stranger.pid}))
    try:
        wait_state(local, job, JobState.KILLED)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_what_ran_when_the_machine_went_down_does_not_run_again(local: LocalHarness) -> None:
    job = local.queue.submit(spec(local, tracing(local, 1, 0.1)))
    wait_state(local, job, JobState.RUNNING)
    wait_for(local, "the trace", (local.folder / "trace").exists)
    kill_server(local.queue.folder)
    with sqlite3.connect(local.queue.folder / "queue.sqlite") as db:
        db.execute("UPDATE jobs SET boot = 'another'")
    assert wait_state(local, job, JobState.NODE_FAILED).reason == "the machine was restarted"
    assert traces(local) == [1]


def servers(folder: Path) -> list[int]:
    """Processes with this folder on their command line, supervisors aside: those have sessions of
    their own."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with suppress(FileNotFoundError, ProcessLookupError):  # it may end while we look
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"windrow.queues.local.server" in words and os.fsencode(folder) in words:
                found.append(int(entry.name))
    return found


@pytest.mark.slow
def test_there_is_never_a_second_server(local: LocalHarness) -> None:
    command = [sys.executable, "-P", "-m", "windrow.queues.local.server", str(local.queue.folder)]
    starters = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(4)]
    assert [starter.wait(60) for starter in starters] == [0] * 4
    assert servers(local.queue.folder) == [server_pid(local.queue.folder)]


@pytest.mark.slow
def test_an_idle_server_leaves_and_loses_no_job_in_leaving(tmp_path: Path) -> None:
    local = LocalHarness(LocalQueue(tmp_path / "queue", nodes=4, idle_s=0.0, grace_s=0.2), tmp_path)
    for code in range(1, 6):
        job = local.queue.submit(spec(local, tracing(local, code)))
        wait_for(local, "an end", lambda job=job: local.queue.status([job])[job].state.is_over)  # type: ignore[misc]
    assert traces(local) == list(range(1, 6))
    wait_for(local, "the server's leave", lambda: not is_served(local.queue.folder))


def test_files_that_are_not_the_queues_do_not_stop_it(local: LocalHarness) -> None:
    """A network file system keeps a file that was removed while open, under a name of its own."""
    stray = local.queue.folder / "jobs" / ".nfs000000000001a2b300000001"
    stray.touch()
    kill_server(local.queue.folder)
    job = local.queue.submit(spec(local, ("true",)))
    wait_for(local, "its end", lambda: local.queue.status([job])[job].state.is_over)
    stray.unlink()


def test_a_server_that_waits_sleeps(local: LocalHarness) -> None:
    """It wakes up when somebody knocks or a job ends, and not to look around."""
    jobs = [local.queue.submit(spec(local, ("sleep", "600"), nodes=4)) for _ in range(3)]
    wait_state(local, jobs[0], JobState.RUNNING)
    status = Path(f"/proc/{server_pid(local.queue.folder)}/status")

    def awakenings() -> int:
        words = status.read_text().split()
        return int(words[words.index("voluntary_ctxt_switches:") + 1])

    before = -1
    while before != (before := awakenings()):  # it has gone to sleep
        time.sleep(0.2)
    for _ in range(10):
        local.queue.status(jobs)
        time.sleep(0.05)
    assert awakenings() - before <= 1


def test_no_server_no_submission(local: LocalHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    one = spec(local, ("true",))
    with pytest.raises(QueueError, match="failed to start: exit code 1"):
        local.queue.submit(one)
    assert dict(local.queue.find([one.tag])) == {}
    monkeypatch.undo()
    start_server(local.queue.folder)
