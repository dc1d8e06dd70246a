"""Scores with a known part, the offset: it goes with the targets, so that nothing above a loss need know of it."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from pauca.losses.base import Lines, Loss, Slopes

TARGET_WITH_OFFSET = np.dtype([("target", np.float64), ("offset", np.float64)])
"""A target and what is added to its score."""


def with_offset(loss: Loss, y: np.ndarray, offset: np.ndarray) -> tuple[Loss, np.ndarray]:
    """A loss of scores to which ``offset`` is added, and the targets that it takes.

    Parameters
    ----------
    y : targets of shape (C, n)
    offset : shape (n,), the same for all outputs

    Examples
    --------
    >>> import numpy as np
    >>> from pauca.losses import Poisson
    >>> loss, y = with_offset(Poisson(), np.array([[3.0, 5.0]]), np.log([1.0, 10.0]))
    >>> loss.value(y, np.log([[3.0, 0.5]]))
    array([[0., 0.]])
    """
    if loss.of_residuals:
        return loss, y - offset
    pairs = np.empty(y.shape, dtype=TARGET_WITH_OFFSET)
    pairs["target"], pairs["offset"] = y, offset
    return WithOffset(loss), pairs


def without_offset(loss: Loss) -> Loss:
    """The loss of scores that hold all their parts."""
    return loss.loss if isinstance(loss, WithOffset) else loss


def parts_of(loss: Loss, y: np.ndarray) -> tuple[Loss, np.ndarray, np.ndarray | float]:
    """The loss of whole scores, its targets, and the offset: zero where there is none."""
    if isinstance(loss, WithOffset):
        return loss.loss, y["target"], y["offset"]
    return loss, y, 0.0


class WithOffset(Loss):
    """``L(y, a + offset)`` for targets that are pairs of y and an offset; all else is as for the loss L.

    Rows are alike if their offsets are, too; folds and samples of rows take offsets along with targets.
    """

    def __init__(self, loss: Loss) -> None:
        self.loss = loss

    smoothness = property(lambda self: self.loss.smoothness)
    lipschitz = property(lambda self: self.loss.lipschitz)
    self_concordance = property(lambda self: self.loss.self_concordance)
    may_diverge = property(lambda self: self.loss.may_diverge)
    # Not ``undecided``: a row may be on the right side by its offset, which larger scores do not multiply.
    flat = property(lambda self: self.loss.flat)
    narrow = property(lambda self: self.loss.narrow)
    classifies = property(lambda self: self.loss.classifies)
    free_dispersion = property(lambda self: self.loss.free_dispersion)
    has_likelihood = property(lambda self: self.loss.has_likelihood)
    has_estimated = property(lambda self: self.loss.has_estimated)
    has_lines = property(lambda self: self.loss.has_lines)

    def diverges_for(self, y: np.ndarray) -> bool:
        return self.loss.diverges_for(y["target"])

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.loss.value(y["target"], a + y["offset"])

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.loss.derivative(y["target"], a + y["offset"])

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.loss.curvature(y["target"], a + y["offset"])

    def slopes(self, y: np.ndarray, a: np.ndarray) -> Slopes:
        return self.loss.slopes(y["target"], a + y["offset"])

    def broad_curvature(self, y: np.ndarray, a: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return self.loss.broad_curvature(y["target"], a + y["offset"], weights)

    def held_out(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.loss.held_out(y["target"], a + y["offset"])

    def mislabelled(self, y: np.ndarray, a: np.ndarray) -> np.ndarray | None:
        return self.loss.mislabelled(y["target"], a + y["offset"])

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        return self.loss.conjugate(y["target"], t) - t * y["offset"]

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        return self.loss.minus_twice_log_likelihood(losses, n_rows)

    def n_parameters(self, n_coefficients: int, n_outputs: int, *, center: bool) -> int:
        return self.loss.n_parameters(n_coefficients, n_outputs, center=center)

    def tuned(self, y: np.ndarray, weights: np.ndarray) -> Loss:
        start = self.loss.tuned(y["target"], weights)
        if start == self.loss:
            return self
        constants = WithOffset(start).constants(y, weights, len(y))
        return self.tuned_at(y, np.broadcast_to(constants[:, None], y.shape), weights)

    def tuned_at(self, y: np.ndarray, a: np.ndarray, weights: np.ndarray) -> Loss:
        return WithOffset(self.loss.tuned_at(y["target"], a + y["offset"], weights))

    def constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        """The best constant: where the mean slope changes its sign, between those of the extreme offsets."""
        rows = np.flatnonzero(weights > 0)
        y, weights = y[rows], weights[rows]
        alone = self.loss.constant(y["target"], weights)
        if not np.isfinite(alone):
            return alone

        def slope(constant: float) -> float:
            return float(weights @ self.derivative(y, np.full(len(y), constant)))

        low, high = alone - float(y["offset"].max()), alone - float(y["offset"].min())
        with np.errstate(over="ignore"):
            crosses = slope(low) < 0 < slope(high)
            return float(brentq(slope, low, high, xtol=1e-12)) if crosses else 0.5 * (low + high)

    def smoothed(self, y: np.ndarray, weights: np.ndarray, *, center: bool) -> Loss:
        return self._around(self.loss.smoothed(y["target"], weights, center=center))

    def envelope(self, beta: float) -> Loss:
        return self._around(self.loss.envelope(beta))

    def easier(self) -> Loss | None:
        found = self.loss.easier()
        return None if found is None else self._around(found)

    def lines(self, y: np.ndarray) -> Lines | None:
        found = self.loss.lines(y["target"])
        return None if found is None else found._replace(offset=found.offset - found.direction * y["offset"])

    def _around(self, loss: Loss) -> Loss:
        return self if loss is self.loss else WithOffset(loss)

    def prediction(self, a: np.ndarray) -> np.ndarray:
        return self.loss.prediction(a)
