"""Epoch SGD on sparse rows, compiled: what a row costs grows with its entries alone.

Li, Yang, Zhang and Jin (2017), Algorithm 1. The coordinates of a row are moved, the sums of the whole iterate follow,
and the projection onto the l1 ball raises one threshold; see ``state`` for how iterate and average are stored.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

import pauca.sgd.state as slot
from pauca.losses.compiled_slopes import CLIPPED, LINES, LOGISTIC
from pauca.sgd.projection import level_of, project_onto_both_balls, push, raise_threshold, set_to_zero, soft_threshold
from pauca.sgd.state import compiled

# The squared distance from the center is a difference of larger numbers, known to this share of them; where that could
# decide, the distance is computed in full.
DISTANCE_ROUNDING = 1e-12


@compiled
def derivative(form: int, low: float, high: float, y: float, score: float) -> float:
    """The derivative of the loss in the score; ``pauca.losses.compiled_slopes`` says which form is which."""
    if form == CLIPPED:
        return min(max(score - y, low), high)
    if form == LOGISTIC:
        return -y / (1.0 + math.exp(min(y * score, 700.0)))
    residual, direction = (score - y, 1.0) if form == LINES else (y * score - 1.0, y)
    if residual < 0.0:
        return low * direction
    return (high if residual > 0.0 else 0.5 * (low + high)) * direction


@compiled
def activate(state: slot.State, fresh: np.ndarray, new_heights: np.ndarray, n_fresh: int) -> None:
    """Make coordinates active that were zero."""
    features, levels, touched, counts = state.features, state.levels, state.touched, state.counts
    blocks, heads, numbers = state.blocks, state.heads, state.numbers
    rows, thresholds = counts[slot.ROWS], numbers[slot.THRESHOLD_SUM]
    base, queued = counts[slot.BASE], counts[slot.HAS_QUEUE] != 0
    heights, quadratic, linear = 0.0, 0.0, 0.0
    for position in range(n_fresh):
        j, height = fresh[position], new_heights[position]
        center, sign = features[j, slot.CENTER], math.copysign(1.0, height)
        features[j, slot.HEIGHT] = height
        features[j, slot.PAST] -= height * rows - sign * thresholds
        heights += abs(height)
        quadratic += height * (height - 2.0 * center)
        linear += abs(height) - sign * center
        if levels[j] == slot.UNTOUCHED:
            touched[counts[slot.TOUCHED]] = j
            counts[slot.TOUCHED] += 1
            levels[j] = slot.UNQUEUED
        if queued:
            push(blocks, heads, levels, counts, j, level_of(base, abs(height)))
    numbers[slot.HEIGHT_SUM] += heights
    numbers[slot.QUADRATIC_SUM] += quadratic
    numbers[slot.LINEAR_SUM] += linear
    counts[slot.ACTIVE] += n_fresh


@compiled
def squared_distance(state: slot.State) -> tuple[float, float]:
    """The square of ``||w - c||`` from the sums, and what of it may be rounding."""
    threshold, squares = state.numbers[slot.THRESHOLD], state.numbers[slot.CENTER_SQUARES]
    quadratic, linear = state.numbers[slot.QUADRATIC_SUM], 2.0 * threshold * state.numbers[slot.LINEAR_SUM]
    constant = state.counts[slot.ACTIVE] * threshold * threshold
    whole = squares + quadratic - linear + constant
    return whole, DISTANCE_ROUNDING * (squares + abs(quadratic) + abs(linear) + constant)


@compiled
def start_epoch(state: slot.State) -> None:
    """Start an epoch at the average of the last: twice as long, half the step size, a radius less by the root of 2."""
    features, levels, touched = state.features, state.levels, state.touched
    numbers, counts = state.numbers, state.counts
    rows, thresholds = counts[slot.ROWS], numbers[slot.THRESHOLD_SUM]
    total, count = 0.0, 0
    for j in range(len(levels)):
        if levels[j] != slot.UNTOUCHED:
            height = features[j, slot.HEIGHT]
            past = features[j, slot.PAST] + height * rows
            if height != 0.0:
                past -= thresholds if height > 0 else -thresholds
            average = past / rows
            features[j, slot.CENTER] = average
            total += abs(average)
    scale = numbers[slot.RADIUS] / total if total > numbers[slot.RADIUS] else 1.0
    heights, squares = 0.0, 0.0
    for j in range(len(levels)):
        if levels[j] != slot.UNTOUCHED:
            average = features[j, slot.CENTER] * scale
            features[j, slot.CENTER] = features[j, slot.HEIGHT] = average
            features[j, slot.PAST] = 0.0
            levels[j] = slot.UNTOUCHED
            if average != 0.0:
                levels[j] = slot.UNQUEUED
                touched[count] = j
                count += 1
                heights += abs(average)
                squares += average * average
    numbers[slot.HEIGHT_SUM], numbers[slot.LINEAR_SUM] = heights, 0.0
    numbers[slot.QUADRATIC_SUM], numbers[slot.CENTER_SQUARES] = -squares, squares
    numbers[slot.THRESHOLD] = numbers[slot.THRESHOLD_SUM] = 0.0
    numbers[slot.INTERCEPT_CENTER] += numbers[slot.INTERCEPT_SUM] / rows
    numbers[slot.INTERCEPT] = numbers[slot.INTERCEPT_CENTER]
    numbers[slot.INTERCEPT_SUM] = 0.0
    numbers[slot.LEARNING_RATE] *= 0.5
    numbers[slot.CENTER_RADIUS] *= math.sqrt(0.5)
    counts[slot.ACTIVE] = counts[slot.TOUCHED] = count
    counts[slot.ROWS] = counts[slot.HAS_QUEUE] = 0
    counts[slot.EPOCH_LENGTH] *= 2
    counts[slot.EPOCHS] += 1


@compiled
def score_row(state: slot.State, data: np.ndarray, indices: np.ndarray, begin: int, end: int) -> tuple[float, bool]:
    """The score of a row, and whether some feature occurs in it twice.

    Features of the row are marked by the sign of their sum of squares, which is removed when squares are added.
    """
    features, threshold = state.features, state.numbers[slot.THRESHOLD]
    score, twice = state.numbers[slot.INTERCEPT], False
    for position in range(begin, end):
        j = indices[position]
        score += data[position] * soft_threshold(features[j, slot.HEIGHT], threshold)
        squares = features[j, slot.SQUARES]
        twice |= np.signbit(squares)
        features[j, slot.SQUARES] = -abs(squares)
    return score, twice


@compiled
def add_squares(
    features: np.ndarray, data: np.ndarray, indices: np.ndarray, begin: int, end: int, weight: float
) -> None:
    """Add the squares of a row to those of its columns, and remove the marks."""
    for position in range(begin, end):
        j = indices[position]
        features[j, slot.SQUARES] = abs(features[j, slot.SQUARES]) + weight * data[position] * data[position]


@compiled
def take_step(
    state: slot.State,
    data: np.ndarray,
    indices: np.ndarray,
    begin: int,
    end: int,
    g: float,
    weight: float,
    fresh: np.ndarray,
    new_heights: np.ndarray,
) -> tuple[int, float, float]:
    """Go from w to ``z = w - g x``, but for coordinates that were zero: these are listed as fresh.

    Returns how many these are, what they add to the l1 norm, and what they add to the squared distance from the center.
    """
    features, levels, blocks, heads = state.features, state.levels, state.blocks, state.heads
    numbers, counts = state.numbers, state.counts
    threshold, thresholds, rows = numbers[slot.THRESHOLD], numbers[slot.THRESHOLD_SUM], counts[slot.ROWS]
    base, queued = counts[slot.BASE], counts[slot.HAS_QUEUE] != 0
    heights, quadratic, linear, n_fresh, norm, square = 0.0, 0.0, 0.0, 0, 0.0, 0.0
    for position in range(begin, end):
        j, change = indices[position], g * data[position]
        features[j, slot.SQUARES] = abs(features[j, slot.SQUARES]) + weight * data[position] * data[position]
        if change == 0.0:
            continue
        height, center = features[j, slot.HEIGHT], features[j, slot.CENTER]
        z = soft_threshold(height, threshold) - change
        new = z + math.copysign(threshold, z)
        if height == 0.0:
            # Written in any case, and kept if it is above the threshold.
            fresh[n_fresh], new_heights[n_fresh] = j, new
            if abs(new) > threshold:
                n_fresh += 1
                norm += abs(z)
                square += z * (z - 2.0 * center)
        elif abs(new) > threshold:
            sign, old_sign = math.copysign(1.0, z), math.copysign(1.0, height)
            heights += abs(new) - abs(height)
            quadratic += new * (new - 2.0 * center) - height * (height - 2.0 * center)
            linear += (abs(new) - sign * center) - (abs(height) - old_sign * center)
            features[j, slot.HEIGHT] = new
            features[j, slot.PAST] += (height - new) * rows - (old_sign - sign) * thresholds
            if queued:
                level = level_of(base, abs(new))
                if level < levels[j]:
                    push(blocks, heads, levels, counts, j, level)
        else:
            set_to_zero(state, j)
    numbers[slot.HEIGHT_SUM] += heights
    numbers[slot.QUADRATIC_SUM] += quadratic
    numbers[slot.LINEAR_SUM] += linear
    return n_fresh, norm, square


@partial(compiled, cache=True)
def learn_rows(
    state: slot.State,
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
    """Learn from the rows of a CSR matrix in the given order; returns how many.

    It stops before a row in which some feature occurs twice. Without weights, an empty array, each row counts as one.
    The last two arrays are buffers, longer by one than the longest row.
    """
    numbers, counts = state.numbers, state.counts
    for done in range(len(order)):
        i = order[done]
        weight = weights[i] if len(weights) > 0 else 1.0
        if weight == 0.0:
            continue
        begin, end = starts[i], starts[i + 1]
        score, twice = score_row(state, data, indices, begin, end)
        if twice:
            add_squares(state.features, data, indices, begin, end, 0.0)
            return done
        # The average is over the iterates before each step.
        counts[slot.ROWS] += 1
        counts[slot.SAMPLES] += 1
        numbers[slot.THRESHOLD_SUM] += numbers[slot.THRESHOLD]
        numbers[slot.INTERCEPT_SUM] += numbers[slot.INTERCEPT] - numbers[slot.INTERCEPT_CENTER]
        numbers[slot.WEIGHT_SUM] += weight
        g = numbers[slot.LEARNING_RATE] * weight * derivative(form, low, high, y[i], score)
        if g != 0.0:
            numbers[slot.INTERCEPT] -= intercept_rate * g
            if counts[slot.CAPACITY] < end - begin:
                counts[slot.HAS_QUEUE] = 0
            n_fresh, norm, square = take_step(state, data, indices, begin, end, g, weight, fresh, new_heights)
            near, rounding = squared_distance(state)
            outside = near + square + rounding > numbers[slot.CENTER_RADIUS] ** 2
            norm += numbers[slot.HEIGHT_SUM] - counts[slot.ACTIVE] * numbers[slot.THRESHOLD]
            if not outside and norm > numbers[slot.RADIUS]:
                n_fresh = raise_threshold(state, fresh, new_heights, n_fresh)
            activate(state, fresh, new_heights, n_fresh)
            if outside:
                project_onto_both_balls(state)
        else:
            add_squares(state.features, data, indices, begin, end, weight)
        if counts[slot.ROWS] == counts[slot.EPOCH_LENGTH]:
            start_epoch(state)
    return len(order)
