"""`python -m windrow.agent.worker [MODULE...]`: imports the modules once, and forks for each task.

A task is a Python command line (`python FILE ...`, `-m MODULE ...` or `-c CODE ...`), and runs in a
child as a fresh Python would run it, but for what is imported already. Linux; standard library.

Rule 1: a child is the agent's, as every task is: a helper forks it and ends, so it comes to the
nearest reaper of orphans. Its exit code, time, memory and signals need no one in between, and it
outlives this process. Rule 2: the agent knows a child's number before the child begins: the child
waits for the end of its helper, which says the number first. Rule 3: a process with threads is not
forked: a child would have only one of them, and perhaps locks of the others.
Rule 4: what this process cannot do it says (`cold`); the agent then starts the task itself.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import gc
import importlib
import io
import json
import os
import runpy
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

_SCRIPT = "script"
_MODULE = "-m"
_CODE = "-c"
_UNBUFFERED = "-u"
_SAFE_PATH = "-P"


class Program(NamedTuple):
    """What a Python command line says: a file, a module or code, with its arguments."""

    how: str
    what: str
    arguments: tuple[str, ...]
    options: frozenset[str]


def program_of(command: Sequence[str]) -> Program | None:
    """What a Python that is started by this does; None: it takes one of its own."""
    options = set()
    words = list(command[1:])
    while words and words[0] in (_UNBUFFERED, _SAFE_PATH):
        options.add(words.pop(0))
    if len(words) >= 2 and words[0] in (_MODULE, _CODE):
        return Program(words[0], words[1], tuple(words[2:]), frozenset(options))
    if words and not words[0].startswith("-"):
        return Program(_SCRIPT, words[0], tuple(words[1:]), frozenset(options))
    return None


def _is_this(python: str) -> bool:
    """Whether that program is the Python that runs here: the same file, in the same folder, since
    that says what is installed for it."""
    ours, theirs = Path(sys.executable), Path(python)
    same_file = os.path.realpath(ours) == os.path.realpath(theirs)
    return same_file and os.path.realpath(ours.parent) == os.path.realpath(theirs.parent)


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208  (of every task)


class Worker:
    """Takes orders as JSON lines, and answers with one line for each."""

    def __init__(self, orders: int, answers: int) -> None:
        self._orders = orders
        self._answers = answers

    def serve(self) -> None:
        """Until there are no more."""
        unread = b""
        while data := os.read(self._orders, 1 << 16):
            *lines, unread = (unread + data).split(b"\n")
            for line in lines:
                self._take(json.loads(line))

    def _take(self, order: dict[str, Any]) -> None:
        program = program_of(order["command"])
        threads = _threads()
        if program is None or not _is_this(order["program"]):
            self._say(key=order["key"], cold=f"it is not a command line of {sys.executable}")
        elif threads > 1:
            why = f"it has {threads} threads, and is not forked"
            self._say(key=order["key"], cold=why, for_all=True)
        else:
            self._fork(order, program)

    def _fork(self, order: dict[str, Any], program: Program) -> None:
        begin, held = os.pipe()
        try:
            helper = os.fork()
        except OSError as error:
            os.close(begin)
            os.close(held)
            self._say(key=order["key"], cold=f"it cannot fork: {error.strerror}")
            return
        if helper == 0:
            self._help(order, program, begin, held)
        os.close(begin)
        os.close(held)
        _, status = os.waitpid(helper, 0)
        if status:
            self._say(key=order["key"], cold="it cannot fork")

    def _help(self, order: dict[str, Any], program: Program, begin: int, held: int) -> None:
        """The helper: makes the child, says its number, and ends, whereupon the child begins."""
        try:
            child = os.fork()
            if child == 0:
                os.close(held)
                os.read(begin, 1)
                os.close(begin)
                _become(order, program)
            os.setpgid(child, child)
            self._say(key=order["key"], pid=child)
            os._exit(0)
        finally:  # whatever happens, there is one worker
            os._exit(1)

    def _say(self, **what: Any) -> None:
        line = json.dumps(what).encode() + b"\n"
        while line:
            line = line[os.write(self._answers, line) :]


def _become(order: dict[str, Any], program: Program) -> None:
    """The child: does what a fresh process would do, and ends."""
    code = 1
    try:
        null = os.open(os.devnull, os.O_RDONLY)
        out = os.open(order["out"], os.O_WRONLY | os.O_APPEND)
        for file, number in ((null, 0), (out, 1), (out, 2)):
            os.dup2(file, number)
        os.close(null)
        os.close(out)
        os.chdir(order["cwd"])
        os.environ.clear()
        os.environ.update(order["env"])
        if order["cores"]:
            os.sched_setaffinity(0, order["cores"])
        _forget()
        code = _ran(program)
        if code < 0:
            signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
    except BaseException:  # noqa: BLE001  (nothing of the worker may run in a child)
        _print_fault()
    finally:
        os._exit(code)


def _forget() -> None:
    """What a process must not have in common with its siblings."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    importlib.invalidate_caches()
    numbers = sys.modules.get("numpy.random")  # Python's own are drawn again after a fork
    if numbers is not None:
        numbers.seed()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.seed()


def _ran(program: Program) -> int:
    """Run the program as `__main__`; what it ends with, when all that it has to do at its end is
    done."""
    if _UNBUFFERED in program.options:
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)  # type: ignore[union-attr]
    code = _code_of(program)
    with contextlib.suppress(KeyboardInterrupt):
        threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # as Python does it, if its last words are lost
            code = code or 120
    return code


def _code_of(program: Program) -> int:
    """With what it ends: as for `sys.exit`, or a signal below 0."""
    try:
        _run_main(program)
    except SystemExit as end:
        if end.code is None:
            return 0
        if isinstance(end.code, int):
            return end.code & 0xFF
        print(end.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        _print_fault()
        return -signal.SIGINT
    except BaseException:  # noqa: BLE001  (the program's own)
        _print_fault()
        return 1
    return 0


_OURS = (__file__, runpy.__file__, "<frozen runpy>")


def _print_fault() -> None:
    """The fault that is being handled, without what stands before the program in the stack."""
    error = sys.exc_info()[1]
    assert error is not None
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in _OURS:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def _run_main(program: Program) -> None:
    is_safe = _SAFE_PATH in program.options or bool(os.environ.get("PYTHONSAFEPATH"))
    main = type(sys)("__main__")
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    sys.argv = [program.what, *program.arguments]
    if program.how == _MODULE:
        _put_first(os.getcwd(), is_safe)  # noqa: PTH109
        runpy._run_module_as_main(program.what)  # type: ignore[attr-defined]
    elif program.how == _CODE:
        _put_first("", is_safe)
        sys.argv[0] = _CODE
        exec(compile(program.what, "<string>", "exec"), main.__dict__)
    elif os.path.isdir(program.what):  # noqa: PTH112
        runpy.run_path(program.what, run_name="__main__")
    else:
        _put_first(os.path.dirname(os.path.realpath(program.what)), is_safe)  # noqa: PTH120
        main.__file__ = program.what
        with io.open_code(os.path.abspath(program.what)) as file:  # noqa: PTH100
            code = compile(file.read(), program.what, "exec")
        exec(code, main.__dict__)


def _put_first(folder: str, is_safe: bool) -> None:
    if not is_safe:
        sys.path.insert(0, folder)


def main(modules: Sequence[str]) -> int:
    """Import these, then serve until the orders end."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what modules print is no answer
    for module in modules:
        importlib.import_module(module)
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the folder where this was started; each program has one of its own
    gc.collect()
    gc.freeze()  # so that children do not copy every page by counting
    sys.stdout.flush()
    sys.stderr.flush()
    Worker(0, answers).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
