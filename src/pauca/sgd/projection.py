"""Projections of the iterate, compiled: onto the l1 ball at every step, onto both balls at the rare one that needs it.

**Onto the l1 ball** by raising the threshold. Which coordinates it sets to zero next is known from a radix heap, a
monotone queue of heights (Denardo and Fox 1979; Ahuja, Mehlhorn, Orlin and Tarjan 1990) on the bits of positive floats,
which are ordered as the floats are. A height belongs to the level of the first digit in which it differs from the base,
the last threshold: by the position of that digit first, by its value second. When the threshold rises to another value
of some digit, all levels below are zeroed, the level of that value is spread over those of later digits, and no other
is touched. A feature is stored at its own level or at a lower one: heights may rise without an update of the queue, and
are found too early at worst. Where a height falls below its level the feature is pushed again; the old entry is void,
for its level is not the feature's. The entries of a level are stored in linked blocks, so that the features of a block,
which are scattered over the memory, are fetched at once.

**Onto both balls** by Li, Yang, Zhang and Jin (2017), Algorithm 3: with ``w_alpha`` the projection of
``c + alpha (z - c)`` onto the l1 ball, the answer is ``w_alpha`` for the alpha with ``||w_alpha - c|| = r``, and that
distance grows with alpha. They bisect. While the signs of ``w_alpha`` do not change, the threshold is linear in alpha
and the distance is known in closed form, so that each step here goes to the answer for the current signs, and bisects
only where that is outside the interval.
"""

from __future__ import annotations

import math

import numpy as np

import pauca.sgd.state as slot
from pauca.sgd.state import compiled

MOST_STEPS = 100

queue_capacity = compiled(slot.queue_capacity)


@compiled
def key_of(height: float) -> int:
    """The first 32 bits: sign, exponent and 20 bits of the mantissa."""
    return int(np.float64(height).view(np.int64)) >> 32


@compiled
def level_of(base: int, height: float) -> int:
    """The level of a height: position and value of the first digit in which its key differs from the base.

    Digits have eight bits, and positions are counted from the last; without a difference it is the last digit.
    """
    key = key_of(height)
    # The exponent of the difference as a float is its highest bit.
    position = max((int(np.float64(key ^ base).view(np.int64)) >> 52) - 1023, 0) >> 3
    return 256 * position + ((key >> (8 * position)) & 255)


@compiled
def push(blocks: np.ndarray, heads: np.ndarray, levels: np.ndarray, counts: np.ndarray, j: int, level: int) -> None:
    """Put a feature at a level; the queue must have capacity for it."""
    block, filled = heads[level, slot.BLOCK], heads[level, slot.FILLED]
    if filled == slot.BLOCK_SIZE:
        following, block = block, counts[slot.FREE_BLOCK]
        if block >= 0:
            counts[slot.FREE_BLOCK] = blocks[block, slot.BLOCK_SIZE]
        else:
            block = counts[slot.BLOCKS_USED]
            counts[slot.BLOCKS_USED] += 1
        blocks[block, slot.BLOCK_SIZE] = following
        heads[level, slot.BLOCK] = block
        filled = 0
    blocks[block, filled] = j
    heads[level, slot.FILLED] = filled + 1
    levels[j] = level
    counts[slot.CAPACITY] -= 1
    counts[slot.LOWEST_LEVEL] = min(counts[slot.LOWEST_LEVEL], level)


@compiled
def build_queue(state: slot.State) -> None:
    """Put every active feature into an empty queue."""
    features, levels, blocks, heads = state.features, state.levels, state.blocks, state.heads
    touched, counts = state.touched, state.counts
    base = key_of(state.numbers[slot.THRESHOLD])
    for level in range(len(heads)):
        heads[level, slot.BLOCK], heads[level, slot.FILLED] = -1, slot.BLOCK_SIZE
    counts[slot.BASE] = base
    counts[slot.FREE_BLOCK] = -1
    counts[slot.BLOCKS_USED] = 0
    counts[slot.CAPACITY] = queue_capacity(len(levels))
    counts[slot.LOWEST_LEVEL] = len(heads)
    counts[slot.HAS_QUEUE] = 1
    for position in range(counts[slot.TOUCHED]):
        j = touched[position]
        height = features[j, slot.HEIGHT]
        levels[j] = slot.UNQUEUED
        if height != 0.0:
            push(blocks, heads, levels, counts, j, level_of(base, abs(height)))


@compiled
def zero_below(state: slot.State, threshold: float) -> None:
    """Set all coordinates to zero whose height is not above the threshold."""
    features, levels, blocks, heads = state.features, state.levels, state.blocks, state.heads
    numbers, counts = state.numbers, state.counts
    rows, thresholds = counts[slot.ROWS], numbers[slot.THRESHOLD_SUM]
    top = level_of(counts[slot.BASE], threshold)
    base = key_of(threshold)
    counts[slot.BASE] = base
    heights, quadratic, linear, n_zeroed = 0.0, 0.0, 0.0, 0
    lowest = counts[slot.LOWEST_LEVEL]
    counts[slot.LOWEST_LEVEL] = max(lowest, top + 1)
    for level in range(lowest, top + 1):
        block, filled = heads[level, slot.BLOCK], heads[level, slot.FILLED]
        heads[level, slot.BLOCK], heads[level, slot.FILLED] = -1, slot.BLOCK_SIZE
        while block >= 0:
            counts[slot.CAPACITY] += filled
            for position in range(filled):
                j = blocks[block, position]
                height = features[j, slot.HEIGHT]
                if levels[j] != level:
                    continue
                if abs(height) > threshold:
                    push(blocks, heads, levels, counts, j, level_of(base, abs(height)))
                    continue
                center, sign = features[j, slot.CENTER], math.copysign(1.0, height)
                heights += abs(height)
                quadratic += height * (height - 2.0 * center)
                linear += abs(height) - sign * center
                n_zeroed += 1
                features[j, slot.PAST] += height * rows - sign * thresholds
                features[j, slot.HEIGHT] = 0.0
                levels[j] = slot.UNQUEUED
            # Only the first block of a level may be partly filled.
            following, filled = blocks[block, slot.BLOCK_SIZE], slot.BLOCK_SIZE
            blocks[block, slot.BLOCK_SIZE] = counts[slot.FREE_BLOCK]
            counts[slot.FREE_BLOCK] = block
            block = following
    numbers[slot.HEIGHT_SUM] -= heights
    numbers[slot.QUADRATIC_SUM] -= quadratic
    numbers[slot.LINEAR_SUM] -= linear
    counts[slot.ACTIVE] -= n_zeroed


@compiled
def set_to_zero(state: slot.State, j: int) -> None:
    """Set one active coordinate to zero."""
    numbers, counts = state.numbers, state.counts
    height, center = state.features[j, slot.HEIGHT], state.features[j, slot.CENTER]
    sign = math.copysign(1.0, height)
    counts[slot.ACTIVE] -= 1
    numbers[slot.HEIGHT_SUM] -= abs(height)
    numbers[slot.QUADRATIC_SUM] -= height * (height - 2.0 * center)
    numbers[slot.LINEAR_SUM] -= abs(height) - sign * center
    state.features[j, slot.PAST] += height * counts[slot.ROWS] - sign * numbers[slot.THRESHOLD_SUM]
    state.features[j, slot.HEIGHT] = 0.0
    state.levels[j] = slot.UNQUEUED


@compiled
def raise_threshold(state: slot.State, fresh: np.ndarray, new_heights: np.ndarray, n_fresh: int) -> int:
    """Bring the iterate back onto the l1 ball; how many of the fresh coordinates remain.

    Michelot (1986): the threshold for the active coordinates is never too high; those below it become zero, and so on.
    """
    numbers, counts = state.numbers, state.counts
    radius, threshold = numbers[slot.RADIUS], numbers[slot.THRESHOLD]
    if not counts[slot.HAS_QUEUE]:
        build_queue(state)
    total = 0.0
    for position in range(n_fresh):
        total += abs(new_heights[position])
    while True:
        count = counts[slot.ACTIVE] + n_fresh
        needed = (numbers[slot.HEIGHT_SUM] + total - radius) / count
        if not needed > threshold:
            break
        threshold = needed
        zero_below(state, threshold)
        kept, total = 0, 0.0
        for position in range(n_fresh):
            j, height = fresh[position], new_heights[position]
            fresh[kept], new_heights[kept] = j, height
            if abs(height) > threshold:
                total += abs(height)
                kept += 1
        n_fresh = kept
        if counts[slot.ACTIVE] + n_fresh == count:
            break
    numbers[slot.THRESHOLD] = threshold
    return n_fresh


@compiled
def soft_threshold(value: float, threshold: float) -> float:
    """The value brought towards zero by the threshold."""
    # Signs are as good as random: a branch on them would be mispredicted half of the time.
    left = abs(value) - threshold
    return math.copysign(left if left > 0.0 else 0.0, value)


@compiled
def l1_threshold(state: slot.State, alpha: float, threshold: float) -> float:
    """The threshold that brings ``c + alpha (z - c)`` onto the l1 ball; the search starts at ``threshold``.

    Newton's method on a function that is convex and piecewise linear: from the second step on it comes from below.
    """
    features, touched = state.features, state.touched
    radius, least = state.numbers[slot.RADIUS], state.numbers[slot.THRESHOLD]
    for _ in range(MOST_STEPS):
        total, count = 0.0, 0
        for position in range(state.counts[slot.TOUCHED]):
            j = touched[position]
            center = features[j, slot.CENTER]
            size = abs(center + alpha * (soft_threshold(features[j, slot.HEIGHT], least) - center))
            if size > threshold:
                total += size
                count += 1
        before = threshold
        threshold = max((total - radius) / count, 0.0) if count > 0 else 0.0
        if threshold == before or (threshold < before and total - count * before > radius):
            break
    return threshold


@compiled
def distance_and_next(state: slot.State, alpha: float, threshold: float) -> tuple[float, float]:
    """The square of ``||w_alpha - c||``, and the alpha at which that is the squared radius, all signs unchanged."""
    features, touched, numbers = state.features, state.touched, state.numbers
    least = numbers[slot.THRESHOLD]
    square, away, along, at_center, zero, count = 0.0, 0.0, 0.0, 0.0, 0.0, 0
    for position in range(state.counts[slot.TOUCHED]):
        j = touched[position]
        center = features[j, slot.CENTER]
        direction = soft_threshold(features[j, slot.HEIGHT], least) - center
        value = center + alpha * direction
        w = soft_threshold(value, threshold)
        square += (w - center) ** 2
        if w != 0.0:
            sign = 1.0 if value > 0 else -1.0
            away += direction * direction
            along += sign * direction
            at_center += sign * center
            count += 1
        else:
            zero += center * center
    if threshold > 0.0 and count > 0:
        zero += (at_center - numbers[slot.RADIUS]) ** 2 / count
        away -= along * along / count
    left = numbers[slot.CENTER_RADIUS] ** 2 - zero
    following = (left / away) ** 0.5 if left > 0.0 and away > 0.0 else -1.0
    return square, following


@compiled
def find_alpha(state: slot.State) -> tuple[float, float]:
    """The alpha of the answer and the threshold of its projection; alpha is one where the l2 ball does not matter."""
    radius = state.numbers[slot.CENTER_RADIUS]
    threshold = l1_threshold(state, 1.0, 0.0)
    square, alpha = distance_and_next(state, 1.0, threshold)
    if not square > radius * radius:
        return 1.0, threshold
    low, high = 0.0, 1.0
    for _ in range(MOST_STEPS):
        if not low < alpha < high:
            alpha = 0.5 * (low + high)
        threshold = l1_threshold(state, alpha, threshold)
        square, following = distance_and_next(state, alpha, threshold)
        if square > radius * radius:
            high = alpha
        else:
            low = alpha
        if abs(following - alpha) <= 4e-16 * alpha or high - low <= 1e-16:
            break
        alpha = following
    return alpha, threshold


@compiled
def project_onto_both_balls(state: slot.State) -> None:
    """Replace the iterate by its projection onto both balls, with all sums computed again and a threshold of zero."""
    features, numbers, counts = state.features, state.numbers, state.counts
    alpha, threshold = find_alpha(state)
    old_threshold, past_thresholds, rows = numbers[slot.THRESHOLD], numbers[slot.THRESHOLD_SUM], counts[slot.ROWS]
    heights, quadratic, linear, active, square = 0.0, 0.0, 0.0, 0, 0.0
    for position in range(counts[slot.TOUCHED]):
        j = state.touched[position]
        height, center = features[j, slot.HEIGHT], features[j, slot.CENTER]
        w = soft_threshold(center + alpha * (soft_threshold(height, old_threshold) - center), threshold)
        features[j, slot.PAST] += (height - w) * rows
        if height != 0.0:
            features[j, slot.PAST] -= past_thresholds if height > 0 else -past_thresholds
        if w != 0.0:
            features[j, slot.PAST] += past_thresholds if w > 0 else -past_thresholds
            heights += abs(w)
            quadratic += w * (w - 2.0 * center)
            linear += abs(w) - (center if w > 0 else -center)
            active += 1
        features[j, slot.HEIGHT] = w
        square += center * center
        state.levels[j] = slot.UNQUEUED
    numbers[slot.THRESHOLD] = 0.0
    numbers[slot.HEIGHT_SUM], numbers[slot.QUADRATIC_SUM], numbers[slot.LINEAR_SUM] = heights, quadratic, linear
    numbers[slot.CENTER_SQUARES] = square
    counts[slot.ACTIVE] = active
    counts[slot.HAS_QUEUE] = 0
