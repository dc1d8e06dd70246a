"""About the minimum of a model with one column more, for many columns at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pauca.losses import Loss
from pauca.objectives.merged_rows import Rows
from pauca.solvers.newton import Accuracy

# A step is shortened as long as the slope at its end is above this share of what it was, at most so many times.
LARGEST_RISE = 0.25
MOST_SHORTENINGS = 5

# Columns keep at least this share of their curvature beside those of the model, so that Hessians can be inverted.
LEAST_LEFT = 1e-10

# Columns are taken together while all their scores are about this many numbers, which stay in the cache.
TOGETHER = 1 << 17


@dataclass(frozen=True, eq=False)
class Additions:
    """Where some steps have led to from a model of q columns with each of b further columns.

    Conventions
    -----------
    coef : (b, q + 1), the new column last; scores : (b, G)
    """

    coef: np.ndarray
    scores: np.ndarray
    value: np.ndarray
    """Values there, shape (b,)."""
    inverse: np.ndarray
    """About the inverse Hessians, shape (b, q + 1, q + 1)."""
    promised: np.ndarray
    """What one more step would gain, shape (b,)."""

    def removal_costs(self) -> np.ndarray:
        """By how much each value would rise without each of the q columns, to second order, shape (b, q)."""
        variance = np.einsum("bii->bi", self.inverse)[:, :-1]
        return 0.5 * self.coef[:, :-1] ** 2 / np.maximum(variance, np.finfo(float).tiny)


def previews_of_additions(
    loss: Loss,
    rows: Rows,
    columns: np.ndarray,
    penalty: np.ndarray,
    coef: np.ndarray,
    scores: np.ndarray,
    value: float,
    inverse: np.ndarray,
    new: np.ndarray,
    new_penalty: np.ndarray,
    accuracy: Accuracy,
) -> Additions:
    """A few quasi-Newton steps from a minimum on ``columns`` to that with each of some further columns.

    The inverse Hessian of the minimum is bordered by the new column and corrected by the steps; one output, no bounds.

    Parameters
    ----------
    columns, penalty : those of the model, shapes (q, G) and (q,)
    coef, scores, value, inverse : its minimum, shapes (q,) and (G,), and the inverse of the Hessian there
    new, new_penalty : the further columns, shapes (b, G) and (b,)
    """
    at_once = max(1, TOGETHER // new.shape[1])
    parts: list[Additions] = []
    for start in range(0, len(new), at_once):
        some = slice(start, start + at_once)
        steps = _Steps(loss, rows, columns, penalty, coef, scores, value, inverse, new[some], new_penalty[some])
        parts.append(steps.run(accuracy))
    if len(parts) == 1:
        return parts[0]
    joined = (np.concatenate([vars(part)[name] for part in parts]) for name in vars(parts[0]))
    return Additions(*joined)


class _Steps:
    """Steps of several models at a time, each with q shared columns and one of its own.

    Conventions
    -----------
    coef, gradient : (b, q + 1), the new column last; scores : (b, G); inverse : (b, q + 1, q + 1)
    """

    def __init__(
        self,
        loss: Loss,
        rows: Rows,
        columns: np.ndarray,
        penalty: np.ndarray,
        coef: np.ndarray,
        scores: np.ndarray,
        value: float,
        inverse: np.ndarray,
        new: np.ndarray,
        new_penalty: np.ndarray,
    ) -> None:
        b, q = len(new), len(columns)
        self._loss, self._columns, self._new, self._weights = loss, columns, new, rows.weights
        self._y = np.broadcast_to(rows.y[0], new.shape)
        self._penalty = np.empty((b, q + 1))
        self._penalty[:, :q], self._penalty[:, q] = penalty, new_penalty
        self._coef = np.zeros((b, q + 1))
        self._coef[:, :q] = coef
        self._scores = np.broadcast_to(scores, new.shape)
        self._value = value
        derivative, curvature = loss.slopes(rows.y[0], scores)
        self._gradient = np.zeros((b, q + 1))
        self._gradient[:, q] = new @ (rows.weights * derivative)
        self._inverse = self._bordered(inverse, rows.weights * curvature, scores)

    def _bordered(self, inverse: np.ndarray, weights: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Inverses of the Hessian with one more row and column each, by what it leaves of the new column."""
        b, q = len(self._new), len(inverse)
        weighted = self._new * weights
        image = self._loss.coupled_image(scores, self._new)
        if image is not None:
            weighted -= image
        across = weighted @ self._columns.T
        own = np.einsum("bn,bn->b", weighted, self._new) + self._penalty[:, q]
        regressed = across @ inverse
        left = np.maximum(own - np.einsum("bq,bq->b", across, regressed), LEAST_LEFT * own)
        whole = np.empty((b, q + 1, q + 1))
        share = regressed / -left[:, None]
        np.multiply(regressed[:, :, None], -share[:, None, :], out=whole[:, :q, :q])
        whole[:, :q, :q] += inverse
        whole[:, q, :q] = whole[:, :q, q] = share
        whole[:, q, q] = 1.0 / left
        return whole

    def run(self, accuracy: Accuracy) -> Additions:
        """Steps until each promises little, and what the next step promises."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for taken in range(accuracy.most_steps + 1):
                step = -np.matmul(self._inverse, self._gradient[:, :, None])[:, :, 0]
                promised = -0.5 * np.einsum("bi,bi->b", self._gradient, step)
                going = promised > accuracy.within * self._value
                if taken == accuracy.most_steps or not going.any():
                    break
                if not going.all():
                    step[~going] = 0.0
                self._move(step, promised)
            values = self._loss.value(self._y, self._scores) @ self._weights
            values += 0.5 * np.einsum("bi,bi,bi->b", self._penalty, self._coef, self._coef)
        promised = np.where(promised > 0, np.minimum(promised, 0.5 * values), 0.0)
        return Additions(self._coef, self._scores, values, self._inverse, promised)

    def _move(self, step: np.ndarray, promised: np.ndarray) -> None:
        """Along the steps, each as far as the slope does not rise too much; then the inverses are corrected."""
        change = step[:, :-1] @ self._columns
        change += step[:, -1:] * self._new
        coef, scores = self._coef + step, self._scores + change
        gradient = self._gradient_at(coef, scores)
        length = None
        for _ in range(MOST_SHORTENINGS):
            slope = np.einsum("bi,bi->b", gradient, step)
            far = ~(slope <= LARGEST_RISE * 2 * promised)
            if not far.any():
                break
            # The secant's zero, between the start and here.
            share = np.where(np.isfinite(slope), 2 * promised / (slope + 2 * promised), 0.1)
            length = np.ones(len(step)) if length is None else length
            length = np.where(far, length * np.clip(share, 0.1, 0.7), length)
            coef, scores = self._coef + length[:, None] * step, self._scores + length[:, None] * change
            gradient = self._gradient_at(coef, scores)
        else:
            # What is too far even now stays where it is, and ends there.
            far = ~(np.einsum("bi,bi->b", gradient, step) <= LARGEST_RISE * 2 * promised)
            coef[far], scores[far], gradient[far] = self._coef[far], self._scores[far], self._gradient[far]
        self._correct(coef - self._coef, gradient - self._gradient)
        self._coef, self._scores, self._gradient = coef, scores, gradient

    def _gradient_at(self, coef: np.ndarray, scores: np.ndarray) -> np.ndarray:
        force = self._weights * self._loss.derivative(self._y, scores)
        gradient = self._penalty * coef
        gradient[:, :-1] += force @ self._columns.T
        gradient[:, -1] += np.einsum("bn,bn->b", force, self._new)
        return gradient

    def _correct(self, s: np.ndarray, y: np.ndarray) -> None:
        """Broyden, Fletcher, Goldfarb and Shanno's correction, where the curvature along the step is positive."""
        measured = np.einsum("bi,bi->b", s, y)
        image = np.matmul(self._inverse, y[:, :, None])[:, :, 0]
        share = np.where((measured > 0) & np.isfinite(measured), 1.0 / measured, 0.0)[:, None]
        # s s' (1 + y'Ay / s'y) / s'y - (s y'A + A y s') / s'y, as one symmetric product.
        half = (0.5 * (share + share * share * np.einsum("bi,bi->b", y, image)[:, None])) * s - share * image
        change = s[:, :, None] * half[:, None, :]
        self._inverse += change
        self._inverse += change.transpose(0, 2, 1)
