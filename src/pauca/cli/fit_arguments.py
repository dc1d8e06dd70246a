"""From a table and the options to the arguments of an estimator: columns, target, weights and constraints."""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pauca.cli.console import Console, DataError, UsageError, count
from pauca.cli.constraints import ConstraintOptions, split_names
from pauca.cli.encoding import EncodedColumn, build_columns, clean_columns, encoded_columns, text_levels
from pauca.cli.options import LOSSES_FOR_CLASSES
from pauca.cli.streaming import is_too_large, read_in_chunks
from pauca.cli.table_files import (
    TableFile,
    inspect_table,
    polars,
    read_frame,
    read_libsvm,
    select_columns,
    with_safe_name,
)
from pauca.export.model_file import RawTable
from pauca.wording import quoted

if TYPE_CHECKING:
    import polars as pl

# In tables of at least so many rows, a column of consecutive integers is noted as row numbers.
LEAST_ROWS_TO_NUMBER = 20

# A target of at most so many different integers, each in a few rows, is taken for classes.
MOST_CLASSES = 10
ROWS_PER_CLASS = 5

# Options that name a column with a value for every row, besides the target.
ROW_OPTIONS = ("sample_weight", "exposure", "offset", "row_groups", "event", "entry", "strata")
SURVIVAL_OPTIONS = ("time", "event", "entry", "strata", "ties")


@dataclass(frozen=True, eq=False)
class Target:
    """The values to predict, and the task they make: one of ``TASKS``."""

    name: str
    y: Any
    task: str

    @property
    def is_class(self) -> bool:
        """Whether the values are classes, in an order or not."""
        return self.task in {"classification", "ordinal"}


@dataclass(frozen=True, eq=False)
class Problem:
    """The arguments of a fit: columns, target, parameters of constraints, and what is given for every row."""

    X: Any
    target: Target
    parameters: dict[str, Any]
    raw_table: RawTable
    of_rows: dict[str, Any] = field(default_factory=dict)
    """Further arguments of ``fit``, such as sample_weight and groups."""
    n_dropped: int = 0
    read_seconds: float = 0.0


def make_problem(options: Namespace, console: Console) -> Problem:
    """Read the table and apply the options to it."""
    if options.budget is not None and options.costs is None:
        raise UsageError("--budget needs --costs, a file with the cost of every column")
    if options.criterion is not None and (options.cv is not None or options.scoring is not None):
        raise UsageError("--criterion uses no cross-validation; remove --cv and --scoring, or --criterion")
    if options.n_jobs == 0:
        raise UsageError("--n-jobs must be a number of parallel folds, or -1 for one on each core")
    check_survival(options)
    table = inspect_table(options.table, options.delimiter)
    return _from_libsvm(table, options, console) if table.format == "libsvm" else _from_frame(table, options, console)


def _from_libsvm(table: TableFile, options: Namespace, console: Console) -> Problem:
    for option in ("target", "drop", "categories", "missing", "delimiter", *ROW_OPTIONS):
        if getattr(options, option) is not None:
            raise UsageError(
                f"--{option.replace('_', '-')} does not work with a LIBSVM file: its target is the label, and its "
                "columns have no names"
            )
    started = time.perf_counter()
    X, y, first = read_libsvm(table)
    seconds = time.perf_counter() - started
    console.note(f"columns are called x0, x1, ...; x0 is column {first} of the file")
    target = make_target(polars().Series("label", y), options, console)
    names = [f"x{j}" for j in range(X.shape[1])]
    constraints = ConstraintOptions(options, [EncodedColumn(name, name) for name in names], names, by_name=False)
    return Problem(X, target, constraints.parameters(), RawTable(first_index=first), read_seconds=seconds)


def _from_frame(table: TableFile, options: Namespace, console: Console) -> Problem:
    if options.target is None:
        raise UsageError("--target is missing; give it the name of the column to predict")
    table.require(options.target, "--target")
    if table.has_index:
        console.note("the first column has no name and is ignored")
    row_options = {name: getattr(options, name) for name in ROW_OPTIONS if getattr(options, name)}
    features = _candidates(table, options, row_options)
    codes = split_names(options.categories, table.columns)
    for name in codes:
        table.require(name, "--categories")
    polars()  # a missing library is reported before the clock starts
    started = time.perf_counter()
    others = [options.target, *row_options.values()]
    if is_too_large(table, features, options.memory):
        return _from_chunks(table, features, others, row_options, options, console)
    frame = read_frame(table, [*features, *others], [name for name in codes if name in features])
    height = frame.height
    given = select_columns(frame, others)
    frame = clean_columns(select_columns(frame, features), table.path, codes)
    frame, given, medians = _without_missing(frame, given, options, console)
    levels = text_levels(frame, table.path)
    _note_levels(levels, console)
    _note_row_numbers(frame, console)
    encoded = encoded_columns(frame.columns, levels)
    if not encoded:
        raise DataError(f"{table.path} has no candidate columns besides the target")
    return Problem(
        X=build_columns(frame, encoded),
        target=_target(given, options, console),
        parameters=ConstraintOptions(options, encoded, table.columns).parameters(),
        raw_table=RawTable({column: values[0] for column, values in levels.items()}, medians),
        of_rows=_of_rows(given, row_options),
        n_dropped=height - frame.height,
        read_seconds=time.perf_counter() - started,
    )


def _from_chunks(
    table: TableFile,
    features: list[str],
    others: list[str],
    row_options: dict[str, str],
    options: Namespace,
    console: Console,
) -> Problem:
    """The arguments of a fit on a table that is read in chunks."""
    if options.task in {"ordinal", "survival"}:
        raise DataError(f"--task {options.task} needs the table in memory: give --memory more than it takes")
    started = time.perf_counter()
    X, given = read_in_chunks(table, features, others, options)
    console.note(f"the table is larger than --memory, and is read in chunks of {X.rows_per_chunk:,} rows")
    encoded = [EncodedColumn(name, name) for name in features]
    return Problem(
        X=X,
        target=_target(given, options, console),
        parameters=ConstraintOptions(options, encoded, table.columns).parameters(),
        raw_table=RawTable(),
        of_rows=_of_rows(given, row_options),
        read_seconds=time.perf_counter() - started,
    )


def _candidates(table: TableFile, options: Namespace, row_options: dict[str, str]) -> list[str]:
    """The columns to select from."""
    used = {options.target: "--time" if options.task == "survival" else "--target"}
    for name, column in row_options.items():
        option = f"--{name.replace('_', '-')}"
        table.require(column, option)
        if column in used:
            raise UsageError(f"{column!r} is given as both {used[column]} and {option}")
        used[column] = option
    dropped = split_names(options.drop, table.columns)
    for name in dropped:
        table.require(name, "--drop")
        if name in used:
            raise UsageError(f"{name!r} is given as both {used[name]} and --drop")
    always = split_names(options.always, table.columns)
    never = split_names(options.never, table.columns)
    for name in always:
        if name in never or name in dropped or name in used:
            other = "--never" if name in never else "--drop" if name in dropped else used[name]
            raise UsageError(f"{name!r} is given as both --always and {other}")
    if options.feature_groups is None:  # otherwise the name may be that of a group
        for name in never:
            if "=" not in name:
                table.require(name, "--never")
    # Columns that are never used are not read, so they may hold anything.
    return [name for name in table.columns if name not in used and name not in dropped and name not in never]


def check_survival(options: Namespace) -> None:
    """Raise an error for options of survival that do not go together; the time takes the place of the target."""
    given = [f"--{name}" for name in SURVIVAL_OPTIONS if getattr(options, name) is not None]
    if options.task is None and given:
        options.task = "survival"
    if options.task != "survival":
        if given:
            raise UsageError(f"{given[0]} is for --task survival, not for {options.task}")
        return
    if options.time is None or options.event is None:
        raise UsageError("--task survival needs --time and --event, the names of two columns")
    if options.target is not None:
        raise UsageError("--task survival has --time and --event instead of --target")
    options.target = options.time


def _target(given: pl.DataFrame, options: Namespace, console: Console) -> Target:
    if options.task == "survival":
        return Target(options.time, select_columns(given, [options.event, options.time]), options.task)
    return make_target(given[options.target], options, console)


def make_target(column: pl.Series, options: Namespace, console: Console) -> Target:
    """The target of a fit; an inferred task is noted."""
    pl = polars()
    if column.dtype.is_temporal():
        raise DataError(f"the target {column.name!r} holds dates or times; convert them to numbers first")
    column = clean_columns(column.to_frame(), "the target")[column.name]
    values = with_safe_name(column).unique().sort()
    if values.len() < 2:
        raise DataError(f"the target {column.name!r} is constant: {values[0]!r} in every row")
    if not _is_classification(column, values, options, console):
        return Target(column.name, column.cast(pl.Float64).to_numpy(), "regression")
    if column.dtype.is_float():
        if not _are_integers(values):
            raise DataError(f"the target {column.name!r} holds numbers with fractions; use --task regression")
        column = column.cast(pl.Int64)
    return Target(column.name, np.array(column.to_list()), options.task or "classification")


def _is_classification(column: pl.Series, values: pl.Series, options: Namespace, console: Console) -> bool:
    """Whether to classify: by --task or --loss if given, otherwise inferred from the values."""
    pl = polars()
    is_text = column.dtype == pl.String
    by_loss = None if options.loss is None else options.loss in LOSSES_FOR_CLASSES
    by_task = None if options.task is None else options.task != "regression"
    if by_task is not None and by_loss is not None and by_loss != by_task:
        raise UsageError(f"--loss {options.loss} is for {'classes' if by_loss else 'numbers'}, not for {options.task}")
    given = by_loss if by_task is None else by_task
    if given is False and is_text:
        raise DataError(f"the target {column.name!r} holds text, such as {values[0]!r}; regression needs numbers")
    if given is not None:
        return given
    if is_text or column.dtype == pl.Boolean:
        console.note(f"classification, since {column.name!r} holds {'text' if is_text else 'true and false'}")
        return True
    few = values.len() <= MOST_CLASSES and values.len() * ROWS_PER_CLASS <= column.len() and _are_integers(values)
    if few:
        console.note(
            f"classification, since {column.name!r} holds {values.len()} different integers; use --task regression to "
            "predict them as numbers"
        )
    else:
        console.note(f"regression, since {column.name!r} holds numbers")
    return few


def _are_integers(values: pl.Series) -> bool:
    return values.dtype.is_integer() or bool((values == values.round()).all())


def _without_missing(
    frame: pl.DataFrame, given: pl.DataFrame, options: Namespace, console: Console
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, float] | None]:
    """Features, and target and row columns, without missing values, and the medians that replaced them, if any."""
    pl = polars()
    given = given.with_columns(pl.selectors.float().fill_nan(None))
    if options.missing == "drop-rows":
        both = pl.concat([frame, given], how="horizontal")
        complete = both.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
        n_dropped = int((~complete).sum())
        if n_dropped == frame.height:
            raise DataError("every row has a missing value; use --missing median, or --drop the columns that lack most")
        if n_dropped:
            console.note(f"dropped {count(n_dropped, 'row')} of {frame.height:,} with missing values")
        return frame.filter(complete), given.filter(complete), None
    for column in given.columns:
        if given[column].dtype.is_float() and given[column].is_infinite().any():
            raise DataError(f"the column {column!r} has infinite values; leave out those rows")
        n_missing = given[column].null_count()
        if n_missing:
            role = "the target" if column == options.target else "the column"
            raise DataError(
                f"{role} {column!r} has {count(n_missing, 'missing value')} in {count(frame.height, 'row')}; "
                "--missing drop-rows drops these rows"
            )
    lacking = {column.name: number for column in frame.get_columns() if (number := column.null_count())}
    if options.missing == "median":
        filled, medians = _fill_with_medians(frame)
        if lacking:
            total = count(sum(lacking.values()), "missing value")
            console.note(f"replaced {total} by medians (text: the most frequent value): {quoted(list(lacking))}")
        return filled, given, medians
    if lacking:
        listed = ", ".join(f"{column!r} ({number:,})" for column, number in list(lacking.items())[:5])
        more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
        raise DataError(
            f"missing values in {listed}{more}, of {count(frame.height, 'row')}; --missing drop-rows drops these rows, "
            "--missing median replaces the values, --drop ignores columns"
        )
    return frame, given, None


def _fill_with_medians(frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, float]]:
    pl = polars()
    empty = [column.name for column in frame.get_columns() if column.null_count() == frame.height]
    if empty:
        raise DataError(f"columns without any value have no median: {quoted(empty)}; use --drop {','.join(empty)}")
    medians, columns = {}, []
    for column in frame.get_columns():
        if column.dtype == pl.String:
            text = with_safe_name(column)
            columns.append(text.fill_null(text.drop_nulls().mode().sort()[0]).alias(column.name))
            continue
        numbers = with_safe_name(column).cast(pl.Float64)
        medians[column.name] = _as_float(numbers.median())
        columns.append(numbers.fill_null(medians[column.name]).alias(column.name))
    return pl.DataFrame(columns), medians


def _note_levels(levels: dict[str, list[str]], console: Console) -> None:
    for column, values in levels.items():
        if len(values) < 2:
            console.note(f"column {column!r} is constant ({values[0]!r}) and is ignored")
    listed = [f"{column} ({values[0]!r})" for column, values in levels.items() if len(values) > 1]
    if listed:
        more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
        console.note(f"text columns are encoded as categories (baselines): {', '.join(listed[:5])}{more}")


def _note_row_numbers(frame: pl.DataFrame, console: Console) -> None:
    for column in frame.get_columns():
        if (
            column.dtype.is_integer()
            and column.len() >= LEAST_ROWS_TO_NUMBER
            and _as_float(column.max()) - _as_float(column.min()) == column.len() - 1
            and column.n_unique() == column.len()
        ):
            console.note(f"column {column.name!r} looks like row numbers; --drop {column.name} ignores it")


def _as_float(value: Any) -> float:
    """A statistic of a column, which polars types as any value that a column may hold."""
    return float(value)


def row_numbers(column: pl.Series, option: str) -> np.ndarray:
    """A column of numbers, one for every row."""
    if not column.dtype.is_numeric():
        raise DataError(f"{option}: the column {column.name!r} does not hold numbers")
    return column.cast(polars().Float64).to_numpy()


def _of_rows(given: pl.DataFrame, row_options: dict[str, str]) -> dict[str, Any]:
    """Arguments of ``fit`` that are given for every row; labels of groups become integers."""
    found: dict[str, Any] = {}
    for name, column in row_options.items():
        if name == "row_groups":
            found["groups"] = with_safe_name(given[column]).rank("dense").to_numpy()
        elif name == "strata":
            found["strata"] = np.array(given[column].to_list())
        elif name == "event":
            found["event"] = column
        else:
            found[name] = row_numbers(given[column], f"--{name.replace('_', '-')}")
    return found
