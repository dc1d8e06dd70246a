"""The path of a graph: a precision matrix for every number of edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pauca.graphical.covariance_update import invert
from pauca.graphical.edges import Edges, ends
from pauca.results.path import Path


@dataclass(frozen=True, eq=False, repr=False)
class GraphPath(Path):
    """The graph of every number of edges that was found.

    As every ``Path``; the units are edges, numbered (0, 1), (0, 2), ..., (1, 2), ... from 0. The ``coef`` of a
    model are the entries of the precision matrix at its edges, and ``free`` is the diagonal.

    Attributes
    ----------
    n_nodes : int
        Number of columns of the table.
    """

    n_nodes: int = 0

    def pairs(self, size: int) -> list[tuple[int, int]]:
        """The edges of the graph of one size, as pairs of columns."""
        return [ends(self.n_nodes, edge) for edge in self[size].support.tolist()]

    def precision(self, size: int) -> np.ndarray:
        """The precision matrix of the graph of one size.

        Returns
        -------
        ndarray of shape (n_nodes, n_nodes)
        """
        model, edges = self[size], Edges(self.n_nodes)
        assert model.free is not None
        theta = np.diag(model.free)
        first, second = edges.first[model.support], edges.second[model.support]
        theta[first, second] = theta[second, first] = model.coef
        return theta

    def covariance(self, size: int) -> np.ndarray:
        """The inverse of the precision matrix of the graph of one size.

        Returns
        -------
        ndarray of shape (n_nodes, n_nodes)
        """
        theta = self.precision(size)
        scale = 1.0 / np.sqrt(np.diagonal(theta))
        found = invert(theta * scale * scale[:, None])
        if found is None:
            raise ValueError(f"the precision matrix of size {size} is not positive definite")
        return found.matrix * scale * scale[:, None]

    def parameters(self, size: int) -> np.ndarray:
        """The diagonal of the precision matrix, and its upper triangle row by row.

        Returns
        -------
        ndarray of shape (n_nodes (n_nodes + 1) / 2,)
        """
        theta = self.precision(size)
        return np.concatenate([np.diagonal(theta), theta[np.triu_indices(self.n_nodes, 1)]])
