"""A whole table as it was given, read column by column, with all its problems reported together."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from pauca.tables.errors import Problems
from pauca.tables.raw_columns import RawColumn, UnreadableColumn, column_at, is_frame, kind_of, read_column
from pauca.wording import closest_name, column_names, plain

FROM_DTYPE = "from_dtype"
MISSING = ("error", "median", "category")


@dataclass(frozen=True, eq=False)
class RawTable:
    """The columns of a table, none of which is encoded yet."""

    columns: list[RawColumn]
    has_names: bool
    """Whether the columns have names of their own; ``x3`` is column 3 of a table that has none."""

    @classmethod
    def of_numbers(cls, X: np.ndarray, names: Sequence[str] | np.ndarray | None) -> RawTable:
        """The columns of an array of numbers."""
        shown = column_names(names, range(X.shape[1]))
        return cls([RawColumn(name, X[:, j]) for j, name in enumerate(shown)], names is not None)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and raw columns."""
        return len(self.columns[0]), len(self.columns)

    @property
    def is_numbers(self) -> bool:
        """Whether there is nothing to encode; numbers written as text, such as ``0,5``, are to be read again later."""
        return all(column.numbers is not None and not column.was_text for column in self.columns)


def needs_encoding(X: Any, categorical_features: Any, missing: str) -> bool:
    """Whether a table holds, or may hold, more than numbers; a sparse matrix and a plain table of numbers do not."""
    if issparse(X):
        return False
    by_hand = categorical_features is not None and not _from_dtype(categorical_features)
    if by_hand or missing != "error":
        return is_frame(X) or np.ndim(X) == 2
    if categorical_features is None or not is_frame(X):
        return False
    return any(kind_of(dtype) not in {"number", "bool"} for dtype in X.dtypes)


def read_table(X: Any, categorical_features: Any, missing: str, owner: str) -> RawTable:
    """All columns of a frame or array; what cannot be used raises one ``TableError`` that tells all problems."""
    if not is_frame(X):
        X = np.asarray(X) if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    names = names_of(X)
    shown = names or [f"x{j}" for j in range(X.shape[1])]
    declared = declared_categories(categorical_features, names, len(shown))
    columns, problems = [], Problems(frame=_library(X) if names else "")
    for j, name in enumerate(shown):
        try:
            column = read_column(column_at(X, j), name, as_category=j in declared)
        except UnreadableColumn as error:
            problems.unreadable(name, error.kind)
            continue
        columns.append(column)
        if column.unclear:
            problems.formatted[name] = column.unclear
        if column.codes is not None:
            problems.check_levels(column)
        elif np.isinf(column.numbers).any():  # type: ignore[arg-type]
            problems.infinite.append(name)
        n_missing = int(np.count_nonzero(column.missing))
        if n_missing and missing == "error":
            problems.missing[name] = n_missing
    problems.raise_if_any(owner)
    return RawTable(columns, names is not None)


def _library(X: Any) -> str:
    return "polars" if hasattr(X, "to_series") else "pandas"


def names_of(X: Any) -> list[str] | None:
    """The names of a frame's columns, where all of them are text."""
    names = list(X.columns) if is_frame(X) else []
    return [str(name) for name in names] if names and all(isinstance(name, str) for name in names) else None


def declared_categories(categorical_features: Any, names: Sequence[str] | None, n_columns: int) -> set[int]:
    """Positions of the columns that are said to be categories: names, indices, or a mask."""
    given = categorical_features
    if given is None or _from_dtype(given):
        return set()
    wanted = "'from_dtype', None, or a list of column names or indices, or a mask"
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"'categorical_features' must be {wanted}; got {given!r}.")
    listed = [plain(one) for one in given]
    if listed and all(isinstance(one, bool) for one in listed):
        if len(listed) != n_columns:
            raise ValueError(
                f"'categorical_features' is a mask of {len(listed)} columns, and there are {n_columns} in X."
            )
        return {j for j, chosen in enumerate(listed) if chosen}
    return {_position(one, names, n_columns) for one in listed}


def _position(one: Any, names: Sequence[str] | None, n_columns: int) -> int:
    if isinstance(one, str):
        if names is None:
            raise ValueError(f"'categorical_features' names {one!r}, but X has no column names; give its index.")
        if one not in names:
            near = closest_name(one, names)
            hint = f" Did you mean {near!r}?" if near else ""
            raise ValueError(f"'categorical_features' names {one!r}, which X does not have.{hint}")
        return list(names).index(one)
    if isinstance(one, bool) or not isinstance(one, numbers.Integral) or not 0 <= int(one) < n_columns:
        raise ValueError(f"'categorical_features' names column {one!r}; X has columns 0 to {n_columns - 1}.")
    return int(one)


def _from_dtype(value: Any) -> bool:
    return isinstance(value, str) and value == FROM_DTYPE
