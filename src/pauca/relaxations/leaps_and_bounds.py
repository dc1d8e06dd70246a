"""All best subsets of few columns: leaps and bounds (Furnival and Wilson 1974), many nodes and every size at a time.

A node has some columns in, some out, and ``m`` that are not settled. It knows two models of the unsettled columns: that
of all columns that are not out, where dropping unsettled ones costs something, and that of the columns that are in,
where adding unsettled ones gains something. Each has its value, a vector v and a block B, and both have one formula:
the columns T cost or gain ``v_T' B_TT^-1 v_T / 2``. For the costs v are the coefficients and B is a block of the
inverse of H; for the gains v are the slopes and B is what the columns that are in leave of H. A column that goes out
changes the first model and a column that goes in the second, by ranks one, and the other model stays.

A model with ``t`` of the m columns out is worse than that of all by at least the t-th smallest ``v_j^2 / (2 B_jj)``,
because dropping several columns costs at least what dropping any one of them does, and by at least the sum of the t
smallest ``D_j v_j^2 / 2``: the bound of ``perspective`` at the point v. Nodes whose bounds exceed what is sought at
every size are closed. Every node branches on the column that would be missed most.

Nine of ten nodes of such a tree have at most two columns left to choose. There are none of these in here: when a column
goes in, all pairs that complete it are tried at once by the formula above, and when one goes out all pairs that can
still go.

There is no relaxation to solve: up to some forty columns this is several times cheaper than the trees of ``forest``,
which have stronger bounds and take over where a size has too many nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product

import numpy as np
from scipy.linalg import solve_triangular

from pauca.relaxations.perspective import Quadratic

# Supports are the bits of one number.
MOST_COLUMNS = 62

# Numbers in the blocks of a batch of nodes.
BATCH_NUMBERS = 1 << 18

# The two models of a node: without the columns that go out, and with those that go in.
OUT, IN = 0, 1
HALVES = np.array([0.5, -0.5])


@dataclass(eq=False)
class Nodes:
    """Some nodes with the same number m of columns that are not settled, one to a line."""

    inside: np.ndarray
    """The columns that are in, as bits."""
    size: np.ndarray
    """How many these are."""
    columns: np.ndarray
    """The columns that are not settled."""
    live: np.ndarray
    """Whether models with so many of these are of interest, for 0 to m."""
    value: np.ndarray
    """The values of both models, shape (b, 2)."""
    vector: np.ndarray
    """Coefficients in the first and slopes beside the second, shape (b, 2, m)."""
    block: np.ndarray
    """The matrices of costs and of gains, shape (b, 2, m, m)."""

    def take(self, rows: np.ndarray | slice) -> Nodes:
        """Some of the nodes."""
        return Nodes(*(part[rows] for part in vars(self).values()))


@dataclass(frozen=True)
class Enumerated:
    """All models of a size with a value up to what was requested, and the number of nodes this took."""

    supports: list[tuple[int, ...]]
    nodes: int


def enumerate_subsets(
    problem: Quadratic, diagonal: np.ndarray, up_to: Mapping[int, float], *, always: Sequence[int], most_nodes: int
) -> dict[int, Enumerated]:
    """All models with a value up to ``up_to[size]``, of the sizes that take no more than ``most_nodes``.

    Sizes do not depend on each other: each has its own nodes, which it shares with others.
    """
    n_columns, sought = len(problem.slope), _sought(problem, up_to)
    counts = np.zeros(n_columns + 1, dtype=np.intp)
    root = _root(problem, always, sought)
    found = _close_root(root, sought)
    stack = [root] if root.live.any() else []
    while stack:
        family = _Family(stack.pop(), diagonal, sought)
        counts += np.bincount(_sizes(family.children)[family.children.live], minlength=n_columns + 1)
        sought[counts > most_nodes] = -np.inf
        found.update(_close(family.children, family.sides, 2, sought, family.blocks))
        nodes = family.grown_up()
        step = max(1, BATCH_NUMBERS // nodes.columns.shape[1] ** 2)
        stack += [nodes.take(slice(start, start + step)) for start in range(0, len(nodes.size), step)]
    return _by_size(found, counts, up_to, most_nodes)


def _sought(problem: Quadratic, up_to: Mapping[int, float]) -> np.ndarray:
    """The values sought by size, minus infinity for others."""
    sought = np.full(len(problem.slope) + 1, -np.inf)
    sought[list(up_to)] = list(up_to.values())
    return sought


def _close_root(root: Nodes, sought: np.ndarray) -> set[int]:
    """The models that two columns or fewer complete, or that lack so many."""
    return {
        bits
        for side, count in product((OUT, IN), range(3))
        for bits in _close(root, np.array([side]), count, sought, lambda rows, sides: root.block[rows, sides])
    }


def _by_size(
    found: set[int], counts: np.ndarray, up_to: Mapping[int, float], most_nodes: float
) -> dict[int, Enumerated]:
    """Models, as bits, by their size."""
    supports: dict[int, list[tuple[int, ...]]] = {size: [] for size in up_to}
    for bits in sorted(found):
        columns = tuple(j for j in range(len(counts) - 1) if bits >> j & 1)
        if len(columns) in supports:
            supports[len(columns)].append(columns)
    return {size: Enumerated(supports[size], int(counts[size])) for size in up_to if counts[size] <= most_nodes}


def _root(problem: Quadratic, always: Sequence[int], sought: np.ndarray) -> Nodes:
    # By triangular factors: the errors are then those of an inverse of a matrix close to H, which is positive definite.
    # With those of a general inverse, differences of large entries went wrong where columns were nearly dependent.
    half = solve_triangular(np.linalg.cholesky(problem.hessian), np.eye(len(problem.slope)), lower=True)
    fitted = half @ problem.slope
    rest = np.setdiff1d(np.arange(len(fitted)), always)
    inverse, coef = half.T @ half, half.T @ fitted
    value, slope, left = problem.constant, problem.slope, problem.hessian
    for j in always:
        value, slope, left = (
            value - 0.5 * slope[j] ** 2 / left[j, j],
            slope - left[j] * (slope[j] / left[j, j]),
            left - np.outer(left[j], left[j] / left[j, j]),
        )
    return Nodes(
        inside=np.array([sum(1 << j for j in always)], dtype=np.int64),
        size=np.array([len(always)]),
        columns=rest[None],
        live=(sought > -np.inf)[None, len(always) :].copy(),
        value=np.array([[problem.constant - 0.5 * float(fitted @ fitted), value]]),
        vector=np.stack([coef[rest], slope[rest]])[None],
        block=np.stack([inverse[np.ix_(rest, rest)], left[np.ix_(rest, rest)]])[None],
    )


def _sizes(nodes: Nodes) -> np.ndarray:
    """The sizes that the columns of ``live`` stand for."""
    return np.asarray(nodes.size[:, None] + np.arange(nodes.live.shape[1]))


class _Family:
    """Some nodes and their children: in one the column goes out that would be missed most, in the other it goes in.

    The blocks of the children are computed where they are needed: of most of them one is, for the last pairs. The nodes
    are overwritten.
    """

    def __init__(self, nodes: Nodes, diagonal: np.ndarray, sought: np.ndarray) -> None:
        count = len(nodes.size)
        own = np.diagonal(nodes.block, axis1=-2, axis2=-1)[:, OUT]
        _put_last(nodes, np.argmax(nodes.vector[:, OUT] ** 2 / own, axis=1))
        self._block, self._parent = nodes.block, np.tile(np.arange(count), 2)
        self.sides = sides = np.repeat([OUT, IN], count)
        each, parent = np.arange(2 * count), self._parent
        lines = nodes.block[:, :, -1].swapaxes(0, 1).reshape(2 * count, -1)
        self._line, pivot = lines[:, :-1], lines[:, -1]
        self._share = self._line / pivot[:, None]
        leaving = nodes.vector[parent, sides, -1]
        vector, value, inside = nodes.vector[parent, :, :-1], nodes.value[parent], nodes.inside[parent]
        vector[each, sides] -= self._share * leaving[:, None]
        value[each, sides] += HALVES[sides] * leaving**2 / pivot
        inside[count:] |= 1 << nodes.columns[:, -1]
        self.children = Nodes(
            inside,
            nodes.size[parent] + sides,
            nodes.columns[parent, :-1],
            np.concatenate([nodes.live[:, :-1], nodes.live[:, 1:]]),
            value,
            vector,
            parent,  # in the place of the blocks
        )
        costs = own[parent, :-1]
        costs[:count] -= self._line[:count] * self._share[:count]
        bounds = _bounds(self.children, costs, diagonal)
        self.children.live &= bounds <= sought[_sizes(self.children)]

    def blocks(self, rows: np.ndarray, sides: np.ndarray | int) -> np.ndarray:
        """The block of each of some children on one of its sides."""
        found = self._block[self._parent[rows], sides, :-1, :-1]
        places = np.flatnonzero(self.sides[rows] == sides)
        # These are all, or the first ones, or the last.
        run = slice(places[0], places[-1] + 1) if len(places) else slice(0)
        lines = rows[run]
        found[run] -= self._line[lines, :, None] * self._share[lines, None, :]
        return np.asarray(found)

    def grown_up(self) -> Nodes:
        """The children that are to be branched on."""
        rows = np.flatnonzero(self.children.live.any(axis=1))
        nodes = self.children.take(rows)
        width = nodes.columns.shape[1]
        nodes.block = np.empty((len(rows), 2, width, width))
        for side in (OUT, IN):
            nodes.block[:, side] = self.blocks(rows, side)
        return nodes


def _put_last(nodes: Nodes, places: np.ndarray) -> None:
    """Swap the column at a place of each node with the last one, in place."""
    each = np.arange(len(places))
    for array in (nodes.columns, nodes.vector, nodes.block, nodes.block.swapaxes(-1, -2)):
        moved = array[each, ..., places]
        array[each, ..., places] = array[..., -1]
        array[..., -1] = moved


def _bounds(nodes: Nodes, own: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """No model with so many of the columns that are not settled is below this; ``own`` is the diagonal of costs."""
    half = 0.5 * nodes.vector[:, OUT] ** 2
    single = np.sort(half / own, axis=1)
    together = np.cumsum(np.sort(half * diagonal[nodes.columns], axis=1), axis=1)
    bounds = np.zeros(nodes.live.shape)
    np.maximum(single, together, out=bounds[:, 1:])
    bounds += nodes.value[:, OUT, None]
    return bounds[:, ::-1]


def _close(
    nodes: Nodes,
    sides: np.ndarray,
    count: int,
    sought: np.ndarray,
    blocks: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> Iterator[int]:
    """The models sought with all but ``count`` of the unsettled columns, or with ``count`` of them, as bits.

    They are no longer live then. ``blocks`` has those of some nodes on some sides.
    """
    width = nodes.columns.shape[1]
    if count > width:
        return
    places = np.where(sides == OUT, width - count, count)
    rows = np.flatnonzero(nodes.live[np.arange(len(places)), places])
    if not len(rows):
        return
    sides, places = sides[rows], places[rows]
    nodes.live[rows, places] = False
    sets = _few_of(width, count)
    value = _changes(nodes.vector[rows, sides], blocks(rows, sides), sets)
    value *= HALVES[sides, None]
    limit = sought[nodes.size[rows] + places] - nodes.value[rows, sides]
    for line, which in np.argwhere(value <= limit[:, None]).tolist():
        columns = nodes.columns[rows[line]]
        chosen = _bits(columns[sets[:, which]])
        yield int(nodes.inside[rows[line]]) | (_bits(columns) ^ chosen if sides[line] == OUT else chosen)


@cache
def _few_of(width: int, count: int) -> np.ndarray:
    """All sets of none, one or two places, one to a column."""
    sets = list(combinations(range(width), count))
    return np.array(sets, dtype=np.intp).reshape(len(sets), count).T


def _bits(columns: np.ndarray) -> int:
    return sum(1 << j for j in columns.tolist())


def _changes(vector: np.ndarray, block: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """``v_T' B_TT^-1 v_T`` of some sets T of places."""
    if not len(sets):
        return np.zeros((len(vector), 1))
    scale = 1 / np.sqrt(np.diagonal(block, axis1=-2, axis2=-1))
    vector = vector * scale
    if len(sets) == 1:
        return np.asarray(vector**2)
    first, second = sets
    block = block[:, first, second] * scale[:, first]
    block *= scale[:, second]
    one, other = vector[:, first], vector[:, second]
    other = other - block * one
    block *= block
    np.subtract(1.0, block, out=block)
    return np.asarray(one**2 + other**2 / block)
