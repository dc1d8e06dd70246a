"""pauca fit: what it reads, prints and writes, its progress and Ctrl-C."""

import io
import json
import os
import signal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from shell import error_of, fitted, houses, predictions, run

import pauca
from pauca.cli.console import FitProgress
from pauca.results.instructions import in_shell
from pauca.runs import run as driver

# Fit


def test_fit_prints_the_summary(table, capsys):
    code, out, err = run(capsys, "fit", "houses.csv", "--target", "price", "--k", "3", "--out", "model.json")
    assert code == 0
    assert out == pauca.load("model.json").summary(in_shell("model.json")) + "\n"
    assert "regression, since 'price' holds numbers" in err
    assert "city ('Paris')" in err
    assert "wrote model.json" in err


def test_another_size_at_its_own_ridges_from_a_shell(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 10))
    y = X @ np.geomspace(2, 0.2, 10) + 2 * rng.normal(size=120)
    frame = pl.DataFrame(X, schema=[f"c{j}" for j in range(10)])
    frame.with_columns(pl.Series("y", y)).write_csv("t.csv")
    model = pauca.SparseRegressor(k=range(11)).fit(frame.to_pandas(), y)
    size = next(s for s in (1, 2, 3, 4) if model.path_.choice.surface.best_of(s) != (model.search_ridge_, model.ridge_))
    command = ["fit", "t.csv", "--target", "y", "--k", "0-10", "--quiet", "--size", str(size), "--out", "m.json"]
    assert run(capsys, *command)[0] == 0
    expected, found = model.at(size, ridge="best"), pauca.load("m.json")
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert (found.k_, found.ridge_) == (size, expected.ridge_)
    code, _, err = run(capsys, "fit", "t.csv", "--target", "y", "--k", "3", "--size", "9")
    assert code == 1
    assert "--size: no model of size 9 on this path; it has sizes 0-3" in err


def test_json(table, capsys):
    found = fitted(capsys, "houses.csv", "--target", "price", "--k", "1-3", "--out", "m.json")
    assert found["written"] == ["m.json"]
    assert found["interrupted"] is False
    assert [record["size"] for record in found["path"]] == [0, 1, 2, 3]
    assert found["path"][0]["score"] is None  # a size that was not compared
    assert set(found["seconds"]) == {"reading", "fitting"}
    assert "regression, since 'price' holds numbers" in found["notes"]


def test_quiet(table, capsys):
    _, out, err = run(capsys, "fit", "houses.csv", "--target", "price", "--k", "3", "--quiet")
    assert out.startswith("3 columns of 5")
    assert err == ""


def test_categories_are_groups_and_most_frequent_is_baseline(table, capsys):
    found = fitted(capsys, "houses.csv", "--target", "price", "--k", "3")
    assert found["feature_groups"] == ["area", "age", "city"]
    assert found["features"] == ["area", "age", "city=Lyon", "city=Nice"]
    assert found["baselines"] == {"city": "Paris"}
    assert found["coefficients"]["city=Lyon"] == pytest.approx(-80, abs=8)


def test_auto_and_range(table, capsys):
    assert fitted(capsys, "houses.csv", "--target", "price")["size"] >= 3
    found = fitted(capsys, "houses.csv", "--target", "price", "--k", "1-2", "--cv", "3", "--selection-rule", "best")
    assert found["size"] == 2
    assert "3-fold" in found["choice"]
    assert fitted(capsys, "houses.csv", "--target", "price", "--criterion", "bic")["choice"].endswith("sizes tried.")


def test_constraints(table, capsys):
    Path("costs.csv").write_text("column,cost\narea,5\nage,1\nnoise,1\ncity,3\ngarden,1\n")
    found = fitted(capsys, "houses.csv", "--target", "price", "--costs", "costs.csv", "--budget", "8", "--k", "3")
    assert found["cost"] <= 8
    found = fitted(capsys, "houses.csv", "--target", "price", "--k", "2", "--always", "noise", "--never", "area,city")
    assert "noise" in found["features"]
    assert not {"area", "city=Lyon"} & set(found["features"])
    bounded = ["--bounds", "area=0:2", "--bounds", "age=:0"]
    found = fitted(capsys, "houses.csv", "--target", "price", "--k", "5", *bounded)
    assert found["coefficients"]["area"] == pytest.approx(2)
    found = fitted(capsys, "houses.csv", "--target", "price", "--k", "5", "--nonnegative")
    assert min(found["coefficients"].values()) >= 0
    found = fitted(capsys, "houses.csv", "--target", "price", "--k", "5", "--nonnegative", "--bounds", "area=:1")
    assert min(found["coefficients"].values()) >= 0
    assert found["coefficients"]["area"] == pytest.approx(1)


def test_groups(table, capsys):
    Path("groups.json").write_text(json.dumps({"area": "house", "age": "house"}))
    found = fitted(capsys, "houses.csv", "--target", "price", "--k", "1", "--feature-groups", "groups.json")
    assert found["feature_groups"] == ["house"]
    found = fitted(capsys, "houses.csv", "--target", "price", "--k", "1", "--feature-groups", "house=a*")
    assert found["features"] == ["area", "age"]
    Path("groups.csv").write_text("column,group\narea,house\nage,house\n")
    rest = ["--drop", "city", "--max-per-group", "1", "--k", "3"]
    found = fitted(capsys, "houses.csv", "--target", "price", "--feature-groups", "groups.csv", *rest)
    assert not {"area", "age"} <= set(found["features"])
    assert "no column matches it" in error_of(
        capsys, "fit", "houses.csv", "--target", "price", "--feature-groups", "b?*z"
    )
    line = error_of(
        capsys, "fit", "houses.csv", "--target", "price", "--feature-groups", "a*", "--never", "a", "--k", "1"
    )
    assert "--never: 'a' is not a candidate column" in line


def test_sample_weight_and_row_groups(table, capsys):
    frame = houses().with_columns(
        w=pl.Series([0.0] * 60 + [1.0] * 60), patient=pl.Series([f"p{i // 4}" for i in range(120)])
    )
    frame.write_csv("weighted.csv")
    weighted = fitted(
        capsys, "weighted.csv", "--target", "price", "--sample-weight", "w", "--k", "2", "--drop", "patient,city"
    )
    half = houses()[60:]
    half.write_csv("half.csv")
    alone = fitted(capsys, "half.csv", "--target", "price", "--k", "2", "--drop", "city")
    assert weighted["coefficients"] == pytest.approx(alone["coefficients"])
    found = fitted(capsys, "weighted.csv", "--target", "price", "--row-groups", "patient", "--k", "1-3", "--drop", "w")
    assert "patient" not in " ".join(found["features"])


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["yes", "no"] * 30, "classification"),
        ([True, False] * 30, "classification"),
        ([0, 1, 2] * 20, "classification"),
        ([1.0, -1.0] * 30, "classification"),
        (list(range(60)), "regression"),
        ([i / 7 for i in range(60)], "regression"),
    ],
)
def test_the_task_is_inferred(values, task, table, capsys):
    rng = np.random.default_rng(1)
    pl.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "y": values}).write_csv("t.csv")
    code, out, err = run(capsys, "fit", "t.csv", "--target", "y", "--k", "1", "--json")
    assert code == 0
    assert json.loads(out)["task"] == task
    assert f"pauca: {task}, since 'y'" in err


def test_the_task_can_be_given(table, capsys):
    pl.DataFrame({"a": range(40), "y": [0, 1, 2, 3] * 10}).write_csv("t.csv")
    assert fitted(capsys, "t.csv", "--target", "y", "--task", "regression", "--k", "1")["task"] == "regression"
    assert fitted(capsys, "t.csv", "--target", "y", "--loss", "poisson", "--k", "1")["task"] == "regression"
    assert fitted(capsys, "t.csv", "--target", "y", "--loss", "hinge", "--k", "1")["classes"] == [0, 1, 2, 3]
    error_of(capsys, "fit", "t.csv", "--target", "y", "--loss", "hinge", "--task", "regression", code=2)


def test_missing_values(table, capsys):
    frame = houses().with_columns(
        area=pl.Series([None] * 5 + houses()["area"].to_list()[5:]),
        city=pl.Series([*houses()["city"].to_list()[:7], None, *houses()["city"].to_list()[8:]]),
    )
    frame.write_csv("gaps.csv")
    line = error_of(capsys, "fit", "gaps.csv", "--target", "price")
    assert "'area' (5), 'city' (1)" in line
    assert "--missing drop-rows" in line
    found = fitted(capsys, "gaps.csv", "--target", "price", "--missing", "drop-rows", "--k", "3")
    assert (found["rows"], found["rows_dropped"]) == (114, 6)
    fitted(capsys, "gaps.csv", "--target", "price", "--missing", "median", "--k", "3", "--out", "m.json")
    model = pauca.load("m.json")
    assert model.encoder_.medians_["area"] == pytest.approx(frame["area"].median())
    code, out, err = run(capsys, "predict", "m.json", "gaps.csv")
    assert code == 0
    assert "replaced 5 missing values of 'area' by" in err
    filled = frame.with_columns(pl.col("area").fill_null(frame["area"].median()), pl.col("city").fill_null("Paris"))
    expected = model.predict(filled)
    assert predictions(out) == expected.tolist()


def test_rows_without_a_target_are_dropped_where_other_values_are_filled_in(table, capsys):
    price, area = houses()["price"].to_list(), houses()["area"].to_list()
    frame = houses().with_columns(price=pl.Series([None, None, *price[2:]]), area=pl.Series([*area[:-1], None]))
    frame.write_csv("gaps.csv")
    command = ["fit", "gaps.csv", "--target", "price", "--k", "1", "--missing", "median", "--report", "page.html"]
    code, _, err = run(capsys, *command)
    assert code == 0
    assert "dropped 2 rows of 120 without a target" in err
    page = Path("page.html").read_text(encoding="utf-8")
    assert "2 other rows were left out" in page
    assert "area in 1 row" in page


def test_files_of_another_kind_are_called_what_they_are(model, capsys):
    Path("page.html").write_text("<!DOCTYPE html>\n<html></html>")
    assert "model.json is a model file, and pauca fit takes a table" in error_of(
        capsys, "fit", "model.json", "--target", "x"
    )
    for command in ("explain", "report", "path"):
        assert f"houses.csv is a table, and pauca {command} takes a model" in error_of(capsys, command, "houses.csv")
        assert f"page.html is an HTML page, and pauca {command}" in error_of(capsys, command, "page.html")
    line = error_of(capsys, "fit", "price", "--target", "houses.csv", code=2)
    assert "the table comes first: pauca fit houses.csv --target price" in line
    assert "did you mean explain?" in error_of(capsys, "show", "model.json", code=2)


def test_missing_values_when_predicting(model, capsys):
    houses()[:3].with_columns(area=pl.Series([1.0, None, 2.0])).write_csv("gaps.csv")
    assert "'area' (1)" in error_of(capsys, "predict", model, "gaps.csv")
    code, out, err = run(capsys, "predict", model, "gaps.csv", "--missing", "blank")
    assert code == 0
    assert pl.read_csv(io.StringIO(out))["prediction"].is_null().to_list() == [False, True, False]
    assert "left 1 prediction blank" in err
    houses()[:3].with_columns(area=pl.Series([None] * 3, dtype=pl.Float64)).write_csv("gaps.csv")
    assert run(capsys, "predict", model, "gaps.csv", "--missing", "blank")[0] == 0


def test_medians_are_of_the_fit(table, capsys):
    fitted(capsys, "houses.csv", "--target", "price", "--missing", "median", "--k", "2", "--out", "m.json")
    one = houses()[:1].with_columns(area=pl.lit(None, dtype=pl.Float64))
    one.write_csv("one.csv")
    found = predictions(run(capsys, "predict", "m.json", "one.csv")[1])
    again = one.with_columns(area=pl.lit(houses()["area"].median()))
    assert found == pauca.load("m.json").predict(again).tolist()


def test_report(table, capsys, monkeypatch):
    monkeypatch.setattr(pauca.SparseRegressor, "report", lambda self, path, title: Path(path).write_text(title))
    code, _, err = run(capsys, "fit", "houses.csv", "--target", "price", "--k", "1", "--report", "r.html")
    assert code == 0
    assert Path("r.html").read_text() == "Predicting price"
    assert "wrote r.html" in err


def test_a_report_by_nested_folds(table, capsys):
    argv = ["fit", "houses.csv", "--target", "price", "--k", "1-3", "--stability", "0", "--report", "r.html"]
    assert run(capsys, *argv)[0] == 0
    assert "optimistic" in Path("r.html").read_text(encoding="utf-8")
    code, out, _ = run(capsys, *argv, "--nested")
    assert code == 0
    assert "(r.html has figures that are not)" in out
    assert "optimistic" not in Path("r.html").read_text(encoding="utf-8")
    assert "give --report too" in error_of(capsys, *argv[:-2], "--nested", code=2)


def test_a_shell_names_its_own_options(table, capsys):
    _, out, _ = run(
        capsys, "fit", "houses.csv", "--target", "price", "--k", "0-5", "--ridge", "0.01,0.1", "--out", "m.json"
    )
    _, other, _ = run(capsys, "explain", "m.json", "--size", "2")
    assert not any(call in out + other for call in ("at(", "evaluate", "selection_rule", "ridge="))
    assert "--nested" in out
    assert "pauca fit --k 2 without --ridge has none" in other


# Interrupts and progress


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_once_writes_the_models_found(table, capsys, monkeypatch):
    monkeypatch.setattr("pauca.runs.run._interrupts", driver._Interrupts())
    moves = []

    def press(self, progress):
        moves.append(progress)
        if len(moves) == 2:
            signal.raise_signal(signal.SIGINT)
        return self.interrupted

    monkeypatch.setattr(FitProgress, "__call__", press)
    code, out, err = run(capsys, "fit", "houses.csv", "--target", "price", "--k", "5", "--out", "m.json")
    assert code == 130
    assert "interrupted; the models found so far are kept" in err
    assert "interrupted" in out
    assert pauca.load("m.json").k_ == 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_while_a_page_is_computed_keeps_the_model(table, capsys, monkeypatch):
    def press(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(pauca.SparseRegressor, "evaluate", press)
    argv = ["fit", "houses.csv", "--target", "price", "--k", "2", "--out", "m.json", "--report", "page.html"]
    code, out, err = run(capsys, *argv)
    assert code == 130
    assert "interrupted" in err
    assert "2 columns of" in out
    assert pauca.load("m.json").k_ == 2
    assert not os.path.exists("page.html")


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("rest", [[], ["--n-jobs", "2"]])
def test_ctrl_c_in_the_folds(rest, table, capsys, monkeypatch):
    monkeypatch.setattr("pauca.runs.run._interrupts", driver._Interrupts())

    def press(self, progress):
        if progress.fold == 2 and not self.interrupted:
            if rest:
                self.interrupted = True
            else:
                signal.raise_signal(signal.SIGINT)
        return self.interrupted

    monkeypatch.setattr(FitProgress, "__call__", press)
    code, _, _ = run(capsys, "fit", "houses.csv", "--target", "price", "--out", "m.json", *rest)
    assert code == 130
    assert pauca.load("m.json").path_.sizes[0] == 0


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_twice_aborts(table, capsys, monkeypatch):
    def press(self, progress):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(FitProgress, "__call__", press)
    code, out, err = run(capsys, "fit", "houses.csv", "--target", "price", "--k", "5", "--out", "m.json")
    assert (code, out) == (130, "")
    assert err.endswith("pauca: interrupted\n")
    assert not Path("m.json").exists()


def test_a_long_fit_shows_its_progress(table, capsys, monkeypatch):
    """On a terminal a bar, which is removed at the end; lines elsewhere, and nothing for those who want none."""
    monkeypatch.setattr("pauca.runs.progress.LINE_INTERVAL", 0.001)
    argv = ["fit", "houses.csv", "--target", "price", "--method", "stepwise", "--k", "1-5"]
    lines = run(capsys, *argv)[2]
    assert "s so far" in lines
    assert "\r" not in lines
    # Nor are the waits after it silent.
    said = []
    monkeypatch.setattr("pauca.runs.progress.ProgressReport.phase", lambda self, name, n_steps=0: said.append(name))
    small = ["fit", "houses.csv", "--target", "garden", "--k", "1", "--stability", "2", "--ridge", "1"]
    run(capsys, *small, "--report", "r.html", "--points", "s.html")
    assert {"searching on halves of the rows", "finding whole points", "writing the page"} <= set(said)
    for option in ("--quiet", "--json"):
        assert "so far" not in run(capsys, *argv, option)[2]
    monkeypatch.setattr("pauca.runs.progress.LINE_INTERVAL", 1e9)
    assert "so far" not in run(capsys, *argv)[2]
