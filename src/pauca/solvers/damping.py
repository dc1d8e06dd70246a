"""Positive semidefinite matrices that rounding has made singular or indefinite: damped until they can be solved."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

# Each further damping is so many times as large.
RAISED_BY = 100.0


def scaled_to_ones(matrices: np.ndarray, least: float, *, below: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Matrices scaled to a diagonal of ones, which can be factored much further towards singular ones.

    Parameters
    ----------
    matrices : ndarray of shape (..., q, q)
        Positive semidefinite but for rounding.
    least, below : float
        Diagonal entries that are no larger than the share ``below`` of the largest count as the share ``least`` of it;
        where none is positive, all count as one.

    Returns
    -------
    scaled : ndarray of shape (..., q, q)
        ``scale_i scale_j matrix_ij`` off the diagonal; a new array.
    scale : ndarray of shape (..., q)
    """
    diagonal = np.einsum("...ii->...i", matrices)
    largest = float(diagonal.max(initial=0.0))
    scale = 1.0 / np.sqrt(np.where(diagonal > below * largest, diagonal, largest * least or 1.0))
    scaled = matrices * (scale[..., :, None] * scale[..., None, :])
    np.einsum("...ii->...i", scaled)[...] = 1.0
    return scaled, scale


def damped(matrices: np.ndarray, first: float) -> Iterator[np.ndarray]:
    """The matrices with their diagonals multiplied by ``1 + damping``, for callers to try until one can be solved.

    The damping is ``first``, then a hundred times as much, and so on below 1. ``matrices`` is overwritten each time.
    """
    on_diagonal = np.einsum("...ii->...i", matrices)
    diagonal = on_diagonal.copy()
    damping = first
    while damping < 1.0:
        on_diagonal[...] = diagonal * (1.0 + damping)
        yield matrices
        damping *= RAISED_BY


def damped_inverse(matrix: np.ndarray, first: float) -> np.ndarray:
    """The inverse of a positive semidefinite matrix, by the first damped Cholesky factor that exists."""
    scaled, scale = scaled_to_ones(np.asarray(matrix, dtype=np.float64), first)
    for candidate in damped(scaled, first):
        try:
            half = np.linalg.inv(np.linalg.cholesky(candidate))
        except np.linalg.LinAlgError:
            continue
        return np.asarray((half.T @ half) * np.outer(scale, scale))
    return np.diag(scale * scale)
