"""The nodes of an allocation at work: starts orders where they were placed, and says how they
ended.

The first node is this one (`runner`); on each other runs one long-lived step (`remote`). A job has
a crew, and so has a pool. Tasks go by keys that are never used twice at a time.

Rule 1: a queue that ends a job may end its tasks and steps first, and us an instant later. Who
looks as if he had been told to go is in doubt: results wait for the stop that may follow.
Rule 2: what was told to go with its node has not failed; it is lost with the node.
Rule 3: whatever ends the work, tasks are told (SIGTERM), given time, and killed.
Rule 4: Slurm tells steps, and not us, when it is about to take the nodes away (GraceTime). If
that is to be heard, a step outlives this word, and there is one on our own node if there is no
other.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from windrow.agent.folder import RunFolder
from windrow.agent.hosts import Hosts
from windrow.agent.job_file import JobFile
from windrow.agent.order import Committed, Order
from windrow.agent.remote import RemoteNode, let_end
from windrow.agent.runner import Runner
from windrow.agent.signals import Wake
from windrow.agent.travel import here
from windrow.model.attempt import Attempt

_EAR = -1  # the place of a step on our own node that only hears notices
_DISMISS_S = 3.0  # longer than a node gives its own tasks


class Crew:
    """All nodes, by their places."""

    def __init__(
        self, hosts: Hosts, nodes: int, wake: Wake, *, doubts: bool, hears_notices: bool = False
    ) -> None:
        """`doubts`: whether a queue may end tasks before it ends us (rule 1). `hears_notices`: rule
        4."""
        self.names = hosts.names[:nodes]
        self._hosts = hosts
        self._wake = wake
        self._doubts = doubts
        self._here = Runner(os.environ)
        self._others: dict[int, RemoteNode] = {}
        self._hears_notices = hears_notices
        self.is_noticed = False
        """Whether a step heard that the nodes will be taken away."""
        self._poll = select.poll()
        self._poll.register(wake.fd, select.POLLIN)
        self._door = -1
        self._gone: dict[int, list[int]] = {}
        self._data: Sequence[str] = ()
        self._told: set[int] = set()  # what we stopped ourselves: no doubt about why it ended

    def use_disks(self, folder: RunFolder, job: JobFile) -> None:
        """Let each node use its own disk for this job. OutsideError if that of this one cannot
        be used."""
        from windrow.agent.data.node_data import NodeData, plan_of  # noqa: PLC0415  (few jobs have such data)

        if self._hosts.is_cluster:
            facing = self.names[:2][-1]
        else:
            facing = ""
        if (plan := plan_of(folder, job, 0, facing)) is not None:
            self._data = ("--data", str(folder.path), str(job.job), self.names[0])
            self._here.data = NodeData(plan)
            self._poll.register(self._here.data.fd, select.POLLIN)

    def reach(self) -> None:
        """Begin a step on every other node. OutsideError if nothing can be started on one."""
        node = (*here("node"), *(("--notices",) if self._hears_notices else ()))
        if self._hosts.has_parts:
            node += ("--bound",)
        machines = {self._hosts.machine(place) for place in range(len(self.names))}
        places = [] if self._hosts.are_here else sorted(machines - {0})
        for place in places or ([_EAR] if self._hears_notices and self._hosts.has_steps else ()):
            where = max(0, place)
            if self._data and place != _EAR:
                data = (*self._data, str(place))
            else:
                data = ()
            self._others[place] = RemoteNode(
                self.names[where], (*self._hosts.launch(where), *node, *data)
            )
            self._poll.register(self._others[place].fd, select.POLLIN)

    def start(self, place: int, order: Order) -> None:
        """Start it there."""
        self._others.get(self._hosts.machine(place), self._here).start(order)

    def commit(self, place: int, paths: Sequence[str]) -> None:
        """Have files that were made there copied to the shared file system."""
        self._others.get(place, self._here).commit(paths)

    def drop(self, paths: Sequence[str]) -> None:
        """Nothing needs these files any more, on whichever node they are."""
        for node in self._nodes():
            node.drop(paths)

    def take_committed(self) -> list[Committed]:
        """Files for which a commit has ended since the last call, each with what went wrong, if
        anything did."""
        return [one for node in self._nodes() for one in node.take_committed()]

    def watch(self, door: int) -> None:
        """Also wake up when something is written to this pipe."""
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

    def collect(self) -> list[Attempt]:
        """What has ended, but for what went with its node."""
        results = self._here.collect()
        self._wait_if_in_doubt(results)
        for place, node in self._others.items():
            found = node.collect()
            if self._wait_if_in_doubt(found):
                found += node.collect()
            if node.is_lost and self._wake.stop_signal is None:
                self._gone[place] = [result.task for result in found if result.may_be_stop]
                found = [result for result in found if not result.may_be_stop]
            results += found
            self.is_noticed |= node.is_noticed
        nodes: dict[int, Runner | RemoteNode] = {0: self._here, **self._others}
        for place, each in nodes.items():
            while each.said:
                self._pass_on(place, each.said.pop(0))
        return results

    def _pass_on(self, place: int, what: Any) -> None:
        """Let the movers of all nodes hear what the one at this place said."""
        for node in self._nodes() if self._data else ():
            node.hear(place, what)

    def _wait_if_in_doubt(self, results: list[Attempt]) -> bool:
        ended = [result.task for result in results if result.may_be_stop]
        if self._doubts and not self._told.issuperset(ended):
            self._wake.wait_for_stop()
        self._told.difference_update(result.task for result in results)
        return bool(ended)

    def take_lost(self) -> list[tuple[int, list[int]]]:
        """The nodes that were lost since the last call, each with the keys of what ran there."""
        lost = [(place, node) for place, node in self._others.items() if node.is_lost]
        for place, node in lost:
            self._poll.unregister(node.fd)
            del self._others[place]
            self._pass_on(place, [None])
        if lost:
            self._wake.wait_for_stop()
        gone = [
            (place, sorted([*node.running, *self._gone.pop(place, [])])) for place, node in lost
        ]
        return [one for one in gone if one[0] != _EAR]  # which runs nothing, and is not missed

    def stop(self, keys: Collection[int], number: int) -> None:
        """Signal these tasks, wherever they run."""
        self._told.update(keys)
        for node in self._nodes():
            node.signal(number, keys)

    def ask(self, keys: Collection[int]) -> None:
        """Ask these tasks for checkpoints, wherever they run."""
        for node in self._nodes():
            node.ask(keys)

    def end(
        self,
        patience_s: float,
        take: Callable[[Attempt], None],
        meanwhile: Callable[[], bool] = lambda: False,
    ) -> None:
        """End whatever runs, everywhere: told first, then killed. What comes of it is handed over
        as it comes.

        While `meanwhile` says so, nodes still copy files when their tasks have ended.
        """
        let_end(self._nodes(), patience_s, self.wait, take)
        for place in self._nodes():
            place.signal(signal.SIGKILL)
        for result in self._here.end():
            take(result)
        while meanwhile():
            self.wait(0.05)
            for result in self.collect():
                take(result)
        self._dismiss(take)

    def _dismiss(self, take: Callable[[Attempt], None]) -> None:
        """Other nodes, whose steps end by themselves when their input does."""
        others = self._others.values()
        for node in others:
            node.close()
        end = time.monotonic() + _DISMISS_S
        while not all(node.is_lost for node in others) and time.monotonic() < end:
            self._poll.poll(50)
            for node in others:
                for result in node.collect():
                    take(result)
        for node in others:
            node.kill()

    def kill(self) -> None:
        """End what runs here at once. Other nodes end what they run when their connection is
        closed."""
        self._here.end()

    def _nodes(self) -> list[Runner | RemoteNode]:
        return [self._here, *self._others.values()]
