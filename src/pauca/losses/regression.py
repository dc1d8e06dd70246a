"""Smooth losses of one score for regression: squared, Huber's, Poisson."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from pauca.losses.base import Loss, Slopes
from pauca.losses.piecewise import weighted_quantile

# Huber's: 95 % of the efficiency of least squares under normal noise of unit scale.
EFFICIENT = 1.345

# The median absolute deviation of a normal variable is this share of its standard deviation.
NORMAL_DEVIATION = 0.6744897501960817


class SquaredError(Loss):
    """``(a - y)^2 / 2``."""

    smoothness = 1.0
    steepness = 0.0
    quadratic = True

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return 0.5 * (a - y) ** 2

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return a - y

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.ones_like(a)

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        return t * (0.5 * t + y)

    def constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        return float(weights @ y)

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        # Normal noise of whatever scale fits best, one for each output.
        return n_rows * float(np.sum(np.log(np.maximum(losses, np.finfo(float).tiny))))


class Huber(Loss):
    """Squares for small residuals, absolute values for large ones: outliers pull with a bounded force.

    ``r^2 / 2`` for ``|r| <= threshold`` and ``threshold |r| - threshold^2 / 2`` beyond, with ``r = a - y``.

    Parameters
    ----------
    threshold : float or None, default=None
        Where squares end, in the units of y. None: 1.345 times the scale of y about its median (the median absolute
        deviation, brought to the scale of a normal variable), which is set when the loss meets its target.
    """

    smoothness = 1.0
    flat = True

    def __init__(self, threshold: float | None = None) -> None:
        if threshold is not None and not 0 < threshold < np.inf:
            raise ValueError(f"The threshold of Huber must be positive and finite, or None; got {threshold!r}.")
        self.threshold = threshold

    @property
    def lipschitz(self) -> float | None:  # type: ignore[override]
        """The largest slope: the threshold."""
        return self.threshold

    def tuned(self, y: np.ndarray, weights: np.ndarray) -> Huber:
        if self.threshold is not None:
            return self
        away = np.concatenate([np.abs(output - weighted_quantile(output, weights, 0.5)) for output in y])
        shares = np.tile(weights / len(y), len(y))
        scale = weighted_quantile(away, shares, 0.5) / NORMAL_DEVIATION
        if scale == 0:  # more than half of y is one number
            scale = float(np.sqrt(shares @ (away * away)))
        return Huber(EFFICIENT * scale if scale > 0 else 1.0)

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        t = self.derivative(y, a)
        return t * (a - y - 0.5 * t)

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.clip(a - y, -self._bound, self._bound)

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return (np.abs(a - y) <= self._bound).astype(np.float64)

    def broad_curvature(self, y: np.ndarray, a: np.ndarray, weights: np.ndarray) -> np.ndarray:
        # That of the parabola through the residual that lies above the loss: never zero.
        return self._bound / np.maximum(np.abs(a - y), self._bound)

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        return np.where(np.abs(t) <= self._bound, t * (0.5 * t + y), np.inf)

    def constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        return weighted_quantile(y, weights, 0.5)

    @property
    def _bound(self) -> float:
        if self.threshold is None:
            raise ValueError("Huber() takes its threshold from the target: call tuned(y, weights) first.")
        return self.threshold


class Poisson(Loss):
    """Counts with mean ``e^a``: ``e^a - y a`` plus the constant ``y log y - y``, which makes a perfect fit zero."""

    steepness = 1.0
    may_diverge = True
    link = "exp"

    def check_target(self, y: np.ndarray) -> None:
        if np.any(y < 0):
            raise ValueError(f"Poisson loss needs counts: y must not be negative, but its least value is {y.min():g}.")
        if not np.all(np.any(y > 0, axis=-1)):
            raise ValueError("Poisson loss needs a positive count in every output, in a row that has weight.")

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        # With r = a - log y this is y (e^r - 1 - r), which keeps the digits that large counts would swallow.
        counts = np.where(y > 0, y, 1.0)
        r = a - np.log(counts)
        return np.where(y > 0, np.maximum(counts * (np.expm1(r) - r), 0.0), np.exp(a))

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.exp(a) - y

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.exp(a)

    def slopes(self, y: np.ndarray, a: np.ndarray) -> Slopes:
        mean = np.exp(a)
        return Slopes(mean - y, mean)

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        inside = t >= -y
        u = np.where(inside, t + y, 0.0)
        return np.where(inside, xlogy(u, u) - u - xlogy(y, y) + y, np.inf)

    def prediction(self, a: np.ndarray) -> np.ndarray:
        return np.exp(a)

    def constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        return float(np.log(weights @ y))

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        return 2.0 * n_rows * float(np.sum(losses))
