"""What the estimators share: from checked input to a path, and from the path to fitted attributes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from pauca.design import Design, make_design
from pauca.estimators.checks import (
    check_callable,
    check_flag,
    check_independent,
    check_integer,
    check_moments,
    check_number,
    check_rows,
)
from pauca.estimators.portable import Portable
from pauca.estimators.remarks import remarks
from pauca.estimators.wishes import Wishes
from pauca.losses import Loss
from pauca.losses.inspection import inspect_loss
from pauca.methods import resolve
from pauca.path import Budget, Event, Goal, Method, Path, Progress, Trail, run
from pauca.path.summary import summarize
from pauca.subset import start
from pauca.warnings import PaucaWarning


class SparseModel(Portable, SelectorMixin, BaseEstimator):
    """A linear model with few features: all that does not depend on what the target is."""

    def __init__(
        self,
        k: int | None = None,
        *,
        loss: str | Loss,
        method: str | Method = "exchange",
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

    def _search(self, X: Any, y: np.ndarray, weights: np.ndarray, loss: Loss, n_outputs: int) -> None:
        """Run the method on checked data and keep what came of it; ``y`` has shape (C, n), or (n,) for classes."""
        goal, budget = self._goal(), self._budget()
        method = resolve(self.method)
        inspect_loss(loss, y, weights, n_outputs)
        names = getattr(self, "feature_names_in_", None)
        wishes = Wishes(self, X.shape[1], names)
        bounds = wishes.bounds()
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named below
            design = make_design(X, weights, center=self.fit_intercept)
        check_moments(self, design, X, names)
        limits = wishes.limits(goal.k, design.usable)
        if wishes.units.single and not self.ridge:
            check_independent(design, np.array(limits.always, dtype=np.intp), names)
        subset = start(
            design,
            y,
            loss,
            units=wishes.units,
            limits=limits,
            n_outputs=n_outputs,
            ridge=float(self.ridge),
            center=self.fit_intercept,
            bounds=bounds,
        )
        key = (method, loss, subset.data_key(), wishes.units.key(), limits.key())
        trail = run(method, subset, goal, budget, self._events_to_resume(key, goal))
        assert trail.stop is not None
        sizes = sorted(trail.best)
        answer = method.answer(trail, goal)
        models = subset.finish([trail.best[size] for size in sizes], sizes.index(answer))
        units = wishes.units
        self.path_ = Path(
            dict(zip(sizes, models, strict=True)),
            trail.events,
            trail.stop,
            design.n_features,
            names,
            units.labels,
            None if units.single else units.owner,
            *self._words(),
            limits.price,
        )
        self._resume_key, self._resume_tol = key, goal.tol
        self._choose(answer)
        self._warn(trail, design, wishes)

    def _check_options(self) -> None:
        """Refuse options that cannot be meant, before any data are looked at."""
        self._goal()
        self._budget()
        resolve(self.method)
        check_number(self, "ridge", self.ridge)
        check_flag(self, "fit_intercept", self.fit_intercept)
        check_flag(self, "warm_start", self.warm_start)
        check_callable(self, "callback", self.callback)

    def _goal(self) -> Goal:
        return Goal(check_integer(self, "k", self.k, 1), check_number(self, "tol", self.tol))

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
        coef = np.zeros((*np.shape(model.coef)[:-1], self.n_features_in_))
        coef[..., model.support] = model.coef
        self.coef_, self.intercept_ = self._shaped(coef, model.intercept)
        self.support_ = model.support
        self.objective_ = model.objective
        self.k_ = model.size
        self.stop_ = self.path_.stop
        for optional in ("groups_", "cost_"):
            self.__dict__.pop(optional, None)
        if self.path_.group_labels is not None:
            self.groups_ = self.path_.group_labels[model.units]
        if self.path_.prices is not None:
            self.cost_ = self.path_.cost(size)

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

    def _warn(self, trail: Trail, design: Design, wishes: Wishes) -> None:
        """One warning for all that was noteworthy."""
        noteworthy = " ".join(remarks(self, trail, design, wishes))
        if noteworthy:
            warnings.warn(noteworthy, PaucaWarning, stacklevel=4)
