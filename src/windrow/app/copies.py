"""Copies that a user asks for: which tasks may have any, what to say of the others, and what all
should cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.agent.folder import RunFolder
from windrow.app.assembly import dispatch_of
from windrow.app.runs import own_root
from windrow.errors import UserError
from windrow.manager.copying import MOST, chains_s
from windrow.manager.terms import CopyRules
from windrow.model import Step
from windrow.model.hazard import Hazard
from windrow.model.wording import count, node_span
from windrow.strategies.levels import Work

if TYPE_CHECKING:
    from windrow.app.execute import Prepared
    from windrow.app.facts import RunRequest


def uncopied(prepared: Prepared) -> list[str]:
    """Tasks of which there can be no copies, if there are to be some."""
    ids = prepared.runnable.workflow.ids
    return [ids[task] for task, may in enumerate(prepared.copyable) if not may]


def copyable(prepared: Prepared) -> list[bool]:
    """Which tasks several jobs may run at the same time."""
    dispatch = dispatch_of(prepared.wanted, RunFolder.at(own_root() / "N"), uid="", name="")
    return [dispatch.may_copy(task) for task in range(len(prepared.runnable.workflow))]


def options_of(order: RunRequest) -> str:
    """The options by which copies are asked for; empty if none is given."""
    given = {
        "--copies": order.copies > 1,
        "--reliability": order.reliability > 0,
        "--speculate": order.speculate,
    }
    return " and ".join(name for name, is_given in given.items() if is_given)


def notes_on_copies(prepared: Prepared) -> tuple[str, ...]:
    """What the user should know of copies before a run: tasks that have none, and the price."""
    named = options_of(prepared.order)
    rules = prepared.order.rules
    steps = prepared.runnable.steps
    alone = uncopied(prepared)
    notes = (said_of(alone, len(steps), named),) if named and alone else ()
    if not rules.are_needed(steps):
        return notes
    cost = price(
        prepared.work, rules, steps, prepared.terms.overhead_s, lambda task: prepared.copyable[task]
    )
    return (*notes, cost.words(rules, is_known=bool(prepared.site.hazard)))


def said_of(tasks: Sequence[str], of: int, named: str) -> str:
    """What the user should know of tasks that have no copies."""
    who = f"{len(tasks):,} of {of:,} tasks run in one job only, despite {named} (first: {tasks[0]})"
    return f"{who}: only what a command writes to {{outputs}}, and nowhere else, can be kept apart"


def refuse_copies(prepared: Prepared) -> None:
    """UserError if there would be no copies at all."""
    order = prepared.order
    cap = prepared.site.cap
    named = options_of(prepared.order)
    needed = max(order.copies, 2 if order.rules.are_needed(prepared.runnable.steps) else 1)
    if needed > cap:
        if order.copies > 1:
            asked = f"--copies {order.copies}"
        else:
            asked = named or "replicas"
        raise UserError(f"{asked} needs {needed} jobs at a time, but the cap is {cap}; raise --cap")
    if named and len(alone := uncopied(prepared)) == (of := len(prepared.times)):
        raise UserError(f"{said_of(alone, of, named)}; leave {named} out")


@dataclass(frozen=True, slots=True)
class Price:
    """How many tasks should get copies, and the node time that a run is expected to take without
    and with them."""

    tasks: int
    without_node_s: float
    with_node_s: float

    def words(self, rules: CopyRules, *, is_known: bool) -> str:
        """For the user. `is_known`: something is known of failures there."""
        more = f"{self.with_node_s / max(self.without_node_s, 1e-9) - 1:+.0%}".replace("%", " %")
        cost = (
            f"{node_span(self.with_node_s)} expected instead of "
            f"{node_span(self.without_node_s)} ({more})"
        )
        if self.tasks or not rules.speculate:
            said = [f"copies of at most {count(self.tasks, 'task')}: {cost}"]
        else:
            said = []
        if rules.reliability and not is_known:
            said.append(
                "--reliability starts none, as nothing is known about failures at this site"
            )
        return "; ".join(
            [*said, *["a task that is late gets another attempt (--speculate)"] * rules.speculate]
        )


def price(
    work: Work,
    rules: CopyRules,
    steps: Sequence[Step],
    overhead_s: int,
    may_copy: Callable[[int], bool],
) -> Price:
    """What copies should cost if all tasks take as long as expected, and none has to wait for
    nodes."""
    w = work.workflow
    hazard = work.site.hazard
    copied = 0
    without = 0.0
    total = 0.0
    for task, (time_s, idle_s) in enumerate(_times_and_slack(work)):
        nodes = max(1, int(w.nodes[task]))
        share = nodes if w.nodes[task] else min(1.0, int(w.cores[task]) / work.shape.cores)
        from_s = max(0, idle_s - overhead_s)  # its last moment without a delay
        attempts = 1
        if may_copy(task):
            attempts = _attempts(
                rules, hazard, steps[task].replicas, nodes, time_s, from_s, overhead_s
            )
        if steps[task].replicas > 1:
            from_s = 0
        chance = hazard.survival(nodes, time_s)
        held_s = hazard.held_s(nodes, time_s)
        more_s = (attempts - 1) * hazard.held_s(nodes, time_s - from_s) if attempts > 1 else 0.0
        copied += attempts > 1
        without += share * held_s / max(chance, 1e-9)
        total += share * (held_s + more_s) / max(1 - (1 - chance) ** attempts, 1e-9)
    return Price(copied, without, total)


def _times_and_slack(work: Work) -> Iterator[tuple[int, int]]:
    """How long each task takes, and how much later it may start without a delay of the whole."""
    w = work.workflow
    expected = work.expected_s.tolist()
    heads = chains_s(work, w.parents, w.order.tolist())
    tails = chains_s(work, w.children, w.order.tolist()[::-1])
    chains = [sum(parts) for parts in zip(heads, expected, tails, strict=True)]
    end_s = max(chains, default=0)
    return zip(expected, [end_s - chain_s for chain_s in chains], strict=True)


def _attempts(
    rules: CopyRules,
    hazard: Hazard,
    replicas: int,
    nodes: int,
    time_s: int,
    from_s: int,
    overhead_s: int,
) -> int:
    """How many attempts a task should get in all."""
    if not rules.reliability or time_s - from_s <= overhead_s or replicas >= MOST:
        return replicas
    from windrow.strategies.top import top  # noqa: PLC0415  (loaded only if tasks are copied)

    risks = [1 - hazard.survival(nodes, s) for s in (time_s - from_s, *[time_s] * (MOST - 1))]
    chosen = top([0.0] * MOST, risks, wanted=rules.reliability, limit=MOST, held=[0])
    return max(replicas, len(chosen))
