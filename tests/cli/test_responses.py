"""Survival, ordered classes, rates and sheets of points from the command line, against the estimators."""

import math
import sqlite3
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pauca
from pauca.cli import main

N = 160


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = {name: rng.standard_normal(N).round(3) for name in ("age", "dose", "noise")}
    score = X["age"] - X["dose"]
    days, end = rng.exponential(np.exp(-score)), rng.exponential(2.0, N)
    years = rng.uniform(0.5, 3.0, N).round(2)
    return pl.DataFrame(
        {
            **X,
            "site": rng.choice(["north", "south"], N),
            "days": np.minimum(days, end).round(3) + 0.001,
            "died": (days <= end).astype(int),
            "grade": np.array(["low", "middle", "high"])[np.digitize(score + rng.logistic(size=N), [-1, 1])],
            "years": years,
            "known": np.log(years),
            "claims": rng.poisson(np.exp(0.5 * score) * years),
            "sick": np.where(score + rng.logistic(size=N) > 0, "yes", "no"),
        }
    )


@pytest.fixture
def table(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows.write_csv("rows.csv")
    return rows


COLUMNS = ["age", "dose", "noise"]
FIT = ["fit", "rows.csv", "--k", "2", "--out", "model.json", "--quiet"]


def drop(table, *kept):
    return ["--drop", ",".join(name for name in table.columns if name not in {*COLUMNS, *kept})]


def predictions(*options):
    assert main(["predict", "model.json", "rows.csv", "--out", "new.csv", "--quiet", *options]) == 0
    return pl.read_csv("new.csv")


def test_survival(table, capsys):
    options = ["--time", "days", "--event", "died", "--strata", "site", *drop(table, "days", "died", "site")]
    table.with_columns(died=1 + table["died"].cast(int)).write_csv("coded.csv")
    assert main(["fit", "coded.csv", *FIT[2:], *options]) == 1
    assert "'died' must be true or false, or 1 and 0, and holds '1', '2'; --event-value" in capsys.readouterr().err
    assert main(["fit", "coded.csv", *FIT[2:], *options, "--event-value", "2"]) == 0
    X = table.select(COLUMNS)
    y = table.select("died", "days").to_pandas()
    expected = pauca.SparseCox(k=2).fit(X, y, event="died", time="days", strata=table["site"].to_numpy())
    found = predictions("--times", "0.5,1", "--strata", "site")
    assert found.columns == ["prediction", "survival at 0.5", "survival at 1"]
    np.testing.assert_allclose(found["prediction"], expected.predict(X), rtol=1e-9)
    survival = expected.predict_survival_function(X, [0.5, 1.0], strata=table["site"].to_numpy())
    np.testing.assert_allclose(found.to_numpy()[:, 1:], survival, rtol=1e-9)
    last = f"{expected.event_times_.max():g}"
    for times, noted in (("0.5,99999", True), ("0.5", False)):
        capsys.readouterr()
        assert main(["predict", "model.json", "rows.csv", "--times", times, "--strata", "site"]) == 0
        words = f"the last event of the fit was at {last}, and the survival at 99999 is that at {last}"
        assert (words in capsys.readouterr().err) == noted
    assert main(["explain", "model.json"]) == 0
    assert "one unit more of age: the hazard is multiplied by" in capsys.readouterr().out


def test_ordered_classes(table, capsys):
    options = ["--target", "grade", "--task", "ordinal", "--order", "low,middle,high", *drop(table, "grade")]
    assert main([*FIT, *options]) == 0
    X, y = table.select(COLUMNS), table["grade"].to_numpy()
    expected = pauca.SparseOrdinalClassifier(k=2, order=["low", "middle", "high"]).fit(X, y)
    found = predictions("--proba")
    assert found.columns == ["prediction", *(f"probability of {name}" for name in ("low", "middle", "high"))]
    np.testing.assert_allclose(found.to_numpy()[:, 1:].astype(float), expected.predict_proba(X), rtol=1e-9)
    capsys.readouterr()
    assert main(["explain", "model.json"]) == 0
    assert "one unit more of age: the odds of a higher class are multiplied by" in capsys.readouterr().out
    assert main([*FIT, *options, "--report", "page.html", "--nested", "--stability", "0"]) == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "for every fold the features were chosen again" in page


@pytest.mark.parametrize(("given", "column"), [("exposure", "years"), ("offset", "known")])
def test_rates(table, capsys, given, column):
    options = ["--target", "claims", "--loss", "poisson", f"--{given}", column, *drop(table, "claims", column)]
    assert main([*FIT, *options]) == 0
    X, known = table.select(COLUMNS), table[column].to_numpy()
    expected = pauca.SparseRegressor(k=2, loss="poisson").fit(X, table["claims"].to_numpy(), **{given: known})
    counts = expected.predict(X, **{given: known})
    np.testing.assert_allclose(predictions(f"--{given}", column)["prediction"], counts, rtol=1e-9)
    np.testing.assert_allclose(predictions()["prediction"], expected.predict(X), rtol=1e-9)
    capsys.readouterr()
    assert main(["explain", "model.json", "--sql", "rows", f"--{given}", column]) == 0
    database = sqlite3.connect(":memory:")
    database.create_function("EXP", 1, math.exp)
    database.execute("CREATE TABLE rows (age REAL, dose REAL, noise REAL, years REAL, known REAL)")
    database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", table.select(*COLUMNS, "years", "known").rows())
    found = [row[0] for row in database.execute(capsys.readouterr().out)]
    np.testing.assert_allclose(found, counts, rtol=1e-9)
    assert main(["explain", "model.json"]) == 0
    said = capsys.readouterr().out
    assert ("rates per unit of exposure" in said) == (given == "exposure")
    assert (f"prediction is {math.exp(expected.intercept_):.6g} per unit of exposure" in said) == (given == "exposure")
    assert ("fitted with an offset" in said) == (given == "offset")


def test_points(table, capsys):
    sheet = ["--points", "sheet.html", "--max-points", "3"]
    assert main([*FIT, "--target", "sick", *drop(table, "sick"), *sheet]) == 0
    expected = pauca.SparseClassifier(k=2).fit(table.select(COLUMNS), table["sick"].to_numpy()).to_points(3)
    assert capsys.readouterr().out.endswith(expected.summary() + "\n")
    with open("sheet.html") as file:
        assert file.read() == expected.to_html()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--time", "days"], "needs --time and --event"),
        (["--time", "days", "--event", "died", "--target", "sick"], "instead of --target"),
        (["--target", "sick", "--task", "classification", "--strata", "site"], "--strata is for --task survival"),
        (["--time", "days", "--event", "years"], "true or false, or 1 and 0"),
        (["--time", "days", "--event", "died", "--event-value", "2"], "'died' has no '2'; it holds "),
        (["--time", "days", "--event", "dead"], "has no column 'dead'; did you mean 'died'"),
        (["--time", "days", "--event", "died", "--exposure", "years"], "--exposure is for regression"),
        (["--time", "days", "--event", "died", "--loss", "poisson"], "a loss of its own"),
        (["--target", "grade", "--points", "sheet.html"], "--points is for two classes"),
        (["--target", "sick", "--order", "no,yes"], "--order is for --task ordinal"),
        (["--target", "grade", "--task", "ordinal"], "order is not known"),
    ],
)
def test_what_does_not_go_together_is_one_line(table, capsys, options, words):
    used = [word for word in options if word in table.columns]
    assert main([*FIT, *options, *drop(table, *used)]) in {1, 2}
    error = capsys.readouterr().err
    assert words in error
    assert len(error.strip().splitlines()) == 1


def test_predictions_refuse_what_a_model_does_not_have(table, capsys):
    assert main([*FIT, "--target", "sick", *drop(table, "sick")]) == 0
    for options, words in (
        (["--exposure", "years"], "whose predictions have none"),
        (["--times", "1"], "no model of survival"),
    ):
        assert main(["predict", "model.json", "rows.csv", "--quiet", *options]) == 1
        assert words in capsys.readouterr().err
