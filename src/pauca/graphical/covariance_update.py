"""The inverse of a precision matrix, which follows when a few entries move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pauca.graphical.cholesky import factored, invert

# Rounding grows with every move; after so many the inverse should be made anew.
MOST_MOVES = 50


@dataclass(frozen=True, eq=False)
class Point:
    """The inverse Sigma of a precision matrix Theta, and the logarithm of the determinant of Theta."""

    sigma: np.ndarray
    logdet: float
    moves: int = 0
    """How many moves it is away from a point that was made from a whole matrix."""

    @classmethod
    def of(cls, theta: np.ndarray) -> Point | None:
        """The point of a whole matrix; None unless it is positive definite."""
        found = invert(theta)
        return None if found is None else cls(*found)

    @property
    def may_move(self) -> bool:
        """Whether Sigma is near enough to one that was made from a whole matrix."""
        return self.moves < MOST_MOVES

    def rehung(self, nodes: np.ndarray, after: np.ndarray, part: np.ndarray, logdet: float) -> Point | None:
        """The point once Theta changes among b nodes that nothing else joins to each other.

        Whatever else hangs on one of them stays as it is seen from there: ``Sigma_vw = Sigma_vc N_cd Sigma_dw`` if v
        hangs on c and w on another node d, N being the inverse of ``after``, and it does not change if both hang on the
        same. That takes as many operations as Sigma has entries.

        Parameters
        ----------
        nodes : ndarray of shape (b,)
        after : ndarray of shape (b, b)
            The sum of all blocks among the nodes: what the new Theta says of them alone.
        part : ndarray of shape (p,)
            Numbers that are the same for nodes that are joined without the blocks among ``nodes``.
        logdet : float
            The logarithm of the determinant of the new Theta.
        """
        made = factored(after)
        place = np.full(len(part), -1)
        place[part[nodes]] = np.arange(len(nodes))
        hangs_on = place[part]
        if made is None or np.any(hangs_on[nodes] != np.arange(len(nodes))):
            return None
        reached = np.flatnonzero(hangs_on >= 0)
        on = hangs_on[reached]
        change = made.inverse() - self.sigma[np.ix_(nodes, nodes)]
        np.fill_diagonal(change, 0.0)
        seen = self.sigma[reached, nodes[on]]
        sigma = self.sigma.copy()
        sigma[np.ix_(reached, reached)] += np.multiply.outer(seen, seen) * change[np.ix_(on, on)]
        return Point(sigma, logdet, self.moves + 1)

    def moved(self, nodes: np.ndarray, change: np.ndarray) -> Point | None:
        """The point once ``change``, of shape (b, b), is added to Theta among b nodes; None if it is not definite.

        ``Sigma + G (N - Sigma_BB) G'`` with ``N = (Sigma_BB^-1 + change)^-1`` and ``G = Sigma_{:,B} Sigma_BB^-1``, B
        being the nodes: two matrices of b rows are inverted instead of one of p, and whatever no path joins to B stays
        as it is.
        """
        held = self.sigma[np.ix_(nodes, nodes)]
        before = invert(held)
        after = None if before is None else invert(before.matrix + change)
        if before is None or after is None:
            return None
        rows = self.sigma[nodes]
        reached = np.flatnonzero(rows.any(axis=0))
        pull = before.matrix @ rows[:, reached]
        added = pull.T @ (after.matrix - held) @ pull
        sigma = self.sigma.copy()
        sigma[np.ix_(reached, reached)] += 0.5 * (added + added.T)
        return Point(sigma, self.logdet + after.logdet + before.logdet, self.moves + 1)
