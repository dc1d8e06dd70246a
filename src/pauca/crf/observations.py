"""What was observed: sequences as one matrix, and which of its rows are alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse

# Rows are gathered into patterns where that leaves at most this share of them; a sample of rows tells whether to try.
WORTH_GATHERING = 0.5
SAMPLE = 2048

# Rows that are not in double precision are brought there so many numbers at a time, not as a whole.
NUMBERS_AT_A_TIME = 1 << 20

# A column is at rest while it shows one value at all positions but this share; so many rows at least tell which.
AT_REST = 0.5
LEAST_SAMPLE = 64

# A column whose values differ by no more than this is constant: the square would be zero. So is one whose values differ
# by no more than this share of them, which is next to nothing but rounding.
DOES_NOT_VARY = 1e-150
ROUNDING = 1e-13

# Columns are compared in so many parts: a sparse matrix is turned around part by part, not as a whole.
PARTS = 16


@dataclass(frozen=True, eq=False)
class Observations:
    """Positions of several sequences, one after the other.

    Binary sensors show the same few patterns again and again. Scores are then computed once for every pattern, and what
    flows back is summed by pattern before it meets the matrix: both become small products.

    Attributes
    ----------
    matrix : ndarray or CSR matrix of shape (m, n_columns)
        Distinct patterns in the order in which they first occur, or all rows as they are.
    rows : ndarray of int32, shape (n,)
        The row of the matrix that each position shows.
    bounds : ndarray of int64, shape (n_sequences + 1,)
        Sequence i has the positions from ``bounds[i]`` up to but without ``bounds[i + 1]``.
    gathered : bool
        Whether rows stand for patterns: several positions may show the same one.
    """

    matrix: Any
    rows: np.ndarray
    bounds: np.ndarray
    gathered: bool

    @classmethod
    def plain(cls, matrix: Any, bounds: np.ndarray) -> Observations:
        """Every position with a row of its own."""
        return cls(matrix, np.arange(matrix.shape[0], dtype=np.int32), bounds.astype(np.int64), False)

    @classmethod
    def gather(cls, matrix: Any, bounds: np.ndarray) -> Observations:
        """Positions gathered into patterns where that pays."""
        n = matrix.shape[0]
        sample = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.intp))
        # A sample meets few rows twice even where the whole does; what has next to none there has few anywhere.
        if len(_first_seen(matrix[sample])[1]) > (1 + WORTH_GATHERING) / 2 * len(sample):
            return cls.plain(matrix, bounds)
        rows, first = _first_seen(matrix)
        if len(first) > WORTH_GATHERING * n:
            return cls.plain(matrix, bounds)
        patterns = matrix[first]
        patterns = patterns.astype(np.float64) if sparse.issparse(patterns) else np.asarray(patterns, dtype=np.float64)
        return cls(patterns, rows, bounds.astype(np.int64), True)

    def take(self, sequences: np.ndarray) -> Observations:
        """Some of the sequences, on the same matrix; one that is named several times occurs so often."""
        positions = self.positions(sequences)
        bounds = np.concatenate([[0], np.cumsum(np.diff(self.bounds)[sequences])])
        gathered = self.gathered or len(np.unique(sequences)) < len(sequences)
        return Observations(self.matrix, self.rows[positions], bounds, gathered)

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
        """``matrix @ weights`` for weights of shape (n_columns, C); columns without weight are not read."""
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

    def pull(self, mass: np.ndarray) -> np.ndarray:
        """``matrix.T @ mass`` for mass of shape (m, C)."""
        if sparse.issparse(self.matrix):
            return np.asarray(self.matrix.T @ mass)
        total = np.zeros((self.n_columns, mass.shape[1]))
        for here in self._blocks():
            total += self.matrix[here].astype(np.float64, copy=False).T @ mass[here]
        return total

    def pull_squares(self, mass: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """``((matrix - centre) ** 2).T @ mass`` for mass of shape (m, C) and a centre of every column.

        Centred first and squared then: of columns far from zero, squares less squares would leave nothing but rounding.
        """
        if not sparse.issparse(self.matrix):
            total = np.zeros((self.n_columns, mass.shape[1]))
            for here in self._blocks():
                away = self.matrix[here] - centre
                away *= away
                total += away.T @ mass[here]
            return total
        squares = self.matrix.astype(np.float64)
        squares.data = (squares.data - centre[squares.indices]) ** 2
        stored = np.bincount(squares.indices, minlength=self.n_columns)
        pulled = np.asarray(squares.T @ mass)
        squares.data = np.ones_like(squares.data)
        zeros = np.maximum(mass.sum(axis=0) - squares.T @ mass, 0.0)
        zeros[stored == self.matrix.shape[0]] = 0.0
        return pulled + centre[:, None] ** 2 * zeros

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
        return np.where(_differ(lowest, highest), highest - lowest, 1.0)

    @cached_property
    def often(self) -> np.ndarray:
        """The share of positions that show each row of the matrix."""
        return np.bincount(self.rows, minlength=self.matrix.shape[0]) / self.n_positions

    def spreads(self) -> np.ndarray:
        """By how much each column moves; one for columns that do not vary.

        A sensor that rests at one value at half of the positions or more moves by the root mean square of its
        departures from it: of a binary one that is the range. Any other moves by twice the standard deviation, as a
        binary one does that is on half of the time; a few values far out then matter little.
        """
        if not sparse.issparse(self.matrix):
            found = self._moves(self.matrix)
        else:
            lively = self.often @ (self.matrix != 0).astype(np.float64)
            squares = self.often @ self.matrix.astype(np.float64).power(2)
            found = np.sqrt(squares / np.where(lively > 0, lively, 1.0))
            # At most half of their values are zero, so that there is room for the others.
            full = np.flatnonzero(lively > AT_REST)
            found[full] = self._moves(self.matrix[:, full].toarray())
        return np.where(self.varies() & (found > 0), found, 1.0)

    def _moves(self, matrix: np.ndarray) -> np.ndarray:
        """By how much columns of a dense matrix with the same rows move."""
        n_columns = matrix.shape[1]
        step = max(LEAST_SAMPLE, NUMBERS_AT_A_TIME // max(1, n_columns))
        some = np.linspace(0, self.n_positions - 1, min(self.n_positions, SAMPLE, step)).astype(np.intp)
        # A value that is there half of the time is the median.
        rest = np.percentile(matrix[self.rows[some]].astype(np.float64), 50, axis=0, method="lower")
        lively, mean, squares = np.zeros((3, n_columns))
        for start in range(0, matrix.shape[0], step):
            here = slice(start, start + step)
            away = matrix[here] - rest
            lively += self.often[here] @ (away != 0)
            mean += self.often[here] @ away
            squares += self.often[here] @ away**2
        rests = lively <= AT_REST
        return np.sqrt(
            np.where(rests, squares / np.where(lively > 0, lively, 1.0), 4.0 * np.maximum(squares - mean**2, 0.0))
        )

    def varies(self) -> np.ndarray:
        """Whether the values of each column differ by as much as can be squared, and by more than rounding."""
        return _differ(*self.extremes)

    def magnitudes(self) -> np.ndarray:
        """The largest absolute value of every column."""
        return _magnitudes(*self.extremes)

    def twins(self) -> np.ndarray:
        """For every column the first that is the same."""
        seen: dict[bytes, int] = {}
        first: list[int] = []
        step = -(-self.n_columns // PARTS)
        for start in range(0, self.n_columns, step):
            columns = self.matrix[:, start : start + step].T
            for key in _keys(columns.tocsr() if sparse.issparse(columns) else columns):
                first.append(seen.setdefault(blake2b(key, digest_size=16).digest(), len(first)))
        return np.array(first, dtype=np.intp)

    def _blocks(self) -> Iterator[slice]:
        """The rows, a number at a time; all at once where nothing need be copied."""
        n = self.matrix.shape[0]
        step = n if self.matrix.dtype == np.float64 else max(1, NUMBERS_AT_A_TIME // max(1, self.n_columns))
        return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _magnitudes(lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    return np.maximum(-lowest, highest)


def _differ(lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    return highest - lowest > np.maximum(DOES_NOT_VARY, ROUNDING * _magnitudes(lowest, highest))


def _first_seen(matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    """For every row the number of its pattern, and for every pattern the row that showed it first."""
    seen: dict[bytes, int] = {}
    rows = np.array([seen.setdefault(key, len(seen)) for key in _keys(matrix)], dtype=np.int32)
    first = np.empty(len(seen), dtype=np.intp)
    first[rows[::-1]] = np.arange(len(rows) - 1, -1, -1)
    return rows, first


def _keys(matrix: Any) -> Iterator[bytes]:
    """The bytes of every row."""
    if sparse.issparse(matrix):
        data, indices, ends = matrix.data, matrix.indices, matrix.indptr
        pairs = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
        return (indices[a:b].tobytes() + data[a:b].tobytes() for a, b in pairs)
    return (row.tobytes() for row in (np.packbits(matrix, axis=1) if matrix.dtype == bool else matrix))
