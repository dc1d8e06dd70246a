"""What SparseRegressor and SparseClassifier share: from checked input to a path, and questions to the fitted model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from pauca.checks import ParameterChecks
from pauca.constraints.parsing import Columns, ConstraintParser, check_independent
from pauca.design import Design, make_design
from pauca.estimators.certify import certificate_of, certify, find_pool, prove, prove_narrow
from pauca.estimators.fit_warnings import fit_warnings
from pauca.estimators.fitted import FittedModel
from pauca.estimators.settings import SearchSettings
from pauca.estimators.validation import check_moments
from pauca.losses.checks import check_loss
from pauca.methods.exact import Exact
from pauca.model_selection.folds import Fold, make_folds
from pauca.model_selection.scoring import scorer_for
from pauca.model_selection.selection import Selection, by_criterion, by_folds, choose_size
from pauca.model_selection.sizes import largest_size, size_range_for
from pauca.results.certificate import Certificate
from pauca.results.choice import Choice
from pauca.results.path import Path
from pauca.results.pool import Pool
from pauca.results.stability import Stability, count_choices, halves
from pauca.search.driver import Budget, Goal
from pauca.search.history import Move
from pauca.search.parallel import ParallelRuns
from pauca.search.problem import LinearProblem, SearchRun, Target
from pauca.warnings import PaucaWarning


@dataclass(frozen=True, eq=False)
class FitData:
    """What a fit was made from: references to the user's own arrays, never copies, and never in a file."""

    problem: LinearProblem
    weights: np.ndarray
    y: np.ndarray


def find_alternatives(data: FitData, path: Path, size: int, count: int) -> list[dict[str, Any]]:
    """For each feature of the model of ``size`` the best ``count`` others in its place, refitted."""
    subset = data.problem.begin(data.weights).subset
    model, null = path[size], path[0].objective
    for unit in model.units.tolist():
        if unit not in subset.support:
            subset.add(unit)
    found = subset.replacements(count) if subset.support else {}
    order = model.units[np.argsort(-model.importance, kind="stable")]
    return [
        {
            "feature": path.unit_name(int(unit)),
            "replacement": path.unit_name(swap.into),
            "objective": model.objective - swap.decrease,
            "explained_lost": -swap.decrease / null if null > 0 else 0.0,
        }
        for unit in order
        for swap in found.get(int(unit), [])
    ]


def measure_stability(
    data: FitData,
    path: Path,
    size: int,
    n_resamples: int,
    random_state: int | None,
    n_jobs: int | None,
    *,
    stratify: bool,
) -> Stability:
    """How often each feature is chosen when ``size`` of them are chosen on random halves of the rows."""
    strata = data.y if stratify else np.zeros(len(data.weights))
    resamples = halves(n_resamples, data.weights, strata, random_state)
    supports: list[list[str]] = [[] for _ in resamples]

    def job(number: int) -> Callable[[Budget], None]:
        def work(budget: Budget) -> None:
            history = data.problem.begin(resamples[number]).advance(Goal(max(1, size)), budget)
            best = history.best[max(known for known in history.best if known <= size)]
            supports[number] = [path.unit_name(unit) for unit in best.support]

        return work

    ParallelRuns(Budget(), effective_n_jobs(n_jobs)).run([job(number) for number in range(len(resamples))])
    chosen = [path.unit_name(int(unit)) for unit in path[size].units]
    return count_choices(supports, chosen, size, "feature" if path.group_labels is None else "group")


class SparseModel(FittedModel):
    """A search for a linear model with few features: all that does not depend on what the target is."""

    _fit_data: FitData | None

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
            data, self.path_, self.k_, count, random_state, n_jobs, stratify=is_classifier(self)
        )
        return self.stability_

    def certify(self, *, time_limit: float | None = 10.0) -> Certificate:
        """Lower bounds of the objective of every size on the path: how far each model can be from the best one.

        The tree of each size is searched until its model is proved to be best, or until the time is up. Where a better
        model turns up, it takes the place of the one on the path. For squared error of one output, with a ridge or with
        more rows than columns, and for other smooth losses with a ridge; elsewhere ``reason`` says why there is no
        bound. The data of the fit are read once more, as by ``alternatives``.

        Parameters
        ----------
        time_limit : float or None, default=10.0
            Seconds, for all sizes together. None: as long as it takes, which may be for ever.

        Returns
        -------
        Certificate
            Kept as ``certificate_`` and in ``path_.certificate``; ``summary()``, tables and reports then say what is
            proved.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from pauca import SparseRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> certificate = SparseRegressor(k=5).fit(X, y).certify()
        >>> certificate.message(5)
        'Proved to be the best of all 252 subsets of 5 features.'
        >>> certificate.never_in[5]
        []
        """
        seconds, data = ParameterChecks("certify").time_limit(time_limit), self._data("certify")
        self.path_ = certify(data.problem, data.weights, self.path_, seconds)
        self._set_size(self.k_)
        return self.certificate_

    def pool(self, within: float = 0.01, *, time_limit: float | None = 10.0) -> Pool:
        """All models of the same size whose objective is close to the best: several good models instead of one.

        For squared error. The search is that of ``certify``, and has the same conditions; a ``ValueError`` says which
        of them does not hold. The data of the fit are read once more, as by ``alternatives``.

        Parameters
        ----------
        within : float, default=0.01
            By how much a model's objective may be above the best, as a share of it.
        time_limit : float or None, default=10.0
            Seconds. If the time is up, ``complete`` is False.

        Returns
        -------
        Pool
            The models, the features they share, and how many models each feature is in.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from pauca import SparseRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> SparseRegressor(k=4).fit(X, y).pool(within=0.01).message
        '2 models of 4 features within 1 % of the best objective; there are no others.'
        """
        check = ParameterChecks("pool")
        share, seconds, data = check.number("within", within), check.time_limit(time_limit), self._data("pool")
        if not self.k_:
            raise ValueError("pool() needs a model with features: the model of size 0 is the only one of its size.")
        return find_pool(data.problem, data.weights, self.path_, self.k_, share, seconds)

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
        self, settings: SearchSettings, X: Any, y: np.ndarray, weights: np.ndarray, target: Target, row_groups: Any
    ) -> None:
        """Run the method on checked data and set the fitted attributes; ``row_groups`` are kept together by folds."""
        check_loss(target.loss, target.y, weights, target.n_outputs)
        names = getattr(self, "feature_names_in_", None)
        constraints = ConstraintParser(Columns(X.shape[1], names), **settings.constraints)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named below
            design = make_design(X, weights, center=settings.fit_intercept)
        check_moments(self, design, X, names)
        problem = _make_problem(settings, X, target, weights, constraints, design)
        if problem.units.single and not settings.ridge:
            check_independent(design, np.array(problem.limits.always, dtype=np.intp), names)
        sizes = settings.sizes
        if sizes is None or isinstance(sizes, int):
            run, answer, choice = *self._run_to_size(settings, problem, weights, design, sizes), None
        else:
            run, choice = self._run_and_choose(settings, problem, weights, design, sizes, y, row_groups)
            answer = choice.chosen
        prove_narrow(run, settings.method)
        self.path_ = self._make_path(run, answer, choice, problem, names)
        self.__dict__.pop("raw_table_", None)  # describes the table of an earlier fit
        self._set_size(answer)
        self._fit_data = FitData(problem, weights, y)
        found = " ".join(fit_warnings(self.path_, self.k_, settings, run, constraints))
        if found:
            warnings.warn(found, PaucaWarning, stacklevel=3)

    def _run_to_size(
        self, settings: SearchSettings, problem: LinearProblem, weights: np.ndarray, design: Design, k: int | None
    ) -> tuple[SearchRun, int]:
        """Models up to a given size; with ``warm_start`` the search goes on where the last fit ended."""
        goal, run = settings.goal(k), problem.begin(weights, design)
        key = (problem.method, problem.target.loss, run.subset.data_key(), problem.units.key(), problem.limits.key())
        resume = self._moves_to_resume(key, goal) if settings.warm_start else ()
        history = run.advance(goal, settings.run_budget, resume)
        self._resume_key, self._resume_tol = key, goal.tol
        return run, problem.method.answer(history, goal)

    def _run_and_choose(
        self,
        settings: SearchSettings,
        problem: LinearProblem,
        weights: np.ndarray,
        design: Design,
        sizes: tuple[int, ...] | str,
        y: np.ndarray,
        row_groups: Any,
    ) -> tuple[SearchRun, Choice]:
        """Paths on all rows and on those of every fold, and the size they lead to."""
        self.__dict__.pop("_resume_key", None)
        folds: list[Fold] = []
        if settings.criterion is None:
            folds = make_folds(settings.cv, y, row_groups, weights, classifies=is_classifier(self))
            weigh = by_folds(settings.selection_rule, scorer_for(self, settings.scoring), y)
        else:
            weigh = by_criterion(settings.criterion)
        size_range = size_range_for(sizes, int(np.count_nonzero(problem.units.any(design.usable))))
        exact = problem.method if isinstance(problem.method, Exact) else None
        searched = problem if exact is None else replace(problem, method=exact.search)  # folds need no proofs
        selection = Selection(searched, weights, folds, settings.tol)
        runs = ParallelRuns(settings.run_budget, effective_n_jobs(settings.n_jobs))
        choice = choose_size(selection, size_range, runs, design, weigh)
        if exact is not None and not runs.ended:
            history = selection.whole.history
            assert history is not None
            prove(selection.whole.subset, history, relative_gap=exact.relative_gap, time_limit=runs.seconds_left)
        return selection.whole, choice

    def _make_path(
        self, run: SearchRun, answer: int, choice: Choice | None, problem: LinearProblem, names: np.ndarray | None
    ) -> Path:
        history, units = run.history, problem.units
        assert history is not None
        assert history.stop is not None
        models = run.models(answer)
        return Path(
            models,
            history.moves,
            history.stop,
            run.design.n_features,
            names,
            units.labels,
            None if units.single else units.owner,
            *self._output_labels(),
            problem.limits.price,
            choice,
            certificate=certificate_of(history, run, models, names),
        )

    def _settings(self) -> SearchSettings:
        """The parameters, checked before any data are looked at."""
        settings = SearchSettings.parse(type(self).__name__, self.get_params(deep=False))
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
        if self.path_.prices is not None:
            self.cost_ = self.path_.cost(size)

    def _moves_to_resume(self, key: tuple[Any, ...], goal: Goal) -> Sequence[Move]:
        """The moves of the last fit if this one may go on from them: same data and method, and no lesser goal."""
        if getattr(self, "_resume_key", None) != key:
            return ()
        # A run that grew beyond the size that is now wanted has passed it; one that shrinks has yet to come to it.
        grew = any(move[0] == "add" for move in self.path_.moves)
        went_too_far = goal.tol > self._resume_tol or (grew and goal.reached(self.path_.sizes[-1] - 1))
        return () if went_too_far else self.path_.moves


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
        settings.ridge,
        settings.fit_intercept,
        target.loss.tuned(outputs, weights),
    )
