"""Targets that are far from zero and close to each other."""

from __future__ import annotations

import numpy as np

# Targets are taken from zero where they are this many times as far from it as from each other.
FAR_FROM_ZERO = 1e5


def far_origin(y: np.ndarray, weights: np.ndarray) -> float:
    """A target about which all others lie, if zero is so far from them that rounding of scores would count; else 0."""
    used = y[:, weights > 0]
    origin = float(np.median(used))
    return origin if abs(origin) > FAR_FROM_ZERO * float(np.abs(used - origin).max()) else 0.0
