"""The nodes of a pool at work: starts attempts where they were placed, and says how they ended.

The nodes are the agent's: this one (`agent.runner`), and on other nodes of an allocation one long-lived step each
(`agent.remote`). Attempts go by keys that are never used twice, since tasks of many workflows share a node.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Collection

from windrow.agent.hosts import Hosts
from windrow.agent.loop import Node
from windrow.agent.order import Order, Result
from windrow.agent.remote import RemoteNode, dismiss, reach
from windrow.agent.runner import Runner
from windrow.agent.signals import Wake

_TERM_S = 3.0


class Crew:
    """All nodes of the pool."""

    def __init__(self, hosts: Hosts, nodes: int, wake: Wake) -> None:
        self.names = hosts.names[:nodes]
        self._wake = wake
        self._is_cluster = hosts.is_cluster
        self._here = Runner(os.environ)
        self._others: dict[int, RemoteNode] = {}
        self._poll = select.poll()
        self._poll.register(wake.fd, select.POLLIN)
        self._door = -1
        self._gone: dict[int, list[int]] = {}
        self._told: set[int] = set()  # what we stopped ourselves: no doubt about why it ended
        if not hosts.are_here:
            for place in range(1, nodes):
                self._others[place] = reach(hosts, place)
                self._poll.register(self._others[place].fd, select.POLLIN)

    def start(self, node: int, order: Order) -> None:
        """Start it there."""
        self._others.get(node, self._here).start(order)

    def watch(self, door: int) -> None:
        """Be woken, too, by whoever writes into this pipe."""
        self._door = door
        self._poll.register(door, select.POLLIN)

    def wait(self, pause_s: float) -> None:
        """Until something ends or is said, or the time is over."""
        looks = [node.look_again_s() for node in self._nodes()]
        soonest_s = min([pause_s, *(s for s in looks if s is not None)])
        self._poll.poll(max(0.0, soonest_s) * 1000)
        self._wake.clear()
        if self._door >= 0:
            with contextlib.suppress(BlockingIOError):
                os.read(self._door, 4096)

    def collect(self) -> list[Result]:
        """The attempts that have ended."""
        results = self._in_doubt(self._here.collect())
        for place, node in self._others.items():
            found = self._in_doubt(node.collect())
            if any(result.may_be_stop for result in found):
                found += node.collect()
            if node.is_lost:  # what was told to go with its node has not failed
                self._gone[place] = [result.task for result in found if result.may_be_stop]
                found = [result for result in found if not result.may_be_stop]
            results += found
        return results

    def _in_doubt(self, results: list[Result]) -> list[Result]:
        """A queue that ends a job may end tasks first, and us an instant later: that is no failure of theirs."""
        ended = [result.task for result in results if result.may_be_stop]
        if self._is_cluster and not self._told.issuperset(ended):
            self._wake.wait_for_stop()
        self._told.difference_update(result.task for result in results)
        return results

    def take_lost(self) -> list[tuple[int, list[int]]]:
        """The nodes that were lost since the last call, each with the keys of what ran there."""
        lost = [(place, node) for place, node in self._others.items() if node.is_lost]
        for place, node in lost:
            self._poll.unregister(node.fd)
            del self._others[place]
        if lost:
            self._wake.wait_for_stop()
        return [(place, sorted([*node.running, *self._gone.pop(place, [])])) for place, node in lost]

    def stop(self, keys: Collection[int], number: int) -> None:
        """Signal these attempts, wherever they run."""
        self._told.update(keys)
        for node in self._nodes():
            node.signal(number, keys)

    def end(self) -> list[Result]:
        """End whatever runs, everywhere: told first, then killed. What still succeeded is among the results."""
        nodes = self._nodes()
        for node in nodes:
            node.signal(signal.SIGTERM)
        results = self._last_results(_TERM_S)
        for node in nodes:
            node.signal(signal.SIGKILL)
        return results + self._here.end() + dismiss(self._others.values(), self._poll)

    def _last_results(self, patience_s: float) -> list[Result]:
        nodes = self._nodes()
        end = time.monotonic() + patience_s
        results: list[Result] = []
        while not all(node.is_idle for node in nodes) and time.monotonic() < end:
            self.wait(0.05)
            results += [r for node in nodes for r in node.collect()]
        return results

    def _nodes(self) -> list[Node]:
        return [self._here, *self._others.values()]
