"""SparseClassifier: the best linear classifier with few features."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pauca.estimators.base import SparseModel
from pauca.estimators.classification import ClassificationMixin
from pauca.export import register_kind
from pauca.losses import Loss
from pauca.search.driver import Method, Progress


@register_kind("SparseClassifier", arrays=("classes_",))
class SparseClassifier(ClassificationMixin, SparseModel):
    """The best linear classifier with few features.

    Minimises ``Q(w) = sum_i v_i L(y_i, x_i w + b) + (ridge/2) |w|^2`` over models of at most ``k`` features; the row
    weights v sum to one. The fit keeps the model of every size on the way: see ``path_`` and ``at``.

    Parameters
    ----------
    k : int, "auto", iterable of int or None, default="auto"
        Number of features (of groups, if there are ``feature_groups``). "auto" finds it by cross-validation, from 0 up
        to as many as it takes, at most 100; a range or list names the sizes to choose from. None: as many as lower the
        objective by at least ``tol``, within the ``budget`` if there is one.
    loss : str or Loss, default="log_loss"
        "log_loss", "hinge", "squared_hinge", an object from ``pauca.losses``, or a loss of your own for classes coded
        as -1 and 1. With more than two classes, "log_loss" is the multinomial likelihood; other losses tell each class
        from all others. Either way all classes share one set of features.
    method : str or object, default="exchange"
        "exchange" (best models), "forward" (fastest), "foba", "backward", or an object from ``pauca.methods`` such as
        ``FoBa(rule="gradient")``.
    cv : int, splitter, iterable or None, default=None
        Folds for choosing ``k``: a number (None: 5), a splitter of scikit-learn, or an iterable of splits. Folds by
        number are shuffled, always alike, and keep the shares of classes, or the ``groups`` given to ``fit``.
    scoring : str, callable or None, default=None
        What folds are scored by: a scorer of scikit-learn such as "roc_auc", without sample weights. None: the share
        of the constant model's loss that is gone on the rows held out, where no probability counts as less than 0.001.
    selection_rule : {"1se", "best"}, default="1se"
        The smallest size within one standard error of the best mean score, or the best itself.
    criterion : {"aic", "bic", "ebic"} or None, default=None
        Choose ``k`` by an information criterion on all rows, without folds; for losses that are a likelihood.
    n_jobs : int or None, default=None
        How many folds run at a time, in threads that share X, as in scikit-learn; it pays where X is large.
    ridge : float, default=0.0
        Weight of the squared coefficients in the objective, in the units of X: columns are not standardised for it.
    tol : float, default=0.0
        The least decrease of the objective for which a further feature is added.
    fit_intercept : bool, default=True
        Whether to fit an intercept; it is never penalised and never counted.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as everywhere in scikit-learn.
    feature_groups : array-like of shape (n_features,) or dict, default=None
        Label of every column's group. Columns of one label are chosen together or not at all, and ``k`` counts groups.
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
    time_limit : float or None, default=None
        Seconds after which the search stops and the best found so far is kept.
    callback : callable or None, default=None
        Called after every move of the search with a ``pauca.Progress``; returning True ends the search.
    warm_start : bool, default=False
        Whether a further call to ``fit`` with the same data and method goes on where the last one stopped.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) for two classes, else (n_classes, n_features)
        Coefficients; zero for features that were not chosen.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray
        Indices of the chosen features, ascending.
    feature_groups_ : ndarray
        Labels of the chosen groups, where there are groups to choose.
    cost_ : float
        What the chosen features, or groups, cost in all, where there are ``costs``.
    k_ : int
        Number of features, or groups, of the model.
    objective_ : float
        Its objective Q.
    stop_ : Stop
        Why the search ended; ``stop_.message`` says it in words.
    path_ : Path
        The model of every size, and every move of the search; ``path_.choice`` says how the size was chosen.
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
        selection_rule: str = "1se",
        criterion: str | None = None,
        n_jobs: int | None = None,
        ridge: float = 0.0,
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
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> SparseClassifier:
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

        Returns
        -------
        self
        """
        settings = self._settings()
        X, y, weights, target = self._checked(X, y, sample_weight)
        self._search(settings, X, y, weights, target, groups)
        return self
