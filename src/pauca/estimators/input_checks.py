"""Checks of X, y and sample weights before any work, following scikit-learn's conventions and wording."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d, validate_data

from pauca.design import Chunks, Design
from pauca.design.chunks import as_chunks, is_dask
from pauca.design.chunks.chunk_sums import not_finite
from pauca.estimators.plain_arrays import taken_as_they_are
from pauca.estimators.raw_tables import check_plain, encoded_rows, raw_table_of, set_table_attributes
from pauca.estimators.row_values import (
    as_column,
    check_class_values,
    check_names_differ,
    check_not_masked,
    check_number_values,
    in_memory,
)
from pauca.warnings import PaucaWarning
from pauca.wording import column_names, quoted, quoted_columns


def check_is_table(X: Any) -> None:
    """Raise an error for tables that are read in chunks, and for texts that were not turned into numbers."""
    if hasattr(X, "collect_schema") and not hasattr(X, "shape"):
        raise TypeError("X is a lazy frame; call its collect() first.")
    if _chunks_of(X) is not None:
        raise TypeError(
            f"X is a table in chunks ({type(X).__name__}), which is not read into memory, and this needs all of it at "
            "once. Give a sample of its rows as an array, or fit SparseRegressor or SparseClassifier."
        )
    if len(getattr(X, "shape", (0,))) == 1 and isinstance(X, Iterable) and isinstance(next(iter(X), None), str):
        raise ValueError(
            "X holds texts, and must be a table of numbers. Turn them into one first, such as with scikit-learn's "
            "CountVectorizer or TfidfVectorizer."
        )


LARGEST_TARGET = 1e150

ENCODING_ESTIMATORS = {"SparseRegressor", "SparseClassifier", "SparseCox", "SparseOrdinalClassifier"}


# Sparse and dense data of any numeric dtype go through as they are; whether they are finite is checked here.
UNCHANGED_INPUT: dict[str, Any] = {"accept_sparse": ("csc", "csr"), "dtype": "numeric", "ensure_all_finite": False}


def check_data(
    estimator: Any, X: Any, y: Any, *, multi_output: bool = True, raw: bool = False, **how: Any
) -> tuple[Any, np.ndarray]:
    """X as an array or a CSC or CSR matrix in its own dtype, uncopied where it was one already; y as floats.

    Whether X is finite shows in its moments, which are the first pass over it; ``check_moments`` looks there. With
    ``raw`` a table of more than numbers is a ``RawTable``, which the estimator encodes; without, that is an error.
    ``how`` is for scikit-learn's ``validate_data``. A table in chunks stays one; y is always in memory.
    """
    if raw and taken_as_they_are(estimator, X, y):
        return X, y.astype(np.float64, copy=False)
    check_row_order(X, y)
    chunks, y = _chunks_of(X), in_memory(y)
    _check_one_value_each(y)
    check_not_masked(y, "y")
    check_names_differ(y, "y")
    check_number_values(y)
    _check_not_text(estimator, y)
    if chunks is not None:
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        y = y if multi_output else column_or_1d(y, warn=True)
        return _check_chunks(estimator, chunks, y), y
    how = {"y_numeric": True, "multi_output": multi_output, **UNCHANGED_INPUT, **how}
    with np.errstate(invalid="ignore"):  # scikit-learn adds up infinities of both signs to find them
        X, y = _check_numbers_or_raw(estimator, X, y, how, raw=raw)
    if sparse.issparse(y):
        raise TypeError("y must be dense; call its toarray() first.")
    return X, np.asarray(y, dtype=np.float64)


def check_row_order(X: Any, y: Any) -> None:
    """Warn where X and y of pandas have the same row labels in another order: rows go together by position."""
    rows: Any = getattr(X, "index", None)
    labels: Any = getattr(y, "index", None)
    if rows is None or labels is None:  # arrays, and lists, whose index is a method
        return
    if is_dask(rows) and is_dask(labels) and _same_divisions(X, y):
        return
    rows, labels = in_memory(rows), in_memory(labels)
    if not (hasattr(rows, "equals") and hasattr(labels, "isin") and len(rows) == len(labels)) or rows.equals(labels):
        return
    if rows.is_unique and bool(labels.isin(rows).all()):
        warnings.warn(
            "y has the row labels of X in another order. Rows go together by position, as in scikit-learn, and labels "
            "are not looked at: if y belongs to X by its labels, fit to y.loc[X.index].",
            PaucaWarning,
            stacklevel=5,
        )


def _same_divisions(X: Any, y: Any) -> bool:
    """Whether the parts of two frames of Dask have the same labels, as far as that is known without reading them."""
    return bool(X.npartitions == y.npartitions and (X.divisions == y.divisions or not X.known_divisions))


def check_table(estimator: Any, X: Any, *, raw: bool = False, **how: Any) -> Any:
    """X alone, as ``check_data`` gives it; ``how`` is for scikit-learn's ``validate_data``."""
    check_is_table(X)
    check_names_differ(X)
    table = raw_table_of(estimator, X) if raw and _may_be_raw(estimator, X) else None
    if table is not None:
        set_table_attributes(estimator, X)
        return table
    with _named_columns(X):
        return _as_numbers(validate_data(estimator, X, **(UNCHANGED_INPUT | how)))


def check_classes(estimator: Any, X: Any, y: Any, *, raw: bool = False, **how: Any) -> tuple[Any, np.ndarray]:
    """X as ``check_data`` gives it, and y as classes of any kind."""
    check_row_order(X, y)
    chunks, y = _chunks_of(X), in_memory(y)
    _check_one_value_each(y)
    check_not_masked(y, "y")
    check_names_differ(y, "y")
    check_class_values(y)
    plain = raw and taken_as_they_are(estimator, X, y)
    if chunks is None and not plain:
        X, y = _check_numbers_or_raw(estimator, X, y, {**UNCHANGED_INPUT, **how}, raw=raw)
    elif chunks is not None:
        y = column_or_1d(y, warn=True)
        X = _check_chunks(estimator, chunks, y)
    if len(y) == 0:  # of a chunk; the kind of target is not known yet
        return X, y
    kind = type_of_target(y, input_name="y")
    if kind.startswith("continuous"):
        # scikit-learn's own words come first: its checks look for them.
        name = type(estimator).__name__
        regressor = name.replace("Ordinal", "").replace("Classifier", "Regressor")
        raise ValueError(
            f"Unknown label type: continuous. {name} predicts classes, and y holds numbers with fractions. To "
            f"predict numbers use {regressor}; to predict ranges of them, make classes "
            "of y first."
        )
    if kind != "binary":
        check_classification_targets(y)
    return X, y


def _may_be_raw(estimator: Any, X: Any) -> bool:
    """Whether X may hold more than numbers for an estimator that encodes tables; an array may if the caller says so."""
    requested = estimator.missing != "error" or not isinstance(estimator.categorical_features, str | None)
    return requested or not (isinstance(X, np.ndarray) or sparse.issparse(X))


def _check_numbers_or_raw(estimator: Any, X: Any, y: Any, how: dict[str, Any], *, raw: bool) -> tuple[Any, Any]:
    """X as numbers, or column by column where it is ``raw`` and encoded later; ``how`` is for ``validate_data``."""
    check_is_table(X)
    check_names_differ(X)
    table = raw_table_of(estimator, X) if raw and _may_be_raw(estimator, X) else None
    if table is None:
        with _named_columns(X):
            X, y = validate_data(estimator, X, y, **how)
            return _as_numbers(X), y
    _, y = validate_data(estimator, np.zeros((table.shape[0], 1)), y, **how)
    set_table_attributes(estimator, X)
    return table, y


def _check_chunks(estimator: Any, X: Chunks, y: np.ndarray) -> Chunks:
    """A table in chunks, with as many rows as there are targets; sets what scikit-learn sets from a table."""
    if len(y) != X.n_rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[X.n_rows, len(y)]}")
    if hasattr(estimator, "missing"):
        check_plain(estimator.categorical_features, estimator.missing, "a table in chunks")
    estimator.n_features_in_ = X.n_features
    if X.names is None:
        estimator.__dict__.pop("feature_names_in_", None)
    else:
        estimator.feature_names_in_ = np.array(X.names, dtype=object)
    return X


def _chunks_of(X: Any) -> Chunks | None:
    """A table that is read in chunks; None for all others, such as any array that is no memory map."""
    return None if type(X) is np.ndarray else as_chunks(X)


def check_rows(estimator: Any, X: Any, used: np.ndarray) -> Any:
    """The columns ``used`` of X, for prediction: numbers all of them.

    A frame is read by name where the fit had names, and need not hold more than the used columns; what others hold does
    not matter. An array must hold all columns of the fit, since fewer could not be identified, and
    scikit-learn requires numbers in all of them.
    """
    check_is_table(X)
    encoder = getattr(estimator, "encoder_", None)
    if encoder is not None:
        return encoded_rows(estimator, encoder.encoding_, X, used)
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and _can_be_named(X, names, used):
        chosen = _by_name(estimator, X, names, used)
        with _named_columns(chosen):
            rows = _as_numbers(check_array(chosen, estimator=estimator, **UNCHANGED_INPUT))
    else:
        check_names_differ(X)
        with _named_columns(X), _fewer_columns(X, used):
            X = _as_numbers(_all_columns(estimator, X))
        check_finite(type(estimator).__name__, X, names)
        return X[:, used]
    check_finite(type(estimator).__name__, rows, np.array(column_names(names, used), dtype=object))
    return rows


def check_finite(owner: str, rows: Any, names: np.ndarray | None, *, largest: float = np.inf) -> None:
    """Raise an error that names the columns with values that are not finite, or beyond ``largest``."""
    values = rows.data if sparse.issparse(rows) else rows
    bad = ~np.isfinite(values) | (np.abs(values) > largest)
    if bad.any():
        places = np.unique(rows.tocoo().col[bad] if sparse.issparse(rows) else np.nonzero(bad)[1])
        _raise_for_values(owner, rows, places, names, largest)


def check_target(y: np.ndarray) -> None:
    """Raise an error for a target whose squares leave the range of floating-point numbers."""
    largest = np.abs(y).max()
    if largest > LARGEST_TARGET or 0 < largest < 1 / LARGEST_TARGET:
        raise ValueError(f"Input y has values of magnitude {largest:.3g}, which cannot be squared. Rescale it.")


def check_moments(owner: str, design: Design, X: Any, names: np.ndarray | None) -> None:
    """Raise an error that names the columns with values that are not finite, or too large to be squared."""
    if np.isfinite(np.add.reduce(design.mean) + np.add.reduce(design.spread)):
        return
    bad = np.flatnonzero(~(np.isfinite(design.mean) & np.isfinite(design.spread)))
    if len(bad) and isinstance(X, Chunks):
        _raise_for_chunk(owner, X, bad, names)
    if len(bad):
        _raise_for_values(owner, X, bad, names)


def _check_one_value_each(y: Any) -> None:
    """Raise an error for rows of several fields, as scikit-survival has them: each different row would be a class."""
    fields = getattr(getattr(y, "dtype", None), "names", None)
    if fields:
        raise ValueError(f"y has the fields {quoted(fields)}: for times to an event use SparseCox.")


def _check_not_text(estimator: Any, y: Any) -> None:
    """Raise an error for a target of words; digits in text are numbers all the same."""
    column = None if y is None or sparse.issparse(y) else as_column(y)
    if column is None or column.dtype.kind in "biuf" or _holds_numbers(column.astype(object)):
        return
    for value in column.ravel().tolist():
        if isinstance(value, str | bytes) and not _holds_numbers(np.array([value], dtype=object)):
            name = type(estimator).__name__
            raise ValueError(
                f"y holds text, such as {value!r}, and {name} predicts numbers. To predict classes use "
                f"{name.replace('Regressor', 'Classifier')}; for numbers written as text, turn them into floats first."
            )


def _raise_for_values(
    owner: str, X: Any, bad: np.ndarray, names: np.ndarray | None, largest: float = np.inf
) -> NoReturn:
    columns = X[:, bad]
    values = columns.data if sparse.issparse(columns) else columns
    found = f"Found in: {quoted_columns(names, bad)}."
    if np.isnan(values).any():
        # Estimators that cannot fill in missing values have no such parameter; scikit-learn can, in a step before them.
        fill = "missing='median'" if owner in ENCODING_ESTIMATORS else "sklearn.impute.SimpleImputer"
        raise ValueError(
            f"Input X contains NaN.\n{owner} does not accept missing values encoded as NaN "
            f"natively. {found} Leave out those rows or columns, or fill them in ({fill})."
        )
    if np.isinf(values).any():
        raise ValueError(
            f"Input X contains infinity or a value too large for {X.dtype!r}. {found} Leave out those rows or columns."
        )
    if largest < np.inf:
        raise ValueError(f"Input X contains values too large for {owner} (beyond {largest:g}). {found} Rescale them.")
    raise ValueError(f"Input X contains values too large to be squared (beyond about 1e150). {found} Rescale them.")


def _raise_for_chunk(owner: str, X: Chunks, bad: np.ndarray, names: np.ndarray | None) -> NoReturn:
    """Raise an error that names the first chunk and row with a value that is not finite, if there is one."""
    for number, (rows, found) in enumerate(X.map(not_finite, bad)):
        if len(found):
            row, column, is_nan = (int(part) for part in found)
            what = "NaN" if is_nan else f"infinity or a value too large for {X.dtype!r}"
            raise ValueError(
                f"Input X contains {what}: in chunk {number}, row {rows.start + row} of the table, column "
                f"{quoted_columns(names, [column])}.\n{owner} does not accept missing values. Leave "
                "out those rows or columns, or fill them in."
            )
    raise ValueError(
        f"Input X contains values too large to be squared (beyond about 1e150). Found in: "
        f"{quoted_columns(names, bad)}. Rescale them."
    )


def _can_be_named(X: Any, names: np.ndarray, used: np.ndarray) -> bool:
    """Whether X is a frame, and a name stands for one used column; a model of no columns has nothing to look up."""
    known, wanted = names.tolist(), names[used].tolist()
    return bool(_dtypes(X)) and bool(wanted) and all(known.count(name) == 1 for name in wanted)


def _by_name(estimator: Any, X: Any, names: np.ndarray, used: np.ndarray) -> Any:
    """The used columns of a frame, in the order of the fit."""
    held, wanted = list(X.columns), names[used].tolist()
    missing = [name for name in wanted if name not in held]
    # All columns of the fit and no others are expected in the order of the fit: so scikit-learn has it everywhere.
    if missing or set(held) == set(names):
        try:
            validate_data(estimator, X, reset=False, skip_check_array=True)
        except ValueError as error:
            if not missing:
                raise
            lacking = quoted_columns(np.array(missing, dtype=object), range(len(missing)))
            raise ValueError(f"{error}\nThe model needs columns that X does not have: {lacking}.") from error
    twice = np.array([name for name in wanted if held.count(name) > 1], dtype=object)
    if len(twice):
        raise ValueError(f"X has several columns of one name: {quoted_columns(twice, range(len(twice)))}.")
    return X[wanted]


def _all_columns(estimator: Any, X: Any) -> Any:
    """Rows with all columns of the fit; a sparse matrix cannot have names, so there is no warning that it has none."""
    if not sparse.issparse(X):
        return validate_data(estimator, X, reset=False, **UNCHANGED_INPUT)
    X, wanted = check_array(X, estimator=estimator, **UNCHANGED_INPUT), estimator.n_features_in_
    if X.shape[1] != wanted:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {wanted} features as input."
        )
    return X


@contextmanager
def _fewer_columns(X: Any, used: np.ndarray) -> Iterator[None]:
    """Where somebody gives the chosen columns alone, without names, say what to do instead."""
    try:
        yield
    except ValueError as error:
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) != 2 or shape[1] != len(used) or "features" not in str(error):
            raise
        raise ValueError(
            f"{error} The chosen columns alone can only be found by name: fit and predict with frames, or give "
            "all columns."
        ) from error


@contextmanager
def _named_columns(X: Any) -> Iterator[None]:
    """Errors about the columns of a frame name them."""
    check_not_masked(X, "X")
    dates = [name for name, dtype in _dtypes(X) if dtype.lower().startswith(("date", "time", "duration"))]
    if dates:
        raise ValueError(
            f"Columns that hold dates or times: {quoted_columns(np.array(dates), range(len(dates)))}. "
            "Turn them into numbers (days since a date, hour of the day) or leave them out."
        )
    try:
        yield
    except (ValueError, TypeError) as error:
        # Names of several kinds, and those that stand for several columns, have a message of their own.
        names = [name for name in getattr(X, "columns", []) if isinstance(name, str)]
        text = [name for name in names if not _holds_numbers(np.asarray(X[name]))]
        if not text:
            raise
        raise type(error)(
            f"{error}\nColumns that do not hold numbers: {quoted_columns(np.array(text), range(len(text)))}. "
            "Encode them as numbers or leave them out."
        ) from error


def _dtypes(X: Any) -> list[tuple[str, str]]:
    """Names and dtypes of the columns of a pandas or polars frame; nothing for anything else."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return []
    return [(str(name), str(dtype)) for name, dtype in zip(X.columns, X.dtypes, strict=True)]


def _as_numbers(X: Any) -> Any:
    """Frames of mixed columns come as objects: make them floats, or fail."""
    if X.dtype.kind in "Mm":
        raise TypeError("X holds dates or times; turn them into numbers first.")
    if X.dtype.kind not in "biuf" or X.dtype.itemsize > 8:  # objects, and floats of more digits
        return X.astype(np.float64)
    return X


def _holds_numbers(column: np.ndarray) -> bool:
    if column.dtype.kind in "biuf":
        return True
    try:
        column.astype(np.float64)
    except (ValueError, TypeError):
        return False
    return column.dtype.kind == "O"
