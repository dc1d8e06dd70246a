"""Rules that turn scores into a size."""

from __future__ import annotations

import numpy as np

from pauca.path import Choice

# Scores that differ by less are the same, and the smaller size is taken.
SAME_WITHIN = 1e-12


def choose_by_folds(sizes: np.ndarray, fold_scores: np.ndarray, rule: str, scoring: str) -> Choice:
    """The choice by scores of shape (folds, sizes), higher being better.

    "best" takes the highest mean. "1se" takes the smallest size whose mean is within one standard error of that: what
    cannot be told apart from the best is as good, and smaller (Breiman, Friedman, Olshen and Stone, 1984).
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
