"""Small products run on one thread of the BLAS, and every fit leaves the user's number as it was."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from pauca import PaucaWarning, SparseClassifier, SparseRegressor
from pauca.estimators import fit_warnings
from pauca.losses import LogLoss
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
