"""LRU caches of all sizes in one pass: how many other blocks were used since a block was used last
(Mattson, 1970).

Law: an access hits in a cache of C blocks exactly if fewer than C other blocks were used since
the last access to the same one. A Fenwick tree over accesses holds a 1 at each block's latest, so
that a range of it counts blocks.
"""

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import kernel
from windrow.model.graph import Ints


@kernel
def distances(first: Ints, count: Ints, latest: Ints, tree: NDArray[np.int64], found: Ints) -> None:
    """Adds to `found[d]` each access at distance d; first accesses are not in it.

    Access i is to the blocks `first[i]`, ..., `count[i]` of them. `latest` (zeros, one for each
    block) and `tree` (zeros, one more than accesses to blocks) are room to work in.
    """
    n = len(tree) - 1
    now = 0
    for i in range(len(first)):
        for block in range(first[i], first[i] + count[i]):
            now += 1
            before = latest[block]
            if before:
                since = 0
                at = now - 1
                while at > 0:
                    since += tree[at]
                    at -= at & -at
                at = before
                while at > 0:
                    since -= tree[at]
                    at -= at & -at
                found[since] += 1
                at = before
                while at <= n:
                    tree[at] -= 1
                    at += at & -at
            latest[block] = now
            at = now
            while at <= n:
                tree[at] += 1
                at += at & -at
