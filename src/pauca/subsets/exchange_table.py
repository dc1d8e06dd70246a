"""Exact gains of all exchanges of one chosen feature for one other, found in one sweep."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pauca.subsets.candidates import Candidates
from pauca.tolerances import TIED_WITHIN

# Candidates are taken in blocks of about this many table entries (2 MB): the block stays in the cache.
TABLE_NUMBERS = 1 << 18


def best_exchange(
    inverse: np.ndarray,
    rows: np.ndarray,
    coef: np.ndarray,
    candidates: Candidates,
    allowed: np.ndarray | None = None,
) -> tuple[int, int, float] | None:
    """The exchange (position out, feature in, decrease of Q) with the largest decrease, if any lowers Q.

    With ``V = A H_S:`` dropping i and adding j lowers Q by

        (slope_j + V_ij coef_i / A_ii)^2 / (2 (residual_j + V_ij^2 / A_ii)) - coef_i^2 / (2 A_ii).

    ``allowed``, of shape (k, d), says which exchanges are to be looked at; None for all.
    Barred columns are passed over. A column in the span of the chosen ones is among them rightly: no exchange of it
    for one of them widens the span.
    """
    columns = np.flatnonzero(_may_help(candidates, (coef * coef / np.diag(inverse)).min(initial=np.inf)))
    best: tuple[int, int, float] | None = None
    for part, twice, _ in _tables(inverse, rows, coef, candidates, columns):
        if allowed is not None:
            twice[~allowed[:, part]] = -np.inf
        position, column, decrease = _first_best(twice)
        if best is None or decrease > best[2] * (1 + TIED_WITHIN):
            best = (position, int(part[column]), decrease)
    if best is None or best[2] <= 0:
        return None
    return best[0], best[1], 0.5 * best[2]


def best_replacements(
    inverse: np.ndarray, rows: np.ndarray, coef: np.ndarray, candidates: Candidates, allowed: np.ndarray, count: int
) -> list[list[tuple[int, float]]]:
    """For every chosen feature its best replacements and by how much each lowers Q, which is not above zero as a rule.

    A copy of a chosen feature is dependent on them all, and yet can take its place. What may not come in, or would
    depend on the others even then, is left out.
    """
    found: list[list[tuple[int, float]]] = [[] for _ in coef]
    for part, twice, left in _tables(inverse, rows, coef, candidates, np.arange(rows.shape[1])):
        twice[~allowed[:, part] | (left <= candidates.thresholds()[part])] = -np.inf
        for position, line in enumerate(twice):
            some = np.argsort(-line, kind="stable")[:count]
            found[position] += [(int(part[j]), 0.5 * float(line[j])) for j in some if np.isfinite(line[j])]
    return [sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:count] for pairs in found]


def _tables(
    inverse: np.ndarray, rows: np.ndarray, coef: np.ndarray, candidates: Candidates, columns: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Blocks of columns: which they are, twice the decrease for every pair, and what is left of the column then."""
    own = np.diag(inverse)
    cost = coef * coef / own
    width = max(1, TABLE_NUMBERS // len(coef))
    for start in range(0, len(columns), width):
        part = columns[start : start + width]
        shared = inverse @ rows[:, part]
        numerator = (candidates.slope[part] + shared * (coef / own)[:, None]) ** 2
        shared *= shared
        shared /= own[:, None]
        shared += np.maximum(candidates.residual[part], 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            numerator /= shared
        numerator -= cost[:, None]
        yield part, numerator, shared


def _may_help(candidates: Candidates, cheapest: float) -> np.ndarray:
    """Mask of the columns for which some exchange may lower Q; no other does.

    Let ``s = |coef_i| / sqrt(A_ii)`` and, up to sign, ``t = V_ij / sqrt(A_ii)``. An exchange of i for j helps just if
    ``slope_j^2 + 2 slope_j t s - residual_j s^2 > 0``. As ``t^2`` is what dropping i adds to the residual of j, it is
    at most ``u^2 = H_jj - residual_j``. So s must lie below ``|slope_j| (u + sqrt(H_jj)) / residual_j``, and if the
    cheapest s does not, none does. Where columns are weakly correlated this leaves the few that gain more than the
    cheapest removal costs.
    """
    free = candidates.residual > candidates.thresholds()
    left = np.where(free, candidates.residual, 1.0)
    reach = np.sqrt(np.maximum(candidates.curvature - left, 0.0)) + np.sqrt(candidates.curvature)
    slack = 1 - 1e-6  # the residuals carry rounding
    return free & (np.abs(candidates.slope) * reach > slack * np.sqrt(cheapest) * left)


def _first_best(table: np.ndarray) -> tuple[int, int, float]:
    """The largest entry; of those that tie with it to rounding, the lowest column, then the first row."""
    best = float(table.max())
    tied = table >= best - TIED_WITHIN * abs(best)
    column, position = np.argwhere(tied.T)[0]
    return int(position), int(column), best
