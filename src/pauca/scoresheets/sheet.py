"""A sheet of points: a table from totals to risk, and its forms on paper, in SQL and in Python."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from pauca.export.json_files import write_atomically
from pauca.export.python import TERM_VALUE
from pauca.export.sql import filled, identifier, level_case
from pauca.scoresheets.rows import SheetRow
from pauca.statistics.round_steps import round_number
from pauca.tables import TableEncoding, Term
from pauca.tables.encoding import MISSING, NUMBER
from pauca.tables.raw_columns import column_at, is_frame
from pauca.tables.raw_table import names_of
from pauca.version import __version__
from pauca.wording import aligned, column_names, printable

# Log-odds beyond which a risk is as good as certain: 0.1 % and 99.9 %.
EXTREME_LOG_ODDS = 6.9

# Tables from totals to risk have no more lines than this.
MOST_TOTALS = 20

# Totals are whole where that leaves so many of them.
FEWEST_TOTALS = 4


@dataclass(frozen=True)
class SheetLine:
    """A line as it is read: of a feature that is cut, one for every band of values."""

    name: str
    condition: str
    points: int
    bands: int
    """How many lines the feature has, at its first one; 0 at the others."""


@dataclass(frozen=True, eq=False, repr=False)
class ScoreSheet:
    """Points to be added up, and the risk that belongs to every total.

    The risk is ``1 / (1 + exp(-(constant + scale * total)))``.

    Attributes
    ----------
    rows : tuple of SheetRow
        What points are given for.
    scale, constant : float
    outcome : str
        The class whose risk it is.
    totals : ndarray
        Totals of the table, ascending: all that can occur, or the deciles of those that did.
    deviance : float
        Twice the mean log loss on the rows of the fit.
    without_points : tuple of SheetRow
        Features of the model that got no points.
    held_out : dict
        Deviance and area under the curve (AUC) on held-out rows, of the sheet ("points"), of the model it was made
        from ("model") and, where features are cut, of a model of their bands without rounding ("cut"); empty if this
        was not requested.
    n_rows : tuple of two int
        The rows that it was made from, and how many of them are of the class.
    pool : tuple of ScoreSheet
        Other sheets over the same features that are nearly as good, best first.
    """

    rows: tuple[SheetRow, ...]
    scale: float
    constant: float
    outcome: str
    totals: np.ndarray
    deviance: float
    without_points: tuple[SheetRow, ...] = ()
    held_out: dict[str, dict[str, float]] = field(default_factory=dict)
    n_rows: tuple[int, int] = (0, 0)
    pool: tuple[ScoreSheet, ...] = ()
    encoding: TableEncoding | None = None
    """How the columns come from those of a raw table, where the model was fitted to one."""
    warnings: tuple[str, ...] = ()
    """What is to be known before the sheet is used, such as that a feature looks like an identifier."""
    missing: frozenset[str] = frozenset()
    """Raw columns that were missing in some rows of the fit: these have lines for a missing value."""

    @property
    def points(self) -> np.ndarray:
        """The points of every row."""
        return np.array([row.points for row in self.rows])

    def risk(self, total: Any) -> Any:
        """The risk of totals."""
        scores = np.clip(self.constant + self.scale * np.asarray(total, dtype=np.float64), -700, 700)
        return 1.0 / (1.0 + np.exp(-scores))

    def total(self, X: Any) -> np.ndarray:
        """Totals of rows: a frame with the features' names, or an array with all columns of the fit.

        Parameters
        ----------
        X : frame, or array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        found: Any = 0.0
        for row in self.rows:
            column = self._column(X, row)
            if not np.all(np.isfinite(column)):
                raise ValueError(f"The column {row.feature!r} holds values that are missing or not finite.")
            found = found + row.points * row.values(column)
        return np.asarray(found)

    def _column(self, X: Any, row: SheetRow) -> np.ndarray:
        """The values of a row's feature: by name in a frame, by position elsewhere and where it has none of its own."""
        if self.encoding is not None:
            raw = int(self.encoding.owner[row.column])
            place = _place(X, self.encoding.raw_names[raw], raw)
            return self.encoding.encode_rows(X, [row.column], [place])[0][:, 0]
        X = X if is_frame(X) else np.asarray(X)
        return np.asarray(column_at(X, _place(X, row.feature, row.column)), dtype=np.float64)

    def predict_risk(self, X: Any) -> np.ndarray:
        """The risk of rows, shape (n_samples,); X as for ``total``."""
        return np.asarray(self.risk(self.total(X)))

    def summary(self) -> str:
        """The sheet as text, to be printed."""
        cells = [[line.name if line.bands else "", line.condition, _points(line.points)] for line in self.lines]
        table = [f"{_total(total):>8} {100 * self.risk(total):6.1f} %" for total in self.totals]
        return "\n".join(
            [
                *aligned([["", "", "points"], *cells], left=2),
                "",
                f"{'total':>8}   risk of {printable(self.outcome)}",
                *table,
                *self._notes(),
            ]
        )

    def __repr__(self) -> str:
        return self.summary()

    @property
    def lines(self) -> list[SheetLine]:
        """The sheet as it is read: a line for every band of a feature that is cut, and every level of a category."""
        together: dict[str, list[SheetRow]] = {}
        for row in self.rows:
            together.setdefault(self._term(row).raw, []).append(row)
        return [line for rows in together.values() for line in self._lines(rows)]

    def _lines(self, rows: list[SheetRow]) -> list[SheetLine]:
        """The lines of a column of the table."""
        numbers = [row for row in rows if self._term(row).kind == NUMBER]
        if not numbers:
            return self._levels(rows)
        lines = self._bands(numbers) if numbers[0].threshold is not None else [self._line(numbers[0])]
        raw, fill = self._term(numbers[0]).raw, self._term(numbers[0]).fill
        if fill is None or raw not in self.missing:
            return lines
        # A missing number counts as what is filled in, and may have points of its own. The sum is whole but for its
        # last bits.
        at = np.array([fill])
        marked = sum(row.points for row in rows if row not in numbers)
        missing = marked + round(sum(row.points * float(row.values(at)[0]) for row in numbers))
        return [replace(lines[0], bands=len(lines) + 1), *lines[1:], SheetLine(lines[0].name, "missing", missing, 0)]

    def _line(self, row: SheetRow) -> SheetLine:
        return SheetLine(*self._words(row), row.points, 1)

    def _levels(self, rows: Sequence[SheetRow]) -> list[SheetLine]:
        """The levels of a category that have points, and all others."""
        lines = [replace(self._line(row), bands=0) for row in rows]
        terms = [self._term(row) for row in rows]
        own_line = MISSING in {term.kind for term in terms}
        other = "any other" if own_line or terms[0].raw not in self.missing else "other or missing"
        return [replace(lines[0], bands=len(lines) + 1), *lines[1:], SheetLine(lines[0].name, other, 0, 0)]

    def _bands(self, rows: Sequence[SheetRow]) -> list[SheetLine]:
        cuts = [f"{row.threshold:.6g}" for row in rows]
        conditions = [f"below {cuts[0]}", *(f"{low} to below {high}" for low, high in pairwise(cuts))]
        conditions.append(f"{cuts[-1]} or more")
        points = np.cumsum([0, *(row.points for row in rows)]).tolist()
        name, bands = self._words(rows[0])[0], [len(points), *[0] * len(rows)]
        return [SheetLine(name, *line) for line in zip(conditions, points, bands, strict=True)]

    def to_python(self) -> str:
        """The sheet as the source of a Python module that imports nothing but ``math``.

        Returns
        -------
        str
            With functions ``total(row)`` and ``risk(row)``; a row is a mapping from names of columns to numbers, and
            to levels and None where the model was fitted to a raw table with such.
        """
        terms = [self._term(row) for row in self.rows]
        rows = tuple(
            (term.raw, term.kind, term.level, term.fill, row.unit or 1.0, row.threshold, row.points)
            for row, term in zip(self.rows, terms, strict=True)
        )
        features = tuple(dict.fromkeys(term.raw for term in terms))
        return (
            PYTHON.format(version=__version__, features=features, rows=rows, scale=self.scale, constant=self.constant)
            + TERM_VALUE
        )

    def to_sql(self, table: str | None = None, *, keep: Sequence[str] = ()) -> str:
        """The sheet as SQL; names are quoted as the standard has it.

        Parameters
        ----------
        table : str or None, default=None
            A table to select from. None: the expression of the total alone.
        keep : sequence of str, default=()
            Columns of the table to pass on.

        Returns
        -------
        str
            With a table: a SELECT of "points" and "risk".
        """
        prefix = "" if table is None else "t."
        terms = self._sql_terms(prefix)
        total = "(" + "\n    + ".join(terms) + ")"
        if table is None:
            if keep:
                raise ValueError("keep needs a table: call to_sql(table=..., keep=...).")
            return total
        kept = [prefix + identifier(name) for name in keep]
        outer = [f"k{place} AS {identifier(name)}" for place, name in enumerate(keep)]
        inner = [f"{column} AS k{place}" for place, column in enumerate(kept)]
        score = f"({self.constant!r} + {self.scale!r} * p)"
        clipped = f"CASE WHEN {score} < -700.0 THEN -700.0 WHEN {score} > 700.0 THEN 700.0 ELSE {score} END"
        columns = ",\n  ".join([*outer, 'p AS "points"', f'1e0 / (1e0 + EXP(-({clipped}))) AS "risk"'])
        source = ",\n  ".join([*inner, f"{total} AS p"])
        return f"SELECT\n  {columns}\nFROM (\nSELECT\n  {source}\nFROM {identifier(table)} t\n) t"

    def _sql_terms(self, prefix: str) -> list[str]:
        """What is added up; the levels of a column, and its being missing, are one case."""
        found, levels = list[str](), dict[str, list[tuple[Term, float]]]()
        for row in self.rows:
            term = self._term(row)
            if term.kind == NUMBER:
                found.append(_sql_term(row, filled(prefix + identifier(term.raw), term.fill)))
            else:
                levels.setdefault(term.raw, []).append((term, row.points))
        return [*found, *(level_case(prefix + identifier(raw), some) for raw, some in levels.items())]

    def to_html(self, title: str | None = None) -> str:
        """The sheet as a page to be printed, with a field for the points of every line.

        Parameters
        ----------
        title : str or None, default=None

        Returns
        -------
        str
        """
        heading = html.escape(title or f"Risk of {self.outcome}")
        lines = "".join(
            f"<tr>{_spanning(line, html.escape(line.name))}<td>{html.escape(line.condition)}</td>"
            f"<td class='n'>{_points(line.points)}</td>{_field(line)}</tr>"
            for line in self.lines
        )
        risks = "".join(
            f"<div><dt>{_total(total)}</dt><dd>{100 * self.risk(total):.1f}&nbsp;%</dd></div>" for total in self.totals
        )
        costs = "".join(f"<p>{html.escape(line)}</p>" for line in self._notes() if line)
        return PAGE.format(title=heading, lines=lines, risks=risks, costs=costs, outcome=html.escape(self.outcome))

    def save_page(self, path: str | os.PathLike[str], title: str | None = None) -> None:
        """Write ``to_html`` to a file, which is replaced in one step if it is there already."""
        write_atomically(path, self.to_html(title).encode("utf-8", "replace"))

    def _words(self, row: SheetRow) -> tuple[str, str]:
        """A column of the table, and when it gives the points: site, is Paris."""
        term = self._term(row)
        if term.kind == NUMBER or row.threshold is not None:
            return row.feature, row.condition
        return term.raw, "is missing" if term.kind == MISSING else f"is {term.level}"

    def _term(self, row: SheetRow) -> Term:
        """How the feature of a row comes from a raw table; itself where there is none."""
        return Term(row.feature, row.feature) if self.encoding is None else self.encoding.terms[row.column]

    def _notes(self) -> list[str]:
        reading = [*self.warnings, *self._vanished(), *self._reading()]
        return [*(["", *reading] if reading else []), *self._costs()]

    def _vanished(self) -> list[str]:
        """Which features of the model are not on the sheet; a level without points is any other one."""
        names = dict.fromkeys(self._term(row).raw for row in self.without_points)
        missed = [name for name in names if all(self._term(row).raw != name for row in self.rows)]
        if not missed:
            return []
        return [
            f"No whole number of points lowers the deviance for {', '.join(map(printable, missed))}: none are given."
        ]

    def _reading(self) -> list[str]:
        """How to read the table for totals that it does not list; nothing where all that can occur are there."""
        found = []
        if any(line.points < 0 for line in self.lines):
            found.append(f"Points below zero are subtracted: they lower the risk of {printable(self.outcome)}.")
        if any(row.unit is not None for row in self.rows):
            found.append(
                "Parts of a unit give parts of points: look up the nearest total of the table. The risk of a total "
                "between two of the table lies between theirs; totals below or above the table have a lower or higher "
                "risk than its ends. A sheet with cuts has whole points by ranges of values."
            )
        return found

    def _costs(self) -> list[str]:
        found = []
        if self.n_rows[0]:
            found.append(
                f"Made from {self.n_rows[0]} rows; {self.n_rows[1]} have the outcome {printable(self.outcome)}."
            )
        if self.held_out:
            found.append(self._comparison())
        return ["", *found] if found else []

    def _comparison(self) -> str:
        """What cutting and rounding cost on held-out rows."""
        ours, theirs, cut = self.held_out["points"], self.held_out["model"], self.held_out.get("cut")
        text = f"On held-out rows: deviance {_both(ours)}; of the model itself {_both(theirs)}."
        if cut is not None:
            text += (
                f" Cutting features changes the deviance by {_change(theirs, cut)}, rounding to points by "
                f"{_change(cut, ours)}."
            )
        elif ours["deviance"] > theirs["deviance"]:
            text += " This is what points cost."
        return (
            f"{text} These figures are optimistic, since all rows chose the features; the evaluation of the model "
            "chooses them again for every fold."
        )


def _both(figures: dict[str, float]) -> str:
    return f"{figures['deviance']:.4f}, AUC {figures['auc']:.4f}"


def _change(before: dict[str, float], after: dict[str, float]) -> str:
    return f"{after['deviance'] - before['deviance']:+.4f} and the AUC by {after['auc'] - before['auc']:+.4f}"


def _place(X: Any, name: str, position: int) -> int:
    """Where the column of a feature stands in X."""
    names, width = names_of(X), np.shape(X)[1]
    if names is not None and name in names:
        return names.index(name)
    if names is not None and [name] != column_names(None, [position]):
        raise ValueError(f"X has no column {name!r}, which has points.")
    if position >= width:
        raise ValueError(f"X has {width} columns, but needs all columns of the fit: {name!r} is number {position}.")
    return position


def _points(points: int) -> str:
    return f"{points:+d}" if points else "0"


def _spanning(line: SheetLine, name: str) -> str:
    """The name of a feature beside all its lines."""
    return f"<th scope='rowgroup' rowspan='{line.bands}'>{name}</th>" if line.bands else ""


def _field(line: SheetLine) -> str:
    """Where the points of a feature are written."""
    return f"<td class='field' rowspan='{line.bands}'></td>" if line.bands else ""


def _total(total: float) -> str:
    return f"{total:.4g}"


def _sql_term(row: SheetRow, column: str) -> str:
    if row.threshold is not None:
        # A missing value must not count as below the threshold.
        return f"CASE WHEN {column} >= {row.threshold!r} THEN {row.points} WHEN {column} < {row.threshold!r} THEN 0 END"
    return f"({row.points}) * ({column} / {float(row.unit or 1.0)!r})"


def sheet_totals(seen: np.ndarray, scale: float, constant: float) -> np.ndarray:
    """Totals for the table: those that occurred if they are few, else evenly spaced ones over what matters.

    That ends where the risk is all but certain, or where next to no rows are.
    """
    different = np.unique(np.round(seen, 9))
    if len(different) <= MOST_TOTALS:
        return different
    low, high = np.quantile(seen, (0.01, 0.99))
    if scale > 0:
        low, high = max(low, (-EXTREME_LOG_ODDS - constant) / scale), min(high, (EXTREME_LOG_ODDS - constant) / scale)
    step = round_number(max(high - low, 1e-9) / MOST_TOTALS * 1.5)
    if high - low >= FEWEST_TOTALS:  # whole totals, which are what people add up to
        step = max(1.0, step)
    return np.arange(math.floor(low / step), math.ceil(high / step) + 1) * step


PYTHON = '''"""A sheet of points, written by pauca {version}.

A row is a mapping from the names in FEATURES to numbers and levels; missing values are None or NaN.
"""

import math

FEATURES = {features!r}
ROWS = {rows!r}
"""A column, "number", "level" or "missing", the level, the value where the column is missing, if it may be, the unit, a
threshold or None, points."""
SCALE, CONSTANT = {scale!r}, {constant!r}


def total(row):
    """The points of a row, added up."""
    found = 0.0
    for column, kind, level, fill, unit, threshold, points in ROWS:
        value = _value(row[column], column, kind, level, fill)
        found += points * (value / unit if threshold is None else float(value >= threshold))
    return found


def risk(row):
    """The risk that belongs to the total."""
    score = min(max(CONSTANT + SCALE * total(row), -700.0), 700.0)
    return 1.0 / (1.0 + math.exp(-score))
'''

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; color: #1d1d1f; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }}
h1 {{ font-size: 1.5rem }}
table {{ border-collapse: collapse; width: 100%; margin: 1rem 0 }}
td, th {{ border: 1px solid #9aa0a6; padding: .35rem .6rem; text-align: left; font-weight: normal }}
.n {{ text-align: right; font-weight: 600 }} .field {{ width: 6rem }}
dl {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(4rem, 1fr)); gap: 1px; padding: 1px }}
dl div {{ outline: 1px solid #9aa0a6; text-align: center; font-size: .85rem; break-inside: avoid }}
dt, dd {{ margin: 0; padding: .2rem }} dt {{ border-bottom: 1px solid #dadce0 }} p {{ color: #3c4043 }}
@media (max-width: 30rem) {{ td, th {{ padding: .35rem; overflow-wrap: anywhere }} .field {{ width: 3rem }} }}
</style></head><body>
<h1>{title}</h1>
<table><thead><tr><th scope="col">Feature</th><th scope="col">Points are given</th>
<th scope="col">Points</th><th scope="col">Yours</th></tr></thead>
<tbody>{lines}
<tr><th scope="row" colspan="3">Add the points: total</th><td class="field"></td></tr></tbody></table>
<dl><div><dt>Total</dt><dd>Risk</dd></div>{risks}</dl>
<p>Risk is the probability of {outcome}.</p>{costs}
</body></html>
"""
