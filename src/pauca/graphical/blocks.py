"""The structure of a graph: blocks, which no single node holds together, edges on no cycle, paths and components."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from pauca.graphical.covariance import LARGEST_ENTRY, NoMaximumError
from pauca.graphical.edges import Edges

# So often edges that end at a node with no other edge are removed all at once; the rest is searched node by node.
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
        pendant = (degree[first[left]] == 1) | (degree[second[left]] == 1)
        if not pendant.any():
            break
        found += [[edge] for edge in left[pendant].tolist()]
        left = left[~pendant]
    if not len(left):
        return found
    nodes, ends = np.unique(np.concatenate([first[left], second[left]]), return_inverse=True)
    labels = _labels(len(nodes), ends[: len(left)], ends[len(left) :])
    by_label: dict[int, list[int]] = {}
    for edge, label in zip(left.tolist(), labels.tolist(), strict=True):
        by_label.setdefault(label, []).append(edge)
    return [*found, *by_label.values()]


def _labels(n_nodes: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """For every edge the number of its block."""
    entered, above, lowest = _depth_first(n_nodes, first, second)
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


def _depth_first(n_nodes: int, first: np.ndarray, second: np.ndarray) -> tuple[list[int], list[int], list[int]]:
    """Depth first through all nodes: when each was entered, from where, and the earliest node reached from below it.

    An edge of the graph leads from a node to one above it, and the block of the edge is that of the lower end.
    """
    ends, others = np.concatenate([first, second]), np.concatenate([second, first])
    near = others[np.argsort(ends, kind="stable")].tolist()
    stop = np.cumsum(np.bincount(ends, minlength=n_nodes))
    position, stop = [0, *stop[:-1].tolist()], stop.tolist()
    entered, above, lowest = [-1] * n_nodes, [-1] * n_nodes, [0] * n_nodes
    count = 0
    for root in range(n_nodes):
        if entered[root] >= 0:
            continue
        entered[root] = lowest[root] = count
        count += 1
        node = root
        while True:
            if position[node] < stop[node]:
                other = near[position[node]]
                position[node] += 1
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


class SingleEdges:
    """Edges on no cycle, each fitted in closed form: ``(1, -r; -r, 1) / (1 - r^2)`` on its two ends."""

    def __init__(self, correlation: np.ndarray, edges: Edges) -> None:
        self._correlation = correlation
        self._edges = edges

    def ends(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The two nodes of each."""
        return self._edges.first[numbers], self._edges.second[numbers]

    def diagonal(self, numbers: np.ndarray) -> np.ndarray:
        """By how much each raises the diagonal at either end."""
        r, unexplained = self._unexplained(numbers)
        return r * r / unexplained

    def entries(self, numbers: np.ndarray) -> np.ndarray:
        """The entry of each."""
        r, unexplained = self._unexplained(numbers)
        return -r / unexplained

    def logdets(self, numbers: np.ndarray) -> np.ndarray:
        """By how much each lowers Q, which is what its removal costs; refused between nodes that are the same."""
        unexplained = self._unexplained(numbers)[1]
        alike = numbers[unexplained * LARGEST_ENTRY < 1.0]
        if len(alike):
            raise NoMaximumError(np.array(self._edges.pair(int(alike[0]))))
        return -np.log(unexplained)

    def add(self, matrix: np.ndarray, numbers: np.ndarray, first: np.ndarray, second: np.ndarray) -> None:
        """Add what edges add to the identity; their nodes are rows ``first`` and ``second`` of the matrix."""
        raised, entries = self.diagonal(numbers), self.entries(numbers)
        np.add.at(matrix, (first, first), raised)
        np.add.at(matrix, (second, second), raised)
        matrix[first, second] += entries
        matrix[second, first] += entries

    def _unexplained(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r = self._correlation[self.ends(numbers)]
        return r, (1.0 - r) * (1.0 + r)


def shortest_path(n_nodes: int, first: np.ndarray, second: np.ndarray, start: int, end: int) -> list[int] | None:
    """The nodes on a shortest path along edges; None if there is no path."""
    _, before = breadth_first_order(_adjacency(n_nodes, first, second), start, directed=False)
    if before[end] < 0:
        return None
    nodes = [end]
    while nodes[-1] != start:
        nodes.append(int(before[nodes[-1]]))
    return nodes


def components(n_nodes: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """For every node the number of the connected component that it lies in."""
    return np.asarray(connected_components(_adjacency(n_nodes, first, second), directed=False)[1])


def _adjacency(n_nodes: int, first: np.ndarray, second: np.ndarray) -> csr_array:
    return csr_array((np.ones(len(first)), (first, second)), shape=(n_nodes, n_nodes))
