"""Probabilities of ordered classes from scores and thresholds."""

from __future__ import annotations

import numpy as np

# e to this power is within floating-point numbers.
LARGEST_EXPONENT = 700.0


def sigmoid(x: np.ndarray) -> np.ndarray:
    """``1 / (1 + e^-x)`` for any x, with all digits of small values: a heavy row may have a tiny probability."""
    return 1.0 / (1.0 + np.exp(np.minimum(-x, LARGEST_EXPONENT)))


def class_probabilities(a: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Probabilities of the classes at scores of shape (n,): shape (n, C)."""
    up_to = sigmoid(thresholds - a[:, None])
    above = sigmoid(a[:, None] - thresholds)
    first, last = up_to[:, :1], above[:, -1:]
    # F(t) - F(s) = F(t) (1 - F(s)) (1 - e^(s - t)) keeps the digits of classes that are hardly likely.
    between = up_to[:, 1:] * above[:, :-1] * -np.expm1(-np.diff(thresholds))
    return np.hstack([first, between, last])
