"""Frank-Wolfe steps, towards and away from vertices of the ball: one or two coordinates change at a time.

Towards a vertex they are those of Shalev-Shwartz and Srebro (2008), Figures 1 and 2, and of Shalev-Shwartz, Srebro and
Zhang (2010), Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pauca.l1.objective import BallObjective, DualityGap, Iterate, best_intercept_shifts, duality_gap
from pauca.losses import Loss
from pauca.objectives import GramRows


@dataclass(frozen=True, eq=False)
class Direction:
    """``shrink u + sum_i amounts_i e_(coords_i)``: the direction of a step."""

    shrink: float
    coords: list[int]
    amounts: list[float]
    longest: float
    dropped: int | None = None
    """The coordinate that becomes zero at the end of the longest step."""


def frank_wolfe_steps(
    objective: BallObjective,
    loss: Loss,
    radius: float,
    iterate: Iterate,
    solver: str,
    *,
    smoothness: float | None = None,
) -> Iterator[DualityGap]:
    """The iterates of a greedy search in the ball, with their duality gaps.

    "forward" steps from w towards the vertex of the steepest coordinate (Shalev-Shwartz, Srebro and Zhang 2010,
    Algorithm 2), ``w <- (1 - eta) w - eta radius sign(g_r) e_r``: by exact line search, or, where the ``smoothness``
    beta is given, by their ``eta = gap / (4 radius^2 beta)``. Either way
    ``Q(w_t) - min Q <= 8 beta radius^2 / (t + 3)`` for a beta that bounds the curvature, such as the averaged constant
    of ``BallObjective.smoothness``.

    "away" may also step away from the worst vertex in use, "pairwise" moves weight from it to the best (Lacoste-Julien
    and Jaggi 2015): what came in too early goes out again. What is left of the radius counts as weight on the origin.
    """
    now = (_GramIterate if loss.quadratic else _ScoreIterate)(objective, loss, iterate)
    while True:
        gradient = now.gradient()
        found = now.duality_gap(radius, gradient)
        yield found
        length = None
        if smoothness is not None:
            length = min(1.0, found.gap / (4.0 * radius**2 * smoothness)) if smoothness > 0 else 0.0
        if now.move(_direction(now.u, gradient, radius, solver), length) <= 0:
            return


def _direction(u: np.ndarray, gradient: np.ndarray, radius: float, solver: str) -> Direction:
    best = int(np.abs(gradient).argmax())
    toward = -float(np.sign(gradient[best])) * radius
    if solver == "forward":
        return Direction(-1.0, [best], [toward], 1.0)
    inside = np.flatnonzero(u)
    slopes = gradient[inside] * np.sign(u[inside])
    # The origin is the vertex of no coordinate; its gradient is zero.
    left = max(0.0, 1.0 - float(np.abs(u).sum()) / radius)
    worst = int(inside[slopes.argmax()]) if len(inside) and (slopes.max() > 0 or left <= 0) else None
    share = left if worst is None else min(1.0, abs(float(u[worst])) / radius)
    away_from = 0.0 if worst is None else float(np.sign(u[worst])) * radius
    if solver == "pairwise":
        if worst is None:
            return Direction(0.0, [best], [toward], share)
        # From one vertex of a coordinate to the other it goes through zero and does not end there.
        return Direction(0.0, [best, worst], [toward, -away_from], share, None if best == worst else worst)
    inner = float(gradient @ u)
    away = (0.0 if worst is None else float(gradient[worst]) * away_from) - inner
    if inner - float(gradient[best]) * toward >= away or share >= 1.0:
        return Direction(-1.0, [best], [toward], 1.0)
    coords, amounts = ([], []) if worst is None else ([worst], [-away_from])
    return Direction(1.0, coords, amounts, share / (1.0 - share), worst)


class _DenseCoordinates:
    """A point of the ball as a dense vector, which moves, and the intercepts."""

    def __init__(self, objective: BallObjective, loss: Loss, iterate: Iterate) -> None:
        self._objective = objective
        self._loss = loss
        self._intercepts = iterate.intercepts
        self.u = np.zeros(objective.n_outputs * objective.design.n_features)
        self.u[iterate.coords] = iterate.coef

    def _iterate(self) -> Iterate:
        inside = np.flatnonzero(self.u)
        return Iterate(inside, self.u[inside], self._intercepts)

    def _step(self, direction: Direction, length: float) -> None:
        self.u *= 1.0 + length * direction.shrink
        for coord, amount in zip(direction.coords, direction.amounts, strict=True):
            self.u[coord] += length * amount
        if direction.dropped is not None and length >= direction.longest:
            self.u[direction.dropped] = 0.0


class _GramIterate(_DenseCoordinates):
    """Squared loss: the gradient follows a step in one row of the Gram matrix, without a pass over X."""

    def __init__(self, objective: BallObjective, loss: Loss, iterate: Iterate) -> None:
        super().__init__(objective, loss, iterate)
        self._rows = GramRows(objective.design)
        null = objective.null
        self._start = objective.gradient(loss, objective.scores(null), null)
        self._product = np.zeros_like(self.u)
        for coord, coef in zip(iterate.coords.tolist(), iterate.coef, strict=True):
            self._add(coord, float(coef))

    def gradient(self) -> np.ndarray:
        return self._start + self._product

    def duality_gap(self, radius: float, gradient: np.ndarray) -> DualityGap:
        iterate = self._iterate()
        value = self._objective.null_value + float(iterate.coef @ (self._start + 0.5 * self._product)[iterate.coords])
        steepest = float(np.abs(gradient).max(initial=0.0))
        gap = duality_gap(gradient[iterate.coords], iterate.coef, radius, steepest)
        return DualityGap(iterate, max(value, 0.0), value - gap, gap)

    def move(self, direction: Direction, length: float | None) -> float:
        """Go along a direction, by a given length or to the minimum; the length of the step."""
        gradient = self.gradient()
        shrink, coords, amounts = direction.shrink, direction.coords, np.array(direction.amounts)
        hessian = np.array([self._second_derivative(i, j) for i in coords for j in coords]).reshape(
            len(coords), len(coords)
        )
        if length is None:
            slope = shrink * float(gradient @ self.u) + float(amounts @ gradient[coords])
            curvature = float(amounts @ hessian @ amounts) + 2.0 * shrink * float(amounts @ self._product[coords])
            curvature += shrink**2 * float(self.u @ self._product)
            length = min(direction.longest, -slope / curvature) if curvature > 0 else direction.longest
            length = length if slope < 0 else 0.0
        self._product *= 1.0 + length * shrink
        for coord, amount in zip(coords, direction.amounts, strict=True):
            self._add(coord, length * amount)
        self._step(direction, length)
        return length

    def _add(self, coord: int, amount: float) -> None:
        d = self._objective.design.n_features
        output, feature = divmod(coord, d)
        unit = self._objective.unit
        row = self._rows.row(feature, self._steepest)
        self._product[output * d : (output + 1) * d] += (amount * unit[feature]) * row * unit
        self._product[coord] += amount * self._objective.penalty[feature]

    def _second_derivative(self, one: int, other: int) -> float:
        d = self._objective.design.n_features
        (c, i), (e, j) = divmod(one, d), divmod(other, d)
        if c != e:
            return 0.0
        unit = self._objective.unit
        ridge = float(self._objective.penalty[i]) if i == j else 0.0
        return float(self._rows.row(i, self._steepest)[j] * unit[i] * unit[j]) + ridge

    def _steepest(self, feature: int, count: int) -> list[int]:
        """The features whose coordinates are steepest."""
        steep = np.abs(self.gradient()).reshape(self._objective.n_outputs, -1).max(axis=0)
        return np.argsort(-steep, kind="stable")[:count].tolist()


class _ScoreIterate(_DenseCoordinates):
    """Any loss: scores follow a step in one or two columns, and the gradient takes a pass over X."""

    def __init__(self, objective: BallObjective, loss: Loss, iterate: Iterate) -> None:
        super().__init__(objective, loss, iterate)
        self._columns: dict[int, np.ndarray] = {}
        self._scores = objective.scores(iterate)
        self._minimise_intercepts()

    def gradient(self) -> np.ndarray:
        return self._objective.gradient(self._loss, self._scores, self._iterate())

    def duality_gap(self, radius: float, gradient: np.ndarray) -> DualityGap:
        return self._objective.duality_gap(self._loss, radius, self._iterate(), self._scores, gradient)

    def move(self, direction: Direction, length: float | None) -> float:
        """Go along a direction, by a given length or to the minimum; the length of the step."""
        objective, d = self._objective, self._objective.design.n_features
        change = direction.shrink * (self._scores - self._intercepts[:, None])
        step = direction.shrink * self.u if objective.ridge else np.zeros(0)
        for coord, amount in zip(direction.coords, direction.amounts, strict=True):
            output, feature = divmod(coord, d)
            change[output] += amount * self._column(feature)
            if objective.ridge:
                step[coord] += amount
        if length is None:
            penalised = np.tile(objective.penalty, objective.n_outputs) * step if objective.ridge else step
            ridge_slopes = (float(penalised @ self.u), float(penalised @ step)) if objective.ridge else (0.0, 0.0)
            length = objective.best_length(self._loss, self._scores, change, ridge_slopes, direction.longest)
        self._scores += length * change
        self._step(direction, length)
        self._minimise_intercepts()
        return length

    def _column(self, feature: int) -> np.ndarray:
        if feature not in self._columns:
            self._columns[feature] = self._objective.columns(np.array([feature]))[0]
        return self._columns[feature]

    def _minimise_intercepts(self) -> None:
        objective = self._objective
        if objective.center:
            shift, _ = best_intercept_shifts(self._loss, objective.y, objective.weights, self._scores, objective.fixed)
            self._scores += shift[:, None]
            self._intercepts = self._intercepts + shift
