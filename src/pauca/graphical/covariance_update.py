"""Inverses of precision matrices: by Cholesky's factor, and by updates when a few entries change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

# Rounding grows with every update; after so many the inverse should be computed afresh.
MOST_UPDATES = 50


class CholeskyFactor(NamedTuple):
    """The Cholesky factor of a positive definite matrix, and the logarithm of the determinant of the matrix."""

    lower: np.ndarray
    logdet: float

    def inverse(self) -> np.ndarray:
        """The inverse of the matrix; it overwrites the factor, which cannot be used again."""
        half, _ = dpotri(self.lower, lower=1, overwrite_c=1)
        below = np.tril(half, -1)
        made = below + below.T
        np.fill_diagonal(made, np.diagonal(half))
        return made


class Inverse(NamedTuple):
    """The inverse of a positive definite matrix, and the logarithm of the determinant of the matrix itself."""

    matrix: np.ndarray
    logdet: float


def cholesky(matrix: np.ndarray) -> CholeskyFactor | None:
    """The Cholesky factor; None unless the matrix is positive definite."""
    lower, failed = dpotrf(matrix, lower=1)
    return None if failed else CholeskyFactor(lower, 2.0 * float(np.log(np.diagonal(lower)).sum()))


def invert(matrix: np.ndarray) -> Inverse | None:
    """The inverse; None unless the matrix is positive definite."""
    factor = cholesky(matrix)
    return None if factor is None else Inverse(factor.inverse(), factor.logdet)


@dataclass(frozen=True, eq=False)
class ModelCovariance:
    """The inverse Sigma of a precision matrix Theta, and the logarithm of the determinant of Theta."""

    sigma: np.ndarray
    logdet: float
    n_updates: int = 0
    """How many updates have been made since Sigma was computed from a whole matrix."""

    @classmethod
    def of_precision(cls, theta: np.ndarray) -> ModelCovariance | None:
        """Sigma from a whole precision matrix; None unless it is positive definite."""
        found = invert(theta)
        return None if found is None else cls(*found)

    @property
    def may_update(self) -> bool:
        """Whether rounding allows a further update."""
        return self.n_updates < MOST_UPDATES

    def updated_between_parts(
        self, nodes: np.ndarray, after: np.ndarray, part: np.ndarray, logdet: float
    ) -> ModelCovariance | None:
        """Sigma once Theta changes among b nodes that nothing else connects with each other.

        Every other node is connected with one of them at most. ``Sigma_vw = Sigma_vc N_cd Sigma_dw`` if v is connected
        with c and w with another node d, N being the inverse of ``after``, and it does not change if both are connected
        with the same. That takes as many operations as Sigma has entries. None if ``after`` is not positive definite or
        two of the nodes lie in one part.

        ``after``, of shape (b, b), is the sum of all blocks among the nodes, as in the new Theta, and ``logdet`` the
        logarithm of its determinant; nodes that are connected without these blocks have the same label in ``part``.
        """
        factor = cholesky(after)
        position = np.full(len(part), -1)
        position[part[nodes]] = np.arange(len(nodes))
        contact = position[part]
        if factor is None or np.any(contact[nodes] != np.arange(len(nodes))):
            return None
        reached = np.flatnonzero(contact >= 0)
        contact = contact[reached]
        change = factor.inverse() - self.sigma[np.ix_(nodes, nodes)]
        np.fill_diagonal(change, 0.0)
        to_contact = self.sigma[reached, nodes[contact]]
        sigma = self.sigma.copy()
        sigma[np.ix_(reached, reached)] += np.multiply.outer(to_contact, to_contact) * change[np.ix_(contact, contact)]
        return ModelCovariance(sigma, logdet, self.n_updates + 1)

    def updated(self, nodes: np.ndarray, change: np.ndarray) -> ModelCovariance | None:
        """Sigma once ``change``, of shape (b, b), is added to Theta among b nodes; None unless it is definite.

        ``Sigma + G (N - Sigma_BB) G'`` with ``N = (Sigma_BB^-1 + change)^-1`` and ``G = Sigma_{:,B} Sigma_BB^-1``, B
        being the nodes: two matrices of b rows are inverted instead of one of p, and whatever is not connected with B
        stays as it is.
        """
        within = self.sigma[np.ix_(nodes, nodes)]
        before = invert(within)
        after = None if before is None else invert(before.matrix + change)
        if before is None or after is None:
            return None
        rows = self.sigma[nodes]
        reached = np.flatnonzero(rows.any(axis=0))
        weights = before.matrix @ rows[:, reached]
        added = weights.T @ (after.matrix - within) @ weights
        sigma = self.sigma.copy()
        sigma[np.ix_(reached, reached)] += 0.5 * (added + added.T)
        return ModelCovariance(sigma, self.logdet + after.logdet + before.logdet, self.n_updates + 1)
