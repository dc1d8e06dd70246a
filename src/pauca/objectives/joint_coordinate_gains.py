"""How far the objective falls if the coefficients of one column move, for outputs that share a loss."""

from __future__ import annotations

import numpy as np

from pauca.losses import Loss
from pauca.objectives.merged_rows import Rows
from pauca.solvers.newton import SMOOTH_RISE

# Columns are taken together while the scores of all are about this many numbers, which stay in the cache.
BATCH_NUMBERS = 1 << 16

# Where so many steps do not suffice, columns are searched one by one; of ten digits they took at most 11.
MOST_STEPS = 40

# The last step is predicted to gain at most this share of the value; Newton's error is squared by taking it.
LAST_STEP_BELOW = 1e-8

# A step whose slope has risen too far is halved at most so many times.
MOST_SHORTENINGS = 20

# Keeps Hessians of columns that hardly vary invertible.
DAMPING = 1e-12


def joint_line_gains(
    loss: Loss, rows: Rows, scores: np.ndarray, columns: np.ndarray, penalty: np.ndarray
) -> np.ndarray | None:
    """``Q(w) - min_t Q(w + t e_j')`` over one coefficient for every output, for several columns j at once.

    Newton's method, each step of which is a product of arrays that hold several columns.

    Parameters
    ----------
    scores : those of the model, shape (C, G)
    columns, penalty : shapes (b, G) and (b,)

    Returns
    -------
    ndarray of shape (b,), or None where some column does not converge
    """
    at_once = max(1, BATCH_NUMBERS // scores.size)
    gains = []
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for start in range(0, len(columns), at_once):
            some = slice(start, start + at_once)
            found = _Lines(loss, rows, scores, columns[some], penalty[some]).gains()
            if found is None:
                return None
            gains.append(found)
    return np.concatenate(gains)


class _Lines:
    """The functions along several columns; the rows of all of them are taken for those of one long table.

    Conventions
    -----------
    t, gradient : (b, C), one coefficient for every output and column; arrays over rows : (C, b, G)
    """

    def __init__(self, loss: Loss, rows: Rows, scores: np.ndarray, columns: np.ndarray, penalty: np.ndarray) -> None:
        self._loss, self._scores, self._columns, self._penalty = loss, scores[:, None, :], columns, penalty[:, None]
        self._weights, self._y = rows.weights, np.tile(rows.y, len(columns))
        self._weighted = columns * rows.weights
        self._squares = self._weighted * columns
        self._root = columns * np.sqrt(rows.weights)
        self._shape = (len(scores), *columns.shape)

    def gains(self) -> np.ndarray | None:
        """What the best steps gain, shape (b,)."""
        t = np.zeros(self._shape[1::-1])
        before = self._values(t)
        gradient, curvature = self._derivatives(t)
        for _ in range(MOST_STEPS):
            try:
                step = -np.linalg.solve(self._hessian(curvature), gradient[:, :, None])[:, :, 0]
            except np.linalg.LinAlgError:
                return None
            predicted = -0.5 * np.einsum("bc,bc->b", gradient, step)
            if not np.isfinite(predicted).all():
                return None
            if np.all(predicted <= LAST_STEP_BELOW * before):
                return np.maximum(before - self._values(t + step), 0.0)
            moved = self._moved(t, step, predicted)
            if moved is None:
                return None
            t, gradient, curvature = moved
        return None

    def _moved(
        self, t: np.ndarray, step: np.ndarray, predicted: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Along the steps, each as far as the slope does not rise too much, with the derivatives there."""
        length = np.ones((len(t), 1))
        for _ in range(MOST_SHORTENINGS):
            there = t + length * step
            gradient, curvature = self._derivatives(there)
            far = ~(np.einsum("bc,bc->b", gradient, step) <= SMOOTH_RISE * 2 * predicted)
            if not far.any():
                return there, gradient, curvature
            length[far] *= 0.5
        return None

    def _at(self, t: np.ndarray) -> np.ndarray:
        return (self._scores + t.T[:, :, None] * self._columns).reshape(len(self._scores), -1)

    def _values(self, t: np.ndarray) -> np.ndarray:
        losses = self._loss.value(self._y, self._at(t)).reshape(self._columns.shape)
        return np.asarray(losses @ self._weights + 0.5 * (self._penalty * t * t).sum(axis=1))

    def _derivatives(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient, and the curvature of every row."""
        derivative, curvature = self._loss.slopes(self._y, self._at(t))
        gradient = np.einsum("cbn,bn->bc", derivative.reshape(self._shape), self._weighted) + self._penalty * t
        return gradient, curvature

    def _hessian(self, curvature: np.ndarray) -> np.ndarray:
        """Shape (b, C, C)."""
        coupling = self._loss.coupling(curvature)
        assert coupling is not None
        part = (coupling.reshape(self._shape) * self._root).transpose(1, 0, 2)
        hessian = -part @ part.transpose(0, 2, 1)
        # What all outputs share changes no loss of a row; any positive curvature there will do.
        hessian += (self._squares.sum(axis=1) / self._shape[0])[:, None, None]
        diagonal = np.einsum("bcc->bc", hessian)
        diagonal += np.einsum("cbn,bn->bc", curvature.reshape(self._shape), self._squares) + self._penalty
        diagonal *= 1 + DAMPING
        return np.asarray(hessian)
