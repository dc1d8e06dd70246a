"""SQL, Python and ONNX predict what the model predicts, for every kind of model and for any names."""

import ast
import math
import sqlite3
import sys

import numpy as np
import pandas as pd
import pytest
from fitted_models import MAKERS, NAMES, fitted, rows_for, table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pauca import SparseClassifier, SparseRegressor
from pauca.export.formula import formula_of
from pauca.losses import LogLoss, Poisson, SquaredError

CLASSIFIERS = [
    name for name, make in MAKERS.items() if any(used.endswith("Classifier") for used in make.__code__.co_names)
]


def names_of(model):
    return list(getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)]))


# SQL.


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def database(names, rows, name="data"):
    """A table in memory, with a key; EXP fails on overflow, as in databases stricter than SQLite."""
    connection = sqlite3.connect(":memory:")
    connection.create_function("EXP", 1, lambda x: None if x is None else math.exp(x))
    columns = ", ".join(map(quoted, ["key", *names]))
    connection.execute(f"CREATE TABLE {quoted(name)} ({columns})")
    places = ", ".join("?" * (len(names) + 1))
    keyed = [(i, *row) for i, row in enumerate(rows)]
    connection.executemany(f"INSERT INTO {quoted(name)} VALUES ({places})", keyed)
    return connection


def selected(model, X, **options):
    connection = database(names_of(model), np.asarray(X).tolist())
    found = pd.read_sql_query(model.to_sql("data", keep=["key"], **options) + " ORDER BY 1", connection)
    assert found.pop("key").tolist() == list(range(len(X)))
    return found


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in CLASSIFIERS])
def test_sql_predicts_numbers(name):
    model = fitted(name)
    X = rows_for(model)
    found = selected(model, X)
    assert list(found) == (model.path_.output_names or ["prediction"])
    np.testing.assert_allclose(
        found.to_numpy().reshape(model.predict(X).shape), model.predict(X), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_sql_predicts_classes(name):
    model = fitted(name)
    X = rows_for(model)
    found = selected(model, X)
    assert found.pop("prediction").tolist() == model.predict(X).tolist()
    wanted = model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)
    wanted = wanted[:, -found.shape[1] :] if wanted.ndim == 2 else wanted[:, None]
    np.testing.assert_allclose(found.to_numpy(), wanted, rtol=1e-12, atol=1e-12)
    word = "probability" if hasattr(model, "predict_proba") else "score"
    assert list(found) == [f"{word} of {label}" for label in model.classes_.tolist()[-found.shape[1] :]]


@pytest.mark.parametrize("name", MAKERS)
def test_sql_expressions_alone(name):
    model = fitted(name)
    if len(getattr(model, "classes_", [])) > 2:
        with pytest.raises(ValueError, match=r"need a complete SELECT: call to_sql\(table=\.\.\.\)"):
            model.to_sql()
        return
    X = rows_for(model)
    connection = database(names_of(model), np.asarray(X).tolist())
    found = np.array(connection.execute(f'SELECT {model.to_sql()} FROM "data" ORDER BY "key"').fetchall(), dtype=object)
    predicted = model.predict(X)
    if hasattr(model, "classes_"):
        assert found[:, 0].tolist() == predicted.tolist()
    else:
        found = found.astype(float).reshape(predicted.shape)
        np.testing.assert_allclose(found, predicted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "name", ["squared_error", "poisson", "outputs", "words", "hinge", "multinomial", "many hinges"]
)
def test_null_gives_null(name):
    model = fitted(name)
    X = np.asarray(rows_for(model))[:4].astype(object)
    X[1, model.support_[0]] = None
    X[2, np.setdiff1d(np.arange(6), model.support_)[0]] = None
    connection = database(names_of(model), X.tolist())
    found = connection.execute(model.to_sql("data")).fetchall()
    assert [all(value is None for value in row) for row in found] == [False, True, False, False]
    assert not any(value is None for row in (found[0], *found[2:]) for value in row)


@pytest.mark.parametrize("name", ["words", "multinomial"])
def test_sql_far_from_the_data(name):
    model = fitted(name)
    X = 1e6 * table()[0].to_numpy()[:9] * [[1, 1, -1, 1, 1, -1]]
    found = selected(model, X)
    X = pd.DataFrame(X, columns=names_of(model))
    assert found.pop("prediction").tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(found, model.predict_proba(X)[:, -found.shape[1] :], atol=1e-12)


def test_integer_columns():
    X = pd.DataFrame({"a": [1, 2, 3, 4], "b": [1, 0, 1, 1]})
    model = SparseRegressor(k=2).fit(X, [0.5, 0.25, 1.5, 2.25])
    found = database(["a", "b"], X.to_numpy().tolist()).execute(model.to_sql("data")).fetchall()
    np.testing.assert_allclose(np.ravel(found), model.predict(X), rtol=1e-12)


def test_a_missing_column_is_an_error_not_a_text():
    model = fitted("squared_error")
    connection = database(names_of(model)[:2], [])
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        connection.execute(model.to_sql("data"))


@pytest.mark.parametrize("name", ["squared_error", "words", "multinomial", "many hinges"])
def test_tables_and_kept_columns_by_any_name(name):
    model = fitted(name)
    columns = [*names_of(model), "s0", 'k0 "x"', "best", "t", "largest"]
    X = np.asarray(rows_for(model))
    rows = np.column_stack([X, np.arange(len(X) * 5).reshape(-1, 5)]).tolist()
    connection = database(columns, rows, 'main" t; --')
    sql = model.to_sql(["main", 'main" t; --'], keep=columns[6:])
    found = pd.read_sql_query(sql, connection)
    assert list(found)[:5] == columns[6:]
    assert found.iloc[:, :5].to_numpy().ravel().tolist() == list(range(len(X) * 5))


def test_sql_errors():
    with pytest.raises(ValueError, match=r"need a complete SELECT: call to_sql\(table=...\)"):
        fitted("multinomial").to_sql()
    with pytest.raises(ValueError, match="keep needs a table"):
        fitted("squared_error").to_sql(keep=["key"])
    with pytest.raises(ValueError, match="keep holds a name of a result column: 'prediction'"):
        fitted("words").to_sql("data", keep=["prediction"])
    for bad in ("a\0b", "\ud800", 'a\\"', "a\\"):
        with pytest.raises(ValueError, match="cannot be written safely in SQL"):
            fitted("squared_error").to_sql(bad)


@pytest.mark.parametrize("name", MAKERS)
def test_models_that_are_not_fitted_are_not_written(name):
    model = type(fitted(name))()
    for verb in ("to_sql", "to_python", "to_onnx"):
        with pytest.raises(NotFittedError):
            getattr(model, verb)()


# Python.


def module_of(model):
    source = model.to_python()
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [alias.name for node in imports for alias in node.names] == ["math"]
    module = {}
    exec(compile(source, "model", "exec"), module)
    return module


@pytest.mark.parametrize("name", MAKERS)
def test_python_predicts(name):
    model = fitted(name)
    X = rows_for(model)
    rows = [dict(zip(names_of(model), row, strict=True)) for row in np.asarray(X).tolist()]
    module = module_of(model)
    predicted = [module["predict"](row) for row in rows]
    assert ("predict_proba" in module) == hasattr(model, "predict_proba")
    if name not in CLASSIFIERS:
        np.testing.assert_allclose(predicted, model.predict(X), rtol=1e-12, atol=1e-12)
        return
    assert predicted == model.predict(X).tolist()
    assert list(module["CLASSES"]) == model.classes_.tolist()
    if hasattr(model, "predict_proba"):
        found = [module["predict_proba"](row) for row in rows]
        np.testing.assert_allclose(found, model.predict_proba(X), rtol=1e-12, atol=1e-12)


def test_python_needs_the_chosen_columns_only_and_names_what_is_missing():
    model = fitted("squared_error")
    predict = module_of(model)["predict"]
    row = dict.fromkeys(model.get_feature_names_out(), 0.0)
    assert predict(row) == pytest.approx(model.intercept_)
    assert predict(dict.fromkeys(row, "0")) == predict(row)  # as the csv module reads it
    for name in list(row):
        with pytest.raises(KeyError) as caught:
            predict({key: value for key, value in row.items() if key != name})
        assert caught.value.args == (name,)
        with pytest.raises(ValueError, match="must hold a finite number; got nan"):
            predict({**row, name: math.nan})


@pytest.mark.parametrize("name", ["words", "multinomial", "poisson"])
def test_python_far_from_the_data(name):
    model = fitted(name)
    X = 1e6 * table()[0].iloc[:9]
    module = module_of(model)
    rows = X.to_dict("records")
    with np.errstate(over="ignore"):
        assert [module["predict"](row) for row in rows] == pytest.approx(model.predict(X).tolist())
    if name != "poisson":
        np.testing.assert_allclose([module["predict_proba"](row) for row in rows], model.predict_proba(X), atol=1e-12)


# Any names.


def renamed(model, names):
    """The model as if it had been fitted on a table with these names."""
    other = model.at(model.k_)
    other.path_ = type(model.path_)(**{**vars(model.path_), "column_names": np.array(names, dtype=object)})
    other.feature_names_in_ = other.path_.column_names
    return other


# SQLite takes names for one that differ in the case of ASCII letters only, and has a key column in these tests.
NASTY = st.sampled_from(['"', "'", '""; DROP TABLE data; --', "\\'", "\n", "{}", "%s", '"""', "#", "\u202e", "", "é"])
TEXTS = st.lists(st.text(max_size=8) | NASTY, min_size=6, max_size=6, unique_by=str.lower)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    names=TEXTS.filter(lambda names: "key" not in map(str.lower, names)),
    kind=st.sampled_from(["squared_error", "words"]),
)
def test_any_names_are_safe_in_sql(names, kind):
    plain = fitted(kind)
    model = renamed(plain, names)
    used = [names[j] for j in model.support_]
    X = table()[0].to_numpy()[:5]
    if any("\0" in name or '\\"' in name or "\\'" in name or name.endswith("\\") for name in used):
        with pytest.raises(ValueError, match="cannot be written safely in SQL"):
            model.to_sql("data")
        return
    connection = database(used, X[:, model.support_].tolist())
    found = connection.execute(model.to_sql("data")).fetchall()
    predicted = plain.predict(pd.DataFrame(X, columns=NAMES))
    if kind == "words":
        assert [row[0] for row in found] == predicted.tolist()
    else:
        np.testing.assert_allclose(np.ravel(found), predicted, rtol=1e-12, atol=1e-12)
    assert connection.execute("SELECT count(*) FROM data").fetchone() == (5,)


@settings(max_examples=60, deadline=None)
@given(names=st.lists(st.text(st.characters(), max_size=8) | NASTY, min_size=6, max_size=6, unique=True))
def test_any_names_are_safe_in_python(names):
    plain = fitted("squared_error")
    module = module_of(renamed(plain, names))
    X = table()[0].to_numpy()[:5]
    found = [module["predict"](dict(zip(names, row, strict=True))) for row in X.tolist()]
    np.testing.assert_allclose(found, plain.predict(pd.DataFrame(X, columns=NAMES)), rtol=1e-12, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(labels=st.lists(st.text(max_size=8) | NASTY, min_size=3, max_size=3, unique=True))
def test_any_classes_are_safe(labels):
    X, _ = table()
    labels = np.unique(np.array(labels, dtype=object))
    model = fitted("many hinges").at(2)
    model.classes_ = labels
    module = module_of(model)
    codes = fitted("many hinges").predict(X)[:5] + 1
    assert [module["predict"](row) for row in X[:5].to_dict("records")] == labels[codes].tolist()
    try:
        sql = model.to_sql("data")
    except ValueError as error:
        assert "cannot be written safely in SQL" in str(error)  # noqa: PT017 - most labels are not refused
        return
    found = database(NAMES, X[:5].to_numpy().tolist()).execute(sql).fetchall()
    assert [row[0] for row in found] == labels[codes].tolist()


# Custom losses.


class Doubled(SquaredError):
    def prediction(self, a):
        return 2 * a


class Counts(Poisson):
    link = "exp"

    def prediction(self, a):
        return np.exp(a)


class Sharp(LogLoss):
    def probabilities(self, a):
        upper = (a[0] > 0).astype(float)
        return np.stack([1 - upper, upper])


def test_a_loss_declares_its_link():
    X, score = table()
    assert formula_of(SparseRegressor(k=1, loss=Counts()).fit(X, np.floor(np.exp(score)))).link == "exp"
    model = SparseRegressor(k=1, loss=Doubled()).fit(X, score)
    for verb in (model.to_sql, model.to_python):
        with pytest.raises(ValueError, match="which cannot be exported"):
            verb()
    classifier = SparseClassifier(k=1, loss=Sharp()).fit(X, score > 0)
    assert "predict_proba" not in module_of(classifier)
    assert '"score of True"' in classifier.to_sql()


# ONNX.


@pytest.fixture
def onnx():
    reason = "the extra [onnx] is not installed (pip install skl2onnx onnxruntime)"
    pytest.importorskip("skl2onnx", reason=reason)
    return pytest.importorskip("onnxruntime", reason=reason)


def answers(onnx, graph, X):
    session = onnx.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"X": np.ascontiguousarray(X)})


@pytest.mark.parametrize("name", MAKERS)
def test_onnx_predicts(onnx, name):
    model = fitted(name)
    X = rows_for(model)
    *labels, numbers = answers(onnx, model.to_onnx(), np.asarray(X))
    assert numbers.dtype == np.float64
    if name not in CLASSIFIERS:
        np.testing.assert_allclose(numbers.reshape(model.predict(X).shape), model.predict(X), rtol=1e-12, atol=1e-12)
        return
    assert labels[0].tolist() == model.predict(X).tolist()
    wanted = model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)
    np.testing.assert_allclose(numbers, wanted.reshape(numbers.shape), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["squared_error", "multinomial", "hinge"])
def test_onnx_in_a_pipeline(onnx, name, dtype):
    import skl2onnx

    from pauca.export.onnx import register

    register()
    X, score = table()
    given = np.ascontiguousarray(X, dtype=dtype)
    y = score if name == "squared_error" else fitted(name).predict(X)
    final = SparseRegressor(k=3) if name == "squared_error" else SparseClassifier(k=2, ridge=0.1, loss="log_loss")
    pipeline = make_pipeline(StandardScaler(), final).fit(given, y)
    options = None if name == "squared_error" else {"zipmap": False}
    graph = skl2onnx.to_onnx(pipeline, given[:1], options=options)
    *labels, numbers = answers(onnx, graph, given)
    tolerance = 1e-12 if dtype == np.float64 else 1e-4
    assert numbers.dtype == dtype
    wanted = pipeline.predict(given)[:, None] if name == "squared_error" else pipeline.predict_proba(given)
    np.testing.assert_allclose(numbers, wanted, rtol=tolerance, atol=tolerance)
    if labels:
        assert np.mean(labels[0] == pipeline.predict(given)) == 1


def test_onnx_classes_that_it_does_not_know(onnx):
    model = fitted("bools").at(2)
    model.classes_ = np.array([0.5, 1.5])
    with pytest.raises(ValueError, match="ONNX only has classes that are strings or integers"):
        model.to_onnx()


def test_without_skl2onnx_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match="pip install skl2onnx"):
        fitted("squared_error").to_onnx()
