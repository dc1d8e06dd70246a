"""Columns and rows of X as refits need them, and which columns are redundant beside others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from pauca.objectives import Rows, SmoothObjective, split
from pauca.tolerances import COPY_ABOVE, DEPENDENT_BELOW

# Standardised columns are kept for reuse: this many bytes, or at least so many columns. Of long tables that would be
# more than all else: there columns are kept only for rows that are merged, where a refit takes less time than to
# standardise a column once more.
POOL_BYTES = 1 << 27
LEAST_POOLED = 32

# Columns are gathered while those taken at once are about this many numbers: of long tables many would take more memory
# than all else.
GATHERED_NUMBERS = 1 << 22

# Columns with more distinct values than this among the first few times as many rows leave hardly any rows alike.
MOST_VALUES = 64

# Columns of length one whose correlation c is at least ``COPY_ABOVE`` are no further than ``sqrt(2 (1 - c))`` apart,
# and so are their products with a direction; rounding adds far less than this.
PROBES_WITHIN = float(np.sqrt(2.0 * (1.0 - COPY_ABOVE))) + 1e-7


S = TypeVar("S", list[Any], Sequence[int], np.ndarray)


def few_at_a_time(items: S, n_rows: int) -> Iterator[S]:
    """Columns of so many rows in parts that may be gathered at once; or a line for each of them, in the same parts."""
    at_once = max(1, GATHERED_NUMBERS // n_rows)
    for start in range(0, len(items), at_once):
        yield items[start : start + at_once]


def coded(column: np.ndarray) -> tuple[np.ndarray, int] | None:
    """The values of a column coded as 0, 1, ... and their number; None where most of the first values are distinct."""
    values = np.unique(column[: 4 * MOST_VALUES])
    if len(values) > MOST_VALUES:
        return None
    # Most columns have no further values: to look them up takes a fraction of the time of sorting.
    codes = values.searchsorted(column)
    if (values.take(codes, mode="clip") != column).any():
        values, codes = np.unique(column, return_inverse=True)
    return codes, len(values)


class ColumnCache:
    """Standardised columns gathered from X, one to a row, after a row of ones if there is an intercept."""

    def __init__(self, objective: SmoothObjective) -> None:
        self._objective = objective
        n_rows = objective.design.n_rows
        self._capacity = max(LEAST_POOLED, POOL_BYTES // (8 * n_rows))
        self._long = self._capacity == LEAST_POOLED
        self._positions: dict[int, int] = {}
        # Of a large array the memory is taken only as it is filled; one that grew would be held twice.
        self._rows = np.empty((self._capacity if self._long else min(16, self._capacity), n_rows))
        self._codes: dict[int, tuple[np.ndarray, int] | None] = {}
        self._probes: dict[int, float] = {}
        self._latest: list[tuple[tuple[int, ...], np.ndarray | None, np.ndarray]] = []
        """What was gathered last: units, rows and columns. Half of all times the same is asked for again."""

    def gather(self, units: Iterable[int], rows: Rows | None = None) -> np.ndarray:
        """Ones, if there is an intercept, and the columns of some units, on some rows: shape (q, G)."""
        units, some = tuple(units), None if rows is None else rows.first
        for of_units, of_rows, columns in self._latest:
            if of_rows is some and of_units == units:
                return columns
        gathered = self._gathered(units, some)
        gathered.flags.writeable = False
        self._latest = [(units, some, gathered), *self._latest[:1]]
        return gathered

    def _gathered(self, units: tuple[int, ...], some: np.ndarray | None) -> np.ndarray:
        features, free = self._objective.units.of(units).tolist(), self._objective.free
        gathered = np.empty((free + len(features), self._rows.shape[1] if some is None else len(some)))
        gathered[:free] = 1.0
        if some is None and self._long:
            self._standardise(features, gathered[free:])
        else:
            self._copy(features, some, gathered[free:])
        return gathered

    def _copy(self, features: list[int], rows: np.ndarray | None, out: np.ndarray) -> None:
        """Columns that are kept, or are kept now."""
        missing = [j for j in features if j not in self._positions]
        if missing:
            self._take(missing, features)
        positions = [self._positions[j] for j in features]
        if rows is None:
            np.take(self._rows, positions, axis=0, out=out, mode="clip")
            return
        kept = self._rows
        for position, column in zip(positions, out, strict=True):
            # The function of the same name takes three times as long for short columns.
            kept[position].take(rows, out=column, mode="clip")

    def _standardise(self, features: list[int], out: np.ndarray) -> None:
        """Columns of a long table, a few at a time."""
        n_rows = self._rows.shape[1]
        for some, rows in zip(few_at_a_time(features, n_rows), few_at_a_time(out, n_rows), strict=True):
            rows[:] = self._objective.design.columns(some)

    def split(self, rows: Rows, units: Iterable[int]) -> Rows:
        """Rows on which the columns of ``units`` are constant as well: merged ones split, or those with weight."""
        objective = self._objective
        features = objective.units.of(units).tolist()
        if not rows.merged or not features:
            return rows
        coded = [self._coded(feature) for feature in features]
        known = [one for one in coded if one is not None]
        found = split(rows, objective.y, objective.design.weights, known) if len(known) == len(coded) else None
        return found or self._unmerged

    @cached_property
    def _unmerged(self) -> Rows:
        return Rows.unmerged(self._objective.y, self._objective.design.weights)

    def _coded(self, feature: int) -> tuple[np.ndarray, int] | None:
        """The values of a column coded as 0, 1, ..., and their number; None where most values are distinct."""
        if feature not in self._codes:
            if feature not in self._positions:
                self._take([feature], [feature])
            self._codes[feature] = coded(self._rows[self._positions[feature]])
        return self._codes[feature]

    def _take(self, missing: list[int], needed: list[int]) -> None:
        """Standardise columns; where there is no room for them, the oldest that are not needed go."""
        known = len(self._positions)
        kept = set(needed)
        too_many = max(0, known + len(missing) - self._capacity)
        gone = [j for j in self._positions if j not in kept][:too_many]
        places = [self._positions.pop(j) for j in gone]
        places += range(known, known + len(missing) - len(places))
        if places[-1] >= len(self._rows):
            grown = np.empty((max(places[-1] + 1, min(2 * len(self._rows), self._capacity)), self._rows.shape[1]))
            grown[:known] = self._rows[:known]
            self._rows = grown
        n_rows = self._rows.shape[1]
        for some, at in zip(few_at_a_time(missing, n_rows), few_at_a_time(places, n_rows), strict=True):
            self._rows[at] = self._objective.design.columns(some)
        self._positions.update(zip(missing, places, strict=True))

    def is_redundant(self, unit: int, others: list[int]) -> bool:
        """Whether a unit is a linear combination of others or, with a ridge, a copy of one."""
        if not others:
            return False
        if self._objective.ridge:
            return self._objective.units.single and self._is_copy(unit, others)
        return self._depends(unit, others)

    def without_redundant(self, units: list[int]) -> list[int]:
        """Units without those that are redundant beside the ones before them."""
        return self._without_copies(units) if self._objective.ridge else self._independent(units)

    def _is_copy(self, unit: int, others: list[int]) -> bool:
        """Whether a unit of one column has the same column as another, up to its sign."""
        own = self._probed(unit)
        alike = [other for other in others if abs(self._probed(other) - own) <= PROBES_WITHIN]
        if not alike:
            return False
        z = self._weighted([*alike, unit])
        return bool(np.abs(z[:-1] @ z[-1]).max() >= COPY_ABOVE)

    def _probed(self, unit: int) -> float:
        """The product of a unit's column, scaled to length one, with a random direction: about equal for copies."""
        if unit not in self._probes:
            column = self.gather([unit])[self._objective.free]
            self._probes[unit] = abs(float(column @ self._direction))
        return self._probes[unit]

    @cached_property
    def _direction(self) -> np.ndarray:
        """A random direction, as columns whose plain products are the weighted ones have it."""
        direction = np.random.default_rng(0).normal(size=self._objective.design.n_rows)
        return direction / np.linalg.norm(direction) * self._root_weights

    @cached_property
    def _root_weights(self) -> np.ndarray:
        return np.sqrt(self._objective.design.weights)

    def _depends(self, unit: int, others: list[int]) -> bool:
        """Whether all columns of a unit are linear combinations of those of others."""
        z = self._weighted([*others, unit])
        new = len(self._objective.units.of([unit]))
        chosen, own = z[:-new], z[-new:]
        left = own - np.linalg.lstsq(chosen.T, own.T)[0].T @ chosen
        return bool(np.all(np.einsum("jn,jn->j", left, left) <= DEPENDENT_BELOW))

    def _independent(self, units: list[int]) -> list[int]:
        """Units without those all of whose columns depend linearly on columns before them."""
        features = self._objective.units.of(units)
        left = np.zeros(len(features))
        triangle: np.ndarray = np.linalg.qr(self._weighted(units).T, mode="r")  # type: ignore[assignment]
        left[: len(triangle)] = np.diag(triangle) ** 2
        independent = set(self._objective.units.owner[features[left > DEPENDENT_BELOW]].tolist())
        return [unit for unit in units if unit in independent]

    def _without_copies(self, units: list[int]) -> list[int]:
        """Units of one column without those that are copies of a column before them."""
        z = self._weighted(units)
        copies = np.any(np.triu(np.abs(z @ z.T) >= COPY_ABOVE, 1), axis=0)
        return [unit for unit, copy in zip(units, copies, strict=True) if not copy]

    def _weighted(self, units: list[int]) -> np.ndarray:
        """Columns whose plain products are the weighted ones, shape (q, n)."""
        return self.gather(units)[self._objective.free :] * self._root_weights
