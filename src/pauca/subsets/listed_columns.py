"""Columns most of whose rows have one value, as lists of their other entries, and products of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pauca.design import Entries


@dataclass(frozen=True, eq=False)
class ListedColumns:
    """Several columns; the first three arrays have one item for each entry, in the order of the columns.

    Products are weighted: by one number for each entry and, for all rows together, by the totals of groups of rows.
    They take as long as there are entries and groups, and not rows.
    """

    column: np.ndarray
    rows: np.ndarray
    values: np.ndarray
    base: np.ndarray
    """The value of all other rows, one for each column, shape (b,)."""

    @classmethod
    def of(cls, columns: Sequence[Entries]) -> ListedColumns:
        """Columns one after the other."""
        return cls(
            np.repeat(np.arange(len(columns)), [len(column.rows) for column in columns]),
            np.concatenate([column.rows for column in columns]),
            np.concatenate([column.values for column in columns]),
            np.array([column.base for column in columns]),
        )

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
        b = len(self.base)
        off = self.values - self.base[self.column]
        starts = np.concatenate([[0], np.bincount(self.column, minlength=b).cumsum()])
        beside = sparse.csr_array((off, self.rows, starts), shape=(b, n_rows))
        weighted = sparse.csr_array((weights * off, self.rows, starts), shape=(b, n_rows))
        sums = np.bincount(self.column, weights=weights * off, minlength=b)
        across = np.outer(self.base, sums + 0.5 * total * self.base)
        return np.asarray((weighted @ beside.T).toarray() + across + across.T)
