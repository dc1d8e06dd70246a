"""The state of epoch SGD, which compiled code changes in place: a few arrays, made once. And how code is compiled.

An iterate is stored as *heights* and one *threshold* for all coordinates: ``w_j = sign(u_j) (|u_j| - Theta)``. Heights
that are not above the threshold are set to zero at once, so the active coordinates are those with ``u_j != 0``. The
projection onto the l1 ball raises the threshold and touches only coordinates that become zero.

Whatever depends on the iterate as a whole follows from four sums over the active coordinates, c being the center::

    ||w||_1     = sum |u_j| - q Theta
    ||w - c||^2 = ||c||^2 + sum (u_j^2 - 2 u_j c_j) - 2 Theta sum (|u_j| - sign(u_j) c_j) + q Theta^2

The sum of all iterates up to now is ``past_j + u_j t - sign(u_j) P``, where t counts them and P is the sum of their
thresholds: past_j is stored, and changes only when u_j does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., object])

# Columns of the array of features. Four numbers, half a line of the cache: whatever a feature has is near.
HEIGHT, CENTER, PAST, SQUARES = range(4)

# Columns of the heads of the queue's levels: the first block, and how many entries it has.
BLOCK, FILLED = range(2)

# A block is one line of the cache: so many features, and the next block of the level.
BLOCK_SIZE = 15

# Positions among the numbers.
(
    THRESHOLD,
    THRESHOLD_SUM,  # P, over all iterates of this epoch
    HEIGHT_SUM,  # of |u_j|
    QUADRATIC_SUM,  # of u_j^2 - 2 u_j c_j
    LINEAR_SUM,  # of |u_j| - sign(u_j) c_j
    CENTER_SQUARES,  # ||c||^2
    RADIUS,  # of the l1 ball
    CENTER_RADIUS,  # of the l2 ball about the center
    LEARNING_RATE,
    INTERCEPT,
    INTERCEPT_CENTER,
    INTERCEPT_SUM,  # of its distances from the center, which are zero where it is not learned
    WEIGHT_SUM,  # of all rows learned
) = range(13)

# Positions among the counts.
(
    ACTIVE,  # q
    TOUCHED,
    ROWS,  # t, iterates of this epoch
    EPOCH_LENGTH,
    EPOCHS,
    SAMPLES,  # rows learned, in all epochs
    HAS_QUEUE,
    BASE,  # of the levels
    FREE_BLOCK,  # the first of the blocks that were used and are free again, or -1
    BLOCKS_USED,  # the most there ever were
    CAPACITY,  # how many more entries the queue may have
    LOWEST_LEVEL,  # below this level there is no entry
) = range(12)

# Levels of features that are not in the queue: zero throughout the epoch, or not.
UNTOUCHED, UNQUEUED = -1, -2

# Four digits of eight bits.
LEVELS = 1024


class State(NamedTuple):
    """The arrays; d features.

    Conventions
    -----------
    features : (d, 4) floats: height u, center c, past, sum of weighted squares of the entries
    levels   : (d,) integers: level of a feature in the queue, or UNQUEUED, or UNTOUCHED
    touched  : (d,) indices of features with a height, a center or a past; all others are zero throughout the epoch
    blocks   : (_, 16) the queue: features, and the next block of the same level
    heads    : (LEVELS, 2) first blocks of the levels, and how many entries they have
    numbers, counts : what there is only one of
    """

    features: np.ndarray
    levels: np.ndarray
    touched: np.ndarray
    blocks: np.ndarray
    heads: np.ndarray
    numbers: np.ndarray
    counts: np.ndarray


def queue_capacity(n_features: int) -> int:
    """How many entries the queue may have: one for each feature, and as many that are void."""
    return 2 * n_features


def new_state(n_features: int) -> State:
    """All zeros, no feature touched. Memory is taken as features are met."""
    return State(
        features=np.zeros((n_features, 4)),
        levels=np.full(n_features, UNTOUCHED, dtype=np.int16),
        touched=np.empty(n_features, dtype=np.int32),
        blocks=np.empty((queue_capacity(n_features) // BLOCK_SIZE + LEVELS + 2, BLOCK_SIZE + 1), dtype=np.int32),
        heads=np.empty((LEVELS, 2), dtype=np.int32),
        numbers=np.zeros(13),
        counts=np.zeros(12, dtype=np.int64),
    )


def compiled(function: Function, *, cache: bool = False) -> Function:
    """The function as machine code; other threads may run beside it. numba is imported here and nowhere else.

    With ``cache`` the code is stored on disk between processes. It is compiled again when the function's own file has
    changed: after changes to another file of this package, touch that one too.
    """
    try:
        from numba import njit
    except ImportError as error:
        raise ImportError("Learning from streams needs numba: pip install numba") from error
    machine_code: Any = njit(cache=cache, nogil=True, error_model="numpy")(function)
    return machine_code
