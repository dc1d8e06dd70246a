"""Products have one thread of the BLAS, large ones by shares of rows, and fits leave the user's number as it was."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from pauca import PaucaWarning, SparseClassifier, SparseRegressor, threads
from pauca.design import dense
from pauca.design.dense import DenseDesign
from pauca.estimators import fit_warnings
from pauca.losses import LogLoss
from pauca.threads import LEAST_SHARE, blas_threads


def counts():
    return [library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers]


def shares(numbers):
    """The rows of each share of work on 100 rows."""
    with blas_threads.single():
        return blas_threads.by_shares(lambda rows: (rows.start, rows.stop), 100, numbers, most=100)


@pytest.fixture
def of_user():
    with threadpool_limits(2, user_api="blas"):
        before = counts()
        if max(before) < 2:
            pytest.skip("The BLAS of this machine has one thread only.")
        yield before


def test_large_products_are_shared_by_as_many_threads_as_the_user_allows(of_user):
    halves = [(0, 50), (50, 100)]
    with blas_threads.single():
        assert set(counts()) == {1}
        assert shares(2 * LEAST_SHARE) == shares(100 * LEAST_SHARE) == halves
        assert shares(2 * LEAST_SHARE - 1) == [(0, 100)]
        assert len(blas_threads.by_shares(str, 100, 100 * LEAST_SHARE, most=1)) == 1
        with blas_threads.single():
            assert set(counts()) == {1}
        with ThreadPoolExecutor(1) as pool:  # of a fit in another thread, all of whose threads are taken
            assert pool.submit(shares, 2 * LEAST_SHARE).result() == [(0, 100)]
        assert set(counts()) == {1}
        with pytest.raises(ZeroDivisionError):
            blas_threads.by_shares(lambda rows: 1 // (50 - rows.start), 100, 2 * LEAST_SHARE, most=2)
        with np.errstate(all="ignore"):
            logs = blas_threads.by_shares(lambda rows: np.log(49.0 - rows.start), 100, 2 * LEAST_SHARE, most=2)
        np.testing.assert_array_equal(logs, [np.log(49), np.nan])
    assert counts() == of_user
    with threadpool_limits(1, user_api="blas"):
        assert shares(100 * LEAST_SHARE) == [(0, 100)]


def test_where_no_thread_can_be_started_there_is_one_share(of_user, monkeypatch):
    """As after the end of the main thread, while another one fits."""

    def fails(*_):
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(threads.ThreadPoolExecutor, "submit", fails)
    assert shares(2 * LEAST_SHARE) == [(0, 100)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["C", "F", "float32", "far from zero"])
def test_products_by_shares_are_those_of_all_rows(of_user, monkeypatch, kind, weighted):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((41, 7)) + (1e7 if kind == "far from zero" else 0.0)
    X = np.asarray(X, order="F" if kind == "F" else "C", dtype=np.float32 if kind == "float32" else np.float64)
    weights = rng.dirichlet(np.ones(41)) if weighted else np.full(41, 1 / 41)
    left, target, some = rng.standard_normal((3, 41)), rng.standard_normal(41), np.array([4, 1])
    monkeypatch.setattr(dense, "ONE_PASS_NUMBERS", 30)
    found = []
    for least_share in (LEAST_SHARE, 1):
        monkeypatch.setattr(threads, "LEAST_SHARE", least_share)
        with blas_threads.single():
            design = DenseDesign(X, weights, center=True, target=target)
            products = design.products(left), design.correlate(target), design.correlate(left[0])
            found.append([design.mean, design.spread, *products, design.gram(some), design.gram([2])])
    for whole, shared, direct in zip(*found, by_definition(X, weights, left, target, some), strict=True):
        np.testing.assert_allclose(shared, whole, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(shared, direct, rtol=1e-13, atol=1e-7)


def by_definition(X, weights, left, target, some):
    """Means and spreads, and products by standardised columns."""
    mean = weights @ X
    spread = np.sqrt(weights @ (X - mean) ** 2)
    z = (X - mean) / spread
    gram = z.T @ (weights[:, None] * z)
    return mean, spread, left @ z, (weights * target) @ z, (weights * left[0]) @ z, gram[some], gram[[2]]


def test_overlapping_fits_leave_the_setting_as_it_was(of_user):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 20)), rng.standard_normal(60)

    def fails(progress):
        raise RuntimeError("a callback that fails")

    def fit(number):
        model = SparseRegressor(k=3, callback=fails if number % 3 == 0 else None)
        with pytest.raises(RuntimeError, match="fails") if number % 3 == 0 else nullcontext():
            model.fit(X, y)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fit, range(40)))
        assert pool.submit(counts).result() == of_user
    assert counts() == of_user


def test_a_fit_has_one_thread_though_another_thread_has_set_the_number(of_user):
    rng, seen = np.random.default_rng(0), []
    X, y = rng.standard_normal((60, 20)), rng.standard_normal(60)
    model = SparseRegressor(k=2, callback=lambda progress: seen.append(counts()))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(model.fit, X, y).result()
    assert {number for found in seen for number in found} == {1}
    assert counts() == of_user


def test_columns_left_out_are_compared_with_the_chosen_ones_on_one_thread(of_user, monkeypatch):
    """Threads that waited for this small product took a third of a fit of a small table."""
    libraries, seen = ThreadpoolController().select(user_api="blas").lib_controllers, set()
    combinations_of_chosen = fit_warnings.combinations_of_chosen

    def watched(*arguments):
        seen.update(library.get_num_threads() for library in libraries)
        return combinations_of_chosen(*arguments)

    monkeypatch.setattr(fit_warnings, "combinations_of_chosen", watched)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = X @ [2.0, 1.0, 1.0, 0.5] + rng.standard_normal(60)
    with pytest.warns(PaucaWarning):
        SparseRegressor(k=5).fit(np.column_stack([X, X[:, 0] + X[:, 1]]), y)
    assert seen == {1}
    assert counts() == of_user


@pytest.mark.parametrize("ridge", [0.0, 1e-2, "auto"])
def test_all_of_a_choice_of_size_has_one_thread(of_user, ridge, monkeypatch):
    """Also models of folds that are fitted again for what is reported of the choice."""
    libraries, seen = ThreadpoolController().select(user_api="blas").lib_controllers, set()
    slopes = LogLoss.slopes

    def watched(self, y, a):
        seen.update(library.get_num_threads() for library in libraries)
        return slopes(self, y, a)

    monkeypatch.setattr(LogLoss, "slopes", watched)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 6))
    model = SparseClassifier(ridge=ridge).fit(X, X[:, 0] + rng.logistic(size=80) > 0)
    model.alternatives()
    assert seen == {1}
    assert counts() == of_user
