"""Damped Newton steps for a small smooth convex objective, within bounds if there are any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

MOST_STEPS = 200

# A step that promises less than this share of the value is the last: Newton's error is squared by taking it.
LAST_STEP_BELOW = 1e-9

# The same for losses with flat pieces, where the error shrinks but is not squared.
LAST_FLAT_STEP_BELOW = 1e-12

# A Hessian computed where a step promises less than this share serves for several steps.
REUSED_BELOW = 1e-5
MOST_USES = 3

# What a line search must not mistake for a rise of the value: the rounding of a sum.
ROUNDING = 4e-15

# The decrease a step along bounds must bring, as a share of what its slope promises.
SUFFICIENT = 1e-4

# How much of the slope along a step may be left at its end: of smooth losses, and of those with flat pieces.
SMOOTH_SLOPE = 0.9
FLAT_SLOPE = 0.1

# Keeps the scaled Hessian of dependent columns invertible; too small to slow down any other.
DAMPING = 1e-15

POLISHING_STEPS = 3

# Of losses with flat pieces: the share of the broad curvature mixed into the Hessian, and its range.
FIRST_SHARE = 0.1
SHARES = (1e-12, 1.0)


class Smooth(Protocol):
    """A smooth convex function of coefficients of shape (C, q) that acts through C x n linear scores.

    The Hessian is a stack of blocks: C of q x q, or a single one of all C q coefficients where outputs are coupled.
    """

    lower: np.ndarray | None
    upper: np.ndarray | None
    flat: bool

    def scores(self, coef: np.ndarray) -> np.ndarray:
        """The linear scores, shape (C, n)."""
        ...

    def value(self, coef: np.ndarray, scores: np.ndarray) -> float:
        """The value."""
        ...

    def gradient(self, coef: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """The gradient, shape (C, q); ``hessian`` then refers to the same point."""
        ...

    def hessian(self, scores: np.ndarray, share: float) -> np.ndarray:
        """The Hessian at the point of the last ``gradient``, with a ``share`` of the broad curvature mixed in.

        An infinite share asks for that of the broad curvature alone.
        """
        ...

    def slope_along(self, coef: np.ndarray, scores: np.ndarray, step: np.ndarray, change: np.ndarray) -> float:
        """Derivative along a step of the coefficients that changes the scores by ``change``."""
        ...


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where the steps ended."""

    coef: np.ndarray
    """Shape (C, q)."""
    scores: np.ndarray
    """Shape (C, n)."""
    value: float
    hessian: np.ndarray
    """The Hessian there, to the accuracy of the last step."""
    converged: bool = True
    """Whether the steps ended for want of anything to gain."""


def minimise(objective: Smooth, start: np.ndarray, about: float | None = None) -> Minimum:
    """The minimum of ``objective`` within its bounds, from ``start`` of shape (C, q).

    Steps are judged by the slope they end at: for a convex function it says as much as the value, and it has to be
    computed anyway. ``about`` is the value near the start, if it is known. Coordinates at a bound that the gradient
    pushes against stay there; the others take a Newton step, which is projected onto the bounds (Bertsekas 1982).
    """
    coef = _within(start, objective)
    scores = objective.scores(coef)
    value = objective.value(coef, scores) if about is None else about
    share = FIRST_SHARE if objective.flat else 0.0
    enough = LAST_FLAT_STEP_BELOW if objective.flat else LAST_STEP_BELOW
    hessian = np.zeros((0, 0, 0))
    uses = MOST_USES
    for _ in range(MOST_STEPS):
        gradient = objective.gradient(coef, scores)
        if uses >= MOST_USES:
            hessian, uses = objective.hessian(scores, share), 0
        step, promised = _direction(hessian, gradient, _free(coef, gradient, objective))
        # Close to the minimum the Hessian hardly changes any more, and is most of the work.
        uses = uses + 1 if promised <= REUSED_BELOW * value and not objective.flat else MOST_USES
        last = promised <= enough * value
        if last:
            # The value may have fallen far since it was computed.
            value = objective.value(coef, scores)
            last = promised <= enough * value
        if last and objective.flat:
            # A few rows at a kink make a Hessian so steep that it promises nothing; the broad one looks beyond them.
            step, promised = _direction(objective.hessian(scores, np.inf), gradient, _free(coef, gradient, objective))
            share = FIRST_SHARE
            if promised <= enough * value:
                return _polished(objective, coef, scores, value)
            last = False
        if last and promised <= ROUNDING * value:
            return _ended(objective, coef, hessian)
        if objective.lower is None:
            length, coef, scores = _straight(objective, coef, scores, step, promised)
        else:
            length, coef = _projected(objective, coef, scores, gradient, step)
            scores = objective.scores(coef)
        if last and length == 1.0:
            return _ended(objective, coef, hessian)
        if length == 0.0:
            return _ended(objective, coef, hessian)
        if objective.flat:
            share = float(np.clip(share * (4.0 if length < 0.3 else 0.1), *SHARES))
    return _ended(objective, coef, hessian, converged=False)


def _ended(objective: Smooth, coef: np.ndarray, hessian: np.ndarray, *, converged: bool = True) -> Minimum:
    """The minimum at given coefficients, its scores and value computed afresh: those of the steps have drifted."""
    scores = objective.scores(coef)
    return Minimum(coef, scores, objective.value(coef, scores), hessian, converged)


def _polished(objective: Smooth, coef: np.ndarray, scores: np.ndarray, value: float) -> Minimum:
    """The end of steps on a loss with flat pieces: plain Newton steps, exact on the pieces it has come to.

    They settle what flat directions leave open, which the value hardly tells.
    """
    for _ in range(POLISHING_STEPS):
        gradient = objective.gradient(coef, scores)
        step, _ = _direction(objective.hessian(scores, 0.0), gradient, _free(coef, gradient, objective))
        new = _within(coef + step, objective)
        there = objective.scores(new)
        if not objective.value(new, there) <= value * (1 + ROUNDING):
            break
        coef, scores = new, there
    return _ended(objective, coef, objective.hessian(scores, 0.0))


def _within(coef: np.ndarray, objective: Smooth) -> np.ndarray:
    if objective.lower is None or objective.upper is None:
        return coef
    return np.clip(coef, objective.lower, objective.upper)


def _free(coef: np.ndarray, gradient: np.ndarray, objective: Smooth) -> np.ndarray | None:
    """Mask of the coordinates that may move; None for all of them."""
    if objective.lower is None or objective.upper is None:
        return None
    held = ((coef <= objective.lower) & (gradient > 0)) | ((coef >= objective.upper) & (gradient < 0))
    return ~held if held.any() else None


def _direction(hessian: np.ndarray, gradient: np.ndarray, free: np.ndarray | None) -> tuple[np.ndarray, float]:
    """The Newton step, and the decrease of the value it promises."""
    slope = -gradient.reshape(hessian.shape[0], -1)
    if free is not None:
        mask = free.reshape(slope.shape)
        slope = slope * mask
        hessian = hessian * (mask[:, :, None] & mask[:, None, :])
    size = hessian.shape[-1]
    diagonal = np.einsum("bii->bi", hessian)
    # Columns without curvature are scaled as if they had the smallest that can be told from none; where none has any,
    # the step is that of steepest descent.
    floor = float(diagonal.max(initial=0.0)) * DAMPING or 1.0
    scale = 1.0 / np.sqrt(np.maximum(diagonal, floor))
    scaled = hessian * (scale[:, :, None] * scale[:, None, :])
    damping = DAMPING
    while damping < 1.0:
        scaled[:, range(size), range(size)] = 1.0 + damping
        try:
            step = scale * np.linalg.solve(scaled, (scale * slope)[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            step = np.full_like(slope, np.nan)
        promised = 0.5 * float(np.sum(slope * step))
        if np.isfinite(promised) and promised >= 0:
            return step.reshape(gradient.shape), promised
        # Rounding has made the Hessian of nearly dependent columns indefinite.
        damping *= 100.0
    raise FloatingPointError("A refit met values that are not finite; rescale y, or look for extreme values in X.")


def _straight(
    objective: Smooth, coef: np.ndarray, scores: np.ndarray, step: np.ndarray, promised: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Along the step, all the way if the slope there is small enough, else to where it is.

    Returns the length gone, and coefficients and scores there. The slope rises along the step. It is bracketed, then
    found by false position with a bisection every third time. On flat pieces a Newton step is of any length but the
    right one, and it pays to look closer.
    """
    change = objective.scores(step)
    enough = (FLAT_SLOPE if objective.flat else SMOOTH_SLOPE) * 2 * promised
    length, low, high = 1.0, 0.0, 0.0
    slope_low, slope_high = -2 * promised, 0.0
    for attempt in range(1, 60):
        new, there = coef + length * step, scores + length * change
        slope = objective.slope_along(new, there, step, change)
        if abs(slope) <= enough:
            break
        if slope < 0:
            low, slope_low = length, slope
        else:
            high, slope_high = length, slope
        if not high:
            length *= 4.0
        elif attempt % 3 == 0 or slope_high == np.inf:
            length = 0.5 * (low + high)
        else:
            length = low - slope_low * (high - low) / (slope_high - slope_low)
    else:
        length, new, there = low, coef + low * step, scores + low * change
    return length, new, there


def _projected(
    objective: Smooth, coef: np.ndarray, scores: np.ndarray, gradient: np.ndarray, step: np.ndarray
) -> tuple[float, np.ndarray]:
    """Backtracking along the step as the bounds bend it: the length gone, 0 if rounding leaves nothing, and the end."""
    value = objective.value(coef, scores)
    length = 1.0
    for _ in range(60):
        new = _within(coef + length * step, objective)
        expected = max(0.0, float(np.sum(gradient * (coef - new))))
        if objective.value(new, objective.scores(new)) <= value - SUFFICIENT * expected + ROUNDING * value:
            return length, new
        length *= 0.5
    return 0.0, coef
