"""Whether the likelihoods of graphs have maxima, checked before any graph is searched for."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpstrf

from pauca.graphical.errors import DependentNodesError
from pauca.graphical.objective import GaussianGraph
from pauca.tolerances import DEPENDENT_BELOW


def complete_value(graph: GaussianGraph) -> float | None:
    """Q with all edges, for the covariance: the least there is; None if the covariance is as good as singular."""
    rank, factor, _ = _factored(graph.correlation)
    if rank < graph.n_nodes:
        return None
    return graph.n_nodes + 2.0 * float(np.log(np.diagonal(factor)).sum()) + graph.shift


def safe_edges(correlation: np.ndarray, n_rows: int, *, is_shrunk: bool) -> int | None:
    """How many edges a graph may have for its likelihood to have a maximum for sure; None if there is no such limit.

    There is none unless the covariance of all rows, or of those of a fold, is singular. If it is since there are too
    few rows, r of them once the mean is taken off, every graph of fewer than ``r (r + 1) / 2`` edges has a maximum for
    almost all data: no part of it has r edges at each of its nodes, which is enough (Gross and Sullivant 2018).

    Parameters
    ----------
    correlation : ndarray of shape (p, p)
        That of all rows.
    n_rows : int
        r, in the smallest fold if there are folds.
    is_shrunk : bool
        Whether correlations were brought closer to zero, here and in every fold.

    Raises
    ------
    DependentNodesError
        If two nodes are the same, or if the correlations are singular in spite of r rows or more.
    """
    p = len(correlation)
    rank, _, order = _factored(correlation)
    if rank == p and (is_shrunk or n_rows >= p):
        return None
    if n_rows < 2:
        return 0
    alike = np.argwhere(np.abs(np.triu(correlation, 1)) > 1.0 - 0.5 * DEPENDENT_BELOW)
    if len(alike):
        raise DependentNodesError(alike[0], are_alike=True)
    if n_rows >= p:
        raise DependentNodesError(np.sort(order[rank:]), are_alike=False)
    return n_rows * (n_rows + 1) // 2 - 1


def _factored(correlation: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    """Rank and Cholesky factor of correlations, and the order of columns in which they were factored."""
    factor, order, rank, _ = dpstrf(correlation, tol=DEPENDENT_BELOW)
    return int(rank), factor, order - 1
