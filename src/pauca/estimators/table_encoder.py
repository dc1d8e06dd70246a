"""TableEncoder: the encoding of raw tables as a transformer of scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pauca.estimators.identifiers import looks_like_identifier
from pauca.estimators.raw_tables import (
    check_table_parameters,
    encoded_rows,
    read_raw,
    set_table_attributes,
)
from pauca.estimators.row_values import check_names_differ
from pauca.tables import RawTable, TableEncoding
from pauca.warnings import PaucaWarning


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a raw table, with text, categories and missing values, into numbers.

    Columns of numbers and of true and false keep their names. A category such as ``city`` becomes a 0/1 column for each
    of its levels except the most frequent one, the baseline: ``city=Lyon``, ``city=Nice``. ``SparseRegressor`` and
    ``SparseClassifier`` encode tables in this way themselves; use this class to see the numbers, or to encode tables
    for other estimators.

    Parameters
    ----------
    categorical_features : "from_dtype", list of names or indices, mask, or None, default="from_dtype"
        Which columns are categories. "from_dtype": those of a data frame whose dtype is category, text or object,
        unless all they hold is numbers. A list adds columns of numbers that are codes. None: none, and text is an
        error.
    missing : {"error", "median", "category"}, default="error"
        "error": a missing value is an error. "median": it is replaced by the median of the column; in a category it
        counts as the baseline. "category": in addition a column such as ``age is missing`` marks it, if some was
        missing in the data of the fit.

    Attributes
    ----------
    encoding_ : TableEncoding
        How every column of numbers comes from a raw column: its ``terms``.
    feature_groups_ : list of str
        The raw column of every column of numbers. What belongs together is lost in a pipeline, which passes on numbers
        alone: give this to an estimator as ``feature_groups``.
    baselines_ : dict
        The baseline of every category.
    medians_ : dict
        What replaces missing numbers, by column, unless they are an error.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X has column names.

    Examples
    --------
    >>> import pandas as pd
    >>> from pauca import TableEncoder
    >>> homes = pd.DataFrame({"city": ["Paris", "Lyon", "Paris", None], "rooms": [2, 3, None, 4]})
    >>> encoder = TableEncoder(missing="category").set_output(transform="pandas")
    >>> encoder.fit_transform(homes)
       city=Lyon  city is missing  rooms  rooms is missing
    0        0.0              0.0    2.0               0.0
    1        1.0              0.0    3.0               0.0
    2        0.0              0.0    3.0               1.0
    3        0.0              1.0    4.0               0.0
    >>> encoder.feature_groups_
    ['city', 'city', 'rooms', 'rooms']
    """

    def __init__(self, categorical_features: Any = "from_dtype", missing: str = "error") -> None:
        self.categorical_features = categorical_features
        self.missing = missing

    @classmethod
    def _of(cls, encoding: TableEncoding, categorical_features: Any, missing: str) -> TableEncoder:
        """A fitted encoder with an encoding that an estimator has learned."""
        encoder = cls(categorical_features, missing)
        encoder.n_features_in_ = len(encoding.columns)
        if encoding.has_names:
            encoder.feature_names_in_ = np.array(encoding.raw_names, dtype=object)
        encoder._set(encoding)
        return encoder

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Find levels, baselines and medians.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        y : None
            Ignored.

        Returns
        -------
        self
        """
        table = self._read(X)
        self._set(TableEncoding.learn(table, self.missing))
        numbered = [column.name for column in table.columns if column.is_identifier] if table.has_names else []
        if numbered:
            text = f"{looks_like_identifier(numbered)} encoded as numbers: leave out what is one."
            warnings.warn(text, PaucaWarning, stacklevel=2)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The table as numbers.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            A level that was not in the data of the fit counts as the baseline, with a ``PaucaWarning``.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
        """
        check_is_fitted(self)
        return encoded_rows(self, self.encoding_, X, np.arange(len(self.encoding_.terms)), in_order=True)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of numbers.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Other names for the raw columns; they must be those of the fit where it had names.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        if input_features is None:
            return np.array(self.encoding_.names, dtype=object)
        given = [str(name) for name in input_features]
        if len(given) != self.n_features_in_:
            raise ValueError(f"input_features should have length equal to number of features ({self.n_features_in_})")
        if self.encoding_.has_names and given != self.encoding_.raw_names:
            raise ValueError("input_features is not equal to feature_names_in_")
        return np.array(self.encoding_.renamed(given).names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        tags.input_tags.categorical = True
        return tags

    def _read(self, X: Any) -> RawTable:
        check_table_parameters(type(self).__name__, self.get_params(deep=False))
        if issparse(X):
            raise TypeError("A sparse matrix has nothing to encode, and sparse input is not supported.")
        check_names_differ(X)
        if hasattr(X, "__len__") and not len(X):
            raise ValueError("X has no rows to learn levels and medians from.")
        table = read_raw(self, X)
        set_table_attributes(self, X)
        return table

    def _set(self, encoding: TableEncoding) -> None:
        self.encoding_ = encoding
        self.feature_groups_ = [term.raw for term in encoding.terms]
        self.baselines_ = {one.name: one.baseline for one in encoding.columns if one.levels is not None}
        self.medians_ = {one.name: one.fill for one in encoding.columns if one.levels is None and one.fill is not None}
