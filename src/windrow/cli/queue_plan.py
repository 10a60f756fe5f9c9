"""What a run would submit to its queue or its sites now, and why; nothing is submitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING

from windrow.cli import terminal
from windrow.model import format_duration, is_never
from windrow.model.size import format_size
from windrow.model.wording import count
from windrow.queues.port import QueueError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windrow.app.dry_run import DryRun
    from windrow.app.execute import Prepared
    from windrow.app.facts import RunRequest
    from windrow.story.events import Event
    from windrow.strategies.base import Decision
    from windrow.strategies.choosing import Way


def show_order(order: RunRequest, *, as_json: bool, explain: bool = False) -> None:
    """Show what a run by this order would submit now."""
    from windrow.app.execute import prepare

    with terminal.waiting(f"reading {order.workflow}"):
        prepared = prepare(order)
    show_prepared(prepared, as_json=as_json, explain=explain)


def show_prepared(
    prepared: Prepared,
    before: Iterable[Event] = (),
    *,
    as_json: bool,
    explain: bool = False,
    more: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Show what this run would submit now, after what happened `before`."""
    from windrow.app.dry_run import dry_run
    from windrow.app.queues import no_answer

    try:
        with terminal.waiting("planning"):
            plan = dry_run(prepared, before)
    except QueueError as error:
        raise no_answer(prepared.order.on, error) from None
    if as_json:
        terminal.print_json(_queue_json(prepared, plan) | dict(more))
    else:
        _show_queue(prepared, plan, explain=explain)


def _queue_json(prepared: Prepared, plan: DryRun) -> dict[str, object]:
    known: dict[str, object] = {
        "queue": ",".join((prepared.order.on, *prepared.order.also)),
        "strategy": prepared.order.strategy,
        "forecast": plan.forecast,
        "notes": [*prepared.notes, *plan.notes],
        "guesses": prepared.guesses,
        "learned": prepared.learned,
        "why": plan.decision.why,
        "jobs_now": [
            {**asdict(job), "expected_wait_s": None if is_never(wait) else wait, "risk": risk}
            for job, wait, risk in zip(plan.decision.jobs, plan.waits_s, plan.risks, strict=True)
        ],
        "commands": list(plan.commands),
    }
    seldom: dict[str, object] = {
        "space": plan.space,
        "frontier": [asdict(way) for way in plan.frontier],
        "sites": [asdict(one) for one in plan.decision.candidates if one.site],
    }
    return known | {name: value for name, value in seldom.items() if value}


def _site_table(decision: Decision) -> list[RenderableType]:
    rows = []
    for one in (one for one in decision.candidates if one.site):
        is_out = one.makespan_s is None
        spans = [
            format_duration(s) for s in (one.wait_s, one.data_s, one.run_s, one.makespan_s or 0)
        ]
        rows.append((one.site, *(("",) * 5 if is_out else (str(one.nodes), *spans)), one.note))
    heads = ("site", "nodes", "wait", "data", "run", "all done in", "")
    if rows:
        return [terminal.table(heads, rows, "lrrrrrl")]
    return []


def _frontier_table(ways: Sequence[Way], unknown: Sequence[str]) -> list[RenderableType]:
    costs = [
        (f"{way.price:,.2f}", f"{way.node_s / 3600:,.2f}", f"{100 * way.chance:.1f} %")
        for way in ways
    ]
    rows = [
        (", ".join(w.sites), format_duration(w.end_s), *cost)
        for w, cost in zip(ways, costs, strict=True)
    ]
    title = terminal.heading("choices of sites that no other choice beats in time, cost and risk")
    heads = ("sites", "all done in", "cost", "node-hours", "no job is lost")
    if unknown:
        told = [terminal.text(f"no losses are expected at {', '.join(unknown)}: none are known")]
    else:
        told = []
    if ways:
        return [title, terminal.table(heads, rows, "lrrrr"), *told]
    return []


def _space_lines(prepared: Prepared, plan: DryRun) -> list[RenderableType]:
    """What files of the first job should take at most, and over time."""
    if not plan.space:
        return []
    from windrow.app.space import smallest_space
    from windrow.storage.timeline import drawn, peak

    points = list(plan.space)
    limit = prepared.order.space
    smallest = format_size(smallest_space(prepared.runnable.workflow, plan.decision.jobs[0].tasks))
    told = f"files take at most {format_size(peak(points))}; {smallest} would do (--space)"
    told += "" if limit is None else f", and they may take {format_size(limit)}"
    return [
        terminal.text(told),
        terminal.text(f"over {format_duration(points[-1][0])}: {drawn(points)}"),
    ]


def _show_queue(prepared: Prepared, plan: DryRun, *, explain: bool) -> None:
    from windrow.report.run.explanation import candidate_lines

    certain = [one.site.name for one in prepared.sites if not one.site.hazard]
    why = [f"why: {plan.decision.why}"]
    if explain:
        why += candidate_lines(plan.decision.candidates)
    terminal.show(
        terminal.text(*_about(prepared), *prepared.notes, *plan.notes),
        _job_table(plan, has_sites=len(prepared.sites) > 1),
        *_site_table(plan.decision),
        *_frontier_table(plan.frontier, certain),
        terminal.text(*why),
        *_space_lines(prepared, plan),
    )
    # As they are, and not through a console, which breaks lines: they are there to be pasted.
    commands = plan.commands or ("nothing",)
    print("\nwould be submitted (nothing was submitted):", *commands, sep="\n")


def _about(prepared: Prepared) -> list[str]:
    """What is planned, for which sites, and from which run times."""
    workflow = prepared.runnable.workflow
    order = prepared.order
    total = len(workflow)
    sites = [f"{one.site.name} ({count(one.limits.nodes, 'node')})" for one in prepared.sites]
    where = f"{', '.join(sites)} as {'it is' if len(sites) == 1 else 'they are'} now"
    lines = [f"{workflow.name}: {count(total, 'task')}, planned by {order.strategy} for {where}"]
    if prepared.guesses:
        guess = format_duration(order.guess_s)
        lines.append(
            f"{prepared.guesses:,} of {total:,} run times are guesses of {guess} each (--guess)"
        )
    if prepared.learned:
        lines.append(f"{prepared.learned:,} of {total:,} run times come from earlier runs")
    return [*lines, *workflow.repairs()]


def _job_table(plan: DryRun, *, has_sites: bool) -> RenderableType:
    """The jobs that would be submitted now, a line for each."""
    is_risky = any(risk is not None for risk in plan.risks)
    heads = ["tasks", "nodes", "expected wait", "expected run", "leeway", "requested"]
    if has_sites:
        heads.insert(0, "site")
    if is_risky:
        heads.append("risk")
    rows = []
    for job, wait, risk in zip(plan.decision.jobs, plan.waits_s, plan.risks, strict=True):
        waits = "never, with the queue as it is now" if is_never(wait) else format_duration(wait)
        spans = [format_duration(s) for s in (job.run_s, job.leeway_s, job.requested_s)]
        row = [str(len(job.tasks)), str(job.nodes), waits, *spans]
        if job.site:
            row.insert(0, job.site)
        if is_risky:
            row.append("?" if risk is None else f"{100 * risk:.1f} %")
        rows.append(row)
    return terminal.table(heads, rows, "r")
