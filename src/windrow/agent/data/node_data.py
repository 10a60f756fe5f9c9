"""What a node does with its own disk for the tasks of a job: inputs come to it once, outputs leave
it when they must.

Law: an order runs in the view of this node (`view`) if it says which of its outputs may stay
(`Order.local`); else it runs on the shared files, as ever. Before it starts, each declared input
that the view covers is there: made here, or copied from the shared file system, once for all
orders. When it has succeeded, outputs that may not stay are committed: copied into the hidden
folder of the attempt beside their place on the shared file system, and brought into place by
`outputs`; only then is it told that it has ended. What has stayed is committed when the agent asks
(`commit`). Nothing here waits: the carrier copies, and `collect` takes in what came of it.

Folders on a node's disk are named by run, job and node, and are for their owner alone. They are
removed when all processes of the job on the node are gone (`guard`); what jobs that are over left
is removed when the next one starts, and what jobs that fell silent left, if no process has a lock
on it.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from errno import ENOENT, ENOSPC
from fcntl import LOCK_EX, LOCK_NB, flock
from functools import partial
from typing import Any, NamedTuple

from windrow.agent.data.carrier import SHARED, Carrier, Copied, Share
from windrow.agent.data.view import NodeView
from windrow.agent.folder import RunFolder
from windrow.agent.guard import remove_in_the_end
from windrow.agent.job_file import JobFile
from windrow.agent.order import COMMIT, HIT, HOME, NODES, WRONG, Order
from windrow.agent.outputs import Outputs
from windrow.deletion import discard_tree
from windrow.errors import OutsideError
from windrow.model.attempt import Attempt, Moved
from windrow.model.volume import COPY, PEER, SBCAST, VolumeMount

_FINE = Copied()


class ScratchPlan(NamedTuple):
    """Where a node has its own disk, and for what. `back`: a folder below the root that tasks see
    as it is."""

    scratch: str
    root: str
    back: str
    run: str
    job: int
    place: int
    over_below: int = 0
    over: tuple[int, ...] = ()
    given_up: tuple[int, ...] = ()
    share: str = ""
    sources: tuple[str, ...] = ()
    nodes: int = 1
    facing: str = ""
    home: str = ""


def plan_of(folder: RunFolder, job: JobFile, place: int, facing: str = "") -> ScratchPlan | None:
    """The plan for the node at this place of a job; None if the job has no node-local data.

    `facing`: another node, if there are several; this one, if it is the only one but other
    jobs have others.
    """
    if job.scratch:
        root = os.path.commonpath([os.path.normpath(spec.workdir) for spec in job.tasks])
    else:
        root = "/"
    if root == "/":
        return None
    if folder.path.parent.name == "runs":
        above = folder.path.parents[1]
    else:
        above = folder.path
    run = hashlib.sha256(os.fsencode(folder.path)).hexdigest()[:12]
    if facing:
        nodes = job.nodes
    else:
        nodes = 1
    sources = job.shared_sources()
    if sources and (nodes > 1 or (facing and job.share == PEER)):
        how = job.share
    else:
        how = ""
    if any("://" in source for source in sources):
        how = how or COPY
    where = ScratchPlan(
        job.scratch, root, str(above), run, job.job, place, job.over_below, job.over, job.given_up
    )
    return where._replace(
        share=how, sources=sources, nodes=nodes, facing=facing, home=str(folder.path)
    )


class FileMove:
    """Copies on which something waits. `why` they failed, if they have."""

    def __init__(self, waits: int) -> None:
        self._waits = waits
        self.why = ""
        self.errno = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing is waited for any more."""
        return self._waits == 0

    def wait(self) -> None:
        """For one more."""
        self._waits += 1

    def hear(self, copied: Copied) -> None:
        """One of them has ended."""
        self._waits -= 1
        if copied.why:
            self.why = copied.why
            self.errno = copied.errno


class NodeData:
    """The node's disk, for one job. OutsideError if it cannot be used."""

    def __init__(self, plan: ScratchPlan) -> None:
        self._folder, old = _folders(plan)
        self._lock = _locked(self._folder)
        try:
            self.view = NodeView(plan.root, self._folder, plan.back)
            self._carrier = Carrier()
        except OSError as error:
            raise OutsideError(
                f"scratch {self._folder} cannot be used: {error.strerror or error}"
            ) from error
        self.fd = self._carrier.fd
        self.said = self._carrier.said
        self._sources = frozenset(plan.sources)
        self._shared = frozenset(plan.sources if plan.share else ())
        if plan.share:
            self._carrier.say({"share": _share(plan, self._folder)})
        self._here: dict[str, int] = {}  # with bytes
        self._staging: dict[str, list[tuple[FileMove, int]]] = {}  # with the task that waits for it
        self._moved: dict[int, list[Moved]] = {}  # by task: what is not told yet
        self._made: dict[str, Order] = {}  # what is on this node alone, with the order that made it
        self._commits: dict[
            int, list[Callable[[], None]]
        ] = {}  # by task: one at a time, since they share a folder
        self._remove(old)

    def runs_here(self, order: Order) -> bool:
        """Whether it runs in the view."""
        view = self.view
        root = self.view.root
        return (
            order.local is not None
            and f"{order.workdir}/".startswith(f"{root}/")
            and view.can_run(order.command)
        )

    def not_here(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those of these files that have to come from the shared file system."""
        return tuple(path for path in paths if path not in self._here)

    def stage(self, order: Order) -> FileMove:
        """Let the files of an order be where it reads them."""
        volumes = {mount.before: self._volume(mount) for mount in _mounts(order) if mount.is_cache}
        if not self.runs_here(order):
            return self._bring(
                order.task,
                volumes,
                self.commit([path for path in order.inputs if path in self._made]),
            )
        view = self.view
        view.ready(path for path in (*order.inputs, *order.outputs) if view.covers(path))
        inputs = {path: view.inside(path) for path in order.inputs if view.covers(path)}
        return self._bring(order.task, inputs | volumes, FileMove(0))

    def _bring(self, task: int, targets: Mapping[str, str], move: FileMove) -> FileMove:
        """Let each of these come to its target, if it is not on this node; the move waits for them,
        too."""
        for path, target in targets.items():
            if path in self._here:
                self._note(task, Moved(path, HIT, self._here[path]))
            else:
                move.wait()
                if path not in self._staging:
                    if path in self._shared:
                        source = f"{SHARED}{path}"
                    else:
                        source = path
                    self._carrier.copy([(source, target)], partial(self._staged, path))
                self._staging.setdefault(path, []).append((move, task))
        return move

    def _note(self, task: int, *moved: Moved) -> None:
        self._moved.setdefault(task, []).extend(moved)

    def told(self, result: Attempt) -> Attempt:
        """The same, with paths as the user knows them, and with what was moved for it."""
        moved = (*self._moved.pop(result.task, ()), *result.moved)
        if result.why or moved:
            return replace(result, why=self.shown(result.why), moved=moved)
        return result

    def _volume(self, mount: VolumeMount) -> str:
        """Where a cache volume lies on this node."""
        return (
            f"{self._folder}/volumes/{hashlib.sha256(os.fsencode(mount.before)).hexdigest()[:16]}"
        )

    def with_volumes(self, order: Order) -> Order:
        """The same order, which mounts cache volumes from where they lie on this node."""
        here = [
            m._replace(before=self._volume(m)) if m.is_cache and m.before in self._here else m
            for m in _mounts(order)
        ]
        if here:
            return replace(order, mounts=tuple(here))
        return order

    def hear(self, place: int, what: Any) -> None:
        """What the mover of the node at this place said."""
        if self._shared:
            self._carrier.say({"place": place, "what": what})

    def _staged(self, path: str, copied: Copied) -> None:
        if copied.errno == ENOENT or (copied.errno == ENOSPC and path in self._sources):
            # The task will say so itself; and what many read can be read where it is.
            copied = _FINE
        elif not copied.why:
            self._here[path] = copied.size_bytes
            from_nodes = min(copied.from_nodes, copied.size_bytes)
            links = {HOME: copied.size_bytes - from_nodes, NODES: from_nodes}
            (_, first), *others = self._staging[path]
            self._note(
                first,
                *(Moved(path, link, size) for link, size in links.items() if size or link == HOME),
            )
            self._note(first, *(Moved(path, f"{WRONG}{who}", size) for who, size in copied.wrong))
            for _, task in others:
                self._note(task, Moved(path, HIT, copied.size_bytes))
        for move, _ in self._staging.pop(path):
            move.hear(copied)

    def seen(self, order: Order) -> Order:
        """The same order with paths as we find them in the view. Folders of earlier attempts are
        out of the way."""
        inside = self.view.inside
        names: dict[str, Any] = {
            name: tuple(map(inside, getattr(order, name)))
            for name in ("inputs", "outputs", "shared")
        }
        for path in map(inside, filter(self.view.covers, order.outputs)):
            if os.path.isdir(path) and not os.path.islink(
                path
            ):  # an overlay cannot rename what is below it
                discard_tree(path)
        env = {**order.env, "TMPDIR": self.view.temporary}
        return replace(order, workdir=inside(order.workdir), env=env, **names)

    def keep(self, order: Order, sizes: Sequence[int]) -> FileMove:
        """An order has succeeded in the view, with outputs of these sizes: commit those that may
        not stay."""
        paths = list(dict.fromkeys(order.outputs))
        covered = {path: sizes[n] for n, path in enumerate(paths) if self.view.covers(path)}
        self._here |= covered
        self._made |= dict.fromkeys(covered, order)
        return self.commit([path for path in covered if path not in (order.local or ())])

    def stayed(self, order: Order) -> tuple[str, ...]:
        """Those of its outputs that are on this node alone."""
        return tuple(path for path in order.outputs if path in self._made)

    def committed(self, order: Order) -> tuple[Moved, ...]:
        """Those that have left."""
        gone = (
            path
            for path in dict.fromkeys(order.outputs)
            if path in self._here and path not in self._made
        )
        return tuple(Moved(path, COMMIT, self._here[path]) for path in gone)

    def commit(self, paths: Iterable[str]) -> FileMove:
        """Copy these, which were made here, to the shared file system."""
        by_task: dict[int, list[str]] = {}
        for path in paths:
            if path in self._made:
                by_task.setdefault(self._made[path].task, []).append(path)
        move = FileMove(len(by_task))
        for task, ones in by_task.items():
            queue = self._commits.setdefault(task, [])
            queue.append(partial(self._commit, task, ones, move))
            if len(queue) == 1:
                queue[0]()
        return move

    def _commit(self, task: int, paths: list[str], move: FileMove) -> None:
        paths = [path for path in paths if path in self._made]
        if not paths:
            return self._committed(task, move, _FINE)
        outputs = Outputs(self._made[paths[0]], paths)

        def then(copied: Copied) -> None:
            try:
                if not copied.why:
                    _tell(self._made[paths[0]], outputs.keep())
                    for path in paths:
                        self._made.pop(path, None)
                else:
                    outputs.discard()
            except OSError as error:
                copied = Copied(f"{error.filename}: {error.strerror}", error.errno or 0)
            self._committed(task, move, copied)

        try:
            outputs.go_elsewhere()
        except OSError as error:
            return self._committed(
                task, move, Copied(f"{error.filename}: {error.strerror}", error.errno or 0)
            )
        return self._carrier.copy(
            [(self.view.inside(path), outputs.places[path]) for path in paths], then
        )

    def _committed(self, task: int, move: FileMove, copied: Copied) -> None:
        move.hear(copied)
        queue = self._commits[task]
        del queue[0]
        if queue:
            queue[0]()
        else:
            del self._commits[task]

    def drop(self, paths: Collection[str]) -> None:
        """Nothing needs these any more: make room."""
        gone = [path for path in paths if path in self._made]
        for path in gone:
            del self._made[path], self._here[path]
        self._remove(map(self.view.inside, gone))

    def shown(self, text: str) -> str:
        """A message with paths as the user knows them."""
        root = self.view.root
        return text.replace(self.view.inside(root), root)

    def collect(self) -> None:
        """Take in what the carrier did."""
        self._carrier.collect()

    def close(self) -> None:
        """The job is over here."""
        self._carrier.close()
        self.view.close()

    def _remove(self, paths: Iterable[str]) -> None:
        if gone := [(path, "") for path in paths]:
            self._carrier.copy(gone, lambda _: None)


def _tell(order: Order, notes: Iterable[str]) -> None:
    """Add to what an attempt printed."""
    if text := "".join(f"windrow: {note}\n" for note in notes):
        with open(order.out, "a", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)


def _mounts(order: Order) -> list[VolumeMount]:
    return [VolumeMount(*mount) for mount in order.mounts]


def _share(plan: ScratchPlan, folder: str) -> Share:
    """What the node's mover has to know. `sbcast` needs one folder on all nodes."""
    where = f"{folder}/shared"
    if plan.share == SBCAST:
        where = f"{folder.rpartition('-')[0]}-shared"
        remove_in_the_end(where)
    if plan.place == 0 and plan.share == PEER:
        remove_in_the_end(str(RunFolder.at(plan.home).caches / str(plan.job)))
    at = (plan.home, plan.job, plan.place, plan.nodes, plan.facing, where)
    return Share(
        plan.share, plan.run, *at, plan.sources, (*plan.over, *plan.given_up), plan.over_below
    )


def scratch_folder(scratch: str, where: str) -> str:
    """The folder that is meant by `[data] scratch` where the environment is as here. OutsideError
    if that is none."""
    variables = {"TMPDIR": "/tmp", **os.environ}
    base = re.sub(
        r"\$(\w+)|\$\{(\w+)\}",
        lambda found: variables.get(found[1] or found[2], found[0]),
        scratch,
    )
    base = os.path.expanduser(base)
    if "$" in base:
        raise OutsideError(
            f"scratch {scratch!r} cannot be used {where}: a variable in it is not set there"
        )
    if not base.startswith("/"):
        raise OutsideError(
            f"scratch {scratch!r} cannot be used {where}: it is not an absolute path"
        )
    return base


def _folders(plan: ScratchPlan) -> tuple[str, list[str]]:
    """The folder for this job on this node, new and empty; and those that jobs of the run that are
    over left here."""
    base = scratch_folder(plan.scratch, "on this node")
    folder = f"{base}/windrow-{plan.run}-{plan.job}-{plan.place}"
    try:
        os.makedirs(base, exist_ok=True)
        if _is_own(folder):
            discard_tree(folder)
        os.mkdir(folder, 0o700)
        remove_in_the_end(folder)
        jobs = (
            (name, re.fullmatch(rf"windrow-{plan.run}-(\d+)-(?:\d+|shared)", name))
            for name in os.listdir(base)
        )
        numbers = {f"{base}/{name}": int(found[1]) for name, found in jobs if found}
    except OSError as error:
        raise OutsideError(f"scratch {folder} cannot be created: {error.strerror}") from error
    at_work = {
        numbers[path] for path in numbers if numbers[path] in plan.given_up and not _is_left(path)
    }
    over = (*plan.over, *(job for job in plan.given_up if job not in at_work))
    old = [path for path, job in numbers.items() if job < plan.over_below or job in over]
    return folder, [path for path in old if _is_own(path)]


def _is_left(folder: str) -> bool:
    """Whether no process works in this folder of a job of which nothing was heard."""
    if folder.endswith("-shared"):
        lock = -1
    else:
        lock = _locked(folder)
    if lock >= 0:
        os.close(lock)
    return lock >= 0 or folder.endswith("-shared")


def _locked(folder: str) -> int:
    """A lock on a folder, which ends with this process; -1 if another has it, or nothing can be
    locked there."""
    found = -1
    try:
        found = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        flock(found, LOCK_EX | LOCK_NB)
    except OSError:
        if found >= 0:
            os.close(found)
        return -1
    return found


def _is_own(folder: str) -> bool:
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
