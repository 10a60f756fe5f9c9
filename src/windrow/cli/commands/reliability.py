"""`windrow reliability`: how likely jobs of a site are to be lost, by what was seen of earlier
ones."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.cli.arguments import node_count, some_time_s
from windrow.model import format_duration
from windrow.model.wording import count
from windrow.queues.port import QueueError, Remembers, place_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windrow.forecast.failures import Reliability


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_on(parser)
    add = options.adder(parser)
    add("--nodes N", node_count, 1, help="nodes of the job to predict")
    add("--time T", some_time_s, "12h", dest="time_s", help="how long it runs")
    add("--since T", some_time_s, "30d", dest="since_s", help="how far back to look")
    options.add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Read, learn, keep, show."""
    from windrow.app.queues import no_answer, open_queue
    from windrow.forecast.failures import Lives, reliability

    queue = open_queue(args.on)
    now = time.time()
    own = Lives()
    with terminal.waiting(f"reading how earlier jobs ended on {args.on}"):
        try:
            place = place_of(queue)
            if isinstance(queue, Remembers):
                told = queue.lives(now - args.since_s)
            else:
                told = None
        except QueueError as error:
            raise no_answer(args.on, error) from None
        found = reliability(own.past(place, now - args.since_s) if told is None else told)
    if found.losses:
        own.keep(place, now, found.evident)
    if told is None:
        source = "your own runs"
    else:
        source = "the batch system's accounting"
    if args.json:
        job = dict(
            zip(("survival", "low", "high"), found.survival(args.nodes, args.time_s), strict=True)
        )
        facts = asdict(found) | {
            "site": args.on,
            "source": source,
            "is_fitted": found.spread is not None,
        }
        del facts["spread"]
        terminal.print_json(facts | {"job": {"nodes": args.nodes, "time_s": args.time_s, **job}})
    else:
        terminal.show(terminal.text(*_lines(found, args, source)), *_suspects(found))


def _lines(found: Reliability, args: argparse.Namespace, source: str) -> list[str]:
    chance, low, high = (f"{100 * part:.1f}" for part in found.survival(args.nodes, args.time_s))
    job = f"a job of {count(args.nodes, 'node')} and {format_duration(args.time_s)} on {args.on}"
    sure = f"{job} survives with a probability of {chance} % (95 % interval {low} to {high} %)"
    if not found.jobs:
        return [
            sure,
            f"nothing is known about jobs there ({source}): these are the assumptions for any "
            "cluster",
        ]
    losses = [f"{number:,} × {cause}" for cause, number in found.losses.items()]
    if found.spread is None:
        fit = "with a prior: few failures so far"
    else:
        fit = f"Weibull, shape {found.hazard.shape:.2f}"
    rate = found.hazard.preemption_rate
    return [
        sure,
        f"seen: {found.jobs:,} jobs with {found.node_s / 3600:,.1f} node-hours, from {source}",
        f"lost: {', '.join(losses) or 'none'}",
        f"a node fails every {format_duration(found.hazard.nodes_s)} of use ({fit})",
        *([f"a job is preempted every {format_duration(1 / rate)}"] if rate else []),
    ]


def _suspects(found: Reliability) -> list[RenderableType]:
    shown = [
        (one.node, f"{one.failures:,}", f"{one.node_s / 3600:,.1f}", f"{one.times:,.1f}")
        for one in found.suspects
    ]
    heads = ("node", "failures", "hours", "times as many as the rest")
    title = f"nodes with significantly more failures than the rest: {len(shown):,}"
    if shown:
        return [terminal.heading(title), terminal.table(heads, shown[:10])]
    return []
