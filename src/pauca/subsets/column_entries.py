"""Columns most of whose rows have one value, as lists of their other entries, and products of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pauca.design import Design, Entries

# Rows of which the middle value of a column is taken. Where it is that of at least half of all rows, only the others
# are looked at one by one.
SAMPLED_ROWS = 31
COMMON_VALUE_SHARE = 0.5

# Columns that were looked at are kept: this many bytes.
KEPT_BYTES = 1 << 26


class ColumnEntries:
    """Which columns have mostly one value, and their entries; those that are looked at again and again are kept."""

    def __init__(self, design: Design) -> None:
        self._design = design
        self._stored = design.stored()
        self._whole = np.zeros(design.n_features, dtype=bool)
        """Columns that are known to have many values."""
        self._kept: dict[int, Entries] = {}
        self._left = KEPT_BYTES

    def columns(self, features: np.ndarray) -> np.ndarray:
        """Whole standardised columns, shape (b, n)."""
        return self._design.columns(features)

    def numbers(self, features: np.ndarray) -> np.ndarray:
        """How many numbers of each column have to be looked at, at most, shape (b,)."""
        return np.where(self._mostly_zero(features), self._stored[features], self._design.n_rows)

    def parts(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, list[Entries]]:
        """Mask of the columns with many values, these columns if they are at hand, and the entries of the others."""
        others = features[~self._whole[features]].tolist()
        missing = np.array([j for j in others if j not in self._kept], dtype=np.intp)
        if not len(missing):
            return self._whole[features], None, [self._kept[j] for j in others]
        zeros = self._mostly_zero(missing)
        new = dict(zip(missing[zeros].tolist(), self._stored_entries(missing[zeros]), strict=True))
        unknown, z = missing[~zeros], None
        if len(unknown):
            z, based, entries = self._read(unknown)
            self._whole[unknown] = ~based
            new.update(zip(unknown[based].tolist(), entries, strict=True))
            z = z[~based] if len(unknown) == len(features) else None
        found = [new[j] if j in new else self._kept[j] for j in others if j in new or j in self._kept]
        self._keep(new)
        return self._whole[features], z, found

    def _mostly_zero(self, features: np.ndarray) -> np.ndarray:
        """Mask of the columns of sparse data whose common value is zero."""
        return self._stored[features] <= COMMON_VALUE_SHARE * self._design.n_rows

    def _keep(self, new: dict[int, Entries]) -> None:
        needed = 16 * sum(len(column.rows) for column in new.values())
        if needed > self._left:
            self._kept, self._left = {}, KEPT_BYTES
        if needed <= self._left:
            self._kept |= new
            self._left -= needed

    def _stored_entries(self, features: np.ndarray) -> list[Entries]:
        """The entries of columns of sparse data, which are not made dense for it."""
        weighted = self._design.weights > 0
        found = self._design.entries(features)
        # Rows without weight may hold anything.
        return found if weighted.all() else [one.only(weighted[one.rows]) for one in found]

    def _read(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[Entries]]:
        """Columns, a mask of those with mostly one value, and the entries of these."""
        z, weighted = self._design.columns(features), self._design.weights > 0
        n_rows = z.shape[1]
        sample = np.unique(np.linspace(0, n_rows - 1, SAMPLED_ROWS).astype(np.intp))
        base = np.sort(z[:, sample], axis=1)[:, len(sample) // 2]
        differs = z != base[:, None]
        based = differs.sum(axis=1) <= COMMON_VALUE_SHARE * n_rows
        few, base = np.flatnonzero(based), base[based]
        # Rows without weight may hold anything.
        column, row = np.nonzero(differs[few] & weighted)
        ends = np.cumsum(np.bincount(column, minlength=len(few)))[:-1]
        parts = zip(np.split(row, ends), np.split(z[few[column], row], ends), base.tolist(), strict=True)
        return z, based, [Entries(*part) for part in parts] if len(few) else []


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
