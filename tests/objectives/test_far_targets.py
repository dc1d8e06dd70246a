"""Targets that are far from zero and close to each other are fitted as if they were near it."""

import numpy as np
import pytest

import pauca
from pauca.losses import Quantile

FAR = 2.0**37
RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 4))
Y = np.round(64 * (X[:, 0] - X[:, 2] + RNG.standard_normal(30))) / 64  # of which sums with FAR are exact


@pytest.mark.parametrize("loss", ["absolute_error", Quantile(0.3), "huber"])
@pytest.mark.parametrize("k", [2, range(5)])
def test_a_constant_far_away_moves_the_intercept_only(loss, k):
    near = pauca.SparseRegressor(k=k, loss=loss, ridge=1e-6, cv=2).fit(X, Y - np.median(Y))
    far = pauca.SparseRegressor(k=k, loss=loss, ridge=1e-6, cv=2).fit(X, Y + FAR)
    assert far.path_[far.k_].converged
    np.testing.assert_array_equal(far.support_, near.support_)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-6, atol=1e-8)
    assert far.intercept_ - FAR == pytest.approx(near.intercept_ + np.median(Y), abs=1e-4)


def test_a_dense_model_far_away_is_made_sparse():
    sparse = pauca.sparsify(np.ones(4), X, Y + FAR, intercept=FAR, k=2, truncation="truncate").model
    residual = Y + FAR - sparse.predict(X)
    assert abs(residual.mean()) < 1e-3
