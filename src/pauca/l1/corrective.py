"""Fully corrective steps: coordinates come in by their gradient, and all that are in are minimised over together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from pauca.l1.certificate import Look, look
from pauca.l1.newton import NewtonSolver
from pauca.l1.objective import BallObjective, Iterate
from pauca.l1.quadratic import minimise_in_ball
from pauca.losses import Loss

# At least so many coordinates are looked at together, and as many again as are in use.
FEWEST_NEW = 10

# The minimum over some coordinates is found to within this share of the gap over all of them, or of the one wanted;
# for squared loss exactly, which costs no more.
INNER_SHARE = 0.1

# Steps that neither lower the value, rounding apart, nor make the gap narrower than this share: so many are too many.
ROUNDING = 1e-14
GETS_ON = 0.9
MOST_IDLE = 2


class Solver(Protocol):
    """A way to minimise over a few coordinates of the ball."""

    def solve(
        self, places: np.ndarray, at: Iterate, scores: np.ndarray, gradient: np.ndarray, bound: float, accuracy: float
    ) -> tuple[Iterate, np.ndarray]:
        """The minimum over the coordinates ``places``, which include those of ``at``, and its scores."""
        ...


def make_solver(objective: BallObjective, loss: Loss) -> Solver:
    """The solver for a loss; it may be used again for other bounds."""
    return GramSolver(objective) if loss.quadratic else NewtonSolver(objective, loss)


def corrective(
    objective: BallObjective, loss: Loss, solver: Solver, bound: float, at: Iterate, wanted: float, k: int | None
) -> Iterator[Look]:
    """Looks at better and better iterates; each costs one pass over X.

    Coordinates come in together, as many as are in use already, so that few passes are needed; with ``k`` one at a time
    and none beyond that many features.
    """
    at, scores = objective.settled(loss, at)
    idle, least, narrowest = 0, np.inf, np.inf
    while idle < MOST_IDLE:
        gradient = objective.gradient(loss, scores, at)
        now = look(objective, loss, bound, at, scores, gradient)
        yield now
        gets_on = now.value < least - ROUNDING * abs(now.value) or now.gap < GETS_ON * narrowest
        idle = 0 if gets_on else idle + 1
        least, narrowest = min(least, now.value), min(narrowest, now.gap)
        places = _candidates(objective, at, gradient, bound, k)
        accuracy = 0.0 if loss.quadratic else INNER_SHARE * max(wanted, now.gap)
        found, scores = solver.solve(places, at, scores, gradient, bound, accuracy)
        if np.array_equal(found.places, at.places) and np.array_equal(found.coef, at.coef):
            return
        at = found


def _candidates(objective: BallObjective, at: Iterate, gradient: np.ndarray, bound: float, k: int | None) -> np.ndarray:
    """The coordinates in use, and those whose gradient promises most."""
    steep = np.abs(gradient)
    level = steep[at.places].max(initial=0.0) if at.norm >= (1 - 1e-9) * bound else 0.0
    steep[at.places] = 0.0
    if k is None:
        count = max(FEWEST_NEW, len(at.places))
    else:
        features = objective.support(at)
        full = len(features) >= k
        if full:
            known = np.isin(np.arange(len(gradient)) % objective.design.n_features, features)
            steep[~known] = 0.0
        count = FEWEST_NEW if full else 1
    count = min(count, len(steep))
    new = np.argpartition(-steep, count - 1)[:count]
    return np.union1d(at.places, new[steep[new] > level]).astype(np.intp)


class GramSolver:
    """Squared loss: products of columns with each other are all that is needed, and each is computed once."""

    def __init__(self, objective: BallObjective) -> None:
        self._objective = objective
        self._features = np.zeros(0, dtype=np.intp)
        self._gram = np.zeros((0, 0))

    def solve(
        self, places: np.ndarray, at: Iterate, scores: np.ndarray, gradient: np.ndarray, bound: float, accuracy: float
    ) -> tuple[Iterate, np.ndarray]:
        """The minimum of the quadratic on ``places``, exact to rounding."""
        d = self._objective.design.n_features
        output, feature = np.divmod(places, d)
        hessian = self._among(feature)
        if self._objective.n_outputs > 1:
            hessian *= output[:, None] == output
        hessian.flat[:: len(places) + 1] += self._objective.penalty[feature]
        start = np.zeros(len(places))
        start[np.searchsorted(places, at.places)] = at.coef
        coef = minimise_in_ball(hessian, gradient[places], bound, start, accuracy)
        inside = coef != 0
        found = Iterate(places[inside], coef[inside], at.free)
        return found, self._objective.scores(found)

    def _among(self, features: np.ndarray) -> np.ndarray:
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
