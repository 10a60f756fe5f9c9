"""The page of one log replayed under one or several policies: figures and pictures side by side."""

import math
from collections.abc import Iterator, Mapping, Sequence

from windrow.errors import UserError
from windrow.model import Repairs, format_duration
from windrow.report.page import cell, facts, figure, note, notes, page, section, table
from windrow.report.simulation import load, waits
from windrow.report.simulation.figures import FIGURES, SummaryFigure
from windrow.sim.settings import EVENTS, PLACEMENTS, POLICIES, PRIORITIES, REQUESTS
from windrow.sim.simulation import BOUND_S, Simulation, Summary

_WORDS = (
    ("wait", "from a job's submission to its start"),
    ("bounded slowdown", f"(wait + run) / run, where runs under {BOUND_S} s count as {BOUND_S} s; 1 means no wait"),
    ("utilization", "node-seconds that the jobs counted ran, of all that the machine had during the makespan"),
    ("makespan", "from the first submission to the last end, of the jobs counted"),
)
_FAILED = (
    ("runs that lost a node", "jobs that were killed because one of their nodes failed, each time that they were"),
    ("lost with these runs", "what they had held until then; utilization and bounded slowdown count the last run only"),
    ("out of service", "from failures to the end of repairs, during the makespan"),
)
_MEANINGS: Mapping[str, Mapping[str, str]] = {
    "priority": PRIORITIES,
    "requests": REQUESTS,
    "events": EVENTS,
    "placement": PLACEMENTS,
    "cap": {},
    "failures": {},
}


def simulation_page(
    simulations: Sequence[Simulation], *, from_s: float = 0, to_s: float = math.inf, repairs: Repairs | None = None
) -> str:
    """HTML that compares simulations of one log. Jobs submitted in [from_s, to_s) are counted.

    `repairs` are those of the whole log, where only a part of it was simulated.
    """
    if not simulations:
        raise UserError("a report needs at least one simulation")
    summaries = [simulation.summary(from_s, to_s) for simulation in simulations]
    labels = [simulation.label for simulation in simulations]
    first, window = simulations[0], (from_s, to_s)
    title = f"{first.log.name} under {labels[0]}" if len(labels) == 1 else f"{first.log.name}: {len(labels)} policies"
    under = labels[0] if len(labels) == 1 else ", ".join(labels[:-1]) + " and " + labels[-1]
    lead = f"{summaries[0].jobs:,} jobs on {first.machine_nodes:,} nodes, simulated under {under}."
    names = {label: "depth:K" if label.startswith("depth:") else label for label in labels}
    known = [f"{label}: {POLICIES[name]}" for label, name in names.items() if name in POLICIES]
    sections = [
        section("What was simulated", facts(_what(first, window, repairs or first.log.repairs)), notes(known)),
        section("Figures", _table(labels, summaries), facts(_WORDS + (_FAILED if first.failures is not None else ()))),
        section("Jobs waiting", figure(*load.queue(simulations, window))),
        section("Nodes busy", figure(*load.utilization(simulations, window))),
        section("How long jobs wait", figure(*waits.distribution(simulations, window))),
        section("Who waits: narrow and wide jobs", figure(*waits.by_width(simulations, window))),
    ]
    return page(title, lead, sections)


def _what(simulation: Simulation, window: tuple[float, float], repairs: Repairs) -> Iterator[tuple[str, str]]:
    log, (from_s, to_s) = simulation.log, window
    span = format_duration(float(log.submit_s[-1] - log.submit_s[0]))
    yield "log", f"{log.name}: {len(log):,} jobs, submitted within {span}"
    yield "machine", f"{simulation.machine_nodes:,} nodes"
    if log.load:
        yield "load", f"the jobs run for {log.load:.0%} of the node-seconds from the first submission to the last"
    if window != (0, math.inf):
        end = "the end" if math.isinf(to_s) else format_duration(to_s)
        yield "counted", f"jobs submitted from {format_duration(from_s)} to {end}; all others run too, but do not count"
    for name, value in simulation.settings.items():
        if name in _MEANINGS:
            meaning = _MEANINGS[name].get(value)
            yield name, f"{value}: {meaning}" if meaning else value
    yield "cleaning", "\n".join(repairs.lines()) or "no job had to be repaired or dropped"


def _table(labels: Sequence[str], summaries: Sequence[Summary]) -> str:
    rows = [[cell(f.title), *_cells(f, summaries)] for f in FIGURES if f.best or any(f.values(summaries))]
    hint = note("Bold: the best of its row.") if len(labels) > 1 else ""
    return table(["", *labels], rows) + hint


def _cells(what: SummaryFigure, summaries: Sequence[Summary]) -> Iterator[str]:
    values = what.values(summaries)
    for value, best in zip(values, what.best_of(values), strict=True):
        seconds = f"{value:,.0f} s" if what.field.endswith("_s") and value >= 120 else ""
        yield cell(what.write(value), seconds, best=best)
