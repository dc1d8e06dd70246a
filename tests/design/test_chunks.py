"""Tables in chunks: every source gives the same answers, the passes are counted, and bad chunks are named."""

import shutil

import numpy as np
import pandas as pd
import polars as pl
import pytest
import zarr
from scipy import sparse
from sklearn.model_selection import cross_val_score

import pauca
from pauca import L1Regressor, SparseCox, SparseOrdinalClassifier, SparseRegressor
from pauca.design.chunks import ChunkError, scan
from pauca.design.chunks.moments import guess_columns
from problems import METHODS, ar_problem, in_chunks


def as_npy(X, folder):
    np.save(folder / "X.npy", X)
    return scan(folder / "X.npy")


def as_many_npy(X, folder):
    for number, part in enumerate(np.array_split(X, 3)):
        np.save(folder / f"part{number}.npy", part)
    return scan(str(folder / "part*.npy"))


def as_zarr(X, folder):
    stored = zarr.create_array(folder / "X.zarr", shape=X.shape, chunks=(31, 7), dtype=X.dtype)
    stored[:] = X
    return scan(folder / "X.zarr")


def as_parquet(X, folder):
    for number, part in enumerate(np.array_split(X, 3)):
        pl.DataFrame(part, schema=[f"c{j}" for j in range(X.shape[1])]).write_parquet(folder / f"{number}.parquet")
    return scan(folder)


SOURCES = {
    "npy": as_npy,
    "several npy": as_many_npy,
    "zarr": as_zarr,
    "parquet": as_parquet,
    "lazy frame": lambda X, folder: scan(pl.DataFrame(X, schema=[f"c{j}" for j in range(X.shape[1])]).lazy()),
    "function": lambda X, folder: scan(lambda: iter(np.array_split(X, 5))),
    "frames of a function": lambda X, folder: scan(lambda: (pd.DataFrame(part) for part in np.array_split(X, 5))),
    "Fortran map": lambda X, folder: scan(np.asfortranarray(X)),
}


def limited(chunks, rows):
    """The same table with the memory for chunks of so many rows."""
    chunks.memory = in_chunks(np.empty((1, chunks.n_features)), rows).memory
    return chunks


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_model_in_one_pass(source, dtype, tmp_path):
    X, y = ar_problem(300, 20, 5)
    X = X.astype(dtype)
    chunks = limited(SOURCES[source](X, tmp_path), rows=47)
    assert (chunks.shape, chunks.dtype) == (X.shape, dtype)
    before = chunks.passes
    model, plain = SparseRegressor(k=6).fit(chunks, y), SparseRegressor(k=6).fit(X, y)
    assert chunks.passes - before == 1
    assert model.path_.moves == plain.path_.moves
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.predict(chunks), plain.predict(X), rtol=1e-9)
    np.testing.assert_array_equal(model.transform(chunks), X[:, plain.support_])
    assert model.score(chunks, y) == pytest.approx(plain.score(X, y))
    for columns in ([3, 1], [3, 1, 3]):
        np.testing.assert_array_equal(chunks.columns(columns), X[:, columns].T)


@pytest.mark.parametrize("source", SOURCES)
def test_no_columns_of_a_table_have_all_its_rows(source, tmp_path):
    X, y = ar_problem(60, 5, 2)
    chunks = limited(SOURCES[source](X, tmp_path), rows=17)
    assert chunks.columns([]).shape == (0, 60)
    ball, plain = L1Regressor(radius=1.0).fit(chunks, y), L1Regressor(radius=1.0).fit(X, y)  # its path has no columns
    np.testing.assert_allclose(ball.coef_, plain.coef_, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_wide_tables_take_few_passes(method, monkeypatch):
    """Beyond the width of whole products, rows of guessed columns come together."""
    monkeypatch.setattr("pauca.design.chunks.moments.WHOLE_UP_TO", 10)
    X, y = ar_problem(1000, 200, 8, rho=0.6)
    chunks = in_chunks(X, rows=300)
    model, plain = SparseRegressor(k=10, method=method).fit(chunks, y), SparseRegressor(k=10, method=method).fit(X, y)
    assert model.path_.moves == plain.path_.moves
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-8)
    assert chunks.passes <= 4


def test_guessed_columns_hold_those_that_matter():
    X, y = ar_problem(500, 300, 6, rho=0.3, seed=1)
    best = SparseRegressor(k=6).fit(X, y).support_
    found = guess_columns(X[::2], y[::2], 40)
    assert len(found) == len(set(found)) == 40
    assert set(best) <= set(found)


def test_rows_that_lie_far_from_the_first_chunk_keep_their_digits():
    """The point of all sums is the mean of the first chunk."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 6)) + np.linspace(0, 1e3, 3000)[:, None]
    y = X @ [1.0, -1, 0, 2, 0, -2] + rng.standard_normal(3000)
    model, plain = SparseRegressor(k=4).fit(in_chunks(X, rows=10), y), SparseRegressor(k=4).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9)


def test_nearly_perfect_fits_read_residuals():
    X, _ = ar_problem(200, 12, 3)
    y = X[:, [1, 5, 8]] @ [1.0, 2.0, -1.0] + 1e-7 * np.random.default_rng(0).standard_normal(200)
    model = SparseRegressor(k=3).fit(in_chunks(X), y)
    assert model.support_.tolist() == [1, 5, 8]
    assert model.objective_ == pytest.approx(SparseRegressor(k=3).fit(X, y).objective_, rel=1e-6)


def test_parquet_targets_names_and_types(tmp_path):
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {
            "age": rng.integers(20, 80, 100),
            "member": rng.random(100) < 0.5,
            "height": rng.standard_normal(100).astype(np.float32),
            "*": rng.standard_normal(100),
            "kind": ["a", "b"] * 50,
        }
    )
    table.write_parquet(tmp_path / "t.parquet")
    X, y = scan(tmp_path / "t.parquet", target="*", columns=["age", "member", "height"])
    np.testing.assert_array_equal(y, table["*"].to_numpy())
    model = SparseRegressor(k=2).fit(X, y)
    assert model.feature_names_in_.tolist() == ["age", "member", "height"]
    assert pauca.SparseClassifier(k=1).fit(*scan(tmp_path / "t.parquet", "kind")).classes_.tolist() == ["a", "b"]
    other = table.select("height", "kind", "age", "member").select(pl.exclude("kind"))
    np.testing.assert_allclose(model.predict(other.lazy()), model.predict(table.select("age", "member", "height")))
    with pytest.raises(ChunkError, match="do not hold numbers: 'kind'"):
        scan(tmp_path / "t.parquet", target="*")
    with pytest.raises(ChunkError, match="no such columns: 'weight'"):
        scan(tmp_path / "t.parquet", target="weight")


def test_large_memory_maps_are_read_in_chunks(tmp_path, monkeypatch):
    X, y = ar_problem(200, 12, 3)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    monkeypatch.setattr("pauca.design.chunks.opening.MAPPED_ABOVE", 1000)
    model = SparseRegressor(k=3).fit(mapped, y)
    assert type(model._training_data.problem.X).__name__ == "ArrayChunks"
    np.testing.assert_allclose(model.coef_, SparseRegressor(k=3).fit(X, y).coef_, rtol=1e-10)


X0 = np.arange(40.0).reshape(10, 4) % 7
BAD = {
    "width": ([X0, X0[:, :3]], "Chunk 1 of X has 3 columns, and the chunks before it have 4"),
    "type": ([X0, X0.astype(np.float32)], "Chunk 1 of X holds float32, and the first one float64"),
    "no rows": ([X0, X0[:0]], "Chunk 1 of X has no rows"),
    "sparse": ([X0, sparse.csr_array(X0)], "Chunk 1 of X is sparse.*StreamRegressor"),
    "text": ([np.array([["a", "b"]])], "must hold numbers"),
    "no table": ([X0, X0[0]], "Chunk 1 of X is no table"),
    "nothing": ([], "returned no chunks"),
    "names": (
        [pd.DataFrame(X0, columns=list("abcd")), pd.DataFrame(X0, columns=list("abdc"))],
        "Chunk 1 of X has the columns 'a', 'b', 'd', 'c', and the first one 'a', 'b', 'c', 'd'",
    ),
    "targets": ([(X0, np.ones(9))], "Chunk 0 of X has 10 rows and 9 targets"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_chunks_are_named(kind):
    chunks, words = BAD[kind]
    with pytest.raises(ChunkError, match=words):
        scan(lambda: iter(chunks))


def test_a_value_that_is_not_finite_is_named_with_its_chunk_and_row():
    X, y = ar_problem(300, 5, 2)
    for value, words in ((np.nan, "NaN"), (np.inf, "infinity")):
        X[293, 3] = value
        with pytest.raises(ValueError, match=rf"contains {words}.*chunk 17, row 293 of the table, column .x3"):
            SparseRegressor(k=2).fit(in_chunks(X), y)
    X[293, 3] = 1e200
    with pytest.raises(ValueError, match="too large to be squared"):
        SparseRegressor(k=2).fit(in_chunks(X), y)
    X[293, 3] = np.nan
    model = SparseRegressor(k=5).fit(np.nan_to_num(X), y)
    with pytest.raises(ValueError, match="chunk 17, row 293"):
        model.predict(in_chunks(X))
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[300, 299\]"):
        SparseRegressor(k=2).fit(in_chunks(X), y[1:])


def test_files_that_change_or_vanish_between_passes(tmp_path):
    X, y = ar_problem(100, 6, 2)
    chunks = as_npy(X, tmp_path)
    model = SparseRegressor(k=2).fit(chunks, y)
    np.save(tmp_path / "X.npy", X[:50])
    with pytest.raises(ChunkError, match="changed while it was read"):
        model.predict(chunks)
    (tmp_path / "X.npy").unlink()
    with pytest.raises(ChunkError, match="cannot be read any more"):
        model.predict(chunks)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        scan(tmp_path / "X.npy")


def test_a_zarr_folder_that_changes_or_vanishes_is_not_read_as_zeros(tmp_path):
    X, y = ar_problem(100, 6, 2)
    chunks = as_zarr(X, tmp_path)
    next(iter((tmp_path / "X.zarr" / "c").iterdir())).joinpath("0").unlink()
    with pytest.raises(ChunkError, match=r"X\.zarr changed while it was read"):
        SparseRegressor(k=2).fit(chunks, y)
    shutil.rmtree(tmp_path / "X.zarr")
    with pytest.raises(ChunkError, match=r"X\.zarr cannot be read any more"):
        SparseRegressor(k=2).fit(chunks, y)


def test_files_that_are_no_tables_are_named(tmp_path):
    pl.DataFrame({"a": [1.0], "y": [1.0]}).write_parquet(tmp_path / "0.parquet")
    for table, words in (
        ({"a": [1.0], "b": [1.0], "y": [1.0]}, "1.parquet has other columns than .*0.parquet: it has 'b' besides"),
        ({"y": [1.0]}, "1.parquet has other columns than .*0.parquet: it lacks 'a'"),
        ({"a": [1], "y": [1.0]}, "1.parquet holds Int64 in the column 'a', and .*0.parquet Float64"),
    ):
        pl.DataFrame(table).write_parquet(tmp_path / "1.parquet")
        with pytest.raises(ChunkError, match=words):
            scan(tmp_path, target="y")
    for name, words in (("1.parquet", "cannot be read as a Parquet file"), ("1.npy", r"damaged, or no \.npy file")):
        (tmp_path / name).write_bytes(b"nothing")
        with pytest.raises(ChunkError, match=words):
            scan(tmp_path / name)


def test_predictions_look_only_at_the_columns_that_a_model_uses():
    rng = np.random.default_rng(0)
    table = pl.DataFrame(rng.standard_normal((50, 3)), schema=list("abc")).with_columns(kind=pl.lit("text"))
    model = SparseRegressor(k=1).fit(table.select("a", "b", "c"), table["b"].to_numpy())
    np.testing.assert_array_equal(model.predict(table.lazy()), model.predict(table))
    np.testing.assert_array_equal(model.transform(table.lazy())[:, 0], table["b"].to_numpy())
    constant = model.at(0)
    np.testing.assert_array_equal(constant.predict(table.lazy()), constant.predict(table.select("a", "b", "c")))
    with pytest.raises(ValueError, match="needs columns that X does not have: 'b'"):
        model.predict(table.select("a", "kind").lazy())


def test_what_needs_a_table_in_memory_is_refused_with_a_sentence():
    X, y = ar_problem(60, 5, 2)
    for settings in ({"missing": "median"}, {"categorical_features": [0]}):
        with pytest.raises(ValueError, match="X is a table in chunks, which is read as it is"):
            SparseRegressor(k=2, **settings).fit(in_chunks(X), y)
    with pytest.raises(TypeError, match="read in chunks and never held in memory as a whole"):
        cross_val_score(SparseRegressor(k=2), in_chunks(X), y, error_score="raise")
    raw = pd.DataFrame(X, columns=list("abcde")).assign(kind=["red", "blue"] * 30)
    model = SparseRegressor(k=2).fit(raw, y)
    for rows in (in_chunks(X), pl.from_pandas(raw).lazy()):
        with pytest.raises(ValueError, match="predict a table in chunks part by part"):
            model.predict(rows)
    times = np.array([(True, one) for one in np.exp(y)], dtype=[("event", bool), ("time", float)])
    for estimator, target in ((SparseCox(k=2), times), (SparseOrdinalClassifier(k=2), np.digitize(y, [-1, 1]))):
        with pytest.raises(TypeError, match=r"X is a table in chunks.*needs all of it at once"):
            estimator.fit(in_chunks(X), target)


def test_backward_needs_the_products_of_all_columns_in_one_pass(monkeypatch):
    monkeypatch.setattr("pauca.design.chunks.moments.WHOLE_UP_TO", 10)
    monkeypatch.setattr("pauca.objectives.least_squares.KNOWN_ROWS_PER_PASS", 16)
    X, y = ar_problem(300, 100, 4)
    chunks = limited(scan(lambda: iter(np.array_split(X, 3))), rows=300)
    model = SparseRegressor(k=4, method="backward").fit(chunks, y)
    np.testing.assert_array_equal(model.support_, SparseRegressor(k=4, method="backward").fit(X, y).support_)
    assert chunks.passes == 3  # one to count the rows
    with pytest.raises(ChunkError, match=r"starts from all 100 columns.*Use a method that grows"):
        SparseRegressor(k=4, method="backward").fit(limited(chunks, rows=1), y)


def test_chunks_that_can_be_read_only_once_are_refused():
    X, y = ar_problem(60, 5, 2)
    with pytest.raises(TypeError, match="An iterator can be read only once; give scan a function"):
        scan(iter([X]))
    once = iter(np.array_split(X, 3))
    chunks = scan(lambda: once)
    with pytest.raises(ChunkError, match="it can only be read once"):
        SparseRegressor(k=2).fit(chunks, y)


@pytest.mark.parametrize("memory", ["much", "12", 0, "1 KB"])
def test_impossible_memory_is_refused(memory):
    with pytest.raises(ValueError, match="memory must be"):
        scan(X0, memory=memory)


def test_a_reader_that_fails_raises_its_error_where_the_chunks_are_used():
    X, y = ar_problem(60, 5, 2)
    calls = []

    def broken():
        calls.append(0)
        yield X[:30]
        if len(calls) > 1:
            raise OSError("the disk is gone")
        yield X[30:]

    chunks = scan(broken)
    with pytest.raises(OSError, match="the disk is gone"):
        SparseRegressor(k=2).fit(chunks, y)
