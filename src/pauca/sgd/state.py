"""All that changes while a stream is learned from: a few arrays, made once.

An iterate is kept as *heights* and one *threshold* for all coordinates: ``w_j = sign(u_j) (|u_j| - Theta)``. Heights
that the threshold has reached are set to zero at once, so the active coordinates are those with ``u_j != 0``. The
projection onto the l1 ball raises the threshold and touches only coordinates that leave.

What is asked of the iterate as a whole follows from four sums over the active coordinates, c being the centre::

    ||w||_1     = sum |u_j| - q Theta
    ||w - c||^2 = ||c||^2 + sum (u_j^2 - 2 u_j c_j) - 2 Theta sum (|u_j| - sign(u_j) c_j) + q Theta^2

The sum of all iterates up to now is ``past_j + u_j t - sign(u_j) P``, where t counts them and P is the sum of their
thresholds: past_j is kept, and changes only when u_j does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Columns of the table of features. Four numbers, half a line of the cache: whatever is asked of a feature is near.
HEIGHT, CENTRE, PAST, SQUARES = range(4)

# Columns of the heads of the queue's levels: the first block, and how many entries it has.
BLOCK, FILLED = range(2)

# A block is one line of the cache: so many features, and the next block of the level.
PER_BLOCK = 15

# Places among the numbers.
(
    THRESHOLD,
    THRESHOLDS,  # P, the sum of the thresholds of all iterates of this epoch
    HEIGHTS,  # sum of |u_j|
    SECOND,  # sum of u_j^2 - 2 u_j c_j
    FIRST,  # sum of |u_j| - sign(u_j) c_j
    CENTRE_SQUARES,  # ||c||^2
    BOUND,
    RADIUS,
    STEP,
    INTERCEPT,
    INTERCEPT_CENTRE,
    INTERCEPT_SUM,  # of its distances from the centre, which are zero where it is not learned
    WEIGHT,  # of all rows seen
) = range(13)

# Places among the counts.
(
    ACTIVE,  # q
    MEMBERS,
    ROWS,  # t, iterates of this epoch
    LENGTH,  # of this epoch
    EPOCHS,
    SEEN,
    QUEUED,  # whether there is a queue
    BASE,  # of the levels
    FREE,  # the first of the blocks that were used and are free again, or -1
    USED,  # blocks that were ever used
    ROOM,  # how many more entries the queue may have
    LOWEST,  # below this level there is no entry
) = range(12)

# What the level of a feature says besides its place in the queue.
STRANGER, MEMBER = -1, -2

# Four digits of eight bits.
LEVELS = 1024


class State(NamedTuple):
    """The arrays; d features.

    Conventions
    -----------
    features : (d, 4) floats: height u, centre c, past, sum of weighted squares of the entries
    levels   : (d,) integers: where a feature lies in the queue, MEMBER if not there, STRANGER if it is none
    members  : (d,) indices of features with a height, a centre or a past; others are zero throughout
    blocks   : (_, 16) the queue: features, and the next block of the same level
    heads    : (LEVELS, 2) first blocks of the levels, and how many entries they have
    numbers, counts : what there is only one of
    """

    features: np.ndarray
    levels: np.ndarray
    members: np.ndarray
    blocks: np.ndarray
    heads: np.ndarray
    numbers: np.ndarray
    counts: np.ndarray


def entries_for(n_features: int) -> int:
    """How many entries the queue may have: one for each feature, and as many that are void."""
    return 2 * n_features


def new_state(n_features: int) -> State:
    """All zeros, with no member. Memory is taken as features are met."""
    return State(
        features=np.zeros((n_features, 4)),
        levels=np.full(n_features, STRANGER, dtype=np.int16),
        members=np.empty(n_features, dtype=np.int32),
        blocks=np.empty((entries_for(n_features) // PER_BLOCK + LEVELS + 2, PER_BLOCK + 1), dtype=np.int32),
        heads=np.empty((LEVELS, 2), dtype=np.int32),
        numbers=np.zeros(13),
        counts=np.zeros(12, dtype=np.int64),
    )
