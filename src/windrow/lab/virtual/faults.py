"""What can go wrong, as values: drawn from a seed, or put at one record of the journal; and how it strikes a world.

Rule 1: a fault strikes when its time comes, or when the manager has journaled its record and not yet acted on it.
Rule 2: which job, task or file it strikes is picked by a number drawn with it, among those that are there then; where
there are none, nothing happens. So a run with the same faults goes the same way each time.
"""

import errno
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from pathlib import Path

from windrow.lab.virtual.crew import Killed
from windrow.lab.virtual.world import World
from windrow.queues.port import JobState
from windrow.queues.simulated import Mood


class Kind(StrEnum):
    """What goes wrong."""

    NODE = "node fails"
    CUT_OFF = "node is cut off"
    PREEMPTED = "job is preempted"
    CANCELLED = "job is cancelled"
    LOST = "job is lost"
    FORGOTTEN = "job is forgotten and runs on"
    HELD = "jobs are held"
    AGENT = "agent is killed"
    AGENT_WRITING = "agent is killed while it writes"
    MANAGER = "manager is killed"
    DOWN = "queue is down"
    SILENT = "submission gets no answer"
    DEAF = "submission is not heard"
    LATE = "submission arrives late"
    SLOW = "queue answers late"
    DISK = "disk is full"
    TASK = "task fails"
    LONG = "task takes long"
    CLOCK = "clock is set"
    FILE = "output is deleted"
    NOTICED = "job is preempted after a notice"
    NODE_OF_JOB = "one node of a job fails"
    NODE_DISK = "disk of a node is full"
    COPYING = "agent is killed while it copies"
    AWAY = "nodes cannot reach the shared files"


LOCAL = (Kind.NODE_OF_JOB, Kind.NODE_DISK, Kind.COPYING, Kind.AWAY)
"""What goes wrong where jobs use disks of their nodes."""
_SOMETIMES = (Kind.NOTICED, *LOCAL)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong: when (a time, or a record of the journal), for how long, and `pick` says to which.

    Of an agent that is killed while it copies, `at_record` is not a record, but the number of the copy.
    """

    kind: Kind
    at_s: float = inf
    at_record: int | None = None
    pick: int = 0
    length_s: int = 60

    @property
    def counts_copies(self) -> bool:
        """Whether it waits for a copy, by its number."""
        return self.kind is Kind.COPYING and self.at_record is not None


def draw(seed: int, horizon_s: int, begin_s: int, most: int = 8, also: Collection[Kind] = ()) -> list[Fault]:
    """Up to `most` faults within a run that should take about `horizon_s`; `also`: of these kinds as well."""
    chance, kinds = random.Random(seed), [kind for kind in Kind if kind not in _SOMETIMES or kind in also]
    return [
        Fault(
            chance.choice(kinds),
            begin_s + chance.randrange(horizon_s),
            None,
            chance.randrange(1000),
            chance.choice([5, 30, 120, 600]),
        )
        for _ in range(chance.randint(min(1, most), most))
    ]


def strike(world: World, fault: Fault) -> bool:
    """Let this happen now; whether there was anything for it to happen to."""
    return _STRIKES[fault.kind](world, fault)


def _on_job(act: Callable[[World, str], None]) -> Callable[[World, Fault], bool]:
    def struck(world: World, fault: Fault) -> bool:
        if not (ids := list(world.agents)):
            return False
        act(world, ids[fault.pick % len(ids)])
        return True

    return struck


def _manager(world: World, fault: Fault) -> bool:
    if fault.at_record is not None:
        world.met[fault.kind] += 1
        raise Killed
    world.fate.deadly = world.fate.passed + fault.pick % 20
    return True


def _queue(mood: Mood) -> Callable[[World, Fault], bool]:
    """The next submission is taken so."""

    def struck(world: World, _fault: Fault) -> bool:
        usual = world.mood

        def answer(call: str) -> Mood:
            if call != "submit":
                return usual(call)
            world.mood = usual
            return mood

        world.mood = answer
        return True

    return struck


def _down(world: World, fault: Fault) -> bool:
    usual, until_s = world.mood, world.now_s + fault.length_s
    world.mood = lambda call: Mood.DOWN if world.now_s < until_s else usual(call)
    return True


def _slow(world: World, fault: Fault) -> bool:
    """The next call takes its time, and the world continues meanwhile."""
    usual = world.mood

    def answer(call: str) -> Mood:
        world.mood = usual
        world.pass_time(world.now_s + fault.length_s)
        return usual(call)

    world.mood = answer
    return True


def _held(world: World, fault: Fault) -> bool:
    """What is submitted from now on does not start for a while."""
    queue, until_s = world.queue, world.now_s + fault.length_s
    queue.holds = lambda _: world.now_s < until_s
    world.dues.append((until_s, queue.release))
    return True


def _disk(world: World, fault: Fault) -> bool:
    world.full_until_s = world.now_s + fault.length_s
    return True


def _task(world: World, fault: Fault) -> bool:
    """The next attempts that end fail: one, or as many as leave no retry."""
    usual, times = world.failure, [1 + fault.pick % 3]

    def failure(_task: int) -> str:
        times[0] -= 1
        if times[0] <= 0:
            world.failure = usual
        return "exit code 1"

    world.failure = failure
    return True


def _long(world: World, fault: Fault) -> bool:
    usual = world.takes_s

    def takes_s(task: int) -> float:
        world.takes_s = usual
        return usual(task) * (2 + fault.pick % 4)

    world.takes_s = takes_s
    return True


def _clock(world: World, fault: Fault) -> bool:
    world.clock_step_s = (-86_400.0, 86_400.0, 0.0, -30.0)[fault.pick % 4]
    return True


def _file(world: World, fault: Fault) -> bool:
    if not (there := sorted(path for path in world.made if Path(path).exists())):
        return False
    path = Path(there[fault.pick % len(there)])
    path.unlink()
    world.deleted.add(path.name)
    return True


def _node_of_job(world: World, fault: Fault) -> bool:
    nodes = [(agent, place) for agent in world.agents.values() for place in agent.nodes]
    if nodes:
        agent, place = nodes[fault.pick % len(nodes)]
        agent.lose_node(place)
    return bool(nodes)


def _node_disk(world: World, fault: Fault) -> bool:
    """One node of a job has no room for files of its own for a while."""
    disks = [f"{agent.disk}/{n}/" for agent in world.agents.values() if agent.disk for n in range(len(agent.hosts))]
    if disks:
        world.full_disks[disks[fault.pick % len(disks)]] = world.now_s + fault.length_s
    return bool(disks)


def _away(world: World, fault: Fault) -> bool:
    world.away_until_s, world.away_errno = world.now_s + fault.length_s, (0, errno.EIO)[fault.pick % 2]
    return True


_STRIKES: dict[Kind, Callable[[World, Fault], bool]] = {
    Kind.NODE: _on_job(lambda world, job: world.kill_agent(job, JobState.NODE_FAILED)),
    Kind.CUT_OFF: _on_job(World.cut_off),
    Kind.PREEMPTED: _on_job(lambda world, job: world.remove(job, JobState.PREEMPTED)),
    Kind.CANCELLED: _on_job(World.remove),
    Kind.LOST: _on_job(lambda world, job: world.forget(job, lives=False)),
    Kind.FORGOTTEN: _on_job(lambda world, job: world.forget(job, lives=True)),
    Kind.HELD: _held,
    Kind.AGENT: _on_job(World.kill_agent),
    Kind.AGENT_WRITING: _on_job(World.doom),
    Kind.MANAGER: _manager,
    Kind.DOWN: _down,
    Kind.SILENT: _queue(Mood.SILENT),
    Kind.DEAF: _queue(Mood.DEAF),
    Kind.LATE: _queue(Mood.LATE),
    Kind.SLOW: _slow,
    Kind.DISK: _disk,
    Kind.TASK: _task,
    Kind.LONG: _long,
    Kind.CLOCK: _clock,
    Kind.FILE: _file,
    Kind.NOTICED: lambda world, fault: _on_job(lambda w, job: w.notice(job, fault.length_s))(world, fault),
    Kind.NODE_OF_JOB: _node_of_job,
    Kind.NODE_DISK: _node_disk,
    Kind.COPYING: _on_job(lambda world, job: world.doomed_copying.add(job)),
    Kind.AWAY: _away,
}
