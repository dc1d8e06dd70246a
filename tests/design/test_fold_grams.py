"""Gram matrices of folds from those of parts of the rows."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, RepeatedKFold, TimeSeriesSplit

from pauca.design import designs_of_folds, make_design

ROWS = 60


def fold_weights(splits, weights):
    for train, _ in splits:
        inside = np.bincount(train, minlength=ROWS) * weights
        yield inside / inside.sum()


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("cv", [KFold(4, shuffle=True, random_state=0), TimeSeriesSplit(3)])
def test_parts_add_up_to_the_products_of_every_fold(cv, center):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, 9)) * 10.0 ** np.arange(-4, 5) + 1e3
    weights = rng.random(ROWS) * (np.arange(ROWS) % 7 > 0)
    weights /= weights.sum()
    folds = list(fold_weights(cv.split(X), weights))
    whole = make_design(X, weights, center=center)
    plain = whole.gram(range(9))
    for weights_of_fold, design in zip(folds, designs_of_folds(X, whole, folds, center=center), strict=True):
        alone = make_design(X, weights_of_fold, center=center)
        np.testing.assert_allclose(design.gram([1, 5]), alone.gram([1, 5]), atol=1e-9)
    np.testing.assert_allclose(whole.gram(range(9)), plain, atol=1e-9)


def test_nothing_is_shared_where_nothing_would_be_saved():
    X = np.random.default_rng(0).standard_normal((ROWS, 5))
    weights = np.full(ROWS, 1 / ROWS)
    whole = make_design(X, weights, center=True)
    many = list(fold_weights(RepeatedKFold(n_splits=5, n_repeats=3, random_state=0).split(X), weights))
    assert designs_of_folds(X, whole, many, center=True) is None
    drawn = [np.bincount([0, 0, *range(1, 30)], minlength=ROWS) / 31, np.bincount(range(30, 60), minlength=ROWS) / 30]
    assert designs_of_folds(X, whole, drawn, center=True) is None
