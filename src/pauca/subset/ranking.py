"""Which units to look at in truth, by what a quadratic says of them."""

from __future__ import annotations

import numpy as np

from pauca.objectives import Bounds

# How many exchanges are looked at, and how many of them with one and the same incoming unit.
TRUE_SWAPS = 6
LOOKS_PER_UNIT = 2


def towards(slope: np.ndarray, bounds: Bounds | None) -> np.ndarray:
    """Slopes with those set to zero along which a coefficient of zero may not move."""
    if bounds is None:
        return slope
    return np.where(((slope > 0) & (bounds[1] <= 0)) | ((slope < 0) & (bounds[0] >= 0)), 0.0, slope)


def first_looks(pairs: list[tuple[float, int, int]]) -> list[tuple[int, int]]:
    """The exchanges (out, into) to look at in truth: the best ranked, but no unit too often.

    A unit that the quadratic overrates would else take all the looks.
    """
    looks: list[tuple[int, int]] = []
    for _, out, into in sorted(pairs, key=lambda pair: (-pair[0], pair[2], pair[1])):
        if sum(into == other for _, other in looks) < LOOKS_PER_UNIT:
            looks.append((out, into))
        if len(looks) == TRUE_SWAPS:
            break
    return looks


def highest(scores: np.ndarray, count: int) -> list[int]:
    """Indices of the highest finite scores, highest first, ties in order."""
    count = min(count, len(scores))
    some = np.argpartition(-scores, count - 1)[:count]
    some = some[np.isfinite(scores[some])]
    return [int(i) for i in sorted(some, key=lambda i: (-scores[i], i))]
