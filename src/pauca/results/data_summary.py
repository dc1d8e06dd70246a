"""A summary of the data of a fit: its rows, and the columns that a model uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pauca.tables import ColumnEncoding

COUNTED_ONCE = "A category counts as one column, however many levels it has."


@dataclass(frozen=True)
class ColumnValues:
    """The values of a column of numbers in the rows of a fit.

    Attributes
    ----------
    step : float
        A change that people would use: one for small whole numbers, else a round number near the spread.
    median, lowest, highest : float
    """

    step: float
    median: float
    lowest: float
    highest: float

    @property
    def binary(self) -> bool:
        """Whether it holds zeros and ones, or nothing else."""
        return self.step == 1.0 and self.lowest == 0.0 and self.highest == 1.0


@dataclass(frozen=True)
class DataSummary:
    """What is kept of the data of a fit, for reports of models that were saved.

    Attributes
    ----------
    n_rows : int
        Rows that have weight.
    class_counts : list of int or None
        How many of them are of each class.
    missing : dict of str to int
        In how many of them a raw column is missing, for columns where there are such rows.
    values : dict of int to ColumnValues
        By column, for those that some model of the path uses; empty where the rows cannot be read once more.
    n_dropped : int
        Rows that were left out of the fit, since values were missing in them.
    """

    n_rows: int
    class_counts: list[int] | None = None
    missing: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[int, ColumnValues] = field(default_factory=dict)
    n_dropped: int = 0


def encoding_notes(columns: Sequence[ColumnEncoding]) -> Iterator[str]:
    """What must be known of raw columns to read their coefficients: baselines, and what stands for missing values."""
    baselines = [f"{column.name}={column.baseline}" for column in columns if column.levels]
    if baselines:
        one = len(baselines) == 1
        yield (
            f"{'Baseline' if one else 'Baselines'}: {', '.join(baselines)}. The coefficient of a level is its "
            "difference to the baseline of its column."
        )
    copies: dict[str, list[str]] = {}
    for column in columns:
        for level, name in column.copies.items():
            copies.setdefault(name, []).append(f"{column.name}={level}")
    for name, same in copies.items():
        yield f"The same in every row as {name}, and without a term of their own: {', '.join(same)}."
    filled = [f"{column.name} by {column.fill:.6g}" for column in columns if column.marks_missing and not column.levels]
    if filled:
        yield (
            f"Missing values are replaced by the median ({', '.join(filled)}), and the coefficient of 'is missing' is "
            "added."
        )


def filled_notes(columns: Sequence[ColumnEncoding], missing: Mapping[str, int]) -> Iterator[str]:
    """What stands for the missing values of raw columns that have no term for them; ``missing`` counts their rows."""
    known = [column for column in columns if column.name in missing and not column.marks_missing]
    rows = {name: f"{many:,} row{'' if many == 1 else 's'}" for name, many in missing.items()}
    medians = [f"{one.name} by {one.fill:.6g} in {rows[one.name]}" for one in known if not one.levels]
    baselines = [f"{one.name}={one.baseline} in {rows[one.name]}" for one in known if one.levels]
    parts = [
        *([f"are replaced by the median ({', '.join(medians)})"] if medians else []),
        *([f"count as the baseline ({', '.join(baselines)})"] if baselines else []),
    ]
    if parts:
        yield f"Missing values {' or '.join(parts)}."
