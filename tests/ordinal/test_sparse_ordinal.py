"""SparseOrdinalClassifier: judged by statsmodels and brute force; orders, files, SQL and Python; bad input."""

import itertools
import math
import sqlite3
from functools import cache

import numpy as np
import pandas as pd
import pytest
from statsmodels.miscmodels.ordinal_model import OrderedModel

from pauca import SparseOrdinalClassifier, load


def graded(n=200, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.digitize(X[:, 1] - 0.8 * X[:, 4] + rng.logistic(size=n), [-1.5, 0.5, 2.0])


def test_coefficients_thresholds_and_likelihood_are_those_of_statsmodels():
    X, y = graded()
    model = SparseOrdinalClassifier(k=3).fit(X, y)
    near = np.r_[model.coef_[model.support_], model.thresholds_[0], np.log(np.diff(model.thresholds_))]
    judged = OrderedModel(y, X[:, model.support_], distr="logit")
    judge = judged.fit(start_params=near, method="newton", disp=0, tol=1e-12)
    np.testing.assert_allclose(model.coef_[model.support_], judge.params[:3], rtol=1e-6)
    np.testing.assert_allclose(model.thresholds_, judge.model.transform_threshold_params(judge.params)[1:-1], rtol=1e-6)
    assert model.objective_ == pytest.approx(-judge.llf / len(y), rel=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), judge.predict(), atol=1e-7)
    assert model.score(X, y) > 0.4
    assert np.all(model.predict_proba(X).argmax(axis=1) == model.predict(X))


@cache
def best_of_all_pairs():
    X, y = graded(n=100)
    return min(
        SparseOrdinalClassifier(k=2, always=list(pair), method="forward").fit(X, y).objective_
        for pair in itertools.combinations(range(6), 2)
    )


@pytest.mark.parametrize("method", ["exchange", "forward", "backward", "foba"])
def test_every_method_finds_the_best_of_few(method):
    model = SparseOrdinalClassifier(k=2, method=method).fit(*graded(n=100))
    assert model.objective_ == pytest.approx(best_of_all_pairs(), rel=1e-9)


def test_weights_are_repetitions_and_two_classes_are_logistic():
    from pauca import SparseClassifier

    X, y = graded()
    weights = np.random.default_rng(1).integers(0, 3, len(y))
    one = SparseOrdinalClassifier(k=2, ridge=0.1, standardize=False).fit(X, y, weights)
    two = SparseOrdinalClassifier(k=2, ridge=0.1, standardize=False).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-6)
    binary = SparseOrdinalClassifier(k=2).fit(X, y > 1)
    logistic = SparseClassifier(k=2).fit(X, y > 1)
    np.testing.assert_allclose(binary.coef_, logistic.coef_[0], rtol=1e-6)
    np.testing.assert_allclose(binary.predict_proba(X), logistic.predict_proba(X), atol=1e-7)


def test_the_default_chooses_the_features_that_matter():
    X, y = graded(n=150, d=8)
    model = SparseOrdinalClassifier().fit(X, y)
    assert {1, 4} <= set(model.support_.tolist())
    assert model.k_ <= 4


def test_files_sql_and_python_predict_the_same(tmp_path):
    X, y = graded()
    words = np.array(["none", "it's mild", "severe", "grave"])[y]
    names = ["a", 'b"', "c", "d", "e", "f"]
    order = ["none", "it's mild", "severe", "grave"]
    model = SparseOrdinalClassifier(k=2, order=order).fit(pd.DataFrame(X, columns=names), words)
    assert model.classes_.tolist() == order
    frame = pd.DataFrame(X[:20], columns=names)
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    for one in (model, again):
        assert "positive coefficients favour classes towards 'grave', negative ones towards 'none'" in one.summary()
        assert "on the rows of the fit (for others see evaluate)" in one.summary()
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    assert again.at(1).predict(frame).tolist() == model.at(1).predict(frame).tolist()
    module = {}
    exec(model.to_python(), module)
    rows = frame.to_dict("records")
    np.testing.assert_allclose([module["predict_proba"](row) for row in rows], model.predict_proba(frame), atol=1e-12)
    assert [module["predict"](row) for row in rows] == model.predict(frame).tolist()
    database = sqlite3.connect(":memory:")
    database.create_function("EXP", 1, math.exp)
    frame.to_sql("rows", database, index=False)
    found = database.execute(model.to_sql("rows")).fetchall()
    assert [row[0] for row in found] == model.predict(frame).tolist()
    np.testing.assert_allclose([row[1:] for row in found], model.predict_proba(frame), atol=1e-12)
    with pytest.raises(ValueError, match="complete SELECT"):
        model.to_sql()
    with pytest.raises(ValueError, match="no ONNX form"):
        model.to_onnx()


def test_orders_and_bad_input():
    X, y = graded(n=60)
    words = np.array(["low", "mid", "high", "top"])[y]
    category = pd.Series(pd.Categorical(words, ["low", "mid", "high", "top"], ordered=True))
    assert SparseOrdinalClassifier(k=1).fit(X, category).classes_.tolist() == ["low", "mid", "high", "top"]
    for order, words_, message in (
        (None, words, "their order is not known"),
        (["low", "mid"], words, "lacks the class 'high'"),
        (["low", "low"], words, "twice"),
        (None, np.zeros(60), "one class 0"),
        (["low"], np.full(60, "low"), "one class 'low'"),
    ):
        with pytest.raises(ValueError, match=message):
            SparseOrdinalClassifier(k=1, order=order).fit(X, words_)
    with pytest.raises(ValueError, match=r"with fractions\. To predict numbers use SparseRegressor"):
        SparseOrdinalClassifier(k=1).fit(X, X[:, 0])


def test_thresholds_are_finite_next_to_a_class_of_nearly_all_weight(tmp_path):
    """One minus the share below was zero, and a file with an infinite threshold cannot be read."""
    X, y = np.arange(8.0)[:, None] % 3, np.array([0, 0, 1, 1, 1, 1, 2, 2])
    weights = np.choose(y, [1e-120, 1.0, 1e-60])
    model = SparseOrdinalClassifier(k=1).fit(X, y, sample_weight=weights)
    shares = np.bincount(y, weights=weights)
    expected = np.log([shares[0] / shares[1], shares[1] / shares[2]])
    np.testing.assert_allclose(model.at(0).thresholds_, expected, rtol=1e-6)
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(load(tmp_path / "model.json").thresholds_, model.thresholds_)
