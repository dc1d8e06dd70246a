"""What a model must remember of the raw table it was fitted to, where that was not numbers alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pauca.export.json_reader import JsonReader


@dataclass(frozen=True)
class RawTable:
    """How the columns of a raw table became the columns of a model.

    A column of text is split into columns such as ``city=Paris``, one for each of its values but one: the baseline.

    Attributes
    ----------
    baselines : dict of str to str
        The baseline of every column of text.
    medians : dict of str to float, or None
        What missing numbers are filled with; missing text counts as the baseline then. None: missing values are
        refused.
    first_index : int or None
        Whether a LIBSVM file counted its columns from 0 or 1; None for other tables.
    """

    baselines: dict[str, str] = field(default_factory=dict)
    medians: dict[str, float] | None = None
    first_index: int | None = None


def write_raw_table(table: RawTable) -> dict[str, Any]:
    """The plain form."""
    return {"baselines": table.baselines, "medians": table.medians, "first_index": table.first_index}


def read_raw_table(place: JsonReader) -> RawTable:
    """A raw table from its plain form."""
    fields = place.fields(["baselines", "medians", "first_index"])
    baselines, medians, first = fields["baselines"], fields["medians"], fields["first_index"]
    return RawTable(
        {name: item.text() for name, item in _entries(baselines).items()},
        None if medians.value is None else {name: item.number() for name, item in _entries(medians).items()},
        None if first.value is None else first.integer(0, 1),
    )


def _entries(place: JsonReader) -> dict[str, JsonReader]:
    return place.fields(place.value if isinstance(place.value, dict) else ())
