"""Rows of X as compiled code wants them: CSR with floats of double precision and indices of 32 bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

# Rows that must be brought into another form are so a few at a time, about so many numbers (8 MB).
NUMBERS_AT_ONCE = 1 << 20


class Rows(NamedTuple):
    """Some rows: a CSR matrix, which of its rows in which order, and where these stand among all that are asked for.

    ``taken`` is None where the matrix is X itself.
    """

    data: np.ndarray
    indices: np.ndarray
    starts: np.ndarray
    order: np.ndarray
    taken: np.ndarray | None


def row_blocks(X: Any, order: np.ndarray) -> Iterator[Rows]:
    """The rows of X in the given order. X is not copied, but for a few rows at a time where it must be."""
    if sparse.issparse(X):
        X = X.tocsr()
        if X.data.dtype == np.float64 and X.indices.dtype == np.int32:
            yield Rows(X.data, X.indices, X.indptr.astype(np.int64, copy=False), order, None)
            return
        lengths = np.diff(X.indptr)[order]
    else:
        lengths = np.full(len(order), X.shape[1])
    ends = np.cumsum(lengths)
    first = 0
    while first < len(order):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + NUMBERS_AT_ONCE, side="right")))
        taken = order[first:last]
        block = sparse.csr_array(X[taken]) if sparse.issparse(X) else _filled(X[taken])
        yield Rows(
            np.ascontiguousarray(block.data, dtype=np.float64),
            block.indices.astype(np.int32, copy=False),
            block.indptr.astype(np.int64, copy=False),
            np.arange(len(taken)),
            taken,
        )
        first = last


def _filled(block: np.ndarray) -> sparse.csr_array:
    """Dense rows with all their entries, zeros too."""
    n_rows, width = block.shape
    indices = np.tile(np.arange(width, dtype=np.int32), n_rows)
    starts = np.arange(0, block.size + 1, width)
    return sparse.csr_array((np.ascontiguousarray(block).ravel(), indices, starts), shape=block.shape)


def merged(rows: Rows, i: int) -> Rows:
    """One row by itself, with the sums of entries that stand in it more than once."""
    entries = slice(rows.starts[i], rows.starts[i + 1])
    columns, places = np.unique(rows.indices[entries], return_inverse=True)
    values = np.bincount(places, weights=rows.data[entries])
    return Rows(values, columns, np.array([0, len(columns)]), np.zeros(1, dtype=np.int64), np.array([i]))
