"""Blocks of a graph: the largest parts that no single node holds together."""

from __future__ import annotations

import numpy as np

# So often edges that end at a node with no other edge are taken off at once; what is left is searched node by node.
PRUNINGS = 8


def blocks(first: np.ndarray, second: np.ndarray) -> list[list[int]]:
    """The edges of every block (biconnected component), as ascending positions in the two arrays of ends.

    An edge on no cycle is a block of its own. Two edges share a block exactly if they lie on a common cycle
    (Hopcroft and Tarjan 1973; here without recursion, since a chain may be longer than Python's stack).
    """
    left = np.arange(len(first))
    found: list[list[int]] = []
    for _ in range(PRUNINGS):
        degree = np.bincount(np.concatenate([first[left], second[left]]))
        loose = (degree[first[left]] == 1) | (degree[second[left]] == 1)
        if not loose.any():
            break
        found += [[edge] for edge in left[loose].tolist()]
        left = left[~loose]
    if not len(left):
        return found
    nodes, ends = np.unique(np.concatenate([first[left], second[left]]), return_inverse=True)
    labels = _labels(len(nodes), ends[: len(left)], ends[len(left) :])
    together: dict[int, list[int]] = {}
    for edge, label in zip(left.tolist(), labels.tolist(), strict=True):
        together.setdefault(label, []).append(edge)
    return [*found, *together.values()]


def _labels(n_nodes: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """For every edge the number of its block."""
    entered, above, lowest = _searched(n_nodes, first, second)
    label = [0] * n_nodes
    found = 0
    for node in np.argsort(entered).tolist():
        up = above[node]
        if up >= 0 and lowest[node] < entered[up]:
            label[node] = label[up]
        else:  # nothing below leads past the node above: a block begins with the edge to it
            found += 1
            label[node] = found
    depth = np.array(entered)
    return np.array(label)[np.where(depth[first] > depth[second], first, second)]


def _searched(n_nodes: int, first: np.ndarray, second: np.ndarray) -> tuple[list[int], list[int], list[int]]:
    """Depth first through all nodes: when each was entered, from where, and the earliest node reached from below it.

    An edge of the graph leads from a node to one above it, and the block of the edge is that of the lower end.
    """
    ends, others = np.concatenate([first, second]), np.concatenate([second, first])
    near = others[np.argsort(ends, kind="stable")].tolist()
    stop = np.cumsum(np.bincount(ends, minlength=n_nodes))
    place, stop = [0, *stop[:-1].tolist()], stop.tolist()
    entered, above, lowest = [-1] * n_nodes, [-1] * n_nodes, [0] * n_nodes
    count = 0
    for root in range(n_nodes):
        if entered[root] >= 0:
            continue
        entered[root] = lowest[root] = count
        count += 1
        node = root
        while True:
            if place[node] < stop[node]:
                other = near[place[node]]
                place[node] += 1
                if entered[other] < 0:
                    entered[other] = lowest[other] = count
                    count += 1
                    above[other] = node
                    node = other
                elif other != above[node] and entered[other] < lowest[node]:
                    lowest[node] = entered[other]
            elif node == root:
                break
            else:
                up = above[node]
                lowest[up] = min(lowest[up], lowest[node])
                node = up
    return entered, above, lowest
