"""How far the objective falls if the coefficients of one column move, for outputs that share a loss."""

from __future__ import annotations

import numpy as np

from pauca.losses import Loss
from pauca.objectives.merged_rows import Rows

MOST_STEPS = 40
MOST_HALVINGS = 30

# The last step promises no more than this share of the value; Newton's error is squared by taking it.
LAST_STEP_BELOW = 1e-9

# Keeps Hessians of columns that hardly vary invertible.
DAMPING = 1e-12


def joint_line_gains(
    loss: Loss, rows: Rows, scores: np.ndarray, columns: np.ndarray, penalty: np.ndarray
) -> np.ndarray | None:
    """``Q(w) - min_t Q(w + t e_j')`` over one coefficient for every output, for several columns j at once.

    Newton's method, each step of which is a product of arrays that hold all columns.

    Parameters
    ----------
    scores : those of the model, shape (C, G)
    columns, penalty : shapes (b, G) and (b,)

    Returns
    -------
    ndarray of shape (b,), or None where some column does not converge
    """
    problem = _Lines(loss, rows, scores, columns, penalty)
    t = np.zeros((len(scores), len(columns)))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        first = value = problem.values(t)
        for _ in range(MOST_STEPS):
            try:
                step, promised = problem.steps(t)
            except np.linalg.LinAlgError:
                return None
            if not np.isfinite(promised).all():
                return None
            moved = problem.search(t, value, step)
            if moved is None:
                return None
            t, value = moved
            if np.all(promised <= LAST_STEP_BELOW * value):
                return np.maximum(first - value, 0.0)
    return None


class _Lines:
    """The functions along several columns; the rows of all of them are taken for those of one long table.

    Conventions
    -----------
    t : (C, b), one coefficient for every output and column; arrays over rows : (C, b, G)
    """

    def __init__(self, loss: Loss, rows: Rows, scores: np.ndarray, columns: np.ndarray, penalty: np.ndarray) -> None:
        self._loss, self._scores, self._columns, self._penalty = loss, scores[:, None, :], columns, penalty
        self._weights, self._y = rows.weights, np.tile(rows.y, len(columns))
        self._root = columns * np.sqrt(rows.weights)
        self._squares = self._root * self._root

    def values(self, t: np.ndarray) -> np.ndarray:
        """Shape (b,)."""
        losses = self._loss.value(self._y, self._moved(t)).reshape(self._columns.shape)
        return np.asarray(losses @ self._weights + 0.5 * self._penalty * (t * t).sum(axis=0))

    def steps(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Newton steps of shape (C, b), and what they promise, shape (b,)."""
        shape = (len(t), *self._columns.shape)
        derivative, curvature = self._loss.slopes(self._y, self._moved(t))
        coupling = self._loss.coupling(curvature)
        assert coupling is not None
        weighted = self._columns * self._weights
        gradient = np.einsum("cbn,bn->bc", derivative.reshape(shape), weighted) + (self._penalty * t).T
        part = (coupling.reshape(shape) * self._root).transpose(1, 0, 2)
        hessian = -part @ part.transpose(0, 2, 1)
        # What all outputs share changes no loss of a row; any positive curvature there will do.
        hessian += (self._squares.sum(axis=1) / len(t))[:, None, None]
        diagonal = np.einsum("bcc->bc", hessian)
        diagonal += np.einsum("cbn,bn->bc", curvature.reshape(shape), self._squares) + self._penalty[:, None]
        diagonal *= 1 + DAMPING
        step = -np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        return step.T, -0.5 * np.einsum("bc,bc->b", gradient, step)

    def search(self, t: np.ndarray, value: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Where the steps end, halved until no value rises; None where halving does not help."""
        length = np.ones(step.shape[1])
        for _ in range(MOST_HALVINGS):
            found = self.values(t + length * step)
            rises = ~(found <= value * (1 + 1e-14))
            if not rises.any():
                return t + length * step, found
            length[rises] *= 0.5
        return None

    def _moved(self, t: np.ndarray) -> np.ndarray:
        return (self._scores + t[:, :, None] * self._columns).reshape(len(t), -1)
