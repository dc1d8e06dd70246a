"""A design of a table in chunks: moments from one pass, and every other operation from them or from a further pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from pauca.design.base import WIDE_NUMBERS, StandardisedColumns, row_blocks
from pauca.design.chunks import chunk_sums
from pauca.design.chunks.base import ChunkError, Chunks
from pauca.design.chunks.moments import PartSums, Sample

# Of estimated correlations those within the noise of the sample are set to zero, as by dense designs.
NOISE = 3.5


class ChunkedDesign(StandardisedColumns):
    """Operations on a table that is read chunk by chunk.

    Products of columns, and those with the announced target, come from sums that designs of all folds share. Other
    products take a pass over the table each. Row weights may be a function that makes them: those of many folds, of
    many rows, take more memory than all else.
    """

    def __init__(self, sums: PartSums, share: np.ndarray, weights: np.ndarray | Callable[[], np.ndarray]) -> None:
        chunks = sums.chunks
        self.n_rows, self.n_features, self.nbytes = chunks.n_rows, chunks.n_features, chunks.nbytes
        self.sums, self.share, self._chunks = sums, share, chunks
        self._moments = sums.moments(share)
        super().__init__(self._moments.mean, self._moments.variance, weights, center=sums.center)

    @classmethod
    def of(cls, chunks: Chunks, weights: np.ndarray, *, center: bool, target: np.ndarray | None) -> ChunkedDesign:
        """The design of all rows."""
        sums = PartSums(chunks, unless_uniform(weights), target=target, center=center)
        return cls(sums, np.ones(1), weights)

    @property
    def sample(self) -> Sample | None:
        """Some rows, of a table that is too wide for all products, or of one without a target."""
        return self.sums.sample

    def correlate(self, target: np.ndarray) -> np.ndarray:
        if self._is_announced(target):
            assert self._moments.with_target is not None
            return self._moments.with_target * self._inverse_spread
        return self.products(self._weighted(target)[None])[0]

    def _is_announced(self, target: np.ndarray) -> bool:
        """Whether this is the target of the first pass; with centred columns but for a constant."""
        known = self.sums.target
        if known is None:
            return False
        low, high, largest = np.inf, -np.inf, 0.0
        for rows in row_blocks(self.n_rows, 1, WIDE_NUMBERS):
            difference = target[rows] - known[rows]
            low, high = min(low, difference.min()), max(high, difference.max())
            largest = max(largest, np.abs(target[rows]).max(), np.abs(known[rows]).max())
        if not self._center:
            return low == high == 0
        return bool(high - low <= 4 * np.finfo(float).eps * largest)

    def gram(self, features: Sequence[int] | np.ndarray) -> np.ndarray:
        features = np.asarray(features, dtype=np.intp)
        product = self.sums.products(self.share, self._moments, features)[:, : self.n_features]
        product *= self._inverse_spread[features, None]
        product *= self._inverse_spread
        return product

    def compute_all_products(self) -> None:
        """Have the products of all columns at hand, in one pass, for methods that start from all columns."""
        needed = 8 * self.sums.n_parts * self.n_features**2
        if not self.sums.whole and needed > self._chunks.memory:
            raise ChunkError(
                f"method='backward' starts from all {self.n_features} columns, whose products take {needed / 1e9:.1f} "
                "GB, more than the memory for this table. Use a method that grows, such as 'exchange' or 'forward', or "
                "allow more: scan(..., memory=...)."
            )
        self.sums.rows(np.flatnonzero(self.usable))

    def sample_gram(self, features: np.ndarray) -> np.ndarray:
        if self.sample is None:
            return self.gram(features)[:, features]
        block = self._standardise(self.sample.X[:, features].astype(np.float64), features)
        weights = self.weights[self.sample.rows]
        estimate = (block.T * (weights / max(weights.sum(), np.finfo(float).tiny))) @ block
        return np.where(np.abs(estimate) < NOISE / np.sqrt(len(block)), 0.0, estimate)

    def blocks(self, features: Sequence[int] | np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        features = np.asarray(features, dtype=np.intp)
        for rows, block in self._chunks.map(chunk_sums.take, features=features):
            yield rows, self._standardise(block.astype(np.float64), features)

    def products(self, left: np.ndarray) -> np.ndarray:
        (product,) = self._chunks.sum(chunk_sums.products, self.mean, beside=(left,))
        product *= self._inverse_spread
        return product

    def squares(self, weights: np.ndarray, sums: np.ndarray | None = None) -> np.ndarray:
        (found,) = self._chunks.sum(chunk_sums.squares, self.mean, beside=(weights,))
        found *= self._inverse_spread**2
        return found

    def scores(self, coef: Any) -> Iterator[tuple[slice, np.ndarray]]:
        dense = coef.toarray() if issparse(coef) else np.asarray(coef)
        used = np.flatnonzero(dense.any(axis=1))
        if not len(used):
            yield slice(0, self.n_rows), np.zeros((self.n_rows, dense.shape[1]))
            return
        yield from self._chunks.map(chunk_sums.scores, dense[used], self.mean[used], features=used)

    def _range(self) -> tuple[np.ndarray, np.ndarray]:
        return self.sums.ranges()


def unless_uniform(weights: np.ndarray) -> np.ndarray | None:
    """Row weights, or None where all rows have the same: those need not be read, nor sent."""
    return None if weights.min() == weights.max() else weights
