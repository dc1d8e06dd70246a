"""Rows of ordered classes as compiled refits and searches along columns know them, see ``pauca.losses.kernels``.

Conventions are those of ``pauca.ordinal.kernels``: rows are in the order of classes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from pauca.losses.kernels import OPTIONS, exponential, log_of_one_more_than, loss_of, shared_bend, slopes_of, weigh
from pauca.ordinal.kernels import compiled, factorise, find_best, solve


class Ordered(NamedTuple):
    """Rows of ordered classes, and what is known of the last scores: they tell where the next thresholds are."""

    weights: np.ndarray
    columns: np.ndarray
    scores: np.ndarray
    """Those of a model, where searches along columns begin."""
    shares: np.ndarray
    ends: np.ndarray
    between: np.ndarray
    alike: np.ndarray
    limits: np.ndarray
    most_steps: int
    x: np.ndarray
    e: np.ndarray
    up: np.ndarray
    down: np.ndarray
    thresholds: np.ndarray
    pivots: np.ndarray
    below: np.ndarray
    failed: np.ndarray
    """One flag: whether thresholds of some scores were not found, so that all that was computed is void."""


@compiled
def settle(data: Ordered, scores: np.ndarray) -> bool:
    """Find the thresholds of scores; False where plain steps do not."""
    m, n, x, ends = len(data.thresholds), len(scores), data.x, data.ends
    middle = 0.0
    for i in range(n):
        middle += data.shares[i] * scores[i] if data.shares[i] > 0.0 else 0.0
    same = True
    for i in range(n):
        same &= scores[i] - middle == x[i]
    if same and data.e[0] > 0.0:
        return data.failed[0] == 0.0
    t = np.zeros(m)
    for c in range(m + 1):
        above, beneath = 0.0, 0.0
        for i in range(ends[c], ends[c + 1]):
            moved = scores[i] - middle - x[i]
            above += data.up[i] * moved
            beneath += data.down[i] * moved
        if c < m:
            t[c] += above
        if c:
            t[c - 1] += beneath
    extent, narrow = 0.0, True
    for i in range(n):
        x[i] = scores[i] - middle
        extent = max(extent, abs(x[i]))
        narrow &= abs(x[i]) <= data.limits[3]
    if not narrow:
        data.failed[0] = 1.0
        return False
    for i in range(n):
        data.e[i] = exponential(x[i])
    solve(data.pivots, data.below, t)
    ascending = True
    for j in range(m):
        t[j] += data.thresholds[j]
        ascending = ascending and (j == 0 or t[j - 1] < t[j])
    if not ascending:
        for j in range(m):
            t[j] = data.thresholds[j]
    if not find_best(data.e, extent, data.weights, ends, data.between, data.alike, data.limits, data.most_steps, t):
        data.failed[0] = 1.0
        return False
    for j in range(m):
        data.thresholds[j] = t[j]
    return True


@compiled
def bend(data: Ordered, derivative: np.ndarray, curvature: np.ndarray) -> None:
    """Derivatives and curvatures of the settled scores, of every row and in the thresholds."""
    m, ends = len(data.thresholds), data.ends
    for j in range(m):
        data.pivots[j] = data.limits[0]
    for c in range(m + 1):
        here = math.exp(-data.thresholds[c]) if c < m else 0.0
        there = math.exp(data.thresholds[c - 1]) if c else 0.0
        first, second = 0.0, 0.0
        for i in range(ends[c], ends[c + 1]):
            odds = data.e[i] * here
            within = 1.0 / (1.0 + odds)
            above = odds * within
            other = 1.0 / (data.e[i] + there)
            beneath = there * other
            above_bent, beneath_bent = above * within, beneath * data.e[i] * other
            derivative[i] = above - beneath
            curvature[i] = above_bent + beneath_bent
            data.up[i] = data.weights[i] * above_bent
            data.down[i] = data.weights[i] * beneath_bent
            first += data.up[i]
            second += data.down[i]
        if c < m:
            data.pivots[c] += first
        if c:
            data.pivots[c - 1] += second
    for j in range(m - 1):
        gap = data.thresholds[j + 1] - data.thresholds[j]
        left = -math.expm1(-gap)
        bent = data.between[j] * math.exp(-gap) / (left * left)
        data.pivots[j] += bent
        data.pivots[j + 1] += bent
        data.below[j] = -bent
    factorise(data.pivots, data.below)


@compiled
def total(data: Ordered) -> float:
    """The sum of the weighted losses of the settled scores."""
    m, ends, found = len(data.thresholds), data.ends, 0.0
    for c in range(m + 1):
        here = math.exp(-data.thresholds[c]) if c < m else 0.0
        there = math.exp(data.thresholds[c - 1]) if c else 0.0
        both = 0.0
        if 0 < c < m:
            gap = data.thresholds[c] - data.thresholds[c - 1]
            both = math.exp(-gap)
            found -= data.between[c - 1] * math.log(-math.expm1(-gap))
        for i in range(ends[c], ends[c + 1]):
            found += data.weights[i] * log_of_one_more_than(data.e[i] * here + there / data.e[i] + both)
    return found


@compiled
def across_one(data: Ordered, z: np.ndarray, found: np.ndarray) -> None:
    """Second derivatives in thresholds and one column."""
    m, ends = len(found), data.ends
    for j in range(m):
        found[j] = 0.0
    for c in range(m + 1):
        above, beneath = 0.0, 0.0
        for i in range(ends[c], ends[c + 1]):
            above += data.up[i] * z[i]
            beneath += data.down[i] * z[i]
        if c < m:
            found[c] += above
        if c:
            found[c - 1] += beneath


@compiled
def subtract_image(data: Ordered, z: np.ndarray, found: np.ndarray) -> None:
    """Take away what changes because the thresholds move with a column."""
    m, ends = len(data.thresholds), data.ends
    moved = np.empty(m)
    across_one(data, z, moved)
    solve(data.pivots, data.below, moved)
    for c in range(m + 1):
        above = moved[c] if c < m else 0.0
        beneath = moved[c - 1] if c else 0.0
        for i in range(ends[c], ends[c + 1]):
            found[i] -= above * data.up[i] + beneath * data.down[i]


@compiled
def bend_of_thresholds(data: Ordered, z: np.ndarray) -> float:
    """By how much thresholds that move with a column lessen the curvature along it."""
    m = len(data.thresholds)
    moved, right = np.empty(m), np.empty(m)
    across_one(data, z, right)
    for j in range(m):
        moved[j] = right[j]
    solve(data.pivots, data.below, moved)
    found = 0.0
    for j in range(m):
        found += moved[j] * right[j]
    return found


def _is_ordered(data: Any) -> bool:
    return "thresholds" in getattr(data, "fields", ())


@overload(slopes_of, jit_options=OPTIONS)
def _slopes_of_ordered(data: Any, scores: Any, derivative: Any, curvature: Any) -> Any:
    def found(data: Any, scores: Any, derivative: Any, curvature: Any) -> None:
        if settle(data, scores):
            bend(data, derivative, curvature)
        else:
            for i in range(len(scores)):
                derivative[i], curvature[i] = np.nan, np.nan

    return found if _is_ordered(data) else None


@overload(loss_of, jit_options=OPTIONS)
def _loss_of_ordered(data: Any, scores: Any) -> Any:
    def found(data: Any, scores: Any) -> float:
        return total(data) if settle(data, scores) else np.nan

    return found if _is_ordered(data) else None


@overload(weigh, jit_options=OPTIONS)
def _weigh_by_ordered(data: Any, curved: Any, z: Any, found: Any) -> Any:
    def weighed(data: Any, curved: Any, z: Any, found: Any) -> None:
        for i in range(len(z)):
            found[i] = curved[i] * z[i]
        subtract_image(data, z, found)

    return weighed if _is_ordered(data) else None


@overload(shared_bend, jit_options=OPTIONS)
def _shared_bend_of_ordered(data: Any, z: Any) -> Any:
    def lessened(data: Any, z: Any) -> float:
        return bend_of_thresholds(data, z)

    return lessened if _is_ordered(data) else None
