"""Covariances of tables, and whether the likelihood of a graph has a maximum for them."""

from __future__ import annotations

import numpy as np

from pauca.design import Design
from pauca.graphical.errors import DependentNodesError
from pauca.graphical.mle_existence import safe_edges
from pauca.wording import quoted_columns

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
        idle = quoted_columns(names, np.flatnonzero(~design.usable))
        raise ValueError(f"Columns that do not vary have no precision: {idle}. Leave them out.")
    if np.any(design.spread < LEAST_SPREAD):
        tiny = quoted_columns(names, np.flatnonzero(design.spread < LEAST_SPREAD))
        raise ValueError(f"Columns vary by less than {LEAST_SPREAD:g}: {tiny}. Give them larger units.")


def distinct_rows(design: Design) -> np.ndarray:
    """A label for every row, the same for rows that are alike: seen once or often, they say the same of directions."""
    direction = np.random.default_rng(0).standard_normal(design.n_features)
    along = np.empty(design.n_rows)
    for rows, block in design.blocks(np.arange(design.n_features)):
        along[rows] = block @ direction
    return np.unique(along.round(9), return_inverse=True)[1]


def most_edges(matrix: np.ndarray, n_rows: int, names: np.ndarray | None, *, is_shrunk: bool) -> int | None:
    """The limit of ``safe_edges`` for a covariance; columns that depend on others are refused by name."""
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
