"""The thresholds between ordered classes and what they leave, compiled: line by line, with the steps of the NumPy code.

Short arrays take NumPy longer to call than to compute. Imported once losses have been asked for often enough, because
numba takes a while to load, and some seconds to compile on first use in an installation.

Conventions
-----------
x, e : scores around their middle and their exponentials, (B, n), in the order of classes; ``weights`` in the same order
ends : where the rows of each class begin, and the last end
up, down : of every row, what its weight leaves of the curvature at the threshold above its class and below it; zero for
    the last class and for the first
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from pauca.losses.kernels import (
    exponential,
    log_of_one_more_than,
)
from pauca.ordinal.tridiagonal import LEAST_PIVOT

# A step that is not trusted by what it gains may lead on if that is below this share of what the one before gained.
SHRUNK = 0.25

# Sums may be taken in any order and fused with products.
compiled = njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"}, error_model="numpy")


@compiled
def factorise(diagonal: np.ndarray, off: np.ndarray) -> None:
    """``L D L'`` of a tridiagonal matrix in its place: pivots, and what is left of the diagonal of L."""
    for j in range(len(off)):
        across = off[j]
        off[j] = across / diagonal[j]
        left = diagonal[j + 1] - off[j] * across
        least = LEAST_PIVOT * diagonal[j + 1]
        diagonal[j + 1] = left if left > least else least


@compiled
def solve(pivots: np.ndarray, below: np.ndarray, found: np.ndarray) -> None:
    """The solution of a factorised system in the place of its right side."""
    for j in range(len(below)):
        found[j + 1] -= below[j] * found[j]
    for j in range(len(pivots)):
        found[j] /= pivots[j]
    for j in range(len(below) - 1, -1, -1):
        found[j] -= below[j] * found[j + 1]


@compiled
def derivatives(
    e: np.ndarray,
    t: np.ndarray,
    weights: np.ndarray,
    ends: np.ndarray,
    between: np.ndarray,
    least: float,
    gradient: np.ndarray,
    diagonal: np.ndarray,
    off: np.ndarray,
) -> None:
    """Gradient and Hessian of one line in its thresholds ``t``."""
    m = len(t)
    for j in range(m):
        # Each side is summed by itself: next to the others' a class may have less weight than rounding.
        first, second, factor = 0.0, 0.0, math.exp(-t[j])
        for i in range(ends[j], ends[j + 1]):
            odds = e[i] * factor
            within = 1.0 / (1.0 + odds)
            beyond = weights[i] * odds * within
            first += beyond
            second += beyond * within
        gradient[j], diagonal[j] = -first, second + least
        first, second, factor = 0.0, 0.0, math.exp(t[j])
        for i in range(ends[j + 1], ends[j + 2]):
            within = 1.0 / (e[i] + factor)
            beyond = weights[i] * factor * within
            first += beyond
            second += beyond * e[i] * within
        gradient[j] += first
        diagonal[j] += second
    for j in range(m - 1):
        # What the distances between thresholds add.
        gap = t[j + 1] - t[j]
        left = -math.expm1(-gap)
        slope = between[j] * math.exp(-gap) / left
        bend = slope / left
        gradient[j] += slope
        gradient[j + 1] -= slope
        diagonal[j] += bend
        diagonal[j + 1] += bend
        off[j] = -bend


@compiled
def may_be_best(t: np.ndarray, alike: np.ndarray, extent: float, widest: float) -> bool:
    """Whether thresholds ascend, lie where the best ones can, and may be exponentiated apart from the scores."""
    fine = -widest <= t[0] and t[-1] <= widest
    for j in range(len(t)):
        fine = fine and abs(t[j] - alike[j]) <= extent and (j == 0 or t[j - 1] < t[j])
    return fine


@compiled
def centre(line: np.ndarray, order: np.ndarray, shares: np.ndarray, x: np.ndarray) -> float:
    """Scores around their mean, in the order of classes, in ``x``; returns the mean. Rows without share may be any."""
    middle = 0.0
    for i in range(len(order)):
        x[i] = line[order[i]]
        if shares[i]:
            middle += shares[i] * x[i]
    for i in range(len(order)):
        x[i] -= middle
    return middle


@compiled
def start(
    x: np.ndarray,
    near: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    ends: np.ndarray,
    thresholds: np.ndarray,
    pivots: np.ndarray,
    below: np.ndarray,
    t: np.ndarray,
) -> None:
    """Where thresholds go to first order when scores change from ``near`` to ``x``."""
    for j in range(len(t)):
        first, second = 0.0, 0.0
        for i in range(ends[j], ends[j + 1]):
            first += up[i] * (x[i] - near[i])
        for i in range(ends[j + 1], ends[j + 2]):
            second += down[i] * (x[i] - near[i])
        t[j] = first + second
    solve(pivots, below, t)
    ascending = True
    for j in range(len(t)):
        t[j] += thresholds[j]
        ascending = ascending and (j == 0 or t[j - 1] < t[j])
    if not ascending:
        for j in range(len(t)):
            t[j] = thresholds[j]


@compiled
def find_best(
    e: np.ndarray,
    extent: float,
    weights: np.ndarray,
    ends: np.ndarray,
    between: np.ndarray,
    alike: np.ndarray,
    limits: np.ndarray,
    most_steps: int,
    t: np.ndarray,
) -> bool:
    """The best thresholds of one line from a start in ``t``, in its place; False where plain steps do not lead there.

    ``limits``: the least curvature, the gain up to which steps are trusted, that of the last step, and the largest
    score and threshold.
    """
    m = len(t)
    gradient, step, diagonal, off = np.empty(m), np.empty(m), np.empty(m), np.empty(m - 1)
    least, trusted, last, widest = limits[0], limits[1], limits[2], limits[3]
    for j in range(m):
        t[j] = min(max(t[j], alike[j] - extent), alike[j] + extent)
    before = np.inf
    for _ in range(most_steps):
        if not may_be_best(t, alike, extent, widest):
            return False
        derivatives(e, t, weights, ends, between, least, gradient, diagonal, off)
        factorise(diagonal, off)
        for j in range(m):
            step[j] = gradient[j]
        solve(diagonal, off, step)
        predicted = 0.0
        for j in range(m):
            predicted += 0.5 * gradient[j] * step[j]
            t[j] -= step[j]
        if not (predicted <= trusted or predicted <= SHRUNK * before):
            return False
        if predicted <= last:
            return may_be_best(t, alike, extent, widest)
        before = predicted
    return False


@compiled
def find_thresholds(
    lines: np.ndarray,
    order: np.ndarray,
    shares: np.ndarray,
    weights: np.ndarray,
    ends: np.ndarray,
    between: np.ndarray,
    alike: np.ndarray,
    limits: np.ndarray,
    most_steps: int,
    near: np.ndarray,
    near_up: np.ndarray,
    near_down: np.ndarray,
    near_thresholds: np.ndarray,
    near_pivots: np.ndarray,
    near_below: np.ndarray,
    middles: np.ndarray,
    x: np.ndarray,
    e: np.ndarray,
    found: np.ndarray,
    solved: np.ndarray,
) -> bool:
    """Centre lines and find the best thresholds of each by Newton's method; False where exponentials would overflow.

    The steps start at what is known of scores ``near``. A line is not ``solved`` where plain steps swap thresholds,
    lead beyond where the best ones can be or gain too little; ``limits`` are those of ``find_best``.
    """
    widest = limits[3]
    for b in range(len(lines)):
        middles[b] = centre(lines[b], order, shares, x[b])
        extent = 0.0
        for i in range(len(order)):
            if not abs(x[b, i]) <= widest:
                return False
            extent = max(extent, abs(x[b, i]))
            e[b, i] = exponential(x[b, i])
        start(x[b], near, near_up, near_down, ends, near_thresholds, near_pivots, near_below, found[b])
        solved[b] = find_best(e[b], extent, weights, ends, between, alike, limits, most_steps, found[b])
    return True


@compiled
def slopes(
    e: np.ndarray,
    thresholds: np.ndarray,
    weights: np.ndarray,
    ends: np.ndarray,
    order: np.ndarray,
    derivative: np.ndarray,
    curvature: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
) -> None:
    """Derivatives and curvatures of all rows, in the order of the data; ``up`` and ``down`` in that of the classes."""
    m = thresholds.shape[1]
    for b in range(len(e)):
        for c in range(m + 1):
            here = math.exp(-thresholds[b, c]) if c < m else 0.0
            there = math.exp(thresholds[b, c - 1]) if c else 0.0
            for i in range(ends[c], ends[c + 1]):
                odds = e[b, i] * here
                within = 1.0 / (1.0 + odds)
                above = odds * within
                above_bent = above * within
                within = 1.0 / (e[b, i] + there)
                beneath = there * within
                beneath_bent = beneath * e[b, i] * within
                derivative[b, order[i]] = above - beneath
                curvature[b, order[i]] = above_bent + beneath_bent
                up[b, i] = weights[i] * above_bent
                down[b, i] = weights[i] * beneath_bent


@compiled
def hessians(
    thresholds: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    ends: np.ndarray,
    between: np.ndarray,
    least: float,
    pivots: np.ndarray,
    below: np.ndarray,
) -> None:
    """Second derivatives of every line in its thresholds, factorised."""
    m = thresholds.shape[1]
    for b in range(len(thresholds)):
        for j in range(m):
            first, second = 0.0, 0.0
            for i in range(ends[j], ends[j + 1]):
                first += up[b, i]
            for i in range(ends[j + 1], ends[j + 2]):
                second += down[b, i]
            pivots[b, j] = first + second + least
        for j in range(m - 1):
            gap = thresholds[b, j + 1] - thresholds[b, j]
            left = -math.expm1(-gap)
            bend = between[j] * math.exp(-gap) / (left * left)
            pivots[b, j] += bend
            pivots[b, j + 1] += bend
            below[b, j] = -bend
        factorise(pivots[b], below[b])


@compiled
def losses(e: np.ndarray, thresholds: np.ndarray, ends: np.ndarray, order: np.ndarray, found: np.ndarray) -> None:
    """Losses of all rows, in the order of the data.

    The logarithms of the two sides are one: ``(1 + x) (1 + y) = 1 + (x + y + x y)``.
    """
    m = thresholds.shape[1]
    for b in range(len(e)):
        for c in range(m + 1):
            here = math.exp(-thresholds[b, c]) if c < m else 0.0
            there = math.exp(thresholds[b, c - 1]) if c else 0.0
            both = math.exp(thresholds[b, c - 1] - thresholds[b, c]) if 0 < c < m else 0.0
            own = math.log(-math.expm1(thresholds[b, c - 1] - thresholds[b, c])) if 0 < c < m else 0.0
            for i in range(ends[c], ends[c + 1]):
                found[b, order[i]] = log_of_one_more_than(e[b, i] * here + there / e[b, i] + both) - own


@compiled
def across(columns: np.ndarray, up: np.ndarray, down: np.ndarray, ends: np.ndarray, found: np.ndarray) -> None:
    """Second derivatives in thresholds and columns, (q, m), for columns in the order of classes.

    ``up`` and ``down`` are one line, or one for each column.
    """
    m, alone = found.shape[1], len(up) == 1
    for b in range(len(columns)):
        line = 0 if alone else b
        for j in range(m):
            first, second = 0.0, 0.0
            for i in range(ends[j], ends[j + 1]):
                first += up[line, i] * columns[b, i]
            for i in range(ends[j + 1], ends[j + 2]):
                second += down[line, i] * columns[b, i]
            found[b, j] = first + second


@compiled
def image(
    moved: np.ndarray, order: np.ndarray, up: np.ndarray, down: np.ndarray, ends: np.ndarray, found: np.ndarray
) -> None:
    """How weighted slopes of rows, in the order of the data, change when thresholds are ``moved``: (q, n)."""
    m, alone = moved.shape[1], len(up) == 1
    for b in range(len(moved)):
        line = 0 if alone else b
        for c in range(m + 1):
            above = moved[b, c] if c < m else 0.0
            beneath = moved[b, c - 1] if c else 0.0
            for i in range(ends[c], ends[c + 1]):
                found[b, order[i]] = above * up[line, i] + beneath * down[line, i]
