"""Maxima of the likelihood for sets of edges: each block is fitted once, and a graph is the sum of its blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pauca.graphs.blocks import blocks
from pauca.graphs.definite import invert
from pauca.graphs.edges import Edges
from pauca.graphs.errors import NoMaximumError
from pauca.graphs.fit import FORMED_UP_TO, LARGEST_ENTRY, fit_block, hessian

# So many blocks with cycles are remembered.
BLOCKS_KEPT = 4096


@dataclass(frozen=True, eq=False)
class Block:
    """The optimum on the edges of one block, for its nodes alone."""

    edges: tuple[int, ...]
    """Ascending numbers."""
    nodes: np.ndarray
    """Ascending, shape (m,)."""
    first: np.ndarray
    second: np.ndarray
    """Ends of the edges, as positions among the nodes."""
    theta: np.ndarray
    """The precision matrix, shape (m, m)."""
    logdet: float
    """The logarithm of its determinant: by how much the block lowers Q."""

    @cached_property
    def removal_costs(self) -> np.ndarray:
        """By how much Q rises, to second order, if an edge is left out and the rest is refitted; exact for one edge.

        ``theta_e^2 / 2 A_ee``, A being the inverse of the Hessian on the entries of the block. If that is large, that
        of all entries takes its place, ``Theta_ii Theta_jj + Theta_ij^2``: the costs are too low then, never too high.
        """
        if len(self.edges) == 1:
            return np.array([self.logdet])
        m, entries = len(self.nodes), self.theta[self.first, self.second]
        own = np.diagonal(self.theta)
        variance = own[self.first] * own[self.second] + entries**2
        if m + len(entries) <= FORMED_UP_TO and (sigma := invert(self.theta)) is not None:
            ends = (np.concatenate([np.arange(m), some]) for some in (self.first, self.second))
            inverse = invert(hessian(sigma.matrix, *ends))
            variance = variance if inverse is None else np.diagonal(inverse.matrix)[m:]
        return 0.5 * entries**2 / variance


@dataclass(frozen=True, eq=False)
class Optimum:
    """The optimum on a set of edges: ``Theta = I + sum over blocks (Theta_B - I)``, for correlations."""

    blocks: dict[tuple[int, ...], Block]
    value: float

    def diagonal(self, n_nodes: int) -> np.ndarray:
        """The diagonal of Theta."""
        made = np.ones(n_nodes)
        for block in self.blocks.values():
            made[block.nodes] += np.diagonal(block.theta) - 1.0
        return made

    def entries(self, edges: Iterable[int]) -> np.ndarray:
        """The entries of Theta at its edges."""
        entry = {
            edge: value
            for block in self.blocks.values()
            for edge, value in zip(block.edges, block.theta[block.first, block.second].tolist(), strict=True)
        }
        return np.array([entry[edge] for edge in edges])

    def theta(self, n_nodes: int) -> np.ndarray:
        """The whole precision matrix."""
        made = np.eye(n_nodes)
        for block in self.blocks.values():
            _add(made, block.nodes, block, 1.0)
        return made

    def change_from(self, other: Optimum) -> tuple[np.ndarray, np.ndarray]:
        """The nodes among which Theta differs from another optimum's, and by how much."""
        came = [block for key, block in self.blocks.items() if key not in other.blocks]
        went = [block for key, block in other.blocks.items() if key not in self.blocks]
        nodes = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *(block.nodes for block in (*came, *went))]))
        change = np.zeros((len(nodes), len(nodes)))
        for block in came:
            _add(change, np.searchsorted(nodes, block.nodes), block, 1.0)
        for block in went:
            _add(change, np.searchsorted(nodes, block.nodes), block, -1.0)
        return nodes, change


class Maxima:
    """Where the likelihood is largest, by sets of edges.

    A node that holds two parts of a graph together makes them independent given its value, and what the data say of one
    node every fit repeats. So the parts are fitted one by one (Lauritzen 1996, section 5.3): with one more edge only
    the block is new that the edge closes a cycle in, and an edge on no cycle has a closed form.

    Parameters
    ----------
    correlation : ndarray of shape (p, p)
    edges : Edges
    """

    def __init__(self, correlation: np.ndarray, edges: Edges) -> None:
        self._correlation = correlation
        self._edges = edges
        self._single: dict[int, Block] = {}
        self._cyclic: dict[tuple[int, ...], Block] = {}

    def of(self, chosen: Iterable[int], sigma: Callable[[], np.ndarray]) -> Optimum:
        """The optimum on some edges; ``sigma`` gives the inverse of a precision matrix near it, if that is wanted.

        Raises
        ------
        NoMaximumError
            If there is none, since the correlations of some nodes are as good as singular.
        """
        numbers = np.sort(np.fromiter(chosen, dtype=np.intp))
        first, second = self._edges.first[numbers], self._edges.second[numbers]
        found = {}
        for positions in blocks(first, second):
            key = tuple(sorted(numbers[positions].tolist()))
            found[key] = self._one(key[0]) if len(key) == 1 else self._several(key, sigma)
        return Optimum(found, len(self._correlation) - sum(block.logdet for block in found.values()))

    def _one(self, edge: int) -> Block:
        if edge not in self._single:
            nodes = np.array(self._edges.pair(edge))
            r = float(self._correlation[nodes[0], nodes[1]])
            left = (1.0 - r) * (1.0 + r)
            if left * LARGEST_ENTRY < 1.0:
                raise NoMaximumError(nodes)
            theta = np.array([[1.0, -r], [-r, 1.0]]) / left
            self._single[edge] = Block((edge,), nodes, np.array([0]), np.array([1]), theta, -float(np.log(left)))
        return self._single[edge]

    def _several(self, edges: tuple[int, ...], sigma: Callable[[], np.ndarray]) -> Block:
        if edges not in self._cyclic:
            ends = np.concatenate([self._edges.first[list(edges)], self._edges.second[list(edges)]])
            nodes, places = np.unique(ends, return_inverse=True)
            first, second = np.split(places, 2)
            held = np.ix_(nodes, nodes)
            # What a fit says of a part of its nodes is the inverse of their part of Sigma.
            near = invert(sigma()[held])
            start = np.eye(len(nodes)) if near is None else near.matrix
            try:
                theta, logdet = fit_block(self._correlation[held], first, second, start)
            except NoMaximumError as error:
                raise NoMaximumError(nodes[error.nodes]) from None
            if len(self._cyclic) >= BLOCKS_KEPT:
                del self._cyclic[next(iter(self._cyclic))]
            self._cyclic[edges] = Block(edges, nodes, first, second, theta, logdet)
        return self._cyclic[edges]


def _add(matrix: np.ndarray, places: np.ndarray, block: Block, times: float) -> None:
    """Add what a block adds to the identity."""
    matrix[np.ix_(places, places)] += times * block.theta
    matrix[places, places] -= times
