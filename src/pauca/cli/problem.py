"""From a table and the options to what an estimator is fitted with."""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pauca.cli.constraints import ColumnConstraints, split_names
from pauca.cli.files import TableFile, look_at, nameless, polars, read_frame, read_libsvm, selected
from pauca.cli.messages import BadData, BadUsage, Voice, counted
from pauca.cli.tables import Part, built, parts_of, split_text, tidied
from pauca.cli.target import Target, make_target
from pauca.export.raw_table import RawTable
from pauca.wording import quoted

if TYPE_CHECKING:
    import polars as pl

# Columns that merely count the rows are pointed out from so many rows on.
ROWS_TO_BE_COUNTED = 20


@dataclass(frozen=True, eq=False)
class Problem:
    """What is fitted: columns, target, row weights, rows that belong together, and wishes."""

    X: Any
    target: Target
    settings: dict[str, Any]
    raw: RawTable
    weights: Any = None
    rows: Any = None
    n_dropped: int = 0
    read_seconds: float = 0.0
    parts: list[Part] = field(default_factory=list)


def make_problem(options: Namespace, voice: Voice) -> Problem:
    """Read the table and make of it what the options ask for."""
    if options.budget is not None and options.costs is None:
        raise BadUsage("--budget needs --costs, a file with the price of every column")
    if options.criterion is not None and (options.cv is not None or options.scoring is not None):
        raise BadUsage("--criterion needs no folds: leave out --cv and --scoring, or --criterion")
    if options.jobs == 0:
        raise BadUsage("--jobs must be a number of folds at a time, or -1 for one on each core")
    table = look_at(options.table, options.delimiter)
    return _from_libsvm(table, options, voice) if table.kind == "libsvm" else _from_frame(table, options, voice)


def _from_libsvm(table: TableFile, options: Namespace, voice: Voice) -> Problem:
    for option in ("target", "drop", "categories", "missing", "weights", "rows_of", "delimiter"):
        if getattr(options, option) is not None:
            word = option.replace("_", "-")
            raise BadUsage(f"--{word} does not go with a LIBSVM file, whose target is its label and which has no names")
    began = time.perf_counter()
    X, y, first = read_libsvm(table)
    seconds = time.perf_counter() - began
    voice.note(f"column {first} of the file is called x0, as in any table without names")
    target = make_target(polars().Series("label", y), options, voice)
    names = [f"x{j}" for j in range(X.shape[1])]
    wishes = ColumnConstraints(options, [Part(name, name) for name in names], names, named=False)
    return Problem(X, target, wishes.settings(), RawTable(first_index=first), read_seconds=seconds)


def _from_frame(table: TableFile, options: Namespace, voice: Voice) -> Problem:
    if options.target is None:
        raise BadUsage("--target must say which column is to be foretold")
    table.require(options.target, "to foretell")
    if table.numbered:
        voice.note("the first column has no name and was left out")
    extra = {option: getattr(options, option) for option in ("weights", "rows_of") if getattr(options, option)}
    features = _features(table, options, extra)
    codes = split_names(options.categories, table.columns)
    for name in codes:
        table.require(name, "for --categories")
    polars()
    began = time.perf_counter()
    wanted = [*features, options.target, *extra.values()]
    frame = read_frame(table, wanted, [name for name in codes if name in features])
    height = frame.height
    given = selected(frame, [options.target, *extra.values()])
    frame = tidied(selected(frame, features), table.path, codes)
    frame, given, medians = _without_missing(frame, given, options, voice)
    levels = split_text(frame, table.path)
    _tell_levels(levels, voice)
    _tell_row_numbers(frame, voice)
    parts = parts_of(frame.columns, levels)
    if not parts:
        raise BadData(f"{table.path} has no column to choose from beside the target")
    target = make_target(given[options.target], options, voice)
    settings = ColumnConstraints(options, parts, table.columns).settings()
    X = built(frame, parts)
    return Problem(
        X,
        target,
        settings,
        RawTable({column: found[0] for column, found in levels.items()}, medians),
        _weights(given, extra.get("weights")),
        _rows(given, extra.get("rows_of")),
        height - frame.height,
        time.perf_counter() - began,
        parts,
    )


def _features(table: TableFile, options: Namespace, extra: dict[str, str]) -> list[str]:
    """Columns to choose from."""
    taken = {options.target: "--target"}
    for option, column in extra.items():
        word = f"--{option.replace('_', '-')}"
        table.require(column, f"for {word}")
        if column in taken:
            raise BadUsage(f"{column!r} cannot be both {taken[column]} and {word}")
        taken[column] = word
    dropped = split_names(options.drop, table.columns)
    for name in dropped:
        table.require(name, "to drop")
        if name in taken:
            raise BadUsage(f"{name!r} cannot be both {taken[name]} and --drop")
    always = split_names(options.always, table.columns)
    never = split_names(options.never, table.columns)
    for name in always:
        if name in never or name in dropped or name in taken:
            other = "--never" if name in never else "--drop" if name in dropped else taken[name]
            raise BadUsage(f"{name!r} cannot be both --always and {other}")
    if options.groups is None:  # with groups, what is never in may be a group
        for name in never:
            if "=" not in name:
                table.require(name, "for --never")
    # What is never chosen need not be read, and may then hold anything.
    return [name for name in table.columns if name not in taken and name not in dropped and name not in never]


def _without_missing(
    frame: pl.DataFrame, given: pl.DataFrame, options: Namespace, voice: Voice
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, float] | None]:
    """The table without missing values, and the medians they were filled with, if they were."""
    pl = polars()
    given = given.with_columns(pl.selectors.float().fill_nan(None))
    if options.missing == "drop-rows":
        whole = (
            pl.concat([frame, given], how="horizontal").select(pl.all_horizontal(pl.all().is_not_null())).to_series()
        )
        lost = int((~whole).sum())
        if lost == frame.height:
            raise BadData("every row has a missing value; try --missing median, or --drop the columns that lack most")
        if lost:
            voice.note(f"{counted(lost, 'row')} of {frame.height:,} with missing values left out")
        return frame.filter(whole), given.filter(whole), None
    for column in given.columns:
        count = given[column].null_count()
        if count:
            role = "the target" if column == options.target else "the column"
            raise BadData(
                f"{role} {column!r} has {counted(count, 'missing value')} in {counted(frame.height, 'row')}; "
                "--missing drop-rows leaves out those rows"
            )
    lacking = {column.name: count for column in frame.get_columns() if (count := column.null_count())}
    if options.missing == "median":
        filled, medians = _filled(frame)
        if lacking:
            total = counted(sum(lacking.values()), "missing value")
            voice.note(f"{total} filled with medians (text: the most frequent value): {quoted(list(lacking))}")
        return filled, given, medians
    if lacking:
        told = ", ".join(f"{column!r} ({count:,})" for column, count in list(lacking.items())[:5])
        more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
        raise BadData(
            f"missing values in {told}{more}, of {counted(frame.height, 'row')}; --missing drop-rows leaves out rows, "
            "--missing median fills them in, --drop leaves out columns"
        )
    return frame, given, None


def _filled(frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, float]]:
    pl = polars()
    empty = [column.name for column in frame.get_columns() if column.null_count() == frame.height]
    if empty:
        raise BadData(
            f"columns without any value have no median: {quoted(empty)}; leave them out: --drop {','.join(empty)}"
        )
    medians, columns = {}, []
    for column in frame.get_columns():
        if column.dtype == pl.String:
            text = nameless(column)
            columns.append(text.fill_null(text.drop_nulls().mode().sort()[0]).alias(column.name))
            continue
        numbers = nameless(column).cast(pl.Float64)
        medians[column.name] = _float(numbers.median())
        columns.append(numbers.fill_null(medians[column.name]).alias(column.name))
    return pl.DataFrame(columns), medians


def _tell_levels(levels: dict[str, list[str]], voice: Voice) -> None:
    for column, found in levels.items():
        if len(found) < 2:
            voice.note(f"column {column!r} holds the one value {found[0]!r} and was left out")
    told = [f"{column} ({found[0]!r})" for column, found in levels.items() if len(found) > 1]
    if told:
        more = f" and {len(told) - 5} more" if len(told) > 5 else ""
        voice.note(f"columns of text became categories, each compared with its baseline: {', '.join(told[:5])}{more}")


def _tell_row_numbers(frame: pl.DataFrame, voice: Voice) -> None:
    for column in frame.get_columns():
        if (
            column.dtype.is_integer()
            and column.len() >= ROWS_TO_BE_COUNTED
            and _float(column.max()) - _float(column.min()) == column.len() - 1
            and column.n_unique() == column.len()
        ):
            voice.note(f"column {column.name!r} merely numbers the rows; --drop {column.name} leaves it out")


def _float(value: Any) -> float:
    """A figure of a column; the types of polars allow for columns of anything."""
    return float(value)


def _weights(given: pl.DataFrame, column: str | None) -> np.ndarray | None:
    if column is None:
        return None
    if not given[column].dtype.is_numeric():
        raise BadData(f"the weights {column!r} are not numbers")
    return given[column].cast(polars().Float64).to_numpy()


def _rows(given: pl.DataFrame, column: str | None) -> np.ndarray | None:
    """Numbers that are alike where the column is."""
    return None if column is None else nameless(given[column]).rank("dense").to_numpy()
