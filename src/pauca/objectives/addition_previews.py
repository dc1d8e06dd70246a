"""About the minimum of a model with one column more, for many columns at once."""

from __future__ import annotations

import numpy as np

from pauca.losses import Loss
from pauca.objectives.merged_rows import Rows
from pauca.solvers.factorisation import solve_or_nearest
from pauca.solvers.newton import Accuracy, Minimum

# A step is shortened as long as the slope at its end is above this share of what it was, at most so many times.
LARGEST_RISE = 0.25
MOST_SHORTENINGS = 5

# Keeps bordered Hessians of dependent columns invertible.
DAMPING = 1e-10

# Columns are taken together while all their scores are about this many numbers, which stay in the cache.
TOGETHER = 1 << 17


def previews_of_additions(
    loss: Loss,
    rows: Rows,
    columns: np.ndarray,
    penalty: np.ndarray,
    found: Minimum,
    new: np.ndarray,
    new_penalty: np.ndarray,
    accuracy: Accuracy,
) -> list[Minimum]:
    """A few quasi-Newton steps from a minimum on ``columns`` to that with each of some further columns.

    The Hessian of the minimum is bordered by the new column and corrected by the steps, as for a single model; one
    output, no bounds.

    Parameters
    ----------
    columns, penalty : those of the model, shapes (q, G) and (q,)
    found : its minimum, with the exact Hessian
    new, new_penalty : the further columns, shapes (b, G) and (b,)
    """
    at_once = max(1, TOGETHER // new.shape[1])
    minima: list[Minimum] = []
    for start in range(0, len(new), at_once):
        some = slice(start, start + at_once)
        minima += _Steps(loss, rows, columns, penalty, found, new[some], new_penalty[some]).run(accuracy)
    return minima


class _Steps:
    """Steps of several models at a time, each with q shared columns and one of its own.

    Conventions
    -----------
    coef, gradient : (b, q + 1), the new column last; scores : (b, G); hessian : (b, q + 1, q + 1)
    """

    def __init__(
        self,
        loss: Loss,
        rows: Rows,
        columns: np.ndarray,
        penalty: np.ndarray,
        found: Minimum,
        new: np.ndarray,
        new_penalty: np.ndarray,
    ) -> None:
        b, q = len(new), len(columns)
        self._loss, self._columns, self._new, self._weights = loss, columns, new, rows.weights
        self._y = np.broadcast_to(rows.y[0], new.shape)
        self._penalty = np.column_stack([np.tile(penalty, (b, 1)), new_penalty])
        self.coef = np.column_stack([np.tile(found.coef[0], (b, 1)), np.zeros(b)])
        self.scores = np.tile(found.scores[0], (b, 1))
        self._value = found.value
        derivative, curvature = loss.slopes(rows.y[0], found.scores[0])
        self.gradient = np.zeros((b, q + 1))
        self.gradient[:, q] = new @ (rows.weights * derivative)
        self.hessian = self._bordered(found.hessian[0], rows.weights * curvature)

    def _bordered(self, hessian: np.ndarray, weights: np.ndarray) -> np.ndarray:
        b, q = len(self._new), len(hessian)
        whole = np.empty((b, q + 1, q + 1))
        weighted = self._new * weights
        whole[:, :q, :q] = hessian
        whole[:, q, :q] = whole[:, :q, q] = weighted @ self._columns.T
        whole[:, q, q] = np.einsum("bn,bn->b", weighted, self._new) + self._penalty[:, q]
        shared = self._loss.row_coupling(self.scores[:1], np.concatenate([self._columns, self._new]))
        if shared is not None:
            across = shared[q:] @ shared[:q].T
            whole[:, q, :q] -= across
            whole[:, :q, q] -= across
            whole[:, q, q] -= np.einsum("bt,bt->b", shared[q:], shared[q:])
        diagonal = np.einsum("bii->bi", whole)
        diagonal *= 1 + DAMPING
        return whole

    def run(self, accuracy: Accuracy) -> list[Minimum]:
        """Steps until each promises little, and the minima with what the next step promises."""
        converged = np.zeros(len(self._new), dtype=bool)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for taken in range(accuracy.most_steps + 1):
                step = -solve_or_nearest(self.hessian, self.gradient[:, :, None])[:, :, 0]
                promised = -0.5 * np.einsum("bi,bi->b", self.gradient, step)
                converged = ~(promised > accuracy.within * self._value)
                if taken == accuracy.most_steps or converged.all():
                    break
                step[converged] = 0.0
                self._move(step, promised)
            values = self._loss.value(self._y, self.scores) @ self._weights
            values += 0.5 * np.einsum("bi,bi->b", self._penalty, self.coef**2)
        promised = np.where(promised > 0, np.minimum(promised, 0.5 * values), 0.0)
        return [
            Minimum(self.coef[i : i + 1], self.scores[i : i + 1], value, self.hessian[i : i + 1], False, left)
            for i, (value, left) in enumerate(zip(values.tolist(), promised.tolist(), strict=True))
        ]

    def _move(self, step: np.ndarray, promised: np.ndarray) -> None:
        """Along the steps, each as far as the slope does not rise too much; then the Hessians are corrected."""
        change = step[:, :-1] @ self._columns + step[:, -1:] * self._new
        length = np.ones(len(step))
        for _ in range(MOST_SHORTENINGS):
            scores = self.scores + length[:, None] * change
            derivative = self._weights * self._loss.derivative(self._y, scores)
            coef = self.coef + length[:, None] * step
            slope = np.einsum("bn,bn->b", derivative, change) + np.einsum("bi,bi,bi->b", self._penalty, coef, step)
            far = ~(slope <= LARGEST_RISE * 2 * promised)
            if not far.any():
                break
            # The secant's zero, between the start and here.
            share = np.where(np.isfinite(slope), 2 * promised / (slope + 2 * promised), 0.1)
            length = np.where(far, length * np.clip(share, 0.1, 0.7), length)
        if far.any():
            # What is too far even now stays where it is, and ends there.
            coef[far], scores[far] = self.coef[far], self.scores[far]
            derivative = self._weights * self._loss.derivative(self._y, scores)
        gradient = self._penalty * coef
        gradient[:, :-1] += derivative @ self._columns.T
        gradient[:, -1] += np.einsum("bn,bn->b", derivative, self._new)
        self._correct(coef - self.coef, gradient - self.gradient)
        self.coef, self.scores, self.gradient = coef, scores, gradient

    def _correct(self, s: np.ndarray, y: np.ndarray) -> None:
        """Broyden, Fletcher, Goldfarb and Shanno's correction, where the curvature along the step is positive."""
        image = np.einsum("bij,bj->bi", self.hessian, s)
        measured, assumed = np.einsum("bi,bi->b", s, y), np.einsum("bi,bi->b", s, image)
        good = (measured > 0) & (assumed > 0) & np.isfinite(measured)
        y, image = y[good], image[good]
        self.hessian[good] += y[:, :, None] * (y / measured[good, None])[:, None, :]
        self.hessian[good] -= image[:, :, None] * (image / assumed[good, None])[:, None, :]
