"""Raw tables in estimators: folds learn from their own rows, constraints name raw columns, exports take raw rows."""

import sqlite3
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import pauca
from pauca import PaucaWarning, SparseClassifier, SparseRegressor, TableEncoder
from pauca.estimators.raw_tables import FitTable
from pauca.model_selection.folds import make_folds
from pauca.tables import TableError, read_table


def people(n=160, seed=0, gaps=True):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "city": rng.choice(["Paris", "Lyon", "Nice"], n, p=[0.5, 0.3, 0.2]),
            "age": rng.normal(40, 10, n),
            "smoker": rng.random(n) < 0.3,
            "grade": pd.Categorical(rng.choice([3, 1, 2], n)),
            "noise": rng.normal(size=n),
        }
    )
    y = 0.2 * frame["age"] + frame["city"].map({"Paris": 0, "Lyon": 3, "Nice": -2}).to_numpy() + rng.normal(size=n)
    if gaps:
        frame.loc[::7, "age"] = np.nan
        frame.loc[::11, "city"] = None
    return frame, y.to_numpy(copy=True)


@parametrize_with_checks([TableEncoder(), TableEncoder(missing="median"), TableEncoder(missing="category")])
def test_sklearn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("missing", ["error", "median", "category"])
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_raw_rows_go_through_every_export(missing, classes, tmp_path):
    frame, y = people(gaps=missing != "error")
    if classes:
        y = np.array(["low", "middle", "high"])[np.digitize(y, np.quantile(y, [0.5] if classes == 2 else [0.3, 0.7]))]
    model = (SparseClassifier if classes else SparseRegressor)(k=4, missing=missing, ridge=1e-3).fit(frame, y)
    encoded = TableEncoder(missing=missing).fit_transform(frame)
    expected = encoded @ np.atleast_2d(model.coef_).T + model.intercept_
    if not classes:
        np.testing.assert_allclose(model.predict(frame), expected[:, 0], rtol=0, atol=1e-12)
    found = model.predict(frame)
    np.testing.assert_array_equal(model.predict(pl.from_pandas(frame)), found)
    model.save(tmp_path / "model.json")
    again = pauca.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(frame), found)
    assert again.summary() == model.summary()
    assert list(again.feature_names_in_) == list(frame.columns)
    assert again.n_features_in_ == 5
    module = {}
    exec(model.to_python(), module)
    rows = frame.to_dict("records")
    assert sorted(module["FEATURES"]) == sorted(model.required_columns_)
    database = sqlite3.connect(":memory:")
    frame.astype({"grade": int}).to_sql("people", database, index=False)
    selected = list(database.execute(model.to_sql("people")))
    database.close()
    if not classes:
        np.testing.assert_allclose([module["predict"](row) for row in rows], found, rtol=0, atol=1e-12)
        np.testing.assert_allclose([row[0] for row in selected], found, rtol=0, atol=1e-12)
        return
    assert [module["predict"](row) for row in rows] == found.tolist() == [row[0] for row in selected]
    share = model.predict_proba(frame)
    np.testing.assert_allclose([module["predict_proba"](row) for row in rows], share, rtol=0, atol=1e-12)
    given = [row[1:] if classes == 3 else row[1] for row in selected]
    np.testing.assert_allclose(given, share if classes == 3 else share[:, 1], rtol=0, atol=1e-12)


def test_missing_values_that_may_not_be_are_null_in_sql():
    frame, y = people(gaps=False)
    model = SparseRegressor(k=2).fit(frame, y)
    database = sqlite3.connect(":memory:")
    pd.DataFrame({"city": ["Rome", None, "Nice"], "age": [1.0, 2, None]}).to_sql("t", database, index=False)
    found = [row[0] for row in database.execute(model.to_sql("t"))]
    database.close()
    assert found[1:] == [None, None]
    with pytest.warns(PaucaWarning, match="1 row holds values of 'city' that the data of the fit do not: 'Rome'"):
        assert model.predict(pd.DataFrame({"age": [1.0], "city": ["Rome"]})) == pytest.approx(found[0])
    with pytest.raises(ValueError, match="missing values in 'city', which the model uses"):
        model.predict(pd.DataFrame({"age": [1.0], "city": [None]}))
    with pytest.raises(ValueError, match="'age' must hold numbers, as in the data of the fit; it holds 'old'"):
        model.predict(pd.DataFrame({"age": ["old"], "city": ["Nice"]}))
    with pytest.raises(ValueError, match="columns that X does not have: 'city'"):
        model.predict(frame[["age"]])


def test_folds_fill_in_medians_of_their_own_rows():
    frame, _ = people()
    weights = np.full(len(frame), 1 / len(frame))
    table = FitTable.of(read_table(frame, "from_dtype", "median", "the test"), weights, None, "median")
    folds = table.folds(make_folds(KFold(4), np.zeros(len(frame)), None, weights, classifies=False))
    gaps, column = frame["age"].isna().to_numpy(), list(table.names).index("age")
    for fold in folds:
        seen = frame["age"][fold.weights > 0]
        X = table.X if fold.X is None else fold.X
        assert set(X[gaps, column]) == {np.nanmedian(seen)}
        others = np.delete(np.arange(X.shape[1]), column)
        np.testing.assert_array_equal(X[:, others], table.X[:, others])
    assert sum(fold.X is not None for fold in folds) > 1
    complete = FitTable.of(
        read_table(people(gaps=False)[0], "from_dtype", "median", "the test"), weights, None, "median"
    )
    assert all(fold.X is None for fold in complete.folds(make_folds(3, weights, None, weights, classifies=False)))


@pytest.mark.parametrize("scoring", [None, "r2"])
def test_scores_are_those_of_fits_on_the_rows_of_each_fold(scoring):
    """Each fold's score is that of an estimator fitted on its rows alone, medians and levels included."""
    frame, y = people()
    y[frame["age"].isna()] += 5
    folds = list(KFold(4).split(frame))
    options = {"method": "forward", "missing": "median"}
    model = SparseRegressor(k=[2], ridge=0.0, cv=folds, scoring=scoring, **options).fit(frame, y)
    scores = []
    for train, test in folds:
        alone = SparseRegressor(k=2, **options).fit(frame.iloc[train], y[train])
        predicted = alone.predict(frame.iloc[test])
        if scoring is None:
            scores.append(np.mean((predicted - y[test]) ** 2))
        else:
            scores.append(alone.score(frame.iloc[test], y[test]))
    found = model.path_.choice.fold_scores[:, 0]
    if scoring == "r2":
        np.testing.assert_allclose(found, scores, atol=1e-9)
    else:
        constant = np.array([np.mean((y[test] - y[train].mean()) ** 2) for train, test in folds])
        np.testing.assert_allclose(found, 1 - scores / constant, atol=1e-9)


def test_constraints_speak_of_raw_columns():
    frame, y = people()
    forced = SparseRegressor(k=3, missing="category", always=["grade"], never=[1]).fit(frame, y)
    assert "grade" in forced.feature_groups_
    assert "age" not in forced.feature_groups_
    assert SparseRegressor(k=2, missing="median", always=["city=Nice"]).fit(frame, y).feature_groups_[0] == "city"
    bounded = SparseRegressor(k=5, missing="median", bounds={"city": (0, None), "grade=2": (None, 0)}).fit(frame, y)
    by_name = dict(zip(bounded.path_.column_names, bounded.coef_, strict=True))
    assert by_name["city=Nice"] == 0
    assert by_name["city=Lyon"] > 0
    assert by_name["grade=2"] <= 0
    paid = SparseRegressor(k=2, missing="median", costs={"city": 3}, budget=4).fit(frame, y)
    assert paid.cost_ == 4
    kinds = SparseRegressor(k=3, missing="median", feature_groups={"city": "who", "age": "who"}, max_per_group=1)
    kinds.fit(frame, y)
    assert len({"city", "age"} & set(kinds.feature_groups_)) == 1
    together = SparseRegressor(k=1, missing="median", feature_groups={"city": "who", "age": "who"}).fit(frame, y)
    assert list(together.feature_groups_) == ["who"]
    assert sorted(together.get_feature_names_out()) == ["age", "city=Lyon", "city=Nice"]


def test_groups_and_costs_given_in_part():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 5))
    y = X @ [1, 1, 0, 0, 3] + rng.normal(size=80) * 0.1
    for groups in ({0: "a", 1: "a"}, {0: 7, 1: 7}):
        model = SparseRegressor(k=2, feature_groups=groups).fit(X, y)
        assert list(model.feature_groups_) == [str(groups[0]), "x4"]
    with pytest.raises(ValueError, match="name of a column that is not in it: 'x3'"):
        SparseRegressor(k=2, feature_groups={0: "x3"}).fit(X, y)
    assert SparseRegressor(k=2, costs={4: 9.0}, budget=8).fit(X, y).cost_ == 2
    assert SparseRegressor(k=2, costs={4: 9.0, None: 0.5}, budget=10).fit(X, y).cost_ == 9.5
    assert SparseRegressor(k=2, costs={"a": 4.0}, feature_groups={0: "a", 1: "a"}, budget=10).fit(X, y).cost_ == 5


def test_groups_given_by_their_columns():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), columns=list("abcd"))
    y = X["a"] + X["b"]
    for members in (["a", "b"], ("a", "b"), np.array([0, 1])):
        model = SparseRegressor(k=1, feature_groups={"both": members}).fit(X, y)
        assert model.path_.groups(1) == ["both"]
        assert model.feature_groups_.tolist() == ["both"]
        assert list(model.get_feature_names_out()) == ["a", "b"]
    with pytest.raises(
        ValueError, match="has the column 'b' in two groups, 'one' and 'two'; each column belongs to one"
    ):
        SparseRegressor(k=1, feature_groups={"one": ["a", "b"], "two": ["b", "c"]}).fit(X, y)


def test_plain_numbers_need_no_encoder():
    frame, y = people(gaps=False)
    numbers = frame[["age", "noise", "smoker"]]
    model = SparseRegressor(k=1).fit(numbers, y)
    assert not hasattr(model, "encoder_")
    model.fit(frame, y)
    assert hasattr(model, "encoder_")
    assert not hasattr(model.fit(numbers.astype(object), y), "encoder_")


def test_names_for_display(tmp_path):
    from scipy import sparse

    rng = np.random.default_rng(0)
    X = sparse.random(60, 8, density=0.5, random_state=0, format="csr")
    words = [f"word {j}" for j in range(8)]
    y = X.toarray()[:, 3] * 2 + rng.normal(size=60) * 0.01
    model = SparseRegressor(k=1, never=["word 0"]).fit(X, y, feature_names=words)
    assert list(model.get_feature_names_out()) == ["word 3"]
    assert "word 3" in model.summary()
    assert '"word 3"' in model.to_sql()
    assert not hasattr(model, "feature_names_in_")
    model.save(tmp_path / "m.json")
    again = pauca.load(tmp_path / "m.json")
    assert not hasattr(again, "feature_names_in_")
    assert list(again.get_feature_names_out()) == ["word 3"]
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="X has 8, and there are 2 names"):
        SparseRegressor(k=1).fit(X, y, feature_names=["a", "b"])
    with pytest.raises(ValueError, match="column names of its own"):
        SparseRegressor(k=1).fit(pd.DataFrame(X.toarray(), columns=words), y, feature_names=words)
    with pytest.raises(ValueError, match="there are several 'a'"):
        SparseRegressor(k=1).fit(X, y, feature_names=["a"] * 8)


def test_what_cannot_be_encoded_is_refused_by_name():
    frame, y = people()
    with pytest.raises(TableError, match=r"'city' \(15 rows\), 'age' \(23 rows\): set missing='median'"):
        SparseRegressor().fit(frame, y)
    with pytest.raises(ValueError, match="'missing' parameter of SparseRegressor must be one of"):
        SparseRegressor(missing="mean").fit(frame, y)
    with pytest.raises(ValueError, match="do not hold numbers"):
        SparseRegressor(categorical_features=None).fit(frame.dropna(), y[frame.notna().all(axis=1)])
    constant = frame.assign(only="x", none=None)
    with pytest.warns(PaucaWarning, match="Constant columns were left out: 'only', 'none'"):
        SparseRegressor(k=1, missing="median").fit(constant, y)


def test_constant_numbers_of_which_some_are_missing_are_not_said_to_be_left_out():
    frame, y = people(gaps=False)
    gaps = np.arange(len(frame)) % 3 == 0
    frame = frame[["age"]].assign(due=np.where(gaps, np.nan, 0.0), one=1.0)
    with pytest.warns(PaucaWarning) as caught:
        model = SparseRegressor(k=2, missing="category").fit(frame, y + 9 * gaps)
    said = " ".join(str(one.message) for one in caught)
    assert "The numbers of 'due' are constant, so only 'due is missing' can be used." in said
    assert "Constant columns were left out: 'one'." in said
    assert "due is missing" in model.path_.names(2)


def test_transform_hands_on_the_chosen_columns():
    frame, y = people()
    model = SparseRegressor(k=2, missing="median").fit(frame, y)
    expected = TableEncoder(missing="median").set_output(transform="pandas").fit_transform(frame)
    names = list(model.get_feature_names_out())
    assert names == ["city=Lyon", "city=Nice", "age"]
    np.testing.assert_array_equal(model.transform(frame), expected[names])
    assert list(model.set_output(transform="pandas").transform(frame).columns) == names


def test_required_columns_are_what_predictions_need(tmp_path):
    frame, y = people()
    model = SparseRegressor(k=3, missing="median").fit(frame, y)
    assert model.at(0).required_columns_ == []
    for size in (1, 3):
        some = model.at(size)
        assert len(some.required_columns_) == size
        np.testing.assert_array_equal(some.predict(frame[some.required_columns_]), some.predict(frame))
    assert model.at(2).required_columns_ == ["city", "age"]
    model.save(tmp_path / "model.json")
    assert pauca.load(tmp_path / "model.json").required_columns_ == model.required_columns_
    grouped = SparseRegressor(k=1, missing="median", feature_groups={"age": "a", "city": "a"}).fit(frame, y)
    assert grouped.required_columns_ == ["city", "age"]
    numbers = frame[["noise", "age"]].fillna(40.0)
    assert SparseRegressor(k=1).fit(numbers, y).required_columns_ == ["age"]
    assert SparseRegressor(k=1).fit(numbers.to_numpy(), y).required_columns_ == ["x1"]
    assert not hasattr(SparseRegressor(), "required_columns_")


def test_sheets_of_points_take_raw_rows():
    frame, y = people(gaps=False)
    model = SparseClassifier(k=2).fit(frame, y > 8)
    sheet = model.to_points(cv=None)
    encoded = TableEncoder().set_output(transform="pandas").fit_transform(frame)
    plain = SparseClassifier(k=2, feature_groups=model.encoder_.feature_groups_).fit(encoded, y > 8).to_points(cv=None)
    np.testing.assert_allclose(sheet.predict_risk(frame), plain.predict_risk(encoded))
    np.testing.assert_allclose(sheet.predict_risk(frame[["age", "city"]]), plain.predict_risk(encoded))
    assert "city" in sheet.to_python()  # of raw rows


def test_row_numbers_and_missing_targets_are_told():
    frame, y = people(gaps=False)
    frame["id"] = np.random.default_rng(0).permutation(len(frame)) + 1000
    with pytest.warns(PaucaWarning, match="'id' looks like an identifier, and is in the model"):
        SparseRegressor(k=1, always=["id"]).fit(frame, y)
    SparseRegressor(k=1, never=["id"]).fit(frame, y)
    with pytest.warns(PaucaWarning, match="'id' is named as an identifier .*: it was left out. Rename it if"):
        assert "id" not in SparseRegressor(k=3).fit(frame, y + frame["id"]).path_.names(3)
    y[:7] = np.nan
    with pytest.raises(ValueError, match="Input y contains NaN: 7 of 160 rows have no target"):
        SparseRegressor().fit(frame, y)


@pytest.mark.parametrize(
    ("name", "values", "warned"),
    [
        ("individual", np.repeat(np.arange(1, 41), 4), True),  # blocks of rows, as in tables of choices
        ("PatientID", 5000 + 17 * np.random.default_rng(0).permutation(160) // 2, True),
        ("Unnamed: 0", np.arange(160) // 3, True),
        ("year", np.repeat(np.arange(1935, 1975), 4), False),
        ("price_index", np.random.default_rng(0).integers(50, 150, 160), False),
        ("age", np.sort(np.random.default_rng(0).integers(20, 80, 160)), False),
        ("idp", np.arange(160) % 2, False),
    ],
)
def test_identifiers_in_the_model_are_told(name, values, warned):
    frame = pd.DataFrame({name: values, "z": np.random.default_rng(1).normal(size=160)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SparseRegressor(k=1, always=[name]).fit(frame, frame[name] + frame["z"])
    told = f"The column {name!r} looks like an identifier, and is in the model; never=[{name!r}] leaves it out."
    assert [str(one.message) for one in caught] == ([told] if warned else [])


@pytest.mark.parametrize("raw", [True, False])
def test_columns_that_are_named_as_identifiers_are_left_out(raw):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["z", "patient_id", "a"]).assign(patient_id=range(100, 160))
    y = frame["patient_id"] + frame["z"]
    if raw:
        frame["city"] = rng.choice(["Paris", "Lyon"], 60)
    with pytest.warns(PaucaWarning, match="'patient_id' is named as an identifier"):
        model = SparseRegressor(k=1, never=["a"]).fit(frame, y)
    assert "patient_id" not in model.path_.names(1)
    for wanted in ({"always": ["patient_id"]}, {"costs": {"patient_id": 1.0}}, {"bounds": {1: (0, None)}}):
        with pytest.warns(PaucaWarning, match="'patient_id' looks like an identifier, and is in the model"):
            model = SparseRegressor(k=2, **wanted).fit(frame, y)
        assert "patient_id" in model.path_.names(2)
    with pytest.warns(PaucaWarning, match="in the model"):  # alone it is there for a reason
        SparseRegressor(k=1).fit(frame[["patient_id"]], y)
    SparseRegressor(k=2).fit(frame.rename(columns={"patient_id": "grams"}).assign(grams=y.round() * 7), y)


def test_identifiers_in_the_model_are_told_wherever_it_is_read(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"row": np.arange(1, 121), "z": rng.normal(size=120)})
    dead = frame["row"] + 20 * frame["z"] > 60
    with pytest.warns(PaucaWarning, match="'row' looks like an identifier, and is in the model"):
        model = SparseClassifier(k=2, ridge=0.01).fit(frame, dead)
    told = "'row' looks like an identifier: unless the order of the rows matters"
    model.save(tmp_path / "model.json")
    for text in (model.summary(), pauca.load(tmp_path / "model.json").summary(), model.to_points(cv=None).summary()):
        assert told in text
    assert "looks like an identifier" not in model.at(0).summary()
    model.report(tmp_path / "page.html")
    assert "looks like an identifier: unless" in (tmp_path / "page.html").read_text("utf-8")


def test_a_feature_that_explains_nearly_all_is_told_wherever_the_model_is_read(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 4)), columns=list("abcd"))
    y = X["a"] + rng.normal(size=90)
    grams = X.assign(grams=28.35 * y + 0.1 * rng.normal(size=90))
    given, chosen = SparseRegressor(k=2).fit(grams, y), SparseRegressor(k=range(3)).fit(grams, y)
    given.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "'grams' alone explains 100.0 % on rows of the fit" in given.summary()
    assert "alone explains 100.0 % on rows of the fit: make sure that it is known before the target is" in page
    assert "'grams' alone explains 100.0 % on rows held out" in chosen.summary()
    for model in (given.at(0), SparseRegressor(k=1).fit(X, y), SparseRegressor(k=2, never=["grams"]).fit(grams, y)):
        assert "alone explains" not in model.summary()


def test_warnings_are_about_the_chosen_model():
    """A column that depends on all others is no combination of the one that is chosen, unless it is a copy."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 4)), columns=list("abcd"))
    X["sum"], X["copy"] = X["a"] + X["b"], X["c"]
    y = 3 * X["c"] + X["a"] + X["b"] + 0.1 * rng.normal(size=80)
    with pytest.warns(PaucaWarning) as caught:
        model = SparseRegressor(k=range(1, 7), ridge=0.0, selection_rule=1e9).fit(X, y)
    assert model.k_ == 1
    text = str(caught[0].message)
    assert "linear combinations of chosen ones were left out: 'copy'." in text
    for name in ("'sum'", "'a'", "'b'"):
        assert name not in text


def test_summaries_show_every_class():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = X[:, X[:300].std(axis=0) > 0]
    model = SparseClassifier(k=2, method="forward", ridge=0.1).fit(X[:300], y[:300])
    text = model.summary()
    heads = " ".join(line for line in text.splitlines() if line.startswith("feature"))
    assert heads.split() == [
        "feature",
        *map(str, range(6)),
        "importance",
        "feature",
        *map(str, range(6, 10)),
        "importance",
    ]
    assert text.count("(intercept)") == 2


def test_a_name_is_told_once_where_no_category_is_in_the_model():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"city": rng.choice(["A", "B", "C"], 90), "area": rng.normal(size=90)})
    model = SparseRegressor(k=2).fit(table, table["area"] + 0.5 * (table["city"] == "B") + 0.1 * rng.normal(size=90))
    heads = [model.at(size).summary().splitlines()[2].split() for size in (1, 2)]
    assert heads == [["column", "coefficient", "importance"], ["column", "term", "coefficient", "importance"]]
    assert model.path_.has_parts(1, 2)
    assert not model.path_.has_parts(0, 1)


def test_several_columns_of_one_name_are_told():
    table = pd.DataFrame(np.zeros((6, 3)), columns=["a", "a", "b"]).assign(c=["x", "y"] * 3)
    with pytest.raises(ValueError, match="several columns of one name: 'a'"):
        SparseRegressor().fit(table, np.arange(6.0))


def test_row_labels_in_another_order_are_told():
    X, y = people(gaps=False)
    y = pd.Series(y, index=X.index)
    for kind, target in ((SparseRegressor, y), (SparseClassifier, y > y.median())):
        with pytest.warns(PaucaWarning, match=r"row labels of X in another order.*y\.loc\[X\.index\]"):
            kind(k=1).fit(X, target[::-1])
        kind(k=1).fit(X, target)
        kind(k=1).fit(X, target[::-1].reset_index(drop=True).set_axis(X.index + 1000))  # other labels: by position


@pytest.mark.parametrize("first", [0, 1])
def test_nameless_columns_that_count_the_rows_are_told(first):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    X[:, 1] = np.arange(first, 60 + first)
    y = 0.1 * X[:, 1] + X[:, 2]
    told = r"Column 1 counts the rows, as an identifier does, and is in the model; never=\[1\] leaves it out"
    with pytest.warns(PaucaWarning, match=told):
        SparseRegressor(k=2).fit(X, y)
    SparseRegressor(k=2, never=[1]).fit(X, y)
    SparseRegressor(k=2).fit(X[::-1] if first else X[1:] * 2, y[1:] if not first else y)  # these do not count them


def test_identifiers_are_told_by_the_encoder_too():
    X, _ = people(gaps=False)
    with pytest.warns(PaucaWarning, match="The column 'row' looks like an identifier, and is encoded as numbers"):
        TableEncoder().fit(X.assign(row=np.arange(len(X)) + 7))


def test_infinite_values_come_with_a_remedy():
    X, y = people(gaps=False)
    with pytest.raises(TableError, match="infinite values in 'age': replace them by a number, or by NaN and set"):
        SparseRegressor().fit(X.assign(age=X["age"].where(X["age"] < 60, np.inf)), y)


@pytest.mark.parametrize("raw", [True, False])
def test_identifiers_in_the_model_are_told_though_numbers_are_left_out(raw):
    """As of a table that was sorted by its outcome before someone kept the row names."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"row": np.sort(rng.choice(120, 80, replace=False)), "a": rng.normal(size=80)})
    if raw:
        frame["city"] = rng.choice(["Paris", "Lyon"], 80)
    y = frame["row"] + rng.normal(size=80)
    with pytest.warns(PaucaWarning, match="The column 'row' looks like an identifier, and is in the model"):
        SparseRegressor(k=1).fit(frame, y)
    SparseRegressor(k=1).fit(frame.assign(row=frame["row"] * 5), y)  # far apart: a measurement


def test_decimal_commas_without_a_column_of_text(tmp_path):
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(rng.normal(size=(60, 4)).round(3), columns=list("abcd"))
    y = 3 * numbers["b"].to_numpy() + rng.normal(size=60)
    commas = numbers.astype(str).apply(lambda column: column.str.replace(".", ","))
    model, plain = SparseRegressor(k=2).fit(commas, y), SparseRegressor(k=2).fit(numbers, y)
    np.testing.assert_allclose(model.coef_, plain.coef_)
    model.save(tmp_path / "model.json")
    for one in (model, pauca.load(tmp_path / "model.json")):
        np.testing.assert_allclose(one.predict(commas), plain.predict(numbers))
        np.testing.assert_allclose(one.predict(numbers), plain.predict(numbers))


# Levels of two columns that are the same in every row.


@pytest.fixture(scope="module")
def copies():
    rng = np.random.default_rng(0)
    net = rng.choice(["fiber", "dsl", "none"], 200, p=[0.5, 0.3, 0.2])
    X = pd.DataFrame({"net": net, "age": rng.normal(size=200)})
    for name in ("tv", "films"):
        X[name] = np.where(net == "none", "no net", rng.choice(["yes", "no"], 200))
    X["again"] = np.where(net == "dsl", "d", "other")
    effects = X["tv"].eq("yes") + X["films"].eq("yes") - 2.0 * X["net"].eq("none") + X["net"].eq("dsl")
    return X, effects + rng.normal(size=200)


def test_levels_that_copy_each_other_are_left_out_by_name(copies, tmp_path):
    X, y = copies
    with pytest.warns(PaucaWarning) as caught:
        model = SparseRegressor(k=3, ridge=0.1).fit(X, y)
    assert str(caught[0].message) == (
        "Levels that are the same in every row as 'net=none' were left out: 'tv=no net', 'films=no net'."
    )
    names = model.path_.names(3)
    assert "net=none" in names
    assert not {"tv=no net", "films=no net"} & set(names)
    assert "The same in every row as net=none, and without a term of their own: " in model.summary()
    model.save(tmp_path / "model.json")
    again = pauca.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.summary() == model.summary()
    row = X[X["net"] == "none"].iloc[:1]
    expected = model.predict(row.assign(tv=model.encoder_.baselines_["tv"], films=model.encoder_.baselines_["films"]))
    assert model.predict(row) == pytest.approx(expected)  # copies count as the baseline
    SparseRegressor(k=1).fit(X, X["age"])  # and nothing is told of levels that the model has nothing to do with


@pytest.mark.parametrize("order", [["region", "nordic", "age"], ["nordic", "region", "age"]])
def test_a_coarser_column_takes_no_level_from_a_finer_one(order):
    rng = np.random.default_rng(0)
    region = rng.choice(["north", "south", "east", "west"], 300)
    X = pd.DataFrame(
        {"region": region, "nordic": np.where(region == "north", "yes", "no"), "age": rng.normal(size=300)}
    )
    effect = 2.0 * (region == "north") + 1.0 * (region == "south") - 1.0 * (region == "east")
    y = effect + 0.3 * rng.normal(size=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaucaWarning)  # the coarser one is a linear combination of the finer one
        model = SparseRegressor(k=1).fit(X[order], y)
        coarse = SparseRegressor(k=1, never=["region"]).fit(X[order], y)
    assert len(model.support_) == 3  # all levels of the region but its baseline
    assert model.score(X[order], y) > 0.9
    assert coarse.get_feature_names_out().tolist() == ["nordic=yes"]


def test_columns_that_constraints_prefer_keep_their_levels(copies):
    X, y = copies
    with pytest.warns(PaucaWarning, match="as 'net=dsl', 'films=no net' were left out|as 'net=none'"):
        model = SparseRegressor(k=3, ridge=0.1, always=["tv"]).fit(X, y)
    assert "tv=no net" in model.path_.names(3)
    with pytest.warns(PaucaWarning, match="are the same in every row: their coefficients share one effect"):
        SparseRegressor(k=3, ridge=0.1, costs={"age": 2.0}, budget=10).fit(X, y)


def test_values_that_are_missing_together_are_marked_once(copies):
    X, y = copies
    gaps = X[["age"]].assign(height=np.arange(200.0) % 7)
    gaps.loc[::5] = np.nan
    with pytest.warns(PaucaWarning, match="'height' are in the rows of those of 'age', and marked there.$"):
        model = SparseRegressor(k=2, ridge=0.1, missing="category").fit(gaps, y)
    assert model.path_.names(2) == ["age", "age is missing", "height"]
    assert np.isfinite(model.predict(gaps)).all()
    # The mark of a number is that of a category too, whose other levels it has not.
    gaps["fin"] = np.where(gaps["height"].isna(), None, np.array(list("abc"))[np.arange(200) % 3])
    with pytest.warns(PaucaWarning, match="Missing values of 'height', 'fin' are in the rows of those of 'age', and"):
        model = SparseRegressor(k=3, ridge=0.1, missing="category").fit(gaps, y)
    assert [name for name in model.path_.names(3) if "missing" in name] == ["age is missing"]
    tall = gaps["height"].fillna(3.0) + 0.1 * np.sin(np.arange(200))
    with pytest.warns(PaucaWarning, match=r"marked there; the model does not use it: with never=\['age'\] they are"):
        SparseRegressor(k=1, ridge=0.1, missing="category").fit(gaps[["age", "height"]], tall)
    alone = SparseRegressor(k=1, ridge=0.1, missing="category", never=["age"]).fit(gaps[["age", "height"]], tall)
    assert alone.path_.names(1) == ["height", "height is missing"]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_formatted_numbers_are_named_and_not_guessed(frame):
    numbers = [700 * i for i in range(1, 31)]
    rates = [f"{i} %" for i in range(30)]
    X = frame({"paid": [f"${i:,}" for i in numbers], "people": [f"{i:,}" for i in numbers], "rate": rates})
    said = r"formatted numbers in 'paid' \('\$1,400'\), 'people' \('1,400'\), 'rate' \('0 %'\): write them as plain"
    with pytest.raises(TableError, match=said):
        read_table(X, "from_dtype", "error", "a table")
    # Decimal commas, and few texts, which are levels.
    few = frame({"area": [f"{i},{i}" for i in range(1, 31)], "rebate": ["10%", "20%"] * 15})
    known = read_table(few, "from_dtype", "error", "a table")
    assert known.columns[0].numbers[:2].tolist() == [1.1, 2.2]
    assert known.columns[1].levels == ["10%", "20%"]


CODES = {
    "versions": [f"1.{i}.3" for i in range(12)],
    "addresses": [f"10.0.0.{i}" for i in range(12)],
    "long addresses": [f"192.168.100.{i}" for i in range(101, 113)],
    "post codes": [f"123 {i}" for i in range(40, 52)],
    "phones": [f"+48 123 456 7{i}" for i in range(10, 22)],
    "feet": [f"5'{i}" for i in range(12)],
}


@pytest.mark.parametrize("name", CODES)
def test_codes_of_digits_stay_categories(name):
    known = read_table(pd.DataFrame({name: CODES[name] * 3}), "from_dtype", "error", "a table")
    assert known.columns[0].levels == sorted(CODES[name])


@pytest.mark.parametrize("form", ["${:,}", "{}%", "{:,}.5", "({})", "{:,}.50 €", "{:,}"])
def test_signs_parentheses_and_thousands_make_formatted_numbers(form):
    values = [form.format(700 * i) for i in range(2, 14)] * 3
    X = pd.DataFrame({"paid": values})
    with pytest.raises(TableError, match=r"formatted numbers in 'paid'.*name it in categorical_features") as told:
        read_table(X, "from_dtype", "error", "a table")
    assert ("the comma of '1,400' may be a decimal one" in str(told.value)) == (form == "{:,}")
    for known in (
        read_table(X.astype("category"), "from_dtype", "error", "a table"),
        read_table(X, ["paid"], "error", "a table"),
    ):
        assert len(known.columns[0].levels) == 12


def test_a_few_thousands_among_many_numbers_are_not_said_to_be_text():
    X = pd.DataFrame({"paid": [f"{i}.5" for i in range(100)] + ["1,234.5"]})
    with pytest.raises(TableError, match=r"formatted numbers in 'paid' \('1,234.5'\)"):
        read_table(X, "from_dtype", "error", "a table")


def test_the_number_of_levels_that_a_column_of_text_may_have_depends_on_its_rows():
    table = pd.DataFrame({"town": [f"town {j % 37}" for j in range(62)], "area": np.arange(62.0) ** 2})
    with pytest.raises(TableError, match=r"'town' \(37 values\): .* into at most 31, or give the column the dtype"):
        SparseRegressor(k=1).fit(table, table["area"])
    assert SparseRegressor(k=1).fit(table.astype({"town": "category"}), table["area"]).path_.names(1) == ["area"]


def test_summaries_say_what_stands_for_missing_values(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"city": rng.choice(["A", "B", None], 90, p=[0.5, 0.3, 0.2]), "area": rng.integers(9, 30, 90)})
    table["area"] = table["area"].where(table.index % 9 > 0)
    y = table["area"].fillna(15) + (table["city"] == "B") + rng.normal(size=90)
    many, unknown = table["city"].isna().sum(), table["area"].isna().sum()
    model = SparseRegressor(k=2, missing="median").fit(table, y)
    model.save(tmp_path / "model.json")
    area = f"replaced by the median (area by {table['area'].median():g} in {unknown} rows)"
    for fitted in (model, pauca.load(tmp_path / "model.json")):
        said = fitted.summary()
        assert f"Missing values are {area} or count as the baseline (city=A in {many} rows)." in said
        assert f"Missing values are {area}." in fitted.at(1).summary()
    assert "count as the baseline (" not in SparseRegressor(k=2, missing="category").fit(table, y).summary()


@pytest.mark.parametrize(("name", "told"), [("pidnum", True), ("caseid", True), ("idno", True), ("acid", False)])
def test_abbreviated_identifiers_are_told(name, told):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.integers(1000, 99999, 60), "age": rng.normal(size=60)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SparseRegressor(k=2).fit(table, table["age"] + 1e-5 * table[name])
    assert any(f"The column '{name}' is named as an identifier" in str(one.message) for one in caught) == told


@pytest.mark.parametrize("raw", [False, True])
def test_names_of_rows_that_a_file_was_read_with_are_no_feature(raw):
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(np.arange(120), 90, replace=False))
    table = pd.DataFrame({"Unnamed: 0": rows, "age": rng.normal(size=90), "index": rows, "dose": rng.normal(size=90)})
    if raw:
        table["city"] = rng.choice(["A", "B"], 90)
    y = rows + 60 * table["age"] + 0.1 * rng.normal(size=90)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SparseRegressor(k=1, never=["index"]).fit(table, y)
        default = SparseRegressor(never=["index"], selection_rule="best").fit(table, y)
    said = [str(one.message) for one in caught]
    assert all(
        "'Unnamed: 0' is named as an identifier and differs in every row: it was left out" in one for one in said
    )
    assert model.path_.names(1) == ["age"]
    # No larger size is promised where all that may be chosen are.
    assert not default.path_.choice.falling
    assert "Unnamed: 0" not in {record["replacement"] for record in model.alternatives()}
    with pytest.warns(PaucaWarning, match="looks like an identifier, and is in the model"):
        assert SparseRegressor(k=1, always=["Unnamed: 0"]).fit(table, y).path_.names(1) == ["Unnamed: 0"]
