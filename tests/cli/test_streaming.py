"""Parquet files larger than --memory are fitted in chunks, with the same words and files."""

import json

import numpy as np
import polars as pl
import pytest

from pauca.cli.command import main
from problems import ar_problem


@pytest.fixture
def table(tmp_path):
    X, y = ar_problem(9000, 20, 4, snr=2.0)
    frame = pl.DataFrame(X, schema=[f" c{j}" for j in range(20)]).with_columns(y=pl.Series(y), w=pl.Series(y * 0 + 2))
    frame.write_parquet(tmp_path / "big.parquet")
    return tmp_path / "big.parquet"


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_a_large_file_is_read_in_chunks_with_the_same_result(table, capsys):
    options = ["fit", table, "--target", "y", "--sample-weight", "w", "--k", "4", "--json"]
    plain, chunks = (json.loads(run(capsys, *options, *more)[1]) for more in ([], ["--memory", "1M"]))
    assert any("read in chunks" in note for note in chunks["notes"])
    assert not any("read in chunks" in note for note in plain["notes"])
    assert chunks["features"] == plain["features"]
    assert list(chunks["coefficients"]) == list(plain["coefficients"])
    np.testing.assert_allclose(list(chunks["coefficients"].values()), list(plain["coefficients"].values()), rtol=1e-9)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--missing", "median"], "--missing needs the whole table"),
        (["--memory", "4X"], "expected a size of at least 1M"),
    ],
)
def test_what_needs_the_whole_table_is_refused(table, capsys, more, words):
    code, _, err = run(capsys, "fit", table, "--target", "y", "--k", "2", "--memory", "1M", *more)
    assert code != 0
    assert words in err


def test_text_and_missing_targets_are_named(table, tmp_path, capsys):
    frame = pl.read_parquet(table)
    frame.with_columns(kind=pl.lit("a")).write_parquet(tmp_path / "text.parquet")
    code, _, err = run(capsys, "fit", tmp_path / "text.parquet", "--target", "y", "--memory", "1M")
    assert code != 0
    assert "columns of text cannot be encoded: 'kind'" in err
    frame.with_columns(y=pl.when(pl.col("y") > 0).then(pl.col("y"))).write_parquet(tmp_path / "gaps.parquet")
    code, _, err = run(capsys, "fit", tmp_path / "gaps.parquet", "--target", "y", "--memory", "1M")
    assert code != 0
    assert "the column 'y' has" in err
