"""Columns of any frame or array: numbers, or codes of levels.

pandas and polars are distinguished by what their columns can do, so neither is imported.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pauca.wording import plain

# By the name of a dtype in pandas, polars, Arrow or NumPy, in lower case.
KINDS = {
    "number": re.compile(r"u?int\d|float\d|double|decimal|null"),
    "bool": re.compile(r"bool"),
    "category": re.compile(r"categor|enum|dictionary"),
    "text": re.compile(r"str|utf8|large_string|[<>|]?[us]\d"),
    "date": re.compile(r"date|time|duration|period|[<>]?m8"),
    "object": re.compile(r"object"),
}

DATE = re.compile(
    r"\d{4}-\d\d?-\d\d?([ T]\d\d?:\d\d.*)?"  # 2024-02-29, 2024-02-29T10:30
    r"|\d{4}/\d\d?/\d\d?|\d\d?[/.]\d\d?[/.]\d{2,4}( \d\d?:\d\d.*)?"  # 2024/02/29, 29.02.2024 10:30
    r"|\d\d?:\d\d(:\d\d(\.\d+)?)?"  # 10:30:00
)
LEVELS_CHECKED_FOR_DATES = 20

# Numbers as people write them: $1,234, 12 %, 1.234,50 €, (300), 1 234 567. Groups of thousands have one separator, and
# the decimals another.
CURRENCY = r"[$€£¥]|EUR|USD|GBP|CHF"
FORMATTED = re.compile(
    rf"(?P<open>\()?[+-]?\s?(?P<before>{CURRENCY})?\s?[+-]?"
    r"(?:[1-9]\d{0,2}(?P<thousands>[,.'\u00a0\u202f ])\d{3}(?:(?P=thousands)\d{3})*(?:(?!(?P=thousands))[.,]\d+)?"
    r"|\d+(?:[.,]\d+)?)"
    rf"\s?(?P<after>{CURRENCY}|%)?(?(open)\))"
)

# Codes that groups of three digits do not make numbers: 192.168.100.101, +48 123 456 789.
CODE = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}|\+\d+ .*")

# 1,234 may be a thousand and more, or a little more than one.
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")


# In tables of at least so many rows, a column with another integer in every row is taken for row numbers, unless less
# than half of the integers in its range are there. Numbers of blocks of rows, and columns that are named so, must have
# as many different values.
LEAST_ROWS_TO_NUMBER = 20

# Names of identifiers: id, customer_id, PatientID, pidnum, caseid, index, and names of rows by pandas and R.
OWNERS = "case|household|hh|p|pat|patient|person|record|row|sub|subj|subject|user"
IDENTIFIER = re.compile(
    rf"(?:.*[_. -])?(?:(?:{OWNERS})?id(?:no|num)?|ID|Id|idx)|.*[a-z](?:ID|Id)|[Ii]ndex|INDEX|rownames|Unnamed: \d+"
)

# Integers in this range that rise with the rows are years.
YEARS = (1500, 2200)


class UnreadableColumn(Exception):
    """A column that is neither numbers nor levels, or not what it should be: of ``kind`` "date", "text" or "other"."""

    def __init__(self, kind: str, example: Any = None) -> None:
        super().__init__(kind)
        self.kind = kind
        self.example = example
        self.column = ""


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A column as it was given.

    Attributes
    ----------
    name : str
    numbers : ndarray of float64 or None
        NaN for missing values.
    codes : ndarray of int or None
        Position in ``levels``, and -1 for missing values, where the column is not numbers.
    levels : list
        The different values, as plain Python values, in order.
    is_text : bool
        Whether nothing but its values says that the column is a category.
    was_text : bool
        Whether some of the numbers were written as text, such as ``0,5``.
    unclear : str
        A number with a comma, where all of these could be thousands as well as decimals, such as ``1,234``.
    """

    name: str
    numbers: np.ndarray | None = None
    codes: np.ndarray | None = None
    levels: Sequence[Any] = ()
    is_text: bool = False
    was_text: bool = False
    unclear: str = ""

    def __len__(self) -> int:
        return len(self._values)

    @property
    def missing(self) -> np.ndarray:
        """Mask of the missing values."""
        return np.isnan(self._values) if self.codes is None else self.codes < 0

    @property
    def is_identifier(self) -> bool:
        """Whether the column holds numbers that look like those of rows or of blocks of rows."""
        return self.numbers is not None and is_identifier(self.name, self.numbers)

    @property
    def _values(self) -> np.ndarray:
        values = self.numbers if self.codes is None else self.codes
        assert values is not None
        return values


def differs_in_every_row(values: np.ndarray) -> bool:
    """Whether numbers are integers of which none is there twice."""
    return _are_integers(values) and len(np.unique(values)) == len(values)


def _are_integers(values: np.ndarray) -> bool:
    return len(values) >= LEAST_ROWS_TO_NUMBER and bool(
        np.all(np.isfinite(values)) and np.all(values == values.round())
    )


def is_identifier(name: str, values: np.ndarray) -> bool:
    """Whether numbers look like an identifier: they number the rows or blocks of them, or are integers named so."""
    if differs_in_every_row(values) and np.ptp(values) < 2 * len(values):  # of rows, or most rows of a larger table
        return True
    if not _are_integers(values):
        return False
    different, counts = np.unique(values, return_counts=True)
    if len(different) < LEAST_ROWS_TO_NUMBER:
        return False
    if IDENTIFIER.fullmatch(name):
        return True
    steps = np.diff(values)
    rises = bool(np.all((steps == 0) | (steps == 1)) and np.ptp(counts) == 0)  # 1, 1, 1, 2, 2, 2, ...
    return rises and not (values[0] >= YEARS[0] and values[-1] <= YEARS[1])


def kind_of(dtype: Any) -> str:
    """What a dtype of pandas, polars, Arrow or NumPy holds; "other" for what is neither numbers, text nor dates."""
    name = str(dtype).lower().removeprefix("sparse[")
    return next((kind for kind, pattern in KINDS.items() if pattern.match(name)), "other")


def is_frame(X: Any) -> bool:
    """Whether X is a frame of pandas or polars in memory."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and (hasattr(X, "iloc") or hasattr(X, "to_series"))


def column_at(X: Any, position: int) -> Any:
    """A column of a frame or an array."""
    if hasattr(X, "to_series"):
        return X.to_series(position).alias("column")  # elsewhere polars reads names such as "^a$" as patterns
    return X.iloc[:, position] if hasattr(X, "iloc") else np.asarray(X)[:, position]


def read_column(column: Any, name: str, *, as_category: bool = False) -> RawColumn:
    """A column as numbers or levels; text that is numbers throughout is numbers, unless it is read as a category."""
    kind = kind_of(column.dtype)
    if kind in {"date", "other"}:
        raise UnreadableColumn(kind)
    if kind in {"number", "bool"}:
        numbers = _floats(column)
        return RawColumn(name, numbers) if not as_category else _levels_of_numbers(name, numbers, kind == "bool")
    codes, values = _factorised(column)
    levels = [_plain_level(value) for value in values]
    if kind != "category" and not as_category:
        parsed = _numbers_in(levels)
        if parsed is not None:
            was_text = any(isinstance(level, str) for level in levels)
            commas = [level for level in levels if isinstance(level, str) and "," in level]
            unclear = min(commas) if commas and all(THOUSANDS.fullmatch(level.strip()) for level in commas) else ""
            return RawColumn(name, np.append(parsed, np.nan)[codes], was_text=was_text, unclear=unclear)
        if _hold_dates(levels):
            raise UnreadableColumn("date", levels[0])
    return _in_order(name, codes, levels, is_text=kind != "category" and not as_category)


def read_numbers(column: Any, name: str) -> RawColumn:
    """A column that must hold numbers."""
    found = read_column(column, name)
    if found.numbers is None:
        bad = next((level for level in found.levels if _numbers_in([level]) is None), None)
        raise UnreadableColumn("text", bad)
    return found


def parsed_share(levels: Sequence[Any]) -> float:
    """The share of levels that are numbers written as text."""
    return sum(_numbers_in([level]) is not None for level in levels) / max(1, len(levels))


def is_formatted(level: Any) -> bool:
    """Whether a level is a number with a sign of currency or percent, in parentheses, or with groups of thousands."""
    text = str(level).strip()
    found = FORMATTED.fullmatch(text)
    if found is None:
        return False
    return any(found[sign] for sign in ("open", "before", "after")) or bool(found["thousands"] and not CODE.match(text))


def _floats(column: Any) -> np.ndarray:
    if isinstance(column, np.ndarray):
        return column.astype(np.float64)
    if hasattr(column, "to_series") or not hasattr(column, "iloc"):
        return np.array(column.cast(float).to_numpy(), dtype=np.float64)
    try:
        return np.array(column.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    except (TypeError, ValueError):  # sparse columns and decimals
        return np.array(column.astype("float64"), dtype=np.float64)


def _factorised(column: Any) -> tuple[np.ndarray, list[Any]]:
    """Codes and values of a column, -1 for missing values; values that cannot be hashed are an error."""
    try:
        if isinstance(column, np.ndarray):
            return _factorised_objects(column.tolist())
        if hasattr(column, "factorize"):
            codes, values = column.factorize()
            return np.asarray(codes), list(values)
        if str(column.dtype).lower().startswith("object"):
            return _factorised_objects(column.to_list())
        text = column.cast(str)
        values = text.drop_nulls().unique().to_list()
        if not values:
            return np.full(len(text), -1), []
        return np.asarray(text.replace_strict(values, range(len(values))).fill_null(-1).to_numpy()), values
    except TypeError:
        raise UnreadableColumn("other") from None


def _factorised_objects(values: Iterable[Any]) -> tuple[np.ndarray, list[Any]]:
    known: dict[Any, int] = {}
    # A value that does not equal itself is missing: NaN, pandas.NaT.
    codes = [-1 if v is None or v != v else known.setdefault(v, len(known)) for v in values]  # noqa: PLR0124
    return np.array(codes, dtype=np.intp), list(known)


def _plain_level(value: Any) -> Any:
    """A level as a plain Python value; dates and what cannot be written down are errors."""
    value = plain(value)
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64):
        raise UnreadableColumn("date", value)
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="replace")
    if isinstance(value, str):
        return str(value)
    if not isinstance(value, bool | int | float):
        raise UnreadableColumn("other", value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _levels_of_numbers(name: str, numbers: np.ndarray, are_bool: bool) -> RawColumn:
    missing = np.isnan(numbers)
    values, positions = np.unique(numbers[~missing], return_inverse=True)
    codes = np.full(len(numbers), -1)
    codes[~missing] = positions
    return RawColumn(name, None, codes, [bool(v) if are_bool else _plain_level(v) for v in values])


def _numbers_in(levels: Sequence[Any]) -> np.ndarray | None:
    """The numbers that levels are, or are written as: with a decimal point, or a decimal comma; None if some is not."""
    if all(isinstance(level, bool | int | float) for level in levels):
        return np.array(levels, dtype=np.float64)
    for point in (".", ","):
        try:
            return np.array([_parsed(level, point) for level in levels])
        except ValueError:
            continue
    return None


def _parsed(level: Any, point: str) -> float:
    text = str(level)
    if "_" in text:  # Python reads 1_000 as a number; no table means that
        raise ValueError
    return float(text.replace(point, ".")) if point in text or point == "." else float(text)


def _hold_dates(levels: Sequence[Any]) -> bool:
    first = levels[:LEVELS_CHECKED_FOR_DATES]
    return bool(first) and all(isinstance(level, str) and DATE.fullmatch(level.strip()) for level in first)


def _in_order(name: str, codes: np.ndarray, levels: list[Any], *, is_text: bool) -> RawColumn:
    """A column of levels, the levels sorted: numbers by size, all others as text."""
    numeric = all(isinstance(level, bool | int | float) for level in levels)
    order = sorted(range(len(levels)), key=lambda place: levels[place] if numeric else str(levels[place]))
    rank = np.empty(len(levels) + 1, dtype=np.intp)
    rank[order] = np.arange(len(levels))
    rank[-1] = -1
    return RawColumn(name, None, rank[codes], [levels[place] for place in order], is_text)
