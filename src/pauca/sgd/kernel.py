"""Epoch SGD on sparse rows, compiled: what a row costs grows with its entries alone.

Li, Yang, Zhang and Jin (2017), Algorithm 1. The coordinates of a row are moved, the sums of the whole iterate follow,
and the projection onto the l1 ball raises one threshold; see ``state`` for how iterate and average are kept.
"""

from __future__ import annotations

import math

import numpy as np

from pauca.losses.compiled import CLIPPED, LINES, LOGISTIC
from pauca.sgd.compiler import compiled, compiled_and_kept
from pauca.sgd.projection import project_on_both, shrunk
from pauca.sgd.radix_heap import build_queue, enter, leave, level_of, reach
from pauca.sgd.state import (
    ACTIVE,
    BASE,
    BOUND,
    CENTRE,
    CENTRE_SQUARES,
    EPOCHS,
    FIRST,
    HEIGHT,
    HEIGHTS,
    INTERCEPT,
    INTERCEPT_CENTRE,
    INTERCEPT_SUM,
    LENGTH,
    MEMBER,
    MEMBERS,
    PAST,
    QUEUED,
    RADIUS,
    ROOM,
    ROWS,
    SECOND,
    SEEN,
    SQUARES,
    STEP,
    STRANGER,
    THRESHOLD,
    THRESHOLDS,
    WEIGHT,
    State,
)

# The distance from the centre is the difference of larger numbers: so much of them is left to rounding, and where that
# could decide, the distance is taken in full.
ROUNDING = 1e-12


@compiled
def slope(form: int, low: float, high: float, y: float, score: float) -> float:
    """The derivative of the loss in the score; ``pauca.losses.compiled`` says which form is which."""
    if form == CLIPPED:
        return min(max(score - y, low), high)
    if form == LOGISTIC:
        return -y / (1.0 + math.exp(min(y * score, 700.0)))
    residual, direction = (score - y, 1.0) if form == LINES else (y * score - 1.0, y)
    if residual < 0.0:
        return low * direction
    return (high if residual > 0.0 else 0.5 * (low + high)) * direction


@compiled
def settle(state: State, fresh: np.ndarray, new_heights: np.ndarray, n_fresh: int) -> None:
    """Make coordinates active that were zero."""
    features, levels, members, counts = state.features, state.levels, state.members, state.counts
    blocks, heads, numbers = state.blocks, state.heads, state.numbers
    rows, thresholds, base, queued = counts[ROWS], numbers[THRESHOLDS], counts[BASE], counts[QUEUED] != 0
    heights, second, first = 0.0, 0.0, 0.0
    for place in range(n_fresh):
        j, height = fresh[place], new_heights[place]
        centre, sign = features[j, CENTRE], math.copysign(1.0, height)
        features[j, HEIGHT] = height
        features[j, PAST] -= height * rows - sign * thresholds
        heights += abs(height)
        second += height * (height - 2.0 * centre)
        first += abs(height) - sign * centre
        if levels[j] == STRANGER:
            members[counts[MEMBERS]] = j
            counts[MEMBERS] += 1
            levels[j] = MEMBER
        if queued:
            enter(blocks, heads, levels, counts, j, level_of(base, abs(height)))
    numbers[HEIGHTS] += heights
    numbers[SECOND] += second
    numbers[FIRST] += first
    counts[ACTIVE] += n_fresh


@compiled
def raise_threshold(state: State, fresh: np.ndarray, new_heights: np.ndarray, n_fresh: int) -> int:
    """Bring the iterate back onto the l1 ball; how many of the fresh coordinates remain.

    Michelot (1986): the threshold for the coordinates at hand is never too high; those it reaches leave, and so on.
    """
    numbers, counts = state.numbers, state.counts
    bound, threshold = numbers[BOUND], numbers[THRESHOLD]
    if not counts[QUEUED]:
        build_queue(state)
    total = 0.0
    for place in range(n_fresh):
        total += abs(new_heights[place])
    while True:
        count = counts[ACTIVE] + n_fresh
        needed = (numbers[HEIGHTS] + total - bound) / count
        if not needed > threshold:
            break
        threshold = needed
        reach(state, threshold)
        kept, total = 0, 0.0
        for place in range(n_fresh):
            j, height = fresh[place], new_heights[place]
            fresh[kept], new_heights[kept] = j, height
            if abs(height) > threshold:
                total += abs(height)
                kept += 1
        n_fresh = kept
        if counts[ACTIVE] + n_fresh == count:
            break
    numbers[THRESHOLD] = threshold
    return n_fresh


@compiled
def squared_distance(state: State) -> tuple[float, float]:
    """The square of ``||w - c||`` from the sums, and what of it may be rounding."""
    numbers = state.numbers
    threshold = numbers[THRESHOLD]
    first, last = 2.0 * threshold * numbers[FIRST], state.counts[ACTIVE] * threshold * threshold
    whole = numbers[CENTRE_SQUARES] + numbers[SECOND] - first + last
    return whole, ROUNDING * (numbers[CENTRE_SQUARES] + abs(numbers[SECOND]) + abs(first) + last)


@compiled
def restart(state: State) -> None:
    """Begin an epoch at the average of the last: twice as long, half the step, the radius less by the root of two."""
    features, levels, members = state.features, state.levels, state.members
    numbers, counts = state.numbers, state.counts
    rows, thresholds = counts[ROWS], numbers[THRESHOLDS]
    total, count = 0.0, 0
    for j in range(len(levels)):
        if levels[j] != STRANGER:
            height = features[j, HEIGHT]
            past = features[j, PAST] + height * rows
            if height != 0.0:
                past -= thresholds if height > 0 else -thresholds
            average = past / rows
            features[j, CENTRE] = average
            total += abs(average)
    scale = numbers[BOUND] / total if total > numbers[BOUND] else 1.0
    heights, squares = 0.0, 0.0
    for j in range(len(levels)):
        if levels[j] != STRANGER:
            average = features[j, CENTRE] * scale
            features[j, CENTRE] = features[j, HEIGHT] = average
            features[j, PAST] = 0.0
            levels[j] = STRANGER
            if average != 0.0:
                levels[j] = MEMBER
                members[count] = j
                count += 1
                heights += abs(average)
                squares += average * average
    numbers[HEIGHTS], numbers[SECOND], numbers[FIRST], numbers[CENTRE_SQUARES] = heights, -squares, 0.0, squares
    numbers[THRESHOLD] = numbers[THRESHOLDS] = 0.0
    numbers[INTERCEPT_CENTRE] += numbers[INTERCEPT_SUM] / rows
    numbers[INTERCEPT] = numbers[INTERCEPT_CENTRE]
    numbers[INTERCEPT_SUM] = 0.0
    numbers[STEP] *= 0.5
    numbers[RADIUS] *= math.sqrt(0.5)
    counts[ACTIVE] = counts[MEMBERS] = count
    counts[ROWS] = counts[QUEUED] = 0
    counts[LENGTH] *= 2
    counts[EPOCHS] += 1


@compiled
def score_of(state: State, data: np.ndarray, indices: np.ndarray, begin: int, end: int) -> tuple[float, bool]:
    """The score of a row, and whether some feature stands in it twice.

    Features that were met are marked by the sign of their sum of squares, which is taken away when squares are added.
    """
    features, threshold = state.features, state.numbers[THRESHOLD]
    score, twice = state.numbers[INTERCEPT], False
    for place in range(begin, end):
        j = indices[place]
        score += data[place] * shrunk(features[j, HEIGHT], threshold)
        squares = features[j, SQUARES]
        twice |= np.signbit(squares)
        features[j, SQUARES] = -abs(squares)
    return score, twice


@compiled
def add_squares(
    features: np.ndarray, data: np.ndarray, indices: np.ndarray, begin: int, end: int, weight: float
) -> None:
    """Add the squares of a row to those of its columns, and take away the marks."""
    for place in range(begin, end):
        j = indices[place]
        features[j, SQUARES] = abs(features[j, SQUARES]) + weight * data[place] * data[place]


@compiled
def move(
    state: State,
    data: np.ndarray,
    indices: np.ndarray,
    begin: int,
    end: int,
    g: float,
    weight: float,
    fresh: np.ndarray,
    new_heights: np.ndarray,
) -> tuple[int, float, float]:
    """Go from w to ``z = w - g x``, but for coordinates that were zero: they are noted as fresh.

    Answers how many these are, what they add to the l1 norm, and what they add to the squared distance from the centre.
    """
    features, levels, blocks, heads = state.features, state.levels, state.blocks, state.heads
    numbers, counts = state.numbers, state.counts
    threshold, thresholds, rows = numbers[THRESHOLD], numbers[THRESHOLDS], counts[ROWS]
    base, queued = counts[BASE], counts[QUEUED] != 0
    heights, second, first, n_fresh, norm, square = 0.0, 0.0, 0.0, 0, 0.0, 0.0
    for place in range(begin, end):
        j, change = indices[place], g * data[place]
        features[j, SQUARES] = abs(features[j, SQUARES]) + weight * data[place] * data[place]
        if change == 0.0:
            continue
        height, centre = features[j, HEIGHT], features[j, CENTRE]
        z = shrunk(height, threshold) - change
        new = z + math.copysign(threshold, z)
        if height == 0.0:
            # Noted in any case, and kept if it is above the threshold.
            fresh[n_fresh], new_heights[n_fresh] = j, new
            if abs(new) > threshold:
                n_fresh += 1
                norm += abs(z)
                square += z * (z - 2.0 * centre)
        elif abs(new) > threshold:
            sign, old_sign = math.copysign(1.0, z), math.copysign(1.0, height)
            heights += abs(new) - abs(height)
            second += new * (new - 2.0 * centre) - height * (height - 2.0 * centre)
            first += (abs(new) - sign * centre) - (abs(height) - old_sign * centre)
            features[j, HEIGHT] = new
            features[j, PAST] += (height - new) * rows - (old_sign - sign) * thresholds
            if queued:
                level = level_of(base, abs(new))
                if level < levels[j]:
                    enter(blocks, heads, levels, counts, j, level)
        else:
            leave(state, j)
    numbers[HEIGHTS] += heights
    numbers[SECOND] += second
    numbers[FIRST] += first
    return n_fresh, norm, square


@compiled_and_kept
def learn_rows(
    state: State,
    data: np.ndarray,
    indices: np.ndarray,
    starts: np.ndarray,
    order: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    form: int,
    low: float,
    high: float,
    intercept_rate: float,
    fresh: np.ndarray,
    new_heights: np.ndarray,
) -> int:
    """Learn from the rows of a CSR matrix in the given order; how many it took.

    It stops before a row in which some feature stands twice. Without weights, an empty array, each row counts as one.
    The last two arrays are room to work in, with one place more than the longest row has entries.
    """
    numbers, counts = state.numbers, state.counts
    for done in range(len(order)):
        i = order[done]
        weight = weights[i] if len(weights) > 0 else 1.0
        if weight == 0.0:
            continue
        begin, end = starts[i], starts[i + 1]
        score, twice = score_of(state, data, indices, begin, end)
        if twice:
            add_squares(state.features, data, indices, begin, end, 0.0)
            return done
        # The average is over the iterates before each step.
        counts[ROWS] += 1
        counts[SEEN] += 1
        numbers[THRESHOLDS] += numbers[THRESHOLD]
        numbers[INTERCEPT_SUM] += numbers[INTERCEPT] - numbers[INTERCEPT_CENTRE]
        numbers[WEIGHT] += weight
        g = numbers[STEP] * weight * slope(form, low, high, y[i], score)
        if g != 0.0:
            numbers[INTERCEPT] -= intercept_rate * g
            if counts[ROOM] < end - begin:
                counts[QUEUED] = 0
            n_fresh, norm, square = move(state, data, indices, begin, end, g, weight, fresh, new_heights)
            near, rounding = squared_distance(state)
            outside = near + square + rounding > numbers[RADIUS] ** 2
            if not outside and numbers[HEIGHTS] - counts[ACTIVE] * numbers[THRESHOLD] + norm > numbers[BOUND]:
                n_fresh = raise_threshold(state, fresh, new_heights, n_fresh)
            settle(state, fresh, new_heights, n_fresh)
            if outside:
                project_on_both(state)
        else:
            add_squares(state.features, data, indices, begin, end, weight)
        if counts[ROWS] == counts[LENGTH]:
            restart(state)
    return len(order)
