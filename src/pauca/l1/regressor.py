"""Linear models of numbers in an l1 ball as a scikit-learn estimator, each with a proven duality gap."""

from __future__ import annotations

from pauca.estimators.regressor import RegressionMixin
from pauca.export import register_estimator
from pauca.l1.base import ARRAYS, NUMBERS, L1Model


@register_estimator("L1Regressor", arrays=ARRAYS, numbers=NUMBERS)
class L1Regressor(RegressionMixin, L1Model):
    """The best linear model of numbers in an l1 ball, with a proof of how good it is.

    Minimises ``Q(w) = sum_i v_i L(y_i, x_i w + b) + (ridge/2) |w|^2`` over ``sum_j |w_j| <= radius``; the row weights v
    sum to one, and b is free. The fit ends once it is proven that no model in the ball has an objective that is lower
    by more than ``gap_``. Many coefficients are exactly zero, as in the Lasso, each penalty of which has its radius.

    Parameters
    ----------
    radius : float or "auto", default="auto"
        The radius of the ball. "auto" finds it by cross-validation among radii that grow by a factor of 1.5, from one
        so small that a single feature has all of it, until no column goes with what is left more closely than noise
        would, and the ball no longer binds or the scores fall.
    loss : str or Loss, default="squared_error"
        "squared_error" (half the squared error), "huber", "absolute_error", "quantile", "poisson", or an object from
        ``pauca.losses``, or a loss of your own.
    tol : float, default=1e-3
        The gap to reach, as a share of the objective of the best constant.
    k : int or None, default=None
        The largest number of features. With it features come in one at a time, and the search ends where a further
        one would be needed; ``gap_`` then bounds what that costs.
    standardize : bool, default=False
        Whether to measure coefficients in units of column scale: the ball is then ``sum_j s_j |w_j| <= radius`` with
        the standard deviations s_j of the columns (root mean squares without an intercept).
    solver : {"corrective", "pairwise", "away", "forward"}, default="corrective"
        "corrective" minimises over all features in use at every step and reads X least often, by far. The others
        change one or two coefficients at a time: "forward" is the plain Frank-Wolfe algorithm, which slows down near
        the edge of the ball; with away steps and pairwise steps it does not.
    step_rule : {"line", "closed"}, default="line"
        How far steps go: exact line search, or for solver="forward" the formula of Shalev-Shwartz, Srebro and Zhang.
    smoothness : float or None, default=None
        The constant beta of that formula, which bounds the curvature of the loss where the entries of X are in
        [-1, 1]; a loss that is not smooth is replaced by its envelope of this curvature. None: the smallest constant
        that is valid for the data, and an envelope that leaves half of the gap to the steps.
    gap_tol : float or None, default=None
        The gap to reach in units of the objective, instead of ``tol``.
    stopping : str, default="bound"
        "bound" ends the search by the best model and the best proof of all steps; "gap", as the papers do, by the gap
        of the current step, whose model is the answer.
    cv : int, splitter, iterable or None, default=None
        Folds for choosing ``radius``: a number (None: 5), a splitter of scikit-learn, or an iterable of splits.
    scoring : str, callable or None, default=None
        How folds are scored: a scorer of scikit-learn such as "r2". None: the share of the constant model's loss
        that is explained on held-out rows.
    selection_rule : float, "1se" or "best", default="1se"
        The smallest radius whose score on held-out rows is within so many standard errors of the best ("1se": one), or
        the best itself. The standard error is that of the difference between the two on the same rows.
    n_jobs : int or None, default=None
        How many folds run at a time, in threads that share X, as in scikit-learn.
    ridge : float, default=0.0
        Weight of the squared coefficients in the objective, in the units of X.
    fit_intercept : bool, default=True
        Whether to fit an intercept; it is never penalised and not in the ball.
    max_iter : int, default=10000
        The largest number of steps in a ball.
    time_limit : float or None, default=None
        Seconds after which the search stops and the best found so far is kept.
    callback : callable or None, default=None
        Called after every step with a ``pauca.Progress``; returning True ends the search.
    verbose : int, default=0
        1 shows a progress bar on stderr while the fit runs, with what is known of the time left; 0 prints nothing.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), or (n_outputs, n_features) for y of two dimensions
        Coefficients; zero for features that are not in use.
    intercept_ : float, or ndarray of shape (n_outputs,)
    support_ : ndarray
        Indices of the features in use, ascending.
    gap_ : float
        No model in the ball has an objective that is lower by more than this. In units of the objective.
    lower_bound_ : float
        The proven bound itself: ``objective_ - gap_``.
    radius_ : float
        The radius of the ball in which this is proven; of ``at(size)`` too.
    norm_ : float
        The norm of the model itself, as the ball measures it: never above ``radius_``, and smaller as a rule for the
        smaller models on the path.
    norms_ : ndarray
        The same of all models on the path, by size.
    radii_, scores_, score_errors_ : ndarray
        The radii that were compared, their mean scores on held-out rows, and the standard errors of those; empty where
        ``radius`` was given.
    objective_ : float
        Q of the model, for every loss by the loss itself.
    n_iter_ : int
        Number of steps, of the search on all rows.
    k_ : int
        Number of features.
    stop_ : Stop
        Why the search ended; ``stop_.message`` explains it. "certified" only where ``gap_`` is within the
        tolerance: a smaller model by ``at`` with a larger gap has "size".
    path_ : Path
        The best models of the sizes that the search came across, without those that a smaller one beats. All are in the
        ball, and ``at(size).gap_`` is proven for each.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X has column names.

    Notes
    -----
    The proof is the gap of Frank and Wolfe: at a w with gradient g, no u in the ball has ``Q(u) < Q(w) - gap`` with
    ``gap = g w + radius max_j |g_j|``, for every convex loss. ``lower_bound_`` is the best over all steps.

    "absolute_error" and "quantile" are minimised through smooth envelopes that lie below them by at most half of the
    required gap. What is proven holds for the loss itself; the ``accuracy`` of such losses does not matter here.

    X is read in place, as by ``SparseRegressor``. Squared loss needs the products of the columns in use beside it;
    other losses gather these columns.

    Columns that are constant, or whose spread is below 1e-13 of their mean, are left out, and what is proven is proven
    for models without them. With several outputs (y of two dimensions) one ball holds the coefficients of all.

    References
    ----------
    Shalev-Shwartz, Srebro and Zhang (2010), Trading accuracy for sparsity in optimization problems with sparsity
    constraints.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from pauca import L1Regressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = L1Regressor(radius=1000, tol=1e-4).fit(X, y)
    >>> list(model.get_feature_names_out())
    ['bmi', 'bp', 's3', 's5']
    >>> round(float(abs(model.coef_).sum()), 6), bool(model.gap_ <= 1e-4 * model.path_[0].objective)
    (1000.0, True)
    """
