"""The projection onto both balls at once, in full: for the rare step that leaves the l2 ball.

Li, Yang, Zhang and Jin (2017), Algorithm 3: with ``w_alpha`` the projection of ``c + alpha (z - c)`` onto the l1 ball,
the answer is ``w_alpha`` for the alpha with ``||w_alpha - c|| = r``, and that distance grows with alpha. They halve an
interval. While the signs of ``w_alpha`` stay as they are, the threshold is linear in alpha and the distance is known in
closed form, so that each step here goes to where the answer would be for the signs at hand, and halves the interval
only where that lies outside.
"""

from __future__ import annotations

import math

from pauca.sgd.compiler import compiled
from pauca.sgd.state import (
    ACTIVE,
    BOUND,
    CENTRE,
    CENTRE_SQUARES,
    FIRST,
    HEIGHT,
    HEIGHTS,
    MEMBER,
    MEMBERS,
    PAST,
    QUEUED,
    RADIUS,
    ROWS,
    SECOND,
    THRESHOLD,
    THRESHOLDS,
    State,
)

MOST_STEPS = 100


@compiled
def shrunk(value: float, threshold: float) -> float:
    """The value brought towards zero by the threshold."""
    # Signs are as good as random: a branch on them would be guessed wrong half of the time.
    left = abs(value) - threshold
    return math.copysign(left if left > 0.0 else 0.0, value)


@compiled
def l1_threshold(state: State, alpha: float, threshold: float) -> float:
    """What brings ``c + alpha (z - c)`` onto the l1 ball; the search starts at a guess.

    Newton's method on a function that is convex and piecewise linear: from the second step on it comes from below.
    """
    features, members, bound, least = state.features, state.members, state.numbers[BOUND], state.numbers[THRESHOLD]
    for _ in range(MOST_STEPS):
        total, count = 0.0, 0
        for place in range(state.counts[MEMBERS]):
            j = members[place]
            centre = features[j, CENTRE]
            size = abs(centre + alpha * (shrunk(features[j, HEIGHT], least) - centre))
            if size > threshold:
                total += size
                count += 1
        before = threshold
        threshold = max((total - bound) / count, 0.0) if count > 0 else 0.0
        if threshold == before or (threshold < before and total - count * before > bound):
            break
    return threshold


@compiled
def distance_and_next(state: State, alpha: float, threshold: float) -> tuple[float, float]:
    """The square of ``||w_alpha - c||``, and the alpha at which it would be that of the radius, all signs unchanged."""
    features, members, numbers = state.features, state.members, state.numbers
    least = numbers[THRESHOLD]
    square, away, along, at_centre, zero, count = 0.0, 0.0, 0.0, 0.0, 0.0, 0
    for place in range(state.counts[MEMBERS]):
        j = members[place]
        centre = features[j, CENTRE]
        direction = shrunk(features[j, HEIGHT], least) - centre
        value = centre + alpha * direction
        w = shrunk(value, threshold)
        square += (w - centre) ** 2
        if w != 0.0:
            sign = 1.0 if value > 0 else -1.0
            away += direction * direction
            along += sign * direction
            at_centre += sign * centre
            count += 1
        else:
            zero += centre * centre
    if threshold > 0.0 and count > 0:
        zero += (at_centre - numbers[BOUND]) ** 2 / count
        away -= along * along / count
    left = numbers[RADIUS] ** 2 - zero
    following = (left / away) ** 0.5 if left > 0.0 and away > 0.0 else -1.0
    return square, following


@compiled
def find_alpha(state: State) -> tuple[float, float]:
    """The alpha of the answer and the threshold of its projection; alpha is one where the l2 ball does not matter."""
    radius = state.numbers[RADIUS]
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
def project_on_both(state: State) -> None:
    """Replace the iterate by its projection onto both balls, all sums made anew, the threshold back at zero."""
    features, numbers, counts = state.features, state.numbers, state.counts
    alpha, threshold = find_alpha(state)
    old_threshold, past_thresholds, rows = numbers[THRESHOLD], numbers[THRESHOLDS], counts[ROWS]
    heights, second, first, active, square = 0.0, 0.0, 0.0, 0, 0.0
    for place in range(counts[MEMBERS]):
        j = state.members[place]
        height, centre = features[j, HEIGHT], features[j, CENTRE]
        w = shrunk(centre + alpha * (shrunk(height, old_threshold) - centre), threshold)
        features[j, PAST] += (height - w) * rows
        if height != 0.0:
            features[j, PAST] -= past_thresholds if height > 0 else -past_thresholds
        if w != 0.0:
            features[j, PAST] += past_thresholds if w > 0 else -past_thresholds
            heights += abs(w)
            second += w * (w - 2.0 * centre)
            first += abs(w) - (centre if w > 0 else -centre)
            active += 1
        features[j, HEIGHT] = w
        square += centre * centre
        state.levels[j] = MEMBER
    numbers[THRESHOLD] = 0.0
    numbers[HEIGHTS], numbers[SECOND], numbers[FIRST] = heights, second, first
    numbers[CENTRE_SQUARES] = square
    counts[ACTIVE] = active
    counts[QUEUED] = 0
