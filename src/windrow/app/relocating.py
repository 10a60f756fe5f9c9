"""A run whose project was moved or copied: what it did counts where it is now.

Its tasks are named by the place where it was started, so it cannot simply continue. It is looked at
as if it had run here, and a new run continues it. A run that may still have jobs at work is left
alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.app.facts import RunFacts
from windrow.errors import UserError
from windrow.model import Runnable, Step

if TYPE_CHECKING:
    from windrow.app.runs import RunView


@dataclass(frozen=True, slots=True)
class ProjectMove:
    """From the folder in which a project was to the one in which it is; both may exist."""

    old: str
    new: str

    def path(self, name: str) -> str:
        """What is called so now."""
        if name == self.old or name.startswith(f"{self.old}/"):
            return self.new + name[len(self.old) :]
        return name

    def text(self, words: str) -> str:
        """The same with all whole paths below the folder in it."""
        return words.replace(f"{self.old}/", f"{self.new}/")

    def inside(self, words: str) -> str:
        """The same with the folder itself in it, too, where a container is to see it."""
        return self.text(words).replace(f"places=({self.old}", f"places=({self.new}")

    def step(self, step: Step) -> Step:
        """The same task here."""
        return replace(
            step,
            workdir=self.path(step.workdir),
            command=tuple(map(self.text, step.command)),
            inside=tuple(map(self.inside, step.inside)),
            inside_at=tuple(
                (site, tuple(map(self.inside, words))) for site, words in step.inside_at
            ),
            env=tuple((name, self.text(value)) for name, value in step.env),
            mounts=tuple(
                m._replace(before=self.path(m.before), after=self.path(m.after))
                for m in step.mounts
            ),
            extracts=tuple((v, inside, self.path(kept)) for v, inside, kept in step.extracts),
        )

    def runnable(self, runnable: Runnable) -> Runnable:
        """The same workflow here."""
        files = [replace(file, id=self.path(file.id)) for file in runnable.workflow.files]
        return Runnable(
            runnable.workflow.changed(files=files), tuple(map(self.step, runnable.steps))
        )


def move_of(facts: RunFacts, root: Path) -> ProjectMove | None:
    """How the project of a run in this place was moved; None: it was not."""
    was = Path(facts.root)
    if not facts.root or was == root or (was.exists() and was.samefile(root)):
        return None
    return ProjectMove(str(was.parents[1]), str(root.parents[1]))


def workflow_of(facts: RunFacts, root: Path) -> str:
    """The workflow file of a run, as it is called where the run is now."""
    move = move_of(facts, root)
    if move is None:
        return str(facts.workflow)
    return move.path(str(facts.workflow))


def relocate(told: RunView) -> ProjectMove | None:
    """Look at the run as if it had run where it is now. UserError if its jobs may be at work."""
    root = told.paths.folder.path.parent
    move = told.move or move_of(told.facts, root)
    if move is None:
        return None
    is_copy = Path(move.old).exists()
    if not is_copy and any(not job.outcome for job in told.story.jobs.values()):
        raise UserError(
            f"{told.paths.name} was started in {move.old}, and its jobs may still run there; move "
            "it back and windrow cancel it, then move it again"
        )
    file = Path(move.path(str(told.facts.request.workflow)))
    told.facts = replace(
        told.facts, request=replace(told.facts.request, workflow=file), root=str(root)
    )
    if told.move is None:
        told.move = move
        told.runnable = move.runnable(told.runnable)
    return move
