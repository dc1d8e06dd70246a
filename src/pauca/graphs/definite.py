"""Positive definite matrices: their inverses and determinants, or the word that they are not definite."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri


class Inverse(NamedTuple):
    """The inverse of a positive definite matrix, and the logarithm of the determinant of the matrix itself."""

    matrix: np.ndarray
    logdet: float


def logdet(matrix: np.ndarray) -> float | None:
    """The logarithm of the determinant; None unless the matrix is positive definite."""
    factor, failed = dpotrf(matrix, lower=1)
    return None if failed else 2.0 * float(np.log(np.diagonal(factor)).sum())


def invert(matrix: np.ndarray) -> Inverse | None:
    """The inverse; None unless the matrix is positive definite."""
    factor, failed = dpotrf(matrix, lower=1)
    if failed:
        return None
    grown = 2.0 * float(np.log(np.diagonal(factor)).sum())
    half, _ = dpotri(factor, lower=1, overwrite_c=1)
    below = np.tril(half, -1)
    made = below + below.T
    np.fill_diagonal(made, np.diagonal(half))
    return Inverse(made, grown)
