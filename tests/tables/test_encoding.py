"""Reading raw tables and encoding them: levels, medians, every problem at once."""

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from pauca.tables import TableEncoding, TableError, needs_encoding, read_table
from pauca.tables.encoding import median


def homes():
    return pd.DataFrame(
        {
            "city": ["Paris", "Lyon", "Paris", None, "Nice", "Paris"],
            "rooms": [2.0, np.nan, 3.0, 4.0, 1.0, 7.0],
            "garden": [True, False, False, True, True, False],
            "energy": pd.Categorical(["b", "a", "b", "a", "a", "c"]),
        }
    )


FRAMES = {
    "pandas": homes(),
    "polars": pl.from_pandas(homes()),
    "arrow": homes().convert_dtypes(dtype_backend="pyarrow").assign(energy=homes()["energy"]),
    "nullable": homes().convert_dtypes(),
    "objects": homes().astype(object),
    "polars categories": pl.from_pandas(homes()).with_columns(pl.col("city").cast(pl.Categorical)),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("missing", ["median", "category"])
def test_every_kind_of_frame_becomes_the_same_numbers(kind, missing):
    frame = FRAMES[kind]
    assert needs_encoding(frame, "from_dtype", "error")
    table = read_table(frame, "from_dtype", missing, "the test")
    encoding = TableEncoding.learn(table, missing)
    marks = missing == "category"
    assert encoding.names == [
        *("city=Lyon", "city=Nice"),
        *(["city is missing"] if marks else []),
        "rooms",
        *(["rooms is missing"] if marks else []),
        *("garden", "energy=b", "energy=c"),
    ]
    found = dict(zip(encoding.names, encoding.encode(table).T.tolist(), strict=True))
    assert found["city=Lyon"] == [0, 1, 0, 0, 0, 0]
    assert found["rooms"] == [2, 3, 3, 4, 1, 7]
    assert found["garden"] == [1, 0, 0, 1, 1, 0]
    assert found["energy=b"] == [1, 0, 1, 0, 0, 0]
    if marks:
        assert found["city is missing"] == [0, 0, 0, 1, 0, 0]
        assert found["rooms is missing"] == [0, 1, 0, 0, 0, 0]
    for other in FRAMES.values():
        rows, unknown = encoding.encode_rows(other, np.arange(len(encoding.terms)))
        np.testing.assert_array_equal(rows, encoding.encode(table))
        assert not unknown


def test_all_problems_are_told_at_once():
    n = 40
    frame = pd.DataFrame(
        {
            "when": pd.date_range("2024-01-01", periods=n),
            "day": ["2024-02-03"] * n,
            "born": [datetime.date(1990, 1, 1)] * n,
            "id": [f"p{i}" for i in range(n)],
            "dose": [str(i / 7) for i in range(n - 1)] + ["?"],
            "list": [[1]] * n,
            "area": [np.inf] + [1.0] * (n - 1),
            "age": [np.nan] * 3 + [1.0] * (n - 3),
            "fine": np.arange(n),
        }
    )
    with pytest.raises(TableError) as caught:
        read_table(frame, "from_dtype", "error", "SparseRegressor")
    message = str(caught.value)
    assert "dates or times in 'when', 'day', 'born'" in message
    assert "'id' (40 values)" in message
    assert "numbers mixed with other text in 'dose' ('?')" in message
    assert "neither numbers nor text in 'list'" in message
    assert "infinite values in 'area'" in message
    assert "'age' (3 rows): set missing='median'" in message
    assert "'fine'" not in message
    assert caught.value.columns == ["when", "day", "born", "id", "dose", "list", "area"]
    read_table(frame.drop(columns=caught.value.columns), "from_dtype", "median", "SparseRegressor")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_placeholders_among_numbers_are_told_in_one_line_with_code_that_works(frame):
    n = 60
    columns = {f"O{j}": [*(str(i % (7 + j)) for i in range(n - 2)), ".", "?"] for j in range(6)}
    columns |= {
        "many": [*(str(i / 7) for i in range(n - 1)), "never"],
        "codes": [*(str(i % 5) for i in range(n - 1)), "."],
        "grades": [*"abcdefghi" * 6, *"abcde", "?"],
        "town": ["a", "b", " "] * 20,
    }
    X = frame(columns)
    with pytest.raises(TableError) as caught:
        read_table(X, "from_dtype", "median", "a table")
    message = str(caught.value)
    assert message.count("numbers mixed with other text") == 1
    assert "in 'O0' ('.'), 'O1' ('.'), 'O2' ('.'), 'O3' ('.'), 'O4' ('.') and 2 more: make" in message
    assert "blank text in 'town' (20 rows): make it missing" in message
    assert caught.value.columns == [*(f"O{j}" for j in range(6)), "many", "town"]
    code = re.search("To make text missing values: (.*), with missing=", message)[1]
    scope = {"X": frame(columns), "np": np, "pl": pl}
    exec(code, scope)
    found = {one.name: one for one in read_table(scope["X"], "from_dtype", "median", "a table").columns}
    assert np.flatnonzero(found["O5"].missing).tolist() == [n - 2, n - 1]
    assert found["many"].numbers is not None
    assert found["codes"].levels == [".", "0", "1", "2", "3", "4"]
    assert found["town"].levels == ["a", "b"]
    # What is said to be a category is one, whatever its levels.
    read_table(X, caught.value.columns, "error", "a table")
    # Of many columns no list is told.
    wide = frame({f"O{j}": columns["O0"] for j in range(24)})
    with pytest.raises(TableError, match="19 more") as caught:
        read_table(wide, "from_dtype", "median", "a table")
    code = re.search("To make text missing values: (.*), with missing=", str(caught.value))[1]
    scope = {"X": wide, "np": np, "pl": pl}
    exec(code, scope)
    assert len(code) < 80
    assert all(one.numbers is not None for one in read_table(scope["X"], "from_dtype", "median", "a table").columns)


def test_text_that_is_numbers_is_numbers():
    frame = pl.DataFrame({"a": ["1,5", "2", None], "b": [" 3", "4.5", "1e2"], "c": ["1_0", "2", "3"], "d": [None] * 3})
    table = read_table(frame, "from_dtype", "median", "the test")
    assert [column.numbers is None for column in table.columns] == [False, False, True, False]
    np.testing.assert_array_equal(table.columns[0].numbers, [1.5, 2, np.nan])
    declared = read_table(frame, ["b"], "median", "the test")
    assert declared.columns[1].levels == [" 3", "1e2", "4.5"]


def test_columns_of_codes_are_categories_where_they_are_said_to_be():
    X = np.array([[1.0, 10.0], [2.0, 20.0], [2.0, np.nan]])
    for listed in ([0], [True, False], np.array([0])):
        encoding = TableEncoding.learn(read_table(X, listed, "median", "the test"), "median")
        assert encoding.names == ["x0=1", "x1"]
        rows, unknown = encoding.encode_rows(np.array([[1, 5], [3, 6]]), [0, 1])
        assert rows.tolist() == [[1, 5], [0, 6]]
        assert [(one.column, one.levels, one.n_rows, one.baseline) for one in unknown] == [("x0", ["3"], 1, 2)]
    with pytest.raises(ValueError, match="X has columns 0 to 1"):
        read_table(X, [2], "error", "the test")
    with pytest.raises(ValueError, match="Did you mean 'zip'"):
        read_table(pd.DataFrame({"zip": [1, 2]}), ["zipp"], "error", "the test")


def test_names_that_clash_are_refused():
    frame = pd.DataFrame({"a": ["x", "y", "x"], "a=y": [1, 2, 3]})
    with pytest.raises(ValueError, match="'a=y'"):
        TableEncoding.learn(read_table(frame, "from_dtype", "error", "the test"), "error")


def test_weights_count_as_repetitions():
    rng = np.random.default_rng(0)
    for _ in range(50):
        values, counts = rng.normal(size=7).round(1), rng.integers(0, 4, 7)
        counts[0] += 1
        repeated = np.repeat(values, counts)
        assert median(values, counts / counts.sum()) == pytest.approx(np.median(repeated), abs=1e-12)
    frame = pd.DataFrame({"a": ["x", "y", "y", "z"]})
    table = read_table(frame, "from_dtype", "error", "the test")
    encoding = TableEncoding.learn(table, "error", np.array([0.5, 0.2, 0.3, 0.0]))
    assert encoding.columns[0].levels == ("x", "y")
