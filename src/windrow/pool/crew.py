"""The nodes of a pool at work: starts attempts where they were placed, and says how they ended.

The nodes are the agent's: this one (`agent.runner`), and on other nodes of an allocation one long-lived step each
(`agent.remote`). Attempts go by keys that are never used twice, since tasks of many workflows share a node.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterable

from windrow.agent.hosts import Hosts
from windrow.agent.loop import Node
from windrow.agent.order import Order, Result
from windrow.agent.remote import RemoteNode
from windrow.agent.runner import Runner
from windrow.agent.wake import Wake

_DOUBT_S = 1.0
_TERM_S = 3.0
_DISMISS_S = 3.0


class _ThisNode(Runner):
    """This node, with one thing that an agent never needs: to signal some of its tasks and not others."""

    def signal_some(self, keys: Iterable[int], number: int) -> None:
        chosen = set(keys)
        for pid, running in self._running.items():
            if running.order.task in chosen:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, number)


class Crew:
    """All nodes of the pool."""

    def __init__(self, hosts: Hosts, nodes: int, wake: Wake) -> None:
        self.names = hosts.names[:nodes]
        self._wake = wake
        self._is_cluster = hosts.is_cluster
        self._here = _ThisNode(os.environ)
        self._others: dict[int, RemoteNode] = {}
        self._poll = select.poll()
        self._poll.register(wake.fd, select.POLLIN)
        self._door = -1
        self._gone: dict[int, list[int]] = {}
        if not hosts.are_here:
            for place in range(1, nodes):
                # -P: no file in the working folder may stand in for a module
                command = (*hosts.launch(place), sys.executable, "-P", "-m", "windrow.agent.node")
                self._others[place] = RemoteNode(self.names[place], command)
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
        if self._is_cluster and any(result.may_be_stop for result in results):
            self._wait_for_stop()
        return results

    def take_lost(self) -> list[tuple[int, list[int]]]:
        """The nodes that were lost since the last call, each with the keys of what ran there."""
        lost = [(place, node) for place, node in self._others.items() if node.is_lost]
        for place, node in lost:
            self._poll.unregister(node.fd)
            del self._others[place]
        if lost:
            self._wait_for_stop()
        return [(place, sorted([*node.running, *self._gone.pop(place, [])])) for place, node in lost]

    def stop(self, keys: Iterable[int], number: int) -> None:
        """Signal these attempts on this node. On other nodes they are let run: a node there knows only all or none."""
        self._here.signal_some(keys, number)

    def end(self) -> list[Result]:
        """End whatever runs, everywhere: told first, then killed. What still succeeded is among the results."""
        nodes = self._nodes()
        for node in nodes:
            node.signal(signal.SIGTERM)
        results = self._last_results(_TERM_S)
        for node in nodes:
            node.signal(signal.SIGKILL)
        for other in self._others.values():
            other.close()
        end = time.monotonic() + _DISMISS_S
        while not all(other.is_lost for other in self._others.values()) and time.monotonic() < end:
            self._poll.poll(50)
            results += [r for other in self._others.values() for r in other.collect()]
        for other in self._others.values():
            other.kill()
        return results

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

    def _wait_for_stop(self) -> None:
        """A queue that ends a job may end tasks first, and us an instant later: that is no failure of theirs."""
        end = time.monotonic() + _DOUBT_S
        while self._wake.stop_signal is None and time.monotonic() < end:
            time.sleep(0.02)
