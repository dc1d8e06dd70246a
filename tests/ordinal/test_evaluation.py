"""Evaluations, inference and reports of classes in an order, judged by refits by hand, scikit-learn and statsmodels."""

import html
import re

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss
from sklearn.model_selection import StratifiedKFold
from statsmodels.miscmodels.ordinal_model import OrderedModel

from pauca import SparseOrdinalClassifier

ORDER = ["none", "mild", "strong"]


def table(n=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    return X, np.array(ORDER)[np.digitize(X[:, 1] - X[:, 3] + rng.logistic(size=n), [-1.0, 1.0])]


def model(**parameters):
    return SparseOrdinalClassifier(**{"k": 2, "order": ORDER, **parameters})


def test_held_out_rows_are_predicted_by_models_and_thresholds_that_have_not_seen_them():
    X, y = table()
    folds = list(StratifiedKFold(4, shuffle=True, random_state=1).split(X, y))
    found = model(cv=folds, k=[2], ridge=[0.1]).fit(X, y).evaluate()
    shares = np.zeros((len(y), 3))
    for train, test in folds:
        shares[test] = model(ridge=0.1).fit(X[train], y[train]).predict_proba(X[test])
    codes = np.array([ORDER.index(label) for label in y])
    assert found.log_loss == pytest.approx(log_loss(codes, shares), abs=1e-5)
    np.testing.assert_array_equal(found.class_confusion.counts, confusion_matrix(codes, shares.argmax(axis=1)))
    assert found.classes == ORDER
    assert found.n_folds == 4


def test_test_rows_are_predicted_as_by_predict():
    X, y = table()
    fitted = model(ridge="auto").fit(X[:160], y[:160])
    found = fitted.evaluate(X[160:], y[160:])
    assert found.rows == "test"
    assert found.accuracy.value == accuracy_score(y[160:], fitted.predict(X[160:]))
    assert fitted.evaluate(X[160:], y[160:, None]).log_loss == found.log_loss
    ordered = np.array([ORDER.index(label) for label in y[160:]])
    assert found.log_loss == pytest.approx(log_loss(ordered, fitted.predict_proba(X[160:])))
    with pytest.raises(ValueError, match="holds the class 'worse', which the fit has not seen"):
        fitted.evaluate(X[:2], ["mild", "worse"])
    with pytest.raises(ValueError, match="together"):
        fitted.evaluate(X)
    with pytest.raises(ValueError, match="same number of rows: 5 and 4"):
        fitted.evaluate(X[:5], y[:4])
    with pytest.raises(ValueError, match="for the rows of the fit"):
        fitted.evaluate(X, y, nested=True)


def test_rows_that_chose_are_called_optimistic_and_nested_folds_are_not():
    X, y = table()
    fitted = model(k=range(4), cv=3).fit(X, y)
    assert fitted.evaluate().optimistic
    assert "optimistic since these rows also chose the model (see evaluate)" in fitted.summary()
    nested = fitted.evaluate(nested=True)
    assert nested.rows == "nested"
    assert len(nested.fold_choices) == 3
    assert np.isfinite(nested.score)


def test_a_class_that_a_fold_has_not_seen_is_impossible_to_it():
    X, y = table(60)
    y[:3] = "none"
    y[3:] = np.where(X[3:, 1] > 0, "strong", "mild")
    test = np.arange(20)
    found = model(k=[1], ridge=[0.1], cv=[(np.arange(20, 60), test)]).fit(X, y).evaluate()
    assert found.n_rows == 20
    assert found.class_confusion.recall(0).count == 0
    assert found.accuracy.value > 0.7
    assert found.log_loss > 3 / 20 * 30


def test_standard_errors_are_those_of_statsmodels():
    X, y = table()
    found = model().fit(X, y).inference()
    codes = np.array([ORDER.index(label) for label in y])
    reference = OrderedModel(codes, X[:, [1, 3]], distr="logit").fit(method="newton", disp=0)
    np.testing.assert_allclose(found.coef, reference.params[:2], rtol=1e-4)
    np.testing.assert_allclose(found.standard_error, reference.bse[:2], rtol=1e-2)
    np.testing.assert_allclose([record["ratio"] for record in found.table()], np.exp(found.coef))
    assert "odds ratio" in found.summary()
    draws = model().fit(X, y).inference("bootstrap", n_resamples=60)
    np.testing.assert_allclose(draws.standard_error, reference.bse[:2], rtol=0.35)


def test_the_page_has_figures_of_test_rows(tmp_path):
    X, y = table()
    model().fit(X[:160], y[:160]).report(tmp_path / "page.html", X=X[160:], y=y[160:], n_resamples=5)
    said = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", (tmp_path / "page.html").read_text())).split())
    assert "Measured on 80 test rows" in said
    assert "Log loss" in said
    assert "what the shares of the classes get here" in said


def test_names_of_columns_can_be_given():
    X, y = table()
    assert model().fit(X, y, feature_names=list("abcde")).path_.names(2) == ["b", "d"]


def test_the_summary_has_the_thresholds():
    X, y = table()
    fitted = model().fit(X, y)
    first, second = fitted.thresholds_
    assert f"thresholds: none | mild {first:.4g}, mild | strong {second:.4g}" in fitted.summary()
