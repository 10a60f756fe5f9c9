"""The queue on this machine keeps the contract, with real processes and real time."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import pytest
from tests.unit.queues.contract import (
    CommandContract,
    Harness,
    QueueContract,
    WalltimeContract,
    fresh_tag,
    spec,
    wait_for,
    wait_over,
    wait_state,
)
from tests.waiting import is_alive

from windrow.agent.machine import this_machine
from windrow.errors import UserError
from windrow.model.resources import NodeShape
from windrow.queues.command import user_name
from windrow.queues.local.queue import LocalQueue
from windrow.queues.local.rendezvous import is_served, start_server
from windrow.queues.port import JobState, SpecError


@dataclass
class LocalHarness:
    queue: LocalQueue
    folder: Path
    nodes: int = 4
    tick_s: float = 0.05
    smallest_walltime_s: int = 1
    patience_s: float = 200.0

    def sleeping(self, ticks: float) -> tuple[str, ...]:
        return ("sleep", str(ticks * self.tick_s))

    def failing(self, code: int) -> tuple[str, ...]:
        return ("sh", "-c", f"exit {code}")

    def pause(self) -> None:
        time.sleep(0.01)

    def now_s(self) -> float:
        return time.time()

    def clean(self) -> None:
        """End everything that the test left."""
        jobs = [job.id for job in self.queue.snapshot().jobs]
        self.queue.cancel(jobs)
        wait_over(self, jobs)


def server_pid(folder: Path) -> int:
    return int((folder / "lock").read_text())


def kill_server(folder: Path) -> None:
    """kill -9, as far as there is a server."""
    if is_served(folder):
        os.kill(server_pid(folder), signal.SIGKILL)
        while is_served(folder):
            time.sleep(0.002)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalHarness]:
    """One server for many tests; a test leaves it empty."""
    folder = tmp_path_factory.mktemp("local")
    made = LocalHarness(LocalQueue(folder / "queue", nodes=4, cores=1, grace_s=0.2), folder)
    yield made
    kill_server(made.queue.folder)


@pytest.fixture
def local(shared: LocalHarness, tmp_path: Path) -> Iterator[LocalHarness]:
    made = replace(shared, folder=tmp_path)
    yield made
    made.clean()


class TestLocal(QueueContract, WalltimeContract, CommandContract):
    @pytest.fixture
    def harness(self, local: LocalHarness) -> Harness:
        return local


def run(local: LocalHarness, script: str, **fields: object) -> tuple[JobState, int | None, str]:
    """State, exit code and output of a shell script, run as a job."""
    one = replace(spec(local, ("sh", "-c", script)), **fields)  # type: ignore[arg-type]
    job = local.queue.submit(one)
    over = wait_over(local, [job])[job]
    output = Path(one.output)
    return over.state, over.exit_code, output.read_text() if output.exists() else ""


def test_a_job_knows_its_size_and_gets_its_submitters_environment(
    local: LocalHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIELD", "two\nlines $(x)")
    told = run(local, 'echo "$WINDROW_JOB_NODES $WINDROW_QUEUE $FIELD"', nodes=3)
    assert told == (JobState.ENDED, 0, "3 local two\nlines $(x)\n")


def test_a_job_has_its_submitters_permissions_and_not_those_of_who_started_the_server(
    local: LocalHarness,
) -> None:
    start_server(local.queue.folder)
    before = os.umask(0o027)
    try:
        assert run(local, "umask") == (JobState.ENDED, 0, "0027\n")
    finally:
        os.umask(before)
    assert run(local, "umask") == (JobState.ENDED, 0, f"{before:04o}\n")


def test_a_job_inherits_no_open_files(local: LocalHarness) -> None:
    """One that had the server's lock or pipe would keep the next server from starting."""
    program = (
        "import os; print(len([f for f in range(1000) if os.path.exists(f'/proc/self/fd/{f}')]))"
    )
    one = spec(local, (sys.executable, "-c", program))
    wait_state(local, local.queue.submit(one), JobState.ENDED)
    assert Path(one.output).read_text() == "3\n"


def test_a_command_is_searched_by_its_submitters_path(
    local: LocalHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = local.folder / "bin" / "only-here"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nexit 42\n")
    tool.chmod(0o700)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=os.pathsep)
    job = local.queue.submit(spec(local, ("only-here",)))
    assert wait_state(local, job, JobState.ENDED).exit_code == 42


def test_a_command_that_does_not_exist_is_told_as_shells_do(local: LocalHarness) -> None:
    one = spec(local, ("no-such-program-anywhere",))
    job = local.queue.submit(one)
    assert wait_state(local, job, JobState.ENDED).exit_code == 127
    assert "no-such-program-anywhere: No such file" in Path(one.output).read_text()
    two = spec(local, (str(local.folder),))
    assert wait_state(local, local.queue.submit(two), JobState.ENDED).exit_code == 126


@pytest.mark.parametrize("wrong", ["workdir", "output"])
def test_a_job_that_cannot_begin_says_why(local: LocalHarness, wrong: str) -> None:
    missing = str(local.folder / "nowhere" / "x")
    one = spec(local, ("true",))
    job = local.queue.submit(
        replace(one, workdir=missing) if wrong == "workdir" else replace(one, output=missing)
    )
    over = wait_state(local, job, JobState.KILLED)
    assert over.exit_code is None
    assert over.reason == f"{missing}: No such file or directory"


def test_death_by_signal_is_told(local: LocalHarness) -> None:
    assert run(local, "kill -SEGV $$")[:2] == (JobState.ENDED, 128 + signal.SIGSEGV)
    assert run(local, "kill -KILL $$")[:2] == (JobState.KILLED, 128 + signal.SIGKILL)


def test_signals_work_inside_a_job(local: LocalHarness) -> None:
    """What the server blocks and ignores must not pass on: a job with SIGPIPE ignored never
    ends."""
    assert run(local, "yes | head -n 1; trap 'exit 5' TERM; kill -TERM $$; exit 6") == (
        JobState.ENDED,
        5,
        "y\n",
    )


def test_time_to_tidy_up_and_no_more(local: LocalHarness) -> None:
    state, code, output = run(
        local, "trap 'echo tidy; exit 9' TERM; while :; do sleep 0.01; done", walltime_s=1
    )
    assert (state, code, output.splitlines()[-1]) == (JobState.TIMED_OUT, 9, "tidy")
    begin_s = time.time()
    state, code, _ = run(local, "trap '' TERM; while :; do sleep 0.01; done", walltime_s=1)
    assert (state, code) == (JobState.TIMED_OUT, 128 + signal.SIGKILL)
    assert time.time() - begin_s >= 1.2


def test_nothing_of_a_job_outlives_it(local: LocalHarness) -> None:
    _, code, output = run(local, "sleep 600 & echo $!")
    assert code == 0
    wait_for(local, "the end of the sleep", lambda: not is_alive(int(output)))


def test_a_cancelled_job_takes_its_children_along(local: LocalHarness) -> None:
    one = spec(local, ("sh", "-c", "sleep 600 & echo $!; wait"))
    job = local.queue.submit(one)
    output = Path(one.output)
    wait_for(local, "the child", lambda: output.exists() and output.read_text().endswith("\n"))
    local.queue.cancel([job])
    wait_state(local, job, JobState.CANCELLED)
    wait_for(local, "the end of the child", lambda: not is_alive(int(output.read_text())))


def test_estimates_of_waiting_jobs_are_told(local: LocalHarness) -> None:
    first = local.queue.submit(spec(local, ("sleep", "60"), nodes=4, walltime_s=100))
    wait_state(local, first, JobState.RUNNING)
    second = local.queue.submit(spec(local, ("true",), nodes=4, walltime_s=50))
    third = local.queue.submit(spec(local, ("true",), nodes=4, walltime_s=50))
    told = local.queue.status([first, second, third])
    began_s = told[first].started_s
    assert began_s is not None
    assert told[second].expected_start_s == pytest.approx(began_s + 100, abs=1)
    assert told[third].expected_start_s == pytest.approx(began_s + 150, abs=1)
    assert local.queue.probe(1, 10) == pytest.approx(began_s + 200, abs=1)
    with pytest.raises(SpecError, match="1 to 4"):
        local.queue.probe(5, 10)


def test_backfilling_passes_the_head_and_first_come_does_not(
    local: LocalHarness, tmp_path: Path
) -> None:
    strict = LocalHarness(
        LocalQueue(tmp_path / "fcfs", nodes=4, policy="fcfs", grace_s=0.2), tmp_path
    )
    for harness, expected in ((local, JobState.ENDED), (strict, JobState.WAITING)):
        first = harness.queue.submit(spec(harness, ("sleep", "60"), nodes=3, walltime_s=100))
        wait_state(harness, first, JobState.RUNNING)
        head = harness.queue.submit(spec(harness, ("true",), nodes=4, walltime_s=50))
        late = harness.queue.submit(spec(harness, ("true",), nodes=1, walltime_s=200))
        fits = harness.queue.submit(spec(harness, ("true",), nodes=1, walltime_s=50))
        if expected is JobState.ENDED:
            wait_state(harness, fits, JobState.ENDED)
        else:
            time.sleep(0.2)
        told = harness.queue.status([head, late, fits])
        assert [told[job].state for job in (head, late, fits)] == [
            JobState.WAITING,
            JobState.WAITING,
            expected,
        ]
        harness.clean()
    kill_server(strict.queue.folder)


def test_a_tag_belongs_to_one_job(local: LocalHarness) -> None:
    one = spec(local, ("true",))
    job = local.queue.submit(one)
    with pytest.raises(SpecError, match="its own tag"):
        local.queue.submit(one)
    fresh = replace(one, tag=fresh_tag())
    with pytest.raises(SpecError, match="its own tag"):
        local.queue.submit_array([fresh, one])
    assert dict(local.queue.find([one.tag, fresh.tag])) == {one.tag: job}


@pytest.mark.slow
def test_several_clients_at_once(local: LocalHarness) -> None:
    program = """
import sys
from windrow.queues.local.queue import LocalQueue
from windrow.queues.port import JobSpec
queue, who, folder = LocalQueue(sys.argv[1], nodes=4), sys.argv[2], sys.argv[3]
for i in range(5):
    print(queue.submit(JobSpec(f"{who}-{i}", 1, 60, ("true",), folder, f"{who}-{i}.out")))
"""
    prefix = fresh_tag()
    command = [sys.executable, "-c", program, str(local.queue.folder.parent)]
    clients = [
        subprocess.Popen(
            [*command, f"{prefix}-{n}", str(local.folder)], stdout=subprocess.PIPE, text=True
        )
        for n in range(4)
    ]
    jobs = [line for client in clients for line in client.communicate(timeout=60)[0].split()]
    assert len(set(jobs)) == 20
    over = wait_over(local, jobs)
    assert {(s.state, s.exit_code) for s in over.values()} == {(JobState.ENDED, 0)}


def test_other_settings_are_another_queue(tmp_path: Path) -> None:
    """No project changes another's queue, and a job is followed by whoever knows its id, whatever
    the settings are."""
    four = LocalHarness(LocalQueue(tmp_path, nodes=4, grace_s=0.2), tmp_path)
    job = four.queue.submit(spec(four, ("sleep", "60"), nodes=4))
    eight = LocalHarness(LocalQueue(tmp_path, nodes=8, grace_s=0.2), tmp_path)
    wide = eight.queue.submit(spec(eight, ("true",), nodes=8))
    assert wait_state(eight, wide, JobState.ENDED).exit_code == 0  # it did not wait for the four
    assert LocalQueue(tmp_path, nodes=4).settings == four.queue.settings
    assert (
        four.queue.limits().nodes,
        eight.queue.limits().nodes,
        LocalQueue(tmp_path).limits().nodes,
    ) == (4, 8, 1)
    assert job != wide
    assert eight.queue.snapshot().jobs == ()
    assert eight.queue.status([job, "queue-9x9-easy.1", "queue-../x.1"]).keys() == {job}
    LocalQueue(tmp_path).cancel([job])
    wait_state(eight, job, JobState.CANCELLED)
    for queue in (four.queue, eight.queue):
        kill_server(queue.folder)


def test_bad_settings_and_folders_get_one_clear_message(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown policy 'esy'; did you mean easy"):
        LocalQueue(tmp_path / "a", policy="esy")
    with pytest.raises(UserError, match="a queue has 1 to 10,000,000 nodes, not 0"):
        LocalQueue(tmp_path / "b", nodes=0)
    with pytest.raises(UserError, match="a node has 1 to"):
        LocalQueue(tmp_path / "c", cores=0)
    with pytest.raises(UserError, match="policy needs nodes"):
        LocalQueue(tmp_path / "c", policy="easy")
    with pytest.raises(UserError, match="cores = 9999, but this machine has"):
        LocalQueue(tmp_path / "c", cores=9999)
    open_to_all = tmp_path / "d" / "queue"
    open_to_all.mkdir(parents=True)
    open_to_all.chmod(0o755)
    with pytest.raises(UserError, match="chmod 700"):
        LocalQueue(tmp_path / "d")
    (tmp_path / "e").write_text("")
    with pytest.raises(UserError, match="its own folder"):
        LocalQueue(tmp_path / "e")


def test_without_settings_the_queue_is_this_machine_and_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    queue = LocalQueue()
    assert queue.folder == tmp_path / "windrow" / "queue"
    assert queue.folder.stat().st_mode & 0o777 == 0o700
    limits = queue.limits()
    assert (limits.nodes, limits.shape, limits.max_walltime_s, limits.starts_at_once) == (
        1,
        this_machine(),
        None,
        True,
    )
    assert LocalQueue(cores=1, memory_bytes=10**6).limits().shape == NodeShape(1, 10**6)


def test_a_user_without_a_name_has_a_queue_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs under a number of its own."""

    def nobody(uid: int) -> NoReturn:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    queue = LocalQueue(tmp_path / "queue")
    assert queue.snapshot().jobs == ()
    assert user_name() == str(os.getuid())
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match="set HOME or XDG_STATE_HOME"):
        LocalQueue()


@pytest.mark.parametrize("module", ["queue", "server"])
def test_nothing_heavy_is_loaded(module: str) -> None:
    program = (
        f"import sys, windrow.queues.local.{module}; print(sorted({{'numpy', 'numba', "
        f"'rich'}} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


def test_the_example_of_the_manual_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (
        Path(__file__).resolve().parents[3] / "docs" / "reference" / "local-queue.md"
    ).read_text()
    example = page.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(example, "local-queue.md", "exec"), names)
    assert (tmp_path / "first.out").read_text().strip() == os.uname().nodename
    for folder in (tmp_path / "queues").iterdir():
        kill_server(folder)
