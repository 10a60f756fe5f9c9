"""Seeded chance: the few ways in which the workflow recipes draw numbers.

Law: the same (seed, name) gives the same stream in every process, because the stream is seeded from
a digest of the two and never from Python's salted hash.

Run times and sizes of the five Pegasus applications are normal around a mean, cut off at half and
one and a half times the mean: this is how the published workflows of the Pegasus generator are
distributed, kind by kind.
"""

import hashlib

import numpy as np

from windrow.model.graph import Ints
from windrow.model.workflow import Floats

Chance = np.random.Generator


def seeded(seed: int, name: str) -> Chance:
    """The stream of random numbers that belongs to a seed and a recipe's name."""
    digest = hashlib.sha256(f"{name}\0{seed}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def around(rng: Chance, mean: float, deviation: float, count: int) -> Floats:
    """`count` values, normal around `mean` with this standard deviation before everything beyond
    ±50 % is redrawn."""
    values = rng.normal(mean, deviation, count)
    outside = np.flatnonzero(np.abs(values - mean) > mean / 2)
    while len(outside):
        values[outside] = rng.normal(mean, deviation, len(outside))
        outside = outside[np.abs(values[outside] - mean) > mean / 2]
    return values


def one_around(rng: Chance, mean: float, deviation: float) -> float:
    """One value of `around`."""
    return float(around(rng, mean, deviation, 1)[0])


def near_even_parts(rng: Chance, total: int, parts: int, tolerance: float) -> Ints:
    """`parts` whole numbers, each at least 1, that sum to `total` and are nearly equal.

    The borders between equal shares are each moved by up to half of `tolerance` times a share.
    `total` must be at least `parts`, `tolerance` below 1.
    """
    share = total / parts
    # Neighbouring borders stay at least 1 apart before rounding, so no part is empty after it.
    reach = min(tolerance * share, share - 1) / 2
    borders = share * np.arange(1, parts) + rng.uniform(-reach, reach, parts - 1)
    whole = np.floor(borders + 0.5).astype(np.int64)
    return np.diff(whole, prepend=0, append=total)


def even_parts(total: int, parts: int) -> Ints:
    """`parts` whole numbers that sum to `total` and differ by at most 1, the larger ones first."""
    sizes = np.full(parts, total // parts, dtype=np.int64)
    sizes[: total % parts] += 1
    return sizes


def random_parts(rng: Chance, total: int, parts: int) -> Ints:
    """`parts` whole numbers, each at least 1, that sum to `total`; every way to do so is equally
    likely."""
    borders = np.sort(rng.choice(total - 1, parts - 1, replace=False)) + 1
    return np.diff(borders, prepend=0, append=total).astype(np.int64)
