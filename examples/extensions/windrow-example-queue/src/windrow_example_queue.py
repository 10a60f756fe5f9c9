"""A queue of another kind. This one is the queue of this machine with one node of one core; one of
its own implements `windrow.queues.port.Queue`."""

from windrow.queues.local.queue import LocalQueue
from windrow.queues.port import Queue


def open_queue() -> Queue:
    """The queue that `--on half` names."""
    return LocalQueue(nodes=1, cores=1, label="half")
