"""What the estimators share: from checked input to a path, and from the path to fitted attributes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from joblib import cpu_count, effective_n_jobs
from sklearn.base import BaseEstimator, is_classifier
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_is_fitted

from pauca.design import Design, make_design
from pauca.estimators.asked import asked_sizes, check_choice, reach_for, scorer_name
from pauca.estimators.checks import (
    check_callable,
    check_flag,
    check_independent,
    check_moments,
    check_number,
    check_rows,
)
from pauca.estimators.doubt import Doubtful, Evidence
from pauca.estimators.folds import Fold, make_folds
from pauca.estimators.portable import Portable
from pauca.estimators.remarks import remarks
from pauca.estimators.seen import Seen
from pauca.estimators.selection import Selection, by_criterion, by_folds, choose_size
from pauca.estimators.task import Attempt, Target, Task
from pauca.estimators.watch import Watch
from pauca.estimators.wishes import Wishes
from pauca.losses import Loss
from pauca.losses.inspection import inspect_loss
from pauca.methods import resolve
from pauca.model import Model
from pauca.path import Budget, Choice, Event, Goal, Method, Path, Progress
from pauca.path.summary import summarize
from pauca.warnings import PaucaWarning


class SparseModel(Doubtful, Portable, Seen, SelectorMixin, BaseEstimator):
    """A linear model with few features: all that does not depend on what the target is."""

    def __init__(
        self,
        k: int | str | Iterable[int] | None = "auto",
        *,
        loss: str | Loss,
        method: str | Method = "exchange",
        cv: Any = None,
        scoring: Any = None,
        choose: str = "1se",
        criterion: str | None = None,
        n_jobs: int | None = None,
        ridge: float = 0.0,
        tol: float = 0.0,
        fit_intercept: bool = True,
        groups: Any = None,
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
        self.choose = choose
        self.criterion = criterion
        self.n_jobs = n_jobs
        self.ridge = ridge
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.groups = groups
        self.max_per_group = max_per_group
        self.always = always
        self.never = never
        self.costs = costs
        self.budget = budget
        self.bounds = bounds
        self.time_limit = time_limit
        self.callback = callback
        self.warm_start = warm_start

    def at(self, size: int) -> Self:
        """The fitted model of another size on the path, without refitting.

        Parameters
        ----------
        size : int
            One of ``path_.sizes``; a ``KeyError`` says which there are.

        Returns
        -------
        estimator
            Another estimator of the same kind, fitted, with ``k=size`` and the same ``path_``.

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
        other = copy.copy(self)
        other.k = size
        other._evidence = getattr(self, "_evidence", None)
        other._choose(size)
        return other

    def summary(self) -> str:
        """The model as text, to be printed.

        Returns
        -------
        str
            The chosen features with their coefficients and what each is worth: how much of the share explained would be
            lost if it were left out and the others refitted. The most valuable come first.
        """
        check_is_fitted(self)
        return summarize(self.path_, self.k_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _search(self, X: Any, y: np.ndarray, weights: np.ndarray, target: Target, rows: Any) -> None:
        """Run the method on checked data and keep what came of it; ``rows`` are the groups of rows for folds."""
        inspect_loss(target.loss, target.y, weights, target.n_outputs)
        names = getattr(self, "feature_names_in_", None)
        wishes = Wishes(self, X.shape[1], names)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named below
            design = make_design(X, weights, center=self.fit_intercept)
        check_moments(self, design, X, names)
        task = self._task(X, target, weights, wishes, design)
        if wishes.units.single and not self.ridge:
            check_independent(design, np.array(task.limits.always, dtype=np.intp), names)
        asked = asked_sizes(self)
        if asked is None or isinstance(asked, int):
            attempt, answer, choice = *self._to_size(task, weights, design, asked), None
        else:
            attempt, choice = self._to_choice(task, weights, design, asked, y, rows)
            answer = choice.chosen
        self._keep(attempt, answer, choice, task, names)
        self._evidence = Evidence(task, weights, y)
        self._warn(attempt, wishes)

    def _task(self, X: Any, target: Target, weights: np.ndarray, wishes: Wishes, design: Design) -> Task:
        asked = asked_sizes(self)
        largest = max(asked) if isinstance(asked, tuple) else asked if isinstance(asked, int) else None
        outputs = target.y if target.y.ndim == 2 else target.y[None]
        return Task(
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

    def _to_size(self, task: Task, weights: np.ndarray, design: Design, k: int | None) -> tuple[Attempt, int]:
        """The search for models up to a given size, taken up where the last fit left off if that is wanted."""
        goal, attempt = Goal(k, float(self.tol)), task.begin(weights, design)
        key = (task.method, task.target.loss, attempt.subset.data_key(), task.units.key(), task.limits.key())
        trail = attempt.advance(goal, self._budget(), self._events_to_resume(key, goal))
        self._resume_key, self._resume_tol = key, goal.tol
        return attempt, task.method.answer(trail, goal)

    def _to_choice(
        self, task: Task, weights: np.ndarray, design: Design, asked: tuple[int, ...] | str, y: np.ndarray, rows: Any
    ) -> tuple[Attempt, Choice]:
        """The search for a size: paths on all rows and on those of every fold."""
        self.__dict__.pop("_resume_key", None)
        folds: list[Fold] = []
        if self.criterion is None:
            folds = make_folds(self.cv, y, rows, weights, classifies=is_classifier(self))
            scorer = None if self.scoring is None else check_scoring(self, self.scoring)
            weigh = by_folds(self.choose, scorer, scorer_name(self.scoring), self, y)
        else:
            weigh = by_criterion(self.criterion)
        reach = reach_for(asked, int(np.count_nonzero(task.units.any(design.usable))))
        selection = Selection(task, weights, folds, float(self.tol))
        watch = Watch(self._budget(), effective_n_jobs(self.n_jobs), cpu_count())
        choice = choose_size(selection, reach, watch, design, weigh)
        return selection.whole, choice

    def _keep(self, attempt: Attempt, answer: int, choice: Choice | None, task: Task, names: np.ndarray | None) -> None:
        trail, units = attempt.trail, task.units
        assert trail is not None
        assert trail.stop is not None
        self.path_ = Path(
            attempt.models(answer),
            trail.events,
            trail.stop,
            attempt.design.n_features,
            names,
            units.labels,
            None if units.single else units.owner,
            *self._words(),
            task.limits.price,
            choice,
        )
        self.__dict__.pop("raw_table_", None)  # what a table of an earlier fit was like
        self._choose(answer)

    def _check_options(self) -> None:
        """Refuse options that cannot be meant, before any data are looked at."""
        asked_sizes(self)
        check_choice(self)
        check_number(self, "tol", self.tol)
        self._budget()
        resolve(self.method)
        check_number(self, "ridge", self.ridge)
        check_flag(self, "fit_intercept", self.fit_intercept)
        check_flag(self, "warm_start", self.warm_start)
        check_callable(self, "callback", self.callback)

    def _budget(self) -> Budget:
        limit = None if self.time_limit is None else check_number(self, "time_limit", self.time_limit, positive=True)
        return Budget(limit, self.callback)

    def _scores(self, X: Any) -> np.ndarray:
        """Linear scores of rows, shape (n, C)."""
        check_is_fitted(self)
        used = check_rows(self, X, self.support_)
        coef = np.atleast_2d(self.coef_)[:, self.support_]
        return np.asarray(used @ coef.T + np.atleast_1d(self.intercept_))

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.support_] = True
        return mask

    def _choose(self, size: int) -> None:
        """Put the model of ``size`` into the fitted attributes."""
        model = self.path_[size]
        self._put(model)
        self.stop_ = self.path_.stop
        for optional in ("groups_", "cost_", "alternatives_", "stability_"):
            self.__dict__.pop(optional, None)
        if self.path_.group_labels is not None:
            self.groups_ = self.path_.group_labels[model.units]
        if self.path_.prices is not None:
            self.cost_ = self.path_.cost(size)

    def _put(self, model: Model) -> None:
        coef = np.zeros((*np.shape(model.coef)[:-1], self.n_features_in_))
        coef[..., model.support] = model.coef
        self.coef_, self.intercept_ = self._shaped(coef, model.intercept)
        self.support_ = model.support
        self.objective_ = model.objective
        self.k_ = model.size

    def _words(self) -> tuple[list[str] | None, list[str] | None]:
        """Names of several outputs, and of two classes that a single one tells apart."""
        return None, None

    def _shaped(self, coef: np.ndarray, intercept: Any) -> tuple[np.ndarray, Any]:
        """Coefficients and intercept in the shapes that users of scikit-learn expect."""
        return coef, intercept

    def _events_to_resume(self, key: tuple[Any, ...], goal: Goal) -> Sequence[Event]:
        """The events of the last fit if this one may go on from them: same data and method, and no lesser goal."""
        if not self.warm_start or getattr(self, "_resume_key", None) != key:
            return ()
        # A run that grew beyond the size that is now wanted has passed it; one that shrinks has yet to come to it.
        grew = any(event[0] == "add" for event in self.path_.events)
        went_too_far = goal.tol > self._resume_tol or (grew and goal.reached(self.path_.sizes[-1] - 1))
        return () if went_too_far else self.path_.events

    def _warn(self, attempt: Attempt, wishes: Wishes) -> None:
        """One warning for all that was noteworthy."""
        assert attempt.trail is not None
        noteworthy = " ".join(remarks(self, attempt.trail, attempt.design, wishes))
        if noteworthy:
            warnings.warn(noteworthy, PaucaWarning, stacklevel=4)
