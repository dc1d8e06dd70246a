"""Draws of few coefficients: probabilities, means and expectations against brute force and theorems."""

import numpy as np
import pytest
from dense_models import DRAWN, LOSSES, correlated, targets_of, weights_of
from judges import shares

from pauca import sparsify
from pauca.design import make_design
from pauca.losses import AbsoluteError, Hinge, LogLoss, Poisson, SquaredError, SquaredHinge
from pauca.sparsification.draws import TRUNCATIONS, draw, make_sampling
from pauca.sparsification.objective import SparsificationProblem


def uneven(seed, d=12, outputs=None):
    """Coefficients and moments over several orders of magnitude, with a zero and a constant column among them."""
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=d if outputs is None else (outputs, d)) * np.exp(rng.normal(size=d))
    moments = np.exp(rng.normal(size=d))
    coef[..., 3] = 0.0
    moments[5] = 0.0
    return coef, moments


# Draws.


@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("truncation", TRUNCATIONS)
def test_draws_are_sparse_vectors(truncation, outputs):
    coef, moments = uneven(0, outputs=outputs)
    drawn = draw(coef, moments, 4, truncation, np.random.default_rng(0))
    assert drawn.values.shape == (*coef.shape[:-1], len(drawn.support))
    assert np.all(np.diff(drawn.support) > 0)
    assert not {3, 5} & set(drawn.support.tolist())
    assert len(drawn.support) == 4 if truncation in {"systematic", "truncate"} else 1 <= len(drawn.support) <= 4


@pytest.mark.parametrize("k", [1, 2, 5, 9])
@pytest.mark.parametrize("truncation", DRAWN)
def test_inclusion_probabilities_and_means(truncation, k):
    coef, moments = uneven(k)
    sampling = make_sampling(coef, moments, k, truncation)
    rng = np.random.default_rng(k)
    counts, total, square = np.zeros((3, len(sampling.features)))
    times = 2500
    for _ in range(times):
        positions, factors = sampling.draw(rng)
        counts[positions] += 1
        total[positions] += factors
        square[positions] += factors**2
        assert truncation != "systematic" or len(positions) == k
    spread = np.sqrt(np.maximum(sampling.inclusion * (1 - sampling.inclusion), 1e-12) / times)
    assert np.all(np.abs(counts / times - sampling.inclusion) <= 4 * spread)
    mean = total / times
    error = np.sqrt(np.maximum(square / times - mean**2, 1e-18) / times)
    assert np.all(np.abs(mean - 1) <= 4.5 * np.maximum(error, 1e-9))


@pytest.mark.parametrize("k", [1, 3, 6, 10, 11])
def test_systematic_probabilities_are_capped_shares(k):
    coef, moments = uneven(20 + k)
    strength = np.abs(coef) * np.sqrt(moments)
    sampling = make_sampling(coef, moments, k, "systematic")
    inclusion = sampling.inclusion
    np.testing.assert_allclose(inclusion.sum(), min(k, 10))
    ratio = inclusion / strength[sampling.features]
    below = inclusion < 1
    if below.any():
        np.testing.assert_allclose(ratio[below], ratio[below][0])
        assert np.all(ratio[~below] <= ratio[below][0] * (1 + 1e-12))


def test_systematic_draws_whose_strata_end_with_features():
    """Chances of a half: every border of strata is one of features, and nothing reaches over."""
    sampling = make_sampling(np.ones(8), np.ones(8), 4, "systematic")
    rng = np.random.default_rng(0)
    for _ in range(50):
        positions, factors = sampling.draw(rng)
        np.testing.assert_array_equal(positions // 2, np.arange(4))
        np.testing.assert_allclose(factors, 2.0)


def test_truncation_keeps_the_strongest_and_the_lowest_of_equals():
    coef = np.array([1.0, -3.0, 2.0, 2.0, 2.0, 0.1])
    moments = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1e4])
    drawn = draw(coef, moments, 3, "truncate", np.random.default_rng(0))
    np.testing.assert_array_equal(drawn.support, [1, 2, 5])
    np.testing.assert_array_equal(drawn.values, [-3.0, 2.0, 0.1])


@pytest.mark.parametrize("truncation", TRUNCATIONS)
def test_scales_at_the_ends_of_the_range_do_not_matter(truncation):
    coef, moments = uneven(3)
    usual = draw(coef, moments, 4, truncation, np.random.default_rng(1))
    for scale, square in [(1e-250, 1e200), (1e250, 1e-200)]:
        other = draw(coef * scale, moments * square, 4, truncation, np.random.default_rng(1))
        np.testing.assert_array_equal(other.support, usual.support)
        np.testing.assert_allclose(other.values, usual.values * scale, rtol=1e-12)


@pytest.mark.parametrize("truncation", TRUNCATIONS)
def test_nothing_to_draw(truncation):
    for coef, moments in [(np.zeros(3), np.ones(3)), (np.ones(3), np.zeros(3))]:
        drawn = draw(coef, moments, 2, truncation, np.random.default_rng(0))
        assert len(drawn.support) == len(drawn.values) == 0


@pytest.mark.parametrize("truncation", TRUNCATIONS)
def test_a_single_feature_is_always_drawn_as_it_is(truncation):
    for coef, k in [([0.0, -2.0, 0.0], 3), ([1.0, 1.0, 1e-20], 2)]:
        w, moments = np.array(coef), np.ones(3)
        sampling = make_sampling(w, moments, k, truncation)
        assert np.all(np.isfinite(sampling.inclusion))
        drawn = draw(w, moments, k, truncation, np.random.default_rng(0))
        if k == 3 or truncation in {"systematic", "truncate"}:
            np.testing.assert_allclose(drawn.values, w[w**2 > 1e-9])
            np.testing.assert_array_equal(drawn.support, np.flatnonzero(w**2 > 1e-9))


@pytest.mark.parametrize("power", [0, 1, 4, 16])
def test_systematic_draws_of_strengths_of_any_range(power):
    rng = np.random.default_rng(power)
    for n, k in [(2, 1), (50, 49), (300, 7), (300, 150), (300, 299)]:
        coef = 10 ** (power * rng.uniform(-1, 1, n))
        sampling = make_sampling(coef, np.ones(n), k, "systematic")
        np.testing.assert_allclose(sampling.inclusion.sum(), k, rtol=1e-9)
        for _ in range(20):
            assert len(sampling.draw(rng)[0]) == k
        X = rng.normal(size=(5, len(sampling.features)))
        moments = (X**2).sum(axis=0)
        variance = sampling.variance(moments, lambda coef, X=X: iter([X @ coef]))
        bound = sampling.variance_bound(moments)
        assert 0 <= variance.scores <= bound.scores * (1 + 1e-9)
        assert 0 <= variance.weights <= bound.weights * (1 + 1e-9)


# What draws cost.


def pivotal_covariance(inclusion):
    """Covariance of the indicators of ordered pivotal sampling, duel by duel."""
    d = len(inclusion)
    covariance, left = np.zeros((d, d)), 0.0
    mean, square = np.zeros(d), np.zeros((d, d))
    for j in np.flatnonzero(inclusion < 1):
        one = np.eye(d)[j]
        difference = np.outer(one, one) - np.outer(one, mean) - np.outer(mean, one) + square
        if left + inclusion[j] < 1 - 1e-12:
            covariance += left * inclusion[j] * difference
            mine = inclusion[j] / (left + inclusion[j])
            left += inclusion[j]
        else:
            covariance += (1 - left) * (1 - inclusion[j]) * difference
            mine = (1 - inclusion[j]) / (2 - left - inclusion[j])
            left += inclusion[j] - 1
        mean = mine * one + (1 - mine) * mean
        square = mine * np.outer(one, one) + (1 - mine) * square
    return covariance


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_systematic_draws_are_pivotal_and_no_worse_than_with_replacement(k, equal):
    coef, moments = (np.ones(8), np.ones(8)) if equal else uneven(40 + k)
    sampling = make_sampling(coef, moments, k, "systematic")
    inclusion, w = sampling.inclusion, sampling.coef[0]
    covariance = pivotal_covariance(inclusion)
    rng = np.random.default_rng(0)
    times, together = 2500, np.zeros_like(covariance)
    for _ in range(times):
        positions, _ = sampling.draw(rng)
        together[np.ix_(positions, positions)] += 1 / times
    expected = covariance + np.outer(inclusion, inclusion)
    error = np.sqrt(np.maximum(expected * (1 - expected), 1e-9) / times)
    assert np.all(np.abs(together - expected) <= 4.5 * error)

    of_u = covariance * np.outer(w / inclusion, w / inclusion)
    with_replacement = np.diag(w**2 / inclusion) - np.outer(w, w) / k
    assert np.linalg.eigvalsh(with_replacement - of_u).min() >= -1e-10 * np.abs(with_replacement).max()

    X = rng.normal(size=(20, len(w))) @ rng.normal(size=(len(w), len(w)))
    variance = sampling.variance((X**2).sum(axis=0), lambda coef: iter([X[:7] @ coef, X[7:] @ coef]))
    np.testing.assert_allclose(variance.scores, np.sum((X @ of_u) * X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(variance.weights, np.trace(of_u), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("truncation", DRAWN)
def test_the_mean_of_draws_is_the_expected_excess(truncation, ridge, center, weighted):
    outputs = 2 if weighted else 1
    X, y, coef = correlated(outputs=outputs)
    v = shares(weights_of(60, weighted), 60)
    problem = SparsificationProblem.of(
        make_design(X, v, center=center), y, SquaredError(), coef, ridge=ridge, center=center
    )
    sampling = problem.sampling(5, truncation)
    expected = problem.expected_excess(sampling)
    rng = np.random.default_rng(1)
    excess = np.array([problem.draw(sampling, rng).objective for _ in range(400)]) - problem.dense.objective
    error = excess.std() / np.sqrt(len(excess))
    assert expected.is_exact
    assert abs(excess.mean() - expected.excess) <= 4 * error
    assert expected.excess <= expected.bound * (1 + 1e-12)
    dense = y - coef @ X.T
    dense = dense - (dense @ v)[:, None] if center else dense
    np.testing.assert_allclose(
        problem.dense.objective, 0.5 * np.sum(dense**2 @ v) + 0.5 * ridge * np.sum(coef**2), rtol=1e-9
    )


@pytest.mark.parametrize("k", [3, 10])
def test_probabilities_by_moments_are_the_best_of_all(k):
    X, y, coef = correlated()
    problem = SparsificationProblem.of(
        make_design(X, np.full(60, 1 / 60), center=True), y, SquaredError(), coef, ridge=0.3, center=True
    )
    moments = make_sampling(coef, problem.moments + 0.3, k, "moments")
    best = problem.expected_excess(moments).excess
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = moments.shares * np.exp(0.3 * rng.normal(size=len(moments.shares)))
        worse = type(moments)(moments.features, moments.coef, other / other.sum(), k)
        assert problem.expected_excess(worse).excess > best


@pytest.mark.parametrize("seed", range(6))
def test_systematic_costs_no_more_than_moments_and_those_no_more_than_magnitude(seed):
    X, y, coef = correlated(seed, n=60 if seed % 2 else 4, outputs=1 + seed % 3)
    v = np.full(len(X), 1 / len(X))
    problem = SparsificationProblem.of(
        make_design(X, v, center=True), y, SquaredError(), coef, ridge=0.1 * (seed % 2), center=True
    )
    for k in range(1, 12):
        cost = [problem.expected_excess(problem.sampling(k, truncation)).excess for truncation in DRAWN]
        slack = 1e-10 * problem.expected_excess(problem.sampling(1, "magnitude")).bound
        assert cost[2] <= cost[1] + slack
        assert cost[1] <= cost[0] + slack


@pytest.mark.parametrize("ridge", [0.0, 0.05])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("truncation", DRAWN)
def test_upper_bounds_of_other_losses_hold_in_the_mean(truncation, name, ridge):
    loss, outputs = LOSSES[name]
    X, y, coef = correlated(2, outputs=outputs)
    y = targets_of(loss, outputs, y)
    coef = coef / 5
    v = np.full(60, 1 / 60)
    problem = SparsificationProblem.of(make_design(X, v, center=True), y, loss, coef, ridge=ridge, center=True)
    sampling = problem.sampling(6, truncation)
    expected = problem.expected_excess(sampling)
    rng = np.random.default_rng(3)
    excess = np.array([problem.draw(sampling, rng).objective for _ in range(40)]) - problem.dense.objective
    assert not expected.is_exact
    assert excess.mean() - 4 * excess.std() / np.sqrt(len(excess)) <= expected.excess <= expected.bound
    if loss.smoothness and loss.lipschitz:  # the lesser of the two
        rough = type(problem)(problem.objective, coef)
        variance = sampling.variance(
            rough.moments[sampling.features], lambda c: rough._root_weighted(sampling.features, c)
        )
        assert expected.excess <= loss.smoothness * variance.scores / 2 + ridge * variance.weights / 2 + 1e-12


@pytest.mark.parametrize("k", [1, 4, 20])
def test_bounds_of_the_papers(k):
    """Lemmas A.1 and A.2 of Shalev-Shwartz et al. for entries within [-1, 1]; Theorem 3 of Li et al. is never above."""
    X, y, coef = correlated()
    X = X / np.abs(X).max(axis=0)
    design = make_design(X, np.full(60, 1 / 60), center=False)
    norm = np.abs(coef).sum()
    signs = np.where(y > 0, 1.0, -1.0)
    for loss, target, paper in [
        (SquaredError(), y, norm**2 / (2 * k)),
        (SquaredHinge(), signs, norm**2 / (2 * k)),
        (LogLoss(), signs, 0.25 * norm**2 / (2 * k)),
        (Hinge(), signs, norm / np.sqrt(k)),
        (AbsoluteError(), y, norm / np.sqrt(k)),
    ]:
        problem = SparsificationProblem.of(design, target, loss, coef, ridge=0.0, center=False)
        found = {truncation: problem.expected_excess(problem.sampling(k, truncation)) for truncation in DRAWN}
        assert found["magnitude"].excess < found["magnitude"].bound <= paper
        assert found["moments"].bound <= found["magnitude"].bound
        assert found["systematic"].bound <= found["moments"].bound * (1 + 1e-12)
        sum_ = np.sum(np.abs(coef) * np.sqrt(np.mean(X**2, axis=0)))
        if loss.quadratic:
            np.testing.assert_allclose(found["moments"].bound, sum_**2 / (2 * k))


def test_losses_without_bounds_and_truncation_promise_nothing():
    X, _, coef = correlated()
    y = np.random.default_rng(0).poisson(2.0, 60)
    found = sparsify(coef[0] / 50, X, y, k=3, truncation="moments", loss=Poisson(), random_state=0)
    assert (found.expected_excess, found.bound, found.expectation) == (None, None, "none")
    truncated = sparsify(coef[0], X, correlated()[1][0], k=3)
    assert (truncated.expected_excess, truncated.bound, truncated.expectation) == (None, None, "none")
    assert "expected" not in truncated.summary()
    np.testing.assert_allclose(found.predict(X), np.exp(found.decision_function(X)))
