"""PBS against recorded outputs. They were written after public documentation, so they prove the
port, not a site."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.queues.pbs_recorded.run import RecordedRun

from windrow.app import execute, sites
from windrow.app.dry_run import dry_run
from windrow.app.facts import RunRequest
from windrow.errors import UserError
from windrow.model.nodes import Need
from windrow.queues.command import Answer
from windrow.queues.pbs.queue import PbsProfile, PbsQueue
from windrow.queues.pbs.text import format_duration, parse_bytes, parse_duration
from windrow.queues.port import JobSpec, JobState, OutcomeUnknown, Queue, QueueError, SpecError

RECORDED = Path(__file__).parent / "pbs_recorded"
NINE_OCLOCK_S = 1794733200.0  # Sun Nov 15 09:00:00 2026 UTC


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


def site(**answers: Answer | str) -> RecordedRun:
    fixed: dict[str, Answer | str] = {
        "qstat -x -t -f -F json": recorded("qstat_jobs.json"),
        "qstat -t -f -F json": recorded("qstat_jobs.json"),
        "qstat -B": recorded("qstat_server.json"),
        "qstat -Q": recorded("qstat_queue.json"),
        "pbsnodes": recorded("pbsnodes.json"),
        "qsub": "130.pbs\n",
        "qdel": "",
    }
    return RecordedRun(fixed | answers)


def a_spec(tag: str = "run-1", **changes: object) -> JobSpec:
    fields: dict[str, object] = {
        "tag": tag,
        "nodes": 1,
        "walltime_s": 5400,
        "command": ("echo", "it's; $(x)"),
        "workdir": "/scratch/a b",
        "output": "/scratch/a:b.out",
    }
    return JobSpec(**(fields | changes))  # type: ignore[arg-type]


def test_it_is_a_queue() -> None:
    queue: Queue = PbsQueue(run=site())
    assert queue.name == "pbs"
    assert queue.probe(1, 60) is None


@pytest.mark.parametrize(
    ("job", "state", "exit_code"),
    [
        ("101.pbs", JobState.WAITING, None),
        ("102.pbs", JobState.RUNNING, None),
        ("103.pbs", JobState.ENDED, 0),
        ("104.pbs", JobState.ENDED, 3),
        ("105.pbs", JobState.TIMED_OUT, None),
        (
            "106.pbs",
            JobState.TIMED_OUT,
            143,
        ),  # an older server says SIGTERM, and the time that was used
        ("107.pbs", JobState.CANCELLED, 143),
        ("108.pbs", JobState.CANCELLED, None),  # deleted while it waited
        ("109.pbs", JobState.KILLED, None),  # too much memory
        ("110.pbs", JobState.NODE_FAILED, None),
        ("111.pbs", JobState.ENDED, 137),  # it was killed, and nobody says by whom
        ("112.pbs", JobState.WAITING, None),
    ],
)
def test_states_and_exit_codes(job: str, state: JobState, exit_code: int | None) -> None:
    status = PbsQueue(run=site()).status([job])[job]
    assert (status.state, status.exit_code) == (state, exit_code)
    assert (status.started_s is None) == (job in ("101.pbs", "108.pbs", "112.pbs"))


def test_times_and_estimates() -> None:
    jobs = PbsQueue(run=site()).status(["101.pbs", "103.pbs"])
    assert jobs["101.pbs"].expected_start_s == NINE_OCLOCK_S + 2 * 3600
    ended = jobs["103.pbs"]
    times = (ended.submitted_s, ended.started_s, ended.ended_s)
    assert times == (NINE_OCLOCK_S, NINE_OCLOCK_S + 600, NINE_OCLOCK_S + 1801)


def test_unknown_jobs_are_absent_and_one_query_asks_for_all() -> None:
    answer = Answer(153, recorded("qstat_jobs.json"), "qstat: Unknown Job Id 999.pbs\n")
    run = site(**{"qstat -x -t -f -F json": answer})
    assert set(PbsQueue(run=run).status(["103.pbs", "999.pbs"])) == {"103.pbs"}
    assert len(run.asked) == 1


def test_a_server_that_does_not_answer_or_answers_nonsense_is_a_queue_error() -> None:
    down = Answer(
        255, "{}", "Connection refused\nqstat: cannot connect to server pbs (errno=15010)\n"
    )
    for answer in (
        down,
        Answer(None, "", ""),
        Answer(0, '{"Jobs":{"1.pbs":{"Variable_List":{"X":"a"b"}}}}', ""),
    ):
        with pytest.raises(QueueError):
            PbsQueue(run=site(**{"qstat -x -t -f -F json": answer})).status(["1.pbs"])


def test_submission_quotes_everything_and_asks_for_whole_nodes() -> None:
    run = site()
    assert (
        PbsQueue(PbsProfile(queue="workq", project="hydro"), run=run).submit(a_spec()) == "130.pbs"
    )
    argv = run.asked[-1]
    assert argv[0] == "qsub"
    assert [argv[i + 1] for i, text in enumerate(argv) if text == "-l"] == [
        "select=1:ncpus=36",
        "place=scatter:exclhost",
        "walltime=1:30:00",
    ]
    assert argv[argv.index("-r") + 1] == "n"
    assert argv[argv.index("-q") + 1] == "workq"
    assert argv[argv.index("-P") + 1] == "hydro"
    cd, go = run.scripts[-1].splitlines()[1:]
    assert cd == "cd '/scratch/a b' || exit 1"
    assert go == """exec >/scratch/a:b.out 2>&1; exec echo 'it'"'"'s; $(x)'"""


def wide(path: Path, nodes: int = 0) -> Path:
    """A workflow whose seven tasks fill the cores of seven nodes, or so many whole nodes each."""
    need = f"nodes: {nodes}" if nodes else "cores: 36"
    tasks = "".join(f"  - {{id: t{i}, command: 'true', runtime: 60, {need}}}\n" for i in range(7))
    path.write_text(f"name: wide\ntasks:\n{tasks}")
    return path


def test_a_plan_has_jobs_of_one_node_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The site gives a job up to four nodes; agents cannot use them."""
    for module in (execute, sites):
        monkeypatch.setattr(module, "open_queue", lambda *_: PbsQueue(run=site()))
    prepared = execute.prepare(RunRequest(wide(tmp_path / "wide.yaml"), on="pbs", strategy="giant"))
    assert (prepared.site.job_nodes, prepared.site.max_array) == (1, prepared.limits.max_array)
    assert prepared.notes == ("PBS: jobs of one node (Windrow cannot use more of one PBS job yet)",)
    assert {job.nodes for job in dry_run(prepared).decision.jobs} == {1}
    narrow = wide(tmp_path / "narrow.yaml")
    narrow.write_text(narrow.read_text().replace("cores: 36", "cores: 5"))
    assert execute.prepare(RunRequest(narrow, on="pbs")).notes == ()
    with pytest.raises(UserError, match="needs 2 nodes; a job of pbs has 1;"):
        execute.prepare(RunRequest(wide(tmp_path / "wider.yaml", 2), on="pbs"))


def test_arrays() -> None:
    run = site(
        qsub="120[].pbs\n",
        **{"qstat -x -t -f -F json": recorded("qstat_array.json"), "qselect": "120[].pbs\n"},
    )
    queue = PbsQueue(run=run)
    specs = [a_spec(f"sweep-{n}") for n in (98, 99, 100)]
    jobs = queue.submit_array(specs)
    assert jobs == ["120[0].pbs", "120[1].pbs", "120[2].pbs"]
    argv = run.asked[-1]
    assert (argv[argv.index("-N") + 1], argv[argv.index("-J") + 1]) == ("sweep-98..100", "0-2")
    states = queue.status(jobs)
    assert [states[job].state for job in jobs] == [
        JobState.ENDED,
        JobState.RUNNING,
        JobState.WAITING,
    ]
    assert states[jobs[0]].exit_code == 7
    assert run.asked[-1][-1] == "120[].pbs"  # one id asks for the whole array
    assert dict(queue.find(["sweep-98", "sweep-100", "sweep-101"])) == {
        "sweep-98": jobs[0],
        "sweep-100": jobs[2],
    }


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(170, "", "qsub: Unknown queue\n"), SpecError),
        (Answer(188, "", "qsub: Job violates queue and/or server resource limits\n"), SpecError),
        (
            Answer(
                38, "", "qsub: would exceed queue workq's per-user limit of jobs in 'Q' state\n"
            ),
            QueueError,
        ),
        (
            Answer(
                255, "", "Connection refused\nqsub: cannot connect to server pbs (errno=15010)\n"
            ),
            QueueError,
        ),
        (Answer(None, "", ""), OutcomeUnknown),
        (Answer(1, "", "qsub: End of File\n"), OutcomeUnknown),
        (Answer(0, "", ""), OutcomeUnknown),
    ],
)
def test_what_qsub_says(answer: Answer, error: type[Exception]) -> None:
    with pytest.raises(error):
        PbsQueue(run=site(qsub=answer)).submit(a_spec())


def test_limits_and_what_they_refuse() -> None:
    run = site()
    queue = PbsQueue(run=run)
    limits = queue.limits()
    assert (limits.nodes, limits.max_nodes, limits.max_walltime_s) == (6, 1, 48 * 3600)
    assert (limits.usable_nodes, limits.closed) == (4, "")
    gone = (
        recorded("pbsnodes.json")
        .replace('"free"', '"offline"')
        .replace('"job-exclusive"', '"down"')
    )
    assert (
        PbsQueue(run=site(pbsnodes=gone)).limits().closed
        == "all 6 nodes of queue workq are down or offline"
    )
    assert (limits.max_jobs, limits.max_array) == (50, 5000)
    assert (limits.shape.cores, limits.shape.memory_bytes) == (36, 196607 * 1024**2)
    queue.submit(a_spec(per_node=Need(40, 1024, 0, 0, (("gpus", 2), ("lic", 1)))))
    assert "select=1:ncpus=40:mem=1kb:ngpus=2:lic=1" in run.asked.pop()
    for wrong in (
        a_spec(nodes=2),
        a_spec(walltime_s=49 * 3600),
        a_spec(command=()),
        a_spec(tag="a b"),
    ):
        with pytest.raises(SpecError):
            queue.submit(wrong)
    assert not [argv for argv in run.asked if argv[0] == "qsub"]
    with pytest.raises(UserError, match="it has workq, gpu"):
        PbsQueue(PbsProfile(queue="debug"), run=site()).limits()


def test_snapshot_has_who_runs_and_who_stands_in_line() -> None:
    seen = PbsQueue(run=site()).snapshot()
    assert seen.nodes == 4
    assert [
        (job.id, job.is_running, job.nodes, job.requested_s, job.user) for job in seen.jobs
    ] == [
        ("102.pbs", True, 2, 3600, "ada"),
        ("101.pbs", False, 2, 3600, "ada"),
    ]
    assert [job.started_s for job in seen.jobs] == [NINE_OCLOCK_S + 600, None]


def test_cancelling_what_is_over_is_no_error() -> None:
    over = Answer(35, "", "qdel: Job has finished 103.pbs\nqdel: Unknown Job Id 999.pbs\n")
    PbsQueue(run=site(qdel=over)).cancel(["103.pbs", "999.pbs"])
    with pytest.raises(QueueError):
        PbsQueue(
            run=site(qdel=Answer(255, "", "qdel: cannot connect to server pbs (errno=15010)\n"))
        ).cancel(["1.pbs"])


def test_profiles_are_checked() -> None:
    assert PbsProfile(queue="workq").options == ["-q", "workq"]
    with pytest.raises(UserError, match="name"):
        PbsProfile(queue="-q x")


@pytest.mark.parametrize("seconds", [1, 59, 60, 3599, 3600, 90061, 360000])
def test_durations_survive_a_round_trip(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


def test_sizes() -> None:
    assert [parse_bytes(text) for text in ("4096kb", "196607mb", "2tb", "7b", "many")] == [
        4096 * 1024,
        196607 * 1024**2,
        2 * 1024**4,
        7,
        None,
    ]
