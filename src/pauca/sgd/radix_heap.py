"""Which coordinates the threshold reaches next: a monotone queue of heights.

A radix heap (Denardo and Fox 1979; Ahuja, Mehlhorn, Orlin and Tarjan 1990) on the bits of positive floats, which are
ordered as the floats are. A height lies at the level of the first digit in which it differs from the base, which is the
threshold that was reached last: by the place of that digit first, by its value second. When the threshold rises to
another value of some digit, all levels below have been reached, the level of that value is spread over those of later
digits, and no other is touched.

A feature lies at its own level or at a lower one: heights may rise without a word to the queue, and are found too early
at worst. Where a height falls below its level the feature is entered again, and the old entry is void, for its level is
not the feature's. The entries of a level stand in linked blocks, so that the features of a block, which lie all over
the memory, are fetched at once.
"""

from __future__ import annotations

import math

import numpy as np

from pauca.sgd.compiler import compiled
from pauca.sgd.state import (
    ACTIVE,
    BASE,
    BLOCK,
    CENTRE,
    FILLED,
    FIRST,
    FREE,
    HEIGHT,
    HEIGHTS,
    LOWEST,
    MEMBER,
    MEMBERS,
    PAST,
    PER_BLOCK,
    QUEUED,
    ROOM,
    ROWS,
    SECOND,
    THRESHOLD,
    THRESHOLDS,
    USED,
    State,
    entries_for,
)

most_entries = compiled(entries_for)


@compiled
def key_of(height: float) -> int:
    """The first 32 bits: sign, exponent and 20 bits of the mantissa."""
    return int(np.float64(height).view(np.int64)) >> 32


@compiled
def level_of(base: int, height: float) -> int:
    """Place and value of the first digit in which the key of a height differs from the base; those of the last if none.

    Digits have eight bits, and places are counted from the last.
    """
    key = key_of(height)
    # The exponent of the difference as a float is its highest bit.
    place = max((int(np.float64(key ^ base).view(np.int64)) >> 52) - 1023, 0) >> 3
    return 256 * place + ((key >> (8 * place)) & 255)


@compiled
def enter(blocks: np.ndarray, heads: np.ndarray, levels: np.ndarray, counts: np.ndarray, j: int, level: int) -> None:
    """Put a feature at a level. There must be room."""
    block, filled = heads[level, BLOCK], heads[level, FILLED]
    if filled == PER_BLOCK:
        following, block = block, counts[FREE]
        if block >= 0:
            counts[FREE] = blocks[block, PER_BLOCK]
        else:
            block = counts[USED]
            counts[USED] += 1
        blocks[block, PER_BLOCK] = following
        heads[level, BLOCK] = block
        filled = 0
    blocks[block, filled] = j
    heads[level, FILLED] = filled + 1
    levels[j] = level
    counts[ROOM] -= 1
    counts[LOWEST] = min(counts[LOWEST], level)


@compiled
def build_queue(state: State) -> None:
    """Enter every active feature into an empty queue."""
    features, levels, blocks, heads = state.features, state.levels, state.blocks, state.heads
    members, counts = state.members, state.counts
    base = key_of(state.numbers[THRESHOLD])
    for level in range(len(heads)):
        heads[level, BLOCK], heads[level, FILLED] = -1, PER_BLOCK
    counts[BASE] = base
    counts[FREE] = -1
    counts[USED] = 0
    counts[ROOM] = most_entries(len(levels))
    counts[LOWEST] = len(heads)
    counts[QUEUED] = 1
    for place in range(counts[MEMBERS]):
        j = members[place]
        height = features[j, HEIGHT]
        levels[j] = MEMBER
        if height != 0.0:
            enter(blocks, heads, levels, counts, j, level_of(base, abs(height)))


@compiled
def reach(state: State, threshold: float) -> None:
    """Let all coordinates leave whose height is not above the threshold."""
    features, levels, blocks, heads = state.features, state.levels, state.blocks, state.heads
    numbers, counts = state.numbers, state.counts
    rows, thresholds = counts[ROWS], numbers[THRESHOLDS]
    top = level_of(counts[BASE], threshold)
    base = key_of(threshold)
    counts[BASE] = base
    heights, second, first, leaving = 0.0, 0.0, 0.0, 0
    lowest = counts[LOWEST]
    counts[LOWEST] = max(lowest, top + 1)
    for level in range(lowest, top + 1):
        block, filled = heads[level, BLOCK], heads[level, FILLED]
        heads[level, BLOCK], heads[level, FILLED] = -1, PER_BLOCK
        while block >= 0:
            counts[ROOM] += filled
            for place in range(filled):
                j = blocks[block, place]
                height = features[j, HEIGHT]
                if levels[j] != level:
                    continue
                if abs(height) > threshold:
                    enter(blocks, heads, levels, counts, j, level_of(base, abs(height)))
                    continue
                centre, sign = features[j, CENTRE], math.copysign(1.0, height)
                heights += abs(height)
                second += height * (height - 2.0 * centre)
                first += abs(height) - sign * centre
                leaving += 1
                features[j, PAST] += height * rows - sign * thresholds
                features[j, HEIGHT] = 0.0
                levels[j] = MEMBER
            # Only the first block of a level may have room left.
            following, filled = blocks[block, PER_BLOCK], PER_BLOCK
            blocks[block, PER_BLOCK] = counts[FREE]
            counts[FREE] = block
            block = following
    numbers[HEIGHTS] -= heights
    numbers[SECOND] -= second
    numbers[FIRST] -= first
    counts[ACTIVE] -= leaving


@compiled
def leave(state: State, j: int) -> None:
    """Take one active coordinate to zero."""
    numbers, counts = state.numbers, state.counts
    height, centre = state.features[j, HEIGHT], state.features[j, CENTRE]
    sign = math.copysign(1.0, height)
    counts[ACTIVE] -= 1
    numbers[HEIGHTS] -= abs(height)
    numbers[SECOND] -= height * (height - 2.0 * centre)
    numbers[FIRST] -= abs(height) - sign * centre
    state.features[j, PAST] += height * counts[ROWS] - sign * numbers[THRESHOLDS]
    state.features[j, HEIGHT] = 0.0
    state.levels[j] = MEMBER
