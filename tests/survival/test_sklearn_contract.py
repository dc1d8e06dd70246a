"""What scikit-learn asks of every estimator, asked of SparseCox: its checks make numbers, which are read as times."""

import numpy as np
import pytest
from sklearn.utils.validation import check_array, column_or_1d
from sklearn_checks import parametrize_settings

from pauca import SparseCox


class TimesToEvents(SparseCox):
    """SparseCox of rows that all have their event, at a time that is given by a number."""

    def fit(self, X, y, sample_weight=None, *, groups=None):
        if y is None:
            return super().fit(X, y)
        numbers = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"), warn=True)
        return super().fit(X, _times(numbers), sample_weight, groups=groups)

    def score(self, X, y, sample_weight=None):
        return super().score(X, _times(np.asarray(y, dtype=np.float64)), sample_weight)


def _times(numbers):
    times = np.empty(len(numbers), dtype=[("event", bool), ("time", float)])
    times["event"], times["time"] = True, numbers - numbers.min(initial=0.0) + 1.0
    return times


# The checks fit constant columns, single rows and more features than rows on purpose.
@pytest.mark.filterwarnings("ignore::pauca.PaucaWarning", "ignore:No features were selected:UserWarning")
@pytest.mark.usefixtures("array_api")
@parametrize_settings(
    [
        TimesToEvents(k=2, ties="breslow", ridge=1e-3),
        TimesToEvents(k=None, method="forward", ties="breslow", ridge=1e-3),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
