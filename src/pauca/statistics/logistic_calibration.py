"""Calibration slope and intercept of predicted probabilities of two classes."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

MOST_STEPS = 100

# A slope or an intercept beyond this is none: the outcomes are separated, or nearly so.
LARGEST = 100.0


def calibration_intercept(positive: np.ndarray, probability: np.ndarray) -> float | None:
    """What must be added to the log-odds so that they are right on average: calibration in the large (Cox 1958).

    Above 0 the positive class is more frequent than predicted. None where all rows are of one class.
    """
    score = _log_odds(probability)
    found = _logistic_fit(np.ones((1, len(score))), np.asarray(positive, dtype=np.float64), score)
    return None if found is None else float(found[0])


def calibration_slope(positive: np.ndarray, probability: np.ndarray) -> float | None:
    """The coefficient of the log-odds in a logistic model of their own: 1 if they are right, less if too extreme.

    None where it is not finite, or where all probabilities are equal.
    """
    score = _log_odds(probability)
    columns = np.stack([np.ones_like(score), score])
    found = _logistic_fit(columns, np.asarray(positive, dtype=np.float64), np.zeros(1))
    return None if found is None else float(found[1])


def _log_odds(probability: np.ndarray) -> np.ndarray:
    eps = np.finfo(np.float64).eps
    return logit(np.clip(np.asarray(probability, dtype=np.float64), eps, 1.0 - eps))


def _logistic_fit(columns: np.ndarray, y: np.ndarray, offset: np.ndarray) -> np.ndarray | None:
    """Coefficients of the rows of ``columns`` by Newton's method; None where they are not finite or not unique."""

    def loss(at: np.ndarray) -> float:
        score = at @ columns + offset
        return float(np.sum(np.logaddexp(0.0, score) - y * score))

    at = np.zeros(len(columns))
    for _ in range(MOST_STEPS):
        share = expit(at @ columns + offset)
        curvature = (columns * (share * (1.0 - share))) @ columns.T
        if np.linalg.matrix_rank(curvature, hermitian=True) < len(columns):
            return None
        step = np.linalg.solve(curvature, columns @ (y - share))
        if np.max(np.abs(step)) < 1e-10:
            return at
        value = loss(at)
        while loss(at + step) > value + 1e-12 * abs(value):
            step /= 2
        at = at + step
        if np.max(np.abs(at)) > LARGEST:
            return None
    return None
