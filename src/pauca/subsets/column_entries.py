"""Columns most of whose rows have one value, as lists of their other entries."""

from __future__ import annotations

import numpy as np

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
