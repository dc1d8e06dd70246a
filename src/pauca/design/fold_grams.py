"""Gram matrices of parts of the rows: those of all folds are sums of them, so X is read once for all folds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from threading import Lock

import numpy as np

from pauca.design.base import WIDE_NUMBERS, row_blocks

# Of designs this narrow every fold needs the whole Gram matrix. Of wider ones folds ask for different rows, about half
# of them in vain, and a row of all parts takes two to three times as long as one of a single fold: nothing is saved.
NARROW = 128


class RowParts:
    """The matrices ``sum_i v_i (x_i - mean) (x_i - mean)'`` over every part of the rows, computed once."""

    def __init__(self, X: np.ndarray, weights: np.ndarray, mean: np.ndarray, part: np.ndarray) -> None:
        self._X = X
        self._weights = weights
        self.mean = mean
        self._rows = [np.flatnonzero(part == number) for number in range(int(part.max()) + 1)]
        self._lock = Lock()

    def combined(self, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The sum of the matrices, each weighted by its ``share``, and that of ``v_i (x_i - mean)``."""
        with self._lock:
            products, sums = self._moments
        return np.tensordot(share, products, 1), share @ sums

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        width = self._X.shape[1]
        products, sums = np.zeros((len(self._rows), width, width)), np.zeros((len(self._rows), width))
        for number, rows in enumerate(self._rows):
            for here in row_blocks(len(rows), width, WIDE_NUMBERS):
                block = self._X[rows[here]] - self.mean
                weighted = block * self._weights[rows[here], None]
                products[number] += weighted.T @ block
                sums[number] += weighted.sum(axis=0)
        return products, sums


def parts_of_folds(weights: np.ndarray, folds: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    """The part of every row, and the share of each part in every fold, shape (folds, parts).

    ``folds`` are row weights, each zero or the same multiple of ``weights``. Rows that are in the same folds make a
    part. None where folds repeat rows, or where they overlap in so many ways that parts save nothing.
    """
    if not 1 < len(folds) <= 62:
        return None
    # A byte a row for the usual few folds, and temporary arrays of some rows only: there may be many.
    pattern: np.ndarray = np.zeros(len(weights), dtype=np.uint8 if len(folds) <= 8 else np.int64)
    total = np.zeros(len(folds))
    for bit, fold in enumerate(folds):
        least, most = np.inf, 0.0
        for rows in row_blocks(len(weights), 1, WIDE_NUMBERS):
            inside = fold[rows] > 0
            own = weights[rows][inside]
            ratio = fold[rows][inside] / own
            least, most = min(least, ratio.min(initial=np.inf)), max(most, ratio.max(initial=0.0))
            total[bit] += own.sum()
            pattern[rows] |= inside.astype(pattern.dtype) << bit
        if not 0 < most <= (1 + 1e-9) * least:
            return None
    patterns = np.unique(pattern)
    if len(patterns) > 2 * len(folds):
        return None
    part = np.empty(len(weights), dtype=np.int8)
    for rows in row_blocks(len(weights), 1, WIDE_NUMBERS):
        part[rows] = np.searchsorted(patterns, pattern[rows])
    members = (patterns[None].astype(np.int64) >> np.arange(len(folds))[:, None]) & 1
    return part, members / total[:, None]
