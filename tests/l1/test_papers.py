"""Greedy steps in the ball as printed: the same iterates, the same number of steps, the same answer."""

import numpy as np
import pytest
from printed_algorithms import Logistic, Squared, forward_greedy, shalev_srebro_gradient

from pauca import L1Classifier, L1Regressor
from pauca.theory import ball_steps

AS_PRINTED = {"solver": "forward", "step_rule": "closed", "stopping": "gap", "fit_intercept": False}


def problem(seed, n=40, d=15):
    """Entries in [-1, 1] and columns of different scales, so that no mean square is 1."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) * rng.uniform(0.3, 1.0, d)
    return X, np.clip(X[:, :4].sum(axis=1) + 0.3 * rng.standard_normal(n), -1, 1)


def assert_same(model, iterates):
    coef = np.ravel(model.coef_)
    np.testing.assert_allclose(coef, iterates[-1], atol=1e-10)
    assert model.n_iter_ == len(iterates)  # the start counts: its gap is looked at too
    assert model.k_ == np.count_nonzero(iterates[-1])


@pytest.mark.parametrize("seed", range(30))
def test_smooth_losses(seed):
    """Shalev-Shwartz, Srebro and Zhang (2010), Algorithm 2; Shalev-Shwartz and Srebro (2008), Figure 1."""
    X, y = problem(seed)
    radius, epsilon = 1.0 + seed % 3, 0.02
    Q = Squared(X, y)
    iterates = forward_greedy(Q.gradient, 15, radius, 1.0, epsilon)
    model = L1Regressor(radius, smoothness=1.0, gap_tol=epsilon, **AS_PRINTED).fit(X, y)
    assert_same(model, iterates)
    assert 3 < len(iterates) - 1 <= ball_steps("squared_error", radius=radius, accuracy=epsilon)
    best = L1Regressor(radius, gap_tol=1e-9, fit_intercept=False).fit(X, y).objective_
    assert Q.value(iterates[-1]) - best <= epsilon
    classes = np.where(y > 0, 1, -1)
    iterates = forward_greedy(Logistic(X, classes, 0.0).gradient, 15, radius, 0.25, epsilon)
    assert_same(L1Classifier(radius, smoothness=0.25, gap_tol=epsilon, **AS_PRINTED).fit(X, classes), iterates)


@pytest.mark.parametrize("loss", ["absolute_error", "hinge"])
def test_lipschitz_losses(loss):
    """Shalev-Shwartz and Srebro (2008), Figure 2: their beta is the inverse of ours, and is epsilon / 2 here."""
    for seed in range(10):
        X, y = problem(seed)
        radius, epsilon = 1.0, 0.3
        y = y if loss == "absolute_error" else np.where(y > 0, 1, -1)
        beta = epsilon / 2
        gradient = shalev_srebro_gradient(X, y, loss, beta)
        # In their step beta stands in the numerator.
        iterates = forward_greedy(gradient, 15, radius, 1 / beta, epsilon / 2)
        estimator = L1Regressor if loss == "absolute_error" else L1Classifier
        options = {"loss": loss, "smoothness": 1 / beta, "gap_tol": epsilon / 2} | AS_PRINTED
        model = estimator(radius, **options).fit(X, y)
        assert_same(model, iterates)
        exact = estimator(radius, loss=loss, gap_tol=1e-6, fit_intercept=False).fit(X, y)
        assert model.objective_ - exact.objective_ <= 0.75 * epsilon
        assert model.gap_ <= epsilon


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"smoothness": 1.0}, "step_rule='closed'"),
        ({"stopping": "gap"}, "solver='forward'"),
        ({"stopping": "first"}, "stopping"),
        ({"gap_tol": 0.0}, "gap_tol"),
        ({"smoothness": -1.0, "solver": "forward", "step_rule": "closed"}, "smoothness"),
    ],
)
def test_invalid_options(options, words):
    with pytest.raises(ValueError, match=words):
        L1Regressor(1.0, **options).fit(*problem(0))
