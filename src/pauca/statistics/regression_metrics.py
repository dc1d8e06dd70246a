"""How well numbers are predicted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pauca.losses import Loss
from pauca.losses.offset import with_offset


@dataclass(frozen=True)
class RegressionErrors:
    """Differences between targets and predictions.

    Attributes
    ----------
    r2 : float
        The share of the variance about the mean of these rows that is gone.
    rmse, mae : float
        Root of the mean squared error, and mean absolute error, in the units of the target.
    d2 : float or None
        The share of the deviance that is gone, of losses that are one.
    """

    r2: float
    rmse: float
    mae: float
    d2: float | None = None


def regression_errors(y: np.ndarray, predicted: np.ndarray, d2: float | None = None) -> RegressionErrors:
    """The errors of predictions of one output, or their means over several, shapes (n,) or (n, C)."""
    y, predicted = (np.asarray(part, dtype=np.float64).reshape(len(part), -1) for part in (y, predicted))
    left, spread = ((y - predicted) ** 2).sum(axis=0), ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    r2 = 1.0 - left / np.where(spread > 0, spread, np.nan)
    return RegressionErrors(
        float(np.mean(r2)), float(np.sqrt(np.mean((y - predicted) ** 2))), float(np.mean(np.abs(y - predicted))), d2
    )


def deviance_explained(loss: Loss, y: np.ndarray, scores: np.ndarray, offset: np.ndarray) -> float:
    """D^2 of one output, or its mean over several: as scikit-learn has it, R^2 with the deviance for the squared error.

    Scores are compared with the best constant for these rows, to which the offset is added: of rates with the same
    rate for all rows.

    Parameters
    ----------
    loss : half the deviance of a target and a score
    y : shape (n,) or (n, C)
    scores : shape (n, C), with the offset included
    offset : shape (n,)
    """
    y = np.asarray(y, dtype=np.float64).reshape(len(y), -1).T
    whole, pairs = with_offset(loss, y, offset)
    weights = np.full(len(offset), 1.0 / len(offset))
    # Rows outside of the family, such as an amount of zero, have no deviance.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        constants = whole.constants(pairs, weights, len(y))
        left = loss.value(y, scores.T).sum(axis=-1)
        spread = whole.value(pairs, np.broadcast_to(constants[:, None], y.shape)).sum(axis=-1)
        return float(np.mean(1.0 - left / np.where(spread > 0, spread, np.nan)))
