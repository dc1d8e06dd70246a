"""SparsePrecision: its files, and the tables and options that it refuses."""

import pickle

import numpy as np
import pandas as pd
import pytest
from graph_tables import NAMES, chain, frame
from scipy.linalg import hadamard
from sklearn.base import clone
from sklearn.covariance import log_likelihood
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import pauca
from pauca import ModelFileError, PaucaWarning, SparsePrecision
from pauca.graphical import newton
from pauca.methods import FoBa


def test_rows_that_are_all_alike_have_a_likelihood():
    X = chain()
    model = SparsePrecision(k=4, assume_centered=True).fit(X)
    for rows in (X[:1], np.repeat(X[:1], 3, axis=0)):
        assert model.score(rows) == pytest.approx(log_likelihood(rows.T @ rows / len(rows), model.precision_))


def test_likelihoods_of_values_too_large_to_be_squared():
    model = SparsePrecision(k=4).fit(frame())
    with pytest.raises(ValueError, match=r"too large to be squared.*'bp'"):
        model.score(frame().assign(bp=1e200 * np.arange(300)))


def test_covariances_of_other_columns_are_refused():
    model = SparsePrecision(k=4).fit(chain())
    with pytest.raises(ValueError, match=r"the 6 columns of the fit; its shape is \(5, 5\)"):
        model.error_norm(np.eye(5))
    with pytest.raises(NotFittedError):
        SparsePrecision().error_norm(np.eye(5))


def test_clone_pickle_and_search():
    X = frame()
    model = SparsePrecision(k=4, method=FoBa(nu=0.3)).fit(X)
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.precision_, model.precision_)
    assert GridSearchCV(SparsePrecision(), {"k": [1, 5]}).fit(X).best_params_ == {"k": 5}


@pytest.mark.parametrize(
    "made",
    [
        lambda: SparsePrecision(k=4, always=[("bmi", "age")], method=FoBa(nu=0.3)).fit(frame()),
        lambda: SparsePrecision(shrinkage=0.2).fit(frame()),
        lambda: SparsePrecision(k=3).fit(chain(n=5)),
        lambda: SparsePrecision(k=3).fit(chain()).at(0),
    ],
    ids=["frame", "chosen", "few rows", "size 0"],
)
def test_files(tmp_path, made):
    model = made()
    has_names = hasattr(model, "feature_names_in_")
    model.save(tmp_path / "graph.json")
    again = pauca.load(tmp_path / "graph.json")
    assert again.get_params()["method"] == model.get_params()["method"]
    assert (again.edges_, again.k_, again.n_features_in_) == (model.edges_, model.k_, 6)
    np.testing.assert_array_equal(again.covariance_, model.covariance_)
    np.testing.assert_array_equal(again.at(1).precision_, model.at(1).precision_)
    assert again.summary() == model.summary()
    rows = frame(seed=1) if has_names else chain(seed=1)
    assert again.score(rows) == model.score(rows)
    assert list(again.path_.column_names) == list(model.path_.column_names)
    assert getattr(again, "feature_names_in_", np.array([])).tolist() == (NAMES if has_names else [])


def test_files_and_pickles_name_columns_and_no_edges(tmp_path):
    X = pd.DataFrame(chain(n=100, p=80), columns=[f"column {j}" for j in range(80)])
    model = SparsePrecision(k=2, method="forward").fit(X)
    assert len(pickle.dumps(model.path_)) < 10_000
    model.save(tmp_path / "graph.json")
    assert "column 3 -- column 4" not in (tmp_path / "graph.json").read_text()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("location_", [0.0] * 5, "5 columns have 10 edges"),
        ("free", [1.0] * 5, "6 positive diagonal entries"),
        ("free", [-1.0] * 6, "6 positive diagonal entries"),
        ("free", [1e-3] * 6, "not positive definite"),
        ("_nodes", ["a"], "names of all 6 columns"),
        ("features", {"count": 15, "names": list("abcdefghijklmno")}, "edges have no names but those of their columns"),
    ],
)
def test_files_that_do_not_go_together_are_refused(tmp_path, field, value, message):
    import json

    SparsePrecision(k=3).fit(chain()).save(tmp_path / "graph.json")
    document = json.loads((tmp_path / "graph.json").read_text())
    del document["checksum"]
    if field == "free":
        for model in document["models"]:
            model["free"] = value
    elif field == "features":
        document["features"] = value
    else:
        document["arrays"][field] = {"array": value, "dtype": "str" if field == "_nodes" else "float64"}
    (tmp_path / "graph.json").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=message):
        pauca.load(tmp_path / "graph.json")


def dependent():
    X = frame()
    X["salt"] = X["age"] + 2 * X["bmi"]
    return X


BAD_TABLES = {
    "missing": (frame().mask(lambda X: X > 5), r"contains NaN.*Found in: 'age'"),
    "infinite": (frame() * [1, 1, np.inf, 1, 1, 1], r"contains infinity.*'bp'"),
    "constant": (frame().assign(bp=7.0), "do not vary have no precision: 'bp'"),
    "copies": (frame().assign(salt=lambda X: 3 - X["age"]), "Columns 'age' and 'salt' are the same up to their units"),
    "dependent": (dependent(), "linear combinations of others: '(age|bmi|salt)'"),
    "one row": (frame(n=1), "1 sample"),
    "words": (frame().assign(age="old"), "do not hold numbers: 'age'"),
    "three dimensions": (np.zeros((3, 3, 3)), "dim"),
}


@pytest.mark.parametrize("k", [3, "auto"])
@pytest.mark.parametrize(("X", "message"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_bad_tables_are_refused(X, message, k):
    with pytest.raises((ValueError, TypeError), match=f"(?s){message}"):
        SparsePrecision(k=k).fit(X)


def test_shrinkage_takes_singular_covariances():
    for X in (dependent(), BAD_TABLES["copies"][0], frame(n=4)):
        model = SparsePrecision(k=15, shrinkage=0.1).fit(X)
        assert np.linalg.cond(model.partial_correlations()) < 1e4


def test_few_rows():
    X = np.random.default_rng(0).standard_normal((6, 12))  # five once the mean is taken off: fewer than 15 edges
    assert SparsePrecision(k=14).fit(X).k_ == 14
    with pytest.raises(ValueError, match=r"6 different rows to fit 12 columns.*more than 14 edges.*at most k=14"):
        SparsePrecision(k=15).fit(X)
    with pytest.raises(ValueError, match="at most k=14"):
        SparsePrecision(k=None).fit(X)
    with pytest.raises(ValueError, match="at most k=14"):
        SparsePrecision(k=15).fit(np.vstack([X, X, X]))
    assert SparsePrecision(k=15, shrinkage=0.2).fit(X).k_ == 15
    with pytest.raises(ValueError, match="at most k=20"):  # six if the mean is known
        SparsePrecision(k=21, assume_centered=True).fit(X)
    assert SparsePrecision(k=20, assume_centered=True).fit(X).k_ == 20


@pytest.mark.parametrize(("n", "p", "k"), [(2, 5, 2), (2, 2, 1), (3, 5, "auto"), (3, 2, "auto"), (2, 5, "auto")])
def test_rows_that_say_nothing_of_edges(n, p, k):
    """Any two columns are the same up to their units, and none of them is to blame."""
    where = " of the smallest fold" if k == "auto" else ""
    with pytest.raises(ValueError, match=f"different rows?{where} to fit, any two columns.*Use more rows"):
        SparsePrecision(k=k).fit(chain(n=n)[:, :p])


def test_few_rows_in_a_fold():
    X = np.random.default_rng(0).standard_normal((6, 5))  # of full rank, but not without a fifth of the rows
    with pytest.raises(ValueError, match=r"4 different rows of the smallest fold to fit 5 columns.*at most k=5"):
        SparsePrecision(k=range(11)).fit(X)
    with pytest.warns(PaucaWarning):
        assert max(SparsePrecision(selection_rule="best").fit(X).path_.choice.sizes) <= 5


def test_a_likelihood_without_a_maximum_is_named():
    X = np.random.default_rng(0).standard_normal((8, 12))
    X[:, 2] = X[:, 0] + X[:, 1]  # rank seven all the same, and yet three columns depend on each other
    with pytest.raises(ValueError, match="no maximum: 'x0', 'x1', 'x2'"):
        SparsePrecision(k=3, always=[(0, 1), (0, 2), (1, 2)]).fit(X)


def test_columns_that_are_copies_in_a_fold():
    X = chain(n=40)
    X[:, 3] = X[:, 1]
    X[7, 3] += 1.0
    with pytest.raises(ValueError, match=r"no maximum: 'x1', 'x3' are linearly dependent, up to rounding.*of a fold"):
        SparsePrecision().fit(X)


def test_columns_that_are_constant_in_a_fold():
    X = chain(n=40)
    X[:, 3] = np.arange(40) == 7
    with pytest.raises(ValueError, match="constant on the rows of a fold: 'x3'"):
        SparsePrecision().fit(X)
    assert SparsePrecision(k=5).fit(X).k_ == 5


BAD_OPTIONS = [
    ({"k": 0}, ValueError, "k"),
    ({"k": 2.5}, TypeError, "k"),
    ({"k": "many"}, ValueError, "k"),
    ({"method": "magic"}, ValueError, "method must be one of"),
    ({"shrinkage": 1.0}, ValueError, r"range \[0, 1\)"),
    ({"shrinkage": -0.1}, ValueError, r"shrinkage.*range \[0, 1\)"),
    ({"shrinkage": np.nan}, ValueError, r"shrinkage.*range \[0, 1\)"),
    ({"shrinkage": "some"}, TypeError, "shrinkage"),
    ({"selection_rule": "worst"}, ValueError, "selection_rule"),
    ({"criterion": "cic"}, ValueError, "criterion"),
    ({"criterion": "bic", "cv": 3}, ValueError, "needs no folds"),
    ({"cv": 1}, ValueError, "cv"),
    ({"tol": -1}, ValueError, "tol"),
    ({"n_jobs": 0}, ValueError, "n_jobs"),
    ({"assume_centered": 1}, TypeError, "assume_centered"),
    ({"time_limit": 0}, ValueError, "time_limit"),
    ({"callback": 3}, TypeError, "callback"),
    ({"always": "age"}, TypeError, "list of pairs"),
    ({"always": [("age", "bmi", "bp")]}, TypeError, "list of pairs"),
    ({"always": [("age", "bm")]}, ValueError, "Did you mean 'bmi'"),
    ({"never": [("age", "age")]}, ValueError, "to itself"),
    ({"never": [(0, 9)]}, ValueError, "columns 0 to 5"),
    ({"always": [("age", "bmi")], "never": [(1, 0)]}, ValueError, "age -- bmi cannot be both"),
    ({"k": 1, "always": [(0, 1), (1, 2)]}, ValueError, "more than k=1"),
    ({"k": [0, 1], "always": [(0, 1), (1, 2)]}, ValueError, "more than k=1"),
]


@pytest.mark.parametrize(("options", "kind", "message"), BAD_OPTIONS, ids=str)
def test_bad_options_are_refused(options, kind, message):
    with pytest.raises(kind, match=message):
        SparsePrecision(**options).fit(frame())


@pytest.mark.parametrize("correlation", [0.999, 0.9999, 0.99999])
@pytest.mark.parametrize("seed", range(3))
def test_strong_correlations_have_a_maximum(correlation, seed):
    """Entries of the precision are then in the tens of thousands, and the trace loses digits."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 1)) + np.sqrt(1 - correlation) * rng.standard_normal((200, 8))
    model = SparsePrecision(k=20).fit(X)
    wanted = np.cov(X.T, bias=True)
    there = (model.precision_ != 0) | np.eye(8, dtype=bool)
    assert there.sum() == 8 + 40
    np.testing.assert_allclose(model.covariance_[there], wanted[there], rtol=1e-8)


def test_orthogonal_columns(monkeypatch):
    """The empty graph is the optimum to the last digit: steps of zero length divide by nothing."""
    monkeypatch.setattr(newton, "FACTORED_UP_TO", 0)
    model = SparsePrecision(k=5, method="backward", never=[(0, 1)]).fit(hadamard(16)[:, 1:9].astype(float))
    np.testing.assert_allclose(model.precision_, np.eye(8), atol=1e-12)
    assert all((0, 1) not in model.path_.pairs(size) for size in model.path_.sizes)


def test_units_too_small_for_a_precision():
    X = np.random.default_rng(0).standard_normal((50, 4))
    X[:, 1] *= 1e-158
    with pytest.raises(ValueError, match=r"vary by less than 1e-150: 'x1'. Give them larger units"):
        SparsePrecision(k=2).fit(X)
    X[:, 1] *= 1e10
    assert np.isfinite(SparsePrecision(k=2).fit(X).precision_).all()


def test_backward_needs_more_rows_than_columns():
    X = np.random.default_rng(0).standard_normal((8, 12))
    with pytest.raises(ValueError, match="Backward search starts from all edges: choose another method"):
        SparsePrecision(k=3, method="backward").fit(X)


def test_a_graph_of_one_variable_is_saved(tmp_path):
    with pytest.warns(PaucaWarning, match="only 0 exist"):
        model = SparsePrecision(k=1).fit(np.array([[3.1], [-1.8], [-1.7]]))
    model.save(tmp_path / "graph.json")
    np.testing.assert_array_equal(pauca.load(tmp_path / "graph.json").precision_, model.precision_)
