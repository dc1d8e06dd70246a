"""What edges are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np

from pauca.graphs.edges import ends
from pauca.path import column_names


class EdgeNames(Sequence[str]):
    """The names of all edges, ``a -- b``, each made when it is asked for: of many columns there are millions.

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
        places = range(len(self))[edge]
        return self._of(places) if isinstance(places, int) else [self._of(place) for place in places]

    def __repr__(self) -> str:
        return f"<names of {len(self)} edges>"

    def _of(self, edge: int) -> str:
        return " -- ".join(self._nodes[end] for end in ends(len(self._nodes), edge))
