"""Errors of predicted numbers, judged by scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics

from pauca.statistics.regression_metrics import regression_errors


@pytest.mark.parametrize("shape", [(50,), (50, 3)])
def test_errors_are_those_of_scikit_learn(shape):
    rng = np.random.default_rng(0)
    y = rng.standard_normal(shape)
    predicted = y + 0.5 * rng.standard_normal(shape)
    found = regression_errors(y, predicted)
    assert found.r2 == pytest.approx(metrics.r2_score(y, predicted))
    assert found.mae == pytest.approx(metrics.mean_absolute_error(y, predicted))
    assert found.rmse == pytest.approx(np.sqrt(metrics.mean_squared_error(y, predicted)))
