"""The verbs of every kind of design equal those of plain centred and scaled columns."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from pauca.design import make_design
from pauca.objectives import GramRows
from problems import DESIGNS, integers


def standardised(X, v, center):
    Z = X - v @ X if center else X
    return Z / np.sqrt(v @ Z**2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("form", DESIGNS)
def test_operations(form, center, weighted):
    X, y = integers()
    v = (np.arange(60) % 3 if weighted else np.ones(60)) / (60 if not weighted else (np.arange(60) % 3).sum())
    design = make_design(DESIGNS[form](X), v, center=center)
    Z = standardised(X, v, center)
    np.testing.assert_allclose(design.mean, v @ X if center else np.zeros(12), atol=1e-13)
    np.testing.assert_allclose(design.spread, np.sqrt(v @ (X - design.mean) ** 2), rtol=1e-12)
    t = y - v @ y if center else y
    np.testing.assert_allclose(design.correlate(y), Z.T @ (v * t), rtol=1e-10, atol=1e-12)
    announced = make_design(DESIGNS[form](X), v, center=center, target=y)
    for asked in (y, y**2, y):
        np.testing.assert_allclose(announced.correlate(asked), design.correlate(asked), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(announced.spread, design.spread, rtol=1e-14)
    np.testing.assert_allclose(design.gram([3, 0, 7]), (Z.T @ (v[:, None] * Z))[[3, 0, 7]], atol=1e-13)
    np.testing.assert_allclose(design.gram(np.arange(12)), Z.T @ (v[:, None] * Z), atol=1e-13)
    np.testing.assert_allclose(design.gram([5]), (Z.T @ (v[:, None] * Z))[[5]], atol=1e-13)
    blocks = list(design.blocks([2, 9]))
    np.testing.assert_allclose(np.vstack([b for _, b in blocks]), Z[:, [2, 9]], atol=1e-12)
    assert blocks[0][0].start == 0
    assert blocks[-1][0].stop == 60
    entries = design.entries(np.array([9, 2]))
    np.testing.assert_array_equal(np.diff(entries.starts()), design.stored()[[9, 2]])
    whole = np.repeat(entries.base[:, None], 60, axis=1)
    whole[entries.column, entries.rows] = entries.values
    np.testing.assert_array_equal(whole, np.vstack([b for _, b in design.blocks([9, 2])]).T)
    coef = np.where(np.arange(36).reshape(12, 3) % 4, 0.0, 1.5)
    for same in (coef, sparse.csc_array(coef)):
        scores = np.vstack([block for _, block in design.scores(same)])
        np.testing.assert_allclose(scores, (X - design.mean) @ coef, atol=1e-11)


@pytest.mark.parametrize("form", DESIGNS)
def test_many_blocks_give_the_same_products(form, monkeypatch):
    X, y = integers()
    v = np.full(60, 1 / 60)
    whole = make_design(DESIGNS[form](X), v, center=True)
    for name in ("CACHED_NUMBERS", "ONE_PASS_NUMBERS", "GATHERED_NUMBERS", "WIDE_NUMBERS"):
        monkeypatch.setattr(f"pauca.design.dense.{name}", 50)
    for name in ("DENSE_NUMBERS", "GATHERED_NUMBERS"):
        monkeypatch.setattr(f"pauca.design.sparse.{name}", 50)
    parts = make_design(DESIGNS[form](X), v, center=True, target=y)
    assert len(list(parts.blocks([1, 2]))) > 2
    np.testing.assert_allclose(parts.spread, whole.spread, rtol=1e-12)
    np.testing.assert_allclose(parts.gram([1, 5]), whole.gram([1, 5]), atol=1e-13)
    np.testing.assert_allclose(parts.correlate(y), whole.correlate(y), rtol=1e-10, atol=1e-12)
    blocks = list(parts.scores(np.ones((12, 2))))
    assert len(blocks) > 2
    np.testing.assert_allclose(np.vstack([b for _, b in blocks]), (X - v @ X) @ np.ones((12, 2)), atol=1e-11)


@pytest.mark.parametrize("form", ["C", "F", "csc", "csr"])
def test_huge_means_keep_their_digits(form):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 6))
    shifted = X + 1e6
    X = shifted - 1e6  # what is left of X after it was shifted
    v = np.full(2000, 1 / 2000)
    design = make_design(DESIGNS[form](shifted), v, center=True)
    Z = standardised(X, v, True)
    np.testing.assert_allclose(design.gram(range(6)), Z.T @ Z / 2000, atol=1e-9)
    np.testing.assert_allclose(design.spread, X.std(axis=0), rtol=1e-9)


def test_full_sparse_columns_and_means_that_dominate():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 5)) + np.array([0, 0, 1e7, 0, 1e7])
    X[rng.random((200, 5)) < 0.5] = 0
    X[:, 2] = 1e7 + rng.standard_normal(200)
    v = np.full(200, 1 / 200)
    np.testing.assert_allclose(
        make_design(sparse.csc_array(X), v, center=True).gram(range(5)),
        make_design(X, v, center=True).gram(range(5)),
        atol=1e-8,
    )


def test_gram_rows_are_computed_once_and_several_to_a_pass():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 400))
    rows = GramRows(make_design(X, np.full(400, 1 / 400), center=True))
    calls = []

    def likely(feature, count):
        calls.append((feature, count))
        return range(200, 200 + count)

    first = rows.row(3, likely)
    assert rows.passes == 1
    rows.row(210, likely)
    rows.row(3, likely)
    np.testing.assert_array_equal(rows.rows([3, 205]), [first, rows.row(205)])
    assert rows.passes == 1
    assert len(calls) == 1
    assert rows.computed == len(set(rows.known())) == 1 + calls[0][1]


def test_gram_rows_of_small_dense_data_are_computed_as_they_are_needed():
    X = np.random.default_rng(0).standard_normal((50, 200))
    rows = GramRows(make_design(X, np.full(50, 1 / 50), center=True))
    row = rows.row(3, lambda feature, count: range(count))
    np.testing.assert_allclose(row, np.corrcoef(X.T)[3], atol=1e-14)
    assert (rows.known(), rows.computed) == ([3], 1)


def test_narrow_designs_get_the_whole_gram_matrix_in_one_pass():
    X, _ = integers()
    rows = GramRows(make_design(X, np.full(60, 1 / 60), center=True))
    rows.row(5)
    rows.row(0)
    assert (rows.passes, rows.computed) == (1, 12)


def test_gram_rows_beyond_the_memory_limit_are_dropped_oldest_first(monkeypatch):
    monkeypatch.setattr("pauca.objectives.least_squares.PASS_BYTES", 8 * 300)
    X = np.random.default_rng(0).standard_normal((20, 300))
    rows = GramRows(make_design(X, np.full(20, 0.05), center=True))
    for j in range(40):
        rows.row(j)
    assert len(rows.known()) < 40
    assert rows.known()[-1] == 39
    np.testing.assert_allclose(rows.rows([0])[0], rows.row(0))


@pytest.mark.parametrize("kind", ["csc", "csr"])
def test_a_full_constant_column_of_sparse_data_is_constant(kind):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full(20_000, 3.3), rng.standard_normal(20_000)])
    design = make_design(sparse.csc_array(X).asformat(kind), np.full(20_000, 1 / 20_000), center=True)
    assert design.usable.tolist() == [False, True]


@pytest.mark.parametrize("form", ["C", "F", "float32", "csc"])
def test_rows_of_zero_weight_have_no_effect(form):
    X, _ = integers()
    spoilt = X.copy()
    spoilt[:20] = 1e7
    weights = np.r_[np.zeros(20), np.full(40, 1 / 40)]
    design = make_design(DESIGNS[form](spoilt), weights, center=True)
    np.testing.assert_allclose(design.mean, X[20:].mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(design.spread, X[20:].std(axis=0), rtol=1e-9)


@pytest.mark.parametrize("kind", ["csc", "csr"])
def test_duplicate_entries_are_summed(kind):
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 50, 300), rng.integers(0, 4, 300)
    doubled = sparse.coo_array((rng.standard_normal(300), (rows, columns)), shape=(50, 4))
    plain = doubled.toarray()
    order = np.lexsort((rows, columns) if kind == "csc" else (columns, rows))
    major, minor = (columns, rows) if kind == "csc" else (rows, columns)
    starts = np.r_[0, np.cumsum(np.bincount(major, minlength=4 if kind == "csc" else 50))]
    make = sparse.csc_array if kind == "csc" else sparse.csr_array
    X = make((doubled.data[order], minor[order], starts), shape=(50, 4))
    assert X.nnz == 300
    v = np.full(50, 0.02)
    design, expected = make_design(X, v, center=True), make_design(plain, v, center=True)
    np.testing.assert_allclose(design.spread, expected.spread, rtol=1e-12)
    np.testing.assert_allclose(design.gram([0, 2]), expected.gram([0, 2]), atol=1e-12)
    assert X.nnz == 300


def test_narrow_sparse_data_are_not_made_dense():
    rng = np.random.default_rng(0)
    X = sparse.random_array((100_000, 100), density=0.15, format="csc", rng=rng)
    design = make_design(X, np.full(100_000, 1e-5), center=True)
    tracemalloc.start()
    gram = design.gram(range(100))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6 + 3 * X.data.nbytes < 8 * 100_000 * 100 * 1.2
    np.testing.assert_allclose(np.diag(gram), 1.0)


@pytest.mark.parametrize("form", [sparse.csc_array, sparse.csr_array])
def test_scores_of_sparse_data_do_not_copy_them(form):
    X = form(sparse.random_array((2000, 3000), density=0.1, rng=np.random.default_rng(0)))
    design = make_design(X, np.full(2000, 1 / 2000), center=True)
    tracemalloc.start()
    list(design.scores(np.ones((3000, 1))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < X.data.nbytes / 4


@pytest.mark.parametrize("center", [True, False])
def test_means_a_thousand_times_the_spread_keep_their_digits_without_copies(center):
    """Below the ratio from which blocks are centred, the second centring alone must do."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 4)) + 500
    design = make_design(X, np.full(5000, 1 / 5000), center=center)
    assert design._raw
    Z = standardised(X, np.full(5000, 1 / 5000), center)
    np.testing.assert_allclose(design.gram(range(4)), Z.T @ Z / 5000, atol=3e-13 if center else 1e-11)
