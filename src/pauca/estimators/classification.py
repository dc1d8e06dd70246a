"""What all classifiers share: how their targets are checked, their predictions and probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from pauca.estimators.validation import check_class_weight, check_classes, check_weights
from pauca.losses import resolve
from pauca.search.problem import Target
from pauca.warnings import PaucaWarning
from pauca.wording import plain


class WithProbabilities:
    """A method of estimators whose loss models probabilities; for other losses the AttributeError says why.

    scikit-learn's ``available_if`` does the same, but keeps the reason out of the message.
    """

    def __init__(self, method: Callable[..., np.ndarray]) -> None:
        self._method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, estimator: Any, owner: type | None = None) -> Callable[..., np.ndarray]:
        if estimator is None:
            return self._method
        if not hasattr(resolve(estimator.loss, classes=True), "probabilities"):
            raise AttributeError(
                f"This {type(estimator).__name__!r} has no attribute {self._method.__name__!r}: "
                f"loss={estimator.loss!r} does not model probabilities. Use loss='log_loss', or decision_function, "
                "whose scores are no probabilities."
            )
        return MethodType(self._method, estimator)


# More different numbers than this, and fewer rows than so many for each, are hardly classes.
MANY_CLASSES = 20


class ClassificationMixin(ClassifierMixin):
    """A fitted linear model of two or more classes."""

    loss: Any
    class_weight: Any
    classes_: np.ndarray
    path_: Any
    _scores: Any

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray, Target]:
        """X and y as they are fitted, row weights that sum to one, and the target as its loss wants it."""
        loss = resolve(self.loss, classes=True)
        X, y = check_classes(self, X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes; y holds the one class "
                f"{plain(self.classes_[0])!r} alone."
            )
        if self.classes_.dtype.kind in "iuf" and len(self.classes_) > max(MANY_CLASSES, len(y) / MANY_CLASSES):
            warnings.warn(
                f"y holds {len(self.classes_)} different numbers, and each is taken for a class. If they are amounts, "
                f"use {type(self).__name__.replace('Classifier', 'Regressor')}.",
                PaucaWarning,
                stacklevel=3,
            )
        weights = check_weights(sample_weight, len(y))
        check_class_weight(self.class_weight)
        if self.class_weight is not None:
            weights = check_weights(weights * compute_sample_weight(self.class_weight, y), len(y))
        if len(np.unique(codes[weights > 0])) < 2:
            only = self.classes_[codes[weights > 0][0]]
            raise ValueError(
                f"All rows that have weight are of one class, {plain(only)!r}; at least two classes are needed."
            )
        n_classes = len(self.classes_)
        loss = loss.for_classes(n_classes)
        target = coded(codes, n_classes, joint=loss.joint)
        loss.check_target(target)
        return X, y, weights, Target(target, loss, 1 if n_classes == 2 else n_classes)

    def decision_function(self, X: Any) -> np.ndarray:
        """Linear scores.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            All columns of the fit, in the same order; or a frame with the chosen columns, in any order and with any
            others, where the fit had names. Columns that were not chosen may hold missing values.

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, positive for the second, else (n_samples, n_classes)
        """
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    @WithProbabilities
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, in the order of ``classes_``; for losses that model them.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        loss = resolve(self.loss, classes=True).for_classes(len(self.classes_))
        scores = self._scores(X).T
        if loss.joint or len(scores) == 1:
            return loss.probabilities(scores).T  # type: ignore[attr-defined]
        # Each class against all others: what they claim is brought to a sum of one.
        claims = np.stack([loss.probabilities(row[None])[1] for row in scores])  # type: ignore[attr-defined]
        return (claims / claims.sum(axis=0)).T

    @WithProbabilities
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of ``predict_proba``.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _shaped(self, coef: np.ndarray, intercept: Any) -> tuple[np.ndarray, Any]:
        return np.atleast_2d(coef), np.atleast_1d(intercept)

    def _restored(self) -> None:
        super()._restored()
        resolve(self.loss, classes=True)
        check_class_weight(self.class_weight)
        n_classes, found = len(np.unique(self.classes_)), (self.path_.output_names, self.path_.two_classes)
        if n_classes < 2 or n_classes < len(self.classes_) or found != self._words():
            raise ValueError("the classes must be two or more, no two the same, and the outputs their names")

    def _words(self) -> tuple[list[str] | None, list[str] | None]:
        names = [str(label) for label in self.classes_]
        return (None, names) if len(names) == 2 else (names, None)


def coded(codes: np.ndarray, n_classes: int, *, joint: bool) -> np.ndarray:
    """Classes as a loss wants them: numbers, shape (n,), or -1 and 1 for each against all others, shape (C, n)."""
    if joint:
        return codes.astype(np.float64)
    if n_classes == 2:
        return (2.0 * codes - 1.0)[None]
    return np.where(codes == np.arange(n_classes)[:, None], 1.0, -1.0)
