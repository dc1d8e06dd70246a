"""Classifiers in an l1 ball as a scikit-learn estimator, each with a proven duality gap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pauca.estimators.classifier import ClassificationMixin
from pauca.export import register_estimator
from pauca.l1.base import ARRAYS, NUMBERS, L1Model
from pauca.losses import Loss
from pauca.runs.run import Progress


@register_estimator("L1Classifier", arrays=("classes_", *ARRAYS), numbers=NUMBERS)
class L1Classifier(ClassificationMixin, L1Model):
    """The best linear classifier in an l1 ball, with a proof of how good it is.

    Minimises ``Q(w) = sum_i v_i L(y_i, x_i w + b) + (ridge/2) |w|^2`` over ``sum_j |w_j| <= radius``; the row weights v
    sum to one, and b is free. The fit ends once it is proven that no model in the ball has an objective that is lower
    by more than ``gap_``.

    Parameters
    ----------
    radius : float or "auto", default="auto"
        The radius of the ball. "auto" finds it by cross-validation among radii that grow by a factor of 1.5, from one
        so small that a single feature has all of it, until no column goes with what is left more closely than noise
        would, and the ball no longer binds or the scores fall.
    loss : str or Loss, default="log_loss"
        "log_loss", "hinge", "squared_hinge", an object from ``pauca.losses``, or a loss of your own for classes coded
        as -1 and 1. With more than two classes, "log_loss" is the multinomial likelihood; other losses
        separate each class from all others. Either way one ball holds the coefficients of all classes.
    tol, k, standardize, solver, step_rule, smoothness, gap_tol, stopping, max_iter, time_limit, callback, verbose
        As in ``L1Regressor``.
    cv, scoring, selection_rule, n_jobs
        How ``radius`` is chosen, as in ``L1Regressor``, with a scorer such as "roc_auc".
    ridge, fit_intercept
        As in ``L1Regressor``.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as everywhere in scikit-learn.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) for two classes, else (n_classes, n_features)
        Coefficients; zero for features that are not in use.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray
        Indices of the features in use, ascending.
    gap_, lower_bound_, radius_, norm_, norms_, radii_, scores_, score_errors_, objective_, n_iter_, k_, stop_, path_
        As in ``L1Regressor``.

    Notes
    -----
    "hinge" is minimised through smooth envelopes, and what is proven holds for the hinge loss itself. Classes that can
    be separated are allowed: coefficients cannot leave the ball. Everything else is as in ``L1Regressor``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from pauca import L1Classifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = L1Classifier(radius=2, standardize=True).fit(X, y)
    >>> list(model.get_feature_names_out())
    ['mean concave points', 'worst radius', 'worst texture', 'worst concave points']
    >>> bool(model.gap_ <= 1e-3 * model.path_[0].objective), round(model.score(X, y), 2)
    (True, 0.94)
    """

    def __init__(
        self,
        radius: float | str = "auto",
        *,
        loss: str | Loss = "log_loss",
        tol: float = 1e-3,
        k: int | None = None,
        standardize: bool = False,
        solver: str = "corrective",
        step_rule: str = "line",
        smoothness: float | None = None,
        gap_tol: float | None = None,
        stopping: str = "bound",
        cv: Any = None,
        scoring: Any = None,
        selection_rule: float | str = "1se",
        n_jobs: int | None = None,
        ridge: float = 0.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
        verbose: int = 0,
    ) -> None:
        self.radius = radius
        self.loss = loss
        self.tol = tol
        self.k = k
        self.standardize = standardize
        self.solver = solver
        self.step_rule = step_rule
        self.smoothness = smoothness
        self.gap_tol = gap_tol
        self.stopping = stopping
        self.cv = cv
        self.scoring = scoring
        self.selection_rule = selection_rule
        self.n_jobs = n_jobs
        self.ridge = ridge
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.callback = callback
        self.verbose = verbose
