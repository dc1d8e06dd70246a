"""The baselines of Li, Yang, Zhang and Jin (2017) are settings of the stream estimators; Lemma 2 holds in runs."""

import numpy as np
import pytest
from printed_algorithms import plain_sgd

from pauca import StreamRegressor
from pauca.projections import onto_l1_ball
from pauca.theory import epoch_accuracy

ONE_PASS = {"first_epoch": "all", "passes": 1, "shuffle": False, "fit_intercept": False}


def problem(seed, n=400, d=30):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) * (rng.random((n, d)) < 0.4)
    return X, np.clip(X[:, :5] @ [1.0, -1, 0.5, 0.5, -0.5] + 0.1 * rng.standard_normal(n), -3, 3)


@pytest.mark.parametrize("radius", [0.2, 30.0])
def test_plain_sgd_and_the_single_stage(radius):
    """One epoch without end is projected SGD; its last iterate in a small ball is the single-stage approach (SpS)."""
    for seed in range(5):
        X, y = problem(seed)
        average, last = plain_sgd(X, y, radius, 0.05, onto_l1_ball)
        options = {"k": None, "radius": radius, "learning_rate": 0.05, **ONE_PASS}
        np.testing.assert_allclose(StreamRegressor(**options).fit(X, y).coef_, average, atol=1e-12)
        single = StreamRegressor(average=False, **options).fit(X, y)
        np.testing.assert_allclose(single.coef_, last, atol=1e-12)
        assert single.k_ == np.count_nonzero(last)
    assert (single.k_ < 25) == (radius == 0.2)


def test_one_epoch_is_within_lemma_2():
    X, y = problem(0, n=4000, d=8)
    radius, rate, confidence = 3.0, 0.02, 0.5
    optimum = np.linalg.lstsq(X, y)[0]
    gradient = 2 * np.linalg.norm(X, axis=1).max() * radius
    distance = float(np.linalg.norm(optimum))
    bound = epoch_accuracy(
        steps=4000, learning_rate=rate, gradient_norm=gradient, distance=distance, center_radius=radius,
        confidence=confidence,
    )  # fmt: skip
    model = StreamRegressor(None, radius=radius, learning_rate=rate, **ONE_PASS).fit(X, y)
    excess = np.mean((X @ model.coef_ - y) ** 2) / 2 - np.mean((X @ optimum - y) ** 2) / 2
    assert 0 <= excess <= bound


def test_words_for_the_first_epoch():
    X, y = problem(0)
    with pytest.raises(ValueError, match="'first_epoch' parameter of StreamRegressor must be one of 'all'"):
        StreamRegressor(first_epoch="none").fit(X, y)
