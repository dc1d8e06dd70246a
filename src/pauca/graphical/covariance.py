"""Covariances of tables, and whether the likelihood of a graph has a maximum for them."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpstrf

from pauca.design import Design
from pauca.tolerances import DEPENDENT_BELOW
from pauca.wording import quoted_columns

# The inverse of a variance must be a number.
LEAST_SPREAD = 1e-150

# A diagonal entry of the precision of correlations is 1 / (1 - R^2). Beyond this one node depends on its neighbours.
LARGEST_ENTRY = 1e10

# Rows whose projections on a random direction agree to so many digits are alike.
DIGITS_ALIKE = 9


class NoMaximumError(ValueError):
    """The likelihood of a graph is unbounded: on some of its ``nodes`` the covariance is singular up to rounding."""

    def __init__(self, nodes: np.ndarray) -> None:
        super().__init__(f"The likelihood has no maximum for the edges among the nodes {nodes.tolist()}.")
        self.nodes = nodes


class DependentNodesError(ValueError):
    """The correlations are singular whatever the number of rows: ``nodes`` are linear combinations of others.

    If they ``are_alike`` there are two of them, the same up to their units.
    """

    def __init__(self, nodes: np.ndarray, *, are_alike: bool) -> None:
        super().__init__(f"The nodes {nodes.tolist()} are {'alike' if are_alike else 'combinations of others'}.")
        self.nodes = nodes
        self.are_alike = are_alike


def covariance(design: Design) -> np.ndarray:
    """The weighted covariance of all columns; second moments where they are not centred."""
    correlation = design.gram(np.arange(design.n_features))
    made = 0.5 * (correlation + correlation.T) * np.multiply.outer(design.spread, design.spread)
    np.fill_diagonal(made, design.spread**2)
    return made


def moments_about(design: Design, center: np.ndarray) -> np.ndarray:
    """Second moments of centred columns about other means than their own."""
    away = design.mean - center
    return covariance(design) + np.multiply.outer(away, away)


def shrink_correlations(matrix: np.ndarray, shrinkage: float) -> np.ndarray:
    """A covariance with all correlations multiplied by ``1 - shrinkage``; the variances stay."""
    made = (1.0 - shrinkage) * matrix
    np.fill_diagonal(made, np.diagonal(matrix))
    return made


def check_spreads(design: Design, names: np.ndarray | None) -> None:
    """Refuse columns that have no finite precision."""
    if not design.usable.all():
        idle = quoted_columns(names, np.flatnonzero(~design.usable))
        raise ValueError(f"Columns that do not vary have no precision: {idle}. Leave them out.")
    if np.any(design.spread < LEAST_SPREAD):
        tiny = quoted_columns(names, np.flatnonzero(design.spread < LEAST_SPREAD))
        raise ValueError(f"Columns vary by less than {LEAST_SPREAD:g}: {tiny}. Give them larger units.")


def distinct_rows(design: Design) -> np.ndarray:
    """A label for every row, the same for equal rows: repeating a row adds nothing to the rank of a covariance."""
    direction = np.random.default_rng(0).standard_normal(design.n_features)
    projected = np.empty(design.n_rows)
    for rows, block in design.blocks(np.arange(design.n_features)):
        projected[rows] = block @ direction
    return np.unique(projected.round(DIGITS_ALIKE), return_inverse=True)[1]


def checked_safe_edges(matrix: np.ndarray, n_rows: int, names: np.ndarray | None, *, is_shrunk: bool) -> int | None:
    """``safe_edges`` of a covariance; linearly dependent columns are refused by name."""
    spread = np.sqrt(np.diagonal(matrix))
    try:
        return safe_edges(matrix / spread / spread[:, None], n_rows, is_shrunk=is_shrunk)
    except DependentNodesError as error:
        if error.are_alike:
            one, other = (quoted_columns(names, [int(end)]) for end in error.nodes)
            raise ValueError(
                f"Columns {one} and {other} are the same up to their units. Leave one out, or set shrinkage, such as "
                "shrinkage=0.1."
            ) from error
        raise ValueError(
            f"Columns that are linear combinations of others: {quoted_columns(names, error.nodes)}. The covariance is "
            "singular. Leave them out, or set shrinkage, such as shrinkage=0.1."
        ) from error


def complete_value(correlation: np.ndarray) -> float | None:
    """Q with all edges, for correlations: the least there is; None if they are singular up to rounding."""
    rank, factor, _ = _pivoted_cholesky(correlation)
    if rank < len(correlation):
        return None
    return len(correlation) + 2.0 * float(np.log(np.diagonal(factor)).sum())


def safe_edges(correlation: np.ndarray, n_rows: int, *, is_shrunk: bool) -> int | None:
    """How many edges a graph may have for its likelihood to have a maximum; None if there is no such limit.

    There is none unless the covariance of all rows, or of those of a fold, is singular. If it is because there are too
    few rows, r of them once the mean is taken off, every graph of fewer than ``r (r + 1) / 2`` edges has a maximum for
    almost all data: no part of it has r edges at each of its nodes, which is enough (Gross and Sullivant 2018).

    ``n_rows`` is r, in the smallest fold if there are folds; ``is_shrunk`` says whether correlations were brought
    closer to zero, here and in every fold. Raises ``DependentNodesError`` if two nodes are the same, or if the
    correlations are singular in spite of p rows or more.
    """
    p = len(correlation)
    rank, _, order = _pivoted_cholesky(correlation)
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


def _pivoted_cholesky(correlation: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    """Rank and Cholesky factor of correlations, and the order in which columns were eliminated."""
    factor, order, rank, _ = dpstrf(correlation, tol=DEPENDENT_BELOW)
    return int(rank), factor, order - 1
