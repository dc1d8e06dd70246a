"""Sums over the rows of a table in chunks, kept by parts of the rows: moments of any union of parts follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np

from pauca.design.chunks import chunk_sums
from pauca.design.chunks.base import Chunks

# Up to this many columns the first pass computes all products of columns; the matrix of a part takes 8 MB then. The
# products of wider tables would take longer than the few further passes that are needed without them.
WHOLE_UP_TO = 1024

# A sample of about so many numbers (32 MB) and at least so many rows, from which columns are guessed.
SAMPLED_NUMBERS = 1 << 22
LEAST_SAMPLED = 256

# Of wide tables the rows of so many guessed columns are computed in the first pass that needs one, if they take no more
# than this share of the memory.
GUESSED = 128
GUESSED_SHARE = 8


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows of a table, spread over all of it; which ones depends on the number of rows alone."""

    rows: np.ndarray
    """Ascending, shape (m,)."""
    X: np.ndarray
    """Shape (m, d), in the dtype of the table."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Means, variances (second moments without centring) and products with the target, on weights that sum to one."""

    mean: np.ndarray
    variance: np.ndarray
    with_target: np.ndarray | None
    """Means of the products of the columns, centred if they are, with the target, shape (d,)."""
    weight: float
    shift: np.ndarray
    """The means less the point about which sums are taken, shape (D,)."""


class PartSums:
    """Sums about one point, near the means, over the rows of every part: they add up, and keep their digits.

    The point is the mean of the first chunk. A chunk with the share s of all rows cannot be further from the mean than
    ``1 / sqrt(s)`` spreads, so that at most the digits of the number of chunks are lost. Weights are None where all
    rows count alike; rows are one part where ``part`` is None.
    """

    def __init__(
        self,
        chunks: Chunks,
        weights: np.ndarray | None,
        *,
        target: np.ndarray | None,
        center: bool,
        part: np.ndarray | None = None,
        n_parts: int = 1,
    ) -> None:
        self.chunks, self.center, self.target = chunks, center, target
        self.n_parts = n_parts
        self._beside = target, weights, part
        d = chunks.n_features
        self.whole = d <= WHOLE_UP_TO and target is not None
        self._width = d + (target is not None)
        self.point = np.zeros(self._width)
        if center:
            with np.errstate(over="ignore", invalid="ignore"):
                point = chunks.first(chunk_sums.mean)
            self.point[:d] = np.where(np.isfinite(point), point, 0.0)
        sampled = None if self.whole else _sampled_rows(chunks)
        mask = None
        if sampled is not None:
            mask = np.zeros(chunks.n_rows, dtype=bool)
            mask[sampled] = True
        found = chunks.sum(
            chunk_sums.moments,
            self.point,
            n_parts,
            self.whole,
            target is None,
            beside=(*self._beside, mask),
            merge=chunk_sums.add_moments,
        )
        self.weight, self._first, self._second = found[:3]
        """The weights of all parts, and sums of columns and of products."""
        self._ranges = found[3:5] if target is None else None
        self.sample = None if sampled is None else Sample(sampled, np.concatenate(found[5]))
        if self.whole:
            self._second = chunk_sums.unpacked(self._second, self._width)
        self._rows: dict[int, np.ndarray] = {}
        self._lock = Lock()

    def moments(self, share: np.ndarray) -> Moments:
        """Moments of the rows of all parts, each part weighted by its ``share``."""
        d = self.chunks.n_features
        weight, first = float(share @ self.weight), share @ self._first
        shift = first / weight if self.center else np.zeros(self._width)
        second = self._diagonal(share) / weight - shift**2
        with_target = None
        if self.target is not None:
            products = share @ self._second[:, -1] / weight
            with_target = (products - shift * shift[-1])[:d]
        return Moments((self.point + shift)[:d], np.maximum(second, 0.0)[:d], with_target, weight, shift)

    def _diagonal(self, share: np.ndarray) -> np.ndarray:
        second = np.einsum("pii->pi", self._second) if self.whole else self._second[:, 0]
        return share @ second

    def products(self, share: np.ndarray, moments: Moments, features: np.ndarray) -> np.ndarray:
        """Means of the products of some columns with all, and with the target: shape (b, D), centred if they are."""
        rows = np.tensordot(share, self.rows(features), 1)
        rows /= moments.weight
        rows -= moments.shift[features, None] * moments.shift
        return rows

    def rows(self, features: np.ndarray) -> np.ndarray:
        """Sums of the products of some columns with all, about the point, of every part: shape (parts, b, D).

        Those that are not known take a pass, which computes the guessed ones as well.
        """
        if self.whole:
            return self._second[:, features]
        with self._lock:
            missing = [int(j) for j in features if int(j) not in self._rows]
            if missing:
                self._compute(sorted({*missing, *(j for j in self._guessed if j not in self._rows)}))
            found = [self._rows[int(j)] for j in features]
            return np.stack(found, axis=1) if found else np.zeros((self.n_parts, 0, self._width))

    def sums(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weight (parts,), sums (parts, b + 1) and products (parts, b + 1, b + 1) of some columns and the target."""
        every = np.append(features, self._width - 1)
        rows = self.rows(features)
        products = np.concatenate([rows[:, :, every], self._second[:, -1:, every]], axis=1)
        return self.weight, self._first[:, every], products

    def _compute(self, features: list[int]) -> None:
        (found,) = self.chunks.sum(
            chunk_sums.gram_rows, self.point, self.n_parts, np.array(features), beside=self._beside
        )
        self._rows.update(zip(features, found.transpose(1, 0, 2), strict=True))

    @cached_property
    def _guessed(self) -> list[int]:
        """Columns whose products are likely to be needed, by a forward selection on the sample."""
        if self.sample is None or self.target is None:
            return []
        row_bytes = 8 * self._width * self.n_parts
        count = min(GUESSED, self.chunks.memory // (GUESSED_SHARE * row_bytes))
        return guess_columns(self.sample.X, self.target[self.sample.rows], count)

    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and largest entry of every column."""
        point = self.point[: self.chunks.n_features]
        if self._ranges is None:
            below, above = self.chunks.sum(chunk_sums.ranges, point, merge=chunk_sums.widest)
            self._ranges = -below, above
        return point + self._ranges[0], point + self._ranges[1]


def _sampled_rows(chunks: Chunks) -> np.ndarray:
    count = min(chunks.n_rows, max(LEAST_SAMPLED, SAMPLED_NUMBERS // chunks.n_features))
    return np.sort(np.random.default_rng(0).choice(chunks.n_rows, count, replace=False))


# Beside each column that a forward selection takes, the next best ones are guessed: exchanges ask for them.
RUNNERS_UP = 3


def guess_columns(X: np.ndarray, y: np.ndarray, count: int) -> list[int]:
    """About ``count`` columns that a search for few is likely to meet, by orthogonal matching pursuit on some rows."""
    Z = X.astype(np.float64)
    Z -= Z.mean(axis=0)
    left = np.einsum("ij,ij->j", Z, Z)
    least = 1e-6 * left + np.finfo(float).tiny
    slope = (y - y.mean()) @ Z
    basis = np.zeros((0, len(Z)))
    found: dict[int, None] = {}
    while len(found) < count and len(basis) < min(count, len(Z) // 2):
        gains = np.where(left > least, slope * slope / np.maximum(left, least), -1.0)
        order = np.argpartition(-gains, RUNNERS_UP)[: RUNNERS_UP + 1] if len(gains) > RUNNERS_UP else np.arange(1)
        order = order[np.argsort(-gains[order], kind="stable")]
        best = int(order[0])
        if gains[best] <= 0:
            break
        found.update(dict.fromkeys(order.tolist()))
        new = Z[:, best] - basis.T @ (basis @ Z[:, best])
        new /= np.linalg.norm(new)
        along = new @ Z
        slope = slope - along * (slope[best] / along[best])
        left = left - along * along
        left[best] = 0.0
        basis = np.vstack([basis, new])
    return list(found)[:count]
