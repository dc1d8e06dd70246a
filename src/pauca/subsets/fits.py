"""Refits of a smooth objective: each support is fitted once, whoever asks for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from pauca.objectives import SmoothObjective, WarmStart, warm_start_near
from pauca.solvers.newton import LAST_STEP_BELOW, Minimum

# Standardised columns kept at hand: this many bytes, or at least so many columns.
POOL_BYTES = 1 << 27
LEAST_POOLED = 64

# Scores and Hessians are kept for as many fits as take this many bytes, or at least so many: some are wanted again.
KEPT_BYTES = 1 << 26
LEAST_KEPT = 8

# The last step towards a value that is shown and not built upon promises no more than this share of it.
READ_WITHIN = 1e-7


@dataclass(frozen=True, eq=False)
class Fit:
    """The minimiser on a set of units."""

    units: tuple[int, ...]
    """Ascending; the coefficients are in the order of their columns."""
    coef: np.ndarray
    """Shape (C, q), that of the intercept first."""
    value: float
    converged: bool = True
    """Whether the refit came to its end."""


class ColumnPool:
    """Standardised columns gathered from X, one to a row, after a row of ones if there is an intercept."""

    def __init__(self, objective: SmoothObjective) -> None:
        self._objective = objective
        n_rows = objective.design.n_rows
        self._capacity = max(LEAST_POOLED, POOL_BYTES // (8 * n_rows))
        self._places: dict[int, int] = {}
        self._rows = np.empty((min(16, self._capacity), n_rows))

    def gather(self, units: Iterable[int]) -> np.ndarray:
        """Ones, if there is an intercept, and the columns of some units: shape (q, n)."""
        features = self._objective.units.of(units).tolist()
        missing = [j for j in features if j not in self._places]
        if missing:
            self._take(missing, features)
        free = self._objective.free
        gathered = np.empty((free + len(features), self._rows.shape[1]))
        gathered[:free] = 1.0
        if features:
            np.take(self._rows, [self._places[j] for j in features], axis=0, out=gathered[free:], mode="clip")
        return gathered

    def _take(self, missing: list[int], wanted: list[int]) -> None:
        if len(self._places) + len(missing) > self._capacity:
            self._places.clear()
            missing = wanted
        first = len(self._places)
        last = first + len(missing)
        if last > len(self._rows):
            grown = np.empty((max(last, min(2 * len(self._rows), self._capacity)), self._rows.shape[1]))
            grown[:first] = self._rows[:first]
            self._rows = grown
        self._rows[first:last] = self._objective.design.columns(missing)
        self._places.update(zip(missing, range(first, last), strict=True))


class Fits:
    """Minimisers by support. A fit depends on where it starts only by rounding, so it may be remembered."""

    def __init__(self, objective: SmoothObjective) -> None:
        self.objective = objective
        self.pool = ColumnPool(objective)
        null = objective.null
        self._known = {frozenset[int](): Fit((), null.coef, null.value)}
        self._minima = {frozenset[int](): null}
        self._exact: set[frozenset[int]] = set()
        """Whose Hessian has been computed to rounding."""
        self._most_kept = max(LEAST_KEPT, KEPT_BYTES // null.scores.nbytes)

    @property
    def null(self) -> Fit:
        """The model without units."""
        return self._known[frozenset()]

    def of(self, support: frozenset[int], near: Fit) -> Fit:
        """The minimiser on ``support``, looked for from that on a similar set."""
        found = self._known.get(support)
        if found is None:
            found = self._known[support] = self._fit(tuple(sorted(support)), near)
        return found

    def value_without(self, fit: Fit, unit: int) -> float:
        """The least value on the units of a fit but one, as closely as anybody reads it."""
        rest = tuple(other for other in fit.units if other != unit)
        known = self._known.get(frozenset(rest))
        return self._search(rest, fit, READ_WITHIN).value if known is None else known.value

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
        """The objective of a fit as the user means it."""
        return self.objective.reported(self._minimum(fit), self.objective.units.of(fit.units))

    def _minimum(self, fit: Fit) -> Minimum:
        """The minimum that a fit stands for: found again if it has been forgotten."""
        key = frozenset(fit.units)
        if key not in self._minima:
            features, guess = self.objective.units.of(fit.units), WarmStart(fit.coef, value=fit.value)
            self._keep(key, self.objective.minimise(self.pool.gather(fit.units), features, guess))
        return self._minima[key]

    def _keep(self, key: frozenset[int], minimum: Minimum) -> None:
        self._minima[key] = minimum
        if len(self._minima) > self._most_kept:
            oldest = next(iter(self._minima))
            self._minima.pop(oldest)
            self._exact.discard(oldest)

    def _fit(self, units: tuple[int, ...], near: Fit) -> Fit:
        found = self._search(units, near, LAST_STEP_BELOW)
        self._keep(frozenset(units), found)
        return Fit(units, found.coef, found.value, found.converged)

    def _search(self, units: tuple[int, ...], near: Fit, within: float) -> Minimum:
        objective = self.objective
        features = objective.units.of(units)
        guess = warm_start_near(
            self._minimum(near),
            objective.units.of(near.units),
            features,
            free=objective.free,
            curved=not objective.smooth.flat,
            joint=objective.smooth.joint,
        )
        return objective.minimise(self.pool.gather(units), features, guess, within)
