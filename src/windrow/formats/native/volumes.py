"""The volumes of a native file: which task sees which, and in what order.

Law: the tasks that mount one scratch volume are ordered by edges, one after the other; what each
leaves in it is a file that the next one reads (`model.volume`). What could go wrong in a run and
can be seen in the file is refused here.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import quote

from windrow.formats.native.reader import TaskRow, joined
from windrow.formats.native.text import Template
from windrow.model.graph import Adjacency, CycleError, order_and_levels
from windrow.model.volume import FOLDER, Extract, VolumeMount

if TYPE_CHECKING:
    from windrow.errors import InputError
    from windrow.formats.native.schema import VolumeForm

_SYSTEM = ("/proc", "/sys", "/dev")
_PROGRAMS = (
    "/bin",
    "/etc",
    "/lib",
    "/lib64",
    "/usr",
    "/usr/bin",
    "/usr/lib",
)  # below them there is room


Use = tuple[int, str, "VolumeForm"]  # a task that mounts a volume, where, and what is said of that


class Volumes:
    """The volumes of one file. `fault(line, problem, fix)` is what is raised if it cannot be
    used."""

    def __init__(
        self,
        base: str,
        name: str,
        forms: Mapping[str, VolumeForm],
        fault: Callable[..., InputError],
    ) -> None:
        self._base = base
        self._forms = forms
        self._fault = fault
        self._folder = f"{base}/{FOLDER}/{re.sub(r'[^A-Za-z0-9_.-]', '-', name)}"

    def mounts(
        self,
        rows: Sequence[TaskRow],
        files: Sequence[tuple[list[str], list[str]]],
        parents: Sequence[Sequence[int]],
    ) -> tuple[list[tuple[VolumeMount, ...]], list[tuple[Extract, ...]]]:
        """What each task mounts, and what it extracts. `files`: whole paths that it reads, and that
        it writes."""
        users = self._users(rows, files)
        self._refuse_unmounted(rows)
        found: list[list[VolumeMount]] = [[] for _ in rows]
        levels = _levels(parents)
        for volume, uses in users.items():
            form = uses[0][2]
            if form.source:
                mounts = self._cached(volume, form, uses)
            else:
                chain = self._in_order(volume, uses, rows, parents, levels)
                mounts = _handed_on(volume, form, chain, self._folder)
            for number, mount in mounts:
                found[number].append(mount)
        outputs = (made for _, made in files)
        kept = [self._extracts(*task) for task in zip(rows, outputs, found, strict=True)]
        return [tuple(mounts) for mounts in found], kept

    def _users(
        self, rows: Sequence[TaskRow], files: Sequence[tuple[list[str], list[str]]]
    ) -> dict[str, list[Use]]:
        """Who mounts each volume."""
        users: dict[str, list[Use]] = {}
        for number, row in enumerate(rows):
            for path, name, line in row.form.mounts:
                self._refuse_mount(row, files[number], path, name, line)
                at = path
                if path.startswith("/"):
                    at = joined("/", path)
                use = (number, at, self._forms[name])
                users.setdefault(self._called(name, row, line), []).append(use)
        return users

    def _refuse_unmounted(self, rows: Sequence[TaskRow]) -> None:
        mounted = {name for row in rows for _, name, _ in row.form.mounts}
        for name, form in self._forms.items():
            if name not in mounted:
                fix = "mount it, or leave it out"
                raise self._fault(form.line, f"no task mounts the volume {name}", fix)

    def _cached(
        self, volume: str, form: VolumeForm, uses: Sequence[Use]
    ) -> Iterator[tuple[int, VolumeMount]]:
        """All see what is at its source."""
        before = form.source
        if "://" not in before:
            before = joined(self._base, before)
        for number, path, _ in sorted(uses):
            yield number, VolumeMount(path, volume, before, "", form.size_bytes, form.policy)

    def _called(self, name: str, row: TaskRow, line: int) -> str:
        per = self._forms[name].per or Template(("",), ())
        if missing := next((one for one in per.names if one not in row.values), None):
            problem = (
                f"there is a volume {name} for each {{{missing}}}, but {row.id} has no "
                "such name in its matrix"
            )
            raise self._fault(line, problem, f"give it one, or take {{{missing}}} out of per")
        if text := per.fill(row.values):
            return f"{name}-{quote(text, safe='')}"
        return name

    def _refuse_mount(
        self, row: TaskRow, files: tuple[list[str], list[str]], path: str, name: str, line: int
    ) -> None:
        if name not in self._forms:
            known = "write volumes: above tasks:"
            if self._forms:
                known = f"the volumes are {', '.join(self._forms)}"
            raise self._fault(line, f"{row.id} mounts {name}, which is not a volume", known)
        others = [
            (other, volume)
            for other, volume, at in row.form.mounts
            if (other, volume, at) != (path, name, line)
        ]
        place = joined("/", path)
        if any(volume == name or _is_in(joined("/", other), place) for other, volume in others):
            fix = "give each volume a path of its own"
            raise self._fault(line, f"{row.id} mounts {name} twice, or another volume in it", fix)
        reads, writes = files
        if path.startswith("/"):
            self._refuse_place(row, place, name, line)
            self._refuse_inside(row, (*reads, *writes), place, name)
        self._refuse_written_cache(row, writes, name)

    def _refuse_place(self, row: TaskRow, place: str, name: str, line: int) -> None:
        """Not where the system has its own, nor where the task runs."""
        if place in ("/", *_PROGRAMS) or any(_is_in(place, kept) for kept in _SYSTEM):
            fix = "use a path that the system does not need"
            raise self._fault(line, f"{row.id} mounts {name} at {place}", fix)
        if _is_in(row.workdir, place):
            problem = f"{row.id} runs in {row.workdir}, which {name} at {place} would hide"
            raise self._fault(line, problem, "use another path, or run it from elsewhere")

    def _refuse_inside(self, row: TaskRow, files: Sequence[str], place: str, name: str) -> None:
        for file in files:
            if _is_in(file, place):
                fix = "leave it out: who mounts the volume sees what is in it, and extract keeps it"
                raise self._fault(
                    row.form.line, f"{row.id} names {file}, which is in the volume {name}", fix
                )

    def _refuse_written_cache(self, row: TaskRow, writes: Sequence[str], name: str) -> None:
        source = self._forms[name].source
        if not source or "://" in source:
            return
        folder = joined(self._base, source)
        for file in writes:
            if _is_in(file, folder):
                problem = f"{row.id} writes {file} in the cache volume {name}, which is read-only"
                fix = "write it elsewhere, or make it a scratch volume"
                raise self._fault(row.form.line, problem, fix)

    def _in_order(
        self,
        volume: str,
        uses: list[Use],
        rows: Sequence[TaskRow],
        parents: Sequence[Sequence[int]],
        levels: list[int],
    ) -> list[Use]:
        """The tasks of a scratch volume, first to last."""
        chain = sorted(uses, key=lambda use: (levels[use[0]], use[0]))
        for (first, *_), (second, *_) in pairwise(chain):
            if not _comes_after(second, first, parents, levels):
                problem = (
                    f"{rows[first].id} and {rows[second].id} mount the scratch volume "
                    f"{volume}, and neither comes"
                )
                fix = f"write after: {rows[first].id}, or give each its own with per"
                raise self._fault(rows[second].form.line, f"{problem} after the other", fix)
        return chain

    def _extracts(
        self, row: TaskRow, outputs: list[str], mounts: Sequence[VolumeMount]
    ) -> tuple[Extract, ...]:
        found: dict[str, Extract] = {}
        kept = outputs[len(outputs) - len(row.form.extract) :]
        for field, output in zip(row.form.extract, kept, strict=True):
            path = field.template.fill(row.values)
            if path.startswith("/"):
                inside = joined("/", path)
            else:
                inside = posixpath.normpath(path)
            mount = next((one for one in mounts if inside.startswith(f"{one.path}/")), None)
            if mount is None or mount.is_cache:
                raise self._no_scratch(row, field.line, path, mount, mounts)
            if output in found or outputs.count(output) > 1:
                raise self._fault(
                    field.line, f"{row.id} makes {output} twice", "give each extract its own name"
                )
            found[output] = mount.volume, inside[len(mount.path) + 1 :], output
        return tuple(found.values())

    def _no_scratch(
        self,
        row: TaskRow,
        line: int,
        path: str,
        mount: VolumeMount | None,
        mounts: Sequence[VolumeMount],
    ) -> InputError:
        what = "in none of its volumes"
        if mount is not None:
            what = "in a cache volume, which is read-only"
        fix = "mount a scratch volume"
        scratch = [one.path for one in mounts if not one.is_cache]
        if scratch:
            fix = f"name a file below {' or '.join(scratch)}"
        return self._fault(line, f"{row.id} extracts {path}, which is {what}", fix)


def _comes_after(
    task: int, other: int, parents: Sequence[Sequence[int]], levels: Sequence[int]
) -> bool:
    """Whether edges lead from the other to the task."""
    seen = {task}
    stack = [task]
    while stack:
        for parent in parents[stack.pop()]:
            if parent == other:
                return True
            if parent not in seen and levels[parent] > levels[other]:
                seen.add(parent)
                stack.append(parent)
    return False


def _levels(parents: Sequence[Sequence[int]]) -> list[int]:
    above = Adjacency.from_lists(parents)
    with suppress(CycleError):  # which is refused for its own reason
        return [int(level) for level in order_and_levels(above, above.reversed())[1]]
    return [0] * len(parents)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _handed_on(
    volume: str, form: VolumeForm, chain: Sequence[Use], folder: str
) -> Iterator[tuple[int, VolumeMount]]:
    """Each sees what the one before has left, and leaves a file for the next."""
    before = ""
    for place, (number, path, _) in enumerate(chain, 1):
        after = f"{folder}/{volume}.{place}"
        yield number, VolumeMount(path, volume, before, after, form.size_bytes, form.policy)
        before = after
