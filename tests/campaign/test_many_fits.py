"""Many fits in one process leave nothing behind."""

import gc
import threading
import tracemalloc
import warnings

import numpy as np

import pauca


def fits():
    """One fit of each of several kinds."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pauca.SparseRegressor(k=2).fit(X, y).summary()
        pauca.SparseRegressor(k=range(3), cv=2, n_jobs=2).fit(X, y)
        pauca.SparseClassifier(k=1, ridge=0.1).fit(X, y > 0)
        pauca.SparseRegressor(k=2, loss="absolute_error").fit(X, y)
        pauca.L1Regressor(radius=1.0).fit(X, y)
        pauca.SparsePrecision(k=2).fit(X)


def test_memory_does_not_grow_and_no_thread_is_left():
    for _ in range(2):  # what is imported or kept once
        fits()
    gc.collect()
    threads = threading.active_count()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(3):
            fits()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 100_000
    assert threading.active_count() <= threads
