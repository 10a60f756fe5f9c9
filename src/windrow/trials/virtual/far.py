"""A second place of files in a virtual world: a folder of its own, a porter that may be silent,
moves that take time.

While the queue is down the place cannot be reached at all, and moves that should end then are cut.
What a dead manager had under way ends as if it had been killed with it: a later one moves it again.
"""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

from windrow.agent.folder import RunFolder
from windrow.agent.porter import serve
from windrow.data.catalogue import HOME, Catalogue, paths_of
from windrow.data.mirror import Mirror, through
from windrow.data.rsync import MovedFiles, MoveFiles
from windrow.manager.transfers import Transfers
from windrow.model import Runnable
from windrow.queues.port import Queue, QueueError
from windrow.queues.simulated import Mood
from windrow.trials.virtual.kinds import Kind
from windrow.trials.virtual.world import World

NAME = "west"


class _Mirror(Mirror):
    """Looks at once: there are no threads in virtual time."""

    def look(self) -> None:
        self._try()


class _Mover:
    def __init__(self, world: World, root: Path, there: Path) -> None:
        self._world = world
        self._folders = (root, there)
        self._ended = list[MovedFiles]()

    def start(self, move: MoveFiles) -> None:
        self._world.moves += 1
        end_s = self._world.now_s + int(self._world.move_s) + len(move.files)
        self._world.dues.append((end_s, lambda: self._end(move)))

    def _end(self, move: MoveFiles) -> None:
        world = self._world
        origin, to = self._folders if move.origin == HOME else self._folders[::-1]
        world.moves -= 1
        why = "the connection was cut" if world.mood("move") is Mood.DOWN else ""
        why = why or world.lasting.why_not_moved
        why = why or ("No space left on device" if world.now_s < world.full_until_s else "")
        if world.vanishing and not why:
            self._vanish(origin, move.files)
        gone = tuple(path for path in move.files if not (origin / path).exists())
        for path in move.files if not why else ():
            if path not in gone:
                to.mkdir(exist_ok=True)
                shutil.copyfile(origin / path, to / path)
                world.made.add(str(to / path))
        self._ended.append(
            MovedFiles(move, len(move.files), 1.0, why or ("some are gone" if gone else ""), gone)
        )
        world.wake()

    def _vanish(self, origin: Path, names: Iterable[str]) -> None:
        """Someone has deleted the first of these that a task made."""
        there = [origin / name for name in names if name in self._world.expected]
        for file in [file for file in there if file.exists()][:1]:
            self._world.vanishing -= 1
            self._world.met[Kind.GONE] += 1
            self._world.lose_file(file)

    def ended(self) -> list[MovedFiles]:
        ended = self._ended
        self._ended = []
        places = ((path, one.move.origin) for one in ended for path in one.gone)
        self._world.told_gone += places
        return ended

    def close(self) -> None:
        pass


class _Behind:
    """A queue of which some calls are others."""

    def __init__(self, queue: Queue, calls: dict[str, Callable[..., Any]]) -> None:
        self._queue = queue
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return self._calls.get(name) or getattr(self._queue, name)


def behind(queue: Queue, mirror: Mirror | None) -> Queue:
    """The queue as a site with this mirror has it."""
    if mirror is None:
        return queue
    return cast(Queue, _Behind(queue, through(mirror, queue)))


def transfers(world: World, runnable: Runnable, folder: RunFolder, there: Path) -> Transfers:
    """The files of a run of which a part is at another place, `there`."""
    paths = paths_of(runnable, lambda _: False)

    def ask(request: dict[str, Any]) -> dict[str, Any]:
        if world.queue.mood("look") is Mood.DOWN:
            raise QueueError("the place cannot be reached")
        try:
            return serve(there, request)
        except OSError as error:  # the porter tells it, and is told on here as a fault of the place
            raise QueueError(str(error)) from error

    mirror = _Mirror(NAME, RunFolder(folder.path / "far" / NAME), ask, str(there), ("agent",))
    return Transfers(
        Catalogue(paths), {NAME: mirror}, _Mover(world, Path(paths.root), there / "files")
    )
