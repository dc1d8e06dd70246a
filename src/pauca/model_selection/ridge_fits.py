"""The columns that a search has chosen, fitted again at other ridges than that of the search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from pauca.model import Snapshot
from pauca.objectives import LeastSquares, SmoothObjective, WarmStart, warm_start_near
from pauca.objectives.least_squares import GramRows, ridge_penalty
from pauca.objectives.merged_rows import Rows
from pauca.objectives.newton_at_ridges import NearbyHessians, minimise_at_ridges
from pauca.objectives.restricted import shared_positions
from pauca.solvers.newton import Accuracy, Minimum
from pauca.subsets.base import Subset
from pauca.subsets.fit_cache import FitCache
from pauca.subsets.least_squares import LeastSquaresSubset
from pauca.subsets.smooth import SmoothSubset
from pauca.tolerances import DEPENDENT_BELOW

SCORED = Accuracy(within=1e-7)
"""How far models are fitted that are only scored on held-out rows."""

SCORED_JOINTLY = Accuracy(within=1e-6)
"""The same for many classes and for coupled rows, whose every step costs far more."""

# Hessians are carried on from the last set of units if no more than this share of the units is new.
MOST_BORDERED = 0.34


@dataclass(frozen=True, eq=False)
class RidgeFits:
    """Models on one set of columns at every ridge, in the user's units."""

    columns: np.ndarray
    """Ascending, shape (q,)."""
    coef: np.ndarray
    """Shape (R, C, q)."""
    intercept: np.ndarray
    """Shape (R, C)."""


class Refitter(Protocol):
    """Fits sets of units at every ridge."""

    def __call__(self, units: Sequence[int], path: int = 0, searched: Snapshot | None = None) -> RidgeFits:
        """The models of one set, perhaps of one of several paths, as the search with its own ridge has ``searched`` it.

        The sets of a path should come in its order.
        """
        ...


def refitter(subset: Subset, ridges: Sequence[float], *, standardize: bool) -> Refitter:
    """Fits of any set of units on the data of ``subset`` at the given ridges.

    Squared loss: one eigendecomposition for all ridges. Other losses: Newton steps from the last set of the path.
    """
    if isinstance(subset, LeastSquaresSubset):
        return _ClosedForm(subset.objective, subset.gram, ridges, standardize)
    assert isinstance(subset, SmoothSubset)
    objective = subset.objective
    simple = objective.n_outputs == 1 and objective.user_bounds is None
    if simple and not objective.smooth.flat:
        return _NewtonAtOnce(subset.cache.fits, ridges)
    return _NewtonSteps(objective, ridges)


class _ClosedForm:
    """``(G + ridge D) z = slope`` for every ridge, from the eigenvectors of ``D^-1/2 G D^-1/2``."""

    def __init__(self, objective: LeastSquares, gram: GramRows, ridges: Sequence[float], standardize: bool) -> None:
        self._objective = objective
        self._gram = gram
        self._ridges = np.array(ridges)
        self._unit = ridge_penalty(objective.design, 1.0, standardize=standardize)

    def __call__(self, units: Sequence[int], path: int = 0, searched: Snapshot | None = None) -> RidgeFits:
        columns = np.sort(np.array(units, dtype=np.intp))
        if not len(columns):
            return _constants(np.full((len(self._ridges), 1), self._objective.intercept))
        objective = self._objective
        scale = 1.0 / np.sqrt(self._unit[columns])
        gram = self._gram.rows(columns, columns)
        values, vectors = np.linalg.eigh(gram * scale[:, None] * scale)
        left = values + self._ridges[:, None]
        # Combinations that do not vary have no coefficient without a ridge.
        held = left > DEPENDENT_BELOW * values.max(initial=0.0)
        inverse = np.divide(1.0, left, out=np.zeros_like(left), where=held)
        z = (inverse * (vectors.T @ (scale * objective.slope[columns]))) @ vectors.T * scale
        return _at_all_ridges(objective, columns, z)


def fits_of_search(subset: Subset, snapshot: Snapshot) -> RidgeFits | None:
    """The model of a search, at the ridge of the search alone; None but for squared loss, where it is exact already."""
    if not isinstance(subset, LeastSquaresSubset):
        return None
    columns = np.array(snapshot.support, dtype=np.intp)
    order = np.argsort(columns)
    return _at_all_ridges(subset.objective, columns[order], snapshot.coef[None, order])


def _at_all_ridges(objective: LeastSquares, columns: np.ndarray, z: np.ndarray) -> RidgeFits:
    """Models from standardised coefficients of shape (R, q)."""
    coef = z / objective.design.spread[columns]
    intercept = objective.intercept - coef @ objective.design.mean[columns]
    return RidgeFits(columns, coef[:, None, :], intercept[:, None])


class _Reached(NamedTuple):
    """The models of the last set of a path."""

    units: list[int]
    coef: np.ndarray
    """Shape (R, q)."""
    hessian: np.ndarray | None
    value: np.ndarray | None
    rows: Rows
    searched: np.ndarray | None
    """The coefficients of the search, shape (q,)."""


class _NewtonAtOnce:
    """Newton steps at all ridges at once, from the models of the last set of the same path.

    By what the search's own coefficients have changed since, those at other ridges are likely to change.
    """

    def __init__(self, fits: FitCache, ridges: Sequence[float]) -> None:
        self._fits = fits
        self._one_by_one = _NewtonSteps(fits.objective, ridges)
        self._objectives = self._one_by_one.objectives
        null = fits.null.coef[0]
        self._empty = _Reached([], np.tile(null, (len(ridges), 1)), None, None, fits.objective.rows, null)
        self._reached = dict[int, _Reached]()

    def __call__(self, units: Sequence[int], path: int = 0, searched: Snapshot | None = None) -> RidgeFits:
        objective, pool = self._fits.objective, self._fits.pool
        if not len(units):
            return self._one_by_one(units)
        last, units = self._reached.get(path, self._empty), sorted(units)
        grown = set(last.units) <= set(units)
        rows = pool.split(last.rows if grown else objective.rows, set(units) - set(last.units) if grown else units)
        features = objective.units.of(units)
        penalty = np.empty((len(self._objectives), objective.free + len(features)))
        penalty[:, : objective.free] = objective.free_penalty
        penalty[:, objective.free :] = [one.penalty[features] for one in self._objectives]
        by_search = None
        if searched is not None:
            constant = np.zeros(0) if searched.intercept is None else searched.intercept[: objective.free]
            by_search = np.concatenate([constant, searched.coef[0]])
        found = minimise_at_ridges(
            objective.smooth,
            rows.y[0],
            rows.weights,
            pool.gather(units, rows),
            penalty,
            self._start(last, units, by_search),
            SCORED.within,
            self._nearby(last, units),
            last.value if grown else None,
        )
        if found is None:
            self._reached[path] = last._replace(hessian=None, value=None)
            return self._one_by_one(units)
        self._reached[path] = _Reached(units, found.coef, found.hessian, found.value, rows, by_search)
        return in_user_units(objective, features, found.coef[:, None, :])

    def _nearby(self, last: _Reached, units: list[int]) -> NearbyHessians | None:
        """The Hessians of the last models, if this set has few units more."""
        added = set(units) - set(last.units)
        if last.hessian is None or len(added) > max(1, MOST_BORDERED * len(units)):
            return None
        of, free = self._fits.objective.units.of, self._fits.objective.free
        positions, old = shared_positions(of(last.units), of(units), free)
        return NearbyHessians(last.hessian[:, old[:, None], old], positions)

    def _start(self, last: _Reached, units: list[int], searched: np.ndarray | None) -> np.ndarray:
        """The last coefficients of the units that are still there, zero for others, and what the search has changed."""
        objective = self._fits.objective
        before, features = objective.units.of(last.units), objective.units.of(units)
        positions, old = shared_positions(before, features, objective.free)
        start = np.zeros((len(last.coef), objective.free + len(features)))
        start[:, positions] = last.coef[:, old]
        if searched is not None and last.searched is not None:
            changed = searched.copy()
            changed[positions] -= last.searched[old]
            # At every ridge coefficients are about a multiple of those of the search; so are their changes.
            known = last.searched[objective.free :]
            multiple = last.coef[:, objective.free :] @ known / (known @ known or 1.0)
            start += multiple[:, None] * changed
        return start


class _NewtonSteps:
    """Newton steps at every ridge, from the model of the last set at the same ridge."""

    def __init__(self, objective: SmoothObjective, ridges: Sequence[float]) -> None:
        self.objectives = [replace(objective, ridge=float(ridge), ridge_by_unit=False) for ridge in ridges]
        self._rows = objective.unmerged_rows
        self._last: list[Minimum] = []
        self._before = np.zeros(0, dtype=np.intp)

    def __call__(self, units: Sequence[int], path: int = 0, searched: Snapshot | None = None) -> RidgeFits:
        first = self.objectives[0]
        if not len(units):
            constant = self._null.coef[:, 0] if first.free else np.zeros(first.n_outputs)
            return _constants(np.tile(constant + first.origin, (len(self.objectives), 1)))
        features = np.sort(first.units.of(sorted(units)))
        rows = self._rows
        ones = np.ones((first.free, len(rows.weights)))
        columns = np.concatenate([ones, rows.of_columns(first.design.columns(features))])
        found: list[Minimum] = [self._null] * len(self.objectives)
        # From heavy to light: where there is no model of a smaller set yet, a heavier ridge is the next best start.
        for position in reversed(range(len(self.objectives))):
            objective = self.objectives[position]
            start = self._start(position, features, found[position + 1 :])
            accuracy = SCORED_JOINTLY if objective.smooth.joint or objective.smooth.coupled else SCORED
            found[position] = objective.minimise(rows, columns, features, start, accuracy)
        self._last, self._before = found, features
        return in_user_units(first, features, np.stack([one.coef for one in found]))

    @cached_property
    def _null(self) -> Minimum:
        objective = self.objectives[0]
        return replace(objective.null, scores=objective.rows.onto(self._rows, objective.null.scores))

    def _start(self, position: int, features: np.ndarray, heavier: list[Minimum]) -> WarmStart:
        objective = self.objectives[position]
        if not self._last and heavier:
            start = WarmStart(heavier[0].coef)
        else:
            start = warm_start_near(
                self._last[position] if self._last else self._null,
                self._before,
                features,
                free=objective.free,
                curved=not objective.smooth.flat,
            )
        if not heavier or heavier[0].hessian is None or objective.smooth.flat:
            return start
        # The Hessian of the next heavier ridge on the same columns, which is known, differs by little but the ridge.
        change = objective.full_penalty(features) - self.objectives[position + 1].full_penalty(features)
        blocks = heavier[0].hessian.shape[1] // len(change)
        return replace(
            start,
            hessian=heavier[0].hessian + np.diag(np.tile(change, blocks)),
            hessian_scores=heavier[0].scores,
            positions=np.arange(len(change)),
        )


def in_user_units(objective: SmoothObjective, features: np.ndarray, found: np.ndarray) -> RidgeFits:
    """Models from standardised coefficients of shape (R, C, q)."""
    design, free = objective.design, objective.free
    coef = found[..., free:] / design.spread[features]
    if objective.user_bounds is not None:
        coef = np.clip(coef, objective.user_bounds[0][features], objective.user_bounds[1][features])
    intercept = found[..., 0] if free else np.zeros(found.shape[:2])
    return RidgeFits(features, coef, intercept - coef @ design.mean[features] + objective.origin)


def _constants(intercept: np.ndarray) -> RidgeFits:
    """Models without columns, with intercepts of shape (R, C)."""
    return RidgeFits(np.zeros(0, dtype=np.intp), np.zeros((*intercept.shape, 0)), intercept)


def has_dependent(subset: Subset, units: Sequence[int]) -> bool:
    """Whether some units depend on each other linearly, so that without a ridge their coefficients are not unique.

    For squared loss; other losses always have a ridge too small to be seen.
    """
    if not isinstance(subset, LeastSquaresSubset) or len(units) < 2:
        return False
    columns = np.array(units, dtype=np.intp)
    return bool(np.linalg.eigvalsh(subset.gram.rows(columns, columns))[0] <= DEPENDENT_BELOW)


def refit_path(subset: Subset, supports: Mapping[int, Iterable[int]]) -> dict[int, Snapshot]:
    """The models of a path at the ridge of ``subset``, each reached from the one before by additions and removals.

    Without a ridge, sets with columns that depend on each other have no model.
    """
    found = {0: subset.null}
    for size in sorted(supports):
        wanted = set(supports[size])
        for unit in set(subset.support) - wanted:
            subset.drop(unit)
        missing = sorted(wanted.difference(subset.support))
        if not subset.closed_form:
            subset.exchange((), missing)  # in one refit
            missing = []
        for unit in missing:
            if unit in subset.dependent():
                break
            subset.add(unit)
        if set(subset.support) == wanted:
            found[size] = subset.snapshot()
    return found
