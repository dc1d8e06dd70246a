"""The estimator keeps scikit-learn's contract: its own checks, and what users of pipelines rely on."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn_checks import parametrize_settings

from pauca import L1Classifier, L1Regressor, SparseClassifier, SparseRegressor
from pauca.methods import FoBa


def weights_are_repetitions(estimator):
    """Not where something is chosen by paired errors: there a row of weight two is one row."""
    return "auto" not in {getattr(estimator, "k", None), getattr(estimator, "radius", None)}


# The checks fit constant columns, single rows and more features than rows on purpose.
@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning", "ignore:No features were selected:UserWarning")
@pytest.mark.usefixtures("array_api")
@parametrize_settings(
    [
        L1Regressor(radius=2, k=3, ridge=0.1),
        L1Regressor(cv=2),  # what is checked does not depend on the number of folds, nor on digits
        L1Regressor(radius=1, loss="absolute_error", standardize=True),
        L1Classifier(radius=2),
        L1Classifier(cv=2, tol=0.05),
        L1Classifier(radius=8, loss="hinge", tol=0.05),
        SparseRegressor(k=2),
        SparseRegressor(),
        SparseRegressor(k=None),
        SparseRegressor(k=range(1, 4), n_jobs=2),
        SparseRegressor(k=3, method="forward", ridge=0.1),
        SparseRegressor(k=2, method=FoBa(nu=0.3)),
        SparseRegressor(k=None, method="backward"),
        SparseRegressor(k=2, fit_intercept=False),
        SparseRegressor(k=2, loss="huber", method="forward"),  # classes are exchanged below
        SparseRegressor(k=2, loss="absolute_error", method="foba"),
        SparseClassifier(k=2, method="forward", ridge=0.1),
        SparseClassifier(cv=2, ridge=[0.01, 1.0], search_ridge=0.03),  # nor on the number of ridges
        SparseClassifier(k=None),
        SparseClassifier(
            k=2, loss="hinge", method="foba", ridge=1e-4
        ),  # without a ridge the optimum need not be unique
        SparseClassifier(k=3, loss="squared_hinge", method="foba"),
        SparseClassifier(k=None, method="backward", ridge=1e-3),
    ],
)
def test_scikit_learn_checks(estimator, check):
    if "sample_weight_equivalence" in str(check):
        if not weights_are_repetitions(estimator):
            pytest.skip("Standard errors are over rows: a row of weight two is one row.")
        if estimator.loss == "hinge" and not estimator.ridge:
            estimator = clone(estimator).set_params(ridge=0.1)  # without one, rounding picks among many best models
    check(estimator)


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((60, 6)), columns=["age", "bmi", "dose", "sex", "sugar", "weight"])
    y = 2 * X["bmi"] - X["sugar"] + 0.1 * rng.standard_normal(60)
    return X, y


def test_names_follow_the_frame(frame):
    X, y = frame
    model = SparseRegressor(k=2).fit(X, y)
    assert list(model.get_feature_names_out()) == ["bmi", "sugar"]
    assert list(model.feature_names_in_) == list(X.columns)
    assert model.path_.names(1) == ["bmi"]
    assert model.get_support().tolist() == [False, True, False, False, True, False]
    assert model.get_support(indices=True).tolist() == model.support_.tolist() == [1, 4]


def test_polars_pandas_and_arrays_agree(frame):
    X, y = frame
    models = [
        SparseRegressor(k=3).fit(data, target)
        for data, target in [(X, y), (pl.from_pandas(X), pl.Series(y.to_numpy())), (X.to_numpy(), y.to_numpy())]
    ]
    for model in models[1:]:
        np.testing.assert_allclose(model.coef_, models[0].coef_, rtol=1e-12)
    assert models[1].path_.names(2) == ["bmi", "sugar"]
    assert models[2].path_.names(2) == ["x1", "x4"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, bool])
def test_arrays_of_any_numbers_are_taken_as_they_are(frame, dtype):
    table, y = frame
    X = (table.to_numpy() > 0 if dtype is bool else 3 * table.to_numpy()).astype(dtype)
    found = SparseRegressor(k=2).fit(X, y.to_numpy())
    wanted = SparseRegressor(k=2).fit(X.tolist(), y.tolist())
    assert found.support_.tolist() == wanted.support_.tolist()
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-5)
    assert found.n_features_in_ == wanted.n_features_in_ == 6


def test_names_of_an_earlier_fit_are_forgotten(frame):
    X, y = frame
    model = SparseRegressor(k=2).fit(X, y)
    model.fit(X.to_numpy()[:, :4], y.to_numpy())
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == len(model.coef_) == 4


def test_set_output_gives_frames_of_the_chosen_columns(frame):
    X, y = frame
    model = SparseRegressor(k=2).fit(X, y)
    pd.testing.assert_frame_equal(model.set_output(transform="pandas").transform(X), X[["bmi", "sugar"]])
    assert model.set_output(transform="polars").transform(X).columns == ["bmi", "sugar"]


def test_transform_of_sparse_input():
    X = sparse.random(40, 8, density=0.4, format="csc", random_state=0)
    y = X[:, 2].toarray().ravel() - X[:, 5].toarray().ravel()
    chosen = SparseRegressor(k=2).fit(X, y).transform(X)
    np.testing.assert_array_equal(chosen.toarray(), X.toarray()[:, [2, 5]])


def test_sample_weight_is_routed(frame):
    X, y = frame
    weights = np.linspace(0.1, 1, len(y))
    with config_context(enable_metadata_routing=True):
        model = SparseRegressor(k=2).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scores = cross_validate(model, X, y, params={"sample_weight": weights}, return_estimator=True)
        piped = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        piped.fit(X, y, sample_weight=weights)
    assert np.all(scores["test_score"] > 0.9)
    direct = SparseRegressor(k=2).fit(StandardScaler().fit_transform(X), y, sample_weight=weights)
    np.testing.assert_allclose(piped[-1].coef_, direct.coef_, rtol=1e-10)


def test_score_uses_the_weights(frame):
    X, y = frame
    model = SparseRegressor(k=1).fit(X, y)
    keep = np.arange(len(y)) < 20
    assert model.score(X, y, sample_weight=keep.astype(float)) == pytest.approx(model.score(X[keep], y[keep]))


def test_grid_search_over_k_and_methods(frame):
    X, y = frame
    search = GridSearchCV(SparseRegressor(), {"k": [1, 2, 3], "method": ["forward", FoBa(nu=0.2)]}).fit(X, y)
    assert search.best_params_["k"] >= 2


def test_clone_and_pickle(frame):
    X, y = frame
    model = SparseRegressor(k=3, method=FoBa(nu=0.3), ridge=0.5).fit(X, y)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        twin.predict(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.path_.moves == model.path_.moves
    assert again.stop_ is model.stop_


def test_at_gives_a_fitted_model_of_another_size_without_refitting(frame):
    X, y = frame
    model = SparseRegressor(k=4).fit(X, y)
    small = model.at(2)
    assert (small.k, small.k_, model.k_) == (2, 2, 4)
    np.testing.assert_allclose(small.predict(X), SparseRegressor(k=2).fit(X, y).predict(X), rtol=1e-10)
    assert small.path_ is model.path_
    with pytest.raises(KeyError, match="no model of size 5 on this path; it has sizes 0-4"):
        model.at(5)
