"""Quasi-Newton steps for any smooth convex objective on some of its coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dgemm

from pauca.custom.objective import CustomProblem

MOST_STEPS = 1000

# What a line search must not mistake for a rise of the value: the rounding of a sum.
ROUNDING = 4e-15

# A step that promises no more than this share of the value is not worth taking, whatever is asked for.
NOTHING = 1e-16

# The decrease that a step must bring, as a share of what its slope promises, and how much of the slope may be left at
# its end. Where it has turned to a rise, the step may have gone too far, and less is allowed.
SUFFICIENT = 1e-4
SLOPE_LEFT = 0.9
SLOPE_TURNED = 0.5

MOST_TRIALS = 80

# A line search that finds nothing has met rounding, unless the step promised more than this share of the value.
STUCK_ABOVE = 1e-7

# An objective that falls on like a straight line over steps so many times the size of the parameters has no minimum.
FAR_OUT = 1e14

# With a Hessian at hand, one from an earlier point serves as long as each step promises no more than this share of the
# one before.
CORRECTED_BELOW = 0.1

# After so many steps the place has changed so much that the curvature there tells more than what was learnt on the way.
# On a chain of labels with 40 sensors, a full fit then takes 91 values, and 166 without; a path to 15 sensors 611, and
# 883 without, and ends closer to the minimum.
FAR_AFTER = 20

# Keeps the inverse of a Hessian of dependent coordinates finite.
DAMPING = 1e-13


@dataclass(frozen=True, eq=False)
class Rest:
    """Where the steps ended, on q coordinates of a parameter vector."""

    w: np.ndarray
    """The whole parameter vector, shape (n_coords,)."""
    value: float
    gradient: np.ndarray
    """Shape (n_coords,)."""
    inverse: np.ndarray | None
    """About the inverse of the Hessian on the coordinates, shape (q, q); None if nobody has asked for it."""
    left: float
    """About how much lower the minimum is: what the next step would have promised."""
    converged: bool = True
    """Whether the steps ended for want of anything to gain."""


def minimise(
    problem: CustomProblem,
    coords: np.ndarray,
    begin: Rest,
    enough: Callable[[float], float],
) -> Rest:
    """Steps on ``coords`` from ``begin`` until ``left`` is at most ``enough(value)``.

    The method of Broyden, Fletcher, Goldfarb and Shanno (1970) with the inverse Hessian as a dense matrix, which the
    fit before hands over. Where the objective has a Hessian, it is asked for whenever a step promises more than a tenth
    of what the step before has promised: then the steps are Newton's. Where it has a curvature, the inverse is begun
    anew with it once, when the steps have led far.
    """
    assert begin.inverse is not None
    w, value, gradient, inverse = begin.w.copy(), begin.value, begin.gradient, begin.inverse.copy()
    before, fell = np.inf, np.inf
    for taken in range(MOST_STEPS):
        if taken == FAR_AFTER and problem.hessian is None and problem.curvature is not None:
            inverse = np.diag(inverse_diagonal(np.asarray(problem.curvature(w), dtype=np.float64)[coords]))
        slope = gradient[coords]
        step, promised = _step(inverse, slope)
        if problem.hessian is not None and not promised <= CORRECTED_BELOW * before:
            inverse = inverse_of(problem.hessian(w, coords))
            step, promised = _step(inverse, slope)
        elif not promised >= 0:
            inverse = np.diag(np.abs(np.diag(inverse)))
            step, promised = _step(inverse, slope)
        limit, nothing = enough(value), NOTHING * max(abs(value), problem.magnitude)
        # What a quasi-Newton step promises is believed once the step before has not gained far more.
        if promised <= nothing or (promised <= limit and (fell <= 10 * limit or promised <= 0.01 * limit)):
            return Rest(w, value, gradient, inverse, promised)
        found = _along(problem, coords, w, value, gradient, step)
        if found is None:
            return Rest(
                w, value, gradient, inverse, promised, promised <= STUCK_ABOVE * max(abs(value), problem.magnitude)
            )
        moved, there, new = found
        change = new[coords] - slope
        inverse = _corrected(inverse, moved[coords] - w[coords], change)
        fell, before = value - there, promised
        w, value, gradient = moved, there, new
    step, promised = _step(inverse, gradient[coords])
    return Rest(w, value, gradient, inverse, promised, converged=False)


def inverse_diagonal(curvature: np.ndarray) -> np.ndarray:
    """Inverse curvatures, finite where there is none."""
    positive = curvature[np.isfinite(curvature) & (curvature > 0)]
    least = 1e-8 * float(positive.max()) if len(positive) else 1.0
    return np.asarray(1.0 / np.where(curvature > least, curvature, least))


def inverse_of(hessian: np.ndarray) -> np.ndarray:
    """The inverse of a positive semidefinite matrix, damped as much as rounding asks for."""
    hessian = np.asarray(hessian, dtype=np.float64)
    diagonal = np.diag(hessian).copy()
    diagonal[~(diagonal > 0)] = max(float(diagonal.max(initial=0.0)) * DAMPING, np.finfo(float).tiny) or 1.0
    scale = 1.0 / np.sqrt(diagonal)
    scaled = hessian * np.outer(scale, scale)
    damping = DAMPING
    while damping < 1.0:
        np.fill_diagonal(scaled, 1.0 + damping)
        try:
            half = np.linalg.inv(np.linalg.cholesky(scaled))
        except np.linalg.LinAlgError:
            damping *= 100.0
            continue
        return np.asarray((half.T @ half) * np.outer(scale, scale))
    return np.diag(scale * scale)


def without(inverse: np.ndarray, kept: np.ndarray, lost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The inverse Hessian once some coordinates are held at zero, and what each of them moves the others by.

    ``B_kk - B_kl (B_ll)^-1 B_lk`` and ``B_kl (B_ll)^-1``.
    """
    across = inverse[np.ix_(kept, lost)]
    share = across @ inverse_of(inverse[np.ix_(lost, lost)])
    return inverse[np.ix_(kept, kept)] - share @ across.T, share


def _step(inverse: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, float]:
    """The step, and the decrease it promises."""
    step = -(inverse @ slope)
    return step, -0.5 * float(slope @ step)


def _corrected(inverse: np.ndarray, step: np.ndarray, change: np.ndarray) -> np.ndarray:
    """The inverse Hessian made to agree with how the gradient has changed along a step; the old one is overwritten."""
    seen = float(step @ change)
    if not seen > 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
        return inverse
    image = inverse @ change
    step = step / seen
    pull = 0.5 * (seen + float(change @ image)) * step - image
    # Both products of two vectors in one pass over the matrix.
    left, right = np.stack([pull, step]), np.stack([step, pull])
    return np.asarray(dgemm(1.0, left, right, beta=1.0, c=inverse.T, trans_a=1, overwrite_c=1).T)


def _along(
    problem: CustomProblem, coords: np.ndarray, w: np.ndarray, value: float, gradient: np.ndarray, step: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Point, value and gradient where the objective has fallen enough along a step; None if rounding hides it.

    The slope rises along the step, as the objective is convex. Its turning point is bracketed, and then found by false
    position, with a bisection every third time; outside of the domain there is nothing to go by but the bracket.
    """
    first = float(gradient[coords] @ step)
    size = float(np.abs(step).max(initial=0.0))
    if not first < 0 or not np.isfinite(size):
        return None
    rounding = ROUNDING * max(abs(value), problem.magnitude)
    reach = FAR_OUT * (1.0 + float(np.abs(w).max(initial=0.0)))
    length, low, high = 1.0, 0.0, np.inf
    slope_low, slope_high = first, np.nan
    lowest = None
    for attempt in range(1, MOST_TRIALS):
        there = w.copy()
        there[coords] += length * step
        reached, new = problem.at(there)
        if new is None or reached > value + SUFFICIENT * length * first + rounding:
            high, slope_high = length, np.nan if new is None else float(new[coords] @ step)
        else:
            slope = float(new[coords] @ step)
            if SLOPE_LEFT * first <= slope <= -SLOPE_TURNED * first:
                return there, reached, new
            if slope < 0:
                low, slope_low, lowest = length, slope, (there, reached, new)
            else:
                high, slope_high = length, slope
        if high == np.inf:
            if length * size > reach:
                raise ValueError(
                    f"{problem.name} falls without end along {problem.coordinates(coords[np.abs(step) > 0.5 * size])}: "
                    "it has no minimum. Add a ridge, such as 1e-3 times the sum of squares."
                )
            length *= 4.0
        elif attempt % 3 == 0 or not slope_high > 0:
            length = 0.5 * (low + high)
        else:
            length = low - slope_low * (high - low) / (slope_high - slope_low)
        if not low < length < np.inf or (high < np.inf and high - low <= 1e-14 * high):
            break
    return lowest
