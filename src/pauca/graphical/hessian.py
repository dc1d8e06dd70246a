"""Second derivatives of the likelihood in the entries that may differ from zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

# Conjugate gradients for a step of Newton's method end at this share of the gradient, or at the gradient itself if that
# is smaller, and take so many steps at most.
FIRST_SHARE = 0.1
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
    """The Hessian of Q, applied and never formed: a product costs as much as there are entries times nodes.

    Were all entries of Theta free, the inverse of the Hessian would take a matrix G to ``Theta G Theta``. Of that the
    entries of the pattern are sparse, and conjugate gradients that are scaled by them take half as many steps as with
    the diagonal.

    Parameters
    ----------
    pattern : Pattern
    theta : ndarray
        Entries of a precision matrix, for the scaling.
    """

    def __init__(self, pattern: Pattern, theta: np.ndarray) -> None:
        m, first, second = pattern.n_nodes, pattern.first, pattern.second
        self._pattern = pattern
        entry = np.concatenate([np.arange(len(first)), np.arange(m, len(first))])
        row, column = np.concatenate([first, second[m:]]), np.concatenate([second, first[m:]])
        matrix = csr_array((entry, (row, column)), shape=(m, m))
        # The entries of a direction change with every product, and where they stand does not.
        self._entry, self._direction = matrix.data, matrix.astype(np.float64)
        self._direction.data = theta[self._entry]
        both = np.arange(len(row))
        ones = np.ones(len(row))
        begin = csr_array((ones, (row, both)), shape=(m, len(row)))
        end = csr_array((ones, (column, both)), shape=(m, len(row)))
        # From an entry (i, j) to an entry (u, v), named in either order: Theta_iu Theta_vj.
        led = (self._direction[first] @ begin).multiply(self._direction[second] @ end)
        share = csr_array((1.0 / pattern.count[entry], (both, entry)), shape=(len(row), len(first)))
        self._scaling = csr_array(led @ share)

    def solve(self, sigma: np.ndarray, wanted: np.ndarray, share: float | None = None) -> np.ndarray:
        """What the Hessian takes to ``wanted``, up to a share of it: conjugate gradients.

        Parameters
        ----------
        sigma : ndarray of shape (m, m)
            The inverse of the precision matrix where the Hessian is meant.
        wanted : ndarray
        share : float or None
            None: that of a gradient in Newton's method, smaller the smaller the gradient.
        """
        at_first = np.take(sigma, self._pattern.first[self._pattern.n_nodes :], axis=1)
        found, residual = np.zeros_like(wanted), wanted
        scaled = self._scaling @ residual
        direction, left = scaled, float(residual @ scaled)
        share = min(FIRST_SHARE, float(np.sqrt(left))) if share is None else share
        enough = share**2 * left
        for _ in range(MOST_PRODUCTS):
            bent = self._product(sigma, at_first, direction)
            length = left / float(direction @ bent)
            found += length * direction
            residual = residual - length * bent
            scaled = self._scaling @ residual
            before, left = left, float(residual @ scaled)
            if left <= enough:
                break
            direction = scaled + (left / before) * direction
        return found

    def _product(self, sigma: np.ndarray, at_first: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """The Hessian times a direction: ``Sigma D Sigma`` at the entries."""
        self._direction.data = direction[self._entry]
        moved = self._direction @ sigma
        own = np.einsum("ke,ke->e", sigma, moved)
        edges = np.take(moved, self._pattern.second[self._pattern.n_nodes :], axis=1)
        between = np.einsum("ke,ke->e", at_first, edges)
        return np.asarray(self._pattern.count * np.concatenate([own, between]))
