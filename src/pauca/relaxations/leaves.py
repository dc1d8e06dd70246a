"""Nodes of which one or two columns are missing: their models by formulas, all at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import solve_triangular

from pauca.relaxations.perspective import Quadratic

# A column of which others leave less than this share adds nothing but rounding.
DEPENDENT_SHARE = 1e-10

# Pairs are enumerated among at most this many columns: beyond, their table costs more than some branching.
MOST_PAIRED = 150


def completions(
    problem: Quadratic, inside: np.ndarray, free: np.ndarray, missing: int, below: float, *, every: bool
) -> Iterator[tuple[float, list[int]]]:
    """Models of the columns ``inside`` and ``missing`` (one or two) of the ``free`` ones with a value below ``below``.

    Pairs of value and columns: the best only, or all of them.
    """
    value, slope, left, usable = _complements(problem, inside, free)
    if missing == 1:
        gains = np.where(usable, slope**2 / np.where(usable, np.diag(left), 1.0), -np.inf)
    else:
        gains = _pair_gains(slope, left, usable)
    values = value - 0.5 * gains
    if not every:
        places = [np.unravel_index(int(values.argmin()), values.shape)]
    else:
        places = list(zip(*np.nonzero(values < below), strict=True))
    for place in places:
        if values[place] < below:
            yield float(values[place]), [*inside.tolist(), *(int(free[i]) for i in place)]


def _complements(
    problem: Quadratic, inside: np.ndarray, free: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Value of the model of ``inside``, and slopes, products and usability of the ``free`` columns given it."""
    hessian, slope = problem.hessian, problem.slope
    left, rest, value = hessian[np.ix_(free, free)], slope[free], problem.constant
    if len(inside):
        factor = np.linalg.cholesky(hessian[np.ix_(inside, inside)])
        right = np.column_stack([hessian[np.ix_(inside, free)], slope[inside]])
        half = solve_triangular(factor, right, lower=True, check_finite=False)
        fitted, cross = half[:, -1], half[:, :-1]
        value -= 0.5 * float(fitted @ fitted)
        left, rest = left - cross.T @ cross, rest - fitted @ cross
    usable = np.diag(left) > DEPENDENT_SHARE * np.diag(hessian)[free]
    return value, rest, left, usable


def _pair_gains(slope: np.ndarray, left: np.ndarray, usable: np.ndarray) -> np.ndarray:
    """Twice what every pair of columns gains, above the diagonal; elsewhere minus infinity."""
    own = np.diag(left)
    determinant = own[:, None] * own - left * left
    numerator = slope[:, None] ** 2 * own + (slope**2) * own[:, None] - 2 * left * slope[:, None] * slope
    fine = np.triu(usable[:, None] & usable & (determinant > DEPENDENT_SHARE * own[:, None] * own), 1)
    return np.where(fine, numerator / np.where(fine, determinant, 1.0), -np.inf)
