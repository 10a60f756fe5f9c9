"""The tables of the trials of `foresight`, and what its objectives trade, drawn for each log.

Rule: what was asked of it stands beside what came out, and every cell says in words whether it is
met. Percentages are of makespans, below zero if the first is shorter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from windrow.report.page import Block
from windrow_lab.reproductions.cases import PRINTED_WINS
from windrow_lab.reproductions.charts import MARKERS, chart
from windrow_lab.reproductions.foresight.plan import OBJECTIVES, RIVALS, TOLD
from windrow_lab.reproductions.foresight.results import BEST_KNOWN, OURS, ForesightResults, RunsCell
from windrow_lab.reproductions.paper import Texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TEXTS = Texts("foresight")
# times the shortest makespan or the fewest node-hours: what is beyond lies at the edge of a picture
_FAR = 2.0


@dataclass(frozen=True, slots=True)
class CellGroup:
    """Cells that are told of together; `name` is the strategy that is put to the test in them."""

    title: str
    words: str
    cells: tuple[tuple[str, RunsCell], ...]
    name: str = OURS
    is_printed: bool = False
    """Whether print has these cells."""


def groups(results: ForesightResults) -> list[CellGroup]:
    """All cells in which foresight meets every fixed strategy; groups without cells are left
    out."""
    found = results.cells
    tuned = tuple((_label(cell), cell) for cell in found["grid"])
    judges: list[tuple[str, RunsCell]] = []
    for name, cells in found.items():
        is_later = name.startswith("weeks-")
        if is_later or name in ("logs", "easy"):
            judges += [(_short(cell, "later" if is_later else ""), cell) for cell in cells]
    noisy = tuple((_short(cell), cell) for cell in found["noise"])
    words: dict[str, tuple[str, str]] = TEXTS["groups"]
    all_of_them = (
        CellGroup(*words["tuned"], tuned, is_printed=True),
        CellGroup(*words["judged"], tuple(judges)),
        CellGroup(*words["noisy"], noisy),
        CellGroup(*words["told"], noisy, TOLD.name),
    )
    return [group for group in all_of_them if group.cells]


def blocks(results: ForesightResults) -> list[Block]:
    """Every table, in the order of the page."""
    tables = []
    for group in groups(results):
        tables += [_makespans(group), _asked(group)]
        if group.name == OURS:
            tables.append(_wins(group))
    tables += [
        _jobs(results),
        _configurations(results),
        *_distances(results),
        _objectives(results),
        _ablation(results),
        _decisions(results),
    ]
    return [block for block in tables if block.rows]


def _ablation(results: ForesightResults) -> Block:
    changes = (
        (change, percent(change.makespan), percent(change.worst))
        for change in results.changes("ablation")
    )
    ablated = sum(len(cell.runs) for cell in results.cells["ablation"])
    return TEXTS.table("ablation", changes, runs=ablated)


def _decisions(results: ForesightResults) -> Block:
    queue = ""
    if results.decisions:
        first = results.decisions[0]
        queue = f" with {first.waiting} jobs in the queue of {first.nodes} nodes"
    times = ((times, len(times.decisions_s), max(times.decisions_s)) for times in results.decisions)
    return TEXTS.table("decisions", times, queue=queue)


def _makespans(group: CellGroup) -> Block:
    names = (*RIVALS, group.name)
    rows = []
    best = set()
    for k, (text, c) in enumerate(group.cells):
        hours = [_hours(c.makespan_s(name)) for name in names]
        rows.append(
            (
                text,
                f"{len(c.runs)}",
                *hours,
                percent(c.against(group.name, c.best)),
                _met(c.is_within(group.name)),
            )
        )
        best.add((k, 2 + names.index(c.best)))
    head = ("cell", "n", *names, "against best", "+1 %")
    return TEXTS.block("makespans", head, rows, best, group=group.title, words=group.words)


def _asked(group: CellGroup) -> Block:
    printed = ("in print", "5 %") if group.is_printed else ()
    head = ("cell", "against glume", *printed, "here", "5 %", "node-hours", "1.1 times")
    rows = []
    for text, c in group.cells:
        row = [text, percent(c.against(group.name, "glume"))]
        better = _met(c.is_better(group.name))
        if group.is_printed:
            row.append(_pair(PRINTED_WINS[c.log, c.requests, c.length]))
            row.append(better if c.glume_loses_in_print else "")
        row.append(_pair(c.wins("glume", "zhang")))
        row.append(better if c.glume_loses else "")
        row += [f"{c.cost(group.name):.2f}", _met(c.is_cheap(group.name))]
        rows.append(tuple(row))
    return TEXTS.block("asked", head, rows, group=group.title)


def _wins(group: CellGroup) -> Block:
    rows = tuple(
        (text, f"{len(c.workflows)}", *(_pair(c.wins(group.name, rival)) for rival in RIVALS))
        for text, c in group.cells
    )
    return TEXTS.block("wins", ("cell", "workflows", *RIVALS), rows, group=group.title)


def _jobs(results: ForesightResults) -> Block:
    rows = []
    for group in groups(results):
        means = [[cell.jobs(name) for _, cell in group.cells] for name in (*RIVALS, group.name)]
        rows.append(
            (
                group.title,
                *(f"{fmean(n for n, _ in of):.1f} / {fmean(k for _, k in of):.1f}" for of in means),
            )
        )
    return TEXTS.block("jobs", ("", *RIVALS, OURS), rows)


def _configurations(results: ForesightResults) -> Block:
    columns: dict[str, dict[str, str]] = {}
    for cell in results.cells["grid"]:
        for workflow in cell.workflows:
            column = columns.setdefault(f"{cell.log} {cell.requests}", {})
            column[workflow] = percent(-cell.improvement(workflow, OURS, "glume") / 100)
    names = [w.name for c in results.plan.campaigns if c.name == "grid" for w in c.workflows]
    rows = tuple((name, *(column.get(name, "") for column in columns.values())) for name in names)
    return TEXTS.block("configurations", ("workflow", *columns), rows)


def _distances(results: ForesightResults) -> Iterator[Block]:
    for campaign, base, knowing in (
        ("hindsight", "best fixed", ("hindsight",)),
        ("oracle", "glume", ("oracle", BEST_KNOWN)),
    ):
        rows = []
        for cell in results.cells[campaign]:
            ours = (cell.best if base == "best fixed" else base, OURS)
            hours = [_hours(cell.makespan_s(name)) for name in (*ours, *knowing)]
            above = [percent(cell.against(name, knowing[-1])) for name in ours]
            rows.append((_label(cell), f"{len(cell.runs)}", *hours, *above))
        head = ("cell", "n", base, OURS, *knowing, f"{base} above it", "foresight above it")
        yield TEXTS.block(campaign, head, rows)


def _objectives(results: ForesightResults) -> Block:
    logs = results.by_log("objectives")
    head = ("strategy", *(f"{c.log} {what}" for c in logs for what in ("makespan", "node-hours")))
    rows = [
        (
            _shown(name),
            *(text for c in logs for text in (_hours(c.makespan_s(name)), f"{c.node_h(name):.0f}")),
        )
        for name in (_by_objective(logs[0]) if logs else ())
    ]
    return TEXTS.block("objectives", head, rows)


def _by_objective(cell: RunsCell) -> tuple[str, ...]:
    """The strategies of a cell, those with objectives first."""
    ours = (OURS, *(strategy.name for strategy in OBJECTIVES))
    return (*ours, *(name for name in cell.names if name not in ours))


def _shown(name: str) -> str:
    """A strategy in the company of objectives."""
    names = {OURS: "makespan"} | {strategy.name: strategy.objective for strategy in OBJECTIVES}
    if name in names:
        return f"foresight: {names[name]}"
    return name


def frontier(cell: RunsCell) -> str:
    """A figure of mean makespans over mean node-hours."""
    names = _by_objective(cell)
    places = [(cell.node_h(name), cell.makespan_s(name) / 3600) for name in names]
    near = _nearer(places)

    def draw(axes: Axes) -> None:
        axes.plot(*zip(*sorted(near[: 1 + len(OBJECTIVES)]), strict=True), linewidth=1)
        for k, name in enumerate(names):
            axes.plot(*near[k], MARKERS[k], color=f"C{k}", label=_shown(name), clip_on=False)

    far = {name for name, at, shown in zip(names, places, near, strict=True) if at != shown}
    caption = (
        f"{cell.log}: each objective, joined by a line, and each fixed strategy, over "
        f"{len(cell.runs)} runs. Lower and further left is better."
    )
    if far:
        beyond = ", ".join(_shown(name) for name in cell.names if name in far)
        caption += f" At the edge, beyond the scale: {beyond}."
    return chart(draw, caption, height=4, x="mean node-hours", y="mean makespan, hours")


def _nearer(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same, but none farther out than the edge of the picture."""
    most_h = _FAR * min(cost for cost, _ in places)
    most_span = _FAR * min(span for _, span in places)
    return [(min(cost, most_h), min(span, most_span)) for cost, span in places]


def _label(cell: RunsCell) -> str:
    return f"{cell.log} {cell.requests} {cell.length}"


def _short(cell: RunsCell, where: str = "") -> str:
    """The same if all requests are actual ones, and policies differ."""
    if cell.policy == "conservative":
        policy = ""
    else:
        policy = cell.policy.upper()
    return " ".join(part for part in (cell.log, cell.length, where, policy) if part)


def percent(part: float) -> str:
    """A part with its sign."""
    return f"{100 * part:+.1f} %"


def count(cells: Sequence[bool]) -> str:
    """How many of how many."""
    return f"{sum(cells)} of {len(cells)}"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.2f}"


def _pair(pair: tuple[int, int]) -> str:
    return f"{pair[0]}/{pair[1]}"


def _met(is_met: bool) -> str:
    if is_met:
        return "met"
    return "not met"
