"""Blocks of a graph: the largest parts that no single node holds together."""

from __future__ import annotations

import numpy as np

# So often edges that end at a node with no other edge are taken off at once; what is left is searched node by node.
PRUNINGS = 8


def blocks(first: np.ndarray, second: np.ndarray) -> list[list[int]]:
    """The edges of every block (biconnected component), as positions in the two arrays of ends.

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
    neighbours: dict[int, list[tuple[int, int]]] = {}
    for edge, i, j in zip(left.tolist(), first[left].tolist(), second[left].tolist(), strict=True):
        neighbours.setdefault(i, []).append((j, edge))
        neighbours.setdefault(j, []).append((i, edge))
    entered: dict[int, int] = {}
    for root in neighbours:
        if root not in entered:
            _search(root, neighbours, entered, found)
    return found


def _search(
    root: int, neighbours: dict[int, list[tuple[int, int]]], entered: dict[int, int], found: list[list[int]]
) -> None:
    """Depth first through all that hangs together with ``root``."""
    entered[root] = len(entered)
    lowest = {root: entered[root]}
    """The earliest node that can be reached from below a node without going back the way one came."""
    path = [(root, -1, 0, iter(neighbours[root]))]
    edges: list[int] = []
    while path:
        node, came_by, start, others = path[-1]
        step = next(others, None)
        if step is None:
            path.pop()
            if path:
                above = path[-1][0]
                lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] >= entered[above]:
                    # Nothing below leads past the node above: what was met since is a block.
                    found.append(edges[start:])
                    del edges[start:]
            continue
        other, edge = step
        if other not in entered:
            entered[other] = lowest[other] = len(entered)
            path.append((other, edge, len(edges), iter(neighbours[other])))
            edges.append(edge)
        elif edge != came_by and entered[other] < entered[node]:
            edges.append(edge)
            lowest[node] = min(lowest[node], entered[other])
