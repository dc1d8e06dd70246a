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
    """Damped Newton steps for the constants of outputs that share a loss."""
    shift, moving = np.zeros(len(scores)), np.flatnonzero(~fixed)
    value = float(loss.value(y, scores) @ weights)
    for _ in range(MOST_STEPS):
        derivative, curvature = loss.slopes(y, scores + shift[:, None])
        slope = np.where(fixed, 0.0, derivative @ weights)
        hessian = np.diag(curvature @ weights)
        coupled = loss.coupling(curvature)
        if coupled is not None:
            hessian -= (coupled * weights) @ coupled.T
        step = np.zeros(len(slope))
        step[moving] = -np.linalg.solve(held(hessian[moving[:, None], moving]), slope[moving])
        promised = -float(slope @ step)
        if np.abs(slope).max() <= ROUNDING or not promised > 0:
            break
        length = 1.0
        while length > ROUNDING:
            tried = float(loss.value(y, scores + (shift + length * step)[:, None]) @ weights)
            if tried <= value + ROUNDING * abs(value):
                break
            length *= 0.5
        else:
            break
        if promised <= ROUNDING * ROUNDING * abs(value) or np.all(shift + length * step == shift):
            break
        shift, value = shift + length * step, tried
    left = loss.derivative(y, scores + shift[:, None]) @ weights
    return shift, np.where(fixed, 0.0, left)
