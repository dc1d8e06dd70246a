"""Columns most of whose rows have one value, as lists of their other entries, and products of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse


class Entries(NamedTuple):
    """Standardised columns as the entries that may differ from the ``base`` of a column, which its other rows have.

    The first three arrays have one item for each entry, in the order of the columns. Products are weighted: by one
    number for each entry and, for all rows together, by the totals of groups of rows. They take as long as there are
    entries and groups, and not rows.
    """

    column: np.ndarray
    rows: np.ndarray
    values: np.ndarray
    base: np.ndarray
    """Shape (b,)."""

    @classmethod
    def joined(cls, parts: Sequence[Entries]) -> Entries:
        """Columns one after the other."""
        counts = [len(part.base) for part in parts]
        before = np.repeat(np.cumsum([0, *counts[:-1]]), [len(part.rows) for part in parts])
        column, rows, values, base = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return cls(column + before, rows, values, base)

    def starts(self) -> np.ndarray:
        """Where the entries of each column start, and the end of the last, shape (b + 1,)."""
        return np.searchsorted(self.column, np.arange(len(self.base) + 1))

    def only(self, kept: np.ndarray) -> Entries:
        """Without some of the entries, whose rows need not have the base: they must not count."""
        return Entries(self.column[kept], self.rows[kept], self.values[kept], self.base)

    def part(self, start: int, stop: int) -> Entries:
        """Some of the columns."""
        some = slice(*np.searchsorted(self.column, [start, stop]).tolist())
        return Entries(self.column[some] - start, self.rows[some], self.values[some], self.base[start:stop])

    def sums(self, weights: np.ndarray, groups: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """Sums over each group of rows, shape (b, G); ``groups`` are those of the entries, ``totals`` are (G,)."""
        b, n_groups = len(self.base), len(totals)
        off = weights * (self.values - self.base[self.column])
        sums = np.bincount(self.column * n_groups + groups, weights=off, minlength=b * n_groups)
        return sums.reshape(b, n_groups) + self.base[:, None] * totals

    def squares(self, weights: np.ndarray, total: float) -> np.ndarray:
        """Sums of the squares over all rows, shape (b,)."""
        off = weights * (self.values**2 - self.base[self.column] ** 2)
        return np.bincount(self.column, weights=off, minlength=len(self.base)) + self.base**2 * total

    def products(self, weights: np.ndarray, total: float, n_rows: int) -> np.ndarray:
        """Products of each two columns, shape (b, b)."""
        off, starts, shape = self.values - self.base[self.column], self.starts(), (len(self.base), n_rows)
        beside = sparse.csr_array((off, self.rows, starts), shape=shape)
        weighted = sparse.csr_array((weights * off, self.rows, starts), shape=shape)
        sums = np.bincount(self.column, weights=weights * off, minlength=len(self.base))
        across = np.outer(self.base, sums + 0.5 * total * self.base)
        return np.asarray((weighted @ beside.T).toarray() + across + across.T)
