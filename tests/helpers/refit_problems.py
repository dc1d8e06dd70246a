"""Tables for refits on a given support."""

import numpy as np
from judges import (
    target,
)

SUPPORT = [1, 3, 4]


def table(kind, n=80, seed=0):
    """Six columns of small integers, a quarter of them zero, in every dtype and format the same numbers."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 6, size=(n, 6))
    X[:, 1:] += X[:, :-1] // 2
    X[rng.random(X.shape) < 0.25] = 0
    return X.astype(float), target(kind, X @ np.array([0.1, 0.3, 0.0, -0.2, 0.1, 0.0]) + 0.3, rng)


def fitted(kind, X, y, *, weights=None, form=np.asarray, **options):
    """The model on SUPPORT; nothing to choose."""
    model = kind.estimator(k=3, always=SUPPORT, **options).fit(form(X), y, weights)
    assert set(model.support_) <= set(SUPPORT)  # a coefficient of a piecewise loss may be zero
    return model
