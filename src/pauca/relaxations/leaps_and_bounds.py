"""All best subsets of few columns: leaps and bounds (Furnival and Wilson 1974), many nodes and every size at a time.

A node has some columns in, some out, and ``m`` that are not settled. It knows the model of all columns that are not
out: its value F, the coefficients u of the columns not settled, and their block P of the inverse of H. A column that
goes in changes none of these; one that goes out costs ``u_j^2 / (2 P_jj)``, and u and P follow by ranks one. So half of
all nodes cost nothing.

A model with ``t`` of the m columns out is worse than F by at least the t-th smallest ``u_j^2 / (2 P_jj)``, because
dropping several columns costs at least what dropping any one of them does, and by at least the sum of the t smallest
``D_j u_j^2 / 2``: the bound of ``perspective`` at the point u. Nodes whose bounds exceed what is sought at every size
are closed. Every node branches on the column that would be missed most.

There is no relaxation to solve: up to some thirty columns this is several times cheaper than the trees of ``tree``,
which have stronger bounds and take over where a size has too many nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from pauca.relaxations.perspective import Quadratic

# Supports are the bits of one number.
MOST_COLUMNS = 62

# Nodes of a batch, which then fit into the cache.
BATCH = 1024


@dataclass(eq=False)
class Nodes:
    """Some nodes with the same number m of columns that are not settled, one to a line."""

    inside: np.ndarray
    """The columns that are in, as bits."""
    most: np.ndarray
    """How many columns are not out."""
    value: np.ndarray
    """The value of the model of all columns that are not out."""
    columns: np.ndarray
    """The columns that are not settled."""
    coef: np.ndarray
    """Their coefficients in that model."""
    own: np.ndarray
    """The diagonal of ``inverse``."""
    inverse: np.ndarray
    """Their block of the inverse of H over the columns that are not out."""
    live: np.ndarray
    """Whether ``most`` less t columns are of interest, for t = 0 to m."""

    def take(self, rows: np.ndarray | slice) -> Nodes:
        """Some of the nodes."""
        return Nodes(*(part[rows] for part in vars(self).values()))


@dataclass(frozen=True)
class Enumerated:
    """All models of a size with a value up to what was asked for, and the number of nodes this took."""

    supports: list[tuple[int, ...]]
    nodes: int


def enumerate_subsets(
    problem: Quadratic, diagonal: np.ndarray, up_to: Mapping[int, float], *, always: Sequence[int], most_nodes: int
) -> dict[int, Enumerated]:
    """All models with a value up to ``up_to[size]``, of the sizes that take no more than ``most_nodes``.

    Sizes do not depend on each other: each has its own nodes, which it shares with others.
    """
    n_columns = len(problem.slope)
    sought = np.full(n_columns + 1, -np.inf)
    sought[list(up_to)] = list(up_to.values())
    counts = np.zeros(n_columns + 1, dtype=np.intp)
    found: dict[int, list[tuple[int, ...]]] = {size: [] for size in up_to}
    stack = [_root(problem, always, sought)]
    while stack:
        nodes = stack.pop()
        if not nodes.columns.shape[1]:
            for inside, size in zip(nodes.inside.tolist(), nodes.most.tolist(), strict=True):
                found[size].append(tuple(j for j in range(n_columns) if inside >> j & 1))
            continue
        nodes = _children(nodes, diagonal, sought)
        counts += np.bincount(_sizes(nodes)[nodes.live], minlength=n_columns + 1)
        sought[counts > most_nodes] = -np.inf
        stack += [nodes.take(slice(start, start + BATCH)) for start in range(0, len(nodes.value), BATCH)]
    return {size: Enumerated(found[size], int(counts[size])) for size in up_to if counts[size] <= most_nodes}


def _root(problem: Quadratic, always: Sequence[int], sought: np.ndarray) -> Nodes:
    # By triangular factors: the errors are then those of an inverse of a matrix close to H, which is positive definite.
    # With those of a general inverse, differences of large entries went wrong where columns were nearly dependent.
    half = solve_triangular(np.linalg.cholesky(problem.hessian), np.eye(len(problem.slope)), lower=True)
    fitted = half @ problem.slope
    inverse, coef = half.T @ half, half.T @ fitted
    rest = np.setdiff1d(np.arange(len(coef)), always)
    block = inverse[np.ix_(rest, rest)][None]
    return Nodes(
        inside=np.array([sum(1 << j for j in always)], dtype=np.int64),
        most=np.array([len(coef)]),
        value=np.array([problem.constant - 0.5 * float(fitted @ fitted)]),
        columns=rest[None],
        coef=coef[rest][None],
        own=np.diag(block[0])[None],
        inverse=block,
        live=(sought > -np.inf)[None, len(always) :][:, ::-1],
    )


def _sizes(nodes: Nodes) -> np.ndarray:
    """The sizes that the columns of ``live`` stand for."""
    return np.asarray(nodes.most[:, None] - np.arange(nodes.live.shape[1]))


def _children(nodes: Nodes, diagonal: np.ndarray, sought: np.ndarray) -> Nodes:
    """The children of interest: of each node the column goes in, or out, that would be missed most."""
    each = np.arange(len(nodes.value))
    branch = np.argmax(nodes.coef**2 / nodes.own, axis=1)
    column, coef, own = nodes.columns[each, branch], nodes.coef[each, branch], nodes.own[each, branch]
    line = nodes.inverse[each, branch]
    share = line / own[:, None]

    def settled(part: np.ndarray) -> np.ndarray:
        """Without the column: the last one takes its place."""
        part[each, branch] = part[:, -1]
        return part[:, :-1]

    into = Nodes(
        nodes.inside | (1 << column),
        nodes.most,
        nodes.value,
        settled(nodes.columns.copy()),
        settled(nodes.coef.copy()),
        settled(nodes.own.copy()),
        nodes.inverse,
        nodes.live[:, :-1],
    )
    out = Nodes(
        nodes.inside,
        nodes.most - 1,
        nodes.value + 0.5 * coef**2 / own,
        into.columns,
        settled(nodes.coef - share * coef[:, None]),
        settled(nodes.own - line * share),
        nodes.inverse,
        nodes.live[:, 1:],
    )
    for side in (into, out):
        side.live = side.live & (_bounds(side, diagonal) <= sought[_sizes(side)])
    kept_in, kept_out = (np.flatnonzero(side.live.any(axis=1)) for side in (into, out))
    blocks = [
        _without(nodes.inverse[kept_in], branch[kept_in]),
        _without(nodes.inverse[kept_out] - line[kept_out][:, :, None] * share[kept_out][:, None, :], branch[kept_out]),
    ]
    parts = [[part[rows] for part in vars(side).values()] for side, rows in ((into, kept_in), (out, kept_out))]
    joined = Nodes(*(np.concatenate(pair) for pair in zip(*parts, strict=True)))
    joined.inverse = np.concatenate(blocks)
    return joined


def _without(blocks: np.ndarray, branch: np.ndarray) -> np.ndarray:
    """Blocks without the line and column ``branch``: the last ones take their place."""
    each = np.arange(len(blocks))
    blocks[each, branch] = blocks[:, -1]
    blocks[each, :, branch] = blocks[:, :, -1]
    return blocks[:, :-1, :-1]


def _bounds(nodes: Nodes, diagonal: np.ndarray) -> np.ndarray:
    """No model with t of the columns out is below the t-th entry."""
    half = 0.5 * nodes.coef**2
    single = np.sort(half / nodes.own, axis=1)
    together = np.cumsum(np.sort(half * diagonal[nodes.columns], axis=1), axis=1)
    bounds = np.zeros(nodes.live.shape)
    np.maximum(single, together, out=bounds[:, 1:])
    bounds += nodes.value[:, None]
    return bounds
