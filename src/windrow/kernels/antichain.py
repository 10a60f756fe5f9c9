"""The largest antichain of a DAG, by the least number of paths that cover it.

Dilworth: the largest number of vertices that can stand side by side is the least number of paths
that cover all, if paths may share vertices. Covering paths are a flow through a network in which
every vertex v is an arc v_in -> v_out that must carry at least 1, so the least number of paths is a
minimum flow with lower bounds. We begin with a greedy flow that covers everything and take back
what is too much, along shortest paths in the residual network from an end of a path to a beginning
of one (Dinic). When none is left, the minimum cut is the antichain. No transitive closure is ever
built: memory is linear in vertices and edges. A vertex that need not be covered has the lower bound
0.

Rule 1: every vertex carries at least its `least` at all times. Rule 2: what enters a vertex, plus
`begin`, equals what leaves it, plus `end`, equals `through`.

Nodes of the network: v is v_in, v + n is v_out. Arc 0 of a node leads to its own other half, the
others along edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import kernel
from windrow.model.graph import Adjacency, Ints

_UNLIMITED = 1 << 62


class Network(NamedTuple):
    """A DAG both ways round, and a flow that covers it. `child_edge` gives each child arc its place
    in `parent`."""

    parent_start: Ints
    parent: Ints
    child_start: Ints
    child: Ints
    child_edge: Ints
    least: Ints
    flow: Ints
    through: Ints
    begin: Ints
    end: Ints


class Search(NamedTuple):
    """Room for one search of the residual network: distances, each node's next arc, and a queue or
    path of nodes."""

    distance: Ints
    at: Ints
    nodes: Ints


@kernel
def cover(net: Network, order: Ints) -> None:
    """Fill the empty flow so that it covers every vertex.

    Each path continues as long as it can: first to children that no path has reached, the rest to
    the last child.
    """
    for v in order:
        if net.through[v] < net.least[v]:
            net.begin[v] = 1
            net.through[v] = 1
        left = net.through[v]
        for k in range(net.child_start[v], net.child_start[v + 1]):
            c = net.child[k]
            last = k + 1 == net.child_start[v + 1]
            if left > 0 and (last or net.through[c] < net.least[c]):
                if last:
                    amount = left
                else:
                    amount = 1
                net.flow[net.child_edge[k]] += amount
                net.through[c] += amount
                left -= amount
        net.end[v] = left


@kernel
def _arcs(net: Network, node: int) -> int:
    n = len(net.through)
    if node < n:
        return 1 + int(net.parent_start[node + 1] - net.parent_start[node])
    return 1 + int(net.child_start[node - n + 1] - net.child_start[node - n])


@kernel
def _residual(net: Network, node: int, arc: int) -> tuple[int, int]:
    """Where an arc of the residual network leads, and how much it can still take."""
    n = len(net.through)
    if node < n:  # forward through the vertex, or back along an edge that carries something
        if arc == 0:
            return node + n, _UNLIMITED
        e = net.parent_start[node] + arc - 1
        return net.parent[e] + n, net.flow[e]
    if arc == 0:  # back through the vertex, down to its lower bound
        return node - n, net.through[node - n] - net.least[node - n]
    return net.child[net.child_start[node - n] + arc - 1], _UNLIMITED


@kernel
def _push(net: Network, node: int, arc: int, amount: int) -> None:
    n = len(net.through)
    if node < n:
        if arc == 0:
            net.through[node] += amount
        else:
            net.flow[net.parent_start[node] + arc - 1] -= amount
    elif arc == 0:
        net.through[node - n] -= amount
    else:
        net.flow[net.child_edge[net.child_start[node - n] + arc - 1]] += amount


@kernel
def _distances(net: Network, search: Search) -> int:
    """Fill in each node's distance from the nearest end of a path, -1 if none leads there.

    Returns the distance of the nearest beginning of a path and looks no further, or -1 if none
    can be reached.
    """
    n = len(net.through)
    distance = search.distance
    queue = search.nodes
    distance[:] = -1
    tail = 0
    for v in range(n):
        if net.end[v] > 0:
            distance[v + n] = 0
            queue[tail] = v + n
            tail += 1
    head = 0
    while head < tail:
        node = queue[head]
        head += 1
        if node < n and net.begin[node] > 0:
            return int(distance[node])
        for arc in range(_arcs(net, node)):
            target, room = _residual(net, node, arc)
            if room > 0 and distance[target] < 0:
                distance[target] = distance[node] + 1
                queue[tail] = target
                tail += 1
    return -1


@kernel
def _augment(net: Network, search: Search, length: int) -> int:
    """Take back as much as the path in `search` allows. Returns the depth from which to continue
    searching."""
    nodes = search.nodes
    at = search.at
    source = nodes[0] - len(net.through)
    sink = nodes[length]
    amount = min(net.end[source], net.begin[sink])
    for i in range(length):
        amount = min(amount, _residual(net, nodes[i], at[nodes[i]])[1])
    depth = length
    for i in range(length - 1, -1, -1):
        _push(net, nodes[i], at[nodes[i]], amount)
        if _residual(net, nodes[i], at[nodes[i]])[1] == 0:
            depth = i  # the first arc that is full now
    net.end[source] -= amount
    net.begin[sink] -= amount
    return depth


@kernel
def _take_back(net: Network, search: Search, source: int, length: int) -> None:
    """Take back all paths that end in `source` and can be spared by residual paths of `length`."""
    n = len(net.through)
    distance = search.distance
    at = search.at
    nodes = search.nodes
    depth = 0
    nodes[0] = source + n
    while depth >= 0 and net.end[source] > 0:
        node = nodes[depth]
        if depth == length and node < n and net.begin[node] > 0:
            depth = _augment(net, search, length)
            continue
        onward = -1
        while depth < length and at[node] < _arcs(net, node):
            target, room = _residual(net, node, at[node])
            if room > 0 and distance[target] == depth + 1:
                onward = target
                break
            at[node] += 1
        if onward >= 0:
            depth += 1
            nodes[depth] = onward
        else:  # a dead end: no need to come here again in this round
            distance[node] = -1
            depth -= 1


@kernel
def _members(net: Network, order: Ints) -> NDArray[np.bool_]:
    """Cover, take back all that can be spared, and say of each vertex whether it is in the largest
    antichain."""
    n = len(net.through)
    cover(net, order)
    search = Search(np.empty(2 * n, np.int64), np.empty(2 * n, np.int64), np.empty(2 * n, np.int64))
    while True:
        length = _distances(net, search)
        if length < 0:
            break
        search.at[:] = 0
        for v in range(n):
            if net.end[v] > 0:
                _take_back(net, search, v, length)
    reached = search.distance >= 0
    return reached[n:] & ~reached[:n] & (net.least > 0)


def largest_antichain(
    parents: Adjacency, children: Adjacency, order: Ints, among: NDArray[np.bool_]
) -> Ints:
    """The vertices of a largest antichain of those `among`, ascending; `order` is topological.

    On the graphs tried, up to a second and a half for a hundred thousand edges, up to minutes for
    two million.
    """
    n = parents.vertices
    edges = parents.edges
    child_edge = np.argsort(
        parents.index, kind="stable"
    )  # the order in which `reversed` lists the same edges
    empty = [np.zeros(size, dtype=np.int64) for size in (edges, n, n, n)]
    graph = (parents.start, parents.index, children.start, children.index, child_edge)
    net = Network(*graph, among.astype(np.int64), *empty)
    members = np.flatnonzero(_members(net, order))
    assert len(members) == net.begin.sum(), "the cut proves the cover: both must have the same size"
    return members
