"""Whole points with the lowest loss: rounded from real coefficients, then changed one point or two at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pauca.losses import LogLoss
from pauca.objectives import Restricted, Rows
from pauca.solvers.newton import minimise

# The scale and the constant of a sheet are fitted until a Newton step is predicted to gain less than this.
NEWTON_TOLERANCE = 1e-10
MOST_STEPS = 25

# Totals that are whole numbers in a range of at most so many values are counted, instead of rows looked at one by one.
MOST_TOTALS = 4096

# Steps of single points that are tried in pairs: all of eight features; of thirty all pairs would take minutes.
PAIRED_STEPS = 16

# A ridge on standardised columns that keeps separable classes finite.
SMALL_RIDGE = 1e-6

Points = tuple[int, ...]


@dataclass(frozen=True)
class FittedPoints:
    """Points with the scale and the constant of lowest objective: log-odds are ``constant + scale * total``."""

    points: Points
    objective: float
    """The loss and the ridge."""
    loss: float
    scale: float
    constant: float


class PointSearch:
    """Sheets over given columns; every set of points is fitted once.

    Parameters
    ----------
    columns : shape (n, q)
    y : -1 and 1, shape (n,)
    weights : sum to one, shape (n,)
    max_points : the most points of a feature, all its columns together
    ridge : that of the model, on standardised columns
    owners : the feature of each column, ascending, shape (q,); None: each column is one
    signs : of the points of each column, 0 for either, shape (q,); None: any
    """

    def __init__(
        self,
        columns: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray,
        max_points: int,
        ridge: float = 0.0,
        *,
        owners: Sequence[int] | None = None,
        signs: Sequence[float] | None = None,
    ) -> None:
        q, kept = columns.shape[1], weights > 0
        self._owners = np.arange(q) if owners is None else np.asarray(owners)
        self._several = len(np.unique(self._owners)) < q
        self._signs: list[int] = [0] * q if signs is None else np.sign(signs).astype(int).tolist()
        self._columns, self._y, self._weights = columns[kept], y[kept], weights[kept]
        self._most, self._ridge = max_points, max(ridge, SMALL_RIDGE)
        mean = self._weights @ self._columns
        self._variance = self._weights @ (self._columns - mean) ** 2
        self._whole = bool(np.all(self._columns == np.round(self._columns)))
        self._near: tuple[float, float] | None = None
        """The scale and the constant of the last points, of standardised totals."""
        self.fitted: dict[Points, FittedPoints] = {}

    def run(self) -> FittedPoints:
        """The best sheet that was found."""
        coef = self._real_coefficients()
        coef[np.array(self._signs) * coef < 0] = 0.0
        largest = float(np.bincount(self._owners, weights=np.abs(coef)).max(initial=0.0))
        starts = [np.zeros(len(coef))]
        if largest > 0:
            starts = [coef / largest * top for top in np.linspace(1.0, self._most, 2 * self._most - 1)]
        found = [self._improve(self.fit(self._rounded(start))) for start in starts]
        return min(found, key=lambda one: (one.objective, sum(map(abs, one.points))))

    def fit(self, points: Points) -> FittedPoints:
        """The scale and the constant of some points; sheets that are multiples of each other are one."""
        divisor = int(np.gcd.reduce(np.array(points, dtype=np.intp))) or 1
        points = tuple(int(point) // divisor for point in points)
        if points not in self.fitted:
            self.fitted[points] = self._fit(points)
        return self.fitted[points]

    def allows(self, points: Points) -> bool:
        """Whether points have their signs, and no feature has too many."""
        if not all(self._may_be(place, point) for place, point in enumerate(points)):
            return False
        return not self._several or bool(np.bincount(self._owners, weights=np.abs(points)).max() <= self._most)

    def _may_be(self, place: int, point: int) -> bool:
        return abs(point) <= self._most and self._signs[place] * point >= 0

    def _rounded(self, values: np.ndarray) -> Points:
        """Whole numbers near some values, and so are the sums over the first columns of every feature."""
        found = [0] * len(values)
        for owner in np.unique(self._owners):
            places = np.flatnonzero(self._owners == owner)
            whole = np.round(np.cumsum(values[places])).astype(int)
            for place, points in zip(places.tolist(), np.diff(whole, prepend=0).tolist(), strict=True):
                found[place] = points
        return tuple(found)

    def _real_coefficients(self) -> np.ndarray:
        """The model without rounding, on standardised columns for the solver."""
        return real_model(self._columns, self._y, self._weights, self._ridge)[1:]

    def _improve(self, current: FittedPoints) -> FittedPoints:
        """Change a point, or two, as long as that lowers the loss."""
        while True:
            better = self._best_of(current, self._single_moves(current.points))
            if better is None:
                better = self._best_of(current, self._pair_moves(current.points))
            if better is None:
                return current
            current = better

    def _best_of(self, current: FittedPoints, moves: list[Points]) -> FittedPoints | None:
        found = min((self.fit(move) for move in moves), key=lambda one: one.objective, default=current)
        return found if found.objective < current.objective * (1 - 1e-12) else None

    def _single_moves(self, points: Points) -> list[Points]:
        return self._allowed([self._moved(points, dict([step])) for step in self._steps(points)])

    def _pair_moves(self, points: Points) -> list[Points]:
        """Pairs of the single steps that lower the objective most, or raise it least."""
        steps = sorted(self._steps(points), key=lambda step: self.fit(self._moved(points, dict([step]))).objective)
        pairs = combinations(sorted(steps[:PAIRED_STEPS]), 2)
        return self._allowed([self._moved(points, dict(pair)) for pair in pairs if pair[0][0] != pair[1][0]])

    def _allowed(self, moves: list[Points]) -> list[Points]:
        """Steps keep to what each column may have; only the sums of features with several are left to be looked at."""
        return [move for move in moves if self.allows(move)] if self._several else moves

    def _steps(self, points: Points) -> list[tuple[int, int]]:
        """Places of points and by how much each may change."""
        return [(i, step) for i, point in enumerate(points) for step in (-1, 1) if self._may_be(i, point + step)]

    @staticmethod
    def _moved(points: Points, steps: dict[int, int]) -> Points:
        return tuple(point + steps.get(i, 0) for i, point in enumerate(points))

    def _fit(self, points: Points) -> FittedPoints:
        at, yes, no = self._counted(self._columns @ np.array(points, dtype=np.float64))
        middle = float((yes + no) @ at)
        spread = float(np.sqrt((yes + no) @ (at - middle) ** 2)) or 1.0
        # The ridge on the coefficients of standardised columns, as one on the scale.
        penalty = self._ridge * max(float(self._variance @ np.square(points)) / spread**2, SMALL_RIDGE)
        line = _LogisticLine((at - middle) / spread, yes, no, penalty)
        scale, constant = self._near = line.minimum(self._near)
        loss, objective = line.values(scale, constant)
        return FittedPoints(points, objective, loss, scale / spread, constant - scale / spread * middle)

    def _counted(self, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Totals, and the weights of rows of either class at each."""
        positive = self._weights * (self._y > 0)
        if self._whole:
            low = totals.min()
            place = (totals - low).astype(np.intp)
            if place.max() < MOST_TOTALS:
                yes = np.bincount(place, weights=positive)
                every = np.bincount(place, weights=self._weights)
                used = np.flatnonzero(every)
                return low + used, yes[used], (every - yes)[used]
        return totals, positive, self._weights - positive


@dataclass(frozen=True, eq=False)
class _LogisticLine:
    """Log-odds ``constant + scale z`` for weights of rows of either class at values z, with a ridge on the scale."""

    z: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    penalty: float

    def minimum(self, near: tuple[float, float] | None) -> tuple[float, float]:
        """The scale, not negative, and the constant of lowest objective; found from those of similar points."""
        share = float(self.yes.sum())
        nothing = 0.0, float(np.log(share) - np.log1p(-share))
        found = None if near is None else self._newton(*near)
        scale, constant = found or self._newton(*nothing) or nothing
        # A risk that falls with the total would turn the signs of all points.
        return (scale, constant) if scale > 0 else nothing

    def values(self, scale: float, constant: float) -> tuple[float, float]:
        """The loss, and the objective."""
        scores = constant + scale * self.z
        loss = float(self.yes @ np.logaddexp(0.0, -scores) + self.no @ np.logaddexp(0.0, scores))
        return loss, loss + 0.5 * self.penalty * scale * scale

    def _newton(self, scale: float, constant: float) -> tuple[float, float] | None:
        """The minimum; None if it was not reached, as it may not be from far away."""
        every = self.yes + self.no
        for _ in range(MOST_STEPS):
            upper = 1.0 / (1.0 + np.exp(-np.clip(constant + scale * self.z, -700, 700)))
            residual, bend = every * upper - self.yes, every * upper * (1.0 - upper)
            slope, level = float(residual @ self.z) + self.penalty * scale, float(residual.sum())
            bent = bend * self.z
            a, b, c = float(bent @ self.z) + self.penalty, float(bent.sum()), float(bend.sum()) + 1e-12
            determinant = max(a * c - b * b, 1e-300)
            step = (c * slope - b * level) / determinant, (a * level - b * slope) / determinant
            # Far steps on a logistic overshoot.
            shorter = min(1.0, 4.0 / max(abs(step[0]), abs(step[1]), 1e-300))
            scale, constant = scale - shorter * step[0], constant - shorter * step[1]
            if shorter * (slope * step[0] + level * step[1]) < NEWTON_TOLERANCE:
                return scale, constant
        return None


def real_model(columns: np.ndarray, y: np.ndarray, weights: np.ndarray, ridge: float) -> np.ndarray:
    """Intercept and coefficients of the model without rounding; it is found on standardised columns."""
    rows = weights > 0
    mean = weights @ columns
    spread = np.sqrt(weights @ (columns - mean) ** 2)
    spread = np.where(spread > 0, spread, 1.0)
    z = np.vstack([np.ones(len(y)), ((columns - mean) / spread).T])[:, rows]
    penalty = np.concatenate([[0.0], np.full(len(spread), max(ridge, SMALL_RIDGE))])
    problem = Restricted(LogLoss(), Rows(y[None, rows], weights[rows]), z, penalty)
    found = minimise(problem, np.zeros((1, len(z)))).coef[0]
    coef = found[1:] / spread
    return np.concatenate([[found[0] - coef @ mean], coef])
