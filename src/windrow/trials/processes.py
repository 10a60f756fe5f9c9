"""Worker processes that end when they should.

Law: workers are fresh processes (spawned); they leave Ctrl-C to their parent from their first
moment on, and end when it ends, whichever way that happens. An interruption leaves no process, no
thread and no traceback behind.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager


@contextmanager
def no_interruption() -> Iterator[None]:
    """Ctrl-C waits until the body is done. Processes that start in it never hear of it: the mask is
    inherited.

    A worker would else be interrupted while it loads its modules, before it can say that it does
    not want to be.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def worker_processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Worker processes that are gone when the body is left, at once if it is left early."""
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin_worker)
    is_done = False
    try:
        yield pool
        is_done = True
    finally:
        if not is_done:
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
        pool.shutdown(
            cancel_futures=not is_done
        )  # waits for the pool's own thread, which sees that they are gone


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that was killed cannot say so, and its workers would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
