"""Exact minima of piecewise linear losses: along edges from vertex to vertex, from a warm start.

A vertex is a point at which as many residuals are zero as there are coefficients; these rows are its basis. Releasing
one of them leads along an edge. The minimum along an edge is a weighted quantile, at which another row enters the
basis: the simplex method for absolute errors and quantiles, with steps past many kinks at a time (Barrodale and Roberts
1973; Koenker and d'Orey 1987).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pauca.clock import check_time

# Rows that tie (copies of rows, integer data) could lead around in circles, so targets are moved apart by this share of
# their spread. The basis found then is judged on the targets as they are; where its gap is too large, it is the start
# of a search with targets closer to them.
FIRST_SHIFT = 1e-8
NEXT_SHIFT = 1e-3
ROUNDS = 2

# A vertex is the minimum if its value is above a lower bound by no more than this share of it, and this share of the
# mean target, which is rounding.
LARGEST_GAP = 1e-10
ROUNDING_GAP = 1e-14

# Residuals up to this share of the largest target are zero.
TIED_WITHIN = 1e-13

# The lower bound holds if the slopes at the kinks are between those on either side, but for this share.
SLOPES_WITHIN = 1e-6

# An edge leads down if its slope is steeper than this share of the weight on its row: what is less is rounding.
LEAST_SLOPE = 1e-9

# Standardised columns have a mean square of one; this share of it counts even where the nearer rows have none.
LEAST_CURVATURE = 1e-3

# A direction changes a residual if it does so by more than this share of its largest change.
LEAST_CHANGE = 1e-11

# The inverse of the basis is computed again after so many exchanges of rows, against rounding.
EXCHANGES_BEFORE_RENEWAL = 40

# Exchanges of rows that a search may take for each coefficient, and at least: far more than were ever seen.
MOST_EXCHANGES = 100

# Shifts are waves of this frequency over the rows; those of copies differ by this share of them, in multiples of a
# number whose fractions never repeat.
FREQUENCY = 7.0
COPIES = 1e-2
GOLDEN_RATIO = 0.6180339887498949


@dataclass(frozen=True, eq=False)
class PiecewiseLinearProblem:
    """``sum_i v_i max(low r_i, high r_i)`` of residuals ``r = coef Z - target``; all weights are positive."""

    columns: np.ndarray
    """Z, one column to a row, shape (q, n)."""
    target: np.ndarray
    weights: np.ndarray
    low: float
    high: float

    def shifted(self, share: float) -> PiecewiseLinearProblem:
        """With targets moved by up to half this ``share`` of their spread, each by another amount.

        The amount depends on what is in the row: rows that are repeated, or in another order, lead to the same vertex.
        Only copies of a row are distinguished by their order, by much less.
        """
        spread = float(np.ptp(self.target)) or float(np.abs(self.target[0])) or 1.0
        of_columns = 1.0 + np.arange(1, len(self.columns) + 1) * GOLDEN_RATIO % 1.0
        of_order = np.arange(1, len(self.target) + 1) * GOLDEN_RATIO % 1.0
        moves = 0.5 * np.sin(FREQUENCY * (of_columns @ self.columns + self.target / spread)) + COPIES * of_order
        return replace(self, target=self.target + share * spread * moves)


@dataclass(frozen=True, eq=False)
class Vertex:
    """The minimum of a piecewise linear problem."""

    coef: np.ndarray
    """Shape (q,)."""
    basis: np.ndarray
    """The q rows whose residuals are zero, those first that are furthest from turning nonzero."""
    at_kinks: np.ndarray
    """All rows whose residuals are zero; more than those of the basis where rows tie."""
    slopes: np.ndarray
    """Derivatives of the loss at all rows, shape (n,), by which the gradient is zero: the proof of the minimum.

    Rows alike, which several proofs would treat differently, have the same."""
    value: float


def follow_edges(problem: PiecewiseLinearProblem, start: np.ndarray, rows: np.ndarray) -> Vertex | None:
    """The minimum, from coefficients ``start`` of shape (q,) and ``rows`` that may be in its basis.

    Rows are taken in their order as far as they are independent. None where the columns are dependent, or where
    rounding has the better of the search.
    """
    basis = _independent(problem.columns[:, rows], rows)
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            return _follow_edges(problem, start, basis)
    except (np.linalg.LinAlgError, FloatingPointError):  # columns that are dependent but for rounding
        return None


def _follow_edges(problem: PiecewiseLinearProblem, start: np.ndarray, basis: list[int]) -> Vertex | None:
    share = FIRST_SHIFT
    for _ in range(ROUNDS):
        search = _Search(problem.shifted(share), start, basis)
        if not (search.reach_vertex() and search.reach_minimum()):
            return None
        found = _vertex_at(problem, search)
        if found is not None:
            return found
        start, basis, share = search.coef, search.basis, NEXT_SHIFT * share
    return None


class _Search:
    """A point on the way to the minimum, where the rows of ``basis`` have residuals of zero."""

    def __init__(self, problem: PiecewiseLinearProblem, start: np.ndarray, basis: list[int]) -> None:
        self.problem = problem
        self.basis = basis
        self.coef = start
        if basis:
            chosen = problem.columns[:, basis]
            self.coef = start + np.linalg.lstsq(chosen.T, problem.target[basis] - start @ chosen, rcond=None)[0]
        self.inverse = np.zeros((0, 0))
        self._jumps = (problem.high - problem.low) * problem.weights
        self.residual, self.gradient = self._located()
        self._curvature = self._broad_curvature()

    def reach_vertex(self) -> bool:
        """Down along directions that keep the residuals of the basis at zero, until a row is found for every column."""
        q = len(self.coef)
        while len(self.basis) < q:
            chosen = self.problem.columns[:, self.basis]
            free = np.linalg.qr(chosen, mode="complete")[0][:, len(self.basis) :] if self.basis else np.eye(q)
            slope = free.T @ self.gradient
            if np.abs(slope).max() <= LEAST_SLOPE * np.abs(self.gradient).max():
                slope[0] = 1.0  # the value is flat: any direction leads to a kink
            row = self._move(-(free @ slope), max(float(self.gradient @ free @ slope), 0.0))
            if row is None:  # nothing to meet on this side
                row = self._move(free @ slope, 0.0)
            if row is None:
                return False
            self.basis = [*self.basis, row]
        return True

    def reach_minimum(self) -> bool:
        """Along edges that lead down until there is none."""
        self._renew()
        for count in range(1, MOST_EXCHANGES * (len(self.basis) + 10)):
            check_time()
            edge = self._steepest_edge()
            if edge is None:
                return True
            position, sign, fall = edge
            row = self._move(sign * self.inverse[:, position], fall, self.basis[position], sign)
            if row is None:
                return False
            self._exchange(position, row)
            if count % EXCHANGES_BEFORE_RENEWAL == 0:
                self._renew()
        return False

    def _steepest_edge(self) -> tuple[int, float, float] | None:
        """The edge with the steepest fall: position in the basis, side to which its residual moves, and the fall."""
        problem, weights = self.problem, self.problem.weights[self.basis]
        rate = self.gradient @ self.inverse
        up, down = -(rate + problem.high * weights), rate + problem.low * weights
        fall = np.maximum(up, down)
        fall[fall <= LEAST_SLOPE * weights] = 0.0
        # What an edge gains if the value curves along it as it does on the whole about here.
        curvature = np.einsum("ij,ij->j", self.inverse, self._curvature @ self.inverse)
        position = int((fall * fall / curvature).argmax())
        if fall[position] == 0.0:
            return None
        return position, 1.0 if up[position] >= down[position] else -1.0, float(fall[position])

    def _move(self, direction: np.ndarray, fall: float, leaving: int | None = None, sign: float = 0.0) -> int | None:
        """Move along a direction, on which the value falls at a rate of ``fall``, to the kink where it stops falling.

        The residual of the ``leaving`` row takes the ``sign``. Returns the row of that kink, None if there is none.
        """
        problem, residual = self.problem, self.residual
        change = direction @ problem.columns
        change[self.basis] = 0.0
        (ahead,) = (residual * change < 0).nonzero()
        rate = np.abs(change[ahead])
        clear = rate > LEAST_CHANGE * rate.max(initial=0.0)
        if not clear.all():
            ahead, rate = ahead[clear], rate[clear]
        if not len(ahead):
            return None
        lengths, jumps = np.abs(residual[ahead]) / rate, self._jumps[ahead]
        position = _weighted_quantile(lengths, jumps * rate, fall)
        entering, length = int(ahead[position]), float(lengths[position])
        (passed,) = (lengths < length).nonzero()
        crossed = ahead[passed]
        turned = np.where(residual[crossed] < 0, jumps[passed], -jumps[passed])
        self.gradient = self.gradient + problem.columns[:, crossed] @ turned
        # The row that enters no longer counts by itself, and the one that leaves does.
        self._count(entering, residual[entering], -1.0)
        self.coef = self.coef + length * direction
        change *= length
        residual += change
        residual[entering] = 0.0
        if leaving is not None:
            residual[leaving] = sign * length
            self._count(leaving, sign, 1.0)
        return entering

    def _count(self, row: int, side: float, times: float) -> None:
        """Add a row's own gradient on one side of its kink, so many times."""
        problem = self.problem
        slope = problem.high if side > 0 else problem.low
        self.gradient = self.gradient + (times * slope * problem.weights[row]) * problem.columns[:, row]

    def _exchange(self, position: int, row: int) -> None:
        """Replace a row of the basis."""
        across = self.problem.columns[:, row] @ self.inverse
        pivot = self.inverse[:, position] / across[position]
        across[position] -= 1.0
        self.inverse = self.inverse - np.outer(pivot, across)
        self.basis = [*self.basis[:position], row, *self.basis[position + 1 :]]

    def _renew(self) -> None:
        """The inverse, and all that depends on where the point is, without the rounding of many steps."""
        self.inverse = np.linalg.inv(self.problem.columns[:, self.basis].T)
        self.coef = self.inverse @ self.problem.target[self.basis]
        self.residual, self.gradient = self._located()

    def _broad_curvature(self) -> np.ndarray:
        """Up to a factor, the curvature that the kinks of the nearer half of the rows make together, shape (q, q)."""
        distance = np.abs(self.residual)
        near = (
            distance <= distance[_weighted_quantile(distance, self.problem.weights, 0.5 * self.problem.weights.sum())]
        )
        columns = self.problem.columns[:, near]
        curvature: np.ndarray = (columns * self.problem.weights[near]) @ columns.T
        # Columns that are constant on these rows still count.
        curvature.flat[:: len(curvature) + 1] += LEAST_CURVATURE * self.problem.weights.sum()
        return curvature

    def _located(self) -> tuple[np.ndarray, np.ndarray]:
        """Residuals, and the gradient of all rows but those of the basis."""
        problem = self.problem
        residual = self.coef @ problem.columns - problem.target
        residual[self.basis] = 0.0
        slopes = np.where(residual > 0, problem.high, problem.low) * problem.weights
        slopes[self.basis] = 0.0
        return residual, problem.columns @ slopes


def _vertex_at(problem: PiecewiseLinearProblem, search: _Search) -> Vertex | None:
    """The vertex of a basis for the targets as they are, if that is the minimum.

    The slopes of the search make a lower bound whatever the targets are; they are off the residuals' signs where a
    residual is zero but for the shifts.
    """
    basis, weights = search.basis, problem.weights
    inverse = np.linalg.inv(problem.columns[:, basis].T)
    coef = inverse @ problem.target[basis]
    residual = coef @ problem.columns - problem.target
    residual[basis] = 0.0
    slopes = np.where(search.residual > 0, problem.high, problem.low)
    slopes[basis] = 0.0
    at_kinks = -((problem.columns @ (slopes * weights)) @ inverse) / weights[basis]
    slopes[basis] = np.clip(at_kinks, problem.low, problem.high)
    losses = np.maximum(problem.low * residual, problem.high * residual)
    value = float(weights @ losses)
    gap = float(weights @ (losses - slopes * residual))
    inside = np.minimum(at_kinks - problem.low, problem.high - at_kinks)
    largest = LARGEST_GAP * value + ROUNDING_GAP * float(weights @ np.abs(problem.target))
    if not (gap <= largest and inside.min() >= -SLOPES_WITHIN * (problem.high - problem.low)):
        return None
    rows = np.array(basis, dtype=np.intp)[np.argsort(-inside, kind="stable")]
    tied = np.flatnonzero(np.abs(residual) <= TIED_WITHIN * np.abs(problem.target).max())
    if len(tied) > len(rows):
        slopes[tied] = _mean_of_alike(problem.columns[:, tied], slopes[tied], weights[tied])
    return Vertex(coef, rows, np.union1d(rows, tied), slopes, value)


def _mean_of_alike(columns: np.ndarray, slopes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Slopes of rows averaged over rows with the same columns: the gradient of the chosen columns stays as it is."""
    groups = np.unique(columns.T, axis=0, return_inverse=True)[1].ravel()
    means: np.ndarray = np.bincount(groups, weights * slopes) / np.bincount(groups, weights)
    return means[groups]


def _independent(columns: np.ndarray, rows: np.ndarray) -> list[int]:
    """The rows, in their order, that are independent of those before them; ``columns`` has shape (q, len(rows))."""
    chosen: list[int] = []
    directions = np.zeros((0, len(columns)))
    for row, vector in zip(rows.tolist(), columns.T, strict=True):
        left = vector
        for _ in range(2):  # the second time removes the rounding of the first
            left = left - (directions @ left) @ directions
        length = np.sqrt(left @ left)
        if length > 1e-7 * np.sqrt(vector @ vector) and len(chosen) < len(columns):
            chosen.append(row)
            directions = np.vstack([directions, left / length])
    return chosen


def _weighted_quantile(values: np.ndarray, weights: np.ndarray, need: float) -> int:
    """Position of the smallest value with so much weight at or below it; only the small ones are sorted."""
    count, total = len(values), float(weights.sum())
    some = min(count, 8 + int(2 * count * need / total)) if total > 0 else count
    while some < count:
        cut = np.partition(values, some - 1)[some - 1]
        (low,) = (values <= cut).nonzero()
        if weights[low].sum() >= need:
            break
        some *= 2
    else:
        low = np.arange(count)
    order = low[values[low].argsort(kind="stable")]
    position = int(weights[order].cumsum().searchsorted(need))
    return int(order[min(position, len(order) - 1)])
