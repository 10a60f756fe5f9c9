"""`windrow plan`: how a strategy would cut a workflow at one time, and why.

With `--on` it is what a run would submit now: the same code decides, and nothing is submitted.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.cli import elsewhere, options, queue_plan, terminal
from windrow.cli import scenario as shared
from windrow.cli.arguments import place
from windrow.errors import UserError
from windrow.model import format_duration
from windrow.model.wording import count

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from windrow.strategies import Strategy
    from windrow.strategies.base import Candidate, Decision
    from windrow.trials.plan import JobInPlan, SimulatedPlan
    from windrow.trials.scenario import Scenario


_MOST_JOBS = 24
_MOST_CANDIDATES = 30
_MOST_DECISIONS = 8
_PLOT = 60
_USUAL = frozenset(("strategy", "cap", "margin", *options.COPIES, *options.SPACE))
"""What --on takes from [run] of windrow.toml, as a run does."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    shared.add_meanings(parser)
    shared.add_workflow_and_log(parser)
    shared.add_one_run(parser)
    shared.add_cluster(parser)
    parser.set_defaults(margin=None)  # it depends on --on
    parser.set_defaults(takes_usual=_USUAL, profile=None)
    words = (
        f"{options.ON}, as it is now; {options.SEVERAL}; --margin is then 1.2, as in windrow run"
    )
    group = parser.add_argument_group("on a real queue, instead of a simulated one")
    group.add_argument("--on", metavar="SITE[,SITE...]", help=words)
    group = parser.add_argument_group(
        "within a limit on space: with --on, or with --environment (of all nodes together)"
    )
    options.add_space(group)
    words = (
        "a cluster with limited disks behind a slow link (TOML): simulate the storage "
        "allocations there, and choose one"
    )
    group.add_argument("--environment", type=place, metavar="FILE", help=words)
    output = parser.add_argument_group("output")
    words = "also print the alternatives considered, and why the winner won"
    output.add_argument("--explain", action="store_true", help=words)
    options.add_json(output, "instead of tables")
    words = "draw the simulated run, task by task, as a page that opens in any browser"
    options.add_html(output, "-o", "--output", words=words)


def run(args: argparse.Namespace) -> None:
    """Read, cut, print."""
    _refuse_contradictions(args)
    if args.environment is not None:
        elsewhere.from_lab("environment", "windrow plan --environment")(args)
        return
    if args.on is not None:
        _run_on_queue(args)
    else:
        _run_simulated(args)


def _refuse_contradictions(args: argparse.Namespace) -> None:
    """Some options are for a real queue, others for a simulated one."""
    is_within = args.space is not None or args.space_order != "auto" or args.scratch
    if args.environment is not None:
        if args.on is not None or args.scratch:
            raise UserError(
                "--on and --scratch are for real queues, --environment for a simulated one; "
                "choose one"
            )
    elif args.on is None and is_within:
        raise UserError(
            "--space, --space-order and --scratch need a real queue: add --on, or --environment "
            "FILE"
        )
    elif args.on is not None and args.html is not None:
        raise UserError(
            "--html draws a simulated run, and --on plans for a real queue; give only one of them"
        )


_SIMULATED = (
    "planned for a simulated cluster, not for this machine; windrow run -n plans where it would run"
)


def _run_simulated(args: argparse.Namespace) -> None:
    if args.margin is None:
        args.margin = shared.MARGIN
    from windrow.app.strategies import find_strategy
    from windrow.app.volumes import planned_volumes, told_plan
    from windrow.trials.plan import make_plan

    strategy = find_strategy(args.strategy)
    scenario, at_s = shared.read_one_run(args)
    if args.html is not None:
        drawn = _drawn(args, scenario, strategy, at_s)
        if not args.json:
            print(drawn)
            return
    with terminal.waiting(f"running {scenario.workflow.name}"):
        plan = make_plan(scenario, strategy, at_s)
    members = {number: job.plan.all_tasks for number, job in plan.trial.story.jobs.items()}
    volumes = planned_volumes(scenario.mounts, members)
    if args.json:
        known = {**shared.facts(scenario, args), "at_s": at_s, **_as_json(plan)}
        if volumes:
            known["volumes"] = [use._asdict() | {"jobs": jobs} for use, jobs in volumes]
        terminal.print_json(known)
        return
    lines = [_SIMULATED, *shared.words(scenario, args), *told_plan(volumes)]
    terminal.show(*_blocks(plan, lines, at_s, explain=args.explain))


def _drawn(args: argparse.Namespace, scenario: Scenario, strategy: Strategy, at_s: int) -> str:
    """Write the page: one run over the load of the cluster. A line about it."""
    from windrow.report.run.page import run_page
    from windrow.story.figures import visible_wait_s
    from windrow.trials.background import run_with_background

    with terminal.waiting(f"running {scenario.workflow.name}"):
        played, background = run_with_background(scenario, strategy, at_s)
    lines = [*shared.words(scenario, args), f"submitted {format_duration(at_s)} into the log"]
    terminal.write_page(args.html, run_page(played, background, lines))
    done = f"{scenario.workflow.name} by {played.strategy}: done in"
    jobs = count(len(played.story.jobs), "job")
    visible = format_duration(visible_wait_s(played))
    return (
        f"{args.html}: {done} {format_duration(played.makespan_s)}, with {jobs}, "
        f"{visible} of visible wait"
    )


def _as_json(plan: SimulatedPlan) -> dict[str, object]:
    from windrow.story.figures import visible_wait_s

    trial = plan.trial
    return {
        "strategy": trial.strategy,
        "makespan_s": trial.makespan_s,
        "visible_wait_s": int(visible_wait_s(trial.recorded)),
        "jobs_now": [asdict(job) for job in plan.jobs_now],
        "jobs": [asdict(job) for job in plan.jobs],
        "decisions": [
            {
                "at_s": at,
                "jobs": len(made.jobs),
                "why": made.why,
                "candidates": [asdict(one) for one in made.candidates],
            }
            for at, made in plan.decisions
        ],
    }


def _blocks(
    plan: SimulatedPlan, lines: Sequence[str], at_s: int, *, explain: bool
) -> Iterator[RenderableType]:
    from windrow.story.figures import visible_wait_s

    trial = plan.trial
    yield terminal.text(
        *lines, f"strategy {trial.strategy}, submitted {format_duration(at_s)} into the log"
    )
    yield terminal.heading("submitted now")
    yield _jobs(plan.jobs_now, _NOW)
    if explain:
        yield from _explained(plan)
    else:
        yield terminal.text(_why(plan.first))
    visible = f"no task runs for {format_duration(visible_wait_s(trial.recorded))} of it"
    yield terminal.heading(f"the whole run: {format_duration(trial.makespan_s)}; {visible}")
    yield _jobs(plan.jobs, _ALL)
    yield _timeline(plan)


def _why(decision: Decision) -> str:
    if decision.why:
        return f"why: {decision.why}"
    return "(the strategy gives no reason)"


_NOW = ("job", "levels", "tasks", "nodes", "requested", "expected wait", "run", "leeway", "risk")
_ALL = (*_NOW[:4], "submitted", "requested", "expected wait", "waited", "ran", "leeway", "risk", "")


def _jobs(jobs: Sequence[JobInPlan], heads: Sequence[str]) -> RenderableType:
    heads = [head for head in heads if head != "risk" or any(job.risk is not None for job in jobs)]
    rows = [[cells[head] for head in heads] for cells in map(_cells, jobs)]
    return _table(heads, rows, _MOST_JOBS, "jobs")


def _cells(job: JobInPlan) -> dict[str, str]:
    """What the tables say of a job, by column."""
    came = job.started_s is not None and job.ended_s is not None
    return {
        "job": f"{job.job}",
        "levels": f"{job.first_level}"
        + (f"–{job.last_level}" if job.last_level != job.first_level else ""),
        "tasks": f"{job.tasks:,}",
        "nodes": f"{job.nodes:,}",
        "submitted": f"+{format_duration(job.submitted_s)}",
        "requested": format_duration(job.requested_s),
        "expected wait": format_duration(job.expected_wait_s),
        "waited": format_duration((job.started_s or 0) - job.submitted_s) if came else "–",
        "run": format_duration(job.expected_run_s),
        "ran": format_duration((job.ended_s or 0) - (job.started_s or 0)) if came else "–",
        "leeway": format_duration(job.leeway_s),
        "risk": f"{100 * (job.risk or 0):.1f} %",
        "": "" if job.outcome == "ended" else job.outcome,
    }


def _explained(plan: SimulatedPlan) -> Iterator[RenderableType]:
    """Every decision that had something to choose from, and why it was taken; the rest would repeat
    itself."""
    telling = [
        plan.decisions[0],
        *((at, later) for at, later in plan.decisions[1:] if later.candidates),
    ]
    for i, (at, decision) in enumerate(telling[:_MOST_DECISIONS]):
        yield terminal.heading(f"considered after {format_duration(at)}" if i else "considered now")
        if decision.candidates:
            yield _candidates(decision)
        yield terminal.text(_why(decision))
    if len(telling) > _MOST_DECISIONS:
        yield terminal.text(f"and {len(telling) - _MOST_DECISIONS:,} more decisions: see --json")


def _candidates(decision: Decision) -> RenderableType:
    heads = ("", "considered", "nodes", "wait", "run", "leeway", "makespan", "")
    chosen = _chosen(decision)
    rows = []
    for one in decision.candidates:
        spans = [format_duration(s) for s in (one.wait_s, one.run_s, one.leeway_s)]
        if one.makespan_s is None:
            makespan = ""
        else:
            makespan = format_duration(one.makespan_s)
        rows.append(
            (">" if one is chosen else "", one.what, f"{one.nodes:,}", *spans, makespan, one.note)
        )
    return _table(heads, rows, _MOST_CANDIDATES, "candidates")


def _chosen(decision: Decision) -> Candidate | None:
    """The candidate that the first job was made from, if its figures tell; jobs may be sized
    afterwards."""
    if not decision.jobs:
        return None
    plan = decision.jobs[0]
    same = [
        c
        for c in decision.candidates
        if (c.nodes, c.run_s, c.leeway_s) == (plan.nodes, plan.run_s, plan.leeway_s)
    ]
    return min(
        same, key=lambda c: (bool(c.note) and c.note != "chosen", c.makespan_s or 0), default=None
    )


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], most: int, what: str
) -> RenderableType:
    from rich.console import Group

    align = "".join("l" if head in ("", "considered") else "r" for head in heads)
    table = terminal.table(heads, rows[:most], align)
    if len(rows) > most:
        return Group(table, f"and {len(rows) - most:,} more {what}: see --json")
    return table


def _timeline(plan: SimulatedPlan) -> Text:
    """A line per job: waits light, runs dark. If there are many jobs, only the first ones."""
    span = max(1, *(job.ended_s or 0 for job in plan.jobs))
    width = len(str(min(len(plan.jobs), _MOST_JOBS))) + 4
    text = terminal.text(f"{'':<{width}}  ░ waits  █ holds nodes\n", style="dim")
    for job in plan.jobs[:_MOST_JOBS]:
        end = job.ended_s or 0
        if job.started_s is None:
            started = end
        else:
            started = job.started_s
        a, b, c = (round(t / span * _PLOT) for t in (job.submitted_s, started, end))
        text.append(f"{f'job {job.job}':<{width}}  ", style="not dim")
        text.append(" " * a + "░" * (b - a), style="not dim yellow")
        text.append(
            ("█" * max(1, c - b) if job.started_s is not None else "×") + "\n", style="not dim cyan"
        )
    return text.append(f"{'':<{width}}  0{format_duration(span):>{_PLOT - 1}}")


def _run_on_queue(args: argparse.Namespace) -> None:
    from windrow.app.facts import RunRequest

    for option, value in {"--log": args.log, "--at": args.at_s}.items():
        if value is not None:
            raise UserError(
                f"--on plans on a real queue, {option} on a simulated one; give only one of them"
            )
    if args.margin is None:
        factor = options.MARGIN
    else:
        factor = args.margin
    given = {
        name: getattr(args, name) for name in ("strategy", "cap", *options.COPIES, *options.SPACE)
    }
    order = RunRequest(Path(args.workflow), margin=factor, **given, **options.on_of(args.on))
    queue_plan.show_order(order, as_json=args.json, explain=args.explain)
