"""The encoding of a raw table as columns of numbers, learned from some rows and applied to others.

A column of numbers keeps its name. A category such as ``city`` becomes a 0/1 column for each of its levels except the
most frequent one, the baseline: ``city=Lyon``, ``city=Nice``. Missing numbers are filled in with a median, missing
categories count as the baseline; or both get a column of their own, ``age is missing``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from pauca.tables.raw_columns import RawColumn, UnreadableColumn, column_at, is_frame, read_column, read_numbers
from pauca.tables.raw_table import RawTable
from pauca.wording import quoted

NUMBER, LEVEL, MISSING = "number", "level", "missing"


@dataclass(frozen=True)
class Term:
    """One column of numbers, and how it comes from a raw column.

    Attributes
    ----------
    name : str
    raw : str
        The raw column.
    kind : {"number", "level", "missing"}
        The number itself, 1 where the raw column holds ``level``, or 1 where it is missing.
    level : str, int, float or bool
    fill : float or None
        The value where the raw column is missing; None: there is none.
    """

    name: str
    raw: str
    kind: str = NUMBER
    level: Any = None
    fill: float | None = None


@dataclass(frozen=True)
class Unknown:
    """Levels in a raw column that its encoding does not know, in how many rows, and what they count as."""

    column: str
    levels: list[str]
    n_rows: int
    baseline: Any


@dataclass(frozen=True)
class ColumnEncoding:
    """How one raw column becomes columns of numbers.

    Attributes
    ----------
    name : str
    levels : tuple or None
        The levels of a category, the baseline first; None for numbers.
    fill : float or None
        What replaces a missing number; for categories 0, the baseline. None: missing values are an error.
    marks_missing : bool
        Whether there is a column that is 1 where the value is missing.
    copies : dict of level to str
        Levels without a column of numbers, since that of another raw column is the same in every row: its name. They
        count as the baseline.
    """

    name: str
    levels: tuple[Any, ...] | None = None
    fill: float | None = None
    marks_missing: bool = False
    copies: Mapping[Any, str] = field(default_factory=dict)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The columns of numbers."""
        if self.levels is None:
            found = [Term(self.name, self.name, NUMBER, None, self.fill)]
        else:
            levels = [level for level in self.levels[1:] if level not in self.copies]
            found = [Term(f"{self.name}={level}", self.name, LEVEL, level, self.fill) for level in levels]
        if self.marks_missing:
            found.append(Term(f"{self.name} is missing", self.name, MISSING))
        return tuple(found)

    @property
    def baseline(self) -> Any:
        """The level without a column of its own; None if there is no level at all."""
        return self.levels[0] if self.levels else None

    @classmethod
    def learn(cls, column: RawColumn, missing: str, weights: np.ndarray) -> ColumnEncoding:
        """The encoding of a column by the rows that have weight."""
        marks = missing == "category" and bool(np.any(column.missing & (weights > 0)))
        if column.numbers is not None:
            return cls(column.name, None, None if missing == "error" else median(column.numbers, weights), marks)
        known = column.codes >= 0  # type: ignore[operator]
        counts = np.bincount(column.codes[known], weights[known], len(column.levels))  # type: ignore[index]
        present = [place for place, count in enumerate(counts) if count > 0]
        # Sums of weights differ by rounding where counts are the same; the first level of these is the baseline.
        baseline = next((place for place in present if counts[place] >= counts.max() * (1 - 1e-12)), None)
        ordered = [] if baseline is None else [baseline, *(place for place in present if place != baseline)]
        levels = tuple(column.levels[place] for place in ordered)
        return cls(column.name, levels, None if missing == "error" else 0.0, marks)

    def without(self, copied: Mapping[Term, str]) -> ColumnEncoding:
        """The encoding without some of its levels and marks, by the names of what they are copies of."""
        levels = {term.level: name for term, name in copied.items() if term.kind == LEVEL}
        marks = self.marks_missing and not any(term.kind == MISSING for term in copied)
        return replace(self, copies=levels, marks_missing=marks) if copied else self

    def read(self, column: Any) -> RawColumn:
        """A column of another table, as numbers or levels as this encoding has them."""
        return (
            read_numbers(column, self.name) if self.levels is None else read_column(column, self.name, as_category=True)
        )

    def encoded(self, column: RawColumn, terms: Sequence[Term]) -> np.ndarray:
        """Values of some of the terms, shape (len(terms), n); NaN where a value is missing and has no replacement."""
        missing = column.missing
        values = np.empty((len(terms), len(column)))
        codes = None if self.levels is None else self._codes(column)
        for line, term in zip(values, terms, strict=True):
            if term.kind == MISSING:
                line[:] = missing
                continue
            line[:] = column.numbers if codes is None else codes == self.levels.index(term.level)  # type: ignore[union-attr]
            line[missing] = np.nan if term.fill is None else term.fill
        return values

    def unknown(self, column: RawColumn) -> Unknown | None:
        """The levels of a column that this encoding does not know; None if there are none."""
        if column.codes is None:
            return None
        held, counts = np.unique(column.codes[column.codes >= 0], return_counts=True)
        new = [place for place, code in enumerate(held) if self._place(column.levels[code]) is None]
        if not new:
            return None
        return Unknown(
            self.name, [str(column.levels[held[place]]) for place in new], int(counts[new].sum()), self.baseline
        )

    def _codes(self, column: RawColumn) -> np.ndarray:
        """Positions of the values of a column in the levels of this encoding; -1 for those that it does not know."""
        places = [self._place(level) for level in column.levels]
        table = np.array([*(-1 if place is None else place for place in places), -1], dtype=np.intp)
        return table[column.codes]

    def _place(self, level: Any) -> int | None:
        exact, as_text = self._places
        # Codes that were read as text in one table may be numbers in another.
        return exact.get(level, as_text.get(str(level)))

    @cached_property
    def _places(self) -> tuple[dict[Any, int], dict[str, int]]:
        exact = {level: place for place, level in enumerate(self.levels or ())}
        return exact, {str(level): place for level, place in exact.items()}


@dataclass(frozen=True)
class TableEncoding:
    """How a raw table becomes columns of numbers: the encodings of all its columns, in order."""

    columns: tuple[ColumnEncoding, ...]
    has_names: bool = True
    """Whether the raw columns have names of their own."""

    @classmethod
    def learn(cls, table: RawTable, missing: str, weights: np.ndarray | None = None) -> TableEncoding:
        """The encoding of a table by its rows that have weight."""
        weights = np.ones(table.shape[0]) if weights is None else weights
        found = cls(tuple(ColumnEncoding.learn(column, missing, weights) for column in table.columns), table.has_names)
        names = [term.name for term in found.terms]
        if len(set(names)) < len(names):
            twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
            raise ValueError(f"Columns have the name of a level of another column: {quoted(twice)}. Rename them.")
        return found

    def without_copies(self, table: RawTable, weights: np.ndarray, spared: Collection[str] = ()) -> TableEncoding:
        """The encoding without levels and marks that are those of an earlier column in every row that has weight.

        Such are "no internet service" in six columns at once. Where all levels of a column are among those of a finer
        one, as with country and city, both stay whole: either may be the one to choose. A column of numbers has none,
        only a mark, which one of another column in the same rows replaces. Columns that are ``spared``
        keep theirs, and are not a reason to leave out others.
        """
        rows, lines = weights > 0, []
        for encoding, column in zip(self.columns, table.columns, strict=True):
            marks = [term for term in encoding.terms if term.kind != NUMBER and encoding.name not in spared]
            found = encoding.encoded(column, marks)[:, rows] == 1.0
            lines.append({line.tobytes(): term for term, line in zip(marks, found, strict=True)})
        levels = [{line for line, term in own.items() if term.kind == LEVEL} for own in lines]
        columns, earlier = [], dict[bytes, list[int]]()
        for place, (encoding, own) in enumerate(zip(self.columns, lines, strict=True)):
            copied = {}
            for line, term in own.items():
                others = [one for one in earlier.get(line, []) if not _one_is_finer(levels[one], levels[place])]
                if others:
                    copied[term] = lines[others[0]][line].name
                else:
                    earlier.setdefault(line, []).append(place)
            columns.append(encoding.without(copied))
        return TableEncoding(tuple(columns), self.has_names)

    @cached_property
    def terms(self) -> list[Term]:
        """All columns of numbers."""
        return [term for column in self.columns for term in column.terms]

    @cached_property
    def owner(self) -> np.ndarray:
        """The raw column of every column of numbers."""
        return np.repeat(np.arange(len(self.columns)), [len(column.terms) for column in self.columns])

    @property
    def names(self) -> list[str]:
        """Names of the columns of numbers."""
        return [term.name for term in self.terms]

    @property
    def raw_names(self) -> list[str]:
        """Names of the raw columns."""
        return [column.name for column in self.columns]

    @property
    def has_categories(self) -> bool:
        """Whether some column is not numbers."""
        return any(column.levels is not None for column in self.columns)

    def renamed(self, names: Sequence[str]) -> TableEncoding:
        """The same encoding of columns with other names."""
        columns = (replace(column, name=name) for column, name in zip(self.columns, names, strict=True))
        return TableEncoding(tuple(columns), self.has_names)

    def encode(self, table: RawTable) -> np.ndarray:
        """The columns of numbers of a table that was read as the encoding's own."""
        return self._stack(zip(range(len(self.columns)), table.columns, strict=True), np.arange(len(self.terms)))

    def filled_from(self, table: RawTable, weights: np.ndarray) -> TableEncoding:
        """The same encoding with the medians of other rows: those that have weight. Levels stay as they are."""
        columns = [
            replace(encoding, fill=median(column.numbers, weights))  # type: ignore[arg-type]
            if encoding.levels is None and encoding.fill is not None and column.missing.any()
            else encoding
            for encoding, column in zip(self.columns, table.columns, strict=True)
        ]
        return TableEncoding(tuple(columns), self.has_names)

    def refilled(self, table: RawTable, X: np.ndarray, other: TableEncoding) -> np.ndarray:
        """The columns of numbers ``X`` with what another encoding fills in; X itself where that is the same."""
        places = np.searchsorted(self.owner, np.arange(len(self.columns)))
        changed = {
            int(place): (column, new.fill)
            for place, old, new, column in zip(places, self.columns, other.columns, table.columns, strict=True)
            if old.fill != new.fill
        }
        if not changed:
            return X
        X = X.copy(order="K")
        for place, (column, fill) in changed.items():
            X[column.missing, place] = fill
        return X

    def encode_rows(
        self, X: Any, used: Sequence[int] | np.ndarray, positions: Sequence[int] | None = None
    ) -> tuple[np.ndarray, list[Unknown]]:
        """Some columns of numbers of a raw table, and the levels in it that the encoding does not know.

        Parameters
        ----------
        X : frame or array
        used : indices of columns of numbers
        positions : where in X the raw columns are that these need, ascending; None: X has all raw columns in order

        Raises
        ------
        UnreadableColumn
            With the attribute ``column`` set to the name of the raw column.
        """
        used = np.asarray(used, dtype=np.intp)
        needed = np.unique(self.owner[used])
        places = dict(zip(needed.tolist(), needed.tolist() if positions is None else positions, strict=True))
        if not is_frame(X) and not isinstance(X, np.ndarray):
            X = np.asarray(X, dtype=object)
        columns: list[tuple[int, RawColumn]] = []
        unknown: list[Unknown] = []
        for number in needed.tolist():
            encoding = self.columns[number]
            try:
                column = encoding.read(column_at(X, places[number]))
            except UnreadableColumn as error:
                error.column = encoding.name
                raise
            columns.append((number, column))
            found = encoding.unknown(column)
            unknown += [] if found is None else [found]
        if not columns:
            return np.zeros((len(X), 0)), unknown
        return self._stack(columns, used), unknown

    def _stack(self, columns: Iterable[tuple[int, RawColumn]], used: np.ndarray) -> np.ndarray:
        """Values of the columns ``used``, in their order, from the raw columns that they come from."""
        first = np.searchsorted(self.owner, np.arange(len(self.columns)))
        by_owner = np.argsort(self.owner[used], kind="stable")
        ends = np.searchsorted(self.owner[used][by_owner], np.arange(len(self.columns) + 1))
        found = None
        for number, column in columns:
            if found is None:
                found = np.empty((len(column), len(used)), order="F")
            mine = by_owner[ends[number] : ends[number + 1]]
            terms = [self.columns[number].terms[place - first[number]] for place in used[mine]]
            found[:, mine] = self.columns[number].encoded(column, terms).T
        assert found is not None
        return found


def median(values: np.ndarray, weights: np.ndarray) -> float:
    """The weighted median of the values that are there; 0 where there is none."""
    there = ~np.isnan(values) & (weights > 0)
    if not there.any():
        return 0.0
    values, weights = values[there], weights[there]
    if np.all(weights == weights[0]):
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    values, share = values[order], np.cumsum(weights[order])
    share /= share[-1]
    place = int(np.searchsorted(share, 0.5 - 1e-12))
    # Half of the weight on each side: between the two values, as for rows that count alike.
    other = place + 1 if share[place] <= 0.5 + 1e-12 and place + 1 < len(values) else place
    return float(0.5 * (values[place] + values[other]))


def _one_is_finer(first: Set[bytes], second: Set[bytes]) -> bool:
    """Whether both columns have levels, and all those of one are among those of the other, which has more."""
    return bool(first and second) and (first < second or second < first)
