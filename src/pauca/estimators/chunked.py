"""Predictions for tables in chunks: only the columns that a model uses are read."""

from __future__ import annotations

from typing import Any

import numpy as np

from pauca.design import Chunks
from pauca.wording import quoted


def used_columns(estimator: Any, X: Chunks) -> np.ndarray:
    """Where the columns that a model uses are in a table in chunks: by their names, where both have them."""
    names = getattr(estimator, "feature_names_in_", None)
    support: np.ndarray = estimator.support_
    if names is None or X.names is None:
        if X.n_features != estimator.n_features_in_:
            raise ValueError(
                f"X has {X.n_features} features, but {type(estimator).__name__} is expecting "
                f"{estimator.n_features_in_} features as input."
            )
        return support
    place = {name: position for position, name in enumerate(X.names)}
    missing = [str(names[j]) for j in support if names[j] not in place]
    if missing:
        raise ValueError(f"The model needs columns that X does not have: {quoted(missing)}.")
    return np.array([place[names[j]] for j in support], dtype=np.intp)


def scores_of_chunks(estimator: Any, X: Chunks) -> np.ndarray:
    """Linear scores of all rows, shape (n, C)."""
    coef, intercept = np.atleast_2d(estimator.coef_)[:, estimator.support_], np.atleast_1d(estimator.intercept_)
    scores = np.empty((X.n_rows, len(coef)))
    columns = used_columns(estimator, X)
    for number, (rows, part) in enumerate(X.map(_scores, coef, intercept, features=columns)):
        if not np.all(np.isfinite(part)):
            bad = rows.start + int(np.argmin(np.isfinite(part).all(axis=1)))
            raise ValueError(
                f"Input X contains NaN or infinity in a column that the model uses: in chunk {number}, row {bad} of "
                f"the table.\n{type(estimator).__name__} does not accept missing values."
            )
        scores[rows] = part
    return scores


def _scores(block: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    return block.astype(np.float64, copy=False) @ coef.T + intercept
