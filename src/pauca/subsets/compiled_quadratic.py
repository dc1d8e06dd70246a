"""What columns gain by the quadratic around a model of one output, by compiled kernels as soon as it pays."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from pauca.compiled import Kernels, count_missed, plain
from pauca.losses import Loss
from pauca.objectives.compiled_refits import given_rows, has_kernels

# Products with the factor of more columns than these are computed as fast by BLAS.
MOST_FEATURES = 32

# About what a kernel saves of a call, and for each number that is looked at, in seconds.
SAVED_BY_CALL = 1e-4
SAVED_BY_NUMBER = 2e-9


def _load() -> ModuleType:
    from pauca.subsets import quadratic_kernels

    return quadratic_kernels


MEAN_KERNELS = Kernels(_load, "gains_by_mean")
KERNELS, COUPLED_KERNELS = Kernels(_load, "products_beside", "Data("), Kernels(_load, "products_beside", "Ordered(")


def gains_by_mean(
    products: Sequence[np.ndarray], features: np.ndarray, curvature: float, penalty: np.ndarray, slope: np.ndarray
) -> np.ndarray | None:
    """What every column gains beside some features, if the curvature is that of every row; None without a kernel.

    ``products`` are those of each feature with all columns.
    """
    if not 0 < len(features) <= MOST_FEATURES:
        return None
    kernels = MEAN_KERNELS.module
    if kernels is None:
        count_missed(SAVED_BY_CALL + SAVED_BY_NUMBER * len(features) * len(slope))
        return None
    gains = np.empty(len(slope))
    found = kernels.gains_by_mean(
        plain(np.stack(products)),
        features.astype(np.int64, copy=False),
        float(curvature),
        plain(penalty),
        plain(slope),
        gains,
    )
    return gains if found else None


def products_beside(
    loss: Loss,
    y: np.ndarray,
    scores: np.ndarray,
    curved: np.ndarray,
    chosen: np.ndarray,
    penalty: np.ndarray,
    z: np.ndarray,
    *,
    pairs: bool,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Products of columns with themselves and what a model leaves of them, or of all ``pairs``; None without a kernel.

    ``chosen`` are the model's columns on all rows of the data, ``curved`` the weighted curvatures of these.
    """
    if not has_kernels(loss) or not len(z) or not 0 < len(chosen) <= MOST_FEATURES:
        return None
    kernels = (COUPLED_KERNELS if loss.coupled else KERNELS).module
    given = None if kernels is None else given_rows(loss, y, np.ones(len(scores)), chosen, scores)
    if kernels is None or given is None:
        count_missed(0.0 if loss.coupled else SAVED_BY_CALL)
        return None
    own, left = np.empty(len(z)), np.empty((len(z), len(z) if pairs else 1))
    found = kernels.products_beside(
        given.data,
        given.scores,
        plain(given.in_order(curved)),
        plain(penalty),
        plain(given.in_order(z)),
        own,
        left,
    )
    return (own, left) if given.kept() and found else None
