"""Inverse Cholesky factor of a small positive definite matrix that gains and loses rows."""

from __future__ import annotations

import numpy as np


class InverseFactor:
    """A matrix M with ``M H M' = I``, so that ``H^-1 = M' M``; every change costs O(k^2), none starts over.

    Appending a row to H appends a row to M, which is then the inverse of the Cholesky factor of H. Deleting one
    turns M by a Householder reflection that leaves the deleted coordinate in a single row. M need not stay
    triangular: no use of it requires that, and reflections are as stable as Cholesky's own rotations.

    The array is replaced, never written to, so that copies may share it.

    All products are NumPy's. SciPy's LAPACK brings a second pool of BLAS threads, and two pools that wait for work by
    spinning make each other several times slower on calls as small as these.
    """

    def __init__(self, root: np.ndarray | None = None) -> None:
        self._root = np.zeros((0, 0)) if root is None else root

    @classmethod
    def of(cls, matrix: np.ndarray) -> InverseFactor:
        """Factor of a whole matrix; raises ``numpy.linalg.LinAlgError`` unless it is positive definite."""
        return cls(np.linalg.inv(np.linalg.cholesky(matrix)))

    @property
    def size(self) -> int:
        """Number of rows of H."""
        return len(self._root)

    def half_solve(self, rhs: np.ndarray) -> np.ndarray:
        """``M rhs``, whose squared length is ``rhs' H^-1 rhs``; ``rhs`` may have several columns."""
        return self._root @ rhs

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """``H^-1 rhs``."""
        return (self._root @ rhs) @ self._root

    def inverse(self) -> np.ndarray:
        """``H^-1``."""
        return self._root.T @ self._root

    def inverse_diagonal(self) -> np.ndarray:
        """The diagonal of ``H^-1``."""
        return np.einsum("ij,ij->j", self._root, self._root)

    def inverse_column(self, position: int) -> np.ndarray:
        """One column of ``H^-1``."""
        return self._root[:, position] @ self._root

    def append(self, cross: np.ndarray, diagonal: float, least: float) -> tuple[np.ndarray, float]:
        """Border H by one row; returns ``H^-1 cross`` and the Schur complement, which is held above ``least``."""
        k = self.size
        half = self._root @ cross
        weights = half @ self._root
        schur = max(diagonal - float(half @ half), least)
        pivot = schur**-0.5
        root = np.zeros((k + 1, k + 1))
        root[:k, :k] = self._root
        root[k, :k] = -pivot * weights
        root[k, k] = pivot
        self._root = root
        return weights, schur

    def delete(self, position: int) -> None:
        """Drop row and column ``position`` of H."""
        # Reflect the deleted coordinate's column onto its last entry; the last row then holds all there is of it.
        normal = self._root[:, position].copy()
        length = np.sqrt(normal @ normal)
        normal[-1] += np.copysign(length, normal[-1])
        across = (2.0 / (normal @ normal)) * (normal @ self._root)
        root = self._root[:-1] - np.outer(normal[:-1], across)
        self._root = np.delete(root, position, axis=1)
