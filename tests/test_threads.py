"""Small products run on one thread of the BLAS, and every fit leaves the user's number as it was."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from pauca import SparseRegressor
from pauca.threads import LARGE_PRODUCT, blas_threads


def counts():
    return [library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers]


def counts_of_a_large_product():
    with blas_threads.single(), blas_threads.many(LARGE_PRODUCT):
        return counts()


@pytest.fixture
def of_user():
    with threadpool_limits(2, user_api="blas"):
        before = counts()
        if max(before) < 2:
            pytest.skip("The BLAS of this machine has one thread only.")
        yield before


def test_small_products_have_one_thread_and_large_ones_those_of_the_user(of_user):
    with blas_threads.single():
        assert set(counts()) == {1}
        with blas_threads.many(LARGE_PRODUCT):
            assert counts() == of_user
        with blas_threads.many(LARGE_PRODUCT - 1):
            assert set(counts()) == {1}
        with blas_threads.single():
            assert set(counts()) == {1}
        with ThreadPoolExecutor(1) as pool:
            assert set(pool.submit(counts_of_a_large_product).result()) == {1}
        assert set(counts()) == {1}
    assert counts() == of_user


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
