"""Sequences in any supported form, read into one matrix and checked; messages name the sequence and the position."""

from __future__ import annotations

import math
import numbers
import reprlib
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from pauca.design import Chunks
from pauca.design.chunks import is_dask
from pauca.wording import quoted_columns

# Bytes of a number in double precision.
DOUBLE = 8

IN_A_LIST = "A single sequence goes in a list: predict([X]), or fit([X], [y])."
SEQUENCES = "X must be a list of sequences"
WHOLE_NUMBERS = "lengths must be whole numbers, one for each sequence"
ONE_SEQUENCE = (
    f"X is one {{what}}, and a list of sequences is required. {IN_A_LIST} If X holds several sequences, one after the "
    "other, give their lengths with lengths=[..]."
)


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences in one matrix."""

    matrix: Any
    """All positions one after the other, shape (n, n_columns): an array or a CSR matrix."""
    bounds: np.ndarray
    """Sequence i has the rows from ``bounds[i]`` up to but without ``bounds[i + 1]``."""
    names: np.ndarray | None
    """Names of the columns of the fit, if they have any."""
    named: bool | None
    """Whether the tables themselves have names; None for sparse matrices, which cannot have any."""

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        """Values of all positions, sequence by sequence."""
        return np.split(values, self.bounds[1:-1])


@dataclass(frozen=True, eq=False)
class FittedColumns:
    """What a fitted model knows of its columns."""

    count: int
    names: np.ndarray | None
    """Names of the columns, if they have any."""
    used: np.ndarray
    """Indices of the columns that the model needs."""


def read_sequences(X: Any, lengths: Any, fitted: FittedColumns | None = None) -> Sequences:
    """Sequences of a fit, or, for a model with fitted columns, of a prediction.

    Parameters
    ----------
    X : list of tables, or one table with ``lengths``
    lengths : list of int or None
    fitted : FittedColumns, default=None
        The columns to read. None reads all columns, for a fit.
    """
    tables = _tables(X) if lengths is None else [_one_table(X)]
    bounds = np.concatenate([[0], np.cumsum([_n_rows(table) for table in tables])])
    if lengths is not None:
        bounds = np.concatenate([[0], np.cumsum(_read_lengths(lengths, int(bounds[-1])))])
    empty = np.flatnonzero(np.diff(bounds) == 0)
    if len(empty):
        more = f" (and {len(empty) - 1} more)" if len(empty) > 1 else ""
        raise ValueError(f"Sequence {empty[0]}{more} has no positions; leave it out.")
    if _have_attributes(tables, fitted):
        if lengths is not None:
            tables = [tables[0][a:b] for a, b in pairwise(bounds.tolist())]
        return _read_attributes(tables, bounds, fitted)
    names = _names(tables[0])
    named = None if sparse.issparse(tables[0]) else names is not None
    if fitted is not None:
        names = fitted.names
    reader = TableReader(bounds, lengths is not None, names, fitted)
    arrays = [reader.read(i, table) for i, table in enumerate(tables)]
    _check_widths(arrays, fitting=fitted is None)
    if fitted is None:
        # Checked last, when all are known to have the same width.
        for i, array in enumerate(arrays):
            reader.check_finite(i, array, names)
    if len(arrays) == 1:
        return Sequences(arrays[0], bounds, names, named)
    stack = sparse.vstack(arrays, format="csr") if any(map(sparse.issparse, arrays)) else np.concatenate(arrays)
    return Sequences(stack, bounds, names, named)


def as_list(values: Any, requirement: str) -> list[Any]:
    """The items of anything that can be made a list; ``requirement`` says what it must be."""
    if _is_frame(values):
        raise TypeError(f"{requirement}; got a frame. Give one of its columns.")
    if isinstance(values, Mapping) and any(hasattr(value, "shape") for value in values.values()):
        raise TypeError(f"{requirement}; got a {type(values).__name__}. Give list(it.values()).")
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
        value = values.item() if isinstance(values, np.generic) else values
        raise TypeError(f"{requirement}; got {reprlib.repr(value)}.")
    return list(values)


def _tables(X: Any) -> list[Any]:
    """The tables of X, one for each sequence."""
    _check_not_lazy(X, "X")
    if _is_table(X):
        raise ValueError(ONE_SEQUENCE.format(what="table"))
    tables = as_list(X, SEQUENCES)
    if not tables:
        raise ValueError("X holds no sequences.")
    if _has_attributes(next((table for table in tables if not _is_empty_list(table)), None)):
        raise ValueError(ONE_SEQUENCE.format(what=f"list of {len(tables)} positions"))
    return [_as_table(i, table) for i, table in enumerate(tables)]


def _one_table(X: Any) -> Any:
    """The table that holds all sequences."""
    _check_not_lazy(X, "X")
    if _is_table(X):
        return X
    rows = as_list(X, SEQUENCES)
    if rows and (_is_table(rows[0]) or (isinstance(rows[0], list | tuple) and any(map(_is_position, rows[0])))):
        raise ValueError("X is a list of sequences, which have their lengths; leave out 'lengths'.")
    return rows


def _as_table(i: int, table: Any) -> Any:
    """The table of a sequence; a list of its positions if it is neither an array nor a frame."""
    _check_not_lazy(table, f"Sequence {i}")
    if hasattr(table, "shape") and (_is_table(table) or len(table.shape) != 1):
        return table
    if isinstance(table, str | bytes | Mapping) or not hasattr(table, "__iter__"):
        raise TypeError(
            f"Sequence {i} must be a table of positions and columns, or a list of dicts of attributes; got "
            f"{reprlib.repr(table)}. {IN_A_LIST}"
        )
    return table if isinstance(table, list | tuple) else list(table)


def _read_lengths(lengths: Any, n: int) -> np.ndarray:
    values = as_list(lengths, WHOLE_NUMBERS)
    if any(isinstance(one, bool) or not isinstance(one, numbers.Integral) or one < 0 for one in values):
        raise ValueError(f"{WHOLE_NUMBERS}; got {lengths!r}.")
    if sum(values) != n:
        raise ValueError(f"lengths add up to {sum(values)}, and X has {n} positions.")
    if not values:
        raise ValueError("X holds no sequences.")
    return np.array(values, dtype=np.int64)


def _check_widths(arrays: list[Any], *, fitting: bool) -> None:
    width = arrays[0].shape[1]
    for i, array in enumerate(arrays):
        if array.shape[1] != width:
            raise ValueError(
                f"Sequence {i} has {array.shape[1]} columns, and sequence 0 has {width}; all must have the same."
            )
    if fitting and width == 0:
        raise ValueError("X has no columns.")


def _check_not_lazy(X: Any, what: str) -> None:
    if hasattr(X, "collect_schema") and not hasattr(X, "shape"):
        raise TypeError(f"{what} is a lazy frame; call its collect() first.")
    if isinstance(X, Chunks) or is_dask(X):
        raise TypeError(
            f"{what} is a table in chunks ({type(X).__name__}), and all sequences must be in memory. Give a list of "
            "them, such as a sample."
        )


def _is_frame(table: Any) -> bool:
    return hasattr(table, "columns") and hasattr(table, "dtypes")


def _is_table(X: Any) -> bool:
    """Whether something is a table by itself: a frame, a sparse matrix, or an array of two dimensions."""
    return sparse.issparse(X) or _is_frame(X) or (isinstance(X, np.ndarray) and X.ndim == 2)


def _is_position(item: Any) -> bool:
    return _has_attributes(item) or isinstance(item, list | tuple | np.ndarray)


def _n_rows(table: Any) -> int:
    if hasattr(table, "shape"):
        return int(table.shape[0]) if len(table.shape) else 0
    return len(table)


def _names(table: Any) -> np.ndarray | None:
    """Names of the columns of a frame; numbers alone are no names, as in scikit-learn."""
    if not _is_frame(table) or (len(table.columns) and not any(isinstance(name, str) for name in table.columns)):
        return None
    return np.array([str(name) for name in table.columns], dtype=object)


# Tables: arrays, sparse matrices and frames.


@dataclass(frozen=True, eq=False)
class TableReader:
    """Reads tables as numbers, columns by name where the table is a frame and the fit had names."""

    bounds: np.ndarray
    one_table: bool
    """Whether all sequences are in one table."""
    names: np.ndarray | None
    """Names of the columns of the fit, if they have any."""
    fitted: FittedColumns | None
    """What the model knows of its columns; None while fitting."""

    def read(self, i: int, table: Any) -> Any:
        """Table i as an array or CSR matrix; those of a fit may still hold values that are not finite."""
        own, fitted = _names(table), self.fitted
        if fitted is None and i and (own is None) != (self.names is None):
            raise ValueError(
                f"Sequence {i} has {'no ' if own is None else ''}names of columns, sequence 0 has "
                f"{'none' if self.names is None else 'them'}: give all as frames, or none."
            )
        if own is not None and self.names is not None and not self._go_by_position(own):
            # Of a frame only the columns that are looked up are read.
            if fitted is not None and not len(fitted.used):
                return np.zeros((_n_rows(table), 0))  # polars has no rows without columns
            array = self._as_numbers(i, self._select_by_name(i, table, own.tolist()))
            if fitted is not None:
                self.check_finite(i, array, self._required_names())
            return array
        array = self._as_numbers(i, table)
        if fitted is None:
            return array
        if array.shape[1] != fitted.count:
            raise ValueError(
                f"{self._table_name(i)} has {array.shape[1]} columns; the model was fitted with {fitted.count}."
            )
        # Of an array all columns must hold numbers, as in scikit-learn.
        self.check_finite(i, array, self.names)
        return array[:, fitted.used]

    def check_finite(self, i: int, table: Any, names: np.ndarray | None) -> None:
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
        where = self._where(i, "NaN or infinity", int(rows[0]), int(columns[0]), names)
        raise ValueError(f"{where}. Fill it in or leave it out.")

    def _table_name(self, i: int) -> str:
        return "X" if self.one_table else f"Sequence {i}"

    def _where(self, i: int, value: str, row: int, column: int, names: np.ndarray | None) -> str:
        """What stands in a row and column of table i, by sequence and position."""
        if self.one_table:
            i = int(np.searchsorted(self.bounds, row, side="right")) - 1
            row -= int(self.bounds[i])
        return f"Sequence {i} holds {value} in column {quoted_columns(names, [column])}, position {row}"

    def _required_names(self) -> np.ndarray:
        assert self.names is not None
        return self.names if self.fitted is None else self.names[self.fitted.used]

    def _go_by_position(self, own: np.ndarray) -> bool:
        """Whether a frame has the columns of the fit, with repeated names among the required ones."""
        assert self.names is not None
        counts = Counter(self.names.tolist())
        return any(counts[name] > 1 for name in self._required_names()) and own.tolist() == self.names.tolist()

    def _select_by_name(self, i: int, table: Any, own: list[str]) -> Any:
        required, counts, table_name = self._required_names(), Counter(own), self._table_name(i)
        missing = np.array([name for name in required if not counts[name]], dtype=object)
        if len(missing):
            raise ValueError(f"{table_name} has no column {quoted_columns(missing, range(len(missing)))}.")
        repeated = next((name for name in required if counts[name] > 1), None)
        if repeated is not None:
            raise ValueError(f"{table_name} has several columns of the name {repeated!r}.")
        if self.fitted is None and len(own) != len(required):
            known = set(required)
            extra = next(name for name in own if name not in known)
            raise ValueError(f"{table_name} has a column {extra!r} that sequence 0 does not have.")
        columns = dict(zip(own, table.columns, strict=True))  # names may be numbers to the frame
        return table if own == required.tolist() else table[[columns[name] for name in required]]

    def _as_numbers(self, i: int, table: Any) -> Any:
        """A table as an array, or a CSR matrix, of numbers."""
        if sparse.issparse(table):
            return self._sparse_numbers(i, table.tocsr())
        try:
            array = np.asarray(table)
        except ValueError:
            raise ValueError(f"{self._table_name(i)} has rows of different lengths.") from None
        if array.ndim != 2:
            raise ValueError(
                f"{self._table_name(i)} must be a table of positions and columns; got an array of {array.ndim} "
                f"dimension{'' if array.ndim == 1 else 's'}. {IN_A_LIST}"
            )
        if np.ma.is_masked(table):
            row, column = np.argwhere(np.ma.getmaskarray(table))[0].tolist()
            raise ValueError(f"{self._where(i, 'a masked value', row, column, None)}. Fill it in or leave it out.")
        if array.dtype.kind in "biuf":
            return _at_most_doubles(array)
        if array.dtype.kind not in "cMm":
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", np.exceptions.ComplexWarning)
                    return array.astype(np.float64)
            except (ValueError, TypeError, OverflowError, np.exceptions.ComplexWarning):
                pass
        n_rows, n_columns = array.shape
        row, column = next((t, j) for j in range(n_columns) for t in range(n_rows) if not _is_number(array[t, j]))
        where = self._where(i, repr(str(array[row, column])), row, column, _names(table))
        raise ValueError(
            f"{where}, which is no number. Turn the column into numbers or leave it out; attributes by name go in a "
            "dict for each position."
        )

    def _sparse_numbers(self, i: int, table: Any) -> Any:
        if table.dtype.kind not in "biuf":
            raise TypeError(
                f"{self._table_name(i)} is a sparse matrix of dtype {table.dtype}; real numbers are required."
            )
        if not table.has_canonical_format:
            table = table.copy()
            table.sum_duplicates()
        if table.dtype.itemsize > DOUBLE:
            table = table.__class__((_at_most_doubles(table.data), table.indices, table.indptr), table.shape)
        return table


def _at_most_doubles(array: np.ndarray) -> np.ndarray:
    """Longer numbers as doubles; what overflows becomes infinity, and is refused later."""
    if array.dtype.itemsize <= DOUBLE:
        return array
    with np.errstate(over="ignore", under="ignore"):
        return array.astype(np.float64)


def _is_number(value: Any) -> bool:
    if isinstance(value, np.generic) and value.dtype.kind in "cMm":
        return False
    try:
        np.array([value], dtype=object).astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


# Attributes: positions described by dicts or lists of words, as in CRFsuite.


def _has_attributes(item: Any) -> bool:
    """Whether a position is described by attributes and not by numbers in columns."""
    return isinstance(item, Mapping) or (_is_list_of_words(item) and len(item) > 0)


def _is_list_of_words(item: Any) -> bool:
    return isinstance(item, list | tuple | set | frozenset) and all(isinstance(word, str) for word in item)


def _is_empty_list(item: Any) -> bool:
    return isinstance(item, list | tuple | set | frozenset) and not item


def _have_attributes(tables: list[Any], fitted: FittedColumns | None) -> bool:
    """Whether positions are described by attributes; in a prediction they may all be lists of no words."""
    lists = [table for table in tables if isinstance(table, list | tuple)]
    if any(_has_attributes(item) for table in lists for item in table):
        return True
    no_words = len(lists) == len(tables) and all(_is_empty_list(item) for table in lists for item in table)
    return no_words and fitted is not None and fitted.names is not None


def _read_attributes(sequences: list[Any], bounds: np.ndarray, fitted: FittedColumns | None) -> Sequences:
    if fitted is None:
        matrix, names = _encode_attributes(sequences, None)
        if not len(names):
            raise ValueError("X has no columns: no position has an attribute.")
        return Sequences(matrix, bounds, names, True)
    if fitted.names is None:
        raise ValueError("The model was fitted on tables without column names; attributes by name cannot be looked up.")
    return Sequences(_encode_attributes(sequences, fitted.names[fitted.used])[0], bounds, fitted.names, True)


def _encode_attributes(sequences: Iterable[Sequence[Any]], known: np.ndarray | None) -> tuple[Any, np.ndarray]:
    """Attributes as a CSR matrix, and the names of its columns.

    A number or truth value has a column of its own; a string, and each of a list of strings, sets a column of the name
    ``attribute=string`` to one. Attributes of an attribute that is a dict are called ``attribute:inner``. Words of a
    position that is a list are columns set to one. Repeated attributes of a position are added up, as in CRFsuite.

    ``known`` are the names of the columns to fill; other attributes are ignored. None makes a column of every
    attribute, in order of appearance.
    """
    columns: dict[str, int] = {} if known is None else {str(name): j for j, name in enumerate(known)}
    ends, indices, values = [0], [], []
    for i, sequence in enumerate(sequences):
        for t, item in enumerate(sequence):
            for name, value in _attributes(item, i, t):
                column = columns.get(name) if known is not None else columns.setdefault(name, len(columns))
                if column is not None and value:
                    indices.append(column)
                    values.append(value)
            ends.append(len(indices))
    shape = len(ends) - 1, len(columns)
    matrix = sparse.csr_matrix((np.array(values, dtype=np.float64), np.array(indices, dtype=np.int32), ends), shape)
    matrix.sum_duplicates()
    return matrix, np.array(list(columns), dtype=object) if known is None else known


def _attributes(item: Any, sequence: int, t: int, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Names and values of the attributes of a position, the names preceded by ``prefix``."""
    if not isinstance(item, Mapping):
        if not _is_list_of_words(item):
            raise TypeError(
                f"Position {t} of sequence {sequence} is {item!r}, and others are dicts of attributes or lists of "
                "words."
            )
        yield from ((word, 1.0) for word in item)
        return
    for key, value in item.items():
        name = f"{prefix}{key}"
        if isinstance(value, str):
            yield f"{name}={value}", 1.0
        elif _is_list_of_words(value):
            yield from ((f"{name}={word}", 1.0) for word in value)
        elif isinstance(value, Mapping):
            yield from _attributes(value, sequence, t, f"{name}:")
        elif isinstance(value, numbers.Real | np.bool_) and math.isfinite(number := _as_float(value)):
            yield name, number
        else:
            leave_out = " Leave it out where it has no value." if value is None else ""
            raise ValueError(
                f"The attribute {name!r} of position {t} in sequence {sequence} is {value!r}; attributes are finite "
                f"numbers, truth values, strings, lists of strings or dicts of attributes.{leave_out}"
            )


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        return math.inf
