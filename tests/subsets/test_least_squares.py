"""Every closed form of the subset equals a refit from scratch, with and without ridge, intercept and weights."""

import itertools

import numpy as np
import pytest

from pauca.design import make_design
from pauca.objectives import LeastSquares
from pauca.solvers.factorisation import InverseFactor
from pauca.subsets.least_squares import LeastSquaresSubset
from problems import DESIGNS, ar_problem, integers, objective

SETTINGS = list(itertools.product([0.0, 3.0], [True, False], [True, False]))


def make_subset(X, y, ridge, center, weighted, form=np.ascontiguousarray):
    weights = np.arange(len(y)) % 4.0 if weighted else np.ones(len(y))
    design = make_design(form(X), weights / weights.sum(), center=center)
    subset = LeastSquaresSubset.start(LeastSquares.of(design, y, ridge=ridge, center=center))
    return subset, lambda S: objective(X, y, S, weights=weights, ridge=ridge, center=center)


@pytest.mark.parametrize(("ridge", "center", "weighted"), SETTINGS)
def test_additions_removals_and_swaps(ridge, center, weighted):
    X, y = integers()
    subset, Q = make_subset(X, y, ridge, center, weighted)
    for feature in (4, 7, 1, 10):
        subset.add(feature)
    subset.drop(7)
    S = subset.support
    assert subset.value == pytest.approx(Q(S), rel=1e-10)
    for j in set(range(12)) - set(S):
        assert subset.decrease(j) == pytest.approx(Q(S) - Q([*S, j]), rel=1e-8)
    refit = [Q([s for s in S if s != i]) - Q(S) for i in S]
    np.testing.assert_allclose(subset.removal_costs("refit"), refit, rtol=1e-8)
    swaps = {(i, j): Q(S) - Q([s for s in S if s != i] + [j]) for i in S for j in set(range(12)) - set(S)}
    best = max(swaps, key=swaps.get)
    found = subset.best_swap()
    assert swaps[best] > 0
    assert (found.out, found.into) == best
    assert found.decrease == pytest.approx(swaps[best], rel=1e-8)


@pytest.mark.parametrize(("ridge", "center", "weighted"), SETTINGS)
def test_zero_cost_is_the_increase_before_refitting(ridge, center, weighted):
    X, y = integers()
    subset, _ = make_subset(X, y, ridge, center, weighted)
    for feature in (4, 7, 1):
        subset.add(feature)
    v = subset.objective.design.weights
    w = np.zeros(12)
    w[subset.support] = subset.coef / subset.objective.design.spread[subset.support]

    def Q(w):
        error = y - X @ w
        error = error - v @ error if center else error
        return 0.5 * v @ error**2 + 0.5 * ridge * w @ w

    expected = [Q(np.where(np.arange(12) == i, 0.0, w)) - Q(w) for i in subset.support]
    np.testing.assert_allclose(subset.removal_costs("zero"), expected, rtol=1e-8)


@pytest.mark.parametrize(("ridge", "center", "weighted"), SETTINGS)
def test_rules_rank_candidates_by_what_they_say(ridge, center, weighted):
    X, y = integers()
    subset, Q = make_subset(X, y, ridge, center, weighted)
    for feature in (4, 7):
        subset.add(feature)
    v = subset.objective.design.weights
    S = subset.support
    w = subset.coef / subset.objective.design.spread[S]
    error = y - X[:, S] @ w
    error = error - v @ error if center else error
    Z = X - v @ X if center else X
    slope = np.abs(Z.T @ (v * error))
    others = [j for j in range(12) if j not in S]
    gain = slope**2 / (v @ Z**2 + ridge)
    assert subset.best_addition("gradient") == max(others, key=lambda j: slope[j])
    assert subset.best_addition("objective") == max(others, key=lambda j: gain[j])
    assert subset.best_addition("refit") == min(others, key=lambda j: Q([*S, j]))


@pytest.mark.parametrize("form", DESIGNS)
def test_an_exchange_of_hundreds_of_moves_keeps_its_accuracy(form):
    X, y = integers()
    subset, Q = make_subset(X, y, 0.0, True, True, DESIGNS[form])
    rng = np.random.default_rng(0)
    for feature in rng.permutation(12)[:5]:
        subset.add(int(feature))
    for _ in range(150):
        subset.best_addition("refit")
        subset.drop(int(rng.choice(subset.support)))
        subset.add(int(rng.choice([j for j in range(12) if j not in subset.support])))
    S = subset.support
    assert subset.value == pytest.approx(Q(S), rel=1e-10)
    for j in set(range(12)) - set(S):
        assert subset.decrease(j) == pytest.approx(Q(S) - Q([*S, j]), rel=1e-7)


def test_cheapest_removals_are_those_of_one_at_a_time():
    X, y = integers()
    subset, _ = make_subset(X, y, 0.0, True, False)
    for feature in range(8):
        subset.add(feature)
    expected, step = [], subset.copy()
    for _ in range(4):
        costs = step.removal_costs("refit")
        expected.append(step.support[int(np.argmin(costs))])
        step.drop(expected[-1])
    assert subset.cheapest_removals(subset.size - 4, subset.limits) == expected
    assert subset.support == list(range(8))


def test_a_copy_goes_its_own_way():
    X, y = integers()
    subset, Q = make_subset(X, y, 0.0, True, False)
    for feature in (3, 5):
        subset.add(feature)
    twin = subset.copy()
    twin.best_swap()
    twin.drop(3)
    twin.add(8)
    assert (subset.support, twin.support) == ([3, 5], [5, 8])
    assert subset.value == pytest.approx(Q([3, 5]), rel=1e-12)
    assert subset.decrease(8) == pytest.approx(Q([3, 5]) - Q([3, 5, 8]), rel=1e-9)
    assert twin.value == pytest.approx(Q([5, 8]), rel=1e-12)


@pytest.mark.parametrize("kept_bytes", [1 << 26, 2000])
@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_subsets_that_share_kept_models_do_not_disturb_each_other(ridge, kept_bytes, monkeypatch):
    monkeypatch.setattr("pauca.subsets.least_squares.KEPT_BYTES", kept_bytes)
    X, y = integers()
    first, Q = make_subset(X, y, ridge, True, True)
    rng = np.random.default_rng(1)
    subsets = [first, first.restarted(), first.restarted()]

    def move(subset, ask):
        if ask:
            subset.best_addition("refit")
        if subset.size > 5 or (subset.size and rng.random() < 0.3):
            subset.drop(int(rng.choice(subset.support)))
        else:  # few features, so that subsets often come to the same models
            subset.add(int(rng.choice([j for j in range(8) if j not in subset.support])))

    for turn in range(120):
        subset = subsets[rng.integers(len(subsets))]
        move(subset, turn % 3)
        with subset.trial():
            move(subset, turn % 2)
        if turn % 10 == 0:
            subsets[rng.integers(1, 3)] = subset.copy()
        for one in subsets:
            S = one.support
            assert one.value == pytest.approx(Q(S), rel=1e-10)
            assert one.snapshot().support == tuple(S)
            assert one.decrease(9) == pytest.approx(Q(S) - Q([*S, 9]), rel=1e-8)


def test_inverse_factor_appends_and_deletes():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 12))
    H = A.T @ A
    factor, order = InverseFactor(), []
    for j in (5, 2, 9, 0, 7, 11):
        factor, weights, schur = factor.appended(H[order, j], H[j, j], 0.0)
        if order:
            np.testing.assert_allclose(weights, np.linalg.solve(H[np.ix_(order, order)], H[order, j]), rtol=1e-9)
            assert schur == pytest.approx(H[j, j] - H[order, j] @ weights)
        order.append(j)
    for position in (2, 4, 0):
        factor = factor.without(position)
        del order[position]
        inverse = np.linalg.inv(H[np.ix_(order, order)])
        np.testing.assert_allclose(factor.inverse(), inverse, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(factor.inverse_diagonal(), np.diag(inverse), rtol=1e-9)
        np.testing.assert_allclose(factor.inverse_column(1), inverse[1], rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(factor.solve(H[order, 1]), inverse @ H[order, 1], rtol=1e-8, atol=1e-10)


def test_a_subset_can_be_emptied_and_filled_again():
    X, y = integers()
    subset, Q = make_subset(X, y, 0.0, True, False)
    for ask in (False, True):
        subset.add(3)
        subset.add(8)
        if ask:
            subset.best_swap()
        subset.drop(3)
        subset.drop(8)
        assert subset.value == subset.null_value == pytest.approx(Q([]))
        assert subset.best_swap() is None
    subset.add(5)
    assert subset.value == pytest.approx(Q([5]), rel=1e-12)
    assert subset.decrease(2) == pytest.approx(Q([5]) - Q([2, 5]), rel=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(30))
def test_the_screened_table_misses_no_exchange(seed, ridge):
    rng = np.random.default_rng(seed)
    X, y = ar_problem(40, 30, 5, rho=rng.choice([0.0, 0.5, 0.95]), snr=1.0, seed=seed)
    subset, Q = make_subset(X, y, ridge, True, False)
    for feature in rng.choice(30, 4, replace=False):
        subset.add(int(feature))
    for _ in range(6):
        S = subset.support
        best = Q(S) - min(Q([s for s in S if s != i] + [j]) for i in S for j in set(range(30)) - set(S))
        found = subset.best_swap()
        if found is None:
            assert best <= 1e-9 * subset.value
            return
        assert found.decrease == pytest.approx(best, rel=1e-7)
        subset.drop(found.out)
        subset.add(found.into)


def test_a_trial_leaves_no_trace():
    X, y = integers()
    subset, Q = make_subset(X, y, 0.0, True, False)
    subset.add(4)
    subset.best_addition("refit")
    with subset.trial():
        for feature in (1, 2, 7):
            subset.add(feature)
        assert subset.value == pytest.approx(Q([1, 2, 4, 7]))
    assert subset.support == [4]
    subset.add(9)
    assert subset.value == pytest.approx(Q([4, 9]), rel=1e-12)
    assert subset.decrease(1) == pytest.approx(Q([4, 9]) - Q([1, 4, 9]), rel=1e-9)
    subset.drop(4)
    assert subset.value == pytest.approx(Q([9]), rel=1e-12)


@pytest.mark.parametrize("rule", ["objective", "gradient", "refit"])
def test_a_copy_is_barred_though_a_ridge_leaves_it_the_best_score(rule):
    X, _ = integers()
    X = X[:, :4] / X[:, :4].std(axis=0)
    X[:, 1] = X[:, 0]
    subset, _ = make_subset(X, 9 * X[:, 0] + X[:, 3], 1.0, True, False)
    subset.add(0)
    assert subset._find_addition(rule) == 3
