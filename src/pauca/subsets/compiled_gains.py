"""What columns gain beside a model of one output, by compiled kernels as soon as it pays; each is None without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pauca.compiled import Kernels, plain
from pauca.design import Entries
from pauca.losses import Loss
from pauca.losses.compiled_curves import LossKernels, compiled_curve

# Products with the factor of more columns than these are computed as fast by BLAS.
MOST_FEATURES = 32

ALONG_COLUMNS = LossKernels("pauca.subsets.kernels", "gains_of_columns")
ALONG_ENTRIES = Kernels("pauca.subsets.kernels", "gains_of_entries")
BY_MEAN = Kernels("pauca.subsets.quadratic_kernels", "gains_by_mean")
BESIDE = LossKernels("pauca.subsets.quadratic_kernels", "products_beside")

NO_COLUMNS = np.empty((0, 0))

ModelRows = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Targets, weights and scores of the rows of a model that have weight, shape (n,) each."""


class Lines(NamedTuple):
    """What is known of b columns, shape (b,) each."""

    slope: np.ndarray
    curvature: np.ndarray
    penalty: np.ndarray
    rate: np.ndarray
    """How fast the curvature may change: 0 where it is constant, not a number where nothing is known of it."""
    low: np.ndarray
    high: np.ndarray
    """Bounds of the step, infinite where there are none."""


def gains_of_columns(
    loss: Loss, rows: ModelRows, z: np.ndarray, lines: Lines, within: float, before: float
) -> np.ndarray | None:
    """Gains along whole columns of shape (b, n), from a model whose mean loss was ``before``."""
    y, weights, scores = rows
    given = ALONG_COLUMNS.given(loss, y, weights, z, scores, instead_of=z.size)
    if given is None:
        return None
    gains = np.empty(len(z))
    given.kernels.gains_of_columns(given.data, Lines(*map(plain, lines)), within, before, gains)
    return gains if given.kept() else None


def gains_of_entries(
    loss: Loss,
    rows: ModelRows,
    merged: ModelRows,
    entries: Entries,
    lines: Lines,
    within: float,
    before: float,
) -> np.ndarray | None:
    """Gains along columns given by their entries; ``merged`` rows stand for all others."""
    curve = compiled_curve(loss)
    kernels = None if curve is None else ALONG_ENTRIES.instead_of(len(merged[0]) * len(entries.base))
    if curve is None or kernels is None:
        return None
    gains = np.empty(len(entries.base))
    kernels.gains_of_entries(
        *(kernels.Data(*curve, *map(plain, (y, weights, NO_COLUMNS, scores))) for y, weights, scores in (rows, merged)),
        entries.starts().astype(np.int64, copy=False),
        entries.rows.astype(np.int64, copy=False),
        plain(entries.values),
        plain(entries.base),
        Lines(*map(plain, lines)),
        within,
        before,
        gains,
    )
    return gains


def gains_by_mean(
    products: Sequence[np.ndarray], features: np.ndarray, curvature: float, penalty: np.ndarray, slope: np.ndarray
) -> np.ndarray | None:
    """What every column gains beside some features, if the curvature is that of every row.

    ``products`` are those of each feature with all columns.
    """
    kernels = BY_MEAN.instead_of(len(slope)) if 0 < len(features) <= MOST_FEATURES else None
    if kernels is None:
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
    """Products of columns with themselves and what a model leaves of them, or of all ``pairs``.

    ``chosen`` are the model's columns on all rows of the data, ``curved`` the weighted curvatures of these.
    """
    if not len(z) or not 0 < len(chosen) <= MOST_FEATURES:
        return None
    given = BESIDE.given(loss, y, np.ones(len(scores)), chosen, scores, instead_of=0)
    if given is None:
        return None
    own, left = np.empty(len(z)), np.empty((len(z), len(z) if pairs else 1))
    found = given.kernels.products_beside(
        given.data, given.in_order(curved), plain(penalty), given.in_order(z), own, left
    )
    return (own, left) if given.kept() and found else None
