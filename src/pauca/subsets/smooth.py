"""A model of any convex loss kept fitted while units come and go: quadratics rank, previews and refits decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from pauca.clock import OutOfTime
from pauca.constraints.limits import Limits
from pauca.model import Model, Snapshot
from pauca.objectives import SmoothObjective
from pauca.subsets.base import SLACK, Pair, Swap, digest, first_largest, first_smallest, highest_scores, is_lower
from pauca.subsets.divergence import diverged
from pauca.subsets.fit_records import Fit, Preview, Solution
from pauca.subsets.local_quadratic import LocalQuadratic, feasible_slope
from pauca.subsets.refitted_subset import AdditionScores, RefittedSubset, Shortlist
from pauca.subsets.smooth_cache import KEPT_QUADRATICS, SmoothCache
from pauca.subsets.swap_search import SwapSearch

# A filled subset holds the columns of X twice: pooled, and gathered for the refit.
FILLED_ARRAYS = 2

# Additions that gain less than this share of the value may be combinations of chosen columns. Close to a perfect fit,
# at this share of the empty model's value, even a copy of a chosen column may lower what little is left.
SUSPICIOUS_BELOW = 1e-5
NEARLY_PERFECT = 1e-3

# Snapshots are small; this many serve the longest paths.
KEPT_SNAPSHOTS = 1 << 10

# Candidates whose curvature is computed exactly before they are ranked for previews, and the most that are previewed.
REFINED = 32
MOST_PREVIEWS = 16

# The pair that gains most together is looked for among so many candidates: the first number where rows are few, and
# products of columns take next to no time. Among 16 columns of 300 rows some pairs of Cox models were missed.
PAIRED, PAIRED_OF_MANY_ROWS = 32, 16
MANY_ROWS = 1000

# Previews are taken so many at a time: more where scores are short, and calls take longer than sums.
LEAST_PREVIEWS = 4
PREVIEWED_NUMBERS = 1 << 14

# Importances of a perfect fit are exact for no more units than this: from separated classes, whose coefficients are as
# large as the small ridge allows, the way to the minimum without a unit takes some thirty Newton steps.
EXACT_IF_PERFECT = 16

# Of the best previews so many are refitted before one is chosen, if they gain more than this share of the best.
REFITTED_PREVIEWS = 3
REFITTED_ABOVE = 0.98

# Below this share of the empty model's value classes are so nearly separated that estimates without a ridge say little:
# a scout has this one, so many of the best previews are refitted that gain this share of the best, and all removals.
# Ten digits without a ridge were up to 280 times above known models at sizes 16 to 19.
NEARLY_SEPARATED = 0.05
RIDGE_OF_SCOUT = 1e-5
REFITTED_IF_SEPARATED, REFITTED_IF_SEPARATED_ABOVE = 8, 0.5


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
        self.joint = cache.objective.smooth.joint
        self._fit = cache.fits.null
        super().__init__(cache)

    @classmethod
    def start(cls, objective: SmoothObjective, limits: Limits | None = None) -> SmoothSubset:
        """The least subset of an objective: the units that are always in."""
        return cls(SmoothCache(objective, limits or Limits()))

    @property
    def value(self) -> float:
        return self._fit.value

    @property
    def fit(self) -> Fit:
        """The current model."""
        return self._fit

    @property
    def cache(self) -> SmoothCache:
        """What all subsets of the objective share."""
        return self._cache

    @property
    def _uncertain(self) -> bool:
        """Whether estimates say little: classes are nearly separated, and there is no ridge."""
        return self.joint and not self.objective.ridge and self.value < NEARLY_SEPARATED * self.null_value

    def penalised(self) -> SmoothSubset | None:
        if not self._uncertain:
            return None
        objective = replace(self.objective, ridge=RIDGE_OF_SCOUT, standardize=True)
        return SmoothSubset(SmoothCache(objective, self._cache.limits))

    def moved_to(self, units: Iterable[int]) -> SmoothSubset:
        """A copy on another set of units."""
        other = self.copy()
        other._move_to(sorted(units))
        return other

    def snapshot(self) -> Snapshot:
        fits, fit, free, table = self._cache.fits, self._fit, self.objective.free, self._cache.snapshots
        key = frozenset(fit.units)
        found = table.get(key)
        if found is None or found.value != fit.value:
            intercept = fit.coef[:, 0] if free else np.zeros(self.objective.n_outputs)
            try:
                diverges = diverged(fits, fit)
            except OutOfTime:  # the model is kept without it
                diverges = False
            found = Snapshot(
                fit.units,
                fit.coef[:, free:],
                fit.value,
                np.zeros(0),
                intercept,
                reported=fits.reported(fit),
                diverged=diverges,
                converged=fit.converged,
            )
        table.keep(key, found, KEPT_SNAPSHOTS)
        return found

    def finish(self, snapshots: list[Snapshot], answer: int | None) -> list[Model]:
        fits = self._cache.fits
        estimated = [replace(one, importance=self._estimated(one, in_haste=answer is None)) for one in snapshots]
        models = self.objective.finish(estimated)
        if answer is None:
            return models
        fit = fits.of(frozenset(snapshots[answer].support), self._fit)
        if fit.value <= self.perfect_below and len(fit.units) > EXACT_IF_PERFECT:
            return models
        importance = np.maximum(fits.values_without(fit) - fit.value, 0.0)
        models[answer] = replace(models[answer], importance=importance, importance_is_exact=True)
        return models

    def _estimated(self, snapshot: Snapshot, *, in_haste: bool) -> np.ndarray:
        """Importances to second order; not numbers where the time is up and the Hessian is one of many classes."""
        fits, known, key = self._cache.fits, self._cache.importances, frozenset(snapshot.support)
        unknown = np.full(len(snapshot.support), np.nan)
        if not snapshot.support or (in_haste and self.objective.smooth.joint):
            return known.get(key, unknown)
        try:
            costs = fits.removal_costs(fits.of(key, self._fit))
        except OutOfTime:
            return known.get(key, unknown)
        # Squares of extreme coefficients may overflow: no removal costs more than the way back to the empty model.
        costs = np.where(np.isfinite(costs), costs, max(0.0, self.null_value - snapshot.value))
        known.keep(key, costs, KEPT_SNAPSHOTS)
        return costs

    def data_key(self) -> bytes:
        design, objective = self.objective.design, self.objective
        slope = self._cache.quadratic(self._cache.fits.null).slope
        bounds = objective.bounds or ()
        scalars = np.array([objective.ridge, objective.null_value, objective.origin])
        return digest((objective.y, design.weights, slope, design.mean, design.spread, *bounds, scalars))

    def use_products_of(self, other: Any) -> None:
        assert isinstance(other, SmoothSubset)
        self._cache.gram, self._cache.columns = other.cache.gram, other.cache.columns

    def dependent(self) -> np.ndarray:
        # A unit that was redundant on the way need not be so in the model the way has led to.
        met, pool = sorted(set(self._cache.redundant) - set(self.support)), self._cache.fits.pool
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
        self._cache.redundant.update(dict.fromkeys(set(units) - kept, frozenset(kept)))
        return [unit for unit in units if unit in kept]

    def _is_redundant(self, unit: int, replaced: int | None = None) -> bool:
        """Whether a unit is a combination of chosen columns or, with a ridge, a copy of one.

        Combinations gain next to nothing without a ridge, so only units that gain little are tested.
        """
        others = [other for other in self.support if other != replaced]
        if not others or self.objective.bounds is not None:
            # Within bounds a combination of columns may do what they cannot.
            return False
        may_gain = self.objective.ridge or self.value <= NEARLY_PERFECT * self.null_value
        if not may_gain and self._decrease_to(frozenset([*others, unit])) > SUSPICIOUS_BELOW * self.value:
            return False
        return self._cache.fits.pool.is_redundant(unit, others)

    def _independent(self, units: list[int], count: int) -> list[int]:
        if self.objective.bounds is not None:
            # Within bounds a combination of columns may do what they cannot.
            return units[:count]
        # A combination of chosen columns has no slope, unless there is a ridge or next to nothing left.
        may_gain = self.objective.ridge or self.value <= NEARLY_PERFECT * self.null_value
        chosen, found = self.support if may_gain else [], list[int]()
        for unit in units:
            if len(found) == count:
                break
            if self._cache.fits.pool.is_redundant(unit, [*chosen, *found]):
                self._cache.redundant[unit] = frozenset([*chosen, *found])
            else:
                found.append(unit)
        return found

    def _score_additions(self, rule: str, addable: np.ndarray, slack: float | None, count: int = 1) -> AdditionScores:
        quadratic, objective = self._quadratic, self.objective
        if rule == "refit":
            return AdditionScores(self._preview_gains(addable, slack, count), exact=True)
        if rule == "gradient":
            slope = feasible_slope(quadratic.slope, objective.bounds) * objective.design.spread
            return AdditionScores(objective.units.totals(np.einsum("cj,cj->j", slope, slope)), exact=True)
        if not objective.units.single or objective.n_outputs > 1:
            return AdditionScores(quadratic.own_gains(), exact=False)
        slope = np.where(addable, feasible_slope(quadratic.slope, objective.bounds)[0], np.nan)
        curvature = quadratic.exact_own()[0] if slack is None else quadratic.own[0][0, :, 0, 0]
        likely = None if slack is None else slack * self._cache.calibration_near(self._fit) * quadratic.own_gains()
        search = self._cache.coordinate_search(self._fit)
        return AdditionScores(search.best_gains(slope, curvature, self.limits.divisors, likely, count), exact=True)

    def _preview_gains(self, addable: np.ndarray, slack: float | None, count: int) -> np.ndarray:
        """What each unit gains after a refit: exact for the few that are best, minus infinity for the unlikely.

        Without a slack all are refitted.
        """
        gains = np.full(len(addable), -np.inf)
        if slack is None:
            gains[addable] = [self.decrease(unit) for unit in np.flatnonzero(addable).tolist()]
            return gains
        found = self._previews(self._fit, addable, slack, count=count)
        gains[list(found)] = [self.value - preview.value for preview in found.values()]
        per_price, most, above = self.limits.per_price(gains), REFITTED_PREVIEWS, REFITTED_ABOVE
        if self._uncertain:
            most, above = REFITTED_IF_SEPARATED, REFITTED_IF_SEPARATED_ABOVE
        close = highest_scores(per_price, most)
        for unit in [one for one in close if per_price[one] > above * per_price[close[0]]]:
            gains[unit] = self.decrease(unit)
        return gains

    def _previews(
        self, fit: Fit, addable: np.ndarray, slack: float = SLACK, at_least: float = np.inf, count: int = 1
    ) -> dict[int, Preview | Solution]:
        """Previews of a fit with each of the units that are likely to gain most per price.

        They are taken in the order of the estimates until ``slack`` times the next one is below the best gain, and
        below ``at_least``; if there are so many, at least ``count``.
        """
        fits, per_price = self._cache.fits, self.limits.per_price
        best, at_once = 0.0, max(LEAST_PREVIEWS, PREVIEWED_NUMBERS // self.objective.design.n_rows)
        if np.count_nonzero(addable) <= at_once:
            # To rank so few takes longer than to preview all of them.
            units = np.flatnonzero(addable).tolist()
            return dict(zip(units, fits.preview_additions(fit, units), strict=True))
        likely = self._likely_gains(fit, addable, max(MOST_PREVIEWS, count))
        units, found = list(likely), dict[int, Preview | Solution]()
        while len(found) < len(units):
            some = units[len(found) : len(found) + at_once]
            if len(found) >= count and slack * likely[some[0]] < min(best, at_least):
                break
            found.update(zip(some, fits.preview_additions(fit, some), strict=True))
            gains = np.array([fit.value - found[unit].value for unit in some])
            best = max(best, float(per_price(gains, some).max()))
        return found

    def _likely_gains(self, fit: Fit, addable: np.ndarray, most: int) -> dict[int, float]:
        """Estimated gains per price of the ``most`` units that are likely to gain most by a refit, highest first."""
        support, table, key = frozenset(fit.units), self._cache.likely_gains, addable.tobytes()
        known = table.get(support, {})
        if len(known.get(key, ())) < most:
            known[key] = self._find_likely_gains(fit, addable, max(REFINED, most))
            table.keep(support, known, KEPT_QUADRATICS)
        return dict(islice(known[key].items(), most))

    def _find_likely_gains(self, fit: Fit, addable: np.ndarray, most: int) -> dict[int, float]:
        cache, limits = self._cache, self.limits
        quadratic, objective = cache.quadratic(fit), self.objective
        if objective.smooth.narrow and objective.units.single and objective.n_outputs == 1:
            slope = np.where(addable, feasible_slope(quadratic.slope, objective.bounds)[0], np.nan)
            likely = SLACK * cache.calibration_near(fit) * quadratic.own_gains()
            search = cache.coordinate_search(fit)
            gains = search.best_gains(slope, quadratic.own[0][0, :, 0, 0], limits.divisors, likely, most)
            gains = limits.per_price(gains)
            return {unit: float(gains[unit]) for unit in highest_scores(np.where(gains > 0, gains, -np.inf), most)}
        gains = np.where(addable, limits.per_price(cache.calibration * quadratic.refit_gains), -np.inf)
        units = highest_scores(gains, most)
        if self.objective.units.single:
            refined = limits.per_price(cache.calibration[units] * quadratic.refined_gains(units), units)
            order = np.argsort(-refined, kind="stable")
            return {units[place]: float(refined[place]) for place in order}
        return {unit: float(gains[unit]) for unit in units}

    def _removal_estimates(self, units: Sequence[int]) -> np.ndarray:
        """What removing each of some chosen units costs to second order."""
        if not units:
            return np.zeros(0)
        costs = self._cache.fits.removal_costs(self._fit)
        return costs[np.searchsorted(self._fit.units, units)]

    def _likely_cheapest(self) -> int | None:
        if self.value <= NEARLY_PERFECT * self.null_value and not self.objective.smooth.joint:
            # Around a perfect fit there is no curvature that could tell what a removal costs. Where outputs share a
            # loss, previews go on from there by Newton steps.
            return super()._likely_cheapest()
        removable = self.limits.removable(self.support)
        units = [unit for unit, may in zip(self.support, removable, strict=True) if may]
        likely = list(self._likely_removals(units, np.inf, SLACK, None if self._uncertain else self.shortlist.removals))
        if self._uncertain and self.limits.divisors is None:
            return self._cheapest_refitted(likely)
        previews = self._cache.fits.preview_removals(self._fit, likely)
        costs = self.limits.per_price(np.array([preview.value - self.value for preview in previews]), likely)
        return likely[first_smallest(costs, likely)] if likely else None

    def _cheapest_refitted(self, units: list[int]) -> int | None:
        """The first of the removals that leave the lowest value, refits of others being given up early."""
        found, lowest = None, np.inf
        for unit in units:
            fit = self._cache.fits.below(lowest, frozenset(self.support) - {unit}, self._fit)
            if fit is not None and fit.value < lowest:
                found, lowest = unit, fit.value
        return found

    def _gain_alone(self, unit: int) -> float:
        return self._cache.fits.gain_alone(self._fit, unit)

    def _gains_together(self, units: list[int]) -> dict[int, float]:
        return self._cache.fits.gains_alone(self._fit, units)

    def _zero_costs(self, units: list[int], at_most: float, slack: float) -> dict[int, float]:
        return {unit: self._zero_cost(unit) for unit in units}

    def _zero_cost(self, unit: int) -> float:
        objective = self.objective
        coef = self._fit.coef.copy()
        coef[:, objective.free :][:, objective.units.owner[objective.units.of(self._fit.units)] == unit] = 0.0
        return max(self._cache.fits.value_at(self._fit, coef) - self.value, 0.0)

    def likely_pair(self) -> Pair | None:
        return self._answer(self._find_pair, "pair")

    def _find_pair(self) -> Pair | None:
        objective, cache = self.objective, self._cache
        single = objective.units.single or bool(np.all(objective.units.sizes() == 1))
        if not single or not self.limits.trivial or objective.bounds is not None:
            return None
        if self.value <= self.perfect_below:
            return None
        addable = self._not_redundant()
        most = PAIRED if objective.design.n_rows < MANY_ROWS else PAIRED_OF_MANY_ROWS
        few = np.count_nonzero(addable) <= most
        units = np.flatnonzero(addable).tolist() if few else sorted(self._likely_gains(self._fit, addable, most))
        if len(units) < 2:
            return None
        known = cache.calibration[units]
        gains = np.triu(cache.quadratic(self._fit).pair_gains(units) * np.sqrt(np.outer(known, known)))
        first, second = divmod(first_largest(gains.ravel()), len(units))
        pair = [units[first], units[second]]
        if not gains[first, second] > 0:
            return None
        each = known[[first, second]] * cache.quadratic(self._fit).refined_gains(pair)
        # Two columns that depend on each other gain no more than one, or with a ridge little more.
        may_depend = objective.ridge or gains[first, second] <= (1 + SUSPICIOUS_BELOW) * each.max()
        if may_depend and self._independent(pair, 2) != pair:
            return None
        # The quadratic errs for a pair as it does for its units.
        alone = sum(self.value - preview.value for preview in cache.fits.preview_additions(self._fit, pair))
        expected = float(each.sum())
        return Pair(pair[0], pair[1], float(gains[first, second]) * alone / expected)

    # Swaps: a unit is added and another dropped. No swap gains more than its addition, so few additions matter.

    def _find_swap(self) -> Swap | None:
        if not self.support or self.value <= self.perfect_below:
            return None
        search = SwapSearch(self._cache.fits, self._fit)
        mask = self.usable & self.limits.startable(len(self.usable))
        mask[self.support] = False
        search.previews = self._previews(self._fit, mask, at_least=search.cheapest)
        for out, into in search.likely(self._allowed_swaps):
            fit = self._cache.fits.below(self.value, search.swapped(out, into), search.previews[into])
            if fit is None or not is_lower(fit.value, self.value, self.negligible):
                continue
            if not self._is_redundant(into, out):
                return Swap(out, into, self.value - fit.value)
        return None

    def _allowed_swaps(self, units: list[int]) -> np.ndarray:
        """Mask of the swaps that the limits allow: a line for each of ``units``, the units of the fit across."""
        if self.limits.trivial:
            return np.ones((len(units), self.size), dtype=bool)
        allowed = [self._may_replace(out)[units] for out in self._fit.units]
        return np.column_stack(allowed)

    def replacements(self, count: int) -> dict[int, list[Swap]]:
        found: dict[int, list[Swap]] = {}
        for out in self.support:
            rest = self._cache.fits.of(frozenset(self.support) - {out}, self._fit)
            likely = self._previews(rest, self._may_replace(out))
            nearest = sorted(likely, key=lambda unit: (likely[unit].value, unit))
            nearest = nearest[: count + self.shortlist.extra_replacements]
            swaps = [self._refitted_swap(out, into) for into in nearest]
            found[out] = sorted(swaps, key=lambda swap: (-swap.decrease, swap.into))[:count]
        return found
