"""Models in pipelines speak of the names that the steps before them know."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pauca
from pauca import SparseClassifier, SparseRegressor

TEXTS = ["a good film", "a dull film", "good fun", "bad luck", "so good", "not bad"]


def test_words_of_a_vectoriser_are_in_summaries_reports_and_files(tmp_path):
    pipeline = make_pipeline(CountVectorizer(), SparseClassifier(k=1, ridge=0.1)).fit(TEXTS, [1, 0, 1, 0, 1, 0])
    assert "x" in pipeline[-1].path_.names(1)[0]
    model = pauca.name_features(pipeline)
    assert model is pipeline[-1]
    assert model.get_feature_names_out().tolist() == pipeline.get_feature_names_out().tolist() == ["good"]
    assert not hasattr(model, "feature_names_in_")
    model.report(tmp_path / "page.html")
    model.save(tmp_path / "model.json")
    for text in (model.summary(), (tmp_path / "page.html").read_text(encoding="utf-8"), str(model.stability(4))):
        assert "good" in text
    assert pauca.load(tmp_path / "model.json").path_.names(1) == ["good"]
    assert pipeline.predict(["good", "bad"]).tolist() == [1, 0]


def test_what_has_names_or_cannot_have_them():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    alone = make_pipeline(SparseRegressor(k=1)).fit(X, y)
    assert pauca.name_features(alone).path_.column_names is None
    with pytest.raises(TypeError, match="takes a fitted Pipeline, got SparseRegressor"):
        pauca.name_features(alone[-1])
    with pytest.raises(TypeError, match="must be an estimator of pauca that has a path, got LinearRegression"):
        pauca.name_features(make_pipeline(StandardScaler(), LinearRegression()).fit(X, y))
