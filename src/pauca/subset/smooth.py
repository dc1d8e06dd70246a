"""A model of any convex loss kept fitted while units come and go: quadratics rank, refits decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from pauca.model import Model, Snapshot
from pauca.objectives import SmoothObjective
from pauca.refit import minimise
from pauca.subset.along import best_along_one
from pauca.subset.base import Swap, digest, first_largest, first_smallest, is_lower
from pauca.subset.dependence import depends, independent, is_copy
from pauca.subset.fits import Fit
from pauca.subset.ground import Ground
from pauca.subset.memory import require_memory
from pauca.subset.worth import at_infinity, worth
from pauca.units import Limits

# How many of those that the quadratic ranks first are looked at in truth.
TRUE_ADDITIONS = 3
TRUE_REMOVALS = 3
TRUE_SWAPS = 6
LOOKS_PER_UNIT = 2
TRUE_BLOCKS = 8

# A candidate that the quadratic puts below this share of the best found in truth is not looked at.
WORTH_A_LOOK = 0.5

# A filled subset holds the columns of X twice: pooled, and gathered for the refit.
FILLED_ARRAYS = 2

# A removal that the quadratic puts at this many times what may be paid is not looked at.
FAR_MORE = 2.0

# Additions that gain less than this share of the value may be combinations of chosen columns.
SUSPICIOUS_BELOW = 1e-5


class SmoothSubset:
    """The fitted model on a set of units; every answer is a function of that set alone.

    Candidates, removals and exchanges are ranked by the local quadratic and then refitted in truth; only what lowers
    (or raises) the true objective as it should is taken.
    """

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.limits = ground.limits
        self.objective = ground.objective
        self.null_value = ground.objective.null_value
        self.negligible = ground.objective.negligible
        self._fit = ground.fits.null
        self.support: list[int] = []
        self.null = self.snapshot()
        for unit in self.limits.always:
            self.add(unit)

    @classmethod
    def start(cls, objective: SmoothObjective, limits: Limits | None = None) -> SmoothSubset:
        """The least subset of an objective: the units that are always in."""
        return cls(Ground(objective, limits or Limits()))

    @property
    def size(self) -> int:
        return len(self.support)

    @property
    def value(self) -> float:
        return self._fit.value

    def expect(self, size: int | None) -> None:
        """Nothing to lay out."""

    def best_addition(self, rule: str) -> int | None:
        key = (frozenset(self.support), rule, self.limits is self._ground.limits)
        additions = self._ground.additions
        if key not in additions:
            additions[key] = self._best_addition(rule)
        return additions[key]

    def decrease(self, unit: int) -> float:
        return self.value - self._with(unit).value

    def cheapest_removal(self, removal: str, at_most: float = np.inf) -> tuple[int, float] | None:
        removable = self.limits.removable(self.support)
        units = [unit for unit, may in zip(self.support, removable, strict=True) if may]
        if not units:
            return None
        if removal == "zero":
            costs = np.array([self._cost_of_zero(unit) for unit in units])
            place = first_smallest(self.limits.per_price(costs, units), units)
            return units[place], float(costs[place])
        estimates = self._removal_estimates()
        payable = [unit for unit in units if estimates[unit] <= FAR_MORE * at_most]
        ranked = sorted(payable, key=lambda unit: (self._per_price(estimates[unit], unit), unit))
        if not ranked:
            return None
        true: dict[int, float] = {}
        for unit in ranked[:TRUE_REMOVALS]:
            least = min((self._per_price(cost, other) for other, cost in true.items()), default=np.inf)
            if WORTH_A_LOOK * self._per_price(estimates[unit], unit) > least:
                break
            true[unit] = max(self._without(unit).value - self.value, 0.0)
        looked_at = list(true)
        place = first_smallest(np.array([self._per_price(true[unit], unit) for unit in looked_at]), looked_at)
        return looked_at[place], true[looked_at[place]]

    def best_swap(self) -> Swap | None:
        key = frozenset(self.support)
        if key not in self._ground.swaps:
            self._ground.swaps[key] = self._best_swap()
        return self._ground.swaps[key]

    def add(self, unit: int) -> None:
        self._fit = self._with(unit)
        self.support.append(unit)

    def drop(self, unit: int) -> None:
        self._fit = self._without(unit)
        self.support.remove(unit)

    def cheapest_removals(self, size: int | None, limits: Limits) -> list[int]:
        twin = self.copy()
        twin.limits = limits
        while (size is not None and twin.size > size) or not limits.allows(twin.support):
            found = twin.cheapest_removal("refit")
            if found is None:
                break
            twin.drop(found[0])
        return [unit for unit in self.support if unit not in twin.support]

    def fill(self) -> None:
        startable = self.limits.startable(len(self.objective.units))
        units = [int(unit) for unit in np.flatnonzero(self._ground.blocks.usable & startable)]
        numbers = len(self.objective.units.of(units)) * self.objective.design.n_rows
        require_memory(FILLED_ARRAYS * 8 * numbers, f"Starting from all {len(units)} columns or groups")
        if not self.objective.ridge:
            # What must be in stays in.
            kept = set(independent(self._ground.fits, units)) | set(self.limits.always)
            self._ground.copies.update(set(units) - kept)
            units = [unit for unit in units if unit in kept]
        self.support = units
        self._fit = self._ground.fits.of(frozenset(self.support), self._fit)

    def copy(self) -> SmoothSubset:
        twin = SmoothSubset.__new__(SmoothSubset)
        twin.__dict__.update(self.__dict__, support=list(self.support))
        return twin

    @contextmanager
    def trial(self) -> Iterator[None]:
        support, fit, limits = list(self.support), self._fit, self.limits
        if limits.budget is not None or limits.kind is not None:
            self.limits = limits.relaxed()
        try:
            yield
        finally:
            self.support, self._fit, self.limits = support, fit, limits

    def anew(self) -> SmoothSubset:
        return SmoothSubset(self._ground)

    def snapshot(self) -> Snapshot:
        fits, fit, free = self._ground.fits, self._fit, self.objective.free
        return Snapshot(
            fit.units,
            fit.coef[:, free:],
            fit.value,
            np.zeros(0),
            fit.coef[:, 0] if free else np.zeros(self.objective.n_outputs),
            worth(fits, fit) if fit.units else np.zeros(0),
            fits.reported(fit),
            at_infinity(fits, fit),
        )

    def finish(self, snapshots: list[Snapshot]) -> list[Model]:
        return self.objective.finish(snapshots)

    def held_back(self) -> bool:
        could = self._ground.blocks.usable.copy()
        could[[*self.limits.never, *self.support]] = False
        return bool(np.any(could & ~self._addable()))

    def data_key(self) -> bytes:
        design, objective = self.objective.design, self.objective
        slope = self._ground.local(self._ground.fits.null).slope
        bounds = objective.bounds or ()
        scalars = np.array([objective.ridge, objective.null_value])
        return digest((slope, design.mean, design.spread, *bounds, objective.null.coef, scalars))

    def dependent(self) -> np.ndarray:
        return np.array(sorted(self._ground.copies - set(self.support)), dtype=np.intp)

    def _with(self, unit: int) -> Fit:
        return self._ground.fits.of(frozenset([*self.support, unit]), self._fit)

    def _without(self, unit: int) -> Fit:
        return self._ground.fits.of(frozenset(self.support) - {unit}, self._fit)

    def _removal_estimates(self) -> dict[int, float]:
        """What leaving out each chosen unit costs to second order."""
        if self.objective.smooth.flat or self.objective.bounds is not None:
            costs = self._ground.local(self._fit).removal_costs()
        else:
            costs = worth(self._ground.fits, self._fit)
        return dict(zip(self._fit.units, costs.tolist(), strict=True))

    def _per_price(self, gain: float, unit: int) -> float:
        return float(self.limits.per_price(np.array([gain]), [unit])[0])

    def _addable(self) -> np.ndarray:
        return self._ground.blocks.usable & self.limits.addable(self.support, len(self.objective.units))

    def _best_addition(self, rule: str) -> int | None:
        addable = self._addable()
        while addable.any():
            found = {"gradient": self._by_gradient, "objective": self._by_objective, "refit": self._by_refit}[rule](
                addable
            )
            if found is None or not self._is_barred(found):
                return found
            self._ground.copies.add(found)
            addable[found] = False
        return None

    def _by_gradient(self, addable: np.ndarray) -> int | None:
        objective = self.objective
        slope = _towards(self._ground.local(self._fit).slope, objective.bounds) * objective.design.spread
        squares = objective.units.totals(np.einsum("cj,cj->j", slope, slope))
        scores = np.where(addable, self.limits.per_price(squares), -np.inf)
        return first_largest(scores)

    def _by_objective(self, addable: np.ndarray) -> int | None:
        local, objective = self._ground.local(self._fit), self.objective
        price = self.limits.per_price(np.ones(len(addable))) ** -1
        if objective.units.single and objective.n_outputs == 1:
            curvature = local.own[0][0, :, 0, 0]
            slope = np.where(addable, _towards(local.slope, objective.bounds)[0], np.nan)
            found = best_along_one(objective, local.scores[0], slope, curvature, price)
            return found if found is not None else int(np.argmax(addable))
        estimates = np.where(addable, local.own_gains() / price, -np.inf)
        return self._best_of(estimates, TRUE_BLOCKS, lambda unit: self._gain_alone(unit) / price[unit])

    def _by_refit(self, addable: np.ndarray) -> int | None:
        gains = self._ground.local(self._fit).refit_gains()
        estimates = np.where(addable, self.limits.per_price(gains), -np.inf)
        return self._best_of(estimates, TRUE_ADDITIONS, lambda unit: self._per_price(self.decrease(unit), unit))

    def _best_of(self, estimates: np.ndarray, count: int, truth: Callable[[int], float]) -> int:
        """Of the few units with the highest estimates, the one that is best in truth."""
        ranked = _highest(estimates, count)
        found: dict[int, float] = {}
        for unit in ranked:
            if found and estimates[unit] < WORTH_A_LOOK * max(found.values()):
                break
            found[unit] = truth(unit)
        looked_at = sorted(found)
        return looked_at[first_largest(np.array([found[unit] for unit in looked_at]))]

    def _gain_alone(self, unit: int) -> float:
        """How far the value falls if the coefficients of one unit move and all others stay."""
        columns = self._ground.fits.pool.gather([unit])[self.objective.free :]
        features = self.objective.units.of([unit])
        scores = self._ground.local(self._fit).scores
        problem = self.objective.restricted(columns, features, offset=scores)
        start = np.zeros((self.objective.n_outputs, len(features)))
        before = problem.value(start, np.zeros_like(scores))
        return before - minimise(problem, start).value

    def _cost_of_zero(self, unit: int) -> float:
        """How far the value rises if the coefficients of one unit are set to zero and all others stay."""
        fits, objective = self._ground.fits, self.objective
        features = objective.units.of(self._fit.units)
        coef = self._fit.coef.copy()
        coef[:, objective.free :][:, objective.units.owner[features] == unit] = 0.0
        problem = objective.restricted(fits.pool.gather(self._fit.units), features)
        return max(problem.value(coef, problem.scores(coef)) - self.value, 0.0)

    def _best_swap(self) -> Swap | None:
        if not self.support:
            return None
        local, n_units = self._ground.local(self._fit), len(self.objective.units)
        pairs: list[tuple[float, int, int]] = []
        for out in sorted(self.support):
            allowed = self._ground.blocks.usable & self.limits.exchangeable(self.support, out, n_units)
            if not allowed.any():
                continue
            cost, gains = local.gains_after_removal(out)
            gains = np.where(allowed, gains, -np.inf)
            likely = [unit for unit in _highest(gains, TRUE_SWAPS) if gains[unit] > WORTH_A_LOOK * cost]
            pairs += [(float(gains[unit]) - cost, out, unit) for unit in likely]
        for out, into in _first_looks(pairs):
            fit = self._ground.fits.of(frozenset(self.support) - {out} | {into}, self._fit)
            if is_lower(fit.value, self.value, self.negligible) and not self._is_barred(into, out):
                return Swap(out, into, self.value - fit.value)
        return None

    def _is_barred(self, unit: int, leaving: int | None = None) -> bool:
        """Whether a unit says nothing new: a combination of chosen columns or, with a ridge, a copy of one.

        Combinations gain next to nothing without a ridge, so only such units are looked at.
        """
        others = [other for other in self.support if other != leaving]
        if not others:
            return False
        fits = self._ground.fits
        if self.objective.ridge:
            return self.objective.units.single and is_copy(fits, unit, others)
        suspicious = leaving is not None or self.decrease(unit) <= SUSPICIOUS_BELOW * self.value
        return suspicious and depends(fits, unit, others)


def _towards(slope: np.ndarray, bounds: tuple[np.ndarray, np.ndarray] | None) -> np.ndarray:
    """Slopes with those set to zero along which a coefficient of zero may not move."""
    if bounds is None:
        return slope
    return np.where(((slope > 0) & (bounds[1] <= 0)) | ((slope < 0) & (bounds[0] >= 0)), 0.0, slope)


def _first_looks(pairs: list[tuple[float, int, int]]) -> list[tuple[int, int]]:
    """The exchanges (out, into) to look at in truth: the best ranked, but no unit too often.

    A unit that the quadratic overrates would else take all the looks.
    """
    looks: list[tuple[int, int]] = []
    for _, out, into in sorted(pairs, key=lambda pair: (-pair[0], pair[2], pair[1])):
        if sum(into == other for _, other in looks) < LOOKS_PER_UNIT:
            looks.append((out, into))
        if len(looks) == TRUE_SWAPS:
            break
    return looks


def _highest(scores: np.ndarray, count: int) -> list[int]:
    """Indices of the highest finite scores, highest first, ties in order."""
    count = min(count, len(scores))
    some = np.argpartition(-scores, count - 1)[:count]
    some = some[np.isfinite(scores[some])]
    return [int(i) for i in sorted(some, key=lambda i: (-scores[i], i))]
