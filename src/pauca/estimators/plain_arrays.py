"""Arrays of numbers, of which scikit-learn's checks change nothing and would find nothing wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

NUMBERS = "biuf"


def are_plain(X: Any, y: Any) -> bool:
    """Whether X is a table and y a column of as many finite numbers; whether X is finite shows in its moments.

    scikit-learn takes half as long to see this as a small fit takes.
    """
    if not (type(X) is type(y) is np.ndarray and X.ndim == 2 and y.ndim == 1):
        return False
    numbers = X.dtype.kind in NUMBERS and y.dtype.kind in NUMBERS and max(X.itemsize, y.itemsize) <= 8
    return numbers and len(X) == len(y) and X.size > 0 and bool(np.isfinite(y).all())


def taken_as_they_are(estimator: Any, X: Any, y: Any) -> bool:
    """Whether X and y need no further look, for an estimator that encodes tables; sets what a table without names sets.

    They do where codes of categories, or missing values, are expected in X.
    """
    if estimator.missing != "error" or not isinstance(estimator.categorical_features, str | None):
        return False
    if not are_plain(X, y):
        return False
    estimator.n_features_in_ = X.shape[1]
    estimator.__dict__.pop("feature_names_in_", None)
    return True
