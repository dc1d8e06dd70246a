"""Units of choice, and limits on which of them may be chosen together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
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
        return self.totals(per_column.astype(np.float64)) > 0

    def key(self) -> tuple[Any, ...]:
        """Identifies these units."""
        return (self.single, self.owner.tobytes())


# A budget is kept to this share of it, so that prices such as 0.1 add up as people expect.
BUDGET_SLACK = 1e-9

# A unit without a price is ranked as if it cost this share of the most expensive.
NEARLY_FREE = 1e-9


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits on the choice of units, in arrays over all units; None where there is no such limit.

    Candidates are ranked by gain per price where there are prices, and removals by what they cost per price.
    """

    always: tuple[int, ...] = ()
    never: tuple[int, ...] = ()
    price: np.ndarray | None = None
    budget: float | None = None
    kind: np.ndarray | None = None
    """Units of one kind compete for ``most`` places."""
    most: int | None = None

    @property
    def trivial(self) -> bool:
        """Whether anything may be chosen with anything."""
        return not (self.always or self.never) and self.price is None and self.kind is None

    def relaxed(self) -> Limits:
        """The same without budget and places: what a search may pass through on its way."""
        return Limits(self.always, self.never, self.price)

    def addable(self, support: Sequence[int], n_units: int) -> np.ndarray:
        """Mask of the units that may be added to ``support``."""
        mask = np.ones(n_units, dtype=bool)
        mask[list(self.never)] = False
        mask[list(support)] = False
        if self.budget is not None and self.price is not None:
            mask &= self.price <= self._left(support)
        if self.kind is not None and self.most is not None:
            mask &= (self._counts(support) < self.most)[self.kind]
        return mask

    def startable(self, n_units: int) -> np.ndarray:
        """Mask of the units that some model within the limits holds."""
        mask = self.addable(self.always, n_units)
        mask[list(self.always)] = True
        return mask

    def exchangeable(self, support: Sequence[int], out: int, n_units: int) -> np.ndarray:
        """Mask of the units that may take the place of ``out``."""
        if out in self.always:
            return np.zeros(n_units, dtype=bool)
        mask = self.addable([unit for unit in support if unit != out], n_units)
        mask[out] = False
        return mask

    def exchanges(self, support: Sequence[int], n_units: int) -> np.ndarray:
        """Mask of all exchanges that are allowed: a line for each unit of ``support``, shape (k, n_units)."""
        mask = np.zeros((len(support), n_units), dtype=bool)
        for line, out in zip(mask, support, strict=True):
            line[:] = self.exchangeable(support, out, n_units)
        return mask

    def removable(self, support: Sequence[int]) -> np.ndarray:
        """Mask over ``support`` of what may be removed; while a kind has too many units, only those of such kinds."""
        mask = np.array([unit not in self.always for unit in support], dtype=bool)
        if self.kind is not None and self.most is not None and len(support):
            crowded = (self._counts(support) > self.most)[self.kind[list(support)]]
            if np.any(crowded & mask):
                mask &= crowded
        return mask

    def allows(self, support: Collection[int]) -> bool:
        """Whether a model of exactly these units keeps all limits."""
        if self.trivial:
            return True
        chosen = list(support)
        if not set(self.always) <= set(chosen) or set(self.never) & set(chosen):
            return False
        if self.budget is not None and self.price is not None and self._left(chosen) < 0:
            return False
        return self.kind is None or self.most is None or bool(np.all(self._counts(chosen) <= self.most))

    def per_price(self, gains: np.ndarray, units: Sequence[int] | slice = slice(None)) -> np.ndarray:
        """Gains, or losses, divided by the prices of their ``units``."""
        if self.price is None:
            return gains
        floor = NEARLY_FREE * float(self.price.max()) or 1.0
        return gains / np.maximum(self.price, floor)[units]

    def key(self) -> tuple[Any, ...]:
        """What tells these limits from others."""
        arrays = tuple(None if array is None else array.tobytes() for array in (self.price, self.kind))
        return (self.always, self.never, self.budget, self.most, *arrays)

    def _left(self, support: Sequence[int]) -> float:
        assert self.price is not None
        assert self.budget is not None
        return self.budget * (1 + BUDGET_SLACK) - float(self.price[list(support)].sum())

    def _counts(self, support: Sequence[int]) -> np.ndarray:
        assert self.kind is not None
        return np.bincount(self.kind[list(support)], minlength=int(self.kind.max()) + 1)
