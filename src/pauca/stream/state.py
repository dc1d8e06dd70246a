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

# Columns of the entries of the queue.
FEATURE, NEXT = range(2)

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
    FREE,  # the first of the entries that were used and are free again, or -1
    USED,  # entries that were ever used
    ROOM,  # entries that are free, used before or not
) = range(11)

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
    entries  : (2 d, 2) indices: the queue, each entry a feature and the next entry of its level
    heads    : (LEVELS,) first entries of the levels
    numbers, counts : what there is only one of
    """

    features: np.ndarray
    levels: np.ndarray
    members: np.ndarray
    entries: np.ndarray
    heads: np.ndarray
    numbers: np.ndarray
    counts: np.ndarray


def new_state(n_features: int) -> State:
    """All zeros, with no member. Memory is taken as features are met."""
    return State(
        features=np.zeros((n_features, 4)),
        levels=np.full(n_features, STRANGER, dtype=np.int16),
        members=np.empty(n_features, dtype=np.int32),
        entries=np.empty((2 * n_features, 2), dtype=np.int32),
        heads=np.full(LEVELS, -1, dtype=np.int32),
        numbers=np.zeros(13),
        counts=np.zeros(11, dtype=np.int64),
    )
