"""Quantiles of weighted numbers."""

from __future__ import annotations

import numpy as np


def weighted_quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """The least value below or at which lies at least ``share`` of the weight."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    position = np.searchsorted(reached, share * reached[-1] * (1 - 1e-12))
    return float(values[order[min(position, len(values) - 1)]])
