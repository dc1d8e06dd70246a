"""``sparsify``: any dense linear model made sparse."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import numpy as np

from pauca.checks import ParameterChecks, arithmetic_in_words
from pauca.design import make_design
from pauca.estimators import SparseClassifier, SparseRegressor
from pauca.estimators.fitted_base import check_finite_models
from pauca.estimators.input_checks import check_moments
from pauca.estimators.regressor import names_of_outputs
from pauca.losses import Loss, SquaredError
from pauca.model import Model
from pauca.runs.problem import Target
from pauca.runs.run import Stop
from pauca.sparsification.draws import TRUNCATIONS
from pauca.sparsification.inputs import DenseModel, make_estimator, read_data, read_model
from pauca.sparsification.objective import Expectation, SparsificationProblem
from pauca.sparsification.result import Sparsified, set_fitted
from pauca.sparsification.sampling import Draw, RandomNumbers, Sampling, UnbiasedSampling
from pauca.threads import blas_threads
from pauca.warnings import PaucaWarning

# Truncations for which k counts features, and not draws; those that take the same features every time.
EXACT = ("exchange", "systematic", "truncate")
WITHOUT_CHANCE = ("exchange", "truncate")


def sparsify(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    k: int,
    truncation: str = "truncate",
    refit: bool = True,
    intercept: Any = None,
    loss: str | Loss | None = None,
    ridge: float = 0.0,
    fit_intercept: bool | None = None,
    sample_weight: Any = None,
    feature_names: Any = None,
    confidence: float = 0.95,
    repeats: int | None = None,
    random_state: Any = None,
) -> Sparsified:
    """Turn a dense linear model into a sparse one, and report what that costs.

    The cost is the excess ``Q(u) - Q(w)`` of the sparse coefficients u over the dense w, with ``Q(w) = sum_i v_i
    L(y_i, x_i w + b) + (ridge/2) |w|^2``, row weights v that sum to one, and the best intercept b for either.

    Parameters
    ----------
    model : fitted linear model or array-like of shape (n_features,) or (n_outputs, n_features)
        Anything with ``coef_`` and ``intercept_``, such as scikit-learn's Ridge, LogisticRegression, SGDClassifier or
        LinearSVC, or bare coefficients. Several outputs, or classes, share the features.
    X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        Rows to measure the cost on and to refit on. It is read in place, never copied or made dense.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Targets; classes for a classifier. None: the scores of the dense model itself, which the sparse
        model approximates in squared loss.
    k : int
        Number of features for "truncate", "exchange" and "systematic". Number of draws for "moments" and "magnitude",
        as in the papers: they may draw a feature more than once, so the model has at most ``k`` features.
    truncation : {"truncate", "exchange", "systematic", "moments", "magnitude"}, default="truncate"
        How features are chosen. "truncate" keeps the largest ``|w_j| sqrt(m_j)``, with m the second moments of the
        columns about their means, plus the ridge: the fastest, without guarantee. "exchange" searches all features, as
        ``SparseRegressor`` does, also those that the dense model does not use, for the ``k`` with the least Q after the
        refit: the best, and slower. The others draw at random, so that the mean of u is w and the expected cost is
        known in advance: "moments" with probabilities proportional to ``|w_j| sqrt(m_j)``, "magnitude" to ``|w_j|``,
        both with replacement; "systematic" draws ``k`` distinct features with probabilities
        ``min(1, tau |w_j| sqrt(m_j))``, and costs least of the three.
    refit : bool, default=True
        Whether to fit the coefficients again on the chosen features, which never raises Q. False: u itself, which
        "exchange" does not have.
    intercept : float or array-like of shape (n_outputs,), default=None
        The intercept that goes with bare coefficients. As the sparse model gets the best intercept of its own, it
        counts only where ``y`` is None.
    loss : str or Loss, default=None
        As for ``SparseRegressor`` and ``SparseClassifier``; needs ``y``. None: "squared_error", "log_loss" for
        classifiers ("hinge" or "squared_hinge" for those fitted by them), that of the model itself for models of pauca.
    ridge : float, default=0.0
        Weight of the squared coefficients in Q, in the units of X.
    fit_intercept : bool, default=None
        Whether the sparse model has an intercept. None: if the dense model has, and for bare coefficients.
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights, at least one of them positive.
    feature_names : array-like of shape (n_features,), default=None
        Names of the columns of an X that has none, such as ``vectorizer.get_feature_names_out()``.
    confidence : float, default=0.95
        Strictly between 0 and 1. The best of ``ceil(log2(1 / (1 - confidence)))`` draws is kept: each has an excess of
        at most twice the expected one with probability 1/2 (see Notes), so the best fails with ``1 - confidence``.
    repeats : int, default=None
        The number of draws to keep the best of, in place of ``confidence``. "truncate" and "exchange" draw nothing.
    random_state : int, Generator, RandomState or None, default=None
        Source of random numbers; the same seed gives the same model.

    Returns
    -------
    Sparsified
        Coefficients, objectives, the excess measured and expected; ``predict``, ``summary``, ``to_sql`` and ``save``.
        Its ``model`` is the same as a fitted ``SparseRegressor`` or ``SparseClassifier``.

    Notes
    -----
    The expected excess of a draw is exact for squared loss. For other losses it is an upper bound, from their largest
    curvature or slope. That twice it is exceeded no more than half of the time is Markov's inequality, which needs an
    excess that cannot be negative: it cannot if w minimises Q, and never without ``y`` and ridge. After the refit the
    model is at least as good as the draw. w fits the rows it was fitted on better than new ones, and so the excess is
    usually larger there than on new ones; give held-out rows to measure the cost on new data.

    Constant columns are never drawn. If all coefficients are zero, the result is the constant model. Where fewer than
    ``k`` features can be taken, a ``PaucaWarning`` says how many there are.

    References
    ----------
    Shalev-Shwartz, Srebro and Zhang (2010), Algorithm 1, for "magnitude"; Li, Yang, Zhang and Jin (2017), Algorithm 2,
    for "moments".

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from pauca import sparsify
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> dense = Ridge(alpha=0.1).fit(X, y)
    >>> sparse = sparsify(dense, X, y, k=5)
    >>> sparse.names()
    ['sex', 'bmi', 'bp', 's3', 's5']
    >>> round(sparse.excess / sparse.dense_objective, 3)
    0.008

    With a guarantee, and without y:

    >>> drawn = sparsify(dense, X, k=8, truncation="systematic", refit=False, random_state=0)
    >>> drawn.k_, drawn.expectation, bool(drawn.measured_excess < 2 * drawn.expected_excess)
    (8, 'exact', True)
    """
    check = ParameterChecks("sparsify")
    k = check.count("k", k)
    check.one_of("truncation", truncation, ("exchange", *TRUNCATIONS))
    if not check.flag("refit", refit) and truncation == "exchange":
        raise ValueError("truncation='exchange' fits the coefficients of the features it finds; leave out refit=False.")
    fit_intercept = None if fit_intercept is None else check.flag("fit_intercept", fit_intercept)
    ridge = check.number("ridge", ridge)
    n_draws = _number_of_draws(check, truncation, confidence, repeats)
    rng = _random_numbers(check, random_state)
    dense = read_model(model, intercept, fit_intercept)
    estimator = make_estimator(dense, y, loss, k, ridge)
    X, weights, target, classes = read_data(estimator, dense, X, y, sample_weight, feature_names)
    with arithmetic_in_words(), blas_threads.single():
        problem = _problem(estimator, dense, X, weights, target, ridge)
        sampling = problem.searched(k) if truncation == "exchange" else problem.sampling(k, truncation)
    exhausted = len(sampling.features) < k
    if exhausted and truncation in EXACT:
        others = "the others have coefficients of zero, or constant columns"
        reason = "no other lowers the objective" if truncation == "exchange" else others
        warnings.warn(
            f"k={k}, but only {len(sampling.features)} of {X.shape[1]} features can be taken: {reason}.",
            PaucaWarning,
            stacklevel=2,
        )
    with arithmetic_in_words(), blas_threads.single():
        draws = [problem.draw(sampling, rng) for _ in range(n_draws)]
        best = min(draws, key=lambda drawn: drawn.objective)
        final = problem.refit(best) if refit else best
        check_finite_models({0: problem.constant, 1: final})
        stop = Stop.EXHAUSTED if exhausted and final.size == len(sampling.features) else Stop.SIZE
        set_fitted(estimator, problem.constant, final, stop, len(dense.coef), names_of_outputs(y), classes)
        costs = _costs(problem, sampling, draws, best)
    return Sparsified(model=estimator, truncation=truncation, draws=k, refitted=bool(refit), **costs)


def _costs(problem: SparsificationProblem, sampling: Sampling, draws: list[Model], best: Model) -> dict[str, Any]:
    """What is known of the cost: measured of the draws, of which the best was kept, and expected of the scheme."""
    dense, expected = problem.dense.objective, Expectation(None, False, None)
    if isinstance(sampling, UnbiasedSampling):
        expected = problem.expected_excess(sampling)
    inclusion = np.zeros(problem.coef.shape[1])
    inclusion[sampling.features] = sampling.inclusion
    return {
        "drawn": Draw(best.support, best.coef),
        "drawn_objective": best.objective,
        "dense_objective": dense,
        "measured_excess": best.objective - dense,
        "measured": np.array([drawn.objective for drawn in draws]) - dense,
        "expected_excess": expected.excess,
        "expectation": "none" if expected.excess is None else "exact" if expected.is_exact else "upper bound",
        "bound": expected.bound,
        "inclusion": inclusion,
        "loss": problem.objective.loss,
    }


def _problem(
    estimator: SparseRegressor | SparseClassifier,
    dense: DenseModel,
    X: Any,
    weights: np.ndarray,
    target: Target | None,
    ridge: float,
) -> SparsificationProblem:
    """The dense model on the data; without a target that is the scores of the model, in squared loss."""
    with np.errstate(over="ignore", invalid="ignore"):  # the check below names columns that are not finite
        design = make_design(X, weights, center=dense.fit_intercept)
    check_moments(type(estimator).__name__, design, X, getattr(estimator, "feature_names_in_", None))
    if target is None:
        scores = np.concatenate([block for _, block in design.scores(dense.coef.T)]).T
        constants = (dense.intercept + dense.coef @ design.mean)[:, None]
        target = Target(scores + constants, SquaredError(), len(dense.coef))
    return SparsificationProblem.of(design, target.y, target.loss, dense.coef, ridge=ridge, center=dense.fit_intercept)


def _number_of_draws(check: ParameterChecks, truncation: str, confidence: Any, repeats: Any) -> int:
    """How many draws to keep the best of."""
    share = check.number("confidence", confidence, positive=True, below=1.0)
    if repeats is not None:
        repeats = check.count("repeats", repeats)
        if truncation in WITHOUT_CHANCE and repeats > 1:
            raise ValueError(f"'repeats' is for random draws; {truncation=} gives the same every time.")
        return repeats
    return 1 if truncation in WITHOUT_CHANCE else max(1, math.ceil(-math.log2(1.0 - share)))


def _random_numbers(check: ParameterChecks, random_state: Any) -> RandomNumbers:
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    wanted = "an int in the range [0, inf), a numpy Generator or RandomState, or None"
    if isinstance(random_state, bool) or not isinstance(random_state, numbers.Integral):
        raise TypeError(check.message("random_state", wanted, random_state))
    if random_state < 0:
        raise ValueError(check.message("random_state", wanted, random_state))
    return np.random.default_rng(int(random_state))
