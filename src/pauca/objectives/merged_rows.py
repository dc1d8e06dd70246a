"""Rows of the data as a model on few columns sees them: rows that are alike there, and in their target, are one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pauca.compiled import Kernels, plain

# Targets of more distinct values than this are not merged: hardly any rows would be alike.
MOST_TARGETS = 64

# Rows are merged where no more than this share of them is left, and sorted by a table of at most so many entries a row.
MERGE_BELOW = 0.5
TABLE_PER_ROW = 8

KERNELS = Kernels("pauca.objectives.row_kernels", "split_groups")


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with weight, each of which stands for one or more rows of the data.

    Conventions
    -----------
    n rows of the data, G rows here; y has shape (C, G), or (G,) for classes where all outputs share one loss
    """

    y: np.ndarray
    weights: np.ndarray
    """Shape (G,), each the sum of the weights of the rows it stands for."""
    first: np.ndarray | None = None
    """A row of the data that each of these rows stands for, shape (G,); None where they are the rows of the data."""
    of_row: np.ndarray | None = None
    """The row here that stands for each row of the data, shape (n,); rows without weight belong to any."""
    merged: bool = False
    """Whether rows of one target are merged: then they can be split by further columns."""

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray) -> Rows:
        """The rows as a model without columns sees them."""
        if y.ndim == 1 or len(y) == 1:
            values, of_row = np.unique(y.ravel(), return_inverse=True)
            if len(values) <= min(MOST_TARGETS, MERGE_BELOW * len(weights)):
                return _merged(y, weights, of_row, len(values))
        return cls.unmerged(y, weights)

    @classmethod
    def unmerged(cls, y: np.ndarray, weights: np.ndarray) -> Rows:
        """All rows that have weight."""
        weighted = np.flatnonzero(weights > 0)
        if len(weighted) == len(weights):
            return cls(y, weights)
        of_row = np.zeros(len(weights), dtype=np.intp)
        of_row[weighted] = np.arange(len(weighted))
        return cls(y[..., weighted], weights[weighted], weighted, of_row)

    def of_columns(self, columns: np.ndarray) -> np.ndarray:
        """Columns of the data, of shape (q, n), on these rows."""
        return columns if self.first is None else columns[:, self.first]

    def to_data(self, scores: np.ndarray) -> np.ndarray:
        """Scores of shape (C, G) for all rows of the data, shape (C, n)."""
        return scores if self.of_row is None else scores[:, self.of_row]

    def onto(self, finer: Rows, scores: np.ndarray) -> np.ndarray:
        """Scores on these rows as scores on finer ones."""
        if finer is self:
            return scores
        rows = slice(None) if finer.first is None else finer.first
        return scores[:, rows] if self.of_row is None else scores[:, self.of_row[rows]]


def split(rows: Rows, y: np.ndarray, weights: np.ndarray, columns: Iterable[tuple[np.ndarray, int]]) -> Rows | None:
    """Merged rows split by columns of the data, each with its values coded as 0, 1, ... and the number of these.

    None if too many rows would be left.
    """
    assert rows.of_row is not None
    most, table = MERGE_BELOW * len(weights), TABLE_PER_ROW * len(weights)
    key, size, numbered = rows.of_row, len(rows.weights), True
    kernels = KERNELS.instead_of(len(weights))
    for codes, n_codes in columns:
        if kernels is not None and size * n_codes <= table:
            key, of_row = np.empty(len(key), dtype=np.int64), key
            size = kernels.split_groups(of_row, size, codes, n_codes, key)
            if size > most:
                return None
            continue
        if size * n_codes > table and not numbered:
            # Several columns are taken in before groups are numbered anew.
            key, size = _numbered(key, size, table)
            if size > most:
                return None
        key, size, numbered = key * n_codes + codes, size * n_codes, False
        if kernels is not None:
            key, size, numbered = *_numbered(key, size, table), True
    key, size = (key, size) if numbered else _numbered(key, size, table)
    return _merged(y, weights, key, size) if size <= most else None


def _numbered(key: np.ndarray, size: int, table: int) -> tuple[np.ndarray, int]:
    """Keys below ``size`` as numbers of groups in the same order, 0, 1, ..., and how many groups there are."""
    if size > table:
        found, of_row = np.unique(key, return_inverse=True)
        return of_row, len(found)
    used = np.zeros(size, dtype=np.intp)
    used[key] = 1
    place = np.cumsum(used) - 1
    return place[key], int(place[-1]) + 1


def _merged(y: np.ndarray, weights: np.ndarray, of_row: np.ndarray, count: int) -> Rows:
    """Rows by the numbers of the groups they belong to; groups without weight are left out."""
    kernels = KERNELS.module
    if kernels is not None:
        of_row, own_weights, own_first = np.array(of_row), np.empty(count), np.empty(count, dtype=np.int64)
        n_kept = kernels.weigh_groups(of_row, plain(weights), own_weights, own_first)
        return Rows(y[..., own_first[:n_kept]], own_weights[:n_kept], own_first[:n_kept], of_row, merged=True)
    total = np.bincount(of_row, weights=weights, minlength=count)
    kept = np.flatnonzero(total > 0)
    if len(kept) < count:
        place = np.zeros(count, dtype=np.intp)
        place[kept] = np.arange(len(kept))
        of_row = place[of_row]
    weighted = np.flatnonzero(weights > 0)[::-1]
    first = np.empty(len(kept), dtype=np.intp)
    first[of_row[weighted]] = weighted
    return Rows(y[..., first], total[kept], first, of_row, merged=True)
