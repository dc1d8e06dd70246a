"""Columns of a raw table as columns of numbers, and by what names a model finds them again.

A column of numbers keeps its name. A column of text, such as ``city``, becomes a column of zeros and ones for each of
its values but the most frequent one, the baseline: ``city=Lyon``, ``city=Nice``. Whoever has the names of a model can
build its columns from a raw table by that rule; ``encode`` does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pauca.cli.files import nameless, polars
from pauca.cli.messages import BadData, counted
from pauca.export.raw_table import RawTable
from pauca.wording import quoted

if TYPE_CHECKING:
    import polars as pl

MOST_LEVELS = 50

# A column with more values than this, and more than half as many as there are rows, is taken for names of rows.
FEW_LEVELS = 10

DATE = re.compile(
    r"\d{4}-\d\d?-\d\d?([ T]\d\d?:\d\d.*)?"  # 2024-02-29, 2024-02-29T10:30
    r"|\d{4}/\d\d?/\d\d?|\d\d?[/.]\d\d?[/.]\d{2,4}( \d\d?:\d\d.*)?"  # 2024/02/29, 29.02.2024 10:30
    r"|\d\d?:\d\d(:\d\d(\.\d+)?)?"  # 10:30:00
)
DATES_LOOKED_AT = 20


@dataclass(frozen=True)
class Part:
    """Where a column of a model comes from: a raw column, and which of its values if it holds text."""

    name: str
    column: str
    level: str | None = None


def tidied(frame: pl.DataFrame, where: str, texts: Iterable[str] = ()) -> pl.DataFrame:
    """The columns as numbers, truth values or text; missing values as nulls; what is neither is refused by name."""
    pl = polars()
    texts = set(texts)
    changed, dates, strange = [], [], []
    for column in frame.get_columns():
        dtype = column.dtype
        if column.name in texts or dtype in (pl.Categorical, pl.Enum):
            changed.append(column.cast(pl.String))
        elif dtype.is_temporal() or (dtype == pl.String and _holds_dates(column)):
            dates.append(column.name)
        elif dtype == pl.String:
            changed.append(_as_numbers(nameless(column)).alias(column.name))
        elif not dtype.is_numeric() and dtype not in (pl.Boolean, pl.Null):
            strange.append(column.name)
    for names, what in ((dates, "dates or times"), (strange, "neither numbers nor text")):
        if names:
            raise BadData(
                f"{where} has columns of {what}: {quoted(names)}. Turn them into numbers first (days since a date, "
                f"hour of the day), or leave them out: --drop {','.join(names[:5])}"
            )
    # In one step for all columns: there may be many thousands. By type, as names may be patterns to polars.
    floats = pl.selectors.float() | pl.selectors.decimal() | pl.selectors.by_dtype(pl.Null)
    return frame.with_columns(changed).with_columns(floats.cast(pl.Float64).fill_nan(None))


def split_text(frame: pl.DataFrame, where: str) -> dict[str, list[str]]:
    """The values of every column of text, the most frequent one first and the others in order."""
    pl = polars()
    found, crowded = {}, []
    for column in frame.get_columns():
        if column.dtype != pl.String:
            continue
        counts = nameless(column).drop_nulls().value_counts(sort=True)
        n_levels = counts.height
        if n_levels > MOST_LEVELS or (n_levels > FEW_LEVELS and n_levels * 2 > frame.height):
            crowded.append((column.name, n_levels))
            continue
        if "=" in column.name:
            raise BadData(
                f"{where}: the name of the column of text {column.name!r} holds '=', which stands between a column "
                f"and its value; rename it, or leave it out: --drop"
            )
        top = counts.filter(pl.col("count") == pl.col("count").max())["column"].sort()
        baseline = top[0] if n_levels else ""
        levels = [level for level in counts["column"].sort().to_list() if level != baseline]
        found[column.name] = [baseline, *levels]
    if crowded:
        told = "; ".join(f"{name!r} has {counted(count, 'different value')}" for name, count in crowded[:3])
        names = [name for name, _ in crowded]
        raise BadData(
            f"{where} has columns of text with too many values to be categories: {told}. "
            f"Leave them out, --drop {','.join(names[:5])}, or sum their values up into fewer than {MOST_LEVELS} first"
        )
    return found


def parts_of(columns: Iterable[str], levels: dict[str, list[str]]) -> list[Part]:
    """The columns of the model, in the order of the raw ones."""
    parts: list[Part] = []
    for column in columns:
        if column in levels:
            parts += [Part(f"{column}={level}", column, level) for level in levels[column][1:]]
        else:
            parts.append(Part(column, column))
    names = [part.name for part in parts]
    if len(set(names)) < len(names):
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        raise BadData(
            f"a column is called as the value of a column of text is to be called: {quoted(twice)}; rename it"
        )
    return parts


def built(frame: pl.DataFrame, parts: Iterable[Part]) -> pl.DataFrame:
    """Columns of numbers by their recipe."""
    pl = polars()
    parts = list(parts)
    if [part.name for part in parts] == frame.columns and all(dtype == pl.Float64 for dtype in frame.dtypes):
        return frame
    columns = {column.name: column for column in frame.get_columns()}
    made = [
        (columns[part.column] if part.level is None else columns[part.column] == part.level)
        .cast(pl.Float64)
        .alias(part.name)
        for part in parts
    ]
    return pl.DataFrame(made)


def needed_parts(model: Any, columns: Iterable[str] | None = None) -> list[Part]:
    """What a fitted model is built from. Without a note of its raw table, ``columns`` say what there is.

    A name that is a column of the table stands for it. Any other name with a ``=`` in it is split there, at the first.
    """
    known = set(columns or ())
    notes: RawTable | None = getattr(model, "raw_table_", None)
    parts = []
    for name in model.path_.names(model.k_):
        column, equals, level = name.partition("=")
        split = column in notes.baselines if notes is not None else name not in known and column in known
        parts.append(Part(name, column, level) if equals and split else Part(name, name))
    return parts


def known_levels(model: Any, column: str) -> set[str]:
    """All values of a column of text that the fit has seen, as far as the model tells."""
    names = model.path_.column_names
    levels = {str(name).partition("=")[2] for name in names if str(name).startswith(f"{column}=")}
    notes: RawTable | None = getattr(model, "raw_table_", None)
    return levels | ({notes.baselines[column]} if notes is not None and column in notes.baselines else set())


def encode(table: Any, model: Any) -> pl.DataFrame:
    """The columns that a model needs, built from a raw table with its text.

    Parameters
    ----------
    table : polars or pandas frame
        With the raw columns the model needs, in any order, and any others.
    model : estimator
        A fitted model whose columns are named by the rule of the command line: ``city=Paris`` is 1 where the column
        ``city`` holds ``Paris``, and 0 elsewhere.

    Returns
    -------
    polars.DataFrame
        With numbers for ``model.predict``. Missing values stay missing.

    Examples
    --------
    >>> import polars as pl
    >>> from pauca import SparseRegressor
    >>> from pauca.cli.tables import encode
    >>> train = pl.DataFrame({"city=Lyon": [0.0, 1, 0, 1], "rooms": [1.0, 2, 3, 5]})
    >>> model = SparseRegressor(k=2).fit(train, [10.0, 25, 30, 55])
    >>> raw = pl.DataFrame({"rooms": [2, 4], "city": ["Paris", "Lyon"]})
    >>> model.predict(encode(raw, model)).round().tolist()
    [20.0, 45.0]
    """
    pl = polars()
    columns = [str(name) for name in table.columns]
    parts = needed_parts(model, columns)
    wanted = list(dict.fromkeys(part.column for part in parts))
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise ValueError(f"The model needs columns that the table does not have: {quoted(missing)}.")
    texts = {part.column for part in parts if part.level is not None}
    frame = pl.DataFrame({name: pl.Series(name, _values(table[name]), strict=False) for name in wanted})
    return built(tidied(frame, "the table", texts), parts)


def _values(column: Any) -> list[Any]:
    """The values of a column of any frame; pandas has NaN for missing text."""
    return [None if isinstance(value, float) and math.isnan(value) else value for value in column.to_list()]


def _as_numbers(column: pl.Series) -> pl.Series:
    """Text that is numbers all the same: where the first of many rows were empty, or with a comma for a point."""
    pl = polars()
    given = column.drop_nulls()
    if given.len() == 0:
        return column.cast(pl.Float64)
    for point in (".", ","):
        head = given.head(100).str.strip_chars().str.replace(point, ".", literal=True).cast(pl.Float64, strict=False)
        if head.null_count():
            continue
        numbers = column.str.strip_chars().str.replace(point, ".", literal=True).cast(pl.Float64, strict=False)
        if numbers.null_count() == column.null_count():
            return numbers.fill_nan(None)
    return column


def _holds_dates(column: pl.Series) -> bool:
    some = nameless(column).drop_nulls().head(DATES_LOOKED_AT).to_list()
    return bool(some) and all(DATE.fullmatch(value.strip()) for value in some)
