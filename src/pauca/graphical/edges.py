"""Edges as numbers, by name, and as users constrain them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isqrt
from typing import Any, overload

import numpy as np

from pauca.constraints.limits import Limits
from pauca.constraints.parsing import Columns, ConstraintParser
from pauca.estimators.settings import largest_size
from pauca.model_selection.grids import Sizes
from pauca.wording import column_names


class Edges:
    """All edges of a graph on some nodes, numbered from 0 in the order (0, 1), (0, 2), ..., (1, 2), ...

    The arrays ``first`` and ``second`` hold the two ends of every edge, ``first < second``.
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


def ends(n_nodes: int, edge: int) -> tuple[int, int]:
    """The two ends of an edge by its number alone, without a table of all edges."""
    # Counted from the last edge backwards, the rows of the triangle have 1, 2, 3, ... edges.
    left = n_nodes * (n_nodes - 1) // 2 - 1 - int(edge)
    row = (isqrt(8 * left + 1) - 1) // 2
    return n_nodes - 2 - row, n_nodes - 1 - (left - row * (row + 1) // 2)


class EdgeNames(Sequence[str]):
    """The names of all edges, ``a -- b``, each made when it is read: many columns have millions of edges."""

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


class EdgeLookup(Columns):
    """All edges of a graph, looked up by the two columns they join."""

    noun = "edge"
    listing = "pairs of columns"

    def __init__(self, edges: Edges, names: np.ndarray | None) -> None:
        super().__init__(len(edges), None)
        self._edges = edges
        self._nodes = Columns(edges.n_nodes, names)

    def index(self, pair: Any, parameter: str) -> int:
        """Number of the edge between two columns."""
        ends = [] if isinstance(pair, str) or not isinstance(pair, Iterable) else list(pair)
        if len(ends) != 2:
            raise TypeError(
                f"{parameter!r} must be a list of pairs of columns, such as [('bmi', 'sugar')]; it holds {pair!r}."
            )
        one, other = (self._nodes.index(end, parameter) for end in ends)
        if one == other:
            raise ValueError(f"{parameter!r} names an edge from column {self._nodes.quoted([one])} to itself.")
        return self._edges.number(one, other)

    def quoted(self, edges: Sequence[int] | np.ndarray) -> str:
        """Names of some edges."""
        names = EdgeNames(self._edges.n_nodes, self._nodes.names)
        return ", ".join(names[int(edge)] for edge in edges)


def edge_limits(always: Any, never: Any, edges: Edges, names: np.ndarray | None, sizes: Sizes) -> Limits:
    """The edges that are in every graph, and those that are in none."""
    parser = ConstraintParser(EdgeLookup(edges, names), always=always, never=never)
    return parser.limits(largest_size(sizes), np.ones(len(edges), dtype=bool))
