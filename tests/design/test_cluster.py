"""Dask: rows stay where they are, and the answers are those of memory, on any number of workers."""

import os
import signal

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, wait
from scipy import sparse

from pauca import PaucaWarning, SparseClassifier, SparseCox, SparseOrdinalClassifier, SparseRegressor
from pauca.design.chunks import ChunkError
from pauca.design.chunks.cluster import DaskChunks
from problems import ar_problem

X, Y = ar_problem(1500, 40, 6, snr=2.0)
CLASSES = np.where(Y > 0, "high", "low")
NAMES = [f"c{j}" for j in range(40)]


def array(columns=40):
    return da.from_array(X, chunks=(200, columns))


def frame():
    return dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(y=Y, kind=CLASSES), npartitions=5)


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def test_arrays_and_lazy_predictions():
    model, plain = SparseRegressor(k=5).fit(array(15), da.from_array(Y, chunks=300)), SparseRegressor(k=5).fit(X, Y)
    assert model.path_.moves == plain.path_.moves
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-10)
    predicted = model.predict(array(15))
    assert isinstance(predicted, da.Array)
    assert predicted.shape == (1500,)
    np.testing.assert_allclose(predicted.compute(), plain.predict(X), rtol=1e-10)
    assert model.transform(array()).shape == (1500, 5)
    weights = 1.0 + np.arange(1500) % 3
    for given in (None, weights):
        score = model.score(array(), da.from_array(Y, chunks=200), given)
        assert isinstance(score, da.Array)
        assert float(score) == pytest.approx(plain.score(X, Y, given))


def test_frames_and_classes():
    table = frame()
    model = SparseClassifier(k=4, method="forward").fit(table[NAMES], table["kind"])
    plain = SparseClassifier(k=4, method="forward").fit(pd.DataFrame(X, columns=NAMES), CLASSES)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-8)
    assert model.feature_names_in_.tolist() == NAMES
    predicted = model.predict(table[NAMES])
    assert isinstance(predicted, dd.Series)
    np.testing.assert_array_equal(predicted.compute().to_numpy(), plain.predict(pd.DataFrame(X, columns=NAMES)))
    assert model.predict_proba(table[NAMES]).compute().columns.tolist() == ["high", "low"]
    assert list(model.transform(table[NAMES]).columns) == list(plain.get_feature_names_out())
    assert float(model.score(table[NAMES], table["kind"])) == plain.score(pd.DataFrame(X, columns=NAMES), CLASSES)
    with pytest.raises(ChunkError, match="do not hold numbers: 'kind'"):
        SparseRegressor().fit(table, table["y"])


def test_missing_values_of_pandas_own_types_and_labels_in_another_order():
    table = frame()
    own = dd.from_pandas(pd.DataFrame(X, columns=NAMES).convert_dtypes(), npartitions=5)
    np.testing.assert_allclose(SparseRegressor(k=3).fit(own, Y).coef_, SparseRegressor(k=3).fit(X, Y).coef_, rtol=1e-9)
    gap = own.map_partitions(lambda part: part.assign(c5=part["c5"].where(part.index != 1111)))
    with pytest.raises(ValueError, match="NaN: in chunk 3, row 1111 of the table, column 'c5'"):
        SparseRegressor(k=3).fit(gap, Y)
    turned = dd.from_pandas(pd.Series(Y).iloc[::-1], npartitions=3, sort=False)
    with pytest.warns(PaucaWarning, match="the row labels of X in another order"):
        SparseRegressor(k=1).fit(table[NAMES], turned)


def test_every_kind_of_model_predicts_lazily():
    times = np.array([(True, one) for one in np.exp(Y / Y.std())], dtype=[("event", bool), ("time", float)])
    ranks = np.digitize(Y, [-1, 1])
    ordinal, cox = SparseOrdinalClassifier(k=2).fit(X, ranks), SparseCox(k=2).fit(X, times)
    for lazy, plain in (
        (ordinal.predict_proba(array()), ordinal.predict_proba(X)),
        (ordinal.predict(array()), ordinal.predict(X)),
        (cox.predict(array()), cox.predict(X)),
        (ordinal.score(array(), ranks), ordinal.score(X, ranks)),
    ):
        assert isinstance(lazy, da.Array)
        np.testing.assert_allclose(lazy.compute(), plain)
    assert cox.score(array(), times) == cox.score(X, times)


def test_the_choice_of_k_is_that_of_memory():
    weights, groups = 1.0 + np.arange(1500) % 3, np.arange(1500) // 4
    chunks = DaskChunks.of(array())
    model = SparseRegressor().fit(chunks, Y, da.from_array(weights), groups=da.from_array(groups))
    plain = SparseRegressor().fit(X, Y, weights, groups=groups)
    np.testing.assert_array_equal(model.support_, plain.support_)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9, atol=1e-14)
    assert chunks.passes == 2


BAD = {
    "sizes": (lambda: array()[da.from_array(Y, chunks=200) > 0], r"Call X.compute_chunk_sizes\(\) first"),
    "empty": (lambda: da.from_array(X, chunks=((700, 0, 800), 40)), "Chunk 1 of X has no rows"),
    "sparse": (lambda: array().map_blocks(sparse.csr_array), "Chunk 0 of X is sparse"),
    "missing": (lambda: da.where(array() > 3.5, np.nan, array()), "contains NaN: in chunk"),
    "rows": (lambda: array()[:1400], r"inconsistent numbers of samples: \[1400, 1500\]"),
    "dimensions": (lambda: array()[:, 0], "must have two dimensions"),
    "type": (
        lambda: array().map_blocks(
            lambda block, block_id: block.astype("f4" if block_id[0] == 3 else "f8"), dtype="f8"
        ),
        "Chunk 3 of X holds float32, and the first one float64",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_tables_are_named(kind):
    make, words = BAD[kind]
    with pytest.raises(ValueError, match=words):
        SparseRegressor(k=2).fit(make(), Y)


@pytest.mark.filterwarnings("ignore")
def test_any_number_of_workers_gives_the_same_bits_also_after_one_was_killed():
    def fits(table):
        return [
            SparseRegressor(k=5).fit(table, Y).coef_,
            SparseClassifier(k=3, method="forward").fit(table, CLASSES).coef_,
        ]

    options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with LocalCluster(n_workers=1, **options) as cluster, Client(cluster) as client:
        table = array().persist()
        wait(table)
        alone = fits(table)
        cluster.scale(2)
        client.wait_for_workers(2)
        client.rebalance(table)
        for one, other in zip(fits(table), alone, strict=True):
            np.testing.assert_array_equal(one, other)
        os.kill(client.run(os.getpid)[next(iter(client.who_has(table).values()))[0]], signal.SIGKILL)
        for one, other in zip(fits(table), alone, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(alone[0], SparseRegressor(k=5).fit(X, Y).coef_, rtol=1e-10)
        scattered = client.scatter(X[:800])
        both = da.concatenate([da.from_delayed(scattered, (800, 40), X.dtype), array()[800:].persist()]).persist()
        wait(both)
        for pid in client.run(os.getpid).values():
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(ChunkError, match=r"lost chunks of X.*client\.scatter"):
            SparseRegressor(k=5).fit(both, Y)
