"""SparseCox: proportional hazards with few features."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pauca.checks import ParameterChecks
from pauca.estimators.base import SparseModel
from pauca.estimators.chunked_predictions import lazy_on_dask
from pauca.estimators.fitted_base import fitting
from pauca.estimators.input_checks import check_row_order, check_table
from pauca.estimators.row_values import check_weights
from pauca.export import register_estimator
from pauca.model import Model
from pauca.model_selection.scoring import read_columns
from pauca.results.choice import DEFAULT_RULE
from pauca.results.path import Path
from pauca.runs.problem import LinearProblem, Target
from pauca.runs.progress import showing
from pauca.runs.run import Method, Progress
from pauca.statistics.concordance import concordance_index
from pauca.survival.curves import Baseline, RiskGroups, plot_risk_groups, risk_groups
from pauca.survival.evaluation import SurvivalEvaluationMixin
from pauca.survival.partial_likelihood import TIES, PartialLikelihood
from pauca.survival.target import check_events, checked_grid, split_frame, survival_target, with_entry, with_strata
from pauca.wording import quoted_columns

BASELINE = ("event_times_", "baseline_hazard_", "event_strata_")

SMALL_SHARES = (
    "Shares of the deviance are small for times to an event, also where a model is good: a few percent are common, as "
    "chance has a large part in when an event happens. The concordance{} says how well the model orders the rows."
)


@register_estimator("SparseCox", arrays=("strata_", *BASELINE), numbers=("ridge_", "search_ridge_"))
class SparseCox(SurvivalEvaluationMixin, SparseModel):  # type: ignore[misc]
    """The best model of proportional hazards (Cox 1972) with few features.

    Minimises minus the log partial likelihood, divided by the sum of the row weights, plus
    ``(ridge/2) sum_j (s_j w_j)^2``, over models of at most ``k`` features; s_j is the standard deviation of column j.
    The hazard of a row is ``h(t) exp(x w)``, with a function h of time that all rows of a stratum share. By default the
    number of features and the ridge are chosen together by cross-validation. The fit keeps the model of every size on
    the way: see ``path_`` and ``at``.

    Parameters
    ----------
    k : int, "auto", iterable of int or None, default="auto"
        Number of features (of groups, if there are ``feature_groups``). "auto" finds it by cross-validation, from 0 up
        to as many as it takes, at most 200; a range or list names the sizes to choose from. None: as many as lower the
        objective by at least ``tol``, within the ``budget`` if there is one.
    ties : {"efron", "breslow"}, default="efron"
        How events at the same time are counted.
    method : str or object, default="exchange"
        "exchange" (best models), "forward" (fastest), "stepwise" (forward selection of textbooks and of R: by the
        decrease after refitting), "foba", "backward", "replacement", or an object from ``pauca.methods``.
    cv : int, splitter, iterable or None, default=None
        Folds for choosing ``k``: a number (None: 5), a splitter of scikit-learn, or an iterable of splits. Folds by
        number are shuffled, always alike, and keep the share of events, or the ``groups`` given to ``fit``.
    scoring : callable or None, default=None
        What folds are scored by: a callable ``scorer(estimator, X, y)`` for y as given to ``fit``. None: the
        cross-validated partial likelihood (Verweij and van Houwelingen 1993), as a share of that of the empty model.
    selection_rule : float, "1se" or "best", default=0.25
        The smallest model whose score on held-out rows is within so many standard errors of the best ("1se": one), or
        the best itself. The standard error is that of the difference between the two on the same rows.
    criterion : {"aic", "bic", "ebic"} or None, default=None
        Choose ``k`` by an information criterion on all rows, without folds.
    n_jobs : int or None, default=None
        How many folds run at a time, in threads that share X, as in scikit-learn; it pays where X is large.
    ridge : float, list of float, "auto" or None, default=None
        Weight of the squared coefficients in the objective. A list, or "auto", is compared on the folds together with
        the sizes. None: "auto" where ``k`` is chosen by cross-validation, else 0.
    search_ridge : float, list of float, "auto" or None, default=None
        The ridge with which features are searched, if it is to differ from that of the final fit. None: two ridges are
        compared where ``ridge`` is chosen, else it is ``ridge``.
    standardize : bool, default=True
        Whether the ridge is on the coefficients of standardised columns.
    tol : float, default=0.0
        The least decrease of the objective for which a further feature is added.
    feature_groups, max_per_group, always, never, costs, budget, bounds, heredity
        Constraints, as in ``SparseRegressor``.
    time_limit : float or None, default=None
        Seconds after which the search stops and the best found so far is kept.
    callback : callable or None, default=None
        Called after every move of the search with a ``pauca.Progress``; returning True ends the search.
    warm_start : bool, default=False
        Whether a further call to ``fit`` with the same data and method continues where the last one stopped.
    verbose : int, default=0
        1 shows the progress of long fits on stderr.
    categorical_features : "from_dtype", list of names or indices, mask, or None, default="from_dtype"
    missing : {"error", "median", "category"}, default="error"
        As in ``SparseRegressor``: how categories and missing values of a raw table become numbers.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Log hazard ratios: one unit more of a feature multiplies the hazard by ``exp(coef)``.
    support_, feature_groups_, cost_, k_, ridge_, search_ridge_, objective_, stop_, path_
        As in ``SparseRegressor``.
    event_times_ : ndarray
        Times of events, ascending; within each stratum where there are ``strata``.
    baseline_hazard_ : ndarray
        Breslow's estimate of the cumulative hazard of a row of zeros at these times.
    event_strata_ : ndarray
        The stratum that each of these times belongs to, as an index of ``strata_``.
    strata_ : ndarray
        The labels of the strata; empty where there were none.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X has column names.

    Notes
    -----
    The loss of a row depends on all rows at risk with it. So rows that are alike are not merged, as they are for other
    losses, and there are no proofs of optimality. On held-out rows, each bears the loss of its own event and its part
    in what the events of the fit lose by the rows that join their risk sets; the sum is the cross-validated partial
    likelihood, and the standard errors of the rule are those of paired differences of these losses.

    Where a feature orders the events without error, its coefficient would grow for ever (monotone likelihood): a
    ``PaucaWarning`` names it.

    Examples
    --------
    >>> import numpy as np
    >>> from pauca import SparseCox
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 20))
    >>> time = rng.exponential(np.exp(X[:, 4] - 0.7 * X[:, 11]))
    >>> y = np.array(list(zip(time < 3, np.minimum(time, 3))), dtype=[("event", bool), ("time", float)])
    >>> model = SparseCox().fit(X, y)
    >>> model.support_, round(model.score(X, y), 2)
    (array([ 4, 11]), 0.79)
    >>> model.predict_survival_function(X[:2], times=[1.0, 2.0]).round(2)
    array([[0.17, 0.01],
           [0.72, 0.44]])
    """

    def __init__(
        self,
        k: int | str | Iterable[int] | None = "auto",
        *,
        ties: str = "efron",
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
        self.ties = ties
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
    def loss(self) -> PartialLikelihood:
        """What is minimised."""
        return PartialLikelihood(self.ties)

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        event: str | None = None,
        time: str | None = None,
        entry: Any = None,
        strata: Any = None,
        groups: Any = None,
    ) -> SparseCox:
        """Find the models of every size up to ``k``, or up to the sizes compared, and choose one.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : structured array of shape (n_samples,), or frame
            With a field of booleans, whether the event was seen, and one of numbers, the time of the event or when the
            row was last seen; or a frame with the columns ``event`` and ``time``. It may be left out where X is a frame
            that has these columns too. Columns of X with these names are no features.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, at least one of them positive.
        event, time : str, default=None
            Names of columns of y, or of X where y is left out.
        entry : array-like of shape (n_samples,), default=None
            When each row came under observation (left truncation): it is at risk from then on. None: from the start.
        strata : array-like of shape (n_samples,), default=None
            Labels of strata, each with a baseline hazard of its own; coefficients are shared.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that folds keep together, such as the rows of one patient; for choosing ``k``.

        Returns
        -------
        self
        """
        with showing(self.verbose, self.time_limit) as report, fitting(self):
            settings = self._settings(report)
            X, y = split_frame(X, y, event, time)
            target = survival_target(y, event, time)
            check_row_order(X, y)
            X = check_table(self, X, raw=True)
            if X.shape[0] != len(target):
                raise ValueError(f"X and y must have the same number of rows: {X.shape[0]} and {len(target)}.")
            weights = check_weights(sample_weight, len(target))
            target, labels = with_strata(with_entry(target, entry), strata)
            check_events(target, weights)
            self.strata_ = np.array([]) if labels is None else labels
            self._search(settings, X, target, weights, Target(target[None], self.loss, 1), groups)
            self._set_baseline()
        return self

    @lazy_on_dask
    def predict(self, X: Any) -> np.ndarray:
        """Log hazard ratios against a row of zeros: the higher, the earlier the event is expected.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            All columns of the fit, in the same order; or a frame with the chosen columns, in any order and with any
            others, where the fit had names.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self._scores(X)[:, 0])

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, event: str | None = None, time: str | None = None
    ) -> float:
        """Harrell's concordance: the share of pairs of rows in which the one with the higher prediction is first.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : structured array of shape (n_samples,), or frame
        sample_weight : array-like of shape (n_samples,), default=None
        event, time : str, default=None
            As in ``fit``.

        Returns
        -------
        float
        """
        X, y = split_frame(X, y, event, time)
        target = survival_target(y, event, time)
        weights = None if sample_weight is None else check_weights(sample_weight, len(target))
        return concordance_index(target["event"], target["time"], np.asarray(self.predict(X)), weights)

    def predict_cumulative_hazard_function(self, X: Any, times: Any = None, *, strata: Any = None) -> np.ndarray:
        """Cumulative hazards, by Breslow's estimate.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        times : array-like of shape (n_times,), default=None
            None: the different ``event_times_``, ascending.
        strata : array-like of shape (n_samples,), default=None
            The stratum of every row, where the fit had strata.

        Returns
        -------
        ndarray of shape (n_samples, n_times)
            Beyond the last event of the fit they stay as they are there.
        """
        scores = self.predict(X)
        baseline = self._baseline()
        at = np.unique(self.event_times_) if times is None else checked_grid(times)
        codes = self._stratum_codes(strata, len(scores))
        found = np.empty((len(scores), len(at)))
        for stratum in np.unique(codes):
            rows = codes == stratum
            found[rows] = np.exp(scores[rows])[:, None] * baseline.at(at, int(stratum))
        return found

    def predict_survival_function(self, X: Any, times: Any = None, *, strata: Any = None) -> np.ndarray:
        """Probabilities that the event has not happened by some times: ``exp(-cumulative hazard)``.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        times : array-like of shape (n_times,), default=None
            None: the different ``event_times_``, ascending.
        strata : array-like of shape (n_samples,), default=None
            The stratum of every row, where the fit had strata.

        Returns
        -------
        ndarray of shape (n_samples, n_times)
        """
        return np.exp(-self.predict_cumulative_hazard_function(X, times, strata=strata))

    def risk_groups(self, count: int = 3) -> RiskGroups:
        """Survival of the rows of the fit in groups of about equal size, from low to high predicted risk.

        Parameters
        ----------
        count : int, default=3
            Number of groups.

        Returns
        -------
        RiskGroups
            What was seen (Kaplan and Meier's estimate) and what the model predicts on average, for every group. The
            data of the fit are read once more, as by ``alternatives``.
        """
        check, data = ParameterChecks("risk_groups"), self._data("risk_groups")
        scores = self._fitted_scores()
        baseline = self._baseline()
        return risk_groups(data.y, data.weights, scores, baseline, check.count("count", count))

    def plot_survival(self, ax: Any = None, count: int = 3) -> Any:
        """Draw ``risk_groups``: steps are what was seen, dashed lines what the model predicts.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        count : int, default=3
            Number of groups.

        Returns
        -------
        matplotlib.axes.Axes
        """
        if ax is not None and not hasattr(ax, "get_xlim"):
            raise TypeError(
                f"ax must be matplotlib's Axes; got {type(ax).__name__}. Groups of the rows of the fit are drawn; "
                "predict_survival_function(X) has the curves of other rows."
            )
        return plot_risk_groups(self.risk_groups(count), ax)

    def at(self, size: int, ridge: str | None = None) -> Self:
        """The fitted model of another size, without a new search; see ``SparseRegressor.at``.

        Its baseline hazard is estimated on the data of the fit. A model that was loaded from a file has that of its own
        size only.

        Parameters
        ----------
        size : int
            One of ``path_.sizes``; a ``KeyError`` says which there are.
        ridge : "best" or None, default=None

        Returns
        -------
        SparseCox
        """
        other = super().at(size, ridge)
        if getattr(other, "_training_data", None) is not None:
            other._set_baseline()
        elif size != self.k_:
            other.event_times_, other.baseline_hazard_, other.event_strata_ = np.zeros((3, 0))
        return other

    def _set_model(self, model: Model) -> None:
        # A constant in all scores changes nothing, so there is no intercept.
        super()._set_model(replace(model, intercept=0.0))

    def _finished_path(self, path: Path, problem: LinearProblem) -> Path:
        nothing = np.zeros(0)
        models = {size: replace(model, intercept=0.0, free=nothing) for size, model in path.models.items()}
        return replace(path, models=models)

    def _reading_notes(self) -> list[str]:
        notes, choice = super()._reading_notes(), self.path_.choice
        shown = choice is not None and choice.is_of(self.k_) and "concordance" in choice.held_out
        return [*notes, SMALL_SHARES.format("" if shown else ", which evaluate() measures,")] if self.k_ else notes

    def _set_baseline(self) -> None:
        data = self._data("at")
        found = Baseline.of(data.y, data.weights, self._fitted_scores())
        self.event_times_, self.baseline_hazard_, self.event_strata_ = found.times, found.hazard, found.stratum

    def _baseline(self) -> Baseline:
        check_is_fitted(self)
        if not len(self.event_times_):
            raise ValueError(
                "The baseline hazard of this size is estimated on the data of the fit, which are not kept in files or "
                "pickles: fit the model again, or save it with this size."
            )
        return Baseline(self.event_times_, self.baseline_hazard_, self.event_strata_)

    def _fitted_scores(self) -> np.ndarray:
        """Scores of the rows of the fit."""
        problem = self._data("risk_groups").problem
        block = read_columns(problem.X, self.support_, np.arange(problem.target.y.shape[-1]))
        return np.asarray(block @ self.coef_[self.support_])

    def _stratum_codes(self, strata: Any, n_rows: int) -> np.ndarray:
        if not len(self.strata_):
            if strata is not None:
                raise ValueError("strata were given, but the fit had none.")
            return np.zeros(n_rows, dtype=np.intp)
        if strata is None:
            raise ValueError("The fit had strata, each with a baseline hazard of its own: give strata.")
        values = np.asarray(strata)
        if values.shape != (n_rows,):
            raise ValueError(f"strata must hold a label for every row: its shape is {values.shape}, not ({n_rows},).")
        known = {label: code for code, label in enumerate(self.strata_.tolist())}
        unknown = [label for label in np.unique(values).tolist() if label not in known]
        if unknown:
            raise ValueError(f"strata holds {unknown[0]!r}, which was not in the fit.")
        return np.array([known[label] for label in values.tolist()], dtype=np.intp)

    def _settings(self, report: Any = None) -> Any:
        ParameterChecks(type(self).__name__).one_of("ties", self.ties, TIES)
        return super()._settings(report)

    def _fold_classes(self, y: np.ndarray) -> np.ndarray | None:
        return np.asarray(y["event"])

    def _divergence(self, size: int) -> str:
        model = self.path_[size]
        assert self._training_data is not None
        design = next(iter(self._training_data.searches.values())).design
        scale = np.abs(np.atleast_1d(model.coef)) * design.spread[model.support]
        steepest = quoted_columns(self.path_.column_names, model.support[[int(np.argmax(scale))]])
        return (
            f"The likelihood is monotone: the column {steepest} orders the events without error, alone or with others, "
            "and its coefficient diverges. Set a ridge, such as ridge=0.001, or leave it out."
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
