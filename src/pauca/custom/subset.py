"""A model of any smooth convex objective kept fitted while units come and go: quadratics rank, refits decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pauca.constraints.limits import Limits
from pauca.custom.cache import SubsetCache
from pauca.custom.divergence import diverged
from pauca.custom.fits import TRIAL_WITHIN, Fit
from pauca.custom.local_quadratic import LocalQuadratic, highest
from pauca.custom.objective import CustomProblem
from pauca.model import Model, Snapshot
from pauca.search.driver import interrupted_once
from pauca.solvers.quasi_newton import Rest, minimise
from pauca.subsets.base import Swap, digest, first_largest, first_looks, first_smallest, is_lower, require_memory
from pauca.subsets.refitted import RefitSubset
from pauca.tolerances import NEGLIGIBLE

# How many of those that the quadratic ranks first are looked at in truth.
TRUE_ADDITIONS = 4
TRUE_REMOVALS = 3
TRUE_ALONE = 8

# A candidate that the quadratic puts below this share of the best found in truth is not looked at.
WORTH_A_LOOK = 0.5

# How many replacements are looked at in truth beyond those that are wanted.
MORE_REPLACEMENTS = 2

# A removal that the quadratic puts at this many times what may be paid is not looked at.
FAR_MORE = 2.0

# Gains and costs that are told apart, and not only ranked, are known to this share.
TOLD_WITHIN = 1e-3

# What a unit of the model that answers is worth is known to this share, unless the objective is costly.
READ_WITHIN = 1e-5

# What a unit gains if it moves alone is known to this share.
ALONE_WITHIN = 1e-4


class CustomSubset(RefitSubset):
    """The fitted model on a set of units; every answer is a function of that set alone, but for rounding.

    The protocol is that of ``pauca.subsets.base.Subset``; methods cannot tell the subsets apart.
    """

    def __init__(self, ground: SubsetCache) -> None:
        self._cache = ground
        self.limits = ground.limits
        self.problem = ground.problem
        null = ground.fits.null
        self.null_value = null.value
        self.negligible = ground.fits.closeness.negligible * max(abs(null.value), ground.problem.magnitude)
        floor = ground.problem.floor
        self.perfect_below = -np.inf if floor is None else floor + NEGLIGIBLE * abs(null.value - floor)
        self._stands = null
        self.support: list[int] = []
        self.null = self.snapshot()
        for unit in self.limits.always:
            self.add(unit)

    @classmethod
    def start(cls, problem: CustomProblem, limits: Limits | None = None) -> CustomSubset:
        """The least subset of an objective: the units that are always in."""
        return cls(SubsetCache(problem, limits or Limits()))

    @property
    def value(self) -> float:
        return self._fit.value

    @property
    def _fit(self) -> Fit:
        return self._cache.fits.latest(self._stands)

    def allow_until(self, deadline: float) -> None:
        self.problem.deadline = deadline

    def best_addition(self, rule: str) -> int | None:
        key = (frozenset(self.support), rule, self.limits is self._cache.limits)
        additions = self._cache.additions
        if key not in additions:
            addable = self._addable()
            look = {"gradient": self._by_gradient, "objective": self._by_objective, "refit": self._by_refit}[rule]
            additions[key] = look(addable) if addable.any() else None
        return additions[key]

    def decrease(self, unit: int) -> float:
        return self._above(self._fit, self._with(unit))

    def cheapest_removal(self, removal: str, at_most: float = np.inf) -> tuple[int, float] | None:
        removable = self.limits.removable(self.support)
        units = [unit for unit, may in zip(self.support, removable, strict=True) if may]
        estimates = self._removal_estimates()
        payable = [unit for unit in units if estimates[unit] <= FAR_MORE * at_most]
        ranked = sorted(payable, key=lambda unit: (self._per_price(estimates[unit], unit), unit))
        if not ranked:
            return None
        cost = self._cost_of_zero if removal == "zero" else self._cost_of_refit
        true: dict[int, float] = {}
        for unit in ranked:
            least = min((self._per_price(cost, other) for other, cost in true.items()), default=np.inf)
            enough = len(true) >= TRUE_REMOVALS and removal == "refit"
            if enough or WORTH_A_LOOK * self._per_price(estimates[unit], unit) > least:
                break
            true[unit] = cost(unit)
        looked_at = list(true)
        place = first_smallest(np.array([self._per_price(true[unit], unit) for unit in looked_at]), looked_at)
        return looked_at[place], true[looked_at[place]]

    def best_swap(self) -> Swap | None:
        key = frozenset(self.support)
        if key not in self._cache.swaps:
            self._cache.swaps[key] = self._best_swap()
        return self._cache.swaps[key]

    def replacements(self, count: int) -> dict[int, list[Swap]]:
        found: dict[int, list[Swap]] = {}
        for out in self.support:
            gains = self._gains_without(out)[1]
            swaps = [self._swapped(out, into) for into in highest(gains, count + MORE_REPLACEMENTS)]
            found[out] = sorted(swaps, key=lambda swap: (-swap.decrease, swap.into))[:count]
        return found

    def add(self, unit: int) -> None:
        self._stand([*self.support, unit])

    def drop(self, unit: int) -> None:
        self._stand([other for other in self.support if other != unit])

    def fill(self) -> None:
        startable = self.limits.startable(len(self.problem.units))
        units = np.flatnonzero(self.problem.usable & startable).tolist()
        n_coords = len(self.problem.coords(units))
        require_memory(3 * 8 * n_coords**2, f"Starting from all {len(units)} coordinates or groups")
        self._stand(units)

    def restarted(self) -> CustomSubset:
        return CustomSubset(self._cache)

    def snapshot(self) -> Snapshot:
        fit, free = self._fit, len(self.problem.free)
        return Snapshot(
            fit.units,
            fit.coef[free:],
            fit.value,
            np.zeros(0),
            fit.coef[:free],
            np.array(list(self._removal_estimates().values())),
            fit.value,
            False,
            fit.converged,
        )

    def finish(self, snapshots: list[Snapshot], answer: int) -> list[Model]:
        fits = self._cache.fits
        found = [fits.trial(frozenset(snapshot.support), fits.null) for snapshot in snapshots]
        try:
            return self._polished(found, answer)
        except KeyboardInterrupt:
            # What the search stood on is kept; it says of itself that it was left as it was.
            interrupted_once()
            latest = [fits.latest(fit) for fit in found]
            return [replace(self._model(fit), converged=fit.polished and fit.converged) for fit in latest]

    def held_back(self) -> bool:
        could = self.problem.usable.copy()
        could[[*self.limits.never, *self.support]] = False
        return bool(np.any(could & ~self._addable()))

    def data_key(self) -> bytes:
        fits = self._cache.fits
        scalars = np.array([self.null_value, np.nan if self.problem.floor is None else self.problem.floor])
        return digest((self.problem.start, self.problem.free, fits.gradient(fits.null), scalars))

    def dependent(self) -> np.ndarray:
        """None are known: what a coordinate shares with others is not told by a function's values."""
        return np.zeros(0, dtype=np.intp)

    def _stand(self, support: list[int]) -> None:
        self._stands = self._cache.fits.standing(frozenset(support), self._fit)
        self.support = support

    def _with(self, unit: int) -> Fit:
        return self._cache.fits.trial(frozenset([*self.support, unit]), self._fit)

    def _but(self, fit: Fit, unit: int) -> Fit:
        return self._cache.fits.trial(frozenset(fit.units) - {unit}, fit)

    def _above(self, a: Fit, b: Fit) -> float:
        return self._cache.fits.difference(a, b, TRIAL_WITHIN if self.problem.costly else TOLD_WITHIN)

    def _swapped(self, out: int, into: int) -> Swap:
        fit = self._cache.fits.trial(frozenset(self.support) - {out} | {into}, self._fit)
        return Swap(out, into, self._cache.fits.difference(self._fit, fit))

    def _model(self, fit: Fit) -> Model:
        free = len(self.problem.free)
        order = np.argsort(fit.coords[free:])
        return Model(
            support=fit.coords[free:][order],
            coef=fit.coef[free:][order],
            intercept=0.0,
            objective=fit.value,
            importance=LocalQuadratic(self._cache.fits, fit).removals(),
            units=np.array(fit.units, dtype=np.intp),
            importance_is_exact=False,
            converged=fit.converged,
            free=fit.coef[:free],
        )

    def _polished(self, found: list[Fit], answer: int) -> list[Model]:
        """Models of fits once they are as close to their minimum as those that are returned."""
        fits = self._cache.fits
        if self.problem.costly:
            return [self._model(fit) for fit in self._polished_in_turn(found)]
        found = [fits.polished(fit) for fit in found]
        runs_away = diverged(fits, found)
        models = [replace(self._model(fit), diverged=runs) for fit, runs in zip(found, runs_away, strict=True)]
        fit = found[answer]
        worth = np.array([fits.difference(self._but(fit, unit), fit, READ_WITHIN) for unit in fit.units])
        models[answer] = replace(models[answer], importance=np.maximum(worth, 0.0), importance_is_exact=True)
        return models

    def _polished_in_turn(self, found: list[Fit]) -> list[Fit]:
        """Fits polished from the largest to the smallest: each takes over the curvature that the one before has met.

        What a search of a costly objective stands on is far from its minimum; so the rest of the way takes half as
        many values.
        """
        fits, larger = self._cache.fits, None
        for fit in sorted(found, key=lambda fit: -len(fit.units)):
            larger = fits.polished(fit if larger is None else fits.taught(fit, larger))
        return [fits.latest(fit) for fit in found]

    def _removal_estimates(self) -> dict[int, float]:
        """What leaving out each chosen unit costs to second order."""
        costs = self._cache.around(self._fit).removals()
        return dict(zip(self._fit.units, costs.tolist(), strict=True))

    def _addable(self) -> np.ndarray:
        return self.problem.usable & self.limits.addable(self.support, len(self.problem.units))

    def _by_gradient(self, addable: np.ndarray) -> int | None:
        gradient = self._cache.fits.gradient(self._fit)
        squares = self.limits.per_price(self.problem.totals(gradient * gradient))
        return first_largest(np.where(addable, squares, -np.inf))

    def _by_objective(self, addable: np.ndarray) -> int | None:
        if self.problem.gains is not None:
            gains = np.asarray(self.problem.gains(self._cache.fits.point(self._fit)), dtype=np.float64)
            ranked = self.limits.per_price(np.where(np.isfinite(gains), gains, 0.0))
            return first_largest(np.where(addable, ranked, -np.inf))
        around = self._cache.around(self._fit)
        units = self._shortlist(around, addable)
        return self._best_of(units, around.alone(units), TRUE_ALONE, self._gain_alone, addable)

    def _by_refit(self, addable: np.ndarray) -> int | None:
        around = self._cache.around(self._fit)
        units = self._shortlist(around, addable)
        return self._best_of(units, around.refitted(units), TRUE_ADDITIONS, self.decrease, addable)

    def _shortlist(self, around: LocalQuadratic, addable: np.ndarray) -> list[int]:
        return around.shortlist(self.limits.per_price(around.guess(around.gradient)), addable)

    def _best_of(
        self, units: list[int], estimates: np.ndarray, count: int, truth: Callable[[int], float], addable: np.ndarray
    ) -> int:
        """Of the few units with the highest estimates, the one that is best in truth; any, if none has a slope."""
        if not units:
            return int(np.argmax(addable))
        ranked = self.limits.per_price(estimates, units)
        found: dict[int, float] = {}
        for place in np.argsort(-ranked, kind="stable").tolist():
            gained = max(found.values(), default=0.0)
            # Where nothing has come of the first few, others may still do.
            if gained > self.negligible and (len(found) >= count or ranked[place] < WORTH_A_LOOK * gained):
                break
            found[units[place]] = self._per_price(truth(units[place]), units[place])
        looked_at = sorted(found)
        return looked_at[first_largest(np.array([found[unit] for unit in looked_at]))]

    def _gain_alone(self, unit: int) -> float:
        """How far the value falls if the coordinates of one unit move and all others stay."""
        fits, fit, coords = self._cache.fits, self._fit, self.problem.units.of([unit])
        begin = fits.aside(fit, coords)
        found = minimise(self.problem, coords, begin, lambda at: ALONE_WITHIN * (fit.value - at))
        return fit.value - found.value

    def _cost_of_zero(self, unit: int) -> float:
        """How far the value rises if the coordinates of one unit are set to zero and all others stay."""
        w = self._cache.fits.point(self._fit)
        if self.problem.removal_costs is not None:
            return float(np.asarray(self.problem.removal_costs(w, np.array([unit])))[0])
        w[self.problem.units.of([unit])] = 0.0
        return max(self.problem.value(w) - self.value, 0.0)

    def _cost_of_refit(self, unit: int) -> float:
        return max(self._above(self._but(self._fit, unit), self._fit), 0.0)

    def _gains_without(self, out: int) -> tuple[Rest, np.ndarray]:
        """Where the model would be without a unit, and what the diagonal says that others gain there."""
        rest = self._cache.fits.dropped(self._fit, frozenset([out]))
        guess = self._cache.around(self._fit).guess(rest.gradient)
        allowed = self.problem.usable & self.limits.exchangeable(self.support, out, len(guess))
        return rest, np.where(allowed, guess, -np.inf)

    def _best_swap(self) -> Swap | None:
        around, fit = self._cache.around(self._fit), self._fit
        pairs: list[tuple[float, int, int]] = []
        for out in self.support:
            rest, gains = self._gains_without(out)
            likely = around.shortlist(gains, gains > 0)
            if not likely:
                continue
            kept = fit.coords[~np.isin(fit.coords, self.problem.units.of([out]))]
            slope = rest.gradient[kept]
            assert rest.inverse is not None
            cost = max(rest.value - 0.5 * float(slope @ rest.inverse @ slope) - fit.value, 0.0)
            relief = gains[likely] / around.stiffness(likely, rest.inverse, kept)
            pairs += [
                (gain - cost, out, unit)
                for unit, gain in zip(likely, relief.tolist(), strict=True)
                if gain > WORTH_A_LOOK * cost
            ]
        for out, into in first_looks(pairs):
            swap = self._swapped(out, into)
            if is_lower(self.value - swap.decrease, self.value, self.negligible):
                return swap
        return None
