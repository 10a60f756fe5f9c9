"""Hears of each file that a command opens, executes, renames or deletes, and costs nothing on reads
and writes.

A filter of system calls (seccomp) stops the process at these calls and notifies us; we look at the
path, and let the call continue. Any user may do so for commands of their own. It takes Linux 5.5 or
later, and set-uid programs lose their rights.

Law: what is noted is seen before the call: whether a file exists, how large it is. Calls that
cannot succeed are left out as far as that can be told: no such file, no permission, there already.
A file opened for both reading and writing counts as written if it has changed in the end.

Executed as a program with a socket's number and a command, this file sets up the filter and becomes
the command; so it imports the standard library only.
"""

import ctypes
import errno
import fcntl
import os
import platform
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_X86 = {
    "open": 2,
    "creat": 85,
    "openat": 257,
    "openat2": 437,
    "execve": 59,
    "execveat": 322,
    "truncate": 76,
}
_X86 |= {
    "rename": 82,
    "renameat": 264,
    "renameat2": 316,
    "unlink": 87,
    "unlinkat": 263,
    "link": 86,
    "linkat": 265,
}
_ARM = {"openat": 56, "openat2": 437, "execve": 221, "execveat": 281, "truncate": 45}
_ARM |= {"renameat": 38, "renameat2": 276, "unlinkat": 35, "linkat": 37}
_MACHINES = {"x86_64": (0xC000003E, 317, _X86), "aarch64": (0xC00000B7, 277, _ARM)}
_PAGE = 4096
_RECEIVE = 0xC0502100
_SEND = 0xC0182101
AT_FDCWD = -100
_CONTINUE = 1

Call = Callable[[int, str, tuple[int, ...]], None]


def _install() -> int:
    """Set up the filter in this process; the descriptor on which its calls are announced. OSError
    if refused."""
    machine = platform.machine()
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, f"not known for processors of type {machine}")
    arch, seccomp, calls = _MACHINES[machine]
    numbers = sorted(calls.values())
    code = [(0x20, 0, 0, 4), (0x15, 0, len(numbers) + 1, arch), (0x20, 0, 0, 0)]
    code += [(0x15, len(numbers) - i, 0, number) for i, number in enumerate(numbers)]
    code += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x7FC00000)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in code))
    head = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(code), ctypes.addressof(program))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    listener = int(libc.syscall(seccomp, 1, 8, head))
    if listener < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return listener


def _become(number: int, command: list[str]) -> None:
    """Tell the supervisor where to listen, or what is wrong, and execute the command."""
    with socket.socket(fileno=number) as line:
        try:
            listener = _install()
        except OSError as error:
            line.sendall(str(error.strerror).encode())
            return
        socket.send_fds(line, [struct.pack("d", time.process_time())], [listener])
        os.close(listener)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        os._exit(127)


def listen(command: Sequence[str], hear: Call, **how: Any) -> tuple[int, float, int]:
    """Run a command (`how`: as subprocess has it), and call `hear(process, call, arguments)` before
    each of its calls.

    Returns exit code, seconds of processor and bytes of memory. OSError if the system does not
    allow listening.
    """
    child, word, passed = _launched(command, how)
    try:
        status, used = _serve(passed[0], child.pid, hear)
    except BaseException:
        # an interrupt too: a child without a listener would hang in its next call
        child.kill()
        child.wait()
        raise
    finally:
        os.close(passed[0])
    child.returncode = os.waitstatus_to_exitcode(status)
    # without the start of this program
    seconds = used.ru_utime + used.ru_stime - struct.unpack("d", word)[0]
    return child.returncode, max(0.0, seconds), used.ru_maxrss * 1024


def _is_old() -> bool:
    """Whether the system is a Linux before 5.9."""
    return tuple(map(int, platform.release().split("-")[0].split(".")[:2])) < (5, 9)


def _launched(
    command: Sequence[str], how: dict[str, Any]
) -> tuple[subprocess.Popen[Any], bytes, list[int]]:
    """The child, what it said when it was about to start the command, and the listener."""
    ours, theirs = socket.socketpair()
    launch = [sys.executable, "-I", "-S", __file__, str(theirs.fileno()), *command]
    with ours:
        with theirs:
            child = subprocess.Popen(launch, pass_fds=[theirs.fileno()], **how)
        word, passed, _, _ = socket.recv_fds(ours, 256, 1)
    if not passed:
        child.wait()
        raise OSError(errno.EPERM, word.decode() or "the command could not be started")
    return child, word, passed


def _serve(listener: int, child: int, hear: Call) -> tuple[int, Any]:
    """Until no process is left that has the filter. The system says so; before Linux 5.9, the end
    of the child does."""
    names = {number: name for name, number in _MACHINES[platform.machine()][2].items()}
    ended: tuple[int, int, Any] = (0, 0, None)
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    while True:
        found = poll.poll(100)
        if found and found[0][1] & select.POLLIN:
            _answer(listener, names, hear)
            continue
        if not ended[0]:  # a dead child has the filter, before Linux 6.11, until it is waited for
            ended = os.wait4(child, 0 if found else os.WNOHANG)
        if found or (ended[0] and _is_old()):
            return ended[1:]


def _answer(listener: int, names: Mapping[int, str], hear: Call) -> None:
    notice = bytearray(80)
    try:
        fcntl.ioctl(listener, _RECEIVE, notice, True)
        number, pid, _flags, call, _arch, _at, *arguments = struct.unpack("QIIiIQ6Q", notice)
        try:
            hear(pid, names[call], tuple(arguments))
        finally:
            fcntl.ioctl(listener, _SEND, struct.pack("QqiI", number, 0, 0, _CONTINUE))
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EINTR):  # the process died meanwhile
            raise


def read_text(pid: int, at: int) -> bytes:
    """Up to eight thousand bytes at this address of a process, up to the end of a text; none if
    refused."""
    found = b""
    memory = -1
    try:
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        while b"\0" not in found and len(found) < 2 * _PAGE:
            found += os.pread(memory, _PAGE - (at + len(found)) % _PAGE, at + len(found))
    except (OSError, OverflowError):
        return b""
    finally:
        if memory >= 0:
            os.close(memory)
    return found


def path_of(pid: int, folder: int, at: int) -> str:
    """The whole path that a process names by a descriptor of a folder and a text; empty if it is
    unknown."""
    text = os.fsdecode(read_text(pid, at).partition(b"\0")[0])
    if not text.startswith("/"):
        number = ctypes.c_int32(folder & 0xFFFFFFFF).value
        if number == AT_FDCWD:
            place = "cwd"
        else:
            place = f"fd/{number}"
        try:
            text = f"{os.readlink(f'/proc/{pid}/{place}')}/{text}"  # noqa: PTH115  (on the way of every open)
        except OSError:
            return ""
    return os.path.normpath(text)


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
    sys.exit(126)
