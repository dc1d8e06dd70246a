"""Reservoir sampling: some rows of a stream, stored for choosing settings and for refits, a uniform sample of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True, eq=False)
class Samples:
    """Rows of X with their targets and weights."""

    X: Any
    y: np.ndarray
    """Numbers, or indices of classes."""
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: np.ndarray) -> Samples:
        """Some of the rows."""
        return Samples(self.X[rows], self.y[rows], self.weights[rows])


class Reservoir:
    """At most ``capacity`` rows: the first ones, then a uniform sample of all so far (Vitter 1985, Algorithm R).

    Which rows are stored depends on their order alone, not on the chunks they come in.
    """

    def __init__(self, capacity: int, n_features: int, seed: int) -> None:
        self.capacity = capacity
        self.n_samples_seen = 0
        self._n_features = n_features
        self._rng = np.random.default_rng(seed)
        self._columns: list[np.ndarray] = []
        self._values: list[np.ndarray] = []
        self._y = np.empty(0)
        self._weights = np.empty(0)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def n_free(self) -> int:
        """How many of the next rows will certainly be stored."""
        return self.capacity - len(self)

    def add(self, samples: Samples, order: np.ndarray) -> None:
        """Add further rows, in the order given."""
        first, later = np.split(order, [self.n_free])
        entries = [_entries(samples.X, row) for row in first]
        self._columns += [columns for columns, _ in entries]
        self._values += [values for _, values in entries]
        self._y = np.concatenate([self._y, samples.y[first]])
        self._weights = np.concatenate([self._weights, samples.weights[first]])
        self.n_samples_seen += len(first)
        # One draw for every row, so that chunks do not matter.
        drawn = self._rng.random(len(later)) * (self.n_samples_seen + 1.0 + np.arange(len(later)))
        positions = drawn.astype(np.int64)
        stored = positions < self.capacity
        for row, position in zip(later[stored], positions[stored], strict=True):
            self._columns[position], self._values[position] = _entries(samples.X, row)
            self._y[position], self._weights[position] = samples.y[row], samples.weights[row]
        self.n_samples_seen += len(later)

    def remove_last(self, count: int) -> None:
        """Undo the addition of the last ``count`` rows, none of which replaced another."""
        left = len(self) - count
        del self._columns[left:], self._values[left:]
        self._y, self._weights = self._y[:left], self._weights[:left]
        self.n_samples_seen -= count

    def samples(self) -> Samples:
        """The stored rows, as a CSR matrix."""
        starts = np.concatenate([[0], np.cumsum([len(columns) for columns in self._columns])])
        columns = np.concatenate([np.empty(0, dtype=np.int32), *self._columns])
        values = np.concatenate([np.empty(0), *self._values])
        X = sparse.csr_matrix((values, columns, starts), shape=(len(self), self._n_features))
        return Samples(X, self._y.copy(), self._weights.copy())


def _entries(X: Any, row: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns and values of the nonzero entries of a row; copies, so that the chunk can be freed."""
    if sparse.issparse(X):
        here = slice(X.indptr[row], X.indptr[row + 1])
        return X.indices[here].copy(), X.data[here].astype(np.float64)
    columns = np.flatnonzero(X[row])
    return columns.astype(np.int32), np.asarray(X[row][columns], dtype=np.float64)
