"""The same path with compiled kernels and without, for every loss and kind of X."""

import numpy as np
import pytest
from loss_rows import ENVELOPES, LOSSES, SIGNS
from scipy import sparse
from sklearn.datasets import load_breast_cancer

from pauca import SparseClassifier, SparseRegressor
from pauca.compiled import kernels_used

pytest.importorskip("numba")

DESIGNS = {
    "dense": lambda X, rare: X,
    "sparse": lambda X, rare: sparse.csc_array(np.where(rare, X, 0.0)),
    "binary": lambda X, rare: rare.astype(float),
    "binary, integers": lambda X, rare: rare.astype(np.int8),
    "binary, sparse": lambda X, rare: sparse.csc_array(rare.astype(float)),
}
ROWS = {name: row for name, row in LOSSES.items() if name not in ENVELOPES}


def problem(row, design, n=240, d=14, seed=3):
    """Columns, and targets of a loss that grow with some of them."""
    rng = np.random.default_rng(seed)
    X, rare = rng.standard_normal((n, d)), rng.random((n, d)) < np.linspace(0.05, 0.5, d)
    design = DESIGNS[design](X, rare)
    signal = design[:, [2, 5, 9, 12]] @ np.array([1.0, -1.5, 2.0, 1.0]) + rng.logistic(0, 0.7, n)
    place = np.searchsorted(np.quantile(signal, np.linspace(0, 1, len(row.targets) + 1)[1:-1]), signal)
    return design, np.array(sorted(row.targets))[place], rng.random(n)


def fitted(row, X, y, weights, **options):
    kind = SparseClassifier if tuple(row.targets) == SIGNS else SparseRegressor
    return kind(loss=row.loss, **options).fit(X, y, sample_weight=weights)


def assert_same_path(found, expected):
    assert list(found.path_.sizes) == list(expected.path_.sizes)
    assert len(found.path_.moves) == len(expected.path_.moves)
    for size in expected.path_.sizes:
        one, other = found.path_[size], expected.path_[size]
        assert sorted(one.support) == sorted(other.support)
        assert one.objective == pytest.approx(other.objective, rel=1e-9)
        np.testing.assert_allclose(one.coef, other.coef, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(one.importance, other.importance, rtol=1e-3, atol=1e-8)


def both(*given, **options):
    with kernels_used("never"):
        expected = fitted(*given, **options)
    with kernels_used("always"):
        return fitted(*given, **options), expected


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("loss", ROWS)
def test_the_path_is_the_same_with_kernels_and_without(loss, design):
    assert_same_path(*both(ROWS[loss], *problem(ROWS[loss], design), k=6, ridge=1e-3))


@pytest.mark.parametrize("method", ["forward", "backward", "foba"])
@pytest.mark.parametrize("loss", ["log_loss", "poisson", "gamma"])
def test_it_is_the_same_by_every_method(loss, method):
    assert_same_path(*both(ROWS[loss], *problem(ROWS[loss], "dense"), k=5, method=method))


OPTIONS = {"bounds": {"bounds": (0, np.inf)}, "no intercept": {"fit_intercept": False}, "no ridge": {"ridge": 0.0}}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("loss", ["log_loss", "poisson"])
def test_it_is_the_same_with_every_option(loss, options):
    assert_same_path(*both(ROWS[loss], *problem(ROWS[loss], "dense"), k=5, **OPTIONS[options]))


@pytest.mark.filterwarnings("ignore:The data are separable")
@pytest.mark.parametrize("method", ["exchange", "forward"])
def test_it_is_the_same_on_skewed_columns_that_separate_the_classes(method):
    X, y = load_breast_cancer(return_X_y=True)
    with kernels_used("never"):
        expected = SparseClassifier(12, method=method).fit(X, y).path_
    with kernels_used("always"):
        found = SparseClassifier(12, method=method).fit(X, y).path_
    assert found.sizes == expected.sizes
    for size in expected.sizes:
        assert sorted(found[size].support) == sorted(expected[size].support)
        assert found[size].objective == pytest.approx(expected[size].objective, rel=1e-9)


def test_the_chosen_size_is_the_same():
    row = ROWS["log_loss"]
    found, expected = both(row, *problem(row, "dense", n=300), k=range(15), cv=3)
    assert found.k_ == expected.k_
    np.testing.assert_allclose(found.path_.choice.mean, expected.path_.choice.mean, rtol=1e-6)
    assert_same_path(found, expected)
