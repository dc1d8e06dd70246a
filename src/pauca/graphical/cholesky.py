"""Positive definite matrices: their inverses and determinants, or the word that they are not definite."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri


class Factor(NamedTuple):
    """Cholesky's factor of a positive definite matrix, and the logarithm of the determinant of the matrix."""

    lower: np.ndarray
    logdet: float

    def inverse(self) -> np.ndarray:
        """The inverse of the matrix; it takes the place of the factor, which cannot be used again."""
        half, _ = dpotri(self.lower, lower=1, overwrite_c=1)
        below = np.tril(half, -1)
        made = below + below.T
        np.fill_diagonal(made, np.diagonal(half))
        return made


class Inverse(NamedTuple):
    """The inverse of a positive definite matrix, and the logarithm of the determinant of the matrix itself."""

    matrix: np.ndarray
    logdet: float


def factored(matrix: np.ndarray) -> Factor | None:
    """Cholesky's factor; None unless the matrix is positive definite."""
    lower, failed = dpotrf(matrix, lower=1)
    return None if failed else Factor(lower, 2.0 * float(np.log(np.diagonal(lower)).sum()))


def invert(matrix: np.ndarray) -> Inverse | None:
    """The inverse; None unless the matrix is positive definite."""
    factor = factored(matrix)
    return None if factor is None else Inverse(factor.inverse(), factor.logdet)
