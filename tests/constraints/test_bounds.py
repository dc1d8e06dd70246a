"""Bounds on the coefficients: kept by every model, and judged by conditions for an optimum and by SciPy."""

import numpy as np
import pandas as pd
import pytest
from constraint_judges import (
    estimator,
    least,
    slopes_of,
    uneven,
)
from limited_problems import FORMATS, K, case, case_null
from scipy.optimize import nnls

from pauca import PaucaWarning, SparseRegressor, Stop
from problems import METHODS, ar_problem

# Bounds: the conditions for an optimum, and SciPy's own.


@pytest.mark.filterwarnings("ignore:k=. features were requested")
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", ["squared_error", "log_loss", "poisson"])
def test_bounded_models_satisfy_the_conditions_for_an_optimum(loss, method, kind):
    """The slope is zero along free coefficients and pushes outward at active bounds."""
    c = case(loss)
    low, high = c.ends()
    held = 0
    model = estimator(loss, k=7, method=method, bounds=c.constraints["bounds"]["bounds"]).fit(FORMATS[kind](c.X), c.y)
    for one in model.path_:
        along, shift = slopes_of(loss, c.X, c.y, one)
        w, a, b = np.ravel(one.coef), low[one.support], high[one.support]
        at_low, at_high = np.isclose(w, a, rtol=1e-9, atol=0), np.isclose(w, b, rtol=1e-9, atol=0)
        at_low |= (w == 0) & (a == 0)
        at_high |= (w == 0) & (b == 0)
        assert abs(shift) < 1e-5
        assert np.all(np.abs(along[~at_low & ~at_high]) < 1e-5)
        assert np.all(along[at_low] > -1e-5)
        assert np.all(along[at_high] < 1e-5)
        held += np.count_nonzero(at_low | at_high)
        best = least(loss, c.X, c.y, one.support, lower=low, upper=high)
        assert one.objective == pytest.approx(best, rel=1e-6)
    assert held > 0


@pytest.mark.parametrize("method", METHODS)
def test_bounded_absolute_loss_is_within_its_accuracy_of_the_linear_program(method):
    c = case("absolute_error")
    low, high = c.ends()
    for one in (
        estimator("absolute_error", k=K, method=method, bounds=c.constraints["bounds"]["bounds"]).fit(c.X, c.y).path_
    ):
        best = least("absolute_error", c.X, c.y, one.support, lower=low, upper=high)
        assert best * (1 - 1e-9) <= one.objective <= best + 1e-3 * case_null(c)


@pytest.mark.filterwarnings("ignore:k=. features were requested")
def test_coefficients_without_sign_equal_nnls():
    for seed in range(10):
        X, y = ar_problem(50, 8, 4, rho=0.5, seed=seed)
        y = y if np.any((X - X.mean(axis=0)).T @ y > 0) else -y
        model = SparseRegressor(k=4, bounds=(0, None)).fit(X, y)
        assert model.k_ > 0
        coef, residual = nnls((X - X.mean(axis=0))[:, model.support_], y - y.mean())
        assert model.objective_ == pytest.approx(0.5 * residual**2 / 50, rel=1e-9)
        np.testing.assert_allclose(model.coef_[model.support_], coef, rtol=1e-6, atol=1e-8)
        assert np.all(model.coef_ >= 0)


def test_bounds_are_kept_to_the_last_digit():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((30, 3))
        bound = rng.uniform(0.1, 1.5)
        model = SparseRegressor(k=3, bounds=(-bound, bound)).fit(X, X @ [2.0, -2, 2] + 0.1 * rng.standard_normal(30))
        assert np.abs(model.coef_).max() <= bound


def test_wide_bounds_change_nothing():
    X, y, scale = uneven("squared_error", seed=4)
    plain = SparseRegressor(k=4).fit(X, y)
    for bounds in ((-1e9, 1e9), (None, None), {}, {3: (None, None)}, (-np.inf, np.inf)):
        wide = SparseRegressor(k=4, bounds=bounds).fit(X / scale, y)
        assert wide.support_.tolist() == plain.support_.tolist()
        np.testing.assert_allclose(wide.coef_, plain.coef_ * scale, rtol=1e-6)


def test_bounds_of_zero_width_keep_a_column_out():
    X, y, _ = uneven("squared_error", seed=2)
    out = SparseRegressor(k=3).fit(X, y).support_.tolist()[:2]
    model = SparseRegressor(k=3, bounds=dict.fromkeys(out, (0, 0))).fit(X, y)
    barred = SparseRegressor(k=3, never=out).fit(X, y)
    np.testing.assert_allclose(model.coef_, barred.coef_, rtol=1e-6)
    words = (
        "k=3 features were requested, but the search ended at 0: no other lowers .* Loosen the bounds or ask for fewer"
    )
    with pytest.warns(PaucaWarning, match=words):
        nothing = SparseRegressor(k=3, bounds=(0, 0)).fit(X, y)
    assert nothing.k_ == 0
    assert nothing.stop_ is Stop.NO_GAIN


@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
def test_bounds_in_a_frame_by_name_and_for_the_second_class(loss):
    X, y, _ = uneven(loss, seed=3)
    names = [f"c{j}" for j in range(9)]
    free = estimator(loss, k=4).fit(X, y)
    j = int(free.support_[0])
    w = float(np.ravel(free.coef_)[j])
    bounds = {f"c{j}": (None, 0.25 * w) if w > 0 else (0.25 * w, None)}
    model = estimator(loss, k=4, always=[f"c{j}"], bounds=bounds).fit(pd.DataFrame(X, columns=names), y)
    assert np.ravel(model.coef_)[j] == pytest.approx(0.25 * w, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_bounds_on_several_outputs_classes_and_groups(method):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 6))
    W = rng.normal(0, 1, (6, 3))
    low, high = np.zeros(6), np.full(6, 0.4)
    Y = X @ W + rng.standard_normal((90, 3))
    groups = list("aabbcc")
    for target, loss in ((Y, "squared_error"), (np.argmax(Y, axis=1), "log_loss")):
        for g in (None, groups):
            model = estimator(loss, k=2, feature_groups=g, bounds=(0, 0.4), method=method).fit(X, target)
            assert model.coef_.shape == (3, 6)
            assert model.coef_.min() >= 0
            assert model.coef_.max() <= 0.4 * (1 + 1e-12)
            assert np.count_nonzero(model.coef_ == 0) > 0
            best = least(loss, X, target, model.support_, lower=low, upper=high)
            assert model.objective_ == pytest.approx(best, rel=1e-6)
