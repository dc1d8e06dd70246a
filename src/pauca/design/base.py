"""What the rest of the library may ask of a data matrix, and nothing more.

Conventions
-----------
n, d        : rows and columns of X
v           : row weights, shape (n,), non-negative, summing to one
mean        : weighted column means, shape (d,); zeros when the columns are not centred
spread      : weighted root mean square of the (centred) columns, shape (d,)
standardised: ``(X - mean) / spread``, the only columns the rooms above ever see

Standardising is folded into the verbs. X itself is never copied, never densified and never written to,
whatever its order, dtype or storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

# A column whose spread is below this share of its mean carries fewer than three digits of information
# in double precision; it is treated as constant.
CONSTANT_BELOW = 1e-13

# Above this ratio of mean to spread the products with raw columns lose too many digits to the mean, and
# the columns are centred block by block before they are multiplied.
MEAN_DOMINATES_ABOVE = 1e3

# A few columns are gathered in blocks of about this many numbers (half a megabyte), which stay in the cache while
# they are worked on; blocks of all columns are larger, for BLAS to be at full speed. Neither ever rivals X.
GATHERED_NUMBERS = 1 << 16
WIDE_NUMBERS = 1 << 19


class Design(Protocol):
    """A data matrix as a set of verbs on its standardised columns."""

    n_rows: int
    n_features: int
    nbytes: int
    weights: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    usable: np.ndarray

    def correlate(self, target: np.ndarray) -> np.ndarray:
        """Weighted products of every standardised column with ``target`` of shape (n,): shape (d,).

        With centred columns the weighted mean of ``target`` does not matter.
        """
        ...

    def gram(self, features: Sequence[int] | np.ndarray) -> np.ndarray:
        """Weighted products of the columns ``features`` with every column: shape (len(features), d)."""
        ...

    def sample_gram(self, features: np.ndarray) -> np.ndarray:
        """A cheap guess at the products of the columns ``features`` with each other: shape (b, b)."""
        ...

    def blocks(self, features: Sequence[int] | np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Row blocks of the standardised columns ``features``: pairs of row slice and (rows, b) array."""
        ...


def usable_columns(mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Mask of the columns that vary: not all zero and, where they are centred, not constant."""
    return (spread > CONSTANT_BELOW * np.abs(mean)) & (spread > 0)


def inverse_spread(spread: np.ndarray, usable: np.ndarray) -> np.ndarray:
    """``1 / spread`` with zeros for columns that cannot be used, so that they correlate with nothing."""
    inverse = np.zeros_like(spread)
    np.divide(1.0, spread, out=inverse, where=usable)
    return inverse


def weighted_target(weights: np.ndarray, target: np.ndarray, center: bool) -> np.ndarray:
    """``v * target``, centred first where the columns are: one side centred is enough for the product."""
    return weights * (target - weights @ target) if center else weights * target


def row_blocks(n_rows: int, width: int, numbers: int) -> Iterator[slice]:
    """Slices that cut ``n_rows`` into blocks of ``width`` columns with about so many ``numbers``."""
    step = max(1, numbers // max(1, width))
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))
