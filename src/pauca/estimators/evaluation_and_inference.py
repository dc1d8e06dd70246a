"""``evaluate()`` and ``inference()``: how good the predictions and how certain the coefficients of a model are."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from pauca.checks import ParameterChecks
from pauca.estimators.fitted_base import shows_progress
from pauca.estimators.offset_and_dispersion import needs_known_part
from pauca.estimators.refits_on_rows import (
    bootstrap_coefficients,
    fold_models,
    held_out_score,
    likelihood_errors,
    overdispersion,
    rare_columns,
    spread_of_draws,
    within_bounds,
)
from pauca.estimators.row_origin import origin
from pauca.estimators.row_values import check_test_target
from pauca.estimators.training_data import TrainingData
from pauca.losses import resolve
from pauca.losses.offset import parts_of, without_offset
from pauca.model_selection.folds import Fold, make_folds, makes_splits
from pauca.model_selection.held_out import HeldOutModel, held_out_scores
from pauca.model_selection.scoring import scorer_for
from pauca.results.data_summary import encoding_notes
from pauca.results.evaluation import (
    CHOOSING,
    FOLDS,
    NESTED,
    NESTED_SIZE,
    Evaluation,
    evaluate_classes,
    evaluate_numbers,
)
from pauca.results.inference import INTERCEPT, Inference
from pauca.runs.problem import LinearProblem
from pauca.runs.progress import phase
from pauca.runs.run import Stop
from pauca.statistics.regression_metrics import deviance_explained
from pauca.statistics.standard_errors import quantile
from pauca.warnings import PaucaWarning
from pauca.wording import plain

# Numbers in the columns of a model, above which a bootstrap would take minutes; with as many rows the likelihood does.
BOOTSTRAP_NUMBERS = 2_000_000


def check_test_rows(X: Any, y: Any, *, nested: bool) -> None:
    """Raise an error for test rows without targets, targets without rows, and nested folds beside test rows."""
    if (X is None) != (y is None):
        raise ValueError("evaluate() takes X and y together: test rows and their targets, or neither.")
    if X is not None and nested:
        raise ValueError("nested=True is for the rows of the fit; leave it out where test rows are given.")


class EvaluationMixin:
    """``evaluate``, ``inference`` and a report that holds both."""

    k: Any
    k_: int
    loss: Any
    get_params: Any
    path_: Any
    coef_: np.ndarray
    intercept_: Any
    classes_: np.ndarray
    _data: Any
    _scores: Any
    _settings: Any
    _fold_classes: Any
    _outcomes: Any
    _class_names: Any
    _search: Any
    _predicted: Any
    _probabilities: Any
    _known_scores: Any
    known_part_: str | None

    @shows_progress
    def evaluate(
        self,
        X: Any = None,
        y: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
        threshold: float = 0.5,
        nested: bool = False,
    ) -> Evaluation:
        """How good the predictions are: on test rows, or on rows that cross-validation holds out.

        Parameters
        ----------
        X, y : array-like or frame, and array-like, default=None
            Test rows that had no part in the fit. None: the rows of the fit are predicted by models that were fitted
            without them. The data of the fit are read once more, as by ``alternatives``.
        offset, exposure : array-like of shape (n_samples,), default=None
            Those of the test rows, as in ``predict``. A model that was fitted with one of them needs one here; rows of
            the fit have theirs.
        threshold : float, default=0.5
            From which probability on the second of two classes is predicted. Set it before you look at the figures.
        nested : bool, default=False
            Without test rows: whether size and ridge are chosen again for every fold. It takes as many fits as there
            are folds. False is fast, but optimistic where size or ridge were chosen: the same rows had a part in it.
            With a size or ridge that was chosen, reckon with five times as long as ``fit``: ``verbose=1`` on the
            estimator shows how far it is.

        Returns
        -------
        Evaluation
            AUC, accuracy, sensitivity, specificity, predictive values, Brier score, log loss and calibration for two
            classes, accuracy, log loss and a table of confusions for more, R^2, RMSE and MAE for numbers, and D^2, the
            share of the deviance explained, where the loss is one; ``message`` says where the rows come from.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.model_selection import train_test_split
        >>> from pauca import SparseClassifier
        >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
        >>> model = SparseClassifier(k=3, ridge=0.01).fit(X_train, y_train)
        >>> found = model.evaluate(X_test, y_test)
        >>> round(found.accuracy.value, 2)
        0.96
        """
        check_is_fitted(self)
        check = ParameterChecks("evaluate")
        threshold = check.number("threshold", threshold, positive=True, below=1.0)
        check_test_rows(X, y, nested=nested)
        if X is not None:
            y = check_test_target(y, classifies=bool(is_classifier(self)))
            return self._evaluate_test_rows(X, y, offset, exposure, threshold)
        if offset is not None or exposure is not None:
            raise ValueError(
                "offset and exposure are those of test rows: give X and y too. Rows of the fit have theirs."
            )
        return self._evaluate_fit({"threshold": threshold}, nested=nested)

    def _evaluate_test_rows(self, X: Any, y: np.ndarray, offset: Any, exposure: Any, threshold: float) -> Evaluation:
        if self.known_part_ is not None and offset is None and exposure is None:
            raise ValueError(needs_known_part(self.known_part_))
        scores = self._scores(X)
        if len(scores) != len(y):
            raise ValueError(f"X and y must have the same number of rows: {len(scores)} and {len(y)}.")
        known = self._known_scores(offset, exposure, len(scores))
        part = np.zeros(len(scores)) if known is None else known
        return self._evaluation(y, scores + part[:, None], origin(self, X, y), threshold, offset=part)

    def _evaluate_fit(self, options: Mapping[str, Any], *, nested: bool) -> Evaluation:
        """The evaluation of models that were fitted without each fold, on its rows."""
        data: TrainingData = self._data("evaluate")
        folds = data.folds or self._make_folds(data)
        chosen = self.path_.choice is not None
        rows = (NESTED if nested else CHOOSING) if chosen else FOLDS
        if rows == NESTED and not self.path_.choice.is_of(self.k_):
            rows = NESTED_SIZE
        models = self._held_out_models(data, folds, nested=nested and chosen)
        names = [[self.path_.unit_name(unit) for unit in model.units] for model in models]
        found = replace(self._measured(data, models, rows, options), fold_choices=names)
        if rows not in (NESTED, NESTED_SIZE):
            return found
        return replace(found, score=held_out_score(data, folds, models, scorer_for(self, self._settings().scoring)))

    def _measured(
        self, data: TrainingData, models: Sequence[HeldOutModel], rows: str, options: Mapping[str, Any]
    ) -> Evaluation:
        """The evaluation of models on the rows that they have not seen."""
        return self._evaluate_models(data.problem, data.y, data.weights, models, rows, options["threshold"])

    @shows_progress
    def inference(
        self,
        method: str = "likelihood",
        *,
        confidence: float = 0.95,
        n_resamples: int = 200,
        random_state: int | None = 0,
    ) -> Inference:
        """Standard errors and intervals of the coefficients, for the chosen features as if they had been given.

        They are those that statsmodels would give for a model of these features. The search is not accounted for, so
        intervals are too narrow; ``Inference.caution`` says so, and there are no p-values. ``stability`` tells how much
        the choice depends on the rows. The data of the fit are read once more, as by ``alternatives``.

        Parameters
        ----------
        method : {"likelihood", "bootstrap"}, default="likelihood"
            From the curvature of the likelihood, for squared error, two classes by "log_loss", and counts and amounts;
            or from fits of the same features to resampled rows, for every loss, many classes and several outputs.
        confidence : float, default=0.95
        n_resamples : int, default=200
            Of the bootstrap.
        random_state : int or None, default=0
            Of the bootstrap: the same number gives the same resamples.

        Returns
        -------
        Inference

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from pauca import SparseRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> SparseRegressor(k=2).fit(X, y).inference().to_frame().round(1).loc["bmi"].to_list()
        [675.1, 63.5, 550.3, 799.8]
        """
        check = ParameterChecks("inference")
        check.one_of("method", method, ("likelihood", "bootstrap"))
        confidence = check.number("confidence", confidence, positive=True, below=1.0)
        data: TrainingData = self._data("inference")
        model, outputs = self.path_[self.k_], self.path_.output_names
        if outputs is not None and method == "likelihood":
            what = "classes" if is_classifier(self) else "outputs"
            raise ValueError(
                f"Standard errors from the likelihood are for one number or two classes, and this model has "
                f'{len(outputs)} {what}: use inference("bootstrap").'
            )
        names, coef = self.path_.names(self.k_), np.atleast_2d(model.coef)
        at_bound = None if model.at_bound is None else np.atleast_2d(model.at_bound)
        if data.has_intercept:
            names, coef = [*names, INTERCEPT], np.column_stack([coef, np.atleast_1d(model.intercept)])
            at_bound = None if at_bound is None else np.pad(at_bound, ((0, 0), (0, 1)))
        about: dict[str, Any] = {
            "shrunken": data.problem.ridge > 0,
            "notes": tuple(encoding_notes(self.path_.raw_columns(self.k_))),
            "ratio": parts_of(data.problem.measure, data.problem.target.y)[0].ratio,
            "at_bound": None if at_bound is None else at_bound.ravel(),
        }
        if method == "bootstrap":
            count = check.count("n_resamples", n_resamples)
            draws = bootstrap_coefficients(data, model.support, count, random_state)
            error, lower, upper = spread_of_draws(draws.reshape(count, -1), confidence)
            rare = tuple(names[place] for place in rare_columns(data, model.support, self._outcomes(data.y)))
            names = names * len(coef)
            about |= {"rare": rare, "outputs": None if outputs is None else np.repeat(outputs, coef.shape[1]).tolist()}
            return Inference(names, coef.ravel(), error, lower, upper, confidence, method, count, **about)
        coef, error = coef[0], likelihood_errors(data, model)
        n_rows, n_free = int(np.count_nonzero(data.weights)), int(np.count_nonzero(~np.isnan(error)))
        reach = quantile(parts_of(data.problem.measure, data.problem.target.y)[0], confidence, n_rows, n_free)
        lower, upper = within_bounds(data, model, coef - reach * error, coef + reach * error)
        about |= {"overdispersion": overdispersion(data, model)}
        return Inference(names, coef, error, lower, upper, confidence, method, **about)

    @shows_progress
    def report(
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        offset: Any = None,
        exposure: Any = None,
        threshold: float = 0.5,
        nested: bool = False,
        n_resamples: int = 200,
        class_names: Sequence[str] | None = None,
    ) -> None:
        """Write the fitted model as one HTML page, to be opened in any browser.

        The page holds the chosen features with their effects in words and their intervals, how good the predictions
        are, a calculator, a slider over all sizes of the path with what every size gains and costs, curves, and the
        settings. It is a single file that needs no network and can be read, sent and printed without Python.
        It holds no rows of the data. A file that is there already is replaced in one step, once the new one is whole.

        Parameters
        ----------
        path : str or path-like
            The file, such as ``"report.html"``.
        X, y : array-like or frame, and array-like, default=None
            Test rows on which the predictions are measured. None: they are measured as by ``evaluate()``, if the model
            still has the data of its fit; the page says so if that is optimistic.
        title : str or None, default=None
            What to write above the page. None: what is known of the model.
        offset, exposure : array-like of shape (n_samples,), default=None
            Those of the test rows, as in ``evaluate``.
        threshold : float, default=0.5
            From which probability on the second of two classes is predicted.
        nested : bool, default=False
            Without test rows: whether size and ridge are chosen again for every fold. It takes as many fits as there
            are folds, and the figures are not optimistic.
        n_resamples : int, default=200
            Resamples for the intervals of coefficients; 0 for no intervals.
        class_names : list, tuple, array or Series of str, default=None
            What to call the classes on the page, in the order of ``classes_``: ``["alive", "dead"]`` for 0 and 1. Of
            two classes the second is the event.

        Examples
        --------
        >>> import tempfile, os, pauca
        >>> from sklearn.datasets import load_diabetes
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pauca.SparseRegressor().fit(X, y).report(os.path.join(folder, "report.html"), title="Diabetes")
        ...     os.listdir(folder)
        ['report.html']
        """
        given = {"X": X, "y": y, "offset": offset, "exposure": exposure, "threshold": threshold}
        names = self._class_names(class_names)
        self._write_report(path, title, given, nested=nested, n_resamples=n_resamples, class_names=names)

    def _write_report(
        self,
        path: str | os.PathLike[str],
        title: str | None,
        given: dict[str, Any],
        *,
        nested: bool,
        n_resamples: int,
        class_names: list[str] | None = None,
        event: str | None = None,
    ) -> None:
        """Write the page, with the predictions measured as ``given`` to ``evaluate``."""
        from pauca.report import Findings, check_page_path, write_report

        check_is_fitted(self)
        check_page_path(path)
        if isinstance(given["X"], str):
            raise TypeError(f"X must hold test rows, not the text {given['X']!r}: a title is given by name, title=...")
        evaluation = inference = None
        data = getattr(self, "_training_data", None)
        # What is not given is left out; with anything of test rows ``evaluate`` measures, or says why it cannot.
        given = {name: value for name, value in given.items() if value is not None}
        # A single row that counts cannot be held out.
        held_out = data is not None and data.in_memory and np.count_nonzero(data.weights) > 1
        if given.keys() - {"threshold", "horizon"} or held_out:
            evaluation = self.evaluate(**given, nested=nested)
        if data is not None and data.in_memory:
            if held_out and evaluation is not None and not evaluation.fold_choices:
                evaluation = replace(evaluation, fold_choices=self.evaluate().fold_choices)
            inference = self._intervals(data, n_resamples)
        phase("writing the page")
        findings = Findings(evaluation, inference, self._test_survival(given))
        write_report(self, path, title, findings, class_names, event)

    def _test_survival(self, given: Mapping[str, Any]) -> Any:
        """Survival curves of the test rows of a report; None where there are none, or no times to an event."""
        return None

    def _intervals(self, data: TrainingData, n_resamples: int) -> Inference | None:
        """Intervals for a report: by bootstrap unless there are too many rows."""
        model = self.path_[self.k_]
        if not n_resamples or not self.k_ or data.problem.target.n_outputs > 1 or model.diverged:
            return None
        few = len(model.support) * len(data.weights) <= BOOTSTRAP_NUMBERS
        loss = parts_of(data.problem.measure, data.problem.target.y)[0]
        likelihood = loss.coupled or loss.free_dispersion is not None
        if few:
            return self.inference("bootstrap", n_resamples=n_resamples)
        return self.inference("likelihood") if likelihood else None

    def _make_folds(self, data: TrainingData) -> list[Fold]:
        classes = self._fold_classes(data.y)
        labels = data.y if classes is None else classes
        folds = make_folds(None, labels, data.row_groups, data.weights, classifies=classes is not None)
        return folds if data.table is None else data.table.folds(folds)

    def _held_out_models(self, data: TrainingData, folds: list[Fold], *, nested: bool) -> Sequence[HeldOutModel]:
        """A model for every fold that has not seen its rows."""
        choice = self.path_.choice
        if nested:
            step = phase("choosing again without each fold", len(folds))
            return [self._fitted_anew(data, fold, step) for fold in folds]
        if data.held_out and choice is not None and choice.is_of(self.k_):
            return data.held_out
        return fold_models(data, self.k_, folds)

    def _fitted_anew(self, data: TrainingData, fold: Fold, step: Callable[[], None]) -> HeldOutModel:
        """A fit to the rows of a fold, with everything chosen again; of a raw table also what is filled in."""
        problem, other, choice = data.problem, copy.copy(self), self.path_.choice
        if choice is not None and not choice.is_of(self.k_):  # a size that was set by hand: its ridge is chosen again
            other.k = [self.k_]
        settings = other._settings()
        if not makes_splits(settings.cv):
            raise ValueError("nested=True needs a cv that splits any rows: a number of folds or a splitter, no list.")
        table = problem.X if data.table is None else data.table.of_rows(fold.weights)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PaucaWarning)
            other._search(settings, table, data.y, fold.weights, problem.target, data.row_groups)
        if other.path_.stop is Stop.INTERRUPTED:  # half a search is not the model of this fold
            raise KeyboardInterrupt
        step()
        model = other.path_[other.k_]
        units, coef = tuple(model.units.tolist()), np.atleast_2d(model.coef)
        X = None if data.table is None else table.X
        return HeldOutModel(fold.test, units, model.support, coef, np.atleast_1d(model.intercept), X)

    def _held_out_figures(
        self, problem: LinearProblem, y: np.ndarray, weights: np.ndarray, models: Sequence[HeldOutModel]
    ) -> dict[str, float]:
        found = self._evaluate_models(problem, y, weights, models, CHOOSING, 0.5)
        wanted = ("auc", "accuracy", "brier", "rmse", "mae")
        return {record["figure"]: record["value"] for record in found.table() if record["figure"] in wanted}

    def _evaluate_models(
        self,
        problem: LinearProblem,
        y: np.ndarray,
        weights: np.ndarray,
        models: Sequence[HeldOutModel],
        rows: str,
        threshold: float,
    ) -> Evaluation:
        """The evaluation of models on the rows that they have not seen."""
        scores = held_out_scores(problem.X, len(weights), models)
        _, target, offset = parts_of(problem.measure, problem.target.y)
        truth = y if is_classifier(self) else target.T.reshape(y.shape)
        known = np.isfinite(scores).all(axis=1) & (weights > 0)
        scores = scores + np.broadcast_to(np.atleast_2d(offset).T, scores.shape)
        parts = np.broadcast_to(np.atleast_2d(offset)[0], len(scores))
        return self._evaluation(truth[known], scores[known], rows, threshold, len(models), offset=parts[known])

    def _evaluation(
        self, y: np.ndarray, scores: np.ndarray, rows: str, threshold: float, n_folds: int = 0, *, offset: np.ndarray
    ) -> Evaluation:
        """The evaluation of rows by their linear scores, shape (n, C), in which their ``offset`` is included."""
        if not is_classifier(self):
            return evaluate_numbers(y, self._predicted(scores), rows, n_folds, self._d2(y, scores, offset))
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y holds the class {plain(unknown[0])!r}, which the fit has not seen.")
        probabilities = hasattr(resolve(self.loss, classes=True), "probabilities")
        if probabilities:
            scores = self._probabilities(scores)
        if len(self.classes_) == 2:
            scores, threshold = (scores[:, 1], threshold) if probabilities else (scores[:, 0], 0.0)
        return evaluate_classes(
            np.searchsorted(self.classes_, y),
            scores,
            [str(label) for label in self.classes_],
            rows,
            threshold=threshold,
            probabilities=probabilities,
            n_folds=n_folds,
        )

    def _d2(self, y: np.ndarray, scores: np.ndarray, offset: np.ndarray) -> float | None:
        """The share of the deviance explained; None where the loss is none, or lacks a parameter that files drop."""
        data = getattr(self, "_training_data", None)
        loss = resolve(self.loss, classes=False) if data is None else without_offset(data.problem.measure)
        if loss.explains != "deviance" or loss.has_estimated:
            return None
        return deviance_explained(loss, y, scores, offset)
