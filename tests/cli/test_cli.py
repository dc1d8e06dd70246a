"""The command line: options and imports, table formats, pipes, and mistakes."""

import gzip
import io
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from shell import ENVIRONMENT, error_of, fitted, houses, predictions, run
from sklearn.datasets import dump_svmlight_file

import pauca
from pauca.cli import console, options
from pauca.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from pauca.methods import METHODS, STEPWISE
from pauca.results.choice import DEFAULT_RULE, FOLD_RULES
from pauca.statistics.criteria import CRITERIA

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


def test_version(capsys):
    assert run(capsys, "--version")[1] == f"pauca {pauca.__version__}\n"


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


def test_decimal_commas_without_a_column_of_text(table, capsys):
    numbers = houses().select("area", "age", "noise", "price").with_columns(weight=pl.col("area") + 0.5)
    numbers.write_csv("points.csv")
    commas = numbers.write_csv(separator=";").replace(".", ",")
    Path("commas.csv").write_text(commas)
    options = ("--target", "price", "--k", "2", "--task", "regression", "--sample-weight", "weight")
    found, expected = (fitted(capsys, name, *options) for name in ("commas.csv", "points.csv"))
    assert found["coefficients"] == pytest.approx(expected["coefficients"])


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


def test_row_numbers_are_left_out(table, capsys):
    houses().with_row_index("id").write_csv("t.csv")
    assert "'id' is named as an identifier" in run(capsys, "fit", "t.csv", "--target", "price", "--k", "1")[2]


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
    assert "column 6 is called 'column6'" in error_of(capsys, "fit", "bare.csv", "--no-header", "--target", "6")
    assert found["objective"] == named["objective"]
    assert found["rows"] == named["rows"]
    assert found["feature_groups"] == ["column1", "column4"]
    assert len(predictions(run(capsys, "predict", "m.json", "bare.csv", "--no-header")[1])) == found["rows"]


def test_report_of_a_saved_model(model, capsys):
    assert run(capsys, "report", model, "--out", "page.html", "--title", "Houses of 2024")[0] == 0
    assert "Houses of 2024" in Path("page.html").read_text()
    assert "there is no folder" in error_of(capsys, "report", model, "--out", "no/page.html")
    assert "ends in .pdf: let the name end in .html" in error_of(capsys, "report", model, "--out", "page.pdf", code=2)


def test_an_empty_standard_input_is_called_so(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert error_of(capsys, "fit", "-", "--target", "price") == "pauca: error: standard input is empty"


def test_a_page_that_is_there_is_not_replaced_unasked(model, capsys):
    Path("model.html").write_text("figures of the fit")
    assert "model.html is there already" in error_of(capsys, "report", model)
    assert Path("model.html").read_text() == "figures of the fit"
    assert run(capsys, "report", model, "--out", "model.html")[0] == 0
    assert "figures of the fit" not in Path("model.html").read_text()


def test_a_model_and_a_table_that_are_swapped(model, capsys):
    said = error_of(capsys, "predict", "houses.csv", model, code=2)
    assert "the model comes first, pauca predict model.json houses.csv" in said


def test_rows_that_were_dropped_are_told_by_the_report_of_a_saved_model(table, capsys):
    lines = Path("houses.csv").read_text().splitlines()
    Path("gaps.csv").write_text("\n".join([*lines, "," * lines[0].count(",")]))
    fitted(capsys, "gaps.csv", "--target", "price", "--k", "1", "--missing", "drop-rows", "--out", "m.json")
    assert run(capsys, "report", "m.json")[0] == 0
    assert "1 other row was left out, since values were missing there" in Path("m.html").read_text()


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
        (["fit", "t.csv", "--target", "y", "-o", "m.json"], "did you mean --out?"),
        (["explain", "m.json", "-o", "m.sql"], "pauca explain --help lists the options"),
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


def test_a_missing_column_is_told_before_estimators_are_imported(tmp_path):
    program = (
        "import sys; from pauca.cli import main; code = main(['fit', 'houses.csv', '--target', 'Price']); "
        "print(code, [name for name in ('sklearn', 'pandas', 'pauca.estimators') if name in sys.modules])"
    )
    (tmp_path / "houses.csv").write_text("a,price\n1,2\n")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "1 []\n"
    assert done.stderr == "pauca: error: --target: houses.csv has no column 'Price'; did you mean 'price'?\n"


def test_a_slow_start_is_not_silent(monkeypatch, capsys):
    """A word at once, and again for as long as it takes."""
    monkeypatch.setattr(console, "SLOW_START", 0.0)
    monkeypatch.setattr(console, "LONGEST_WAIT", 0.01)
    said = ""
    with console.Console().starting():
        while said.count("\n") < 3:
            said += capsys.readouterr().err
    first, second, *_ = said.splitlines()
    assert first == "pauca: starting"
    assert second.endswith(" s so far")
    capsys.readouterr()
    with console.Console(quiet=True).starting():
        assert not [one for one in threading.enumerate() if one.name.endswith("(say)")]
