"""Maximum likelihood for sets of edges: each block is fitted once, and a graph is the sum of its blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from pauca.graphical.blocks import SingleEdges, blocks, shortest_path
from pauca.graphical.covariance import NoMaximumError
from pauca.graphical.covariance_update import invert
from pauca.graphical.edges import Edges
from pauca.graphical.newton import HessianOperator, Pattern, Start, fit_block, hessian

# So many blocks with cycles are cached.
BLOCKS_KEPT = 4096

# The inverse of a Hessian is formed for blocks of up to so many entries, for what removals cost.
INVERTED_UP_TO = 400

# Conjugate gradients for the cost of a removal end at this share of the first residual.
REMOVAL_COST_TOLERANCE = 1e-2


@dataclass(frozen=True, eq=False)
class Block:
    """The optimum on the edges of one block with cycles, for its nodes alone."""

    edges: tuple[int, ...]
    """Ascending numbers."""
    nodes: np.ndarray
    """Ascending, shape (m,)."""
    pattern: Pattern
    """Its entries, by positions among the nodes."""
    values: np.ndarray
    """The entries of the precision matrix: the diagonal, then one for each edge."""
    logdet: float
    """The logarithm of its determinant: by how much the block lowers Q."""

    @property
    def diagonal(self) -> np.ndarray:
        """The diagonal of the precision matrix."""
        return self.values[: len(self.nodes)]

    @property
    def entries(self) -> np.ndarray:
        """The entries of the edges."""
        return self.values[len(self.nodes) :]

    @property
    def theta(self) -> np.ndarray:
        """The precision matrix, shape (m, m)."""
        return self.pattern.matrix(self.values)

    @property
    def is_small(self) -> bool:
        """Whether what removals cost is known to second order; else it is put too low."""
        return len(self.values) <= INVERTED_UP_TO

    @cached_property
    def removal_costs(self) -> np.ndarray:
        """By how much Q rises, to second order, if an edge is left out and the rest is refitted.

        ``theta_e^2 / 2 A_ee``, A being the inverse of the Hessian on the entries of the block. If that is large, that
        of all entries takes its place, ``(Theta_ii Theta_jj + Theta_ij^2) / 2``: the costs are too low then, never too
        high.
        """
        m, entries = len(self.nodes), self.entries
        variance = 0.5 * (self.diagonal[self.pattern.first[m:]] * self.diagonal[self.pattern.second[m:]] + entries**2)
        if self.is_small and (sigma := invert(self.theta)) is not None:
            inverse = invert(hessian(sigma.matrix, self.pattern.first, self.pattern.second))
            variance = variance if inverse is None else np.diagonal(inverse.matrix)[m:]
        return 0.5 * entries**2 / variance

    def refined_removal_costs(self, edges: Iterable[int], sigma: np.ndarray) -> dict[int, float]:
        """The same for some edges of a large block, with ``A_ee`` itself; ``sigma`` is the inverse of Theta."""
        curved, found = HessianOperator(self.pattern, self.values), {}
        for edge in edges:
            position = len(self.nodes) + self.edges.index(edge)
            variance = curved.solve(sigma, _unit(len(self.values), position), REMOVAL_COST_TOLERANCE)[position]
            found[edge] = float(0.5 * self.values[position] ** 2 / variance)
        return found

    def values_without(self, edge: int, sigma: np.ndarray) -> np.ndarray:
        """Entries to start the fit without an edge from: ``Theta - theta_e A_e / A_ee`` if that saves steps."""
        position = len(self.nodes) + self.edges.index(edge)
        made = self.values.copy()
        if not self.is_small:
            step = HessianOperator(self.pattern, self.values).solve(
                sigma, _unit(len(self.values), position), REMOVAL_COST_TOLERANCE
            )
            made -= self.values[position] / step[position] * step
        made[position] = 0.0
        return made


class Change(NamedTuple):
    """How the optimum on some edges differs from that on others."""

    nodes: np.ndarray
    """Where Theta differs, ascending, shape (b,)."""
    before: np.ndarray
    after: np.ndarray
    """The sums of the blocks that differ, shape (b, b)."""
    kept: np.ndarray
    """Numbers of the edges in all other blocks."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """The optimum on a set of edges: ``Theta = I + sum over blocks (Theta_B - I)``, for correlations."""

    tree: SingleEdges
    single: np.ndarray
    """Numbers of the edges on no cycle, ascending."""
    cyclic: dict[tuple[int, ...], Block]
    """Blocks with cycles, by their edges."""
    value: float

    @cached_property
    def edges(self) -> np.ndarray:
        """Numbers of all edges, block by block."""
        return np.concatenate([self.single, *(np.array(key) for key in self.cyclic)]).astype(np.intp)

    def block(self, edge: int) -> Block | None:
        """The block with cycles that an edge lies in; None if it lies on no cycle."""
        return next((block for key, block in self.cyclic.items() if edge in key), None)

    def diagonal(self, n_nodes: int) -> np.ndarray:
        """The diagonal of Theta."""
        raised = self.tree.diagonal(self.single)
        first, second = self.tree.ends(self.single)
        made = 1.0 + np.bincount(first, raised, n_nodes) + np.bincount(second, raised, n_nodes)
        for block in self.cyclic.values():
            made[block.nodes] += block.diagonal - 1.0
        return np.asarray(made)

    def entries(self, edges: Sequence[int] | np.ndarray) -> np.ndarray:
        """The entries of Theta at some of its edges."""
        return self._at(edges, self.tree.entries(self.single), *(block.entries for block in self.cyclic.values()))

    def removal_costs(self, edges: Sequence[int] | np.ndarray) -> np.ndarray:
        """What the removal of some of its edges costs to second order; exact for edges on no cycle."""
        costs = (block.removal_costs for block in self.cyclic.values())
        return self._at(edges, self.tree.logdets(self.single), *costs)

    def theta(self, n_nodes: int) -> np.ndarray:
        """The whole precision matrix."""
        return _assembled(self.tree, np.arange(n_nodes), self.single, self.cyclic.values())

    def change_from(self, other: Optimum) -> Change:
        """Where and how Theta differs from another optimum's."""
        kept = np.intersect1d(self.single, other.single, assume_unique=True)
        same = self.cyclic.keys() & other.cyclic.keys()
        changed = []
        for one in (other, self):
            single = np.setdiff1d(one.single, kept, assume_unique=True)
            cyclic = [block for key, block in one.cyclic.items() if key not in same]
            changed.append((single, cyclic))
        nodes = np.unique(np.concatenate([_nodes(self.tree, *some) for some in changed]))
        before, after = (_assembled(self.tree, nodes, *some) for some in changed)
        return Change(nodes, before, after, np.concatenate([kept, *(np.array(key) for key in same)]).astype(np.intp))

    def _at(self, edges: Sequence[int] | np.ndarray, *values: np.ndarray) -> np.ndarray:
        """Values of all edges, block by block, read at some of them."""
        order = np.argsort(self.edges)
        return np.concatenate(values)[order[np.searchsorted(self.edges[order], edges)]]


class MaximumLikelihood:
    """Maximum likelihood estimates, by sets of edges.

    A node that alone connects two parts of a graph makes them independent given its value, and every fit has the
    variances of the data. So the parts are fitted one by one (Lauritzen 1996, section 5.3): with one more edge only
    the block is new that the edge closes a cycle in, and an edge on no cycle has a closed form.
    """

    def __init__(self, correlation: np.ndarray, edges: Edges) -> None:
        self._correlation = correlation
        self._edges = edges
        self._tree = SingleEdges(correlation, edges)
        self._cyclic: dict[tuple[int, ...], Block] = {}

    def fit(self, chosen: Iterable[int], sigma: Callable[[], np.ndarray]) -> Optimum:
        """The optimum on some edges; ``sigma`` gives the inverse of a precision matrix near it, if needed.

        Raises ``NoMaximumError`` if there is none, as the correlations of some nodes are singular up to rounding.
        """
        numbers = np.sort(np.fromiter(chosen, dtype=np.intp))
        return self._of_blocks([numbers[positions] for positions in blocks(*self._tree.ends(numbers))], sigma)

    def with_edge(self, optimum: Optimum, edge: int, sigma: Callable[[], np.ndarray]) -> Optimum:
        """The optimum with one more edge; ``sigma`` gives the inverse of Theta at the optimum without it.

        The edge closes a cycle with any path between its two ends, and the blocks along that path become one.
        """
        one, other = self._edges.pair(edge)
        path = shortest_path(self._edges.n_nodes, *self._tree.ends(optimum.edges), one, other)
        if path is None:
            return self._sum(np.sort(np.append(optimum.single, edge)), optimum.cyclic)
        along = {self._edges.number(i, j) for i, j in pairwise(path)}
        joined = {key: block for key, block in optimum.cyclic.items() if not along.isdisjoint(key)}
        single = np.array(sorted(along.difference(*joined)), dtype=np.intp)
        key = tuple(sorted([edge, *single.tolist(), *chain.from_iterable(joined)]))

        def start(nodes: np.ndarray) -> Start:
            theta = _assembled(self._tree, nodes, single, joined.values())
            logdet = math.fsum(self._logdets(single, joined.values()))
            return Start(theta, sigma()[np.ix_(nodes, nodes)], logdet)

        cyclic = {other: block for other, block in optimum.cyclic.items() if other not in joined}
        cyclic[key] = self._cyclic_block(key, start)
        return self._sum(np.setdiff1d(optimum.single, single, assume_unique=True), cyclic)

    def without_edge(self, optimum: Optimum, edge: int, sigma: Callable[[], np.ndarray]) -> Optimum:
        """The optimum with one edge less: its own block falls apart or is fitted again."""
        block = optimum.block(edge)
        if block is None:
            return self._sum(optimum.single[optimum.single != edge], optimum.cyclic)
        rest = self.block_without_edge(block, edge, sigma)
        cyclic = {key: other for key, other in optimum.cyclic.items() if other is not block} | rest.cyclic
        return self._sum(np.union1d(optimum.single, rest.single), cyclic)

    def block_without_edge(self, block: Block, edge: int, sigma: Callable[[], np.ndarray]) -> Optimum:
        """The optimum on the edges of one block but for one, all other nodes being alone."""
        others = np.array([other for other in block.edges if other != edge], dtype=np.intp)
        found = blocks(*self._tree.ends(others))
        if len(found) > 1:
            return self._of_blocks([others[positions] for positions in found], sigma)

        def start(nodes: np.ndarray) -> Start:
            return Start(block.pattern.matrix(block.values_without(edge, sigma()[np.ix_(nodes, nodes)])))

        key = tuple(others.tolist())
        return self._sum(np.zeros(0, dtype=np.intp), {key: self._cyclic_block(key, start)})

    def _of_blocks(self, found: list[np.ndarray], sigma: Callable[[], np.ndarray]) -> Optimum:
        """The optimum on blocks, each given by the numbers of its edges."""
        single = np.sort(np.array([edges[0] for edges in found if len(edges) == 1], dtype=np.intp))
        keys = [tuple(edges.tolist()) for edges in found if len(edges) > 1]
        return self._sum(
            single, {key: self._cyclic_block(key, lambda nodes: self._start_near(nodes, sigma())) for key in keys}
        )

    def _sum(self, single: np.ndarray, cyclic: dict[tuple[int, ...], Block]) -> Optimum:
        value = len(self._correlation) - math.fsum(self._logdets(single, cyclic.values()))
        return Optimum(self._tree, single, cyclic, value)

    def _logdets(self, single: np.ndarray, cyclic: Iterable[Block]) -> Iterable[float]:
        return chain(self._tree.logdets(single).tolist(), (block.logdet for block in cyclic))

    def _cyclic_block(self, edges: tuple[int, ...], start: Callable[[np.ndarray], Start]) -> Block:
        """The block of some edges, fitted from what ``start`` gives for its nodes."""
        if edges not in self._cyclic:
            nodes, positions = np.unique(np.concatenate(self._tree.ends(np.array(edges))), return_inverse=True)
            first, second = np.split(positions, 2)
            try:
                theta, logdet = fit_block(self._correlation[np.ix_(nodes, nodes)], first, second, start(nodes))
            except NoMaximumError as error:
                raise NoMaximumError(nodes[error.nodes]) from None
            if len(self._cyclic) >= BLOCKS_KEPT:
                del self._cyclic[next(iter(self._cyclic))]
            pattern = Pattern.of(len(nodes), first, second)
            self._cyclic[edges] = Block(edges, nodes, pattern, pattern.read(theta), logdet)
        return self._cyclic[edges]

    @staticmethod
    def _start_near(nodes: np.ndarray, sigma: np.ndarray) -> Start:
        """The precision of some nodes alone is the inverse of their part of Sigma."""
        near = invert(sigma[np.ix_(nodes, nodes)])
        return Start(np.eye(len(nodes)) if near is None else near.matrix)


def _unit(size: int, position: int) -> np.ndarray:
    made = np.zeros(size)
    made[position] = 1.0
    return made


def _nodes(tree: SingleEdges, single: np.ndarray, cyclic: Iterable[Block]) -> np.ndarray:
    """The nodes of some blocks, as often as they occur."""
    return np.concatenate([*tree.ends(single), *(block.nodes for block in cyclic)])


def _assembled(tree: SingleEdges, nodes: np.ndarray, single: np.ndarray, cyclic: Iterable[Block]) -> np.ndarray:
    """``I + sum over blocks (Theta_B - I)`` on some nodes, ascending, that hold those of the blocks."""
    made = np.eye(len(nodes))
    first, second = (np.searchsorted(nodes, ends) for ends in tree.ends(single))
    tree.add(made, single, first, second)
    for block in cyclic:
        positions = np.searchsorted(nodes, block.nodes)
        made[positions[block.pattern.first], positions[block.pattern.second]] += block.values
        made[positions[block.pattern.second[len(positions) :]], positions[block.pattern.first[len(positions) :]]] += (
            block.entries
        )
        made[positions, positions] -= 1.0
    return made
