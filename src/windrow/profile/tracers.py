"""Runs commands and traces them: with strace, which sees bytes, or with the listener, which sees
files.

Rule 1: which of them may be used is tried, never assumed: strace may be missing, tracing may be
forbidden.
Rule 2: stages of a pipeline and pipelines run one after another, into one trace, so that a file is
the same in all.
Rule 3: seconds of processor are those of the command: with strace without the system's, which
tracing inflates.
"""

import ctypes
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from windrow.errors import OutsideError, UserError
from windrow.formats.strace import CALLS, Reading
from windrow.model.trace import MAP_READ, OPEN, OTHER, READ, UNKNOWN, WRITE, Stage, Trace, is_apart
from windrow.profile.listener import AT_FDCWD, listen, path_of, read_text

DETAILS = ("bytes", "files")
_STRACE = (
    "-f",
    "-I",
    "2",
    "-y",
    "-ttt",
    "-s",
    "0",
    "-qq",
    "-e",
    "signal=none",
    "-e",
    f"trace={','.join(f'?{c}' for c in CALLS)}",
)
_CREATE = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
_BESIDE_FOLDER = ("openat", "openat2", "execveat", "renameat", "renameat2", "unlinkat", "linkat")
_BIRTH = 0x800  # of what statx may tell

Env = Mapping[str, str] | None


@cache
def strace_options() -> tuple[str, ...]:
    """How strace is called here; empty if it is missing or not allowed to trace."""
    program = shutil.which("strace") or ""
    for options in ((*_STRACE, "--seccomp-bpf"), _STRACE) if program else ():
        tried = subprocess.run(
            [program, *options, "-o", os.devnull, "true"], capture_output=True, check=False
        )
        if tried.returncode == 0 and not tried.stderr:
            return (program, *options)
    return ()


@cache
def listener_fault() -> str:
    """Why the listener cannot be used here; empty if it can."""
    try:
        listen(["true"], lambda *_: None)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def chosen_detail(wanted: str | None) -> str:
    """How closely commands can be traced here. OutsideError if not as `wanted`, or not at
    all."""
    if strace_options() and wanted != "files":
        return "bytes"
    if shutil.which("strace"):
        why = "strace is not allowed to trace here"
    else:
        why = "strace is not installed"
    if wanted == "bytes":
        raise OutsideError(f"bytes cannot be traced: {why}; install strace, or use --detail files")
    if fault := listener_fault():
        if strace_options():
            more = "; use --detail bytes"
        else:
            more = f", and {why}"
        raise OutsideError(
            f"files cannot be traced: the system does not allow listening to calls ({fault}){more}"
        )
    return "files"


class Tracing:
    """One trace being made, stage by stage. `waiting` is told what takes time, after a command has
    ended."""

    def __init__(
        self, detail: str, waiting: Callable[[str], AbstractContextManager[Any]] = nullcontext
    ) -> None:
        self.detail = detail
        self.stages = list[Stage]()
        self.waiting = waiting
        self.reading = Reading(real=cache(os.path.realpath))

    def run(
        self, stage: Stage, folder: str = ".", env: Env = None, stdout: int | None = None
    ) -> Stage:
        """Run the stage's command in this folder, traced. Its times, memory and exit code are
        filled in."""
        _refuse_missing(stage.command[0], folder, env)
        begin = len(self.reading.records.op)
        how = {"cwd": os.path.realpath(folder), "env": env, "stdout": stdout}
        heard = None
        if self.detail == "files":
            heard = _Heard(self.reading)
        with tempfile.TemporaryDirectory(prefix="windrow-") as scratch:
            log = Path(scratch) / "log"
            log.touch()
            # by the clock of file systems
            began = time.monotonic()
            began_s = _born_s(str(log)) or time.time() - 0.02
            try:
                if heard:
                    ended = listen(stage.command, heard, **how)
                else:
                    ended = _strace(stage.command, log, how)
            except OSError as error:
                raise OutsideError(
                    f"the command cannot be traced: {error.strerror or error}"
                ) from None
            stage.real_s = time.monotonic() - began
            stage.exit_code, stage.cpu_s, stage.memory_bytes = ended
            if heard:
                heard.settle()
            else:
                with self.waiting("reading the trace"):
                    self._read(log, str(how["cwd"]), began_s)
        self.stages.append(stage)
        self._measure_files(begin)
        return stage

    def _measure_files(self, begin: int) -> None:
        """The sizes that files of records from there on have now."""
        files = self.reading.files
        used = {number for number in self.reading.records.file[begin:] if number >= 0}
        for number in sorted(number for number in used if not files.gone[number]):
            if found := _stat(files.paths[number]):
                files.grown(len(self.stages) - 1, number, found.st_size)

    def _read(self, log: Path, folder: str, began_s: float) -> None:
        """What strace wrote. Files that are older than the trace were not made by it, however they
        were opened."""
        files = self.reading.files
        known = len(self.reading.files.paths)
        with log.open(encoding="utf-8", errors="surrogateescape") as lines:
            self.reading.stage(lines, folder, str(log))
        for number in range(known, len(files.paths)):
            if files.made[number] and not files.gone[number]:
                files.made[number] = (_born_s(files.paths[number]) or began_s + 1) > began_s

    def trace(self) -> Trace:
        """What was traced so far. Names that are not UTF-8 have question marks from here on."""
        files = self.reading.files
        files.paths[:] = [path.encode("utf-8", "replace").decode() for path in files.paths]
        return Trace.of(self.reading.records, self.stages, files, has_bytes=self.detail == "bytes")


def _strace(command: Sequence[str], log: Path, how: dict[str, Any]) -> tuple[int, float, int]:
    """Run it under strace; exit code, seconds of processor and bytes of memory, as from
    `listen`."""
    tracer = subprocess.Popen([*strace_options(), "-o", str(log), "--", *command], **how)
    try:
        os.waitid(os.P_PID, tracer.pid, os.WEXITED | os.WNOWAIT)
    except KeyboardInterrupt:
        tracer.terminate()
        tracer.wait()
        raise
    fields = Path(f"/proc/{tracer.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    cpu_s = int(fields[13]) / os.sysconf(
        "SC_CLK_TCK"
    )  # user time of children waited for: the command's
    _, status, used = os.wait4(tracer.pid, 0)
    tracer.returncode = os.waitstatus_to_exitcode(status)
    return tracer.returncode, cpu_s, used.ru_maxrss * 1024


class _Heard:
    """Makes records of the calls that the listener announces."""

    def __init__(self, reading: Reading) -> None:
        self.records = reading.records
        self.files = reading.files
        self.real = reading.real
        self.stage = reading.records.begin()
        self.doubtful: dict[
            int, tuple[int, int]
        ] = {}  # by row that says "written": its file, and when it had changed

    def __call__(self, pid: int, name: str, given: tuple[int, ...]) -> None:
        if name not in _BESIDE_FOLDER:  # as if the folder where the process is were named
            given = (AT_FDCWD, given[0], AT_FDCWD, *given[1:])
        path = self._path(pid, given)
        if name.startswith("unlink"):
            if self._is_file(path):
                self._add(pid, OTHER, self.files.removed(path))
            return
        if name.startswith(("rename", "link")):
            self._move(pid, name, path, self._path(pid, given[2:]))
        if os.path.islink(path):  # noqa: PTH114
            path = os.path.realpath(path)
        if name.startswith(("open", "creat")):
            self._open(pid, path, _flags(pid, name, given))
        elif name == "truncate" and self._is_file(path):
            number = self.files.number(path)
            self.files.changed[number] = True
            self._add(pid, OTHER, number)
        elif name.startswith("exec") and self._is_file(path):
            self._add(pid, MAP_READ, self.files.number(path))

    def _move(self, pid: int, name: str, path: str, to: str) -> None:
        if not self._is_file(path) and not Path(path).is_dir():
            return
        if name.startswith("rename"):
            self._add(pid, OTHER, self.files.renamed(path, to))
        else:
            self._add(pid, OTHER, self.files.linked(path, to))

    def _path(self, pid: int, given: Sequence[int]) -> str:
        folder, last = os.path.split(path_of(pid, given[0], given[1]))
        return f"{self.real(folder).rstrip('/')}/{last}"

    def _is_file(self, path: str) -> bool:
        """Whether a file is there, not a folder or a device; its size is noted."""
        if is_apart(path):
            found = None
        else:
            found = _stat(path)
        if found:
            self.files.grown(self.stage, self.files.number(path), found.st_size)
        return found is not None

    def _open(self, pid: int, path: str, flags: int) -> None:
        before = None
        if not is_apart(path):
            before = _stat(path)
        mode = flags & os.O_ACCMODE
        reads = mode != os.O_WRONLY
        writes = mode != os.O_RDONLY
        if before:
            is_new = flags & os.O_CREAT and flags & os.O_EXCL
            fails = is_new or not os.access(path, reads * os.R_OK | writes * os.W_OK)
        else:
            fails = not _may_be_made(path, flags)
        if fails:
            self._add(pid, OPEN, -1)
            return
        file = self.files.number(path, made=before is None)
        self._add(pid, OPEN, file)
        size = 0
        if before:
            size = before.st_size
        self.files.grown(self.stage, file, size)
        if reads:
            self._add(pid, READ, file)
        if writes:
            self.files.changed[file] |= bool(flags & os.O_TRUNC)
            if before and not flags & os.O_TRUNC:
                self.doubtful[len(self.records.op)] = (file, before.st_mtime_ns)
            self._add(pid, WRITE, file)

    def _add(self, pid: int, op: int, file: int) -> None:
        self.records.add(time.time(), pid, op, file, 0, UNKNOWN)

    def settle(self) -> None:
        """What was opened for writing, too, but did not change, was not written."""
        for row, (file, changed_ns) in self.doubtful.items():
            if self.files.gone[file]:
                found = None
            else:
                found = _stat(self.files.paths[file])
            if found and found.st_mtime_ns == changed_ns:
                self.records.op[row] = OTHER


def _stat(path: str) -> os.stat_result | None:
    """Of a file; None for all else."""
    try:
        found = os.stat(path)  # noqa: PTH116  (on the way of every open; so are the others)
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(found.st_mode):
        return found
    return None


def _born_s(path: str) -> float | None:
    """When the file was created; None if its file system does not tell."""
    found = ctypes.create_string_buffer(256)
    try:
        answer = ctypes.CDLL(None).statx(AT_FDCWD, os.fsencode(path), 0, _BIRTH, found)
    except (AttributeError, ValueError):
        return None
    (known,) = struct.unpack_from("I", found)
    seconds, nanoseconds = struct.unpack_from("qI", found, 80)
    if answer == 0 and known & _BIRTH:
        return float(seconds + nanoseconds / 1e9)
    return None


def _refuse_missing(command: str, folder: str, env: Env) -> None:
    program = command
    if "/" in command:
        program = str(Path(folder).absolute() / command)
    if not shutil.which(program, path=(env or os.environ).get("PATH")):
        raise UserError(
            f"there is no command {command!r}; check it, or name tasks of a workflow: --tasks"
        )


def _flags(pid: int, name: str, given: tuple[int, ...]) -> int:
    """How a call opens its file; openat2 has that in a structure."""
    flags = {"openat": given[2], "open": given[3], "creat": _CREATE}.get(name, -1)
    if flags < 0:
        return int.from_bytes(read_text(pid, given[2])[:8], sys.byteorder)
    return flags


def _may_be_made(path: str, flags: int) -> bool:
    """Whether a call with these flags makes this file, which is not there as a file."""
    if not flags & os.O_CREAT or is_apart(path):
        return False
    return os.access(os.path.dirname(path), os.W_OK) and not Path(path).exists()  # noqa: PTH120
