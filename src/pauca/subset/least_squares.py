"""A least-squares model kept fitted by closed forms while features come and go."""

from __future__ import annotations

import numpy as np

from pauca.model import Snapshot
from pauca.objectives import GramRows, LeastSquares
from pauca.refit import CholeskyFactor
from pauca.subset.base import DEPENDENT_BELOW, NEGLIGIBLE, Swap, first_largest
from pauca.subset.exchange_table import best_exchange

# Slopes and residual variances are carried along by rank-one changes; after this many they are made anew.
CHANGES_BEFORE_RENEWAL = 50

# A swap must lower the value by this share of it, so that rounding cannot make a run go in circles.
SWAP_GAIN = 1e-10

# With a ridge a copy of a chosen column would still lower the value; this correlation makes it a copy.
TWIN_ABOVE = 1 - 1e-10

SPARE_ROWS = 16


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
        self._factor = CholeskyFactor()
        self._gram_rows = np.empty((SPARE_ROWS, objective.design.n_features))
        self._slope: np.ndarray | None = None
        self._residual: np.ndarray | None = None
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
            return np.asarray(0.5 * self._curvature[self.support] * self.coef**2)
        return np.asarray(0.5 * self.coef**2 / np.diag(self._factor.inverse))

    def best_swap(self) -> Swap | None:
        slope, residual = self._slopes()
        found = best_exchange(self._factor.inverse, self._rows(), self.coef, slope, residual, self._thresholds())
        if found is None or found[2] <= SWAP_GAIN * self.value + NEGLIGIBLE * self.null_value:
            return None
        position, into, decrease = found
        return Swap(self.support[position], into, decrease)

    def add(self, feature: int) -> None:
        row = self.gram.row(feature, None if self.gram.has(feature) else self._scores("refit"))
        k = self.size
        curvature = self._curvature[feature]
        slope = self.objective.slope[feature] - self.coef @ row[self.support]
        weights, residual = self._factor.append(row[self.support], curvature, DEPENDENT_BELOW * curvature)
        step = slope / residual
        if self._slope is not None and self._residual is not None:
            left = row - weights @ self._rows()
            self._slope -= step * left
            left *= left
            left /= residual
            self._residual -= left
            self._residual[feature] = -np.inf
            self._age()
        if k == len(self._gram_rows):
            self._gram_rows = np.concatenate([self._gram_rows, np.empty_like(self._gram_rows)])
        self._gram_rows[k] = row
        self.coef = np.append(self.coef - step * weights, step)
        self.support.append(feature)
        self._count_twins(feature, 1)
        self.value -= 0.5 * slope * step

    def drop(self, feature: int) -> None:
        position = self.support.index(feature)
        column = self._factor.inverse[:, position]
        own = column[position]
        if self._slope is not None and self._residual is not None:
            left = column @ self._rows()
            self._slope += (self.coef[position] / own) * left
            left *= left
            left /= own
            self._residual += left
            self._residual[feature] = 1 / own
            self._slope[feature] = self.coef[position] / own
            self._age()
        self._factor.delete(position)
        for later in range(position + 1, self.size):
            self._gram_rows[later - 1] = self._gram_rows[later]
        del self.support[position]
        self._count_twins(feature, -1)
        self._solve()

    def fill(self) -> None:
        candidates = np.flatnonzero(self.objective.design.usable)
        rows = self.gram.rows(candidates)
        hessian = rows[:, candidates]
        hessian[np.diag_indices_from(hessian)] = self._curvature[candidates]
        try:
            factor = CholeskyFactor.of(hessian)
            independent = bool(np.all(factor.pivots > DEPENDENT_BELOW * self._curvature[candidates]))
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
        # A method that only drops never asks what a candidate would bring.
        self._slope = self._residual = None

    def copy(self) -> LeastSquaresSubset:
        twin = LeastSquaresSubset(self.objective, self.gram)
        twin.support, twin.coef, twin.value = list(self.support), self.coef, self.value
        twin._factor = self._factor.copy()
        twin._gram_rows = np.empty((self.size + SPARE_ROWS, self._gram_rows.shape[1]))
        twin._gram_rows[: self.size] = self._rows()
        if self._slope is not None and self._residual is not None:
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

    def _scores(self, rule: str) -> np.ndarray:
        """Score of every column by ``rule``; minus infinity where it may not be added."""
        slope, residual = self._slopes()
        if rule == "refit":
            with np.errstate(divide="ignore"):
                scores = slope * slope / residual
        elif rule == "objective":
            scores = slope * slope / self._curvature
        else:
            scores = np.abs(slope) * self.objective.design.spread
        return np.where(residual > self._thresholds(), scores, -np.inf)

    def _thresholds(self) -> np.ndarray:
        """Residuals up to these bar a column: it is constant, depends on the chosen ones, or copies one of them."""
        if not self.objective.ridge:
            return self._least_residual
        return np.where(self._twins > 0, np.inf, self._least_residual)

    def _count_twins(self, feature: int, change: int) -> None:
        """With a ridge a copy of a chosen column leaves a residual; copies are counted to bar them all the same."""
        if self.objective.ridge:
            self._twins += change * (np.abs(self.gram.row(feature)) >= TWIN_ABOVE)

    def _has_twins(self, rows: np.ndarray, candidates: np.ndarray) -> bool:
        if not self.objective.ridge:
            return False
        correlation = np.abs(rows[:, candidates])
        np.fill_diagonal(correlation, 0.0)
        return bool(correlation.max(initial=0.0) >= TWIN_ABOVE)

    def _slopes(self) -> tuple[np.ndarray, np.ndarray]:
        if self._slope is None or self._residual is None:
            rows = self._rows()
            self._slope = self.objective.slope - self.coef @ rows
            half = self._factor.half_solve(rows)
            self._residual = self._curvature - np.einsum("ij,ij->j", half, half)
            self._residual[self.support] = -np.inf
            self._changes = 0
        return self._slope, self._residual

    def _age(self) -> None:
        self._changes += 1
        if self._changes >= CHANGES_BEFORE_RENEWAL:
            self._slope = self._residual = None
