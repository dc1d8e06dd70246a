"""Steps towards and away from vertices of the ball: one or two coordinates change at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pauca.l1.certificate import Look, look
from pauca.l1.line_search import line_minimum, settled
from pauca.l1.objective import BallObjective, Iterate
from pauca.losses import Loss
from pauca.objectives import GramRows


@dataclass(frozen=True, eq=False)
class Direction:
    """``shrink u + sum_i amounts_i e_(places_i)``: the direction of a step."""

    shrink: float
    places: list[int]
    amounts: list[float]
    longest: float
    gone: int | None = None
    """The coordinate that reaches zero at the end of the longest step."""


class Field(Protocol):
    """A point of the ball as a dense vector, and its gradient."""

    u: np.ndarray

    def gradient(self) -> np.ndarray:
        """The gradient in all coordinates."""
        ...

    def look(self, bound: float, gradient: np.ndarray) -> Look:
        """What is known here."""
        ...

    def move(self, direction: Direction, length: float | None) -> float:
        """Go along a direction, so far as is asked or as lowers the value most; the length of the step."""
        ...


def vertices(
    objective: BallObjective, loss: Loss, bound: float, at: Iterate, method: str, *, closed: bool
) -> Iterator[Look]:
    """Looks at the iterates of a greedy search in the ball.

    "forward" steps from w towards the vertex of the steepest coordinate, ``w <- (1 - eta) w - eta bound sign(g_r) e_r``
    (Shalev-Shwartz, Srebro and Zhang 2010, Algorithm 2): by exact line search, or ``closed`` by their
    ``eta = gap / (4 bound^2 beta)`` with the averaged constant of ``BallObjective.steepness``. Either way
    ``Q(w_t) - min Q <= 8 beta bound^2 / (t + 3)``.

    "away" may also step away from the worst vertex in use, "pairwise" moves weight from it to the best (Lacoste-Julien
    and Jaggi 2015): what came in too early goes out again. What is left of the bound counts as weight on the origin.
    """
    field: Field = _GramField(objective, loss, at) if loss.quadratic else _ScoreField(objective, loss, at)
    steepness = objective.steepness(loss) if closed else None
    while True:
        gradient = field.gradient()
        now = field.look(bound, gradient)
        yield now
        length = None
        if closed:
            assert steepness is not None
            length = min(1.0, now.gap / (4.0 * bound**2 * steepness)) if steepness > 0 else 0.0
        if field.move(_direction(field.u, gradient, bound, method), length) <= 0:
            return


def _direction(u: np.ndarray, gradient: np.ndarray, bound: float, method: str) -> Direction:
    best = int(np.abs(gradient).argmax())
    toward = -float(np.sign(gradient[best])) * bound
    if method == "forward":
        return Direction(-1.0, [best], [toward], 1.0)
    inside = np.flatnonzero(u)
    worth = gradient[inside] * np.sign(u[inside])
    # The origin is the vertex of no coordinate; its gradient is zero.
    left = max(0.0, 1.0 - float(np.abs(u).sum()) / bound)
    worst = int(inside[worth.argmax()]) if len(inside) and (worth.max() > 0 or left <= 0) else None
    share = left if worst is None else min(1.0, abs(float(u[worst])) / bound)
    leaving = 0.0 if worst is None else float(np.sign(u[worst])) * bound
    if method == "pairwise":
        if worst is None:
            return Direction(0.0, [best], [toward], share)
        # From one vertex of a coordinate to the other it goes through zero and does not end there.
        return Direction(0.0, [best, worst], [toward, -leaving], share, None if best == worst else worst)
    inner = float(gradient @ u)
    away = (0.0 if worst is None else float(gradient[worst]) * leaving) - inner
    if inner - float(gradient[best]) * toward >= away or share >= 1.0:
        return Direction(-1.0, [best], [toward], 1.0)
    places, amounts = ([], []) if worst is None else ([worst], [-leaving])
    return Direction(1.0, places, amounts, share / (1.0 - share), worst)


class _Dense:
    """Coordinates as a dense vector."""

    def __init__(self, objective: BallObjective, loss: Loss, at: Iterate) -> None:
        self._objective = objective
        self._loss = loss
        self._free = at.free
        self.u = np.zeros(objective.n_outputs * objective.design.n_features)
        self.u[at.places] = at.coef

    def _iterate(self) -> Iterate:
        inside = np.flatnonzero(self.u)
        return Iterate(inside, self.u[inside], self._free)

    def _step(self, direction: Direction, length: float) -> None:
        self.u *= 1.0 + length * direction.shrink
        for place, amount in zip(direction.places, direction.amounts, strict=True):
            self.u[place] += length * amount
        if direction.gone is not None and length >= direction.longest:
            self.u[direction.gone] = 0.0


class _GramField(_Dense):
    """Squared loss: the gradient follows a step in one row of the Gram matrix, without a pass over X."""

    def __init__(self, objective: BallObjective, loss: Loss, at: Iterate) -> None:
        super().__init__(objective, loss, at)
        self._rows = GramRows(objective.design)
        null = objective.null
        self._start = objective.gradient(loss, objective.scores(null), null)
        self._product = np.zeros_like(self.u)
        for place, coef in zip(at.places.tolist(), at.coef, strict=True):
            self._add(place, float(coef))

    def gradient(self) -> np.ndarray:
        return self._start + self._product

    def look(self, bound: float, gradient: np.ndarray) -> Look:
        at = self._iterate()
        value = self._objective.null_value + float(at.coef @ (self._start + 0.5 * self._product)[at.places])
        gap = float(gradient[at.places] @ at.coef) + bound * float(np.abs(gradient).max(initial=0.0))
        return Look(at, max(value, 0.0), value - gap, gap)

    def move(self, direction: Direction, length: float | None) -> float:
        gradient = self.gradient()
        shrink, places, amounts = direction.shrink, direction.places, np.array(direction.amounts)
        bends = np.array([self._bend(i, j) for i in places for j in places]).reshape(len(places), len(places))
        if length is None:
            slope = shrink * float(gradient @ self.u) + float(amounts @ gradient[places])
            bend = float(amounts @ bends @ amounts) + 2.0 * shrink * float(amounts @ self._product[places])
            bend += shrink**2 * float(self.u @ self._product)
            length = min(direction.longest, -slope / bend) if bend > 0 else direction.longest
            length = length if slope < 0 else 0.0
        self._product *= 1.0 + length * shrink
        for place, amount in zip(places, direction.amounts, strict=True):
            self._add(place, length * amount)
        self._step(direction, length)
        return length

    def _add(self, place: int, amount: float) -> None:
        d = self._objective.design.n_features
        output, feature = divmod(place, d)
        unit = self._objective.unit
        row = self._rows.row(feature, self._likely)
        self._product[output * d : (output + 1) * d] += (amount * unit[feature]) * row * unit
        self._product[place] += amount * self._objective.penalty[feature]

    def _bend(self, one: int, other: int) -> float:
        d = self._objective.design.n_features
        (c, i), (e, j) = divmod(one, d), divmod(other, d)
        if c != e:
            return 0.0
        unit = self._objective.unit
        ridge = float(self._objective.penalty[i]) if i == j else 0.0
        return float(self._rows.row(i, self._likely)[j] * unit[i] * unit[j]) + ridge

    def _likely(self, feature: int, count: int) -> list[int]:
        """The features whose coordinates are steepest."""
        steep = np.abs(self.gradient()).reshape(self._objective.n_outputs, -1).max(axis=0)
        return np.argsort(-steep, kind="stable")[:count].tolist()


class _ScoreField(_Dense):
    """Any loss: scores follow a step in one or two columns, and the gradient takes a pass over X."""

    def __init__(self, objective: BallObjective, loss: Loss, at: Iterate) -> None:
        super().__init__(objective, loss, at)
        self._columns: dict[int, np.ndarray] = {}
        self._scores = objective.scores(at)
        self._settle()

    def gradient(self) -> np.ndarray:
        return self._objective.gradient(self._loss, self._scores, self._iterate())

    def look(self, bound: float, gradient: np.ndarray) -> Look:
        return look(self._objective, self._loss, bound, self._iterate(), self._scores, gradient)

    def move(self, direction: Direction, length: float | None) -> float:
        objective, d = self._objective, self._objective.design.n_features
        change = direction.shrink * (self._scores - self._free[:, None])
        step = direction.shrink * self.u if objective.ridge else np.zeros(0)
        for place, amount in zip(direction.places, direction.amounts, strict=True):
            output, feature = divmod(place, d)
            change[output] += amount * self._column(feature)
            if objective.ridge:
                step[place] += amount
        if length is None:
            penalised = np.tile(objective.penalty, objective.n_outputs) * step if objective.ridge else step
            along = (float(penalised @ self.u), float(penalised @ step)) if objective.ridge else (0.0, 0.0)
            length = line_minimum(
                self._loss, objective.y, objective.weights, self._scores, change, along, direction.longest
            )
        self._scores += length * change
        self._step(direction, length)
        self._settle()
        return length

    def _column(self, feature: int) -> np.ndarray:
        if feature not in self._columns:
            self._columns[feature] = self._objective.columns(np.array([feature]))[0]
        return self._columns[feature]

    def _settle(self) -> None:
        objective = self._objective
        if objective.center:
            shift, _ = settled(self._loss, objective.y, objective.weights, self._scores, objective.fixed)
            self._scores += shift[:, None]
            self._free = self._free + shift
