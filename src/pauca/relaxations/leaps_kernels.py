"""Leaps and bounds, compiled: the nodes of ``leaps_and_bounds`` one by one, depth first, with the same bounds.

Imported when trees have grown large, as ``kernels`` is, and 7 to 10 times faster than NumPy. Sums are taken in another
order; nothing else differs. Sorting is written out, because numba takes seconds to compile its own. Blocks are lower
triangles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

compiled = njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"}, error_model="numpy")

OUT, IN = 0, 1


class Stack(NamedTuple):
    """The nodes from the root to the one in hand, a line for each, as in ``leaps_and_bounds.Nodes``."""

    inside: np.ndarray
    size: np.ndarray
    columns: np.ndarray
    live: np.ndarray
    value: np.ndarray
    vector: np.ndarray
    block: np.ndarray
    done: np.ndarray
    """How many children of each node were looked at."""
    branch: np.ndarray
    """The place of the column that each node branches on."""


@compiled
def sort(x: np.ndarray, n: int) -> None:
    """Sort the first n numbers, in place."""
    for i in range(1, n):
        one, p = x[i], i
        while p > 0 and x[p - 1] > one:
            x[p] = x[p - 1]
            p -= 1
        x[p] = one


@compiled
def missed_most(v: np.ndarray, B: np.ndarray, m: int) -> int:
    """The place of the column that would be missed most."""
    best, place = -1.0, 0
    for j in range(m):
        cost = v[j] * v[j] / B[j, j]
        if cost > best:
            best, place = cost, j
    return place


@compiled
def without(line: np.ndarray, place: int, m: int, out: np.ndarray) -> None:
    """Copy m numbers but the one at a place, which the last one takes."""
    for j in range(m - 1):
        out[j] = line[j]
    if place < m - 1:
        out[place] = line[m - 1]


@compiled
def row_of(B: np.ndarray, place: int, m: int, line: np.ndarray) -> None:
    """A row of a block of which the lower triangle is there."""
    for j in range(place):
        line[j] = B[place, j]
    for j in range(place, m):
        line[j] = B[j, place]


@compiled
def reduced(B: np.ndarray, line: np.ndarray, place: int, m: int, inverse: float, out: np.ndarray) -> None:
    """A block without the column of ``line``, less its share in the others: ``inverse`` times its products."""
    last = m - 1
    for i in range(last):
        row = last if i == place else i
        share = line[row] * inverse
        for j in range(i):
            out[i, j] = B[row, j] - share * line[j]
        out[i, i] = B[row, row] - share * line[row]
        if i > place:
            out[i, place] = B[last, i] - share * line[last]


@compiled
def least_costs(
    v: np.ndarray, own: np.ndarray, D: np.ndarray, columns: np.ndarray, m: int, together: np.ndarray, costs: np.ndarray
) -> None:
    """What dropping 1 to m columns costs at least; ``own`` is the diagonal of the block."""
    for j in range(m):
        half = 0.5 * v[j] * v[j]
        costs[j], together[j] = half / own[j], half * D[columns[j]]
    sort(costs, m)
    sort(together, m)
    total = 0.0
    for j in range(m):
        total += together[j]
        costs[j] = max(costs[j], total)


@compiled
def find_pairs(
    v: np.ndarray, B: np.ndarray, m: int, limit: float, sign: float, own: np.ndarray, pairs: np.ndarray
) -> int:
    """Pairs whose costs are at most the limit, or with sign -1 whose gains are at least that; returns their number."""
    count = 0
    for a in range(m):
        own[a] = B[a, a]
    for a in range(1, m):
        inverse, coef = 1 / own[a], v[a] / own[a]
        rest, some = limit - coef * v[a], 0
        # A loop without branches and divisions finds out whether there is any.
        for b in range(a):
            left = own[b] - B[a, b] * B[a, b] * inverse
            change = v[b] - coef * B[a, b]
            some += sign * (change * change - rest * left) <= 0.0
        if some == 0:
            continue
        for b in range(a):
            left = own[b] - B[a, b] * B[a, b] * inverse
            change = v[b] - coef * B[a, b]
            if sign * (change * change - rest * left) <= 0.0:
                pairs[count, 0], pairs[count, 1] = a, b
                count += 1
    return count


@compiled
def begin_child(s: Stack, level: int, side: int, sought: np.ndarray) -> bool:
    """Size and live sizes of the child on one side; whether there are any of the latter."""
    child, some = level + 1, False
    s.size[child] = s.size[level] + side
    for j in range(len(s.branch) - child):
        s.live[child, j] = s.live[level, j + side] and sought[s.size[child] + j] > -np.inf
        some |= s.live[child, j]
    return some


@compiled
def settle(s: Stack, level: int, side: int, line: np.ndarray, work: np.ndarray, own: np.ndarray) -> float:
    """All of the child but its blocks, of which the diagonal of costs is put into ``own``; returns one over the pivot.

    ``line`` is filled with the products of the column that is settled.
    """
    child, m, place = level + 1, len(s.branch) - 1 - level, s.branch[level]
    row_of(s.block[level, side], place, m, line)
    v, costs, inverse = s.vector[level, side], s.block[level, OUT], 1 / line[place]
    share = v[place] * inverse
    s.value[child, 0], s.value[child, 1] = s.value[level, 0], s.value[level, 1]
    s.value[child, side] += (0.5 if side == OUT else -0.5) * v[place] * share
    for j in range(m):
        work[j] = costs[j, j] - (line[j] * line[j] * inverse if side == OUT else 0.0)
    without(work, place, m, own)
    for j in range(m):
        work[j] = v[j] - share * line[j]
    without(work, place, m, s.vector[child, side])
    without(s.vector[level, 1 - side], place, m, s.vector[child, 1 - side])
    without(s.columns[level], place, m, s.columns[child])
    s.inside[child] = s.inside[level] | (np.int64(side) << s.columns[level, place])
    return inverse


@compiled
def close_sizes(
    s: Stack, child: int, costs: np.ndarray, sought: np.ndarray, counts: np.ndarray, most_nodes: int
) -> bool:
    """Close the sizes whose bound exceeds what is sought, and give up those of too many nodes; whether one is live."""
    m, some = len(s.branch) - 1 - child, False
    for j in range(m + 1):
        if not s.live[child, j]:
            continue
        total = s.size[child] + j
        if s.value[child, OUT] + (costs[m - j - 1] if j < m else 0.0) > sought[total]:
            s.live[child, j] = False
            continue
        some = True
        counts[total] += 1
        if counts[total] > most_nodes:
            sought[total] = -np.inf
    return some


@compiled
def close_pairs(
    s: Stack, child: int, side: int, sought: np.ndarray, own: np.ndarray, pairs: np.ndarray, found: np.ndarray
) -> int:
    """The models sought with two unsettled columns, or without two, as bits; this size is then closed."""
    m, sign = len(s.branch) - 1 - child, 1.0 if side == OUT else -1.0
    few = m - 2 if side == OUT else 2
    if m < 2 or not s.live[child, few]:
        return 0
    s.live[child, few] = False
    limit = sign * 2 * (sought[s.size[child] + few] - s.value[child, side])
    if not np.isfinite(limit):
        return 0
    count = find_pairs(s.vector[child, side], s.block[child, side], m, limit, sign, own, pairs)
    for p in range(count):
        bits = s.inside[child]
        for j in range(m):
            if (j == pairs[p, 0] or j == pairs[p, 1]) == (side == IN):
                bits |= np.int64(1) << s.columns[child, j]
        found[p] = bits
    return count


@compiled
def search(
    s: Stack,
    level: int,
    most: int,
    most_nodes: int,
    D: np.ndarray,
    sought: np.ndarray,
    counts: np.ndarray,
    found: np.ndarray,
) -> tuple[int, int]:
    """Look at so many nodes, or until ``found`` is full; returns the depth of the node in hand and the models found.

    The depth is -1 at the end. ``sought`` and ``counts`` are by size; a size with more than ``most_nodes`` is given up.
    """
    M = len(s.branch) - 1
    own, costs, work, line = np.empty(M), np.empty(M), np.empty(M), np.empty(M)
    pairs, n_found, nodes = np.empty((M * M, 2), np.int64), 0, 0
    while level >= 0 and nodes < most and n_found + M * M < len(found):
        m, side, child = M - level, s.done[level], level + 1
        if side == 2 or m == 0:
            level -= 1
            continue
        if side == 0:
            s.branch[level] = missed_most(s.vector[level, OUT], s.block[level, OUT], m)
        s.done[level] += 1
        if not begin_child(s, level, side, sought):
            continue
        nodes += 1
        inverse = settle(s, level, side, line, work, own)
        least_costs(s.vector[child, OUT], own, D, s.columns[child], m - 1, work, costs)
        if not close_sizes(s, child, costs, sought, counts, most_nodes):
            continue
        place = s.branch[level]
        reduced(s.block[level, side], line, place, m, inverse, s.block[child, side])
        n_found += close_pairs(s, child, side, sought, own, pairs, found[n_found:])
        if np.any(s.live[child, :m]):
            reduced(s.block[level, 1 - side], line, place, m, 0.0, s.block[child, 1 - side])
            s.done[child] = 0
            level = child
    return level, n_found
