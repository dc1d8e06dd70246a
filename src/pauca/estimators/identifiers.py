"""Columns that look like identifiers: which are left out of a fit, and what is said of those that a model uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pauca.estimators.raw_tables import FitTable
from pauca.tables.raw_columns import IDENTIFIER, LEAST_ROWS_TO_NUMBER, differs_in_every_row, is_identifier
from pauca.wording import column_names, quoted


def named_identifiers(table: FitTable, constraints: Mapping[str, Any]) -> list[str]:
    """Columns to leave out: integers that are called an identifier, or names of rows, and differ in every row.

    A mere counter of another name may be the order of time, and stays. What a constraint names stays too, and so does
    a column without others: it is there for a reason.
    """
    names = table.names if table.encoding is None else table.encoding.raw_names
    if names is None or constraints.get("feature_groups") is not None:
        return []
    wanted = {one for name in ("always", "never", "costs", "bounds") for one in _listed(constraints.get(name))}
    places = [place for place, name in enumerate(names) if isinstance(name, str) and IDENTIFIER.fullmatch(name)]
    values = {place: table.numbers(place) for place in places if names[place] not in wanted and place not in wanted}
    found = [names[place] for place, own in values.items() if own is not None and differs_in_every_row(own)]
    return found if len(found) < len(names) else []


def never_also(constraints: Mapping[str, Any], columns: Sequence[str]) -> Mapping[str, Any]:
    """The constraints with further columns that are never chosen."""
    return {**constraints, "never": [*_listed(constraints.get("never")), *columns]} if columns else constraints


def _listed(given: Any) -> list[Any]:
    """Names and indices that a constraint lists, or has as keys; nothing where it is no list."""
    if isinstance(given, str) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0:
        return []
    return [one for one in given if isinstance(one, str | int | np.integer)]


def columns_like_identifiers(table: FitTable, used: Sequence[int]) -> frozenset[int]:
    """Those of the ``used`` columns that look like identifiers; of nameless ones, those that count the rows in order.

    A nameless column alone is there for a reason.
    """
    if table.encoding is not None:
        names, owner = table.encoding.raw_names, table.encoding.owner
        numbers = {column: table.numbers(int(owner[column])) for column in used}
        return frozenset(
            column for column, own in numbers.items() if own is not None and is_identifier(names[owner[column]], own)
        )
    X, names = table.X, table.names
    if not isinstance(X, np.ndarray):
        return frozenset()
    if names is not None:
        return frozenset(column for column in used if is_identifier(str(names[column]), X[:, column]))
    if X.shape[1] < 2 or len(X) < LEAST_ROWS_TO_NUMBER:
        return frozenset()
    counts = np.arange(len(X))
    return frozenset(column for column in used if _counts_rows(X[:, column], counts))


def _counts_rows(values: np.ndarray, counts: np.ndarray) -> bool:
    """Whether a column is 0, 1, 2, ... or 1, 2, 3, ..."""
    return values[0] in {0, 1} and np.array_equal(values, counts + values[0])


def left_out(columns: Sequence[str]) -> Iterator[str]:
    """A warning of columns that were left out since they are named as identifiers."""
    if len(columns) == 1:
        yield (
            f"The column {quoted(columns)} is named as an identifier and differs in every row: it was left out. "
            "Rename it if it measures something."
        )
    elif columns:
        yield (
            f"The columns {quoted(columns)} are named as identifiers and differ in every row: they were left out. "
            "Rename those that measure something."
        )


def in_the_model(names: Any, columns: Sequence[int]) -> Iterator[str]:
    """A warning of columns of the model that look like identifiers."""
    if columns and names is None:
        count, are, them = ("counts", "is", "it") if len(columns) == 1 else ("count", "are", "them")
        yield (
            f"Column{'s' if len(columns) > 1 else ''} {', '.join(map(str, columns))} {count} the rows, as an "
            f"identifier does, and {are} in the model; never={list(columns)} leaves {them} out."
        )
    elif columns:
        shown = column_names(names, columns)
        them = "it" if len(shown) == 1 else "them"
        yield f"{looks_like_identifier(shown)} in the model; never={shown} leaves {them} out."


def looks_like_identifier(names: Sequence[str]) -> str:
    """The start of a warning of columns that number the rows, or are named as if they did."""
    if len(names) == 1:
        return f"The column {quoted(names)} looks like an identifier, and is"
    return f"The columns {quoted(names)} look like identifiers, and are"
