"""Reads what `strace -f -y -ttt` writes: calls of many processes, as records of a trace.

Law: a read or a write is where its descriptor stood, which is followed through open, dup, fork,
lseek and what was read and written before; `pread` and the like say where. Threads share a table of
descriptors, a fork has a copy of it, and a duplicate shares its place with the original. A call
that another process interrupted (`unfinished`, `resumed`) counts when it returns; order is that of
returns. Calls that fail count as operations without bytes.

Left out: sockets' own calls, and what io_uring does, which no tracer of calls sees
(`Reading.unseen` says so). If a file is opened for appending, writes are put behind all that is
known of it.
"""

import posixpath
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from windrow.errors import InputError
from windrow.files import table_beside
from windrow.model.trace import (
    APART,
    DUP,
    KINDS,
    MAP_READ,
    MAP_WRITE,
    READ,
    UNKNOWN,
    WRITE,
    Files,
    Records,
    is_apart,
)

_CALLS = table_beside(__file__)["calls"]
_OP_OF = {
    name: KINDS.index(row["kind"]) if row["kind"] else -1 for row in _CALLS for name in row["names"]
}
CALLS = tuple(_OP_OF)
"""What is to be traced."""

_LINE = re.compile(r"(\d+) +(\d+\.\d+) (\w+)\((.*)\) += (-?\d+|\?|0x[0-9a-f]+)(.*)", re.DOTALL)
_UNFINISHED = re.compile(r"(\d+) +\d+\.\d+ ((\w+)\(.*?),? *<unfinished \.\.\.>")
_RESUMED = re.compile(r"(\d+) +(\d+\.\d+) <\.\.\. \w+ resumed>[, ]*(.*)", re.DOTALL)
_NO_CALL = re.compile(r"\d+ +\d+\.\d+ (?:\+\+\+|---|\?\?\?|strace: |\w+\()|\s*$")
_FD = re.compile(r"(-?\d+|AT_FDCWD)(?:<((?:[^>\\]|\\.)*)>(?:\(deleted\))?)?")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_SIZE = re.compile(r"S_IFREG.*?stx?_size=(\d+)")
_PLACE = re.compile(r", \[(\d+)\]")


def _unescaped(text: str) -> str:
    """A path as it is: strace writes `<`, `>` and what cannot be printed as escapes, byte by
    byte."""
    return (
        text.encode("ascii", "replace")
        .decode("unicode_escape")
        .encode("latin-1")
        .decode("utf-8", "surrogateescape")
    )


@dataclass(slots=True)
class _Opened:
    """An open file, which several descriptors may share: its number, and where it stands."""

    file: int
    place: int = 0
    appends: bool = False


@dataclass(slots=True)
class _Process:
    table: dict[str, _Opened]
    folder: str


class _SystemCall(NamedTuple):
    process: _Process
    pid: str
    time_s: float
    args: str
    answer: str
    rest: str
    opened: _Opened


@dataclass
class Reading:
    """Reads the calls of one stage after another into the same records and files. `real` resolves
    links in folders."""

    records: Records = field(default_factory=Records)
    files: Files = field(default_factory=Files)
    real: Callable[[str], str] = posixpath.normpath
    unseen: set[str] = field(default_factory=set)
    apart_bytes: int = 0  # read and written of what are not files

    def stage(self, lines: Iterable[str], folder: str, source: str = "strace") -> None:
        """All calls of the next stage, which began in `folder`. InputError if a line is not
        strace's."""
        self._begin(folder)
        match = _LINE.match
        process_of = self._processes
        waiting = dict[str, str]()
        ends = self._ends
        for at, text in enumerate(lines, 1):
            found = match(text) or match(self._joined(text, waiting, source, at))
            if found is None:
                continue
            pid, when, name, args, answer, rest = found.groups()
            process = process_of.get(pid) or self._forked(pid)
            opened = self._descriptor(process, args)
            op = _OP_OF.get(name, -1)
            if op not in (READ, WRITE):
                self._other(
                    name, op, _SystemCall(process, pid, float(when), args, answer, rest, opened)
                )
                continue
            size = 0
            if answer.isdecimal():
                size = int(answer)
            if name[0] == "p":
                self._moved(float(when), int(pid), op, opened, _given_place(name, args), size)
            elif opened.file < 0 or opened.appends:
                self._moved(float(when), int(pid), op, opened, None, size)
            else:  # most calls: `_moved` said again, to be fast
                place = opened.place
                opened.place = place + size
                if size and opened.place > ends.get(opened.file, 0):
                    ends[opened.file] = opened.place
                self.records.add(float(when), int(pid), op, opened.file, place, size)

    def _begin(self, folder: str) -> None:
        self._number = self.records.begin()
        self._folder = folder
        self._processes: dict[str, _Process] = {}
        self._forking: dict[str, str] = {}
        """Processes within a call that makes another, with its flags."""
        self._ends: dict[int, int] = {}
        """How far files are known to reach."""

    def _moved(
        self, when: float, pid: int, op: int, opened: _Opened, place: int | None, size: int
    ) -> None:
        """Bytes moved at a place, or where the descriptor stands, which then moves on."""
        end = self._ends.get(opened.file, 0)
        if place is None:
            if opened.appends and op == WRITE and size:
                place = end
            else:
                place = opened.place
            opened.place = place + size
        if size:
            end = max(end, place + size)
        self._ends[opened.file] = end
        if opened.file < 0:
            self.apart_bytes += size
        self.records.add(when, pid, op, opened.file, place, size)

    def _joined(self, line: str, waiting: dict[str, str], source: str, at: int) -> str:
        """The whole call, once the second half of it is there; nothing before, or if the line is
        not a call."""
        if found := _UNFINISHED.match(line):
            waiting[found[1]] = found[2]
            if found[3] in ("clone", "clone3", "fork", "vfork"):
                self._forking[found[1]] = found[2]
        elif found := _RESUMED.match(line):
            begun = waiting.pop(found[1], "")
            return f"{found[1]} {found[2]} {_whole(begun, found[3])}"
        elif not _NO_CALL.match(line):
            raise InputError(
                source,
                "this is not a line of strace -f -y -ttt",
                line=at,
                fix="trace with these options",
            )
        return ""

    def _forked(self, pid: str, parent: str = "", flags: str = "") -> _Process:
        """A process that was not heard of: the child of `parent`, of one that is within fork, or
        the first of all."""
        parent = parent or next(iter(self._forking), "")
        flags += self._forking.pop(parent, "")
        process = self._processes.get(parent) or _Process({}, self._folder)
        if "CLONE_FILES" in flags:
            table = process.table
        else:
            table = dict(process.table)
        child = self._processes[pid] = _Process(table, process.folder)
        return child

    def _descriptor(self, process: _Process, args: str) -> _Opened:
        """What the descriptor that `args` begin with stands for; one that was inherited stands at
        its start."""
        known = process.table.get(args.partition("<")[0])
        if (
            known is None
            and args[:1].isdecimal()
            and (found := _FD.match(args))
            and found[2] is not None
        ):
            path = _unescaped(found[2])
            if is_apart(path):
                known = _Opened(APART)
            else:
                known = _Opened(self.files.number(path))
            process.table[found[1]] = known
        return known or _Opened(-1)

    def _path(self, call: _SystemCall, which: int = 0) -> str:
        """The path that the `which`-th text in the arguments names, whole, without links in its
        folders."""
        quoted = list(_QUOTED.finditer(call.args))
        beside = _FD.search(
            call.args[quoted[which - 1].end() if which else 0 : quoted[which].start()]
        )
        if beside and beside[2]:
            base = _unescaped(beside[2])
        else:
            base = call.process.folder
        folder, last = posixpath.split(
            posixpath.normpath(posixpath.join(base, _unescaped(quoted[which][1])))
        )
        return posixpath.join(self.real(folder), last)

    def _other(self, name: str, op: int, call: _SystemCall) -> None:
        """All calls but reads and writes."""
        failed = call.answer[0] in "-?"
        file = call.opened.file
        if name == "io_uring_setup":
            self.unseen.add("io_uring")
        if not failed and name in _FOLLOWED:
            file = _FOLLOWED[name](self, call)
        if op >= 0 and file != _STILL and not (failed and name == "lseek"):
            if "F_DUPFD" in call.args and name == "fcntl":
                op = DUP
            self._add(call, op, file)

    def _add(self, call: _SystemCall, op: int, file: int, offset: int = 0, size: int = 0) -> None:
        self.records.add(call.time_s, int(call.pid), op, file, offset, size)

    # What follows of calls that succeed. The file that they are about; -1 for none.

    def _open(self, call: _SystemCall) -> int:
        shown = _FD.match(call.answer + call.rest)
        file = -1
        if shown:
            path = _unescaped(shown[2] or "")
        else:
            path = ""
        if is_apart(path):
            file = APART
        elif "O_DIRECTORY" not in call.args:
            file = self.files.number(path, made="O_CREAT" in call.args or "O_" not in call.args)
            if "O_TRUNC" in call.args:
                self.files.changed[file] = True
                self._ends[file] = 0
        call.process.table[call.answer] = _Opened(file, 0, "O_APPEND" in call.args)
        return file

    def _close(self, call: _SystemCall) -> int:
        call.process.table.pop(call.args.partition("<")[0], None)
        return call.opened.file

    def _dup(self, call: _SystemCall) -> int:
        if "F_DUPFD" in call.args or ", F_" not in call.args:
            call.process.table[call.answer] = call.opened
        return call.opened.file

    def _seek(self, call: _SystemCall) -> int:
        before = call.opened.place
        call.opened.place = int(call.answer)
        if call.opened.place != before:
            return call.opened.file
        return _STILL

    def _stat(self, call: _SystemCall) -> int:
        size = _SIZE.search(call.args)
        file = call.opened.file
        if file >= 0 and size and ('""' in call.args or "AT_" not in call.args):
            self.files.grown(self._number, file, int(size[1]))
            self._ends[file] = max(int(size[1]), self._ends.get(file, 0))
        return file

    def _map(self, call: _SystemCall) -> int:
        _, length, _, _, *target = call.args.split(", ", 4)
        shown, _, offset = "".join(target).rpartition(", ")
        file = self._descriptor(call.process, shown).file
        if file >= 0:
            self._add(call, MAP_READ, file, int(offset, 0), int(length, 0))
            if "PROT_WRITE" in call.args and "MAP_SHARED" in call.args:
                self._add(call, MAP_WRITE, file, int(offset, 0), int(length, 0))
        return -1

    def _exec(self, call: _SystemCall) -> int:
        if not is_apart(path := self.real(self._path(call))):
            self._add(call, MAP_READ, self.files.number(path), 0, UNKNOWN)
        return -1

    def _fork(self, call: _SystemCall) -> int:
        if call.answer not in self._processes:
            self._forked(call.answer, call.pid, call.args)
        self._forking.pop(call.pid, None)
        return -1

    def _copy(self, call: _SystemCall) -> int:
        """sendfile(out, in, place, n); copy_file_range and splice(in, place, out, place, n,
        flags)."""
        one, two = [found for found in _FD.finditer(call.args) if found[2] is not None][:2]
        between = call.args[one.end() : two.start()]
        behind = _PLACE.match(call.args, two.end())
        pairs = [(READ, one, _PLACE.match(between)), (WRITE, two, behind)]
        if between == ", ":  # sendfile
            pairs = [(READ, two, behind), (WRITE, one, None)]
        for op, end, place in pairs:
            opened = self._descriptor(call.process, end[0])
            start = int(place[1]) if place else None
            self._moved(call.time_s, int(call.pid), op, opened, start, int(call.answer))
        return -1

    def _rename(self, call: _SystemCall) -> int:
        return self.files.renamed(self._path(call), self._path(call, 1))

    def _link(self, call: _SystemCall) -> int:
        return self.files.linked(self._path(call), self._path(call, 1))

    def _unlink(self, call: _SystemCall) -> int:
        if "AT_REMOVEDIR" in call.args:
            return -1
        return self.files.removed(self._path(call))

    def _truncate(self, call: _SystemCall) -> int:
        if call.args.startswith('"'):
            file = self.files.number(self._path(call))
        else:
            file = call.opened.file
        if file >= 0:
            size = self._ends[file] = int(call.args.rsplit(", ", 1)[1])
            self.files.changed[file] = True
            self.files.grown(self._number, file, size)
        return file

    def _chdir(self, call: _SystemCall) -> int:
        shown = _FD.match(call.args)
        if shown and shown[2]:
            folder = _unescaped(shown[2])
        else:
            folder = self._path(call)
        for each in self._processes.values():  # threads have one folder
            if each is call.process or each.table is call.process.table:
                each.folder = folder
        return -1


_STILL = -9  # in place of a file: a seek that moved nothing
_FOLLOWED = {
    name: getattr(Reading, f"_{row['follow']}")
    for row in _CALLS
    if row["follow"]
    for name in row["names"]
}


def _given_place(name: str, args: str) -> int | None:
    """Where a call such as pread says that it reads; None: where its descriptor stands."""
    behind = 1
    if name[-1] == "2":  # flags come last
        behind = 2
    given = args.rsplit(", ", behind)[1]
    if given == "-1":
        return None
    return int(given)


def _whole(begun: str, rest: str) -> str:
    """The two halves of a call; strace leaves out the comma between two arguments."""
    is_inside = begun[-1:] in ("", *"({[") or rest[:1] in ")}]="
    return f"{begun}{'' if is_inside else ', '}{rest}"
