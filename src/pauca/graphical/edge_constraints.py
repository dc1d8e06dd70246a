"""Edges as users name them: pairs of columns, by name or index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pauca.constraints.limits import Limits
from pauca.constraints.parsing import Columns, ConstraintParser
from pauca.graphical.edges import EdgeNames, Edges
from pauca.model_selection.sizes import Sizes, largest_size


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
