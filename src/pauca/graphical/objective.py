"""The likelihood of a Gaussian graph as an objective over the entries of its precision matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pauca.graphical.covariance import LARGEST_ENTRY
from pauca.graphical.covariance_update import ModelCovariance
from pauca.graphical.edges import Edges
from pauca.graphical.mle import MaximumLikelihood
from pauca.graphical.newton import hessian

# Edges are scored so many at a time: intermediate results stay in the cache, and memory does not grow.
EDGES_AT_A_TIME = 1 << 16

# Entries of a covariance that mirror each other differ by no more than this, in units of correlations.
ASYMMETRY = 1e-8

# Sigma is updated from that of the last point if no more than this share of the nodes has changed.
FEW_NODES = 0.25


class GaussianGraph:
    """``Q(Theta) = -logdet Theta + tr(S Theta)`` over the diagonal and the edges of a graph.

    Twice the negative mean log-likelihood of Gaussian rows, up to a constant: the covariance selection of Dempster
    (1972), and an example of Liu, Fujimaki and Ye (2014), section 1. The coordinates ``w`` are the diagonal of Theta,
    which is free, and its upper triangle, row by row: one for each edge. Q is infinite unless Theta is positive
    definite.

    S is scaled to a matrix of correlations first. That changes no choice and no answer: if Theta minimises Q for the
    correlations, ``Theta_ij / (s_i s_j)`` minimises it for the covariance, s being the standard deviations, and the two
    values differ by a constant.

    Parameters
    ----------
    covariance : ndarray of shape (p, p)
        Symmetric, with a positive diagonal; refused otherwise.

    Attributes
    ----------
    n_coords : int
        ``p + p (p - 1) / 2``.
    free : ndarray of shape (p,)
        The coordinates of the diagonal.
    start : ndarray of shape (n_coords,)
        The optimum without edges.
    edges : Edges
    correlation : ndarray of shape (p, p)
    spread : ndarray of shape (p,)
        Standard deviations.
    shift : float
        ``2 sum_i log s_i``: by how much Q for the covariance is above Q for the correlations.

    Examples
    --------
    >>> import numpy as np
    >>> from pauca.graphical.objective import GaussianGraph
    >>> graph = GaussianGraph(np.array([[4.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]]))
    >>> best = int(graph.gains(graph.start).argmax())
    >>> graph.edges.pair(best - graph.n_nodes)
    (0, 1)
    >>> w = graph.refit([best], graph.start)
    >>> graph.covariance(w).round(3)
    array([[4., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """

    def __init__(self, covariance: np.ndarray) -> None:
        _check_shape(covariance)
        self.spread = np.sqrt(np.diagonal(covariance))
        self.shift = 2.0 * float(np.log(self.spread).sum())
        self.correlation = covariance / np.multiply.outer(self.spread, self.spread)
        np.fill_diagonal(self.correlation, 1.0)
        _check_symmetry(self.correlation, covariance)
        p = len(self.spread)
        self.edges = Edges(p)
        self.n_coords = p + len(self.edges)
        self.free = np.arange(p)
        self.start = np.concatenate([np.ones(p), np.zeros(len(self.edges))])
        self._between = self.edges.read(self.correlation)
        # Between nodes that are equal up to rounding a gain is large and finite: the edge is chosen, and then refused.
        self._log_unexplained = np.log(np.maximum(1.0 - self._between**2, 1.0 / LARGEST_ENTRY))
        self.mle = MaximumLikelihood(self.correlation, self.edges)
        self._last = self.start, ModelCovariance(np.eye(p), 0.0)

    @property
    def n_nodes(self) -> int:
        """Number of nodes p."""
        return len(self.free)

    def value(self, w: np.ndarray) -> float:
        """Q, for the correlations; infinite unless the matrix is positive definite."""
        point = self._at(w)
        return np.inf if point is None else self._value(w, point)

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """``S - Sigma`` on the diagonal, and twice that for every edge."""
        return self._gradient(self._inside(w))

    def value_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Both; an infinite value goes with a gradient that is not a number."""
        point = self._at(w)
        if point is None:
            return np.inf, np.full(self.n_coords, np.nan)
        return self._value(w, point), self._gradient(point)

    def curvature(self, w: np.ndarray) -> np.ndarray:
        """Second derivatives along the coordinates."""
        sigma = self.sigma(w)
        own = np.diagonal(sigma)
        return np.concatenate([own**2, 2.0 * (self.edges.products(own) + self.edges.read(sigma) ** 2)])

    def hessian(self, w: np.ndarray, coords: Sequence[int] | np.ndarray) -> np.ndarray:
        """Second derivatives in some coordinates."""
        return hessian(self.sigma(w), *self._ends(np.asarray(coords, dtype=np.intp)))

    def gains(self, w: np.ndarray) -> np.ndarray:
        """By how much Q falls if an edge and the diagonal entries of its two ends move and nothing else.

        Zero for the diagonal, which is always in.
        """
        return np.concatenate([np.zeros(self.n_nodes), self.edge_gains(self.sigma(w))])

    def removal_costs(self, w: np.ndarray, units: Sequence[int] | np.ndarray) -> np.ndarray:
        """By how much Q rises if the entry of an edge becomes zero and nothing else moves; edges are coordinates."""
        units = np.asarray(units, dtype=np.intp)
        return self.zero_costs(self.sigma(w), units - self.n_nodes, w[units])

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

    def refit(self, coords: Sequence[int] | np.ndarray, start: np.ndarray, tol: float = 0.0) -> np.ndarray:
        """The optimum on some coordinates, from an optimum on others; the diagonal is always among them.

        It is exact to rounding whatever ``tol`` allows, since Newton's last step costs as much as any other.

        Raises
        ------
        NoMaximumError
            If there is none, as the correlations of some nodes are singular up to rounding.
        """
        coords = np.unique(np.asarray(coords, dtype=np.intp))
        edges = coords[coords >= self.n_nodes] - self.n_nodes
        optimum = self.mle.fit(edges, lambda: self.sigma(start))
        w = np.zeros(self.n_coords)
        w[: self.n_nodes] = optimum.diagonal(self.n_nodes)
        w[self.n_nodes + edges] = optimum.entries(edges)
        return w

    def sigma(self, w: np.ndarray) -> np.ndarray:
        """The inverse of the precision matrix, for the correlations."""
        return self._inside(w).sigma

    def precision(self, w: np.ndarray) -> np.ndarray:
        """The precision matrix, for the covariance."""
        return self._theta(w) / np.multiply.outer(self.spread, self.spread)

    def covariance(self, w: np.ndarray) -> np.ndarray:
        """Its inverse."""
        return self.sigma(w) * np.multiply.outer(self.spread, self.spread)

    def _inside(self, w: np.ndarray) -> ModelCovariance:
        point = self._at(w)
        if point is None:
            raise ValueError("The precision matrix must be positive definite.")
        return point

    def _at(self, w: np.ndarray) -> ModelCovariance | None:
        """The covariance of some coordinates, by an update if few nodes have changed; None unless it is definite."""
        before, last = self._last
        changed = np.flatnonzero(w != before)
        if not len(changed):
            return last
        first, second = self._ends(changed)
        nodes, ends = np.unique(np.concatenate([first, second]), return_inverse=True)
        if last.may_update and len(nodes) <= FEW_NODES * self.n_nodes:
            one, other = np.split(ends, 2)
            change = np.zeros((len(nodes), len(nodes)))
            change[one, other] = change[other, one] = w[changed] - before[changed]
            point = last.updated(nodes, change)
        else:
            point = ModelCovariance.of_precision(self._theta(w))
        if point is not None:
            self._last = w.copy(), point
        return point

    def _value(self, w: np.ndarray, point: ModelCovariance) -> float:
        p = self.n_nodes
        return float(w[:p].sum() + 2.0 * (self._between @ w[p:])) - point.logdet

    def _gradient(self, point: ModelCovariance) -> np.ndarray:
        return np.concatenate([1.0 - np.diagonal(point.sigma), self.slopes(point.sigma)])

    def _theta(self, w: np.ndarray) -> np.ndarray:
        theta = np.zeros_like(self.correlation)
        theta[self.edges.first, self.edges.second] = w[self.n_nodes :]
        theta += theta.T
        np.fill_diagonal(theta, w[: self.n_nodes])
        return theta

    def _ends(self, coords: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of the entries of Theta that some coordinates stand for."""
        edges = np.maximum(coords - self.n_nodes, 0)
        diagonal = coords < self.n_nodes
        if not len(self.edges):
            return coords, coords
        return (
            np.where(diagonal, coords, self.edges.first[edges]),
            np.where(diagonal, coords, self.edges.second[edges]),
        )


def edge_gain(
    a: np.ndarray, s: np.ndarray, determinant: np.ndarray, trace: np.ndarray, log_unexplained: np.ndarray
) -> np.ndarray:
    """By how much Q falls at most if an edge moves, and with it the two diagonal entries of its ends, elementwise.

    Here and below ``a = Sigma_ij``, ``s = S_ij`` and ``determinant = Sigma_ii Sigma_jj - a^2``, and S has a diagonal of
    ones.

    The best step makes ``Sigma`` equal S on the two nodes (iterative proportional scaling, Speed and Kiiveri 1986) and
    gains ``tr(S Sigma^-1) - logdet(S Sigma^-1) - 2`` of the two-by-two blocks. That is at least what the entry gains
    alone, at most what a refit of all entries gains, and equal to the latter where no path connects the two nodes.

    Parameters
    ----------
    trace : ``Sigma_ii + Sigma_jj``
    log_unexplained : ``log(1 - s^2)``
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


def _check_shape(covariance: np.ndarray) -> None:
    if np.ndim(covariance) != 2 or len(covariance) != len(np.transpose(covariance)):
        raise ValueError(f"A covariance must be a square matrix; its shape is {np.shape(covariance)}.")
    bad = np.flatnonzero(~(np.diagonal(covariance) > 0))
    if len(bad):
        raise ValueError(f"Variances must be positive; that of column {bad[0]} is {covariance[bad[0], bad[0]]}.")


def _check_symmetry(correlation: np.ndarray, covariance: np.ndarray) -> None:
    mirrored = np.abs(correlation - correlation.T) <= ASYMMETRY
    if not mirrored.all():
        i, j = np.argwhere(~mirrored)[0].tolist()
        raise ValueError(
            f"A covariance must be symmetric; entry ({i}, {j}) is {covariance[i, j]}, and entry ({j}, {i}) is "
            f"{covariance[j, i]}."
        )
