"""How long a set of tasks runs on n nodes: list scheduling with packing, by the rules of `windrow.model.packing`.

Times are whole seconds. The papers' case, one core per node and one task per node, is the general one with shape 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import kernel

Ints = NDArray[np.int64]


@kernel
def run_times(
    runtime: Ints,
    rank: Ints,
    cores: Ints,
    memory: Ints,
    whole: Ints,
    parents: Ints,
    first_child: Ints,
    children: Ints,
    shape_cores: int,
    shape_memory: int,
    nodes: int,
    answers: Ints,
) -> None:
    """Fill `answers[k]` with the time that all tasks take on nodes + k nodes, or -1 where some task does not fit.

    Tasks are numbered 0..n-1, `rank` is their place in the list (longest first). `parents` counts the parents of each
    within the set; `children[first_child[v]:first_child[v + 1]]` are its children. Cost per answer: tasks x (log tasks
    + nodes) in general, tasks x log tasks where all tasks need the same.
    """
    uniform = True
    for v in range(1, runtime.shape[0]):
        uniform &= cores[v] == cores[0] and memory[v] == memory[0] and whole[v] == 0
    uniform &= whole[0] == 0
    for k in range(answers.shape[0]):
        if uniform:
            each = shape_cores // cores[0]
            if memory[0] > 0:
                each = min(each, shape_memory // memory[0])
            answers[k] = slots_time(runtime, rank, parents, first_child, children, (nodes + k) * each)
        else:
            n = nodes + k
            answers[k] = packed_time(
                runtime, rank, cores, memory, whole, parents, first_child, children, shape_cores, shape_memory, n
            )


@kernel
def push(heap: Ints, n: int, key: int) -> None:
    """Put a key into a binary heap of `n`."""
    while n > 0 and heap[(n - 1) // 2] > key:
        heap[n] = heap[(n - 1) // 2]
        n = (n - 1) // 2
    heap[n] = key


@kernel
def pop(heap: Ints, n: int) -> int:
    """Take the least key out of a binary heap of `n`."""
    least, key, i = heap[0], heap[n - 1], 0
    while 2 * i + 1 < n - 1:
        child = 2 * i + 1
        if child + 1 < n - 1 and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = key
    return least


@kernel
def slots_time(runtime: Ints, rank: Ints, parents: Ints, first_child: Ints, children: Ints, slots: int) -> int:
    """The time where every task takes one of `slots` equal places."""
    n = runtime.shape[0]
    if slots == 0:
        return -1
    task_of = np.empty(n, dtype=np.int64)
    for v in range(n):
        task_of[rank[v]] = v
    ready, running = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    waiting = parents.copy()
    n_ready = n_running = 0
    for v in range(n):
        if waiting[v] == 0:
            push(ready, n_ready, rank[v])
            n_ready += 1
    now = 0
    while n_ready > 0 or n_running > 0:
        while n_ready > 0 and n_running < slots:
            v = task_of[pop(ready, n_ready)]
            n_ready -= 1
            push(running, n_running, (now + runtime[v]) * n + v)  # by end, then number
            n_running += 1
        now = running[0] // n
        while n_running > 0 and running[0] // n == now:
            v = pop(running, n_running) % n
            n_running -= 1
            for c in children[first_child[v] : first_child[v + 1]]:
                waiting[c] -= 1
                if waiting[c] == 0:
                    push(ready, n_ready, rank[c])
                    n_ready += 1
    return now


@kernel
def packed_time(
    runtime: Ints,
    rank: Ints,
    cores: Ints,
    memory: Ints,
    whole: Ints,
    parents: Ints,
    first_child: Ints,
    children: Ints,
    shape_cores: int,
    shape_memory: int,
    nodes: int,
) -> int:
    """The time where tasks differ in what they need."""
    n = runtime.shape[0]
    task_of = np.empty(n, dtype=np.int64)
    for v in range(n):
        task_of[rank[v]] = v
    free_cores = np.full(nodes, shape_cores, dtype=np.int64)
    free_memory = np.full(nodes, shape_memory, dtype=np.int64)
    place = np.full(n, -1, dtype=np.int64)  # the node of a task; tasks on whole nodes are found in `holder`
    holder = np.full(nodes, -1, dtype=np.int64)
    ready, running = np.zeros(n, dtype=np.bool_), np.empty(n, dtype=np.int64)
    waiting = parents.copy()
    for v in range(n):
        ready[rank[v]] = waiting[v] == 0
    n_running = done = now = 0
    while done < n:
        for r in range(n):
            v = task_of[r]
            if ready[r] and begin(v, cores, memory, whole, free_cores, free_memory, shape_cores, place, holder):
                ready[r] = False
                push(running, n_running, (now + runtime[v]) * n + v)
                n_running += 1
        if n_running == 0:
            return -1
        now = running[0] // n
        while n_running > 0 and running[0] // n == now:
            v = pop(running, n_running) % n
            n_running -= 1
            done += 1
            finish(v, cores, memory, whole, free_cores, free_memory, shape_cores, place, holder)
            for c in children[first_child[v] : first_child[v + 1]]:
                waiting[c] -= 1
                if waiting[c] == 0:
                    ready[rank[c]] = True
    return now


@kernel
def begin(
    v: int,
    cores: Ints,
    memory: Ints,
    whole: Ints,
    free_cores: Ints,
    free_memory: Ints,
    shape_cores: int,
    place: Ints,
    holder: Ints,
) -> bool:
    """Start task `v` if there is room."""
    nodes = free_cores.shape[0]
    if whole[v] == 0:
        for i in range(nodes):
            if free_cores[i] >= cores[v] and free_memory[i] >= memory[v]:
                free_cores[i] -= cores[v]
                free_memory[i] -= memory[v]
                place[v] = i
                return True
        return False
    empty = 0
    for i in range(nodes):
        empty += free_cores[i] == shape_cores
    if empty < whole[v]:
        return False
    left = whole[v]
    for i in range(nodes):
        if left > 0 and free_cores[i] == shape_cores:
            free_cores[i] = 0
            holder[i] = v
            left -= 1
    return True


@kernel
def finish(
    v: int,
    cores: Ints,
    memory: Ints,
    whole: Ints,
    free_cores: Ints,
    free_memory: Ints,
    shape_cores: int,
    place: Ints,
    holder: Ints,
) -> None:
    """Give back what task `v` held."""
    if whole[v] == 0:
        free_cores[place[v]] += cores[v]
        free_memory[place[v]] += memory[v]
        return
    for i in range(holder.shape[0]):
        if holder[i] == v:
            holder[i] = -1
            free_cores[i] = shape_cores
