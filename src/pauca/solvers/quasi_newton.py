"""Quasi-Newton steps for any smooth convex objective on some of its coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg.blas import dgemm

from pauca.solvers.factorisation import damped_inverse
from pauca.solvers.line_search import SlopeBracket
from pauca.solvers.newton import CORRECTED_BELOW, SMOOTH_SLOPE
from pauca.tolerances import LINE_SEARCH_SLACK, SUFFICIENT_DECREASE

MOST_STEPS = 1000

# A step predicted to gain at most this share of the value is never taken: a double holds no smaller change.
NO_DECREASE = 1e-16

# Where the slope along a step has turned to a rise, the step may have gone too far: no more than this share of what it
# was. Where it still falls, as much is allowed as for Newton's steps.
SLOPE_TURNED = 0.5

MOST_TRIALS = 80

# A line search ends when the lengths it lies between differ by no more than this share.
NARROWEST = 1e-14

# A line search that finds nothing has met rounding, unless the predicted gain was above this share of the value.
STUCK_ABOVE = 1e-7

# An objective that falls on like a straight line over steps so many times the size of the parameters has no minimum.
UNBOUNDED_STEP = 1e14

# After so many steps the curvature where they have led is a better start than what they have shown on the way.
# On a chain of labels with 40 sensors, a full fit then takes 91 values, and 166 without; a path to 15 sensors 611, and
# 883 without, and ends closer to the minimum.
RESCALED_AFTER = 20

# Keeps the inverse of a Hessian of dependent coordinates finite.
LEAST_DAMPING = 1e-13

# Curvatures below this share of the largest count as this: a longer first step would lead too far.
LEAST_CURVATURE = 1e-8

# The gradient must change along a step by this share of what lengths allow to say anything of the curvature.
LEAST_CHANGE = 1e-12


class SmoothFunction(Protocol):
    """A smooth convex function of a parameter vector, and what is known of it."""

    hessian: Callable[[np.ndarray, np.ndarray], np.ndarray] | None
    """Second derivatives in some coordinates, ``hessian(w, coords)``."""
    curvature: Callable[[np.ndarray], np.ndarray] | None
    """The diagonal of the Hessian, or an estimate."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def magnitude(self) -> float:
        """The size of the terms that a value is the sum of: it is rounded to so many units."""
        ...

    def at(self, w: np.ndarray) -> tuple[float, np.ndarray | None]:
        """Value and gradient; no gradient outside of the domain."""
        ...

    def coordinates(self, coords: np.ndarray) -> str:
        """Some coordinates by name, for messages."""
        ...


@dataclass(frozen=True, eq=False)
class SolverState:
    """Where the steps ended, on q coordinates of a parameter vector."""

    w: np.ndarray
    """The whole parameter vector, shape (n_coords,)."""
    value: float
    gradient: np.ndarray
    """Shape (n_coords,)."""
    inverse: np.ndarray | None
    """About the inverse of the Hessian on the coordinates, shape (q, q); None if it has not been computed."""
    left: float
    """About how much lower the minimum is: what the next step would have predicted."""
    converged: bool = True
    """Whether the steps ended because nothing more could be gained."""


def minimise(
    problem: SmoothFunction,
    coords: np.ndarray,
    begin: SolverState,
    enough: Callable[[float], float],
) -> SolverState:
    """Steps on ``coords`` from ``begin`` until ``left`` is at most ``enough(value)``.

    The method of Broyden, Fletcher, Goldfarb and Shanno (1970) with the inverse Hessian as a dense matrix, which the
    fit before hands over. Where the objective has a Hessian, it is computed whenever a step predicts more than a tenth
    of what the step before has predicted: then the steps are Newton's. Where it has a curvature, the inverse starts
    afresh from it once, when the steps have led far.
    """
    assert begin.inverse is not None
    w, value, gradient, inverse = begin.w.copy(), begin.value, begin.gradient, begin.inverse.copy()
    before, fell = np.inf, np.inf
    for taken in range(MOST_STEPS):
        if taken == RESCALED_AFTER and problem.hessian is None and problem.curvature is not None:
            inverse = np.diag(inverse_diagonal(np.asarray(problem.curvature(w), dtype=np.float64)[coords]))
        slope = gradient[coords]
        step, predicted = _step(inverse, slope)
        if problem.hessian is not None and not predicted <= CORRECTED_BELOW * before:
            inverse = inverse_of(problem.hessian(w, coords))
            step, predicted = _step(inverse, slope)
        elif not predicted >= 0:
            inverse = np.diag(np.abs(np.diag(inverse)))
            step, predicted = _step(inverse, slope)
        limit, nothing = enough(value), NO_DECREASE * max(abs(value), problem.magnitude)
        # What a quasi-Newton step is predicted to gain is trusted once the step before has not gained far more.
        if predicted <= nothing or (predicted <= limit and (fell <= 10 * limit or predicted <= 0.01 * limit)):
            return SolverState(w, value, gradient, inverse, predicted)
        found = _search_along(problem, coords, w, value, gradient, step)
        if found is None:
            return SolverState(
                w, value, gradient, inverse, predicted, predicted <= STUCK_ABOVE * max(abs(value), problem.magnitude)
            )
        moved, there, new = found
        change = new[coords] - slope
        inverse = _bfgs_update(inverse, moved[coords] - w[coords], change)
        fell, before = value - there, predicted
        w, value, gradient = moved, there, new
    step, predicted = _step(inverse, gradient[coords])
    return SolverState(w, value, gradient, inverse, predicted, converged=False)


def inverse_diagonal(curvature: np.ndarray) -> np.ndarray:
    """Inverse curvatures, finite where there is none."""
    positive = curvature[np.isfinite(curvature) & (curvature > 0)]
    least = LEAST_CURVATURE * float(positive.max()) if len(positive) else 1.0
    return np.asarray(1.0 / np.where(curvature > least, curvature, least))


def inverse_of(hessian: np.ndarray) -> np.ndarray:
    """The inverse of a positive semidefinite matrix, damped as much as rounding makes necessary."""
    return damped_inverse(hessian, LEAST_DAMPING)


def inverse_without(inverse: np.ndarray, kept: np.ndarray, lost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The inverse Hessian once some coordinates are held at zero, and what each of them moves the others by.

    ``B_kk - B_kl (B_ll)^-1 B_lk`` and ``B_kl (B_ll)^-1``.
    """
    across = inverse[np.ix_(kept, lost)]
    share = across @ inverse_of(inverse[np.ix_(lost, lost)])
    return inverse[np.ix_(kept, kept)] - share @ across.T, share


def _step(inverse: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, float]:
    """The step, and its predicted decrease."""
    step = -(inverse @ slope)
    return step, -0.5 * float(slope @ step)


def _bfgs_update(inverse: np.ndarray, step: np.ndarray, change: np.ndarray) -> np.ndarray:
    """The inverse Hessian corrected by how the gradient has changed along a step; the old one is overwritten."""
    curvature = float(step @ change)
    if not curvature > LEAST_CHANGE * float(np.linalg.norm(step) * np.linalg.norm(change)):
        return inverse
    image = inverse @ change
    step = step / curvature
    pull = 0.5 * (curvature + float(change @ image)) * step - image
    # Both products of two vectors in one pass over the matrix.
    left, right = np.stack([pull, step]), np.stack([step, pull])
    return np.asarray(dgemm(1.0, left, right, beta=1.0, c=inverse.T, trans_a=1, overwrite_c=1).T)


def correct_inverses(inverse: np.ndarray, s: np.ndarray, y: np.ndarray) -> None:
    """The same for several inverses of shape (b, p, p), in place; s and y are the steps and changes, shape (b, p).

    Where the curvature along a step is not positive, nothing is changed.
    """
    measured = np.vecdot(s, y)
    image = np.matmul(inverse, y[:, :, None])[:, :, 0]
    share = np.where((measured > 0) & np.isfinite(measured), 1.0 / measured, 0.0)[:, None]
    # s s' (1 + y'Ay / s'y) / s'y - (s y'A + A y s') / s'y, as one symmetric product.
    half = (0.5 * (share + share * share * np.vecdot(y, image)[:, None])) * s - share * image
    change = s[:, :, None] * half[:, None, :]
    inverse += change
    inverse += change.transpose(0, 2, 1)


def _search_along(
    problem: SmoothFunction, coords: np.ndarray, w: np.ndarray, value: float, gradient: np.ndarray, step: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Point, value and gradient where the objective has fallen enough along a step; None if rounding hides it.

    The slope rises along the step, as the objective is convex, and both its ends are bracketed. Outside of the domain
    nothing is known but the length.
    """
    first = float(gradient[coords] @ step)
    size = float(np.abs(step).max(initial=0.0))
    if not first < 0 or not np.isfinite(size):
        return None
    slack = LINE_SEARCH_SLACK * max(abs(value), problem.magnitude)
    farthest = UNBOUNDED_STEP * (1.0 + float(np.abs(w).max(initial=0.0)))
    length, bracket, lowest = 1.0, SlopeBracket(first), None
    for _ in range(1, MOST_TRIALS):
        there = w.copy()
        there[coords] += length * step
        reached, new = problem.at(there)
        slope = np.nan if new is None else float(new[coords] @ step)
        if new is None or reached > value + SUFFICIENT_DECREASE * length * first + slack:
            bracket.rises_at(length, slope)
        elif SMOOTH_SLOPE * first <= slope <= -SLOPE_TURNED * first:
            return there, reached, new
        elif slope < 0:
            bracket.falls_at(length, slope)
            lowest = there, reached, new
        else:
            bracket.rises_at(length, slope)
        if bracket.high == np.inf and length * size > farthest:
            raise ValueError(
                f"{problem.name} falls without end along {problem.coordinates(coords[np.abs(step) > 0.5 * size])}: "
                "it has no minimum. Add a ridge, such as 1e-3 times the sum of squares."
            )
        length = bracket.next_length(length)
        if not bracket.low < length < np.inf or (bracket.high < np.inf and bracket.width <= NARROWEST):
            break
    return lowest
