"""`windrow reliability`: how likely jobs of a site are to be lost, by what was seen of earlier ones."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from windrow.cli import options, terminal
from windrow.cli.arguments import node_count, some_time_s
from windrow.model import format_duration
from windrow.model.wording import count
from windrow.queues.port import QueueError

if TYPE_CHECKING:
    from windrow.forecast.failures import Reliability

SUMMARY = "Show how often jobs of a site were lost, and what a job of some nodes and hours may expect."

EPILOG = """
From the accounts of the batch system where it has any (Slurm: everybody's jobs, as far as they are visible), else from
your own runs. Counted are nodes that failed, failures of many nodes at once, and preemptions. Below 30 failures of
nodes their rate is estimated with a prior of one in three years; from there on a Weibull distribution is fitted.
What was found counts for 30 days: windrow plan shows the risk of jobs by it.

examples:
  windrow reliability --on slurm --nodes 16 --time 12h
  windrow reliability --on west --since 90d --json
"""

_MOST_NODES = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_on(parser)
    add = options.adder(parser)
    add("--nodes N", node_count, 1, help="nodes of the job to predict")
    add("--time T", some_time_s, "12h", dest="time_s", help="how long it runs")
    add("--since T", some_time_s, "30d", dest="since_s", help="how far back to look")
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Read, learn, keep, show."""
    from windrow.app.queues import no_answer, open_queue
    from windrow.forecast.failures import Lives, reliability
    from windrow.queues.port import Remembers, place_of

    queue, now, own = open_queue(args.on), time.time(), Lives()
    with terminal.waiting(f"reading what became of jobs on {args.on}"):
        try:
            place = place_of(queue)
            told = queue.lives(now - args.since_s) if isinstance(queue, Remembers) else None
        except QueueError as error:
            raise no_answer(args.on, error) from None
        found = reliability(own.past(place, now - args.since_s) if told is None else told)
    if found.losses:
        own.keep(place, now, found.hazard)
    source = "your own runs" if told is None else "the accounts of the batch system"
    facts = _facts(found, args, source)
    if args.json:
        terminal.print_json(facts)
        return 0
    terminal.show(terminal.text(*_lines(found, facts)), *_suspects(found))
    return 0


def _facts(found: Reliability, args: argparse.Namespace, source: str) -> dict[str, Any]:
    chance, low, high = found.survival(args.nodes, args.time_s)
    return {
        "site": args.on,
        "source": source,
        "since_s": found.since_s,
        "jobs": found.jobs,
        "node_hours": found.node_s / 3600,
        "losses": dict(found.losses),
        "hazard": found.hazard.as_dict(),
        "is_fitted": found.spread is not None,
        "job": {"nodes": args.nodes, "time_s": args.time_s, "survival": chance, "low": low, "high": high},
        "nodes": [asdict(one) for one in found.suspects],
    }


def _lines(found: Reliability, facts: dict[str, Any]) -> list[str]:
    job = facts["job"]
    what = f"a job of {count(job['nodes'], 'node')} and {format_duration(job['time_s'])} on {facts['site']}"
    chance, low, high = (f"{100 * job[key]:.1f}" for key in ("survival", "low", "high"))
    sure = f"{what} survives with {chance} % (95 % interval {low} to {high} %)"
    if not found.jobs:
        return [sure, f"nothing is known of jobs there ({facts['source']}): this is what is assumed of any cluster"]
    seen = f"{found.jobs:,} jobs with {facts['node_hours']:,.1f} node-hours, from {facts['source']}"
    losses = [f"{number:,} × {cause}" for cause, number in found.losses.items()]
    lines = [sure, f"seen: {seen}", f"lost: {', '.join(losses) or 'none'}"]
    fit = f"Weibull, shape {found.hazard.shape:.2f}" if facts["is_fitted"] else "with a prior: few failures so far"
    lines.append(f"a node fails every {format_duration(found.hazard.nodes_s)} of use ({fit})")
    if found.hazard.preemption_rate:
        lines.append(f"a job is preempted every {format_duration(1 / found.hazard.preemption_rate)}")
    return lines


def _suspects(found: Reliability) -> list[Any]:
    if not found.suspects:
        return []
    rows = [
        (one.node, f"{one.failures:,}", f"{one.node_s / 3600:,.1f}", f"{one.times:,.1f}")
        for one in found.suspects[:_MOST_NODES]
    ]
    heads = ("node", "failures", "hours", "times as many as the rest")
    title = terminal.heading("nodes with significantly more failures than the rest")
    more = len(found.suspects) - _MOST_NODES
    return [title, terminal.table(heads, rows), *([terminal.text(f"and {more} more: see --json")] if more > 0 else [])]
