"""Epoch SGD on sparse rows, compiled: what a row costs grows with its entries alone.

Li, Yang, Zhang and Jin (2016), Algorithm 1. The coordinates of a row are moved, the sums of the whole iterate follow,
and the projection onto the l1 ball raises one threshold; see ``state`` for how iterate and average are kept.
"""

from __future__ import annotations

import math

import numpy as np

from pauca.losses.compiled import CLIPPED, LINES, LOGISTIC
from pauca.stream.balls import project_on_both, shrunk
from pauca.stream.compiler import compiled
from pauca.stream.leaving import build_queue, enter, leave, level_of, reach
from pauca.stream.state import (
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
def settle(state: State, j: int, height: float) -> None:
    """Make a coordinate active that was zero; the sums know of it already."""
    numbers, counts, features = state.numbers, state.counts, state.features
    features[j, HEIGHT] = height
    thresholds = numbers[THRESHOLDS] if height > 0 else -numbers[THRESHOLDS]
    features[j, PAST] -= height * counts[ROWS] - thresholds
    if state.levels[j] == STRANGER:
        state.members[counts[MEMBERS]] = j
        counts[MEMBERS] += 1
        state.levels[j] = MEMBER
    if counts[QUEUED]:
        enter(state, j, level_of(counts[BASE], abs(height)))


@compiled
def raise_threshold(state: State, fresh: np.ndarray, new_heights: np.ndarray, n_fresh: int) -> int:
    """Bring the iterate back onto the l1 ball; how many of the fresh coordinates remain.

    Michelot (1986): the threshold for the coordinates at hand is never too high; those it reaches leave, and so on.
    """
    numbers, counts = state.numbers, state.counts
    threshold = numbers[THRESHOLD]
    while counts[ACTIVE] > 0:
        needed = (numbers[HEIGHTS] - numbers[BOUND]) / counts[ACTIVE]
        if not needed > threshold:
            break
        threshold = needed
        before = counts[ACTIVE]
        kept = 0
        for place in range(n_fresh):
            height = new_heights[place]
            if abs(height) > threshold:
                fresh[kept], new_heights[kept] = fresh[place], height
                kept += 1
            else:
                centre = state.features[fresh[place], CENTRE]
                counts[ACTIVE] -= 1
                numbers[HEIGHTS] -= abs(height)
                numbers[SECOND] -= height * (height - 2.0 * centre)
                numbers[FIRST] -= abs(height) - (centre if height > 0 else -centre)
        n_fresh = kept
        if not counts[QUEUED]:
            build_queue(state)
        reach(state, threshold)
        if counts[ACTIVE] == before:
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
    numbers[INTERCEPT] = numbers[INTERCEPT_CENTRE] = numbers[INTERCEPT_SUM] / rows
    numbers[INTERCEPT_SUM] = 0.0
    numbers[STEP] *= 0.5
    numbers[RADIUS] *= math.sqrt(0.5)
    counts[ACTIVE] = counts[MEMBERS] = count
    counts[ROWS] = counts[QUEUED] = 0
    counts[LENGTH] *= 2
    counts[EPOCHS] += 1


@compiled
def move(
    state: State, data: np.ndarray, indices: np.ndarray, g: float, fresh: np.ndarray, new_heights: np.ndarray
) -> int:
    """Go from w to ``z = w - g x``; how many coordinates were zero. They are noted as fresh, not yet made active."""
    features, numbers, counts = state.features, state.numbers, state.counts
    threshold, thresholds, rows, queued = numbers[THRESHOLD], numbers[THRESHOLDS], counts[ROWS], counts[QUEUED] != 0
    heights, second, first, active = 0.0, 0.0, 0.0, 0
    n_fresh = 0
    for place in range(len(indices)):
        j = indices[place]
        change = g * data[place]
        if change == 0.0:
            continue
        height, centre = features[j, HEIGHT], features[j, CENTRE]
        z = shrunk(height, threshold) - change
        new = z + threshold if z > 0 else z - threshold
        if abs(new) <= threshold:
            if height != 0.0:
                leave(state, j)
            continue
        if height == 0.0:
            fresh[n_fresh], new_heights[n_fresh] = j, new
            n_fresh += 1
            active += 1
        else:
            heights -= abs(height)
            second -= height * (height - 2.0 * centre)
            first -= abs(height) - (centre if height > 0 else -centre)
            features[j, HEIGHT] = new
            past = (height - new) * rows
            if (height > 0) != (new > 0):
                past += 2.0 * thresholds if new > 0 else -2.0 * thresholds
            features[j, PAST] += past
            if queued:
                level = level_of(counts[BASE], abs(new))
                if level < state.levels[j]:
                    enter(state, j, level)
        heights += abs(new)
        second += new * (new - 2.0 * centre)
        first += abs(new) - (centre if new > 0 else -centre)
    numbers[HEIGHTS] += heights
    numbers[SECOND] += second
    numbers[FIRST] += first
    counts[ACTIVE] += active
    return n_fresh


@compiled
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
    fit_intercept: bool,
) -> None:
    """Learn from the rows of a CSR matrix in the given order. Without weights, an empty array, each counts as one."""
    features, numbers, counts = state.features, state.numbers, state.counts
    longest = 0
    for i in order:
        longest = max(longest, starts[i + 1] - starts[i])
    fresh, new_heights = np.empty(longest, dtype=np.int32), np.empty(longest)
    for i in order:
        weight = weights[i] if len(weights) > 0 else 1.0
        if weight == 0.0:
            continue
        row, columns = data[starts[i] : starts[i + 1]], indices[starts[i] : starts[i + 1]]
        threshold = numbers[THRESHOLD]
        score = numbers[INTERCEPT]
        for place in range(len(columns)):
            j = columns[place]
            score += row[place] * shrunk(features[j, HEIGHT], threshold)
            features[j, SQUARES] += weight * row[place] * row[place]
        # The average is over the iterates before each step.
        counts[ROWS] += 1
        numbers[THRESHOLDS] += threshold
        numbers[INTERCEPT_SUM] += numbers[INTERCEPT]
        numbers[WEIGHT] += weight
        counts[SEEN] += 1
        g = numbers[STEP] * weight * slope(form, low, high, y[i], score)
        if g != 0.0:
            if fit_intercept:
                numbers[INTERCEPT] -= g
            n_fresh = move(state, row, columns, g, fresh, new_heights)
            square, rounding = squared_distance(state)
            outside = square + rounding > numbers[RADIUS] ** 2
            if not outside and numbers[HEIGHTS] - counts[ACTIVE] * threshold > numbers[BOUND]:
                n_fresh = raise_threshold(state, fresh, new_heights, n_fresh)
            for place in range(n_fresh):
                settle(state, fresh[place], new_heights[place])
            if outside:
                project_on_both(state)
        if counts[ROWS] == counts[LENGTH]:
            restart(state)


@compiled
def fill_last(state: State, out: np.ndarray) -> None:
    """Write the last iterate into zeros."""
    for place in range(state.counts[MEMBERS]):
        j = state.members[place]
        out[j] = shrunk(state.features[j, HEIGHT], state.numbers[THRESHOLD])


@compiled
def fill_average(state: State, out: np.ndarray, centre_weight: float) -> None:
    """Write into zeros the average of this epoch's iterates, in which the centre counts as so many more of them."""
    rows, thresholds = state.counts[ROWS], state.numbers[THRESHOLDS]
    whole = rows + centre_weight
    for place in range(state.counts[MEMBERS]):
        j = state.members[place]
        height = state.features[j, HEIGHT]
        total = state.features[j, PAST] + height * rows + centre_weight * state.features[j, CENTRE]
        if height != 0.0:
            total -= thresholds if height > 0 else -thresholds
        out[j] = total / whole
