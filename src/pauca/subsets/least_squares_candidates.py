"""What columns bring to a least-squares model: by an addition, a removal, an exchange, and in the steps to come."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pauca.constraints.limits import Limits
from pauca.objectives import LeastSquares
from pauca.solvers.factorisation import InverseFactor
from pauca.subsets.base import first_largest, first_smallest
from pauca.tolerances import COPY_ABOVE, DEPENDENT_BELOW, TIED_WITHIN

# Slopes and residuals are updated by rank-one changes; after this many they are computed again, against rounding.
UPDATES_BEFORE_RENEWAL = 100

# A column that leaves less than this share of the current value completes a perfect fit, to rounding.
COMPLETES_WITHIN = 1e-9

# Exchanges are evaluated in blocks of about this many table entries (2 MB), which stay in the processor's cache.
TABLE_NUMBERS = 1 << 18

# Simulated steps take columns for independent as far as to leave this share of each: estimated products may overshoot.
LEAST_SIMULATED = 1e-3

NOT_COMPUTED = np.zeros(0)


class Candidates:
    """Slope and residual of every column, given the chosen ones S.

    Conventions (standardised coordinates, H the Hessian, A the inverse of its block on S)
    -----------
    slope[j]    : minus the gradient of Q in coordinate j
    residual[j] : ``H_jj - H_jS A H_Sj``, what S leaves of column j; minus infinity for chosen columns

    Adding j lowers Q by ``slope_j^2 / (2 residual_j)``. Both are known of the empty model; after they were discarded
    they are computed when they are next needed: a method that only drops never does. Arrays are replaced, never written
    to, so that copies may share them.
    """

    def __init__(self, objective: LeastSquares) -> None:
        self.slope = objective.slope
        self.curvature = self.residual = objective.curvature
        self.root_curvature = np.sqrt(self.curvature) if objective.ridge else self.curvature  # which is one then
        self.computed = True
        """Whether slopes and residuals are up to date."""
        self.thresholds = DEPENDENT_BELOW * self.curvature
        """Residuals up to these bar a column: it is constant, depends on the chosen ones, or copies one of them."""
        self.thresholds[~objective.design.usable] = np.inf
        self._objective = objective
        self._least_residual = self.thresholds
        self._copies: np.ndarray | None = None
        self._updates = 0

    def _copy(self) -> Candidates:
        other = Candidates.__new__(Candidates)  # several times faster than copy.copy
        other.__dict__.update(self.__dict__)
        return other

    def computed_from(self, coef: np.ndarray, rows: np.ndarray, half: np.ndarray, support: list[int]) -> Candidates:
        """With slopes and residuals from the Gram ``rows`` of S; the squares of ``half`` add up to what S explains."""
        other = self.with_slope(self._objective.slope - coef @ rows)
        other.residual = self.curvature - np.einsum("ij,ij->j", half, half)
        other.residual[support] = -np.inf
        other.computed, other._updates = True, 0
        return other

    def discarded(self) -> Candidates:
        """Without slopes and residuals, until they are next needed."""
        other = self.with_slope(NOT_COMPUTED)
        other.residual, other.computed = NOT_COMPUTED, False
        return other

    def with_slope(self, slope: np.ndarray) -> Candidates:
        """With other slopes."""
        other = self._copy()
        other.slope = slope
        return other

    def updated(self, direction: np.ndarray, slope: float, residual: float) -> Candidates:
        """After the rank-one change of an addition or removal; once in a while all is discarded instead."""
        if self._updates + 1 >= UPDATES_BEFORE_RENEWAL:
            return self.discarded()
        other = self._copy()
        other._updates += 1
        other.slope = slope * direction
        other.slope += self.slope
        other.residual = direction * direction
        other.residual *= residual
        other.residual += self.residual
        return other

    def assign(self, feature: int, slope: float, residual: float) -> None:
        """Set what is known of one column, right after ``updated``."""
        if self.computed:
            self.slope[feature], self.residual[feature] = slope, residual

    def scores(self, rule: str, left: float) -> np.ndarray:
        """Score of every column by ``rule``, minus infinity where it is barred; ``left`` is the current value."""
        return np.where(self.residual > self.thresholds, self._scores(rule, left), -np.inf)

    def best(self, rule: str, left: float) -> int | None:
        """The column with the largest score, the first of those that tie; None where all are barred."""
        scores = self._scores(rule, left)
        best = first_largest(scores)
        if not self.residual[best] > self.thresholds[best]:  # rare: what is barred scores little as a rule
            scores = np.where(self.residual > self.thresholds, scores, -np.inf)
            best = first_largest(scores)
        return best if scores[best] > -np.inf else None

    def _scores(self, rule: str, left: float) -> np.ndarray:
        """Scores by ``rule``, of barred columns too."""
        if rule == "functional":
            return np.abs(self.slope)
        if rule == "gradient":
            return np.abs(self.slope) * self._objective.design.spread
        scores = self.slope * self.slope
        if rule == "refit":
            scores /= np.maximum(self.residual, self.thresholds)
            # Columns that would complete a perfect fit gain the same, all that is left, but for rounding.
            np.minimum(scores, (2 - COMPLETES_WITHIN) * max(left, 0.0), out=scores)
        else:
            scores /= self.curvature
        return scores

    def with_copies(self, row: np.ndarray, change: int) -> Candidates:
        """With copies of a chosen column counted: with a ridge they leave a residual, and are barred all the same."""
        if not self._objective.ridge:
            return self
        other = self._copy()
        changes = change * (np.abs(row) >= COPY_ABOVE)
        other._copies = changes if self._copies is None else self._copies + changes
        other.thresholds = np.where(other._copies > 0, np.inf, self._least_residual)
        return other

    def has_copies(self, gram: np.ndarray) -> bool:
        """Whether some columns of a square Gram matrix are to be barred as copies of others."""
        if not self._objective.ridge:
            return False
        correlation = np.abs(gram)
        np.fill_diagonal(correlation, 0.0)
        return bool(correlation.max(initial=0.0) >= COPY_ABOVE)


def best_exchange(
    factor: InverseFactor,
    rows: np.ndarray,
    coef: np.ndarray,
    candidates: Candidates,
    allowed: np.ndarray | None = None,
) -> tuple[int, int, float] | None:
    """The exchange (position out, feature in, decrease of Q) with the largest decrease, if any lowers Q.

    With ``V = A H_S:`` dropping i and adding j lowers Q by

        (slope_j + V_ij coef_i / A_ii)^2 / (2 (residual_j + V_ij^2 / A_ii)) - coef_i^2 / (2 A_ii).

    ``allowed``, of shape (k, d), is a mask of the allowed exchanges; None for all.
    Barred columns are passed over. A column in the span of the chosen ones is among them rightly: no exchange of it
    for one of them widens the span.
    """
    columns = _may_help(candidates, float((coef * coef / factor.inverse_diagonal()).min(initial=np.inf)))
    if not len(columns):
        return None
    best: tuple[int, int, float] | None = None
    for part, twice, _ in _tables(factor.inverse(), rows, coef, candidates, columns):
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

    A copy of a chosen feature depends on them all, and can yet replace it. Features that are not allowed, or would
    depend on the others even then, are left out.
    """
    found: list[list[tuple[int, float]]] = [[] for _ in coef]
    for part, twice, left in _tables(inverse, rows, coef, candidates, np.arange(rows.shape[1])):
        twice[~allowed[:, part] | (left <= candidates.thresholds[part])] = -np.inf
        for position, line in enumerate(twice):
            some = np.argsort(-line, kind="stable")[:count]
            found[position] += [(int(part[j]), 0.5 * float(line[j])) for j in some if np.isfinite(line[j])]
    return [sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:count] for pairs in found]


def _tables(
    inverse: np.ndarray, rows: np.ndarray, coef: np.ndarray, candidates: Candidates, columns: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Blocks of columns: their indices, twice the decrease for every pair, and what is left of the column then."""
    own = inverse.diagonal()
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
    """The columns for which some exchange may lower Q; no other does.

    Let ``s = |coef_i| / sqrt(A_ii)`` and, up to sign, ``t = V_ij / sqrt(A_ii)``. An exchange of i for j helps just if
    ``slope_j^2 + 2 slope_j t s - residual_j s^2 > 0``. As ``t^2`` is what dropping i adds to the residual of j, it is
    at most ``u^2 = H_jj - residual_j``. So s must lie below ``|slope_j| (u + sqrt(H_jj)) / residual_j``, and if the
    cheapest s does not, none does. Where columns are weakly correlated this leaves the few that gain more than the
    cheapest removal costs.
    """
    least = (1 - 1e-6) * math.sqrt(cheapest)  # the residuals carry rounding
    # As u is at most sqrt(H_jj), few columns are left to look at as a rule.
    slope = np.abs(candidates.slope)
    (some,) = (2 * slope * candidates.root_curvature > least * candidates.residual).nonzero()
    left = np.maximum(candidates.residual[some], 0.0)  # of chosen columns it is minus infinity
    widest = np.sqrt(np.maximum(candidates.curvature[some] - left, 0.0)) + candidates.root_curvature[some]
    helps = slope[some] * widest > least * left
    helps &= left > candidates.thresholds[some]
    return some[helps]


def _first_best(table: np.ndarray) -> tuple[int, int, float]:
    """The largest entry; of those that tie with it to rounding, the lowest column, then the first row."""
    best = float(table.max())
    tied = table >= best - TIED_WITHIN * abs(best)
    column = int(tied.any(axis=0).argmax())
    return int(tied[:, column].argmax()), column, best


def highest_first(scores: np.ndarray, count: int) -> np.ndarray:
    """Indices of the ``count`` largest scores, best first, without those of minus infinity."""
    if count < len(scores):
        top = np.argpartition(scores, len(scores) - count)[len(scores) - count :]
    else:
        top = np.arange(len(scores))
    top = top[scores[top] > -np.inf]
    return top[np.argsort(-scores[top], kind="stable")]


def greedy_order(slope: np.ndarray, residual: np.ndarray, left: np.ndarray, count: int) -> list[int]:
    """Positions of the features that forward selection among few candidates would take, the first candidate first.

    One pass over X can compute the Gram rows of many columns, so those that the next steps will need are predicted. The
    best-scored candidates are often near copies of one another: once one of them is in, the others are not needed. So
    the steps are simulated. ``slope`` and ``residual`` are exact; ``left`` (what the chosen features leave of the
    candidates' products) may be estimated from some of the rows: an error costs time, never the answer.
    """
    least = LEAST_SIMULATED * residual
    left = left.copy()
    np.fill_diagonal(left, residual)
    open_ = np.ones(len(slope), dtype=bool)
    taken: list[int] = []
    position = 0
    while len(taken) < min(count, len(slope)):
        taken.append(position)
        open_[position] = False
        weights = left[position] / max(left[position, position], least[position])
        slope = slope - slope[position] * weights
        left -= np.outer(weights, left[position])
        gains = slope * slope / np.maximum(left.diagonal(), least)
        position = int(np.argmax(np.where(open_, gains, -1.0)))
    return taken


def cheapest_of(costs: np.ndarray, features: list[int], left: list[int], limits: Limits) -> int | None:
    """Position in ``features`` of the removal that costs least, of those that are ``left`` and that limits allow."""
    if limits.trivial:
        return first_smallest(costs, features)
    places = [features.index(feature) for feature in left]
    position = cheapest_position(costs[places], left, limits)
    return None if position is None else places[position]


def cheapest_position(costs: np.ndarray, support: list[int], limits: Limits) -> int | None:
    """Position in ``support`` of the removal that costs least, of those that the limits allow."""
    if not support:
        return None
    if limits.trivial:
        return first_smallest(costs, support)
    removable = limits.removable(support)
    if not removable.any():
        return None
    return first_smallest(np.where(removable, limits.per_price(costs, support), np.inf), support)
