"""How good the predicted classes of an order are, on test rows or on rows that were held out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pauca.estimators.evaluation_and_inference import EvaluationMixin, check_test_rows
from pauca.estimators.fitted_base import shows_progress
from pauca.estimators.row_origin import origin
from pauca.estimators.row_values import check_test_target
from pauca.model_selection.held_out import HeldOutModel
from pauca.model_selection.scoring import read_columns
from pauca.ordinal.cumulative_logit import BoundCumulativeLogit
from pauca.ordinal.probabilities import class_probabilities
from pauca.results.evaluation import Evaluation, evaluate_classes
from pauca.runs.problem import LinearProblem
from pauca.wording import plain


class OrdinalEvaluationMixin(EvaluationMixin):
    """``evaluate``, ``inference`` and ``report`` of classes in an order."""

    predict_proba: Any

    @shows_progress
    def evaluate(  # type: ignore[override]
        self, X: Any = None, y: Any = None, *, nested: bool = False
    ) -> Evaluation:
        """How good the predictions are: on test rows, or on rows that cross-validation holds out.

        Parameters
        ----------
        X, y : array-like or frame, and array-like, default=None
            Test rows that had no part in the fit. None: the rows of the fit are predicted by models that were fitted
            without them, thresholds included.
        nested : bool, default=False
            Without test rows: whether size and ridge are chosen again for every fold. It takes as many fits as there
            are folds. False is fast, but optimistic where size or ridge were chosen.
            With a size or ridge that was chosen, reckon with five times as long as ``fit``: ``verbose=1`` on the
            estimator shows how far it is.

        Returns
        -------
        Evaluation
            Accuracy, log loss and a table of confusions, in the order of the classes; of two classes all that
            ``SparseClassifier.evaluate`` has, at the threshold 0.5.

        Examples
        --------
        >>> import numpy as np
        >>> from pauca import SparseOrdinalClassifier
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((300, 5))
        >>> grade = np.digitize(X[:, 1] + rng.logistic(size=300), [-1, 1])
        >>> round(SparseOrdinalClassifier(k=1).fit(X, grade).evaluate().accuracy.value, 2)
        0.52
        """
        check_is_fitted(self)
        check_test_rows(X, y, nested=nested)
        if X is None:
            return self._evaluate_fit({"threshold": 0.5}, nested=nested)
        y, shares = check_test_target(y, classifies=True), self.predict_proba(X)
        if len(shares) != len(y):
            raise ValueError(f"X and y must have the same number of rows: {len(shares)} and {len(y)}.")
        return self._evaluated(y, np.asarray(shares), origin(self, X, y))

    @shows_progress
    def report(  # type: ignore[override]
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        nested: bool = False,
        n_resamples: int = 200,
        class_names: Sequence[str] | None = None,
    ) -> None:
        """Write the fitted model as one HTML page, to be opened in any browser; see ``SparseClassifier.report``.

        Parameters
        ----------
        path : str or path-like
            The file, such as ``"report.html"``.
        X, y, nested
            How the predictions are measured, as in ``evaluate``.
        title : str or None, default=None
            The title of the page. None: made from the model.
        n_resamples : int, default=200
            Resamples for the intervals of odds ratios; 0 for no intervals.
        class_names : list, tuple, array or Series of str, default=None
            What to call the classes on the page, from the lowest to the highest.
        """
        names = self._class_names(class_names)
        self._write_report(path, title, {"X": X, "y": y}, nested=nested, n_resamples=n_resamples, class_names=names)

    def _evaluate_models(
        self,
        problem: LinearProblem,
        y: np.ndarray,
        weights: np.ndarray,
        models: Sequence[HeldOutModel],
        rows: str,
        threshold: float,
    ) -> Evaluation:
        shares = held_out_shares(problem, weights, models, len(self.classes_))
        known = np.isfinite(shares).all(axis=1) & (weights > 0)
        return self._evaluated(y[known], shares[known], rows, len(models))

    def _evaluated(self, y: np.ndarray, shares: np.ndarray, rows: str, n_folds: int = 0) -> Evaluation:
        """The evaluation of rows by the probabilities of their classes."""
        order = np.argsort(self.classes_, kind="stable")
        classes = self.classes_[order]
        places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        unknown = classes[places] != y
        if np.any(unknown):
            raise ValueError(f"y holds the class {plain(y[unknown][0])!r}, which the fit has not seen.")
        names = [str(label) for label in self.classes_]
        scores = shares if len(names) > 2 else shares[:, 1]
        return evaluate_classes(order[places], scores, names, rows, n_folds=n_folds)


def held_out_shares(
    problem: LinearProblem, weights: np.ndarray, models: Sequence[HeldOutModel], n_classes: int
) -> np.ndarray:
    """Probabilities of the classes by the models that have not seen the rows, shape (n, C); NaN where all have.

    The thresholds are those of the rows that a model has seen. A class that none of them has is impossible to it.
    """
    codes, every = problem.target.y[0], np.arange(len(weights))
    total, count = np.zeros((len(weights), n_classes)), np.zeros(len(weights))
    for model in models:
        scores = read_columns(problem.X if model.X is None else model.X, model.columns, every) @ model.coef[0]
        fitted = weights.copy()
        fitted[model.rows] = 0.0
        loss = BoundCumulativeLogit(codes, fitted)
        shares = np.zeros((len(model.rows), n_classes))
        many = len(loss.present) > 1
        known = class_probabilities(scores[model.rows], loss.thresholds(scores)) if many else 1.0
        shares[:, loss.present.astype(np.intp)] = known
        np.add.at(total, model.rows, shares)
        np.add.at(count, model.rows, 1)
    with np.errstate(invalid="ignore"):
        return total / count[:, None]
