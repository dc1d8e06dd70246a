"""Standard errors of the coefficients of a model whose columns were given, not chosen."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri, stdtrit

from pauca.losses import Loss


def dispersion(loss: Loss, y: np.ndarray, scores: np.ndarray, weights: np.ndarray, n_coefficients: int) -> float:
    """The factor that variances are multiplied by: one where the loss says what the variance is."""
    return pearson_dispersion(loss, y, scores, weights, n_coefficients) if loss.free_dispersion else 1.0


def pearson_dispersion(
    loss: Loss, y: np.ndarray, scores: np.ndarray, weights: np.ndarray, n_coefficients: int
) -> float:
    """The factor between the variance of the target and what the loss takes it to be, by Pearson's statistic.

    Squared derivatives over expected curvatures, per row beyond the number of coefficients.
    """
    left = int(np.count_nonzero(weights)) - n_coefficients
    if left <= 0:
        return float("nan")
    # The row weights sum to one: on average they are one over the number of rows.
    squares = loss.derivative(y, scores) ** 2 / expected_curvature(loss, scores)
    return float(weights @ squares) * np.count_nonzero(weights) / left


def expected_curvature(loss: Loss, scores: np.ndarray) -> np.ndarray:
    """The curvature at the mean that the scores stand for: that of a likelihood is linear in the target."""
    return loss.curvature(np.ones_like(scores) if loss.classifies else loss.prediction(scores), scores)


def fisher_information(
    loss: Loss, y: np.ndarray, scores: np.ndarray, weights: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """The expected information of a row, shape (q, q); of coupled rows, such as risk sets, the observed one."""
    if not loss.coupled:
        return np.asarray(columns.T @ (columns * (weights * expected_curvature(loss, scores))[:, None]))
    information = columns.T @ (columns * (weights * loss.slopes(y, scores).curvature)[:, None])
    shared = loss.row_coupling(scores, columns.T)
    return np.asarray(information if shared is None else information - shared @ shared.T)


def coefficient_covariance(
    loss: Loss, y: np.ndarray, scores: np.ndarray, weights: np.ndarray, columns: np.ndarray, penalty: np.ndarray
) -> np.ndarray:
    """Covariance of the coefficients of ``columns``, shape (q, q), an intercept being a column of ones.

    ``H^-1 F H^-1`` times the dispersion, for the expected information F and ``H = F + penalty``: the inverse of F
    without a penalty.

    Parameters
    ----------
    y, scores, weights : shape (n,); the weights sum to one
    columns : shape (n, q)
    penalty : shape (q,), what a ridge adds to the diagonal of the Hessian of the mean loss
    """
    n_rows = int(np.count_nonzero(weights))
    information = fisher_information(loss, y, scores, weights, columns)
    # Columns in units of very different size would lose digits.
    scale = 1.0 / np.sqrt(np.maximum(information.diagonal(), np.finfo(float).tiny))
    inverse = np.linalg.pinv((information + np.diag(penalty)) * np.outer(scale, scale), hermitian=True)
    inverse *= np.outer(scale, scale)
    covariance = inverse @ information @ inverse if np.any(penalty) else inverse
    return dispersion(loss, y, scores, weights, columns.shape[1]) / n_rows * covariance


def quantile(loss: Loss, confidence: float, n_rows: int, n_coefficients: int) -> float:
    """How many standard errors an interval reaches to either side: Student's for squared error, else the normal."""
    upper = 0.5 + confidence / 2
    return float(stdtrit(n_rows - n_coefficients, upper)) if loss.quadratic else float(ndtri(upper))
