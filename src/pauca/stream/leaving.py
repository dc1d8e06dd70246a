"""Which coordinates the threshold reaches next: a monotone queue of heights.

A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan 1990) on the bits of positive floats, which are ordered as the floats
are. The level of a height is one more than the highest bit in which it differs from the base, the threshold that was
reached last. When the threshold rises past a bit, all lower levels have been reached, the level of that bit is spread
over lower ones, and no other is touched.

A feature lies at its own level or at a lower one: heights may rise without a word to the queue, and are found too early
at worst. Where a height falls below its level the feature is entered again, and the old entry is void, for its level is
not the feature's.
"""

from __future__ import annotations

import numpy as np

from pauca.stream.compiler import compiled
from pauca.stream.state import (
    ACTIVE,
    BASE,
    CENTRE,
    FIRST,
    FREE,
    HEIGHT,
    HEIGHTS,
    LEVELS,
    MEMBER,
    MEMBERS,
    PAST,
    QUEUED,
    ROWS,
    SECOND,
    THRESHOLD,
    THRESHOLDS,
    USED,
    State,
)


@compiled
def level_of(base: int, height: float) -> int:
    """One more than the highest bit in which the height differs from the base; zero if it does not."""
    differing = np.float64(height).view(np.int64) ^ base
    # The exponent of the number as a float is its highest bit. Without its last bits it is not rounded up to the next.
    if differing >= 1 << 32:
        return int(np.float64(differing >> 16).view(np.int64) >> 52) - 1006
    if differing > 0:
        return int(np.float64(differing).view(np.int64) >> 52) - 1022
    return 0


@compiled
def enter(state: State, j: int, level: int) -> None:
    """Put a feature at a level; where there is no room left, all void entries are thrown out first."""
    counts = state.counts
    entry = counts[FREE]
    if entry >= 0:
        counts[FREE] = state.links[entry]
    elif counts[USED] < len(state.items):
        entry = counts[USED]
        counts[USED] += 1
    else:
        build_queue(state)
        return
    state.items[entry] = j
    state.links[entry] = state.heads[level]
    state.heads[level] = entry
    state.levels[j] = level


@compiled
def build_queue(state: State) -> None:
    """Enter every active feature into an empty queue."""
    counts = state.counts
    base = int(np.float64(state.numbers[THRESHOLD]).view(np.int64))
    counts[BASE] = base
    counts[FREE] = -1
    counts[QUEUED] = 1
    state.heads[:] = -1
    used = 0
    for place in range(counts[MEMBERS]):
        j = state.members[place]
        height = state.features[j, HEIGHT]
        if height != 0.0:
            level = level_of(base, abs(height))
            state.items[used] = j
            state.links[used] = state.heads[level]
            state.heads[level] = used
            state.levels[j] = level
            used += 1
        else:
            state.levels[j] = MEMBER
    counts[USED] = used


@compiled
def leave(state: State, j: int) -> None:
    """Take an active coordinate to zero."""
    numbers, counts = state.numbers, state.counts
    height, centre = state.features[j, HEIGHT], state.features[j, CENTRE]
    sign = 1.0 if height > 0 else -1.0
    counts[ACTIVE] -= 1
    numbers[HEIGHTS] -= abs(height)
    numbers[SECOND] -= height * (height - 2.0 * centre)
    numbers[FIRST] -= abs(height) - sign * centre
    state.features[j, PAST] += height * counts[ROWS] - sign * numbers[THRESHOLDS]
    state.features[j, HEIGHT] = 0.0
    state.levels[j] = MEMBER


@compiled
def reach(state: State, threshold: float) -> None:
    """Let all coordinates leave whose height is not above the threshold."""
    counts = state.counts
    base = int(np.float64(threshold).view(np.int64))
    top = level_of(counts[BASE], threshold)
    counts[BASE] = base
    for level in range(min(top + 1, LEVELS)):
        entry = state.heads[level]
        state.heads[level] = -1
        while entry >= 0:
            following = state.links[entry]
            j = state.items[entry]
            state.links[entry] = counts[FREE]
            counts[FREE] = entry
            if state.levels[j] == level:
                height = abs(state.features[j, HEIGHT])
                if height <= threshold:
                    leave(state, j)
                else:
                    enter(state, j, level_of(base, height))
            entry = following
