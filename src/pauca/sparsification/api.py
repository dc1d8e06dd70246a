"""Any dense linear model made sparse."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import numpy as np

from pauca.checks import ParameterChecks
from pauca.design import make_design
from pauca.estimators.classifier import coded
from pauca.estimators.regressor import names_of_outputs
from pauca.estimators.validation import (
    check_classes,
    check_data,
    check_moments,
    check_table,
    check_target,
    check_weights,
)
from pauca.losses import Loss, SquaredError, resolve
from pauca.losses.checks import inspect_loss
from pauca.search.history import Stop
from pauca.search.problem import Target
from pauca.sparsification.base import Draw, Unbiased
from pauca.sparsification.draws import TRUNCATIONS
from pauca.sparsification.estimator import Thinned
from pauca.sparsification.inputs import DenseModel, is_for_classes, read_model
from pauca.sparsification.result import Reader, Sparsified
from pauca.sparsification.trials import Expectation, Trials
from pauca.warnings import PaucaWarning
from pauca.wording import plain

# Methods by which k counts features, and not draws.
EXACT = ("systematic", "truncate")


def sparsify(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    k: int,
    method: str = "truncate",
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
    """Turn a dense linear model into a sparse one, and say what that costs.

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
        Targets; classes for a classifier. None: the scores of the dense model itself, so that the sparse model comes
        as near to it as it can, in squared loss.
    k : int
        Number of features for "truncate" and "systematic". Number of draws for "moments" and "magnitude", as in the
        papers: they may meet a feature more than once, so the model has at most ``k`` features.
    method : {"truncate", "systematic", "moments", "magnitude"}, default="truncate"
        "truncate" keeps the largest ``|w_j| sqrt(m_j)``, with m the second moments of the columns about their means,
        plus the ridge: usually the best, without guarantee. The others draw at random, so that the mean of u is w and
        the expected cost is known before: "moments" with chances in proportion to ``|w_j| sqrt(m_j)``, "magnitude" to
        ``|w_j|``, both with replacement; "systematic" draws ``k`` distinct features with chances
        ``min(1, tau |w_j| sqrt(m_j))``, and costs least of the three.
    refit : bool, default=True
        Whether to fit the coefficients anew on the features drawn, which never raises Q. False: u itself.
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
        at most twice the expected one with a chance of a half (see Notes), so the best fails with ``1 - confidence``.
    repeats : int, default=None
        The number of draws to keep the best of, in place of ``confidence``. "truncate" draws nothing and takes one.
    random_state : int, Generator, RandomState or None, default=None
        Where random numbers come from; the same seed gives the same model.

    Returns
    -------
    Sparsified
        Coefficients, objectives, the excess measured and expected; ``predict``, ``summary``, ``to_sql`` and ``save``.
        Its ``model`` is the same as a fitted ``SparseRegressor`` or ``SparseClassifier``.

    Notes
    -----
    The expected excess of a draw is exact for squared loss. For other losses it is an upper bound, from their largest
    curvature or slope. That twice it is exceeded no more than half of the time is Markov's inequality, which needs an
    excess that cannot be negative: so it is if w minimises Q, and always without ``y`` and ridge. After the refit the
    model is at least as good as the draw. On the rows that w was fitted on w is flattered, and so the excess is larger
    there than on new ones as a rule; give rows held out to see what the step costs on them.

    Constant columns are never drawn. If no coefficient counts, the result is the constant model. Where fewer than ``k``
    features can be taken, a ``PaucaWarning`` says how many there are.

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

    >>> drawn = sparsify(dense, X, k=8, method="systematic", refit=False, random_state=0)
    >>> drawn.k_, drawn.expectation, bool(drawn.measured_excess < 2 * drawn.expected_excess)
    (8, 'exact', True)
    """
    reader = Reader()
    ParameterChecks(type(reader).__name__).count("k", k)
    ParameterChecks(type(reader).__name__).one_of("method", method, TRUNCATIONS)
    ParameterChecks(type(reader).__name__).flag("refit", refit)
    if fit_intercept is not None:
        ParameterChecks(type(reader).__name__).flag("fit_intercept", fit_intercept)
    ridge = ParameterChecks(type(reader).__name__).number("ridge", ridge)
    times = _times(reader, method, confidence, repeats)
    rng = _random_numbers(reader, random_state)
    dense = read_model(model, intercept, None if fit_intercept is None else bool(fit_intercept))

    X, weights, target, classes = _read_data(reader, dense, X, y, loss, sample_weight, feature_names)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named below
        design = make_design(X, weights, center=dense.fit_intercept)
    check_moments(reader, design, X, getattr(reader, "feature_names_in_", None))
    if target is None:
        scores = np.concatenate([block for _, block in design.scores(dense.coef.T)]).T
        own = (dense.intercept + dense.coef @ design.mean)[:, None]
        target = Target(scores + own, SquaredError(), len(dense.coef))

    trials = Trials.of(design, target.y, target.loss, dense.coef, ridge=ridge, center=dense.fit_intercept)
    sampling = trials.lay_out(int(k), method)
    if len(sampling.features) < k and method in EXACT:
        warnings.warn(
            f"k={k} features were asked for, but only {len(sampling.features)} of {design.n_features} can be taken: "
            "the others have coefficients of zero, or constant columns.",
            PaucaWarning,
            stacklevel=2,
        )
    draws = [trials.draw(sampling, rng) for _ in range(times)]
    kept = min(draws, key=lambda drawn: drawn.objective)
    measured = np.array([drawn.objective for drawn in draws]) - trials.dense.objective
    expected = trials.expect(sampling) if isinstance(sampling, Unbiased) else Expectation(None, False, None)
    final = trials.refit(kept) if refit else kept
    chances = np.zeros(design.n_features)
    chances[sampling.features] = sampling.chances
    thinned = Thinned(
        trials.constant,
        final,
        refit and trials.objective.loss.quadratic,
        Stop.EXHAUSTED if len(final.support) == len(sampling.features) < k else Stop.SIZE,
        design.n_features,
        getattr(reader, "feature_names_in_", None),
        names_of_outputs(y),
        classes,
    )
    return Sparsified(
        model=thinned.as_estimator(
            dense.meaning() if y is None else dense.loss_for(loss), ridge=ridge, fit_intercept=dense.fit_intercept
        ),
        drawn=Draw(kept.support, kept.coef[0] if len(dense.coef) == 1 else kept.coef),
        drawn_objective=kept.objective,
        dense_objective=trials.dense.objective,
        measured_excess=kept.objective - trials.dense.objective,
        measured=measured,
        expected_excess=expected.excess,
        expectation="none" if expected.excess is None else "exact" if expected.is_exact else "upper bound",
        bound=expected.bound,
        chances=chances,
        method=method,
        draws=int(k),
        refitted=bool(refit),
        loss=trials.objective.loss,
    )


def _read_data(
    reader: Reader, dense: DenseModel, X: Any, y: Any, loss: Any, sample_weight: Any, feature_names: Any
) -> tuple[Any, np.ndarray, Target | None, np.ndarray | None]:
    """X, row weights, target and classes, all of them checked; no target if it is what the model itself says."""
    if y is None:
        if loss is not None and not (loss == "squared_error" or isinstance(loss, SquaredError)):
            raise ValueError(f"loss={loss!r} needs y. Without y the loss is squared, on the scores of the model.")
        X = check_table(reader, X)
        _name_columns(reader, feature_names, X.shape[1])
        dense.check_columns(X.shape[1], getattr(reader, "feature_names_in_", None))
        return X, check_weights(sample_weight, X.shape[0]), None, dense.classes
    wanted = dense.loss_for(loss)
    chosen = resolve(wanted, classes=is_for_classes(wanted))
    X, y = (check_classes if chosen.classifies else check_data)(reader, X, y)
    _name_columns(reader, feature_names, X.shape[1])
    dense.check_columns(X.shape[1], getattr(reader, "feature_names_in_", None))
    weights = check_weights(sample_weight, len(y))
    if chosen.classifies:
        target, classes = _classes(dense, y, weights, chosen)
    else:
        target, classes = _numbers(dense, y, weights, chosen), None
    inspect_loss(target.loss, target.y, weights, target.n_outputs)
    return X, weights, target, classes


def _name_columns(reader: Reader, names: Any, n_features: int) -> None:
    """Give names to columns that have none."""
    if names is None:
        return
    if hasattr(reader, "feature_names_in_"):
        raise ValueError("X has names of its own for its columns; leave out feature_names.")
    wanted = "a list of different strings, one for every column"
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(ParameterChecks(type(reader).__name__).message("feature_names", wanted, names))
    found = np.array(list(names), dtype=object)
    if len(found) != n_features:
        raise ValueError(f"There are {len(found)} feature_names for {n_features} columns of X.")
    if len(set(found)) < len(found):
        twice = next(name for place, name in enumerate(found) if name in set(found[:place]))
        raise ValueError(f"feature_names must be {wanted}; {twice!r} is there twice.")
    reader.feature_names_in_ = found


def _numbers(dense: DenseModel, y: np.ndarray, weights: np.ndarray, loss: Loss) -> Target:
    check_target(y)
    outputs = np.ascontiguousarray(y.T) if y.ndim == 2 else y[None]
    if len(outputs) != len(dense.coef):
        raise ValueError(f"y has {len(outputs)} columns, and the model has coefficients for {len(dense.coef)}.")
    loss.check_target(outputs[:, weights > 0])
    return Target(outputs, loss, len(outputs))


def _classes(dense: DenseModel, y: np.ndarray, weights: np.ndarray, loss: Loss) -> tuple[Target, np.ndarray]:
    """Classes coded as the loss wants them, in the order of the model's scores."""
    classes = np.unique(y) if dense.classes is None else dense.classes
    outputs = len(dense.coef)
    if len(classes) != (2 if outputs == 1 else outputs) or outputs == 2:
        raise ValueError(
            f"y has {len(classes)} classes, and there are {outputs} rows of coefficients; there must be one row for "
            "two classes and else one for each."
        )
    strange = np.setdiff1d(y, classes)
    if len(strange):
        raise ValueError(f"y holds the class {plain(strange[0])!r}, which the model does not know.")
    codes = np.searchsorted(classes, y)
    if len(np.unique(codes[weights > 0])) < 2:
        raise ValueError("All rows that have weight are of one class; at least two classes are needed.")
    loss = loss.for_classes(len(classes))
    target = coded(codes, len(classes), joint=loss.joint)
    loss.check_target(target)
    return Target(target, loss, outputs), classes


def _times(reader: Reader, method: str, confidence: Any, repeats: Any) -> int:
    """How many draws to keep the best of."""
    share = ParameterChecks(type(reader).__name__).number("confidence", confidence, positive=True)
    if share >= 1:
        raise ValueError(
            ParameterChecks(type(reader).__name__).message("confidence", "a float in the range (0, 1)", confidence)
        )
    if repeats is not None:
        ParameterChecks(type(reader).__name__).count("repeats", repeats)
        if method == "truncate" and repeats > 1:
            raise ValueError("'repeats' is for methods that draw; 'truncate' gives the same every time.")
        return int(repeats)
    return 1 if method == "truncate" else max(1, math.ceil(-math.log2(1.0 - share)))


def _random_numbers(reader: Reader, random_state: Any) -> np.random.Generator | np.random.RandomState:
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    wanted = "an int in the range [0, inf), a numpy Generator or RandomState, or None"
    if isinstance(random_state, bool) or not isinstance(random_state, numbers.Integral):
        raise TypeError(ParameterChecks(type(reader).__name__).message("random_state", wanted, random_state))
    if random_state < 0:
        raise ValueError(ParameterChecks(type(reader).__name__).message("random_state", wanted, random_state))
    return np.random.default_rng(int(random_state))
