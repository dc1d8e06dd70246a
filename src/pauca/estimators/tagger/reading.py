"""Sequences as users bring them, read into one matrix and checked: what is wrong is said with the sequence's number."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from pauca.estimators.checks import listed
from pauca.estimators.tagger.attributes import encode, has_attributes

ONE_TABLE = (
    "X is one table. Say how long its sequences are with lengths=[..] (lengths=[len(X)] if it is a single one), or "
    "give a list of tables, one for each sequence."
)


@dataclass(frozen=True, eq=False)
class Read:
    """Sequences in one matrix."""

    matrix: Any
    """All positions one after the other, shape (n, n_columns): an array or a CSR matrix."""
    bounds: np.ndarray
    """Sequence i has the rows from ``bounds[i]`` up to but without ``bounds[i + 1]``."""
    names: np.ndarray | None

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        """What was found for all positions, sequence by sequence."""
        return np.split(values, self.bounds[1:-1])


def read_sequences(X: Any, lengths: Any, width: int | None, names: np.ndarray | None, used: np.ndarray | None) -> Read:
    """Sequences of the fit, or, with what the fit knows of its columns, of a prediction.

    Parameters
    ----------
    X : list of tables, or one table with ``lengths``
    lengths : list of int or None
    width : int or None
        Number of columns of the fit; None while fitting.
    names : ndarray or None
        Names of the columns of the fit, if they have any.
    used : ndarray or None
        The columns that are wanted; None for all.
    """
    tables = _tables(X, lengths)
    bounds = np.concatenate([[0], np.cumsum([_length(table) for table in tables])])
    if lengths is not None:
        bounds = np.concatenate([[0], np.cumsum(_lengths(lengths, int(bounds[-1])))])
    _refuse_empty(bounds)
    if any(isinstance(table, list | tuple) and has_attributes(table[0]) for table in tables):
        return _read_attributes(tables, bounds, names, used, fitting=width is None)
    columns = _names(tables[0])
    if columns is not None and names is None and width is not None:
        columns = None  # a frame for a fit without names is an array with the same number of columns
    if width is None:
        names = columns
    wanted = None if names is None or used is None else names[used]
    read = [_read_table(table, place, width, names, wanted, used) for place, table in enumerate(tables)]
    _refuse_widths(read, fitting=width is None)
    _refuse_values(read, names if used is None or names is None else names[used], used, bounds, lengths)
    if len(read) == 1:
        return Read(read[0], bounds, names)
    stack = sparse.vstack(read, format="csr") if any(map(sparse.issparse, read)) else np.concatenate(read)
    return Read(stack, bounds, names)


def read_labels(y: Any, bounds: np.ndarray, lengths: Any) -> list[Hashable]:
    """The labels of all positions, one after the other."""
    if lengths is not None:
        flat = [_label(label) for label in _items(y, "y")]
        if len(flat) != bounds[-1]:
            raise ValueError(f"X has {bounds[-1]} positions and y {len(flat)} labels.")
        found = [flat[a:b] for a, b in pairwise(bounds)]
    else:
        found = [[_label(label) for label in _items(one, f"y[{place}]")] for place, one in enumerate(_items(y, "y"))]
    if len(found) != len(bounds) - 1:
        raise ValueError(f"X has {len(bounds) - 1} sequences and y has {len(found)}.")
    for place, labels in enumerate(found):
        length = bounds[place + 1] - bounds[place]
        if len(labels) != length:
            raise ValueError(f"Sequence {place} has {length} positions and {len(labels)} labels.")
        for t, label in enumerate(labels):
            _check_label(label, place, t)
    return [label for labels in found for label in labels]


def make_classes(labels: list[Hashable]) -> tuple[np.ndarray, np.ndarray]:
    """The different labels, in order where they have one, and the number of the label of every position."""
    seen = dict.fromkeys(labels)
    try:
        classes = sorted(seen)  # type: ignore[type-var]
    except TypeError:
        classes = list(seen)
    if len(classes) < 2:
        raise ValueError(f"y holds one label only, {classes[0]!r}: there is nothing to tell apart.")
    code = {label: place for place, label in enumerate(classes)}
    kinds = {type(label) for label in classes}
    if kinds in ({str}, {int}, {bool}, {float}):
        array = np.array(classes)
    else:
        array = np.empty(len(classes), dtype=object)
        array[:] = classes
    return array, np.array([code[label] for label in labels], dtype=np.intp)


def _tables(X: Any, lengths: Any) -> list[Any]:
    """The tables of X: one for each sequence, or a single one where there are lengths."""
    if hasattr(X, "collect_schema") and not hasattr(X, "shape"):
        raise TypeError("X is a lazy frame; call its collect() first.")
    is_table = sparse.issparse(X) or _names(X) is not None or (isinstance(X, np.ndarray) and X.ndim == 2)
    if lengths is not None:
        return [X if is_table or (len(X) and has_attributes(X[0])) else np.asarray(X)]
    if is_table or (isinstance(X, list | tuple) and len(X) and isinstance(X[0], Mapping)):
        raise ValueError(ONE_TABLE)
    tables = _items(X, "X")
    if not tables:
        raise ValueError("X holds no sequences.")
    return tables


def _read_table(
    table: Any,
    place: int,
    width: int | None,
    names: np.ndarray | None,
    wanted: np.ndarray | None,
    used: np.ndarray | None,
) -> Any:
    """A table as numbers: columns by name where it is a frame and the fit had names."""
    own = _names(table)
    if used is not None and not len(used):
        return np.zeros((_length(table), 0))
    if own is not None and names is not None:
        table = _by_name(table, own, place, names if wanted is None else wanted, every=width is None)
        return _numbers(table, place)
    array = _numbers(table, place)
    if width is None:
        return array
    if array.shape[1] != width:
        raise ValueError(f"Sequence {place} has {array.shape[1]} columns; the model was fitted with {width}.")
    return array if used is None else array[:, used]


def _by_name(table: Any, own: np.ndarray, place: int, wanted: np.ndarray, *, every: bool) -> Any:
    held = own.tolist()
    missing = np.array([name for name in wanted if name not in held], dtype=object)
    if len(missing):
        raise ValueError(f"Sequence {place} has no column {listed(missing, range(len(missing)))}.")
    if every and len(held) != len(wanted):
        stranger = next(name for name in held if name not in set(wanted))
        raise ValueError(f"Sequence {place} has a column {stranger!r} that sequence 0 does not have.")
    columns = list(table.columns)  # names may be numbers to the frame
    return table if held == wanted.tolist() else table[[columns[held.index(name)] for name in wanted]]


def _numbers(table: Any, place: int) -> Any:
    """A table as an array, or a CSR matrix, of numbers."""
    if sparse.issparse(table):
        table = table.tocsr()
        if not table.has_canonical_format:
            table = table.copy()
            table.sum_duplicates()
        return table
    array = np.asarray(table)
    if array.ndim != 2:
        raise ValueError(
            f"Sequence {place} must be a table of positions and columns; got an array of {array.ndim} dimension"
            f"{'' if array.ndim == 1 else 's'}."
        )
    if array.dtype.kind in "biuf":
        return array
    try:
        return array.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"Sequence {place} holds something other than numbers: {error}. Attributes by name go in a dict for each "
            "position."
        ) from error


def _read_attributes(
    tables: list[Any], bounds: np.ndarray, names: np.ndarray | None, used: np.ndarray | None, *, fitting: bool
) -> Read:
    if fitting:
        matrix, names = encode(tables, None)
        return Read(matrix, bounds, names)
    if names is None:
        raise ValueError("The model was fitted on tables without column names; attributes by name cannot be looked up.")
    return Read(encode(tables, names if used is None else names[used])[0], bounds, names)


def _refuse_empty(bounds: np.ndarray) -> None:
    empty = np.flatnonzero(np.diff(bounds) == 0)
    if len(empty):
        more = f" (and {len(empty) - 1} more)" if len(empty) > 1 else ""
        raise ValueError(f"Sequence {empty[0]}{more} has no positions; leave it out.")


def _refuse_widths(read: list[Any], *, fitting: bool) -> None:
    for place, table in enumerate(read):
        if table.shape[1] != read[0].shape[1]:
            raise ValueError(
                f"Sequence {place} has {table.shape[1]} columns, and sequence 0 has {read[0].shape[1]}; all must have "
                "the same."
            )
    if fitting and read[0].shape[1] == 0:
        raise ValueError("X has no columns.")


def _refuse_values(
    read: list[Any], names: np.ndarray | None, used: np.ndarray | None, bounds: np.ndarray, lengths: Any
) -> None:
    """Name the sequence and the column of the first value that is not finite."""
    for place, table in enumerate(read):
        values = table.data if sparse.issparse(table) else table
        if values.dtype.kind != "f" or np.isfinite(values.sum()) or np.isfinite(values).all():
            continue
        if sparse.issparse(table):
            cells = table.tocoo()
            rows, columns = cells.row[~np.isfinite(cells.data)], cells.col[~np.isfinite(cells.data)]
        else:
            rows, columns = np.nonzero(~np.isfinite(table))
        column = int(columns[0] if used is None or names is not None else used[columns[0]])
        sequence = place if lengths is None else int(np.searchsorted(bounds, rows[0], side="right")) - 1
        raise ValueError(
            f"Sequence {sequence} holds NaN or infinity in column {listed(names, [column])}, position "
            f"{int(rows[0]) - (int(bounds[sequence]) if lengths is not None else 0)}. Fill it in or leave it out."
        )


def _lengths(lengths: Any, n: int) -> np.ndarray:
    found = _items(lengths, "lengths")
    if any(isinstance(one, bool) or not isinstance(one, numbers.Integral) or one < 0 for one in found):
        raise ValueError(f"lengths must be whole numbers, one for each sequence; got {lengths!r}.")
    if sum(found) != n:
        raise ValueError(f"lengths add up to {sum(found)}, and X has {n} positions.")
    if not found:
        raise ValueError("X holds no sequences.")
    return np.array(found, dtype=np.int64)


def _items(values: Any, what: str) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
        raise TypeError(f"{what} must be a list; got {values!r}.")
    return list(values)


def _length(table: Any) -> int:
    if hasattr(table, "shape"):
        return int(table.shape[0]) if len(table.shape) else 0
    return len(table) if isinstance(table, Sequence) else len(list(table))


def _names(table: Any) -> np.ndarray | None:
    """Names of the columns of a frame."""
    columns = getattr(table, "columns", None)
    if columns is None or not hasattr(table, "dtypes"):
        return None
    return np.array([str(name) for name in columns], dtype=object)


def _label(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _check_label(label: Any, place: int, t: int) -> None:
    if label is None or (isinstance(label, float) and math.isnan(label)):
        raise ValueError(f"Position {t} of sequence {place} has no label: y holds {label!r}.")
    try:
        hash(label)
    except TypeError:
        raise TypeError(
            f"Labels must be hashable, such as strings, numbers or tuples; sequence {place} has {label!r}."
        ) from None
