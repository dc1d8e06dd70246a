"""Branch and bound for the best models of several sizes at once.

Every size has a tree of its own, which depends on no other: nodes are taken in the order of their bounds, some at a
time, and the nodes of all sizes are relaxed together, because many small linear systems in one call cost little more
than one.

An open node keeps one byte per column (in, out, or the piece of the relaxation it ended on), its bound and the column
to branch on: about m + 150 bytes in all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pauca.constraints.limits import Limits
from pauca.relaxations.backends import MOST_PAIRED, Backend
from pauca.relaxations.depth_first import DepthFirst
from pauca.relaxations.diagonal import improve, rounding_slack
from pauca.relaxations.incumbent_swaps import improved_by_swaps
from pauca.relaxations.leaps_and_bounds import Enumerated, enumerate_subsets
from pauca.relaxations.perspective import IN, MOST_STEPS, OUT, ROOT_STEPS, Quadratic, Relaxed
from pauca.relaxations.tree import BEST_ONLY, MOST_BYTES, TIED_WITHIN, Incumbent, Tree, Wanted

# Roots are screened and their diagonals improved at most this often: with fewer columns a diagonal can be larger.
ROOT_ROUNDS = 2

# Improving a diagonal of more columns than this costs more than it saves.
MOST_IMPROVED = 400

# Of few columns all subsets are enumerated first, with at most so many nodes for a size. On 27 tables with 10 to 40
# columns no size took more than 1400 with up to 30 columns. With 40, trees in NumPy are slower from about 5000.
FEW_COLUMNS, MANY_NODES = 30, 40_000
MOST_ENUMERATED, SOME_NODES = 40, 5000

# So many trees over at most so many columns are left to compiled code, depth first, and their roots are not improved:
# every size of 50 columns with correlations 0.9^|i - j| and no ridge takes it a quarter of the time. A size that takes
# more nodes, ten times those of the hardest, is given back.
MANY_TREES, MOST_DEEP, NODES_DEEP = 8, 62, 200_000

# More models than this are not collected.
MOST_COLLECTED = 100_000


class Forest:
    """Trees of several sizes over the same problem.

    Parameters
    ----------
    problem : Quadratic
        Over the columns that may be chosen.
    diagonal : ndarray of shape (m,)
        ``H - D`` must be positive semidefinite.
    incumbents : sequence of Incumbent
        A model for each size that is to be searched; supports index the columns of ``problem``.
    n_rows : int
        Number of rows behind the problem, for the rounding slack.
    limits : Limits
        Over the columns of ``problem``.
    wanted : Wanted
        Which models are to be collected beside the best.
    """

    goes_deep = False
    """Whether many trees over few columns will be left to ``DepthFirst`` once compiled code is at hand."""

    def __init__(
        self,
        problem: Quadratic,
        diagonal: np.ndarray,
        incumbents: Sequence[Incumbent],
        *,
        n_rows: int,
        limits: Limits | None = None,
        wanted: Wanted = BEST_ONLY,
    ) -> None:
        self.problem = problem
        self.columns = np.arange(len(problem.slope))
        """The columns that no screening has removed yet."""
        self.backend = Backend()
        self.improves = True
        """Whether roots are worth better diagonals: these take most of the time of a root."""
        self._n_rows, self._n_columns, self._limits = n_rows, len(problem.slope), limits or Limits()
        self._counted = self._limits.price is not None or self._limits.kind is not None
        self._n_nodes = 0
        self._deep: tuple[Tree, DepthFirst, list[tuple[int, ...]]] | None = None
        self._too_deep: set[int] = set()
        self._unit = TIED_WITHIN * max(problem.constant, np.finfo(float).tiny)
        slack = rounding_slack(problem, diagonal, n_rows)
        self.trees = {one.size: Tree(one.size, one.value, one.support, diagonal, slack, wanted) for one in incumbents}
        for tree in self.trees.values():
            tree.offer(tree.value, tree.support)
            if wanted.n_best is not None:
                self._offer_neighbours(tree)

    @property
    def open(self) -> list[Tree]:
        """Trees that are not finished."""
        return [tree for tree in self.trees.values() if tree.open]

    @property
    def full(self) -> bool:
        """Whether the open nodes take all the memory they may, or too many models were collected."""
        if any(len(tree.collected) > MOST_COLLECTED for tree in self.trees.values()):
            return True
        return sum(len(tree.heap) for tree in self.trees.values()) * (len(self.columns) + 150) > MOST_BYTES

    def plant(self) -> None:
        """Relax the roots, screen columns, improve the diagonals, and open the trees that are not proved by that."""
        self._plant()
        for tree in self.trees.values():
            tree.settle()

    def _plant(self) -> None:
        trees = self._without_enumerated()
        if not trees:
            return
        nodes = _Batch(trees, self._start(trees))
        for number in range(ROOT_ROUNDS):
            nodes = self._bound(self._without_leaves(nodes), ROOT_STEPS)
            if not nodes.owners:
                return
            for tree, bound in zip(nodes.owners, nodes.inherited.tolist(), strict=True):
                tree.bound = bound
            removed = self._compress(nodes)
            improved = self._improving and self._improve(nodes)
            if number == ROOT_ROUNDS - 1 or not (improved or removed):
                break
        if not self._counted and not self._many:
            self._polish(nodes)
        self._open(nodes)

    def advance(self, most_nodes: float = np.inf) -> None:
        """Branch on the best nodes of every tree that has seen fewer than ``most_nodes``; or go deep in one of many."""
        if self._descend():
            return
        work = [tree for tree in self.open if tree.nodes < most_nodes]
        parents = [(tree, *node) for tree in work for node in tree.take()]
        if parents:
            codes = np.repeat(np.stack([codes for _, _, codes, _ in parents]), 2, axis=0)
            branches = np.array([branch for *_, branch in parents])
            codes[np.arange(0, len(codes), 2), branches] = IN
            codes[np.arange(1, len(codes), 2), branches] = OUT
            children = _Batch([tree for tree, *_ in parents for _ in range(2)], codes)
            children.inherited = np.repeat([bound for _, bound, *_ in parents], 2)
            for tree in children.owners:
                tree.nodes += 1
            self._open(self._bound(self._without_leaves(children)))
        for tree in work:
            tree.settle()

    def _without_enumerated(self) -> list[Tree]:
        """The trees that are to be grown; where there are few columns, the others are settled by enumeration."""
        trees, width = list(self.trees.values()), len(self.columns)
        if not trees or self._counted or width > MOST_ENUMERATED:
            return trees
        found = enumerate_subsets(
            self.problem,
            trees[0].diagonal,
            {tree.size: tree.screened_above for tree in trees},
            always=self._limits.always,
            most_nodes=MANY_NODES if width <= FEW_COLUMNS else SOME_NODES,
        )
        self._settle_enumerated(found)
        return [tree for tree in trees if tree.size not in found]

    @property
    def _improving(self) -> bool:
        """Whether better diagonals pay."""
        return self.improves and len(self.columns) <= MOST_IMPROVED and not self._many

    @property
    def _many(self) -> bool:
        """Whether there are many trees over few columns, for ``DepthFirst``."""
        return self.goes_deep and not self._counted and len(self.columns) <= MOST_DEEP and len(self.trees) >= MANY_TREES

    def _descend(self) -> bool:
        """Look at some nodes of one tree, depth first; False if there is none for that."""
        if self._deep is None:
            waiting = [tree for tree in self.open if tree.size not in self._too_deep and tree.screened_above < np.inf]
            if not waiting or not self._many or not self.backend.compiled:
                return False
            always = np.searchsorted(self.columns, self._limits.always).tolist()
            search = DepthFirst(self.problem, waiting[0].diagonal, waiting[0].size, always)
            self._deep = waiting[0], search, []
        tree, search, found = self._deep
        new = search.advance(tree.screened_above)
        found += new
        for support, value in zip(new, self._values(new, tree.size), strict=True):
            self._offer(tree, value, support)
        if search.done:
            self._settle(tree, Enumerated(found, search.nodes))
        elif search.nodes > NODES_DEEP or len(found) > MOST_COLLECTED:
            self._give_back(tree)
        else:
            return True
        self._deep = None
        return True

    def _give_back(self, tree: Tree) -> None:
        """Leave a tree to the search by bounds, with what its root has been spared: a better diagonal, and swaps."""
        self._too_deep.add(tree.size)
        if not self.improves or len(tree.heap) != 1:
            return
        _, codes, _ = tree.pop()
        nodes = self._bound(_Batch([tree], codes[None]), ROOT_STEPS)
        if nodes.owners:
            self._improve(nodes)
            self._polish(nodes)
        self._open(nodes)
        tree.settle()

    def _values(self, supports: Sequence[tuple[int, ...]], size: int) -> list[float]:
        """The least values on some supports."""
        return [float(value) for value in self.problem.values(np.array(supports, dtype=np.intp).reshape(-1, size))]

    def _settle_enumerated(self, found: Mapping[int, Enumerated]) -> None:
        for size, enumerated in found.items():
            self._settle(self.trees[size], enumerated)

    def _settle(self, tree: Tree, enumerated: Enumerated) -> None:
        """Close a tree with all models of interest, which are known."""
        tree.nodes += enumerated.nodes
        values = self._values(enumerated.supports, tree.size)
        for value, support in zip(values, enumerated.supports, strict=True):
            self._offer(tree, value, support)
        best = [set(s) for v, s in zip(values, enumerated.supports, strict=True) if v <= tree.tied_below]
        if best:
            columns = self.columns.tolist()  # sets are small: faster than arrays
            inside, used = ({columns[j] for j in some} for some in (set.intersection(*best), set.union(*best)))
            tree.always_in = tuple(sorted(inside.difference(self._limits.always)))
            tree.never_in = tuple(sorted(set(range(self._n_columns)).difference(used)))
        tree.heap.clear()

    def _start(self, trees: Sequence[Tree]) -> np.ndarray:
        """Codes of the roots: the incumbent's columns big, those that are always in, and nothing that may never be."""
        codes = np.zeros((len(trees), len(self.columns)), dtype=np.int8)
        for line, tree in zip(codes, trees, strict=True):
            support = np.array(tree.support, dtype=np.intp)
            if len(support):
                system = self.problem.hessian[np.ix_(support, support)]
                line[support] = np.where(np.linalg.solve(system, self.problem.slope[support]) < 0, -2, 2)
            line[list(self._limits.never)] = OUT
            line[list(self._limits.always)] = IN
        return codes

    def _without_leaves(self, nodes: _Batch) -> _Batch:
        """The nodes that more than a formula is needed for; the models of the others are offered to their trees."""
        if self._counted:
            self._apply_limits(nodes)
        left, free = nodes.left, np.count_nonzero(np.abs(nodes.codes) < IN, axis=1)
        inner = (left > 1) & (free > left) & ~self._completed(nodes, left, free, self.backend.at_once)
        for row in np.flatnonzero(~inner & (free >= left) & (left >= 0)):
            self._leaf(nodes.owners[row], nodes.codes[row], int(left[row]), int(free[row]))
        return nodes.take(np.flatnonzero(inner))

    def _offer_neighbours(self, tree: Tree) -> None:
        """Offer the models that differ from the incumbent by one column: so many are needed before a node can close."""
        support = np.array(tree.support, dtype=np.intp)
        for column in np.setdiff1d(support, self._limits.always):
            inside, free = support[support != column], np.setdiff1d(self.columns, support)
            for value, columns in self.backend.completions(self.problem, inside, free, 1, np.inf, every=True):
                self._offer(tree, value, columns)

    def _apply_limits(self, nodes: _Batch) -> None:
        """Put out what budget and places do not allow beside the columns that are in; in place."""
        for line in nodes.codes:
            inside = self.columns[line == IN]
            allowed = self._limits.addable(inside, self._n_columns)[self.columns]
            line[(np.abs(line) < IN) & ~allowed] = OUT

    def _leaf(self, tree: Tree, code: np.ndarray, left: int, free: int) -> None:
        """Offer the models of a node of which none, few or all of the free columns are missing."""
        inside, rest = np.flatnonzero(code == IN), np.flatnonzero(np.abs(code) < IN)
        if left and free > left:
            every = tree.wanted.several
            for value, support in self.backend.completions(self.problem, inside, rest, left, tree.cut, every=every):
                self._offer(tree, value, support)
        else:
            whole = np.concatenate([inside, rest]) if left else inside
            self._offer(tree, float(self.problem.values(whole[None])[0]), whole.tolist())

    def _offer(self, tree: Tree, value: float, support: Sequence[int]) -> None:
        """Offer a model by its columns in the compressed problem."""
        columns = self.columns[list(support)]
        if len(columns) == tree.size and (not self._counted or self._limits.allows(columns.tolist())):
            tree.offer(value, columns.tolist())

    def _bound(self, nodes: _Batch, steps: int = MOST_STEPS) -> _Batch:
        """Relax nodes, offer the models they suggest, and screen columns; the nodes that stay of interest."""
        if not nodes.owners:
            return nodes
        left, cut = nodes.left, np.array([tree.cut for tree in nodes.owners])
        diagonals = np.stack([tree.diagonal for tree in nodes.owners])
        nodes.relaxed = relaxed = self.backend.relax(self.problem, diagonals, nodes.codes, left, cut, steps)
        nodes.inherited = np.maximum(nodes.inherited, relaxed.bound)
        nodes.codes = relaxed.pieces
        alive = np.flatnonzero(relaxed.bound < cut)
        self._round(nodes.take(alive))
        alive = alive[[relaxed.bound[row] < nodes.owners[row].cut for row in alive]]
        nodes = nodes.take(alive)
        nodes.screen()
        return nodes

    def _round(self, nodes: _Batch) -> None:
        """Offer the models of the columns that the relaxations take most of."""
        if not nodes.owners:
            return
        ranked = self._ranked(nodes)
        sizes = np.array([tree.size for tree in nodes.owners])
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes == size)
            supports = ranked[rows, :size]
            for row, value, support in zip(rows, self.problem.values(supports), supports, strict=True):
                tree = nodes.owners[row]
                if value < tree.cut:
                    self._offer(tree, float(value), support.tolist())

    def _ranked(self, nodes: _Batch) -> np.ndarray:
        """The columns of every node, those first that its relaxation takes most of."""
        diagonals = np.stack([tree.diagonal for tree in nodes.owners])
        assert nodes.relaxed is not None
        wanted = nodes.relaxed.shares(np.sqrt(diagonals)) + 1e-9 * nodes.relaxed.scores / self.problem.constant
        wanted[nodes.codes == IN] = np.inf
        wanted[nodes.codes == OUT] = -np.inf
        return np.argsort(-wanted, axis=1, kind="stable")

    def _polish(self, nodes: _Batch) -> None:
        """Offer the models that swaps of one column lead to from those of ``_round``."""
        for tree, code, ranked in zip(nodes.owners, nodes.codes, self._ranked(nodes), strict=True):
            value, support = improved_by_swaps(self.problem, self.backend, ranked[: tree.size], code)
            self._offer(tree, value, support)

    def _compress(self, nodes: _Batch) -> bool:
        """Forget the columns that are out of every tree; returns whether there are any."""
        for tree, line in zip(nodes.owners, nodes.codes, strict=True):
            out = np.setdiff1d(self.columns[line == OUT], self._limits.never)
            tree.never_in = tuple(sorted({*tree.never_in, *out.tolist()}))
            tree.always_in = tuple(np.setdiff1d(self.columns[line == IN], self._limits.always).tolist())
        kept = ~np.all(nodes.codes == OUT, axis=0)
        if kept.all():
            return False
        self.problem, self.columns = self.problem.restricted(np.flatnonzero(kept)), self.columns[kept]
        for tree in nodes.owners:
            tree.diagonal = tree.diagonal[kept]
        nodes.keep_columns(kept)
        return True

    def _improve(self, nodes: _Batch) -> bool:
        """Better diagonals of the roots; returns whether one has closed a noticeable part of its gap."""
        assert nodes.relaxed is not None
        before, cut = nodes.relaxed.bound.copy(), np.array([tree.cut for tree in nodes.owners])
        diagonals = np.stack([tree.diagonal for tree in nodes.owners])
        diagonals, nodes.relaxed = improve(self.problem, diagonals, nodes.relaxed, nodes.left, cut, self.backend)
        for tree, diagonal in zip(nodes.owners, diagonals, strict=True):
            tree.diagonal = diagonal
            tree.slack = rounding_slack(self.problem, diagonal, self._n_rows)
        nodes.codes = nodes.relaxed.pieces
        nodes.inherited = np.maximum(nodes.inherited, nodes.relaxed.bound)
        risen = nodes.relaxed.bound > before  # not where both are minus infinity: no point was credible there
        return bool(np.any(nodes.relaxed.bound[risen] - before[risen] > 0.02 * (cut[risen] - before[risen])))

    def _open(self, nodes: _Batch) -> None:
        """Add nodes to their trees, with the column to branch on; those that screening has made leaves are closed."""
        left, free = nodes.left, np.count_nonzero(np.abs(nodes.codes) < IN, axis=1)
        leaves = (free <= left) | (left < 2) | self._completed(nodes, left, free, self.backend.after)
        for row in np.flatnonzero(leaves & (free >= left) & (left >= 0)):
            self._leaf(nodes.owners[row], nodes.codes[row], int(left[row]), int(free[row]))
        nodes = nodes.take(np.flatnonzero(~leaves))
        if not nodes.owners:
            return
        branches = self._branches(nodes)
        for tree, bound, code, branch in zip(nodes.owners, nodes.inherited, nodes.codes, branches, strict=True):
            self._n_nodes += 1
            tree.push(self._n_nodes, float(bound), self._unit, code, int(branch))

    def _completed(self, nodes: _Batch, left: np.ndarray, free: np.ndarray, most_free: Mapping[int, int]) -> np.ndarray:
        """Mask of the nodes whose best models are found by formulas: ``most_free`` columns for the number missing."""
        completed = np.zeros(len(left), dtype=bool)
        if self._counted:
            return completed
        if any(tree.wanted.several for tree in nodes.owners):
            # All pairs are wanted then, which are a table.
            most_free = {2: min(most_free[2], MOST_PAIRED)}
        for missing, most in most_free.items():
            completed |= (left == missing) & (free <= most)
        return completed

    def _branches(self, nodes: _Batch) -> np.ndarray:
        """The column of every node without which its relaxation would lose most."""
        assert nodes.relaxed is not None
        loss = self.backend.removal_estimates(
            self.problem, np.stack([tree.diagonal for tree in nodes.owners]), nodes.relaxed
        )
        loss = np.where(np.abs(nodes.codes) < IN, loss + 1e-6 * nodes.relaxed.scores, -1.0)
        best = loss.max(axis=1, keepdims=True)
        return np.argmax(loss >= best * (1 - TIED_WITHIN), axis=1)


class _Batch:
    """Some nodes: the tree of each, its codes, the best bound known, and its relaxation."""

    def __init__(self, owners: list[Tree], codes: np.ndarray) -> None:
        self.owners, self.codes = owners, codes
        self.inherited = np.full(len(owners), -np.inf)
        self.relaxed: Relaxed | None = None

    @property
    def left(self) -> np.ndarray:
        """How many columns every node has still to choose."""
        sizes = np.array([tree.size for tree in self.owners], dtype=np.intp)
        return sizes - np.count_nonzero(self.codes == IN, axis=1)

    def take(self, rows: np.ndarray) -> _Batch:
        """Some of the nodes."""
        part = _Batch([self.owners[row] for row in rows], self.codes[rows])
        part.inherited = self.inherited[rows]
        part.relaxed = None if self.relaxed is None else self.relaxed.take(rows)
        return part

    def keep_columns(self, kept: np.ndarray) -> None:
        """Forget columns."""
        assert self.relaxed is not None
        self.codes = self.codes[:, kept]
        self.relaxed.keep_columns(kept)

    def screen(self) -> None:
        """Put columns in or out that are, or are not, in every model of interest; in place.

        Forcing a column out of the ``left`` largest scores, or another into them, changes the bound by the difference
        of the scores; where that exceeds the gap the column is settled.
        """
        if not self.owners:
            return
        assert self.relaxed is not None
        scores, free, left = self.relaxed.scores, np.abs(self.codes) < IN, self.left
        ordered = -np.sort(-np.where(free, scores, -1.0), axis=1)
        last = np.take_along_axis(ordered, left[:, None] - 1, axis=1)
        following = np.take_along_axis(ordered, left[:, None], axis=1)
        gap = np.array([tree.screened_above for tree in self.owners]) - self.relaxed.bound
        out = free & (scores < last) & (last - scores > gap[:, None])
        inside = free & (scores >= last) & (scores - following > gap[:, None])
        self.codes = self.relaxed.pieces = np.where(out, OUT, np.where(inside, IN, self.codes))
