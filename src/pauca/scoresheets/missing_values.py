"""Sheets of raw tables: what a missing value counts as, in whole points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pauca.scoresheets.rows import SheetRow
from pauca.scoresheets.sheet import ScoreSheet, sheet_totals
from pauca.tables import TableEncoding
from pauca.tables.encoding import NUMBER


def of_raw_table(
    sheet: ScoreSheet,
    encoding: TableEncoding,
    missing: Mapping[int, np.ndarray],
    columns: Mapping[int, np.ndarray],
    y: np.ndarray,
    weights: np.ndarray,
) -> ScoreSheet:
    """The sheet for the raw columns of an encoding, with whole points for missing values.

    ``missing`` are masks of rows by the raw columns that were missing in some, ``columns`` the encoded columns of the
    model; classes are -1 and 1.
    """
    fills = {row.column: _whole_fill(row, encoding) for row in sheet.rows if _is_filled(row, encoding)}
    by_raw = {int(encoding.owner[column]): fill for column, fill in fills.items()}
    changed = tuple(
        replace(column, fill=by_raw[place]) if place in by_raw else column
        for place, column in enumerate(encoding.columns)
    )
    total = np.zeros(len(y))
    for row in sheet.rows:
        values, rows = columns[row.column], missing.get(int(encoding.owner[row.column]))
        if rows is not None and row.column in fills:
            values = np.where(rows, fills[row.column], values)
        total += row.points * row.values(values)
    losses = np.logaddexp(0.0, -y * (sheet.constant + sheet.scale * total))
    return replace(
        sheet,
        encoding=TableEncoding(changed, encoding.has_names),
        missing=frozenset(encoding.raw_names[place] for place in missing),
        totals=sheet_totals(total, sheet.scale, sheet.constant),
        deviance=float(2.0 * (weights @ losses) / weights.sum()),
    )


def _is_filled(row: SheetRow, encoding: TableEncoding) -> bool:
    """Whether points are given by units of a number that may be missing; bands have whole points in any case."""
    term = encoding.terms[row.column]
    return term.kind == NUMBER and term.fill is not None and row.threshold is None and row.points != 0


def _whole_fill(row: SheetRow, encoding: TableEncoding) -> float:
    """The value next to the one that is filled in which gives a whole number of points."""
    fill, unit = encoding.terms[row.column].fill, row.unit or 1.0
    assert fill is not None
    return float(round(row.points * fill / unit) * unit / row.points)
