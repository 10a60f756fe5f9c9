"""A cache of blocks that makes room by giving up the block used longest ago (LRU), or the one used
last (MRU).

`before` and `after` are a ring of the blocks that are there, from the one used longest ago to the
one used last, and back by way of an entry behind all blocks, which stands for none. A block that is
not there has -1 in `after`.
"""

from windrow.kernels.jit import kernel, lean
from windrow_lab.kernels.flows.state import Ints


@lean
def put_last(before: Ints, after: Ints, block: int) -> None:
    """Into the ring, as the one used last."""
    end = len(after) - 1
    last = before[end]
    after[last] = block
    before[block] = last
    after[block] = end
    before[end] = block


@lean
def take_out(before: Ints, after: Ints, block: int) -> None:
    """Out of the ring."""
    after[before[block]], before[after[block]] = after[block], before[block]
    after[block] = -1


@kernel
def misses(
    blocks: Ints, capacity: int, is_mru: bool, before: Ints, after: Ints, missed: Ints
) -> None:
    """Mark with 1 which of these accesses, in order, find their block not there. Both of the ring
    must be all -1."""
    end = len(after) - 1
    before[end] = end
    after[end] = end
    held = 0
    for k in range(len(blocks)):
        block = blocks[k]
        if after[block] >= 0:
            take_out(before, after, block)
        else:
            missed[k] = 1
            if held == capacity:
                if capacity == 0:
                    continue
                take_out(before, after, before[end] if is_mru else after[end])
            else:
                held += 1
        put_last(before, after, block)
