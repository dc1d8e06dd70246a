"""Scorers of scikit-learn with classes of any kind, and refusals before any work."""

import numpy as np
import pytest

from pauca import SparseClassifier


def patients(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 4))
    return X, X[:, 0] + 0.5 * rng.normal(size=90) > 0.3


@pytest.mark.parametrize("scoring", ["f1", "precision", "neg_brier_score", "average_precision", "roc_auc"])
def test_text_classes_score_as_numbers_do(scoring):
    """The second class is the positive one."""
    X, sick = patients()
    options = {"k": [0, 1, 4], "scoring": scoring, "cv": 3, "method": "forward", "ridge": 0.1, "search_ridge": 0.1}
    numbers = SparseClassifier(**options).fit(X, sick.astype(int))
    words = SparseClassifier(**options).fit(X, np.where(sick, "sick", "healthy"))
    np.testing.assert_allclose(words.path_.choice.mean, numbers.path_.choice.mean)
    assert words.predict(X[:1])[0] in {"sick", "healthy"}


def test_scorers_that_cannot_score_are_refused_before_any_search():
    X, _ = patients()
    classes = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    moves = []
    model = SparseClassifier(k=[1, 2], scoring="f1", callback=lambda one: moves.append(one) and False)
    with pytest.raises(ValueError, match=r"scoring='f1' cannot score this target.*f1_macro"):
        model.fit(X, classes)
    assert not moves
    assert model.set_params(scoring="f1_macro").fit(X, classes).k_ >= 1
