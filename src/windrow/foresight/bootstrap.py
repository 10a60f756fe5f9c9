"""A week out of a few hours: days to come that look like the little that is known of the queue.

Futures let past days arrive again. Who has watched for less than a day has no such day: taken as it
is, an hour of watching would arrive again tomorrow, and until then none would come. So days are put
together from blocks of what is known, drawn at random with the end joined to the beginning (the
circular block bootstrap of Politis and Romano, 1992): within a block, jobs come as close together
as they did. What hour of the day it is does not count, since no day was seen. The known time itself
stays as it is, as the end of the last day.
"""

import numpy as np

from windrow.foresight.past import DAY_S, SUBMIT, QueuePast
from windrow.model.graph import Ints

DAYS = 7
_BLOCKS = 8  # in the known time
# how many times the known time is filled at the beginning of each day: a decision looks no further
_TIMES = 4


def stretched(past: QueuePast, seed: int = 0) -> QueuePast:
    """A past of seven days that looks like this one, which is known for less than a day. Times
    count from now."""
    known_s = -past.since_s
    came = past.rows[:, SUBMIT]
    arrivals = np.flatnonzero(came >= past.since_s)
    rooms_s = [DAY_S - known_s, *[DAY_S] * (DAYS - 1)]  # the known time is the end of the last day
    draw = np.random.default_rng([seed, known_s, len(arrivals)])
    since_0 = came[arrivals] + known_s
    picks = [_day(since_0, known_s, min(_TIMES * known_s, room_s), draw) for room_s in rooms_s]
    rows = [arrivals[pick] for pick, _ in picks]
    times = [at - (day + 1) * DAY_S for day, (_, at) in enumerate(picks)]
    own = np.where(came < past.since_s, -DAYS * DAY_S - 1, came)
    every = np.concatenate([*rows, np.arange(len(came))])
    submit = np.concatenate([*times, own])
    order = np.argsort(submit, kind="stable")
    week = past.rows[every[order]]
    week[:, SUBMIT] = submit[order]
    return QueuePast(week, -DAYS * DAY_S)


def _day(
    submit_s: Ints, known_s: int, filled_s: int, draw: np.random.Generator
) -> tuple[Ints, Ints]:
    """Which arrivals come again, and how many seconds after the day's begin. `submit_s` counts from
    0 to `known_s`."""
    block_s = max(1, -(-known_s // _BLOCKS))
    twice = np.concatenate([submit_s, submit_s + known_s])  # so that a block may go over the end
    rows = [np.zeros(0, dtype=np.int64)]
    times = [np.zeros(0, dtype=np.int64)]
    for at in range(0, filled_s, block_s):
        start = int(draw.integers(0, known_s))
        low, high = np.searchsorted(twice, [start, start + min(block_s, filled_s - at)])
        rows.append(np.arange(low, high) % len(submit_s))
        times.append(twice[low:high] - start + at)
    return np.concatenate(rows), np.concatenate(times)
