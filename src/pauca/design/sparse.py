"""Sparse X in CSC or CSR form, never densified beyond a few columns at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from pauca.design.base import GATHERED_NUMBERS, StandardisedColumns, row_blocks
from pauca.design.entries import Entries

# Columns with more than this share of nonzeros are multiplied as a dense block: a sparse product takes longer.
DENSE_ABOVE = 0.1

# So few columns are, whatever they hold, where X is stored by columns: a sparse product reads all of X twice. Of 16,000
# rows and 150,000 words with 4.5 million nonzeros 1 to 8 columns take a quarter to a third of the time.
FEW_COLUMNS = 8

# At most this many numbers (32 MB) of such a block are held at once.
DENSE_NUMBERS = 1 << 22


class SparseDesign(StandardisedColumns):
    """Operations on a CSC or CSR matrix; means are subtracted from the products, never from the entries."""

    def __init__(self, X: sparse.sparray | sparse.spmatrix, weights: np.ndarray, *, center: bool) -> None:
        self.n_rows, self.n_features = X.shape
        self.nbytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        if not X.has_canonical_format:
            # Duplicate entries must be summed: the only kind of sparse data that is copied.
            X = X.copy()
            X.sum_duplicates()
        self._X = X
        self._transposed = X.T
        super().__init__(*_moments(X, weights, center=center), weights, center=center)

    def correlate(self, target: np.ndarray) -> np.ndarray:
        weighted = self._weighted(target)
        product = np.asarray(self._transposed @ weighted)
        product -= weighted.sum() * self.mean
        product *= self._inverse_spread
        return product

    def gram(self, features: Sequence[int] | np.ndarray) -> np.ndarray:
        share_filled = self.stored()[features].sum() / max(1, self.n_rows * len(features))
        few = self._X.format == "csc" and len(features) <= FEW_COLUMNS
        if few or self._means_dominate or share_filled > DENSE_ABOVE:
            product = self._gram_from_dense_columns(features)
        else:
            product = np.ascontiguousarray((self._transposed @ self._weighted_rows(self._X[:, features])).toarray().T)
            product -= np.outer(self.mean[features], self.mean)
            product *= self._inverse_spread[features][:, None]
        product *= self._inverse_spread
        return product

    def blocks(self, features: Sequence[int] | np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        chosen = sparse.csr_array(self._X[:, features])
        for rows in row_blocks(self.n_rows, len(features), GATHERED_NUMBERS):
            yield rows, self._standardise(chosen[rows].toarray().astype(np.float64, copy=False), features)

    def columns(self, features: Sequence[int] | np.ndarray) -> np.ndarray:
        if self._X.format != "csc":
            return super().columns(features)
        # To cut columns out of a sparse matrix takes several times as long as to copy their entries.
        X, gathered = self._X, np.zeros((len(features), self.n_rows))
        for column, start, end in zip(gathered, X.indptr[features], X.indptr[1:][features], strict=True):
            column[X.indices[start:end]] = X.data[start:end]
        gathered -= self.mean[features][:, None]
        gathered *= self._inverse_spread[features][:, None]
        return gathered

    def products(self, left: np.ndarray) -> np.ndarray:
        product = np.ascontiguousarray((self._transposed @ left.T).T)
        product -= left.sum(axis=1)[:, None] * self.mean
        product *= self._inverse_spread
        return product

    def squares(self, weights: np.ndarray, sums: np.ndarray | None = None) -> np.ndarray:
        X = self._X
        if self._means_dominate:
            at_once = max(1, DENSE_NUMBERS // self.n_rows)
            starts = range(0, self.n_features, at_once)
            parts = (self.columns(np.arange(a, min(a + at_once, self.n_features))) for a in starts)
            return np.hstack([weights @ (part * part).T for part in parts])
        squared = type(X)((X.data.astype(np.float64) ** 2, X.indices, X.indptr), shape=X.shape)
        return self._about_the_mean(np.ascontiguousarray((squared.T @ weights.T).T), weights, sums)

    def scores(self, coef: Any) -> Iterator[tuple[slice, np.ndarray]]:
        shift = self.mean @ coef
        for rows in row_blocks(self.n_rows, coef.shape[1], DENSE_NUMBERS):
            # A slice of sparse data is a copy, even where it holds all rows.
            product = (self._X if rows == slice(0, self.n_rows) else self._X[rows]) @ coef
            yield rows, (product.toarray() if sparse.issparse(product) else product) - shift

    def sample_gram(self, features: np.ndarray) -> np.ndarray:
        # A sample of rows would miss most entries, and the exact product of sparse columns is cheap.
        chosen = self._X[:, features]
        product = (chosen.T @ self._weighted_rows(chosen)).toarray()
        product -= np.outer(self.mean[features], self.mean[features])
        scale = self._inverse_spread[features]
        return product * scale * scale[:, None]

    def stored(self) -> np.ndarray:
        X = self._X
        return np.diff(X.indptr) if X.format == "csc" else np.bincount(X.indices, minlength=self.n_features)

    def entries(self, features: np.ndarray) -> Entries:
        X, mean, scale = self._X, self.mean[features], self._inverse_spread[features]
        if X.format != "csc":
            X, features = sparse.csc_array(X[:, features]), np.arange(len(features))
        first, stored = X.indptr[features], X.indptr[1:][features] - X.indptr[features]
        column = np.repeat(np.arange(len(features)), stored)
        # To cut columns out of a sparse matrix takes longer than to count where their entries are.
        places = np.arange(len(column)) + (first - np.cumsum(stored) + stored)[column]
        return Entries(column, X.indices[places], (X.data[places] - mean[column]) * scale[column], -mean * scale)

    def _range(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._X.min(axis=0), self._X.max(axis=0)
        return low.toarray().ravel().astype(np.float64), high.toarray().ravel().astype(np.float64)

    def _weighted_rows(self, chosen: sparse.sparray | sparse.spmatrix) -> sparse.csr_array:
        """Some columns of X with every row multiplied by its weight."""
        by_rows = sparse.csr_array(chosen)
        data = by_rows.data * np.repeat(self.weights, np.diff(by_rows.indptr))
        return sparse.csr_array((data, by_rows.indices, by_rows.indptr), shape=by_rows.shape)

    def _gram_from_dense_columns(self, features: Sequence[int] | np.ndarray) -> np.ndarray:
        """Products with centred dense columns: accurate where means dominate, fast where columns are full."""
        product = np.empty((len(features), self.n_features))
        at_once = max(1, DENSE_NUMBERS // self.n_rows)
        for start in range(0, len(features), at_once):
            some = features[start : start + at_once]
            chosen = self.columns(some)
            chosen *= self.weights
            product[start : start + at_once] = (self._transposed @ chosen.T).T
            product[start : start + at_once] -= np.outer(chosen.sum(axis=1), self.mean)
        return product


def _moments(
    X: sparse.sparray | sparse.spmatrix, weights: np.ndarray, *, center: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means of the columns, zeros if they are not centred, and mean squares about them."""
    stored = np.zeros(X.shape[1])
    for part in _parts(X):
        stored[part.columns] += part.sums(np.ones(len(part.values)), weights)
    missing = 1.0 - stored
    # In a full column this is the rounding of a sum, which must not be multiplied by the square of a large mean.
    missing[missing < len(weights) * np.finfo(float).eps] = 0.0
    mean = np.zeros(X.shape[1])
    # The second time removes the rounding of the first, which may exceed a small spread.
    for _ in range(2 if center else 0):
        # Entries that are not stored are zeros.
        off = -missing * mean
        for part in _parts(X):
            off[part.columns] += part.sums(part.about(mean), weights)
        mean += off
    variance = missing * mean**2
    for part in _parts(X):
        variance[part.columns] += part.sums(part.about(mean) ** 2, weights)
    return mean, variance


class _Part(NamedTuple):
    """Some rows or columns of sparse data."""

    rows: slice
    columns: slice
    values: np.ndarray
    indices: np.ndarray
    starts: np.ndarray
    by_column: bool

    def about(self, point: np.ndarray) -> np.ndarray:
        """The stored values less those of a ``point`` of all columns, shape (d,)."""
        centre = np.repeat(point[self.columns], np.diff(self.starts)) if self.by_column else point[self.indices]
        return np.asarray(self.values - centre)

    def sums(self, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Weighted sums over the rows of ``values`` in the place of those that are stored, for all columns here."""
        some = weights[self.rows]
        kind = sparse.csc_array if self.by_column else sparse.csr_array
        shape = len(some), self.columns.stop - self.columns.start
        return np.asarray(kind((values, self.indices, self.starts), shape=shape).T @ some)


def _parts(X: sparse.sparray | sparse.spmatrix) -> Iterator[_Part]:
    """All rows or columns, some at a time, so that no array as long as the data is made."""
    by_column, starts = X.format == "csc", X.indptr
    n_rows, n_columns = X.shape
    chunk, line = max(GATHERED_NUMBERS, n_columns // 4), 0
    while line < len(starts) - 1:
        end = max(line + 1, int(np.searchsorted(starts, starts[line] + chunk, side="right")) - 1)
        some, entries = slice(line, end), slice(int(starts[line]), int(starts[end]))
        yield _Part(
            slice(0, n_rows) if by_column else some,
            some if by_column else slice(0, n_columns),
            X.data[entries],
            X.indices[entries],
            starts[line : end + 1] - starts[line],
            by_column,
        )
        line = end
