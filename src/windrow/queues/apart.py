"""A queue that keeps no one waiting: for a run that has several, of which one may be slow to
answer.

Rule 1: calls run in a thread of their own, one at a time. The caller waits for a limited time; then
the call continues, and a submission counts as one of which it is not known what became. Rule 2:
what comes late is the answer to who asks the same next; who asks something else is told that the
queue does not answer, until it has.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, cast

from windrow.queues.port import OutcomeUnknown, Queue, QueueError

PATIENCE_S = 1.0
"""How long one call may hold up all the others of a run."""

_CALLS = (
    "limits",
    "submit",
    "submit_array",
    "status",
    "cancel",
    "find",
    "snapshot",
    "probe",
    "past_jobs",
)


class _Apart:
    """The queue's own properties, and calls that end in time."""

    def __init__(self, queue: Queue, known: Mapping[str, object], patience_s: float) -> None:
        self._patience_s = patience_s
        self._thread = ThreadPoolExecutor(1)
        self._asked: tuple[tuple[object, ...], Future[Any]] | None = None
        for name in dir(queue):
            if not name.startswith("_"):
                given: Any = known[name] if name in known else getattr(queue, name)
                setattr(self, name, partial(self._ask, name, given) if name in _CALLS else given)

    def _ask(self, name: str, act: Callable[..., Any], *args: object) -> Any:
        what = (name, *args)
        is_new = False
        if self._asked is None or (self._asked[0] != what and self._asked[1].done()):
            self._asked = (what, self._thread.submit(act, *args))
            is_new = True
        asked, answer = self._asked
        if asked != what or not wait([answer], self._patience_s if is_new else 0).done:
            unknown = is_new and name.startswith("submit")
            raise (OutcomeUnknown if unknown else QueueError)(f"no answer to {asked[0]} yet")
        self._asked = None
        return answer.result()


def apart(
    queue: Queue, known: Mapping[str, object] | None = None, patience_s: float = PATIENCE_S
) -> Queue:
    """The same queue; no call takes longer than that. `known` are properties for which it need not
    be asked."""
    return cast(Queue, _Apart(queue, known or {}, patience_s))
