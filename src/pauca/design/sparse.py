"""Sparse X in CSC or CSR form, never densified beyond a few columns at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from pauca.design.base import GATHERED_NUMBERS, WIDE_NUMBERS, StandardisedColumns, row_blocks

# Columns with more than this share of nonzeros are multiplied as a dense block: a sparse product takes longer.
DENSE_ABOVE = 0.1

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
        mean = np.zeros(self.n_features)
        if center:
            # The second time removes the rounding of the first, which may exceed a small spread.
            for _ in range(2):
                mean += _moments_about(mean, X, weights)[0]
        super().__init__(mean, _moments_about(mean, X, weights)[1], weights, center=center)

    def correlate(self, target: np.ndarray) -> np.ndarray:
        weighted = self._weighted(target)
        product = np.asarray(self._X.T @ weighted)
        product -= weighted.sum() * self.mean
        product *= self._inverse_spread
        return product

    def gram(self, features: Sequence[int] | np.ndarray) -> np.ndarray:
        chosen = self._X[:, features]
        share_filled = chosen.nnz / max(1, self.n_rows * len(features))
        if self._means_dominate or share_filled > DENSE_ABOVE:
            product = self._gram_from_dense_columns(features)
        else:
            product = np.ascontiguousarray((self._X.T @ self._weighted_rows(chosen)).toarray().T)
            product -= np.outer(self.mean[features], self.mean)
            product *= self._inverse_spread[features][:, None]
        product *= self._inverse_spread
        return product

    def blocks(self, features: Sequence[int] | np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        chosen = sparse.csr_array(self._X[:, features])
        for rows in row_blocks(self.n_rows, len(features), GATHERED_NUMBERS):
            yield rows, self._standardise(chosen[rows].toarray().astype(np.float64, copy=False), features)

    def products(self, left: np.ndarray) -> np.ndarray:
        product = np.ascontiguousarray((self._X.T @ left.T).T)
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
            chosen = np.empty((self.n_rows, len(some)))
            for rows, block in self.blocks(some):
                np.multiply(block, self.weights[rows, None], out=chosen[rows])
            product[start : start + at_once] = (self._X.T @ chosen).T
            product[start : start + at_once] -= np.outer(chosen.sum(axis=0), self.mean)
        return product


def _moments_about(
    point: np.ndarray, X: sparse.sparray | sparse.spmatrix, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means of ``x - point`` and of its square, per column; entries that are not stored count as zeros."""
    stored_weight = np.zeros(len(point))
    first = np.zeros(len(point))
    second = np.zeros(len(point))
    for rows, columns, values in _entries(X):
        v = weights[rows]
        centred = values - point[columns]
        stored_weight += np.bincount(columns, weights=v, minlength=len(point))
        first += np.bincount(columns, weights=v * centred, minlength=len(point))
        second += np.bincount(columns, weights=v * centred * centred, minlength=len(point))
    missing = 1.0 - stored_weight
    # In a full column this is the rounding of a sum, which must not be multiplied by the square of a large mean.
    missing[missing < len(weights) * np.finfo(float).eps] = 0.0
    return first - missing * point, second + missing * point**2


def _entries(X: sparse.sparray | sparse.spmatrix) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Stored entries in chunks of (row, column, value), so that no array as long as the data is made."""
    by_column = X.format == "csc"
    starts = X.indptr
    chunk = max(WIDE_NUMBERS, X.shape[1] // 4)
    for first in range(0, X.nnz, chunk):
        last = min(first + chunk, X.nnz)
        minor = X.indices[first:last]
        lines = slice(
            int(np.searchsorted(starts, first, side="right")) - 1, int(np.searchsorted(starts, last, side="left"))
        )
        bounds = np.clip(starts[lines.start : lines.stop + 1], first, last)
        major = np.repeat(np.arange(lines.start, lines.stop), np.diff(bounds))
        values = X.data[first:last]
        yield (minor, major, values) if by_column else (major, minor, values)
