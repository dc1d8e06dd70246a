"""Tables for groups of columns, several outputs and several classes."""

import numpy as np
from scipy.special import softmax

LABELS = ["b", "a", "c", "a", "d", "b", "a", "d"]
"""Eight columns, four groups of one to three columns, none of them contiguous."""


def three_classes(n=90, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    p = softmax(1.2 * X @ rng.standard_normal((d, 3)), axis=1)
    return X, np.array(["low", "mid", "top"])[(p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)]
