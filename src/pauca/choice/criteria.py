"""Information criteria: what a size must gain in likelihood to be worth its coefficients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln

from pauca.losses import Loss


def criterion_values(
    criterion: str,
    loss: Loss,
    *,
    losses: np.ndarray,
    coefficients: Sequence[int],
    sizes: Sequence[int],
    n_rows: int,
    n_units: int,
) -> np.ndarray:
    """The criterion of every model, lower being better.

    ``-2 log L + 2 q`` (Akaike 1974), ``-2 log L + q log n`` (Schwarz 1978), or the latter with ``2 log (p over k)``
    for the number of models of the same size (Chen and Chen 2008, with their gamma = 1).

    Parameters
    ----------
    losses : mean losses on the rows of the fit, shape (models, C), or (models, 1) where outputs share a loss
    coefficients : number of coefficients of every model
    sizes : number of units of every model
    """
    fits = np.array([loss.minus_twice_log_likelihood(row, n_rows) for row in losses])
    return penalised(criterion, fits, coefficients=coefficients, sizes=sizes, n_rows=n_rows, n_units=n_units)


def penalised(
    criterion: str,
    fits: np.ndarray,
    *,
    coefficients: Sequence[int],
    sizes: Sequence[int],
    n_rows: int,
    n_units: int,
) -> np.ndarray:
    """The criterion of models whose ``-2 log L`` is known."""
    q, k = np.asarray(coefficients, dtype=float), np.asarray(sizes, dtype=float)
    if criterion == "aic":
        return fits + 2.0 * q
    values = fits + np.log(n_rows) * q
    if criterion == "ebic":
        values = values + 2.0 * (gammaln(n_units + 1) - gammaln(k + 1) - gammaln(n_units - k + 1))
    return values
