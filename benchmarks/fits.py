"""Our own side: fits by method, and the judges of all supports and linear models, ours and the rivals'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.problems import Matrix, Problem
from pauca import SparseClassifier, SparseRegressor
from pauca.runs.run import Method

Fit = Callable[[], np.ndarray]
"""Something that fits when it is called and returns the chosen support."""


class Linear(NamedTuple):
    """A fitted model of one score."""

    coef: np.ndarray
    intercept: float

    @classmethod
    def of(cls, fitted: Any) -> Linear:
        """Read off any fitted estimator that has ``coef_`` and ``intercept_``."""
        return cls(np.ravel(fitted.coef_), float(np.ravel(fitted.intercept_)[0]))


LinearFit = Callable[[], Linear]
"""Something that fits when it is called and returns the model."""


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


def pauca_classes_fit(problem: Problem, k: int, method: str | Method) -> LinearFit:
    """Fit two classes by pauca, from the raw data to the fitted estimator."""
    return lambda: Linear.of(SparseClassifier(k, method=method).fit(problem.X, problem.y))


def logistic_objective(X: Matrix, y: np.ndarray, model: Linear) -> float:
    """Mean logistic loss of a model at its own coefficients; y is -1 or 1."""
    return float(np.mean(np.logaddexp(0.0, -y * (X @ model.coef + model.intercept))))
