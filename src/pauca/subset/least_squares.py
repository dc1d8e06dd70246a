"""A least-squares model kept fitted by closed forms while features come and go."""

from __future__ import annotations

import numpy as np

from pauca.model import Snapshot
from pauca.objectives import GramRows, LeastSquares
from pauca.refit import InverseFactor
from pauca.subset.base import DEPENDENT_BELOW, Swap, first_largest, first_smallest, is_lower
from pauca.subset.exchange_table import best_exchange
from pauca.subset.speculation import largest, rehearse

# Slopes and residual variances are carried along by rank-one changes; after this many they are made anew.
CHANGES_BEFORE_RENEWAL = 100

# With a ridge a copy of a chosen column would still lower the value; this correlation makes it a copy.
TWIN_ABOVE = 1 - 1e-10

# Below this share of the empty model's value, Gram products no longer have the digits to tell candidates apart.
LITTLE_LEFT = 1e-6

SPARE_ROWS = 16
NOT_MADE = np.zeros(0)

# Rehearsing the search costs a millisecond: more than a pass over small data.
REHEARSE_ABOVE = 1 << 20
POOL_FACTOR = 4


class LeastSquaresSubset:
    """The fitted model on a subset S and, for every column j, what adding it would bring.

    Conventions (standardised coordinates, H the Hessian, A the inverse of its block on S)
    -----------
    coef         : minimiser on S, in the order of ``support``
    slope[j]     : minus the gradient of Q in coordinate j
    residual[j]  : ``H_jj - H_jS A H_Sj``, what S leaves of column j; minus infinity for chosen columns
    Adding j lowers Q by ``slope_j^2 / (2 residual_j)``; dropping i raises it by ``coef_i^2 / (2 A_ii)``.

    An addition or removal reads the Gram rows of S once, a vector-matrix product; X is read only when a Gram row
    is missing. Slopes and residuals are made when somebody first asks for them.
    """

    def __init__(self, objective: LeastSquares, gram: GramRows) -> None:
        self.objective = objective
        self.gram = gram
        self.support: list[int] = []
        self.coef = np.zeros(0)
        self.value = self.null_value = objective.null_value
        self._curvature = objective.curvature
        self._least_residual = np.where(objective.design.usable, DEPENDENT_BELOW * self._curvature, np.inf)
        self._factor = InverseFactor()
        self._gram_rows = np.empty((SPARE_ROWS, objective.design.n_features))
        self._slope = self._residual = NOT_MADE
        self._changes = 0
        self._twins = np.zeros(objective.design.n_features, dtype=np.int32)

    @classmethod
    def start(cls, objective: LeastSquares) -> LeastSquaresSubset:
        """The empty subset of an objective."""
        return cls(objective, GramRows(objective.design))

    @property
    def size(self) -> int:
        return len(self.support)

    def best_addition(self, rule: str) -> int | None:
        scores = self._scores(rule)
        best = first_largest(scores)
        return best if scores[best] > -np.inf else None

    def decrease(self, feature: int) -> float:
        slope, residual = self._slopes()
        return float(0.5 * slope[feature] ** 2 / residual[feature])

    def removal_costs(self, removal: str) -> np.ndarray:
        if removal == "zero":
            return 0.5 * self._curvature[self.support] * self.coef**2
        return 0.5 * self.coef**2 / self._factor.inverse_diagonal()

    def best_swap(self) -> Swap | None:
        slope, residual = self._slopes()
        found = best_exchange(self._factor.inverse(), self._rows(), self.coef, slope, residual, self._thresholds())
        if found is None or not is_lower(self.value - found[2], self.value, self.null_value):
            return None
        position, into, decrease = found
        return Swap(self.support[position], into, decrease)

    def add(self, feature: int) -> None:
        row = self.gram.row(feature, self._likely_after)
        cross = row[self.support]
        curvature = self._curvature[feature]
        slope = self._slope[feature] if len(self._slope) else self.objective.slope[feature] - self.coef @ cross
        weights, residual = self._factor.append(cross, curvature, DEPENDENT_BELOW * curvature)
        step = slope / residual
        if len(self._slope):
            self._residual[feature] = -np.inf
            self._change_slopes(row - weights @ self._rows(), -step, -1 / residual)
        self._store_row(row)
        self.coef = np.concatenate((self.coef - step * weights, (step,)))
        self.support.append(feature)
        self._count_twins(row, 1)
        self.value -= 0.5 * slope * step
        self._sharpen()

    def drop(self, feature: int) -> None:
        position = self.support.index(feature)
        if len(self._slope):
            column = self._factor.inverse_column(position)
            own = column[position]
            slope = self.coef[position] / own
            direction = column @ self._rows()
            # The dropped column becomes a candidate: with these its slope and residual come out as they should.
            self._slope[feature] = self._residual[feature] = 0.0
            direction[feature] = 1.0
            self._change_slopes(direction, slope, 1 / own)
        self._count_twins(self._gram_rows[position], -1)
        self._factor.delete(position)
        for later in range(position + 1, self.size):
            self._gram_rows[later - 1] = self._gram_rows[later]
        del self.support[position]
        self._solve()

    def cheapest_removals(self, count: int) -> list[int]:
        support, coef, inverse = list(self.support), self.coef, self._factor.inverse()
        gone: list[int] = []
        while support and len(gone) < count:
            position = first_smallest(coef * coef / np.diag(inverse), support)
            column = inverse[:, position] / inverse[position, position]
            keep = np.arange(len(support)) != position
            coef = (coef - coef[position] * column)[keep]
            inverse = (inverse - np.outer(column, inverse[position]))[keep][:, keep]
            gone.append(support.pop(position))
        return gone

    def fill(self) -> None:
        candidates = np.flatnonzero(self.objective.design.usable)
        rows = self.gram.rows(candidates)
        hessian = rows[:, candidates]
        hessian[np.diag_indices_from(hessian)] = self._curvature[candidates]
        try:
            factor = InverseFactor.of(hessian)
            # 1 / A_jj is what all the others leave of column j.
            independent = bool(np.all(self._least_residual[candidates] * factor.inverse_diagonal() < 1))
        except np.linalg.LinAlgError:
            independent = False
        if independent and not self._has_twins(rows, candidates):
            self._factor, self._gram_rows = factor, rows
            self.support = [int(j) for j in candidates]
            self._solve()
            return
        for j in candidates:
            if self._slopes()[1][j] > self._thresholds()[j]:
                self.add(int(j))
        self._slope = self._residual = NOT_MADE

    def copy(self) -> LeastSquaresSubset:
        twin = LeastSquaresSubset(self.objective, self.gram)
        twin.support, twin.coef, twin.value = list(self.support), self.coef, self.value
        twin._factor = self._factor.copy()
        twin._gram_rows = np.empty((self.size + SPARE_ROWS, self._gram_rows.shape[1]))
        twin._gram_rows[: self.size] = self._rows()
        twin._slope, twin._residual = self._slope.copy(), self._residual.copy()
        twin._changes = self._changes
        twin._twins = self._twins.copy()
        return twin

    def empty(self) -> LeastSquaresSubset:
        return LeastSquaresSubset(self.objective, self.gram)

    def snapshot(self) -> Snapshot:
        return Snapshot(tuple(self.support), self.coef, self.value)

    def dependent(self) -> np.ndarray:
        barred = self._slopes()[1] <= self._thresholds()
        barred[self.support] = False
        return np.flatnonzero(barred & self.objective.design.usable)

    def _rows(self) -> np.ndarray:
        return self._gram_rows[: self.size]

    def _solve(self) -> None:
        """Coefficients and value from the factor; the value is a quadratic form, exact to second order."""
        slope = self.objective.slope[self.support]
        self.coef = self._factor.solve(slope)
        curved = self._rows()[:, self.support] @ self.coef + self.objective.penalty[self.support] * self.coef
        self.value = self.null_value + float(self.coef @ (0.5 * curved - slope))
        self._sharpen()

    def _sharpen(self) -> None:
        """Once little is left to explain, take coefficients, slopes and value from residuals, at one read of X.

        Differences of Gram products would lose the digits that then decide.
        """
        if self.value >= LITTLE_LEFT * self.null_value or not self.support:
            return
        objective = self.objective
        residual = objective.residual(self.support, self.coef)
        slope = objective.design.correlate(residual)
        penalty = objective.penalty[self.support]
        own = slope[self.support] - penalty * self.coef
        step = self._factor.solve(own)
        value = objective.design.weights @ residual**2 + penalty @ self.coef**2 - own @ step
        self.value = 0.5 * max(float(value), 0.0)
        self.coef = self.coef + step
        if len(self._slope):
            self._slope = slope - step @ self._rows()

    def _likely_after(self, feature: int, count: int) -> np.ndarray:
        """``count`` features whose Gram rows are likely to be wanted once ``feature`` is in."""
        scores = self._scores("refit")
        scores[self.gram.known()] = -np.inf
        scores[feature] = np.inf
        design = self.objective.design
        if design.n_rows * design.n_features < REHEARSE_ABOVE:
            return largest(scores, count + 1)
        pool = largest(scores, POOL_FACTOR * count)
        slope, residual = self._slopes()
        half = self._factor.half_solve(self._rows()[:, pool])
        left = design.sample_gram(pool) - half.T @ half
        return pool[rehearse(slope[pool], residual[pool], left, count + 1)]

    def _scores(self, rule: str) -> np.ndarray:
        """Score of every column by ``rule``; minus infinity where it may not be added."""
        slope, residual = self._slopes()
        thresholds = self._thresholds()
        if rule == "refit":
            scores = slope * slope / np.maximum(residual, thresholds)
            # Columns that would complete a perfect fit gain the same, all that is left, whatever rounding says.
            np.minimum(scores, (2 - 1e-6) * max(self.value, 0.0), out=scores)
        elif rule == "objective":
            scores = slope * slope / self._curvature
        else:
            scores = np.abs(slope) * self.objective.design.spread
        return np.where(residual > thresholds, scores, -np.inf)

    def _thresholds(self) -> np.ndarray:
        """Residuals up to these bar a column: it is constant, depends on the chosen ones, or copies one of them."""
        if not self.objective.ridge:
            return self._least_residual
        return np.where(self._twins > 0, np.inf, self._least_residual)

    def _count_twins(self, row: np.ndarray, change: int) -> None:
        """With a ridge a copy of a chosen column leaves a residual; copies are counted to bar them all the same."""
        if self.objective.ridge:
            self._twins += change * (np.abs(row) >= TWIN_ABOVE)

    def _has_twins(self, rows: np.ndarray, candidates: np.ndarray) -> bool:
        if not self.objective.ridge:
            return False
        correlation = np.abs(rows[:, candidates])
        np.fill_diagonal(correlation, 0.0)
        return bool(correlation.max(initial=0.0) >= TWIN_ABOVE)

    def _slopes(self) -> tuple[np.ndarray, np.ndarray]:
        if not len(self._slope):
            rows = self._rows()
            half = self._factor.half_solve(rows)
            self._slope = self.objective.slope - self.coef @ rows
            self._residual = self._curvature - np.einsum("ij,ij->j", half, half)
            self._residual[self.support] = -np.inf
            self._changes = 0
            self._sharpen()
        return self._slope, self._residual

    def _change_slopes(self, direction: np.ndarray, slope: float, residual: float) -> None:
        """Rank-one change of slopes and residuals; once in a while they are left to be made anew."""
        self._changes += 1
        if self._changes >= CHANGES_BEFORE_RENEWAL:
            self._slope = self._residual = NOT_MADE
            return
        self._slope += slope * direction
        direction *= direction
        direction *= residual
        self._residual += direction

    def _store_row(self, row: np.ndarray) -> None:
        if self.size == len(self._gram_rows):
            self._gram_rows = np.concatenate([self._gram_rows, np.empty_like(self._gram_rows)])
        self._gram_rows[self.size] = row
