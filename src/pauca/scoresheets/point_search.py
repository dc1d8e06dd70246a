"""Whole points with the lowest loss: rounded from real coefficients, then changed one point or two at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import gcd

import numpy as np

from pauca.losses import LogLoss
from pauca.objectives import Restricted, Rows
from pauca.solvers.newton import minimise

# The scale and the constant of a sheet are fitted until a Newton step is predicted to gain less than this.
NEWTON_TOLERANCE = 1e-10
MOST_STEPS = 100

# Totals that are whole numbers in a range of at most so many values are counted, instead of rows looked at one by one.
MOST_TOTALS = 4096

# Sheets are fitted together as long as they have so many totals: more do not fit into a processor's cache.
TOGETHER = 1 << 16

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
        signs: Sequence[float] | np.ndarray | None = None,
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
        return self._fit_all([points])[0]

    def _fit_all(self, sheets: list[Points]) -> list[FittedPoints]:
        """The same of several sheets: those that are new are fitted together."""
        sheets = [_without_divisor(points) for points in sheets]
        new = [points for points in dict.fromkeys(sheets) if points not in self.fitted]
        count = max(1, TOGETHER // len(self._y))
        for some in (new[start : start + count] for start in range(0, len(new), count)):
            self.fitted.update(zip(some, self._fit_together(some), strict=True))
        return [self.fitted[points] for points in sheets]

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
        found = min(self._fit_all(moves), key=lambda one: one.objective, default=current)
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

    def _fit_together(self, sheets: list[Points]) -> list[FittedPoints]:
        points = np.array(sheets, dtype=np.float64)
        at, yes, every = self._counted(points @ self._columns.T)
        middle = np.einsum("bm,bm->b", every, at)
        spread = np.sqrt(np.einsum("bm,bm->b", every, (at - middle[:, None]) ** 2))
        spread = np.where(spread > 0, spread, 1.0)
        z = (at - middle[:, None]) / spread[:, None]
        # The ridge on the coefficients of standardised columns, as one on the scale.
        penalty = self._ridge * np.maximum(points**2 @ self._variance / spread**2, SMALL_RIDGE)
        scale, constant = _lines(z, yes, every, penalty, self._near).T
        self._near = float(scale[-1]), float(constant[-1])
        scores = constant[:, None] + scale[:, None] * z
        losses = yes * np.logaddexp(0.0, -scores) + (every - yes) * np.logaddexp(0.0, scores)
        loss = losses.sum(axis=1)
        numbers = (loss + 0.5 * penalty * scale**2, loss, scale / spread, constant - scale / spread * middle)
        return [FittedPoints(*one) for one in zip(sheets, *(some.tolist() for some in numbers), strict=True)]

    def _counted(self, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Totals of every sheet, the weights of the rows of the class at each, and of all rows."""
        positive = self._weights * (self._y > 0)
        if self._whole:
            low = totals.min(axis=1, keepdims=True)
            place = (totals - low).astype(np.intp)
            width = int(place.max()) + 1
            if width <= min(MOST_TOTALS, totals.shape[1]):
                place += width * np.arange(len(place))[:, None]
                yes, every = (
                    np.bincount(place.ravel(), np.tile(of, len(place)), len(place) * width).reshape(-1, width)
                    for of in (positive, self._weights)
                )
                return low + np.arange(width), yes, every
        return totals, np.broadcast_to(positive, totals.shape), np.broadcast_to(self._weights, totals.shape)


def _lines(
    z: np.ndarray, yes: np.ndarray, every: np.ndarray, penalty: np.ndarray, near: tuple[float, float] | None
) -> np.ndarray:
    """Scales, not negative, and constants of logistic fits to one column each, found from those of similar points."""
    share = yes.sum(axis=1)
    nothing = np.stack([np.zeros(len(z)), np.log(share) - np.log1p(-share)], axis=1)
    line = nothing.copy() if near is None else np.tile(near, (len(z), 1))
    far = _newton(line, z, yes, every, penalty)
    if near is not None and len(far):  # as may be from far away
        again = nothing[far]
        _newton(again, z[far], yes[far], every[far], penalty[far])
        line[far] = again
    # A risk that falls with the total would turn the signs of all points.
    return np.where(line[:, :1] > 0, line, nothing)


def _newton(line: np.ndarray, z: np.ndarray, yes: np.ndarray, every: np.ndarray, penalty: np.ndarray) -> np.ndarray:
    """Newton's method for each line, in place; returns the places of those that have not converged."""
    going = np.arange(len(z))
    for _ in range(MOST_STEPS):
        step, gain = _newton_step(line[going], z[going], yes[going], every[going], penalty[going])
        line[going] -= step
        going = going[~(gain < NEWTON_TOLERANCE)]
        if not len(going):
            break
    return going


def _newton_step(
    line: np.ndarray, z: np.ndarray, yes: np.ndarray, every: np.ndarray, penalty: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Steps of scales and constants, and what they are predicted to gain, doubled."""
    upper = 1.0 / (1.0 + np.exp(-np.clip(line[:, 1:] + line[:, :1] * z, -700, 700)))
    residual, bend = every * upper - yes, every * upper * (1.0 - upper)
    gradient = np.stack([np.einsum("bm,bm->b", residual, z) + penalty * line[:, 0], residual.sum(axis=1)], axis=1)
    bent = bend * z
    hessian = np.empty((len(z), 2, 2))
    hessian[:, 0, 0] = np.einsum("bm,bm->b", bent, z) + penalty
    hessian[:, 0, 1] = hessian[:, 1, 0] = bent.sum(axis=1)
    hessian[:, 1, 1] = bend.sum(axis=1) + 1e-12
    step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
    # Far steps on a logistic overshoot.
    step *= np.minimum(1.0, 4.0 / np.maximum(np.abs(step).max(axis=1), 1e-300))[:, None]
    return step, np.einsum("bi,bi->b", gradient, step)


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


def _without_divisor(points: Points) -> Points:
    divisor = gcd(*points) or 1
    return tuple(point // divisor for point in points)
