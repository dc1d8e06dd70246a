"""The refits of a smooth objective, kept so that each support is fitted once, and their second-order properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

import numpy as np

from pauca.clock import check_time
from pauca.objectives import (
    Additions,
    Restricted,
    Rows,
    SmoothObjective,
    WarmStart,
    joint_line_gains,
    previews_of_additions,
    warm_start_near,
)
from pauca.solvers.factorisation import positive_inverse, solve_or_nearest
from pauca.solvers.newton import EXACT, Accuracy, Minimum, minimise
from pauca.subsets.column_cache import ColumnCache

# Scores and Hessians are kept for as many fits as take this many bytes, or at least so many: some are needed again.
KEPT_BYTES = 1 << 26
LEAST_KEPT = 8

# The last step towards a value that is only reported promises no more than this share of it; where outputs share a
# loss, each step costs far more.
REPORTED = Accuracy(within=1e-7)
REPORTED_JOINTLY = Accuracy(within=1e-5)

# A preview takes so many steps with the Hessian of the model before; what the next one promises is counted as gained.
ROUGH = Accuracy(within=1e-3, most_steps=6, renewed=False)

# Previews are kept for so many models.
KEPT_PREVIEWS = 6

# Rows may be split by the columns of so many units that have left the model, before they are merged anew.
SPARE_SPLITS = 2

# Where the coefficients, without the small ridge that is always there, would move a score by more than this, the
# optimum is at infinity.
DIVERGING_STEP = 0.1

# Scores of coupled rows that are further apart than this leave nothing of e^a at one end: they diverge.
FAR_APART = 500.0

# Standardised entries are taken to be below this, so that most scores need not be computed for that.
LARGEST_ENTRY = 1e3

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


@dataclass(frozen=True, eq=False)
class Fit:
    """The minimiser on a set of units."""

    units: tuple[int, ...]
    """Ascending; the coefficients are in the order of their columns."""
    coef: np.ndarray
    """Shape (C, q), that of the intercept first."""
    value: float
    converged: bool = True
    """Whether the solver converged."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A minimum, or what a few steps towards it have reached, with the rows it was found on."""

    units: tuple[int, ...]
    rows: Rows
    split_by: frozenset[int]
    """Units on whose columns the rows are constant: those of the model, and perhaps some more."""
    minimum: Minimum
    origin: Solution | None = None
    """Of a preview made together with others: the model it started from, whose rows are split by fewer columns."""

    @property
    def value(self) -> float:
        """The value, less what the next step promised."""
        return self.minimum.value - self.minimum.promised


class AdditionPreview:
    """A preview of one unit more, made together with those of others."""

    __slots__ = ("_place", "_together", "removal_costs", "value")

    def __init__(self, together: PreviewsTogether, place: int, value: float, removal_costs: np.ndarray) -> None:
        self._together, self._place = together, place
        self.value = value
        """The value, less what the next step promised."""
        self.removal_costs = removal_costs
        """By how much the value would rise without each unit of the fit, to second order, in their order."""

    def solution(self) -> Solution:
        """What the steps have reached, as a start for others."""
        return self._together.solution(self._place)


@dataclass(frozen=True, eq=False)
class PreviewsTogether:
    """Previews of a fit with each of some units added."""

    origin: Solution
    units: Sequence[int]
    rows: Rows
    additions: Additions
    free: int

    def each(self) -> list[AdditionPreview]:
        """The previews one by one, in the order of the units."""
        found = self.additions
        costs, values = found.removal_costs()[:, self.free :], (found.value - found.promised).tolist()
        return [AdditionPreview(self, place, value, costs[place]) for place, value in enumerate(values)]

    def solution(self, place: int) -> Solution:
        """One of the previews, with the coefficients in the order of its columns."""
        found, before = self.additions, self.origin
        units = [*before.units, self.units[place]]
        order = np.concatenate([np.arange(self.free), self.free + np.argsort(units)])
        hessian = _inverse(found.inverse[place])[order[:, None], order]
        minimum = Minimum(
            found.coef[place, order][None],
            found.scores[place][None],
            float(found.value[place]),
            hessian[None],
            False,
            float(found.promised[place]),
        )
        return Solution(tuple(sorted(units)), self.rows, before.split_by | frozenset(self.units), minimum, before)


class FitCache:
    """Minimisers by support. A fit depends on where it starts only by rounding, so it may be remembered."""

    def __init__(self, objective: SmoothObjective) -> None:
        self.objective = objective
        self.pool = ColumnCache(objective)
        null = objective.null
        self._known = {frozenset[int](): Fit((), null.coef, null.value)}
        self._minima = RecentTable[Solution]({frozenset(): Solution((), objective.rows, frozenset(), null)})
        self._previews = RecentTable[dict[frozenset[int], AdditionPreview | Solution]]()
        self._inverses = RecentTable[np.ndarray]()
        self._exact: set[frozenset[int]] = set()
        """Supports whose Hessian has been computed to rounding."""
        self._most_kept = max(LEAST_KEPT, KEPT_BYTES // (8 * null.coef.shape[0] * objective.design.n_rows))

    @property
    def null(self) -> Fit:
        """The model without units."""
        return self._known[frozenset()]

    def of(self, support: frozenset[int], near: Fit | AdditionPreview | Solution) -> Fit:
        """The minimiser on ``support``, starting from that on a similar set."""
        found = self._known.get(support)
        if found is None:
            solved = self._search(tuple(sorted(support)), near, EXACT)
            self._keep(support, solved)
            minimum = solved.minimum
            found = self._known[support] = Fit(solved.units, minimum.coef, minimum.value, minimum.converged)
        return found

    def preview(self, fit: Fit, support: frozenset[int]) -> AdditionPreview | Solution:
        """About the minimum on ``support``: a few steps from a fit on a similar set, with its Hessian.

        It is the same whatever was fitted before.
        """
        known = self._previews_from(fit)
        if support not in known:
            self.exact_hessian(fit)
            known[support] = self._search(tuple(sorted(support)), fit, ROUGH)
        return known[support]

    def preview_additions(self, fit: Fit, units: Sequence[int]) -> list[AdditionPreview | Solution]:
        """Previews of a fit with each of some units added: many at once where that is possible."""
        objective, known = self.objective, self._previews_from(fit)
        supports = [frozenset([*fit.units, unit]) for unit in units]
        simple = objective.units.single and objective.n_outputs == 1 and objective.bounds is None
        if not simple or objective.smooth.flat:
            return [self.preview(fit, support) for support in supports]
        unknown = [unit for unit, key in zip(units, supports, strict=True) if key not in known]
        if unknown:
            for unit, preview in zip(unknown, self._preview_together(fit, unknown), strict=True):
                known[frozenset([*fit.units, unit])] = preview
        return [known[support] for support in supports]

    def _preview_together(self, fit: Fit, units: Sequence[int]) -> list[AdditionPreview]:
        check_time()
        solved, objective = self._solved(fit), self.objective
        rows = self.pool.split(solved.rows, units)
        additions = previews_of_additions(
            objective.smooth,
            rows,
            self.pool.gather(fit.units, rows),
            objective.full_penalty(objective.units.of(fit.units)),
            solved.minimum.coef[0],
            solved.rows.onto(rows, solved.minimum.scores)[0],
            solved.minimum.value,
            self.inverse_hessian(fit)[0],
            self.pool.gather(units, rows)[objective.free :],
            objective.penalty[objective.units.of(units)],
            ROUGH,
        )
        return PreviewsTogether(solved, units, rows, additions, objective.free).each()

    def _previews_from(self, fit: Fit) -> dict[frozenset[int], AdditionPreview | Solution]:
        key = frozenset(fit.units)
        found = self._previews.get(key, {})
        self._previews.keep(key, found, KEPT_PREVIEWS)
        return found

    def value_without(self, fit: Fit, unit: int) -> float:
        """The least value on the units of a fit but one, as accurate as a report needs it."""
        rest = tuple(other for other in fit.units if other != unit)
        known = self._known.get(frozenset(rest))
        accuracy = REPORTED_JOINTLY if self.objective.smooth.joint else REPORTED
        return self._search(rest, fit, accuracy).minimum.value if known is None else known.value

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
            minimum = replace(solved.minimum, hessian=self._restricted(solved).hessian(solved.minimum.scores, 0.0))
            self._minima[key] = replace(solved, minimum=minimum)
            self._exact.add(key)
        hessian = self._minima[key].minimum.hessian
        assert hessian is not None
        return hessian

    def inverse_hessian(self, fit: Fit) -> np.ndarray:
        """The inverse of ``exact_hessian``, by blocks."""
        key = frozenset(fit.units)
        found = self._inverses.get(key)
        if found is None:
            found = _inverse(self.exact_hessian(fit))
            self._inverses.keep(key, found, LEAST_KEPT)
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
        """The rows of a fit of one output, and its scores on them, shape (G,)."""
        solved = self._solved(fit)
        return solved.rows, solved.minimum.scores[0]

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
        solved = self._solved(fit)
        if self.objective.smooth.flat:
            inverse = _inverse(self._restricted(solved).hessian(solved.minimum.scores, np.inf))
        else:
            inverse = self.inverse_hessian(fit)
        return quadratic_removal_costs(self.objective, solved, inverse)

    def costs_beside(self, fit: Fit, preview: AdditionPreview | Solution) -> np.ndarray:
        """The same for the units of a fit once another was added."""
        if isinstance(preview, AdditionPreview):
            return preview.removal_costs
        if self.objective.smooth.flat:
            inverse = _inverse(self._restricted(preview).hessian(preview.minimum.scores, np.inf))
        elif preview.minimum.hessian is not None:
            inverse = _inverse(preview.minimum.hessian)
        else:
            inverse = self._bordered_inverse(fit, preview)
        costs = quadratic_removal_costs(self.objective, preview, inverse)
        return costs[[place for place, unit in enumerate(preview.units) if unit in fit.units]]

    def _bordered_inverse(self, fit: Fit, preview: Solution) -> np.ndarray:
        """The inverse Hessian at a fit bordered by the columns that a preview has in addition: outputs share a loss."""
        solved, objective = self._solved(fit), self.objective
        start = warm_start_near(
            replace(solved.minimum, hessian=self.exact_hessian(fit)),
            objective.units.of(fit.units),
            objective.units.of(preview.units),
            free=objective.free,
            curved=True,
        )
        assert start.positions is not None
        assert start.hessian is not None
        scores = solved.rows.onto(preview.rows, solved.minimum.scores)
        whole = self._restricted(preview).bordered(scores, start.hessian, start.positions)
        return bordered_inverse(whole[0], self.inverse_hessian(fit)[0], start.positions, objective.n_outputs)[None]

    def _restricted(self, solved: Solution) -> Restricted:
        columns = self.pool.gather(solved.units, solved.rows)
        return self.objective.restricted(solved.rows, columns, self.objective.units.of(solved.units))

    def _solved(self, near: Fit | AdditionPreview | Solution) -> Solution:
        """The minimum that belongs to a fit: solved for again if it is no longer kept."""
        if isinstance(near, Solution):
            return near
        if isinstance(near, AdditionPreview):
            return near.solution()
        key = frozenset(near.units)
        if key not in self._minima:
            rows = self.pool.split(self.objective.rows, near.units)
            minimum = self._minimise(rows, near.units, WarmStart(near.coef, value=near.value), EXACT)
            self._keep(key, Solution(near.units, rows, key, minimum))
        return self._minima[key]

    def _keep(self, key: frozenset[int], solved: Solution) -> None:
        self._exact.difference_update(self._minima.keep(key, solved, self._most_kept))

    def _search(self, units: tuple[int, ...], near: Fit | AdditionPreview | Solution, accuracy: Accuracy) -> Solution:
        check_time()
        if isinstance(near, Fit):
            near = self._previews.get(frozenset(near.units), {}).get(frozenset(units), near)
        before, objective = self._solved(near), self.objective
        if isinstance(near, Fit) and before.minimum.hessian is None and not frozenset(before.units) <= set(units):
            self.exact_hessian(near)
            before = self._solved(near)
        rows, split_by = self._rows_near(frozenset(units), before)
        start = warm_start_near(
            replace(before.minimum, scores=before.rows.onto(rows, before.minimum.scores)),
            objective.units.of(before.units),
            objective.units.of(units),
            free=objective.free,
            curved=not objective.smooth.flat,
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


def _inverse(hessian: np.ndarray) -> np.ndarray:
    try:
        return positive_inverse(hessian)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(hessian, hermitian=True)


def bordered_inverse(whole: np.ndarray, inverse: np.ndarray, positions: np.ndarray, outputs: int) -> np.ndarray:
    """The inverse of a matrix, given that of its part at ``positions`` of every output."""
    size = len(whole) // outputs
    others = np.delete(np.arange(size), positions)
    old, new = ((np.arange(outputs)[:, None] * size + places).ravel() for places in (positions, others))
    across = whole[old[:, None], new]
    regressed = inverse @ across
    left = _inverse(whole[new[:, None], new] - across.T @ regressed)
    found = np.empty_like(whole)
    found[old[:, None], old] = inverse + regressed @ left @ regressed.T
    found[old[:, None], new] = -regressed @ left
    found[new[:, None], old] = found[old[:, None], new].T
    found[new[:, None], new] = left
    return found


def quadratic_removal_costs(objective: SmoothObjective, solved: Solution, inverse: np.ndarray) -> np.ndarray:
    """By how much the value would rise without each unit of a model, to second order, in the order of its units.

    That is ``w_u' (A_uu)^-1 w_u / 2`` with A the inverse Hessian on the model, given by blocks.
    """
    coef, free = solved.minimum.coef, objective.free
    if objective.units.single and len(inverse) == objective.n_outputs:
        variance = np.einsum("cii->ci", inverse)[:, free:]
        return 0.5 * np.sum(coef[:, free:] ** 2 / np.maximum(variance, np.finfo(float).tiny), axis=0)
    owner = objective.units.owner[objective.units.of(solved.units)]
    return np.array([_removal_cost(inverse, coef, free + np.flatnonzero(owner == unit)) for unit in solved.units])


def diverged(fits: FitCache, fit: Fit) -> bool:
    """Whether the coefficients would diverge without the small ridge that is there even where ``ridge=0``."""
    objective = fits.objective
    if objective.ridge or not objective.smooth.may_diverge or not fit.units:
        return False
    if objective.smooth.joint and _at_a_bound(objective, fit):
        # Coefficients that all classes share have curvature only as long as none is at a bound.
        return False
    if objective.smooth.coupled and np.ptp(fits.scores(fit)) > FAR_APART:
        return True
    step = _step_without_ridge(objective, fit, fits.exact_hessian(fit))
    if np.abs(step).max() < DIVERGING_STEP / LARGEST_ENTRY:
        return False
    return fits.largest_change(fit, step) > DIVERGING_STEP


def _at_a_bound(objective: SmoothObjective, fit: Fit) -> bool:
    if objective.bounds is None:
        return False
    lower, upper = (bound[objective.units.of(fit.units)] for bound in objective.bounds)
    coef = fit.coef[:, objective.free :]
    return bool(np.any((coef <= lower) | (coef >= upper)))


def _step_without_ridge(objective: SmoothObjective, fit: Fit, hessian: np.ndarray) -> np.ndarray:
    """How the coefficients would move if there were next to no ridge, shape (C, q)."""
    penalty = np.concatenate([np.zeros(objective.free), objective.penalty[objective.units.of(fit.units)]])
    blocks = fit.coef.reshape(len(hessian), -1)
    ridge = np.tile(penalty, blocks.shape[1] // len(penalty))
    # A thousandth of the ridge stays, so that the Hessian remains positive definite.
    loose = hessian - (1 - 1e-3) * np.diag(ridge)
    step: np.ndarray = solve_or_nearest(loose, (ridge * blocks)[:, :, None]).reshape(fit.coef.shape)
    return step


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
