"""What share of every column the columns of a model explain, found from that of a model nearby."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from pauca.design.base import CACHED_NUMBERS
from pauca.subsets.fit_cache import RecentTable
from pauca.tolerances import DEPENDENT_BELOW

# Shares are kept for so many models.
KEPT_SHARES = 6

# Models whose size is a multiple of this start from nothing: what was rounded on the way is forgotten there.
ANEW_EVERY = 32


class ProductRows(Protocol):
    """Products of columns, such as ``GramRows``."""

    def each(self, features: np.ndarray) -> list[np.ndarray]:
        """Products of each of some columns with all."""
        ...


class ExplainedShares:
    """``G_jS (G_SS + penalty)^-1 G_Sj`` for every column j and the columns S of a model; G are products of columns.

    All columns have length one. A model that differs from a known one by a column takes time in proportion to its size,
    and not to the square of it.
    """

    def __init__(self, rows: ProductRows, penalty: np.ndarray) -> None:
        self._rows = rows
        self._penalty = penalty
        self._known = RecentTable[np.ndarray]()

    def of(self, features: Sequence[int]) -> np.ndarray:
        """Of a model on some columns, shape (d,)."""
        key = frozenset(features)
        found = self._known.get(key)
        if found is None:
            near = min(self._known, key=lambda other: len(other ^ key), default=frozenset())
            if len(near ^ key) >= len(key) or not len(key) % ANEW_EVERY:
                near = frozenset()
            found, kept = self._known[near] if near else np.zeros(len(self._penalty)), sorted(near & key)
            found = found - self._more(kept, sorted(near - key))
            found += self._more(kept, sorted(key - near))
        self._known.keep(key, found, KEPT_SHARES)
        return found

    def _more(self, kept: list[int], others: list[int]) -> np.ndarray | float:
        """What others explain of every column beside those that are kept."""
        if not others:
            return 0.0
        features = np.array([*kept, *others])
        rows = self._rows.each(features)
        block = np.stack([row[features] for row in rows])
        block.flat[:: len(block) + 1] += self._penalty[features] + DEPENDENT_BELOW
        roots = np.linalg.inv(np.linalg.cholesky(block))[len(kept) :]
        more, step = np.empty(len(self._penalty)), max(1, CACHED_NUMBERS // len(rows))
        for some in (slice(start, start + step) for start in range(0, len(more), step)):
            half = roots @ np.stack([row[some] for row in rows])
            more[some] = np.einsum("pj,pj->j", half, half)
        return more
