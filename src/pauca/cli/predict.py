"""``pauca predict``: predictions of a saved model for the rows of a table."""

from __future__ import annotations

import io
import sys
from argparse import Namespace
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from pauca.cli.console import Console, DataError, count, did_you_mean
from pauca.cli.constraints import split_names
from pauca.cli.fit_arguments import row_numbers
from pauca.cli.show import check_writable, load_model
from pauca.cli.table_files import (
    TableFile,
    inspect_table,
    polars,
    read_frame,
    read_libsvm,
    select_columns,
    with_safe_name,
)
from pauca.export.formula import formula_of
from pauca.export.json_files import write_atomically
from pauca.tables import Term
from pauca.tables.encoding import LEVEL, MISSING
from pauca.tables.raw_columns import UnreadableColumn, read_numbers
from pauca.wording import quoted

if TYPE_CHECKING:
    import polars as pl


def predict(options: Namespace, console: Console) -> int:
    """Read the columns that the model uses, predict, and write."""
    check_writable(options.out)
    model = load_model(options.model, options.size)
    if options.proba and not hasattr(model, "predict_proba"):
        raise DataError(f"--proba: {options.model} has no probabilities; they need a classifier with --loss log_loss")
    _check_row_options(model, options)
    table = inspect_table(options.table, options.delimiter, has_header=not options.no_header)
    if table.format == "libsvm":
        rows, kept = _libsvm_rows(model, table, options), polars().DataFrame()
        complete = np.ones(rows.shape[0], dtype=bool)
        beside = _beside(table, options, complete)
    else:
        terms = formula_of(model).terms
        frame = _read_required(terms, table, options)
        kept = select_columns(frame, _kept_columns(options, table))
        frame = _clean_required(frame, terms, table)
        _note_replaced(frame, terms, model, console)
        complete = _complete_rows(frame, terms, options, console)
        beside = _beside(table, options, complete)
        rows = _model_rows(model, frame.filter(polars().Series(complete)), terms, alike=not beside)
    with console.warnings_as_notes():
        predictions = _predictions(model, rows, complete, proba=options.proba, beside=beside)
        if options.times is not None:
            _note_late_times(model, options.times, console)
            survival = _survival(model, rows, complete, options.times, beside.get("strata"))
            predictions = polars().concat([predictions, survival], how="horizontal")
    both = [name for name in predictions.columns if name in kept.columns]
    if both:
        raise DataError(f"--keep: {quoted(both)} is also the name of a result; rename the column")
    _write(polars().concat([kept, predictions], how="horizontal") if kept.width else predictions, options.out)
    if options.out is not None:
        console.note(f"wrote {count(len(complete), 'prediction')} to {options.out}")
    return 0


def _check_row_options(model: Any, options: Namespace) -> None:
    """Raise an error for options that are for another kind of model."""
    takes = signature(model.predict).parameters
    for option in ("exposure", "offset"):
        if getattr(options, option) is not None and option not in takes:
            raise DataError(f"--{option}: {options.model} is a {type(model).__name__}, whose predictions have none")
    if options.times is None and options.strata is None:
        return
    if not hasattr(model, "predict_survival_function"):
        option = "--times" if options.times is not None else "--strata"
        raise DataError(f"{option}: {options.model} is no model of survival")
    if options.times is None:
        raise DataError("--strata goes with --times: hazard ratios are the same in all strata")


def _beside(table: TableFile, options: Namespace, complete: np.ndarray) -> dict[str, Any]:
    """What is given for every row besides the columns of the model, for the complete rows."""
    named = {name: getattr(options, name) for name in ("exposure", "offset", "strata") if getattr(options, name)}
    if not named:
        return {}
    if table.format == "libsvm":
        raise DataError(f"--{next(iter(named))} does not work with a LIBSVM file, whose columns have no names")
    for name, column in named.items():
        table.require(column, f"--{name}")
    frame = read_frame(table, list(named.values()))
    found: dict[str, Any] = {}
    for name, column in named.items():
        values = frame[column].filter(polars().Series(complete))
        if values.null_count():
            raise DataError(f"--{name}: the column {column!r} has {count(values.null_count(), 'missing value')}")
        found[name] = np.array(values.to_list()) if name == "strata" else row_numbers(values, f"--{name}")
    return found


def _note_late_times(model: Any, times: list[float], console: Console) -> None:
    """Note the times that the data of the fit say nothing of."""
    last = max(model.event_times_, default=np.inf)
    late = [f"{time:g}" for time in times if time > last]
    if late:
        console.note(
            f"--times: the last event of the fit was at {last:g}, and the survival at {', '.join(late)} is that at "
            f"{last:g}"
        )


def _survival(model: Any, rows: Any, complete: np.ndarray, times: list[float], strata: Any) -> pl.DataFrame:
    """Probabilities that the event has not happened by some times."""
    columns: Any = [np.zeros(0)] * len(times)
    if complete.any():
        columns = model.predict_survival_function(rows, times, strata=strata).T
    named = zip(times, columns, strict=True)
    return polars().DataFrame([_spread(f"survival at {time:g}", values, complete) for time, values in named])


def _libsvm_rows(model: Any, table: TableFile, options: Namespace) -> Any:
    if model.path_.column_names is not None:
        raise DataError(f"{options.model} needs columns with names, but {table.path} is a LIBSVM file, which has none")
    if options.keep:
        raise DataError("--keep does not work with a LIBSVM file, whose columns have no names")
    rows, _, _ = read_libsvm(table, getattr(model, "first_index_", 1))
    more = rows.shape[1] - model.n_features_in_
    if more > 0:
        rows = rows[:, : model.n_features_in_]  # columns that are not in the training data have no coefficient
    elif more < 0:
        rows = sparse.csr_matrix((rows.data, rows.indices, rows.indptr), (rows.shape[0], model.n_features_in_))
    return rows


def _kept_columns(options: Namespace, table: TableFile) -> list[str]:
    names = split_names(options.keep, table.columns)
    for name in names:
        table.require(name, "--keep")
    return names


def _raw_columns(terms: list[Term]) -> list[str]:
    """The raw columns that a model uses."""
    return list(dict.fromkeys(term.raw for term in terms))


def _categories(terms: list[Term]) -> list[str]:
    """Those of the raw columns that are categories."""
    return _raw_columns([term for term in terms if term.kind == LEVEL])


def _read_required(terms: list[Term], table: TableFile, options: Namespace) -> pl.DataFrame:
    required, kept = _raw_columns(terms), _kept_columns(options, table)
    missing = [name for name in required if name not in table.columns]
    if missing:
        hint = table.header_hint() or (did_you_mean(missing[0], table.columns) if len(missing) == 1 else "")
        raise DataError(f"{table.path} lacks columns that the model uses: {quoted(missing)}{hint}")
    # Kept columns are copied as text. A model without features still needs the number of rows.
    texts = [*_categories(terms), *(name for name in kept if name not in required)]
    return read_frame(table, [*required, *kept] or table.columns[:1], texts)


def _clean_required(frame: pl.DataFrame, terms: list[Term], table: TableFile) -> pl.DataFrame:
    """The raw columns that a model uses, numbers as such, with nulls for missing values."""
    categories = _categories(terms)
    columns = []
    for name in _raw_columns(terms):
        column = frame[name]
        if name not in categories:
            try:
                found = read_numbers(with_safe_name(column), name)
            except UnreadableColumn as error:
                example = f"text such as {error.example!r}" if error.kind == "text" else "dates or times"
                raise DataError(f"{table.path}: column {name!r} must hold numbers; it holds {example}") from None
            column = polars().Series("column", found.numbers).fill_nan(None).alias(name)
        columns.append(column)
    return polars().DataFrame(columns) if columns else frame


def _note_replaced(frame: pl.DataFrame, terms: list[Term], model: Any, console: Console) -> None:
    """Note the missing values that are replaced as in the training data."""
    marked = {term.raw for term in terms if term.kind == MISSING}
    for term in {term.raw: term for term in terms if term.fill is not None}.values():
        n_missing = frame[term.raw].null_count()
        if n_missing and term.raw not in marked:
            value = model.encoder_.baselines_[term.raw] if term.kind == LEVEL else term.fill
            console.note(
                f"replaced {count(n_missing, 'missing value')} of {term.raw!r} by {value!r}, as in the training data"
            )


def _complete_rows(frame: pl.DataFrame, terms: list[Term], options: Namespace, console: Console) -> np.ndarray:
    """A mask of the rows without missing values, other than those that the model can do with."""
    refused = _raw_columns([term for term in terms if term.fill is None and term.kind != MISSING])
    lacking = {name: number for name in refused if (number := frame[name].null_count())}
    complete = np.ones(frame.height, dtype=bool)
    for name in lacking:
        complete &= with_safe_name(frame[name]).is_not_null().to_numpy()
    if lacking and options.missing == "error":
        listed = ", ".join(f"{name!r} ({number:,})" for name, number in list(lacking.items())[:5])
        raise DataError(
            f"missing values in columns that the model uses: {listed}; --missing blank leaves these predictions blank, "
            "and a model fitted with --missing median replaces the values"
        )
    if lacking:
        blank = count(int((~complete).sum()), "prediction")
        console.note(f"left {blank} blank, because of missing values in {quoted(list(lacking))}")
    return complete


def _model_rows(model: Any, frame: pl.DataFrame, terms: list[Term], *, alike: bool) -> Any:
    """Rows in the form that the model takes; where all are ``alike``, one of them."""
    pl, names = polars(), getattr(model, "feature_names_in_", None)
    if not terms and names is not None:  # the score is constant, but rows must have the columns
        height = frame.height and 1 if alike else frame.height
        return pl.DataFrame(np.zeros((height, len(names))), schema=[str(name) for name in names])
    if names is not None:
        return frame
    columns = frame.to_numpy() if terms else np.zeros((frame.height, 0))
    chosen = model.path_[model.k_].support
    spread = sparse.lil_matrix((len(chosen), model.n_features_in_))
    spread[np.arange(len(chosen)), chosen] = 1.0
    return sparse.csr_matrix(columns) @ spread.tocsr()


def _predictions(model: Any, rows: Any, complete: np.ndarray, *, proba: bool, beside: dict[str, Any]) -> pl.DataFrame:
    """Predictions for all rows, blank where a row has missing values."""
    classes = model.classes_.tolist() if hasattr(model, "classes_") else None
    names = (None if classes else model.path_.output_names) or ["prediction"]
    names = [*names, *(f"probability of {label}" for label in classes or [] if proba)]
    columns: list[np.ndarray] = [np.zeros(0)] * len(names)
    if complete.any():
        known = {name: values for name, values in beside.items() if name != "strata"}
        predicted = np.asarray(model.predict(rows, **known))
        columns = [*np.atleast_2d(predicted.T), *(model.predict_proba(rows, **known).T if proba else ())]
    return polars().DataFrame([_spread(name, values, complete) for name, values in zip(names, columns, strict=True)])


def _spread(name: str, values: np.ndarray, complete: np.ndarray) -> pl.Series:
    """A column with the values in the complete rows; a single value, of a constant model, in all of them."""
    full = np.full(len(complete), None, dtype=object)
    full[complete] = np.repeat(values, int(complete.sum())).tolist() if len(values) == 1 else values.tolist()
    return polars().Series(name, full.tolist())


def _write(frame: pl.DataFrame, path: str | None) -> None:
    if path is None:
        sys.stdout.write(frame.write_csv())
        return
    content = io.BytesIO()
    if path.endswith((".parquet", ".pq")):
        frame.write_parquet(content)
    else:
        frame.write_csv(content, separator="\t" if path.endswith((".tsv", ".tab")) else ",")
    try:
        write_atomically(path, content.getvalue())
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error
