"""The data matrix X as a set of operations, whatever its storage: no other package depends on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from pauca.design.base import Design
from pauca.design.dense import DenseDesign
from pauca.design.sparse import SparseDesign

__all__ = ["DenseDesign", "Design", "SparseDesign", "make_design"]


def make_design(X: Any, weights: np.ndarray, *, center: bool, target: np.ndarray | None = None) -> Design:
    """The design of a dense or sparse (CSC, CSR) matrix; ``weights`` must sum to one.

    With a ``target`` of shape (n,) that ``correlate`` will be asked for, the pass that finds the moments of dense
    columns computes these products too.
    """
    if issparse(X):
        return SparseDesign(X, weights, center=center)
    return DenseDesign(X, weights, center=center, target=target)
