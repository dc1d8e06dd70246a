"""What has one value for every row, in forms that other libraries fail on: each is refused in words."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import pauca

N = 12
X = np.random.default_rng(0).standard_normal((N, 2))
FIRST = np.arange(N) == 0
CLASSES = np.arange(N) % 2

NUMBERS = {
    "one name twice": (pd.DataFrame(np.zeros((N, 2)), columns=["a", "a"]), "several columns of one name: 'a'"),
    "masked": (np.ma.masked_array(X[:, 0], FIRST), "masked"),
    "dates": (np.full(N, np.datetime64("2020-01-01")), "dates"),
    "intervals": (pd.Series(pd.interval_range(0, 1, N)), "NAME"),
    "pandas.NA": (pd.Series([pd.NA, *X[1:, 0]]), "NAME"),
}
WORDS = {
    "category": (pd.Series(np.where(CLASSES, "yes", "no"), dtype="category"), "NAME must hold one number"),
    "polars category": (pl.Series(np.where(CLASSES, "a", "b").tolist(), dtype=pl.Categorical), "NAME must hold one"),
    "arrow text": (pd.Series(np.where(CLASSES, "a", "b")).convert_dtypes(dtype_backend="pyarrow"), "NAME must hold"),
}
GROUPS = {
    "one name twice": NUMBERS["one name twice"],
    "none": ([None, *range(1, N)], "NoneType, int"),
    "of two types": (np.array(["a", *range(1, N)], dtype=object), "int, str"),
    "sparse": (sparse.csr_matrix(X[:, :1]), "the group of every row"),
    "masked": NUMBERS["masked"],
}


@pytest.mark.parametrize("form", NUMBERS)
@pytest.mark.parametrize("make", [pauca.SparseRegressor, pauca.L1Regressor, pauca.StreamRegressor])
def test_targets_that_are_no_numbers(make, form):
    y, words = NUMBERS[form]
    with pytest.raises((ValueError, TypeError), match=words.replace("NAME", "y|float")):
        make().fit(X, y)


@pytest.mark.parametrize("form", NUMBERS | WORDS)
@pytest.mark.parametrize("name", ["sample_weight", "offset"])
def test_weights_and_offsets_that_are_no_numbers(name, form):
    values, words = (NUMBERS | WORDS)[form]
    with pytest.raises((ValueError, TypeError), match=words.replace("NAME", name)):
        pauca.SparseRegressor(k=1).fit(X, X[:, 0], **{name: values})


@pytest.mark.parametrize("form", GROUPS)
@pytest.mark.parametrize("make", [pauca.SparseRegressor, pauca.L1Regressor])
def test_groups_that_cannot_be_told_apart(make, form):
    groups, words = GROUPS[form]
    with pytest.raises((ValueError, TypeError), match=words):
        make(cv=2).fit(X, X[:, 0], groups=groups)


@pytest.mark.parametrize("make", [pauca.SparseClassifier, pauca.SparseOrdinalClassifier, pauca.StreamClassifier])
@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.array(["a", *range(1, N)], dtype=object), "of the types int, str"),
        (pd.Series([pd.NA, *CLASSES[1:]], dtype=object), "y contains NaN"),
        (pd.DataFrame({"a": CLASSES}).iloc[:, [0, 0]], "several columns of one name"),
    ],
)
def test_classes_that_have_no_order_or_are_missing(make, y, words):
    with pytest.raises(ValueError, match=words):
        make(k=1).fit(X, y)


def test_targets_as_objects_and_infinities_of_both_signs_bring_no_warning():
    model = pauca.SparseRegressor(k=1).fit(X, X[:, 0].astype(object))
    assert model.support_.tolist() == [0]
    with pytest.raises(ValueError, match="infinity"):
        pauca.sparsify(np.ones(2), X, np.where(FIRST, np.inf, -np.inf), k=1, intercept=0.0)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.array(["a", *range(1, N)], dtype=object), "of the types int, str"),
        ([None, *CLASSES[1:]], "y contains None"),
        (pd.DataFrame({"a": CLASSES}).iloc[:, [0, 0]], "several columns of one name"),
    ],
)
def test_targets_of_test_rows_and_strata_pass_the_same_door(y, words):
    with pytest.raises(ValueError, match=words):
        pauca.SparseClassifier(k=1, ridge=0.1).fit(X, X[:, 0] > 0).evaluate(X, y)
    with pytest.raises(ValueError, match="infinity"):
        pauca.SparseRegressor(k=1).fit(X, X[:, 0]).evaluate(X, np.where(FIRST, np.inf, -np.inf))
    seen = np.array([(True, 1.0 + i) for i in range(N)], dtype=[("event", bool), ("time", float)])
    with pytest.raises(ValueError, match="of the types int, str"):
        pauca.SparseCox(k=1).fit(X, seen, strata=np.array(["a", *range(1, N)], dtype=object))
