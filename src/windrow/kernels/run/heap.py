"""Binary heaps of whole numbers, the least first, in a part of an array. Its owner knows how many
it holds."""

from __future__ import annotations

from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import lean


@lean
def push(r: Ints, at: int, n: int, key: int) -> None:
    """Put a key into the heap of `n` that begins at `at`."""
    while n > 0 and r[at + ((n - 1) >> 1)] > key:
        r[at + n] = r[at + ((n - 1) >> 1)]
        n = (n - 1) >> 1
    r[at + n] = key


@lean
def pop(r: Ints, at: int, n: int) -> int:
    """Take the least key out of the heap of `n` that begins at `at`. The place of its last one is
    free then."""
    least = r[at]
    key = r[at + n - 1]
    i = 0
    while 2 * i + 1 < n - 1:
        child = 2 * i + 1
        # behind all others is the key itself
        left = r[at + child]
        right = r[at + child + 1]
        if min(left, right) >= key:
            break
        r[at + i] = min(left, right)
        i = child + (right < left)  # without a branch to guess
    r[at + i] = key
    return least
