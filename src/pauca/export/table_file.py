"""The encoding of a raw table as plain JSON, and back."""

from __future__ import annotations

from typing import Any

from pauca.export.json_files import JsonReader
from pauca.tables import ColumnEncoding, TableEncoding


def write_encoding(encoding: TableEncoding) -> dict[str, Any]:
    """The field of a file that holds the encoding."""
    return {
        "has_names": encoding.has_names,
        "columns": [
            {
                "name": column.name,
                "levels": None if column.levels is None else list(column.levels),
                "fill": column.fill,
                "marks_missing": column.marks_missing,
            }
            for column in encoding.columns
        ],
    }


def read_encoding(reader: JsonReader) -> TableEncoding:
    """The encoding from this field."""
    fields = reader.fields(["has_names", "columns"])
    return TableEncoding(tuple(_read_column(item) for item in fields["columns"].items()), fields["has_names"].flag())


def _read_column(reader: JsonReader) -> ColumnEncoding:
    fields = reader.fields(["name", "levels", "fill", "marks_missing"])
    return ColumnEncoding(
        fields["name"].string(),
        fields["levels"].optional(_read_levels),
        fields["fill"].optional(JsonReader.finite),
        fields["marks_missing"].flag(),
    )


def _read_levels(reader: JsonReader) -> tuple[Any, ...]:
    levels = tuple(_read_level(item) for item in reader.items())
    if len(set(levels)) < len(levels):
        reader.fail("a level is there twice")
    return levels


def _read_level(reader: JsonReader) -> Any:
    return reader.value if isinstance(reader.value, str | bool) else _number(reader)


def _number(reader: JsonReader) -> int | float:
    number = reader.finite()
    return reader.value if isinstance(reader.value, int) else number
