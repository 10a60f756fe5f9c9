"""The tables of the trials of `foresight`.

Rule: what was asked of it stands beside what came out, and every cell says in words whether it is met. Percentages are
of makespans, below zero where the first is shorter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from windrow.report.block import Block
from windrow.reproductions.foresight.plan import OBJECTIVES, RIVALS, TOLD
from windrow.reproductions.foresight.results import BEST_KNOWN, OURS, ForesightResults, RunsCell
from windrow.reproductions.grid import PRINTED_WINS


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
    """All cells in which foresight meets every fixed strategy; groups without cells are left out."""
    found = results.cells
    grid = [(_label(cell), cell) for cell in found["grid"]]
    judges = [(_short(c, _place(name)), c) for name, cells in found.items() if _is_judge(name) for c in cells]
    noisy = tuple((_short(cell), cell) for cell in found["noise"])
    all_of_them = (
        CellGroup("Where it was tuned", "The GLUME grid: days 1-7 of both logs.", tuple(grid), is_printed=True),
        CellGroup(
            "Where it was not",
            "Later weeks of both logs, other logs, and days 1-7 under EASY; workflows of 250 tasks, actual requests.",
            tuple(judges),
        ),
        CellGroup(
            "Task times off by 20 %", "Days 1-7, workflows of 250 tasks, actual requests. Foresight is not told.", noisy
        ),
        CellGroup("Task times off by 20 %, and told so", "The same. Foresight knows by how much.", noisy, TOLD.name),
    )
    return [group for group in all_of_them if group.cells]


def blocks(results: ForesightResults) -> list[Block]:
    """Every table, in the order of the page."""
    tables = [block for group in groups(results) for block in _of_group(group)]
    others = (_jobs, _configurations, _hindsight, _oracle, _objectives, _ablation, _pace)
    tables += [make(results) for make in others]
    return [block for block in tables if block.rows]


def _of_group(group: CellGroup) -> Iterator[Block]:
    yield _makespans(group)
    yield _asked(group)
    if group.name == OURS:
        yield _wins(group)


def _makespans(group: CellGroup) -> Block:
    names = (*RIVALS, group.name)
    rows, best = [], set()
    for k, (text, c) in enumerate(group.cells):
        hours = [_hours(c.makespan_s(name)) for name in names]
        rows.append(
            (text, f"{len(c.runs)}", *hours, percent(c.against(group.name, c.best)), _met(c.is_within(group.name)))
        )
        best.add((k, 2 + names.index(c.best)))
    words = (
        f"{group.words} Mean makespans in hours over n runs; bold: the best fixed strategy. Last: whether foresight is "
        "at most 1 % above it."
    )
    head = ("cell", "n", *names, "against best", "+1 %")
    return Block(f"{group.title}: makespans", words, head, tuple(rows), frozenset(best))


def _asked(group: CellGroup) -> Block:
    printed = ("in print", "5 %") if group.is_printed else ()
    head = ("cell", "against glume", *printed, "here", "5 %", "node-hours", "1.1 times")
    rows = tuple((text, *_asked_of(group, cell)) for text, cell in group.cells)
    words = (
        "On how many workflows glume beats zhang / zhang beats glume, by 5 % of the makespan or more, as in table 7.1 "
        "of its thesis. Where glume loses more than it wins, foresight is to be 5 % better than glume. Node-hours are "
        "times those of glume; at most 1.1 times were asked for."
    )
    return Block(f"{group.title}: against glume", words, head, rows)


def _asked_of(group: CellGroup, c: RunsCell) -> Iterator[str]:
    better = _met(c.is_better(group.name))
    yield percent(c.against(group.name, "glume"))
    if group.is_printed:
        yield _pair(PRINTED_WINS[c.log, c.requests, c.length])
        yield better if c.glume_loses_in_print else ""
    yield _pair(c.wins("glume", "zhang"))
    yield better if c.glume_loses else ""
    yield f"{c.cost(group.name):.2f}"
    yield _met(c.is_cheap(group.name))


def _wins(group: CellGroup) -> Block:
    rows = tuple(
        (text, f"{len(c.workflows)}", *(_pair(c.wins(group.name, rival)) for rival in RIVALS))
        for text, c in group.cells
    )
    words = "On how many workflows foresight beats each, by 5 % of the makespan or more over all times / is beaten."
    return Block(f"{group.title}: wins / losses by workflow", words, ("cell", "workflows", *RIVALS), rows)


def _jobs(results: ForesightResults) -> Block:
    rows = []
    for group in groups(results):
        means = [[cell.jobs(name) for _, cell in group.cells] for name in (*RIVALS, group.name)]
        rows.append((group.title, *(f"{fmean(n for n, _ in of):.1f} / {fmean(k for _, k in of):.1f}" for of in means)))
    words = "Jobs of a run / those of them that were killed with tasks left in them, as means over the cells."
    return Block("Jobs, and jobs in vain", words, ("", *RIVALS, OURS), tuple(rows))


def _configurations(results: ForesightResults) -> Block:
    columns: dict[str, dict[str, str]] = {}
    for cell in results.cells["grid"]:
        for workflow in cell.workflows:
            column = columns.setdefault(f"{cell.log} {cell.requests}", {})
            column[workflow] = percent(-cell.improvement(workflow, OURS, "glume") / 100)
    names = [w.name for c in results.plan.campaigns if c.name == "grid" for w in c.workflows]
    rows = tuple((name, *(column.get(name, "") for column in columns.values())) for name in names)
    words = "Makespan of foresight against that of glume on each workflow of the grid, as the mean over times."
    return Block("The grid, workflow by workflow", words, ("workflow", *columns), rows)


def _hindsight(results: ForesightResults) -> Block:
    words = (
        "Hindsight is foresight that knows the future: who will come, and how long everybody runs. Actual requests, "
        "days 1-7; mean makespans in hours."
    )
    head = ("cell", "n", "best fixed", OURS, "hindsight", "best fixed above it", "foresight above it")
    rows = tuple(_distance(cell, (cell.best, OURS), "hindsight") for cell in results.cells["hindsight"])
    return Block("Distance to hindsight", words, head, rows)


def _oracle(results: ForesightResults) -> Block:
    words = (
        "The oracle searches with a beam, two courses wide and two decisions deep, on the true future. The best known "
        "is the shortest run that it or any strategy found: what could be reached at least. Mean makespans in hours."
    )
    head = ("cell", "n", "glume", OURS, "oracle", BEST_KNOWN, "glume above it", "foresight above it")
    rows = tuple(_distance(c, ("glume", OURS), "oracle", BEST_KNOWN) for c in results.cells["oracle"])
    return Block("Distance to the best that could be known", words, head, rows)


def _distance(cell: RunsCell, ours: tuple[str, str], *knowing: str) -> tuple[str, ...]:
    hours = [_hours(cell.makespan_s(name)) for name in (*ours, *knowing)]
    above = [percent(cell.against(name, knowing[-1])) for name in ours]
    return (_label(cell), f"{len(cell.runs)}", *hours, *above)


def _objectives(results: ForesightResults) -> Block:
    logs = results.by_log("objectives")
    head = ("strategy", *(f"{c.log} {what}" for c in logs for what in ("makespan", "node-hours")))
    rows = [
        (shown(name), *(text for c in logs for text in (_hours(c.makespan_s(name)), f"{c.node_h(name):.0f}")))
        for name in (by_objective(logs[0]) if logs else ())
    ]
    words = "Means over the same runs, in hours; workflows of 250 tasks, actual requests, days 1-7."
    return Block("Objectives", words, head, tuple(rows))


def by_objective(cell: RunsCell) -> tuple[str, ...]:
    """The strategies of a cell, those with objectives first."""
    ours = (OURS, *(strategy.name for strategy in OBJECTIVES))
    return (*ours, *(name for name in cell.names if name not in ours))


def shown(name: str) -> str:
    """A strategy in the company of objectives."""
    names = {OURS: "makespan"} | {strategy.name: strategy.objective for strategy in OBJECTIVES}
    return f"foresight: {names[name]}" if name in names else name


def _ablation(results: ForesightResults) -> Block:
    runs = sum(len(cell.runs) for cell in results.cells["ablation"])
    rows = tuple(
        (change.name, percent(change.makespan), percent(change.worst), f"{change.node_hours:.2f}")
        for change in results.changes("ablation")
    )
    words = (
        f"Each ingredient left out, and glume, against all of foresight on the same {runs} runs: means over the cells "
        "of log and length. Above zero: the ingredient helps. Workflows of 250 tasks, actual requests, days 1-7."
    )
    return Block("Ablation", words, ("", "makespan", "worst cell", "node-hours, times"), rows)


def _pace(results: ForesightResults) -> Block:
    queue = "".join(f" with {d.waiting} jobs in the queue of {d.nodes} nodes" for d in results.decisions[:1])
    rows = tuple(
        (p.workflow, f"{len(p.decisions_s)}", f"{p.decisions_s[0]:.2f} s", f"{max(p.decisions_s):.2f} s")
        for p in results.decisions
    )
    words = (
        f"The first decisions of a run, at most three, in seconds of processor time,{queue}. "
        "At most 1 s was asked for. These times differ from machine to machine."
    )
    return Block("How long a decision takes", words, ("workflow", "decisions", "the first", "the longest"), rows)


def _label(cell: RunsCell) -> str:
    return f"{cell.log} {cell.requests} {cell.length}"


def _short(cell: RunsCell, where: str = "") -> str:
    """The same where all requests are actual ones, and policies differ."""
    policy = "" if cell.policy == "conservative" else cell.policy.upper()
    return " ".join(part for part in (cell.log, cell.length, where, policy) if part)


def _place(campaign: str) -> str:
    return "later" if campaign.startswith("weeks") else ""


def _is_judge(campaign: str) -> bool:
    return campaign.startswith("weeks-") or campaign in ("logs", "easy")


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
    return "met" if is_met else "not met"
