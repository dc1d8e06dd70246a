"""How far to go along a step: backtracking, bracketing of the slope, and the exact minimum.

All of them allow for the rounding of the values they compare, see ``pauca.tolerances.LINE_SEARCH_SLACK``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import brentq

from pauca.tolerances import SUFFICIENT_DECREASE

Point = TypeVar("Point")

# A slope that has overflowed counts as this: only its sign matters.
HUGE_SLOPE = 1e300


class Trial(NamedTuple, Generic[Point]):
    """The end of a step."""

    value: float
    expected: float
    """The decrease predicted by the slope at the start of the step."""
    point: Point


def backtrack(
    try_length: Callable[[float], Trial[Point] | None], value: float, slack: float, shortest: float
) -> tuple[float, Trial[Point]] | None:
    """The first of the lengths 1, 1/2, 1/4, ... at which the value has fallen enough (Armijo 1966).

    Parameters
    ----------
    try_length : callable
        The end of a step of some length; None if it lies outside of the domain.
    value : float
        The value at the start of the step.
    slack : float
        By how much rounding may raise a value.
    shortest : float
        Steps are longer than this.

    Returns
    -------
    length, trial : float, Trial
        None if no length will do.
    """
    length = 1.0
    while length > shortest:
        trial = try_length(length)
        if trial is not None and trial.value <= value - SUFFICIENT_DECREASE * trial.expected + slack:
            return length, trial
        length *= 0.5
    return None


class SlopeBracket:
    """The lengths between which a convex function turns from falling to rising along a step.

    Lengths grow by a factor of four until the function rises. Then the root of the slope is found by false position,
    with a bisection every third time, or whenever nothing is known of the slope at the upper end.
    """

    def __init__(self, slope: float) -> None:
        self.low, self.high = 0.0, np.inf
        self._slope_low, self._slope_high = slope, np.nan
        self._trials = 0

    @property
    def width(self) -> float:
        """The difference of the two lengths, as a share of the larger."""
        return (self.high - self.low) / self.high

    def falls_at(self, length: float, slope: float) -> None:
        """The function still falls at this length."""
        self.low, self._slope_low = length, slope

    def rises_at(self, length: float, slope: float = np.nan) -> None:
        """The function rises at this length or is too high there, or the length leads out of the domain."""
        self.high, self._slope_high = length, slope

    def next_length(self, length: float) -> float:
        """The length to try after ``length``."""
        self._trials += 1
        if self.high == np.inf:
            return 4.0 * length
        if self._trials % 3 == 0 or not 0 < self._slope_high < np.inf:
            return 0.5 * (self.low + self.high)
        return self.low - self._slope_low * (self.high - self.low) / (self._slope_high - self._slope_low)


def search_by_slope(
    end_of: Callable[[float], tuple[float, Point]], predicted: float, *, fall: float, rise: float, most_trials: int
) -> Point | None:
    """All the way along a step of a convex function if the slope there is small enough, else to where it is.

    Parameters
    ----------
    end_of : callable
        Slope and point at the end of a step of some length.
    predicted : float
        By how much a quadratic with the slope at the start would fall: that slope is minus twice this.
    fall, rise : float
        The shares of the first slope that may be left at the end, and that it may rise again.
    most_trials : int
        How many lengths are tried.

    Returns
    -------
    Point or None
        The end of the step; None if none of these lengths will do.
    """
    length, first = 1.0, -2.0 * predicted
    bracket: SlopeBracket | None = None
    for _ in range(most_trials):
        slope, point = end_of(length)
        if fall * first <= slope <= -rise * first:
            return point
        bracket = bracket or SlopeBracket(first)
        if slope < 0:
            bracket.falls_at(length, slope)
        else:
            bracket.rises_at(length, slope)
        length = bracket.next_length(length)
    return None


def exact_length(slope_at: Callable[[float], float], longest: float) -> float:
    """The length in [0, longest] at which a convex function is lowest, by the root of its slope (Brent 1973)."""

    def finite_slope(length: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            slope = slope_at(length)
        return min(slope, HUGE_SLOPE) if np.isfinite(slope) else HUGE_SLOPE

    if finite_slope(0.0) >= 0:
        return 0.0
    if finite_slope(longest) <= 0:
        return longest
    return float(brentq(finite_slope, 0.0, longest, xtol=1e-15 * longest, rtol=1e-13, maxiter=500))
