"""Choosing k on a table in chunks: the model of the same fit in memory, from one pass, or two for the paired rule."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, ShuffleSplit

from pauca import SparseRegressor
from pauca.design.fold_grams import parts_of_folds
from pauca.model_selection.folds import FoldWeights, make_folds
from problems import ar_problem, in_chunks

GROUPS = np.arange(600) // 7
WEIGHTS = np.arange(600) % 3

CHOICES = [
    ({}, {}, 2),
    ({"selection_rule": "best"}, {}, 1),
    ({"selection_rule": "1se", "method": "forward"}, {"sample_weight": WEIGHTS}, 2),
    ({"cv": KFold(4), "fit_intercept": False}, {}, 2),
    ({"k": range(1, 13)}, {"groups": GROUPS}, 2),
    ({"k": 5, "ridge": "auto", "standardize": False}, {}, 2),
]


def same_choice(model, plain):
    np.testing.assert_array_equal(model.support_, plain.support_)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-8, atol=1e-12)
    assert (model.ridge_, model.search_ridge_) == pytest.approx((plain.ridge_, plain.search_ridge_))
    np.testing.assert_allclose(model.path_.choice.mean, plain.path_.choice.mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("settings", "beside", "passes"), CHOICES)
def test_the_choice_is_that_of_memory_and_takes_few_passes(settings, beside, passes):
    X, y = ar_problem(600, 40, 8, snr=2.0)
    chunks = in_chunks(X, rows=100)
    model, plain = SparseRegressor(**settings).fit(chunks, y, **beside), SparseRegressor(**settings).fit(X, y, **beside)
    same_choice(model, plain)
    if settings.get("selection_rule") != "best":  # whose errors are those of few folds, not of rows
        np.testing.assert_allclose(model.path_.choice.standard_error, plain.path_.choice.standard_error, rtol=1e-9)
        assert model.path_.choice.message == plain.path_.choice.message
    assert chunks.passes == passes


@pytest.mark.parametrize("settings", [{"cv": ShuffleSplit(3, random_state=0)}, {"scoring": "r2"}, {"criterion": "bic"}])
def test_folds_that_overlap_and_scorers_read_rows(settings):
    X, y = ar_problem(300, 15, 4, snr=2.0)
    model = SparseRegressor(k=range(6), ridge=None if "criterion" in settings else [0, 0.1], **settings)
    same_choice(clone(model).fit(in_chunks(X), y), model.fit(X, y))


def test_folds_of_many_rows_take_few_bytes_a_row(monkeypatch):
    """What is made on the way counts too; most of that is scikit-learn's, whose splitter makes indices of 8 bytes."""
    monkeypatch.setattr("pauca.design.fold_grams.WIDE_NUMBERS", 1 << 14)
    n_rows = 200_000
    y, weights = np.random.default_rng(0).standard_normal(n_rows), np.full(n_rows, 1 / n_rows)
    tracemalloc.start()
    try:
        folds = make_folds(None, y, None, weights, classifies=False)
        kept, making = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        parts = parts_of_folds(weights, FoldWeights(folds))
        finding = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert parts is not None
    assert kept < 14 * n_rows  # a byte of each fold, and eight once
    assert making < 48 * n_rows
    assert finding < kept + 24 * n_rows


def test_wide_tables_choose_the_same(monkeypatch):
    monkeypatch.setattr("pauca.design.chunks.moments.WHOLE_UP_TO", 10)
    X, y = ar_problem(600, 60, 5, snr=3.0, rho=0.5)
    chunks = in_chunks(X, rows=200)
    same_choice(SparseRegressor(method="forward").fit(chunks, y), SparseRegressor(method="forward").fit(X, y))
    assert chunks.passes <= 6


def test_questions_to_the_fitted_model():
    X, y = load_diabetes(return_X_y=True)
    model, plain = SparseRegressor().fit(in_chunks(X, 50), y), SparseRegressor().fit(X, y)
    for one, other in zip(model.alternatives(2), plain.alternatives(2), strict=True):
        assert (one["feature"], one["replacement"]) == (other["feature"], other["replacement"])
    assert model.stability(6).frequency == plain.stability(6).frequency
    size = plain.k_ + 1
    np.testing.assert_allclose(model.at(size, ridge="best").coef_, plain.at(size, ridge="best").coef_, rtol=1e-7)
