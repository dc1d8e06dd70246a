"""Our own side: fits by method, and the one judge of all supports, ours and the rivals'."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from benchmarks.problems import Matrix, Problem
from pauca import SparseRegressor
from pauca.path import Method

Fit = Callable[[], np.ndarray]
"""Something that fits when it is called and returns the chosen support."""


def pauca_fit(problem: Problem, k: int, method: str | Method) -> Fit:
    """Fit by pauca, from the raw data to the fitted estimator."""
    return lambda: SparseRegressor(k, method=method).fit(problem.X, problem.y).support_


def objective(X: Matrix, y: np.ndarray, support: np.ndarray) -> float:
    """Half the mean squared residual of the least-squares fit, with intercept, on the columns ``support``."""
    chosen = X[:, support]
    chosen = chosen.toarray() if sparse.issparse(chosen) else chosen
    chosen = chosen - chosen.mean(axis=0)
    target = y - y.mean()
    coef = np.linalg.lstsq(chosen, target, rcond=None)[0]
    return 0.5 * float(np.mean((target - chosen @ coef) ** 2))
