"""Least squares with few features, as a scikit-learn estimator."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from pauca.design import make_design
from pauca.estimators.checks import (
    check_callable,
    check_data,
    check_flag,
    check_integer,
    check_moments,
    check_number,
    check_rows,
    check_target,
    check_weights,
    listed,
)
from pauca.methods import resolve
from pauca.objectives import LeastSquares
from pauca.path import Budget, Event, Goal, Method, Path, Progress, Stop, Trail, run
from pauca.path.summary import summarize
from pauca.subset import LeastSquaresSubset
from pauca.warnings import PaucaWarning


class SparseRegressor(RegressorMixin, SelectorMixin, BaseEstimator):
    """The best least-squares model with few features.

    Minimises ``Q(w) = (1/2) sum_i v_i (x_i w + b - y_i)^2 + (ridge/2) |w|^2`` over models of at most ``k``
    features; the row weights v sum to one. The fit keeps the model of every size on the way: see ``path_`` and
    ``at``.

    Parameters
    ----------
    k : int or None, default=None
        Number of features. None: as many as lower the objective by at least ``tol``.
    method : str or object, default="exchange"
        "exchange" (best models), "forward" (fastest), "foba", "backward", or an object from ``pauca.methods`` such as
        ``FoBa(nu=0.3)``.
    ridge : float, default=0.0
        Weight of the squared coefficients in the objective.
    tol : float, default=0.0
        The least decrease of the objective that is worth a further feature, in the units of the objective: those of
        y squared.
    fit_intercept : bool, default=True
        Whether to fit an intercept; it is never penalised and never counted.
    time_limit : float or None, default=None
        Seconds after which the search stops and the best found so far is kept.
    callback : callable or None, default=None
        Called after every move of the search with a ``pauca.Progress``; returning True ends the search.
    warm_start : bool, default=False
        Whether a further call to ``fit`` with the same data and method goes on where the last one stopped, for more
        features or after a time limit. With other data it starts afresh.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        Coefficients; zero for features that were not chosen.
    intercept_ : float
    support_ : ndarray of shape (k_,)
        Indices of the chosen features, ascending.
    k_ : int
        Number of features of the model.
    objective_ : float
        Its objective Q.
    stop_ : Stop
        Why the search ended; ``stop_.sentence`` says it in words.
    path_ : Path
        The model of every size, and every move of the search.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where X has column names.

    Notes
    -----
    X is read in place: it is never copied, centred or made dense. float32, integers and memory maps are read as
    they are and summed in double precision. Columns may be in any units: multiplying one by anything from 1e-150 to
    1e150, or shifting it by up to 1e8 times its spread, does not change what is chosen. Beyond that the digits of
    the data themselves give out: a column whose spread is below 1e-13 of its mean counts as constant.

    Constant columns, copies of chosen columns and, without a ridge, linear combinations of chosen columns are never
    chosen; a ``PaucaWarning`` names them. A column is a combination if the chosen ones leave less than 1e-10 of its
    variance. Ties go to the lowest index.

    Ctrl-C ends the search like a time limit does: the fit is completed with what was found, with a warning. A second
    Ctrl-C within two seconds interrupts as usual, so that a loop of fits can be left.

    Going on with ``warm_start`` repeats the moves of the last fit, not its search.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from pauca import SparseRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = SparseRegressor(k=4).fit(X, y)
    >>> list(model.get_feature_names_out())
    ['bmi', 'bp', 's1', 's5']
    >>> model.path_.names(2)
    ['bmi', 's5']
    >>> round(model.at(2).score(X, y), 3)
    0.459
    """

    def __init__(
        self,
        k: int | None = None,
        *,
        method: str | Method = "exchange",
        ridge: float = 0.0,
        tol: float = 0.0,
        fit_intercept: bool = True,
        time_limit: float | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
        warm_start: bool = False,
    ) -> None:
        self.k = k
        self.method = method
        self.ridge = ridge
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.time_limit = time_limit
        self.callback = callback
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseRegressor:
        """Find the models of every size up to ``k``.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, at least one of them positive.

        Returns
        -------
        self
        """
        goal = Goal(check_integer(self, "k", self.k, 1), check_number(self, "tol", self.tol))
        ridge = check_number(self, "ridge", self.ridge)
        time_limit = (
            None if self.time_limit is None else check_number(self, "time_limit", self.time_limit, positive=True)
        )
        method = resolve(self.method)
        check_flag(self, "fit_intercept", self.fit_intercept)
        check_flag(self, "warm_start", self.warm_start)
        check_callable(self, "callback", self.callback)
        X, y = check_data(self, X, y)
        check_target(y)
        weights = check_weights(sample_weight, len(y))
        names = getattr(self, "feature_names_in_", None)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named below
            design = make_design(X, weights, center=self.fit_intercept)
        check_moments(self, design, X, names)
        objective = LeastSquares.of(design, y, ridge=ridge, center=self.fit_intercept)
        subset = LeastSquaresSubset.start(objective)
        key = _resume_key(objective, method)
        resume = self._events_to_resume(key, goal)
        trail = run(method, subset, goal, Budget(time_limit, self.callback), resume)
        self.path_ = _finished_path(trail, subset, names)
        self._resume_key, self._resume_tol = key, goal.tol
        self._choose(method.answer(trail, goal))
        self._warn(trail, np.flatnonzero(~design.usable))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict with the chosen features.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            All columns of the fit, in the same order.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = check_rows(self, X)
        return np.asarray(X[:, self.support_] @ self.coef_[self.support_] + self.intercept_)

    def at(self, size: int) -> SparseRegressor:
        """The fitted model of another size on the path, without refitting.

        Parameters
        ----------
        size : int
            One of ``path_.sizes``; a ``KeyError`` says which there are.

        Returns
        -------
        SparseRegressor
            Another estimator, fitted, with ``k=size`` and the same ``path_``.

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

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.support_] = True
        return mask

    def _choose(self, size: int) -> None:
        """Put the model of ``size`` into the fitted attributes."""
        model = self.path_[size]
        self.coef_ = np.zeros(self.n_features_in_)
        self.coef_[model.support] = model.coef
        self.intercept_ = model.intercept
        self.support_ = model.support
        self.objective_ = model.objective
        self.k_ = model.size
        self.stop_ = self.path_.stop

    def _events_to_resume(self, key: tuple[Any, ...], goal: Goal) -> Sequence[Event]:
        """The events of the last fit if this one may go on from them: same data and method, and no lesser goal."""
        if not self.warm_start or getattr(self, "_resume_key", None) != key:
            return ()
        went_too_far = goal.tol > self._resume_tol or goal.reached(self.path_.sizes[-1] - 1)
        return () if went_too_far else self.path_.events

    def _warn(self, trail: Trail, constant: np.ndarray) -> None:
        """One warning for all that was noteworthy."""
        names = self.path_.column_names
        remarks = []
        if len(constant):
            remarks.append(f"Constant columns were left out: {listed(names, constant)}.")
        if trail.dependent and trail.stop is not Stop.PERFECT:
            remarks.append(
                f"Columns that are linear combinations of chosen ones were left out: {listed(names, trail.dependent)}."
            )
        if trail.stop is Stop.EXHAUSTED and self.k is not None:
            remarks.append(f"k={self.k} features were asked for, but only {self.k_} can be used together.")
        if trail.stop is Stop.INTERRUPTED:
            remarks.append(f"The search was interrupted; the models up to size {max(self.path_.sizes)} were kept.")
        if remarks:
            warnings.warn(" ".join(remarks), PaucaWarning, stacklevel=3)


def _finished_path(trail: Trail, subset: LeastSquaresSubset, names: np.ndarray | None) -> Path:
    sizes = sorted(trail.best)
    models = subset.objective.finish([trail.best[size] for size in sizes], subset.gram)
    assert trail.stop is not None
    return Path(
        dict(zip(sizes, models, strict=True)), trail.events, trail.stop, subset.objective.design.n_features, names
    )


def _resume_key(objective: LeastSquares, method: Method) -> tuple[Any, ...]:
    """What must agree for the events of one fit to be those of another: the method, the ridge and the data."""
    design = objective.design
    data = blake2b(digest_size=16)
    for array in (objective.slope, design.mean, design.spread):
        data.update(array.tobytes())
    return method, objective.ridge, objective.null_value, data.digest()
