"""SparseRegressor, and what all regressors share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from pauca.estimators.base import SparseModel
from pauca.estimators.chunked_predictions import lazy_on_dask, lazy_score
from pauca.estimators.evaluation_and_inference import EvaluationMixin
from pauca.estimators.fitted_base import fitting
from pauca.estimators.input_checks import check_data, check_target
from pauca.estimators.offset_and_dispersion import offset_target, warn_of_known_part
from pauca.estimators.row_values import check_offset, check_weights
from pauca.export import register_estimator
from pauca.losses import Loss, is_custom, resolve
from pauca.losses.checks import check_loss
from pauca.results.choice import DEFAULT_RULE
from pauca.runs.problem import Target
from pauca.runs.progress import showing
from pauca.runs.run import Method, Progress


class RegressionMixin(RegressorMixin):
    """A fitted linear model of one or several numbers."""

    loss: Any
    path_: Any
    _scores: Any
    _several_outputs: bool
    _output_names: list[str]

    score = lazy_score(RegressorMixin.score)

    def _validate(
        self, X: Any, y: Any, sample_weight: Any, *, raw: bool = False
    ) -> tuple[Any, np.ndarray, np.ndarray, Target]:
        """X and y as they are fitted, row weights that sum to one, and the target as its loss wants it."""
        loss = resolve(self.loss, classes=False)
        names = names_of_outputs(y)
        X, y = check_data(self, X, y, raw=raw)
        check_target(y)
        weights = check_weights(sample_weight, len(y))
        self._several_outputs = y.ndim == 2
        outputs = np.ascontiguousarray(y.T) if y.ndim == 2 else y[None]
        loss.check_target(outputs if sample_weight is None else outputs[:, weights > 0])
        if is_custom(loss):
            check_loss(loss, outputs, weights, len(outputs))
        self._output_names = names or [f"y{c}" for c in range(len(outputs))]
        return X, y, weights, Target(outputs, loss, len(outputs))

    @lazy_on_dask
    def predict(self, X: Any) -> np.ndarray:
        """Predict with the chosen features.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            All columns of the fit, in the same order; or a frame with the chosen columns, in any order and with any
            others, where the fit had names. Columns that were not chosen may hold missing values.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            What the loss models: the mean, for "absolute_error" the median, for "quantile" the quantile.
        """
        return self._predicted(self._scores(X))

    def _predicted(self, scores: np.ndarray) -> np.ndarray:
        prediction = resolve(self.loss, classes=False).prediction(scores)
        return prediction if self._several_outputs else prediction[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _reshape(self, coef: np.ndarray, intercept: Any) -> tuple[np.ndarray, Any]:
        if self._several_outputs:
            return np.atleast_2d(coef), np.atleast_1d(intercept)
        return coef, intercept

    def _after_loading(self) -> None:
        super()._after_loading()
        resolve(self.loss, classes=False)
        self._several_outputs = self.path_.output_names is not None
        self._output_names = self.path_.output_names or []

    def _output_labels(self) -> tuple[list[str] | None, list[str] | None]:
        return (self._output_names if self._several_outputs else None), None


def names_of_outputs(y: Any) -> list[str] | None:
    """Names of the columns of a frame."""
    columns = getattr(y, "columns", None)
    return None if columns is None else [str(name) for name in columns]


@register_estimator("SparseRegressor", numbers=("ridge_", "search_ridge_"))
class SparseRegressor(RegressionMixin, EvaluationMixin, SparseModel):
    """The best linear model of numbers with few features.

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
    loss : str or Loss, default="squared_error"
        "squared_error" (half the squared error), "huber", "absolute_error", "quantile", "poisson", "gamma", "tweedie",
        "negative_binomial", or an object from ``pauca.losses`` such as ``Quantile(0.9)`` or ``Tweedie(1.7)``, or a loss
        of your own. For the last four names the score is the logarithm of the mean.
    method : str or object, default="exchange"
        "exchange" (best models; of at most 40 columns, proved to be best for squared error), "exact" (branch and bound,
        with a proof), "forward" (fastest), "stepwise" (forward selection of textbooks and of R: by the decrease after
        refitting), "foba", "backward", "replacement", or an object from ``pauca.methods`` such as
        ``FoBa(nu=0.3)``.
    cv : int, splitter, iterable or None, default=None
        Folds for choosing ``k``: a number (None: 5), a splitter of scikit-learn, or an iterable of splits. Folds by
        number are shuffled, always alike, and keep the shares of classes, or the ``groups`` given to ``fit``.
    scoring : str, callable or None, default=None
        What folds are scored by: a scorer of scikit-learn such as "r2", without sample weights. None: the share of the
        constant model's loss that is gone on the held-out rows.
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
        The least decrease of the objective for which a further feature is added, in its own units: for squared
        loss those of y squared.
    fit_intercept : bool, default=True
        Whether to fit an intercept; it is never penalised and never counted.
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
        The largest total price. Models within a budget are found by exchanges of features.
    bounds : pair or dict, default=None
        ``(lower, upper)`` for all coefficients, or a dict of pairs by column; None stands for no bound. ``(0, None)``
        asks for coefficients that are not negative. Zero must be allowed.
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
        Whether a further call to ``fit`` with the same data and method continues where the last one stopped, for more
        features or after a time limit. With other data it starts afresh.
    verbose : int, default=0
        0 prints nothing. 1 shows on stderr how a fit is doing that takes more than a moment, and how much is left: a
        bar on a terminal (of rich or tqdm if installed), lines elsewhere. So do ``evaluate``, ``stability``, ``report``
        and the other methods of the fitted model.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), or (n_outputs, n_features) for y of two dimensions
        Coefficients; zero for features that were not chosen.
    intercept_ : float, or ndarray of shape (n_outputs,)
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
    certificate_ : Certificate
        What is proved of the models, where lower bounds were computed: after a fit of squared error on at most 40
        columns (unless its ridge was chosen and differs from that of the search), with the method ``Exact``, or after
        ``certify()``.
    path_ : Path
        The model of every size, and every move of the search; ``path_.choice`` says how the size was chosen.
    loss_ : Loss
        The loss with all its parameters, such as the dispersion of "negative_binomial"; it is not kept in files.
    dispersion_ : float or None
        The dispersion of "negative_binomial", given or estimated, which files keep; None for other losses.
    encoder_ : TableEncoder
        How a table with categories or missing values became numbers; ``coef_`` and ``support_`` are about the columns
        of numbers then, which ``path_.column_names`` names. Not set for plain tables of numbers.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
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

    Squared loss of one output has closed forms and is by far the fastest. "absolute_error" and "quantile" are minimised
    exactly where there is neither a ridge nor a bound. Elsewhere they are minimised through a smooth envelope, to
    within 1e-3 of the loss of the best constant; ``Quantile(0.9, accuracy=1e-5)`` asks for more.

    With several outputs (y of two dimensions) all share one set of features, and the objective is the sum over outputs.

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

    The median instead of the mean, without negative coefficients, and with one feature forced in:

    >>> model = SparseRegressor(k=3, loss="absolute_error", bounds=(0, None), always=["bp"]).fit(X, y)
    >>> list(model.get_feature_names_out())
    ['bmi', 'bp', 's5']
    """

    def __init__(
        self,
        k: int | str | Iterable[int] | None = "auto",
        *,
        loss: str | Loss = "squared_error",
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

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        offset: Any = None,
        exposure: Any = None,
        feature_names: Any = None,
    ) -> SparseRegressor:
        """Find the models of every size up to ``k``, or up to the sizes compared, and choose one.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, at least one of them positive.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that folds keep together, such as the rows of one patient; for choosing ``k``.
        offset : array-like of shape (n_samples,), default=None
            A known part of the score of each row, with a coefficient of one.
        exposure : array-like of shape (n_samples,), default=None
            What the mean of each row is proportional to, such as the time at risk: the same as
            ``offset=log(exposure)``. For losses whose score is the logarithm of the mean.
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
            known = self._known_scores(offset, exposure, len(y))
            if known is not None:
                target = offset_target(target, known, settings.scoring)
            self._search(settings, X, y, weights, target, groups, feature_names)
            self._note_known_part(offset, exposure)
        return self

    @lazy_on_dask
    def predict(self, X: Any, *, offset: Any = None, exposure: Any = None) -> np.ndarray:
        """Predict with the chosen features.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            All columns of the fit, in the same order; or a frame with the chosen columns, in any order and with any
            others, where the fit had names. Columns that were not chosen may hold missing values.
        offset, exposure : array-like of shape (n_samples,), default=None
            As in ``fit``. Without them the offset is 0 and the exposure 1: the prediction is a rate.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            What the loss models: the mean, for "absolute_error" the median, for "quantile" the quantile.
        """
        scores = self._scores(X)
        known = self._known_scores(offset, exposure, len(scores))
        return self._predicted(scores if known is None else scores + known[:, None])

    @lazy_score
    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None, exposure: Any = None) -> float:
        """R^2 of the predictions.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
        offset, exposure : array-like of shape (n_samples,), default=None
            As in ``predict``. A model that was fitted with one of them warns where none is given: without an exposure
            predictions are rates, and ``y`` must hold rates too.

        Returns
        -------
        float
        """
        warn_of_known_part(self.known_part_, offset, exposure)
        predicted = self.predict(X, offset=offset, exposure=exposure)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    def _known_scores(self, offset: Any, exposure: Any, n_rows: int) -> np.ndarray | None:
        if offset is None and exposure is None:
            return None
        log_link = resolve(self.loss, classes=False).link_of("prediction") == "exp"
        return check_offset(offset, exposure, n_rows, log_link=log_link)
