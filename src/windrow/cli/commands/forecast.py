"""`windrow forecast`: when jobs would start if they were submitted now, and how good such
predictions were so far."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from windrow.cli import options, terminal
from windrow.cli.arguments import duration_s, instant, node_count, number
from windrow.model import NEVER_S, format_duration
from windrow.model.wording import count
from windrow.queues.port import QueueError, place_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windrow.forecast.base import Clock, Ints
    from windrow.forecast.ledger import PastPrediction, StartAccuracy
    from windrow.forecast.twin import Twin
    from windrow.forecast.waits import Level
    from windrow.queues.port import Limits, Queue, Snapshot


_TIMES_S = (600, 3600, 4 * 3600)
# a person who asks once may ask for a handful at once; a probe takes some 10 ms of the controller
_PROBES = 12
_MEASURES = """\
bias: the mean error; positive: jobs started earlier than predicted, negative: later
started by then: at most a minute later than predicted"""
_SOURCES = ("twin", "system", "history")
_SHOWN = 30  # jobs that wait; --json has them all
_BY = ("fcfs", "easy", "conservative")  # policies under which waiting jobs are told their starts

Reader = Callable[[], Sequence["PastPrediction"]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_on(parser)
    jobs = options.adder(
        parser.add_argument_group("jobs to predict: each number of nodes with each time")
    )
    jobs("--nodes N,...", _numbers, help="(default: 1, and a quarter, half, all of them)")
    jobs("--time T,...", _times, dest="times_s", help="walltimes (default: 10m,1h,4h)")
    jobs("--policy", default="conservative", help="how the twin schedules")
    past = options.adder(parser.add_argument_group("what history is asked"))
    share = number(0.01, 0.99, what="a part")
    past("--part P", share, 0.5, help="the part of such jobs that is to wait no longer")
    past("--confidence C", share, 0.95, help="how sure that is to be")
    past(
        "--start-at T",
        instant,
        help="tell when each job has to be submitted to start by then: 18h (from now), 08:00, or "
        "'2030-05-01 08:00'",
    )
    words = "also tell when the jobs that wait now should start, under each policy"
    options.adder(parser)("--waiting", action="store_true", help=words)
    options.add_json(parser, "instead of tables")


def run(args: argparse.Namespace) -> None:
    """Open the queue, ask every source, and show the answers."""
    from windrow.app.queues import no_answer, open_queue
    from windrow.app.runs import past_predictions
    from windrow.sim.settings import ClusterSettings

    ClusterSettings(args.policy)  # refuses unknown names, also where no job waits
    try:
        answer(
            open_queue(args.on), args, clock=time.time, past=lambda: past_predictions(queue=args.on)
        )
    except QueueError as error:
        raise no_answer(args.on, error) from None


def answer(queue: Queue, args: argparse.Namespace, *, clock: Clock, past: Reader = tuple) -> None:
    """Show the waits of the wanted jobs on this queue by every source, and the errors of the
    predictions in `past`."""
    if (limits := queue.limits()).starts_at_once:
        _say_at_once(queue, limits, as_json=args.json)
        return
    from windrow.forecast.twin import Twin

    twin = Twin(
        queue, clock, policy=args.policy, refresh_s=math.inf
    )  # one reading serves the whole command
    with terminal.waiting("reading the queue"):
        snapshot = twin.snapshot()
        wanted = _jobs(queue, snapshot, args)
        waits = _ask_all(queue, twin, clock, wanted, _level(args))
        if args.start_at is not None:
            start_s = args.start_at(clock())
            waits = [
                replace(one, submit_by_s=_submit_by_s(queue, one, (clock(), start_s), _level(args)))
                for one in waits
            ]
    facts = _facts(queue.name, snapshot, waits, list(past()))
    if args.start_at is not None:
        facts["start_s"] = start_s
    if args.waiting:
        facts["waiting"] = _waiting(snapshot)
    if args.json:
        terminal.print_json(facts)
    else:
        terminal.show(*_tables(facts))


def _say_at_once(queue: Queue, limits: Limits, *, as_json: bool) -> None:
    """If no job waits there is nothing to forecast."""
    jobs = len(queue.snapshot().jobs)
    if as_json:
        terminal.print_json({"queue": queue.name, "starts_at_once": True, "running_jobs": jobs})
        return

    if jobs:
        sharing = f"{count(jobs, 'running job')} to share with"
    else:
        sharing = "no other jobs are running"
    words = f"queue: {queue.name}, this machine: {limits.shape}; {sharing}"
    terminal.show(terminal.text(words, "Jobs start at once here, so there is nothing to forecast."))


@dataclass(frozen=True, slots=True)
class JobWaits:
    """A job and its wait by each source; None if a source cannot tell, or if the job does not
    fit."""

    nodes: int
    requested_s: int
    fits: bool
    wait_s: dict[str, int | None]
    submit_by_s: float | None = None

    def cells(self) -> list[str]:
        """As a row of the table."""
        said = [self._words(wait_s) for wait_s in self.wait_s.values()]
        return [f"{self.nodes:,}", format_duration(self.requested_s), *said]

    def _words(self, wait_s: int | None) -> str:
        if not self.fits:
            return "never"
        if wait_s is None:
            return "-"
        return format_duration(wait_s) if wait_s else "none"


def _tables(told: Mapping[str, Any]) -> Iterator[RenderableType]:
    """As people read it."""
    lines = [
        f"queue: {told['queue']}, {told['usable_nodes']:,} usable nodes",
        f"jobs: {told['running_jobs']:,} running on {told['busy_nodes']:,} nodes, "
        f"{told['waiting_jobs']:,} waiting",
    ]
    if told["left_out_jobs"]:
        lines.append(f"left out: {told['left_out_jobs']:,} waiting, wider than the usable nodes")
    yield terminal.text(*lines)
    heads = ["nodes", "time", *(f"wait by {name}" for name in _SOURCES)]
    yield terminal.table(heads, [job.cells() for job in told["candidates"]], ">")
    if not all(candidate.fits for candidate in told["candidates"]):
        yield terminal.text(
            f"never: wider than the {told['usable_nodes']} usable nodes", style="dim"
        )
    yield from _start_table(told)
    yield from _waiting_table(told.get("waiting", []))
    if told["past"]:
        yield terminal.heading("Past predictions")
        yield _error_table(told["past"])
        yield terminal.text(_MEASURES, style="dim")
        yield terminal.text(f"trusted: {told['trusted']}")
    else:
        words = (
            "No past predictions in this folder yet: each job submitted by a run started "
            "here adds some."
        )
        yield terminal.text(words, style="dim")


@dataclass(frozen=True, slots=True)
class WaitingStart:
    """A job that waits, and how long it still will, under each policy; None: not on these nodes."""

    id: str
    user: str
    nodes: int
    requested_s: int
    wait_s: dict[str, int | None]


def _waiting(snapshot: Snapshot) -> list[WaitingStart]:
    """In the queue's order."""
    from windrow.forecast.twin import starts_of

    jobs = [job for job in snapshot.jobs if not job.is_running]
    ids = frozenset(job.id for job in jobs)
    starts = {policy: starts_of(snapshot, ids, policy=policy) for policy in _BY}
    return [
        WaitingStart(
            job.id,
            job.user,
            job.nodes,
            job.requested_s,
            {policy: known.get(job.id) for policy, known in starts.items()},
        )
        for job in jobs
    ]


def _waiting_table(jobs: Sequence[WaitingStart]) -> Iterator[RenderableType]:
    """When those that wait should start."""
    if not jobs:
        return
    yield terminal.heading("Jobs that wait, and how long still, if no other comes")
    rows = [
        (
            job.id,
            job.user,
            f"{job.nodes:,}",
            format_duration(job.requested_s),
            *(_still_words(wait_s) for wait_s in job.wait_s.values()),
        )
        for job in jobs[:_SHOWN]
    ]
    if len(jobs) > _SHOWN:
        rows.append((f"and {len(jobs) - _SHOWN:,} more", "", "", "", *("" for _ in _BY)))
    yield terminal.table(("job", "user", "nodes", "time", *_BY), rows, "ll>")


def _still_words(wait_s: int | None) -> str:
    if wait_s is None:
        return "never"
    return format_duration(wait_s) if wait_s else "now"


def _numbers(text: str) -> list[int]:
    return sorted({node_count(part) for part in text.split(",")})


def _times(text: str) -> list[int]:
    seconds = sorted({math.ceil(duration_s(part)) for part in text.split(",")})
    if seconds[0] < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} contains a time of zero; a job needs at least a second"
        )
    return seconds


def _jobs(queue: Queue, snapshot: Snapshot, args: argparse.Namespace) -> tuple[Ints, Ints]:
    """Every wanted number of nodes with every wanted time."""
    import numpy as np

    all_nodes = snapshot.open_nodes
    nodes = args.nodes or sorted(
        {1, max(1, all_nodes // 4), max(1, all_nodes // 2), max(1, all_nodes)}
    )
    times = args.times_s or _default_times_s(queue.limits().max_walltime_s)
    wide, long = np.meshgrid(
        np.array(nodes, dtype=np.int64), np.array(times, dtype=np.int64), indexing="ij"
    )
    return wide.ravel(), long.ravel()


def _default_times_s(longest_s: int | None) -> list[int]:
    if longest_s is None:
        return list(_TIMES_S)
    return [seconds for seconds in _TIMES_S if seconds <= longest_s] or [longest_s]


def _level(args: argparse.Namespace) -> Level:
    from windrow.forecast.waits import Level

    return Level(args.part, args.confidence)


def _submit_by_s(
    queue: Queue, job: JobWaits, between: tuple[float, float], level: Level
) -> float | None:
    """The last moment at which history lets the job start in time; None if there is none."""
    from windrow.forecast.waits import History, default_path

    if not (job.fits and default_path().exists()):
        return None
    history = History(default_path())
    wanted = (job.nodes, job.requested_s)
    return history.last_submission_s(place_of(queue), wanted, between, level)


def _start_table(told: Mapping[str, Any]) -> Iterator[RenderableType]:
    """When to submit each job, if that was asked."""
    if "start_s" not in told:
        return
    yield terminal.heading(f"To start by {_moment(told['start_s'])}")
    ahead_s = told["start_s"] - told["at_s"]
    rows = [
        (
            f"{job.nodes:,}",
            format_duration(job.requested_s),
            _latest_words(job.submit_by_s),
            _in_time_words(job.wait_s.get("twin"), ahead_s),
        )
        for job in told["candidates"]
    ]
    heads = ("nodes", "time", "submit by (history)", "submitted now (twin)")
    yield terminal.table(heads, rows, ">")


def _latest_words(submit_by_s: float | None) -> str:
    if submit_by_s is None:
        return "not known, or too late"
    return _moment(submit_by_s)


def _in_time_words(wait_s: float | None, ahead_s: float) -> str:
    if wait_s is None:
        return "-"
    if wait_s <= ahead_s:
        return "in time"
    return "too late"


def _moment(at_s: float) -> str:
    return time.strftime("%a %d %b %H:%M", time.localtime(at_s))


def _ask_all(
    queue: Queue, twin: Twin, clock: Clock, jobs: tuple[Ints, Ints], level: Level
) -> list[JobWaits]:
    """What every source says of these jobs."""
    from windrow.forecast.base import UNKNOWN_S
    from windrow.forecast.system import System
    from windrow.forecast.waits import FromHistory, History, default_path

    system = System(queue, clock, twin, every_s=0, bucket=int)
    for _ in range(_PROBES - 1):  # known_s asks for one more
        if not system.ask(*jobs):
            break
    answers = {"twin": twin.waits_s(*jobs).tolist(), "system": system.known_s(*jobs).tolist()}
    if default_path().exists():  # a question makes no files
        source = FromHistory(
            History(default_path()), place_of(queue), clock, twin, queue.name, level
        )
        answers["history"] = source.known_s(*jobs).tolist()
    found = []
    for i, (nodes, requested_s) in enumerate(zip(jobs[0].tolist(), jobs[1].tolist(), strict=True)):
        fits = answers["twin"][i] != NEVER_S
        said = {name: answers[name][i] for name in _SOURCES if fits and name in answers}
        known = {name: None if said.get(name) == UNKNOWN_S else said.get(name) for name in _SOURCES}
        found.append(JobWaits(nodes, requested_s, fits, known))
    return found


def _facts(
    queue: str, snapshot: Snapshot, candidates: list[JobWaits], past: Sequence[PastPrediction]
) -> dict[str, Any]:
    """All that the command shows."""
    from windrow.forecast.ledger import accuracies, choose
    from windrow.forecast.twin import left_out

    runs = [job for job in snapshot.jobs if job.is_running]
    return {
        "queue": queue,
        "at_s": snapshot.at_s,
        "usable_nodes": snapshot.open_nodes,
        "running_jobs": len(runs),
        "busy_nodes": sum(job.nodes for job in runs),
        "waiting_jobs": len(snapshot.jobs) - len(runs),
        "left_out_jobs": len(left_out(snapshot)),
        "candidates": candidates,
        "past": accuracies(past),
        "trusted": choose(past),
    }


def _error_table(past: Sequence[StartAccuracy]) -> RenderableType:
    heads = ("source", "starts", "pending", "median miss", "on average")
    rows = []
    for one in past:
        errors = [
            "-" if s is None else format_duration(s) for s in (one.median_error_s, one.bias_s)
        ]
        rows.append((one.source, str(one.starts), str(one.pending), *errors))
    return terminal.table(heads, rows)
