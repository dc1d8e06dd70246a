"""What SparseRegressor and SparseClassifier share: from checked input to a path, and questions to the fitted model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from pauca.checks import ParameterChecks
from pauca.estimators.certify import ProvingMixin, certificate_of
from pauca.estimators.fit import (
    CheckedData,
    FittedPath,
    ResumePoint,
    fit_path,
    path_statistics,
)
from pauca.estimators.fit_warnings import SEPARABLE, fit_warnings
from pauca.estimators.fitted_base import FittedModel, shows_progress
from pauca.estimators.identifiers import left_out, named_identifiers, never_also
from pauca.estimators.missing_methods import ALTERNATIVES, STABILITY, TO_POINTS, MissingMethod
from pauca.estimators.raw_tables import FitTable, display_names
from pauca.estimators.refits_on_rows import missing_values, summary_of_data
from pauca.estimators.row_values import check_row_groups
from pauca.estimators.settings import SearchSettings
from pauca.estimators.table_encoder import TableEncoder
from pauca.estimators.training_data import TrainingData, find_alternatives, measure_stability
from pauca.losses import Loss, NegativeBinomial
from pauca.losses.offset import without_offset
from pauca.model_selection.held_out import HeldOutModel
from pauca.model_selection.scoring import scorer_for
from pauca.model_selection.size_and_ridge import refitted_run, searched_by
from pauca.results.alternatives import Alternatives
from pauca.results.data_summary import DataSummary, filled_notes
from pauca.results.instructions import IN_PYTHON, WITHOUT_DATA, Instructions
from pauca.results.path import Path
from pauca.results.stability import Stability
from pauca.runs.problem import LinearProblem, Target
from pauca.runs.progress import ProgressReport, phase, reported
from pauca.runs.run import Budget, interrupted_once
from pauca.tables import RawTable, TableEncoding
from pauca.warnings import PaucaWarning
from pauca.wording import printable


class SparseModel(ProvingMixin, FittedModel):
    """A search for a linear model with few features: all that does not depend on what the target is."""

    _training_data: TrainingData | None
    categorical_features: Any
    missing: Any
    ridge_: float
    search_ridge_: float
    _resume: ResumePoint | None
    known_part_: str | None = None
    """What the fit was given of the score of every row: "offset", "exposure" or nothing."""
    dispersion_: float | None = None
    """The dispersion of counts that are negative binomial, given or estimated; None for other losses."""
    to_points: Any = MissingMethod(TO_POINTS)
    stability_: Any = MissingMethod(STABILITY)
    alternatives_: Any = MissingMethod(ALTERNATIVES)

    @property
    def loss_(self) -> Loss:
        """The loss with all its parameters set; not kept in files."""
        data = getattr(self, "_training_data", None)
        if data is None:
            raise AttributeError("loss_ goes with the data of a fit, which are not kept in files or pickles.")
        return without_offset(data.problem.measure)

    @shows_progress
    def at(self, size: int, ridge: str | None = None) -> Self:
        """The fitted model of another size, without a new search.

        Parameters
        ----------
        size : int
            One of ``path_.sizes``; a ``KeyError`` says which there are.
        ridge : "best" or None, default=None
            None: the model on ``path_``, whose models all have the ridges of the chosen one (``ridge_``, and
            ``search_ridge_`` in the search). "best": the model at the ridges that scored best for this size on
            held-out rows; it is fitted on the data of the fit, as by ``alternatives``, and ``path_`` is the path of
            these ridges. A new fit with ``k=size`` is a third model: it has no ridge unless one is given.

        Returns
        -------
        estimator
            Another estimator of the same kind, fitted, with ``k=size``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from pauca import SparseRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = SparseRegressor(k=5).fit(X, y)
        >>> [round(model.at(size).score(X, y), 2) for size in (1, 3, 5)]
        [0.34, 0.48, 0.51]
        """
        check_is_fitted(self)
        if ridge is None:
            return super().at(size)
        ParameterChecks("at").one_of("ridge", ridge, ("best", None))
        choice = self.path_.choice
        if choice is None or choice.surface is None:
            raise ValueError("No ridges were compared in this fit: there is only ridge_.")
        search_ridge, best = choice.surface.best_of(size)
        if (search_ridge, best) == (self.search_ridge_, self.ridge_):  # the path has it, in a file too
            return super().at(size)
        if getattr(self, "_training_data", None) is None:
            raise ValueError(
                f"The best ridge of size {size} is {best:.3g}, and files and pickles hold the models at ridge "
                f"{self.ridge_:.3g} only: take at({size}), or fit the model again, or save at({size}, ridge='best') "
                "where it was fitted."
            )
        phase("fitting at other ridges")
        data, other = self._data("at"), self._copy()
        problem = replace(data.problem, ridge=best)
        shown = Budget(callback=reported(None))
        search = searched_by(problem.method, data.searches[search_ridge], self.tol, shown)
        models = refitted_run(problem, search, data.weights).models(size)
        other.ridge_, other.search_ridge_ = best, search_ridge
        certificate = certificate_of(search, models, self.path_.column_names, (best, search_ridge))
        statistics = path_statistics(models, problem, data.weights, search, best)
        choice = choice.at_ridges(search_ridge, best)
        other.path_ = replace(self.path_, models=models, certificate=certificate, statistics=statistics, choice=choice)
        other._training_data = replace(data, problem=problem, search_ridge=search_ridge, held_out=())
        other.k = size
        other._set_size(size)
        return other

    @shows_progress
    def alternatives(self, count: int = 3) -> Alternatives:
        """For each chosen feature the best others in its place, and what each would cost.

        Every swap is refitted on the data of the fit. A fitted model refers to these data (it never copies them) until
        it is saved, pickled or fitted again.

        Parameters
        ----------
        count : int, default=3
            Number of replacements for each feature.

        Returns
        -------
        Alternatives
            A list of dicts with the keys feature, replacement, objective (after the swap) and explained_lost, the share
            explained on the rows of the fit that the swap would cost; with a ridge, the rise of the objective, ridge
            included, as a share of the empty model's. It prints as a table. The most important features come first.
            Models are compared at the ridge of the fit, as importances are; where the search had another one, a swap
            may gain something: its loss is negative then. The list is kept as ``alternatives_``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from pauca import SparseRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> first = SparseRegressor(k=3).fit(X, y).alternatives(count=1)[0]
        >>> first["feature"], first["replacement"], round(first["explained_lost"], 3)
        ('bmi', 's3', 0.071)
        """
        check = ParameterChecks("alternatives")
        self.alternatives_ = find_alternatives(
            self._data("alternatives"), self.path_, self.k_, check.count("count", count)
        )
        return self.alternatives_

    @shows_progress
    def stability(self, n_resamples: int = 50, *, random_state: int | None = 0, n_jobs: int | None = None) -> Stability:
        """How often each feature is chosen when as many are chosen on random halves of the rows.

        Halves come in pairs that make up the whole (Shah and Samworth 2013), and keep the shares of classes. A feature
        that is chosen in nearly all of them does not depend on a few rows; where two are chosen about half of the time,
        they carry the same information. The data of the fit are read once more, as by ``alternatives``.

        Parameters
        ----------
        n_resamples : int, default=50
            As many searches to the size of the model: on wide tables or of losses without closed forms that takes as
            long as some fits that choose the size. ``verbose=1`` on the estimator shows how far it is.
        random_state : int or None, default=0
            The same number gives the same halves.
        n_jobs : int or None, default=None
            Number of searches that run at a time, as in scikit-learn.

        Returns
        -------
        Stability
            Kept as ``stability_``; ``plot_stability()`` draws it.
        """
        count, data = ParameterChecks("stability").count("n_resamples", n_resamples), self._data("stability")
        self.stability_ = measure_stability(
            data, self.path_, self.k_, count, random_state, n_jobs, classes=self._fold_classes(data.y)
        )
        return self.stability_

    def plot_stability(self, ax: Any = None, most: int = 20) -> Any:
        """Draw what ``stability`` has found.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        most : int, default=20
            No more than this many bars.

        Returns
        -------
        matplotlib.axes.Axes
        """
        check_is_fitted(self)
        if not hasattr(self, "stability_"):
            raise ValueError("Nothing to draw yet: call stability() first.")
        return self.stability_.plot(ax, most)

    def _search(
        self,
        settings: SearchSettings,
        X: Any,
        y: np.ndarray,
        weights: np.ndarray,
        target: Target,
        row_groups: Any,
        feature_names: Any = None,
    ) -> None:
        """Run the method on checked data and set the fitted attributes.

        ``X`` may be encoded already. ``row_groups`` are kept together by folds; ``feature_names`` are for a table that
        has none.
        """
        names, table = getattr(self, "feature_names_in_", None), None
        if isinstance(X, FitTable):
            table = X
            X, names = table.X, table.names
        elif isinstance(X, RawTable) or feature_names is not None:
            shown = display_names(feature_names, X.shape[1], names)
            table = FitTable.of(X, weights, shown, settings.missing, settings.constraints)
            X, names = table.X, table.names
        self._set_encoder(None if table is None else table.encoding)
        classes = self._fold_classes(y) if settings.uses_folds else None
        row_groups = check_row_groups(row_groups)
        data = CheckedData(X, y, weights, target, names, row_groups, classes, table)
        scorer = None if settings.scoring is None else scorer_for(self, settings.scoring)
        resume = getattr(self, "_resume", None) if settings.warm_start else None
        numbered = named_identifiers(table or FitTable(X, names), settings.constraints)
        searched = replace(settings, constraints=never_also(settings.constraints, numbered))
        fitted = fit_path(searched, data, scorer, resume, self._output_labels())
        found = fitted.found
        path = self._finished_path(fitted.path, fitted.problem)
        if found.held_out and path.choice is not None:
            figures = self._held_out_figures(fitted.problem, y, weights, found.held_out)
            path = replace(path, choice=replace(path.choice, held_out=figures))
        searches, ridge = found.searches, found.search_ridge
        kept = TrainingData(
            fitted.problem, weights, y, searches, ridge, fitted.folds, row_groups, found.held_out, table
        )
        try:
            self._keep(path, fitted, kept)
        except KeyboardInterrupt:  # once more, from the beginning: it takes no time
            interrupted_once()
            self._keep(path, fitted, kept)
        found_odd = fit_warnings(settings, fitted, self.path_, self._divergence, self._rarer(y, weights))
        text = " ".join([*left_out(numbered), *found_odd])
        if text:
            warnings.warn(text, PaucaWarning, stacklevel=3)

    def _set_encoder(self, encoding: TableEncoding | None) -> None:
        for earlier in (
            "encoder_",
            "first_index_",
            "n_rows_dropped_",
            "known_part_",
            "dispersion_",
        ):  # of an earlier fit
            self.__dict__.pop(earlier, None)
        if encoding is not None:
            self.encoder_ = TableEncoder._of(encoding, self.categorical_features, self.missing)

    def _note_known_part(self, offset: Any, exposure: Any) -> None:
        if exposure is not None or offset is not None:
            self.known_part_ = "offset" if exposure is None else "exposure"

    def _keep(self, path: Path, fitted: FittedPath, data: TrainingData) -> None:
        """Set the fitted attributes."""
        self.path_ = path
        self.ridge_, self.search_ridge_ = fitted.found.ridge, fitted.found.search_ridge
        self._set_size(fitted.found.answer)
        self._training_data, self._resume = data, fitted.resume
        if isinstance(self.loss_, NegativeBinomial):
            self.dispersion_ = self.loss_.dispersion

    def _held_out_figures(
        self, problem: LinearProblem, y: np.ndarray, weights: np.ndarray, models: Sequence[HeldOutModel]
    ) -> dict[str, float]:
        """Figures of the chosen model on held-out rows, besides the score that chose it."""
        return {}

    def _fold_classes(self, y: np.ndarray) -> np.ndarray | None:
        """Classes whose shares folds and samples of rows keep; None where there are none."""
        return y if is_classifier(self) else None

    def _outcomes(self, y: np.ndarray) -> list[np.ndarray]:
        """Masks of the rows of every outcome that a coefficient is learned from."""
        classes = getattr(self, "classes_", None)  # to ask scikit-learn's tags takes longer than the rest
        return [np.ones(len(y), dtype=bool)] if classes is None else [y == label for label in classes]

    def _rarer(self, y: np.ndarray, weights: np.ndarray) -> tuple[int, str]:
        """How many rows have the rarer of two outcomes, as a number and in words; all where there are not two."""
        masks = self._outcomes(y)
        if len(masks) > 2:
            return int(np.count_nonzero(weights)), ""
        counts = [int(np.count_nonzero(mask & (weights > 0))) for mask in masks]
        rarest = int(np.argmin(counts))
        many, s = counts[rarest], "" if counts[rarest] == 1 else "s"
        classes = getattr(self, "classes_", None)
        if classes is not None:
            return many, f"{many} row{s} of class {str(classes[rarest])!r}"
        return many, f"{many} event{s}"

    def _finished_path(self, path: Path, problem: LinearProblem) -> Path:
        """The path with what its models need beside coefficients and intercept."""
        return path

    def _instructions(self) -> Instructions:
        found = IN_PYTHON if getattr(self, "_training_data", None) is not None else WITHOUT_DATA
        return found if hasattr(self, "evaluate") else replace(found, other_rows="", honest="")

    def _divergence(self, size: int) -> str:
        """What to say of coefficients that diverge."""
        return SEPARABLE

    def _settings(self, report: ProgressReport | None = None) -> SearchSettings:
        """The parameters, checked before any data are looked at; ``report`` shows what searches do."""
        given = {name: getattr(self, name) for name in _parameter_names(type(self))}  # type: ignore[arg-type]
        parameters = {"fit_intercept": True} | given
        settings = SearchSettings.parse(type(self).__name__, parameters, report)
        if settings.scoring is not None:
            scorer_for(self, settings.scoring)
        return settings

    def _check_parameters(self) -> None:
        self._settings()

    def _data(self, caller: str) -> TrainingData:
        check_is_fitted(self)
        data = getattr(self, "_training_data", None)
        if data is None:
            raise ValueError(
                f"{caller}() needs the data of the fit, which are not kept in files or pickles: fit the model again."
            )
        return data

    def _data_summary(self) -> DataSummary | None:
        """What is known of the data of the fit: from the data, or from the file that the model was read from."""
        data = getattr(self, "_training_data", None)
        if data is None:
            return self.path_.data_summary
        data_summary = summary_of_data(data, self.path_, getattr(self, "classes_", None))
        return replace(data_summary, n_dropped=getattr(self, "n_rows_dropped_", 0))

    def _reading_notes(self) -> list[str]:
        data, kept = getattr(self, "_training_data", None), self.path_.data_summary
        known = {} if kept is None else kept.missing
        missing = missing_values(data) if data is not None else known
        filled = filled_notes(self.path_.raw_columns(self.k_), missing)
        return [*map(printable, filled), *super()._reading_notes()]

    def __getstate__(self) -> Any:
        # Data do not travel with a model.
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_training_data"}

    def _copy(self) -> Self:
        other = super()._copy()
        other._training_data = getattr(self, "_training_data", None)
        return other

    def _set_size(self, size: int) -> None:
        super()._set_size(size)
        for optional in ("feature_groups_", "cost_", "alternatives_", "stability_", "certificate_"):
            self.__dict__.pop(optional, None)
        if self.path_.certificate is not None:
            self.certificate_ = self.path_.certificate
        if self.path_.group_labels is not None:
            self.feature_groups_ = self.path_.group_labels[self.path_[size].units]
        elif hasattr(self, "encoder_"):
            self.feature_groups_ = np.array([self.encoder_.feature_groups_[column] for column in self.support_])
        if self.path_.prices is not None:
            self.cost_ = self.path_.cost(size)


@cache
def _parameter_names(estimator: Callable[..., Any]) -> list[str]:
    """The names of an estimator's parameters, read from its signature once: ``get_params`` does so each time."""
    return list(signature(estimator).parameters)
