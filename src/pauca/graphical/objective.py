"""The likelihood of a Gaussian graph: what every edge would gain, and what its removal would cost, in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

from pauca.graphical.covariance import LARGEST_ENTRY
from pauca.graphical.edges import Edges
from pauca.graphical.mle import MaximumLikelihood

# Edges are scored so many at a time: intermediate results stay in the cache, and memory does not grow.
EDGES_AT_A_TIME = 1 << 16


class GaussianGraph:
    """``Q(Theta) = -logdet Theta + tr(S Theta)`` over precision matrices: the likelihood of a graph for given data.

    Twice the negative mean log-likelihood of Gaussian rows, up to a constant: the covariance selection of Dempster
    (1972), and an example of Liu, Fujimaki and Ye (2014), section 1.

    S is scaled to a matrix of correlations first. That changes no choice and no answer: if Theta minimises Q for the
    correlations, ``Theta_ij / (s_i s_j)`` minimises it for the covariance, s being the standard deviations, and the two
    values differ by a constant.

    Attributes
    ----------
    edges : Edges
    correlation : ndarray of shape (p, p)
    spread : ndarray of shape (p,)
        Standard deviations.
    shift : float
        ``2 sum_i log s_i``: by how much Q for the covariance is above Q for the correlations.
    """

    def __init__(self, covariance: np.ndarray) -> None:
        self.spread = np.sqrt(np.diagonal(covariance))
        self.shift = 2.0 * float(np.log(self.spread).sum())
        self.correlation = covariance / np.multiply.outer(self.spread, self.spread)
        np.fill_diagonal(self.correlation, 1.0)
        self.n_nodes = len(self.spread)
        self.edges = Edges(self.n_nodes)
        self._between = self.edges.read(self.correlation)
        # Between nodes that are equal up to rounding a gain is large and finite: the edge is chosen, and then refused.
        self._log_unexplained = np.log(np.maximum(1.0 - self._between**2, 1.0 / LARGEST_ENTRY))
        self.mle = MaximumLikelihood(self.correlation, self.edges)

    def slopes(self, sigma: np.ndarray) -> np.ndarray:
        """Derivatives of Q along all edges, ``2 (S - Sigma)``."""
        made = self._between - self.edges.read(sigma)
        made *= 2.0
        return made

    def edge_gains(self, sigma: np.ndarray) -> np.ndarray:
        """For all edges in closed form, by how much Q falls if one moves, and with it the diagonal at its two ends."""
        own = np.ascontiguousarray(np.diagonal(sigma))
        found = np.empty(len(self.edges))
        for begin in range(0, len(found), EDGES_AT_A_TIME):
            part = slice(begin, begin + EDGES_AT_A_TIME)
            one, other = own[self.edges.first[part]], own[self.edges.second[part]]
            a = self.edges.read(sigma, part)
            s, log_unexplained = self._between[part], self._log_unexplained[part]
            found[part] = edge_gain(a, s, one * other - a * a, one + other, log_unexplained)
        return found

    def zero_costs(self, sigma: np.ndarray, edges: np.ndarray, entries: np.ndarray) -> np.ndarray:
        """For some edges with their entries, by how much Q rises if one of them becomes zero and nothing else moves."""
        first, second = self.edges.first[edges], self.edges.second[edges]
        a = sigma[first, second]
        determinant = sigma[first, first] * sigma[second, second] - a * a
        return entry_change(-entries, a, self._between[edges], determinant)


def edge_gain(
    a: np.ndarray, s: np.ndarray, determinant: np.ndarray, trace: np.ndarray, log_unexplained: np.ndarray
) -> np.ndarray:
    """By how much Q falls at most if an edge moves, and with it the two diagonal entries of its ends, elementwise.

    Here and below ``a = Sigma_ij``, ``s = S_ij``, ``determinant = Sigma_ii Sigma_jj - a^2``, and S has a diagonal of
    ones; ``trace = Sigma_ii + Sigma_jj`` and ``log_unexplained = log(1 - s^2)``.

    The best step makes ``Sigma`` equal S on the two nodes (iterative proportional scaling, Speed and Kiiveri 1986) and
    gains ``tr(S Sigma^-1) - logdet(S Sigma^-1) - 2`` of the two-by-two blocks. That is at least what the entry gains
    alone, at most what a refit of all entries gains, and equal to the latter where no path connects the two nodes.
    """
    return (trace - 2.0 * s * a) / determinant - 2.0 - log_unexplained + np.log(determinant)


def entry_change(t: np.ndarray, a: np.ndarray, s: np.ndarray, determinant: np.ndarray) -> np.ndarray:
    """By how much Q changes if t is added to the entries (i, j) and (j, i); infinite where Theta is definite no longer.

    ``-log((1 + t a)^2 - t^2 Sigma_ii Sigma_jj) + 2 t s``.
    """
    grown = t * (2.0 * a - t * determinant)
    # The determinant of Theta is positive once more where two eigenvalues have changed their signs.
    definite = (grown > -1.0) & (t * a > -1.0)
    return np.where(definite, 2.0 * t * s - np.log1p(np.where(definite, grown, 0.0)), np.inf)


def least_cost(estimate: Any) -> Any:
    """The least that the removal of an edge can cost if it costs ``estimate`` to second order; a rising function.

    An entry that becomes zero moves Theta by at least ``l = sqrt(2 estimate)`` in the norm of the Hessian at the
    optimum, and Q, being self-concordant, rises by at least ``l - log(1 + l)`` (Nesterov and Nemirovskii 1994).
    """
    length = np.sqrt(2.0 * estimate)
    return length - np.log1p(length)
