"""Covariances of tables, and whether the likelihood of a graph has a maximum for them."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpstrf

from pauca.design import Design
from pauca.estimators.checks import DEPENDENT_BELOW, listed
from pauca.graphs import GaussianGraph

# The inverse of a variance must be a number.
LEAST_SPREAD = 1e-150


def covariance(design: Design) -> np.ndarray:
    """The weighted covariance of all columns; second moments where they are not centred."""
    correlation = design.gram(np.arange(design.n_features))
    made = 0.5 * (correlation + correlation.T) * np.multiply.outer(design.spread, design.spread)
    np.fill_diagonal(made, design.spread**2)
    return made


def moments_about(design: Design, centre: np.ndarray) -> np.ndarray:
    """Second moments of centred columns about other means than their own."""
    away = design.mean - centre
    return covariance(design) + np.multiply.outer(away, away)


def shrunk(matrix: np.ndarray, shrinkage: float) -> np.ndarray:
    """A covariance whose correlations are closer to zero by a share; the variances stay."""
    made = (1.0 - shrinkage) * matrix
    np.fill_diagonal(made, np.diagonal(matrix))
    return made


def check_spreads(design: Design, names: np.ndarray | None) -> None:
    """Refuse columns whose precision is no number."""
    if not design.usable.all():
        idle = listed(names, np.flatnonzero(~design.usable))
        raise ValueError(f"Columns that do not vary have no precision: {idle}. Leave them out.")
    if np.any(design.spread < LEAST_SPREAD):
        tiny = listed(names, np.flatnonzero(design.spread < LEAST_SPREAD))
        raise ValueError(f"Columns vary by less than {LEAST_SPREAD:g}: {tiny}. Give them larger units.")


def distinct_rows(design: Design) -> np.ndarray:
    """A label for every row, the same for rows that are alike: seen once or often, they say the same of directions."""
    direction = np.random.default_rng(0).standard_normal(design.n_features)
    along = np.empty(design.n_rows)
    for rows, block in design.blocks(np.arange(design.n_features)):
        along[rows] = block @ direction
    return np.unique(along.round(9), return_inverse=True)[1]


def complete_value(graph: GaussianGraph) -> float | None:
    """Q with all edges, for the covariance: the least there is; None if the covariance is as good as singular."""
    rank, factor, _ = _factored(graph.correlation)
    if rank < graph.n_nodes:
        return None
    return graph.n_nodes + 2.0 * float(np.log(np.diagonal(factor)).sum()) + graph.shift


def safe_edges(matrix: np.ndarray, n_rows: int, names: np.ndarray | None, *, is_shrunk: bool) -> int | None:
    """How many edges a graph may have for its likelihood to have a maximum for sure; None if there is no such limit.

    There is none unless the covariance of all rows, or of those of a fold, is singular. If it is since there are too
    few rows, r of them once the mean is taken off, every graph of fewer than ``r (r + 1) / 2`` edges has a maximum for
    almost all data: no part of it has r edges at each of its nodes, which is enough (Gross and Sullivant 2018). If it
    is singular in spite of r rows or more, some columns depend on others, and they are refused.

    Parameters
    ----------
    matrix : the covariance of all rows
    n_rows : r, in the smallest fold if there are folds
    is_shrunk : whether correlations were brought closer to zero, here and in every fold
    """
    p, spread = len(matrix), np.sqrt(np.diagonal(matrix))
    correlation = matrix / spread / spread[:, None]
    rank, _, order = _factored(correlation)
    if rank == p and (is_shrunk or n_rows >= p):
        return None
    if n_rows < 2:
        return 0
    alike = np.argwhere(np.abs(np.triu(correlation, 1)) > 1.0 - 0.5 * DEPENDENT_BELOW)
    if len(alike):
        one, other = (listed(names, [int(end)]) for end in alike[0])
        raise ValueError(
            f"Columns {one} and {other} are the same up to their units. Leave one out, or set shrinkage, such as "
            "shrinkage=0.1."
        )
    if n_rows >= p:
        raise ValueError(
            f"Columns that are linear combinations of others: {listed(names, np.sort(order[rank:]))}. The covariance "
            "is singular. Leave them out, or set shrinkage, such as shrinkage=0.1."
        )
    return n_rows * (n_rows + 1) // 2 - 1


def _factored(correlation: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    """Rank and Cholesky factor of correlations, and the order of columns in which they were factored."""
    factor, order, rank, _ = dpstrf(correlation, tol=DEPENDENT_BELOW)
    return int(rank), factor, order - 1
