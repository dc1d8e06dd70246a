"""Minima along a line, and intercepts minimised out: all there is to do with one number at a time."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from pauca.losses import Loss

# A sum of derivatives that is this small next to its terms is rounding.
ROUNDING = 4e-15

MOST_STEPS = 200

# From this step on every other one halves the bracket: Newton's steps may crawl along a loss with flat pieces.
HALVING_AFTER = 10

# A share of the trace that keeps the Hessian invertible where a class has next to no probability left.
LEAST = 1e-14

# Gains below this share of the value are hidden by its rounding.
HIDDEN = 1e-13

# No step changes a constant of a shared loss by more: where probabilities are near zero or one Newton's goes too far.
LONGEST = 4.0

# Stands for what has overflowed, where only a sign is asked for.
HUGE = 1e300


def line_minimum(
    loss: Loss,
    y: np.ndarray,
    weights: np.ndarray,
    scores: np.ndarray,
    change: np.ndarray,
    penalty: tuple[float, float],
    longest: float,
) -> float:
    """The step of at most ``longest`` that minimises ``sum_i v_i L(y_i, a_i + step change_i)`` and a parabola.

    ``penalty`` holds the parabola's slope at zero and its curvature. The slope along the line only rises, so that its
    root can be bracketed.
    """
    slope, curvature = penalty
    weighted = change * weights

    def rise(step: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            found = float(np.sum(loss.derivative(y, scores + step * change) * weighted)) + slope + step * curvature
        return min(found, HUGE) if np.isfinite(found) else HUGE

    if rise(0.0) >= 0:
        return 0.0
    if rise(longest) <= 0:
        return longest
    return float(brentq(rise, 0.0, longest, xtol=1e-15 * longest, rtol=1e-13, maxiter=500))


def settled(
    loss: Loss, y: np.ndarray, weights: np.ndarray, scores: np.ndarray, fixed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Constants to add to the scores of every output so that the mean loss is least, and the slopes left there.

    Both have shape (C,). Outputs that are ``fixed`` are left alone.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if loss.joint:
            return _settled_jointly(loss, y, weights, scores, fixed)
        found = [
            (0.0, 0.0) if fixed[c] else _settled_alone(loss, y[c : c + 1], weights, scores[c : c + 1])
            for c in range(len(scores))
        ]
    return np.array([shift for shift, _ in found]), np.array([left for _, left in found])


def held(hessian: np.ndarray) -> np.ndarray:
    """The Hessian of the constants with curvature where it has none.

    All constants may rise together without any change where outputs share a loss: steps leave that direction alone.
    """
    size = len(hessian)
    trace = float(np.trace(hessian)) or 1.0
    return hessian + trace / size**2 + np.diag(np.full(size, LEAST * trace))


def _settled_alone(loss: Loss, y: np.ndarray, weights: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """Newton's method for the root of a slope that only rises, kept within a bracket."""
    low, high, reach = -np.inf, np.inf, 1.0
    shift, best = 0.0, (0.0, np.inf)
    for count in range(MOST_STEPS):
        derivative, curvature = loss.slopes(y, scores + shift)
        slope, scale = float(derivative[0] @ weights), float(np.abs(derivative[0]) @ weights)
        if abs(slope) < abs(best[1]):
            best = shift, slope
        if abs(slope) <= ROUNDING * scale:
            break
        low, high = (low, shift) if not slope < 0 else (shift, high)
        bend = float(curvature[0] @ weights)
        following = shift - slope / bend if bend > 0 else np.nan
        if not low < following < high or (count > HALVING_AFTER and count % 2):
            if np.isfinite(low) and np.isfinite(high):
                following = 0.5 * (low + high)
            else:
                following = shift + reach if slope < 0 else shift - reach
                reach *= 2.0
        if following == shift:
            break
        shift = following
    return best


def _settled_jointly(
    loss: Loss, y: np.ndarray, weights: np.ndarray, scores: np.ndarray, fixed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Damped Newton steps for the constants of outputs that share a loss.

    Steps are judged by the value, and where rounding hides what they gain by the slope they end at.
    """
    moving = np.flatnonzero(~fixed)
    shift, best = np.zeros(len(scores)), np.inf
    value = float(loss.value(y, scores) @ weights)
    left, step = _newton_step(loss, y, weights, scores, moving)
    for _ in range(MOST_STEPS):
        steepest = float(np.abs(left).max(initial=0.0))
        promised = -float(left @ step)
        if steepest <= ROUNDING * min(1.0, value) or not promised > 0:
            break
        hidden = promised <= HIDDEN * value
        length = min(1.0, LONGEST / float(np.abs(step).max()))
        tried = float(loss.value(y, scores + (shift + length * step)[:, None]) @ weights)
        while not hidden and not tried < value and length > ROUNDING:
            length *= 0.25
            tried = float(loss.value(y, scores + (shift + length * step)[:, None]) @ weights)
        ahead, following = _newton_step(loss, y, weights, scores + (shift + length * step)[:, None], moving)
        best = min(best, steepest)
        if (hidden or not tried < value) and not float(np.abs(ahead).max()) < best:
            break
        shift, value, left, step = shift + length * step, tried, ahead, following
    return shift, left


def _newton_step(
    loss: Loss, y: np.ndarray, weights: np.ndarray, scores: np.ndarray, moving: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Slopes in the constants, and Newton's step; zero for those that do not move."""
    derivative, curvature = loss.slopes(y, scores)
    hessian = np.diag(curvature @ weights)
    coupled = loss.coupling(curvature)
    if coupled is not None:
        hessian -= (coupled * weights) @ coupled.T
    slope, step = np.zeros(len(scores)), np.zeros(len(scores))
    slope[moving] = (derivative @ weights)[moving]
    step[moving] = -np.linalg.solve(held(hessian[moving[:, None], moving]), slope[moving])
    return slope, step
