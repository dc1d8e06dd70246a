"""What the user brings, checked before any work, in scikit-learn's words."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from pauca.design import Design
from pauca.path import column_names

NAMES_SHOWN = 5


def check_integer(estimator: Any, name: str, value: Any, least: int) -> int | None:
    """An integer of at least ``least``, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(_refusal(estimator, name, f"an int in the range [{least}, inf) or None", value))
    if value < least:
        raise ValueError(_refusal(estimator, name, f"an int in the range [{least}, inf) or None", value))
    return int(value)


def check_number(estimator: Any, name: str, value: Any, *, positive: bool = False) -> float:
    """A finite number that is not negative, or positive if asked."""
    wanted = f"a float in the range {'(0' if positive else '[0'}, inf)"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(_refusal(estimator, name, wanted, value))
    if not math.isfinite(value) or value < 0 or (positive and value == 0):
        raise ValueError(_refusal(estimator, name, wanted, value))
    return float(value)


def check_data(estimator: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """X as an array or a CSC or CSR matrix in its own dtype, uncopied where it was one already; y as floats.

    Whether X is finite shows in its moments, which are the first pass over it; ``check_moments`` looks there.
    """
    try:
        X_checked, y = validate_data(
            estimator, X, y, accept_sparse=("csc", "csr"), dtype="numeric", ensure_all_finite=False, y_numeric=True
        )
    except (ValueError, TypeError) as error:
        text = _text_columns(X)
        if not text:
            raise
        raise type(error)(
            f"{error}\nColumns that do not hold numbers: {listed(np.array(text), range(len(text)))}. "
            "Encode them as numbers or leave them out."
        ) from error
    return X_checked, np.asarray(y, dtype=np.float64)


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Row weights scaled to sum to one."""
    if sample_weight is None:
        return np.full(n_rows, 1.0 / n_rows)
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n_rows, float(sample_weight))
    weights = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}!")
    if np.any(weights < 0):
        raise ValueError("Negative values in data passed to `sample_weight`.")
    largest = weights.max()
    if largest == 0:
        raise ValueError("All values in `sample_weight` are zero; at least one row must count.")
    weights = weights / largest
    return np.asarray(weights / weights.sum())


def check_moments(estimator: Any, design: Design, X: Any, names: np.ndarray | None) -> None:
    """Refuse values that are not finite, or too large to be squared, and name their columns."""
    bad = np.flatnonzero(~(np.isfinite(design.mean) & np.isfinite(design.spread)))
    if not len(bad):
        return
    columns = X[:, bad]
    values = columns.data if sparse.issparse(columns) else columns
    found = f"Found in: {listed(names, bad)}."
    if np.isnan(values).any():
        raise ValueError(
            f"Input X contains NaN.\n{type(estimator).__name__} does not accept missing values encoded as NaN "
            f"natively. {found} Leave out those rows or columns, or fill them in (sklearn.impute.SimpleImputer)."
        )
    if np.isinf(values).any():
        raise ValueError(f"Input X contains infinity or a value too large for {X.dtype!r}. {found}")
    raise ValueError(f"Input X contains values too large to be squared (beyond about 1e150). {found} Rescale them.")


def listed(names: np.ndarray | None, columns: Any) -> str:
    """The names of the first few columns, and how many more there are."""
    shown = ", ".join(map(repr, column_names(names, columns[:NAMES_SHOWN])))
    more = len(columns) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _text_columns(X: Any) -> list[str]:
    """Columns of a pandas or polars frame that numpy cannot read as numbers."""
    if not hasattr(X, "columns"):
        return []
    return [str(name) for name in X.columns if not _holds_numbers(X[name])]


def _holds_numbers(column: Any) -> bool:
    try:
        np.asarray(column, dtype=np.float64)
    except (ValueError, TypeError):
        return False
    return True


def _refusal(estimator: Any, name: str, wanted: str, value: Any) -> str:
    return f"The {name!r} parameter of {type(estimator).__name__} must be {wanted}. Got {value!r} instead."
