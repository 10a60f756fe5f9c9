"""`windrow plan --on QUEUE`: what a run would submit now. The same code decides; nothing is submitted."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.cli import terminal
from windrow.cli.commands.run import MARGIN
from windrow.errors import UserError
from windrow.model import format_duration, is_never
from windrow.model.wording import count
from windrow.queues.port import QueueError

if TYPE_CHECKING:
    from windrow.app.execute import DryRun, Prepared, RunRequest

_SIMULATED = {"--log": "log", "--at": "at_s"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of a plan on a real queue."""
    group = parser.add_argument_group("on a real queue, instead of a simulated one")
    group.add_argument(
        "--on",
        metavar="QUEUE",
        help="local, slurm, pbs, or a queue of windrow.toml, as it is now; --margin is then 1.2, as in windrow run",
    )


def run(args: argparse.Namespace) -> int:
    """Decide and print."""
    from windrow.app.execute import RunRequest

    for option, name in _SIMULATED.items():
        if getattr(args, name, None) is not None:
            raise UserError(f"--on plans on a real queue, {option} on a simulated one; give only one of them")
    factor = MARGIN if args.margin is None else args.margin
    order = RunRequest(Path(args.workflow), on=args.on, strategy=args.strategy, cap=args.cap, margin=factor)
    return show_order(order, as_json=args.json, explain=args.explain)


def show_order(order: RunRequest, *, as_json: bool, explain: bool = False) -> int:
    """Show what a run by this order would submit now."""
    from windrow.app.execute import dry_run, prepare
    from windrow.app.queues import no_answer

    with terminal.waiting(f"reading {order.workflow}"):
        prepared = prepare(order)
    try:
        with terminal.waiting("planning"):
            plan = dry_run(prepared)
    except QueueError as error:
        raise no_answer(order.on, error) from None
    if as_json:
        terminal.print_json(_as_json(prepared, plan))
    else:
        _show(prepared, plan, explain=explain)
    return 0


def _as_json(prepared: Prepared, plan: DryRun) -> dict[str, object]:
    return {
        "queue": prepared.order.on,
        "strategy": prepared.order.strategy,
        "forecast": plan.forecast,
        "notes": list(prepared.notes),
        "guesses": prepared.guesses,
        "learnt": prepared.learnt,
        "why": plan.decision.why,
        "jobs_now": [
            {**asdict(job), "expected_wait_s": None if is_never(wait) else wait}
            for job, wait in zip(plan.decision.jobs, plan.waits_s, strict=True)
        ],
        "commands": list(plan.commands),
    }


def _show(prepared: Prepared, plan: DryRun, *, explain: bool) -> None:
    from windrow.report.run.explanation import candidate_lines

    workflow, order = prepared.runnable.workflow, prepared.order
    nodes = count(prepared.limits.nodes, "node")
    head = [
        f"{workflow.name}: {len(workflow):,} tasks, planned by {order.strategy} for {order.on} ({nodes}) as it is now"
    ]
    if prepared.guesses:
        guess = format_duration(order.guess_s)
        head.append(f"{prepared.guesses:,} of {len(workflow):,} run times are guesses of {guess} each (--guess)")
    if prepared.learnt:
        head.append(f"{prepared.learnt:,} of {len(workflow):,} run times come from earlier runs")
    head += workflow.repairs()
    rows = []
    for job, wait in zip(plan.decision.jobs, plan.waits_s, strict=True):
        spans = [format_duration(s) for s in (job.run_s, job.leeway_s, job.requested_s)]
        waits = "never, as the queue is now" if is_never(wait) else format_duration(wait)
        rows.append((str(len(job.tasks)), str(job.nodes), waits, *spans))
    reasons = candidate_lines(plan.decision.candidates) if explain else []
    terminal.show(
        terminal.text(*head, *prepared.notes),
        terminal.table(("tasks", "nodes", "expected wait", "expected run", "leeway", "requested"), rows, "r"),
        terminal.text(f"why: {plan.decision.why}", *reasons),
    )
    # As they are, and not through a console, which breaks lines: they are there to be pasted.
    print("\nwould be submitted (nothing was submitted):", *(plan.commands or ("nothing",)), sep="\n")
