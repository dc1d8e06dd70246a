"""Gains along single columns, compiled: the steps of ``coordinate_gains``, column by column.

Sums are taken in another order than NumPy's, and exponentials may differ in the last bit; nothing else differs.
"""

from __future__ import annotations

import math

import numpy as np

from pauca.losses.kernels import Data, compiled, is_finite, loss_of, shared_bend, slopes_of
from pauca.subsets.compiled_gains import Lines
from pauca.subsets.coordinate_gains import MOST_STEPS, SAFETY_FACTOR, TRUSTED_BELOW


@compiled
def ceiling(slope: float, curvature: float, rate: float, penalty: float) -> float:
    """An upper bound of what is left to gain, or with nothing known an estimate."""
    if slope == 0.0:
        return 0.0
    half = 0.5 * slope * slope
    by_ridge = half / penalty
    if np.isnan(rate):
        return min(SAFETY_FACTOR * half / curvature, by_ridge)
    if rate == 0.0:
        return half / curvature
    x = abs(slope) * rate / curvature
    if not x < 1.0:
        return by_ridge
    exact = x * x * (0.5 + x / 5.0) if x < 1e-4 else x + (1.0 - x) * math.log1p(-x)
    return min(curvature / (rate * rate) * exact, by_ridge)


@compiled
def next_step(proposed: float, low: float, high: float, rise: float, fall: float, iteration: int) -> float:
    """A proposed step or, where that leaves the bracket or is none, one by false position or bisection."""
    if low < proposed < high:
        return proposed
    middle = 0.5 * (low + high)
    if not is_finite(middle):
        if is_finite(low):
            return low + 2.0 * abs(low) + 1e-3
        return high - 2.0 * abs(high) - 1e-3
    if np.isnan(proposed) or iteration % 3 == 0:
        return middle
    straight = low + (high - low) * rise / (rise - fall)
    # An end that has overflowed would draw the line to the other.
    return straight if low < straight < high else middle


@compiled
def add_slopes(data: Data, z: np.ndarray, t: float, sign: float, rows: np.ndarray, found: np.ndarray) -> None:
    """Add the derivatives of the loss along a column after a step t, with a sign, to ``found``."""
    n = len(z)
    moved, derivative, curvature = rows[0, :n], rows[1, :n], rows[2, :n]
    for i in range(n):
        moved[i] = data.scores[i] + t * z[i]
    slopes_of(data, moved, derivative, curvature)
    first, second = 0.0, 0.0
    for i in range(n):
        weighted = data.weights[i] * z[i]
        first += weighted * derivative[i]
        second += weighted * z[i] * curvature[i]
    found[0] += sign * first
    found[1] += sign * (second - shared_bend(data, z))


@compiled
def find_slopes_at(
    data: Data,
    z: np.ndarray,
    merged: Data,
    base: np.ndarray,
    based: bool,
    t: float,
    rows: np.ndarray,
    found: np.ndarray,
) -> None:
    """Derivatives after a step: of a whole column, or of entries beside merged rows that share one value, the base."""
    found[0], found[1] = 0.0, 0.0
    add_slopes(data, z, t, 1.0, rows, found)
    if based:
        add_slopes(data, base[: len(z)], t, -1.0, rows, found)
        add_slopes(merged, base[: len(merged.scores)], t, 1.0, rows, found)


@compiled
def loss_after(data: Data, z: np.ndarray, t: float, rows: np.ndarray) -> float:
    """The loss after a step t along a column."""
    moved = rows[0, : len(z)]
    for i in range(len(z)):
        moved[i] = data.scores[i] + t * z[i]
    return loss_of(data, moved)


@compiled
def loss_at(
    data: Data, z: np.ndarray, merged: Data, base: np.ndarray, based: bool, t: float, rows: np.ndarray
) -> float:
    """The mean loss after a step, as ``find_slopes_at`` has its derivatives."""
    value = loss_after(data, z, t, rows)
    if based:
        value -= loss_after(data, base[: len(z)], t, rows)
        value += loss_after(merged, base[: len(merged.scores)], t, rows)
    return value


@compiled
def gain_along(
    data: Data,
    z: np.ndarray,
    merged: Data,
    base: np.ndarray,
    based: bool,
    lines: Lines,
    line: int,
    within: float,
    before: float,
    rows: np.ndarray,
    found: np.ndarray,
) -> float:
    """What one column gains by safeguarded Newton steps."""
    slope, curvature, penalty = lines.slope[line], lines.curvature[line], lines.penalty[line]
    low, high, rise, fall = lines.low[line], lines.high[line], np.nan, np.nan
    here, enough, shrunk = 0.0, 0.0, True
    for iteration in range(MOST_STEPS):
        if slope > 0.0:
            low, rise = here, slope
        else:
            high, fall = here, slope
        if iteration == 0:
            here = min(max(slope / curvature, lines.low[line]), lines.high[line])
            enough = within * 0.5 * here * slope
        else:
            # Where the last step was no good, as on an exponential, the next would not be either.
            here = next_step(here + slope / curvature if shrunk else np.nan, low, high, rise, fall, iteration)
        old = slope
        find_slopes_at(data, z, merged, base, based, here, rows, found)
        slope, curvature = -found[0] - penalty * here, max(found[1], 0.0) + penalty
        shrunk = abs(slope) <= TRUSTED_BELOW * abs(old)
        # Where numbers have overflowed, the search goes on.
        if is_finite(slope) and ceiling(slope, curvature, lines.rate[line], penalty) <= enough:
            break
        # By convexity no more is left than the slope over the rest of the bracket.
        way = high - here if slope > 0.0 else here - low
        if slope == 0.0 or abs(slope) * way <= enough:
            break
    gain = before - loss_at(data, z, merged, base, based, here, rows) - 0.5 * penalty * here * here
    return gain if gain > 0.0 and is_finite(gain) else 0.0


@compiled
def gains_of_columns(data: Data, lines: Lines, within: float, before: float, gains: np.ndarray) -> None:
    """Gains along whole columns, those of ``data``."""
    columns = data.columns
    rows, found = np.empty((3, columns.shape[1])), np.empty(2)
    based = len(columns) == 0  # False, but not as a literal, for which all of the kernel would be compiled again
    for line in range(len(columns)):
        z = columns[line]
        gains[line] = gain_along(data, z, data, z, based, lines, line, within, before, rows, found)


@compiled
def gains_of_entries(
    data: Data,
    merged: Data,
    starts: np.ndarray,
    where: np.ndarray,
    values: np.ndarray,
    bases: np.ndarray,
    lines: Lines,
    within: float,
    before: float,
    gains: np.ndarray,
) -> None:
    """Gains along columns most of whose rows have one value: entries ``where`` others are, one column after the other.

    All rows that are not listed share one shift of their scores: for them the ``merged`` rows are looked at.
    """
    most = len(merged.scores)
    for line in range(len(gains)):
        most = max(most, starts[line + 1] - starts[line])
    rows, own, found, base = np.empty((3, most)), np.empty((3, most)), np.empty(2), np.empty(most)
    based = len(gains) > 0
    for line in range(len(gains)):
        start, count = starts[line], starts[line + 1] - starts[line]
        for i in range(count):
            row = where[start + i]
            own[0, i], own[1, i], own[2, i] = data.y[row], data.weights[row], data.scores[row]
        entries = Data(data.form, data.number, own[0, :count], own[1, :count], data.columns, own[2, :count])
        z = values[start : start + count]
        for i in range(most):
            base[i] = bases[line]
        gains[line] = gain_along(entries, z, merged, base, based, lines, line, within, before, rows, found)
