"""Losses without closed forms on a table in chunks: the path of the same fit in memory, in few passes."""

import numpy as np
import pytest

from pauca import PaucaWarning, SparseClassifier, SparseRegressor
from pauca.methods import Exact
from problems import ar_problem, in_chunks


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    """Guesses come from a few hundred rows, so that some of them are wrong."""
    monkeypatch.setattr("pauca.design.chunks.moments.SAMPLED_NUMBERS", 1)


def classes(n=2500, d=80, rho=0.7):
    X, y = ar_problem(n, d, 8, snr=1.0, rho=rho)
    return X, (y > 0).astype(int)


def rare_columns(n=2500, d=80):
    """Columns of zeros and ones, some of them rare, and columns with long tails."""
    rng = np.random.default_rng(2)
    X = (rng.random((n, d)) < rng.uniform(0.01, 0.5, d)).astype(float)
    X[:, ::4] = np.exp(1.5 * rng.standard_normal((n, d // 4)))
    score = np.log1p(X[:, :15]) @ rng.normal(0, 1.5, 15)
    return X, (rng.random(n) < 1 / (1 + np.exp(np.median(score) - score))).astype(int)


def same_path(model, plain):
    assert model.path_.sizes == plain.path_.sizes
    for one, other in zip(model.path_, plain.path_, strict=True):
        np.testing.assert_array_equal(one.support, other.support)
        np.testing.assert_allclose(one.coef, other.coef, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", ["forward", "foba", "exchange", "stepwise"])
@pytest.mark.parametrize("data", [classes, rare_columns])
def test_the_path_is_that_of_memory_in_few_passes(data, method):
    X, y = data()
    chunks = in_chunks(X, rows=400)
    model, plain = SparseClassifier(k=8, method=method).fit(chunks, y), SparseClassifier(k=8, method=method).fit(X, y)
    same_path(model, plain)
    assert chunks.passes <= (12 if method == "exchange" else 6)
    np.testing.assert_allclose(model.predict_proba(chunks), plain.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize(
    "settings",
    [
        {"feature_groups": np.arange(80) // 2},
        {"costs": 1.0 + np.arange(80) % 5, "budget": 9.0, "k": None},
        {"always": [3, 4], "never": [22]},
        {"bounds": (0, None)},
        {"loss": "hinge", "method": "forward"},
        {"method": "backward"},
    ],
    ids="-".join,
)
def test_constraints_and_other_losses(settings):
    X, y = classes()
    options = {"k": 4, **settings}
    same_path(SparseClassifier(**options).fit(in_chunks(X, rows=900), y), SparseClassifier(**options).fit(X, y))


def test_several_outputs_and_counts():
    X, y = ar_problem(1500, 60, 6)
    rng = np.random.default_rng(0)
    both = np.column_stack([y, X[:, 5] + rng.standard_normal(1500)])
    same_path(SparseRegressor(k=4).fit(in_chunks(X, 400), both), SparseRegressor(k=4).fit(X, both))
    counts = rng.poisson(np.exp(0.3 * y / y.std()))
    model = SparseRegressor(k=4, loss="poisson", method="forward")
    weights = np.arange(1500) % 3
    same_path(
        model.fit(in_chunks(X, 400), counts, weights), SparseRegressor(**model.get_params()).fit(X, counts, weights)
    )


@pytest.mark.filterwarnings("ignore:The largest size that was compared")
@pytest.mark.parametrize("settings", [{"cv": 2}, {"cv": 2, "scoring": "accuracy"}, {"criterion": "bic"}], ids=str)
def test_choosing_k(settings):
    X, y = classes(800, 40)
    options = {"k": range(1, 5), "method": "forward", **settings}
    chunks = in_chunks(X, 400)
    model, plain = SparseClassifier(**options).fit(chunks, y), SparseClassifier(**options).fit(X, y)
    assert model.k_ == plain.k_
    same_path(model, plain)
    assert chunks.passes <= 8


@pytest.mark.filterwarnings("ignore:There are only 6 rows of class")
def test_a_class_that_the_sample_misses_is_found_by_the_checks():
    X, _ = classes()
    y = np.zeros(2500, dtype=int)
    y[np.argsort(X[:, 7] + X[:, 60])[-6:]] = 1
    plain = SparseClassifier(k=2, ridge=0.1, method="forward").fit(X, y)
    same_path(SparseClassifier(k=2, ridge=0.1, method="forward").fit(in_chunks(X, 400), y), plain)


def test_gathered_columns_beyond_the_memory_lie_in_a_file():
    X, y = classes()
    chunks = in_chunks(X, rows=5)
    model = SparseClassifier(k=3, method="forward").fit(chunks, y)
    assert isinstance(model._training_data.problem.X._values, np.memmap)
    same_path(model, SparseClassifier(k=3, method="forward").fit(X, y))


def test_what_cannot_be_done_is_refused():
    X, y = classes()
    with pytest.raises(ValueError, match=r"starts from all 80 columns.*Use a method that grows"):
        SparseClassifier(k=3, method="backward").fit(in_chunks(X, rows=50), y)
    with pytest.warns(PaucaWarning, match="Exact has proved nothing"):
        model = SparseClassifier(k=2, method=Exact(), ridge=0.1).fit(in_chunks(X, 400), y)
    assert "No lower bound was computed" in model.certificate_.message(2)
