"""One adapter per rival.

For numbers, an adapter returns the support the rival chose; ``fits.objective`` refits it by least squares, so that a
rival is judged by its choice and not by how it estimates coefficients. For classes, it returns the rival's own model.
All options but the number of features are the rival's defaults, one thread in the case of abess.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.fits import Fit, Linear, LinearFit
from benchmarks.problems import Problem


def omp_fit(problem: Problem, k: int) -> Fit:
    """Orthogonal matching pursuit of scikit-learn."""
    estimator = module("sklearn.linear_model").OrthogonalMatchingPursuit
    return lambda: _support(estimator(n_nonzero_coefs=k).fit(problem.X, problem.y))


def abess_fit(problem: Problem, k: int) -> Fit:
    """Splicing as in abess, at one support size."""
    estimator = module("abess.linear").LinearRegression
    return lambda: _support(estimator(support_size=k).fit(problem.X, problem.y))


def abess_classes_fit(problem: Problem, k: int) -> LinearFit:
    """Splicing as in abess for logistic loss, at one support size."""
    estimator = module("abess.linear").LogisticRegression
    return lambda: Linear.of(estimator(support_size=k).fit(problem.X, (problem.y > 0).astype(int)))


def celer_fit(problem: Problem, alpha: float, tol: float) -> Callable[[], Any]:
    """The Lasso of celer at one penalty; returns the fitted model, whose coefficients are compared."""
    estimator = module("celer").Lasso
    return lambda: estimator(alpha=alpha, tol=tol).fit(problem.X, problem.y)


def _support(fitted: Any) -> np.ndarray:
    return np.flatnonzero(fitted.coef_)


def module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise SystemExit(f"{package} is needed here: install with pip install 'pauca[benchmarks]' ({error})") from error
