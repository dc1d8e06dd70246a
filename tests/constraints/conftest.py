"""Tables that several tests of constraints share, and one thread for all."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with threadpool_limits(1):
        yield


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8)) @ (np.eye(8) + 0.3 * rng.standard_normal((8, 8)))
    y = X @ [1.0, -1, 0, 0.5, 2, 0, 1, 0] + rng.standard_normal(60)
    return X, y
