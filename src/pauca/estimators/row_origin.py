"""Whether rows that are given to measure predictions on are new, or those of the fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from pauca.estimators.chunked_predictions import rows_in_chunks
from pauca.estimators.input_checks import check_rows
from pauca.estimators.training_data import TrainingData
from pauca.model_selection.scoring import read_columns
from pauca.results.evaluation import FIT, TEST

# With the targets, so many columns and those of the model tell rows from others, and of wide tables take little time.
COLUMNS_COMPARED = 100


def origin(estimator: Any, X: Any, y: np.ndarray) -> str:
    """Whether rows that are given to be predicted are all those of the fit, in their order, where these are at hand."""
    data: TrainingData | None = getattr(estimator, "_training_data", None)
    if data is None or not data.in_memory or not np.all(data.weights > 0) or not np.array_equal(data.y, y):
        return TEST
    if rows_in_chunks(estimator, X) is not None or np.shape(X)[1] != estimator.n_features_in_:
        return TEST
    compared = np.union1d(estimator.support_, np.arange(min(data.problem.X.shape[1], COLUMNS_COMPARED)))
    try:
        given = read_columns(check_rows(estimator, X, compared), np.arange(len(compared)), np.arange(len(y)))
    except ValueError:  # of columns that no prediction needs
        return TEST
    return FIT if np.array_equal(given, read_columns(data.problem.X, compared, np.arange(len(y)))) else TEST
