"""The operations on a data matrix that the rest of the library uses.

Conventions
-----------
n, d        : rows and columns of X
v           : row weights, shape (n,), non-negative, summing to one
mean        : weighted column means, shape (d,); zeros when the columns are not centred
spread      : weighted root mean square of the (centred) columns, shape (d,)
standardised: ``(X - mean) / spread``; all operations are on these columns

Standardising is part of the operations: X itself is never copied, densified or written to, whatever its order, dtype or
storage.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from pauca.design.entries import Entries

# A column whose spread is below this share of its mean carries fewer than three digits of information
# in double precision; it is treated as constant.
CONSTANT_BELOW = 1e-13

# Above this ratio of mean to spread, products with raw columns lose too many digits, and the columns are centred block
# by block before they are multiplied.
MEAN_DOMINATES_ABOVE = 1e3

# A few columns are gathered in blocks of about this many numbers (half a megabyte), which stay in the cache; blocks of
# all columns are larger, for BLAS to run at full speed. Both are small compared with X.
GATHERED_NUMBERS = 1 << 16
WIDE_NUMBERS = 1 << 19

# What takes several passes over numbers works on about so many at a time: a megabyte, which stays in the cache.
CACHED_NUMBERS = 1 << 17


class Design(Protocol):
    """A data matrix as a set of operations on its standardised columns."""

    n_rows: int
    n_features: int
    nbytes: int
    mean: np.ndarray
    spread: np.ndarray
    usable: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        """Row weights that sum to one, shape (n,)."""
        ...

    def correlate(self, target: np.ndarray) -> np.ndarray:
        """Weighted products of every standardised column with ``target`` of shape (n,): shape (d,).

        With centred columns the weighted mean of ``target`` does not matter.
        """
        ...

    def gram(self, features: Sequence[int] | np.ndarray) -> np.ndarray:
        """Weighted products of the columns ``features`` with every column: shape (len(features), d)."""
        ...

    def sample_gram(self, features: np.ndarray) -> np.ndarray:
        """A cheap estimate of the products of the columns ``features`` with each other: shape (b, b)."""
        ...

    def blocks(self, features: Sequence[int] | np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Row blocks of the standardised columns ``features``: pairs of row slice and (rows, b) array."""
        ...

    def columns(self, features: Sequence[int] | np.ndarray) -> np.ndarray:
        """The standardised columns ``features``, one to a row: shape (b, n)."""
        ...

    def stored(self) -> np.ndarray:
        """How many entries of every column are stored, shape (d,): all of them, but for sparse data."""
        ...

    def entries(self, features: np.ndarray) -> Entries:
        """The stored entries of the standardised columns ``features``; the others have the value of a zero."""
        ...

    def products(self, left: np.ndarray) -> np.ndarray:
        """Products of ``left`` of shape (m, n) with every standardised column, without weights: shape (m, d)."""
        ...

    def squares(self, weights: np.ndarray, sums: np.ndarray | None = None) -> np.ndarray:
        """Sums of the squares of every standardised column with ``weights`` of shape (m, n): shape (m, d).

        ``sums`` are the ``products`` of the weights, if they are known already.
        """
        ...

    def scores(self, coef: Any) -> Iterator[tuple[slice, np.ndarray]]:
        """Row blocks of ``(X - mean) coef``, for coefficients in the units of X of shape (d, m), dense or sparse.

        Pairs of row slice and (rows, m) array.
        """
        ...

    def extent(self) -> np.ndarray:
        """The largest absolute entry of every standardised column, shape (d,)."""
        ...


class StandardisedColumns(ABC):
    """The base of all designs: what follows from the moments of the columns."""

    n_rows: int

    def __init__(
        self,
        mean: np.ndarray,
        variance: np.ndarray,
        weights: np.ndarray | Callable[[], np.ndarray],
        *,
        center: bool,
    ) -> None:
        self.mean = mean
        self.spread = np.sqrt(variance)
        self._weights = weights
        size = np.abs(mean)
        self.usable = (self.spread > CONSTANT_BELOW * size) & (self.spread > 0)
        # Zeros for constant columns, whose products are then zero.
        self._inverse_spread = np.zeros(len(mean))
        np.divide(1.0, self.spread, out=self._inverse_spread, where=self.usable)
        size *= self._inverse_spread
        self._means_dominate = bool((size > MEAN_DOMINATES_ABOVE).any())
        self._center = center
        self._extent: np.ndarray | None = None

    @property
    def weights(self) -> np.ndarray:
        """Row weights that sum to one, shape (n,)."""
        return self._weights() if callable(self._weights) else self._weights

    def columns(self, features: Sequence[int] | np.ndarray) -> np.ndarray:
        """The standardised columns ``features``, one to a row: shape (b, n)."""
        gathered = np.empty((len(features), self.n_rows))
        for rows, block in self.blocks(features):
            gathered[:, rows] = block.T
        return gathered

    def stored(self) -> np.ndarray:
        """How many entries of every column are stored, shape (d,)."""
        return np.full(len(self.mean), self.n_rows)

    def entries(self, features: np.ndarray) -> Entries:
        """The stored entries of the standardised columns ``features``."""
        column, row = np.divmod(np.arange(len(features) * self.n_rows), self.n_rows)
        zeros = self._standardise(np.zeros((1, len(features))), features)[0]
        return Entries(column, row, self.columns(features).ravel(), zeros)

    def extent(self) -> np.ndarray:
        """The largest absolute entry of every standardised column, shape (d,)."""
        if self._extent is None:
            low, high = self._range()
            self._extent = np.maximum(high - self.mean, self.mean - low) * self._inverse_spread
        return self._extent

    @abstractmethod
    def blocks(self, features: Sequence[int] | np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Row blocks of the standardised columns ``features``."""

    @abstractmethod
    def _range(self) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest entry of every column of X."""

    @abstractmethod
    def products(self, left: np.ndarray) -> np.ndarray:
        """Products of ``left`` with every standardised column."""

    def _about_the_mean(self, squares: np.ndarray, weights: np.ndarray, sums: np.ndarray | None) -> np.ndarray:
        """Weighted squares of standardised columns from those of the raw ones."""
        squares *= self._inverse_spread**2
        if self._center:
            shift = self.mean * self._inverse_spread
            sums = self.products(weights) if sums is None else sums
            squares -= shift * (2.0 * sums + weights.sum(axis=1)[:, None] * shift)
        return np.maximum(squares, 0.0, out=squares)

    def _weighted(self, target: np.ndarray) -> np.ndarray:
        """``v * target``, centred first if the columns are: a product needs one centred factor only."""
        v = self.weights
        return v * (target - v @ target) if self._center else v * target

    def _standardise(self, block: np.ndarray, features: Sequence[int] | np.ndarray) -> np.ndarray:
        """Standardise a block of the columns ``features`` in place."""
        block -= self.mean[features]
        block *= self._inverse_spread[features]
        return block


def row_blocks(end: int, width: int, numbers: int, first: int = 0) -> Iterator[slice]:
    """Slices that split rows from ``first`` to ``end`` into blocks of ``width`` columns with so many ``numbers``."""
    step = max(1, numbers // max(1, width))
    return (slice(start, min(start + step, end)) for start in range(first, end, step))
