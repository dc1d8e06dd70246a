"""How well numbers are predicted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RegressionErrors:
    """Differences between targets and predictions.

    Attributes
    ----------
    r2 : float
        The share of the variance about the mean of these rows that is gone.
    rmse, mae : float
        Root of the mean squared error, and mean absolute error, in the units of the target.
    """

    r2: float
    rmse: float
    mae: float


def regression_errors(y: np.ndarray, predicted: np.ndarray) -> RegressionErrors:
    """The errors of predictions of one output, or their means over several, shapes (n,) or (n, C)."""
    y, predicted = (np.asarray(part, dtype=np.float64).reshape(len(part), -1) for part in (y, predicted))
    left, spread = ((y - predicted) ** 2).sum(axis=0), ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    r2 = 1.0 - left / np.where(spread > 0, spread, np.nan)
    return RegressionErrors(
        float(np.mean(r2)), float(np.sqrt(np.mean((y - predicted) ** 2))), float(np.mean(np.abs(y - predicted)))
    )
