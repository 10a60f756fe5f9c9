"""Everything that is left in one job, within a limit on space; if sizes are not known, a few
pipelines before that.

A file of unknown size counts as empty, so all pipelines could start at once and overflow the limit.
What the first few make tells how large such files are (`storage.demand.with_likely_sizes`), and the
rest is planned with that.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from windrow.model import Workflow
from windrow.strategies.base import Decision, Habits, JobPlan, View
from windrow.strategies.giant import Giant


@dataclass(frozen=True, slots=True)
class Probing:
    """See the head of this file. `probes`: how many pipelines go first."""

    probes: int = 2
    name: str = "giant"
    habits: ClassVar = Habits("while jobs are there")

    def decide(self, view: View) -> Decision:
        """The probes if nothing has run yet and sizes are unknown; else all that is left."""
        if view.jobs or not view.can_submit or not view.left.all() or view.work.space is None:
            return Giant().decide(view)
        tasks = self._probes(view.work.workflow)
        if not tasks:
            return Giant().decide(view)
        chosen = np.array(sorted(tasks), dtype=np.int64)
        nodes = min(view.work.nodes_for(chosen)[1], view.work.nodes_needed(chosen))
        run_s = int(view.work.run_s(chosen, nodes, nodes)[0])
        plan = JobPlan(tuple(chosen.tolist()), nodes, run_s, view.request(run_s))
        return Decision(
            jobs=(plan,),
            why="how large files get is not known: a few pipelines go first, to learn it",
        )

    def _probes(self, workflow: Workflow) -> list[int]:
        """The tasks of the first pipelines that make files of unknown size; none if these are
        all that do."""
        from windrow.storage.demand import demand_of  # noqa: PLC0415  (few runs have a limit)

        demand = demand_of(workflow)
        unknown = {
            demand.parts[file.maker]
            for file in demand.files
            if file.maker is not None and not file.size
        }
        if not unknown:
            return []
        tasks = list[int]()
        seen = set[int]()
        for task in demand.order():
            seen |= {demand.parts[task]} & unknown
            if len(seen) > self.probes:
                return tasks
            tasks.append(task)
        return []
