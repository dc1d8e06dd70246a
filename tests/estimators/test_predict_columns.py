"""Prediction needs the chosen columns only: by name from frames, and whatever the other columns hold."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from pauca import SparseClassifier, SparseRegressor


def as_polars(frame):
    return pl.DataFrame({name: frame[name].tolist() for name in frame})


NAMES = ["age", "bmi", "dose", "sex", "sugar", "weight"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((60, 6)), columns=NAMES)
    return X, 2 * X["bmi"] - X["sugar"] + 0.1 * rng.standard_normal(60)


@pytest.fixture(scope="module")
def regressor(table):
    return SparseRegressor(k=2).fit(*table)


@pytest.fixture(scope="module")
def classifier(table):
    X, y = table
    return SparseClassifier(k=2, ridge=1e-3).fit(X, np.where(y > 0, "high", "low"))


@pytest.mark.parametrize("frame", [pd.DataFrame, as_polars])
@pytest.mark.parametrize(
    "columns",
    [
        ["bmi", "sugar"],
        ["sugar", "bmi"],
        ["weight", "sugar", "age", "bmi"],
        NAMES,
        ["patient", *NAMES],
        ["patient", *NAMES[::-1]],
    ],
)
def test_frames_need_the_chosen_columns_only(table, regressor, classifier, frame, columns):
    X, y = table
    given = frame(X.assign(patient="somebody")[columns])
    np.testing.assert_allclose(regressor.predict(given), regressor.predict(X), rtol=1e-13)
    assert regressor.score(given, y) == pytest.approx(regressor.score(X, y), rel=1e-13)
    for verb in ("predict_proba", "predict_log_proba", "decision_function"):
        np.testing.assert_allclose(getattr(classifier, verb)(given), getattr(classifier, verb)(X), rtol=1e-11)
    assert classifier.predict(given).tolist() == classifier.predict(X).tolist()


def test_a_fit_on_one_kind_of_frame_predicts_from_the_other(table, regressor):
    X, y = table
    model = SparseRegressor(k=2).fit(as_polars(X), y)
    np.testing.assert_allclose(model.predict(X[["sugar", "bmi"]]), regressor.predict(X), rtol=1e-12)


def test_a_smaller_model_needs_fewer_columns(table, regressor):
    X, _ = table
    np.testing.assert_allclose(regressor.at(1).predict(X[["bmi"]]), regressor.at(1).predict(X), rtol=1e-13)


@pytest.mark.parametrize("frame", [pd.DataFrame, as_polars])
def test_a_column_that_is_needed_and_missing_is_named(table, regressor, frame):
    X, _ = table
    with pytest.raises(ValueError, match=r"The model needs columns that X does not have: 'sugar'\.$"):
        regressor.predict(frame(X[["bmi", "age"]]))
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        regressor.predict(frame(X[["bmi", "age"]]))


def test_all_columns_in_another_order_are_refused_as_everywhere_in_scikit_learn(table, regressor):
    X, _ = table
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        regressor.predict(X[NAMES[::-1]])


def test_a_needed_name_that_stands_for_two_columns_is_refused(table, regressor):
    X, _ = table
    with pytest.raises(ValueError, match="X has several columns of one name: 'bmi'"):
        regressor.predict(X[["bmi", "sugar", "bmi"]])


@pytest.mark.parametrize("kind", ["pandas", "polars", "array", "csc", "csr"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_columns_of_frames_that_are_not_used_may_hold_anything(table, kind, value):
    X, y = table
    forms = {
        "pandas": lambda X: X,
        "polars": as_polars,
        "array": pd.DataFrame.to_numpy,
        "csc": lambda X: sparse.csc_array(X.to_numpy()),
        "csr": lambda X: sparse.csr_array(X.to_numpy()),
    }
    model = SparseRegressor(k=2).fit(forms[kind](X), y)
    holes = X.copy()
    holes.loc[3, ["age", "weight"]] = value
    wanted = "x0', 'x5"
    if kind in {"pandas", "polars"}:
        np.testing.assert_allclose(model.predict(forms[kind](holes)), model.predict(forms[kind](X)), rtol=1e-13)
        holes.loc[5, "sugar"] = value
        wanted = "sugar"
    with pytest.raises(ValueError, match=rf"Input X contains (NaN|infinity)[^$]*Found in: '{wanted}'\."):
        model.predict(forms[kind](holes))


def test_text_in_a_used_column_is_named_and_elsewhere_ignored(table, regressor):
    X, _ = table
    np.testing.assert_allclose(regressor.predict(X.assign(age="old")), regressor.predict(X), rtol=1e-13)
    with pytest.raises(ValueError, match="Columns that do not hold numbers: 'bmi'"):
        regressor.predict(X.assign(bmi="high"))
    with pytest.raises(ValueError, match="Columns that hold dates or times: 'bmi'"):
        regressor.predict(X.assign(bmi=pd.Timestamp("2020-01-01")))


def test_the_chosen_columns_without_names_are_refused(table):
    X, y = table[0].to_numpy(), table[1]
    model = SparseRegressor(k=2).fit(X, y)
    words = r"X has 2 features, but SparseRegressor is expecting 6 features as input\..*can only be found by name"
    with pytest.raises(ValueError, match=words):
        model.predict(X[:, model.support_])
    with pytest.raises(ValueError, match=r"expecting 6 features as input\.$"):
        model.predict(X[:, :3])


def test_a_model_of_no_columns_keeps_to_scikit_learns_words(table):
    X, _ = table
    model = SparseRegressor(k=2).fit(X, np.zeros(len(X)))
    assert model.k_ == 0
    assert not model.predict(X).any()
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X[["age"]])


def test_no_rows_are_refused_in_scikit_learns_words(table, regressor):
    X, _ = table
    with pytest.raises(ValueError, match="Found array with 0 sample"):
        regressor.predict(X[["bmi", "sugar"]][:0])


def test_lazy_frames_are_predicted_by_name(table, regressor):
    frame = as_polars(table[0])
    np.testing.assert_array_equal(regressor.predict(frame.lazy()), regressor.predict(frame))
