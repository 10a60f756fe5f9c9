"""Runs commands and traces them: with strace, which sees bytes, or with the listener, which sees files.

Rule 1: which of them may be used is tried, never assumed: strace may be missing, tracing may be forbidden.
Rule 2: stages of a pipeline and pipelines run one after another, into one trace, so that a file is the same in all.
Rule 3: seconds of processor are those of the command: with strace without the system's, which tracing inflates.
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
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from windrow.errors import OutsideError, UserError
from windrow.formats.strace import CALLS, Reading
from windrow.model.trace import MAP_READ, OPEN, OTHER, READ, UNKNOWN, WRITE, Stage, Trace, is_apart
from windrow.profile.listener import AT_FDCWD, listen, path_of, read_text

DETAILS = ("bytes", "files")
_CREATE = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
_BESIDE_FOLDER = ("openat", "openat2", "execveat", "renameat", "renameat2", "unlinkat", "linkat")
_STRACE = ("-f", "-y", "-ttt", "-s", "0", "-qq", "-e", "signal=none", "-e", f"trace={','.join(f'?{c}' for c in CALLS)}")


@cache
def strace_options() -> tuple[str, ...]:
    """How strace is called here; empty where it is missing or not allowed to trace."""
    program = shutil.which("strace")
    for options in ((*_STRACE, "--seccomp-bpf"), _STRACE) if program else ():
        tried = subprocess.run([str(program), *options, "-o", os.devnull, "true"], capture_output=True, check=False)
        if tried.returncode == 0 and not tried.stderr:
            return (str(program), *options)
    return ()


@cache
def listener_fault() -> str:
    """Why the listener cannot be used here; empty where it can."""
    try:
        listen(["true"], lambda *_: None, "/")
    except OSError as error:
        return error.strerror or str(error)
    return ""


def chosen_detail(wanted: str | None) -> str:
    """How closely commands can be traced here. OutsideError where not as `wanted`, or not at all."""
    no_bytes = not strace_options()
    why = "strace is not installed" if not shutil.which("strace") else "strace is not allowed to trace here"
    if wanted == "bytes" or (wanted is None and not no_bytes):
        if no_bytes:
            raise OutsideError(f"bytes cannot be traced: {why}; install strace, or use --detail files")
        return "bytes"
    if fault := listener_fault():
        more = f", and {why}" if no_bytes else "; use --detail bytes"
        raise OutsideError(f"files cannot be traced: the system does not allow to listen to calls ({fault}){more}")
    return "files"


class Tracing:
    """One trace being made, stage by stage."""

    def __init__(self, detail: str) -> None:
        self.detail = detail
        self.reading = Reading(real=cache(os.path.realpath))
        self.stages: list[Stage] = []

    def run(
        self,
        stage: Stage,
        folder: str | os.PathLike[str] = ".",
        env: Mapping[str, str] | None = None,
        stdout: int | None = None,
    ) -> Stage:
        """Run the stage's command in this folder, traced. Its times, memory and exit code are filled in."""
        where = os.path.realpath(folder)
        if shutil.which(stage.command[0], path=(env or os.environ).get("PATH")) is None and "/" not in stage.command[0]:
            raise UserError(f"there is no command {stage.command[0]!r}; check its spelling")
        begin, began = len(self.reading.records.op), time.monotonic()
        traced = self._bytes if self.detail == "bytes" else self._files
        stage.exit_code, stage.cpu_s, stage.memory_bytes, real_s = traced(stage.command, where, env, stdout)
        stage.real_s = real_s or time.monotonic() - began
        self.stages.append(stage)
        touched = set(self.reading.records.file[begin:])
        for number in sorted(number for number in touched if number >= 0 and not self.reading.files.gone[number]):
            if found := _stat(self.reading.files.paths[number]):
                self.reading.files.grown(len(self.stages) - 1, number, found.st_size)
        return stage

    def trace(self) -> Trace:
        """What was traced so far."""
        return Trace.of(self.reading.records, self.stages, self.reading.files, has_bytes=self.detail == "bytes")

    def _bytes(
        self, command: Sequence[str], folder: str, env: Mapping[str, str] | None, stdout: int | None
    ) -> tuple[int, float, int, float]:
        files = self.reading.files
        known = len(files.paths)
        with tempfile.TemporaryDirectory(prefix="windrow-") as scratch:
            log = Path(scratch) / "log"
            log.touch()
            reference = _born_s(str(log)) or time.time() - 0.02
            began = time.monotonic()
            tracer = subprocess.Popen(
                [*strace_options(), "-o", str(log), "--", *command], cwd=folder, env=env, stdout=stdout
            )
            try:
                os.waitid(os.P_PID, tracer.pid, os.WEXITED | os.WNOWAIT)
                real_s = time.monotonic() - began
                fields = Path(f"/proc/{tracer.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except KeyboardInterrupt:
                tracer.terminate()
                tracer.wait()
                raise
            _, status, used = os.wait4(tracer.pid, 0)
            tracer.returncode = os.waitstatus_to_exitcode(status)
            with log.open(encoding="utf-8", errors="surrogateescape") as lines:
                self.reading.stage(lines, folder, str(log))
        for number in range(known, len(files.paths)):
            if files.made[number] and not files.gone[number]:
                born_s = _born_s(files.paths[number])
                files.made[number] = born_s is None or born_s > reference
        cpu_s = int(fields[13]) / os.sysconf("SC_CLK_TCK")  # user time of children waited for: the command's
        return tracer.returncode, cpu_s, used.ru_maxrss * 1024, real_s

    def _files(
        self, command: Sequence[str], folder: str, env: Mapping[str, str] | None, stdout: int | None
    ) -> tuple[int, float, int, float]:
        heard = _Heard(self.reading, self.reading.records.begin())
        try:
            code, cpu_s, memory_bytes = listen(command, heard, folder, env, stdout)
        except OSError as error:
            raise OutsideError(f"the command cannot be traced: {error.strerror or error}") from None
        heard.settle()
        return code, cpu_s, memory_bytes, 0.0


class _Heard:
    """Makes records of the calls that the listener announces."""

    def __init__(self, reading: Reading, stage: int) -> None:
        self.reading, self.stage, self.files = reading, stage, reading.files
        self.doubtful: dict[int, tuple[int, int]] = {}  # by row that says "written": its file, and when it had changed

    def __call__(self, pid: int, name: str, given: tuple[int, ...]) -> None:
        if name not in _BESIDE_FOLDER:  # as if the folder where the process is were named
            given = (AT_FDCWD, given[0], AT_FDCWD, *given[1:])
        path = self._path(pid, given)
        if name.startswith(("rename", "link")):
            target = self._path(pid, given[2:])
            if self._is_file(path) or Path(path).is_dir():
                move = self.files.renamed if name.startswith("rename") else self.files.linked
                self._add(pid, OTHER, move(path, target))
        elif name.startswith("unlink"):
            if self._is_file(path):
                self._add(pid, OTHER, self.files.removed(path))
        elif name.startswith(("open", "creat")):
            flags = given[2] if name == "openat" else given[3]
            if name == "openat2":
                flags = int.from_bytes(read_text(pid, given[2])[:8], sys.byteorder)
            self._open(pid, self._followed(path), _CREATE if name == "creat" else flags)
        elif self._is_file(path := self._followed(path)):
            number = self.files.number(path)
            self.files.changed[number] |= name == "truncate"
            self._add(pid, OTHER if name == "truncate" else MAP_READ, number)

    def _path(self, pid: int, given: Sequence[int]) -> str:
        folder, last = os.path.split(path_of(pid, given[0], given[1]))
        return f"{self.reading.real(folder).rstrip('/')}/{last}"

    @staticmethod
    def _followed(path: str) -> str:
        return os.path.realpath(path) if Path(path).is_symlink() else path

    def _is_file(self, path: str) -> bool:
        """Whether a file is there, not a folder or a device; its size is noted."""
        found = None if is_apart(path) else _stat(path)
        if found:
            self.files.grown(self.stage, self.files.number(path), found.st_size)
        return found is not None

    def _open(self, pid: int, path: str, flags: int) -> None:
        before, mode = None if is_apart(path) else _stat(path), flags & os.O_ACCMODE
        writes = mode != os.O_RDONLY
        if before:
            needed = (os.W_OK if writes else 0) | (os.R_OK if mode != os.O_WRONLY else 0)
            fails = not os.access(path, needed) or (flags & os.O_CREAT and flags & os.O_EXCL)
        else:
            fails = is_apart(path) or not flags & os.O_CREAT or not os.access(Path(path).parent, os.W_OK)
        if fails or Path(path).is_dir():
            self._add(pid, OPEN, -1)
            return
        file = self.files.number(path, made=before is None)
        self._add(pid, OPEN, file)
        if before:
            self.files.grown(self.stage, file, before.st_size)
        if mode != os.O_WRONLY:
            self._add(pid, READ, file)
        if writes:
            self.files.changed[file] |= bool(flags & os.O_TRUNC)
            if before and not flags & os.O_TRUNC:
                self.doubtful[len(self.reading.records.op)] = (file, before.st_mtime_ns)
            self._add(pid, WRITE, file)

    def _add(self, pid: int, op: int, file: int) -> None:
        self.reading.records.add(time.time(), pid, op, file, 0, UNKNOWN)

    def settle(self) -> None:
        """What was opened for writing, too, but did not change, was not written."""
        for row, (file, changed_ns) in self.doubtful.items():
            found = _stat(self.files.paths[file])
            if not self.files.gone[file] and found and found.st_mtime_ns == changed_ns:
                self.reading.records.op[row] = OTHER


def _stat(path: str) -> os.stat_result | None:
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _born_s(path: str) -> float | None:
    """When the file was created; None where its file system does not tell."""
    found = ctypes.create_string_buffer(256)
    try:
        answer = ctypes.CDLL(None).statx(AT_FDCWD, os.fsencode(path), 0, 0x800, found)
    except (AttributeError, ValueError):
        return None
    seconds, nanoseconds = struct.unpack_from("qI", found.raw, 80)
    return float(seconds + nanoseconds / 1e9) if answer == 0 and found.raw[1] & 0x8 else None
