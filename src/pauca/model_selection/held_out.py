"""Models that have not seen some rows, and their scores of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pauca.model_selection.scoring import read_columns


class HeldOutModel(NamedTuple):
    """A linear model and the rows that it has not seen."""

    rows: np.ndarray
    units: tuple[int, ...]
    """What was chosen without these rows."""
    columns: np.ndarray
    coef: np.ndarray
    """Shape (C, q)."""
    intercept: np.ndarray
    """Shape (C,)."""
    X: Any = None
    """The table as its fold sees it, where what is filled in differs."""


def held_out_scores(X: Any, n_rows: int, models: Sequence[HeldOutModel]) -> np.ndarray:
    """Scores of rows by the models that have not seen them, shape (n, C).

    NaN for rows that all have seen; the mean for those that several have not.
    """
    total, count = np.zeros((n_rows, len(models[0].intercept))), np.zeros(n_rows)
    for model in models:
        block = read_columns(X if model.X is None else model.X, model.columns, model.rows)
        np.add.at(total, model.rows, block @ model.coef.T + model.intercept)
        np.add.at(count, model.rows, 1)
    with np.errstate(invalid="ignore"):
        return total / count[:, None]
