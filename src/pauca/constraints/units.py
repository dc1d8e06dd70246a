"""The units of choice: columns, or groups of columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pauca.wording import column_names


@dataclass(frozen=True, eq=False)
class Units:
    """The units there are to choose from.

    Where there are several outputs or classes, a unit owns the coefficients of its columns for all of them.
    """

    members: np.ndarray | tuple[np.ndarray, ...]
    """Columns of each unit; an array of one column per unit where every unit is a single column."""
    labels: np.ndarray | None
    """Names of the groups, in the order of the units; None where units are columns."""
    owner: np.ndarray
    """Unit of every column, shape (d,)."""

    @classmethod
    def columns(cls, n_features: int) -> Units:
        """Every column a unit of its own."""
        every = np.arange(n_features)
        return cls(every, None, every)

    @classmethod
    def groups(cls, label_of_column: np.ndarray) -> Units:
        """All columns of one label a unit; labels are put in order and need not be contiguous."""
        labels, owner = np.unique(label_of_column, return_inverse=True)
        order = np.argsort(owner, kind="stable")
        starts = np.searchsorted(owner[order], np.arange(1, len(labels)))
        return cls(tuple(np.split(order, starts)), labels, owner)

    def spread(self, owner: np.ndarray, names: Any) -> Units:
        """The same units where their columns became any number of others; ``owner`` says of which each came.

        Units that were columns are called by their ``names``.
        """
        if self.single and len(owner) == len(self) and np.array_equal(owner, np.arange(len(owner))):
            return self
        labels = np.array(column_names(names, range(len(self)))) if self.labels is None else self.labels
        of_column = self.owner[owner]
        order = np.argsort(of_column, kind="stable")
        starts = np.searchsorted(of_column[order], np.arange(1, len(self)))
        return Units(tuple(np.split(order, starts)), labels, of_column)

    @property
    def single(self) -> bool:
        """Whether every unit is one column."""
        return self.labels is None

    def __len__(self) -> int:
        return len(self.members)

    def of(self, chosen: Iterable[int]) -> np.ndarray:
        """The columns of some units, one unit after the other."""
        if isinstance(self.members, np.ndarray):
            return self.members[np.fromiter(chosen, dtype=np.intp)]
        parts = [self.members[unit] for unit in chosen]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.intp)

    def sizes(self) -> np.ndarray:
        """Number of columns of every unit."""
        if isinstance(self.members, np.ndarray):
            return np.ones(len(self), dtype=np.intp)
        return np.array([len(columns) for columns in self.members], dtype=np.intp)

    def relative_sizes(self) -> np.ndarray:
        """Number of columns of every unit over that of the smallest, those without columns aside."""
        sizes = np.maximum(self.sizes(), 1)
        return np.asarray(sizes / sizes.min(initial=sizes.max(initial=1)))

    def only(self, usable: np.ndarray) -> Units:
        """The same units without the columns that cannot be used; those of one column stay as they are."""
        if isinstance(self.members, np.ndarray):
            return self
        return Units(tuple(columns[usable[columns]] for columns in self.members), self.labels, self.owner)

    def totals(self, per_column: np.ndarray) -> np.ndarray:
        """Sums over the columns of every unit; ``per_column`` has shape (..., d)."""
        if self.single:
            return per_column
        if per_column.ndim == 1:
            return np.bincount(self.owner, weights=per_column, minlength=len(self))[: len(self)]
        return np.stack([self.totals(row) for row in per_column])

    def any(self, per_column: np.ndarray) -> np.ndarray:
        """Whether something holds for some column of each unit."""
        return per_column > 0 if self.single else self.totals(per_column.astype(np.float64)) > 0

    def key(self) -> tuple[Any, ...]:
        """Identifies these units."""
        return (True, len(self)) if self.single else (False, self.owner.tobytes())
