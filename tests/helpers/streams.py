"""Rows of streams, and estimators that learn from them."""

import numpy as np

from pauca import StreamClassifier, StreamRegressor


def make_rows(n=600, d=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)
    score = 3 * X[:, 7] - 2 * X[:, 30] + X[:, 11]
    return X, score + 0.5 * rng.standard_normal(n)


def kind(name, **options):
    """An estimator and the target it wants."""
    X, y = make_rows()
    if name == "numbers":
        return StreamRegressor(k=3, keep_rows=200, **options), X, y
    classes = np.where(y > 0, "yes", "no") if name == "two classes" else np.digitize(y, [-1, 1])
    return StreamClassifier(k=3, keep_rows=200, **options), X, classes


KINDS = ["numbers", "two classes", "three classes"]
