"""Methods that only other models have: an error that says what there is instead."""

import importlib.util

import numpy as np
import pytest

from pauca import L1Classifier, SparseClassifier, SparsePrecision, StreamClassifier, StreamRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)


def test_a_graph_has_a_summary_and_a_table_instead_of_a_page():
    model = SparsePrecision(k=1).fit(X)
    with pytest.raises(
        AttributeError, match=r"^SparsePrecision has no report: .* summary\(\) has it in words, partial_c"
    ):
        model.report("page.html")
    with pytest.raises(
        AttributeError, match=r"^SparsePrecision has no evaluate: .* score\(X_test\) is the mean log-lik"
    ):
        model.evaluate()
    assert not hasattr(model, "report")
    assert model.summary()
    assert len(model.path_.to_frame()) == len(model.path_.sizes)
    assert model.partial_correlations().shape == (3, 3)
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize("kind", [L1Classifier, StreamClassifier, StreamRegressor])
def test_a_model_without_evaluate_names_what_measures_it(kind):
    words = rf"^{kind.__name__} has no evaluate: score\(X_test, y_test\) says how well .* the metrics of scikit-learn"
    for model in (kind(), kind):
        with pytest.raises(AttributeError, match=words):
            model.evaluate  # noqa: B018
    assert not hasattr(kind(), "evaluate")


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="streams need numba")
def test_a_fitted_stream_says_so_too():
    model = StreamClassifier(k=1, passes=1).partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(AttributeError, match=r"^StreamClassifier has no evaluate: "):
        model.evaluate(X, Y)
    with pytest.raises(AttributeError, match="no attribute 'evaluation'"):
        model.evaluation()
    assert model.score(X, Y) > 0.5


def test_what_was_not_computed_yet_names_the_call_that_does():
    model = SparseClassifier(k=1, ridge=0.1).fit(X, Y)
    for what in ("certificate_", "stability_", "alternatives_"):
        with pytest.raises(AttributeError, match=rf"^SparseClassifier has no {what} .*{what[:6]}\w*\(\)"):
            getattr(model, what)
        assert not hasattr(model, what)
    assert model.certify() is model.certificate_
    assert model.stability(2) is model.stability_
