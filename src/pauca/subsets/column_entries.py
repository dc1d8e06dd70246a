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

    def parts(self, features: np.ndarray) -> list[tuple[np.ndarray, Entries | np.ndarray | None]]:
        """Places of some features and the entries of these; of those with many values the columns, if at hand."""
        zeros = self._mostly_zero(features)
        places, found = np.flatnonzero(zeros), list[tuple[np.ndarray, Entries | np.ndarray | None]]()
        if len(places):
            found.append((places, self._stored_entries(features[places])))
        if len(places) == len(features):
            return found
        others = np.flatnonzero(~zeros)
        z, known = self._look_at(features[others])
        based = ~self._whole[features[others]]
        if based.any():
            found.append((others[based], Entries.joined([known[j] for j in features[others[based]].tolist()])))
        if not based.all():
            found.append((others[~based], z))
        return found

    def _look_at(self, features: np.ndarray) -> tuple[np.ndarray | None, dict[int, Entries]]:
        """Columns with many values, if at hand, and the entries of others, of features that have to be read for it."""
        known = {j: self._kept[j] for j in features.tolist() if j in self._kept}
        unknown = np.array([j for j in features[~self._whole[features]].tolist() if j not in known], dtype=np.intp)
        if not len(unknown):
            return None, known
        z, based, entries = self._read(unknown)
        self._whole[unknown] = ~based
        new = {j: entries.part(at, at + 1) for at, j in enumerate(unknown[based].tolist())}
        self._keep(new)
        return z[~based] if len(unknown) == len(features) else None, known | new

    def _mostly_zero(self, features: np.ndarray) -> np.ndarray:
        """Mask of the columns of sparse data whose common value is zero."""
        return self._stored[features] <= COMMON_VALUE_SHARE * self._design.n_rows

    def _keep(self, new: dict[int, Entries]) -> None:
        needed = 24 * sum(len(column.rows) for column in new.values())
        if needed > self._left:
            self._kept, self._left = {}, KEPT_BYTES
        if needed <= self._left:
            self._kept |= new
            self._left -= needed

    def _stored_entries(self, features: np.ndarray) -> Entries:
        """The entries of columns of sparse data, which are not made dense for it."""
        found, weighted = self._design.entries(features), self._design.weights > 0
        # Rows without weight may hold anything.
        return found if weighted.all() else found.only(weighted[found.rows])

    def _read(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray, Entries]:
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
        return z, based, Entries(column, row, z[few[column], row], base)
