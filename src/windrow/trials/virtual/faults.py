"""What can go wrong, as values: drawn from a seed, or put at one record of the journal; and how it
strikes a world.

Rule 1: a fault strikes when its time comes, or when the manager has journaled its record and not
yet acted on it.
Rule 2: which job, task or file it strikes is picked by a number drawn with it, among those that are
there then; if there are none, nothing happens. So a run with the same faults goes the same way
each time.
"""

import errno
import random
from collections.abc import Callable, Collection, Sequence
from math import inf
from pathlib import Path

from windrow.queues.port import JobState
from windrow.queues.simulated import Mood
from windrow.trials.virtual.counted import Invariant
from windrow.trials.virtual.crew import Killed
from windrow.trials.virtual.invariants import Violation
from windrow.trials.virtual.kinds import FAR, FOR_EVER, LOCAL, USERS, WORSE, Fault, Kind
from windrow.trials.virtual.lasting import LASTS_S
from windrow.trials.virtual.rotting import Rotting
from windrow.trials.virtual.world import World

__all__ = ["FOR_EVER", "LOCAL", "SOMETIMES", "WORSE", "Fault", "Kind", "draw", "draw_few", "strike"]

SOMETIMES = (Kind.NOTICED, *LOCAL, *FAR, *WORSE, *USERS)
"""What is drawn only for runs that ask for it; all else may go wrong in any."""
_WRONG_STATES = (JobState.WAITING, JobState.ENDED, JobState.NODE_FAILED, JobState.RUNNING)
_LENGTHS_S = (5, 30, 120, 600)
_SPECIAL = 0.7
_AT_RECORD = 0.3
_RECORDS = 50
_WRITES = (0, 0, 0, 1, 2, 3, 5, 9)
"""How often an agent may write before it is killed while it does."""
_LATE_S = 60
"""As late as file systems with caches show what others wrote."""


def draw(
    seed: int, horizon_s: int, begin_s: int, most: int = 8, also: Collection[Kind] = ()
) -> list[Fault]:
    """Up to `most` faults within a run that should take about `horizon_s`; `also`: of these kinds
    as well."""
    chance = random.Random(seed)
    kinds = [kind for kind in Kind if kind not in SOMETIMES or kind in also]
    return [
        Fault(
            chance.choice(kinds),
            begin_s + chance.randrange(horizon_s),
            None,
            chance.randrange(1000),
            chance.choice(_LENGTHS_S),
        )
        for _ in range(chance.randint(min(1, most), most))
    ]


def draw_few(
    seed: int, horizon_s: int, begin_s: int, most: int = 8, also: Sequence[Kind] = ()
) -> list[Fault]:
    """The same of a few kinds, the more often of those in `also`: so that each meets itself and
    few others, again and again. Some strike at a record of the journal."""
    chance = random.Random(f"few {seed}")
    usual = [kind for kind in Kind if kind not in SOMETIMES]
    few = [chance.choice(also if also and chance.random() < _SPECIAL else usual)]
    few += [chance.choice([*usual, *also]) for _ in range(chance.randint(0, 2))]
    number = chance.randint(min(1, most), most)
    return [_drawn(chance, few, horizon_s, begin_s) for _ in range(number)]


def _drawn(chance: random.Random, kinds: Sequence[Kind], horizon_s: int, begin_s: int) -> Fault:
    """A fault of one of these kinds, at some time or at a record of the journal."""
    at_record = chance.randint(1, _RECORDS) if chance.random() < _AT_RECORD else None
    at_s = begin_s + chance.randrange(horizon_s) if at_record is None else inf
    length_s = chance.choice(_LENGTHS_S)
    return Fault(chance.choice(kinds), at_s, at_record, chance.randrange(1000), length_s)


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


def _machine(world: World, fault: Fault) -> bool:
    world.fate.is_crash = True
    return _manager(world, fault)


def _power(world: World, fault: Fault) -> bool:
    world.fail_power()
    if fault.at_record is not None:
        world.met[fault.kind] += 1
        raise Killed
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
    usual = world.mood
    until_s = world.now_s + fault.length_s
    world.mood = lambda call: Mood.DOWN if world.now_s < until_s else usual(call)
    return True


def _slow(world: World, fault: Fault) -> bool:
    """The next call takes its time, and the world continues meanwhile."""
    usual = world.mood

    def answer(call: str) -> Mood:
        world.mood = usual
        world.pass_time(world.now_s + fault.length_s)
        world.answered_late_s = world.now_s
        return usual(call)

    world.mood = answer
    return True


def _held(world: World, fault: Fault) -> bool:
    """What is submitted from now on does not start for a while."""
    world.held_until_s = max(world.held_until_s, world.now_s + fault.length_s)
    world.dues.append((world.held_until_s, world.queue.release))
    return True


def _lasts(world: World, fault: Fault) -> bool:
    world.lasts(fault)
    return True


def _stays_full(world: World, fault: Fault) -> bool:
    world.full_until_s = world.now_s + LASTS_S
    return _lasts(world, fault)


def _nodes_full(world: World, fault: Fault) -> bool:
    """No node has room for files of its own."""
    disks = [agent.disk.parent for agent in world.agents.values() if agent.disk is not None]
    if disks:
        world.full_disks[f"{disks[0]}/"] = world.now_s + LASTS_S
        world.lasts(fault)
    return bool(disks)


def _hidden(world: World, queue_id: str, fault: Fault) -> None:
    """The queue shows the job to no one, for a while or until long after its end."""
    until_s = world.now_s + (fault.length_s if fault.pick % 2 else 10 * LASTS_S)
    world.hidden[queue_id] = until_s
    world.hides.append((queue_id, world.now_s, until_s))
    world.was_unseen.add(queue_id)


def _wrong(world: World, fault: Fault) -> bool:
    world.wrong_until_s = world.now_s + fault.length_s
    world.wrong_state = _WRONG_STATES[fault.pick % len(_WRONG_STATES)]
    return bool(world.queue.left)


def _seen_late(world: World, fault: Fault) -> bool:
    world.view.begin(min(_LATE_S, 5 * (1 + fault.pick % 12)), max(300, fault.length_s))
    return True


def _node_clock(world: World, fault: Fault) -> bool:
    world.node_clock_s = (-86_400.0, 86_400.0, -45.0, 45.0)[fault.pick % 4]
    return True


def _rot(world: World, fault: Fault) -> bool:
    """Nodes share what is drawn now, and their disks are bad."""
    rotting = Rotting(world.view.folders[0].parent / "sharing", fault.pick)
    wrong = rotting.wrong()
    world.exercised[Invariant.BLOCKS] += rotting.rotten
    if wrong:
        raise Violation(wrong)
    return rotting.rotten > 0


def _stumbles(world: World, fault: Fault) -> bool:
    world.stumbles += 1 + fault.pick % 2
    return True


def _omits(world: World, fault: Fault) -> bool:
    world.omitted += [fault.kind] * (1 + fault.pick % 3)
    return True


def _disk(world: World, fault: Fault) -> bool:
    world.full_until_s = world.now_s + fault.length_s
    return True


def _task(world: World, fault: Fault) -> bool:
    """The next attempts that end fail: one, or as many as leave no retry."""
    usual = world.failure
    times = [1 + fault.pick % 3]

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
    new = [path for path in world.newest if path in there]
    if new and fault.pick % 2:  # what was made last is about to be read, or moved
        path = Path(new[-1])
    else:
        path = Path(there[fault.pick % len(there)])
    world.lose_file(path)
    return True


def _gone(world: World, fault: Fault) -> bool:
    world.vanishing += 1 + fault.pick % 2
    return False  # it is counted when a file is (`far`)


def _asks(world: World, fault: Fault) -> bool:
    world.wishes.asked.append(fault)
    return True


def _holds(world: World, fault: Fault) -> bool:
    world.wishes.hold(fault)
    return True


def _node_of_job(world: World, fault: Fault) -> bool:
    nodes = [(agent, place) for agent in world.agents.values() for place in agent.nodes]
    if nodes:
        agent, place = nodes[fault.pick % len(nodes)]
        agent.lose_node(place)
    return bool(nodes)


def _node_disk(world: World, fault: Fault) -> bool:
    """One node of a job has no room for files of its own for a while."""
    disks = [
        f"{agent.disk}/{n}/"
        for agent in world.agents.values()
        if agent.disk
        for n in range(len(agent.hosts))
    ]
    if disks:
        world.full_disks[disks[fault.pick % len(disks)]] = world.now_s + fault.length_s
    return bool(disks)


def _away(world: World, fault: Fault) -> bool:
    world.away_until_s = world.now_s + fault.length_s
    world.away_errno = (0, errno.EIO)[fault.pick % 2]
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
    Kind.AGENT_WRITING: lambda world, fault: _on_job(
        lambda w, job: w.doom(job, _WRITES[fault.pick // 8 % len(_WRITES)])
    )(world, fault),
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
    Kind.NOTICED: lambda world, fault: _on_job(lambda w, job: w.notice(job, fault.length_s))(
        world, fault
    ),
    Kind.NODE_OF_JOB: _node_of_job,
    Kind.NODE_DISK: _node_disk,
    Kind.COPYING: _on_job(lambda world, job: world.doomed_copying.add(job)),
    Kind.AWAY: _away,
    Kind.MACHINE: _machine,
    Kind.POWER: _power,
    **dict.fromkeys(FOR_EVER, _lasts),
    Kind.STAYS_FULL: _stays_full,
    Kind.NODES_FULL: _nodes_full,
    Kind.HIDDEN: lambda world, fault: _on_job(lambda w, job: _hidden(w, job, fault))(world, fault),
    Kind.WRONG: _wrong,
    Kind.SEEN_LATE: _seen_late,
    Kind.NODE_CLOCK: _node_clock,
    Kind.NOT_ALL: _omits,
    Kind.LATE_OUTPUT: _omits,
    Kind.ROT: _rot,
    Kind.STUMBLES: _stumbles,
    Kind.GONE: _gone,
    **dict.fromkeys((Kind.CANCELS, Kind.AMENDS, Kind.REPEATS), _asks),
    Kind.HOLDS: _holds,
}
