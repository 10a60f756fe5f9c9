"""How long each task that is left will run yet. Pure.

Rule 1: a task takes what is expected of it, corrected by what finished tasks took, of its kind and
of all: by as much of that as is no chance.
Rule 2: tasks differ, as much as finished ones differed from what was expected. So times are drawn,
of the tasks of a level evenly: the longest of many is as long as the longest of many is.
Rule 3: of a task that runs, only those times are possible that are longer than it has run.
"""

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist, fmean, median

from windrow.story.states import AttemptState, TaskState
from windrow.story.story import RunStory, TaskStory

_SPREAD = 0.2
"""By which part run times differ if nothing is known."""
_AS_MANY = 4
"""As how many finished tasks that counts."""
_FAR = 1e-6
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class _Learned:
    """How finished tasks differed from what was expected, in logarithms: all, those of each kind,
    and from each other."""

    usual: float = 0.0
    of_kinds: Mapping[str, float] | None = None
    spread: float = _SPREAD

    def middle_s(self, expected_s: float, kind: str) -> float:
        """What half of such tasks take at most."""
        return expected_s * math.exp((self.of_kinds or {}).get(kind, self.usual))


@dataclass(frozen=True, slots=True)
class _Left:
    """A task that may run: what half of such tasks take, what is done of it, and how many of them
    have ended by then."""

    number: int
    middle_s: float
    gone_s: float
    ended: float

    def drawn_s(self, part: float, spread: float) -> float:
        """How long it runs yet, if that part of those that are not over yet ends before."""
        within = self.ended + (1 - self.ended) * part
        off = _NORMAL.inv_cdf(min(max(within, _FAR), 1 - _FAR))
        left_s = self.middle_s * math.exp(spread * off) - self.gone_s
        if left_s > 0:
            return left_s
        return spread * self.gone_s  # far beyond what was expected: a part of that again


def rest_times(story: RunStory, now_s: float, draws: int = 1) -> list[dict[int, float]]:
    """By the numbers of tasks that may run, drawn that many times."""
    learned = _learned(_logarithms(story))
    levels = _left(story, learned, now_s)
    chance = random.Random(0)  # a mixture, the same each time
    return [_drawn(levels, learned.spread, chance) for _ in range(draws)]


def _drawn(levels: Iterable[list[_Left]], spread: float, chance: random.Random) -> dict[int, float]:
    """One draw."""
    times: dict[int, float] = {}
    for tasks in levels:
        chance.shuffle(tasks)
        for place, task in enumerate(tasks):
            times[task.number] = task.drawn_s((place + chance.random()) / len(tasks), spread)
    return times


def _left(story: RunStory, learned: _Learned, now_s: float) -> list[list[_Left]]:
    """The tasks that may run, level by level."""
    workflow = story.workflow
    kinds = workflow.kinds
    expected = workflow.runtime_s.tolist()
    of_task = workflow.levels.tolist()
    levels: dict[int, list[_Left]] = defaultdict(list)
    for number, task in enumerate(story.tasks):
        if not task.state.is_out:
            middle_s = learned.middle_s(expected[number], kinds[number])
            gone_s = _gone_s(task, now_s)
            ended = 0.0
            if gone_s > 0 and middle_s > 0:
                ended = _NORMAL.cdf(math.log(gone_s / middle_s) / learned.spread)
            levels[of_task[number]].append(_Left(number, middle_s, gone_s, ended))
    return list(levels.values())


def _gone_s(task: TaskStory, now_s: float) -> float:
    """What is done of a task: by its last checkpoint, and since it runs."""
    if task.state is not TaskState.RUNNING or not task.attempts:
        return task.saved_s
    return task.saved_s + max(0.0, now_s - max(task.attempts[-1].started_s, task.saved_at_s))


def _logarithms(story: RunStory) -> dict[str, list[float]]:
    """What finished tasks took of what was expected, by kinds."""
    kinds = story.workflow.kinds
    expected = story.workflow.runtime_s.tolist()
    found: dict[str, list[float]] = defaultdict(list)
    for number, task in enumerate(story.tasks):
        if not task.attempts or expected[number] <= 0:
            continue
        attempt = task.attempts[-1]
        if attempt.outcome is AttemptState.FINISHED and attempt.ended_s is not None:
            took_s = attempt.ended_s - attempt.started_s + attempt.before_s
            if took_s > 0:
                found[kinds[number]].append(math.log(took_s / expected[number]))
    return found


def _learned(found: Mapping[str, list[float]]) -> _Learned:
    """What these logarithms tell."""
    every = [log for logs in found.values() for log in logs]
    if not every:
        return _Learned()
    usual = _believed(median(every), len(every))
    medians = {kind: median(logs) for kind, logs in found.items()}
    of_kinds = {
        kind: usual + _believed(middle - usual, len(found[kind]))
        for kind, middle in medians.items()
    }
    off = fmean((log - medians[kind]) ** 2 for kind, logs in found.items() for log in logs)
    free = len(every) - len(found)
    spread = math.sqrt((_SPREAD**2 * _AS_MANY + off * len(every)) / (_AS_MANY + free))
    return _Learned(usual, of_kinds, spread)


def _believed(off: float, count: int) -> float:
    """How much of a difference is no chance: little, if few tasks differ by no more than any do."""
    if not off:
        return 0.0
    return off**3 / (off**2 + (2 * _SPREAD) ** 2 / count)
