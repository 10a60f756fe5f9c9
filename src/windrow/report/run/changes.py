"""What a changed workflow file means for a run, in a few lines."""

from windrow.manager.changes import Changes
from windrow.manager.states import TaskState
from windrow.manager.story import RunStory
from windrow.model.wording import count, listed


def change_lines(changes: Changes) -> list[str]:
    """Which finished tasks run again and why, which tasks are new, and which are gone."""
    ids = changes.runnable.workflow.ids
    lines = []
    if total := len(changes.again) + len(changes.dependents):
        lines.append(f"{count(total, 'finished task')} {'runs' if total == 1 else 'run'} again: {_which(changes)}")
    if changes.edited:
        words = [f"{ids[task]} ({why})" for task, why in sorted(changes.edited.items())]
        lines.append(f"{count(len(changes.edited), 'unfinished task')} changed: {listed(words)}")
    if changes.added:
        lines.append(f"{count(len(changes.added), 'new task')}: {listed([ids[task] for task in changes.added])}")
    if changes.removed:
        verb = "is" if len(changes.removed) == 1 else "are"
        lines.append(f"{count(len(changes.removed), 'task')} {verb} no longer in the file: {listed(changes.removed)}")
    return lines


def _which(changes: Changes) -> str:
    ids = changes.runnable.workflow.ids
    words = [f"{ids[task]} ({why})" for task, why in sorted(changes.again.items())]
    words = [listed(words)] if words else []
    if changes.dependents:
        verb = "it depends" if len(changes.dependents) == 1 else "they depend"
        roots = [ids[root] for root in dict.fromkeys(changes.dependents.values())]
        words.append(f"{listed([ids[task] for task in sorted(changes.dependents)])} ({verb} on {listed(roots)})")
    return ", ".join(words)


def unfinished_line(story: RunStory) -> str:
    """The tasks of a run that have not finished: those that failed by name."""
    ids = story.workflow.ids
    failed = [ids[number] for number, task in enumerate(story.tasks) if task.state == "failed"]
    others = sum(task.state not in (TaskState.FINISHED, TaskState.FAILED) for task in story.tasks)
    parts = [f"{listed(failed)} (failed)"] if failed else []
    if others:
        parts.append(f"{others:,} that {'has' if others == 1 else 'have'} not run")
    return ", ".join(parts)
