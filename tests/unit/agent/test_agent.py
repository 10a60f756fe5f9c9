"""A real agent with real processes on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.agent.jobs import Run, shell, task

from windrow.agent.event_file import (
    AgentLeft,
    AgentStarted,
    AttemptFinished,
    AttemptStarted,
    TaskDeclined,
    Writer,
)
from windrow.agent.event_file import AttemptFailed as Failed
from windrow.model.attempt import DONE, Attempt

pytestmark = pytest.mark.slow


def test_children_start_after_their_parents_and_the_agent_leaves(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log"
    tasks = [
        shell(
            n,
            f"echo {n} >> '{log}'",
            parents=(n - 1,) if n else (),
            children=(n + 1,) if n < 4 else (),
        )
        for n in range(5)
    ]
    code, printed = run.run(*tasks)
    assert (code, printed) == (0, "")
    assert log.read_text().split() == ["0", "1", "2", "3", "4"]
    assert run.finished() == [0, 1, 2, 3, 4]
    assert run.events()[-1] == AgentLeft(run.events()[-1].at, DONE)
    times = [event.at for event in run.events()]
    assert times == sorted(times)


def test_odd_characters_reach_the_program_as_they_are(run: Run, tmp_path: Path) -> None:
    odd = [
        "a b",
        "'",
        '"',
        "$(touch x)",
        "; rm -rf",
        "new\nline",
        "*",
        "\\",
        "",
        "ü",
        os.fsdecode(b"\xff"),
    ]
    folder = tmp_path / "odd $(name)\n;'\""
    folder.mkdir()
    code = (
        "import os, sys; open('got', 'wb').write(b'\\0'.join(map(os.fsencode, [*sys.argv[1:], "
        "os.environ['ODD']])))"
    )
    run.run(
        task(
            0,
            sys.executable,
            "-c",
            code,
            *odd,
            workdir=str(folder),
            env={"ODD": odd[5]},
            outputs=("got",),
        )
    )
    assert run.finished() == [0]
    assert (folder / "got").read_bytes().split(b"\0") == [*map(os.fsencode, odd), b"new\nline"]
    assert [p.name for p in folder.iterdir()] == ["got"]


def test_tasks_know_who_they_are(run: Run) -> None:
    run.extra_env |= {"WINDROW_QUEUE": "local", "WINDROW_JOB_NODES": "2"}
    show = (
        "echo $WINDROW_RUN $WINDROW_TASK $WINDROW_ATTEMPT $WINDROW_CORES $OMP_NUM_THREADS "
        "$WINDROW_NODES"
    )
    own = shell(1, show, cores=2, attempts=4, env={"OMP_NUM_THREADS": "7", "WINDROW_TASK": "liar"})
    run.run(shell(0, show), own, shell(2, show, nodes=2), nodes=2)
    host = os.uname().nodename
    assert run.folder.task_out(0, 1).read_text() == "test t0 1 1 1\n"
    assert run.folder.task_out(1, 5).read_text() == "test t1 5 2 7\n"
    assert run.folder.task_out(2, 1).read_text() == f"test t2 1 2 {host},{host}\n"


def test_output_is_kept_and_empty_files_are_not(run: Run) -> None:
    run.run(shell(0, "echo out; echo err >&2"), task(1, "true"))
    assert run.folder.task_out(0, 1).read_text() == "out\nerr\n"
    assert run.folder.task_out(0, 1).stat().st_mode & 0o777 == 0o600
    assert [p.name for p in run.folder.out.iterdir()] == ["0.1"]


def test_a_failure_has_its_exit_code_and_last_lines_and_stops_its_descendants(run: Run) -> None:
    script = "seq 1 5000; exit 3"
    code, _ = run.run(
        shell(0, script, children=(1,)),
        task(1, "true", parents=(0,), children=(2,)),
        task(2, "true", parents=(1,)),
    )
    assert code == 0
    (failed,) = run.failed()
    assert (failed.of.exit, failed.of.signal, failed.final, failed.of.why) == (
        3,
        None,
        True,
        "exit code 3",
    )
    assert failed.of.tail.splitlines() == [str(n) for n in range(4981, 5001)]
    assert [event.task for event in run.of(TaskDeclined)] == [1, 2]
    assert "'t0', on which it depends, failed" in run.of(TaskDeclined)[0].why


def test_last_lines_cannot_steer_a_terminal(run: Run) -> None:
    run.run(
        shell(0, r"printf 'a\tb \033[1;31mred\033[0m \033]0;title\007 \302\233 \303\251\n'; exit 1")
    )
    assert run.failed()[0].of.tail == "a\tb red ]0;title  é"


def test_a_task_killed_from_outside_says_by_what(run: Run) -> None:
    run.run(shell(0, "kill -KILL $$"), shell(1, "kill -SEGV $$"))
    by = {failed.task: failed for failed in run.failed()}
    assert by[0].of.signal == 9
    assert "SIGKILL" in by[0].of.why
    assert "memory" in by[0].of.why
    assert (by[1].of.signal, by[1].of.exit) == (11, None)


def test_retries_are_as_many_as_said(run: Run, tmp_path: Path) -> None:
    third = f"echo x >> '{tmp_path}/tries'; test $(wc -l < '{tmp_path}/tries') -eq 3"
    run.run(shell(0, third, retries=5), shell(1, "echo $WINDROW_ATTEMPT; false", retries=2))
    assert run.finished() == [0]
    assert [(f.of.number, f.final) for f in run.failed() if f.task == 0] == [(1, False), (2, False)]
    assert [(f.of.number, f.final, f.of.tail) for f in run.failed() if f.task == 1] == [
        (1, False, "1"),
        (2, False, "2"),
        (3, True, "3"),
    ]


def test_a_missing_output_is_a_failure(run: Run, tmp_path: Path) -> None:
    here = {"workdir": str(tmp_path)}
    made = shell(0, "echo x > made", outputs=("made", str(tmp_path / "made")), **here)
    run.run(made, shell(1, "echo nothing; echo x > other", outputs=("other", "not made"), **here))
    assert run.finished() == [0]
    (failed,) = run.failed()
    assert failed.of.exit == 0
    assert failed.of.why == f"exit code 0, but its output {tmp_path}/not made is missing"
    assert failed.of.tail == "nothing"


def test_what_cannot_start_says_why(run: Run, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "text").chmod(0o755)
    run.run(
        task(0, "no-such-program-here"),
        task(1, "true", workdir=str(tmp_path / "nowhere")),
        task(2, str(tmp_path / "text")),
        task(3, "true", "a\0b"),
        task(4, "true"),
    )
    whys = {failed.task: failed.of.why for failed in run.failed()}
    assert whys[0] == "cannot start 'no-such-program-here': no such program on PATH"
    assert "working folder" in whys[1]
    assert "Exec format error" in whys[2]
    assert "null" in whys[3]
    assert run.finished() == [4]


def test_a_task_may_replace_its_own_working_folder(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    replaced = shell(0, f"rm -r '{folder}'; mkdir '{folder}'", workdir=str(folder), children=(1,))
    run.run(
        replaced, shell(1, "echo x > made", workdir=str(folder), parents=(0,), outputs=("made",))
    )
    assert run.finished() == [0, 1]


def test_a_link_to_nothing_is_no_output(run: Run, tmp_path: Path) -> None:
    run.run(shell(0, "ln -s nowhere made", workdir=str(tmp_path), outputs=("made",)))
    assert "made is missing" in run.failed()[0].of.why


def test_a_broken_events_file_of_another_job_stops_the_agent_and_is_named(run: Run) -> None:
    run.write(task(9, "true"), job=1)
    run.folder.events(1).write_text("no event\n")
    code, printed = run.run(task(0, "sleep", "100"), task(1, "true", parents=(9,)), job=2)
    assert code == 2
    assert "jobs/1/events:1: is not an event" in printed
    assert "Traceback" not in printed
    assert "jobs/1/events:1" in run.of(AgentLeft, 2)[0].why.about


def test_the_path_of_the_task_finds_its_program(run: Run, tmp_path: Path) -> None:
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    run.run(task(0, "mine", env={"PATH": str(tmp_path)}), task(1, "mine"))
    assert run.finished() == [0]
    assert run.failed()[0].task == 1


def test_a_program_found_beside_one_task_is_not_taken_for_another(run: Run, tmp_path: Path) -> None:
    for folder in ("first", "second"):
        (tmp_path / folder / "bin").mkdir(parents=True)
    program = tmp_path / "first" / "bin" / "ls"
    program.write_text("#!/bin/sh\necho mine\n")
    program.chmod(0o755)
    beside = {"env": {"PATH": "bin:/usr/bin:/bin"}}
    first = task(0, "ls", workdir=str(tmp_path / "first"), children=(1,), **beside)
    run.run(first, task(1, "ls", workdir=str(tmp_path / "second"), parents=(0,), **beside))
    assert run.finished() == [0, 1]
    assert run.folder.task_out(0, 1).read_text() == "mine\n"
    assert run.folder.task_out(1, 1).read_text() == "bin\n"


def test_programs_get_signals_as_the_system_made_them(run: Run) -> None:
    """A pipe whose reader leaves must end its writer, which it does not where SIGPIPE is
    ignored."""
    run.run(shell(0, "grep SigIgn /proc/self/status; grep SigBlk /proc/self/status"))
    masks = [
        int(line.split()[1], 16) for line in run.folder.task_out(0, 1).read_text().splitlines()
    ]
    ordinary = (1 << 31) - 1  # 32 and 33 belong to the C library
    hangup = (
        signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    )  # as under nohup, which holds for all that it starts
    assert [mask & ordinary for mask in masks] == [int(hangup), 0]


def test_peak_memory_and_cpu_time_are_measured(run: Run) -> None:
    big = "x = bytearray(150_000_000); x[::4096] = b'1' * len(x[::4096])"
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    run.run(
        task(0, sys.executable, "-c", big), task(1, sys.executable, "-c", busy), task(2, "true")
    )
    by = {event.task: event for event in run.of(AttemptFinished)}
    assert 150_000_000 < by[0].of.peak_bytes < 250_000_000
    assert by[1].of.cpu_s >= 0.3 > by[2].of.cpu_s
    assert by[1].of.cpu_s <= by[1].at - by[1].of.begun + 0.1, "it has but one thread"
    assert by[2].of.peak_bytes == 0  # below the agent's own, so it cannot be told
    assert all(event.at >= event.of.begun for event in by.values())


def test_no_more_runs_at_once_than_the_cores_allow(run: Run) -> None:
    run.run(*(shell(n, "sleep 0.05", cores=1 + n % 2) for n in range(12)), cores=3)
    held, most = 0, 0
    for event in run.events():
        if isinstance(event, AttemptStarted | AttemptFinished):
            held += (1 + event.task % 2) * (1 if isinstance(event, AttemptStarted) else -1)
            most = max(most, held)
    assert most == 3
    assert held == 0


def test_what_does_not_fit_before_the_deadline_is_not_started(run: Run) -> None:
    late = task(1, "true", expected_s=59, children=(2,))
    run.run(task(0, "true", expected_s=50), late, task(2, "true", parents=(1,)), walltime_s=60)
    assert run.finished() == [0]
    dropped = {event.task: event.why for event in run.of(TaskDeclined)}
    assert set(dropped) == {1, 2}
    assert dropped[1].startswith("no time left: it is expected to run 59 s")


def test_what_never_fits_the_nodes_is_dropped_at_once(run: Run) -> None:
    run.run(
        task(0, "true", cores=3),
        task(1, "true", nodes=2),
        task(2, "true", memory_bytes=11),
        memory_bytes=10,
    )
    assert [event.task for event in run.of(TaskDeclined)] == [0, 1, 2]


def test_a_job_runs_once(run: Run, tmp_path: Path) -> None:
    run.extra_env |= {"WINDROW_QUEUE": "local", "WINDROW_JOB_ID": "17"}
    run.run(shell(0, f"echo x >> '{tmp_path}/runs'"))
    before = run.folder.events(0).read_bytes()
    code, printed = run.run()
    assert code == 0
    assert "job 0 was already started by queue job 17 on" in printed
    assert (tmp_path / "runs").read_text() == "x\n"
    assert run.folder.events(0).read_bytes() == before
    assert run.of(AgentStarted)[0].queue_id == "17"


def test_parents_in_other_jobs_are_waited_for(run: Run) -> None:
    """One is done before the agent starts, one while it waits, in a job that did not exist when it
    began."""
    run.write(task(5, "true"), job=1)
    assert run.run(job=1)[0] == 0
    run.write(task(0, "true", parents=(5,)), task(1, "true", parents=(5, 6)), job=2)
    with run.begin(2) as agent:
        run.wait_for_start(0, job=2)
        assert run.finished(2) in ([], [0])
        run.write(task(6, "true"), job=3)
        assert run.run(job=3)[0] == 0
        agent.communicate(timeout=30)
    assert run.finished(2) == [0, 1]


@pytest.mark.parametrize("by", ["failure", "manager"])
def test_a_parent_that_fails_elsewhere_ends_the_wait(run: Run, by: str) -> None:
    run.write(task(0, "true", parents=(9,), children=(1,)), task(1, "true", parents=(0,)), job=2)
    with run.begin(2) as agent:
        if by == "failure":
            run.run(task(9, "false"), job=1)
        else:
            run.folder.abandoned.write_text(json.dumps({"task": 9}) + "\n")
        agent.communicate(timeout=30)
    assert agent.returncode == 0
    assert [event.task for event in run.of(TaskDeclined, 2)] == [0, 1]


def test_what_was_known_when_the_job_was_written_is_no_news(run: Run) -> None:
    """A failure in a job that is over must not end the second try in a later job."""
    run.write(task(9, "false"), job=1)
    writer = Writer(run.folder.events(1))
    writer.add(Failed(1.0, Attempt(9, 1, exit=1, why="exit code 1", begun=0.5), True))
    writer.close()
    run.run(task(9, "true"), job=2)
    run.run(task(0, "true", parents=(9,)), job=3, over=(1,))
    assert run.finished(3) == [0]


def test_waiting_for_others_ends_when_the_time_does(run: Run) -> None:
    run.run(task(0, "true", parents=(9,), expected_s=57.5), walltime_s=60)
    (dropped,) = run.of(TaskDeclined)
    assert dropped.why.startswith("no time left")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "usage: "),
        (["x", "one"], "usage: "),
        (["nowhere", "3"], "nowhere/jobs/3/job.json: cannot be read"),
    ],
)
def test_wrong_arguments_are_told(arguments: list[str], message: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "windrow.agent", *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert answer.returncode == 2
    assert message in answer.stderr
    assert "Traceback" not in answer.stderr


def test_the_agent_needs_nothing_but_the_standard_library() -> None:
    code = (
        "import sys, windrow.agent.__main__, windrow.agent.node\n"
        "print(*sorted(m.split('.')[0] for m in sys.modules))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    foreign = set(answer.stdout.split()) - set(sys.stdlib_module_names) - {"windrow"}
    assert {name for name in foreign if not name.startswith(("_", "sitecustomize"))} == set()
