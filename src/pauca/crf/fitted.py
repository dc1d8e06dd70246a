"""What a fitted tagger can be asked: labels, probabilities, how well it does, other sizes, a file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from pauca.crf.fitting import check_options
from pauca.crf.input import Read, read_sequences
from pauca.crf.labels import read_labels
from pauca.crf.metrics import label_report, label_table
from pauca.crf.observations import Observations
from pauca.crf.passes import Passes
from pauca.crf.tables import Wanted, refuse_large
from pauca.estimators.fitted import PathMixin
from pauca.export import save
from pauca.results.path import Path


class FittedTagger(PathMixin, BaseEstimator):
    """All of a tagger but its settings and its fit."""

    k: Any
    unit: str
    n_jobs: int | None
    feature_groups: Any
    classes_: np.ndarray
    names_: np.ndarray
    n_features_in_: int
    path_: Path

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """The most probable labels of every sequence together (Viterbi's algorithm).

        Parameters
        ----------
        X : list of tables, or one table with ``lengths``
            All columns of the fit; of frames and dicts, those of the chosen sensors are enough.
        lengths : list of int, default=None

        Returns
        -------
        list of ndarray, or ndarray with ``lengths``
            A label for every position.
        """
        read, passes, scores = self._scored(X, lengths)
        labels = self.classes_[passes.best_labels(scores, self.transitions_)]
        return labels if lengths is not None else read.split(labels)

    def predict_marginals(self, X: Any, lengths: Any = None) -> Any:
        """The probability of every label at every position.

        Parameters
        ----------
        X : list of tables, or one table with ``lengths``
        lengths : list of int, default=None

        Returns
        -------
        list of ndarray of shape (length, C), or ndarray of shape (n, C) with ``lengths``
            Columns in the order of ``classes_``.
        """
        read, passes, scores = self._scored(X, lengths)
        marginals = passes.sums(scores, self.transitions_, by_position=True).marginals
        return marginals if lengths is not None else read.split(marginals)

    def score(self, X: Any, y: Any, lengths: Any = None) -> float:
        """The share of positions whose label is found.

        Parameters
        ----------
        X : list of tables, or one table with ``lengths``
        y : list of sequences of labels, or one with ``lengths``
        lengths : list of int, default=None

        Returns
        -------
        float
        """
        truth, found = self._compared(X, y, lengths)
        return float(np.mean([a == b for a, b in zip(truth, found, strict=True)]))

    def label_table(self, X: Any, y: Any, lengths: Any = None) -> list[dict[str, Any]]:
        """How well each label is found.

        Parameters
        ----------
        X : list of tables, or one table with ``lengths``
        y : list of sequences of labels, or one with ``lengths``
        lengths : list of int, default=None

        Returns
        -------
        list of dict
            With the keys label, precision, recall, f1 and support, the number of positions that have it; a share of
            nothing is not a number.
        """
        return label_table(self.classes_, *self._compared(X, y, lengths))

    def label_report(self, X: Any, y: Any, lengths: Any = None) -> str:
        """How well each label is found, as text to be printed.

        Parameters
        ----------
        X : list of tables, or one table with ``lengths``
        y : list of sequences of labels, or one with ``lengths``
        lengths : list of int, default=None

        Returns
        -------
        str
        """
        return label_report(self.label_table(X, y, lengths))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file of plain JSON, for ``pauca.load``; it holds no code.

        Parameters
        ----------
        path : str or path-like
        """
        check_is_fitted(self)
        save(self, path)

    def _scored(self, X: Any, lengths: Any) -> tuple[Read, Passes, np.ndarray]:
        """What was read, and the scores of every label at every position."""
        check_is_fitted(self)
        names = self.names_ if len(self.names_) else None
        read = read_sequences(X, lengths, Wanted(self.n_features_in_, names, self.support_))
        self._warn_of_names(read)
        data = Observations.plain(read.matrix, read.bounds)
        refuse_large(data, self.support_, names)
        scores = data.scores(self.coef_[:, self.support_].T.copy()) + self.intercept_
        return read, Passes(data, len(self.classes_), effective_n_jobs(self.n_jobs)), scores

    def _warn_of_names(self, read: Read) -> None:
        """Columns go by their places where names are missing on one side: told in scikit-learn's words."""
        fitted_on_names, name = bool(len(self.names_)), type(self).__name__
        if read.named is False and fitted_on_names:
            words = f"X does not have valid feature names, but {name} was fitted with feature names"
        elif read.named and not fitted_on_names:
            words = f"X has feature names, but {name} was fitted without feature names"
        else:
            return
        warnings.warn(words, UserWarning, stacklevel=4)

    def _compared(self, X: Any, y: Any, lengths: Any) -> tuple[list[Hashable], list[Hashable]]:
        """Labels in truth and as they were found."""
        read, passes, scores = self._scored(X, lengths)
        truth = read_labels(y, read.bounds, lengths)
        return truth, self.classes_[passes.best_labels(scores, self.transitions_)].tolist()

    def _choose(self, size: int) -> None:
        """Put the model of ``size`` into the fitted attributes."""
        path, model, n = self.path_, self.path_[size], len(self.classes_)
        assert model.free is not None
        self.transitions_ = model.free[: n * n].reshape(n, n)
        if self.unit == "weight":
            weights = np.zeros(self.n_features_in_ * n)
            weights[model.support] = model.coef
            self.coef_ = weights.reshape(-1, n).T.copy()
            self.intercept_ = model.free[n * n :]
            self.support_ = np.unique(model.support // n)
        else:
            self.coef_ = np.zeros((n, self.n_features_in_))
            self.coef_[:, model.support] = model.coef
            self.intercept_ = np.asarray(model.intercept)
            self.support_ = model.support
        self.__dict__.pop("cost_", None)
        if path.prices is not None:
            self.cost_ = path.cost(size)
        if path.group_labels is not None:
            self.sensors_ = path.group_labels[model.units]
        else:
            self.sensors_ = self.names_[self.support_] if len(self.names_) else self.support_
        self.k_ = size
        self.objective_ = model.objective
        self.stop_ = path.stop

    def _name_columns(self) -> None:
        self.__dict__.pop("feature_names_in_", None)
        if len(self.names_):
            self.feature_names_in_ = self.names_

    def _check_options(self) -> None:
        check_options(self)

    def _restored(self) -> None:
        """Called when a file has been read: refuse what does not go together, set what the path does not hold."""
        self._recheck_options()
        n, path = len(self.classes_), replace(self.path_, noun=self.unit)
        self.path_ = path
        if self.feature_groups is None and path.group_labels is not None:
            self.feature_groups = path.group_labels[path.owner]  # what a function said, which no file holds
        if self.unit == "weight":
            self.n_features_in_ = path.n_features // n
        wanted = n * n + (n if self.unit == "weight" else 0)
        for model in path:
            if model.free is None or len(model.free) != wanted:
                raise ValueError(f"the model of size {model.size} must hold {wanted} free parameters")
        if len(self.names_) not in {0, self.n_features_in_}:
            raise ValueError(f"there are {len(self.names_)} names and {self.n_features_in_} columns")
        self._name_columns()
