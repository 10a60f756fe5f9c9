"""Which places have which files of a run, and what has to be moved where. Pure.

A *place of files* is named as in `Site.files`: sites of the same name see the same files. The empty
name is home: the folders from which the run was started. Files go by their paths below one root,
the least folder that has all of them, which is the same at every place.

Rule 1: what is at a place is what the run knows to be there: made there by the attempt that counts,
or moved from where that was. A file of the same name is not the same file. Rule 2: files move
between home and another place, never between two others directly: of two sites neither can reach
the other in general.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from windrow.errors import UserError
from windrow.model import Runnable, Step, Task

HOME = ""
FADING = 0.7
"""Weight of what was known of a link when one more transfer over it has been seen."""
GUESS_S_PER_MB = 0.1
"""Of a link over which nothing has moved yet."""
_WORDS = re.compile(r"[^\s;|&<>()'\"=`$]+")


@dataclass(frozen=True, slots=True)
class Paths:
    """The files of a workflow below `root`, by task: what each reads and makes."""

    root: str
    reads: tuple[tuple[str, ...], ...]
    makes: tuple[tuple[str, ...], ...]
    stays: frozenset[str] = frozenset()
    """What never comes home."""


def paths_of(runnable: Runnable, is_file: Callable[[str], bool], root: str = "") -> Paths:
    """Where the files of this workflow are. UserError if some could not be found at another
    place.

    Beside declared inputs a task reads those files below the root that its command names and no
    task makes: programs and scripts, say. `root`: where it is fixed already.
    """
    workflow = runnable.workflow
    folders = [step.workdir for step in runnable.steps]
    tasks = [workflow.task(number) for number in range(len(workflow))]
    makes = [_whole(folder, task.outputs) for folder, task in zip(folders, tasks, strict=True)]
    root = root or _common_root(tasks, folders)
    words = _Words(root, {path for outputs in makes for path in outputs}, is_file)
    reads = []
    for task, step, outputs in zip(tasks, runnable.steps, makes, strict=True):
        inputs = dict.fromkeys(_whole(step.workdir, task.inputs))
        inputs |= dict.fromkeys(words.files(task.id, step))
        for path in (*inputs, *outputs):
            if not path.startswith(f"{root.rstrip('/')}/"):
                raise UserError(
                    f"task {task.id} uses {path}, which is outside of {root} and cannot be moved "
                    "to other sites; put it there, and name it by a relative path"
                )
        reads.append(_below(root, inputs))
    kept = {file.id for file in workflow.files if file.stays}
    stays = (
        path
        for folder, task in zip(folders, tasks, strict=True)
        for path in _whole(folder, kept.intersection(task.outputs))
    )
    return Paths(
        root,
        tuple(reads),
        tuple(_below(root, outputs) for outputs in makes),
        frozenset(_below(root, stays)),
    )


def _whole(folder: str, names: Iterable[str]) -> list[str]:
    """Paths from the root of the file system."""
    return [os.path.normpath(os.path.join(folder, name)) for name in names]  # noqa: PTH118 - pure


def _below(root: str, paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(os.path.relpath(path, root) for path in paths)


def _common_root(tasks: Iterable[Task], folders: Sequence[str]) -> str:
    """The least folder that has all that tasks name by relative paths, and where they run."""
    near = (
        path
        for folder, task in zip(folders, tasks, strict=True)
        for path in _whole(folder, (f for f in (*task.inputs, *task.outputs) if f[:1] != "/"))
    )
    return os.path.commonpath([*folders, *map(os.path.dirname, near)])


@dataclass
class _Words:
    """Which words of commands name files below the root that no task makes."""

    root: str
    made: Collection[str]
    is_file: Callable[[str], bool]
    _known: dict[str, bool] = field(default_factory=dict)

    def files(self, task: str, step: Step) -> Iterator[str]:
        """Those of a task's command. UserError if one is named by a path that other sites do not
        have."""
        for word in (word for part in step.command for word in _WORDS.findall(part)):
            (path,) = _whole(step.workdir, [word])
            if not self._is_named(path):
                continue
            if word[:1] == "/":
                raise UserError(
                    f"task {task} names {word} in its command, which is elsewhere at other sites; "
                    "write the path relative to the task's folder"
                )
            yield path

    def _is_named(self, path: str) -> bool:
        if path not in self._known:
            is_ours = path not in self.made and path.startswith(f"{self.root}/")
            self._known[path] = is_ours and self.is_file(path)
        return self._known[path]


@dataclass
class Catalogue:
    """What is where. `sizes`: bytes of files, as far as they are known."""

    paths: Paths
    sizes: dict[str, int] = field(default_factory=dict)
    s_per_mb: dict[tuple[str, str], float] = field(default_factory=dict)
    """Of each link that was used, learned from what moved over it."""
    results: dict[str, None] = field(default_factory=dict)
    """Files that no task reads, and that are not at home yet."""
    _at: dict[str, set[str]] = field(default_factory=dict)
    _read: set[str] = field(default_factory=set)
    maker: dict[str, int] = field(default_factory=dict)
    made_at: dict[int, str] = field(default_factory=dict)
    """Where each finished task ran."""

    def __post_init__(self) -> None:
        self.extend(self.paths)

    def extend(self, paths: Paths) -> None:
        """The workflow has these files now: those that it had, and more."""
        self.paths = paths
        self.maker = {path: task for task, made in enumerate(paths.makes) for path in made}
        self._read = {path for read in paths.reads for path in read}
        for path in self.unmade:
            self._at.setdefault(path, {HOME})

    @property
    def unmade(self) -> set[str]:
        """Files that tasks read and none makes."""
        return self._read - self.maker.keys()

    def is_at(self, path: str, place: str) -> bool:
        """Whether the file is there."""
        return place in self._at.get(path, ())

    def is_nowhere(self, path: str) -> bool:
        """Whether no place has the file."""
        return not self._at.get(path)

    def made(self, task: int, place: str, sizes: Iterable[int] = ()) -> None:
        """A task has finished there. Of two attempts the one that was heard of first counts."""
        if task in self.made_at:
            return
        self.made_at[task] = place
        made = self.paths.makes[task]
        self.sizes |= zip(made, sizes)  # noqa: B905 - of some, sizes are not known
        self._at |= {path: {place} for path in made}
        self.results |= dict.fromkeys(
            path for path in made if place != HOME and path not in self._read | self.paths.stays
        )

    def undone(self, task: int) -> None:
        """It is to run again."""
        self.made_at.pop(task, None)
        for path in self.paths.makes[task]:
            self._at.pop(path, None)
            self.results.pop(path, None)

    def moved(
        self, files: Iterable[str], origin: str, to: str, size_bytes: int, took_s: float
    ) -> None:
        """These have arrived. A link's speed is that of what was sent, which may be less than the
        files."""
        for path in files:
            self._at.setdefault(path, set()).add(to)
            if to == HOME:
                self.results.pop(path, None)
        if size_bytes >= 1 << 16:  # of less, the time is that of the connection
            seen = took_s / (size_bytes / 1e6)
            link = (origin, to)
            self.s_per_mb[link] = FADING * self.s_per_mb.get(link, seen) + (1 - FADING) * seen

    def gone(self, place: str, files: Collection[str] = ()) -> None:
        """These are not at that place any more; all, if none are named."""
        for path in files or self._at:
            self._at.get(path, set()).discard(place)

    def lacking(self, task: int, place: str) -> list[str]:
        """What the task reads and is not there."""
        return [path for path in self.paths.reads[task] if not self.is_at(path, place)]

    def moves(self, needs: Mapping[str, Collection[str]]) -> dict[tuple[str, str], list[str]]:
        """What can be moved now, by link, so that each place gets what it needs, and home the
        results."""
        found: dict[tuple[str, str], dict[str, None]] = {}
        for place, files in (*needs.items(), (HOME, self.results)):
            for path in files:
                if self._at.get(path) and not self.is_at(path, place):
                    link = self.link(path, place)
                    if link[1] != HOME or path not in self.paths.stays:
                        found.setdefault(link, {})[path] = None
        return {link: sorted(files) for link, files in found.items()}

    def link(self, path: str, place: str) -> tuple[str, str]:
        """By which link this file moves next on its way to that place."""
        there = self._at[path]
        if HOME in there:
            return (HOME, place)
        return (min(there), HOME)

    def data_s(self, tasks: Iterable[int], place: str) -> float:
        """How long until what these tasks read is there, from what is known of links and sizes; 0
        if all is."""
        total_s = 0.0
        for path in self._wanted(tasks, place):
            there = self._at.get(path) or {HOME}
            if HOME in there:
                away = []
            else:
                away = [(min(there), HOME)]
            hops = away + ([(HOME, place)] if place != HOME else [])
            total_s += (
                sum(self.s_per_mb.get(hop, GUESS_S_PER_MB) for hop in hops)
                * self.sizes.get(path, 0)
                / 1e6
            )
        return total_s

    def data_bytes(self, tasks: Iterable[int], place: str) -> int:
        """How much that is, as far as sizes are known."""
        return sum(self.sizes.get(path, 0) for path in self._wanted(tasks, place))

    def _wanted(self, tasks: Iterable[int], place: str) -> set[str]:
        mine = set(tasks)
        return {
            path
            for task in mine
            for path in self.lacking(task, place)
            if self.maker.get(path) not in mine
        }
