"""What the estimators share: from checked input to a path, and from the path to fitted attributes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from joblib import cpu_count, effective_n_jobs
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring

from pauca.checks import ParameterChecks
from pauca.constraints.parsing import ConstraintParser, check_independent
from pauca.design import Design, make_design
from pauca.estimators.fit_warnings import remarks
from pauca.estimators.fitted import FittedModel
from pauca.estimators.sensitivity import FitData, SensitivityMixin
from pauca.estimators.validation import check_moments
from pauca.losses import Loss
from pauca.losses.checks import check_loss
from pauca.methods import resolve
from pauca.model_selection.folds import Fold, make_folds
from pauca.model_selection.selection import Selection, by_criterion, by_folds, choose_size
from pauca.model_selection.sizes import check_choice, parse_sizes, scorer_name, size_range_for
from pauca.results.choice import Choice
from pauca.results.path import Path
from pauca.search.driver import Budget, Goal, Method, Progress
from pauca.search.history import Move
from pauca.search.parallel import Watch
from pauca.search.problem import LinearProblem, SearchRun, Target
from pauca.warnings import PaucaWarning


class SparseModel(SensitivityMixin, FittedModel):
    """A search for a linear model with few features: all that does not depend on what the target is."""

    def __init__(
        self,
        k: int | str | Iterable[int] | None = "auto",
        *,
        loss: str | Loss,
        method: str | Method = "exchange",
        cv: Any = None,
        scoring: Any = None,
        selection_rule: str = "1se",
        criterion: str | None = None,
        n_jobs: int | None = None,
        ridge: float = 0.0,
        tol: float = 0.0,
        fit_intercept: bool = True,
        feature_groups: Any = None,
        max_per_group: int | None = None,
        always: Any = None,
        never: Any = None,
        costs: Any = None,
        budget: float | None = None,
        bounds: Any = None,
        time_limit: float | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
        warm_start: bool = False,
    ) -> None:
        self.k = k
        self.loss = loss
        self.method = method
        self.cv = cv
        self.scoring = scoring
        self.selection_rule = selection_rule
        self.criterion = criterion
        self.n_jobs = n_jobs
        self.ridge = ridge
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.feature_groups = feature_groups
        self.max_per_group = max_per_group
        self.always = always
        self.never = never
        self.costs = costs
        self.budget = budget
        self.bounds = bounds
        self.time_limit = time_limit
        self.callback = callback
        self.warm_start = warm_start

    def _search(self, X: Any, y: np.ndarray, weights: np.ndarray, target: Target, rows: Any) -> None:
        """Run the method on checked data and keep what came of it; ``rows`` are the groups of rows for folds."""
        check_loss(target.loss, target.y, weights, target.n_outputs)
        names = getattr(self, "feature_names_in_", None)
        wishes = ConstraintParser(self, X.shape[1], names)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named below
            design = make_design(X, weights, center=self.fit_intercept)
        check_moments(self, design, X, names)
        problem = self._problem(X, target, weights, wishes, design)
        if wishes.units.single and not self.ridge:
            check_independent(design, np.array(problem.limits.always, dtype=np.intp), names)
        asked = parse_sizes(self)
        if asked is None or isinstance(asked, int):
            run, answer, choice = *self._to_size(problem, weights, design, asked), None
        else:
            run, choice = self._to_choice(problem, weights, design, asked, y, rows)
            answer = choice.chosen
        self._keep(run, answer, choice, problem, names)
        self._fit_data = FitData(problem, weights, y)
        self._warn(run, wishes)

    def _problem(
        self, X: Any, target: Target, weights: np.ndarray, wishes: ConstraintParser, design: Design
    ) -> LinearProblem:
        asked = parse_sizes(self)
        largest = max(asked) if isinstance(asked, tuple) else asked if isinstance(asked, int) else None
        outputs = target.y if target.y.ndim == 2 else target.y[None]
        return LinearProblem(
            X,
            target,
            resolve(self.method),
            wishes.units,
            wishes.limits(largest, design.usable),
            wishes.bounds(),
            float(self.ridge),
            self.fit_intercept,
            target.loss.tuned(outputs, weights),
        )

    def _to_size(
        self, problem: LinearProblem, weights: np.ndarray, design: Design, k: int | None
    ) -> tuple[SearchRun, int]:
        """The search for models up to a given size, taken up where the last fit left off if that is wanted."""
        goal, run = Goal(k, float(self.tol)), problem.begin(weights, design)
        key = (problem.method, problem.target.loss, run.subset.data_key(), problem.units.key(), problem.limits.key())
        history = run.advance(goal, self._budget(), self._moves_to_resume(key, goal))
        self._resume_key, self._resume_tol = key, goal.tol
        return run, problem.method.answer(history, goal)

    def _to_choice(
        self,
        problem: LinearProblem,
        weights: np.ndarray,
        design: Design,
        asked: tuple[int, ...] | str,
        y: np.ndarray,
        rows: Any,
    ) -> tuple[SearchRun, Choice]:
        """The search for a size: paths on all rows and on those of every fold."""
        self.__dict__.pop("_resume_key", None)
        folds: list[Fold] = []
        if self.criterion is None:
            folds = make_folds(self.cv, y, rows, weights, classifies=is_classifier(self))
            scorer = None if self.scoring is None else check_scoring(self, self.scoring)
            weigh = by_folds(self.selection_rule, scorer, scorer_name(self.scoring), self, y)
        else:
            weigh = by_criterion(self.criterion)
        reach = size_range_for(asked, int(np.count_nonzero(problem.units.any(design.usable))))
        selection = Selection(problem, weights, folds, float(self.tol))
        watch = Watch(self._budget(), effective_n_jobs(self.n_jobs), cpu_count())
        choice = choose_size(selection, reach, watch, design, weigh)
        return selection.whole, choice

    def _keep(
        self, run: SearchRun, answer: int, choice: Choice | None, problem: LinearProblem, names: np.ndarray | None
    ) -> None:
        history, units = run.history, problem.units
        assert history is not None
        assert history.stop is not None
        self.path_ = Path(
            run.models(answer),
            history.moves,
            history.stop,
            run.design.n_features,
            names,
            units.labels,
            None if units.single else units.owner,
            *self._words(),
            problem.limits.price,
            choice,
        )
        self.__dict__.pop("raw_table_", None)  # what a table of an earlier fit was like
        self._choose(answer)

    def _check_options(self) -> None:
        """Refuse options that cannot be meant, before any data are looked at."""
        parse_sizes(self)
        check_choice(self)
        ParameterChecks(type(self).__name__).number("tol", self.tol)
        self._budget()
        resolve(self.method)
        ParameterChecks(type(self).__name__).number("ridge", self.ridge)
        ParameterChecks(type(self).__name__).flag("fit_intercept", self.fit_intercept)
        ParameterChecks(type(self).__name__).flag("warm_start", self.warm_start)
        ParameterChecks(type(self).__name__).optional_callable("callback", self.callback)

    def _budget(self) -> Budget:
        limit = (
            None
            if self.time_limit is None
            else ParameterChecks(type(self).__name__).number("time_limit", self.time_limit, positive=True)
        )
        return Budget(limit, self.callback)

    def _twin(self) -> Self:
        other = super()._twin()
        other._fit_data = getattr(self, "_fit_data", None)
        return other

    def _choose(self, size: int) -> None:
        super()._choose(size)
        for optional in ("feature_groups_", "cost_", "alternatives_", "stability_"):
            self.__dict__.pop(optional, None)
        if self.path_.group_labels is not None:
            self.feature_groups_ = self.path_.group_labels[self.path_[size].units]
        if self.path_.prices is not None:
            self.cost_ = self.path_.cost(size)

    def _moves_to_resume(self, key: tuple[Any, ...], goal: Goal) -> Sequence[Move]:
        """The events of the last fit if this one may go on from them: same data and method, and no lesser goal."""
        if not self.warm_start or getattr(self, "_resume_key", None) != key:
            return ()
        # A run that grew beyond the size that is now wanted has passed it; one that shrinks has yet to come to it.
        grew = any(move[0] == "add" for move in self.path_.moves)
        went_too_far = goal.tol > self._resume_tol or (grew and goal.reached(self.path_.sizes[-1] - 1))
        return () if went_too_far else self.path_.moves

    def _warn(self, run: SearchRun, wishes: ConstraintParser) -> None:
        """One warning for all that was noteworthy."""
        assert run.history is not None
        noteworthy = " ".join(remarks(self, run.history, run.design, wishes))
        if noteworthy:
            warnings.warn(noteworthy, PaucaWarning, stacklevel=4)
