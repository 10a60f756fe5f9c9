"""A pool as any process can tell it: facts, story, who serves it. Reading changes nothing."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from windrow.pool.events import Event
from windrow.pool.folder import PoolFolder
from windrow.pool.journal import PoolJournal
from windrow.pool.settings import PoolSettings
from windrow.pool.story import PoolStory, WorkflowStory
from windrow.records.journal import JournalView


class PoolView(JournalView[PoolJournal]):
    """A pool: facts, story, who serves it."""

    def __init__(self, folder: PoolFolder) -> None:
        self.folder = folder
        self.story = PoolStory()
        super().__init__(PoolJournal.open(folder.journal), folder.lock)

    def refresh(self) -> None:
        """Take in what has happened since the last look."""
        super().refresh()
        if self.holder is None:  # a server that was killed could not say that its tasks were, too
            for workflow in self.story.workflows.values():
                workflow.running.clear()

    def _take_facts(self, facts: Mapping[str, Any]) -> None:
        self.facts = dict(facts)

    def _hear(self, record: Event) -> None:
        self.story.hear(record)

    @property
    def settings(self) -> PoolSettings | None:
        """How the pool was served last; None before it ever was."""
        if "settings" in self.facts:
            return PoolSettings(**self.facts["settings"])
        return None

    @property
    def reserved(self) -> int:
        """Processors that stand idle because they are kept for a workflow."""
        if self.holder:
            return int(self.facts.get("reserved", 0))
        return 0

    @property
    def submitted(self) -> int:
        """Workflows that were submitted and that no server has seen yet."""
        found = [int(p.stem) for p in self.folder.workflows.glob("*.json") if p.stem.isdecimal()]
        return sum(number not in self.story.workflows for number in found)


def as_json(told: PoolView) -> dict[str, Any]:
    """The pool for programs."""
    story = told.story
    settings = told.settings
    return {
        "pool": told.folder.name,
        "folder": str(told.folder.path),
        "served_by": told.holder,
        "policy": settings.policy if settings else None,
        "selection": settings.selection if settings else None,
        "slots": {
            "total": settings.slots if settings else None,
            "busy": story.busy,
            "reserved_idle": told.reserved,
        },
        "not_seen_yet": told.submitted,
        "figures": {name: asdict(figure) for name, figure in story.figures().items()},
        "lost_hosts": list(story.lost_hosts),
        "workflows": [workflow_json(story.workflows[number]) for number in sorted(story.workflows)],
    }


def workflow_json(workflow: WorkflowStory) -> dict[str, Any]:
    """One workflow for programs."""
    return {
        "workflow": workflow.number,
        "name": workflow.name,
        "state": workflow.state,
        "tasks": {
            "total": workflow.tasks,
            "finished": len(workflow.took_s),
            "running": len(workflow.running),
            "failed": len(workflow.given_up),
        },
        **{
            name: getattr(workflow, name)
            for name in ("submitted_s", "wait_s", "makespan_s", "response_s")
        },
        "alone_s": workflow.alone_s or None,
        "slowdown": workflow.slowdown,
        "why": workflow.why,
    }
