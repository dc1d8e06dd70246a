"""Steps that lead to infinity are reported as such."""

import numpy as np
import pytest

import pauca


def test_a_learning_rate_that_diverges_is_named():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 8))
    with pytest.raises(ValueError, match="diverge with learning_rate"):
        pauca.StreamRegressor(k=None, passes=2, truncation="moments", learning_rate=1e9).fit(X, X[:, 0])
