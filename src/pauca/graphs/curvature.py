"""Second derivatives of the likelihood in the entries that may differ from zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

# Conjugate gradients take so many steps at most.
MOST_PRODUCTS = 500


@dataclass(frozen=True, eq=False)
class Pattern:
    """The entries of a symmetric matrix that may differ from zero: the diagonal, then one for each edge.

    ``first`` and ``second`` are the row and column of each, ``count`` is how often it stands in the matrix.
    """

    n_nodes: int
    first: np.ndarray
    second: np.ndarray
    count: np.ndarray

    @classmethod
    def of(cls, n_nodes: int, first: np.ndarray, second: np.ndarray) -> Pattern:
        """The pattern of a graph with these edges."""
        every = np.arange(n_nodes)
        count = np.concatenate([np.ones(n_nodes), np.full(len(first), 2.0)])
        return cls(n_nodes, np.concatenate([every, first]), np.concatenate([every, second]), count)

    def read(self, matrix: np.ndarray) -> np.ndarray:
        """These entries of a matrix."""
        return matrix[self.first, self.second]

    def matrix(self, entries: np.ndarray) -> np.ndarray:
        """The symmetric matrix of these entries."""
        made = np.zeros((self.n_nodes, self.n_nodes))
        made[self.first, self.second] = entries
        made[self.second, self.first] = entries
        return made


def hessian(sigma: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Second derivatives ``tr(Sigma U Sigma V)`` of Q in entries; where ``first == second`` an entry is diagonal."""
    rows, columns = sigma[first], sigma[second]
    made = rows[:, first] * columns[:, second]
    made += rows[:, second] * columns[:, first]
    halved = np.where(first == second, 0.5, 1.0)
    made *= 2.0 * halved
    made *= halved[:, None]
    return made


class Curvature:
    """The Hessian of Q, applied and never formed: a product costs as much as there are entries times nodes."""

    def __init__(self, pattern: Pattern, sigma: np.ndarray) -> None:
        m, first, second = pattern.n_nodes, pattern.first, pattern.second
        self._count, self._sigma, self._edges = pattern.count, sigma, second[m:]
        self._at_first = np.take(sigma, first[m:], axis=1)
        self._scale = self.scale(pattern, sigma)
        places = np.concatenate([np.arange(len(first)), np.arange(m, len(first))])
        ends = np.concatenate([first, second[m:]]), np.concatenate([second, first[m:]])
        moved = csr_array((places, ends), shape=sigma.shape)
        # The entries change with every product, and where they stand does not.
        self._places, self._direction = moved.data, moved.astype(np.float64)

    @staticmethod
    def scale(pattern: Pattern, sigma: np.ndarray) -> np.ndarray:
        """The diagonal of the Hessian."""
        own = np.diagonal(sigma)
        return np.asarray(
            0.5 * pattern.count**2 * (own[pattern.first] * own[pattern.second] + pattern.read(sigma) ** 2)
        )

    def __call__(self, direction: np.ndarray) -> np.ndarray:
        """The Hessian times a direction: ``Sigma D Sigma`` at the entries."""
        self._direction.data = direction[self._places]
        moved = self._direction @ self._sigma
        own = np.einsum("ke,ke->e", self._sigma, moved)
        between = np.einsum("ke,ke->e", self._at_first, np.take(moved, self._edges, axis=1))
        return np.asarray(self._count * np.concatenate([own, between]))

    def solve(self, wanted: np.ndarray, share: float) -> np.ndarray:
        """What the Hessian takes to ``wanted``, up to a share of it: conjugate gradients, scaled by the diagonal."""
        found, residual = np.zeros_like(wanted), wanted
        scaled = residual / self._scale
        direction, left = scaled, float(residual @ scaled)
        enough = share**2 * left
        for _ in range(MOST_PRODUCTS):
            bent = self(direction)
            length = left / float(direction @ bent)
            found += length * direction
            residual = residual - length * bent
            scaled = residual / self._scale
            before, left = left, float(residual @ scaled)
            if left <= enough:
                break
            direction = scaled + (left / before) * direction
        return found
