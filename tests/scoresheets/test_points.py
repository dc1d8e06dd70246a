"""Sheets of points: the best of all small ones, what is written of them, and bad input."""

import itertools
import math
import sqlite3

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from pauca import SparseClassifier
from pauca.scoresheets.make_sheet import auc
from pauca.scoresheets.point_search import PointSearch
from pauca.scoresheets.rows import cuts_of
from pauca.statistics.round_steps import round_number, round_step


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.rename(columns={"worst area": 'worst "area"'})
    return SparseClassifier(k=3).fit(X, y), X, y


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["binary", "numbers"])
def test_no_other_points_are_better(kind, seed):
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, 2, (120, 3)).astype(float) if kind == "binary" else rng.standard_normal((120, 3))
    y = np.where(columns @ [1.5, -0.6, 0.9] + rng.logistic(size=120) > 0, 1.0, -1.0)
    search = PointSearch(columns, y, np.full(120, 1 / 120), 3)
    best = search.run()
    every = [search.fit(points) for points in itertools.product(range(-3, 4), repeat=3) if any(points)]
    assert best.loss <= min(one.loss for one in every) * (1 + 1e-9)
    judge = LogisticRegression(C=1e8, tol=1e-10).fit((columns @ best.points)[:, None], y)
    assert abs(best.scale) == pytest.approx(abs(judge.coef_[0, 0]), rel=1e-3)
    assert best.constant == pytest.approx(judge.intercept_[0], rel=1e-3, abs=1e-3)


def test_a_sheet_costs_little_and_says_how_much(cancer):
    model, X, y = cancer
    sheet = model.to_points()
    assert np.all(np.abs(sheet.points) <= 5)
    assert [row.feature for row in sheet.rows] == list(model.get_feature_names_out())
    points, real = sheet.held_out["points"], sheet.held_out["model"]
    assert points["deviance"] < 1.3 * real["deviance"]
    assert points["auc"] > real["auc"] - 0.01
    risk = sheet.predict_risk(X)
    assert sheet.deviance == pytest.approx(deviance(risk, y == 1), rel=1e-9)
    assert "Made from 569 rows; 357 have the outcome 1." in str(sheet)
    np.testing.assert_allclose(sheet.predict_risk(X.to_numpy()), risk)
    losses = [one.deviance for one in (sheet, *sheet.pool)]
    assert losses == sorted(losses)
    assert 1 <= len(sheet.pool) <= 10
    assert len({tuple(one.points) for one in sheet.pool}) == len(sheet.pool)
    for text in (str(sheet), sheet.to_html("My <sheet>")):
        assert all(f"{row.points:+d}" in text for row in sheet.rows)
        assert "These figures are optimistic, since all rows chose the features" in text
    np.testing.assert_array_equal(sheet.totals, np.round(sheet.totals))
    assert "My &lt;sheet&gt;" in sheet.to_html("My <sheet>")


def test_what_cuts_cost_is_told_apart_from_what_rounding_costs(cancer):
    """The model is compared as it was fitted: with its features as they are."""
    model, _, _ = cancer
    whole, cut = model.to_points(), model.to_points(cuts="auto")
    assert set(whole.held_out) == {"points", "model"}
    for figure in ("deviance", "auc"):
        assert cut.held_out["model"][figure] == pytest.approx(whole.held_out["model"][figure], rel=1e-6)
    changes = {name: cut.held_out[name]["auc"] for name in ("model", "cut", "points")}
    assert changes["cut"] < changes["model"] - 0.005
    for text in (str(cut), cut.to_html()):
        assert f"the AUC by {changes['cut'] - changes['model']:+.4f}, rounding to points by" in text
        assert f"the AUC by {changes['points'] - changes['cut']:+.4f}." in text
    assert "Cutting" not in str(whole)


@pytest.mark.parametrize("cuts", [None, "auto", {"worst texture": [20, 30]}, {"worst texture": 25}])
def test_sql_and_python_give_the_same_points_and_risks(cancer, cuts, tmp_path):
    model, X, _ = cancer
    sheet = model.to_points(3, cuts=cuts, cv=None)
    frame = X.iloc[:30]
    module = {}
    exec(sheet.to_python(), module)
    rows = frame.to_dict("records")
    np.testing.assert_allclose([module["total"](row) for row in rows], sheet.total(frame), rtol=1e-12)
    np.testing.assert_allclose([module["risk"](row) for row in rows], sheet.predict_risk(frame), rtol=1e-12)
    database = sqlite3.connect(":memory:")
    database.create_function("EXP", 1, math.exp)
    frame.to_sql("patients", database, index=True, index_label="id")
    found = database.execute(sheet.to_sql("patients", keep=["id"])).fetchall()
    assert [row[0] for row in found] == frame.index.tolist()
    np.testing.assert_allclose([row[1] for row in found], sheet.total(frame), rtol=1e-12)
    np.testing.assert_allclose([row[2] for row in found], sheet.predict_risk(frame), rtol=1e-12)
    assert "EXP" not in sheet.to_sql()
    sheet.save_page(tmp_path / "sheet.html")
    assert "<h1>Risk of 1</h1>" in (tmp_path / "sheet.html").read_text(encoding="utf-8")


def test_a_missing_value_has_no_points(cancer):
    model, X, _ = cancer
    sheet = model.to_points(cuts="auto", cv=None)
    database = sqlite3.connect(":memory:")
    database.create_function("EXP", 1, lambda value: None if value is None else math.exp(value))
    frame = X.iloc[:1].copy()
    frame[sheet.rows[0].feature] = np.nan
    frame.to_sql("rows", database, index=False)
    assert database.execute(sheet.to_sql("rows")).fetchall() == [(None, None)]
    with pytest.raises(ValueError, match="missing or not finite"):
        sheet.total(frame)


def test_rows_without_a_column_that_has_points_are_refused(cancer):
    model, X, y = cancer
    sheet = model.to_points(cv=None)
    expected, name = sheet.total(X), sheet.rows[-1].feature
    np.testing.assert_array_equal(sheet.total(X[X.columns[::-1]]), expected)
    np.testing.assert_array_equal(sheet.total(X.to_numpy()), expected)
    with pytest.raises(ValueError, match="has no column"):
        sheet.total(X.rename(columns={name: "other"}))
    with pytest.raises(ValueError, match="X has 1 columns"):
        sheet.predict_risk(X.to_numpy()[:, :1])
    nameless = SparseClassifier(k=3).fit(X.to_numpy(), y).to_points(cv=None)
    np.testing.assert_array_equal(nameless.total(X), expected)


def test_readable_numbers():
    assert [round_number(value) for value in (0.13, 0.7, 3.4, 17.0, 890.0)] == [0.1, 0.5, 5.0, 20.0, 1000.0]
    assert round_step(np.array([0.0, 1.0, 1.0])) == 1.0
    assert round_step(np.array([1.0, 4.0, 9.0])) == 1.0
    assert round_step(np.array([10.0, 55.0, 80.0])) in (20.0, 50.0)
    assert cuts_of(np.arange(100.0)) == [20.0, 50.0, 70.0] or len(cuts_of(np.arange(100.0))) == 3
    assert cuts_of(np.array([0.0, 1.0, 1.0, 2.0])) == [1.0, 2.0]
    assert cuts_of(np.zeros(5)) == []
    skewed = cuts_of(np.concatenate([np.zeros(80), np.linspace(1, 9, 21)]))
    assert skewed[0] == 1.0
    assert len(skewed) == 2


def test_auc_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, scores, weights = rng.choice([-1.0, 1.0], 80), rng.integers(0, 9, 80) / 3, rng.random(80)
    assert auc(y, scores, weights) == pytest.approx(roc_auc_score(y, scores, sample_weight=weights))
    assert np.isnan(auc(np.ones(3), np.arange(3.0), np.ones(3)))


def test_invalid(cancer):
    model, X, y = cancer
    for how, words in (
        ({"max_points": 0}, "max_points"),
        ({"cuts": "some"}, "None, 'auto' or a dict"),
        ({"cuts": {"age": [1]}}, "'age', which is not a feature"),
        ({"cuts": {"worst texture": []}}, "finite numbers"),
        ({"cuts": {"worst texture": True}}, "finite numbers, such as .50, 65.; got True"),
        ({"cuts": {"worst texture": ["high"]}}, "finite numbers"),
    ):
        with pytest.raises(ValueError, match=words):
            model.to_points(**how)
    with pytest.raises(ValueError, match="keep needs a table"):
        model.to_points(cv=None).to_sql(keep=["id"])
    with pytest.raises(ValueError, match="no features"):
        model.at(0).to_points()
    with pytest.raises(ValueError, match="two classes"):
        SparseClassifier(k=1, loss="hinge").fit(X, y).to_points()
    three = pd.cut(X["mean radius"], 3, labels=False)
    with pytest.raises(ValueError, match="two classes"):
        SparseClassifier(k=1, ridge=0.1).fit(X, three).to_points()


def test_every_line_says_when_its_points_are_given():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"smokes": rng.integers(0, 2, 200), "visits": rng.integers(0, 8, 200)}).astype(float)
    y = X["smokes"] + 0.3 * X["visits"] + rng.logistic(size=200) > 1.5
    sheet = SparseClassifier(k=2).fit(X, y).to_points(cv=None)
    assert [row.condition for row in sheet.rows] == ["if 1", "for every 1"]
    assert "smokes  if 1" in sheet.summary()
    module = {}
    exec(sheet.to_python(), module)
    row = {"smokes": 1.0, "visits": 3.0}
    assert module["total"](row) == sheet.points @ [1.0, 3.0]


def test_the_ridge_of_the_model_is_that_of_the_sheet():
    """The best sheet of all small ones by the objective, and no points for what separates a few rows by chance."""
    rng = np.random.default_rng(0)
    columns = np.column_stack([rng.standard_normal((120, 2)), np.zeros(120)])
    y = np.where(columns @ [1.5, -0.6, 0.0] + rng.logistic(size=120) > 0, 1.0, -1.0)
    columns[np.flatnonzero(y > 0)[:3], 2] = 1.0
    v, ridge = np.full(120, 1 / 120), 0.05
    search = PointSearch(columns, y, v, 2, ridge)
    best = search.run()
    every = [search.fit(points) for points in itertools.product(range(-2, 3), repeat=3) if any(points)]
    assert best.objective <= min(one.objective for one in every) * (1 + 1e-9)
    spread = columns.std(axis=0)
    coef = best.scale * np.array(best.points)
    scores = best.constant + columns @ coef
    objective = np.logaddexp(0, -y * scores) @ v + 0.5 * ridge * np.sum((spread * coef) ** 2)
    assert best.objective == pytest.approx(objective, rel=1e-6)
    slope = -y / (1 + np.exp(y * scores)) * v
    total = columns @ best.points
    assert slope.sum() == pytest.approx(0.0, abs=1e-6)
    assert slope @ total + ridge * best.scale * np.sum((spread * best.points) ** 2) == pytest.approx(0.0, abs=1e-5)


def test_a_sheet_of_a_raw_table_speaks_of_its_levels():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"site": rng.choice(["Lyon", "Paris", "Paris"], 300).astype(object), "age": rng.normal(size=300)})
    y = 2.0 * (X["site"] == "Lyon") + X["age"] + rng.logistic(size=300) > 0.5
    sheet = SparseClassifier(k=2, ridge=0.01).fit(X, y).to_points(cv=None)
    assert next(line for line in sheet.lines if line.condition == "any other").points == 0
    assert "<th scope='rowgroup' rowspan='2'>site</th><td>is Lyon</td>" in sheet.to_html()
    for text in (sheet.summary(), sheet.to_html()):
        assert "look up the nearest total of the table" in text
        assert "between two of the table lies between theirs" in text
        assert "if 1" not in text


@pytest.mark.filterwarnings("ignore:The data are separable")
def test_a_sheet_of_separable_data_says_so_and_names_the_level_that_separates_rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"site": ["Lyon"] * 5 + ["Paris"] * 195, "age": rng.normal(size=200)})
    y = (X["age"] + rng.logistic(size=200) > 0.5) & (X["site"] == "Paris")
    for ridge, separable in ((0.0, True), (0.01, False)):
        sheet = SparseClassifier(k=2, ridge=ridge).fit(X, y).to_points(cv=None)
        for text in (sheet.summary(), sheet.to_html(), sheet.pool[0].summary()):
            assert (
                "separable, at least in part (by site=Lyon), so the sizes of points mean little" in text
            ) == separable


def test_a_feature_that_is_cut_has_a_line_for_every_band_with_its_points():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"nodes": rng.integers(0, 12, 400), "age": rng.integers(30, 80, 400)})
    y = -0.6 * X["nodes"] + 0.02 * X["age"] + rng.logistic(size=400) > -2
    sheet = SparseClassifier(k=2).fit(X, y).to_points(cuts={"nodes": [3, 6, 9], "age": [50]}, cv=None)
    assert "nodes  below 3" in sheet.summary()
    assert "Points below zero are subtracted" in sheet.summary()
    for nodes in (0, 3, 5, 11):
        row = pd.DataFrame({"nodes": [nodes], "age": [30]})  # the youngest have no points for age
        fits = {"below 3": nodes < 3, "3 to below 6": 3 <= nodes < 6, "6 to below 9": 6 <= nodes < 9}
        told = [line.points for line in sheet.lines if line.name == "nodes" and fits.get(line.condition, nodes >= 9)]
        assert sheet.total(row)[0] == told[0]


def deviance(risk, y):
    return -2 * np.mean(np.log(np.where(y, risk, 1 - risk)))


def patients(n=400):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "nodes": rng.integers(0, 12, n).astype(float),
            "age": rng.integers(30, 80, n).astype(float),
            "bmi": rng.normal(25, 4, n),
            "site": rng.choice(["Lyon", "Paris", "O'Fallon"], n).astype(object),
        }
    )
    lyon, score = X["site"] == "Lyon", 0.4 * X["nodes"] + 0.03 * X["age"] + 0.02 * X["bmi"]
    y = score + lyon + rng.logistic(size=n) > 4.5
    X.loc[rng.random(n) < 0.2, "nodes"] = np.nan
    X.loc[rng.random(n) < 0.2, "site"] = None
    return X, y


@pytest.mark.parametrize("max_points", [2, 5])
def test_points_of_a_feature_rise_with_it_as_its_coefficient_says_and_stay_below_the_most(max_points):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"bent": rng.uniform(0, 8, 600), "falling": rng.uniform(0, 8, 600)})
    # The risk rises with the first and falls again at its end, by less.
    bend = np.where(X["bent"] > 6, 1.5, np.where(X["bent"] > 2, 3.0, 0.0))
    y = bend - 0.8 * X["falling"] + 2.0 + rng.logistic(size=600) > 0
    model = SparseClassifier(k=2).fit(X, y)
    sheet = model.to_points(max_points, cuts={"bent": [2, 4, 6], "falling": [2, 4, 6]}, cv=3)
    for one in (sheet, *sheet.pool):
        points = {name: [line.points for line in one.lines if line.name == name] for name in X}
        assert points["bent"] == sorted(points["bent"])
        assert points["falling"] == sorted(points["falling"], reverse=True)
        assert max(map(abs, [*points["bent"], *points["falling"]])) <= max_points
    assert max(map(abs, sheet.points)) > 0


def test_no_other_points_with_their_signs_are_better():
    rng = np.random.default_rng(3)
    values = rng.uniform(0, 4, (200, 2))
    columns = np.column_stack([values[:, 0] >= 1, values[:, 0] >= 2, values[:, 1] >= 2]).astype(float)
    y = np.where(values @ [0.8, -0.9] + rng.logistic(size=200) > 0, 1.0, -1.0)
    search = PointSearch(columns, y, np.full(200, 1 / 200), 3, owners=[0, 0, 1], signs=[1, 1, -1])
    best = search.run()
    every = [points for points in itertools.product(range(-3, 4), repeat=3) if any(points) and search.allows(points)]
    assert (2, 2, -1) not in every
    assert best.points in every
    assert best.objective <= min(search.fit(points).objective for points in every) * (1 + 1e-9)


def test_a_feature_without_points_is_named():
    X, y = patients()
    sheet = SparseClassifier(k=4, missing="median", ridge=0.01).fit(X, y).to_points(cv=None)
    assert "bmi" not in {line.name for line in sheet.lines}
    for text in (sheet.summary(), sheet.to_html()):
        assert "No whole number of points lowers the deviance for bmi: none are given." in text


@pytest.mark.parametrize("missing", ["median", "category"])
@pytest.mark.parametrize("cuts", [None, "auto"])
def test_missing_values_have_lines_of_their_own_and_the_same_points_in_sql_and_python(missing, cuts):
    X, y = patients()
    sheet = SparseClassifier(k=4, missing=missing, ridge=0.01).fit(X, y).to_points(cuts=cuts, cv=None)
    rows = X.iloc[:40]
    total = sheet.total(rows)
    for one in (sheet, sheet.pool[0]):
        assert one.deviance == pytest.approx(deviance(one.predict_risk(X), y), rel=1e-9)
    lost = rows.iloc[:1].assign(nodes=np.nan)
    told = {one.name: one.points for one in sheet.lines if "missing" in one.condition}
    assert set(told) == {"nodes", "site"}  # and not the age, which no row of the fit lacks
    assert isinstance(told["nodes"], int)
    assert sheet.total(lost)[0] - sheet.total(lost.assign(nodes=0.0))[0] == pytest.approx(told["nodes"])
    assert ("is missing" if missing == "category" else "other or missing") in sheet.summary()
    module = {}
    exec(sheet.to_python(), module)
    np.testing.assert_allclose([module["total"](row) for row in rows.to_dict("records")], total, rtol=1e-12)
    module["total"]({name: rows.iloc[0][name] for name in module["FEATURES"]})  # which are all that a row needs
    database = sqlite3.connect(":memory:")
    database.create_function("EXP", 1, math.exp)
    rows.to_sql("rows", database, index=False)
    found = np.array(database.execute(sheet.to_sql("rows")).fetchall())
    np.testing.assert_allclose(found, np.column_stack([total, sheet.predict_risk(rows)]), rtol=1e-12)


def test_folds_without_a_class_are_refused():
    X = np.arange(40.0)[:, None]
    model = SparseClassifier(k=1, ridge=0.1).fit(X, np.arange(40) >= 20)
    with pytest.raises(ValueError, match="Without the rows of fold 1 there is one class only"):
        model.to_points(cv=KFold(2))
