"""What the estimators share: from checked input to a path, and from the path to fitted attributes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from joblib import cpu_count, effective_n_jobs
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring

from pauca.design import Design, make_design
from pauca.estimators.asked import asked_sizes, check_choice, reach_for, scorer_name
from pauca.estimators.checks import check_moments
from pauca.estimators.doubt import Doubtful, Evidence
from pauca.estimators.fitted import FittedModel
from pauca.estimators.folds import Fold, make_folds
from pauca.estimators.options import check_callable, check_flag, check_number
from pauca.estimators.remarks import remarks
from pauca.estimators.selection import Selection, by_criterion, by_folds, choose_size
from pauca.estimators.task import Attempt, Target, Task
from pauca.estimators.watch import Watch
from pauca.estimators.wishes import Wishes, check_independent
from pauca.losses import Loss
from pauca.losses.inspection import inspect_loss
from pauca.methods import resolve
from pauca.path import Budget, Choice, Event, Goal, Method, Path, Progress
from pauca.warnings import PaucaWarning


class SparseModel(Doubtful, FittedModel):
    """A search for a linear model with few features: all that does not depend on what the target is."""

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

    def _twin(self) -> Self:
        other = super()._twin()
        other._evidence = getattr(self, "_evidence", None)
        return other

    def _choose(self, size: int) -> None:
        super()._choose(size)
        for optional in ("groups_", "cost_", "alternatives_", "stability_"):
            self.__dict__.pop(optional, None)
        if self.path_.group_labels is not None:
            self.groups_ = self.path_.group_labels[self.path_[size].units]
        if self.path_.prices is not None:
            self.cost_ = self.path_.cost(size)

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
