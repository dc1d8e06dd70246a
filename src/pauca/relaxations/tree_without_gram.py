"""Branch and bound on tables with so many columns that their Gram matrix is not formed.

Nodes are bounded as roots are, by ``bounds_without_gram``: over a working set, which starts from that of the parent,
and with a pass over X for the correlations of all columns. Where the bound of a node leaves few columns, the models
below it are left to a tree of ``forest`` over these. As a pass takes a while, nodes are few: this is for problems with
a large gap at the root that most branchings close on one side.

Without a column that others resemble, a relaxation loses little: these stand in for it. So a node asks first for a
whole group of alike columns whether a better model has any of them. Without all of them the bound rises by much; with
one of them, nobody knows which, it stays. Groups have no column in common: once there are as many as the model has
columns, all others are out, and the few that are left are for a tree of ``forest``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pauca.relaxations.backends import Backend
from pauca.relaxations.bounds_without_gram import MOST_COLUMNS, Products, RootBound, root_bounds
from pauca.relaxations.forest import Forest
from pauca.relaxations.tree import MOST_BYTES, TIED_WITHIN, Incumbent, Tree
from pauca.tolerances import DEPENDENT_BELOW

# A node with at most so many columns left has a tree over these.
MOST_NARROWED = 1000

# A column that another resembles by this correlation is branched on together with the columns most alike, so many of
# them that the groups of a model have this many columns. Ten features of 10,000 columns with correlations 0.9^|i - j|
# and a ridge of 0.03 take 176 nodes then; one by one a tenth of the gap was left after 442. With 0.5^|i - j| groups
# take three times as long as single columns.
ALIKE_ABOVE = 0.7
MOST_GROUPED = 400

# A column of no group is branched on before those of groups, if the relaxation would lose this share of what it loses
# without one of these.
UNGROUPED_SHARE = 0.1

NarrowForest = Callable[[np.ndarray, tuple[int, ...], Incumbent], Forest]


@dataclass(frozen=True, eq=False)
class _Node:
    """The columns that are in, groups of columns of each of which one is in, and what is known of the others."""

    inside: tuple[int, ...]
    groups: tuple[np.ndarray, ...]
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
        self._open(self._root, self._always, (), -np.inf)
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
        """Bound both children: with some column of a group and with none, or with one column and without it."""
        free = node.found.kept.copy()
        free[list(node.inside)] = False
        column, group = self._asked(node, free)
        if len(group) > 1:
            self._open(node.found, node.inside, (*node.groups, group), bound)
            free[group] = False
            self._bound(node, free, node.inside, node.groups, bound)
            return
        free[column] = False
        others = tuple(one for one in node.groups if column not in one)
        self._bound(node, free, (*node.inside, column), others, bound)
        self._bound(node, free, node.inside, tuple(one[one != column] for one in node.groups), bound)

    def _asked(self, node: _Node, free: np.ndarray) -> tuple[int, np.ndarray]:
        """The column without which the relaxation would lose most, and the group to branch on, if it is not alone."""
        losses = self._losses(node.found, free)
        ungrouped = free.copy()
        ungrouped[np.concatenate([np.zeros(0, dtype=np.intp), *node.groups])] = False
        rest = np.where(ungrouped, losses, -1.0)
        if len(node.inside) + len(node.groups) < self._tree.size and rest.max() >= UNGROUPED_SHARE * losses.max():
            column = _first_of_largest(rest)
            return column, self._alike(column, ungrouped)
        column = _first_of_largest(losses)
        return column, np.array([column])

    def _alike(self, column: int, free: np.ndarray) -> np.ndarray:
        """The free columns that are most alike to one of them; itself alone where no other is."""
        one = np.array([column])
        rest, _ = self._products.columns.residual_products(one, np.ones((1, 1)))
        likeness = np.where(free, np.abs(self._products.slope - rest[0]), -1.0)
        likeness[column] = np.inf
        count = min(MOST_GROUPED // self._tree.size, np.count_nonzero(free))
        group = np.argsort(-likeness, kind="stable")[:count]
        return np.sort(group) if len(group) > 1 and likeness[group[1]] >= ALIKE_ABOVE else one

    def _bound(
        self,
        parent: _Node,
        free: np.ndarray,
        inside: tuple[int, ...],
        groups: tuple[np.ndarray, ...],
        inherited: float,
    ) -> None:
        """Bound a child, and open it if a better model may be below it."""
        self._tree.nodes += 1
        missing = self._tree.size - len(inside)
        if np.count_nonzero(free) < missing or not all(free[group].any() for group in groups):
            return
        if missing <= 1:
            self._complete(inside, np.flatnonzero(free))
            return
        usable = free.copy()
        usable[list(inside)] = True
        found = root_bounds(
            self._products,
            [Incumbent(self._tree.size, self._tree.value, self._tree.support)],
            always=inside,
            usable=usable,
            slack=self._tree.slack,
            start=parent.found.start,
        )[self._tree.size]
        self._round(inside, found)
        self._open(found, inside, groups, inherited)

    def _open(
        self, found: RootBound, inside: tuple[int, ...], groups: tuple[np.ndarray, ...], inherited: float
    ) -> None:
        """Add a node to the tree, if a better model may be below it."""
        tree = self._tree
        bound = max(found.bound, inherited)
        if len(inside) + len(groups) == tree.size:
            # One of each group, and nothing else.
            chosen = np.zeros(len(found.kept), dtype=bool)
            chosen[np.concatenate([np.array(inside, dtype=np.intp), *groups])] = True
            found = replace(found, kept=found.kept & chosen)
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
            self._push(bound, _Node(inside, groups, found))

    def _push(self, bound: float, payload: _Node | _Narrowed) -> None:
        self._n_nodes += 1
        self._tree.push(self._n_nodes, bound, self._unit, payload, -1)  # type: ignore[arg-type]

    def _losses(self, found: RootBound, free: np.ndarray) -> np.ndarray:
        """What the relaxation would lose without each of the free columns; -1 for others."""
        working, products = found.working, self._products
        loss = self.backend.removal_estimates(
            products.problem(working), products.penalty[working][None], found.relaxed
        )[0]
        losses = np.zeros(len(free))
        losses[working] = loss + 1e-6 * found.relaxed.scores[0]
        return np.where(free, losses, -1.0)

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
        usable = own > DEPENDENT_BELOW * squares
        gains = np.where(usable, (table.slope[free] - fitted @ cross) ** 2 / np.where(usable, own, 1.0), -np.inf)
        best = int(np.argmax(gains))
        if usable[best]:
            self._tree.offer(value - 0.5 * float(gains[best]), (*inside, int(free[best])))


def _first_of_largest(losses: np.ndarray) -> int:
    """The first of the columns with the largest losses: rounding must not decide."""
    return int(np.argmax(losses >= losses.max() * (1 - TIED_WITHIN)))
