"""All sets of up to three columns that gain enough, or cost little enough, compiled: the last columns of a tree.

The columns T gain ``v_T' B_TT^-1 v_T / 2`` where v are slopes and B is what a model leaves of H; and dropping them
costs that where v are coefficients and B is the inverse of H. Blocks are lower triangles.
"""

from __future__ import annotations

import numpy as np

from pauca.relaxations.kernels import compiled


@compiled
def find_sets(
    v: np.ndarray,
    B: np.ndarray,
    m: int,
    size: int,
    limit: float,
    sign: float,
    spare: np.ndarray,
    own: np.ndarray,
    sets: np.ndarray,
) -> int:
    """Sets T of one, two or three places with ``v_T' B_TT^-1 v_T`` up to a limit, or with sign -1 from it on."""
    count = 0
    if size == 1:
        for a in range(m):
            if sign * (v[a] * v[a] - limit * B[a, a]) <= 0.0:
                sets[count, 0] = a
                count += 1
        return count
    if size == 2:
        return find_pairs(v, B, m, limit, sign, own, sets)
    for a in range(2, m):
        inverse = 1 / B[a, a]
        coef = v[a] * inverse
        for b in range(a):
            share = B[a, b] * inverse
            spare[a, b] = v[b] - coef * B[a, b]
            for c in range(b + 1):
                spare[b, c] = B[b, c] - share * B[a, c]
        n = find_pairs(spare[a], spare, a, limit - coef * v[a], sign, own, sets[count:])
        for t in range(n):
            sets[count + t, 2] = a
        count += n
    return count


@compiled
def find_pairs(
    v: np.ndarray, B: np.ndarray, m: int, limit: float, sign: float, own: np.ndarray, sets: np.ndarray
) -> int:
    """Pairs of places, as ``find_sets``."""
    count = 0
    for a in range(m):
        own[a] = B[a, a]
    for a in range(1, m):
        inverse, coef = 1 / own[a], v[a] / own[a]
        rest, some = limit - coef * v[a], 0
        # A loop without branches and divisions finds out whether there is any.
        for b in range(a):
            change = v[b] - coef * B[a, b]
            some += sign * (change * change - rest * (own[b] - B[a, b] * B[a, b] * inverse)) <= 0.0
        if some == 0:
            continue
        for b in range(a):
            change = v[b] - coef * B[a, b]
            if sign * (change * change - rest * (own[b] - B[a, b] * B[a, b] * inverse)) <= 0.0:
                sets[count, 0], sets[count, 1] = a, b
                count += 1
    return count
