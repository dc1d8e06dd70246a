"""Small positive definite matrices: factors that gain and lose rows, and inverses damped where they are singular."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pauca.clock import check_time

# Larger matrices are inverted in parts, between which the clock is checked.
WHOLE_UP_TO = 256


class InverseFactor:
    """A matrix M with ``M H M' = I``, so that ``H^-1 = M' M``; every change costs O(k^2), none starts over.

    Appending a row to H appends a row to M, which is then the inverse of the Cholesky factor of H. Deleting one
    turns M by a Householder reflection that leaves the deleted coordinate in a single row. M need not stay
    triangular: no use of it requires that, and reflections are as stable as Cholesky's own rotations.

    A factor never changes: each change makes a new one.

    All products are NumPy's. SciPy's LAPACK brings a second pool of BLAS threads, and two pools that wait for work by
    spinning make each other several times slower on calls as small as these.
    """

    def __init__(self, root: np.ndarray | None = None) -> None:
        self._root = np.zeros((0, 0)) if root is None else root
        self._diagonal: np.ndarray | None = None

    @classmethod
    def of(cls, matrix: np.ndarray) -> InverseFactor:
        """Factor of a whole matrix; raises ``numpy.linalg.LinAlgError`` unless it is positive definite."""
        return cls(_triangular_inverse(np.linalg.cholesky(matrix)))

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
        if self.size <= WHOLE_UP_TO:
            return self._root.T @ self._root
        found = np.empty_like(self._root)
        for start in range(0, self.size, WHOLE_UP_TO):
            check_time()
            part = slice(start, start + WHOLE_UP_TO)
            found[part] = self._root.T[part] @ self._root
        return found

    def inverse_diagonal(self) -> np.ndarray:
        """The diagonal of ``H^-1``; not to be written to."""
        if self._diagonal is None:
            self._diagonal = np.add.reduce(self._root * self._root, axis=0)
        return self._diagonal

    def inverse_column(self, position: int) -> np.ndarray:
        """One column of ``H^-1``."""
        return self._root[:, position] @ self._root

    def appended(self, cross: np.ndarray, diagonal: float, least: float) -> tuple[InverseFactor, np.ndarray, float]:
        """The factor of H bordered by one row, ``H^-1 cross``, and the Schur complement, at least ``least``."""
        k = len(self._root)
        if not k:
            schur = max(diagonal, least)
            return InverseFactor(np.array([[schur**-0.5]])), cross, schur
        half = self._root @ cross
        weights = half @ self._root
        schur = max(diagonal - float(half @ half), least)
        pivot = schur**-0.5
        root = np.zeros((k + 1, k + 1))
        root[:k, :k] = self._root
        root[k, :k] = -pivot * weights
        root[k, k] = pivot
        return InverseFactor(root), weights, schur

    def without(self, position: int) -> InverseFactor:
        """The factor of H without row and column ``position``."""
        # Reflect the deleted coordinate's column onto its last entry; the last row then holds all there is of it.
        others = np.arange(self.size) != position
        normal = self._root[:, position].copy()
        length = np.sqrt(normal @ normal)
        normal[-1] += np.copysign(length, normal[-1])
        rest = self._root[:, others]
        across = (2.0 / (normal @ normal)) * (normal @ rest)
        return InverseFactor(rest[:-1] - normal[:-1, None] * across)


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


def solve_or_nearest(matrices: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solutions of a stack of linear systems; the least ones where rounding has made a matrix singular.

    For estimates that rank: what they lead to is refitted before it counts.
    """
    try:
        return np.asarray(np.linalg.solve(matrices, right))
    except np.linalg.LinAlgError:
        finite = np.nan_to_num(matrices, nan=0.0, posinf=0.0, neginf=0.0)
        return np.asarray(np.linalg.pinv(finite) @ right)


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


def positive_inverse(matrices: np.ndarray) -> np.ndarray:
    """The inverses of a stack of positive definite matrices; raises ``numpy.linalg.LinAlgError`` if one is singular."""
    if matrices.shape[-1] <= WHOLE_UP_TO:
        return np.linalg.inv(matrices)
    return np.stack([InverseFactor.of(one).inverse() for one in matrices])


def inverse_or_nearest(matrices: np.ndarray) -> np.ndarray:
    """The same; the nearest to an inverse where rounding has made a matrix singular."""
    try:
        return positive_inverse(matrices)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(matrices, hermitian=True)


def _triangular_inverse(lower: np.ndarray) -> np.ndarray:
    """The inverse of a lower triangular matrix, by halves: a fourth of the work of one that is full."""
    if len(lower) <= WHOLE_UP_TO:
        return np.linalg.inv(lower)
    check_time()
    half = len(lower) // 2
    upper_left, lower_right = _triangular_inverse(lower[:half, :half]), _triangular_inverse(lower[half:, half:])
    found = np.zeros_like(lower)
    found[:half, :half], found[half:, half:] = upper_left, lower_right
    found[half:, :half] = -(lower_right @ lower[half:, :half]) @ upper_left
    return found
