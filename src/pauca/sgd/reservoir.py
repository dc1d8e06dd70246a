"""A few rows of a stream, kept for choosing settings and for refits: a fair sample of all rows seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a table with their targets and weights."""

    X: Any
    y: np.ndarray
    """Targets as they came: numbers, or codes of classes."""
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def take(self, places: np.ndarray) -> Rows:
        """Some of the rows."""
        return Rows(self.X[places], self.y[places], self.weights[places])


class Kept:
    """At most ``most`` rows: the first ones, then a uniform sample of all so far (Vitter 1985, Algorithm R).

    Which rows are kept depends on their order alone, not on how they came in chunks.
    """

    def __init__(self, most: int, n_features: int, seed: int) -> None:
        self.most = most
        self.n_seen = 0
        self._n_features = n_features
        self._rng = np.random.default_rng(seed)
        self._columns: list[np.ndarray] = []
        self._values: list[np.ndarray] = []
        self._y = np.empty(0)
        self._weights = np.empty(0)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def room(self) -> int:
        """How many of the next rows will be kept for sure."""
        return self.most - len(self)

    def add(self, rows: Rows, order: np.ndarray) -> None:
        """Look at further rows, in the order given."""
        sure, later = np.split(order, [self.room])
        entries = [_entries(rows.X, row) for row in sure]
        self._columns += [columns for columns, _ in entries]
        self._values += [values for _, values in entries]
        self._y = np.concatenate([self._y, rows.y[sure]])
        self._weights = np.concatenate([self._weights, rows.weights[sure]])
        self.n_seen += len(sure)
        # One draw for every row, so that chunks do not matter.
        places = (self._rng.random(len(later)) * (self.n_seen + 1.0 + np.arange(len(later)))).astype(np.int64)
        for row, place in zip(later[places < self.most], places[places < self.most], strict=True):
            self._columns[place], self._values[place] = _entries(rows.X, row)
            self._y[place], self._weights[place] = rows.y[row], rows.weights[row]
        self.n_seen += len(later)

    def forget(self, count: int) -> None:
        """Be as before the last ``count`` rows, for all of which there was room."""
        left = len(self) - count
        del self._columns[left:], self._values[left:]
        self._y, self._weights = self._y[:left], self._weights[:left]
        self.n_seen -= count

    def rows(self) -> Rows:
        """The rows that are kept, as a CSR matrix."""
        starts = np.concatenate([[0], np.cumsum([len(columns) for columns in self._columns])])
        columns = np.concatenate([np.empty(0, dtype=np.int32), *self._columns])
        values = np.concatenate([np.empty(0), *self._values])
        X = sparse.csr_matrix((values, columns, starts), shape=(len(self), self._n_features))
        return Rows(X, self._y.copy(), self._weights.copy())


def _entries(X: Any, row: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns and values of what is not zero in a row; copies, so that the chunk can go."""
    if sparse.issparse(X):
        here = slice(X.indptr[row], X.indptr[row + 1])
        return X.indices[here].copy(), X.data[here].astype(np.float64)
    columns = np.flatnonzero(X[row])
    return columns.astype(np.int32), np.asarray(X[row][columns], dtype=np.float64)
