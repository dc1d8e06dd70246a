"""pauca predict, path and explain."""

import io
import json
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from shell import error_of, fitted, houses, run

import pauca
from pauca.cli import main
from pauca.results.instructions import in_shell


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
    assert out.startswith(pauca.load(model).summary(in_shell(model)))
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
