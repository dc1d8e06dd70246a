"""What SparseRegressor and SparseClassifier share: from checked input to a path, and questions to the fitted model."""

from __future__ import annotations

import time
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
from pauca.constraints.parsing import Columns, ConstraintParser, check_independent
from pauca.design import ChunkedDesign, Design, make_design
from pauca.estimators.certify import ProvingMixin, certificate_of, follow_search, prove_fit
from pauca.estimators.fit_data import FitData, find_alternatives, measure_stability
from pauca.estimators.fit_inputs import FitInputs, HeldOutRows, SearchResult, compared_sizes
from pauca.estimators.fit_warnings import SEPARABLE, fit_warnings
from pauca.estimators.fitted import FittedModel
from pauca.estimators.loss_parameters import estimate_parameters
from pauca.estimators.raw_tables import FitTable, display_names
from pauca.estimators.settings import SearchSettings
from pauca.estimators.table_encoder import TableEncoder
from pauca.estimators.validation import check_moments, in_memory
from pauca.losses import Loss
from pauca.losses.checks import check_loss
from pauca.losses.offset import without_offset
from pauca.methods.exact import Exact
from pauca.model_selection.chunked_search import Gathering
from pauca.model_selection.chunked_selection import selection_for
from pauca.model_selection.fold_losses import RowBlocks
from pauca.model_selection.folds import make_folds
from pauca.model_selection.grids import RidgeGrid, largest_size, make_grid
from pauca.model_selection.scoring import scorer_for
from pauca.model_selection.size_and_ridge import Measure, refitted_run, searched_by
from pauca.model_selection.size_selection import Selection, by_criterion, choose_size
from pauca.results.choice import Choice
from pauca.results.path import Path
from pauca.results.stability import Stability
from pauca.runs.problem import LinearProblem, Target, design_for, has_closed_form
from pauca.runs.run import Goal, Move, SearchRun
from pauca.tables import RawTable, TableEncoding
from pauca.warnings import PaucaWarning


class SparseModel(ProvingMixin, FittedModel):
    """A search for a linear model with few features: all that does not depend on what the target is."""

    _fit_data: FitData | None
    categorical_features: Any
    missing: Any
    ridge_: float
    search_ridge_: float

    @property
    def loss_(self) -> Loss:
        """The loss with all its parameters set; not kept in files."""
        data = getattr(self, "_fit_data", None)
        if data is None:
            raise AttributeError("loss_ goes with the data of a fit, which are not kept in files or pickles.")
        return without_offset(data.problem.measure)

    def at(self, size: int, ridge: str | None = None) -> Self:
        """The fitted model of another size, without a new search.

        Parameters
        ----------
        size : int
            One of ``path_.sizes``; a ``KeyError`` says which there are.
        ridge : "best" or None, default=None
            None: the model on ``path_``, whose models all have the ridge ``ridge_``. "best": the model at the ridges
            that scored best for this size on held-out rows; it is fitted on the data of the fit, as by
            ``alternatives``, and ``path_`` is the path of these ridges.

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
        data, other = self._data("at"), self._copy()
        problem = replace(data.problem, ridge=best)
        search = searched_by(problem.method, data.searches[search_ridge], self.tol)
        models = refitted_run(problem, search, data.weights).models(size)
        other.ridge_, other.search_ridge_ = best, search_ridge
        certificate = certificate_of(search, models, self.path_.column_names, (best, search_ridge))
        other.path_ = replace(self.path_, models=models, certificate=certificate)
        other._fit_data = replace(data, problem=problem, search_ridge=search_ridge)
        other.k = size
        other._set_size(size)
        return other

    def alternatives(self, count: int = 3) -> list[dict[str, Any]]:
        """For each chosen feature the best others in its place, and what each would cost.

        Every swap is refitted on the data of the fit. A fitted model refers to these data (it never copies them) until
        it is saved, pickled or fitted again.

        Parameters
        ----------
        count : int, default=3
            Number of replacements for each feature.

        Returns
        -------
        list of dict
            With the keys feature, replacement, objective (after the swap) and explained_lost, the share explained that
            the swap would cost. The most important features come first. The list is kept as ``alternatives_``.

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

    def stability(self, n_resamples: int = 50, *, random_state: int | None = 0, n_jobs: int | None = None) -> Stability:
        """How often each feature is chosen when as many are chosen on random halves of the rows.

        Halves come in pairs that make up the whole (Shah and Samworth 2013), and keep the shares of classes. A feature
        that is chosen in nearly all of them does not depend on a few rows; where two are chosen about half of the time,
        they carry the same information. The data of the fit are read once more, as by ``alternatives``.

        Parameters
        ----------
        n_resamples : int, default=50
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

        ``row_groups`` are kept together by folds; ``feature_names`` are for a table that has none.
        """
        check_loss(target.loss, target.y, weights, target.n_outputs)
        names, table = getattr(self, "feature_names_in_", None), None
        if isinstance(X, RawTable) or feature_names is not None:
            table = FitTable.of(X, weights, display_names(feature_names, X.shape[1], names), settings.missing)
            X, names = table.X, table.names
        self._set_encoder(None if table is None else table.encoding)
        columns = Columns(X.shape[1], names) if table is None else table.columns()
        constraints = ConstraintParser(columns, **settings.constraints)
        held_out = self._held_out(settings, y, weights, row_groups, table)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named below
            folds = [fold.weights for fold in held_out.folds] if held_out is not None else []
            closed_form = has_closed_form(target, constraints.units, constraints.bounds())
            center = settings.fit_intercept
            design = design_for(X, target, weights, center=center, closed_form=closed_form, folds=folds)
        check_moments(self, design, X, names)
        problem = _make_problem(settings, X, target, weights, constraints, design)
        grid = self._grid(settings, problem, weights, design)
        if problem.units.single and 0.0 in grid.search:
            check_independent(design, np.array(problem.limits.always, dtype=np.intp), names)
        started = time.monotonic()
        inputs = FitInputs(settings, problem, design, weights, grid, held_out)
        if isinstance(design, ChunkedDesign) and not closed_form:
            problem, found = self._run_on_gathered(inputs, design)
        else:
            found = self._run(inputs)
        self.ridge_, self.search_ridge_ = found.ridge, found.search_ridge
        limit = settings.run_budget.time_limit
        left = None if limit is None else max(0.0, limit - (time.monotonic() - started))
        prove_fit(settings.method, found.searches[found.search_ridge], left, size_was_chosen=found.choice is not None)
        if found.run is not found.searches[found.search_ridge]:
            follow_search(found.run, found.searches[found.search_ridge])
        if target.loss.has_estimated:
            assert found.run.history is not None
            problem, run = estimate_parameters(
                problem,
                found.run,
                found.answer,
                ridge=found.ridge,
                search_ridge=found.search_ridge,
                weights=weights,
                goal=settings.goal(max(found.run.history.best)),
                budget=settings.run_budget,
            )
            found = replace(found, run=run)
        self.path_ = self._make_path(found, problem, names)
        self._set_size(found.answer)
        self._fit_data = FitData(replace(problem, ridge=found.ridge), weights, y, found.searches, found.search_ridge)
        remarks = fit_warnings(
            self.path_,
            self.k_,
            settings,
            found.run,
            design.usable,
            constraints,
            self._divergence,
            () if table is None else table.constant,
        )
        text = " ".join([*remarks, *(() if table is None else table.warnings(self.support_))])
        if text:
            warnings.warn(text, PaucaWarning, stacklevel=3)

    def _set_encoder(self, encoding: TableEncoding | None) -> None:
        for earlier in ("encoder_", "first_index_"):  # of an earlier fit
            self.__dict__.pop(earlier, None)
        if encoding is not None:
            self.encoder_ = TableEncoder._of(encoding, self.categorical_features, self.missing)

    def _held_out(
        self, settings: SearchSettings, y: np.ndarray, weights: np.ndarray, row_groups: Any, table: FitTable | None
    ) -> HeldOutRows | None:
        if not settings.uses_folds:
            return None
        classes, row_groups = self._fold_classes(y), in_memory(row_groups)
        labels = y if classes is None else classes
        folds = make_folds(settings.cv, labels, row_groups, weights, classifies=classes is not None)
        folds = folds if table is None else table.folds(folds)
        return HeldOutRows(y, folds, RowBlocks.of(weights, row_groups, folds))

    def _fold_classes(self, y: np.ndarray) -> np.ndarray | None:
        """Classes whose shares folds and samples of rows keep; None where there are none."""
        return y if is_classifier(self) else None

    def _divergence(self, size: int) -> str:
        """What to say of coefficients that diverge."""
        return SEPARABLE

    def _grid(self, settings: SearchSettings, problem: LinearProblem, weights: np.ndarray, design: Design) -> RidgeGrid:
        return make_grid(
            settings.ridge,
            settings.search_ridge,
            chooses_size=settings.chooses_size,
            loss=problem.target.loss,
            n_rows=int(np.count_nonzero(weights)),
            n_units=int(np.count_nonzero(problem.units.any(design.usable))),
        )

    def _run(self, inputs: FitInputs) -> SearchResult:
        """A path at the ridges that were given or chosen."""
        settings, problem, grid = inputs.settings, inputs.problem, inputs.grid
        compares = settings.chooses_size or not grid.single
        if isinstance(problem.method, Exact) and (compares or settings.criterion):
            problem = replace(problem, method=problem.method.search)  # only the models on all rows are proved
        if compares:
            return self._run_and_choose(inputs, problem)
        (search_ridge,), (ridge,), choice = grid.search, grid.fit, None
        search = replace(problem, ridge=search_ridge)
        if settings.criterion is None:
            run, answer = self._run_to_size(inputs, search)
        else:
            run, choice = self._run_and_weigh(inputs, search, settings.criterion)
            answer = choice.chosen
        fitted = run if ridge == search_ridge else refitted_run(replace(problem, ridge=ridge), run, inputs.weights)
        return SearchResult(fitted, answer, choice, ridge, search_ridge, {search_ridge: run}, [run])

    def _run_on_gathered(self, inputs: FitInputs, design: ChunkedDesign) -> tuple[LinearProblem, SearchResult]:
        """A path on gathered columns of a table in chunks, and the problem on them: more until none is missing."""
        started, limit = time.monotonic(), inputs.settings.run_budget.time_limit
        gathering = Gathering(inputs.problem, inputs.weights, design, largest_size(inputs.settings.sizes))
        while True:
            problem = gathering.problem()
            on_all_rows = make_design(problem.X, inputs.weights, center=problem.center)
            found = self._run(replace(inputs, problem=problem, design=on_all_rows))
            ended = any(run.stopped_early for run in found.runs)
            late = limit is not None and time.monotonic() - started >= limit
            if ended or late or not gathering.widened(found.runs):
                return problem, found

    def _run_to_size(self, inputs: FitInputs, problem: LinearProblem) -> tuple[SearchRun, int]:
        """Models up to a given size; with ``warm_start`` the search continues where the last fit ended."""
        settings = inputs.settings
        assert not isinstance(settings.sizes, tuple | str)
        goal, run = settings.goal(settings.sizes), problem.begin(inputs.weights, inputs.design)
        key = (
            problem.method,
            problem.target.loss,
            problem.standardize,
            run.subset.data_key(),
            problem.units.key(),
            problem.limits.key(),
        )
        resume = self._moves_to_resume(key, goal) if settings.warm_start else ()
        history = run.advance(goal, settings.run_budget, resume)
        self._resume_key, self._resume_tol = key, goal.tol
        return run, problem.method.answer(history, goal)

    def _run_and_weigh(self, inputs: FitInputs, problem: LinearProblem, criterion: str) -> tuple[SearchRun, Choice]:
        """A path on all rows, and the size with the lowest information criterion."""
        self.__dict__.pop("_resume_key", None)
        selection = Selection(problem, inputs.weights, [], inputs.settings.tol)
        choice = choose_size(selection, *compared_sizes(inputs), by_criterion(criterion))
        return selection.whole, choice

    def _run_and_choose(self, inputs: FitInputs, problem: LinearProblem) -> SearchResult:
        """Paths on all rows and on those of every fold, and the size and ridges they lead to."""
        self.__dict__.pop("_resume_key", None)
        settings, held_out = inputs.settings, inputs.held_out
        assert held_out is not None
        scorer = scorer_for(self, settings.scoring)
        if scorer is not None:
            scorer.check(problem.X, held_out.y, problem.target.n_outputs)
        measure = Measure(problem, scorer, held_out.y, held_out.blocks)
        selection = selection_for(
            inputs.design,
            problem,
            inputs.weights,
            held_out.folds,
            settings.tol,
            inputs.grid,
            measure,
            settings.selection_rule,
        )
        size_range, runs, design = compared_sizes(inputs)
        run, choice, ridges = selection.fitted(selection.choose(size_range, runs, design), runs)
        searches, stop = selection.searches(), selection.stopped_early
        return SearchResult(run, choice.chosen, choice, *ridges, searches, selection.all_runs(), stop)

    def _make_path(self, found: SearchResult, problem: LinearProblem, names: np.ndarray | None) -> Path:
        run, history, units = found.run, found.run.history, problem.units
        assert history is not None
        assert history.stop is not None
        models = run.models(found.answer)
        return Path(
            models,
            history.moves,
            found.stop or history.stop,
            run.design.n_features,
            names,
            units.labels,
            None if units.single else units.owner,
            *self._output_labels(),
            problem.limits.price,
            found.choice,
            # Of a raw table k counts its columns, which are features whatever they became.
            noun="feature" if hasattr(self, "encoder_") and not (units.single or self._has_groups) else None,
            certificate=certificate_of(
                found.searches[found.search_ridge], models, names, (found.ridge, found.search_ridge)
            ),
        )

    @property
    def _has_groups(self) -> bool:
        """Whether groups are chosen as a whole."""
        return getattr(self, "feature_groups", None) is not None and getattr(self, "max_per_group", None) is None

    def _settings(self) -> SearchSettings:
        """The parameters, checked before any data are looked at."""
        given = {name: getattr(self, name) for name in _parameter_names(type(self))}  # type: ignore[arg-type]
        parameters = {"fit_intercept": True} | given
        settings = SearchSettings.parse(type(self).__name__, parameters)
        if settings.scoring is not None:
            scorer_for(self, settings.scoring)
        return settings

    def _check_parameters(self) -> None:
        self._settings()

    def _data(self, caller: str) -> FitData:
        check_is_fitted(self)
        data = getattr(self, "_fit_data", None)
        if data is None:
            raise ValueError(
                f"{caller}() needs the data of the fit, which are not kept in files or pickles: fit the model again."
            )
        return data

    def __getstate__(self) -> Any:
        # Data do not travel with a model.
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_fit_data"}

    def _copy(self) -> Self:
        other = super()._copy()
        other._fit_data = getattr(self, "_fit_data", None)
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

    def _moves_to_resume(self, key: tuple[Any, ...], goal: Goal) -> Sequence[Move]:
        """The moves of the last fit if this one may go on from them: same data and method, and no lesser goal."""
        if getattr(self, "_resume_key", None) != key:
            return ()
        # A growing run that is beyond the size now wanted has passed it; a shrinking one has not reached it yet.
        grew = any(move[0] == "add" for move in self.path_.moves)
        went_too_far = goal.tol > self._resume_tol or (grew and goal.reached(self.path_.sizes[-1] - 1))
        return () if went_too_far else self.path_.moves


@cache
def _parameter_names(estimator: Callable[..., Any]) -> list[str]:
    """The names of an estimator's parameters, read from its signature once: ``get_params`` does so each time."""
    return list(signature(estimator).parameters)


def _make_problem(
    settings: SearchSettings,
    X: Any,
    target: Target,
    weights: np.ndarray,
    constraints: ConstraintParser,
    design: Design,
) -> LinearProblem:
    outputs = target.y if target.y.ndim == 2 else target.y[None]
    return LinearProblem(
        X,
        target,
        settings.method,
        constraints.units,
        constraints.limits(largest_size(settings.sizes), design.usable),
        constraints.bounds(),
        0.0,
        settings.fit_intercept,
        target.loss.tuned(outputs, weights),
        settings.standardize,
    )
