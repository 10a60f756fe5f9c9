"""The volumes of a native file: which task sees which, and in what order.

Law: the tasks that mount one scratch volume are ordered by edges, one after the other; what each leaves in it is a file
that the next one reads (`model.volume`). What could go wrong in a run and can be seen in the file is refused here.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
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
_PROGRAMS = ("/bin", "/etc", "/lib", "/lib64", "/usr", "/usr/bin", "/usr/lib")  # below them there is room


Use = tuple[int, str, "VolumeForm"]  # a task that mounts a volume, where, and what is said of that


class Volumes:
    """The volumes of one file. `fault(line, problem, fix)` is what is raised where it cannot be used."""

    def __init__(self, base: str, name: str, forms: Mapping[str, VolumeForm], fault: Callable[..., InputError]) -> None:
        self._base, self._forms, self._fault = base, forms, fault
        self._folder = f"{base}/{FOLDER}/{re.sub(r'[^A-Za-z0-9_.-]', '-', name)}"

    def mounts(
        self, rows: Sequence[TaskRow], files: Sequence[tuple[list[str], list[str]]], parents: Sequence[Sequence[int]]
    ) -> tuple[list[tuple[VolumeMount, ...]], list[tuple[Extract, ...]]]:
        """What each task mounts, and what it extracts. `files`: whole paths that it reads, and that it writes."""
        users: dict[str, list[Use]] = {}
        for number, row in enumerate(rows):
            for path, name, line in row.form.mounts:
                self._refuse_mount(row, files[number], path, name, line)
                at = joined("/", path) if path.startswith("/") else path
                users.setdefault(self._called(name, row, line), []).append((number, at, self._forms[name]))
        mounted = {name for row in rows for _, name, _ in row.form.mounts}
        if unused := next((name for name in self._forms if name not in mounted), None):
            fix = "mount it, or leave it out"
            raise self._fault(self._forms[unused].line, f"no task mounts the volume {unused}", fix)
        found: list[list[VolumeMount]] = [[] for _ in rows]
        levels = _levels(parents)
        for volume, uses in users.items():
            size, source, policy = uses[0][2].size_bytes, uses[0][2].source, uses[0][2].policy
            before = source if "://" in source else joined(self._base, source)
            chain = sorted(uses) if source else self._in_order(volume, uses, rows, parents, levels)
            for place, (number, path, _) in enumerate(chain, 1):
                left, after = (
                    before if source or place > 1 else "",
                    "" if source else f"{self._folder}/{volume}.{place}",
                )
                found[number].append(VolumeMount(path, volume, left, after, size, policy))
                before = after or before
        outputs = (made for _, made in files)
        kept = [self._extracts(*task) for task in zip(rows, outputs, found, strict=True)]
        return [tuple(mounts) for mounts in found], kept

    def _called(self, name: str, row: TaskRow, line: int) -> str:
        per = self._forms[name].per or Template(("",), ())
        if missing := next((one for one in per.names if one not in row.values), None):
            problem = f"there is a volume {name} for each {{{missing}}}, but {row.id} has no such name in its matrix"
            raise self._fault(line, problem, f"give it one, or take {{{missing}}} out of per")
        return f"{name}-{quote(text, safe='')}" if (text := per.fill(row.values)) else name

    def _refuse_mount(self, row: TaskRow, files: tuple[list[str], list[str]], path: str, name: str, line: int) -> None:
        if name not in self._forms:
            known = f"the volumes are {', '.join(self._forms)}" if self._forms else "write volumes: above tasks:"
            raise self._fault(line, f"{row.id} mounts {name}, which is not a volume", known)
        others = [(other, volume) for other, volume, at in row.form.mounts if (other, volume, at) != (path, name, line)]
        place, source = joined("/", path), self._forms[name].source
        if any(volume == name or _is_in(joined("/", other), place) for other, volume in others):
            fix = "give each volume a path of its own"
            raise self._fault(line, f"{row.id} mounts {name} twice, or another volume in it", fix)
        if path.startswith("/"):
            if place in ("/", *_PROGRAMS) or any(_is_in(place, kept) for kept in _SYSTEM):
                fix = "use a path that the system does not need"
                raise self._fault(line, f"{row.id} mounts {name} at {place}", fix)
            if _is_in(row.workdir, place):
                problem = f"{row.id} runs in {row.workdir}, which {name} at {place} would hide"
                raise self._fault(line, problem, "use another path, or run it from elsewhere")
            for file in (*files[0], *files[1]):
                if _is_in(file, place):
                    fix = "leave it out: who mounts the volume sees what is in it, and extract keeps it"
                    raise self._fault(row.form.line, f"{row.id} names {file}, which is in the volume {name}", fix)
        if source and "://" not in source:
            for file in files[1]:
                if _is_in(file, joined(self._base, source)):
                    problem = f"{row.id} writes {file} in the cache volume {name}, which is read-only"
                    raise self._fault(row.form.line, problem, "write it elsewhere, or make it a scratch volume")

    def _in_order(
        self, volume: str, uses: list[Use], rows: Sequence[TaskRow], parents: Sequence[Sequence[int]], levels: list[int]
    ) -> list[Use]:
        """The tasks of a scratch volume, first to last."""
        chain = sorted(uses, key=lambda use: (levels[use[0]], use[0]))
        for (first, *_), (second, *_) in pairwise(chain):
            if not _comes_after(second, first, parents, levels):
                problem = f"{rows[first].id} and {rows[second].id} mount the scratch volume {volume}, and neither comes"
                fix = f"write after: {rows[first].id}, or give each its own with per"
                raise self._fault(rows[second].form.line, f"{problem} after the other", fix)
        return chain

    def _extracts(self, row: TaskRow, outputs: list[str], mounts: Sequence[VolumeMount]) -> tuple[Extract, ...]:
        found: dict[str, Extract] = {}
        kept = outputs[len(outputs) - len(row.form.extract) :]
        for field, output in zip(row.form.extract, kept, strict=True):
            path = field.template.fill(row.values)
            inside = joined("/", path) if path.startswith("/") else posixpath.normpath(path)
            mount = next((one for one in mounts if inside.startswith(f"{one.path}/")), None)
            if mount is None or mount.is_cache:
                what = "in none of its volumes" if mount is None else "in a cache volume, which is read-only"
                scratch = [one.path for one in mounts if not one.is_cache]
                fix = f"name a file below {' or '.join(scratch)}" if scratch else "mount a scratch volume"
                raise self._fault(field.line, f"{row.id} extracts {path}, which is {what}", fix)
            if output in found or outputs.count(output) > 1:
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


def _levels(parents: Sequence[Sequence[int]]) -> list[int]:
    above = Adjacency.from_lists(parents)
    with suppress(CycleError):  # which is refused for its own reason
        return [int(level) for level in order_and_levels(above, above.reversed())[1]]
    return [0] * len(parents)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
