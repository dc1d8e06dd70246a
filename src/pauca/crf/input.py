"""Sequences as users bring them, read into one matrix and checked: what is wrong is said with the sequence's number."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from pauca.crf.attributes import encode, has_attributes, is_blank
from pauca.crf.tables import (
    IN_A_LIST,
    Spots,
    Wanted,
    is_table,
    items,
    length_of,
    names_of,
    opened,
    read_table,
    refuse_lazy,
    refuse_not_finite,
)

SEQUENCES = "X must be a list of sequences"
WHOLE_NUMBERS = "lengths must be whole numbers, one for each sequence"
ONE_SEQUENCE = (
    "X is one {what}, and a list of sequences is wanted. "
    + IN_A_LIST
    + " If X holds several, one after the other, say "
    "how long they are with lengths=[..]."
)


@dataclass(frozen=True, eq=False)
class Read:
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
        """What was found for all positions, sequence by sequence."""
        return np.split(values, self.bounds[1:-1])


def read_sequences(X: Any, lengths: Any, wanted: Wanted) -> Read:
    """Sequences of the fit, or, with what the fit knows of its columns, of a prediction.

    Parameters
    ----------
    X : list of tables, or one table with ``lengths``
    lengths : list of int or None
    wanted : Wanted
        Which columns to read.
    """
    tables = _tables(X) if lengths is None else [_one_table(X)]
    bounds = np.concatenate([[0], np.cumsum([length_of(table) for table in tables])])
    if lengths is not None:
        bounds = np.concatenate([[0], np.cumsum(_lengths(lengths, int(bounds[-1])))])
    _refuse_empty(bounds)
    if _are_attributes(tables, wanted):
        if lengths is not None:
            tables = [tables[0][a:b] for a, b in pairwise(bounds.tolist())]
        return _read_attributes(tables, bounds, wanted)
    columns = names_of(tables[0])
    if wanted.fitting:
        wanted = Wanted(None, columns, None)
    spots = Spots(bounds, lengths is not None)
    read = [read_table(table, place, wanted, spots) for place, table in enumerate(tables)]
    _refuse_widths(read, fitting=wanted.fitting)
    if wanted.fitting:
        for place, table in enumerate(read):
            refuse_not_finite(table, place, wanted.names, spots)
    named = None if sparse.issparse(tables[0]) else columns is not None
    if len(read) == 1:
        return Read(read[0], bounds, wanted.names, named)
    stack = sparse.vstack(read, format="csr") if any(map(sparse.issparse, read)) else np.concatenate(read)
    return Read(stack, bounds, wanted.names, named)


def _tables(X: Any) -> list[Any]:
    """The tables of X, one for each sequence."""
    refuse_lazy(X, "X")
    if is_table(X):
        raise ValueError(ONE_SEQUENCE.format(what="table"))
    tables = items(X, SEQUENCES)
    if not tables:
        raise ValueError("X holds no sequences.")
    if has_attributes(next((table for table in tables if not is_blank(table)), None)):
        raise ValueError(ONE_SEQUENCE.format(what=f"list of {len(tables)} positions"))
    return [opened(table, place) for place, table in enumerate(tables)]


def _one_table(X: Any) -> Any:
    """The table that holds all sequences."""
    refuse_lazy(X, "X")
    if is_table(X):
        return X
    rows = items(X, SEQUENCES)
    if rows and (is_table(rows[0]) or (isinstance(rows[0], list | tuple) and any(map(_is_position, rows[0])))):
        raise ValueError("X is a list of sequences, which have their lengths; leave out 'lengths'.")
    return rows


def _is_position(item: Any) -> bool:
    return has_attributes(item) or isinstance(item, list | tuple | np.ndarray)


def _are_attributes(tables: list[Any], wanted: Wanted) -> bool:
    """Whether positions are described by attributes; lists of no words may be all that a model is asked about."""
    lists = [table for table in tables if isinstance(table, list | tuple)]
    if any(has_attributes(item) for table in lists for item in table):
        return True
    no_words = len(lists) == len(tables) and all(is_blank(item) for table in lists for item in table)
    return no_words and not wanted.fitting and wanted.names is not None


def _read_attributes(sequences: list[Any], bounds: np.ndarray, wanted: Wanted) -> Read:
    if wanted.fitting:
        matrix, names = encode(sequences, None)
        if not len(names):
            raise ValueError("X has no columns: no position has an attribute.")
        return Read(matrix, bounds, names, True)
    known = wanted.names
    if known is None:
        raise ValueError("The model was fitted on tables without column names; attributes by name cannot be looked up.")
    return Read(encode(sequences, known if wanted.used is None else known[wanted.used])[0], bounds, known, True)


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


def _lengths(lengths: Any, n: int) -> np.ndarray:
    found = items(lengths, WHOLE_NUMBERS)
    if any(isinstance(one, bool) or not isinstance(one, numbers.Integral) or one < 0 for one in found):
        raise ValueError(f"{WHOLE_NUMBERS}; got {lengths!r}.")
    if sum(found) != n:
        raise ValueError(f"lengths add up to {sum(found)}, and X has {n} positions.")
    if not found:
        raise ValueError("X holds no sequences.")
    return np.array(found, dtype=np.int64)
