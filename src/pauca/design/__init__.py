"""The data matrix X as a set of operations, whatever its storage: no other package depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from pauca.design.base import Design
from pauca.design.dense import DenseDesign
from pauca.design.fold_grams import NARROW, RowParts, parts_of_folds
from pauca.design.sparse import SparseDesign

__all__ = ["DenseDesign", "Design", "SparseDesign", "designs_of_folds", "make_design"]


def make_design(X: Any, weights: np.ndarray, *, center: bool, target: np.ndarray | None = None) -> Design:
    """The design of a dense or sparse (CSC, CSR) matrix; ``weights`` must sum to one.

    With a ``target`` of shape (n,) that ``correlate`` will be asked for, the pass that finds the moments of dense
    columns computes these products too.
    """
    if issparse(X):
        return SparseDesign(X, weights, center=center)
    return DenseDesign(X, weights, center=center, target=target)


def designs_of_folds(X: Any, design: Design, folds: Sequence[np.ndarray], *, center: bool) -> list[Design] | None:
    """Designs of folds, by their row weights, that share products of columns with that of all rows.

    None where nothing would be saved: each fold then makes its own.
    """
    if not isinstance(design, DenseDesign) or design.n_features > NARROW:
        return None
    found = parts_of_folds(design.weights, folds)
    if found is None:
        return None
    part, shares = found
    parts = RowParts(X, design.weights, design.mean, part)
    design.use_parts(parts, np.ones(shares.shape[1]))
    designs = [DenseDesign(X, weights, center=center) for weights in folds]
    for one, share in zip(designs, shares, strict=True):
        one.use_parts(parts, share)
    return list(designs)
