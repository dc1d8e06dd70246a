"""The refits of a smooth objective, kept so that each support is fitted once, and their second-order properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TypeVar

import numpy as np

from pauca.clock import check_time
from pauca.objectives import (
    FittedModel,
    Previews,
    Restricted,
    Rows,
    SmoothObjective,
    WarmStart,
    has_cheap_hessian,
    joint_line_gains,
    warm_start_near,
)
from pauca.solvers.factorisation import inverse_or_nearest, solve_or_nearest
from pauca.solvers.newton import EXACT, Accuracy, Minimum, minimise
from pauca.subsets.fit_records import Fit, Preview, PreviewsTogether, Solution
from pauca.subsets.standardized_columns import ColumnCache, few_at_a_time
from pauca.tolerances import TINY

# Scores and Hessians are kept for as many fits as take this many bytes, or at least so many: some are needed again.
KEPT_BYTES = 1 << 26
LEAST_KEPT = 8

# What is remembered of a support, the set of its units included, takes about so many bytes for each unit.
BYTES_PER_UNIT = 100

# The last step towards a value that is only reported predicts no more than this share of it; where outputs share a
# loss, each step costs far more.
REPORTED = Accuracy(within=1e-7)
REPORTED_JOINTLY = Accuracy(within=1e-5)

# An importance is reported to this share of itself, where that is less accurate: of classes that are nearly separable
# the last digits of a value take many steps.
IMPORTANCE_WITHIN = 1e-4

# So many quasi-Newton steps, taken for all units at once, usually suffice for it; where they do not, Newton's do.
MOST_REPORTED_STEPS = 12

# Where outputs share a loss and their values are below this share of the empty model's, they are fitted to this share
# of the value: classes are nearly separated without error, and the last steps are many that change next to nothing.
NEARLY_SEPARABLE = 0.1
EXACT_ENOUGH = Accuracy(within=1e-8)

# A preview takes so many steps with the Hessian of the model before; the predicted gain of the next one is included.
ROUGH = Accuracy(within=1e-3, most_steps=6, renewed=False)
ROUGH_BY_NEWTON = replace(ROUGH, most_steps=3, renewed=True)

# The same for losses with flat pieces, where steps that gain little may be followed by others that gain more: with the
# accuracy of smooth ones the models of sizes 3 to 5 of the breast cancer data were up to 4 % worse (squared hinge).
ROUGH_IF_FLAT = Accuracy(within=1e-5, most_steps=20, renewed=False)

# Previews are kept for so many models; of long tables, where the scores of each model's previews take more than all
# else, for the last two. Each has about so many.
KEPT_PREVIEWS = 6
LEAST_KEPT_PREVIEWS = 2
PREVIEWS_OF_A_MODEL = 16

# Rows may be split by the columns of so many units that have left the model, before they are merged again.
SPARE_SPLITS = 2

V = TypeVar("V")


class RecentTable(dict[frozenset[int], V]):
    """Values by support of which only the most recent are kept."""

    def keep(self, support: frozenset[int], value: V, at_most: int) -> list[frozenset[int]]:
        """Make a value the most recent one; returns the supports of the oldest, which are dropped."""
        self.pop(support, None)
        self[support] = value
        dropped = list(islice(self, max(len(self) - at_most, 0)))
        for key in dropped:
            del self[key]
        return dropped

    def remember(self, support: frozenset[int], value: V, n_bytes: int = 0) -> V:
        """Keep a value, of ``n_bytes`` if it is large, and as many as there is memory for: long searches meet many."""
        each = BYTES_PER_UNIT * (len(support) + 10) + n_bytes
        self.keep(support, value, max(LEAST_KEPT, KEPT_BYTES // each))
        return value


class FitCache:
    """Minimisers by support. A fit depends on where it starts only by rounding, so it may be remembered."""

    def __init__(self, objective: SmoothObjective) -> None:
        self.objective = objective
        self.pool = ColumnCache(objective)
        null = objective.null
        self.null = Fit((), null.coef, null.value)
        """The model without units."""
        self._known = RecentTable[Fit]({frozenset(): self.null})
        self._minima = RecentTable[Solution]({frozenset(): Solution((), objective.rows, frozenset(), null)})
        self._previews = RecentTable[dict[int, Preview | Solution]]()
        """By support: with each unit that was added, and under ``~unit`` without each of its own."""
        self._inverses = RecentTable[np.ndarray]()
        self._removal_costs = RecentTable[np.ndarray]()
        self._exact: set[frozenset[int]] = set()
        """Supports whose Hessian has been computed to rounding."""
        in_memory = KEPT_BYTES // (8 * null.coef.shape[0] * objective.design.n_rows)
        self._most_kept = max(LEAST_KEPT, in_memory)
        self._most_previewed = min(KEPT_PREVIEWS, max(LEAST_KEPT_PREVIEWS, in_memory // PREVIEWS_OF_A_MODEL))

    def of(self, support: frozenset[int], near: Fit | Preview | Solution) -> Fit:
        """The minimiser on ``support``, starting from that on a similar set."""
        found = self.below(np.inf, support, near)
        assert found is not None
        return found

    def below(self, value: float, support: frozenset[int], near: Fit | Preview | Solution) -> Fit | None:
        """The same; None where it is seen on the way that the least value is above ``value``."""
        found = self._known.get(support)
        if found is None:
            exactly = self._exactly(near.value)
            accuracy = Accuracy(exactly.within, exactly.most_steps, exactly.renewed, value)
            solved = self._search(tuple(sorted(support)), near, accuracy)
            minimum = solved.minimum
            if not minimum.converged and solved.value > value:
                return None
            self._keep(support, solved)
            found = Fit(solved.units, minimum.coef, minimum.value, minimum.converged)
            self._known.remember(support, found, found.coef.nbytes)
        return found

    def _exactly(self, value: float) -> Accuracy:
        """How accurately a model is fitted whose value is about this."""
        return EXACT_ENOUGH if self._nearly_separable(value) else EXACT

    def _nearly_separable(self, value: float) -> bool:
        return self.objective.smooth.joint and value < NEARLY_SEPARABLE * self.null.value

    @cached_property
    def _together(self) -> bool:
        """Whether previews are made together."""
        objective = self.objective
        one_block = objective.n_outputs == 1 or objective.smooth.joint
        return one_block and objective.units.single and objective.bounds is None and not objective.smooth.narrow

    def preview_additions(self, fit: Fit, units: Sequence[int]) -> list[Preview | Solution]:
        """About the minima with each of some units more: a few steps from a fit, many at once where that is possible.

        They are the same whatever was fitted before.
        """
        return self._preview_each(fit, list(units))

    def preview_removals(self, fit: Fit, units: Sequence[int], far: float = np.inf) -> list[Preview | Solution]:
        """The same without each of some of its units; those that end ``far`` above need not have come to their end."""
        changes = [~unit for unit in units]
        return [self._at_its_end(fit, *one, far) for one in zip(changes, self._preview_each(fit, changes), strict=True)]

    def _at_its_end(self, fit: Fit, change: int, preview: Preview | Solution, far: float) -> Preview | Solution:
        """A preview of a removal; where it may lead far, Newton's steps are worth their Hessians."""
        if isinstance(preview, Solution) or preview.reached or self.objective.smooth.joint or preview.value > far:
            return preview
        preview.by_newton = preview.by_newton or self._newton_preview(fit, change, ROUGH)
        return preview.by_newton

    def _preview_each(self, fit: Fit, changes: list[int]) -> list[Preview | Solution]:
        """Previews of a fit with each of some units, or without each of its units u that are given as ``~u``."""
        known = self._previews_from(fit)
        unknown = [change for change in changes if change not in known]
        if unknown:
            removed = unknown[0] < 0
            if not self._together:
                known.update({change: self._newton_preview(fit, change, ROUGH) for change in unknown})
            elif removed and self._nearly_separable(fit.value):
                known.update({change: self._separable_preview(fit, change) for change in unknown})
            else:
                known.update(zip(unknown, self._together_from(fit, unknown, removed=removed), strict=True))
        return [known[change] for change in changes]

    def _together_from(self, fit: Fit, changes: list[int], *, removed: bool) -> list[Preview]:
        accuracy = ROUGH_IF_FLAT if self.objective.smooth.flat else ROUGH
        if removed:
            return self._previews_without(fit, [~change for change in changes], accuracy).each(accuracy.within)
        return self._previews_with(fit, changes, accuracy).each(accuracy.within)

    def _newton_preview(self, fit: Fit, change: int, accuracy: Accuracy) -> Solution:
        """A preview by a few steps with the Hessian of the fit."""
        self.exact_hessian(fit)
        return self._search(changed_by(fit.units, change), fit, accuracy)

    def _separable_preview(self, fit: Fit, change: int) -> Solution:
        """A preview by Newton steps: of nearly separated classes the Hessian of the fit tells little without a unit."""
        solved = self._solved(fit)
        near = replace(solved, minimum=replace(solved.minimum, hessian=None), inverse=self.inverse_hessian(fit)[0])
        return self._search(changed_by(fit.units, change), near, ROUGH_BY_NEWTON)

    def _previews_with(self, fit: Fit, units: Sequence[int], accuracy: Accuracy) -> PreviewsTogether:
        check_time()
        solved, objective = self._solved(fit), self.objective
        rows = self.pool.split(solved.rows, units)
        model, parts = self._fitted_model(fit, rows), []
        for some in few_at_a_time(units, len(rows.weights)):
            new, penalty = self.pool.gather(some, rows)[objective.free :], objective.penalty[objective.units.of(some)]
            parts.append(model.with_each(new, penalty, accuracy))
        found = Previews.joined(parts)
        return self._as_solutions(solved, units, rows, found, added=True)

    def _previews_without(self, fit: Fit, units: Sequence[int], accuracy: Accuracy) -> PreviewsTogether:
        check_time()
        solved = self._solved(fit)
        positions = self.objective.free + np.searchsorted(fit.units, units)
        found = self._fitted_model(fit, solved.rows).without_each(positions, accuracy)
        return self._as_solutions(solved, units, solved.rows, found, added=False)

    def _as_solutions(
        self, solved: Solution, units: Sequence[int], rows: Rows, found: Previews, *, added: bool
    ) -> PreviewsTogether:
        objective, size = self.objective, found.coef.shape[2]
        # Where outputs share a loss and classes are nearly separable, an inverse may be far off.
        hands_on = objective.n_outputs == 1 and not has_cheap_hessian(objective.smooth, size, len(rows.weights))
        return PreviewsTogether(
            solved, units, rows, found, self.pool.gather, objective.free, added=added, hands_on_hessian=hands_on
        )

    def _fitted_model(self, fit: Fit, rows: Rows) -> FittedModel:
        """A fit on its rows, or on finer ones."""
        solved, objective = self._solved(fit), self.objective
        minimum = solved.minimum
        return FittedModel(
            objective.smooth,
            rows,
            self.pool.gather(fit.units, rows),
            objective.full_penalty(objective.units.of(fit.units)),
            minimum.coef,
            solved.rows.onto(rows, minimum.scores),
            minimum.value,
            self.inverse_hessian(fit)[0],
        )

    def _previews_from(self, fit: Fit) -> dict[int, Preview | Solution]:
        key = frozenset(fit.units)
        found = self._previews.get(key, {})
        self._previews.keep(key, found, self._most_previewed)
        return found

    def values_without(self, fit: Fit) -> np.ndarray:
        """The least values on the units of a fit but each of them, as accurate as a report needs them."""
        accuracy = REPORTED_JOINTLY if self.objective.smooth.joint else REPORTED
        values = {}
        for unit in fit.units:
            known = self._known.get(frozenset(fit.units) - {unit})
            values[unit] = np.nan if known is None else known.value
        unknown = [unit for unit, value in values.items() if np.isnan(value)]
        if unknown and self._together and not self._nearly_separable(fit.value):
            values.update(zip(unknown, self._values_together(fit, unknown, accuracy), strict=True))
        elif unknown and self._together:
            values.update(zip(unknown, self._values_one_by_one(fit, unknown, accuracy), strict=True))
        elif unknown:
            values.update({unit: self._value_without(fit, unit, fit, accuracy) for unit in unknown})
        return np.array(list(values.values()))

    def _values_together(self, fit: Fit, units: list[int], accuracy: Accuracy) -> list[float]:
        """The same for some units, by previews; those that are still far from their minimum go on from there."""
        together = self._previews_without(fit, units, replace(accuracy, most_steps=MOST_REPORTED_STEPS))
        values, predicted = together.found.value, together.found.predicted
        risen = np.maximum(values - predicted - fit.value, 0.0)
        within = np.maximum(accuracy.within, IMPORTANCE_WITHIN * risen / np.maximum(values, TINY))
        found = values.tolist()
        for place in np.flatnonzero(~(predicted <= within * values)).tolist():
            overflowed = not np.isfinite(values[place])
            near = fit if overflowed else together.solution(place)
            enough = accuracy if overflowed else replace(accuracy, within=float(within[place]))
            found[place] = self._value_without(fit, units[place], near, enough)
        return found

    def _values_one_by_one(self, fit: Fit, units: list[int], accuracy: Accuracy) -> list[float]:
        """The same where classes are nearly separated: previews by Newton steps, and Newton steps from there."""
        found = []
        for unit, preview in zip(units, self.preview_removals(fit, units), strict=True):
            risen = max(preview.value - fit.value, 0.0)
            within = max(accuracy.within, IMPORTANCE_WITHIN * risen / max(preview.value, TINY))
            found.append(self._value_without(fit, unit, preview, replace(accuracy, within=within)))
        return found

    def _value_without(self, fit: Fit, unit: int, near: Fit | Preview | Solution, accuracy: Accuracy) -> float:
        rest = tuple(other for other in fit.units if other != unit)
        return self._search(rest, near, accuracy).minimum.value

    def scores(self, fit: Fit) -> np.ndarray:
        """Linear scores of a fit for all rows of the data, shape (C, n)."""
        solved = self._solved(fit)
        return solved.rows.to_data(solved.minimum.scores)

    def exact_hessian(self, fit: Fit) -> np.ndarray:
        """Hessian at a fit, blocks (C, q, q), or (1, C q, C q) where outputs share a loss.

        Computed once; it is a good start for the fits around.
        """
        key, solved = frozenset(fit.units), self._solved(fit)
        if key not in self._exact:
            columns, features = self.pool.gather(solved.units, solved.rows), self.objective.units.of(solved.units)
            exact = self.objective.hessian(solved.rows, columns, features, solved.minimum.scores)
            minimum = solved.minimum.but(hessian=exact)
            self._minima[key] = Solution(
                solved.units, solved.rows, solved.split_by, minimum, solved.origin, solved.inverse
            )
            self._exact.add(key)
        hessian = self._minima[key].minimum.hessian
        assert hessian is not None
        return hessian

    def inverse_hessian(self, fit: Fit) -> np.ndarray:
        """The inverse of ``exact_hessian``, by blocks."""
        key = frozenset(fit.units)
        found = self._inverses.get(key)
        if found is None:
            found = inverse_or_nearest(self.exact_hessian(fit))
            self._inverses.remember(key, found, found.nbytes)
        return found

    def reported(self, fit: Fit) -> float:
        """The objective of a fit in the user's terms."""
        solved = self._solved(fit)
        return self.objective.reported(solved.rows, solved.minimum, self.objective.units.of(fit.units))

    def largest_change(self, fit: Fit, step: np.ndarray) -> float:
        """By how much a step of the coefficients changes a score at most."""
        rows = self._solved(fit).rows
        return float(np.abs(step @ self.pool.gather(fit.units, rows)).max())

    def value_at(self, fit: Fit, coef: np.ndarray) -> float:
        """The value at other coefficients on the same units."""
        problem = self._restricted(self._solved(fit)).with_loss(self.objective.measured)
        return problem.value(coef, problem.scores(coef))

    def on_rows(self, fit: Fit) -> tuple[Rows, np.ndarray]:
        """The rows of a fit, and its scores on them, shape (C, G)."""
        solved = self._solved(fit)
        return solved.rows, solved.minimum.scores

    def gain_alone(self, fit: Fit, unit: int) -> float:
        """How far the value falls if the coefficients of one more unit move and all others stay."""
        objective, solved = self.objective, self._solved(fit)
        rows = self.pool.split(solved.rows, [unit])
        features = objective.units.of([unit])
        scores = solved.rows.onto(rows, solved.minimum.scores)
        problem = objective.restricted(rows, self.pool.gather([unit], rows)[objective.free :], features, offset=scores)
        start = np.zeros((objective.n_outputs, len(features)))
        return problem.value(start, np.zeros_like(scores)) - minimise(problem, start).value

    def gains_alone(self, fit: Fit, units: Sequence[int]) -> dict[int, float]:
        """The same for several units, where outputs share a loss; empty where they cannot be found together."""
        objective, solved = self.objective, self._solved(fit)
        if not (objective.smooth.joint and objective.units.single) or objective.bounds is not None or not units:
            return {}
        check_time()
        rows = self.pool.split(solved.rows, units)
        scores = solved.rows.onto(rows, solved.minimum.scores)
        columns = self.pool.gather(units, rows)[objective.free :]
        gains = joint_line_gains(objective.smooth, rows, scores, columns, objective.penalty[objective.units.of(units)])
        return {} if gains is None else dict(zip(units, gains.tolist(), strict=True))

    def removal_costs(self, fit: Fit) -> np.ndarray:
        """By how much the value would rise without each unit, to second order, in the order of the fit's units."""
        key = frozenset(fit.units)
        if key not in self._removal_costs:
            self._removal_costs.keep(key, self._costs_of_removals(fit), LEAST_KEPT)
        return self._removal_costs[key]

    def _costs_of_removals(self, fit: Fit) -> np.ndarray:
        solved = self._solved(fit)
        if self.objective.smooth.flat:
            inverse = inverse_or_nearest(self._restricted(solved).hessian(solved.minimum.scores, np.inf))
        else:
            inverse = self.inverse_hessian(fit)
        return quadratic_removal_costs(self.objective, solved, inverse)

    def costs_beside(self, fit: Fit, preview: Preview | Solution) -> np.ndarray:
        """The same for the units of a fit once another was added."""
        if isinstance(preview, Preview):
            assert preview.removal_costs is not None
            return preview.removal_costs
        hessian = preview.minimum.hessian
        if hessian is None or self.objective.smooth.flat:
            share = np.inf if self.objective.smooth.flat else 0.0
            hessian = self._restricted(preview).hessian(preview.minimum.scores, share)
        inverse = inverse_or_nearest(hessian)
        costs = quadratic_removal_costs(self.objective, preview, inverse)
        return costs[[place for place, unit in enumerate(preview.units) if unit in fit.units]]

    def _restricted(self, solved: Solution) -> Restricted:
        columns = self.pool.gather(solved.units, solved.rows)
        return self.objective.restricted(solved.rows, columns, self.objective.units.of(solved.units))

    def _solved(self, near: Fit | Preview | Solution) -> Solution:
        """The minimum that belongs to a fit: solved for again if it is no longer kept."""
        if isinstance(near, Solution):
            return near
        if isinstance(near, Preview):
            return near.solution()
        key = frozenset(near.units)
        if key not in self._minima:
            rows = self.pool.split(self.objective.rows, near.units)
            minimum = self._minimise(
                rows, near.units, WarmStart(near.coef, value=near.value), self._exactly(near.value)
            )
            self._keep(key, Solution(near.units, rows, key, minimum))
        return self._minima[key]

    def _keep(self, key: frozenset[int], solved: Solution) -> None:
        self._exact.difference_update(self._minima.keep(key, solved, self._most_kept))
        if solved.minimum.exactly:
            self._exact.add(key)

    def _search(self, units: tuple[int, ...], near: Fit | Preview | Solution, accuracy: Accuracy) -> Solution:
        check_time()
        if isinstance(near, Fit):
            previews = self._previews.get(frozenset(near.units), {})
            change = change_between(near.units, units) if previews else None
            near = near if change is None else previews.get(change, near)
            near = (near.by_newton or near) if isinstance(near, Preview) else near
        before, objective = self._solved(near), self.objective
        if isinstance(near, Fit) and before.minimum.hessian is None and not frozenset(before.units) <= set(units):
            self.exact_hessian(near)
            before = self._solved(near)
        rows, split_by = self._rows_near(frozenset(units), before)
        start = warm_start_near(
            before.minimum.but(scores=before.rows.onto(rows, before.minimum.scores)),
            objective.units.of(before.units),
            objective.units.of(units),
            free=objective.free,
            curved=not objective.smooth.flat,
            inverse=before.inverse,
        )
        return Solution(units, rows, split_by, self._minimise(rows, units, start, accuracy))

    def _rows_near(self, units: frozenset[int], before: Solution) -> tuple[Rows, frozenset[int]]:
        """Rows for a model near another, its own split by the columns that are new, and what they are split by."""
        before = before.origin or before
        if before.rows.merged and len(before.split_by - units) > SPARE_SPLITS:
            return self.pool.split(self.objective.rows, units), units
        return self.pool.split(before.rows, units - before.split_by), units | before.split_by

    def _minimise(self, rows: Rows, units: tuple[int, ...], start: WarmStart, accuracy: Accuracy) -> Minimum:
        features = self.objective.units.of(units)
        return self.objective.minimise(rows, self.pool.gather(units, rows), features, start, accuracy)


def changed_by(units: Sequence[int], change: int) -> tuple[int, ...]:
    """Ascending units with one more, or without the unit u that is given as ``~u``."""
    return tuple(sorted([*units, change])) if change >= 0 else tuple(unit for unit in units if unit != ~change)


def change_between(before: Sequence[int], units: Sequence[int]) -> int | None:
    """What changes one set of units to another, in the same form; None if that is not a single unit."""
    differing = set(before).symmetric_difference(units)
    if len(differing) != 1:
        return None
    (unit,) = differing
    return unit if len(units) > len(before) else ~unit


def quadratic_removal_costs(objective: SmoothObjective, solved: Solution, inverse: np.ndarray) -> np.ndarray:
    """By how much the value would rise without each unit of a model, to second order, in the order of its units.

    That is ``w_u' (A_uu)^-1 w_u / 2`` with A the inverse Hessian on the model, given by blocks.
    """
    coef, free = solved.minimum.coef, objective.free
    if objective.units.single and len(inverse) == objective.n_outputs:
        variance = np.einsum("cii->ci", inverse)[:, free:]
        return 0.5 * np.sum(coef[:, free:] ** 2 / np.maximum(variance, TINY), axis=0)
    owner = objective.units.owner[objective.units.of(solved.units)]
    return np.array([_removal_cost(inverse, coef, free + np.flatnonzero(owner == unit)) for unit in solved.units])


def _removal_cost(inverse: np.ndarray, coef: np.ndarray, positions: np.ndarray) -> float:
    """What removing one unit costs, from the blocks of the inverse and coefficients of shape (C, q)."""
    outputs, size = coef.shape
    if len(inverse) < outputs:
        # One block for all outputs: the unit has coefficients in the part of each.
        in_all = (np.arange(outputs)[:, None] * size + positions).ravel()
        inverse, coef = inverse[:, in_all[:, None], in_all], coef[:, positions].reshape(1, -1)
    else:
        inverse, coef = inverse[:, positions[:, None], positions], coef[:, positions]
    return 0.5 * float(np.sum(coef * solve_or_nearest(inverse, coef[:, :, None])[:, :, 0]))
