"""A model of any convex loss kept fitted while units come and go: quadratics rank, refits decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from pauca.constraints.units import Limits
from pauca.model import Model, Snapshot
from pauca.objectives import SmoothObjective
from pauca.objectives.least_squares import GramRows
from pauca.solvers.newton import minimise
from pauca.subsets.base import digest
from pauca.subsets.coordinate_search import coordinate_gains
from pauca.subsets.engine import AdditionScores, RefittedSubset, Shortlist, SubsetCache
from pauca.subsets.fits import Fit, Fits, RecentTable, diverged, quadratic_removal_costs
from pauca.subsets.local_quadratic import Blocks, LocalQuadratic, UnitBlocks, feasible_slope

# A filled subset holds the columns of X twice: pooled, and gathered for the refit.
FILLED_ARRAYS = 2

# Additions that gain less than this share of the value may be combinations of chosen columns. Close to a perfect fit,
# at this share of the empty model's value, even a copy of a chosen column may lower what little is left.
SUSPICIOUS_BELOW = 1e-5
NEARLY_PERFECT = 1e-3

# Local quadratics kept, the run's own and those of its scouts: so many, but no more than take this many bytes beyond
# the run's own. Each holds up to three arrays of the size of the chosen rows of the Gram matrix.
KEPT_QUADRATICS = 6
QUADRATICS_BYTES = 1 << 28
ARRAYS_EACH = 3


class SmoothCache(SubsetCache):
    """What all subsets of one smooth objective share: fits and the quadratics around them."""

    def __init__(self, objective: SmoothObjective, limits: Limits) -> None:
        super().__init__(limits)
        self.objective = objective
        self.fits = Fits(objective)
        self.gram = GramRows(objective.design)
        self.blocks = UnitBlocks(objective.units, objective.design.usable)
        self._quadratics = RecentTable[LocalQuadratic]()
        self._own: Blocks | None = None

    def quadratic(self, fit: Fit) -> LocalQuadratic:
        """The quadratic around a fit."""
        key = frozenset(fit.units)
        found = self._quadratics.get(key)
        if found is None:
            found = LocalQuadratic(self.fits, fit, self.blocks, self.gram)
        each = ARRAYS_EACH * 8 * max(1, fit.coef.size) * self.objective.design.n_features
        self._quadratics.keep(key, found, min(KEPT_QUADRATICS, 1 + QUADRATICS_BYTES // each))
        if self.objective.smooth.quadratic:
            # The Hessian is the same everywhere.
            if self._own is None:
                self._own = found.own
            found.own = self._own
        return found


class SmoothSubset(RefittedSubset[SmoothCache]):
    """The fitted model on a set of units, for any convex loss.

    Candidates, removals and swaps are ranked by the local quadratic; see ``RefittedSubset`` for the rest.
    """

    shortlist = Shortlist(additions=3)

    def __init__(self, cache: SmoothCache) -> None:
        self.objective = cache.objective
        self.usable = cache.blocks.usable
        self.null_value = cache.objective.null_value
        self.negligible = cache.objective.negligible
        self.perfect_below = cache.objective.perfect_below
        self._fit = cache.fits.null
        super().__init__(cache)

    @classmethod
    def start(cls, objective: SmoothObjective, limits: Limits | None = None) -> SmoothSubset:
        """The least subset of an objective: the units that are always in."""
        return cls(SmoothCache(objective, limits or Limits()))

    @property
    def value(self) -> float:
        return self._fit.value

    def snapshot(self) -> Snapshot:
        fits, fit, free = self._cache.fits, self._fit, self.objective.free
        return Snapshot(
            fit.units,
            fit.coef[:, free:],
            fit.value,
            np.zeros(0),
            fit.coef[:, 0] if free else np.zeros(self.objective.n_outputs),
            self._removal_estimates(fit.units),
            fits.reported(fit),
            diverged(fits, fit),
            fit.converged,
        )

    def finish(self, snapshots: list[Snapshot], answer: int) -> list[Model]:
        models, fits = self.objective.finish(snapshots), self._cache.fits
        fit = fits.of(frozenset(snapshots[answer].support), self._fit)
        importance = np.array([max(fits.value_without(fit, unit) - fit.value, 0.0) for unit in fit.units])
        models[answer] = replace(models[answer], importance=importance, importance_is_exact=True)
        return models

    def data_key(self) -> bytes:
        design, objective = self.objective.design, self.objective
        slope = self._cache.quadratic(self._cache.fits.null).slope
        bounds = objective.bounds or ()
        scalars = np.array([objective.ridge, objective.null_value])
        return digest((objective.y, design.weights, slope, design.mean, design.spread, *bounds, scalars))

    def dependent(self) -> np.ndarray:
        # A unit that was redundant on the way need not be so in the model the way has led to.
        met, pool = sorted(self._cache.redundant - set(self.support)), self._cache.fits.pool
        return np.array([unit for unit in met if pool.is_redundant(unit, self.support)], dtype=np.intp)

    @property
    def _quadratic(self) -> LocalQuadratic:
        return self._cache.quadratic(self._fit)

    def _move_to(self, support: list[int]) -> None:
        self._fit = self._cache.fits.of(frozenset(support), self._fit)
        self.support = support

    def _decrease_to(self, support: frozenset[int]) -> float:
        return self.value - self._cache.fits.of(support, self._fit).value

    def _fill_bytes(self, units: list[int]) -> int:
        return FILLED_ARRAYS * 8 * len(self.objective.units.of(units)) * self.objective.design.n_rows

    def _without_redundant(self, units: list[int]) -> list[int]:
        # Within bounds a combination of columns may do what they cannot.
        if self.objective.bounds is not None or (self.objective.ridge and not self.objective.units.single):
            return units
        kept = set(self._cache.fits.pool.without_redundant(units)) | set(self.limits.always)
        self._cache.redundant.update(set(units) - kept)
        return [unit for unit in units if unit in kept]

    def _is_redundant(self, unit: int, replaced: int | None = None) -> bool:
        """Whether a unit is a combination of chosen columns or, with a ridge, a copy of one.

        Combinations gain next to nothing without a ridge, so only units that gain little are tested.
        """
        others = [other for other in self.support if other != replaced]
        if not others or self.objective.bounds is not None:
            # Within bounds a combination of columns may do what they cannot.
            return False
        nearly_perfect = self.value <= NEARLY_PERFECT * self.null_value
        small = replaced is not None or nearly_perfect or self.decrease(unit) <= SUSPICIOUS_BELOW * self.value
        return (small or bool(self.objective.ridge)) and self._cache.fits.pool.is_redundant(unit, others)

    def _score_additions(self, rule: str, addable: np.ndarray) -> AdditionScores:
        quadratic, objective = self._quadratic, self.objective
        if rule == "refit":
            return AdditionScores(quadratic.refit_gains(), exact=False)
        if rule == "gradient":
            slope = feasible_slope(quadratic.slope, objective.bounds) * objective.design.spread
            return AdditionScores(objective.units.totals(np.einsum("cj,cj->j", slope, slope)), exact=True)
        if not objective.units.single or objective.n_outputs > 1:
            return AdditionScores(quadratic.own_gains(), exact=False)
        curvature = quadratic.own[0][0, :, 0, 0]
        slope = np.where(addable, feasible_slope(quadratic.slope, objective.bounds)[0], np.nan)
        price = self.limits.per_price(np.ones(len(addable))) ** -1
        return AdditionScores(coordinate_gains(objective, quadratic.scores[0], slope, curvature, price), exact=True)

    def _gain_alone(self, unit: int) -> float:
        columns = self._cache.fits.pool.gather([unit])[self.objective.free :]
        features = self.objective.units.of([unit])
        scores = self._quadratic.scores
        problem = self.objective.restricted(columns, features, offset=scores)
        start = np.zeros((self.objective.n_outputs, len(features)))
        before = problem.value(start, np.zeros_like(scores))
        return before - minimise(problem, start).value

    def _removal_estimates(self, units: Sequence[int]) -> np.ndarray:
        """What removing each of some chosen units costs to second order."""
        if not units:
            return np.zeros(0)
        if self.objective.smooth.flat or self.objective.bounds is not None:
            costs = self._quadratic.removal_costs()
        else:
            costs = quadratic_removal_costs(self._cache.fits, self._fit)
        return costs[np.searchsorted(self._fit.units, units)]

    def _zero_costs(self, units: list[int], at_most: float) -> dict[int, float]:
        return {unit: self._zero_cost(unit) for unit in units}

    def _zero_cost(self, unit: int) -> float:
        fits, objective = self._cache.fits, self.objective
        features = objective.units.of(self._fit.units)
        coef = self._fit.coef.copy()
        coef[:, objective.free :][:, objective.units.owner[features] == unit] = 0.0
        problem = objective.restricted(fits.pool.gather(self._fit.units), features).with_loss(objective.measured)
        return max(problem.value(coef, problem.scores(coef)) - self.value, 0.0)

    def _swap_estimates(self) -> Iterator[tuple[int, float, np.ndarray]]:
        return self._quadratic.exchanges() if self.support else iter(())
