"""Smooth losses of residuals: squared error and Huber."""

from __future__ import annotations

import numpy as np

from pauca.losses.base import Loss
from pauca.losses.piecewise import weighted_quantile

# Huber (1964): 95 % of the efficiency of least squares under normal noise of unit scale.
EFFICIENT_THRESHOLD = 1.345

# The median absolute deviation of a normal variable is this share of its standard deviation.
NORMAL_DEVIATION = 0.6744897501960817


class SquaredError(Loss):
    """``(a - y)^2 / 2``."""

    free_dispersion = True
    smoothness = 1.0
    self_concordance = 0.0
    quadratic = True
    explains = "variance"
    of_residuals = True

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
        # Normal noise with the maximum likelihood variance of each output, which is twice the loss.
        variances = 2.0 * np.maximum(losses, np.finfo(float).tiny)
        return n_rows * float(np.sum(np.log(2.0 * np.pi * variances) + 1.0))


class Huber(Loss):
    """Quadratic for small residuals, linear for large ones, so that outliers have bounded influence.

    ``r^2 / 2`` for ``|r| <= threshold`` and ``threshold |r| - threshold^2 / 2`` beyond, with ``r = a - y``.

    Parameters
    ----------
    threshold : float or None, default=None
        Where the quadratic part ends, in the units of y. None: 1.345 times the scale of y (its median absolute
        deviation, scaled to the standard deviation of a normal variable), set when the model is fitted.
    """

    smoothness = 1.0
    flat = True
    of_residuals = True

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
        distance = np.concatenate([np.abs(output - weighted_quantile(output, weights, 0.5)) for output in y])
        shares = np.tile(weights / len(y), len(y))
        scale = weighted_quantile(distance, shares, 0.5) / NORMAL_DEVIATION
        if scale == 0:  # more than half of y is one value
            scale = float(np.sqrt(shares @ (distance * distance)))
        return Huber(EFFICIENT_THRESHOLD * scale if scale > 0 else 1.0)

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        t = self.derivative(y, a)
        return t * (a - y - 0.5 * t)

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.clip(a - y, -self._bound, self._bound)

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return (np.abs(a - y) <= self._bound).astype(np.float64)

    def broad_curvature(self, y: np.ndarray, a: np.ndarray, weights: np.ndarray) -> np.ndarray:
        # The curvature of the parabola that touches the loss at the residual and lies above it: never zero.
        return self._bound / np.maximum(np.abs(a - y), self._bound)

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        return np.where(np.abs(t) <= self._bound, t * (0.5 * t + y), np.inf)

    def constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        return weighted_quantile(y, weights, 0.5)

    @property
    def _bound(self) -> float:
        if self.threshold is None:
            raise ValueError("Huber() has no threshold yet: give it one, or call tuned(y, weights) first.")
        return self.threshold
