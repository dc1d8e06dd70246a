"""A model of any smooth convex objective kept fitted while units come and go: quadratics rank, refits decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from pauca.constraints.limits import Limits
from pauca.custom.fit_cache import TRIAL_WITHIN, FitCache, PartialFit, diverged
from pauca.custom.local_quadratic import LocalQuadratic
from pauca.custom.objective import CustomProblem
from pauca.model import Model, Snapshot
from pauca.solvers.quasi_newton import SolverState, minimise
from pauca.subsets.base import digest
from pauca.subsets.fit_cache import RecentTable
from pauca.subsets.refitted_subset import AdditionScores, RefittedSubset, Shortlist, SubsetCache
from pauca.tolerances import NEGLIGIBLE

# Gains and costs that are reported to methods, and not only ranked, are known to this share.
COMPARED_WITHIN = 1e-3

# Importances in the model that answers are known to this share, unless the objective is costly.
REPORTED_WITHIN = 1e-5

# What a unit gains if it moves alone is known to this share.
ALONE_WITHIN = 1e-4

# Quadratics kept: the run's own and those of its scouts.
KEPT_QUADRATICS = 6

# A filled subset holds the Hessian, its inverse, and what it takes to correct that.
FILLED_ARRAYS = 3


class CustomCache(SubsetCache):
    """What all subsets of one objective share: fits and the quadratics around them."""

    def __init__(self, problem: CustomProblem, limits: Limits) -> None:
        super().__init__(limits)
        self.problem = problem
        self.fits = FitCache(problem)
        self._quadratics = RecentTable[LocalQuadratic]()

    def quadratic(self, fit: PartialFit) -> LocalQuadratic:
        """The quadratic around a fit."""
        key = frozenset(fit.units)
        found = self._quadratics.get(key)
        if found is None:
            found = LocalQuadratic(self.fits, fit)
        self._quadratics.keep(key, found, KEPT_QUADRATICS)
        return found


class CustomSubset(RefittedSubset[CustomCache]):
    """The fitted model on a set of units, for any smooth convex objective.

    Values of two supports are compared as closely as their difference needs it; see ``FitCache.difference``.
    """

    shortlist = Shortlist(additions=4)
    unit_noun = "coordinates or groups"

    def __init__(self, cache: CustomCache) -> None:
        problem, null = cache.problem, cache.fits.null
        self.problem = problem
        self.usable = problem.usable
        self.null_value = null.value
        self.negligible = cache.fits.closeness.negligible * max(abs(null.value), problem.magnitude)
        floor = problem.floor
        self.perfect_below = -np.inf if floor is None else floor + NEGLIGIBLE * abs(null.value - floor)
        self._moved_to = null
        super().__init__(cache)

    @classmethod
    def start(cls, problem: CustomProblem, limits: Limits | None = None) -> CustomSubset:
        """The least subset of an objective: the units that are always in."""
        return cls(CustomCache(problem, limits or Limits()))

    @property
    def value(self) -> float:
        return self._fit.value

    def snapshot(self) -> Snapshot:
        fit, free = self._fit, len(self.problem.free)
        return Snapshot(
            fit.units,
            fit.coef[free:],
            fit.value,
            np.zeros(0),
            fit.coef[:free],
            self._removal_estimates(fit.units),
            fit.value,
            False,
            fit.converged,
        )

    def finish(self, snapshots: list[Snapshot], answer: int | None) -> list[Model]:
        fits = self._cache.fits
        found = [fits.trial(frozenset(snapshot.support), fits.null) for snapshot in snapshots]
        if answer is not None:
            return self._polished(found, answer)
        # The search's own models are returned as they are, marked as not converged.
        latest = [fits.latest(fit) for fit in found]
        return [replace(self._model(fit), converged=fit.polished and fit.converged) for fit in latest]

    def data_key(self) -> bytes:
        fits = self._cache.fits
        scalars = np.array([self.null_value, np.nan if self.problem.floor is None else self.problem.floor])
        return digest((self.problem.start, self.problem.free, fits.gradient(fits.null), scalars))

    @property
    def _fit(self) -> PartialFit:
        """The current fit, as far as it has been refined by now."""
        return self._cache.fits.latest(self._moved_to)

    @property
    def _quadratic(self) -> LocalQuadratic:
        return self._cache.quadratic(self._fit)

    def _move_to(self, support: list[int]) -> None:
        self._moved_to = self._cache.fits.accurate(frozenset(support), self._fit)
        self.support = support

    def _decrease_to(self, support: frozenset[int]) -> float:
        fits = self._cache.fits
        # A swap only has to be lower; gains and costs of single units are compared with one another by methods.
        close = not self.problem.costly and len(support) != self.size
        return fits.difference(self._fit, fits.trial(support, self._fit), COMPARED_WITHIN if close else TRIAL_WITHIN)

    def coefficient_sizes(self) -> np.ndarray:
        squares = np.square(self._cache.fits.point(self._fit))
        return np.sqrt(self.problem.totals(squares)[self.support])

    def _fill_bytes(self, units: list[int]) -> int:
        return FILLED_ARRAYS * 8 * len(self.problem.coords(units)) ** 2

    def _model(self, fit: PartialFit) -> Model:
        free = len(self.problem.free)
        order = np.argsort(fit.coords[free:])
        return Model(
            support=fit.coords[free:][order],
            coef=fit.coef[free:][order],
            intercept=0.0,
            objective=fit.value,
            importance=LocalQuadratic(self._cache.fits, fit).removal_costs(),
            units=np.array(fit.units, dtype=np.intp),
            importance_is_exact=False,
            converged=fit.converged,
            free=fit.coef[:free],
        )

    def _polished(self, found: list[PartialFit], answer: int) -> list[Model]:
        """Models of fits once they are as close to their minimum as those that are returned."""
        fits = self._cache.fits
        if self.problem.costly:
            return [self._model(fit) for fit in self._polished_in_turn(found)]
        found = [fits.polished(fit) for fit in found]
        diverges = diverged(fits, found)
        models = [replace(self._model(fit), diverged=runs) for fit, runs in zip(found, diverges, strict=True)]
        fit = found[answer]
        without = [fits.trial(frozenset(fit.units) - {unit}, fit) for unit in fit.units]
        importance = np.array([fits.difference(smaller, fit, REPORTED_WITHIN) for smaller in without])
        models[answer] = replace(models[answer], importance=np.maximum(importance, 0.0), importance_is_exact=True)
        return models

    def _polished_in_turn(self, found: list[PartialFit]) -> list[PartialFit]:
        """Fits polished from the largest to the smallest: each takes over the curvature found for the one before.

        The models that a search of a costly objective has found are far from their minimum; this way the rest of the
        way takes half as many values.
        """
        fits, larger = self._cache.fits, None
        for fit in sorted(found, key=lambda fit: -len(fit.units)):
            larger = fits.polished(fit if larger is None else fits.with_inverse_of(fit, larger))
        return [fits.latest(fit) for fit in found]

    def _score_additions(self, rule: str, addable: np.ndarray, slack: float | None, count: int = 1) -> AdditionScores:
        problem, fits = self.problem, self._cache.fits
        if rule == "gradient":
            gradient = fits.gradient(self._fit)
            return AdditionScores(problem.totals(gradient * gradient), exact=True)
        if rule == "objective" and problem.gains is not None:
            gains = np.asarray(problem.gains(fits.point(self._fit)), dtype=np.float64)
            return AdditionScores(np.where(np.isfinite(gains), gains, 0.0), exact=True)
        quadratic = self._quadratic
        diagonal_gains = quadratic.diagonal_gains(quadratic.gradient)
        if slack is None:  # all are tried, and these say in which order
            return AdditionScores(np.where(diagonal_gains > 0, diagonal_gains, -np.inf), exact=False)
        units = quadratic.shortlist(self.limits.per_price(diagonal_gains), addable)
        gains = np.full(len(addable), -np.inf)
        gains[units] = quadratic.refit_gains(units) if rule == "refit" else quadratic.gains_alone(units)
        return AdditionScores(gains, exact=False)

    def _gain_alone(self, unit: int) -> float:
        fits, fit, coords = self._cache.fits, self._fit, self.problem.units.of([unit])
        begin = fits.aside(fit, coords)
        found = minimise(self.problem, coords, begin, lambda at: ALONE_WITHIN * (fit.value - at))
        return fit.value - found.value

    def _removal_estimates(self, units: Sequence[int]) -> np.ndarray:
        """What removing each of some chosen units costs to second order."""
        return self._quadratic.removal_costs()[np.searchsorted(self._fit.units, units)]

    def _zero_costs(self, units: list[int], at_most: float, slack: float) -> dict[int, float]:
        # Each takes a value of the objective; what a refit would leave of it is known without.
        return self._exact_costs(self._likely_removals(units, at_most, slack, None), slack, self._zero_cost)

    def _zero_cost(self, unit: int) -> float:
        w = self._cache.fits.point(self._fit)
        if self.problem.removal_costs is not None:
            return float(np.asarray(self.problem.removal_costs(w, np.array([unit])))[0])
        w[self.problem.units.of([unit])] = 0.0
        return max(self.problem.value(w) - self.value, 0.0)

    def _swap_estimates(self) -> Iterator[tuple[int, float, np.ndarray]]:
        quadratic, fit = self._quadratic, self._fit
        for out, state, diagonal_gains in self._without_each():
            likely = quadratic.shortlist(diagonal_gains, self._may_replace(out))
            if not likely:
                continue
            kept = fit.coords[~np.isin(fit.coords, self.problem.units.of([out]))]
            slope = state.gradient[kept]
            assert state.inverse is not None
            cost = max(state.value - 0.5 * float(slope @ state.inverse @ slope) - fit.value, 0.0)
            gains = np.full(len(diagonal_gains), -np.inf)
            gains[likely] = diagonal_gains[likely] / quadratic.stiffness(likely, state.inverse, kept)
            yield out, cost, gains

    def _replacement_estimates(self) -> Iterator[tuple[int, np.ndarray]]:
        for out, _, diagonal_gains in self._without_each():
            yield out, diagonal_gains

    def _without_each(self) -> Iterator[tuple[int, SolverState, np.ndarray]]:
        """For each chosen unit: the model without it, and what others gain there by the diagonal of the Hessian."""
        for out in self.support:
            state = self._cache.fits.dropped(self._fit, frozenset([out]))
            yield out, state, self._quadratic.diagonal_gains(state.gradient)
