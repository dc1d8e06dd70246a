"""Branch and bound on tables with so many columns that their Gram matrix is not formed.

Nodes are bounded as roots are, by ``bounds_without_gram``: over a working set, which starts from that of the parent,
and with a pass over X for the correlations of all columns. Where the bound of a node leaves few columns, the models
below it are left to a tree of ``forest`` over these. As a pass takes a while, nodes are few: this is for problems with
a large gap at the root that most branchings close on one side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pauca.relaxations.backends import DEPENDENT_SHARE, Backend
from pauca.relaxations.bounds_without_gram import MOST_COLUMNS, Products, RootBound, root_bounds
from pauca.relaxations.forest import Forest
from pauca.relaxations.tree import MOST_BYTES, TIED_WITHIN, Incumbent, Tree

# A node with at most so many columns left has a tree over these.
MOST_NARROWED = 1000

NarrowForest = Callable[[np.ndarray, tuple[int, ...], Incumbent], Forest]


@dataclass(frozen=True, eq=False)
class _Node:
    """The columns that are in, and what is known of the others."""

    inside: tuple[int, ...]
    found: RootBound


@dataclass(eq=False)
class _Narrowed:
    """The models below a node, by a tree over the columns that are left."""

    columns: np.ndarray
    forest: Forest


class WideForest:
    """The tree of one size over all columns; the same interface as ``forest.Forest``.

    Parameters
    ----------
    products : Products
        Of the columns that the nodes need.
    incumbent : Incumbent
    always : tuple of int
        The columns that are always in.
    root : RootBound
        What is known of the root.
    slack : float
        What rounding can add to a bound.
    narrow : callable
        The forest over some columns, of which others are in, for an incumbent whose support does not matter.
    """

    def __init__(
        self,
        products: Products,
        incumbent: Incumbent,
        always: tuple[int, ...],
        root: RootBound,
        slack: float,
        narrow: NarrowForest,
    ) -> None:
        self.backend = Backend()
        self._products, self._narrow, self._root, self._always = products, narrow, root, always
        self._tree = Tree(incumbent.size, incumbent.value, incumbent.support, products.penalty, slack)
        self.trees = {incumbent.size: self._tree}
        self._n_nodes, self._unit = 0, TIED_WITHIN * products.constant

    @property
    def open(self) -> list[Tree]:
        """The tree, if it is not finished."""
        return [self._tree] if self._tree.open else []

    @property
    def full(self) -> bool:
        """Whether the open nodes and the products take all the memory they may.

        Each node keeps a byte for every column, and solution, scores and piece of those in its working set.
        """
        node = len(self._products.slope) + 25 * MOST_COLUMNS
        return len(self._tree.heap) * node + self._products.n_bytes > 2 * MOST_BYTES

    def plant(self) -> None:
        """Open the root."""
        self._open(self._root, self._always, -np.inf)
        self._tree.settle()

    def advance(self, most_nodes: float = np.inf) -> None:
        """Look at the node with the lowest bound: branch on it, or let its tree over few columns grow."""
        tree = self._tree
        if tree.open and tree.nodes < most_nodes:
            bound, payload, _ = tree.pop()
            if bound < tree.cut and isinstance(payload, _Narrowed):
                self._grow(payload, bound)
            elif bound < tree.cut and isinstance(payload, _Node):
                self._branch(payload, bound)
        tree.settle()

    def _branch(self, node: _Node, bound: float) -> None:
        """Bound both children."""
        free = node.found.kept.copy()
        free[list(node.inside)] = False
        column = self._missed_most(node.found, free)
        free[column] = False
        for inside in ((*node.inside, column), node.inside):
            self._tree.nodes += 1
            missing = self._tree.size - len(inside)
            if np.count_nonzero(free) < missing:
                continue
            if missing <= 1:
                self._complete(inside, np.flatnonzero(free))
                continue
            usable = free.copy()
            usable[list(inside)] = True
            incumbent = Incumbent(self._tree.size, self._tree.value, self._tree.support)
            found = root_bounds(
                self._products,
                [incumbent],
                always=inside,
                usable=usable,
                slack=self._tree.slack,
                start=node.found.start,
            )[self._tree.size]
            self._round(inside, found)
            self._open(found, inside, bound)

    def _open(self, found: RootBound, inside: tuple[int, ...], inherited: float) -> None:
        """Add a node to the tree, if a better model may be below it."""
        tree = self._tree
        bound = max(found.bound, inherited)
        if bound >= tree.cut:
            return
        columns = np.union1d(np.flatnonzero(found.kept), np.array(inside, dtype=np.intp))
        if len(columns) < tree.size:
            return
        if len(columns) <= MOST_NARROWED:
            # The value is all that matters of this incumbent.
            forest = self._narrow(columns, inside, Incumbent(tree.size, tree.value, tuple(range(tree.size))))
            forest.backend = self.backend
            forest.plant()
            self._keep(_Narrowed(columns, forest), bound)
        else:
            self._push(bound, _Node(inside, found))

    def _push(self, bound: float, payload: _Node | _Narrowed) -> None:
        self._n_nodes += 1
        self._tree.push(self._n_nodes, bound, self._unit, payload, -1)  # type: ignore[arg-type]

    def _missed_most(self, found: RootBound, free: np.ndarray) -> int:
        """The column without which the relaxation would lose most."""
        working, products = found.working, self._products
        loss = self.backend.removal_estimates(
            products.problem(working), products.penalty[working][None], found.relaxed
        )[0]
        loss = np.where(free[working], loss + 1e-6 * found.relaxed.scores[0], -1.0)
        return int(working[np.argmax(loss >= loss.max() * (1 - TIED_WITHIN))])

    def _grow(self, narrowed: _Narrowed, bound: float) -> None:
        """Let a tree over few columns grow by one round."""
        inner = narrowed.forest.trees[self._tree.size]
        inner.value = min(inner.value, self._tree.value)
        narrowed.forest.backend = self.backend
        before = inner.nodes
        narrowed.forest.advance()
        self._tree.nodes += inner.nodes - before
        self._keep(narrowed, bound)

    def _keep(self, narrowed: _Narrowed, bound: float) -> None:
        """Take over what a tree over few columns has found, and put it back if it is open."""
        tree, inner = self._tree, narrowed.forest.trees[self._tree.size]
        if inner.value < tree.value:
            tree.offer(inner.value, narrowed.columns[list(inner.support)].tolist())
        tree.slack = max(tree.slack, inner.slack)
        if inner.open:
            self._push(max(bound, inner.bound), narrowed)

    def _round(self, inside: tuple[int, ...], found: RootBound) -> None:
        """Offer the model of the columns that the relaxation takes most of."""
        wanted = found.relaxed.shares(np.sqrt(self._products.penalty[found.working]))[0]
        wanted[np.isin(found.working, inside)] = np.inf
        support = np.sort(found.working[np.argsort(-wanted, kind="stable")[: self._tree.size]])
        value = self._products.problem(support).values(np.arange(len(support))[None])[0]
        if len(support) == self._tree.size:
            self._tree.offer(float(value), support.tolist())

    def _complete(self, inside: tuple[int, ...], free: np.ndarray) -> None:
        """Offer the best model of the columns that are in and, if one is missing, of one more."""
        table, columns = self._products, np.array(inside, dtype=np.intp)
        products = table.columns.products(columns, np.concatenate([columns, free]))
        system = products[:, : len(columns)] + np.diag(table.penalty[columns])
        right = np.column_stack([table.slope[columns], products[:, len(columns) :]])
        half = np.linalg.solve(np.linalg.cholesky(system), right)
        fitted, cross = half[:, 0], half[:, 1:]
        value = table.constant - 0.5 * float(fitted @ fitted)
        if len(columns) == self._tree.size:
            self._tree.offer(value, inside)
            return
        squares = 1.0 + table.penalty[free]
        own = squares - np.sum(cross**2, axis=0)
        usable = own > DEPENDENT_SHARE * squares
        gains = np.where(usable, (table.slope[free] - fitted @ cross) ** 2 / np.where(usable, own, 1.0), -np.inf)
        best = int(np.argmax(gains))
        if usable[best]:
            self._tree.offer(value - 0.5 * float(gains[best]), (*inside, int(free[best])))
