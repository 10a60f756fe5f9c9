"""`windrow plan`: how a strategy would cut a workflow at one time, and why.

With `--on` it is what a run would submit now: the same code decides, and nothing is submitted.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.cli import scenario as shared
from windrow.cli.arguments import place
from windrow.cli.commands.run import MARGIN
from windrow.cli.data_plan import show_data_plan
from windrow.errors import UserError
from windrow.model import format_duration, is_never
from windrow.model.size import format_size
from windrow.model.wording import count
from windrow.queues.port import QueueError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from windrow.app.dry_run import DryRun
    from windrow.app.execute import Prepared, RunRequest
    from windrow.lab.plan import PlannedJob, SimulatedPlan
    from windrow.strategies.base import Candidate, Decision
    from windrow.strategies.choosing import Way


_MOST_JOBS = 24
_MOST_CANDIDATES = 30
_MOST_DECISIONS = 8
_PLOT = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    shared.add_meanings(parser)
    shared.add_workflow_and_log(parser)
    shared.add_one_run(parser)
    shared.add_cluster(parser)
    parser.set_defaults(margin=None)  # it depends on --on
    words = f"{options.ON}, as it is now; {options.SEVERAL}; --margin is then 1.2, as in windrow run"
    group = parser.add_argument_group("on a real queue, instead of a simulated one")
    group.add_argument("--on", metavar="SITE[,SITE...]", help=words)
    group = parser.add_argument_group(
        "within a limit on space: with --on, or with --environment (of all nodes together)"
    )
    options.add_space(group)
    words = (
        "a cluster with limited disks behind a slow link (TOML): simulate the storage allocations there, and choose one"
    )
    group.add_argument("--environment", type=place, metavar="FILE", help=words)
    output = parser.add_argument_group("output")
    words = "also print the alternatives considered, and why the winner won"
    output.add_argument("--explain", action="store_true", help=words)
    options.add_json(output, "instead of tables")
    options.add_html(output, words=f"with --environment: {options.PAGE}")


def run(args: argparse.Namespace) -> None:
    """Read, cut, print."""
    if args.environment is not None:
        if args.on is not None or args.scratch:
            raise UserError("--on and --scratch are for real queues, --environment for a simulated one; choose one")
        show_data_plan(args)
        return
    if args.html is not None:
        raise UserError("--html needs --environment FILE, which describes the cluster; see windrow plan --help")
    if args.on is None and (args.space is not None or args.space_order != "auto" or args.scratch):
        raise UserError("--space, --space-order and --scratch need a real queue: add --on, or --environment FILE")
    if args.on is not None:
        _run_on_queue(args)
        return
    args.margin = shared.MARGIN if args.margin is None else args.margin
    from windrow.app.strategies import find_strategy
    from windrow.app.volumes import planned_volumes, told_plan
    from windrow.lab.plan import make_plan

    strategy = find_strategy(args.strategy)
    scenario, at_s = shared.read_one_run(args)
    with terminal.waiting(f"running {scenario.workflow.name}"):
        plan = make_plan(scenario, strategy, at_s)
    members = {number: job.plan.all_tasks for number, job in plan.trial.story.jobs.items()}
    volumes = planned_volumes(scenario.mounts, members)
    if args.json:
        told = [use._asdict() | {"jobs": jobs} for use, jobs in volumes]
        terminal.print_json(
            {**shared.facts(scenario, args), "at_s": at_s, **_as_json(plan), **({"volumes": told} if told else {})}
        )
        return
    simulated = "planned for a simulated cluster, not for this machine; windrow run -n plans where it would run"
    lines = [simulated, *shared.words(scenario, args), *told_plan(volumes)]
    terminal.show(*_blocks(plan, lines, at_s, explain=args.explain))


def _as_json(plan: SimulatedPlan) -> dict[str, object]:
    from windrow.manager.figures import visible_wait_s

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


def _blocks(plan: SimulatedPlan, lines: Sequence[str], at_s: int, *, explain: bool) -> Iterator[RenderableType]:
    from windrow.manager.figures import visible_wait_s

    trial = plan.trial
    yield terminal.text(*lines, f"strategy {trial.strategy}, submitted {format_duration(at_s)} into the log")
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
    return f"why: {decision.why}" if decision.why else "(the strategy gives no reason)"


_NOW = ("job", "levels", "tasks", "nodes", "requested", "expected wait", "run", "leeway", "risk")
_ALL = (*_NOW[:4], "submitted", "requested", "expected wait", "waited", "ran", "leeway", "risk", "")


def _jobs(jobs: Sequence[PlannedJob], heads: Sequence[str]) -> RenderableType:
    heads = [head for head in heads if head != "risk" or any(job.risk is not None for job in jobs)]
    rows = [[cells[head] for head in heads] for cells in map(_cells, jobs)]
    return _table(heads, rows, _MOST_JOBS, "jobs")


def _cells(job: PlannedJob) -> dict[str, str]:
    """What the tables say of a job, by column."""
    came = job.started_s is not None and job.ended_s is not None
    return {
        "job": f"{job.job}",
        "levels": f"{job.first_level}" + (f"–{job.last_level}" if job.last_level != job.first_level else ""),
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
    """Every decision that had something to choose from, and why it was taken; the rest would repeat itself."""
    telling = [plan.decisions[0], *((at, later) for at, later in plan.decisions[1:] if later.candidates)]
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
        makespan = "" if one.makespan_s is None else format_duration(one.makespan_s)
        rows.append((">" if one is chosen else "", one.what, f"{one.nodes:,}", *spans, makespan, one.note))
    return _table(heads, rows, _MOST_CANDIDATES, "candidates")


def _chosen(decision: Decision) -> Candidate | None:
    """The candidate that the first job was made from, where its figures tell; jobs may be sized afterwards."""
    if not decision.jobs:
        return None
    plan = decision.jobs[0]
    same = [c for c in decision.candidates if (c.nodes, c.run_s, c.leeway_s) == (plan.nodes, plan.run_s, plan.leeway_s)]
    return min(same, key=lambda c: (bool(c.note) and c.note != "chosen", c.makespan_s or 0), default=None)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], most: int, what: str) -> RenderableType:
    from rich.console import Group

    align = "".join("l" if head in ("", "considered") else "r" for head in heads)
    table = terminal.table(heads, rows[:most], align)
    return Group(table, f"and {len(rows) - most:,} more {what}: see --json") if len(rows) > most else table


def _timeline(plan: SimulatedPlan) -> Text:
    """A line per job: waits light, runs dark. Where there are many jobs, only the first ones."""
    span = max(1, *(job.ended_s or 0 for job in plan.jobs))
    width = len(str(min(len(plan.jobs), _MOST_JOBS))) + 4
    text = terminal.text(f"{'':<{width}}  ░ waits  █ holds nodes\n", style="dim")
    for job in plan.jobs[:_MOST_JOBS]:
        end = job.ended_s or 0
        started = end if job.started_s is None else job.started_s
        a, b, c = (round(t / span * _PLOT) for t in (job.submitted_s, started, end))
        text.append(f"{f'job {job.job}':<{width}}  ", style="not dim")
        text.append(" " * a + "░" * (b - a), style="not dim yellow")
        text.append(("█" * max(1, c - b) if job.started_s is not None else "×") + "\n", style="not dim cyan")
    return text.append(f"{'':<{width}}  0{format_duration(span):>{_PLOT - 1}}")


def _run_on_queue(args: argparse.Namespace) -> None:
    from windrow.app.execute import RunRequest

    for option, value in {"--log": args.log, "--at": args.at_s}.items():
        if value is not None:
            raise UserError(f"--on plans on a real queue, {option} on a simulated one; give only one of them")
    factor = MARGIN if args.margin is None else args.margin
    given = {name: getattr(args, name) for name in ("strategy", "cap", *options.COPIES, *options.SPACE)}
    order = RunRequest(Path(args.workflow), margin=factor, **given, **options.on_of(args.on))
    show_order(order, as_json=args.json, explain=args.explain)


def show_order(order: RunRequest, *, as_json: bool, explain: bool = False) -> None:
    """Show what a run by this order would submit now."""
    from windrow.app.dry_run import dry_run
    from windrow.app.execute import prepare
    from windrow.app.queues import no_answer

    with terminal.waiting(f"reading {order.workflow}"):
        prepared = prepare(order)
    try:
        with terminal.waiting("planning"):
            plan = dry_run(prepared)
    except QueueError as error:
        raise no_answer(order.on, error) from None
    if as_json:
        terminal.print_json(_queue_json(prepared, plan))
    else:
        _show_queue(prepared, plan, explain=explain)


def _queue_json(prepared: Prepared, plan: DryRun) -> dict[str, object]:
    return {
        "queue": ",".join((prepared.order.on, *prepared.order.also)),
        "strategy": prepared.order.strategy,
        "forecast": plan.forecast,
        "notes": list(prepared.notes),
        "guesses": prepared.guesses,
        "learned": prepared.learned,
        "why": plan.decision.why,
        "jobs_now": [
            {**asdict(job), "expected_wait_s": None if is_never(wait) else wait, "risk": risk}
            for job, wait, risk in zip(plan.decision.jobs, plan.waits_s, plan.risks, strict=True)
        ],
        "commands": list(plan.commands),
        **({"space": plan.space} if plan.space else {}),
        **({"frontier": [asdict(way) for way in plan.frontier]} if plan.frontier else {}),
    } | ({"sites": rows} if (rows := [asdict(one) for one in plan.decision.candidates if one.site]) else {})


def _site_table(decision: Decision) -> list[RenderableType]:
    rows = []
    for one in (one for one in decision.candidates if one.site):
        is_out = one.makespan_s is None
        spans = [format_duration(s) for s in (one.wait_s, one.data_s, one.run_s, one.makespan_s or 0)]
        rows.append((one.site, *(("",) * 5 if is_out else (str(one.nodes), *spans)), one.note))
    heads = ("site", "nodes", "wait", "data", "run", "all done in", "")
    return [terminal.table(heads, rows, "lrrrrrl")] if rows else []


def _frontier_table(ways: Sequence[Way], unknown: Sequence[str]) -> list[RenderableType]:
    costs = [(f"{way.price:,.2f}", f"{way.node_s / 3600:,.2f}", f"{100 * way.chance:.1f} %") for way in ways]
    rows = [(", ".join(w.sites), format_duration(w.end_s), *cost) for w, cost in zip(ways, costs, strict=True)]
    title = terminal.heading("choices of sites that no other choice beats in time, cost and risk")
    heads = ("sites", "all done in", "cost", "node-hours", "no job is lost")
    told = [terminal.text(f"no losses are expected at {', '.join(unknown)}: none are known")] if unknown else []
    return [title, terminal.table(heads, rows, "lrrrr"), *told] if ways else []


def _space_lines(prepared: Prepared, plan: DryRun) -> list[RenderableType]:
    """What files of the first job should take at most, and over time."""
    if not plan.space:
        return []
    from windrow.app.space import smallest_space
    from windrow.storage.timeline import drawn, peak

    points, limit = list(plan.space), prepared.order.space
    smallest = format_size(smallest_space(prepared.runnable.workflow, plan.decision.jobs[0].tasks))
    told = f"files take at most {format_size(peak(points))}; {smallest} would do (--space)"
    told += "" if limit is None else f", and they may take {format_size(limit)}"
    return [terminal.text(told), terminal.text(f"over {format_duration(points[-1][0])}: {drawn(points)}")]


def _show_queue(prepared: Prepared, plan: DryRun, *, explain: bool) -> None:
    from windrow.report.run.explanation import candidate_lines

    workflow, order = prepared.runnable.workflow, prepared.order
    sites = [f"{one.site.name} ({count(one.limits.nodes, 'node')})" for one in prepared.sites]
    where = f"{', '.join(sites)} as {'it is' if len(sites) == 1 else 'they are'} now"
    head = [f"{workflow.name}: {count(len(workflow), 'task')}, planned by {order.strategy} for {where}"]
    if prepared.guesses:
        guess = format_duration(order.guess_s)
        head.append(f"{prepared.guesses:,} of {len(workflow):,} run times are guesses of {guess} each (--guess)")
    if prepared.learned:
        head.append(f"{prepared.learned:,} of {len(workflow):,} run times come from earlier runs")
    head += workflow.repairs()
    rows, is_risky = [], any(risk is not None for risk in plan.risks)
    for job, wait, risk in zip(plan.decision.jobs, plan.waits_s, plan.risks, strict=True):
        spans = [format_duration(s) for s in (job.run_s, job.leeway_s, job.requested_s)]
        spans += ["?" if risk is None else f"{100 * risk:.1f} %"] if is_risky else []
        waits = "never, with the queue as it is now" if is_never(wait) else format_duration(wait)
        rows.append((*([job.site] if job.site else []), str(len(job.tasks)), str(job.nodes), waits, *spans))
    reasons = candidate_lines(plan.decision.candidates) if explain else []
    heads = ("tasks", "nodes", "expected wait", "expected run", "leeway", "requested", *(("risk",) if is_risky else ()))
    terminal.show(
        terminal.text(*head, *prepared.notes),
        terminal.table((*(("site",) if len(sites) > 1 else ()), *heads), rows, "r"),
        *_site_table(plan.decision),
        *_frontier_table(plan.frontier, [one.site.name for one in prepared.sites if not one.site.hazard]),
        terminal.text(f"why: {plan.decision.why}", *reasons),
        *_space_lines(prepared, plan),
    )
    # As they are, and not through a console, which breaks lines: they are there to be pasted.
    print("\nwould be submitted (nothing was submitted):", *(plan.commands or ("nothing",)), sep="\n")
