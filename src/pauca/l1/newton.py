"""Minima over a few coordinates of the ball for any smooth loss: quadratic models in the ball, one after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pauca.l1.line_search import LEAST, held, line_minimum, settled
from pauca.l1.objective import BallObjective, Iterate
from pauca.l1.quadratic import minimise_in_ball
from pauca.losses import Loss

MOST_STEPS = 60

# What a step promises is a difference of numbers this much larger: below it there is only rounding.
ROUNDING = 1e-15

# The quadratic model is minimised to within this share of what the objective is to be minimised to.
INNER = 0.1

# Coefficients of all outputs may change together without any change of the loss where outputs share one: so much is
# added to the diagonal of the Hessian that steps do not follow rounding there.
COUPLED = 1e-8

# Of losses with flat pieces: the share of the broad curvature mixed into the Hessian, and its range. Short steps show
# that the curvature does not reach far, and ask for more.
FIRST_SHARE = 0.1
SHARES = (1e-8, 1.0)
SHORT_STEP = 0.3
CHANGE = 4.0


class NewtonSolver:
    """Newton's method in the ball: a quadratic model is minimised there, and then the objective on the line to it."""

    def __init__(self, objective: BallObjective, loss: Loss) -> None:
        self._objective = objective
        self._loss = loss
        self._features = np.zeros(0, dtype=np.intp)
        self._columns = np.zeros((0, objective.design.n_rows))
        self._share = FIRST_SHARE

    def solve(
        self, places: np.ndarray, at: Iterate, scores: np.ndarray, gradient: np.ndarray, bound: float, accuracy: float
    ) -> tuple[Iterate, np.ndarray]:
        """The minimum over ``places`` to within ``accuracy``."""
        objective, loss = self._objective, self._loss
        output, feature = np.divmod(places, objective.design.n_features)
        columns = self._of(feature)
        penalty = objective.penalty[feature]
        coef = np.zeros(len(places))
        coef[np.searchsorted(places, at.places)] = at.coef
        free, slope = at.free, gradient[places]
        gap = _gap(slope, coef, bound)
        for _ in range(MOST_STEPS):
            if gap <= accuracy:
                break
            model = _Model(objective, loss, columns, output, scores, self._share if loss.flat else 0.0)
            hessian = model.hessian + np.diag(penalty)
            wished = minimise_in_ball(hessian, slope, bound, coef, INNER * accuracy)
            step, follow = wished - coef, model.follow(wished - coef)
            promised, hidden = -float(slope @ step), ROUNDING * bound * float(np.abs(slope).max())
            length = 1.0
            if promised > hidden:
                change = _by_output(step, columns, output, len(free)) + follow[:, None]
                along = float((penalty * coef) @ step), float((penalty * step) @ step)
                length = line_minimum(loss, objective.y, objective.weights, scores, change, along, 1.0)
                self._share = float(np.clip(self._share * (CHANGE if length < SHORT_STEP else 1 / CHANGE), *SHARES))
            there = self._there(
                wished if length == 1.0 else coef + length * step, free + length * follow, columns, output
            )
            ahead = there.slope + penalty * there.coef
            following = _gap(ahead, there.coef, bound)
            # Where rounding hides whether the value has fallen, the gap tells.
            if length == 0 or (promised <= hidden and not following < gap):
                break
            coef, free, scores = there.coef, there.free, there.scores
            slope, gap = ahead, following
        inside = coef != 0
        return Iterate(places[inside], coef[inside], free), scores

    def _there(self, coef: np.ndarray, free: np.ndarray, columns: np.ndarray, output: np.ndarray) -> _Place:
        """The point of some coefficients, its intercepts settled."""
        objective, loss = self._objective, self._loss
        scores = _by_output(coef, columns, output, len(free)) + free[:, None]
        if objective.center:
            shift, _ = settled(loss, objective.y, objective.weights, scores, objective.fixed)
            free, scores = free + shift, scores + shift[:, None]
        return _Place(coef, free, scores, _slopes(objective, loss, columns, output, scores))

    def _of(self, features: np.ndarray) -> np.ndarray:
        """Columns of the coordinates; of those that are still wanted none is gathered twice."""
        wanted = np.unique(features)
        columns = np.empty((len(wanted), self._columns.shape[1]))
        _, old, kept = np.intersect1d(self._features, wanted, return_indices=True)
        columns[kept] = self._columns[old]
        new = np.setdiff1d(wanted, self._features)
        if len(new):
            columns[np.searchsorted(wanted, new)] = self._objective.columns(new)
        self._features, self._columns = wanted, columns
        return columns if len(wanted) == len(features) else columns[np.searchsorted(wanted, features)]


class _Place(NamedTuple):
    """A point and its gradient on a few coordinates, the ridge left out."""

    coef: np.ndarray
    free: np.ndarray
    scores: np.ndarray
    slope: np.ndarray


class _Model:
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
            self.hessian.flat[:: len(columns) + 1] *= 1.0 + COUPLED
        moving = ~objective.fixed
        self._follow = np.zeros((len(scores), len(columns)))
        if moving.any():
            own = own[moving][:, moving]
            own = own + LEAST * np.eye(len(own)) * (own.max() or 1.0) if coupled is None else held(own)
            self._follow[moving] = -np.linalg.solve(own, across[:, moving].T)
            self.hessian += across @ self._follow

    def follow(self, step: np.ndarray) -> np.ndarray:
        """By how much the intercepts change with a step of the coordinates, shape (C,)."""
        return self._follow @ step


def _gap(slope: np.ndarray, coef: np.ndarray, bound: float) -> float:
    return float(slope @ coef) + bound * float(np.abs(slope).max(initial=0.0))


def _by_output(coef: np.ndarray, columns: np.ndarray, output: np.ndarray, n_outputs: int) -> np.ndarray:
    """Scores of coordinates, shape (C, n)."""
    if n_outputs == 1:
        return (coef @ columns)[None]
    return np.stack([coef[output == c] @ columns[output == c] for c in range(n_outputs)])


def _slopes(
    objective: BallObjective, loss: Loss, columns: np.ndarray, output: np.ndarray, scores: np.ndarray
) -> np.ndarray:
    """The gradient on a few coordinates, without the ridge."""
    slopes = loss.derivative(objective.y, scores) * objective.weights
    if len(scores) == 1:
        return columns @ slopes[0]
    return np.einsum("an,an->a", columns, slopes[output])
