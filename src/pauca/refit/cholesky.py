"""Cholesky factor of a small positive definite matrix that gains and loses rows."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

# The inverse is carried along by rank-one changes; after this many it is taken anew from the factor,
# so that rounding cannot build up.
CHANGES_BEFORE_RENEWAL = 50


class CholeskyFactor:
    """Lower factor L of ``H = L L'``; every change costs O(k^2), none starts over.

    The inverse is made only when somebody asks for it, and from then on kept up to date with the factor.
    """

    def __init__(self) -> None:
        self._lower = np.zeros((0, 0), order="F")
        self._inverse: np.ndarray | None = None
        self._changes = 0

    @classmethod
    def of(cls, matrix: np.ndarray) -> CholeskyFactor:
        """Factor of a whole matrix; raises ``numpy.linalg.LinAlgError`` unless it is positive definite."""
        lower, info = lapack.dpotrf(matrix, lower=1, clean=1)
        if info:
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        factor = cls()
        factor._lower = lower
        return factor

    @property
    def size(self) -> int:
        return len(self._lower)

    @property
    def pivots(self) -> np.ndarray:
        """What each row adds to the rows before it: the squared diagonal of the factor."""
        return np.diag(self._lower) ** 2

    def copy(self) -> CholeskyFactor:
        twin = CholeskyFactor()
        # Both arrays are replaced, never written to, so that copies may share them.
        twin._lower, twin._inverse, twin._changes = self._lower, self._inverse, self._changes
        return twin

    def half_solve(self, rhs: np.ndarray) -> np.ndarray:
        """``L^-1 rhs`` for a vector or a matrix."""
        return self._triangular_solve(rhs, transposed=0)

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """``H^-1 rhs``."""
        return self._triangular_solve(self.half_solve(rhs), transposed=1)

    def append(self, cross: np.ndarray, diagonal: float, least: float) -> tuple[np.ndarray, float]:
        """Border H by one row; returns ``H^-1 cross`` and the Schur complement, which is held above ``least``."""
        k = self.size
        half = self.half_solve(cross)
        weights = self._triangular_solve(half, transposed=1)
        schur = max(diagonal - float(half @ half), least)
        lower = np.zeros((k + 1, k + 1), order="F")
        lower[:k, :k] = self._lower
        lower[k, :k] = half
        lower[k, k] = np.sqrt(schur)
        self._lower = lower
        if self._inverse is not None:
            border = np.append(-weights, 1.0)
            inverse = np.outer(border, border / schur)
            inverse[:k, :k] += self._inverse
            self._keep(inverse)
        return weights, schur

    def delete(self, position: int) -> None:
        """Drop row and column ``position`` of H; the rows after it take in its column by one rank-one update."""
        k = self.size
        keep = np.delete(np.arange(k), position)
        lower = np.zeros((k - 1, k - 1), order="F")
        lower[:, :position] = self._lower[keep, :position]
        if position < k - 1:
            column = self._lower[position + 1 :, position]
            upper = self._lower[position + 1 :, position + 1 :].T
            rotated, *_ = lapack.dtpqrt(0, min(32, len(column)), upper, column[None, :])
            rotated = np.triu(rotated) * np.where(np.diag(rotated) < 0, -1.0, 1.0)[:, None]
            lower[position:, position:] = rotated.T
        self._lower = lower
        if self._inverse is not None:
            column = self._inverse[keep, position]
            inverse = self._inverse[np.ix_(keep, keep)]
            inverse -= np.outer(column, column / self._inverse[position, position])
            self._keep(inverse)

    @property
    def inverse(self) -> np.ndarray:
        """``H^-1``, symmetric; not to be written to."""
        if self._inverse is None:
            if self.size == 0:
                return np.zeros((0, 0))
            inverse, _ = lapack.dpotri(self._lower, lower=1)
            self._inverse = np.tril(inverse) + np.tril(inverse, -1).T
            self._changes = 0
        return self._inverse

    def _keep(self, inverse: np.ndarray) -> None:
        self._changes += 1
        self._inverse = inverse if self._changes < CHANGES_BEFORE_RENEWAL else None

    def _triangular_solve(self, rhs: np.ndarray, transposed: int) -> np.ndarray:
        if self.size == 0:
            return np.zeros_like(rhs)
        solution, _ = lapack.dtrtrs(self._lower, rhs, lower=1, trans=transposed)
        return np.asarray(solution).reshape(rhs.shape)
