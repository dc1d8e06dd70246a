"""Importances of fits that a time limit has ended before they were found."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import pauca
from pauca import SparseClassifier
from pauca.clock import OutOfTime
from pauca.subsets.fit_cache import FitCache


def _raise(*_):
    raise OutOfTime


@pytest.fixture
def iris():
    return load_iris(return_X_y=True, as_frame=True)


def test_estimates_stand_in_for_exact_importances(iris, monkeypatch):
    exact = SparseClassifier(k=2, ridge=0.01).fit(*iris).path_[2]
    monkeypatch.setattr(FitCache, "values_without", _raise)
    model = SparseClassifier(k=2, ridge=0.01).fit(*iris)
    late = model.path_[2]
    assert exact.importance_is_exact
    assert not late.importance_is_exact
    # To second order, of strong features: the right magnitude, and never the whole for each.
    assert np.all(late.importance < 0.8 * (model.path_[0].objective - late.objective))
    np.testing.assert_allclose(late.importance, exact.importance, rtol=0.7)


def test_importances_that_were_not_found_are_not_shown(iris, monkeypatch, tmp_path):
    monkeypatch.setattr(FitCache, "values_without", _raise)
    monkeypatch.setattr(FitCache, "removal_costs", _raise)
    model = SparseClassifier(k=2, ridge=0.01, method="forward").fit(*iris)
    assert np.isnan(model.path_[2].importance).all()
    summary = model.summary()
    assert summary.count("not computed") == 2
    assert "the fit ended before all were computed" in summary
    assert "nan" not in summary
    model.save(tmp_path / "model.json")
    assert "NaN" not in (tmp_path / "model.json").read_text()
    assert pauca.load(tmp_path / "model.json").summary().count("not computed") == 2
    model.report(tmp_path / "page.html", n_resamples=0)
    page = (tmp_path / "page.html").read_text()
    assert page.count("not computed") >= 2
    assert "in order of importance" not in page
    assert "nan %" not in page
    assert "NaN" not in page.split("<script")[0]
