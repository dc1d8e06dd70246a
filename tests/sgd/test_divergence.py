"""Steps that lead to infinity are reported as such."""

import numpy as np
import pytest

import pauca


def test_a_learning_rate_that_diverges_is_named():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 8))
    with pytest.raises(ValueError, match="diverge with learning_rate"):
        pauca.StreamRegressor(k=None, passes=2, truncation="moments", learning_rate=1e9).fit(X, X[:, 0])


def test_a_learning_rate_with_which_only_the_squares_overflow_is_named():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 3))
    with pytest.raises(ValueError, match="diverge with learning_rate"):
        pauca.StreamRegressor(k=1, passes=1, refit=False, learning_rate=1e20, first_epoch=1).fit(X, X[:, 0])


def test_rows_whose_weight_is_nothing_beside_others_are_not_kept():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 2)), np.tile([0, 1], 6)
    weights = np.where(np.arange(12) < 6, 1e-300, 1e300)
    model = pauca.StreamClassifier(k=1, passes=1, keep_rows=1, learning_rate=0.1, radius=1.0).fit(X, y, weights)
    assert np.isfinite(model.objective_)
    assert model.n_samples_seen_ == 6
