"""A least-squares model kept fitted by closed forms while features come and go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from copy import copy
from typing import Any

import numpy as np

from pauca.clock import check_time
from pauca.constraints.limits import Limits
from pauca.model import Model, Snapshot
from pauca.objectives import GramRows, LeastSquares, RowStack
from pauca.solvers.factorisation import InverseFactor
from pauca.subsets.base import SLACK, Swap, digest, first_largest, first_smallest, is_lower, require_memory
from pauca.subsets.least_squares_candidates import (
    Candidates,
    best_exchange,
    best_replacements,
    greedy_order,
    highest_first,
)
from pauca.tolerances import DEPENDENT_BELOW, NEGLIGIBLE

# Simulating the next steps takes a millisecond: more than a pass over data of fewer numbers than this.
SIMULATE_ABOVE = 1 << 20
POOL_FACTOR = 4

# Rows predicted beyond those that are still to come: some predictions are wrong, and a pass costs as much as nine rows.
SPARE_PREDICTIONS = 4

# A change of the coefficients is a rank-one step; rounding is taken out before it can build up.
CHANGES_BEFORE_REFINING = 8

# A filled subset holds the Gram matrix, its inverse factor, and what it takes to change them.
FILLED_ARRAYS = 4

# Models are kept for the searches that come to them again: as many as take so many bytes.
KEPT_BYTES = 1 << 24

CHANGING = ("support", "coef", "value", "_factor", "_rows", "_candidates", "_unrefined", "_answers", "_shared")
"""What differs between models of one objective: replaced by every change, never written to."""


class KeptModels:
    """The models that subsets of one objective have come to last, by the features in the order of their additions.

    Exchange, its scouts and its detours often add the same features one after the other, and none is added twice.
    """

    def __init__(self) -> None:
        self._models: dict[tuple[int, ...], tuple[dict[str, Any], int]] = {}
        self._bytes = 0

    def get(self, support: tuple[int, ...]) -> dict[str, Any] | None:
        """The attributes of the model on ``support``, if it is kept."""
        found = self._models.pop(support, None)
        if found is None:
            return None
        self._models[support] = found  # now the last to go
        return found[0]

    def keep(self, support: tuple[int, ...], model: dict[str, Any], n_bytes: int) -> None:
        """Keep a model that takes so many bytes more; the oldest make room for it."""
        self._bytes += n_bytes - self._models.pop(support, ({}, 0))[1]
        self._models[support] = (model, n_bytes)
        while self._bytes > KEPT_BYTES and len(self._models) > 1:
            self._bytes -= self._models.pop(next(iter(self._models)))[1]


class LeastSquaresSubset:
    """The fitted model on a subset S of the features.

    Conventions (standardised coordinates, H the Hessian, A the inverse of its block on S)
    -----------
    coef : minimiser on S, in the order of ``support``
    Dropping i raises Q by ``coef_i^2 / (2 A_ii)``; what adding j brings is in ``Candidates``.

    An addition or removal reads the Gram rows of S once, a vector-matrix product, and X only where one is missing.
    """

    closed_form, joint = True, False

    def __init__(self, objective: LeastSquares, gram: GramRows, limits: Limits, kept: KeptModels | None = None) -> None:
        self.objective, self.gram, self.limits = objective, gram, limits
        self._kept = kept or KeptModels()
        self.support: list[int] = []
        self.coef = np.zeros(0)
        self.value = self.null_value = objective.null_value
        self.negligible = self.perfect_below = NEGLIGIBLE * self.null_value
        self._little_below = objective.little_below
        self.null = Snapshot((), self.coef, self.value, self.coef)
        self._expected: int | None = None
        self._shared = False
        """Whether another subset may hold the same arrays."""
        empty = self._kept.get(())
        if empty is None:
            self._factor = InverseFactor()
            self._rows = RowStack.empty(objective.design.n_features)
            self._candidates = Candidates(objective)
            self._unrefined = 0
            self._answers: dict[Any, Any] = {}
            self._keep()
        else:
            self.__dict__.update(empty)
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

    def best_addition(self, rule: str, slack: float | None = None) -> int | None:
        found: int | None = self._answer("addition", rule, self._find_addition)
        return found

    def best_additions(self, rule: str, count: int, slack: float | None = None) -> list[int]:
        grown, found = self.copy(), list[int]()
        while len(found) < (count if self.limits.trivial else 1):
            unit = grown.best_addition(rule)
            if unit is None or grown.value <= self.perfect_below or grown.decrease(unit) <= self.negligible:
                break
            found.append(unit)
            grown.add(unit)
        return found

    def decrease(self, feature: int) -> float:
        candidates = self._computed_candidates()
        return float(0.5 * candidates.slope[feature] ** 2 / candidates.residual[feature])

    def gain_alone(self, feature: int) -> float:
        candidates = self._computed_candidates()
        return float(0.5 * candidates.slope[feature] ** 2 / candidates.curvature[feature])

    def largest_slope(self) -> float:
        slopes = self._computed_candidates().scores("gradient", self.value)
        addable = self.limits.addable(self.support, len(slopes))
        return float(np.max(slopes[addable], initial=0.0))

    def zero_cost(self, feature: int) -> float:
        return float(self.removal_costs("zero")[self.support.index(feature)])

    def coefficient_sizes(self) -> np.ndarray:
        return np.abs(self.coef) / self.objective.design.spread[self.support]

    def removal_costs(self, removal: str) -> np.ndarray:
        if removal == "zero":
            return 0.5 * self._candidates.curvature[self.support] * self.coef**2
        return 0.5 * self.coef**2 / self._factor.inverse_diagonal()

    def cheapest_removal(
        self, removal: str, at_most: float = np.inf, slack: float | None = SLACK
    ) -> tuple[int, float] | None:
        return self._answer("removal", removal, self._find_removal)

    def _find_removal(self, removal: str) -> tuple[int, float] | None:
        costs = self.removal_costs(removal)
        position = _cheapest_position(costs, self.support, self.limits)
        return None if position is None else (self.support[position], float(costs[position]))

    def best_swap(self) -> Swap | None:
        if not self.support:
            return None
        n_features = self.objective.design.n_features
        allowed = None if self.limits.trivial else self.limits.exchanges(self.support, n_features)
        candidates = self._computed_candidates()
        found = best_exchange(self._factor, self._rows.array, self.coef, candidates, allowed)
        if found is None or not is_lower(self.value - found[2], self.value, self.negligible):
            return None
        position, into, decrease = found
        return Swap(self.support[position], into, decrease)

    def likely_pair(self) -> None:
        return None

    penalised = likely_pair  # estimates are exact

    def replacements(self, count: int) -> dict[int, list[Swap]]:
        usable = self.objective.design.usable
        allowed = self.limits.exchanges(self.support, len(usable)) & usable
        candidates = self._computed_candidates()
        found = best_replacements(self._factor.inverse(), self._rows.array, self.coef, candidates, allowed, count)
        return {
            out: [Swap(out, into, decrease) for into, decrease in pairs]
            for out, pairs in zip(self.support, found, strict=True)
        }

    def add(self, feature: int) -> None:
        support = (*self.support, feature)
        known = self._kept.get(support)
        if known is not None:
            self.__dict__.update(known)
            return
        self._append(feature)
        self._keep()

    def drop(self, feature: int) -> None:
        position = self.support.index(feature)
        column = self._factor.inverse_column(position)
        own = column[position]
        slope = self.coef[position] / own
        if self._candidates.computed:
            direction = column @ self._rows.array
            direction[feature] = 1.0
            self._candidates = self._candidates.updated(direction, slope, 1 / own)
            # The dropped column becomes a candidate: from zero the update leads to its slope and residual.
            self._candidates.assign(feature, slope, 1 / own)
        self._candidates = self._candidates.with_copies(self._rows.array[position], -1)
        self.value += 0.5 * slope * self.coef[position]
        self.coef = np.delete(self.coef - slope * column, position)
        self._factor = self._factor.without(position)
        self._rows = self._rows.without(position, in_place=not self._shared)
        self.support = [other for other in self.support if other != feature]
        self._answers, self._shared = {}, False
        self._limit_rounding()

    def exchange(self, out: Sequence[int], into: Sequence[int]) -> None:
        for feature in out:
            self.drop(feature)
        for feature in into:
            self.add(feature)

    def cheapest_removals(self, size: int | None, limits: Limits) -> list[int]:
        # The inverse Hessian and, as a last column, the coefficients: a removal changes both in the same way.
        count = self.size
        table = np.empty((count, count + 1))
        table[:, :count], table[:, count] = self._factor.inverse(), self.coef
        own, coef = table.diagonal(), table[:, count]
        barred = np.zeros(count)  # what is removed is barred from then on
        support = list(self.support)
        removed: list[int] = []
        while (size is not None and len(support) > size) or not limits.allows(support):
            check_time()
            costs = coef * coef
            costs /= own
            costs += barred
            place = _cheapest_of(costs, self.support, support, limits)
            if place is None:
                break
            feature = self.support[place]
            support.remove(feature)
            removed.append(feature)
            table -= (table[:, place] / own[place])[:, None] * table[place]
            barred[place], table[place, place] = np.inf, 1.0
        return removed

    def fill(self) -> None:
        usable = self.limits.candidates(self.objective.design.usable)
        require_memory(FILLED_ARRAYS * 8 * len(usable) ** 2, f"Starting from all {len(usable)} columns")
        rows = self.gram.rows(usable)
        if self._fill_at_once(usable, rows):
            return
        for j in np.setdiff1d(usable, self.support):
            check_time()
            candidates = self._computed_candidates()
            if candidates.residual[j] > candidates.thresholds[j]:
                self.add(int(j))
        self._candidates = self._candidates.discarded()

    def copy(self) -> LeastSquaresSubset:
        self._shared = True
        return copy(self)

    def trial(self) -> AbstractContextManager[None]:
        return _Trial(self)

    def restarted(self) -> LeastSquaresSubset:
        other = LeastSquaresSubset(self.objective, self.gram, self.limits, self._kept)
        other.expect(self._expected)
        return other

    def snapshot(self) -> Snapshot:
        if "snapshot" not in self._answers:
            diagonal = self._factor.inverse_diagonal()
            self._answers["snapshot"] = Snapshot(tuple(self.support), self.coef, self.value, diagonal)
        found: Snapshot = self._answers["snapshot"]
        return found

    def finish(self, snapshots: list[Snapshot], answer: int | None) -> list[Model]:
        return self.objective.finish(snapshots, self.gram)

    def held_back(self) -> bool:
        if self.limits.trivial:
            return False
        candidates = self._computed_candidates()
        usable = candidates.residual > candidates.thresholds
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
        barred = candidates.residual <= candidates.thresholds
        if np.count_nonzero(barred) == self.size:  # the chosen ones alone
            return np.zeros(0, dtype=np.intp)
        barred[self.support] = False
        return np.flatnonzero(barred & self.objective.design.usable)

    def _answer(self, question: str, by: str, find: Callable[[str], Any]) -> Any:
        """What ``find`` says of the current model, asked once; limits may change, and are asked each time."""
        if not self.limits.trivial:
            return find(by)
        if (question, by) not in self._answers:
            self._answers[question, by] = find(by)
        return self._answers[question, by]

    def _model(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in CHANGING}

    def _keep(self) -> None:
        self._shared = True
        n_bytes = 2 * self._candidates.slope.nbytes + self._rows.claim()
        self._kept.keep(tuple(self.support), self._model(), n_bytes)

    def _append(self, feature: int) -> None:
        """Add a feature by closed forms."""
        row = self.gram.row(feature, self._likely_after)
        cross = row[self.support]
        candidates = self._candidates
        curvature = candidates.curvature[feature]
        slope = candidates.slope[feature] if candidates.computed else self.objective.slope[feature] - self.coef @ cross
        self._factor, weights, residual = self._factor.appended(cross, curvature, DEPENDENT_BELOW * curvature)
        step = slope / residual
        if candidates.computed:
            direction = row - weights @ self._rows.array if self.support else row
            candidates = candidates.updated(direction, -step, -1 / residual)
            candidates.assign(feature, 0.0, -np.inf)
        self._candidates = candidates.with_copies(row, 1)
        self._rows = self._rows.appended(row)
        self.coef = np.concatenate((self.coef - step * weights, (step,)))
        self.support = [*self.support, feature]
        self.value -= 0.5 * slope * step
        self._answers = {}
        self._limit_rounding()

    def _find_addition(self, rule: str) -> int | None:
        candidates = self._computed_candidates()
        if self.limits.trivial and rule != "functional":
            return candidates.best(rule, self.value)
        functional, design = rule == "functional", self.objective.design
        scores = candidates.scores("gradient" if functional else rule, self.value)
        if functional:
            scores = np.divide(scores, design.spread, out=scores, where=design.usable)
        if not self.limits.trivial:
            gains = scores * np.abs(scores) if rule in {"gradient", "functional"} else scores
            addable = self.limits.addable(self.support, len(scores))
            scores = np.where(addable, self.limits.per_price(gains), -np.inf)
        best = first_largest(scores)
        return best if scores[best] > -np.inf else None

    def _computed_candidates(self) -> Candidates:
        if not self._candidates.computed:
            check_time()
            rows = self._rows.array
            self._candidates = self._candidates.computed_from(
                self.coef, rows, self._factor.half_solve(rows), self.support
            )
            self._use_residuals()
            self._keep()
        return self._candidates

    def _limit_rounding(self) -> None:
        """After every change: keep rounding from building up, and stay accurate close to a perfect fit."""
        self._unrefined += 1
        if not self.support:
            self.value, self._unrefined = self.null_value, 0
        elif self._unrefined >= CHANGES_BEFORE_REFINING:
            self._refine()
        if self.value < self._little_below:
            self._use_residuals()

    def _refine(self) -> None:
        """One step of iterative refinement against the Gram rows, and the value it leads to.

        The value is a quadratic form: an error of the coefficients enters it squared.
        """
        self._unrefined = 0
        if self.value < self._little_below:
            return
        slope = self.objective.slope[self.support]
        own = self._rows.array[:, self.support]
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
        if not self.support or self.value >= self._little_below:
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
            self._candidates = self._candidates.with_slope(slope - step @ self._rows.array)

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
        if np.any(self._candidates.thresholds[usable] * factor.inverse_diagonal() >= 1):
            return False
        self._factor, self._rows, self._shared = factor, RowStack.holding(rows), False
        # What is known so far is of the columns that are always in.
        self._candidates, self._answers = self._candidates.discarded(), {}
        self.support = [int(j) for j in usable]
        self.coef = factor.solve(self.objective.slope[usable])
        self.value = self.null_value - 0.5 * float(self.coef @ self.objective.slope[usable])
        self._refine()
        self._use_residuals()
        return True

    def _likely_after(self, feature: int, count: int) -> np.ndarray:
        """Features whose Gram rows are likely to be needed next: ``feature`` itself and up to ``count`` others."""
        if self._expected is not None:
            count = min(count, max(0, self._expected - self.size) + SPARE_PREDICTIONS)
        candidates = self._computed_candidates()
        scores = candidates.scores("refit", self.value)
        scores[self.gram.known()] = -np.inf
        scores[feature] = np.inf
        design = self.objective.design
        if design.n_rows * design.n_features < SIMULATE_ABOVE:
            return highest_first(scores, count + 1)
        pool = highest_first(scores, POOL_FACTOR * count)
        half = self._factor.half_solve(self._rows.array[:, pool])
        left = design.sample_gram(pool) - half.T @ half
        return pool[greedy_order(candidates.slope[pool], candidates.residual[pool], left, count + 1)]


class _Trial:
    """What ``trial`` returns; a generator would take longer than to keep the model."""

    def __init__(self, subset: LeastSquaresSubset) -> None:
        self._subset = subset

    def __enter__(self) -> None:
        subset, limits = self._subset, self._subset.limits
        subset._shared = True
        self._before = {**subset._model(), "limits": limits}
        if not limits.trivial:
            subset.limits = limits.relaxed()

    def __exit__(self, *_: object) -> None:
        self._subset.__dict__.update(self._before)


def _cheapest_of(costs: np.ndarray, features: list[int], left: list[int], limits: Limits) -> int | None:
    """Position in ``features`` of the removal that costs least, of those that are ``left`` and that limits allow."""
    if limits.trivial:
        return first_smallest(costs, features)
    places = [features.index(feature) for feature in left]
    position = _cheapest_position(costs[places], left, limits)
    return None if position is None else places[position]


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
