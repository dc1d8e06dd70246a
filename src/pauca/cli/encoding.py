"""Encoding a raw table as columns of numbers.

A column of numbers keeps its name. A column of text, such as ``city``, becomes a 0/1 column for each of its values
except the most frequent one, the baseline: ``city=Lyon``, ``city=Nice``. The names of a model therefore say how to
build its columns from a raw table; ``encode`` does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pauca.cli.console import DataError, count
from pauca.cli.table_files import polars, with_safe_name
from pauca.export.formula import FittedLinearModel
from pauca.export.model_file import RawTable
from pauca.wording import quoted

if TYPE_CHECKING:
    import polars as pl

MOST_LEVELS = 50

# A column with more levels than this, and with more than half as many as there are rows, is taken for identifiers.
FEW_LEVELS = 10

DATE = re.compile(
    r"\d{4}-\d\d?-\d\d?([ T]\d\d?:\d\d.*)?"  # 2024-02-29, 2024-02-29T10:30
    r"|\d{4}/\d\d?/\d\d?|\d\d?[/.]\d\d?[/.]\d{2,4}( \d\d?:\d\d.*)?"  # 2024/02/29, 29.02.2024 10:30
    r"|\d\d?:\d\d(:\d\d(\.\d+)?)?"  # 10:30:00
)
ROWS_CHECKED_FOR_DATES = 20


@dataclass(frozen=True)
class EncodedColumn:
    """A column of a model: its name, the raw column it comes from, and the level it indicates, if that holds text."""

    name: str
    raw: str
    level: str | None = None


def raw_columns(encoded: Iterable[EncodedColumn]) -> list[str]:
    """The raw columns that encoded columns are built from."""
    return list(dict.fromkeys(column.raw for column in encoded))


def text_columns(encoded: Iterable[EncodedColumn]) -> list[str]:
    """Those of the raw columns that hold text."""
    return raw_columns(column for column in encoded if column.level is not None)


def clean_columns(frame: pl.DataFrame, table_name: str, texts: Iterable[str] = ()) -> pl.DataFrame:
    """The columns as numbers, booleans or text with nulls for missing values; other types are an error."""
    pl = polars()
    texts = set(texts)
    changed, dates, others = [], [], []
    for column in frame.get_columns():
        dtype = column.dtype
        if column.name in texts or dtype in (pl.Categorical, pl.Enum):
            changed.append(column.cast(pl.String))
        elif dtype.is_temporal() or (dtype == pl.String and _holds_dates(column)):
            dates.append(column.name)
        elif dtype == pl.String:
            changed.append(_as_numbers(with_safe_name(column)).alias(column.name))
        elif not dtype.is_numeric() and dtype not in (pl.Boolean, pl.Null):
            others.append(column.name)
    for names, what in ((dates, "dates or times"), (others, "a type that is neither numbers nor text")):
        if names:
            raise DataError(
                f"{table_name} has columns of {what}: {quoted(names)}. Convert them to numbers first (days since a "
                f"date, hour of the day), or ignore them: --drop {','.join(names[:5])}"
            )
    # In one step, as there may be thousands of columns. By type, as polars may read names as patterns.
    floats = pl.selectors.float() | pl.selectors.decimal() | pl.selectors.by_dtype(pl.Null)
    return frame.with_columns(changed).with_columns(floats.cast(pl.Float64).fill_nan(None))


def text_levels(frame: pl.DataFrame, table_name: str) -> dict[str, list[str]]:
    """The values of every column of text, the most frequent one first and the others sorted."""
    pl = polars()
    levels, crowded = {}, []
    for column in frame.get_columns():
        if column.dtype != pl.String:
            continue
        counts = with_safe_name(column).drop_nulls().value_counts(sort=True)
        n_levels = counts.height
        if n_levels > MOST_LEVELS or (n_levels > FEW_LEVELS and n_levels * 2 > frame.height):
            crowded.append((column.name, n_levels))
            continue
        if "=" in column.name:
            raise DataError(
                f"{table_name}: the name of the text column {column.name!r} contains '=', which separates a column "
                f"from its value; rename it, or ignore it: --drop {column.name}"
            )
        top = counts.filter(pl.col("count") == pl.col("count").max())["column"].sort()
        baseline = top[0] if n_levels else ""
        others = [level for level in counts["column"].sort().to_list() if level != baseline]
        levels[column.name] = [baseline, *others]
    if crowded:
        listed = "; ".join(f"{name!r} has {count(number, 'different value')}" for name, number in crowded[:3])
        names = [name for name, _ in crowded]
        raise DataError(
            f"{table_name} has text columns with too many values to be categories: {listed}. "
            f"Ignore them, --drop {','.join(names[:5])}, or combine their values into at most {MOST_LEVELS} first"
        )
    return levels


def encoded_columns(columns: Iterable[str], levels: dict[str, list[str]]) -> list[EncodedColumn]:
    """The columns of the model, in the order of the raw ones."""
    encoded: list[EncodedColumn] = []
    for column in columns:
        if column in levels:
            encoded += [EncodedColumn(f"{column}={level}", column, level) for level in levels[column][1:]]
        else:
            encoded.append(EncodedColumn(column, column))
    names = [column.name for column in encoded]
    if len(set(names)) < len(names):
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        raise DataError(f"columns have the name of an encoded value of a text column: {quoted(twice)}; rename them")
    return encoded


def build_columns(frame: pl.DataFrame, encoded: Sequence[EncodedColumn]) -> pl.DataFrame:
    """The columns of the model as numbers."""
    pl = polars()
    if [column.name for column in encoded] == frame.columns and all(dtype == pl.Float64 for dtype in frame.dtypes):
        return frame
    raw = {column.name: column for column in frame.get_columns()}
    columns = [raw[one.raw] if one.level is None else raw[one.raw] == one.level for one in encoded]
    return pl.DataFrame([column.cast(pl.Float64).alias(one.name) for column, one in zip(columns, encoded, strict=True)])


def required_columns(model: FittedLinearModel, columns: Iterable[str] = ()) -> list[EncodedColumn]:
    """The columns that a fitted model uses, of its own size.

    A model of the command line knows which of its raw columns held text. For any other model, a name with a ``=`` is
    split at the first one if the table has the column before it, and no column of the whole name.
    """
    raw_table: RawTable | None = getattr(model, "raw_table_", None)
    known = set(columns)
    encoded = []
    for name in model.path_.names(model.k_):
        column, equals, level = name.partition("=")
        is_text = name not in known and column in known if raw_table is None else column in raw_table.baselines
        encoded.append(EncodedColumn(name, column, level) if equals and is_text else EncodedColumn(name, name))
    return encoded


def known_levels(column: str, names: Iterable[str], raw_table: RawTable) -> set[str]:
    """All values of a text column in the training data, from the names of all columns of the model."""
    levels = {str(name).partition("=")[2] for name in names if str(name).startswith(f"{column}=")}
    return levels | {raw_table.baselines[column]}


def encode(table: Any, model: FittedLinearModel) -> pl.DataFrame:
    """Encode a raw table with text as the columns that a model uses.

    Parameters
    ----------
    table : polars or pandas frame
        With the raw columns the model uses, in any order; other columns are ignored.
    model : estimator
        A fitted model whose columns are named as by the command line: ``city=Paris`` is 1 where the column ``city``
        holds ``Paris``, and 0 elsewhere.

    Returns
    -------
    polars.DataFrame
        Numbers for ``model.predict``. Missing values stay missing.

    Examples
    --------
    >>> import polars as pl
    >>> from pauca import SparseRegressor
    >>> from pauca.cli.encoding import encode
    >>> train = pl.DataFrame({"city=Lyon": [0.0, 1, 0, 1], "rooms": [1.0, 2, 3, 5]})
    >>> model = SparseRegressor(k=2).fit(train, [10.0, 25, 30, 55])
    >>> raw = pl.DataFrame({"rooms": [2, 4], "city": ["Paris", "Lyon"]})
    >>> model.predict(encode(raw, model)).round().tolist()
    [20.0, 45.0]
    """
    pl = polars()
    columns = [str(name) for name in table.columns]
    encoded = required_columns(model, columns)
    required = raw_columns(encoded)
    missing = [name for name in required if name not in columns]
    if missing:
        raise ValueError(f"The table lacks columns that the model uses: {quoted(missing)}.")
    frame = pl.DataFrame({name: pl.Series(name, _values(table[name]), strict=False) for name in required})
    return build_columns(clean_columns(frame, "the table", text_columns(encoded)), encoded)


def _values(column: Any) -> list[Any]:
    """The values of a column of any frame; in pandas missing text is NaN."""
    return [None if isinstance(value, float) and math.isnan(value) else value for value in column.to_list()]


def _as_numbers(column: pl.Series) -> pl.Series:
    """A column of text as numbers if it holds nothing else: with a decimal comma, or after many empty rows."""
    pl = polars()
    present = column.drop_nulls()
    if present.len() == 0:
        return column.cast(pl.Float64)
    for point in (".", ","):
        head = present.head(100).str.strip_chars().str.replace(point, ".", literal=True).cast(pl.Float64, strict=False)
        if head.null_count():
            continue
        numbers = column.str.strip_chars().str.replace(point, ".", literal=True).cast(pl.Float64, strict=False)
        if numbers.null_count() == column.null_count():
            return numbers.fill_nan(None)
    return column


def _holds_dates(column: pl.Series) -> bool:
    values = with_safe_name(column).drop_nulls().head(ROWS_CHECKED_FOR_DATES).to_list()
    return bool(values) and all(DATE.fullmatch(value.strip()) for value in values)
