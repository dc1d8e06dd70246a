"""Exact gains of all exchanges of one chosen feature for one other, found in one sweep."""

from __future__ import annotations

import numpy as np

from pauca.subset.base import TIED_WITHIN

# Columns are swept in blocks of about this many table entries (2 MB): the block stays in the cache.
TABLE_NUMBERS = 1 << 18


def best_exchange(
    inverse: np.ndarray,
    rows: np.ndarray,
    coef: np.ndarray,
    slope: np.ndarray,
    residual: np.ndarray,
    least_residual: np.ndarray,
) -> tuple[int, int, float] | None:
    """The exchange (position out, feature in, decrease of Q) with the largest decrease, if any lowers Q.

    With ``V = A H_S:`` dropping i and adding j lowers Q by

        (slope_j + V_ij coef_i / A_ii)^2 / (2 (residual_j + V_ij^2 / A_ii)) - coef_i^2 / (2 A_ii),

    which is positive exactly when ``slope_j^2 + 2 slope_j V_ij coef_i / A_ii - residual_j coef_i^2 / A_ii`` is.
    The second form is linear in V: one matrix product tests all pairs, and the quotient is taken only in
    the columns where some exchange helps. Usually there are few of them, at an optimum none.

    Columns whose residual is not above ``least_residual`` are passed over. A column in the span of the chosen ones
    is among them rightly: no exchange of it for one of them widens the span.
    """
    own = np.diag(inverse)
    ratio = coef / own
    free = residual > least_residual
    columns = np.flatnonzero(free)[_helps(inverse * (2 * ratio)[:, None], rows, coef * ratio, slope, residual, free)]
    if not len(columns):
        return None
    shared = inverse @ rows[:, columns]
    left = residual[columns] + shared**2 / own[:, None]
    decrease = 0.5 * ((slope[columns] + shared * ratio[:, None]) ** 2 / left - (coef * ratio)[:, None])
    return _first_best(decrease, columns)


def _helps(
    weights: np.ndarray, rows: np.ndarray, cost: np.ndarray, slope: np.ndarray, residual: np.ndarray, free: np.ndarray
) -> np.ndarray:
    """Mask over the free columns: whether some exchange for the column lowers Q."""
    k = len(cost)
    # Two more rows carry the terms that do not depend on V.
    left = np.column_stack([weights, np.ones(k), -cost])
    slope = np.where(free, slope, 0.0)
    residual = np.where(free, residual, 1.0)
    width = max(1, TABLE_NUMBERS // (k + 2))
    right = np.empty((k + 2, min(width, len(slope))))
    best = np.empty(len(slope))
    for start in range(0, len(slope), width):
        part = slice(start, start + width)
        block = right[:, : len(slope[part])]
        np.multiply(rows[:, part], slope[part], out=block[:k])
        np.multiply(slope[part], slope[part], out=block[k])
        block[k + 1] = residual[part]
        np.max(left @ block, axis=0, out=best[part])
    return best[free] > 0


def _first_best(decrease: np.ndarray, columns: np.ndarray) -> tuple[int, int, float]:
    """The best entry; of those that tie with it to rounding, the lowest column, then the first row."""
    best = float(decrease.max())
    column, position = np.argwhere(best - TIED_WITHIN * abs(best) <= decrease.T)[0]
    return int(position), int(columns[column]), best
