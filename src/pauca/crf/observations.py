"""Observed sequences as one matrix, with equal rows stored once where that pays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse

from pauca.wording import quoted_columns

# Equal rows are stored once if that leaves at most this share of them; a sample of rows shows whether to try.
MOST_DISTINCT = 0.5
SAMPLE_SIZE = 2048

# Rows of other types are converted to double precision so many numbers at a time, not as a whole.
BLOCK_SIZE = 1 << 20

# A column has a usual value if at most this share of its positions depart from it; at least so many rows show which.
USUAL_SHARE = 0.5
LEAST_SAMPLE_SIZE = 64

# A column is constant if its range is at most this, since the square would be zero, or at most this share of its
# values: that is the rounding of a few operations on a constant.
LEAST_RANGE = 1e-150
LEAST_RELATIVE_RANGE = 1e-13

# Larger values overflow when they are squared and summed.
LARGEST = 1e150

# Scores are products with columns as they are, less the contribution of their means. Where values are so many times
# larger than the range of their column, too few digits are left for a fit.
MOST_OFFSET = 1e8

# Columns are compared in so many parts: a sparse matrix is transposed part by part, not as a whole.
COLUMN_PARTS = 16


@dataclass(frozen=True, eq=False)
class Observations:
    """Positions of several sequences, one after the other.

    Binary sensors show the same few rows again and again. Scores are then computed once for every distinct row, and
    probabilities are summed by row before they are multiplied by the matrix: both products become small.

    Attributes
    ----------
    matrix : ndarray or CSR matrix of shape (m, n_columns)
        Distinct rows in the order in which they first occur, or all rows as they are.
    rows : ndarray of int32, shape (n,)
        The row of the matrix of each position.
    bounds : ndarray of int64, shape (n_sequences + 1,)
        Sequence i has the positions from ``bounds[i]`` up to but without ``bounds[i + 1]``.
    rows_repeat : bool
        Whether several positions may have the same row of the matrix.
    """

    matrix: Any
    rows: np.ndarray
    bounds: np.ndarray
    rows_repeat: bool

    @classmethod
    def from_rows(cls, matrix: Any, bounds: np.ndarray) -> Observations:
        """Every position with a row of its own."""
        return cls(matrix, np.arange(matrix.shape[0], dtype=np.int32), bounds.astype(np.int64), False)

    @classmethod
    def from_distinct_rows(cls, matrix: Any, bounds: np.ndarray) -> Observations:
        """Equal rows stored once, where that pays."""
        n = matrix.shape[0]
        sample = np.unique(np.linspace(0, n - 1, min(n, SAMPLE_SIZE)).astype(np.intp))
        # A sample repeats fewer rows than the whole does; where it repeats next to none, the whole repeats few.
        if len(_distinct_rows(matrix[sample])[1]) > (1 + MOST_DISTINCT) / 2 * len(sample):
            return cls.from_rows(matrix, bounds)
        rows, first = _distinct_rows(matrix)
        if len(first) > MOST_DISTINCT * n:
            return cls.from_rows(matrix, bounds)
        distinct = matrix[first]
        distinct = distinct.astype(np.float64) if sparse.issparse(distinct) else np.asarray(distinct, dtype=np.float64)
        return cls(distinct, rows, bounds.astype(np.int64), True)

    def take(self, sequences: np.ndarray) -> Observations:
        """Some of the sequences, on the same matrix; an index may occur several times."""
        positions = self.positions(sequences)
        bounds = np.concatenate([[0], np.cumsum(np.diff(self.bounds)[sequences])])
        rows_repeat = self.rows_repeat or len(np.unique(sequences)) < len(sequences)
        return Observations(self.matrix, self.rows[positions], bounds, rows_repeat)

    def positions(self, sequences: np.ndarray) -> np.ndarray:
        """The positions of some sequences, one after the other."""
        return np.concatenate([np.arange(self.bounds[i], self.bounds[i + 1]) for i in sequences])

    @property
    def n_positions(self) -> int:
        """Number of positions in all sequences."""
        return len(self.rows)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """``matrix @ weights`` for weights of shape (n_columns, C); columns of zero weight are not read."""
        used = np.flatnonzero(np.any(weights, axis=1))
        if len(used) == 0:
            return np.zeros((self.matrix.shape[0], weights.shape[1]))
        whole = len(used) == self.n_columns
        if sparse.issparse(self.matrix):
            # Choosing columns of a CSR matrix costs more than multiplying their zeros.
            return np.asarray(self.matrix @ weights)
        out = np.empty((self.matrix.shape[0], weights.shape[1]))
        for here in self._blocks():
            block = self.matrix[here] if whole else self.matrix[here, used]
            np.matmul(block.astype(np.float64, copy=False), weights[used], out=out[here])
        return out

    def transpose_dot(self, values: np.ndarray) -> np.ndarray:
        """``matrix.T @ values`` for values of shape (m, C)."""
        if sparse.issparse(self.matrix):
            return np.asarray(self.matrix.T @ values)
        total = np.zeros((self.n_columns, values.shape[1]))
        for here in self._blocks():
            total += self.matrix[here].astype(np.float64, copy=False).T @ values[here]
        return total

    def squared_transpose_dot(self, values: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """``((matrix - centre) ** 2).T @ values`` for values of shape (m, C) and a centre of every column.

        Columns are centred before they are squared: for columns far from zero, a difference of squares is rounding.
        """
        if not sparse.issparse(self.matrix):
            total = np.zeros((self.n_columns, values.shape[1]))
            for here in self._blocks():
                departure = self.matrix[here] - centre
                departure *= departure
                total += departure.T @ values[here]
            return total
        squares = self.matrix.astype(np.float64)
        squares.data = (squares.data - centre[squares.indices]) ** 2
        stored = np.bincount(squares.indices, minlength=self.n_columns)
        product = np.asarray(squares.T @ values)
        squares.data = np.ones_like(squares.data)
        zeros = np.maximum(values.sum(axis=0) - squares.T @ values, 0.0)
        zeros[stored == self.matrix.shape[0]] = 0.0
        return product + centre[:, None] ** 2 * zeros

    @cached_property
    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest value of every column."""
        if self.n_columns == 0:
            return np.zeros(0), np.zeros(0)
        lowest, highest = self.matrix.min(axis=0), self.matrix.max(axis=0)
        if sparse.issparse(self.matrix):
            lowest, highest = lowest.toarray().ravel(), highest.toarray().ravel()
        return np.asarray(lowest, dtype=np.float64), np.asarray(highest, dtype=np.float64)

    def ranges(self) -> np.ndarray:
        """The largest less the smallest value of every column; one for columns that do not vary."""
        lowest, highest = self.extremes
        return np.where(self.varies(), highest - lowest, 1.0)

    @cached_property
    def row_shares(self) -> np.ndarray:
        """The share of positions that have each row of the matrix."""
        return np.bincount(self.rows, minlength=self.matrix.shape[0]) / self.n_positions

    def scales(self) -> np.ndarray:
        """The scale of each column; one for columns that do not vary.

        A column with one value at half of the positions or more has the root mean square of its departures from that
        value: the range, if it is binary. Any other column has twice its standard deviation, which agrees for a binary
        column that is on half of the time; outliers then have little effect.
        """
        if not sparse.issparse(self.matrix):
            scales = self._dense_scales(self.matrix)
        else:
            departing = self.row_shares @ (self.matrix != 0).astype(np.float64)
            squares = self.row_shares @ self.matrix.astype(np.float64).power(2)
            scales = np.sqrt(squares / np.where(departing > 0, departing, 1.0))
            # At most half of their values are zero, so a dense copy at most doubles their memory.
            full = np.flatnonzero(departing > USUAL_SHARE)
            scales[full] = self._dense_scales(self.matrix[:, full].toarray())
        return np.where(self.varies() & (scales > 0), scales, 1.0)

    def _dense_scales(self, matrix: np.ndarray) -> np.ndarray:
        """Scales of the columns of a dense matrix that has the same rows."""
        n_columns = matrix.shape[1]
        step = max(LEAST_SAMPLE_SIZE, BLOCK_SIZE // max(1, n_columns))
        some = np.linspace(0, self.n_positions - 1, min(self.n_positions, SAMPLE_SIZE, step)).astype(np.intp)
        # A value that occurs half of the time is the median.
        usual = np.percentile(matrix[self.rows[some]].astype(np.float64), 50, axis=0, method="lower")
        departing, mean, squares = np.zeros((3, n_columns))
        for start in range(0, matrix.shape[0], step):
            here = slice(start, start + step)
            departure = matrix[here] - usual
            departing += self.row_shares[here] @ (departure != 0)
            mean += self.row_shares[here] @ departure
            squares += self.row_shares[here] @ departure**2
        deviations = 4.0 * np.maximum(squares - mean**2, 0.0)
        departures = squares / np.where(departing > 0, departing, 1.0)
        return np.sqrt(np.where(departing <= USUAL_SHARE, departures, deviations))

    def varies(self) -> np.ndarray:
        """Whether each column varies by more than rounding, and by enough for its square not to be zero."""
        lowest, highest = self.extremes
        return highest - lowest > np.maximum(LEAST_RANGE, LEAST_RELATIVE_RANGE * self.magnitudes())

    def magnitudes(self) -> np.ndarray:
        """The largest absolute value of every column."""
        lowest, highest = self.extremes
        return np.maximum(-lowest, highest)

    def first_copies(self) -> np.ndarray:
        """For every column the first column that equals it."""
        numbers: dict[bytes, int] = {}
        first: list[int] = []
        step = -(-self.n_columns // COLUMN_PARTS)
        for start in range(0, self.n_columns, step):
            columns = self.matrix[:, start : start + step].T
            for key in _row_bytes(columns.tocsr() if sparse.issparse(columns) else columns):
                first.append(numbers.setdefault(blake2b(key, digest_size=16).digest(), len(first)))
        return np.array(first, dtype=np.intp)

    def _blocks(self) -> Iterator[slice]:
        """Blocks of rows; all rows at once where no conversion is needed."""
        n = self.matrix.shape[0]
        step = n if self.matrix.dtype == np.float64 else max(1, BLOCK_SIZE // max(1, self.n_columns))
        return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _distinct_rows(matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    """For every row the number of its distinct row, and for every distinct row its first index."""
    numbers: dict[bytes, int] = {}
    rows = np.array([numbers.setdefault(key, len(numbers)) for key in _row_bytes(matrix)], dtype=np.int32)
    first = np.empty(len(numbers), dtype=np.intp)
    first[rows[::-1]] = np.arange(len(rows) - 1, -1, -1)
    return rows, first


def _row_bytes(matrix: Any) -> Iterator[bytes]:
    """The bytes of every row."""
    if sparse.issparse(matrix):
        data, indices, ends = matrix.data, matrix.indices, matrix.indptr
        pairs = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
        return (indices[a:b].tobytes() + data[a:b].tobytes() for a, b in pairs)
    return (row.tobytes() for row in (np.packbits(matrix, axis=1) if matrix.dtype == bool else matrix))


def check_magnitudes(observations: Observations, columns: np.ndarray, names: np.ndarray | None) -> None:
    """Refuse values that cannot be squared; ``columns`` are the indices of the matrix's columns in the fit."""
    large = columns[observations.magnitudes() > LARGEST]
    if len(large):
        raise ValueError(
            f"X holds values too large to be squared (beyond about {LARGEST:g}). Found in: "
            f"{quoted_columns(names, large)}. Rescale them."
        )


def check_offsets(observations: Observations, varies: np.ndarray, names: np.ndarray | None) -> None:
    """Refuse columns whose range is tiny compared with their values."""
    far = np.flatnonzero(varies & (observations.magnitudes() > MOST_OFFSET * observations.ranges()))
    if len(far):
        raise ValueError(
            f"Columns of X vary by less than {1 / MOST_OFFSET:g} of their values, too little for double precision: "
            f"{quoted_columns(names, far)}. Subtract a number near their mean, the same one in every sequence."
        )
