"""Predictions for tables in chunks: only the columns that a model uses are read; those of Dask tables are lazy."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial, wraps
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from pauca.design import Chunks
from pauca.design.chunks import as_chunks, is_dask, is_lazy_frame
from pauca.wording import quoted


def rows_in_chunks(estimator: Any, X: Any) -> Chunks | None:
    """A table in chunks whose rows are to be predicted; None for tables in memory.

    Of a lazy frame only columns that the model uses are looked at, as of any other frame.
    """
    if hasattr(estimator, "encoder_") and (is_lazy_frame(X) or as_chunks(X) is not None):
        raise ValueError(
            f"This {type(estimator).__name__} was fitted to a table with categories or missing values, which it "
            "encodes in memory; predict a table in chunks part by part, each as a frame."
        )
    if is_lazy_frame(X) and hasattr(estimator, "feature_names_in_"):
        from pauca.design.chunks.parquet import select_columns

        names = [str(estimator.feature_names_in_[j]) for j in estimator.support_]
        _check_has(X.collect_schema(), names)
        X = select_columns(X, names or list(X.collect_schema())[:1])  # a constant needs the number of rows
    return as_chunks(X)


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
    _check_has(place, [names[j] for j in support])
    return np.array([place[names[j]] for j in support], dtype=np.intp)


def _check_has(known: Container[str], names: Sequence[str]) -> None:
    missing = [str(name) for name in names if name not in known]
    if missing:
        raise ValueError(f"The model needs columns that X does not have: {quoted(missing)}.")


def scores_of_chunks(estimator: Any, X: Chunks) -> np.ndarray:
    """Linear scores of all rows, shape (n, C)."""
    coef, intercept = np.atleast_2d(estimator.coef_)[:, estimator.support_], np.atleast_1d(estimator.intercept_)
    scores = np.empty((X.n_rows, len(coef)))
    columns = used_columns(estimator, X)
    if not len(columns):
        scores[:] = intercept
        return scores
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


def lazy_on_dask(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of rows that returns a lazy array for a Dask array, and a lazy series or frame for a Dask frame."""

    @wraps(method)
    def call(self: Any, X: Any, **beside: Any) -> Any:
        if not is_dask(X):
            return method(self, X, **beside)
        check_is_fitted(self)
        given = [name for name, value in beside.items() if value is not None]
        if given:
            raise TypeError(f"{quoted(given)} cannot be combined with a Dask table; predict its chunks one by one.")
        return _lazily(self, X, method.__name__)

    return call


def _lazily(estimator: Any, X: Any, name: str) -> Any:
    from pauca.design.chunks.cluster import map_rows, one_row

    # The result of a single row shows the type and the columns of the result.
    one = getattr(estimator, name)(one_row(X))
    columns: Sequence[Any] | None = None
    if one.ndim == 2:
        classes = getattr(estimator, "classes_", None)
        columns = range(one.shape[1]) if classes is None or len(classes) != one.shape[1] else classes
    return map_rows(X, partial(_of_rows, estimator, name), one.dtype, columns)


def _of_rows(estimator: Any, name: str, rows: Any) -> np.ndarray:
    return np.asarray(getattr(estimator, name)(rows))


def lazy_score(method: Callable[..., Any]) -> Callable[..., Any]:
    """A score that is a lazy number for a Dask table."""

    @wraps(method)
    def call(self: Any, X: Any, y: Any, sample_weight: Any = None, **beside: Any) -> Any:
        if not is_dask(X):
            return method(self, X, y, sample_weight, **beside)
        from pauca.design.chunks.cluster import as_array

        predicted, both_frames = self.predict(X, **beside), hasattr(X, "columns") and hasattr(y, "index")
        if not both_frames:
            predicted, y = as_array(predicted, lengths=True), as_array(y, lengths=True)
        weights = np.ones(1) if sample_weight is None else as_array(sample_weight, lengths=not both_frames)
        if is_classifier(self):
            return _mean(as_array((predicted == y).astype(np.float64), lengths=False), weights)
        predicted, y = as_array(predicted, lengths=False), as_array(y, lengths=False)
        weights = weights[:, None] if y.ndim == 2 and np.ndim(weights) and len(weights) > 1 else weights
        left, mean = (y - predicted) ** 2 * weights, _mean(y, weights)
        return (1 - left.sum(axis=0) / ((y - mean) ** 2 * weights).sum(axis=0)).mean()

    return call


def _mean(values: Any, weights: Any) -> Any:
    """Weighted means of the columns."""
    weighted = values * weights
    return weighted.sum(axis=0) / (weights + 0 * values).sum(axis=0)


def transform_lazily(estimator: Any, X: Any) -> Any:
    """The chosen columns of a Dask array or frame."""
    if hasattr(X, "columns"):
        return X[list(estimator.get_feature_names_out())]
    return X[:, estimator.support_]
