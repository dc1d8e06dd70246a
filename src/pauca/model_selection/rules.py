"""Rules that choose a size: by scores of folds, or by an information criterion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln

from pauca.losses import Loss
from pauca.results.choice import Choice


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


# Scores that differ by less are the same, and the smaller size is taken.
SAME_WITHIN = 1e-12


def choose_by_folds(sizes: np.ndarray, fold_scores: np.ndarray, rule: str, scoring: str) -> Choice:
    """The choice by scores of shape (folds, sizes), higher being better.

    "best" takes the highest mean. "1se" takes the smallest size whose mean is within one standard error of that: what
    cannot be distinguished from the best is as good, and smaller (Breiman, Friedman, Olshen and Stone, 1984).
    """
    mean = fold_scores.mean(axis=0)
    spread = fold_scores.std(axis=0, ddof=1) if len(fold_scores) > 1 else np.zeros(len(sizes))
    error = spread / np.sqrt(len(fold_scores))
    same = SAME_WITHIN * max(1.0, float(np.abs(mean).max()))
    best = int(np.flatnonzero(mean >= mean.max() - same)[0])
    enough = mean[best] - (error[best] if rule == "1se" else 0.0) - same
    chosen = int(sizes[np.flatnonzero(mean >= enough)[0]])
    return Choice(rule, scoring, sizes, mean, error, fold_scores, chosen)


def choose_by_criterion(sizes: np.ndarray, values: np.ndarray, criterion: str) -> Choice:
    """The choice by an information criterion, lower being better; the smallest size among equals."""
    return Choice(criterion, criterion, sizes, values, None, None, int(sizes[np.argmin(values)]))
