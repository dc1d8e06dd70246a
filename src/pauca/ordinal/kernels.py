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
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from pauca.losses.kernels import (
    OPTIONS,
    exponential,
    log_of_one_more_than,
    loss_of,
    shared_bend,
    slopes_of,
    weigh,
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


# What compiled refits ask of rows and their loss, see ``pauca.losses.kernels``; here rows are in the order of classes.


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
