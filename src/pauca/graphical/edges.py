"""Edges as numbers: the upper triangle of a symmetric matrix, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import overload

import numpy as np

from pauca.wording import column_names


class Edges:
    """All edges of a graph on some nodes, numbered from 0 in the order (0, 1), (0, 2), ..., (1, 2), ...

    Attributes
    ----------
    n_nodes : int
    first, second : ndarray of shape (n_edges,)
        The two ends of every edge, ``first < second``.
    """

    def __init__(self, n_nodes: int) -> None:
        self.n_nodes = n_nodes
        self.first, self.second = np.triu_indices(n_nodes, 1)
        # Reading a matrix through one flat index takes half as long as through a pair of indices.
        self._flat = self.first * n_nodes + self.second

    def __len__(self) -> int:
        return len(self.first)

    def number(self, i: int, j: int) -> int:
        """The number of the edge between two different nodes, named in any order."""
        low, high = min(i, j), max(i, j)
        return low * (2 * self.n_nodes - low - 1) // 2 + high - low - 1

    def pair(self, edge: int) -> tuple[int, int]:
        """The two ends of an edge."""
        return ends(self.n_nodes, edge)

    def read(self, matrix: np.ndarray, part: slice = slice(None)) -> np.ndarray:
        """The entries of a matrix at all edges, or at a slice of them; a new array."""
        return np.take(matrix, self._flat[part])

    def products(self, diagonal: np.ndarray) -> np.ndarray:
        """For every edge the product of the entries of its two ends; a new array."""
        made = np.take(diagonal, self.first)
        made *= np.take(diagonal, self.second)
        return made


def ends(n_nodes: int, edge: int) -> tuple[int, int]:
    """The two ends of an edge by its number alone, without a table of all edges."""
    # Counted from the last edge backwards, the rows of the triangle have 1, 2, 3, ... edges.
    left = n_nodes * (n_nodes - 1) // 2 - 1 - int(edge)
    row = (isqrt(8 * left + 1) - 1) // 2
    return n_nodes - 2 - row, n_nodes - 1 - (left - row * (row + 1) // 2)


class EdgeNames(Sequence[str]):
    """The names of all edges, ``a -- b``, each made when it is read: many columns have millions of edges.

    Parameters
    ----------
    n_nodes : int
    nodes : ndarray of str or None
        Names of the nodes; None: x0, x1, ...
    """

    def __init__(self, n_nodes: int, nodes: np.ndarray | None) -> None:
        self._nodes = column_names(nodes, range(n_nodes))

    def __len__(self) -> int:
        return len(self._nodes) * (len(self._nodes) - 1) // 2

    @overload
    def __getitem__(self, edge: int) -> str: ...
    @overload
    def __getitem__(self, edge: slice) -> list[str]: ...
    def __getitem__(self, edge: int | slice) -> str | list[str]:
        numbers = range(len(self))[edge]
        return self._of(numbers) if isinstance(numbers, int) else [self._of(number) for number in numbers]

    def __repr__(self) -> str:
        return f"<names of {len(self)} edges>"

    def _of(self, edge: int) -> str:
        return " -- ".join(self._nodes[end] for end in ends(len(self._nodes), edge))
