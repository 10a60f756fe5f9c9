"""The volumes of a native file: which task sees which, and in what order.

Law: the tasks that mount one scratch volume are ordered by edges, one after the other; what each leaves in it is a file
that the next one reads (`model.volume`). What could go wrong in a run and can be seen in the file is refused here.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from windrow.formats.native.text import Template
from windrow.model.graph import Adjacency, CycleError, order_and_levels
from windrow.model.volume import FOLDER, Extract, VolumeMount

if TYPE_CHECKING:
    from windrow.errors import InputError
    from windrow.formats.native.schema import TaskForm, VolumeForm

_SYSTEM = ("/proc", "/sys", "/dev")


class Row(NamedTuple):
    """A task with all its paths: what it reads and writes, the last of which are its extracts."""

    form: TaskForm
    id: str
    values: Mapping[str, str]
    workdir: str
    inputs: Sequence[str]
    outputs: Sequence[str]


class Volumes:
    """The volumes of one file. `fault(line, problem, fix)` is what is raised where it cannot be used."""

    def __init__(
        self, base: str, name: str, forms: Mapping[str, VolumeForm], fault: Callable[[int, str, str], InputError]
    ) -> None:
        self._base, self._forms, self._fault = base, forms, fault
        self._folder = f"{base}/{FOLDER}/{re.sub(r'[^A-Za-z0-9_.-]', '-', name)}"

    def mounts(
        self, rows: Sequence[Row], parents: Sequence[Sequence[int]]
    ) -> tuple[list[tuple[VolumeMount, ...]], list[tuple[Extract, ...]]]:
        """What each task mounts, and what it extracts."""
        users: dict[str, list[tuple[int, str, VolumeForm]]] = {}
        for number, row in enumerate(rows):
            for path, name, line in row.form.mounts:
                self._refuse_mount(row, path, name, line)
                at = _joined("/", path) if path.startswith("/") else path
                users.setdefault(self._called(name, row, line), []).append((number, at, self._forms[name]))
        mounted = {name for row in rows for _, name, _ in row.form.mounts}
        if unused := next((name for name in self._forms if name not in mounted), None):
            fix = "mount it, or leave it out"
            raise self._fault(self._forms[unused].line, f"no task mounts the volume {unused}", fix)
        found: list[list[VolumeMount]] = [[] for _ in rows]
        for volume, uses in users.items():
            size, source, policy = uses[0][2].size_bytes, uses[0][2].source, uses[0][2].policy
            before = source if "://" in source else _joined(self._base, source)
            chain = sorted(uses) if source else self._in_order(volume, uses, rows, parents)
            for place, (number, path, _) in enumerate(chain, 1):
                after = "" if source else f"{self._folder}/{volume}.{place}"
                found[number].append(
                    VolumeMount(path, volume, before if source or place > 1 else "", after, size, policy)
                )
                before = before if source else after
        each = [tuple(mounts) for mounts in found]
        return each, [self._extracts(row, mounts) for row, mounts in zip(rows, each, strict=True)]

    def _called(self, name: str, row: Row, line: int) -> str:
        per = self._forms[name].per or Template(("",), ())
        if missing := next((one for one in per.names if one not in row.values), None):
            problem = f"there is a volume {name} for each {{{missing}}}, but {row.id} has no such name in its matrix"
            raise self._fault(line, problem, f"give it one, or take {{{missing}}} out of per")
        return f"{name}-{quote(text, safe='')}" if (text := per.fill(row.values)) else name

    def _refuse_mount(self, row: Row, path: str, name: str, line: int) -> None:
        if name not in self._forms:
            known = f"the volumes are {', '.join(self._forms)}" if self._forms else "write volumes: above tasks:"
            raise self._fault(line, f"{row.id} mounts {name}, which is not a volume", known)
        others = [(other, volume) for other, volume, at in row.form.mounts if (other, volume, at) != (path, name, line)]
        place, source = _joined("/", path), self._forms[name].source
        if any(volume == name or _is_in(_joined("/", other), place) for other, volume in others):
            fix = "give each volume a path of its own"
            raise self._fault(line, f"{row.id} mounts {name} twice, or another volume in it", fix)
        if path.startswith("/"):
            if place == "/" or any(_is_in(place, kept) for kept in _SYSTEM):
                raise self._fault(
                    line, f"{row.id} mounts {name} at {place}", "use a path that the system does not need"
                )
            if _is_in(row.workdir, place):
                problem = f"{row.id} runs in {row.workdir}, which {name} at {place} would hide"
                raise self._fault(line, problem, "use another path, or run it from elsewhere")
            for file in (*row.inputs, *row.outputs):
                if _is_in(file, place):
                    fix = "leave it out: who mounts the volume sees what is in it, and extract keeps it"
                    raise self._fault(row.form.line, f"{row.id} names {file}, which is in the volume {name}", fix)
        if source and "://" not in source:
            for file in row.outputs:
                if _is_in(file, _joined(self._base, source)):
                    problem = f"{row.id} writes {file} in the cache volume {name}, which is read-only"
                    raise self._fault(row.form.line, problem, "write it elsewhere, or make it a scratch volume")

    def _in_order(
        self,
        volume: str,
        uses: Sequence[tuple[int, str, VolumeForm]],
        rows: Sequence[Row],
        parents: Sequence[Sequence[int]],
    ) -> list[tuple[int, str, VolumeForm]]:
        """The tasks of a scratch volume, first to last."""
        levels = self._levels_of(parents)
        chain = sorted(uses, key=lambda use: (levels[use[0]], use[0]))
        for (first, *_), (second, *_) in pairwise(chain):
            if not _comes_after(second, first, parents, levels):
                problem = f"{rows[first].id} and {rows[second].id} mount the scratch volume {volume}, and neither comes"
                fix = f"write after: {rows[first].id}, or give each its own with per"
                raise self._fault(rows[second].form.line, f"{problem} after the other", fix)
        return chain

    def _levels_of(self, parents: Sequence[Sequence[int]]) -> list[int]:
        if not hasattr(self, "_levels"):
            above = Adjacency.from_lists(parents)
            try:
                self._levels: list[int] = order_and_levels(above, above.reversed())[1].tolist()
            except CycleError:  # which is refused for its own reason
                self._levels = [0] * len(parents)
        return self._levels

    def _extracts(self, row: Row, mounts: Sequence[VolumeMount]) -> tuple[Extract, ...]:
        found: dict[str, Extract] = {}
        kept = row.outputs[len(row.outputs) - len(row.form.extract) :]
        for field, output in zip(row.form.extract, kept, strict=True):
            path = field.template.fill(row.values)
            inside = _joined("/", path) if path.startswith("/") else posixpath.normpath(path)
            mount = next((one for one in mounts if inside.startswith(f"{one.path}/")), None)
            if mount is None or mount.is_cache:
                what = "in none of its volumes" if mount is None else "in a cache volume, which is read-only"
                scratch = [one.path for one in mounts if not one.is_cache]
                fix = f"name a file below {' or '.join(scratch)}" if scratch else "mount a scratch volume"
                raise self._fault(field.line, f"{row.id} extracts {path}, which is {what}", fix)
            if output in found or row.outputs.count(output) > 1:
                raise self._fault(field.line, f"{row.id} makes {output} twice", "give each extract its own name")
            found[output] = mount.volume, inside[len(mount.path) + 1 :], output
        return tuple(found.values())


def _comes_after(task: int, other: int, parents: Sequence[Sequence[int]], levels: Sequence[int]) -> bool:
    """Whether edges lead from the other to the task."""
    seen, stack = {task}, [task]
    while stack:
        for parent in parents[stack.pop()]:
            if parent == other:
                return True
            if parent not in seen and levels[parent] > levels[other]:
                seen.add(parent)
                stack.append(parent)
    return False


def _joined(folder: str, path: str) -> str:
    whole = posixpath.normpath(posixpath.join(folder, path))
    return whole[1:] if whole.startswith("//") else whole


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
