"""Fits on a given support, judged by scikit-learn, SciPy and certificates of optimality on the same columns."""

import itertools
import warnings

import numpy as np
import pytest
from judges import (
    LOSSES,
    PIECEWISE,
    SMOOTH,
    Kind,
    LogCosh,
    linear_program,
    objective,
    refit,
    scores,
    shares,
)
from refit_problems import SUPPORT, fitted, table
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, PoissonRegressor, QuantileRegressor
from sklearn.svm import LinearSVC

from pauca import PaucaWarning, SparseClassifier, SparseRegressor
from pauca.design import make_design
from pauca.losses import (
    AbsoluteError,
    Hinge,
    Huber,
    LogLoss,
    Multinomial,
    Poisson,
    Quantile,
    SquaredError,
)
from pauca.objectives import Restricted, Rows, SmoothObjective, warm_start_near
from pauca.solvers.newton import Accuracy, minimise
from pauca.subsets.smooth import SmoothSubset
from problems import DESIGNS

BOTH = list(itertools.product([True, False], [True, False]))


# Ridge, intercept, weights: every two of them in all combinations.
SETTINGS = [(0.0, True, True), (0.0, False, False), (0.05, True, False), (0.05, False, True)]


OWN = {"own": Kind(LogCosh(), "numbers")}


def weights_of(weighted, n=80):
    """A quarter of the rows without weight."""
    return np.arange(n) % 4.0 if weighted else None


def newton_decrement(kind, smooth, model, X, y, *, weights, ridge, center):
    """About how far Q is above its minimum on the support: ``g' H^-1 g / 2`` with H at least the true Hessian / 4."""
    v, y, a = shares(weights, len(X)), kind.coded(y), scores(model, X)
    y, a, X, v = y[..., v > 0], a[:, v > 0], X[v > 0], v[v > 0]
    Z = np.column_stack([X[:, SUPPORT], np.ones(len(X))]) if center else X[:, SUPPORT]
    penalty = np.append(np.full(3, ridge), 0.0)[: Z.shape[1]]
    coef = np.atleast_2d(model.coef_)[:, SUPPORT]
    coef = np.hstack([coef, np.zeros((len(coef), 1))])[:, : Z.shape[1]]
    gradient = (smooth.derivative(y, a) * v) @ Z + penalty * coef
    curvature = np.maximum(smooth.broad_curvature(y, a, v), smooth.curvature(y, a))
    total = 0.0
    for g, h in zip(gradient, curvature, strict=True):
        total += 0.5 * g @ np.linalg.solve((Z.T * (v * h)) @ Z + np.diag(penalty) + 1e-12 * np.eye(len(g)), g)
    return total


@pytest.mark.parametrize(
    ("ridge", "center", "weighted", "form"),
    [(*setting, form) for setting, form in zip(SETTINGS, ("chunks", "csr", "float32-F", "csc"), strict=True)],
)
@pytest.mark.parametrize("name", [*LOSSES, *OWN])
def test_the_gradient_vanishes_on_the_support_and_the_objective_is_as_defined(name, ridge, center, weighted, form):
    kind = (LOSSES | OWN)[name]
    X, y = table(kind)
    weights = weights_of(weighted)
    model = fitted(kind, X, y, weights=weights, form=DESIGNS[form], ridge=ridge, fit_intercept=center)
    loss, smooth = kind.tuned(y, weights, center=center)
    Q = objective(kind, loss, y, scores(model, X), model.coef_, weights, ridge)
    assert model.objective_ == pytest.approx(Q, rel=1e-10)
    if name in PIECEWISE and not ridge:  # exact, and not the minimum of the envelope
        least = linear_program(loss, X[:, SUPPORT], y, weights=weights, center=center)
        assert model.objective_ == pytest.approx(least, rel=1e-9)
        return
    gap = newton_decrement(kind, smooth, model, X, y, weights=weights, ridge=ridge, center=center)
    assert gap <= 1e-9 * model.path_[0].objective


@pytest.mark.parametrize(("ridge", "center", "weighted"), SETTINGS)
@pytest.mark.parametrize("name", [*SMOOTH, *OWN])
def test_scipy_finds_nothing_lower(name, ridge, center, weighted):
    kind = (SMOOTH | OWN)[name]
    X, y = table(kind, seed=1)
    weights = weights_of(weighted)
    model = fitted(kind, X, y, weights=weights, ridge=ridge, fit_intercept=center)
    loss = kind.tuned(y, weights)[0]
    value, a = refit(kind, X, y, SUPPORT, weights=weights, ridge=ridge, center=center, loss=loss)
    assert model.objective_ <= value * (1 + 1e-8)
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    if ridge:
        some = shares(weights, 80) > 0
        ours = scores(model, X)[:, some]
        if kind.loss.joint:  # all scores of a row may be shifted
            ours, a = ours - ours.mean(axis=0), a - a.mean(axis=0)
        np.testing.assert_allclose(ours, a, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "ridge", "center", "weighted"),
    [
        *((name, *setting) for name in ("log_loss", "multinomial", "poisson") for setting in SETTINGS),
        # LinearSVC penalises its intercept and cannot do without a penalty; SciPy judges the rest.
        *(("squared hinge", 0.05, False, weighted) for weighted in (True, False)),
    ],
)
def test_scikit_learn_finds_the_same_model(name, ridge, center, weighted):
    """Its objective is ours times a constant: sums of C times the loss, or half a mean deviance."""
    kind = SMOOTH[name]
    X, y = table(kind, seed=2)
    weights = weights_of(weighted)
    model = fitted(kind, X, y, weights=weights, ridge=ridge, fit_intercept=center)
    strength = 1 / (80 * ridge) if ridge else np.inf
    each = 80 * shares(weights, 80)
    if name == "poisson":
        judge = PoissonRegressor(alpha=ridge, fit_intercept=center, tol=1e-8, max_iter=10_000, solver="newton-cholesky")
    elif name == "squared hinge":
        judge = LinearSVC(C=strength / 2, fit_intercept=False, tol=1e-10, max_iter=10_000, dual=False)
    else:
        judge = LogisticRegression(C=strength, fit_intercept=center, tol=1e-10, max_iter=10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what scikit-learn says of its line searches
        judge.fit(X[:, SUPPORT], y, sample_weight=each)
    a = np.atleast_2d(judge.coef_) @ X[:, SUPPORT].T + np.reshape(judge.intercept_, (-1, 1))
    value = objective(kind, kind.loss, y, a, judge.coef_, weights, ridge)
    assert model.objective_ <= value * (1 + 1e-9)
    assert model.objective_ == pytest.approx(value, rel=1e-5)
    if not kind.loss.joint:
        np.testing.assert_allclose(np.ravel(model.coef_)[SUPPORT], np.ravel(judge.coef_), atol=2e-3)
    if name in ("log_loss", "multinomial"):
        np.testing.assert_allclose(model.predict_proba(X), judge.predict_proba(X[:, SUPPORT]), atol=2e-3)
    elif name == "poisson":
        np.testing.assert_allclose(model.predict(X), judge.predict(X[:, SUPPORT]), rtol=1e-3)


@pytest.mark.parametrize(
    ("accuracy", "center", "weighted"),
    [(0.03, True, True), (0.03, False, False), (1e-4, True, False), (1e-4, False, True)],
)
@pytest.mark.parametrize(
    "loss", [AbsoluteError, Hinge, *(lambda accuracy, q=q: Quantile(q, accuracy) for q in (0.1, 0.5, 0.9))]
)
def test_piecewise_losses_are_within_their_accuracy_of_the_linear_program(loss, accuracy, center, weighted):
    loss = loss(accuracy=accuracy)
    kind = Kind(loss, "signs" if loss.classifies else "numbers")
    X, y = table(kind, seed=3)
    weights = weights_of(weighted)
    model = fitted(kind, X, y, weights=weights, fit_intercept=center)
    best = linear_program(loss, X[:, SUPPORT], y, weights=weights, center=center)
    null = model.path_[0].objective
    assert best - 1e-9 <= model.objective_ <= best + accuracy * null
    found = objective(kind, loss, y, scores(model, X), model.coef_, weights)
    assert model.objective_ == pytest.approx(found, rel=1e-10)
    exact = linear_program(loss, np.zeros((80, 1)), y, weights=weights, center=center)
    assert exact * (1 - 1e-9) <= null <= exact * (1 + accuracy)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("center", "weighted"), BOTH)
def test_quantile_regressor_agrees(level, center, weighted):
    kind = Kind(Quantile(level), "numbers")
    X, y = table(kind, seed=4)
    weights = weights_of(weighted)
    model = fitted(kind, X, y, weights=weights, fit_intercept=center)
    judge = QuantileRegressor(quantile=level, alpha=0, fit_intercept=center)
    judge.fit(X[:, SUPPORT], y, sample_weight=shares(weights, 80))
    value = objective(kind, kind.loss, y, judge.predict(X[:, SUPPORT])[None], 0.0, weights)
    assert value - 1e-9 <= model.objective_ <= value + 1e-3 * model.path_[0].objective


@pytest.mark.parametrize(("center", "weighted"), BOTH)
@pytest.mark.parametrize("name", [name for name in LOSSES if "," not in name])
def test_the_dual_certifies_what_is_left_to_gain(name, center, weighted):
    """``Q(w) >= -sum v L*(y, t) - |X' v t|^2 / (2 ridge)`` for every t (with mean zero, if there is an intercept)."""
    kind, ridge = LOSSES[name], 0.05
    X, y = table(kind, seed=5)
    weights = weights_of(weighted)
    model = fitted(kind, X, y, weights=weights, ridge=ridge, fit_intercept=center)
    loss, smooth = kind.tuned(y, weights, center=center)
    v, a, coded = shares(weights, 80), scores(model, X), kind.coded(y)
    t = smooth.derivative(coded, a)
    conjugate = loss.conjugate(coded, t)
    assert np.all(np.isfinite(conjugate))
    dual = -np.sum(conjugate @ v) - np.sum(((t * v) @ X[:, SUPPORT]) ** 2) / (2 * ridge)
    left = np.abs(np.atleast_1d(model.intercept_) * (t @ v)).sum() if center else 0.0
    assert left <= 1e-5 * model.objective_
    assert -left - 1e-9 <= model.objective_ - dual <= kind.accuracy * model.path_[0].objective + left + 1e-9


@pytest.mark.parametrize("name", [*LOSSES, *OWN])
def test_weights_are_repetitions_and_rows_without_weight_may_be_anything(name):
    kind = (LOSSES | OWN)[name]
    X, y = table(kind, seed=6)
    count = np.arange(80) % 4
    repeated = fitted(kind, np.repeat(X, count, axis=0), np.repeat(y, count, axis=0))
    X[count == 0] = np.array([1e9, -1e9, 1e12, 1e3, 1e9, 7.0]) * np.where(np.arange(20) % 2, 1, -1)[:, None]
    if kind.target in ("numbers", "pairs"):
        y[count == 0] = -1e12
    model = fitted(kind, X, y, weights=count)
    assert model.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    np.testing.assert_allclose(model.coef_, repeated.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, repeated.intercept_, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_the_form_of_the_data_does_not_matter(name):
    kind = LOSSES[name]
    X, y = table(kind, seed=7)
    expected = fitted(kind, X, y)
    for form in ("int8", "strided", "csr-float32") if name in SMOOTH else ("csc",):
        model = fitted(kind, X, y, form=DESIGNS[form])
        assert model.objective_ == pytest.approx(expected.objective_, rel=1e-9)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)


@pytest.mark.parametrize("name", SMOOTH)
def test_units_and_shifts_of_columns_do_not_matter(name):
    kind = SMOOTH[name]
    X, y = table(kind, seed=8)
    scale, shift = 10.0 ** np.array([-9, 6, 0, -6, 3, 9]), np.array([0, 1e3, -1e6, 30, 0, 1])
    expected = fitted(kind, X, y)
    model = fitted(kind, (X + shift) * scale, y)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-8)
    np.testing.assert_allclose(model.coef_ * scale, expected.coef_, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize(
    ("bounds", "ridge", "center"), [((0, None), 0.0, True), ((None, 0), 0.05, False), ((-0.05, 0.05), 0.0, True)]
)
@pytest.mark.parametrize("name", ["log_loss", "poisson", "huber", "squared hinge"])
def test_within_bounds_scipy_finds_nothing_lower(name, bounds, ridge, center):
    kind = SMOOTH[name]
    X, y = table(kind, seed=9)
    low, high = (-np.inf if bounds[0] is None else bounds[0]), (np.inf if bounds[1] is None else bounds[1])
    model = kind.estimator(k=6, always=list(range(6)), bounds=bounds, ridge=ridge, fit_intercept=center).fit(X, y)
    coef = np.ravel(model.coef_)
    assert np.all((coef >= low - 1e-15) & (coef <= high + 1e-15))
    at_low, at_high = np.abs(coef - low) <= 1e-15, np.abs(coef - high) <= 1e-15
    assert np.any(at_low | at_high)
    loss = kind.tuned(y)[0]

    def both(p):
        a = X @ p[:6] + center * p[6]
        slope = loss.derivative(y, a) / 80
        return loss.value(y, a).mean() + ridge / 2 * p[:6] @ p[:6], np.append(
            X.T @ slope + ridge * p[:6], center * slope.sum()
        )

    start = np.append(np.clip(0.0, low, high) * np.ones(6), 0.0)
    judge = minimize(both, start, jac=True, method="L-BFGS-B", bounds=[bounds] * 6 + [(None, None)], tol=1e-14)
    assert model.objective_ <= judge.fun * (1 + 1e-8)
    # A coefficient may leave its bound only where that would not help.
    gradient = both(np.append(coef, np.ravel(model.intercept_)))[1][:6]
    assert np.all(np.abs(gradient[~at_low & ~at_high]) <= 1e-5)
    assert np.all(gradient[at_low] >= -1e-7)
    assert np.all(gradient[at_high] <= 1e-7)


def test_bounds_are_kept_to_the_last_digit():
    X, y = table(SMOOTH["log_loss"], seed=9)
    for bound in (0.05, 0.1, 0.3, 1 / 3):
        coef = SparseClassifier(k=6, always=list(range(6)), bounds=(-bound / 3, bound)).fit(X, y).coef_
        assert -bound / 3 <= coef.min()
        assert coef.max() <= bound


# Faults that steps with guessed Hessians and bounds have had.


def zero_one_columns(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random((100, 2)) < 0.15, rng.standard_normal((100, 2))]).astype(float)
    y = X @ [4.0, -3.0, 1.5, 1.0] + rng.logistic(size=100) > 0
    return X, y


@pytest.mark.filterwarnings("ignore:The data are separable")
def test_what_is_called_exact_is_the_difference_of_two_fits():
    """Rows that are nearly certain have next to no curvature: a step that predicts nothing may go far."""
    for seed in range(12):
        X, y = zero_one_columns(seed)
        model = SparseClassifier(k=4, always=[0, 1, 2, 3]).fit(X, y)
        assert model.path_[4].importance_is_exact
        for j, importance in enumerate(model.path_[4].importance):
            kept = [i for i in range(4) if i != j]
            without = SparseClassifier(k=3, always=[0, 1, 2]).fit(X[:, kept], y)
            assert importance == pytest.approx(without.objective_ - model.objective_, abs=2e-6)


@pytest.mark.parametrize("start", [-10.0, -3.0, 3.0, 10.0])
@pytest.mark.parametrize("loss", [LogLoss(), Poisson(), Huber(1.0)])
def test_values_never_rise_from_step_to_step(loss, start):
    rng = np.random.default_rng(0)
    columns = np.vstack([np.ones(40), rng.standard_normal((2, 40))])
    y = np.where(rng.random(40) < 0.55, 1.0, -1.0) if loss.classifies else rng.poisson(2.0, 40).astype(float)
    problem = Restricted(loss, Rows(y[None], np.full(40, 1 / 40)), columns, np.full(3, 1e-8))
    values = []

    class Watched(Restricted):
        def gradient(self, coef, scores):
            values.append(self.value(coef, scores))
            return super().gradient(coef, scores)

    watched = Watched(loss, Rows(y[None], np.full(40, 1 / 40)), columns, np.full(3, 1e-8))
    found = minimise(watched, np.array([[start, 0.0, 0.0]]))
    assert found.converged
    assert np.all(np.diff(values) <= 1e-12 * values[0])
    assert found.value == pytest.approx(minimise(problem, np.zeros((1, 3))).value, rel=1e-9)


def test_a_border_completes_a_hessian():
    rng = np.random.default_rng(0)
    columns, y = rng.standard_normal((5, 30)), np.where(rng.random(30) < 0.5, 1.0, -1.0)
    problem = Restricted(LogLoss(), Rows(y[None], np.full(30, 1 / 30)), columns, np.full(5, 0.1))
    scores = rng.standard_normal((1, 30))
    problem.gradient(np.zeros((1, 5)), scores)
    whole = problem.hessian(scores, 0.0)
    places = np.array([0, 2, 3])
    np.testing.assert_allclose(problem.bordered(scores, whole[:, places[:, None], places], places), whole, rtol=1e-12)


def test_a_border_completes_the_hessian_of_a_joint_loss():
    rng = np.random.default_rng(0)
    columns, y = rng.standard_normal((5, 30)), rng.integers(0, 3, 30).astype(float)
    problem = Restricted(Multinomial(), Rows(y, np.full(30, 1 / 30)), columns, np.full(5, 0.1))
    scores = rng.standard_normal((3, 30))
    problem.gradient(np.zeros((3, 5)), scores)
    whole = problem.hessian(scores, 0.0)
    places = np.array([0, 2, 3])
    within = (np.arange(3)[:, None] * 5 + places).ravel()
    known = whole[:, within[:, None], within]
    np.testing.assert_allclose(problem.bordered(scores, known, places), whole, rtol=1e-10, atol=1e-14)


def test_the_warm_start_after_a_drop_is_the_minimum_of_squares():
    rng = np.random.default_rng(0)
    columns, y = rng.standard_normal((4, 30)), rng.standard_normal((2, 30))
    problem = Restricted(SquaredError(), Rows(y, np.full(30, 1 / 30)), columns, np.zeros(4))
    found = minimise(problem, np.zeros((2, 4)))
    for kept in ([0, 1, 3], [1, 2]):
        start = warm_start_near(found, np.arange(4), np.array(kept), free=0, curved=True)
        rest = minimise(
            Restricted(SquaredError(), Rows(y, np.full(30, 1 / 30)), columns[kept], np.zeros(len(kept))), start.coef * 0
        )
        np.testing.assert_allclose(start.coef, rest.coef, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 0.01])
@pytest.mark.parametrize("method", ["forward", "foba", "backward", "exchange"])
def test_within_bounds_a_mirror_image_says_something_new(method, ridge):
    rng = np.random.default_rng(0)
    x, other = rng.standard_normal((2, 60))
    X, y = np.column_stack([x, -x, other]), -2 * x + 0.1 * rng.standard_normal(60)
    model = SparseRegressor(k=1, bounds=(0, None), method=method, ridge=ridge).fit(X, y)
    assert model.support_.tolist() == [1]


def test_within_bounds_two_copies_reach_further_than_one():
    rng = np.random.default_rng(0)
    x, other = rng.standard_normal((2, 60))
    X, y = np.column_stack([x, other, x]), 2 * x + 0.1 * rng.standard_normal(60)
    model = SparseRegressor(k=2, bounds=(-1, 1)).fit(X, y)
    assert model.support_.tolist() == [0, 2]


def test_removals_do_not_depend_on_the_order_of_additions():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 6)) + rng.standard_normal((60, 1))
        y = np.where(X[:, 0] - X[:, 1] + rng.logistic(size=60) > 0, 1.0, -1.0)
        found = []
        for order in ([0, 1, 2, 3, 4, 5], [5, 3, 1, 0, 2, 4], [2, 4, 0, 5, 1, 3]):
            design = make_design(X, np.full(60, 1 / 60), center=True)
            subset = SmoothSubset.start(SmoothObjective.of(design, y[None], LogLoss()))
            for unit in order:
                subset.add(unit)
            found.append(subset.cheapest_removal("refit"))
        assert len({unit for unit, _ in found}) == 1
        np.testing.assert_allclose([cost for _, cost in found], found[0][1], rtol=1e-6, atol=1e-12)


def test_a_refit_that_ends_early_is_told_of(monkeypatch):
    monkeypatch.setattr("pauca.subsets.fit_cache.EXACT", Accuracy(most_steps=1))
    X, y = zero_one_columns(0)
    with pytest.warns(PaucaWarning, match="did not converge"):
        SparseClassifier(k=2, method="forward").fit(X, y)


@pytest.mark.filterwarnings("ignore:The data are separable")
def test_multinomial_within_bounds_against_a_general_solver():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((80, 2))
        y = np.argmax(X @ rng.standard_normal((2, 3)) + rng.gumbel(size=(80, 3)), axis=1)
        model = SparseClassifier(k=2, bounds=(-0.3, 0.5)).fit(X, y)

        def value(w, X=X, y=y):
            scores = X @ w[:6].reshape(2, 3) + w[6:]
            return float(np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(80), y]))

        judge = minimize(value, np.zeros(9), bounds=[(-0.3, 0.5)] * 6 + [(None, None)] * 3, tol=1e-12)
        assert model.objective_ == pytest.approx(judge.fun, abs=1e-6)
