"""Refits of a smooth objective, each support once, and their second-order properties."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

import numpy as np

from pauca.objectives import SmoothObjective, WarmStart, warm_start_near
from pauca.solvers.newton import LAST_STEP_BELOW, Minimum
from pauca.subsets.columns import ColumnPool

# Scores and Hessians are kept for as many fits as take this many bytes, or at least so many: some are needed again.
KEPT_BYTES = 1 << 26
LEAST_KEPT = 8

# The last step towards a value that is only reported promises no more than this share of it.
REPORTED_WITHIN = 1e-7

# Where the coefficients, without the small ridge that is always there, would move a score by more than this, the
# optimum is at infinity.
DIVERGING_STEP = 0.1

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


class Fits:
    """Minimisers by support. A fit depends on where it starts only by rounding, so it may be remembered."""

    def __init__(self, objective: SmoothObjective) -> None:
        self.objective = objective
        self.pool = ColumnPool(objective)
        null = objective.null
        self._known = {frozenset[int](): Fit((), null.coef, null.value)}
        self._minima = RecentTable[Minimum]({frozenset(): null})
        self._exact: set[frozenset[int]] = set()
        """Supports whose Hessian has been computed to rounding."""
        self._most_kept = max(LEAST_KEPT, KEPT_BYTES // null.scores.nbytes)

    @property
    def null(self) -> Fit:
        """The model without units."""
        return self._known[frozenset()]

    def of(self, support: frozenset[int], near: Fit) -> Fit:
        """The minimiser on ``support``, starting from that on a similar set."""
        found = self._known.get(support)
        if found is None:
            found = self._known[support] = self._fit(tuple(sorted(support)), near)
        return found

    def value_without(self, fit: Fit, unit: int) -> float:
        """The least value on the units of a fit but one, as accurate as a report needs it."""
        rest = tuple(other for other in fit.units if other != unit)
        known = self._known.get(frozenset(rest))
        return self._search(rest, fit, REPORTED_WITHIN).value if known is None else known.value

    def scores(self, fit: Fit) -> np.ndarray:
        """Linear scores of a fit, shape (C, n)."""
        return self._minimum(fit).scores

    def exact_hessian(self, fit: Fit) -> np.ndarray:
        """Hessian at a fit, blocks (C, q, q), or (1, C q, C q) where outputs share a loss.

        Computed once; it is a good start for the fits around.
        """
        key, minimum = frozenset(fit.units), self._minimum(fit)
        if key not in self._exact:
            features = self.objective.units.of(fit.units)
            problem = self.objective.restricted(self.pool.gather(fit.units), features)
            self._minima[key] = replace(minimum, hessian=problem.hessian(minimum.scores, 0.0))
            self._exact.add(key)
        return self._minima[key].hessian

    def reported(self, fit: Fit) -> float:
        """The objective of a fit in the user's terms."""
        return self.objective.reported(self._minimum(fit), self.objective.units.of(fit.units))

    def _minimum(self, fit: Fit) -> Minimum:
        """The minimum that belongs to a fit: solved for again if it is no longer kept."""
        key = frozenset(fit.units)
        if key not in self._minima:
            features, start = self.objective.units.of(fit.units), WarmStart(fit.coef, value=fit.value)
            self._keep(key, self.objective.minimise(self.pool.gather(fit.units), features, start))
        return self._minima[key]

    def _keep(self, key: frozenset[int], minimum: Minimum) -> None:
        self._exact.difference_update(self._minima.keep(key, minimum, self._most_kept))

    def _fit(self, units: tuple[int, ...], near: Fit) -> Fit:
        found = self._search(units, near, LAST_STEP_BELOW)
        self._keep(frozenset(units), found)
        return Fit(units, found.coef, found.value, found.converged)

    def _search(self, units: tuple[int, ...], near: Fit, within: float) -> Minimum:
        objective = self.objective
        features = objective.units.of(units)
        start = warm_start_near(
            self._minimum(near),
            objective.units.of(near.units),
            features,
            free=objective.free,
            curved=not objective.smooth.flat,
            joint=objective.smooth.joint,
        )
        return objective.minimise(self.pool.gather(units), features, start, within)


def quadratic_removal_costs(fits: Fits, fit: Fit) -> np.ndarray:
    """By how much the value would rise without each unit, to second order, in the order of the fit.

    That is ``w_u' (A_uu)^-1 w_u / 2`` with A the inverse Hessian on the model.
    """
    try:
        inverse = np.linalg.inv(fits.exact_hessian(fit))
    except np.linalg.LinAlgError:
        inverse = np.linalg.pinv(fits.exact_hessian(fit), hermitian=True)
    objective = fits.objective
    if objective.units.single and len(inverse) == objective.n_outputs:
        variance = np.einsum("cii->ci", inverse)[:, objective.free :]
        return 0.5 * np.sum(fit.coef[:, objective.free :] ** 2 / np.maximum(variance, np.finfo(float).tiny), axis=0)
    return np.array([_removal_cost(inverse, fit.coef, positions) for positions in _positions(objective, fit)])


def diverged(fits: Fits, fit: Fit) -> bool:
    """Whether the coefficients would diverge without the small ridge that is there even where ``ridge=0``."""
    objective = fits.objective
    if objective.ridge or not objective.smooth.may_diverge or not fit.units:
        return False
    if objective.smooth.joint and _at_a_bound(objective, fit):
        # Coefficients that all classes share have curvature only as long as none is at a bound.
        return False
    step = _step_without_ridge(objective, fit, fits.exact_hessian(fit))
    if np.abs(step).max() < DIVERGING_STEP / LARGEST_ENTRY:
        return False
    return bool(np.abs(step @ fits.pool.gather(fit.units)).max() > DIVERGING_STEP)


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
    step: np.ndarray = np.linalg.solve(loose, (ridge * blocks)[:, :, None]).reshape(fit.coef.shape)
    return step


def _positions(objective: SmoothObjective, fit: Fit) -> list[np.ndarray]:
    """Positions of every unit's coefficients among those of the fit."""
    owner = objective.units.owner[objective.units.of(fit.units)]
    return [objective.free + np.flatnonzero(owner == unit) for unit in fit.units]


def _removal_cost(inverse: np.ndarray, coef: np.ndarray, positions: np.ndarray) -> float:
    """What removing one unit costs, from the blocks of the inverse and coefficients of shape (C, q)."""
    outputs, size = coef.shape
    if len(inverse) < outputs:
        # One block for all outputs: the unit has coefficients in the part of each.
        in_all = (np.arange(outputs)[:, None] * size + positions).ravel()
        inverse, coef = inverse[:, in_all[:, None], in_all], coef[:, positions].reshape(1, -1)
    else:
        inverse, coef = inverse[:, positions[:, None], positions], coef[:, positions]
    return 0.5 * float(np.sum(coef * np.linalg.solve(inverse, coef[:, :, None])[:, :, 0]))
