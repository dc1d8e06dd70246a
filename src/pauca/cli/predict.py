"""``pauca predict``: a saved model and a table; out come predictions."""

from __future__ import annotations

import io
import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from pauca.cli.constraints import split_names
from pauca.cli.files import TableFile, look_at, nameless, polars, read_frame, read_libsvm, selected
from pauca.cli.fit import check_writable
from pauca.cli.messages import BadData, Voice, counted, did_you_mean
from pauca.cli.show import load_model
from pauca.cli.tables import Part, built, known_levels, needed_parts, tidied
from pauca.export.files import write_whole
from pauca.wording import quoted

if TYPE_CHECKING:
    import polars as pl


def predict(options: Namespace, voice: Voice) -> int:
    """Read the columns that are needed, predict, and write."""
    check_writable(options.out)
    model = load_model(options.model, options.size)
    if options.proba and not hasattr(model, "predict_proba"):
        raise BadData(f"{options.model} has no probabilities: --proba is for classes and the loss logistic")
    table = look_at(options.table, options.delimiter)
    if table.kind == "libsvm":
        rows, kept = _libsvm_rows(model, table, options), polars().DataFrame()
        whole = np.ones(rows.shape[0], dtype=bool)
    else:
        frame, parts = _needed(model, table, options)
        kept = selected(frame, _kept(options, table))
        frame = _filled(model, _tidied_for(frame, parts, table), parts, voice)
        whole = _whole_rows(frame, parts, options, voice)
        _tell_unseen(model, frame, parts, voice)
        rows = _rows(model, frame.filter(polars().Series(whole)), parts)
    with voice.over_warnings():
        made = _predictions(model, rows, whole, proba=options.proba)
    both = [name for name in made.columns if name in kept.columns]
    if both:
        raise BadData(f"a column to keep has the name of a result: {quoted(both)}")
    _write(polars().concat([kept, made], how="horizontal") if kept.width else made, options.out)
    if options.out is not None:
        voice.note(f"wrote {counted(len(whole), 'prediction')} to {options.out}")
    return 0


def _libsvm_rows(model: Any, table: TableFile, options: Namespace) -> Any:
    if model.path_.column_names is not None:
        raise BadData(f"{options.model} knows its columns by name, and {table.path} is a LIBSVM file, which has none")
    if options.keep:
        raise BadData("--keep does not go with a LIBSVM file, which has no names")
    notes = getattr(model, "raw_table_", None)
    rows, _, _ = read_libsvm(table, 1 if notes is None else notes.first_index)
    more = rows.shape[1] - model.n_features_in_
    if more > 0:
        rows = rows[:, : model.n_features_in_]  # columns that the fit has not seen have no coefficient
    elif more < 0:
        rows = sparse.csr_matrix((rows.data, rows.indices, rows.indptr), (rows.shape[0], model.n_features_in_))
    return rows


def _kept(options: Namespace, table: TableFile) -> list[str]:
    names = split_names(options.keep, table.columns)
    for name in names:
        table.require(name, "to keep")
    return names


def _needed(model: Any, table: TableFile, options: Namespace) -> tuple[pl.DataFrame, list[Part]]:
    parts = needed_parts(model, table.columns)
    wanted = list(dict.fromkeys(part.column for part in parts))
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        hint = table.one_column_hint() or (did_you_mean(missing[0], table.columns) if len(missing) == 1 else "")
        raise BadData(f"the model needs columns that {table.path} does not have: {quoted(missing)}{hint}")
    texts = list(dict.fromkeys(part.column for part in parts if part.level is not None))
    kept = _kept(options, table)
    # What is handed on stays as it is written, and a table of no needed columns still has rows.
    texts += [name for name in kept if name not in wanted]
    return read_frame(table, [*wanted, *kept] or table.columns[:1], texts), parts


def _tidied_for(frame: pl.DataFrame, parts: list[Part], table: TableFile) -> pl.DataFrame:
    """The columns a model needs, as numbers and text."""
    pl = polars()
    if not parts:
        return frame
    texts = {part.column for part in parts if part.level is not None}
    tidy = tidied(selected(frame, list(dict.fromkeys(part.column for part in parts))), table.path, texts)
    for column in tidy.get_columns():
        if column.dtype == pl.String and column.name not in texts:
            text = nameless(column).drop_nulls()
            bad = text.filter(text.cast(pl.Float64, strict=False).is_null())
            raise BadData(f"{table.path}: column {column.name!r} must hold numbers; it holds text such as {bad[0]!r}")
    return tidy


def _filled(model: Any, frame: pl.DataFrame, parts: list[Part], voice: Voice) -> pl.DataFrame:
    """The table with the medians of the fit for missing numbers, and baselines for missing text, if it had any."""
    notes = getattr(model, "raw_table_", None)
    if notes is None or notes.medians is None:
        return frame
    pl = polars()
    for name in dict.fromkeys(part.column for part in parts):
        count = frame[name].null_count()
        if not count:
            continue
        value = notes.baselines.get(name, notes.medians.get(name))
        if value is None:
            continue
        column = nameless(frame[name] if name in notes.baselines else frame[name].cast(pl.Float64))
        frame = frame.with_columns(column.fill_null(value).alias(name))
        voice.note(f"{counted(count, 'missing value')} of {name!r} filled with {value!r}, as in the fit")
    return frame


def _whole_rows(frame: pl.DataFrame, parts: list[Part], options: Namespace, voice: Voice) -> np.ndarray:
    """Which rows have all that is needed."""
    names = list(dict.fromkeys(part.column for part in parts))
    lacking = {name: count for name in names if (count := frame[name].null_count())}
    whole = np.ones(frame.height, dtype=bool)
    for name in lacking:
        whole &= nameless(frame[name]).is_not_null().to_numpy()
    if lacking and options.missing == "refuse":
        told = ", ".join(f"{name!r} ({count:,})" for name, count in list(lacking.items())[:5])
        raise BadData(
            f"missing values in {told}, which the model needs; --missing blank leaves those predictions blank, and a "
            "model fitted with --missing median fills them in"
        )
    if lacking:
        voice.note(
            f"{counted(int((~whole).sum()), 'prediction')} left blank, for missing values in {quoted(list(lacking))}"
        )
    return whole


def _tell_unseen(model: Any, frame: pl.DataFrame, parts: list[Part], voice: Voice) -> None:
    """Values of text that the fit has not seen count as the baseline; say how many."""
    notes = getattr(model, "raw_table_", None)
    for name in dict.fromkeys(part.column for part in parts if part.level is not None):
        known = known_levels(model, name)
        given = nameless(frame[name]).drop_nulls()
        strange = given.filter(~given.is_in(list(known)))
        if strange.len() and notes is not None:
            shown = quoted(strange.unique(maintain_order=True).to_list())
            voice.note(
                f"{counted(strange.len(), 'row')} with values of {name!r} that the fit has not seen count as "
                f"{notes.baselines[name]!r}: {shown}"
            )


def _rows(model: Any, frame: pl.DataFrame, parts: list[Part]) -> Any:
    """Rows as the model takes them."""
    pl = polars()
    names = model.path_.column_names
    if not parts and names is not None:  # a constant: any row will do, but columns must be there
        return pl.DataFrame(np.zeros((frame.height and 1, len(names))), schema=[str(name) for name in names])
    if names is not None:
        return built(frame, parts)
    columns = built(frame, parts).to_numpy() if parts else np.zeros((frame.height, 0))
    spread = sparse.lil_matrix((len(model.support_), model.n_features_in_))
    spread[np.arange(len(model.support_)), model.support_] = 1.0
    return sparse.csr_matrix(columns) @ spread.tocsr()


def _predictions(model: Any, rows: Any, whole: np.ndarray, *, proba: bool) -> pl.DataFrame:
    """Predictions for all rows; blank where a row lacks something."""
    pl = polars()
    classes = model.classes_.tolist() if hasattr(model, "classes_") else None
    names = (None if classes else model.path_.output_names) or ["prediction"]
    names = [*names, *(f"probability of {label}" for label in classes or [] if proba)]
    found: list[np.ndarray] = [np.zeros(0)] * len(names)
    if whole.any():
        made = np.asarray(model.predict(rows))
        found = [*np.atleast_2d(made.T), *(model.predict_proba(rows).T if proba else ())]
    return pl.DataFrame([_blanked(name, values, whole) for name, values in zip(names, found, strict=True)])


def _blanked(name: str, values: np.ndarray, whole: np.ndarray) -> pl.Series:
    """A column with its values where rows are whole; a constant comes once, for all rows."""
    count = int(whole.sum())
    full = np.full(len(whole), None, dtype=object)
    full[whole] = np.repeat(values, count).tolist() if len(values) == 1 else values.tolist()
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
        write_whole(path, content.getvalue())
    except OSError as error:
        raise BadData(f"{path} cannot be written: {error.strerror or error}") from error
