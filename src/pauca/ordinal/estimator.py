"""SparseOrdinalClassifier: classes in an order, by proportional odds with few features."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from pauca.estimators.base import SparseModel
from pauca.estimators.chunked_predictions import lazy_on_dask, lazy_score
from pauca.estimators.fitted_base import fitting
from pauca.estimators.input_checks import check_classes, check_is_table
from pauca.estimators.row_values import check_weights
from pauca.export import register_estimator
from pauca.model import Model
from pauca.model_selection.scoring import read_columns
from pauca.ordinal.cumulative_logit import BoundCumulativeLogit, CumulativeLogit
from pauca.ordinal.evaluation import OrdinalEvaluationMixin
from pauca.ordinal.probabilities import class_probabilities
from pauca.results.choice import DEFAULT_RULE
from pauca.results.path import Path
from pauca.results.summary import thresholds_text
from pauca.runs.problem import LinearProblem, Target
from pauca.runs.progress import showing
from pauca.runs.run import Method, Progress
from pauca.wording import plain


@register_estimator("SparseOrdinalClassifier", arrays=("classes_",), numbers=("ridge_", "search_ridge_"))
class SparseOrdinalClassifier(ClassifierMixin, OrdinalEvaluationMixin, SparseModel):
    """The best model of ordered classes with few features: proportional odds (McCullagh 1980), or ordinal logistic.

    ``P(class <= c) = 1 / (1 + exp(x w - threshold_c))``: one set of coefficients, and a threshold between every two
    classes. Minimises minus the mean log-likelihood plus ``(ridge/2) sum_j (s_j w_j)^2`` over models of at most ``k``
    features; s_j is the standard deviation of column j. The thresholds are free: never penalised, never counted. By
    default the number of features and the ridge are chosen together by cross-validation.

    Parameters
    ----------
    k : int, "auto", iterable of int or None, default="auto"
        Number of features (of groups, if there are ``feature_groups``), as in ``SparseClassifier``.
    order : list or None, default=None
        The classes from the lowest to the highest. None: the order of numbers, or of an ordered categorical of pandas;
        classes that are words must have an order.
    method, cv, scoring, selection_rule, criterion, n_jobs, ridge, search_ridge, standardize, tol
        As in ``SparseClassifier``.
    feature_groups, max_per_group, always, never, costs, budget, bounds, heredity
        Constraints, as in ``SparseClassifier``; bounds are on the coefficients of the one score.
    time_limit, callback, warm_start, verbose
        As in ``SparseClassifier``.
    categorical_features : "from_dtype", list of names or indices, mask, or None, default="from_dtype"
    missing : {"error", "median", "category"}, default="error"
        As in ``SparseRegressor``: how categories and missing values of a raw table become numbers.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        From the lowest to the highest.
    thresholds_ : ndarray of shape (n_classes - 1,)
        Ascending.
    coef_ : ndarray of shape (n_features,)
        Positive ones favour higher classes: one unit more of a feature multiplies the odds of lying above any
        threshold by ``exp(coef)``.
    support_, feature_groups_, cost_, k_, ridge_, search_ridge_, objective_, stop_, path_
        As in ``SparseClassifier``.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X has column names.

    Examples
    --------
    >>> import numpy as np
    >>> from pauca import SparseOrdinalClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 20))
    >>> grade = np.digitize(X[:, 4] - X[:, 11] + rng.logistic(size=300), [-1, 1])
    >>> model = SparseOrdinalClassifier(k=2).fit(X, grade)
    >>> model.support_, model.coef_[model.support_].round(2), model.thresholds_.round(2)
    (array([ 4, 11]), array([ 0.98, -0.94]), array([-0.79,  1.03]))
    >>> model.predict_proba(X[:1]).round(2)
    array([[0.44, 0.39, 0.17]])
    """

    def __init__(
        self,
        k: int | str | Iterable[int] | None = "auto",
        *,
        order: Any = None,
        method: str | Method = "exchange",
        cv: Any = None,
        scoring: Any = None,
        selection_rule: float | str = DEFAULT_RULE,
        criterion: str | None = None,
        n_jobs: int | None = None,
        ridge: float | Iterable[float] | str | None = None,
        search_ridge: float | Iterable[float] | str | None = None,
        standardize: bool = True,
        tol: float = 0.0,
        feature_groups: Any = None,
        max_per_group: int | None = None,
        always: Any = None,
        never: Any = None,
        costs: Any = None,
        budget: float | None = None,
        bounds: Any = None,
        heredity: Any = None,
        categorical_features: Any = "from_dtype",
        missing: str = "error",
        time_limit: float | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.k = k
        self.order = order
        self.method = method
        self.cv = cv
        self.scoring = scoring
        self.selection_rule = selection_rule
        self.criterion = criterion
        self.n_jobs = n_jobs
        self.ridge = ridge
        self.search_ridge = search_ridge
        self.standardize = standardize
        self.tol = tol
        self.feature_groups = feature_groups
        self.max_per_group = max_per_group
        self.always = always
        self.never = never
        self.costs = costs
        self.budget = budget
        self.bounds = bounds
        self.heredity = heredity
        self.categorical_features = categorical_features
        self.missing = missing
        self.time_limit = time_limit
        self.callback = callback
        self.warm_start = warm_start
        self.verbose = verbose

    @property
    def loss(self) -> CumulativeLogit:
        """What is minimised."""
        return CumulativeLogit()

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, feature_names: Any = None
    ) -> SparseOrdinalClassifier:
        """Find the models of every size up to ``k``, or up to the sizes compared, and choose one.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Ordered classes; at least two.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, at least one of them positive.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that folds keep together, such as the rows of one patient; for choosing ``k``.
        feature_names : array-like of shape (n_features,), default=None
            Names of the columns of an array or a sparse matrix, as in ``SparseClassifier.fit``.

        Returns
        -------
        self
        """
        with showing(self.verbose, self.time_limit) as report, fitting(self):
            settings = self._settings(report)
            order = _order_of(y) if self.order is None else list(self.order)
            check_is_table(X)  # thresholds belong to the scores of all rows
            X, y = check_classes(self, X, y, raw=True)
            self.classes_, codes = ordered_classes(y, order)
            weights = check_weights(sample_weight, len(y))
            present = np.unique(codes[weights > 0])
            if len(present) < len(self.classes_):
                self.classes_ = self.classes_[present]
                codes = np.clip(np.searchsorted(present, codes), 0, len(present) - 1)
            if len(present) < 2:
                raise ValueError(
                    f"{type(self).__name__} needs at least two classes; y holds the one class "
                    f"{plain(self.classes_[0])!r} alone."
                )
            target = Target(codes.astype(np.float64)[None], self.loss, 1)
            self._search(settings, X, y, weights, target, groups, feature_names)
        return self

    @lazy_on_dask
    def latent_score(self, X: Any) -> np.ndarray:
        """The one score of every row: higher for rows of higher classes; ``thresholds_`` lie between the classes.

        It is no ``decision_function`` of scikit-learn, which has a score for every class.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self._scores(X)[:, 0])

    score = lazy_score(ClassifierMixin.score)

    @lazy_on_dask
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, in the order of ``classes_``.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return class_probabilities(self.latent_score(X), self.thresholds_)

    @lazy_on_dask
    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]

    def _set_model(self, model: Model) -> None:
        # Folds score models whose thresholds are not known yet; there are none in files without them.
        super()._set_model(replace(model, intercept=0.0))
        self.thresholds_ = np.zeros(0) if model.free is None else model.free

    def _finished_path(self, path: Path, problem: LinearProblem) -> Path:
        bound, rows = problem.measure, np.arange(problem.target.y.shape[-1])
        assert isinstance(bound, BoundCumulativeLogit)
        models = {}
        for size, model in path.models.items():
            scores = read_columns(problem.X, model.support, rows) @ model.coef
            models[size] = replace(model, intercept=0.0, free=bound.thresholds(scores))
        return replace(path, models=models)

    def _output_labels(self) -> tuple[list[str] | None, list[str] | None]:
        return None, None

    def _reading_notes(self) -> list[str]:
        first, last = str(self.classes_[0]), str(self.classes_[-1])
        direction = f"positive coefficients favour classes towards {last!r}, negative ones towards {first!r}"
        between = thresholds_text(list(map(str, self.classes_)), self.thresholds_)
        return [*super()._reading_notes(), *([direction] if self.k_ else []), f"thresholds: {between}"]

    def _after_loading(self) -> None:
        super()._after_loading()
        distinct = len(np.unique(self.classes_)) == len(self.classes_)
        for model in self.path_.models.values():
            free = model.free
            if not distinct or free is None or len(free) != len(self.classes_) - 1 or np.any(np.diff(free) <= 0):
                raise ValueError("every model must have ascending thresholds, one less than there are classes")


def _order_of(y: Any) -> list[Any] | None:
    """The order of an ordered categorical of pandas."""
    categories = getattr(getattr(y, "dtype", None), "categories", None)
    if categories is None or not getattr(y.dtype, "ordered", False):
        return None
    return list(categories)


def ordered_classes(y: np.ndarray, order: list[Any] | None) -> tuple[np.ndarray, np.ndarray]:
    """The classes in their order, those that occur, and the number of every row's class."""
    classes, codes = np.unique(y, return_inverse=True)
    if order is None:
        if classes.dtype.kind not in "biuf":
            raise ValueError(
                f"The classes are words, such as {plain(classes[0])!r}, and their order is not known: give "
                "order=[...], from the lowest to the highest."
            )
        return classes, codes
    if len(set(order)) < len(order):
        raise ValueError("order names a class twice.")
    known = classes.tolist()
    missing = [label for label in known if label not in order]
    if missing:
        raise ValueError(f"order lacks the class {missing[0]!r}; it must name all of them, from low to high.")
    wanted = [known.index(label) for label in order if label in known]
    return classes[wanted], np.argsort(wanted)[codes]
