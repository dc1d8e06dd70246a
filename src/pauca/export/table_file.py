"""The encoding of a raw table, and the summary of the data of a fit, as plain JSON, and back."""

from __future__ import annotations

from typing import Any

from pauca.export.json_files import JsonReader, encode_float
from pauca.results.data_summary import ColumnValues, DataSummary
from pauca.tables import ColumnEncoding, TableEncoding

MOST_ROWS = 2**53


def write_encoding(encoding: TableEncoding) -> dict[str, Any]:
    """The field of a file that holds the encoding."""
    return {
        "has_names": encoding.has_names,
        "columns": [
            {
                "name": column.name,
                "levels": None if column.levels is None else [_level(level) for level in column.levels],
                "fill": column.fill,
                "marks_missing": column.marks_missing,
                "copies": [[level, name] for level, name in column.copies.items()],
            }
            for column in encoding.columns
        ],
    }


def _level(level: Any) -> Any:
    return encode_float(level) if isinstance(level, float) else level


def read_encoding(reader: JsonReader) -> TableEncoding:
    """The encoding from this field."""
    fields = reader.fields(["has_names", "columns"])
    return TableEncoding(tuple(_read_column(item) for item in fields["columns"].items()), fields["has_names"].flag())


def _read_column(reader: JsonReader) -> ColumnEncoding:
    fields = reader.fields(["name", "levels", "fill", "marks_missing", "copies"])
    return ColumnEncoding(
        fields["name"].string(),
        fields["levels"].optional(_read_levels),
        fields["fill"].optional(JsonReader.finite),
        fields["marks_missing"].flag(),
        dict(_read_copy(item) for item in fields["copies"].items()),
    )


def _read_copy(reader: JsonReader) -> tuple[Any, str]:
    level, name = reader.items(2)
    return _read_level(level), name.string()


def _read_levels(reader: JsonReader) -> tuple[Any, ...]:
    levels = tuple(_read_level(item) for item in reader.items())
    if len(set(levels)) < len(levels):
        reader.fail("a level is there twice")
    return levels


def _read_level(reader: JsonReader) -> Any:
    return reader.value if isinstance(reader.value, str | bool) else _number(reader)


def _number(reader: JsonReader) -> int | float:
    number = reader.number()  # infinity may be a level as any other
    return reader.value if isinstance(reader.value, int) else number


def write_data_summary(data_summary: DataSummary) -> dict[str, Any]:
    """The field of a file with the summary of the data of the fit."""
    return {
        "n_rows": data_summary.n_rows,
        "n_dropped": data_summary.n_dropped,
        "class_counts": data_summary.class_counts,
        "missing": dict(data_summary.missing),
        "columns": [
            [column, values.step, values.median, values.lowest, values.highest]
            for column, values in data_summary.values.items()
        ],
    }


def read_data_summary(reader: JsonReader, n_features: int) -> DataSummary:
    """The summary of the data from this field."""
    fields = reader.fields(["n_rows", "n_dropped", "class_counts", "missing", "columns"])
    n_rows = fields["n_rows"].integer(1, MOST_ROWS)
    counts = fields["class_counts"].optional(lambda items: [item.integer(0, n_rows) for item in items.items()])
    missing = {name: item.integer(0, n_rows) for name, item in fields["missing"].entries().items()}
    values = {}
    for item in fields["columns"].items():
        column, *numbers = item.items(5)
        values[column.integer(0, n_features - 1)] = ColumnValues(*(number.finite() for number in numbers))
    return DataSummary(n_rows, counts, missing, values, fields["n_dropped"].integer(0, MOST_ROWS))
