"""Methods that only some losses allow."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any

import numpy as np

from pauca.losses import resolve


class WithProbabilities:
    """A method that only estimators whose loss models probabilities have; to others its absence says why.

    scikit-learn's ``available_if`` does the same, but keeps the reason out of the message.
    """

    def __init__(self, method: Callable[..., np.ndarray]) -> None:
        self._method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, estimator: Any, owner: type | None = None) -> Callable[..., np.ndarray]:
        if estimator is None:
            return self._method
        if not hasattr(resolve(estimator.loss, classes=True), "probabilities"):
            raise AttributeError(
                f"This {type(estimator).__name__!r} has no attribute {self._method.__name__!r}: "
                f"loss={estimator.loss!r} does not model probabilities. Use loss='logistic', or decision_function, "
                "whose scores are no probabilities."
            )
        return MethodType(self._method, estimator)
