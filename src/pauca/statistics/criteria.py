"""Criteria that compare models of several sizes on the data of the fit: AIC, BIC, extended BIC, adjusted R^2, Cp."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln


@dataclass(frozen=True)
class ModelCounts:
    """What the penalties of information criteria depend on."""

    parameters: Any
    """Number of parameters of each model, with intercepts."""
    sizes: Any
    """Number of chosen units of each model."""
    n_rows: int
    n_units: int


@dataclass(frozen=True)
class Criterion:
    """An information criterion: ``-2 log L`` and a penalty for the size of a model."""

    label: str
    """The name in messages."""
    penalty: Callable[[ModelCounts], Any]

    def __call__(self, minus_twice_log_likelihood: Any, models: ModelCounts) -> Any:
        """The criterion of one model or of several, lower being better."""
        return minus_twice_log_likelihood + self.penalty(models)


def _schwarz(models: ModelCounts) -> Any:
    return np.log(models.n_rows) * models.parameters


def _models_of_a_size(models: ModelCounts) -> Any:
    k, p = models.sizes, models.n_units
    return 2.0 * (gammaln(p + 1) - gammaln(k + 1) - gammaln(p - k + 1))


CRITERIA = {
    "aic": Criterion("AIC", lambda models: 2.0 * models.parameters),
    "bic": Criterion("BIC", _schwarz),
    "ebic": Criterion("extended BIC", lambda models: _schwarz(models) + _models_of_a_size(models)),
}
"""Akaike (1974), Schwarz (1978), and Chen and Chen (2008) with gamma = 1, who count the models of the same size."""


def adjusted_r2(r2: float, n_rows: int, n_coefficients: int, *, center: bool = True) -> float:
    """R^2 with variances in place of sums of squares; not a number unless there are more rows than coefficients.

    ``n_coefficients`` is without the intercept, which ``center`` says there is.
    """
    left = n_rows - n_coefficients - int(center)
    return 1.0 - (1.0 - r2) * (n_rows - int(center)) / left if left > 0 else float("nan")


def mallows_cp(loss: float, full_loss: float, n_rows: int, n_coefficients: int, n_full: int, *, center: bool) -> float:
    """``RSS / s^2 - n + 2 q`` with the variance s^2 that the model of all columns leaves (Mallows 1973).

    Losses are half mean squared errors; ``n_coefficients`` and ``n_full`` are without the intercept. Not a number
    unless the model of all columns leaves something.
    """
    left = n_rows - n_full - int(center)
    if left <= 0 or full_loss <= 0:
        return float("nan")
    variance = 2.0 * n_rows * full_loss / left
    return float(2.0 * n_rows * loss / variance - n_rows + 2 * (n_coefficients + int(center)))


def least_squares_loss(columns: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[float, int]:
    """Half the weighted mean squared error that a least squares fit of all ``columns`` leaves, and their rank.

    Columns have shape (d, n), one to a row. Where there is an intercept, columns and y are centred; weights sum to one.
    """
    scale = np.sqrt(weights)
    basis, sizes, _ = np.linalg.svd((columns * scale).T, full_matrices=False)
    rank = int(np.count_nonzero(sizes > max(columns.shape) * np.finfo(float).eps * sizes.max(initial=0.0)))
    left = y * scale
    left = left - basis[:, :rank] @ (basis[:, :rank].T @ left)
    return float(0.5 * left @ left), rank


def has_moments(columns: np.ndarray, y: np.ndarray, weights: np.ndarray, null: float, *, center: bool) -> bool:
    """Whether ``columns`` are standardised, and the loss of a constant is still ``null``: other data would differ.

    Shapes are those of ``least_squares_loss``.
    """
    means = columns @ weights if center else np.zeros(0)
    standard = np.allclose(columns**2 @ weights, 1.0, atol=1e-6) and np.allclose(means, 0.0, atol=1e-6)
    return bool(standard and np.isclose(0.5 * y**2 @ weights, null, rtol=1e-6, atol=0.0))
