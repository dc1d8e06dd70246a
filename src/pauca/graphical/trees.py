"""Edges on no cycle: closed forms of all of them at once, and the ways they lead."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from pauca.graphical.edges import Edges
from pauca.graphical.errors import LARGEST_ENTRY, NoMaximumError


class SingleEdges:
    """What edges on no cycle add to the likelihood: each for itself, ``(1, -r; -r, 1) / (1 - r^2)`` on its two ends.

    Parameters
    ----------
    correlation : ndarray of shape (p, p)
    edges : Edges
    """

    def __init__(self, correlation: np.ndarray, edges: Edges) -> None:
        self._correlation = correlation
        self._edges = edges

    def ends(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The two nodes of each."""
        return self._edges.first[numbers], self._edges.second[numbers]

    def own(self, numbers: np.ndarray) -> np.ndarray:
        """By how much each raises the diagonal at either end."""
        r, left = self._left(numbers)
        return r * r / left

    def entries(self, numbers: np.ndarray) -> np.ndarray:
        """The entry of each."""
        r, left = self._left(numbers)
        return -r / left

    def logdets(self, numbers: np.ndarray) -> np.ndarray:
        """By how much each lowers Q, and what leaving it out costs; refused between nodes that are as good as one."""
        left = self._left(numbers)[1]
        alike = numbers[left * LARGEST_ENTRY < 1.0]
        if len(alike):
            raise NoMaximumError(np.array(self._edges.pair(int(alike[0]))))
        return -np.log(left)

    def add(self, matrix: np.ndarray, numbers: np.ndarray, first: np.ndarray, second: np.ndarray) -> None:
        """Add what edges add to the identity; their nodes are at the places ``first`` and ``second`` of the matrix."""
        raised, entries = self.own(numbers), self.entries(numbers)
        np.add.at(matrix, (first, first), raised)
        np.add.at(matrix, (second, second), raised)
        matrix[first, second] += entries
        matrix[second, first] += entries

    def _left(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r = self._correlation[self.ends(numbers)]
        return r, (1.0 - r) * (1.0 + r)


def way(n_nodes: int, first: np.ndarray, second: np.ndarray, start: int, end: int) -> list[int] | None:
    """The nodes on a shortest way along edges; None if none leads there."""
    _, before = breadth_first_order(_joined(n_nodes, first, second), start, directed=False)
    if before[end] < 0:
        return None
    nodes = [end]
    while nodes[-1] != start:
        nodes.append(int(before[nodes[-1]]))
    return nodes


def parts(n_nodes: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """For every node the part of the graph that it lies in, as a number."""
    return np.asarray(connected_components(_joined(n_nodes, first, second), directed=False)[1])


def _joined(n_nodes: int, first: np.ndarray, second: np.ndarray) -> csr_array:
    return csr_array((np.ones(len(first)), (first, second)), shape=(n_nodes, n_nodes))
