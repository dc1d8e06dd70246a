"""Raw tables in estimators: read before a fit, encoded for it and for its folds, and encoded again for predictions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from pauca.checks import ParameterChecks
from pauca.constraints.parsing import Columns, ConstraintParser, Spread
from pauca.model_selection.folds import Fold
from pauca.tables import RawTable, TableEncoding, needs_encoding, read_table
from pauca.tables.encoding import MISSING as MARK
from pauca.tables.encoding import NUMBER
from pauca.tables.raw_columns import UnreadableColumn, is_frame
from pauca.tables.raw_table import MISSING, declared_categories, names_of
from pauca.warnings import PaucaWarning
from pauca.wording import quoted

# Constraints that do no more than to name columns to be used or not.
NAME_COLUMNS = {"always", "never"}


@dataclass(frozen=True, eq=False)
class FitTable:
    """The table of a fit as numbers, and what it was made from.

    A table of numbers is passed on as it is. Of a raw table the levels of categories are those of all rows with weight:
    a level that a fold does not have is a constant column there, which no model of the fold uses. What is filled in for
    missing numbers comes from the rows that a fit or a fold may see.
    """

    X: Any
    names: Any
    """Names of the columns of numbers, for results; None if there are none."""
    encoding: TableEncoding | None = None
    raw: RawTable | None = None

    @classmethod
    def of(
        cls, X: Any, weights: np.ndarray, names: Any, missing: str, constraints: Mapping[str, Any] | None = None
    ) -> FitTable:
        """The table of checked data; ``names`` are those of a table of numbers.

        Levels that copy those of another column are left out, but where constraints may prefer one of the two.
        """
        if not isinstance(X, RawTable):
            return cls(X, names)
        encoding = TableEncoding.learn(X, missing, weights)
        if not encoding.terms:
            raise ValueError(
                f"No column of X varies, so there is nothing to choose from: {quoted(encoding.raw_names)}."
            )
        if names is not None:
            encoding = encoding.renamed(list(names))
        spared = _named_columns(constraints or {}, encoding.raw_names)
        if spared is not None:
            encoding = encoding.without_copies(X, weights, spared)
        return cls(encoding.encode(X), np.array(encoding.names, dtype=object), encoding, X)

    def numbers(self, place: int) -> np.ndarray | None:
        """The values of a column as it was given; None where it is no column of numbers in memory."""
        if self.raw is not None:
            return self.raw.columns[place].numbers
        return np.asarray(self.X[:, place]) if isinstance(self.X, np.ndarray) else None

    def columns(self) -> Columns:
        """The columns as constraints name them."""
        if self.encoding is None:
            return Columns(self.X.shape[1], self.names)
        names = self.encoding.raw_names
        return Columns(len(names), names, Spread(self.encoding.owner, self.encoding.names))

    def of_rows(self, weights: np.ndarray) -> FitTable:
        """The table as a fit to the rows with weight may see it: missing numbers are filled in from these alone."""
        if self.encoding is None or self.raw is None:
            return self
        encoding = self.encoding.filled_from(self.raw, weights)
        return replace(self, X=self.encoding.refilled(self.raw, self.X, encoding), encoding=encoding)

    def folds(self, folds: Sequence[Fold]) -> list[Fold]:
        """The folds, each with missing numbers filled in from its own rows."""
        found = []
        for fold in folds:
            X = self.of_rows(fold.weights).X
            found.append(fold if X is self.X else replace(fold, X=X))
        return found

    @property
    def constant(self) -> list[str]:
        """Raw columns that became no column of numbers: they have one level."""
        if self.encoding is None:
            return []
        return [one.name for one in self.encoding.columns if not one.terms and not one.copies]

    def only_marked(self, usable: np.ndarray) -> list[str]:
        """Raw columns whose numbers are constant, while it can be used that some are missing."""
        if self.encoding is None:
            return []
        terms = self.encoding.terms
        marked = {terms[place].raw for place in np.flatnonzero(usable) if terms[place].kind == MARK}
        constant = [terms[place] for place in np.flatnonzero(~usable)]
        return [one.raw for one in constant if one.kind == NUMBER and one.raw in marked]

    def noun(self, constraints: ConstraintParser) -> str | None:
        """What a size counts: of a raw table its columns, whatever they became."""
        return "column" if self.encoding is not None and constraints.counts_columns else None

    def warnings(self, chosen: np.ndarray) -> Iterator[str]:
        """What to know of levels that copy those of another column, and of ``chosen`` ones that are alike."""
        if self.encoding is None or self.raw is None:
            return
        terms = {self.encoding.terms[column].name for column in chosen}
        used = {self.encoding.terms[column].raw for column in chosen}
        # Of columns that the model does not use, and that copy none of its levels, there is nothing to know.
        copies = [
            (f"{one.name}={level}", kept)
            for one in self.encoding.columns
            for level, kept in one.copies.items()
            if one.name in used or kept in terms
        ]
        if copies:
            left_out, kept = ([*dict.fromkeys(names)] for names in zip(*copies, strict=True))
            yield f"Levels that are the same in every row as {quoted(kept)} were left out: {quoted(left_out)}."
        columns = list(zip(self.encoding.columns, self.raw.columns, strict=True))
        marked = {raw.missing.tobytes(): one.name for one, raw in columns if one.marks_missing}
        unmarked: dict[str | None, list[str]] = {}
        for one, raw in columns if marked else []:
            if one.name in used and raw.missing.any() and not one.marks_missing:
                unmarked.setdefault(marked.get(raw.missing.tobytes()), []).append(one.name)
        for owner, names in unmarked.items():
            of = "another column's" if owner is None else f"those of {owner!r}"
            unused = f"; the model does not use it: with never=[{owner!r}] they are marked here"
            told = "" if owner in {None, *used} else unused
            yield f"Missing values of {quoted(names)} are in the rows of {of}, and marked there{told}."
        marks = [int(column) for column in chosen if self.encoding.terms[column].kind != NUMBER]
        alike: dict[bytes, list[str]] = {}
        for column in marks:
            alike.setdefault((self.X[:, column] == 1.0).tobytes(), []).append(self.encoding.terms[column].name)
        for names in alike.values():
            if len(names) > 1:
                yield f"{quoted(names)} are the same in every row: their coefficients share one effect, and add up."


def _named_columns(constraints: Mapping[str, Any], columns: Sequence[str]) -> list[str] | None:
    """The columns that constraints name; None where these may do more than to name some."""
    given = [value for value in constraints.values() if value is not None]
    if {name for name, value in constraints.items() if value is not None} - NAME_COLUMNS:
        return None
    named = [name for value in given for name in ([value] if isinstance(value, str) else value)]
    return named if all(isinstance(name, str) and name in columns for name in named) else None


def display_names(feature_names: Any, n_columns: int, own: np.ndarray | None) -> np.ndarray | None:
    """Names of columns for results: those of the table, or those that a user gives for one that has none."""
    if feature_names is None:
        return own
    if own is not None:
        raise ValueError("feature_names is for arrays and sparse matrices; X has column names of its own.")
    names = [str(name) for name in feature_names]
    if len(names) != n_columns:
        raise ValueError(f"feature_names must name every column: X has {n_columns}, and there are {len(names)} names.")
    if len(set(names)) < len(names):
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        raise ValueError(f"feature_names must differ from each other; there are several {quoted(twice)}.")
    return np.array(names, dtype=object)


def check_table_parameters(owner: str, parameters: Mapping[str, Any]) -> None:
    """Raise an error for parameters on raw tables that no table can make valid."""
    ParameterChecks(owner).one_of("missing", parameters.get("missing", "error"), MISSING)
    given = parameters.get("categorical_features")
    if isinstance(given, str) and given != "from_dtype":
        declared_categories(given, None, 0)


def raw_table_of(estimator: Any, X: Any) -> RawTable | None:
    """X column by column if it may hold more than numbers and the estimator encodes it; None for plain numbers."""
    categories, missing = estimator.categorical_features, estimator.missing
    if not needs_encoding(X, categories, missing):
        if hasattr(X, "tocsr"):
            check_plain(categories, missing, "a sparse matrix")
        return None
    table = read_raw(estimator, X)
    return None if table.is_numbers and missing == "error" else table


def read_raw(estimator: Any, X: Any) -> RawTable:
    """X column by column; an array without categories must hold numbers, as scikit-learn has it."""
    categories, missing = estimator.categorical_features, estimator.missing
    if is_frame(X) or not (categories is None or isinstance(categories, str)):
        return read_table(X, categories, missing, type(estimator).__name__)
    finite: Any = "allow-nan" if missing != "error" else True
    numbers = check_array(X, dtype=np.float64, ensure_all_finite=finite, estimator=estimator, input_name="X")
    return RawTable.of_numbers(numbers, None)


def check_plain(categories: Any, missing: str, what: str) -> None:
    """Raise an error where something is requested that only tables in memory support."""
    if missing != "error" or not (categories is None or isinstance(categories, str)):
        raise ValueError(f"X is {what}, which is read as it is: encode categories and fill in missing values first.")


def set_table_attributes(estimator: Any, X: Any) -> None:
    """What scikit-learn sets from a table, for one that it cannot read itself."""
    validate_data(estimator, X if is_frame(X) else np.asarray(X), skip_check_array=True)


def encoded_rows(
    estimator: Any, encoding: TableEncoding, X: Any, used: np.ndarray, *, in_order: bool = False
) -> np.ndarray:
    """Some columns of numbers of the rows of a raw table, for predictions.

    A frame is read by name where the fit had names, and need not hold more than the raw columns that are used,
    in any order; with ``in_order`` that of the fit is required, as by scikit-learn's own transformers.
    """
    needed = np.unique(encoding.owner[used])
    if not is_frame(X):
        dtype = None if encoding.has_categories else np.float64
        table = np.asarray(X, dtype=object) if encoding.has_categories and isinstance(X, list) else X
        X = validate_data(estimator, table, reset=False, dtype=dtype, ensure_all_finite="allow-nan")
    if in_order and is_frame(X):
        validate_data(estimator, X, reset=False, skip_check_array=True)
    positions = _positions(estimator, encoding, X, [encoding.raw_names[j] for j in needed])
    try:
        rows, unknown = encoding.encode_rows(X, used, positions)
    except UnreadableColumn as error:
        raise ValueError(_unreadable(error)) from None
    for found in unknown:
        rows_hold = "row holds" if found.n_rows == 1 else "rows hold"
        warnings.warn(
            f"{found.n_rows:,} {rows_hold} values of {found.column!r} that the data of the fit do not: "
            f"{quoted(found.levels)}. They count as {found.baseline!r}, the baseline.",
            PaucaWarning,
            stacklevel=4,
        )
    _check_complete(estimator, encoding, rows, used)
    return rows


def _positions(estimator: Any, encoding: TableEncoding, X: Any, needed: list[str]) -> list[int] | None:
    """Where the raw columns are that a prediction needs; None where X has all columns of the fit in order."""
    held = names_of(X) if encoding.has_names else None
    if held is None:
        if is_frame(X):
            validate_data(estimator, X, reset=False, skip_check_array=True)
        return np.flatnonzero(np.isin(encoding.raw_names, needed)).tolist()
    lacking = [name for name in needed if name not in held]
    if lacking:
        raise ValueError(f"The model needs columns that X does not have: {quoted(lacking)}.")
    twice = [name for name in needed if held.count(name) > 1]
    if twice:
        raise ValueError(f"X has several columns of one name: {quoted(twice)}.")
    return [held.index(name) for name in needed]


def _unreadable(error: UnreadableColumn) -> str:
    if error.kind == "text":
        return f"The column {error.column!r} must hold numbers, as in the data of the fit; it holds {error.example!r}."
    what = "dates or times" if error.kind == "date" else "values that are neither numbers nor text"
    return f"The column {error.column!r} holds {what}; in the data of the fit it did not."


def _check_complete(estimator: Any, encoding: TableEncoding, rows: np.ndarray, used: np.ndarray) -> None:
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=0))
    if not len(bad):
        return
    names = list(dict.fromkeys(encoding.raw_names[encoding.owner[used[place]]] for place in bad))
    if np.isnan(rows[:, bad]).any():
        raise ValueError(
            f"Input X contains NaN: missing values in {quoted(names)}, which the model uses. "
            f"{type(estimator).__name__}(missing='median') or missing='category' would replace them; this one was "
            "fitted with missing='error'."
        )
    raise ValueError(
        f"Input X contains infinity or a value too large, in {quoted(names)}: replace it by a number, or leave out "
        "those rows."
    )
