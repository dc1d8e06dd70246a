"""The data matrix X as a set of operations, whatever its storage: no other package depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from pauca.design.base import Design
from pauca.design.chunks import ChunkedDesign, Chunks
from pauca.design.chunks.design import unless_uniform
from pauca.design.chunks.moments import PartSums
from pauca.design.dense import DenseDesign
from pauca.design.entries import Entries
from pauca.design.fold_grams import NARROW, RowParts, parts_of_folds
from pauca.design.gathered import GatheredColumns, GatheredDesign
from pauca.design.sparse import SparseDesign

__all__ = [
    "ChunkedDesign",
    "Chunks",
    "DenseDesign",
    "Design",
    "Entries",
    "GatheredColumns",
    "GatheredDesign",
    "SparseDesign",
    "designs_of_folds",
    "make_design",
]


def make_design(
    X: Any,
    weights: np.ndarray,
    *,
    center: bool,
    target: np.ndarray | None = None,
    folds: Sequence[np.ndarray] = (),
) -> Design:
    """The design of a dense or sparse (CSC, CSR) matrix, or of one in chunks; ``weights`` must sum to one.

    With a ``target`` of shape (n,) that ``correlate`` will need, the pass that finds the moments of dense
    columns computes these products too. With row weights of ``folds`` the pass over a matrix in chunks finds the
    moments that ``designs_of_folds`` needs.
    """
    if isinstance(X, Chunks):
        return _chunked_design(X, weights, center, target, folds)
    if isinstance(X, GatheredColumns):
        return GatheredDesign(X, weights, center=center)
    if issparse(X):
        return SparseDesign(X, weights, center=center)
    return DenseDesign(X, weights, center=center, target=target)


def designs_of_folds(X: Any, design: Design, folds: Sequence[np.ndarray], *, center: bool) -> list[Design] | None:
    """Designs of folds, by their row weights, that share products of columns with that of all rows.

    None where nothing would be saved: each fold then makes its own.
    """
    if isinstance(design, ChunkedDesign):
        return _chunked_folds(design, folds)
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


def _chunked_design(
    X: Chunks, weights: np.ndarray, center: bool, target: np.ndarray | None, folds: Sequence[np.ndarray]
) -> ChunkedDesign:
    """The design of a table in chunks, with sums for the parts that its folds are made of."""
    found = parts_of_folds(weights, folds) if target is not None else None
    if found is None:
        return ChunkedDesign.of(X, weights, center=center, target=target)
    part, shares = found
    sums = PartSums(
        X,
        unless_uniform(weights),
        target=target,
        center=center,
        part=part,
        n_parts=shares.shape[1],
    )
    return ChunkedDesign(sums, np.ones(sums.n_parts), weights)


def _chunked_folds(design: ChunkedDesign, folds: Sequence[np.ndarray]) -> list[Design] | None:
    found = parts_of_folds(design.weights, folds)
    if found is None or design.sums.n_parts != found[1].shape[1]:
        return None
    return [ChunkedDesign(design.sums, share, partial(folds.__getitem__, fold)) for fold, share in enumerate(found[1])]
