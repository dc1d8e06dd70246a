"""The second stage of Li, Yang, Zhang and Jin (2017): from the coefficients learnt to few of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pauca.sparsification.draws import draw


@dataclass(frozen=True, eq=False)
class FewCoefficients:
    """Coefficients of the features that stay, before any refit."""

    support: np.ndarray
    """Ascending."""
    coef: np.ndarray
    """Shape (C, k)."""
    intercept: np.ndarray
    """Shape (C,)."""


def few_of(
    coef: np.ndarray,
    intercept: np.ndarray,
    moments: np.ndarray,
    k: int | None,
    method: str,
    rng: np.random.Generator,
) -> FewCoefficients:
    """At most ``k`` of the coefficients of shape (C, d); all that are not zero where k is None.

    Where there is room for every feature seen, nothing is drawn.
    """
    if k is not None and np.count_nonzero(moments) <= k:
        support = np.flatnonzero(moments)
        return FewCoefficients(support, coef[:, support], intercept)
    if k is None:
        support = np.flatnonzero(np.any(coef, axis=0))
        return FewCoefficients(support, coef[:, support], intercept)
    drawn = draw(coef, moments, k, method, rng)
    return FewCoefficients(drawn.support, drawn.values, intercept)
