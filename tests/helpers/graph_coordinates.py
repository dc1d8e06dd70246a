"""The likelihood of a graph as an objective for ``pauca.select``: the general search judges the one for graphs."""

import numpy as np

from pauca.graphical import objective
from pauca.graphical.covariance_update import ModelCovariance
from pauca.graphical.newton import hessian

# Sigma is updated from that of the last point if no more than this share of the nodes has changed.
FEW_NODES = 0.25


class GaussianGraph(objective.GaussianGraph):
    """Coordinates w are the diagonal of Theta, which is free, and its upper triangle row by row, one for each edge."""

    def __init__(self, covariance):
        super().__init__(covariance)
        p = self.n_nodes
        self.n_coords = p + len(self.edges)
        self.free = np.arange(p)
        self.start = np.concatenate([np.ones(p), np.zeros(len(self.edges))])
        self._last = self.start, ModelCovariance(np.eye(p), 0.0)

    def value(self, w):
        """Q, for the correlations; infinite unless the matrix is positive definite."""
        point = self._at(w)
        return np.inf if point is None else self._value(w, point)

    def gradient(self, w):
        """``S - Sigma`` on the diagonal, and twice that for every edge."""
        return self._gradient(self._inside(w))

    def value_and_gradient(self, w):
        """Both; an infinite value goes with a gradient that is not a number."""
        point = self._at(w)
        if point is None:
            return np.inf, np.full(self.n_coords, np.nan)
        return self._value(w, point), self._gradient(point)

    def curvature(self, w):
        """Second derivatives along the coordinates."""
        sigma = self.sigma(w)
        own = np.diagonal(sigma)
        return np.concatenate(
            [own**2, 2.0 * (own[self.edges.first] * own[self.edges.second] + self.edges.read(sigma) ** 2)]
        )

    def hessian(self, w, coords):
        """Second derivatives in some coordinates."""
        return hessian(self.sigma(w), *self._ends(np.asarray(coords, dtype=np.intp)))

    def gains(self, w):
        """By how much Q falls if an edge and the diagonal entries of its two ends move and nothing else.

        Zero for the diagonal, which is always in.
        """
        return np.concatenate([np.zeros(self.n_nodes), self.edge_gains(self.sigma(w))])

    def removal_costs(self, w, units):
        """By how much Q rises if the entry of an edge becomes zero and nothing else moves; edges are coordinates."""
        units = np.asarray(units, dtype=np.intp)
        return self.zero_costs(self.sigma(w), units - self.n_nodes, w[units])

    def refit(self, coords, start, tol=0.0):
        """The optimum on some coordinates, from an optimum on others; the diagonal is always among them.

        It is exact to rounding whatever ``tol`` allows, since Newton's last step costs as much as any other.
        """
        coords = np.unique(np.asarray(coords, dtype=np.intp))
        edges = coords[coords >= self.n_nodes] - self.n_nodes
        optimum = self.mle.fit(edges, lambda: self.sigma(start))
        w = np.zeros(self.n_coords)
        w[: self.n_nodes] = optimum.diagonal(self.n_nodes)
        w[self.n_nodes + edges] = optimum.entries(edges)
        return w

    def sigma(self, w):
        """The inverse of the precision matrix, for the correlations."""
        return self._inside(w).sigma

    def precision(self, w):
        """The precision matrix, for the covariance."""
        return self._theta(w) / np.multiply.outer(self.spread, self.spread)

    def covariance(self, w):
        """Its inverse."""
        return self.sigma(w) * np.multiply.outer(self.spread, self.spread)

    def _inside(self, w):
        point = self._at(w)
        if point is None:
            raise ValueError("The precision matrix must be positive definite.")
        return point

    def _at(self, w):
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

    def _value(self, w, point):
        p = self.n_nodes
        return float(w[:p].sum() + 2.0 * (self._between @ w[p:])) - point.logdet

    def _gradient(self, point):
        return np.concatenate([1.0 - np.diagonal(point.sigma), self.slopes(point.sigma)])

    def _theta(self, w):
        theta = np.zeros_like(self.correlation)
        theta[self.edges.first, self.edges.second] = w[self.n_nodes :]
        theta += theta.T
        np.fill_diagonal(theta, w[: self.n_nodes])
        return theta

    def _ends(self, coords):
        """Row and column of the entries of Theta that some coordinates stand for."""
        edges = np.maximum(coords - self.n_nodes, 0)
        diagonal = coords < self.n_nodes
        if not len(self.edges):
            return coords, coords
        return (
            np.where(diagonal, coords, self.edges.first[edges]),
            np.where(diagonal, coords, self.edges.second[edges]),
        )
