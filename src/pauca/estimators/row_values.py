"""Checks of what comes with X, one value for every row: weights, offsets, groups, and the kinds that classes have."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from pauca.design.chunks import is_dask
from pauca.wording import quoted


def check_not_masked(values: Any, name: str) -> None:
    """Raise an error for masked entries, which NumPy and scikit-learn would read as if they were not."""
    if isinstance(values, np.ma.MaskedArray) and np.any(np.ma.getmaskarray(values)):
        raise ValueError(
            f"{name} has masked entries, and masks would be ignored. Leave out those rows, or fill them in: "
            f"{name}.filled(...)."
        )


def check_names_differ(table: Any, name: str = "X") -> None:
    """Raise an error for a frame in which several columns have one name."""
    names = [str(column) for column in getattr(table, "columns", ())] if hasattr(table, "dtypes") else []
    twice = sorted({column for column in names if names.count(column) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(f"{name} has several columns of one name: {quoted(twice)}. Give each a name of its own.")


def in_memory(y: Any) -> Any:
    """One value for every row as an array, also where it lies on a cluster; anything else as it is."""
    return y if isinstance(y, np.ndarray | None) or not is_dask(y) else y.compute()


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Row weights scaled to sum to one."""
    if sample_weight is None:
        return np.full(n_rows, 1.0 / n_rows)
    weights = check_raw_weights(sample_weight, n_rows)
    largest = weights.max()
    if largest == 0:
        raise ValueError("All values in `sample_weight` are zero; at least one row must count.")
    weights = weights / largest
    return np.asarray(weights / weights.sum())


def check_raw_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Row weights as they are given; ones where they are not."""
    sample_weight = in_memory(sample_weight)
    if sample_weight is None:
        return np.ones(n_rows)
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n_rows, float(sample_weight))
    weights = _numbers_of(sample_weight, "sample_weight", ensure_min_samples=0)
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}!")
    if np.any(weights < 0):
        raise ValueError("Negative values in data passed to `sample_weight`.")
    return np.asarray(weights)


def check_offset(offset: Any, exposure: Any, n_rows: int, *, log_link: bool) -> np.ndarray | None:
    """What is added to the score of every row: the offset, or the logarithm of the exposure; None for neither."""
    if exposure is None:
        return None if offset is None else _row_numbers(offset, "offset", n_rows)
    if offset is not None:
        raise ValueError("Give either offset or exposure: exposure stands for offset=log(exposure).")
    if not log_link:
        raise ValueError(
            "exposure is for losses whose score is the logarithm of the mean: 'poisson', 'gamma', 'tweedie' and "
            "'negative_binomial'. For others give an offset."
        )
    amounts = _row_numbers(exposure, "exposure", n_rows)
    if np.any(amounts <= 0):
        raise ValueError(
            f"exposure must be positive in every row; the least is {amounts.min():g}. Leave out rows without exposure."
        )
    return np.asarray(np.log(amounts))


def _row_numbers(values: Any, name: str, n_rows: int) -> np.ndarray:
    found = _numbers_of(in_memory(values), name)
    if found.shape != (n_rows,):
        raise ValueError(f"{name} must hold one number for every row: its shape is {found.shape}, not ({n_rows},).")
    return found


def _numbers_of(values: Any, name: str, **how: Any) -> np.ndarray:
    """Values as floats; ``how`` is for scikit-learn's ``check_array``, which leaves columns to their own libraries."""
    check_not_masked(values, name)
    check_names_differ(values, name)
    _check_no_dates(as_column(values), name)
    try:
        with np.errstate(invalid="ignore"):  # infinities of both signs are added up to find them
            return np.asarray(check_array(values, ensure_2d=False, dtype=np.float64, input_name=name, **how))
    except (TypeError, ValueError) as error:
        if name in str(error).split():
            raise
        words = str(error)
    raise ValueError(f"{name} must hold one number for every row: {words}")


def check_row_groups(groups: Any) -> Any:
    """Groups of rows that can be told apart; None for none."""
    groups = in_memory(groups)
    if groups is None:
        return None
    check_not_masked(groups, "groups")
    check_names_differ(groups, "groups")
    if sparse.issparse(groups) or np.ndim(groups) == 0:
        raise TypeError(f"groups must name the group of every row; got {type(groups).__name__}.")
    check_have_an_order(as_column(groups), "groups")
    return groups


def check_class_values(y: Any) -> None:
    """Raise an error for classes that are missing, or of types that cannot be sorted: scikit-learn fails there."""
    column = None if y is None or sparse.issparse(y) else as_column(y)
    if column is None or column.dtype != object:
        return
    missing = [value for value in column.ravel().tolist() if _is_missing(value)]
    if missing:
        word = "None" if None in missing else "NaN"
        raise ValueError(f"Input y contains {word}, which is no class. Leave out those rows, or give them a class.")
    check_have_an_order(column, "y")


def check_number_values(y: Any) -> None:
    """Raise an error for targets that are missing, with how many there are, and for dates."""
    column = None if y is None or sparse.issparse(y) else as_column(y)
    if column is None or not column.ndim:
        return
    _check_no_dates(column, "y")
    if column.dtype.kind == "f":
        missing = np.isnan(column)
    elif column.dtype == object:
        missing = np.reshape([_is_missing(value) for value in column.ravel().tolist()], column.shape).astype(bool)
    else:
        return
    count = int(np.count_nonzero(missing.reshape(len(column), -1).any(axis=1))) if missing.any() else 0
    if count:
        raise ValueError(
            f"Input y contains NaN: {count:,} of {len(column):,} rows have no target. Leave them out, such as by "
            "known = ~np.isnan(y) and fit(X[known], y[known])."
        )


def check_test_target(y: Any, *, classifies: bool) -> np.ndarray:
    """The target of test rows: numbers that are finite, or classes."""
    y = in_memory(y)
    check_not_masked(y, "y")
    check_names_differ(y, "y")
    if getattr(getattr(y, "dtype", None), "names", None):
        raise ValueError("y must hold one value for every row; got several fields.")
    if classifies:
        check_class_values(y)
        classes = np.asarray(y)
        return classes.ravel() if classes.shape[1:] == (1,) else classes  # one column is one value for every row
    check_number_values(y)
    return _numbers_of(y, "y")


def _check_no_dates(column: np.ndarray | None, name: str) -> None:
    """Raise an error for dates and durations, which NumPy would turn into numbers of some unit."""
    if column is not None and column.dtype.kind in "mM":
        raise TypeError(f"{name} holds dates or times; turn them into numbers first.")


def check_have_an_order(column: np.ndarray | None, name: str) -> None:
    """Raise an error for values such as 1 and "a", of which none comes first."""
    if column is None or column.dtype != object:
        return
    values = column.ravel().tolist()
    try:
        sorted(values)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in values})
        raise ValueError(
            f"{name} holds values that have no order, of the types {', '.join(kinds)}. Make all of them numbers, or "
            "all of them text."
        ) from None


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def as_column(y: Any) -> np.ndarray | None:
    """Values as an array; None where rows have different lengths, for which scikit-learn has its own error."""
    try:
        return np.asarray(y)
    except ValueError:
        return None
