"""A queue that keeps nobody waiting: for a run that has several, of which one may be slow to answer.

Rule 1: each call runs in a thread of its own, and one at a time. Whoever asks waits for it so long and no longer; then
the call goes on, and a submission counts as one of which nobody knows what became. Rule 2: what comes late is the
answer to who asks the same next; who asks something else is told that the queue does not answer, until it has.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

from windrow.queues.port import OutcomeUnknown, Queue, QueueError

PATIENCE_S = 1.0
"""How long one call may hold up all the others of a run."""

_CALLS = ("limits", "submit", "submit_array", "status", "cancel", "find", "snapshot", "probe", "past_jobs")


class _Call:
    def __init__(self, what: tuple[object, ...], act: Callable[[], Any]) -> None:
        self.what, self._act = what, act
        self.thread = threading.Thread(target=self._run, daemon=True)  # one that hangs does not outlive its process
        self.thread.start()

    def _run(self) -> None:
        try:
            self.answer, self.error = self._act(), None
        except BaseException as error:  # noqa: BLE001  (it is raised where the answer is taken)
            self.error = error


class _Apart:
    """The queue's own properties, and calls that end in time."""

    def __init__(self, queue: Queue, known: Mapping[str, object], patience_s: float) -> None:
        self._patience_s, self._call = patience_s, cast(_Call | None, None)
        for name in dir(queue):
            if not name.startswith("_"):
                given: Any = known[name] if name in known else getattr(queue, name)
                setattr(self, name, partial(self._ask, name, given) if name in _CALLS else given)

    def _ask(self, name: str, act: Callable[..., Any], *args: object) -> Any:
        what, is_new = (name, *args), False
        if self._call is None or (self._call.what != what and not self._call.thread.is_alive()):
            self._call, is_new = _Call(what, partial(act, *args)), True
        call = self._call
        if call.what == what:
            call.thread.join(self._patience_s if is_new else 0)
        if call.what != what or call.thread.is_alive():
            unknown = is_new and name.startswith("submit")
            raise (OutcomeUnknown if unknown else QueueError)(f"no answer to {call.what[0]} yet")
        self._call = None
        if call.error is not None:
            raise call.error
        return call.answer


def apart(queue: Queue, known: Mapping[str, object] | None = None, patience_s: float = PATIENCE_S) -> Queue:
    """The same queue; no call takes longer than that. `known` are properties for which it need not be asked."""
    return cast(Queue, _Apart(queue, known or {}, patience_s))
