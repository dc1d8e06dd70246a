"""The command line: what it reads, prints and writes, and that every error is one line."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

import pauca
from pauca.cli import main, options
from pauca.cli.console import FitProgress
from pauca.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from pauca.methods import METHODS, STEPWISE
from pauca.results.choice import CRITERIA, DEFAULT_RULE, FOLD_RULES
from pauca.runs import run as driver

# The package under test, also where a test is in another folder.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(pauca.__file__).parents[1])}

CITIES = ["Paris", "Paris", "Lyon", "Nice", "Paris", "Lyon"]


def houses(n=120, seed=0):
    """A table with numbers, text and truth values, and a price that follows from some of them."""
    rng = np.random.default_rng(seed)
    city = [CITIES[i] for i in rng.integers(0, len(CITIES), n)]
    area, age, noise = rng.uniform(20, 200, n), rng.integers(0, 90, n), rng.normal(size=n)
    garden = rng.random(n) < 0.4
    offset = {"Paris": 100.0, "Lyon": 20.0, "Nice": 60.0}
    price = 3 * area - age + np.array([offset[c] for c in city]) + 30 * garden + rng.normal(size=n)
    return pl.DataFrame(
        {"area": area, "age": age, "noise": noise, "city": city, "garden": garden, "price": price.round(2)}
    )


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    houses().write_csv("houses.csv")
    return tmp_path


@pytest.fixture
def model(table, capsys):
    assert main(["fit", "houses.csv", "--target", "price", "--k", "4", "--out", "model.json", "--quiet"]) == 0
    capsys.readouterr()
    return "model.json"


def run(capsys, *argv):
    """Exit code, stdout and stderr."""
    capsys.readouterr()
    code = main([str(word) for word in argv])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def error_of(capsys, *argv, code=1):
    """The one line of an error."""
    found, out, err = run(capsys, *argv)
    lines = [line for line in err.splitlines() if "error" in line]
    assert found == code, err
    assert out == ""
    assert len(lines) == 1
    assert lines[0].startswith("pauca: error: " if code == 1 or "pauca: error" in err else "pauca ")
    return lines[0]


def fitted(capsys, *argv):
    """The JSON record of a fit."""
    code, out, err = run(capsys, "fit", *argv, "--json")
    assert code == 0, err
    assert out.count("\n") == 1
    return json.loads(out)


# Options and imports


def test_choices_are_those_of_the_library():
    assert set(options.LOSSES_FOR_NUMBERS) == set(REGRESSION_LOSSES)
    assert set(options.LOSSES_FOR_CLASSES) == set(CLASSIFICATION_LOSSES)
    assert set(options.METHODS) == {*METHODS, STEPWISE}
    assert (tuple(CRITERIA), FOLD_RULES, DEFAULT_RULE) == (options.CRITERIA, options.RULES, options.DEFAULT_RULE)


@pytest.mark.parametrize("command", [[], ["fit"], ["predict"], ["path"], ["explain"], ["demo"]])
def test_help(command, capsys):
    code, out, _ = run(capsys, *command, "--help")
    assert code == 0
    assert "usage: pauca" in out


def test_help_is_quick_and_imports_nothing_heavy(record_property):
    code = "import sys; from pauca.cli import main; main(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=True)
    record_property("help_seconds", time.perf_counter() - began)
    for heavy in ("'numpy'", "'sklearn'", "'polars'", "'scipy'"):
        assert heavy not in done.stderr


def test_the_package_imports_lazily():
    code = "import pauca, sys; assert 'sklearn' not in sys.modules; from pauca import *; print(SparseRegressor, load)"
    assert "SparseRegressor" in subprocess.check_output([sys.executable, "-c", code], text=True, env=ENVIRONMENT)
    assert set(pauca.__all__) <= set(dir(pauca))
    for name in pauca.__all__:
        assert getattr(pauca, name) is not None
    assert pauca.export.onnx.__name__ == "pauca.export.onnx"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pauca.nothing


def test_load_imports_the_estimators(model):
    code = "from pauca import load; print(load('model.json').k_)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True, env=ENVIRONMENT) == "4\n"


def test_version(capsys):
    assert run(capsys, "--version")[1] == f"pauca {pauca.__version__}\n"


# Fit


def test_fit_prints_the_summary(table, capsys):
    code, out, err = run(capsys, "fit", "houses.csv", "--target", "price", "--k", "3", "--out", "model.json")
    assert code == 0
    assert out == pauca.load("model.json").summary() + "\n"
    assert "regression, since 'price' holds numbers" in err
    assert "city ('Paris')" in err
    assert "wrote model.json" in err


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
    monkeypatch.setattr("pauca.runs.progress.FIRST_LINE", 0.001)
    argv = ["fit", "houses.csv", "--target", "price", "--method", "stepwise", "--k", "1-5"]
    lines = run(capsys, *argv)[2]
    assert "s so far" in lines
    assert "\r" not in lines
    for option in ("--quiet", "--json"):
        assert "so far" not in run(capsys, *argv, option)[2]
    monkeypatch.setattr("pauca.runs.progress.FIRST_LINE", 1e9)
    assert "so far" not in run(capsys, *argv)[2]


# Table formats


@pytest.mark.parametrize(
    "name", ["t.tsv", "t.csv.gz", "t.parquet", "t.parquet.gz", "semicolon.csv", "pipe.txt", "bare"]
)
def test_formats_give_the_same_model(name, table, capsys):
    frame, content = houses(), io.BytesIO()
    if "parquet" in name:
        frame.write_parquet(content)
    else:
        frame.write_csv(content, separator={"t.tsv": "\t", "semicolon.csv": ";", "pipe.txt": "|"}.get(name, ","))
    Path(name).write_bytes(gzip.compress(content.getvalue()) if name.endswith("gz") else content.getvalue())
    expected = fitted(capsys, "houses.csv", "--target", "price", "--k", "3")
    found = fitted(capsys, name, "--target", "price", "--k", "3", "--out", "m.json")
    assert found["coefficients"] == pytest.approx(expected["coefficients"])
    out = run(capsys, "predict", "m.json", name)[1]
    assert predictions(out) == pytest.approx(predictions(run(capsys, "predict", "m.json", "houses.csv")[1]))


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("name", ["t.svm", "t.libsvm.gz", "t"])
def test_libsvm(name, zero_based, table, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 20)) * (rng.random((60, 20)) < 0.3)
    X[0] = 1.0
    y = X[:, 3] - 2 * X[:, 7]
    content = io.BytesIO()
    dump_svmlight_file(X, y, content, zero_based=zero_based)
    Path(name).write_bytes(gzip.compress(content.getvalue()) if name.endswith("gz") else content.getvalue())
    found = fitted(capsys, name, "--k", "2", "--out", "m.json", "--always", "x3", "--never", "x5")
    assert found["features"] == ["x3", "x7"]
    # Rows without the first and the last columns: the file alone does not show whether it counts from 0 or 1.
    rows = np.zeros((5, 20))
    rows[:, 7] = range(5)
    content = io.BytesIO()
    dump_svmlight_file(rows, np.zeros(5), content, zero_based=zero_based)
    Path("new.svm").write_bytes(content.getvalue())
    code, out, _ = run(capsys, "predict", "m.json", "new.svm")
    assert code == 0
    assert predictions(out) == pytest.approx(pauca.load("m.json").predict(rows).tolist())
    error_of(capsys, "fit", name, "--target", "y", code=2)


def test_models_without_names_read_named_tables(table, capsys):
    X = np.random.default_rng(0).normal(size=(40, 6))
    pauca.SparseRegressor(k=2).fit(X, X[:, 2] - X[:, 4]).save("m.json")
    pl.DataFrame(X, schema=[f"x{j}" for j in range(6)]).select("x4", "x2").write_csv("t.csv")
    found = predictions(run(capsys, "predict", "m.json", "t.csv")[1])
    assert found == pytest.approx((X[:, 2] - X[:, 4]).tolist())


def test_decimal_commas_spaces_and_row_numbers(table, capsys):
    rows = "\n".join(f"{i};{i},5; {(i * 7) % 5}" for i in range(30))
    Path("t.csv").write_text(f"\ufeff;Höhe ; b\n{rows}\n", encoding="utf-8")
    code, out, err = run(capsys, "fit", "t.csv", "--target", "Höhe", "--k", "1", "--json")
    assert code == 0, err
    assert json.loads(out)["task"] == "regression"
    assert "has no name and is ignored" in err


def test_late_types(table, capsys):
    first = "\n".join(f"{i % 7},{i % 5}," for i in range(2000))
    last = "\n".join(f"{i % 7}.5,{i % 5},3" for i in range(2000))
    Path("t.csv").write_text(f"y,a,b\n{first}\n{last}\n")
    found = fitted(capsys, "t.csv", "--target", "y", "--k", "1", "--missing", "median")
    assert found["task"] == "regression"


def test_codes_as_categories(table, capsys):
    rng = np.random.default_rng(0)
    zips = [f"0{code}" for code in rng.integers(1, 4, 90)]
    y = [{"01": 5.0, "02": 1.0, "03": 9.0}[z] + e for z, e in zip(zips, rng.normal(size=90), strict=True)]
    pl.DataFrame({"zip": zips, "a": rng.normal(size=90), "y": y}).write_csv("t.csv")
    found = fitted(capsys, "t.csv", "--target", "y", "--k", "1", "--categories", "zip", "--out", "m.json")
    assert all(name.startswith("zip=0") for name in found["features"])
    code, out, err = run(capsys, "predict", "m.json", "t.csv")
    assert code == 0
    assert "not in the training data" not in err
    assert len(set(predictions(out))) == 3


def test_row_numbers_are_noted(table, capsys):
    houses().with_row_index("id").write_csv("t.csv")
    assert "'id' looks like row numbers" in run(capsys, "fit", "t.csv", "--target", "price", "--k", "1")[2]


# Predict


def predictions(out):
    return [float(line.split(",")[0]) for line in out.splitlines()[1:]]


def test_predict_needs_only_the_used_columns(model, capsys):
    houses().select("city", "garden", "age", "area").write_csv("few.csv")
    code, out, _ = run(capsys, "predict", model, "few.csv", "--out", "p.csv")
    assert (code, out) == (0, "")
    loaded = pauca.load(model)
    assert pl.read_csv("p.csv")["prediction"].to_list() == loaded.predict(houses()).tolist()
    assert run(capsys, "predict", model, "few.csv", "--out", "p.parquet")[0] == 0
    assert pl.read_parquet("p.parquet").equals(pl.read_csv("p.csv"))
    houses().select("area").write_csv("one.csv")
    assert run(capsys, "predict", model, "one.csv", "--size", "1")[0] == 0
    code, out, _ = run(capsys, "predict", model, "one.csv", "--size", "0", "--keep", "area")
    assert out.splitlines()[0] == "area,prediction"
    assert len(set(pl.read_csv(io.StringIO(out))["prediction"])) == 1
    assert out.count("\n") == 121


def test_models_of_the_shell_predict_raw_frames(model):
    pd = pytest.importorskip("pandas")
    loaded = pauca.load(model)
    raw = houses()
    frame = pd.DataFrame({name: raw[name].to_list() for name in raw.columns})
    assert loaded.predict(frame).tolist() == loaded.predict(raw).tolist()
    with pytest.raises(ValueError, match="'city'"):
        loaded.predict(raw.drop("city"))


def test_unknown_values_are_the_baseline(model, capsys):
    houses()[:4].with_columns(city=pl.Series(["Paris", "Rome", "Rome", "Oslo"])).write_csv("new.csv")
    houses()[:4].with_columns(city=pl.Series(["Paris"] * 4)).write_csv("base.csv")
    _, out, err = run(capsys, "predict", model, "new.csv")
    assert "3 rows hold values of 'city' that the data of the fit do not: 'Oslo', 'Rome'. They count as 'Paris'" in err
    assert out == run(capsys, "predict", model, "base.csv")[1]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("missing", ["drop-rows", "median"])
def test_columns_named_like_patterns(table, capsys, suffix, missing):
    """Row weights, row groups, missing values and kept columns, under names that are patterns to polars."""
    row = pl.int_range(pl.len())
    frame = houses().with_columns(
        area=pl.when(row == 5).then(None).otherwise(pl.col("area")), weight=1 + row % 7, owner=row % 9
    )
    found = []
    for names in ({}, dict(zip(frame.columns, ["*", "^.*$", "noise", "^c.*$", "^", "^p", "$", "?"], strict=True))):
        getattr(frame.rename(names), f"write_{suffix}")(f"t.{suffix}")
        price, weight, owner, age = (names.get(name, name) for name in ("price", "weight", "owner", "age"))
        rest = ["--target", price, "--sample-weight", weight, "--row-groups", owner, "--missing", missing, "--k", "1-4"]
        fit = fitted(capsys, f"t.{suffix}", *rest, "--out", "m.json")
        out = run(capsys, "predict", "m.json", f"t.{suffix}", "--keep", age, "--missing", "blank")[1]
        values = pl.read_csv(io.StringIO(out)).to_numpy().astype(float)
        found.append([fit["size"], fit["objective"], *values.ravel()])
    assert found[0][0] == 4
    assert found[1] == pytest.approx(found[0], rel=1e-9, nan_ok=True)


def test_probabilities(table, capsys):
    frame = houses().with_columns(dear=pl.when(pl.col("price") > 400).then(pl.lit("yes")).otherwise(pl.lit("no")))
    frame.write_csv("t.csv")
    rest = ["--target", "dear", "--drop", "price", "--k", "2", "--ridge", "0.001"]
    assert fitted(capsys, "t.csv", *rest, "--out", "m.json", "--balanced")["classes"] == ["no", "yes"]
    out = run(capsys, "predict", "m.json", "t.csv", "--proba")[1]
    found = pl.read_csv(io.StringIO(out))
    model = pauca.load("m.json")
    assert found.columns == ["prediction", "probability of no", "probability of yes"]
    assert found["probability of yes"].to_list() == model.predict_proba(frame)[:, 1].tolist()
    fitted(capsys, "t.csv", *rest, "--out", "h.json", "--loss", "hinge")
    assert "no probabilities" in error_of(capsys, "predict", "h.json", "t.csv", "--proba")


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=8)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    names=st.lists(
        NAMES.map(str.strip).filter(lambda name: name and "=" not in name), min_size=3, max_size=3, unique=True
    ),
    levels=st.lists(NAMES, min_size=2, max_size=4, unique=True),
    scale=st.floats(1e-6, 1e6),
    seed=st.integers(0, 99),
)
@example(names=["0", "*", "00"], levels=["a", "b"], scale=1.0, seed=0)  # patterns to polars
@example(names=["*", "^.*$", "0"], levels=["a", "b"], scale=1.0, seed=0)
@example(names=["^0.*$", "0", "*"], levels=["a", "b"], scale=1.0, seed=0)
@example(names=["level", "count", "literal"], levels=["a", "b"], scale=1.0, seed=0)  # names that polars uses itself
def test_csv_round_trip(names, levels, scale, seed):
    """The predictions that the command writes are exactly those of the model, for any names."""
    rng = np.random.default_rng(seed)
    words = [f"w{level}" for level in levels]
    text = [*words, *(words[i] for i in rng.integers(0, len(words), 40))]
    a = rng.normal(size=len(text)) * scale
    y = a + np.array([words.index(word) for word in text]) * scale + rng.normal(size=len(text)) * scale * 0.1
    frame = pl.DataFrame({names[0]: a, names[1]: text, names[2]: y})
    with tempfile.TemporaryDirectory() as folder:
        table, model, out = (str(Path(folder, name)) for name in ("t.csv", "m.json", "p.csv"))
        frame.write_csv(table)
        target = f"--target={names[2]}"
        assert main(["fit", table, target, "--task", "regression", "--k", "2", "--out", model, "--quiet"]) == 0
        assert main(["predict", model, table, "--out", out, "--quiet"]) == 0
        loaded = pauca.load(model)
        lines = Path(out).read_text().splitlines()
        assert [float(line) for line in lines[1:]] == loaded.predict(frame).tolist()


# Path and explain


def test_path(model, capsys):
    out = run(capsys, "path", model)[1]
    assert out.splitlines()[0].split()[:3] == ["size", "objective", "explained"]
    assert out.splitlines()[-3].startswith("*    4")
    records = json.loads(run(capsys, "path", model, "--json")[1])
    assert [record["size"] for record in records] == [0, 1, 2, 3, 4]
    assert "features        area" in run(capsys, "path", model, "--size", "1")[1]
    assert "it has sizes 0-4" in error_of(capsys, "path", model, "--size", "9")


def test_explain(model, capsys):
    out = run(capsys, "explain", model)[1]
    assert out.startswith(pauca.load(model).summary())
    assert "- city Lyon instead of Paris: the prediction falls by" in out
    assert "- one unit more of area: the prediction rises by" in out
    assert "city" not in run(capsys, "explain", model, "--size", "1")[1]


def test_explain_classes_and_counts(table, capsys):
    frame = houses().with_columns(dear=pl.col("price") > 400, rooms=(pl.col("area") / 20).round())
    frame.write_csv("t.csv")
    rest = ["--k", "1", "--drop", "price", "--ridge", "0.001", "--out", "m.json"]
    fitted(capsys, "t.csv", "--target", "dear", *rest)
    assert "the odds of True are multiplied by" in run(capsys, "explain", "m.json")[1]
    fitted(capsys, "t.csv", "--target", "rooms", "--loss", "poisson", *rest)
    assert "the prediction is multiplied by" in run(capsys, "explain", "m.json")[1]
    fitted(capsys, "t.csv", "--target", "city", *rest)
    assert "Effects" not in run(capsys, "explain", "m.json")[1]


def test_sql_and_python_take_raw_rows(model, capsys):
    import sqlite3

    loaded, raw = pauca.load(model), houses()
    expected = loaded.predict(raw)
    sql = run(capsys, "explain", model, "--sql", "houses")[1]
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE houses (area REAL, age REAL, noise REAL, city TEXT, garden REAL, price REAL)")
    database.executemany("INSERT INTO houses VALUES (?, ?, ?, ?, ?, ?)", raw.rows())
    database.execute("INSERT INTO houses VALUES (1, 1, 1, NULL, 1, 1)")
    found = [row[0] for row in database.execute(sql)]
    database.close()
    assert found[-1] is None
    assert found[:-1] == pytest.approx(expected.tolist())
    assert 'FROM "clinic"."houses" t' in run(capsys, "explain", model, "--sql", "clinic.houses")[1]
    module = {}
    exec(run(capsys, "explain", model, "--python")[1], module)
    rows = [module["predict"](row) for row in raw.to_dicts()]
    assert rows == pytest.approx(expected.tolist())


def test_demo(table, capsys):
    code, out, _ = run(capsys, "demo", "--into", "d")
    assert code == 0
    files = out.splitlines()[-1].removeprefix("Files written: ").split(", ")
    assert len(files) == 4
    assert all(Path(file).exists() for file in files)
    assert "cannot be written" in error_after_output(capsys, "demo", "--into", "houses.csv")


def error_after_output(capsys, *argv):
    code, _, err = run(capsys, *argv)
    assert code == 1
    return err


# Errors


def wrong_tables():
    """Tables that cannot be fitted, and a part of the message."""
    good = houses()
    text = good.write_csv()
    yield "empty", "", "is empty"
    yield "header alone", "area,price\n", "a header but no rows"
    yield "one column", "area price\n1 2\n2 3\n", "only one column"
    yield "two of a name", "area,area,price\n1,2,3\n", "several columns with the same name: 'area'"
    yield "no name", "area,,price\n1,2,3\n", "column 2 has no name"
    yield "no target", text.replace("price", "prize"), "did you mean 'prize'?"
    yield "long row", text + "1,2,3,Paris,true,5,6,7\n", "more fields"
    yield "constant", good.with_columns(price=pl.lit(3)).write_csv(), "is constant"
    yield "target missing", text + "1,2,3,Paris,true,\n", "the target 'price' has 1 missing value"
    yield "dates", good.with_columns(when=pl.lit("2024-02-03")).write_csv(), "dates or times in 'when'"
    yield "times", good.with_columns(when=pl.lit("10:30")).write_csv(), "dates or times in 'when'"
    yield "ids", good.with_columns(who=pl.Series([f"a{i}" for i in range(120)])).write_csv(), "--drop who"
    yield "clash", good.rename({"noise": "city=Lyon"}).write_csv(), "'city=Lyon'"
    yield "nothing else", good.select("price").with_columns(a=pl.lit("x")).write_csv(), "No column of X varies"
    yield "target alone", "price\n1\n2\n", "no candidate columns"
    yield "infinite", text + "inf,2,3,Paris,true,5\n", "'area'"
    yield "latin", text.replace("Paris", "Orléans").encode("latin1"), "UTF-8"
    yield "not a table", b"\x00\xff\x01" * 50, "UTF-8"


@pytest.mark.parametrize(("name", "content", "message"), list(wrong_tables()), ids=lambda value: str(value)[:15])
def test_wrong_tables(name, content, message, table, capsys):
    Path("t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in error_of(capsys, "fit", "t.csv", "--target", "price", "--out", "m.json")
    assert not Path("m.json").exists()


@pytest.mark.parametrize(
    ("argv", "message", "code"),
    [
        (["fit", "house.csv", "--target", "price"], "did you mean 'houses.csv'", 1),
        (["fit", "/nowhere/x.csv", "--target", "price"], "there is no file", 1),
        (["fit", ".", "--target", "price"], "is a folder", 1),
        (["fit", "houses.csv"], "--target is missing", 2),
        (["fit", "houses.csv", "--target", "pric"], "did you mean 'price'?", 1),
        (["fit", "houses.csv", "--target", "price", "--drop", "aera"], "did you mean 'area'?", 1),
        (["fit", "houses.csv", "--target", "price", "--always", "aera"], "did you mean 'area'?", 1),
        (["fit", "houses.csv", "--target", "price", "--never", "aera"], "did you mean 'area'?", 1),
        (["fit", "houses.csv", "--target", "price", "--bounds", "aera=0:1"], "did you mean 'area'?", 1),
        (["fit", "houses.csv", "--target", "price", "--bounds", "area"], "COLUMN=LOW:HIGH", 2),
        (["fit", "houses.csv", "--target", "price", "--bounds", "area=1:2"], "must include 0", 1),
        (["fit", "houses.csv", "--target", "price", "--drop", "price"], "both --target and --drop", 2),
        (
            ["fit", "houses.csv", "--target", "price", "--sample-weight", "price"],
            "both --target and --sample-weight",
            2,
        ),
        (["fit", "houses.csv", "--target", "price", "--sample-weight", "city"], "does not hold numbers", 1),
        (["fit", "houses.csv", "--target", "price", "--always", "age", "--never", "age"], "--always and --never", 2),
        (["fit", "houses.csv", "--target", "price", "--k", "0"], "a size such as 10", 2),
        (["fit", "houses.csv", "--target", "price", "--k", "5-2"], "a size such as 10", 2),
        (["fit", "houses.csv", "--target", "price", "--budget", "3"], "--budget needs --costs", 2),
        (["fit", "houses.csv", "--target", "price", "--costs", "none.csv"], "none.csv cannot be read", 1),
        (["fit", "houses.csv", "--target", "price", "--criterion", "bic", "--cv", "3"], "remove --cv", 2),
        (["fit", "houses.csv", "--target", "price", "--n-jobs", "0"], "--n-jobs", 2),
        (["fit", "houses.csv", "--target", "price", "--scoring", "nonsense"], "not a scorer", 1),
        (["fit", "houses.csv", "--target", "price", "--max-per-group", "1"], "needs --feature-groups", 2),
        (["fit", "houses.csv", "--target", "price", "--balanced"], "--balanced is for classes", 1),
        (["fit", "houses.csv", "--target", "city", "--task", "regression"], "holds text", 1),
        (["fit", "houses.csv", "--target", "price", "--task", "classification"], "fractions", 1),
        (["fit", "houses.csv", "--target", "price", "--out", "no/where/m.json"], "there is no folder", 1),
        (["fit", "houses.csv", "--target", "price", "--out", "."], "is a folder", 1),
        (["fit", "houses.csv", "--target", "price", "--time-limit", "0"], "above 0", 2),
        (["fit", "houses.csv", "--target", "price", "--delimiter", "ab"], "single character", 2),
        (["fit", "houses.csv", "--target", "price", "--delimiter", ";"], "only one column", 1),
        (["predict", "none.json", "houses.csv"], "there is no file none.json", 1),
        (["path", "."], "is a folder", 1),
        (["explain", "houses.csv"], "not valid JSON", 1),
        ([], "required", 2),
        (["nonsense"], "invalid choice", 2),
    ],
)
def test_wrong_arguments(argv, message, code, table, capsys):
    found, out, err = run(capsys, *argv)
    assert found == code, err
    assert out == ""
    assert message in err
    assert sum("error: " in line for line in err.splitlines()) == 1
    assert sorted(file.name for file in table.iterdir()) == ["houses.csv"]


def test_a_path_of_select_is_no_model_of_columns(table, capsys):
    pauca.select(lambda w: (w[0] - 1) ** 2, 1, gradient=lambda w: 2 * (w - 1), n_coords=1).save("path.json")
    for argv in (["path", "path.json"], ["explain", "path.json"], ["predict", "path.json", "houses.csv"]):
        assert "path.json holds a path of pauca.select" in error_of(capsys, *argv)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=99), "update pauca"),
        (lambda d: d.update(size=2), "checksum"),
        (lambda d: d.pop("models"), "'models' is missing"),
        (lambda d: (d.pop("checksum"), d.update(first_index=7)), "first_index"),
        (lambda d: (d.pop("checksum"), d["table"]["columns"][0].update(levels=["a", "a"])), "table.columns[0].levels"),
        (lambda d: (d.pop("checksum"), d["table"]["columns"][0].update(fill="b")), "table.columns[0].fill"),
        (lambda d: (d.pop("checksum"), d["table"]["columns"].pop()), "do not agree with the features"),
        (lambda d: (d.pop("checksum"), d.update(table=[])), "table"),
    ],
)
def test_wrong_models(change, message, model, capsys):
    document = json.loads(Path(model).read_text())
    change(document)
    Path("bad.json").write_text(json.dumps(document))
    for command in (
        ["predict", "bad.json", "houses.csv", "--out", "p.csv"],
        ["path", "bad.json"],
        ["explain", "bad.json"],
    ):
        line = error_of(capsys, *command)
        assert "bad.json" in line
        assert message in line
    assert not Path("p.csv").exists()


def test_wrong_rows(model, capsys):
    houses().rename({"city": "town"}).write_csv("t.csv")
    assert "columns that the model uses: 'city'" in error_of(capsys, "predict", model, "t.csv")
    houses().with_columns(area=pl.lit("large")).write_csv("t.csv")
    assert "column 'area' must hold numbers; it holds text such as 'large'" in error_of(
        capsys, "predict", model, "t.csv"
    )
    Path("t.csv").write_text("area age\n1 2\n")
    assert "only one column" in error_of(capsys, "predict", model, "t.csv")
    Path("t.svm").write_text("1 1:2\n")
    assert "needs columns with names" in error_of(capsys, "predict", model, "t.svm")
    error_of(capsys, "predict", model, "houses.csv", "--out", "no/p.csv")
    houses().with_columns(prediction=1).write_csv("t.csv")
    assert "is also the name of a result" in error_of(capsys, "predict", model, "t.csv", "--keep", "prediction")


def test_wrong_costs(table, capsys):
    start = ["fit", "houses.csv", "--target", "price", "--costs", "c"]
    for content, message in [
        ("area,1\nage,much\n", "the cost of 'age' is not a number"),
        ("aera,1\n", "did you mean 'area'?"),
        ("area,1,2\n", "line 1 has 3 fields"),
        ("{", "not valid JSON"),
    ]:
        Path("c").write_text(content)
        assert message in error_of(capsys, *start)


def test_unexpected_errors(table, capsys, monkeypatch):
    def fall(*_):
        raise RuntimeError("the sky\nfell")

    monkeypatch.setattr("pauca.cli.fit.make_problem", fall)
    assert "unexpected RuntimeError: the sky fell; run the command again with --debug" in error_of(
        capsys, "fit", "houses.csv", "--target", "price"
    )
    capsys.readouterr()
    assert main(["fit", "houses.csv", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_without_polars(table, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    assert "pip install polars" in error_of(capsys, "fit", "houses.csv", "--target", "price")


def test_a_fit_that_fails_to_write_leaves_nothing(table, capsys, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    Path("m.json").write_text("old")
    monkeypatch.setattr("pauca.export.json_files.os.replace", fail)
    code, out, err = run(capsys, "fit", "houses.csv", "--target", "price", "--k", "1", "--out", "m.json")
    assert code == 1
    assert out.startswith("1 column of 5")
    assert err.endswith("pauca: error: m.json cannot be written: No space left on device\n")
    assert Path("m.json").read_text() == "old"
    assert sorted(file.name for file in table.iterdir()) == ["houses.csv", "m.json"]


@pytest.mark.parametrize(
    ("argv", "code"), [(["fit", "houses.csv", "--target", "price", "--k", "1"], 0), (["path", "x"], 1), (["fit"], 2)]
)
def test_exit_codes_of_the_process(argv, code, table):
    done = subprocess.run(
        [sys.executable, "-m", "pauca", *argv], capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_a_closed_pipe_is_no_error(model):
    code = "import sys; from pauca.cli import main; sys.exit(main(['predict', 'model.json', 'houses.csv']))"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    assert "Traceback" not in error
    assert "Exception" not in error


def test_keys_are_copied_unchanged(model, capsys):
    houses()[:3].with_columns(key=pl.Series(["007", "1e3", "08"])).write_csv("t.csv")
    out = run(capsys, "predict", model, "t.csv", "--keep", "key")[1]
    assert [line.split(",")[0] for line in out.splitlines()] == ["key", "007", "1e3", "08"]


def test_libsvm_files_that_count_otherwise(table, capsys):
    rows = "".join(f"{i % 3}.5 1:{i % 5} 2:{i % 7}\n" for i in range(30))
    Path("one.svm").write_text(rows)
    Path("zero.svm").write_text("1.5 0:1 1:2\n")
    fitted(capsys, "one.svm", "--k", "1", "--out", "m.json")
    assert "counts its columns from 0" in error_of(capsys, "predict", "m.json", "zero.svm")
    Path("bad.svm").write_text("1.5 a:b\n")
    assert "LIBSVM" in error_of(capsys, "fit", "bad.svm", "--k", "1")


def test_tabs_are_tabs_in_tsv(table, capsys):
    rows = "".join(f"{i % 7}\t{i % 5},{i % 3},x\t{i % 7 + 0.5 * (i % 2)}\n" for i in range(60))
    Path("t.tsv").write_text(f"a\tb,c,d,e\ty\n{rows}")
    assert (
        fitted(capsys, "t.tsv", "--target", "y", "--k", "1", "--task", "regression", "--drop", "b,c,d,e")["columns"]
        == 1
    )


# Streams, tables without a header, reports of saved models, mistakes


def test_standard_input_and_pipes(table, capsys, monkeypatch):
    content = Path("houses.csv").read_bytes()
    expected = fitted(capsys, "houses.csv", "--target", "price", "--k", "2", "--out", "m.json")
    rows = run(capsys, "predict", "m.json", "houses.csv")[1]
    for sent in (content, gzip.compress(content)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(sent)))
        found = fitted(capsys, "-", "--target", "price", "--k", "2")
        assert (found["features"], found["objective"]) == (expected["features"], expected["objective"])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(sent)))
        assert run(capsys, "predict", "m.json", "-")[1] == rows
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_bytes, args=(content,))
    writer.start()
    assert run(capsys, "predict", "m.json", "pipe")[1] == rows
    writer.join()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert "standard input has no column 'prize'; did you mean 'price'?" in error_of(
        capsys, "fit", "-", "--target", "prize"
    )


def test_tables_without_a_header(table, capsys):
    text = Path("houses.csv").read_text()
    Path("bare.csv").write_text(text.partition("\n")[2])
    named = fitted(capsys, "houses.csv", "--target", "price", "--k", "2")
    found = fitted(capsys, "bare.csv", "--no-header", "--target", "column6", "--k", "2", "--out", "m.json")
    assert found["objective"] == named["objective"]
    assert found["rows"] == named["rows"]
    assert found["feature_groups"] == ["column1", "column4"]
    assert len(predictions(run(capsys, "predict", "m.json", "bare.csv", "--no-header")[1])) == found["rows"]


def test_report_of_a_saved_model(model, capsys):
    assert run(capsys, "report", model, "--out", "page.html", "--title", "Houses of 2024")[0] == 0
    assert "Houses of 2024" in Path("page.html").read_text()
    assert "there is no folder" in error_of(capsys, "report", model, "--out", "no/page.html")


def test_groups_and_costs_of_some_columns(table, capsys):
    Path("groups.csv").write_text("area,house\ngarden,house\n")
    Path("costs.csv").write_text("city,3\n")
    found = fitted(
        capsys, "houses.csv", "--target", "price", "--feature-groups", "groups.csv", "--costs", "costs.csv", "--k", "2"
    )
    assert found["feature_groups"] == ["city", "house"]
    assert found["cost"] == 5
    assert fitted(capsys, "houses.csv", "--target", "price", "--costs", "costs.csv", "--k", "5")["cost"] == 7


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["fit", "t.csv", "--tagret", "y"], "did you mean --target?"),
        (["fit", "t.csv", "--k", "many"], "argument --k: 'many' is invalid"),
        (["fitt"], "invalid choice"),
        ([], "required"),
    ],
)
def test_wrong_options_are_one_line(argv, message, table, capsys):
    code, out, err = run(capsys, *argv)
    assert (code, out) == (2, "")
    assert err.startswith("pauca: error: ")
    assert err.count("\n") == 1
    assert message in err


def test_a_missing_file_is_told_before_anything_is_imported(tmp_path):
    """Reading the command line imports neither scikit-learn nor polars, which take a second."""
    program = (
        "import sys; from pauca.cli import main; code = main(['fit', 'house.csv', '--target', 'y']); "
        "print(code, [name for name in ('numpy', 'sklearn', 'polars') if name in sys.modules])"
    )
    (tmp_path / "houses.csv").write_text("a\n1\n")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "1 []\n"
    assert done.stderr == "pauca: error: there is no file house.csv; did you mean 'houses.csv'?\n"
