"""Laws that hold for every design and every method. A new design or method is under them by one row in problems.py."""

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, Ridge

from pauca import SparseRegressor
from pauca.methods import Backward, Exact, Exchange, FoBa, Forward, Replacement
from problems import DESIGNS, METHODS, ar_problem, integers, objective

VARIANTS = [
    Forward(),
    Forward(rule="gradient"),
    Forward(rule="refit"),
    Backward(),
    Backward(removal="zero"),
    *(
        FoBa(rule=rule, removal=removal, compare=compare)
        for rule, removal, compare in itertools.product(
            ["objective", "gradient", "refit"], ["refit", "zero"], ["each", "cumulative", "smallest"]
        )
    ),
    Exchange(),
    Exact(),
    Exchange(scouts=(), detour=0),
    Forward(rule="functional", min_line_gain=1e-3),
    FoBa(compare="fixed", removal_tol=1e-3),
    Replacement(),
    Replacement(full=False),
]


def same_path(a, b, rtol=1e-9):
    assert a.moves == b.moves
    assert a.sizes == b.sizes
    for one, other in zip(a, b, strict=True):
        np.testing.assert_array_equal(one.support, other.support)
        np.testing.assert_allclose(one.coef, other.coef, rtol=rtol)
        assert one.intercept == pytest.approx(other.intercept, rel=1e-8, abs=1e-8)
        assert one.objective == pytest.approx(other.objective, rel=1e-10)


def of_any_form(X, y, method, fit_intercept, weighted):
    weights = np.arange(60) % 4 if weighted else None
    return SparseRegressor(k=8, method=method, fit_intercept=fit_intercept).fit(X, y, weights).path_


@cache
def of_floats(*settings):
    return of_any_form(*integers(), *settings)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", DESIGNS)
def test_the_form_of_the_data_does_not_matter(form, method, fit_intercept, weighted):
    X, y = integers()
    same_path(
        of_any_form(DESIGNS[form](X), y, method, fit_intercept, weighted), of_floats(method, fit_intercept, weighted)
    )


@pytest.mark.parametrize("ridge", [0.0, 2.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("method", VARIANTS, ids=repr)
def test_every_model_is_optimal_on_its_support(method, fit_intercept, ridge):
    X, y = integers()
    weights = np.arange(60) % 4.0
    model = SparseRegressor(k=7, method=method, ridge=ridge, fit_intercept=fit_intercept).fit(X, y, weights)
    v = weights / weights.sum()
    variance = v @ (X - fit_intercept * (v @ X)) ** 2
    for m in model.path_:
        error, penalty = X[:, m.support] @ m.coef + m.intercept - y, ridge * variance[m.support]
        gradient = X[:, m.support].T @ (v * error) + penalty * m.coef
        np.testing.assert_allclose(gradient, 0, atol=1e-9 * np.abs(y).max())
        assert m.objective == pytest.approx(0.5 * v @ error**2 + 0.5 * penalty @ m.coef**2, rel=1e-10)
        Z, options = X / np.sqrt(variance), {"weights": weights, "ridge": ridge, "center": fit_intercept}
        expected = [objective(Z, y, np.delete(m.support, i), **options) - m.objective for i in range(m.size)]
        np.testing.assert_allclose(m.importance, expected, rtol=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 2.0])
@pytest.mark.parametrize("method", METHODS)
def test_scikit_learn_finds_the_same_coefficients_on_the_support(method, ridge):
    X, y = integers()
    weights = 1 + np.arange(60) % 4.0
    model = SparseRegressor(k=5, method=method, ridge=ridge, standardize=False).fit(X, y, weights)
    judge = LinearRegression() if ridge == 0 else Ridge(alpha=ridge * weights.sum(), solver="cholesky")
    judge.fit(X[:, model.support_], y, sample_weight=weights)
    np.testing.assert_allclose(model.coef_[model.support_], judge.coef_, rtol=1e-8)
    assert model.intercept_ == pytest.approx(judge.intercept_, rel=1e-8)


@pytest.mark.parametrize("method", VARIANTS, ids=repr)
def test_sizes_moves_and_objectives_agree(method):
    X, y = ar_problem(80, 20, 5, seed=3)
    path = SparseRegressor(k=6, method=method).fit(X, y).path_
    assert path.sizes == list(range(7))
    support = set(range(20)) if isinstance(method, Backward) else set()
    visited = {len(support): [objective(X, y, support)]}
    for action, *features in path.moves:
        before = objective(X, y, support)
        sets = [{f} if isinstance(f, int) else set(f) for f in features]
        if action == "add":
            assert not support & sets[0]
            support |= sets[0]
        elif action == "drop":
            support -= sets[0]
        else:
            assert sets[0] <= support
            assert not sets[1] & support
            support = support - sets[0] | sets[1]
        after = objective(X, y, support)
        assert after > before if action == "drop" else after < before
        visited.setdefault(len(support), []).append(after)
    for model in path:
        assert np.count_nonzero(model.coef) == model.size
        if model.size:
            assert model.objective == pytest.approx(min(visited[model.size]), rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_repetitions(method):
    X, y = integers()
    repeats = np.arange(60) % 3
    model = SparseRegressor(k=8, method=method)
    same_path(
        model.fit(X, y, sample_weight=repeats).path_,
        model.fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats)).path_,
    )


@pytest.mark.parametrize("method", METHODS)
def test_renaming_columns_renames_the_answer(method):
    X, y = ar_problem(70, 15, 4, seed=1)
    order = np.random.default_rng(0).permutation(15)
    model = SparseRegressor(k=6, method=method)
    plain = model.fit(X, y).path_
    renamed = model.fit(X[:, order], y).path_
    for size in range(1, 7):
        assert set(order[renamed[size].support]) == set(plain[size].support)


@pytest.mark.parametrize("method", METHODS)
def test_units_of_columns_and_target_do_not_matter(method):
    X, y = ar_problem(60, 14, 4, seed=5)
    scale = 10.0 ** np.linspace(-150, 150, 14)
    plain = SparseRegressor(k=6, method=method).fit(X, y)
    scaled = SparseRegressor(k=6, method=method).fit(X * scale, 1e3 * y - 7)
    assert scaled.path_.moves == plain.path_.moves
    np.testing.assert_allclose(scaled.coef_ * scale, 1e3 * plain.coef_, rtol=1e-9)


@pytest.mark.parametrize("form", ["C", "F", "float32", "csc"])
@pytest.mark.parametrize("method", METHODS)
def test_shifts_of_columns_do_not_matter(method, form):
    X, y = integers(n=200)
    shift = np.where(np.arange(12) % 2, 1e8, -3e6) if form != "float32" else np.where(np.arange(12) % 2, 1e4, -3e3)
    plain = SparseRegressor(k=6, method=method).fit(X, y)
    shifted = SparseRegressor(k=6, method=method).fit(DESIGNS[form](X + shift), y)
    assert shifted.path_.moves == plain.path_.moves
    np.testing.assert_allclose(shifted.coef_, plain.coef_, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_ties_go_to_the_lowest_index(method):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    y = X @ [3.0, 2.0, 1.0] + rng.standard_normal(50)
    copies = np.column_stack([X, -X, X * 7])
    with pytest.warns(UserWarning, match="linear combinations"):
        model = SparseRegressor(k=3, method=method).fit(copies, y)
    assert model.support_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("method", ["forward", "backward", "exchange"])
def test_the_model_of_a_size_does_not_depend_on_k(method):
    X, y = ar_problem(60, 40, 8, rho=0.95, seed=2)
    long = SparseRegressor(k=20, method=method).fit(X, y).path_
    for k in (1, 2, 3, 5, 8, 13):
        short = SparseRegressor(k=k, method=method).fit(X, y).path_
        assert short.sizes == list(range(k + 1))
        for size in range(k + 1):
            np.testing.assert_array_equal(short[size].support, long[size].support)
            np.testing.assert_allclose(short[size].coef, long[size].coef, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 12),
    d=st.integers(1, 8),
    k=st.integers(1, 10),
    seed=st.integers(0, 10_000),
    method=st.sampled_from(METHODS),
    levels=st.integers(1, 5),
    ridge=st.sampled_from([0.0, 0.5]),
)
def test_any_small_problem_is_fitted(n, d, k, seed, method, levels, ridge):
    """Few levels make constant, repeated and dependent columns common."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, size=(n, d)).astype(float)
    y = rng.integers(0, 4, size=n).astype(float)
    model = SparseRegressor(k=k, method=method, ridge=ridge, standardize=False).fit(X, y)
    assert np.count_nonzero(model.coef_) <= model.k_ <= k
    for m in model.path_:
        assert np.all(np.isfinite(m.coef))
        if m.size and not ridge:
            assert np.linalg.matrix_rank(X[:, m.support] - X[:, m.support].mean(axis=0)) == m.size
        assert m.objective == pytest.approx(objective(X, y, m.support, ridge=ridge), rel=1e-6, abs=1e-12)
