"""Edges as users name them: pairs of columns, by name or index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pauca.constraints.limits import Limits
from pauca.constraints.parsing import Columns
from pauca.graphical.edges import EdgeNames, Edges


def edge_limits(always: Any, never: Any, edges: Edges, names: np.ndarray | None, asked: Any) -> Limits:
    """The edges that are in every graph, and those that are in none; ``asked`` is what k asks for."""
    wanted, barred = _numbers(always, "always", edges, names), _numbers(never, "never", edges, names)
    both = sorted(set(wanted) & set(barred))
    if both:
        raise ValueError(f"'always' and 'never' overlap: {EdgeNames(edges.n_nodes, names)[both[0]]} cannot be both.")
    k = max(asked) if isinstance(asked, tuple) else asked
    if isinstance(k, int) and len(wanted) > k:
        raise ValueError(f"'always' holds {len(wanted)} edges, more than k={k}.")
    return Limits(tuple(wanted), tuple(barred))


def _numbers(wanted: Any, wish: str, edges: Edges, names: np.ndarray | None) -> list[int]:
    """Numbers of the edges that a wish names, ascending."""
    if wanted is None:
        return []
    columns = Columns(edges.n_nodes, names)
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        raise TypeError(f"{wish!r} must be a list of pairs of columns; got {wanted!r}.")
    found = set()
    for pair in wanted:
        ends = [] if isinstance(pair, str) or not isinstance(pair, Iterable) else list(pair)
        if len(ends) != 2:
            raise TypeError(
                f"{wish!r} must be a list of pairs of columns, such as [('bmi', 'sugar')]; it holds {pair!r}."
            )
        one, other = (columns.index(end, wish) for end in ends)
        if one == other:
            raise ValueError(f"{wish!r} names an edge from column {columns.quoted([one])} to itself.")
        found.add(edges.number(one, other))
    return sorted(found)
