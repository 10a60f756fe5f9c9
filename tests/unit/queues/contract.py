"""What every batch queue must do, as tests. An implementation inherits the classes and says how to
make a queue.

    class TestLocal(QueueContract, WalltimeContract, CommandContract):
        @pytest.fixture
        def harness(self, tmp_path: Path) -> Iterator[Harness]: ...

Rule 1: the queue of a harness is empty when a test begins, and all of its nodes are the test's.
Rule 2: tests count time in ticks, and a tick is as long as the queue needs it to be. They never
assume that something is quick: they wait for it until patience ends.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from windrow.queues.port import JobSpec, JobState, JobStatus, Queue, SpecError

_COUNTER = itertools.count()
ODD_TEXTS = (
    "two words",
    "it's",
    'a "quoted" one',
    "line\nbreak",
    "; exit 9",
    "$(exit 9)",
    "`exit 9`",
    "$HOME",
    "a\\b",
    "*",
    "~",
    "%j %A",
    "#SBATCH",
    "-n",
    "é世",
    "tab\there",
    "",
)
ODD_NAME = 'o\'d "d" $(x) ; `y` %j é &|<>*#'


class Harness(Protocol):
    """A queue under test, and the world around it."""

    nodes: int
    tick_s: float
    """The shortest time in which the queue notices things, in its own clock."""
    smallest_walltime_s: int
    patience_s: float
    """How long, in the queue's clock, a test waits for what must come."""
    folder: Path
    """Where jobs may write."""

    @property
    def queue(self) -> Queue:
        """The same queue at every call."""

    def sleeping(self, ticks: float) -> tuple[str, ...]:
        """A command that runs for so many ticks and succeeds."""

    def failing(self, code: int) -> tuple[str, ...]:
        """A command that ends at once with this exit code."""

    def pause(self) -> None:
        """Let about a tick go by."""

    def now_s(self) -> float:
        """The time by the queue's clock."""


def fresh_tag() -> str:
    """A tag that no job ever had, and to which a number can be added."""
    return f"contract-{os.getpid()}-{time.time_ns()}-{next(_COUNTER)}"


def spec(
    harness: Harness,
    command: Sequence[str],
    *,
    nodes: int = 1,
    walltime_s: int | None = None,
    tag: str | None = None,
    workdir: Path | None = None,
    output: str | None = None,
) -> JobSpec:
    """A job with whatever the test does not care about filled in."""
    tag = tag or fresh_tag()
    return JobSpec(
        tag=tag,
        nodes=nodes,
        walltime_s=walltime_s or max(harness.smallest_walltime_s, 600),
        command=tuple(command),
        workdir=str(workdir or harness.folder),
        output=str(harness.folder / f"{tag}.out") if output is None else output,
    )


def wait_for(harness: Harness, what: str, holds: Callable[[], bool]) -> None:
    """Let time pass until `holds`, or fail."""
    give_up_s = harness.now_s() + harness.patience_s
    while not holds():
        assert harness.now_s() < give_up_s, f"waited {harness.patience_s} s for: {what}"
        harness.pause()


def wait_state(harness: Harness, job: str, state: JobState) -> JobStatus:
    """Wait until the job is in this state; fail at once where it ends in another."""

    def arrived() -> bool:
        now = harness.queue.status([job]).get(job)
        if now is not None and now.state.is_over and state is not now.state:
            pytest.fail(
                f"job {job} is {now.state} ({now.reason!r}, exit code {now.exit_code}), never "
                f"{state}"
            )
        return now is not None and now.state is state

    wait_for(harness, f"job {job} {state}", arrived)
    return harness.queue.status([job])[job]


def wait_over(harness: Harness, jobs: Iterable[str]) -> dict[str, JobStatus]:
    """Wait until all these jobs are over."""
    ids = list(jobs)

    def all_over() -> bool:
        known = harness.queue.status(ids)
        return len(known) == len(ids) and all(s.state.is_over for s in known.values())

    wait_for(harness, f"the end of {len(ids)} jobs", all_over)
    return dict(harness.queue.status(ids))


def most_nodes_at_once(spans: Sequence[tuple[float, float, int]]) -> int:
    """The most nodes in use at any time, from (start, end, nodes); an end comes before a start at
    the same time."""
    changes = sorted(
        [(end, -nodes) for _, end, nodes in spans] + [(start, nodes) for start, _, nodes in spans]
    )
    return max(itertools.accumulate(nodes for _, nodes in changes))


class QueueContract:
    """What holds for every queue, simulated ones included."""

    @pytest.fixture
    def harness(self) -> Harness:
        raise NotImplementedError("say how to make a queue")

    def test_a_job_waits_runs_and_ends(self, harness: Harness) -> None:
        before_s = harness.now_s()
        seen = max(6, math.ceil(3 / harness.tick_s))  # long enough to be seen on a busy machine
        blocker = harness.queue.submit(spec(harness, harness.sleeping(seen), nodes=harness.nodes))
        wait_state(harness, blocker, JobState.RUNNING)
        job = harness.queue.submit(spec(harness, harness.sleeping(1), nodes=harness.nodes))
        waiting = harness.queue.status([job])[job]
        assert (waiting.state, waiting.started_s, waiting.ended_s) == (JobState.WAITING, None, None)
        ended = wait_state(harness, job, JobState.ENDED)
        first = harness.queue.status([blocker])[blocker]
        assert first.state is JobState.ENDED
        assert ended.id == job
        assert ended.exit_code == 0
        assert ended.submitted_s is not None
        assert ended.started_s is not None
        assert ended.ended_s is not None
        assert first.ended_s is not None
        # Queues may cut times to whole seconds.
        assert (
            before_s - 1
            <= ended.submitted_s
            <= ended.started_s
            <= ended.ended_s
            <= harness.now_s() + 1
        )
        assert first.ended_s <= ended.started_s

    @pytest.mark.parametrize("code", [1, 3, 100])
    def test_the_exit_code_is_told(self, harness: Harness, code: int) -> None:
        job = harness.queue.submit(spec(harness, harness.failing(code)))
        assert wait_state(harness, job, JobState.ENDED).exit_code == code

    def test_never_more_nodes_than_there_are(self, harness: Harness) -> None:
        sizes = [1 + (7 * i) % harness.nodes for i in range(8)]
        jobs = [
            harness.queue.submit(spec(harness, harness.sleeping(1 + i % 3), nodes=n))
            for i, n in enumerate(sizes)
        ]
        over = wait_over(harness, jobs)
        assert {s.state for s in over.values()} == {JobState.ENDED}
        spans = [
            (over[job].started_s or 0.0, over[job].ended_s or 0.0, n)
            for job, n in zip(jobs, sizes, strict=True)
        ]
        assert most_nodes_at_once(spans) <= harness.nodes

    def test_equal_jobs_start_in_the_order_of_submission(self, harness: Harness) -> None:
        jobs = [
            harness.queue.submit(spec(harness, harness.sleeping(1), nodes=harness.nodes))
            for _ in range(3)
        ]
        over = wait_over(harness, jobs)
        starts = [over[job].started_s or 0.0 for job in jobs]
        assert starts == sorted(starts)

    def test_small_jobs_run_side_by_side(self, harness: Harness) -> None:
        jobs = [
            harness.queue.submit(spec(harness, harness.sleeping(50))) for _ in range(harness.nodes)
        ]

        def all_run() -> bool:
            return all(s.state is JobState.RUNNING for s in harness.queue.status(jobs).values())

        wait_for(harness, "all nodes in use", all_run)
        harness.queue.cancel(jobs)
        assert {s.state for s in wait_over(harness, jobs).values()} == {JobState.CANCELLED}

    def test_a_waiting_job_is_cancelled(self, harness: Harness) -> None:
        blocker = harness.queue.submit(spec(harness, harness.sleeping(200), nodes=harness.nodes))
        job = harness.queue.submit(spec(harness, harness.sleeping(1), nodes=harness.nodes))
        wait_state(harness, blocker, JobState.RUNNING)
        harness.queue.cancel([job])
        gone = wait_state(harness, job, JobState.CANCELLED)
        assert gone.ended_s is not None
        assert harness.queue.status([blocker])[blocker].state is JobState.RUNNING
        harness.queue.cancel([blocker])
        wait_state(harness, blocker, JobState.CANCELLED)

    def test_a_running_job_is_cancelled_and_gives_its_nodes_back(self, harness: Harness) -> None:
        blocker = harness.queue.submit(spec(harness, harness.sleeping(5000), nodes=harness.nodes))
        job = harness.queue.submit(spec(harness, harness.sleeping(1), nodes=harness.nodes))
        wait_state(harness, blocker, JobState.RUNNING)
        harness.queue.cancel([blocker])
        gone = wait_state(harness, blocker, JobState.CANCELLED)
        assert gone.started_s is not None
        wait_state(harness, job, JobState.ENDED)

    def test_cancelling_what_is_over_or_unknown_is_no_error(self, harness: Harness) -> None:
        job = harness.queue.submit(spec(harness, harness.failing(0)))
        wait_state(harness, job, JobState.ENDED)
        harness.queue.cancel([job, "987654321"])
        harness.queue.cancel([])
        harness.pause()
        after = harness.queue.status([job])[job]
        assert (after.state, after.exit_code) == (JobState.ENDED, 0)

    def test_unknown_jobs_are_absent(self, harness: Harness) -> None:
        job = harness.queue.submit(spec(harness, harness.failing(0)))
        assert set(harness.queue.status([job, "987654321"])) == {job}
        assert dict(harness.queue.status(["987654321"])) == {}
        assert dict(harness.queue.status([])) == {}
        wait_over(harness, [job])

    def test_jobs_are_found_by_their_tags(self, harness: Harness) -> None:
        tags = [fresh_tag() for _ in range(3)]
        jobs = {
            t: harness.queue.submit(spec(harness, harness.sleeping(2), tag=t)) for t in tags[:2]
        }
        assert dict(harness.queue.find(tags)) == jobs
        wait_over(harness, jobs.values())
        assert dict(harness.queue.find(tags)) == jobs
        assert dict(harness.queue.find([])) == {}
        assert dict(harness.queue.find([tags[0][:-1], tags[0] + "0", "%", "*"])) == {}

    def test_an_array_is_several_jobs(self, harness: Harness) -> None:
        if harness.queue.limits().max_array < 3:
            pytest.skip("this queue takes no arrays")
        prefix = fresh_tag()
        commands = [harness.failing(0), harness.failing(7), harness.sleeping(1)]
        specs = [spec(harness, c, tag=f"{prefix}-{n}") for n, c in enumerate(commands, start=98)]
        jobs = harness.queue.submit_array(specs)
        assert len(set(jobs)) == 3
        assert dict(harness.queue.find([s.tag for s in specs])) == {
            s.tag: j for s, j in zip(specs, jobs, strict=True)
        }
        over = wait_over(harness, jobs)
        assert [over[job].exit_code for job in jobs] == [0, 7, 0]
        assert {over[job].state for job in jobs} == {JobState.ENDED}

    def test_one_job_of_an_array_is_cancelled(self, harness: Harness) -> None:
        if harness.queue.limits().max_array < 3:
            pytest.skip("this queue takes no arrays")
        prefix = fresh_tag()
        blocker = harness.queue.submit(spec(harness, harness.sleeping(5000), nodes=harness.nodes))
        wait_state(harness, blocker, JobState.RUNNING)
        specs = [spec(harness, harness.sleeping(1), tag=f"{prefix}-{n}") for n in range(3)]
        jobs = harness.queue.submit_array(specs)
        harness.queue.cancel([jobs[1]])
        wait_state(harness, jobs[1], JobState.CANCELLED)
        harness.queue.cancel([blocker])
        over = wait_over(harness, jobs)
        assert [over[job].state for job in jobs] == [
            JobState.ENDED,
            JobState.CANCELLED,
            JobState.ENDED,
        ]

    def test_an_array_is_taken_whole_or_not_at_all(self, harness: Harness) -> None:
        if harness.queue.limits().max_array < 2:
            pytest.skip("this queue takes no arrays")
        prefix = fresh_tag()
        tags = [f"{prefix}-{n}" for n in range(2)]
        wide = [spec(harness, harness.failing(0), tag=t, nodes=harness.nodes + 1) for t in tags]
        with pytest.raises(SpecError):
            harness.queue.submit_array(wide)
        assert dict(harness.queue.find(tags)) == {}

    def test_limits_are_told(self, harness: Harness) -> None:
        limits = harness.queue.limits()
        assert limits.nodes == harness.nodes
        assert limits.max_array >= 1
        assert limits.shape.cores >= 1
        assert harness.queue.name

    def test_what_can_never_run_is_refused_and_leaves_nothing(self, harness: Harness) -> None:
        tag = fresh_tag()
        fine = spec(harness, harness.failing(0), tag=tag)
        impossible = [
            JobSpec(
                tag, harness.nodes + 1, fine.walltime_s, fine.command, fine.workdir, fine.output
            ),
            JobSpec(tag, 0, fine.walltime_s, fine.command, fine.workdir, fine.output),
            JobSpec(tag, 1, 0, fine.command, fine.workdir, fine.output),
            JobSpec(tag, 1, fine.walltime_s, (), fine.workdir, fine.output),
        ]
        for wrong in impossible:
            with pytest.raises(SpecError):
                harness.queue.submit(wrong)
        with pytest.raises(SpecError):
            harness.queue.submit(spec(harness, harness.failing(0), tag=f"{tag}; rm"))
        assert dict(harness.queue.find([tag])) == {}

    def test_a_snapshot_shows_running_and_waiting_jobs(self, harness: Harness) -> None:
        first = harness.queue.submit(
            spec(harness, harness.sleeping(5000), nodes=harness.nodes, walltime_s=3600)
        )
        wait_state(harness, first, JobState.RUNNING)
        others = [
            harness.queue.submit(spec(harness, harness.sleeping(1), nodes=harness.nodes))
            for _ in range(2)
        ]
        seen = harness.queue.snapshot()
        assert seen.nodes == harness.nodes
        assert [(job.id, job.is_running) for job in seen.jobs] == [
            (first, True),
            *((o, False) for o in others),
        ]
        assert seen.jobs[0].started_s is not None
        assert seen.jobs[0].started_s <= seen.at_s + 1
        assert [job.started_s for job in seen.jobs[1:]] == [None, None]
        assert (seen.jobs[0].nodes, seen.jobs[0].requested_s) == (harness.nodes, 3600)
        assert all(job.user for job in seen.jobs)
        harness.queue.cancel([first, *others])
        wait_over(harness, [first, *others])
        wait_for(harness, "an empty queue", lambda: harness.queue.snapshot().jobs == ())

    def test_a_probe_gives_a_time_or_none_and_submits_nothing(self, harness: Harness) -> None:
        idle = harness.queue.probe(1, harness.smallest_walltime_s)
        assert idle is None or abs(idle - harness.now_s()) <= max(60.0, harness.tick_s)
        job = harness.queue.submit(
            spec(harness, harness.sleeping(5000), nodes=harness.nodes, walltime_s=3600)
        )
        wait_state(harness, job, JobState.RUNNING)
        busy = harness.queue.probe(harness.nodes, harness.smallest_walltime_s)
        # The running job asked for an hour, and nobody knows better.
        assert busy is None or abs(busy - harness.now_s() - 3600) <= 300
        assert [other.id for other in harness.queue.snapshot().jobs] == [job]
        harness.queue.cancel([job])
        wait_over(harness, [job])

    def test_commands_are_shown_and_not_done(self, harness: Harness) -> None:
        tag = fresh_tag()
        shown = harness.queue.commands([spec(harness, harness.failing(0), tag=tag)])
        assert any(tag in line for line in shown)
        assert harness.queue.commands([]) == []
        assert dict(harness.queue.find([tag])) == {}


class WalltimeContract:
    """What happens when time is up. Where walltimes are minutes this takes minutes: mark it
    slow."""

    @pytest.fixture
    def harness(self) -> Harness:
        raise NotImplementedError("say how to make a queue")

    def test_a_job_is_killed_when_its_time_is_up(self, harness: Harness) -> None:
        wall_s = harness.smallest_walltime_s
        endless = harness.sleeping(100 * wall_s / harness.tick_s)
        long = harness.queue.submit(spec(harness, endless, nodes=harness.nodes, walltime_s=wall_s))
        after = harness.queue.submit(spec(harness, harness.sleeping(1), nodes=harness.nodes))
        killed = wait_state(harness, long, JobState.TIMED_OUT)
        assert killed.started_s is not None
        assert killed.ended_s is not None
        assert killed.ended_s - killed.started_s >= wall_s - 1
        wait_state(harness, after, JobState.ENDED)


class CommandContract:
    """What holds for queues that really run commands. Jobs see the file system of the test."""

    @pytest.fixture
    def harness(self) -> Harness:
        raise NotImplementedError("say how to make a queue")

    def test_odd_characters_arrive_intact(self, harness: Harness) -> None:
        program = "import json, os, sys; print(json.dumps([sys.argv[1:], os.getcwd()]))"
        folder = harness.folder / f"{ODD_NAME}\nwork"
        folder.mkdir()
        output = harness.folder / f"{ODD_NAME}.out"
        command = (sys.executable, "-c", program, *ODD_TEXTS)
        job = harness.queue.submit(spec(harness, command, workdir=folder, output=str(output)))
        assert wait_state(harness, job, JobState.ENDED).exit_code == 0
        wait_for(
            harness,
            "the job's output",
            lambda: output.exists() and output.read_text().endswith("\n"),
        )
        assert json.loads(output.read_text()) == [list(ODD_TEXTS), str(folder.resolve())]

    def test_both_streams_go_to_the_output(self, harness: Harness) -> None:
        program = "import sys; print('to out', flush=True); print('to err', file=sys.stderr)"
        one = spec(harness, (sys.executable, "-c", program))
        wait_state(harness, harness.queue.submit(one), JobState.ENDED)
        output = Path(one.output)
        wait_for(
            harness,
            "the job's output",
            lambda: output.exists() and output.read_text().count("\n") == 2,
        )
        assert output.read_text() == "to out\nto err\n"

    def test_the_jobs_of_an_array_have_their_own_commands_and_outputs(
        self, harness: Harness
    ) -> None:
        if harness.queue.limits().max_array < 3:
            pytest.skip("this queue takes no arrays")
        prefix = fresh_tag()
        texts = ["a b", "$(exit 9); '\"", "line\nbreak"]
        program = "import json, sys; print(json.dumps(sys.argv[1:]))"
        specs = [
            spec(
                harness,
                (sys.executable, "-c", program, t),
                tag=f"{prefix}-{n}",
                output=str(harness.folder / f"{n} %a"),
            )
            for n, t in enumerate(texts, start=9)
        ]
        over = wait_over(harness, harness.queue.submit_array(specs))
        assert {s.state for s in over.values()} == {JobState.ENDED}
        for one, text in zip(specs, texts, strict=True):
            output = Path(one.output)
            wait_for(
                harness,
                "the job's output",
                lambda o=output: o.exists() and o.read_text().endswith("\n"),  # type: ignore[misc]
            )
            assert json.loads(output.read_text()) == [text]

    def test_a_command_runs_once(self, harness: Harness) -> None:
        trace = harness.folder / "trace"
        program = f"open({str(trace)!r}, 'a').write('ran\\n')"
        jobs = [
            harness.queue.submit(spec(harness, (sys.executable, "-c", program))) for _ in range(3)
        ]
        wait_over(harness, jobs)
        wait_for(
            harness,
            "the jobs' traces",
            lambda: trace.exists() and trace.read_text().count("\n") >= 3,
        )
        assert trace.read_text() == "ran\n" * 3
