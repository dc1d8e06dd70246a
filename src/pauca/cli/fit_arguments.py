"""From a table and the options to the arguments of an estimator: columns, target, weights and constraints."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pauca.cli.console import Console, DataError, UsageError, count, did_you_mean
from pauca.cli.constraints import ConstraintOptions, split_names
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
from pauca.tables import TableError, read_table
from pauca.tables.raw_columns import RawColumn, UnreadableColumn, read_column, read_numbers
from pauca.wording import NAMES_SHOWN, quoted

if TYPE_CHECKING:
    import polars as pl

# A target of at most so many different integers, each in a few rows, is taken for classes.
MOST_CLASSES = 10
ROWS_PER_CLASS = 5

# Options that name a column with a value for every row, besides the target.
ROW_OPTIONS = ("sample_weight", "exposure", "offset", "row_groups", "event", "entry", "strata")
SURVIVAL_OPTIONS = ("time", "event", "event_value", "entry", "strata", "ties")


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
    first_index: int | None = None
    """Whether a LIBSVM file counts its columns from 0 or 1; None for other tables."""
    of_rows: dict[str, Any] = field(default_factory=dict)
    """Further arguments of ``fit``, such as sample_weight and groups."""
    n_dropped: int = 0
    read_seconds: float = 0.0


def _check_scoring(name: str | None) -> None:
    from sklearn.metrics import get_scorer_names  # it takes long, and help and errors do without

    if name is not None and name not in (known := get_scorer_names()):
        raise UsageError(f"--scoring: {name!r} is not a scorer of scikit-learn{did_you_mean(name, known)}")


def make_problem(options: Namespace, console: Console) -> Problem:
    """Read the table and apply the options to it."""
    if options.budget is not None and options.costs is None:
        raise UsageError("--budget needs --costs, a file with lines COLUMN,COST; columns that it does not name cost 1")
    if options.criterion is not None and (options.cv is not None or options.scoring is not None):
        raise UsageError("--criterion uses no cross-validation; remove --cv and --scoring, or --criterion")
    _check_scoring(options.scoring)
    if options.n_jobs == 0:
        raise UsageError("--n-jobs must be a number of parallel folds, or -1 for one on each core")
    check_survival(options)
    table = inspect_table(options.table, options.delimiter, has_header=not options.no_header)
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
    constraints = ConstraintOptions(options, names, names, by_name=False)
    return Problem(X, target, constraints.parameters(), first, read_seconds=seconds)


def _from_frame(table: TableFile, options: Namespace, console: Console) -> Problem:
    if options.target is None:
        raise UsageError("--target is missing; give it the name of the column to predict")
    table.require(options.target, "--target")
    if table.has_index:
        console.note("the first column has no name and is ignored")
    if not table.has_header:
        console.note(f"without a header, columns are called {table.columns[0]} to {table.columns[-1]}")
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
    if not features:
        raise DataError(f"{table.path} has no candidate columns besides the target")
    codes = [name for name in codes if name in features]
    frame = read_frame(table, [*features, *others], codes)
    height = frame.height
    frame, given = _complete_rows(select_columns(frame, features), select_columns(frame, others), options, console)
    encoding: dict[str, Any] = {"missing": "error" if options.missing in {None, "drop-rows"} else options.missing}
    if codes:
        encoding["categorical_features"] = codes
    return Problem(
        X=frame,
        target=_target(given, options, console),
        parameters=ConstraintOptions(options, features, table.columns).parameters() | encoding,
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
    return Problem(
        X=X,
        target=_target(given, options, console),
        parameters=ConstraintOptions(options, features, table.columns).parameters(),
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
    given = [f"--{name.replace('_', '-')}" for name in SURVIVAL_OPTIONS if getattr(options, name) is not None]
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
        happened = events(given[options.event], options.event_value)
        pair = select_columns(given, [options.event, options.time]).with_columns(happened)
        return Target(options.time, pair, options.task)
    return make_target(given[options.target], options, console)


def events(column: pl.Series, value: str | None) -> pl.Series:
    """Whether the event was seen, row by row: where the column has a value that was named, or is true, or 1."""
    held = with_safe_name(column).unique().sort().to_list()
    if value is None and set(held) <= {0, 1}:  # true and false are the same
        return column
    names = [f"{one:g}" if isinstance(one, float) else str(one) for one in held]
    if value is None:
        raise DataError(
            f"--event: the column {column.name!r} must be true or false, or 1 and 0, and holds {quoted(names)}; "
            f"--event-value says which of them is the event, such as --event-value {names[-1]}"
        )
    meant = [one for one, name in zip(held, names, strict=True) if name.casefold() == value.casefold()]
    if not meant:
        raise DataError(f"--event-value: the column {column.name!r} has no {value!r}; it holds {quoted(names)}")
    return (with_safe_name(column) == meant[0]).alias(column.name)


def make_target(column: pl.Series, options: Namespace, console: Console) -> Target:
    """The target of a fit; an inferred task is noted."""
    try:
        found = read_column(column.alias("column"), column.name)
    except UnreadableColumn as error:
        what = "dates or times" if error.kind == "date" else "values that are neither numbers nor text"
        raise DataError(f"the target {column.name!r} holds {what}; convert them to numbers first") from None
    if found.unclear:
        raise DataError(
            f"the target {column.name!r} holds numbers such as {found.unclear!r}, which may be thousands or decimals; "
            "write them as plain numbers, with a decimal point and no separators"
        )
    values = found.levels if found.numbers is None else np.unique(found.numbers).tolist()
    if len(values) < 2:
        raise DataError(f"the target {column.name!r} is constant: {values[0]!r} in every row")
    is_bool = column.dtype == polars().Boolean
    if not _is_classification(found, values, is_bool, options, console):
        return Target(column.name, np.asarray(found.numbers), "regression")
    task = options.task or "classification"
    if found.numbers is None:
        return Target(column.name, np.array(values)[found.codes], task)
    if not _are_integers(values):
        raise DataError(f"the target {column.name!r} holds numbers with fractions; use --task regression")
    return Target(column.name, found.numbers.astype(bool if is_bool else np.int64), task)


def _is_classification(
    column: RawColumn, values: Sequence[Any], is_bool: bool, options: Namespace, console: Console
) -> bool:
    """Whether to classify: by --task or --loss if given, otherwise inferred from the values."""
    is_text = column.numbers is None
    by_loss = None if options.loss is None else options.loss in LOSSES_FOR_CLASSES
    by_task = None if options.task is None else options.task != "regression"
    if by_task is not None and by_loss is not None and by_loss != by_task:
        raise UsageError(f"--loss {options.loss} is for {'classes' if by_loss else 'numbers'}, not for {options.task}")
    given = by_loss if by_task is None else by_task
    if given is False and is_text:
        raise DataError(f"the target {column.name!r} holds text, such as {values[0]!r}; regression needs numbers")
    if given is not None:
        return given
    if is_text or is_bool:
        console.note(f"classification, since {column.name!r} holds {'text' if is_text else 'true and false'}")
        return True
    few = len(values) <= MOST_CLASSES and len(values) * ROWS_PER_CLASS <= len(column) and _are_integers(values)
    if few:
        console.note(
            f"classification, since {column.name!r} holds {len(values)} different integers; use --task regression to "
            "predict them as numbers"
        )
    else:
        console.note(f"regression, since {column.name!r} holds numbers")
    return few


def _are_integers(values: Sequence[Any]) -> bool:
    return all(float(value).is_integer() for value in values)


def _complete_rows(
    frame: pl.DataFrame, given: pl.DataFrame, options: Namespace, console: Console
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Features, and target and row columns; rows with missing values are dropped, or an error for the latter."""
    pl = polars()
    frame, given = (part.with_columns(pl.selectors.float().fill_nan(None)) for part in (frame, given))
    if options.missing == "drop-rows":
        both = pl.concat([frame, given], how="horizontal")
        complete = both.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
        n_dropped = int((~complete).sum())
        if n_dropped == frame.height:
            raise DataError("every row has a missing value; use --missing median, or --drop the columns that lack most")
        if n_dropped:
            console.note(f"dropped {count(n_dropped, 'row')} of {frame.height:,} with missing values")
        return frame.filter(complete), given.filter(complete)
    if options.missing is not None:  # nothing can stand for a target
        known = given[options.target].is_not_null()
        n_dropped = int((~known).sum())
        if 0 < n_dropped < frame.height:
            console.note(f"dropped {count(n_dropped, 'row')} of {frame.height:,} without a target")
            frame, given = frame.filter(known), given.filter(known)
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
    if options.missing is None and any(column.null_count() for column in frame.get_columns()):
        with table_errors(options.table):
            read_table(frame, split_names(options.categories, frame.columns) or "from_dtype", "error", options.table)
    return frame, given


@contextmanager
def table_errors(path: str) -> Iterator[None]:
    """Problems of a table in one line, with the options that solve them."""
    try:
        yield
    except TableError as error:
        parts = list(error.problems)
        if error.columns:
            parts.append(f"--drop {','.join(error.columns[:NAMES_SHOWN])} ignores columns")
        if error.missing:
            listed = ", ".join(f"{name!r} ({number:,})" for name, number in list(error.missing.items())[:NAMES_SHOWN])
            more = f" and {len(error.missing) - NAMES_SHOWN} more" if len(error.missing) > NAMES_SHOWN else ""
            parts.append(
                f"missing values in {listed}{more}; --missing drop-rows drops these rows, --missing median replaces "
                "the values, --missing category makes them a category, --drop ignores columns"
            )
        raise DataError(f"{path}: {'; '.join(parts)}") from None


def row_numbers(column: pl.Series, option: str) -> np.ndarray:
    """A column of numbers, one for every row."""
    try:
        return np.asarray(read_numbers(with_safe_name(column), column.name).numbers)
    except UnreadableColumn:
        raise DataError(f"{option}: the column {column.name!r} does not hold numbers") from None


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
