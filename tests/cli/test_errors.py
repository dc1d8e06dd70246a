"""Every error of the command line is one line."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from shell import ENVIRONMENT, error_of, fitted, houses, run

import pauca
from pauca.cli import main

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
    yield "not a table", b"\x00\xff\x01" * 50, "neither UTF-8 text nor a Parquet file"
    yield "utf-16", text.encode("utf-16"), "iconv -f UTF-16 -t UTF-8"
    yield "quote", 'area,b,price\n1,2,3\n4,"5,6\n6,7,8\n', 'a quotation mark is missing after "5,6'
    yield "no header", text.partition("\n")[2], "if it is a row, give --no-header"
    yield "no header, one value twice", "1,1,2,a\n3,4,5,b\n", "if it is a row, give --no-header"


def test_only_files_of_like_names_are_proposed(table, capsys):
    Path("rossi.csv").write_text("a,b\n1,2\n")
    message = error_of(capsys, "fit", "missing.csv", "--target", "price")
    assert "there is no file missing.csv" in message
    assert "did you mean" not in message
    Path("rossi.json").write_text("{}")
    assert "did you mean 'rossi.csv'?" in error_of(capsys, "fit", "rosi.csv", "--target", "price")


def test_what_is_read_is_not_replaced(table, capsys):
    assert main(["fit", "houses.csv", "--target", "price", "--k", "2", "--out", "model.json"]) == 0
    read = Path("houses.csv").read_bytes()
    capsys.readouterr()
    for command in (["fit", "houses.csv", "--target", "price"], ["predict", "model.json", "houses.csv"]):
        assert "would replace the file that is read" in error_of(capsys, *command, "--out", "./houses.csv")
    assert "--out model.json would replace" in error_of(
        capsys, "predict", "model.json", "houses.csv", "--out", "model.json"
    )
    assert Path("houses.csv").read_bytes() == read


def test_a_summary_names_the_page_that_was_written(table, capsys):
    assert main(["fit", "houses.csv", "--target", "price", "--k", "2", "--report", "page.html"]) == 0
    assert "(for others see page.html)" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "content", "message"), list(wrong_tables()), ids=lambda value: str(value)[:15])
def test_wrong_tables(name, content, message, table, capsys):
    Path("t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in error_of(capsys, "fit", "t.csv", "--target", "price", "--out", "m.json")
    assert not Path("m.json").exists()


def test_numbers_that_are_hardly_classes_are_doubted_before_the_fit(table, capsys, monkeypatch):
    said = []

    def fit(model, X, y):
        said.append(capsys.readouterr().err)
        raise ValueError("enough")

    monkeypatch.setattr(pauca.SparseClassifier, "fit", fit)
    error_of(capsys, "fit", "houses.csv", "--target", "age", "--task", "classification")
    assert "different numbers, and each is taken for a class. If they are amounts, use --task regression." in said[0]


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
        (["fit", "houses.csv", "--target", "price", "--report", "x.pdf"], "--report: the page is HTML", 2),
        (["fit", "houses.csv", "--target", "price", "--costs", "none.csv"], "none.csv cannot be read", 1),
        (["fit", "houses.csv", "--target", "price", "--criterion", "bic", "--cv", "3"], "remove --cv", 2),
        (["fit", "houses.csv", "--target", "price", "--n-jobs", "0"], "--n-jobs", 2),
        (["fit", "houses.csv", "--target", "price", "--scoring", "roc_acu"], "did you mean 'roc_auc'?", 2),
        (["fit", "houses.csv", "--target", "price", "--exact"], "did you mean --method exact?", 2),
        (["fit", "houses.csv", "--target", "price", "--max-per-group", "1"], "needs --feature-groups", 2),
        (["fit", "houses.csv", "--target", "price", "--stability", "5"], "--stability is for the report", 2),
        (["fit", "houses.csv", "--target", "age", "--loss", "log_loss"], "add --task classification if they are", 1),
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
        (["explain", "houses.csv"], "is a table, and pauca explain takes a model file", 1),
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
        ("area,1\nage,much\n", "c, line 2: the cost of 'age' is not a number: 'much'"),
        ("area,cheap\n", "c, line 1: the cost of 'area' is not a number: 'cheap'"),
        ("aera,cheap\nage,1\n", "c, line 1: 'aera' is not a column of the table; did you mean 'area'?"),
        ("column,cost\n\nage,1\nage,2\n", "c, line 4: 'age' is there for the second time, with '1' and '2'"),
        ("", "c names no columns"),
        ("column,cost\n", "c names no columns"),
        ("{}", "c names no columns"),
        ('{"area": "cheap"}', "c: the cost of 'area' is not a number: 'cheap'"),
        ('{"area": true}', "c: the cost of 'area' is not a number: True"),
        ('{"area": {"age": 1}}', "c: the cost of 'area' is not a number"),
        ('{"area": 1, "area": 2}', "c: 'area' is there for the second time, with 1 and 2"),
        ("aera,1\n", "did you mean 'area'?"),
        ("area,1,2\n", "line 1 has 3 fields"),
        ("{", "not valid JSON"),
    ]:
        Path("c").write_text(content)
        assert message in error_of(capsys, *start)


def test_wrong_groups(table, capsys):
    for content, message in [
        ("area,g\nage,h\narea,h\n", "c, line 3: 'area' is there for the second time"),
        ("area,\n", "c, line 1: the group of 'area' is not a name: ''"),
        ("aera,g\nage,g\n", "did you mean 'area'?"),
        ('{"area": ["g"]}', "c: the group of 'area' is not a name"),
        ("", "c names no columns"),
    ]:
        Path("c").write_text(content)
        assert message in error_of(capsys, "fit", "houses.csv", "--target", "price", "--feature-groups", "c")


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


@pytest.mark.parametrize(("argv", "code"), [(["--version"], 0), (["path", "x"], 1), (["fit"], 2)])
def test_exit_codes_of_the_process(argv, code, table):
    done = subprocess.run(
        [sys.executable, "-m", "pauca", *argv], capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_a_closed_pipe_is_no_error(model):
    process = subprocess.Popen(
        [sys.executable, "-m", "pauca", "predict", "model.json", "houses.csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
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
