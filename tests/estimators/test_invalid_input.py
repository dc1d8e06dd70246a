"""Bad input gets a clear error before any work, in scikit-learn's words; odd input gets a finite answer."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from pauca import (
    L1Classifier,
    L1Regressor,
    PaucaWarning,
    SparseClassifier,
    SparseOrdinalClassifier,
    SparseRegressor,
    Stop,
    StreamClassifier,
    StreamRegressor,
    sparsify,
)
from pauca.methods import Backward, Exchange, FoBa, Forward

METHODS = ["forward", "backward", "foba", "exchange"]


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 5))
    return X, X @ [1.0, 0, -2, 0, 0.5] + 0.1 * rng.standard_normal(30)


@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series, pl.Series, "".join])
def test_texts_are_refused_in_a_few_words(data, form):
    X, y = data
    texts = form([f"a long review of film {row}, " * 50 for row in range(30)])
    model = SparseRegressor(k=2).fit(X, y)
    for ask in (
        lambda: SparseRegressor(k=2).fit(texts, y),
        lambda: SparseClassifier(k=2).fit(texts, y > 0),
        lambda: model.predict(texts),
        lambda: sparsify(model.coef_, texts, k=2),
    ):
        with pytest.raises(ValueError, match="X holds texts, and must be a table of numbers") as caught:
            ask()
        assert "CountVectorizer" in str(caught.value)
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "estimator",
    [
        SparseClassifier(k=2),
        SparseRegressor(k=2),
        SparseOrdinalClassifier(k=2),
        L1Classifier(1.0),
        L1Regressor(1.0),
        StreamClassifier(k=2),
        StreamRegressor(k=2),
    ],
)
def test_times_to_an_event_are_for_another_estimator(data, estimator):
    X, y = data
    times = np.array(list(zip(y > 0, np.abs(y).round(), strict=True)), dtype=[("fstat", "?"), ("lenfol", "<f8")])
    with pytest.raises(
        ValueError, match=r"^y has the fields 'fstat', 'lenfol': for times to an event use SparseCox\.$"
    ):
        estimator.fit(X, times)


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ({"k": 0}, ValueError, "'k' parameter of SparseRegressor must be an int in the range \\[1, inf\\).*Got 0"),
        ({"k": -3}, ValueError, "'k' parameter"),
        ({"k": 2.0}, TypeError, "'k' parameter.*Got 2.0"),
        ({"k": "3"}, ValueError, "'k' parameter.*'auto'"),
        ({"k": []}, ValueError, "'k' parameter.*range"),
        ({"k": [1, 2.5]}, ValueError, "'k' parameter.*range"),
        ({"selection_rule": "2se"}, ValueError, "'selection_rule' parameter.*'1se', 'best'"),
        ({"criterion": "cp"}, ValueError, "'criterion' parameter.*'aic', 'bic', 'ebic'"),
        ({"criterion": "bic", "cv": 3}, ValueError, "needs no folds: leave out cv"),
        ({"cv": 1}, ValueError, "at least 2 folds"),
        ({"cv": "5"}, TypeError, "cv must be an integer, a splitter"),
        ({"scoring": "accuracyy"}, ValueError, "get_scorer_names"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be"),
        ({"k": True}, TypeError, "'k' parameter"),
        ({"ridge": -1}, ValueError, "'ridge' parameter"),
        ({"ridge": np.nan}, ValueError, "'ridge' parameter"),
        ({"ridge": "a"}, ValueError, "'ridge' parameter.*'auto' or None.*Got 'a'"),
        ({"ridge": True}, TypeError, "'ridge' parameter"),
        ({"ridge": []}, ValueError, "'ridge' parameter.*list is empty"),
        ({"ridge": [0.1, -1]}, ValueError, "'ridge' parameter.*Got -1"),
        ({"ridge": [0.1, np.inf]}, ValueError, "'ridge' parameter.*Got inf"),
        ({"search_ridge": [0.1, "b"]}, TypeError, "'search_ridge' parameter.*Got 'b'"),
        ({"search_ridge": -1}, ValueError, "'search_ridge' parameter"),
        ({"ridge": "auto", "criterion": "bic"}, ValueError, "'criterion' compares sizes at one ridge"),
        ({"ridge": [0, 1], "k": None}, ValueError, "k=None cannot be combined with ridge"),
        ({"standardize": 1}, TypeError, "'standardize' parameter"),
        ({"selection_rule": -1}, ValueError, "'selection_rule' parameter"),
        ({"selection_rule": np.nan}, ValueError, "'selection_rule' parameter"),
        ({"ridge": 10**400}, ValueError, "'ridge' parameter.*Got inf"),
        ({"tol": -1e-3}, ValueError, "'tol' parameter"),
        ({"time_limit": 0}, ValueError, "'time_limit' parameter"),
        ({"method": "lasso"}, ValueError, "method must be one of 'backward', 'exact', 'exchange', 'foba'"),
        ({"method": FoBa}, ValueError, "method must be one of"),
        ({"fit_intercept": "no"}, TypeError, "'fit_intercept' parameter of SparseRegressor must be a bool"),
        ({"warm_start": 1}, TypeError, "'warm_start' parameter"),
        ({"callback": 3}, TypeError, "'callback' parameter of SparseRegressor must be a callable or None"),
    ],
)
def test_options_are_refused(data, params, error, words):
    with pytest.raises(error, match=words):
        SparseRegressor(**params).fit(*data)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Forward(rule="best"), ValueError, "'rule' .* Forward must be one of 'objective', 'gradient', 'refit'"),
        (lambda: Backward(removal="x"), ValueError, "'removal' parameter of Backward must be one of"),
        (lambda: FoBa(nu=1.0), ValueError, r"'nu' parameter of FoBa must be a float in the range \(0, 1\)"),
        (lambda: FoBa(nu="a"), TypeError, r"'nu' parameter of FoBa must be a float in the range \(0, 1\)"),
        (lambda: FoBa(compare="all"), ValueError, "'compare' parameter of FoBa must be one of"),
        (
            lambda: FoBa(max_steps=0),
            ValueError,
            r"'max_steps' parameter of FoBa must be an int in the range \[1",
        ),
        (lambda: Exchange(detour=-1), ValueError, r"'detour' parameter of Exchange must be an int in the range \[0"),
        (
            lambda: Exchange(scouts="forward"),
            ValueError,
            "'scouts' .* a tuple of Forward and FoBa methods, or None",
        ),
    ],
)
def test_method_options_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize("kind", ["dense", "csc", "csr"])
@pytest.mark.parametrize(("value", "words"), [(np.nan, "Input X contains NaN"), (np.inf, "Input X contains infinity")])
def test_values_that_are_not_finite_are_named(data, kind, value, words):
    X, y = data
    X = X.copy()
    X[3, 2] = value
    given = X if kind == "dense" else sparse.csc_array(X).asformat(kind)
    with pytest.raises(ValueError, match=f"{words}[^$]*'x2'"):
        SparseRegressor(k=2).fit(given, y)


def test_bad_columns_are_named_by_the_frame(data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.loc[4, "d"] = np.nan
    with pytest.raises(ValueError, match="Found in: 'd'"):
        SparseRegressor(k=2).fit(frame, y)
    frame["d"] = "text"
    with pytest.raises(ValueError, match="Columns that do not hold numbers: 'd'"):
        SparseRegressor(k=2, categorical_features=None).fit(frame, y)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pd.Categorical(["x", "y"] * 15), "Columns that do not hold numbers: 'd'"),
        (pd.Timestamp("2020-01-01"), "Columns that hold dates or times: 'd'"),
        (pd.Timedelta("1D"), "Columns that hold dates or times: 'd'"),
    ],
)
def test_columns_that_are_not_numbers(data, column, words):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcde")).assign(d=column)
    with pytest.raises(ValueError, match=words):
        SparseRegressor(k=2, categorical_features=None).fit(frame, y)


@pytest.mark.parametrize("value", ["x", datetime.date(2020, 1, 1), datetime.timedelta(days=1)])
def test_polars_columns_that_are_not_numbers(data, value):
    X, y = data
    frame = pl.DataFrame(X, schema=list("abcde")).with_columns(d=pl.lit(value))
    with pytest.raises(ValueError, match=r"Columns that .*: 'd'"):
        SparseRegressor(k=2, categorical_features=None).fit(frame, y)
    with pytest.raises(ValueError, match=r"Columns that .*: 'd'"):
        SparseRegressor(k=2, categorical_features=None).fit(frame.lazy(), y)


@pytest.mark.parametrize("kind", ["frame", "csc", "csr"])
def test_prediction_names_bad_columns_too(data, kind):
    X, y = data
    model = SparseRegressor(k=2).fit(pd.DataFrame(X, columns=list("abcde")) if kind == "frame" else X, y)
    X = X.copy()
    X[3, 2] = np.nan
    given = pd.DataFrame(X, columns=list("abcde")) if kind == "frame" else sparse.csc_array(X).asformat(kind)
    with pytest.raises(ValueError, match=r"Input X contains NaN[^$]*Found in: '(c|x2)'"):
        model.predict(given)


def test_objects_that_are_numbers_are_read_as_such(data):
    X, y = data
    model = SparseRegressor(k=2).fit(X, y)
    np.testing.assert_array_equal(SparseRegressor(k=2).fit(X.astype(object), y).coef_, model.coef_)


def test_values_too_large_to_square(data):
    X, y = data
    with pytest.raises(ValueError, match=r"too large to be squared.*'x1'"):
        SparseRegressor(k=2).fit(X * [1, 1e200, 1, 1, 1], y)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.ones((3, 2)), np.ones(4)),
        (np.ones(3), np.ones(3)),
        (np.ones((3, 2, 2)), np.ones(3)),
        (np.ones((0, 2)), np.ones(0)),
        (np.ones((3, 0)), np.ones(3)),
        (np.ones((3, 2)), np.ones((3, 2, 1))),
        (np.ones((3, 2)), np.array([1.0, np.nan, 2.0])),
        (np.ones((3, 2)) * 1j, np.ones(3)),
    ],
)
def test_wrong_shapes_and_targets(X, y):
    with pytest.raises(ValueError):  # noqa: PT011 - scikit-learn words these
        SparseRegressor(k=1).fit(X, y)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (-np.ones(30), "Negative values in data passed to `sample_weight`"),
        (np.zeros(30), "All values in `sample_weight` are zero"),
        (np.ones(29), r"sample_weight.shape == \(29,\), expected \(30,\)"),
        (np.full(30, np.nan), "sample_weight contains NaN"),
    ],
)
def test_weights_are_refused(data, weights, words):
    with pytest.raises(ValueError, match=words):
        SparseRegressor(k=2).fit(*data, sample_weight=weights)


@pytest.mark.parametrize("method", METHODS)
def test_more_features_than_there_are(data, method):
    with pytest.warns(
        PaucaWarning, match="k=9 features were requested, but only 5 of [0-9]+ can be used together"
    ) as caught:
        model = SparseRegressor(k=9, method=method).fit(*data)
    assert len(caught) == 1
    assert model.k_ == 5
    assert model.stop_ is Stop.EXHAUSTED


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_useless_columns_are_named_once_and_never_chosen(data, method, ridge):
    X, y = data
    columns = {
        "zero": np.zeros(30),
        "first": X[:, 0],
        "constant": np.full(30, 0.1),
        "copy": X[:, 0] + 1,
        "second": X[:, 2],
    }
    with pytest.warns(PaucaWarning) as caught:
        model = SparseRegressor(k=5, method=method, ridge=ridge).fit(pd.DataFrame(columns), y)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "Constant columns were left out: 'zero', 'constant'" in message
    assert "linear combinations of chosen ones were left out: 'copy'" in message
    assert list(model.get_feature_names_out()) == ["first", "second"]
    assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize("method", METHODS)
def test_linear_dependence_without_copies(method):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 4))
    X = np.column_stack([X, X[:, 0] + X[:, 1], X[:, 1] - X[:, 2] + X[:, 3]])
    y = X @ rng.standard_normal(6) + 0.1 * rng.standard_normal(40)
    with pytest.warns(PaucaWarning, match="only 4 of [0-9]+ can be used together"):
        model = SparseRegressor(k=6, method=method).fit(X, y)
    assert np.linalg.matrix_rank(X[:, model.support_]) == model.k_ == 4
    assert max(m.size for m in model.path_) == 4


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [None, 2])
def test_constant_target_gives_the_empty_model_in_silence(data, method, k):
    X, _ = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SparseRegressor(k=k, method=method).fit(X, np.full(30, 0.1))
    assert model.k_ == 0
    assert model.stop_ is Stop.PERFECT
    assert not model.coef_.any()
    np.testing.assert_allclose(model.predict(X), 0.1)
    assert "0 features of 5" in model.summary()


@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n", "d", "k"), [(1, 3, 2), (5, 1, 1), (4, 9, 8), (2, 2, 2), (1, 1, 1)])
def test_tiny_data(method, n, d, k):
    rng = np.random.default_rng(n + d)
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    model = SparseRegressor(k=k, method=method).fit(X, y)
    assert model.k_ <= min(k, n - 1, d)
    assert np.count_nonzero(model.coef_) <= k
    assert np.all(np.isfinite(model.predict(X)))
    if model.k_ == n - 1:
        np.testing.assert_allclose(model.predict(X), y, atol=1e-8)


def test_a_start_from_more_columns_than_memory_holds_is_refused(data, monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda name: 10)
    with pytest.raises(MemoryError, match=r"Starting from all 5 columns takes about .* Use a method that grows"):
        SparseRegressor(k=2, method="backward").fit(*data)


def test_a_perfect_fit_ends_the_search(data):
    X, _ = data
    model = SparseRegressor().fit(X, 3 * X[:, 1] - X[:, 4])
    assert model.support_.tolist() == [1, 4]
    assert model.stop_ is Stop.PERFECT
    assert model.objective_ == pytest.approx(0, abs=1e-25)


def test_column_vector_target_is_one_output_of_two_dimensions(data):
    X, y = data
    model, plain = SparseRegressor(k=2).fit(X, y[:, None]), SparseRegressor(k=2).fit(X, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_[None])
    np.testing.assert_array_equal(model.predict(X), plain.predict(X)[:, None])
