"""A model of any convex loss kept fitted while units come and go: quadratics rank, refits decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pauca.constraints.limits import Limits
from pauca.model import Model, Snapshot
from pauca.objectives import SmoothObjective
from pauca.objectives.gram import GramRows
from pauca.solvers.newton import minimise
from pauca.subsets.base import (
    TRUE_SWAPS,
    Swap,
    digest,
    first_largest,
    first_looks,
    first_smallest,
    highest,
    is_lower,
    require_memory,
    towards,
)
from pauca.subsets.coordinate_search import best_along_one
from pauca.subsets.dependence import independent, says_nothing_new, without_copies
from pauca.subsets.fits import Fit, Fits
from pauca.subsets.importance import diverged, worth
from pauca.subsets.local_quadratic import Blocks, LocalQuadratic, UnitBlocks
from pauca.subsets.refitted import RefitSubset

# How many of those that the quadratic ranks first are looked at in truth.
TRUE_ADDITIONS = 3
TRUE_REMOVALS = 3
TRUE_BLOCKS = 8
MOST_LOOKS = 32

# A candidate that the quadratic puts below this share of the best found in truth is not looked at.
WORTH_A_LOOK = 0.5

# How many replacements are looked at in truth beyond those that are wanted.
MORE_REPLACEMENTS = 2

# A filled subset holds the columns of X twice: pooled, and gathered for the refit.
FILLED_ARRAYS = 2

# A removal that the quadratic puts at this many times what may be paid is not looked at.
FAR_MORE = 2.0

# Additions that gain less than this share of the value may be combinations of chosen columns.
SUSPICIOUS_BELOW = 1e-5
NEARLY_PERFECT = 1e-3


# Local quadratics kept, the run's own and those of its scouts: so many, but no more than take this many bytes beyond
# the run's own. Each holds up to three arrays of the size of the chosen rows of the Gram matrix.
KEPT_LOCALS = 6
LOCALS_BYTES = 1 << 28
ARRAYS_EACH = 3


class SubsetCache:
    """What all subsets of one objective share: fits, quadratics and the answers that depend on the support alone."""

    def __init__(self, objective: SmoothObjective, limits: Limits) -> None:
        self.objective = objective
        self.limits = limits
        self.fits = Fits(objective)
        self.gram = GramRows(objective.design)
        self.blocks = UnitBlocks(objective.units, objective.design.usable)
        self.additions: dict[tuple[frozenset[int], str, bool], int | None] = {}
        self.swaps: dict[frozenset[int], Swap | None] = {}
        self.copies: set[int] = set()
        self._locals: dict[frozenset[int], LocalQuadratic] = {}
        self._own: Blocks | None = None

    def local(self, fit: Fit) -> LocalQuadratic:
        """The quadratic around a fit."""
        key = frozenset(fit.units)
        found = self._locals.pop(key, None) or LocalQuadratic(self.fits, fit, self.blocks, self.gram)
        self._locals[key] = found
        if self.objective.smooth.quadratic:
            # The Hessian is the same everywhere.
            if self._own is None:
                self._own = found.own
            found.own = self._own
        each = ARRAYS_EACH * 8 * max(1, fit.coef.size) * self.objective.design.n_features
        while len(self._locals) > min(KEPT_LOCALS, 1 + LOCALS_BYTES // each):
            self._locals.pop(next(iter(self._locals)))
        return found


class SmoothSubset(RefitSubset):
    """The fitted model on a set of units; every answer is a function of that set alone.

    Candidates, removals and exchanges are ranked by the local quadratic and then refitted in truth; only what lowers
    (or raises) the true objective as it should is taken.
    """

    def __init__(self, ground: SubsetCache) -> None:
        self._cache = ground
        self.limits = ground.limits
        self.objective = ground.objective
        self.null_value = ground.objective.null_value
        self.negligible = ground.objective.negligible
        self.perfect_below = ground.objective.perfect_below
        self._fit = ground.fits.null
        self.support: list[int] = []
        self.null = self.snapshot()
        for unit in self.limits.always:
            self.add(unit)

    @classmethod
    def start(cls, objective: SmoothObjective, limits: Limits | None = None) -> SmoothSubset:
        """The least subset of an objective: the units that are always in."""
        return cls(SubsetCache(objective, limits or Limits()))

    @property
    def value(self) -> float:
        return self._fit.value

    def best_addition(self, rule: str) -> int | None:
        key = (frozenset(self.support), rule, self.limits is self._cache.limits)
        additions = self._cache.additions
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
        if key not in self._cache.swaps:
            self._cache.swaps[key] = self._best_swap()
        return self._cache.swaps[key]

    def replacements(self, count: int) -> dict[int, list[Swap]]:
        found: dict[int, list[Swap]] = {}
        for out, _, gains in self._cache.local(self._fit).exchanges():
            allowed = self._cache.blocks.usable & self.limits.exchangeable(self.support, out, len(gains))
            gains[~allowed] = -np.inf
            swaps = [self._swapped(out, into) for into in highest(gains, count + MORE_REPLACEMENTS)]
            found[out] = sorted(swaps, key=lambda swap: (-swap.decrease, swap.into))[:count]
        return found

    def add(self, unit: int) -> None:
        self._fit = self._with(unit)
        self.support.append(unit)

    def drop(self, unit: int) -> None:
        self._fit = self._without(unit)
        self.support.remove(unit)

    def fill(self) -> None:
        startable = self.limits.startable(len(self.objective.units))
        units = [int(unit) for unit in np.flatnonzero(self._cache.blocks.usable & startable)]
        numbers = len(self.objective.units.of(units)) * self.objective.design.n_rows
        require_memory(FILLED_ARRAYS * 8 * numbers, f"Starting from all {len(units)} columns or groups")
        says_more = without_copies if self.objective.ridge else independent
        # Within bounds a combination of columns may do what they cannot.
        if self.objective.bounds is None and (self.objective.units.single or not self.objective.ridge):
            # What must be in stays in.
            kept = set(says_more(self._cache.fits, units)) | set(self.limits.always)
            self._cache.copies.update(set(units) - kept)
            units = [unit for unit in units if unit in kept]
        self.support = units
        self._fit = self._cache.fits.of(frozenset(self.support), self._fit)

    def restarted(self) -> SmoothSubset:
        return SmoothSubset(self._cache)

    def snapshot(self) -> Snapshot:
        fits, fit, free = self._cache.fits, self._fit, self.objective.free
        return Snapshot(
            fit.units,
            fit.coef[:, free:],
            fit.value,
            np.zeros(0),
            fit.coef[:, 0] if free else np.zeros(self.objective.n_outputs),
            np.array(list(self._removal_estimates().values())),
            fits.reported(fit),
            diverged(fits, fit),
            fit.converged,
        )

    def finish(self, snapshots: list[Snapshot], answer: int) -> list[Model]:
        models = self.objective.finish(snapshots)
        chosen = snapshots[answer]
        fit = self._cache.fits.of(frozenset(chosen.support), self._fit)
        worth = np.array([max(self._cache.fits.value_without(fit, unit) - fit.value, 0.0) for unit in fit.units])
        models[answer] = replace(models[answer], importance=worth, importance_is_exact=True)
        return models

    def held_back(self) -> bool:
        could = self._cache.blocks.usable.copy()
        could[[*self.limits.never, *self.support]] = False
        return bool(np.any(could & ~self._addable()))

    def data_key(self) -> bytes:
        design, objective = self.objective.design, self.objective
        slope = self._cache.local(self._cache.fits.null).slope
        bounds = objective.bounds or ()
        scalars = np.array([objective.ridge, objective.null_value])
        return digest((objective.y, design.weights, slope, design.mean, design.spread, *bounds, scalars))

    def dependent(self) -> np.ndarray:
        # What was barred on the way need not depend on where the way has led to.
        met = sorted(self._cache.copies - set(self.support))
        return np.array([unit for unit in met if says_nothing_new(self._cache.fits, unit, self.support)], dtype=np.intp)

    def _swapped(self, out: int, into: int) -> Swap:
        fit = self._cache.fits.of(frozenset(self.support) - {out} | {into}, self._fit)
        return Swap(out, into, self.value - fit.value)

    def _with(self, unit: int) -> Fit:
        return self._cache.fits.of(frozenset([*self.support, unit]), self._fit)

    def _without(self, unit: int) -> Fit:
        return self._cache.fits.of(frozenset(self.support) - {unit}, self._fit)

    def _removal_estimates(self) -> dict[int, float]:
        """What leaving out each chosen unit costs to second order."""
        if not self.support:
            return {}
        if self.objective.smooth.flat or self.objective.bounds is not None:
            costs = self._cache.local(self._fit).removal_costs()
        else:
            costs = worth(self._cache.fits, self._fit)
        return dict(zip(self._fit.units, costs.tolist(), strict=True))

    def _addable(self) -> np.ndarray:
        return self._cache.blocks.usable & self.limits.addable(self.support, len(self.objective.units))

    def _best_addition(self, rule: str) -> int | None:
        addable = self._addable()
        while addable.any():
            found = {"gradient": self._by_gradient, "objective": self._by_objective, "refit": self._by_refit}[rule](
                addable
            )
            if found is None or not self._is_barred(found):
                return found
            self._cache.copies.add(found)
            addable[found] = False
        return None

    def _by_gradient(self, addable: np.ndarray) -> int | None:
        objective = self.objective
        slope = towards(self._cache.local(self._fit).slope, objective.bounds) * objective.design.spread
        squares = objective.units.totals(np.einsum("cj,cj->j", slope, slope))
        scores = np.where(addable, self.limits.per_price(squares), -np.inf)
        return first_largest(scores)

    def _by_objective(self, addable: np.ndarray) -> int | None:
        local, objective = self._cache.local(self._fit), self.objective
        price = self.limits.per_price(np.ones(len(addable))) ** -1
        if objective.units.single and objective.n_outputs == 1:
            curvature = local.own[0][0, :, 0, 0]
            slope = np.where(addable, towards(local.slope, objective.bounds)[0], np.nan)
            found = best_along_one(objective, local.scores[0], slope, curvature, price)
            return found if found is not None else int(np.argmax(addable))
        estimates = np.where(addable, local.own_gains() / price, -np.inf)
        return self._best_of(estimates, TRUE_BLOCKS, lambda unit: self._gain_alone(unit) / price[unit])

    def _by_refit(self, addable: np.ndarray) -> int | None:
        gains = self._cache.local(self._fit).refit_gains()
        estimates = np.where(addable, self.limits.per_price(gains), -np.inf)
        return self._best_of(estimates, TRUE_ADDITIONS, lambda unit: self._per_price(self.decrease(unit), unit))

    def _best_of(self, estimates: np.ndarray, count: int, truth: Callable[[int], float]) -> int:
        """Of the few units with the highest estimates, the one that is best in truth."""
        found: dict[int, float] = {}
        for unit in highest(estimates, MOST_LOOKS):
            gained = max(found.values(), default=0.0)
            # Where nothing has come of the first few, others may still do.
            if gained > self.negligible and (len(found) >= count or estimates[unit] < WORTH_A_LOOK * gained):
                break
            found[unit] = truth(unit)
        looked_at = sorted(found)
        return looked_at[first_largest(np.array([found[unit] for unit in looked_at]))]

    def _gain_alone(self, unit: int) -> float:
        """How far the value falls if the coefficients of one unit move and all others stay."""
        columns = self._cache.fits.pool.gather([unit])[self.objective.free :]
        features = self.objective.units.of([unit])
        scores = self._cache.local(self._fit).scores
        problem = self.objective.restricted(columns, features, offset=scores)
        start = np.zeros((self.objective.n_outputs, len(features)))
        before = problem.value(start, np.zeros_like(scores))
        return before - minimise(problem, start).value

    def _cost_of_zero(self, unit: int) -> float:
        """How far the value rises if the coefficients of one unit are set to zero and all others stay."""
        fits, objective = self._cache.fits, self.objective
        features = objective.units.of(self._fit.units)
        coef = self._fit.coef.copy()
        coef[:, objective.free :][:, objective.units.owner[features] == unit] = 0.0
        problem = objective.restricted(fits.pool.gather(self._fit.units), features)
        return max(problem.value(coef, problem.scores(coef)) - self.value, 0.0)

    def _best_swap(self) -> Swap | None:
        if not self.support:
            return None
        local, n_units = self._cache.local(self._fit), len(self.objective.units)
        pairs: list[tuple[float, int, int]] = []
        for out, cost, gains in local.exchanges():
            gains[self.support] = -np.inf
            if gains.max() <= WORTH_A_LOOK * cost:
                continue
            allowed = self._cache.blocks.usable & self.limits.exchangeable(self.support, out, n_units)
            gains[~allowed] = -np.inf
            likely = [unit for unit in highest(gains, TRUE_SWAPS) if gains[unit] > WORTH_A_LOOK * cost]
            pairs += [(float(gains[unit]) - cost, out, unit) for unit in likely]
        for out, into in first_looks(pairs):
            swap = self._swapped(out, into)
            if is_lower(self.value - swap.decrease, self.value, self.negligible) and not self._is_barred(into, out):
                return swap
        return None

    def _is_barred(self, unit: int, leaving: int | None = None) -> bool:
        """Whether a unit says nothing new: a combination of chosen columns or, with a ridge, a copy of one.

        Combinations gain next to nothing without a ridge, so only such units are looked at.
        """
        others = [other for other in self.support if other != leaving]
        if not others or self.objective.bounds is not None:
            # Within bounds a combination of columns may do what they cannot.
            return False
        # Close to a perfect fit even a copy may lower what little is left.
        nearly_perfect = self.value <= NEARLY_PERFECT * self.null_value
        small = leaving is not None or nearly_perfect or self.decrease(unit) <= SUSPICIOUS_BELOW * self.value
        return (small or bool(self.objective.ridge)) and says_nothing_new(self._cache.fits, unit, others)
