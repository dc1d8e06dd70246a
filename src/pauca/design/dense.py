"""Dense X: any memory order, any numeric dtype, in memory or memory-mapped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from pauca.design.base import CACHED_NUMBERS, GATHERED_NUMBERS, WIDE_NUMBERS, StandardisedColumns, row_blocks
from pauca.design.fold_grams import RowParts
from pauca.threads import blas_threads

# Blocks of one pass for several sums: they stay in the cache while each sum reads them.
ONE_PASS_NUMBERS = 1 << 18

# Sums of the shares of a product, which are added up, are together no more than this part of X.
PARTS_OF_X = 4

# The formula E[x^2] - E[x]^2 loses the digits of the ratio of its terms; above this one the columns are centred first.
LARGEST_MOMENT_RATIO = 1e4

# Rows for an estimate of correlations; of fewer rows all are taken.
SAMPLED_ROWS = 2048


T = TypeVar("T")


class DenseDesign(StandardisedColumns):
    """Operations on a two-dimensional array.

    Products are BLAS calls on X as it lies in memory where that loses no digits. For other dtypes, strides that BLAS
    cannot read, and columns whose mean is far larger than their spread, temporary row blocks are converted and centred:
    X is never changed, and every sum is in double precision.
    """

    def __init__(self, X: np.ndarray, weights: np.ndarray, *, center: bool, target: np.ndarray | None = None) -> None:
        self.n_rows, self.n_features = X.shape
        self.nbytes = X.nbytes
        self._X = X
        self._uniform = uniform = bool((weights == weights[0]).all())
        readable = X.dtype == np.float64 and _blas_reads(X)
        self._center, self._weights = center, weights
        first = None if target is None else self._weighted(target)
        mean, variance, product = _moments(
            X, weights, center, first, plain=readable and (uniform or not X.flags.f_contiguous), uniform=uniform
        )
        self._known = None if target is None or first is None or product is None else (target, first, product)
        super().__init__(mean, variance, weights, center=center)
        self._raw = readable and not self._means_dominate
        self._parts: tuple[RowParts, np.ndarray] | None = None

    def use_parts(self, parts: RowParts, share: np.ndarray) -> None:
        """Take products of columns from those of parts of the rows, which other designs on the same X use too."""
        self._parts = parts, share

    def correlate(self, target: np.ndarray) -> np.ndarray:
        if self._raw and self._known is not None and (target == self._known[0]).all():
            weighted, product = self._known[1], self._known[2].copy()
        else:
            weighted = self._weighted(target)
            product = self._times_columns(weighted)
        if not self._means_dominate:
            product -= np.add.reduce(weighted) * self.mean
        product *= self._inverse_spread
        return product

    def gram(self, features: Sequence[int] | np.ndarray) -> np.ndarray:
        if len(features) == 1 and self._raw and self._parts is None:
            return self._gram_row(int(features[0]))[None]
        features = np.asarray(features, dtype=np.intp)
        if self._parts is not None:
            return self._gram_of_parts(*self._parts, features)
        width = len(features) if self._raw else self.n_features
        numbers = GATHERED_NUMBERS if self._raw else WIDE_NUMBERS

        def multiply(share: slice) -> tuple[np.ndarray, np.ndarray]:
            product, leftover = None, np.zeros(len(features))
            for rows in row_blocks(share.stop, width, numbers, share.start):
                block = self._standardised(rows, features)
                if not self._uniform:
                    block *= self.weights[rows, None]
                leftover += np.ones(len(block)) @ block
                part = block.T @ self._all_columns(rows)
                # The first part is reused: allocating and filling an array of this size costs as much as reading X.
                product = part if product is None else np.add(product, part, out=product)
            assert product is not None
            return product, leftover

        (product, leftover), *others = self._over_rows(multiply, len(features))
        for one, its_leftover in others:
            product += one
            leftover += its_leftover
        if not self._means_dominate:
            # Centre again: the rounding error of a mean would otherwise be multiplied by the mean itself.
            for position, excess in enumerate(leftover):
                product[position] -= excess * self.mean
        product *= self._inverse_spread * (self.weights[0] if self._uniform else 1.0)
        return product

    def _gram_row(self, feature: int) -> np.ndarray:
        """The products of one column with every column: on small data the general way takes twice as long."""
        column = self._X[:, feature] - self.mean[feature]
        column *= self._inverse_spread[feature]
        column *= self.weights[0] if self._uniform else self.weights
        product = self._times_columns(column)
        product -= np.add.reduce(column) * self.mean  # as there: the mean of the column is rounded
        product *= self._inverse_spread
        return product

    def _gram_of_parts(self, parts: RowParts, share: np.ndarray, features: np.ndarray) -> np.ndarray:
        product, shift = parts.combined(share)
        product = product[features]
        if self._center:
            # The fold's own mean is that of all rows plus the shift; its weights add up to one.
            product -= shift[features, None] * shift
        product *= self._inverse_spread[features, None]
        product *= self._inverse_spread
        return product

    def blocks(self, features: Sequence[int] | np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        for rows in row_blocks(self.n_rows, len(features), GATHERED_NUMBERS):
            yield rows, self._standardised(rows, features)

    def products(self, left: np.ndarray) -> np.ndarray:
        product = self._times_columns(left)
        if not self._means_dominate:
            product -= left.sum(axis=1)[:, None] * self.mean
        product *= self._inverse_spread
        return product

    def squares(self, weights: np.ndarray, sums: np.ndarray | None = None) -> np.ndarray:
        squares = np.zeros((len(weights), self.n_features))
        for rows in row_blocks(self.n_rows, self.n_features, CACHED_NUMBERS):
            block = self._all_columns(rows)
            squares += weights[:, rows] @ (block * block)
        if self._means_dominate:
            squares *= self._inverse_spread**2
            return squares
        return self._about_the_mean(squares, weights, sums)

    def scores(self, coef: Any) -> Iterator[tuple[slice, np.ndarray]]:
        shift = 0.0 if self._means_dominate else self.mean @ coef
        for rows in row_blocks(self.n_rows, max(self.n_features, coef.shape[1]), WIDE_NUMBERS):
            yield rows, self._all_columns(rows) @ coef - shift

    def sample_gram(self, features: np.ndarray) -> np.ndarray:
        if self.n_rows <= SAMPLED_ROWS:
            block = self._standardised(slice(None), features)
            return self.weights[0] * (block.T @ block) if self._uniform else (block.T * self.weights) @ block
        rows = np.unique(np.linspace(0, self.n_rows - 1, SAMPLED_ROWS).astype(np.intp))
        block = self._standardised(rows, features)
        weights = self.weights[rows]
        estimate = (block.T * (weights / max(weights.sum(), np.finfo(float).tiny))) @ block
        # Entries within the sample's noise are set to zero: many small errors would outweigh the few large entries.
        return np.where(np.abs(estimate) < 3.5 / np.sqrt(len(rows)), 0.0, estimate)

    def _times_columns(self, left: np.ndarray) -> np.ndarray:
        """Products of one vector, or of some lines, with the columns as they lie, or centred if means dominate."""

        def multiply(share: slice) -> np.ndarray:
            if self._raw:
                return left[..., share] @ self._X[share]
            blocks = row_blocks(share.stop, self.n_features, WIDE_NUMBERS, share.start)
            return sum((left[..., rows] @ self._all_columns(rows) for rows in blocks), start=np.zeros(()))

        product, *others = self._over_rows(multiply, len(left) if left.ndim > 1 else 1)
        for one in others:
            product += one
        return product

    def _over_rows(self, work: Callable[[slice], T], vectors: int) -> list[T]:
        """Shares of products of so many vectors with X: several at a time cost an eighth of a read each."""
        numbers = (1 + (vectors - 1) / 8) * self.n_rows * self.n_features
        return blas_threads.by_shares(work, self.n_rows, numbers, self.n_rows // (PARTS_OF_X * vectors))

    def _range(self) -> tuple[np.ndarray, np.ndarray]:
        return self._X.min(axis=0).astype(np.float64), self._X.max(axis=0).astype(np.float64)

    def _all_columns(self, rows: slice) -> np.ndarray:
        """Some rows of X as floats, centred if means dominate."""
        return self._X[rows] - self.mean if self._means_dominate else self._X[rows].astype(np.float64, copy=False)

    def _standardised(self, rows: slice | np.ndarray, features: Sequence[int] | np.ndarray) -> np.ndarray:
        rows = rows if isinstance(rows, slice) else rows[:, None]
        return self._standardise(self._X[rows, features].astype(np.float64, copy=False), features)


def _blas_reads(X: np.ndarray) -> bool:
    """Whether BLAS multiplies by X as it lies: one unit stride, the other a positive multiple of the item."""
    rows, columns = X.strides
    item = X.itemsize
    n_rows, n_columns = X.shape
    by_rows = columns == item and rows >= n_columns * item and rows % item == 0
    by_columns = rows == item and columns >= n_rows * item and columns % item == 0
    return bool(by_rows or by_columns)


def _moments(
    X: np.ndarray, weights: np.ndarray, center: bool, first: np.ndarray | None, *, plain: bool, uniform: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Means and variances (second moments without centring), by the cheapest formula that keeps the digits.

    Where the formula is the ``plain`` one, the products of ``first`` with the columns come with them.
    """
    product = None
    if plain:
        lines = [line for line in (weights if center else None, first) if line is not None]
        second, products = _weighted_squares_and_products(X, weights, lines, uniform=uniform)
        product = None if first is None else products[-1]
        if not center:
            return np.zeros(X.shape[1]), second, product
        mean = products[0]
        square = mean * mean
        second -= square
        if (square <= LARGEST_MOMENT_RATIO * second).all():
            return mean, second, product
    by_storage = _moments_by_columns if X.flags.f_contiguous else _moments_by_rows
    return *by_storage(X, weights, center), product


def _weighted_squares_and_products(
    X: np.ndarray, weights: np.ndarray, lines: list[np.ndarray], *, uniform: bool
) -> tuple[np.ndarray, Sequence[np.ndarray]]:
    """Weighted sums of squares of the columns, shape (d,), and products of ``lines`` with them: one pass over X."""
    if X.size <= ONE_PASS_NUMBERS:
        squares = weights[0] * np.einsum("ij,ij->j", X, X) if uniform else weights @ (X * X)
        return squares, [line @ X for line in lines]
    n_rows, n_features = X.shape

    by_columns = X.flags.f_contiguous

    def add_up(share: slice) -> np.ndarray:
        sums = np.zeros((1 + len(lines), n_features))
        width = n_rows if by_columns else n_features
        for some in row_blocks(share.stop, width, ONE_PASS_NUMBERS, share.start):
            rows, columns = (slice(None), some) if by_columns else (some, slice(None))
            block = X[rows, columns]
            sums[0, columns] += np.einsum("ij,ij->j", block, block) if uniform else weights[rows] @ (block * block)
            for total, line in zip(sums[1:], lines, strict=True):
                total[columns] += line[rows] @ block
        return sums

    length = n_features if by_columns else n_rows
    most = min(length, n_rows // (PARTS_OF_X * (1 + len(lines))))
    parts = blas_threads.by_shares(add_up, length, (2 + len(lines)) * X.size, most)
    squares, *products = sum(parts, start=np.zeros(()))
    return squares * weights[0] if uniform else squares, products


def _moments_by_rows(X: np.ndarray, weights: np.ndarray, center: bool) -> tuple[np.ndarray, np.ndarray]:
    """Means in one pass over blocks of rows; variances about them, and the rounding of the means, in another."""
    n_rows, n_features = X.shape
    step = max(1, CACHED_NUMBERS // n_features)
    blocks = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
    mean = np.zeros(n_features)
    if center:
        for rows in blocks:
            mean += weights[rows] @ X[rows].astype(np.float64, copy=False)
    left = np.zeros(n_features)
    second = np.zeros(n_features)
    buffer = np.empty((min(step, n_rows), n_features))
    for rows in blocks:
        centred = np.subtract(X[rows], mean, out=buffer[: rows.stop - rows.start])
        left += weights[rows] @ centred
        second += weights[rows] @ np.multiply(centred, centred, out=centred)
    if not center:
        return mean, second
    return mean + left, np.maximum(second - left * left, 0.0)


def _moments_by_columns(X: np.ndarray, weights: np.ndarray, center: bool) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances in one pass over blocks of columns, which stay in the cache."""
    n_rows, n_features = X.shape
    mean = np.zeros(n_features)
    variance = np.empty(n_features)
    step = max(1, CACHED_NUMBERS // n_rows)
    for start in range(0, n_features, step):
        columns = slice(start, min(start + step, n_features))
        block = X[:, columns].T.astype(np.float64)
        if center:
            for _ in range(2):  # the second time removes the rounding of the first
                left = block @ weights
                mean[columns] += left
                block -= left[:, None]
        variance[columns] = np.multiply(block, block, out=block) @ weights
    return mean, variance
