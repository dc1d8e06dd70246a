"""SparseClassifier, and what all classifiers share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import update_wrapper
from types import MethodType
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_sample_weight

from pauca.estimators.base import SparseModel
from pauca.estimators.chunked_predictions import lazy_on_dask, lazy_score
from pauca.estimators.evaluation_and_inference import EvaluationMixin
from pauca.estimators.fitted_base import fitting
from pauca.estimators.input_checks import check_classes
from pauca.estimators.offset_and_dispersion import offset_target, warn_of_known_part
from pauca.estimators.points import PointsMixin
from pauca.estimators.row_values import check_offset, check_weights
from pauca.estimators.settings import check_class_weight
from pauca.export import register_estimator
from pauca.losses import Loss, is_custom, resolve
from pauca.losses.checks import check_loss
from pauca.results.choice import DEFAULT_RULE
from pauca.runs.problem import Target
from pauca.runs.progress import showing
from pauca.runs.run import Method, Progress
from pauca.warnings import PaucaWarning
from pauca.wording import plain


class ProbabilityMethod:
    """A method of estimators whose loss models probabilities; for other losses the AttributeError says why.

    scikit-learn's ``available_if`` does the same, but keeps the reason out of the message.
    """

    def __init__(self, method: Callable[..., np.ndarray]) -> None:
        self._method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, estimator: Any, owner: type | None = None) -> Callable[..., np.ndarray]:
        if estimator is None:
            return self._method
        if not hasattr(resolve(estimator.loss, classes=True), "probabilities"):
            raise AttributeError(
                f"This {type(estimator).__name__!r} has no attribute {self._method.__name__!r}: "
                f"loss={estimator.loss!r} does not model probabilities. Use loss='log_loss', or decision_function, "
                "whose scores are no probabilities."
            )
        return MethodType(self._method, estimator)


# More different numbers than this, and fewer rows than so many for each, are hardly classes.
MANY_CLASSES = 20


def doubted_classes(values: np.ndarray, n_rows: int, owner: str = "SparseClassifier") -> str | None:
    """What to say of a target whose different values look like amounts; None where they do not."""
    if values.dtype.kind not in "iuf" or len(values) <= max(MANY_CLASSES, n_rows / MANY_CLASSES):
        return None
    return (
        f"y holds {len(values)} different numbers, and each is taken for a class. If they are amounts, use "
        f"{owner.replace('Classifier', 'Regressor')}."
    )


class ClassificationMixin(ClassifierMixin):
    """A fitted linear model of two or more classes."""

    loss: Any
    class_weight: Any
    classes_: np.ndarray
    path_: Any
    _scores: Any

    @lazy_score
    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """The share of rows whose class is predicted.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        offset : array-like of shape (n_samples,), default=None
            As in ``decision_function``.

        Returns
        -------
        float
        """
        warn_of_known_part(getattr(self, "known_part_", None), offset)
        return float(accuracy_score(y, self.predict(X, offset=offset), sample_weight=sample_weight))

    def _validate(
        self, X: Any, y: Any, sample_weight: Any, *, raw: bool = False
    ) -> tuple[Any, np.ndarray, np.ndarray, Target]:
        """X and y as they are fitted, row weights that sum to one, and the target as its loss wants it."""
        loss = resolve(self.loss, classes=True)
        X, y = check_classes(self, X, y, raw=raw)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes; y holds the one class "
                f"{plain(self.classes_[0])!r} alone."
            )
        doubt = doubted_classes(self.classes_, len(y), type(self).__name__)
        if doubt:
            warnings.warn(doubt, PaucaWarning, stacklevel=3)
        weights = check_weights(sample_weight, len(y))
        check_class_weight(self.class_weight)
        if self.class_weight is not None:
            weights = check_weights(weights * compute_sample_weight(self.class_weight, y), len(y))
        if len(np.unique(codes[weights > 0])) < 2:
            only = self.classes_[codes[weights > 0][0]]
            raise ValueError(
                f"All rows that have weight are of one class, {plain(only)!r}; at least two classes are needed."
            )
        n_classes = len(self.classes_)
        loss = loss.for_classes(n_classes)
        target = encode_classes(codes, n_classes, joint=loss.joint)
        n_outputs = 1 if n_classes == 2 else n_classes
        loss.check_target(target)
        if is_custom(loss):
            check_loss(loss, target, weights, n_outputs)
        return X, y, weights, Target(target, loss, n_outputs)

    @lazy_on_dask
    def decision_function(self, X: Any, *, offset: Any = None) -> np.ndarray:
        """Linear scores.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            All columns of the fit, in the same order; or a frame with the chosen columns, in any order and with any
            others, where the fit had names. Columns that were not chosen may hold missing values.
        offset : array-like of shape (n_samples,), default=None
            A known part of the score of each row, for two classes: a logarithm of odds, for "log_loss".

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, positive for the second, else (n_samples, n_classes)
        """
        scores = self._shifted_scores(X, offset)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _shifted_scores(self, X: Any, offset: Any) -> np.ndarray:
        scores: np.ndarray = self._scores(X)
        known = self._known_scores(offset, None, len(scores))
        return scores if known is None else scores + known[:, None]

    def _known_scores(self, offset: Any, exposure: Any, n_rows: int) -> np.ndarray | None:
        if offset is not None and len(self.classes_) > 2:
            raise ValueError(f"An offset is for two classes; y holds {len(self.classes_)}.")
        return check_offset(offset, exposure, n_rows, log_link=False)

    @lazy_on_dask
    def predict(self, X: Any, *, offset: Any = None) -> np.ndarray:
        """The likeliest class of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        offset : array-like of shape (n_samples,), default=None
            As in ``decision_function``.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X, offset=offset)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    @ProbabilityMethod
    @lazy_on_dask
    def predict_proba(self, X: Any, *, offset: Any = None) -> np.ndarray:
        """Probabilities of the classes, in the order of ``classes_``; for losses that model them.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        offset : array-like of shape (n_samples,), default=None
            As in ``decision_function``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._probabilities(self._shifted_scores(X, offset))

    def _probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Probabilities of rows from their scores, shapes (n, classes) and (n, C)."""
        loss, scores = resolve(self.loss, classes=True).for_classes(len(self.classes_)), rows.T
        if loss.joint or len(scores) == 1:
            return loss.probabilities(scores).T  # type: ignore[attr-defined]
        # Each class against all others: what they claim is brought to a sum of one.
        claims = np.stack([loss.probabilities(row[None])[1] for row in scores])  # type: ignore[attr-defined]
        return (claims / claims.sum(axis=0)).T

    @ProbabilityMethod
    @lazy_on_dask
    def predict_log_proba(self, X: Any, *, offset: Any = None) -> np.ndarray:
        """Logarithms of ``predict_proba``.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        offset : array-like of shape (n_samples,), default=None
            As in ``decision_function``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, offset=offset))

    def _reshape(self, coef: np.ndarray, intercept: Any) -> tuple[np.ndarray, Any]:
        return np.atleast_2d(coef), np.atleast_1d(intercept)

    def _after_loading(self) -> None:
        super()._after_loading()
        resolve(self.loss, classes=True)
        check_class_weight(self.class_weight)
        n_classes, found = len(np.unique(self.classes_)), (self.path_.output_names, self.path_.two_classes)
        if n_classes < 2 or n_classes < len(self.classes_) or found != self._output_labels():
            raise ValueError("the classes must be two or more, no two the same, and the outputs their names")

    def _output_labels(self) -> tuple[list[str] | None, list[str] | None]:
        names = [str(label) for label in self.classes_]
        return (None, names) if len(names) == 2 else (names, None)


def encode_classes(codes: np.ndarray, n_classes: int, *, joint: bool) -> np.ndarray:
    """Classes as a loss wants them: numbers, shape (n,), or -1 and 1 for each against all others, shape (C, n)."""
    if joint:
        return codes.astype(np.float64)
    if n_classes == 2:
        return (2.0 * codes - 1.0)[None]
    return np.where(codes == np.arange(n_classes)[:, None], 1.0, -1.0)


@register_estimator("SparseClassifier", arrays=("classes_",), numbers=("ridge_", "search_ridge_"))
class SparseClassifier(ClassificationMixin, PointsMixin, EvaluationMixin, SparseModel):
    """The best linear classifier with few features.

    Minimises ``Q(w) = sum_i v_i L(y_i, x_i w + b) + (ridge/2) sum_j (s_j w_j)^2`` over models of at most ``k``
    features; the row weights v sum to one, and s_j is the standard deviation of column j. By default the number of
    features and the ridge are chosen together by cross-validation. The fit keeps the model of every size on the way:
    see ``path_`` and ``at``.

    Parameters
    ----------
    k : int, "auto", iterable of int or None, default="auto"
        Number of features (of groups, if there are ``feature_groups``). "auto" finds it by cross-validation, from 0 up
        to as many as it takes, at most 200; a range or list names the sizes to choose from. None: as many as lower the
        objective by at least ``tol``, within the ``budget`` if there is one.
    loss : str or Loss, default="log_loss"
        "log_loss", "hinge", "squared_hinge", an object from ``pauca.losses``, or a loss of your own for classes coded
        as -1 and 1. With more than two classes, "log_loss" is the multinomial likelihood; other losses separate
        each class from all others. Either way all classes share one set of features.
    method : str or object, default="exchange"
        "exchange" (best models), "forward" (fastest), "stepwise" (forward selection of textbooks and of R: by the
        decrease after refitting), "foba", "backward", "replacement", or an object from ``pauca.methods`` such as
        ``FoBa(rule="gradient")``.
    cv : int, splitter, iterable or None, default=None
        Folds for choosing ``k``: a number (None: 5), a splitter of scikit-learn, or an iterable of splits. Folds by
        number are shuffled, always alike, and keep the shares of classes, or the ``groups`` given to ``fit``.
    scoring : str, callable or None, default=None
        What folds are scored by: a scorer of scikit-learn such as "roc_auc", without sample weights. None: the share
        of the constant model's loss that is gone on the held-out rows, where no probability counts as less than 0.001.
    selection_rule : float, "1se" or "best", default=0.25
        The smallest model whose score on held-out rows is within so many standard errors of the best ("1se": one), or
        the best itself. The standard error is that of the difference between the two on the same rows.
    criterion : {"aic", "bic", "ebic"} or None, default=None
        Choose ``k`` by an information criterion on all rows, without folds; for losses that are a likelihood.
    n_jobs : int or None, default=None
        How many folds run at a time, in threads that share X, as in scikit-learn; it pays where X is large.
    ridge : float, list of float, "auto" or None, default=None
        Weight of the squared coefficients in the objective. A list, or "auto", is compared on the folds together with
        the sizes. None: "auto" where ``k`` is chosen by cross-validation, else 0.
    search_ridge : float, list of float, "auto" or None, default=None
        The ridge with which features are searched, if it is to differ from that of the final fit. None: two ridges are
        compared where ``ridge`` is chosen, else it is ``ridge``. A ridge that is chosen counts as often for a category
        or group as it has columns; one that is given does not.
    standardize : bool, default=True
        Whether the ridge is on the coefficients of standardised columns. False: on those of the columns as they are,
        as in scikit-learn's ``Ridge``.
    tol : float, default=0.0
        The least decrease of the objective for which a further feature is added.
    fit_intercept : bool, default=True
        Whether to fit an intercept; it is never penalised and never counted.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as everywhere in scikit-learn.
    feature_groups : array-like of shape (n_features,) or dict, default=None
        Label of every column's group, or a dict from label to columns. Columns of one label are chosen together or not
        at all, and ``k`` counts groups.
        With ``max_per_group`` columns are chosen one by one, and groups only limit how many.
    max_per_group : int or None, default=None
        The largest number of columns chosen from any group.
    always, never : list of column names or indices, default=None
        Features that are in every model (and counted), or in none. With ``feature_groups``, labels of groups; integers
        are labels then, not indices.
    costs : array-like of shape (n_features,) or dict, default=None
        Price of every column; a group costs the sum of its columns. The keys of a dict are columns, by name or index;
        with ``feature_groups`` (and no ``max_per_group``) they are labels of groups if any is one, integers too.
        Candidates are ranked by gain per price.
    budget : float or None, default=None
        The largest total price. Models within a budget are found by exchanges of features; they are not proved to be
        best.
    bounds : pair or dict, default=None
        ``(lower, upper)`` for all coefficients, or a dict of pairs by column; None stands for no bound. Zero must be
        allowed. With two classes they are about the coefficients of the second.
    heredity : "strong", "weak", dict, pair or None, default=None
        Interactions are chosen only together with their parents, which count towards ``k``: all of them ("strong") or
        one ("weak"). Parents are read from names such as ``a b``, ``a:b`` and ``a^2``, or given by a dict:
        ``{"a:b": ("a", "b")}``, or ``("weak", {...})``.
    categorical_features : "from_dtype", list of names or indices, mask, or None, default="from_dtype"
        Which columns are categories: all levels of one are chosen together or not at all, and count as one feature.
        "from_dtype": columns of a data frame of dtype category, text or object, unless they hold numbers only. A list
        adds columns of numbers that are codes. None: none, and text is an error. See ``TableEncoder``.
    missing : {"error", "median", "category"}, default="error"
        What to do with missing values: "median" fills in the median of the column (in each fold that of its own rows),
        and in categories counts them as the most frequent level; "category" also marks them by a column such as
        ``age is missing``, chosen together with the column.
    time_limit : float or None, default=None
        Seconds after which the search stops and the best found so far is kept.
    callback : callable or None, default=None
        Called after every move of the search with a ``pauca.Progress``; returning True ends the search.
    warm_start : bool, default=False
        Whether a further call to ``fit`` with the same data and method continues where the last one stopped.
    verbose : int, default=0
        0 prints nothing. 1 shows on stderr how a fit is doing that takes more than a moment, and how much is left: a
        bar on a terminal (of rich or tqdm if installed), lines elsewhere. So do ``evaluate``, ``stability``, ``report``
        and the other methods of the fitted model.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) for two classes, else (n_classes, n_features)
        Coefficients; zero for features that were not chosen.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray
        Indices of the chosen features, ascending.
    required_columns_ : list of str
        The columns of the table that predictions need; of a raw table ``city``, where ``get_feature_names_out`` has
        ``city=Lyon`` and ``city=Nice``.
    feature_groups_ : ndarray
        Labels of the chosen groups, where there are groups to choose; of a raw table the chosen raw columns.
    cost_ : float
        What the chosen features, or groups, cost in all, where there are ``costs``.
    k_ : int
        Number of features, or groups, of the model.
    ridge_, search_ridge_ : float
        The ridge of its fit, and that of the search which found its features.
    objective_ : float
        Its objective Q.
    stop_ : Stop
        Why the search ended; ``stop_.message`` says it in words.
    path_ : Path
        The model of every size, and every move of the search; ``path_.choice`` says how the size was chosen.
    encoder_ : TableEncoder
        How a table with categories or missing values became numbers; ``coef_`` and ``support_`` are about the columns
        of numbers then, which ``path_.column_names`` names. Not set for plain tables of numbers.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X has column names.

    Notes
    -----
    Where classes can be separated without error and there is no ridge, the objective has no minimum: coefficients would
    grow for ever. A ridge of 1e-8 (of the curvature at the empty model, on standardised columns), too small to be seen
    otherwise, keeps them finite, and a ``PaucaWarning`` says so. The search ends when less than 1e-6 of the empty
    model's objective is left.

    A score of exactly zero, as that of a row of zeros without an intercept, is taken for the first class.

    Everything else is as in ``SparseRegressor``: X is never copied, ties go to the lowest index, Ctrl-C keeps what was
    found.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from pauca import SparseClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = SparseClassifier(k=3).fit(X, y)
    >>> list(model.get_feature_names_out())
    ['worst texture', 'worst area', 'worst concave points']
    >>> model.predict_proba(X[:1]).round(3)
    array([[1., 0.]])
    """

    def __init__(
        self,
        k: int | str | Iterable[int] | None = "auto",
        *,
        loss: str | Loss = "log_loss",
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
        fit_intercept: bool = True,
        class_weight: Any = None,
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
        self.loss = loss
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
        self.fit_intercept = fit_intercept
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
        self.class_weight = class_weight

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        offset: Any = None,
        feature_names: Any = None,
    ) -> SparseClassifier:
        """Find the models of every size up to ``k``, or up to the sizes compared, and choose one.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Classes of any kind; at least two.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, at least one of them positive.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that folds keep together, such as the rows of one patient; for choosing ``k``.
        offset : array-like of shape (n_samples,), default=None
            A known part of the score of each row, for two classes: such as the log-odds of an older model.
        feature_names : array-like of shape (n_features,), default=None
            Names of the columns of an array or a sparse matrix, such as those of a vectoriser: for summaries, plots,
            exports and constraints. ``feature_names_in_`` is not set by it.

        Returns
        -------
        self
        """
        with showing(self.verbose, self.time_limit) as report, fitting(self):
            settings = self._settings(report)
            X, y, weights, target = self._validate(X, y, sample_weight, raw=True)
            known = self._known_scores(offset, None, len(y))
            if known is not None:
                target = offset_target(target, known, settings.scoring)
            self._search(settings, X, y, weights, target, groups, feature_names)
            self._note_known_part(offset, None)
        return self
