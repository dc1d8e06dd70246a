"""Columns whose numbers are too large, or too far from zero, to be reckoned with."""

from __future__ import annotations

import reprlib
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pauca.crf.observations import Observations
from pauca.wording import quoted_columns

LARGEST = 1e150

# Scores are products with columns as they are, less what the means contribute. Where values are so many times larger
# than the range of their column, fewer digits are left than a fit needs.
FAR_FROM_ZERO = 1e8


def refuse_large(observations: Observations, columns: np.ndarray, names: np.ndarray | None) -> None:
    """Refuse values that cannot be squared; ``columns`` says which columns of the fit those of the matrix are."""
    large = columns[observations.magnitudes() > LARGEST]
    if len(large):
        raise ValueError(
            f"X holds values too large to be squared (beyond about {LARGEST:g}). Found in: "
            f"{quoted_columns(names, large)}. "
            "Rescale them."
        )


def refuse_far_from_zero(observations: Observations, varies: np.ndarray, names: np.ndarray | None) -> None:
    """Refuse columns that vary by little beside what they are."""
    far = np.flatnonzero(varies & (observations.magnitudes() > FAR_FROM_ZERO * observations.ranges()))
    if len(far):
        raise ValueError(
            f"Columns of X vary by less than {1 / FAR_FROM_ZERO:g} of their values, too little for double precision: "
            f"{quoted_columns(names, far)}. Subtract a number near their mean, the same one in every sequence."
        )


# Bytes of a number in double precision.
DOUBLE = 8

IN_A_LIST = "A single sequence goes in a list: predict([X]), or fit([X], [y])."


@dataclass(frozen=True, eq=False)
class Spots:
    """Where the rows of tables are, in the user's words."""

    bounds: np.ndarray
    one_table: bool
    """Whether all sequences are in one table."""

    def table(self, place: int) -> str:
        """What a table is called."""
        return "X" if self.one_table else f"Sequence {place}"

    def row(self, place: int, row: int) -> tuple[int, int]:
        """Sequence and position of a row of a table."""
        if not self.one_table:
            return place, row
        sequence = int(np.searchsorted(self.bounds, row, side="right")) - 1
        return sequence, row - int(self.bounds[sequence])


@dataclass(frozen=True, eq=False)
class Wanted:
    """Which columns are to be read."""

    width: int | None
    """Number of columns of the fit; None while fitting."""
    names: np.ndarray | None
    """Names of the columns of the fit, if they have any."""
    used: np.ndarray | None
    """The columns that are wanted; None for all."""

    @property
    def fitting(self) -> bool:
        """Whether this is a fit, and not a prediction."""
        return self.width is None


def read_table(table: Any, place: int, wanted: Wanted, spots: Spots) -> Any:
    """A table as numbers: columns by name where it is a frame and the fit had names.

    Whether those of a fit are finite is looked at later, when all are known to have the same width.
    """
    own, used = names_of(table), wanted.used
    if wanted.fitting and place and (own is None) != (wanted.names is None):
        raise ValueError(
            f"Sequence {place} has {'no ' if own is None else ''}names of columns, sequence 0 has "
            f"{'none' if wanted.names is None else 'them'}: give all as frames, or none."
        )
    if own is not None and wanted.names is not None and not _same_with_repetitions(own, wanted):
        # What is looked up by name is all that is looked at.
        if used is not None and not len(used):
            return np.zeros((length_of(table), 0))  # polars has no rows without columns
        array = _numbers(_by_name(table, own, place, wanted, spots), place, spots)
        if used is not None:
            refuse_not_finite(array, place, wanted.names[used], spots)
        return array
    array = _numbers(table, place, spots)
    if wanted.fitting:
        return array
    if array.shape[1] != wanted.width:
        raise ValueError(
            f"{spots.table(place)} has {array.shape[1]} columns; the model was fitted with {wanted.width}."
        )
    # Of an array all columns must hold numbers, as everywhere; of a frame those that are looked up.
    refuse_not_finite(array, place, wanted.names, spots)
    return array if used is None else array[:, used]


def refuse_not_finite(table: Any, place: int, names: np.ndarray | None, spots: Spots) -> None:
    """Name the sequence and the column of the first value that is not finite."""
    values = table.data if sparse.issparse(table) else table
    with np.errstate(over="ignore", invalid="ignore"):
        if values.dtype.kind != "f" or np.isfinite(values.sum()) or np.isfinite(values).all():
            return
    if sparse.issparse(table):
        cells = table.tocoo()
        rows, columns = cells.row[~np.isfinite(cells.data)], cells.col[~np.isfinite(cells.data)]
    else:
        rows, columns = np.nonzero(~np.isfinite(table))
    sequence, position = spots.row(place, int(rows[0]))
    raise ValueError(
        f"Sequence {sequence} holds NaN or infinity in column {quoted_columns(names, columns[:1])}, position "
        f"{position}. "
        "Fill it in or leave it out."
    )


def names_of(table: Any) -> np.ndarray | None:
    """Names of the columns of a frame; numbers alone are no names, as scikit-learn has it."""
    if not _is_frame(table) or (len(table.columns) and not any(isinstance(name, str) for name in table.columns)):
        return None
    return np.array([str(name) for name in table.columns], dtype=object)


def is_table(X: Any) -> bool:
    """Whether something is a table by itself: a frame, a sparse matrix, or an array of two dimensions."""
    return sparse.issparse(X) or _is_frame(X) or (isinstance(X, np.ndarray) and X.ndim == 2)


def refuse_lazy(X: Any, what: str) -> None:
    """Refuse a frame that has not been computed."""
    if hasattr(X, "collect_schema") and not hasattr(X, "shape"):
        raise TypeError(f"{what} is a lazy frame; call its collect() first.")


def opened(table: Any, place: int) -> Any:
    """A table that is neither an array nor a frame as a list of its positions."""
    refuse_lazy(table, f"Sequence {place}")
    if hasattr(table, "shape") and (is_table(table) or len(table.shape) != 1):
        return table
    if isinstance(table, str | bytes | Mapping) or not hasattr(table, "__iter__"):
        raise TypeError(
            f"Sequence {place} must be a table of positions and columns, or a list of dicts of attributes; got "
            f"{reprlib.repr(table)}. {IN_A_LIST}"
        )
    return table if isinstance(table, list | tuple) else list(table)


def length_of(table: Any) -> int:
    """Number of positions."""
    if hasattr(table, "shape"):
        return int(table.shape[0]) if len(table.shape) else 0
    return len(table)


def items(values: Any, what: str) -> list[Any]:
    """The items of a list, or of what can be made one; ``what`` says what it must be."""
    if _is_frame(values):
        raise TypeError(f"{what}; got a frame. Give one of its columns.")
    if isinstance(values, Mapping) and any(hasattr(value, "shape") for value in values.values()):
        raise TypeError(f"{what}; got a {type(values).__name__}. Give list(it.values()).")
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
        raise TypeError(f"{what}; got {reprlib.repr(values.item() if isinstance(values, np.generic) else values)}.")
    return list(values)


def _is_frame(table: Any) -> bool:
    return hasattr(table, "columns") and hasattr(table, "dtypes")


def _same_with_repetitions(own: np.ndarray, wanted: Wanted) -> bool:
    """Whether a frame has the columns of the fit, some wanted ones under one name: then they go by their places."""
    assert wanted.names is not None
    often = Counter(wanted.names.tolist())
    names = wanted.names if wanted.used is None else wanted.names[wanted.used]
    return any(often[name] > 1 for name in names) and own.tolist() == wanted.names.tolist()


def _by_name(table: Any, own: np.ndarray, place: int, wanted: Wanted, spots: Spots) -> Any:
    assert wanted.names is not None
    names = wanted.names if wanted.used is None else wanted.names[wanted.used]
    held, called = own.tolist(), spots.table(place)
    often = Counter(held)
    missing = np.array([name for name in names if not often[name]], dtype=object)
    if len(missing):
        raise ValueError(f"{called} has no column {quoted_columns(missing, range(len(missing)))}.")
    twice = next((name for name in names if often[name] > 1), None)
    if twice is not None:
        raise ValueError(f"{called} has several columns of the name {twice!r}.")
    if wanted.fitting and len(held) != len(names):
        known = set(names)
        stranger = next(name for name in held if name not in known)
        raise ValueError(f"{called} has a column {stranger!r} that sequence 0 does not have.")
    columns = dict(zip(held, table.columns, strict=True))  # names may be numbers to the frame
    return table if held == names.tolist() else table[[columns[name] for name in names]]


def _numbers(table: Any, place: int, spots: Spots) -> Any:
    """A table as an array, or a CSR matrix, of numbers."""
    if sparse.issparse(table):
        return _sparse_numbers(table.tocsr(), place, spots)
    try:
        array = np.asarray(table)
    except ValueError:
        raise ValueError(f"{spots.table(place)} has rows of different lengths.") from None
    if array.ndim != 2:
        raise ValueError(
            f"{spots.table(place)} must be a table of positions and columns; got an array of {array.ndim} dimension"
            f"{'' if array.ndim == 1 else 's'}. {IN_A_LIST}"
        )
    _refuse_masked(table, place, spots)
    if array.dtype.kind in "biuf":
        return _in_doubles(array)
    if array.dtype.kind not in "cMm":
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                return array.astype(np.float64)
        except (ValueError, TypeError, OverflowError, np.exceptions.ComplexWarning):
            pass
    raise _no_number(array, place, names_of(table), spots)


def _sparse_numbers(table: Any, place: int, spots: Spots) -> Any:
    if table.dtype.kind not in "biuf":
        raise TypeError(f"{spots.table(place)} is a sparse matrix of dtype {table.dtype}; real numbers are wanted.")
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    if table.dtype.itemsize > DOUBLE:
        table = table.__class__((_in_doubles(table.data), table.indices, table.indptr), table.shape)
    return table


def _in_doubles(array: np.ndarray) -> np.ndarray:
    """Longer numbers as doubles: what these cannot hold becomes infinity, and is refused."""
    if array.dtype.itemsize <= DOUBLE:
        return array
    with np.errstate(over="ignore", under="ignore"):
        return array.astype(np.float64)


def _refuse_masked(table: Any, place: int, spots: Spots) -> None:
    """Name the sequence and the column of the first masked value."""
    if np.ma.is_masked(table):
        row, column = np.argwhere(np.ma.getmaskarray(table))[0].tolist()
        sequence, position = spots.row(place, row)
        raise ValueError(
            f"Sequence {sequence} holds a masked value in column {quoted_columns(None, [column])}, position "
            f"{position}. "
            "Fill it in or leave it out."
        )


def _no_number(array: np.ndarray, place: int, names: np.ndarray | None, spots: Spots) -> ValueError:
    """Name the sequence and the column of the first value that is no number."""
    n_rows, n_columns = array.shape
    row, column = next((t, j) for j in range(n_columns) for t in range(n_rows) if not _is_number(array[t, j]))
    sequence, position = spots.row(place, row)
    return ValueError(
        f"Sequence {sequence} holds {str(array[row, column])!r} in column {quoted_columns(names, [column])}, position "
        f"{position}, which is no number. Turn the column into numbers or leave it out; attributes by name go in a "
        "dict for each position."
    )


def _is_number(value: Any) -> bool:
    if isinstance(value, np.generic) and value.dtype.kind in "cMm":
        return False
    try:
        np.array([value], dtype=object).astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        return False
    return True
