"""Step functions made small enough to draw: a year of events in a thousand points, with no peak lost.

A step function is two arrays: times, ascending, and the value from each time on until the next.
"""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def thinned(times: Ints, values: Ints, most: int = 1500) -> tuple[Ints, Ints]:
    """At most `most` of the points, among them the first, last, least and greatest of each stretch of time."""
    if len(times) <= most:
        return times, values
    stretch = (times - times[0]) * (most // 4) // (times[-1] - times[0] + 1)
    # Sorted by stretch, then value: the ends of each group are its least and greatest point.
    by_value = np.lexsort((np.arange(len(times)), values, stretch))
    begins = np.flatnonzero(np.diff(stretch, prepend=-1))
    ends = np.append(begins[1:], len(times)) - 1
    kept = np.unique(np.concatenate([begins, ends, by_value[begins], by_value[ends]]))
    return times[kept], values[kept]


def averages(times: Ints, values: Ints, edges: Floats) -> Floats:
    """The mean value between each two neighbouring edges; the function is zero before its first time."""
    area = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times).astype(np.float64))])
    tail = np.maximum(edges - times[-1], 0) * float(values[-1])
    return np.asarray(np.diff(np.interp(edges, times, area) + tail) / np.diff(edges))


def round_length(span_s: float, most: int) -> int:
    """The shortest everyday length of time of which at most `most` make up the span."""
    minute, hour, day = 60, 3600, 86400
    lengths = (minute, 10 * minute, hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 14 * day, 28 * day)
    return next((length for length in lengths if span_s <= most * length), 364 * day)
