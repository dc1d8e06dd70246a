"""Fully corrective steps: coordinates come in by their gradient, and all that are in are minimised over together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pauca.clock import check_time
from pauca.l1.objective import (
    LEAST_CURVATURE,
    BallObjective,
    DualityGap,
    Iterate,
    best_intercept_shifts,
    duality_gap,
    regular_hessian,
)
from pauca.l1.quadratic_in_ball import GAP_ROUNDING, minimise_in_ball
from pauca.losses import Loss
from pauca.solvers.factorisation import solve_or_nearest

# At least so many coordinates come in together, and as many again as are in use.
FEWEST_NEW = 10

# The minimum over some coordinates is found to within this share of the gap over all of them, or of the one required;
# for squared loss exactly, which costs no more.
INNER_SHARE = 0.1

# Steps that neither lower the value by more than its rounding nor make the gap smaller than this share: so many are too
# many.
VALUE_ROUNDING = 1e-14
GAP_MUST_SHRINK_TO = 0.9
MOST_STALLED = 2

# A model whose norm is less by no more than this share is on the surface of the ball.
ON_SURFACE = 1 - 1e-9

# Newton's method on some coordinates: its largest number of steps, and the share of the accuracy to which each
# quadratic model is minimised.
MOST_STEPS = 60
QUADRATIC_SHARE = 0.1

# Coefficients of all outputs may change together without any change of the loss where outputs share one: so much is
# added to the diagonal of the Hessian that steps do not follow rounding there.
COUPLED_DAMPING = 1e-8

# Of losses with flat pieces: the share of the broad curvature mixed into the Hessian, and its range. A short step shows
# that the curvature does not extend far, and the share is raised; otherwise it is lowered.
FIRST_SHARE = 0.1
SHARE_RANGE = (1e-8, 1.0)
SHORT_STEP = 0.3
SHARE_CHANGE = 4.0


def corrective_steps(
    objective: BallObjective,
    loss: Loss,
    solver: InnerSolver,
    radius: float,
    iterate: Iterate,
    required: float,
    k: int | None,
) -> Iterator[DualityGap]:
    """Better and better iterates with their duality gaps; each costs one pass over X.

    Coordinates come in together, as many as are in use already, so that few passes are needed; with ``k`` one at a time
    and none beyond that many features.
    """
    iterate, scores = objective.minimise_intercepts(loss, iterate)
    idle, least, narrowest = 0, np.inf, np.inf
    while idle < MOST_STALLED:
        gradient = objective.gradient(loss, scores, iterate)
        now = objective.duality_gap(loss, radius, iterate, scores, gradient)
        yield now
        improves = now.value < least - VALUE_ROUNDING * abs(now.value) or now.gap < GAP_MUST_SHRINK_TO * narrowest
        idle = 0 if improves else idle + 1
        least, narrowest = min(least, now.value), min(narrowest, now.gap)
        coords = _candidates(objective, iterate, gradient, radius, k)
        accuracy = 0.0 if loss.quadratic else INNER_SHARE * max(required, now.gap)
        found = solver.solve(coords, iterate, scores, gradient, radius, accuracy)
        if np.array_equal(found.coords, iterate.coords) and np.array_equal(found.coef, iterate.coef):
            return
        # What is proven rests on the model alone, not on what its solver makes of it.
        iterate, scores = found, objective.scores(found)


def _candidates(
    objective: BallObjective, iterate: Iterate, gradient: np.ndarray, radius: float, k: int | None
) -> np.ndarray:
    """The coordinates in use, and those with the largest gradient."""
    steep = np.abs(gradient)
    level = steep[iterate.coords].max(initial=0.0) if iterate.norm >= ON_SURFACE * radius else 0.0
    steep[iterate.coords] = 0.0
    if k is None:
        count = max(FEWEST_NEW, len(iterate.coords))
    else:
        features = objective.support(iterate)
        full = len(features) >= k
        if full:
            in_use = np.isin(np.arange(len(gradient)) % objective.design.n_features, features)
            steep[~in_use] = 0.0
        count = FEWEST_NEW if full else 1
    count = min(count, len(steep))
    new = np.argpartition(-steep, count - 1)[:count]
    return np.union1d(iterate.coords, new[steep[new] > level]).astype(np.intp)


class GramSolver:
    """Squared loss: products of columns with each other are all that is needed, and each is computed once."""

    def __init__(self, objective: BallObjective) -> None:
        self._objective = objective
        self._features = np.zeros(0, dtype=np.intp)
        self._gram = np.zeros((0, 0))

    def solve(
        self,
        coords: np.ndarray,
        iterate: Iterate,
        scores: np.ndarray,
        gradient: np.ndarray,
        radius: float,
        accuracy: float,
    ) -> Iterate:
        """The minimum over ``coords``, which include those of ``iterate``, exact to rounding."""
        output, feature = np.divmod(coords, self._objective.design.n_features)
        hessian = self._gram_of(feature)
        if self._objective.n_outputs > 1:
            hessian *= output[:, None] == output
        hessian.flat[:: len(coords) + 1] += self._objective.penalty[feature]
        start = np.zeros(len(coords))
        start[np.searchsorted(coords, iterate.coords)] = iterate.coef
        coef = minimise_in_ball(hessian, gradient[coords], radius, start, accuracy)
        inside = coef != 0
        return Iterate(coords[inside], coef[inside], iterate.intercepts)

    def _gram_of(self, features: np.ndarray) -> np.ndarray:
        """Products of some columns with each other."""
        new = np.setdiff1d(features, self._features)
        if len(new):
            known, size = len(self._features), len(self._features) + len(new)
            together = np.concatenate([self._features, new])
            grown = np.empty((size, size))
            grown[:known, :known] = self._gram
            grown[known:] = self._objective.gram(new, together)
            grown[:known, known:] = grown[known:, :known].T
            self._features, self._gram = together, grown
        order = np.argsort(self._features)
        where = order[np.searchsorted(self._features, features, sorter=order)]
        return self._gram[where[:, None], where]


class NewtonSolver:
    """Newton's method in the ball: a quadratic model is minimised there, and then the objective on the line to it."""

    def __init__(self, objective: BallObjective, loss: Loss) -> None:
        self._objective = objective
        self._loss = loss
        self._features = np.zeros(0, dtype=np.intp)
        self._columns = np.zeros((0, objective.design.n_rows))
        self._share = FIRST_SHARE

    def solve(
        self,
        coords: np.ndarray,
        iterate: Iterate,
        scores: np.ndarray,
        gradient: np.ndarray,
        radius: float,
        accuracy: float,
    ) -> Iterate:
        """The minimum over ``coords``, which include those of ``iterate``, to within ``accuracy``."""
        objective, loss = self._objective, self._loss
        output, feature = np.divmod(coords, objective.design.n_features)
        columns = self._columns_of(feature)
        penalty = objective.penalty[feature]
        coef = np.zeros(len(coords))
        coef[np.searchsorted(coords, iterate.coords)] = iterate.coef
        now = _Restricted(coef, iterate.intercepts, scores, gradient[coords])
        gap = duality_gap(now.gradient, coef, radius)
        for _ in range(MOST_STEPS):
            check_time()
            if gap <= accuracy:
                break
            model = _QuadraticModel(objective, loss, columns, output, now.scores, self._share if loss.flat else 0.0)
            hessian = model.hessian + np.diag(penalty)
            target = minimise_in_ball(hessian, now.gradient, radius, now.coef, QUADRATIC_SHARE * accuracy)
            step = target - now.coef
            shift = model.intercept_change(step)
            predicted = -float(now.gradient @ step)
            hidden = predicted <= GAP_ROUNDING * radius * float(np.abs(now.gradient).max())
            length = 1.0
            if not hidden:
                change = _scores(step, columns, output, len(shift)) + shift[:, None]
                ridge_slopes = float((penalty * now.coef) @ step), float((penalty * step) @ step)
                length = objective.best_length(loss, now.scores, change, ridge_slopes, 1.0)
                factor = SHARE_CHANGE if length < SHORT_STEP else 1 / SHARE_CHANGE
                self._share = float(np.clip(self._share * factor, *SHARE_RANGE))
            coef = target if length == 1.0 else now.coef + length * step
            there = self._evaluate(coef, now.intercepts + length * shift, columns, output, penalty)
            next_gap = duality_gap(there.gradient, coef, radius)
            # Where rounding hides whether the value has fallen, the gap decides.
            if length == 0 or (hidden and not next_gap < gap):
                break
            now, gap = there, next_gap
        inside = now.coef != 0
        return Iterate(coords[inside], now.coef[inside], now.intercepts)

    def _evaluate(
        self, coef: np.ndarray, intercepts: np.ndarray, columns: np.ndarray, output: np.ndarray, penalty: np.ndarray
    ) -> _Restricted:
        """The point of some coefficients, its intercepts minimised out."""
        objective, loss = self._objective, self._loss
        scores = _scores(coef, columns, output, len(intercepts)) + intercepts[:, None]
        if objective.center:
            shift, _ = best_intercept_shifts(loss, objective.y, objective.weights, scores, objective.fixed)
            intercepts, scores = intercepts + shift, scores + shift[:, None]
        gradient = _gradient(objective, loss, columns, output, scores) + penalty * coef
        return _Restricted(coef, intercepts, scores, gradient)

    def _columns_of(self, features: np.ndarray) -> np.ndarray:
        """The column of every one of ``features``, in their order; those that were gathered last time are kept."""
        needed = np.unique(features)
        columns = np.empty((len(needed), self._columns.shape[1]))
        _, old, kept = np.intersect1d(self._features, needed, return_indices=True)
        columns[kept] = self._columns[old]
        new = np.setdiff1d(needed, self._features)
        if len(new):
            columns[np.searchsorted(needed, new)] = self._objective.columns(new)
        self._features, self._columns = needed, columns
        # Those of several outputs, one after the other, need not ascend even where no two are the same.
        return columns if np.array_equal(needed, features) else columns[np.searchsorted(needed, features)]


InnerSolver = GramSolver | NewtonSolver


def make_solver(objective: BallObjective, loss: Loss) -> InnerSolver:
    """The solver of small problems for a loss; it may be used again for other radii."""
    return GramSolver(objective) if loss.quadratic else NewtonSolver(objective, loss)


class _Restricted(NamedTuple):
    """A point and its gradient on a few coordinates."""

    coef: np.ndarray
    intercepts: np.ndarray
    scores: np.ndarray
    gradient: np.ndarray


class _QuadraticModel:
    """The Hessian on a few coordinates with the intercepts minimised out, which is a Schur complement."""

    def __init__(
        self,
        objective: BallObjective,
        loss: Loss,
        columns: np.ndarray,
        output: np.ndarray,
        scores: np.ndarray,
        share: float,
    ) -> None:
        v, y = objective.weights, objective.y
        curvature = loss.curvature(y, scores)
        coupled = loss.coupling(curvature)
        if share:
            curvature = curvature + share * loss.broad_curvature(y, scores, v)
        curvature = curvature * v
        weighted = columns * (curvature[0] if len(scores) == 1 else curvature[output])
        self.hessian = weighted @ columns.T
        if len(scores) > 1:
            self.hessian *= output[:, None] == output
        across = np.zeros((len(columns), len(scores)))
        across[np.arange(len(columns)), output] = weighted.sum(axis=1)
        own = np.diag(curvature.sum(axis=1))
        if coupled is not None:
            part = columns * coupled[output]
            self.hessian -= (part * v) @ part.T
            across -= (part * v) @ coupled.T
            own = own - (coupled * v) @ coupled.T
            self.hessian.flat[:: len(columns) + 1] *= 1.0 + COUPLED_DAMPING
        moving = ~objective.fixed
        self._intercepts_per_coef = np.zeros((len(scores), len(columns)))
        if moving.any():
            own = own[moving][:, moving]
            own = (
                own + LEAST_CURVATURE * np.eye(len(own)) * (own.max() or 1.0)
                if coupled is None
                else regular_hessian(own)
            )
            self._intercepts_per_coef[moving] = -solve_or_nearest(own, across[:, moving].T)
            self.hessian += across @ self._intercepts_per_coef

    def intercept_change(self, step: np.ndarray) -> np.ndarray:
        """By how much the intercepts change with a step of the coordinates, shape (C,)."""
        return self._intercepts_per_coef @ step


def _scores(coef: np.ndarray, columns: np.ndarray, output: np.ndarray, n_outputs: int) -> np.ndarray:
    """Scores of coordinates, shape (C, n)."""
    if n_outputs == 1:
        return (coef @ columns)[None]
    return np.stack([coef[output == c] @ columns[output == c] for c in range(n_outputs)])


def _gradient(
    objective: BallObjective, loss: Loss, columns: np.ndarray, output: np.ndarray, scores: np.ndarray
) -> np.ndarray:
    """The gradient on a few coordinates, without the ridge."""
    slopes = loss.derivative(objective.y, scores) * objective.weights
    if len(scores) == 1:
        return columns @ slopes[0]
    return np.einsum("an,an->a", columns, slopes[output])
