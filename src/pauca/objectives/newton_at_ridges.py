"""Newton's method for one small problem at several ridges at once."""

from __future__ import annotations

import numpy as np

from pauca.clock import check_time
from pauca.losses import Loss, Slopes

# Weighted columns of all ridges are gathered in blocks of about this many numbers, which stay in the cache.
BLOCK_NUMBERS = 1 << 18

MOST_STEPS = 50
MOST_HALVINGS = 30

# Hessians are kept as long as each step leaves no more than this share of what the one before promised: a step with a
# new Hessian costs as much as several with an old one.
WORTH_KEEPING = 0.1

# The last step with an old Hessian promises no more than this share of what a new one may, which leaves far less.
LEFT_BY_OLD = 1e-3

# Keeps Hessians of dependent columns invertible.
DAMPING = 1e-12


def minimise_at_ridges(
    loss: Loss,
    y: np.ndarray,
    weights: np.ndarray,
    columns: np.ndarray,
    penalty: np.ndarray,
    start: np.ndarray,
    within: float,
) -> np.ndarray | None:
    """Minima of ``sum_i v_i L(y_i, coef z_i) + sum penalty coef^2 / 2`` for several penalties, one to a row.

    Every step of every row is a product of matrices that all rows share, so that R ridges cost little more than one.

    Parameters
    ----------
    y, weights : shape (G,)
    columns : shape (q, G)
    penalty, start : shape (R, q)
    within : the last step promises no more than this share of the value

    Returns
    -------
    ndarray of shape (R, q), or None where some row does not converge
    """
    problem = _Batch(loss, y, weights, columns)
    coef = start.copy()
    scores = coef @ columns
    value = problem.values(coef, scores, penalty)
    directions = _Directions(problem)
    open_ = np.arange(len(coef))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for _ in range(MOST_STEPS):
            check_time()
            here = (coef[open_], scores[open_], value[open_], penalty[open_])
            step, promised, enough = directions.next(*here, within)
            moved = problem.search(*here, step) if np.isfinite(promised).all() else None
            if moved is None:
                return None
            coef[open_], scores[open_], value[open_] = moved
            left = promised > enough * value[open_]
            if not left.any():
                return coef
            open_ = open_[left]
            directions.keep(left)
    return None


class _Directions:
    """Newton steps of several rows, with Hessians that are kept as long as they lead on."""

    def __init__(self, problem: _Batch) -> None:
        self._problem = problem
        self._inverse = np.zeros((0, 0, 0))
        self._promised = np.zeros(0)

    def next(
        self, coef: np.ndarray, scores: np.ndarray, value: np.ndarray, penalty: np.ndarray, within: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """The steps, what they promise, and the share of the value that the last one may promise.

        What is promised is not a number where there is no step.
        """
        problem, enough = self._problem, LEFT_BY_OLD * within
        slopes = problem.slopes(scores)
        gradient = problem.gradients(slopes, coef, penalty)
        step, promised = self._along(gradient)
        if not (len(promised) and np.all(promised <= WORTH_KEEPING * self._promised)):
            try:
                self._inverse = np.linalg.inv(problem.hessians(slopes, penalty))
            except np.linalg.LinAlgError:
                return gradient, np.full(len(coef), np.nan), enough
            (step, promised), enough = self._along(gradient), within
        self._promised = promised
        return step, promised, enough

    def _along(self, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not len(self._inverse):
            return gradient, np.zeros(0)
        step = -(self._inverse @ gradient[:, :, None])[:, :, 0]
        return step, -0.5 * np.einsum("rq,rq->r", gradient, step)

    def keep(self, rows: np.ndarray) -> None:
        """Go on with some of the rows."""
        self._inverse, self._promised = self._inverse[rows], self._promised[rows]


class _Batch:
    """Values and derivatives of one problem at several coefficients, one to a row."""

    def __init__(self, loss: Loss, y: np.ndarray, weights: np.ndarray, columns: np.ndarray) -> None:
        self._loss, self._y, self._weights, self._columns = loss, y, weights, columns

    def values(self, coef: np.ndarray, scores: np.ndarray, penalty: np.ndarray) -> np.ndarray:
        """Shape (R,)."""
        losses = self._loss.value(np.broadcast_to(self._y, scores.shape), scores)
        return losses @ self._weights + 0.5 * np.einsum("rq,rq,rq->r", penalty, coef, coef)

    def slopes(self, scores: np.ndarray) -> Slopes:
        """First and second derivatives of the loss, shape (R, G) each."""
        return self._loss.slopes(np.broadcast_to(self._y, scores.shape), scores)

    def gradients(self, slopes: Slopes, coef: np.ndarray, penalty: np.ndarray) -> np.ndarray:
        """Shape (R, q)."""
        return (slopes.derivative * self._weights) @ self._columns.T + penalty * coef

    def hessians(self, slopes: Slopes, penalty: np.ndarray) -> np.ndarray:
        """Shape (R, q, q)."""
        columns, (rows, size) = self._columns, penalty.shape
        curvature = slopes.curvature * self._weights
        hessian = np.zeros((rows * size, size))
        step = max(256, BLOCK_NUMBERS // (rows * size))
        for start in range(0, columns.shape[1], step):
            here = slice(start, start + step)
            part = columns[:, here]
            hessian += (curvature[:, None, here] * part).reshape(rows * size, -1) @ part.T
        hessian = hessian.reshape(rows, size, size)
        diagonal = np.einsum("rqq->rq", hessian)
        diagonal *= 1 + DAMPING
        diagonal += penalty
        return hessian

    def search(
        self, coef: np.ndarray, scores: np.ndarray, value: np.ndarray, penalty: np.ndarray, step: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Where the steps end, halved until no value rises; None where halving does not help."""
        change, length = step @ self._columns, np.ones(len(step))
        for _ in range(MOST_HALVINGS):
            new, there = coef + length[:, None] * step, scores + length[:, None] * change
            found = self.values(new, there, penalty)
            rises = ~(found <= value * (1 + 1e-14))
            if not rises.any():
                return new, there, found
            length[rises] *= 0.5
        return None
