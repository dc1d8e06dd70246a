"""Tables of many columns with several outputs, which the small ones of most cases cannot stand for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

FORMS = ["array", "array", "fortran", "csr", "csc", "frame", "float32", "chunks", "three rows at a time"]
METHODS = ["exchange", "forward", "stepwise", "foba", "replacement"]
KEPT = (
    *("loss", "ridge", "standardize", "fit_intercept", "radius", "solver", "tol", "max_iter", "passes", "truncation"),
    *("learning_rate", "refit", "average", "shuffle", "class_weight", "ties", "shrinkage"),
)
"""Parameters that do not depend on the columns."""


def wide(case, rng):
    """The case on a table of fifty to two hundred columns, with as many outputs as its estimator takes."""
    n, d = int(rng.integers(40, 90)), int(rng.integers(50, 201))
    X = rng.standard_normal((n, d))
    if rng.random() < 0.3:
        X += rng.standard_normal((n, 1))
    if rng.random() < 0.2:
        X *= rng.random((n, d)) < 0.1
    if case.family == "SparsePrecision":
        X = X[:, :40]
    given = {name: value for name, value in case.parameters.items() if name in KEPT}
    given |= _sizes(case, rng)
    form = FORMS[int(rng.integers(len(FORMS)))]
    return replace(
        case, X=X, y=_target(case, rng, X), form=form, weights=None, parameters=given, kind="wide", tame=False, extra={}
    )


def _sizes(case, rng):
    if case.family.startswith("L1"):
        return {"radius": float(rng.choice([0.3, 1.0, 5.0, 30.0])), "max_iter": 500}
    found = {"k": int(rng.integers(1, 4))}
    if not case.family.startswith("Stream"):
        found["method"] = METHODS[int(rng.integers(3 if case.family == "SparsePrecision" else len(METHODS)))]
    if case.family in ("SparseRegressor", "SparseClassifier") and rng.random() < 0.2:
        found |= {"k": range(3), "cv": 2, "n_jobs": 2, "method": "forward"}
    return found


def _target(case, rng, X):
    """A target that a few columns make, with several outputs or classes."""
    n, outputs = len(X), int(rng.integers(2, 6))
    columns = X[:, rng.permutation(X.shape[1])[:outputs]]
    if "Classifier" in case.family:
        return np.argmax(2 * columns + rng.gumbel(size=columns.shape), axis=1)
    if case.y is None or case.family == "SparseCox":
        times = np.exp(-columns[:, 0]) * rng.exponential(size=n) + 0.01
        return None if case.y is None else np.column_stack([rng.random(n) < 0.8, times])
    loss = case.parameters.get("loss", "squared_error")
    if loss in ("poisson", "tweedie", "NegativeBinomial(0.5)"):
        return rng.poisson(np.exp(np.clip(columns[:, 0], -2, 2))).astype(float)
    if loss == "gamma":
        return rng.gamma(2.0, np.exp(np.clip(columns[:, 0], -2, 2)))
    y = columns + 0.3 * rng.standard_normal(columns.shape)
    return y if case.family == "SparseRegressor" and rng.random() < 0.6 else y[:, 0]
