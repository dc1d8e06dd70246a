"""What other models have, or what was not computed yet, as attributes that are missing: the error says what to do."""

from __future__ import annotations

from typing import Any

TO_POINTS = (
    "has no to_points: sheets of points are made from a SparseClassifier of two classes. Fit one to an outcome of two "
    "classes, such as whether an event happened within a fixed time (of rows that were followed that long), or whether "
    "a number is above a threshold."
)
EVALUATE = (
    "has no evaluate: score(X_test, y_test) says how well test rows are predicted, and the metrics of scikit-learn "
    "take what predict returns. Sparse models of a table in memory, such as SparseClassifier, have it."
)
REPORT = (
    "has no report: pages are about predictions of a target, and a graph has none. summary() has it in words, "
    "partial_correlations() the strengths of its edges, and path_.to_frame() all sizes."
)
LIKELIHOOD = (
    "has no evaluate: a graph predicts no target. score(X_test) is the mean log-likelihood of test rows, which "
    "other graphs can be compared by."
)
CERTIFICATE = (
    "has no certificate_ here: lower bounds come with a fit of squared error on at most 40 columns and with "
    "method='exact'. Call certify() on a fitted model."
)
STABILITY = "has no stability_ before stability() was called."
ALTERNATIVES = "has no alternatives_ before alternatives() was called."


class MissingMethod:
    """What a kind of model has not, or not yet, with what to do instead: for ``hasattr`` it is not there."""

    def __init__(self, message: str) -> None:
        self._message = message

    def __get__(self, model: Any, owner: type) -> Any:
        raise AttributeError(f"{owner.__name__} {self._message}")
