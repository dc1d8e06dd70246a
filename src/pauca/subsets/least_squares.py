"""A least-squares model kept fitted by closed forms while features come and go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

import numpy as np

from pauca.constraints.units import Limits
from pauca.model import Model, Snapshot
from pauca.objectives import GramRows, LeastSquares
from pauca.solvers.factorisation import InverseFactor
from pauca.subsets.base import Swap, digest, first_largest, first_smallest, is_lower, require_memory
from pauca.subsets.candidates import Candidates, best_exchange, best_replacements, greedy_order, highest_first
from pauca.tolerances import DEPENDENT_BELOW, NEGLIGIBLE

# Simulating the next steps takes a millisecond: more than a pass over data of fewer numbers than this.
SIMULATE_ABOVE = 1 << 20
POOL_FACTOR = 4
LEAST_PREFETCHED = 7

# A change of the coefficients is a rank-one step; rounding is taken out before it can build up.
CHANGES_BEFORE_REFINING = 8

# A filled subset holds the Gram matrix, its inverse factor, and what it takes to change them.
FILLED_ARRAYS = 4

SPARE_ROWS = 16


class LeastSquaresSubset:
    """The fitted model on a subset S of the features.

    Conventions (standardised coordinates, H the Hessian, A the inverse of its block on S)
    -----------
    coef : minimiser on S, in the order of ``support``
    Dropping i raises Q by ``coef_i^2 / (2 A_ii)``; what adding j brings is in ``Candidates``.

    An addition or removal reads the Gram rows of S once, a vector-matrix product; X is read only when a Gram row
    is missing.
    """

    closed_form = True

    def __init__(self, objective: LeastSquares, gram: GramRows, limits: Limits) -> None:
        self.objective = objective
        self.gram = gram
        self.limits = limits
        self.support: list[int] = []
        self.coef = np.zeros(0)
        self.value = self.null_value = objective.null_value
        self.negligible = self.perfect_below = NEGLIGIBLE * self.null_value
        self.null = Snapshot((), self.coef, self.value, self.coef)
        self._factor = InverseFactor()
        self._gram_rows = np.empty((SPARE_ROWS, objective.design.n_features))
        self._candidates = Candidates(objective)
        self._unrefined = 0
        self._expected: int | None = None
        for feature in limits.always:
            self.add(feature)

    @classmethod
    def start(cls, objective: LeastSquares, limits: Limits | None = None) -> LeastSquaresSubset:
        """The least subset of an objective: the features that are always in."""
        return cls(objective, GramRows(objective.design), limits or Limits())

    @property
    def size(self) -> int:
        return len(self.support)

    def expect(self, size: int | None) -> None:
        self._expected = size

    def allow_until(self, deadline: float) -> None:
        """No answer takes long."""

    def best_addition(self, rule: str, slack: float | None = None) -> int | None:
        scores = self._computed_candidates().scores(rule, self.value)
        if not self.limits.trivial:
            gains = scores * np.abs(scores) if rule == "gradient" else scores
            addable = self.limits.addable(self.support, len(scores))
            scores = np.where(addable, self.limits.per_price(gains), -np.inf)
        best = first_largest(scores)
        return best if scores[best] > -np.inf else None

    def decrease(self, feature: int) -> float:
        candidates = self._computed_candidates()
        return float(0.5 * candidates.slope[feature] ** 2 / candidates.residual[feature])

    def removal_costs(self, removal: str) -> np.ndarray:
        if removal == "zero":
            return 0.5 * self._candidates.curvature[self.support] * self.coef**2
        return 0.5 * self.coef**2 / self._factor.inverse_diagonal()

    def cheapest_removal(self, removal: str, at_most: float = np.inf) -> tuple[int, float] | None:
        costs = self.removal_costs(removal)
        position = _cheapest_position(costs, self.support, self.limits)
        return None if position is None else (self.support[position], float(costs[position]))

    def best_swap(self) -> Swap | None:
        if not self.support:
            return None
        n_features = self.objective.design.n_features
        allowed = None if self.limits.trivial else self.limits.exchanges(self.support, n_features)
        found = best_exchange(self._factor.inverse(), self._rows(), self.coef, self._computed_candidates(), allowed)
        if found is None or not is_lower(self.value - found[2], self.value, self.negligible):
            return None
        position, into, decrease = found
        return Swap(self.support[position], into, decrease)

    def replacements(self, count: int) -> dict[int, list[Swap]]:
        usable = self.objective.design.usable
        allowed = self.limits.exchanges(self.support, len(usable)) & usable
        candidates = self._computed_candidates()
        found = best_replacements(self._factor.inverse(), self._rows(), self.coef, candidates, allowed, count)
        return {
            out: [Swap(out, into, decrease) for into, decrease in pairs]
            for out, pairs in zip(self.support, found, strict=True)
        }

    def add(self, feature: int) -> None:
        row = self.gram.row(feature, self._likely_after)
        cross = row[self.support]
        candidates = self._candidates
        curvature = candidates.curvature[feature]
        slope = candidates.slope[feature] if candidates.computed else self.objective.slope[feature] - self.coef @ cross
        weights, residual = self._factor.append(cross, curvature, DEPENDENT_BELOW * curvature)
        step = slope / residual
        if candidates.computed:
            candidates.residual[feature] = -np.inf
            candidates.update(row - weights @ self._rows(), -step, -1 / residual)
        candidates.count_copies(row, 1)
        self._store_row(row)
        self.coef = np.concatenate((self.coef - step * weights, (step,)))
        self.support.append(feature)
        self.value -= 0.5 * slope * step
        self._limit_rounding()

    def drop(self, feature: int) -> None:
        position = self.support.index(feature)
        column = self._factor.inverse_column(position)
        own = column[position]
        slope = self.coef[position] / own
        candidates = self._candidates
        if candidates.computed:
            direction = column @ self._rows()
            # The dropped column becomes a candidate: from zero the update leads to its slope and residual.
            candidates.slope[feature] = candidates.residual[feature] = 0.0
            direction[feature] = 1.0
            candidates.update(direction, slope, 1 / own)
        candidates.count_copies(self._gram_rows[position], -1)
        self.value += 0.5 * slope * self.coef[position]
        self.coef = np.delete(self.coef - slope * column, position)
        self._factor.delete(position)
        for later in range(position + 1, self.size):
            self._gram_rows[later - 1] = self._gram_rows[later]
        del self.support[position]
        self._limit_rounding()

    def cheapest_removals(self, size: int | None, limits: Limits) -> list[int]:
        support, coef, inverse = list(self.support), self.coef, self._factor.inverse()
        removed: list[int] = []
        while (size is not None and len(support) > size) or not limits.allows(support):
            position = _cheapest_position(coef * coef / np.diag(inverse), support, limits)
            if position is None:
                break
            column = inverse[:, position] / inverse[position, position]
            keep = np.arange(len(support)) != position
            coef = (coef - coef[position] * column)[keep]
            inverse = (inverse - np.outer(column, inverse[position]))[keep][:, keep]
            removed.append(support.pop(position))
        return removed

    def fill(self) -> None:
        usable = np.flatnonzero(self.objective.design.usable & self.limits.startable(self.objective.design.n_features))
        require_memory(FILLED_ARRAYS * 8 * len(usable) ** 2, f"Starting from all {len(usable)} columns")
        rows = self.gram.rows(usable)
        if self._fill_at_once(usable, rows):
            return
        for j in np.setdiff1d(usable, self.support):
            candidates = self._computed_candidates()
            if candidates.residual[j] > candidates.thresholds()[j]:
                self.add(int(j))
        self._candidates.discard()

    def copy(self) -> LeastSquaresSubset:
        other = copy(self)
        other.support = list(self.support)
        other._factor = copy(self._factor)
        other._candidates = self._candidates.copy()
        other._gram_rows = np.empty((self.size + SPARE_ROWS, self._gram_rows.shape[1]))
        other._gram_rows[: self.size] = self._rows()
        return other

    @contextmanager
    def trial(self) -> Iterator[None]:
        # Gram rows of additions are stored behind those of the subset as it was: resetting its size discards them.
        support, coef, value, unrefined = list(self.support), self.coef, self.value, self._unrefined
        factor, candidates, limits = copy(self._factor), self._candidates.copy(), self.limits
        self.limits = limits.relaxed()
        try:
            yield
        finally:
            self.limits = limits
            self.support, self.coef, self.value, self._unrefined = support, coef, value, unrefined
            self._factor, self._candidates = factor, candidates

    def restarted(self) -> LeastSquaresSubset:
        other = LeastSquaresSubset(self.objective, self.gram, self.limits)
        other.expect(self._expected)
        return other

    def snapshot(self) -> Snapshot:
        return Snapshot(tuple(self.support), self.coef, self.value, self._factor.inverse_diagonal())

    def finish(self, snapshots: list[Snapshot], answer: int) -> list[Model]:
        return self.objective.finish(snapshots, self.gram)

    def held_back(self) -> bool:
        if self.limits.trivial:
            return False
        candidates = self._computed_candidates()
        usable = candidates.residual > candidates.thresholds()
        usable[list(self.limits.never)] = False
        return bool(np.any(usable & ~self.limits.addable(self.support, len(usable))))

    def data_key(self) -> bytes:
        design, objective = self.objective.design, self.objective
        scalars = np.array([objective.ridge, objective.null_value])
        return digest((objective.slope, design.mean, design.spread, scalars))

    def dependent(self) -> np.ndarray:
        if not self.support or self.size == np.count_nonzero(self.objective.design.usable):
            return np.zeros(0, dtype=np.intp)
        candidates = self._computed_candidates()
        barred = candidates.residual <= candidates.thresholds()
        barred[self.support] = False
        return np.flatnonzero(barred & self.objective.design.usable)

    def _rows(self) -> np.ndarray:
        return self._gram_rows[: self.size]

    def _store_row(self, row: np.ndarray) -> None:
        if self.size == len(self._gram_rows):
            self._gram_rows = np.concatenate([self._gram_rows, np.empty_like(self._gram_rows)])
        self._gram_rows[self.size] = row

    def _computed_candidates(self) -> Candidates:
        if not self._candidates.computed:
            rows = self._rows()
            self._candidates.compute(self.coef, rows, self._factor.half_solve(rows), self.support)
            self._use_residuals()
        return self._candidates

    def _limit_rounding(self) -> None:
        """After every change: keep rounding from building up, and stay accurate close to a perfect fit."""
        self._unrefined += 1
        if not self.support:
            self.value, self._unrefined = self.null_value, 0
        elif self._unrefined >= CHANGES_BEFORE_REFINING:
            self._refine()
        self._use_residuals()

    def _refine(self) -> None:
        """One step of iterative refinement against the Gram rows, and the value it leads to.

        The value is a quadratic form: an error of the coefficients enters it squared.
        """
        self._unrefined = 0
        if self.objective.little_left(self.value):
            return
        slope = self.objective.slope[self.support]
        own = self._rows()[:, self.support]
        penalty = self.objective.penalty[self.support]
        curved = own @ self.coef + penalty * self.coef
        step = self._factor.solve(slope - curved)
        curved += own @ step + penalty * step
        self.coef = self.coef + step
        self.value = self.null_value + float(self.coef @ (0.5 * curved - slope))

    def _use_residuals(self) -> None:
        """Once little is left to explain, take coefficients, slopes and value from residuals, at one read of X.

        Differences of Gram products would lose the digits that then decide.
        """
        if not self.support or not self.objective.little_left(self.value):
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
        if self._candidates.computed:
            self._candidates.slope = slope - step @ self._rows()

    def _fill_at_once(self, usable: np.ndarray, rows: np.ndarray) -> bool:
        """Add all usable columns by one factorisation if they are independent; returns whether they are."""
        hessian = rows[:, usable]
        if self._candidates.has_copies(hessian):
            return False
        hessian.flat[:: len(usable) + 1] = self._candidates.curvature[usable]
        try:
            factor = InverseFactor.of(hessian)
        except np.linalg.LinAlgError:
            return False
        # 1 / A_jj is what all the others leave of column j.
        if np.any(self._candidates.thresholds()[usable] * factor.inverse_diagonal() >= 1):
            return False
        self._factor, self._gram_rows = factor, rows
        self.support = [int(j) for j in usable]
        self.coef = factor.solve(self.objective.slope[usable])
        self.value = self.null_value - 0.5 * float(self.coef @ self.objective.slope[usable])
        self._refine()
        self._use_residuals()
        return True

    def _likely_after(self, feature: int, count: int) -> np.ndarray:
        """Features whose Gram rows are likely to be needed next: ``feature`` itself and up to ``count`` others."""
        if self._expected is not None:
            # Twice as many as are still to come: some predictions are wrong.
            count = min(count, max(LEAST_PREFETCHED, 2 * (self._expected - self.size)))
        candidates = self._computed_candidates()
        scores = candidates.scores("refit", self.value)
        scores[self.gram.known()] = -np.inf
        scores[feature] = np.inf
        design = self.objective.design
        if design.n_rows * design.n_features < SIMULATE_ABOVE:
            return highest_first(scores, count + 1)
        pool = highest_first(scores, POOL_FACTOR * count)
        half = self._factor.half_solve(self._rows()[:, pool])
        left = design.sample_gram(pool) - half.T @ half
        return pool[greedy_order(candidates.slope[pool], candidates.residual[pool], left, count + 1)]


def _cheapest_position(costs: np.ndarray, support: list[int], limits: Limits) -> int | None:
    """Position in ``support`` of the removal that costs least, of those that the limits allow."""
    if not support:
        return None
    if limits.trivial:
        return first_smallest(costs, support)
    removable = limits.removable(support)
    if not removable.any():
        return None
    return first_smallest(np.where(removable, limits.per_price(costs, support), np.inf), support)
