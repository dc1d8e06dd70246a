"""Damped Newton steps for a small smooth convex objective, within bounds if there are any."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from pauca.clock import check_time
from pauca.solvers.factorisation import damped, scaled_to_ones
from pauca.solvers.line_search import SlopeBracket, Trial, backtrack
from pauca.tolerances import LINE_SEARCH_SLACK

# Where so many steps do not suffice there is no minimum; on forty fits of all kinds of loss they took at most 39.
MOST_STEPS = 200

# A step predicted to gain less than this share of the value is the last: Newton's error is squared by taking it.
LAST_STEP_BELOW = 1e-9

# The same for losses with flat pieces, where the error shrinks but is not squared.
LAST_FLAT_STEP_BELOW = 1e-12

# Where scores are far from zero, rounding lets steps that promise much gain next to nothing, for ever. After so many in
# a row that gained less than the last one may, no more are taken.
MOST_IDLE_STEPS = 5

# A Hessian from an earlier point saves most of the work of a step. Corrected by what the steps since have shown
# (Broyden, Fletcher, Goldfarb and Shanno, 1970) it serves as long as each step is predicted to gain at most this
# share of the one before. Its last step must be so much smaller, as its error is not squared.
CORRECTED_BELOW = 0.1

# A line search that finds nothing has met rounding, unless the predicted gain was above this share of the value.
STUCK_ABOVE = 1e-6

# The most lengths that a line search tries, and the shortest step within bounds.
MOST_TRIALS = 60
SHORTEST_STEP = 2.0**-MOST_TRIALS

# After so many lengths the ends of a bracket may be as close as rounding allows.
CLOSE_AFTER = 8

# How much of the slope along a step may be left at its end: of smooth losses, and of those with flat pieces. Where it
# has turned to a rise, the step may have gone too far, and less is allowed.
SMOOTH_SLOPE = 0.9
SMOOTH_RISE = 0.25
FLAT_SLOPE = 0.1

# Keeps the scaled Hessian of dependent columns invertible; too small to slow down any other.
LEAST_DAMPING = 1e-15

# Newton steps at the end of those on flat pieces: the first leads to the minimum, others remove its rounding.
POLISHING_STEPS = 3

# Of losses with flat pieces: the share of the broad curvature mixed into the Hessian, and its range. A short step shows
# that the curvature does not extend far, and the share is raised; otherwise it is lowered.
FIRST_SHARE = 0.1
SHARE_RANGE = (1e-12, 1.0)
SHORT_STEP = 0.3
SHARE_RAISED, SHARE_LOWERED = 4.0, 0.1


@dataclass(frozen=True)
class Accuracy:
    """How far steps are taken."""

    within: float = LAST_STEP_BELOW
    """The last step is predicted to gain at most this share of the value, and leaves far less."""
    most_steps: int = MOST_STEPS
    renewed: bool = True
    """Whether the Hessian is computed again where the one that is known does not suffice."""
    unless_above: float = np.inf
    """Steps may end as soon as the minimum is all but certain to be above this."""


EXACT = Accuracy()


class Smooth(Protocol):
    """A smooth convex function of coefficients of shape (C, q) that acts through C x n linear scores.

    The Hessian is a stack of blocks: C of q x q, or a single one of all C q coefficients where outputs are coupled.
    """

    lower: np.ndarray | None
    upper: np.ndarray | None
    flat: bool
    shared: np.ndarray | None
    """Where outputs are coupled, what the Hessian holds for each pair of them along what they share, shape (q, q)."""

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

        An infinite share stands for the Hessian of the broad curvature alone.
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
    hessian: np.ndarray | None
    """About the Hessian there: exact of quadratics, else as far as the steps have needed it; None if they have not."""
    converged: bool = True
    """Whether the steps ended because nothing more could be gained."""
    predicted: float = 0.0
    """What one more step would gain by the Hessian, where the steps ended early."""
    basis: np.ndarray | None = None
    """For an exact minimum of a piecewise linear loss: rows of the data at their kinks, shape (C, q)."""
    exactly: bool = False
    """Whether the Hessian is known to be that of the minimum itself."""

    def but(self, *, scores: np.ndarray | None = None, hessian: np.ndarray | None = None) -> Minimum:
        """The same with other scores or another Hessian; ``replace`` would take five times as long."""
        scores = self.scores if scores is None else scores
        hessian = self.hessian if hessian is None else hessian
        return Minimum(self.coef, scores, self.value, hessian, self.converged, self.predicted, self.basis, self.exactly)


def joined(minima: list[Minimum]) -> Minimum:
    """The minimum of a sum of objectives, each of other coefficients."""
    bases = [one.basis for one in minima if one.basis is not None]
    hessians = [one.hessian for one in minima if one.hessian is not None]
    return Minimum(
        np.concatenate([one.coef for one in minima]),
        np.concatenate([one.scores for one in minima]),
        sum(one.value for one in minima),
        np.concatenate(hessians) if len(hessians) == len(minima) else None,
        all(one.converged for one in minima),
        sum(one.predicted for one in minima),
        np.concatenate(bases) if len(bases) == len(minima) else None,
    )


def minimise(
    objective: Smooth,
    start: np.ndarray,
    *,
    scores: np.ndarray | None = None,
    about: float | None = None,
    hessian: np.ndarray | None = None,
    accuracy: Accuracy = EXACT,
) -> Minimum:
    """The minimum of ``objective`` within its bounds, from ``start`` of shape (C, q).

    Steps are judged by the slope they end at, which has to be computed anyway: where a convex function still falls it
    has fallen all the way, and where it rises only a little it has not risen far. Coordinates at a bound that the
    gradient pushes against stay there; the others take a Newton step, which is projected onto the bounds (Bertsekas
    1982).

    What is known of the start may be given: its ``scores``, ``about`` its value, about its ``hessian``. Losses with
    flat pieces are always minimised to the end.
    """
    coef = _within(start, objective)
    if scores is None or objective.lower is not None:
        scores = objective.scores(coef)
    value = objective.value(coef, scores) if about is None else about
    if objective.flat:
        return _minimise_piecewise(objective, coef, scores, value)
    return _minimise_curved(objective, coef, scores, value, hessian, accuracy)


def _minimise_curved(
    objective: Smooth,
    coef: np.ndarray,
    scores: np.ndarray,
    value: float,
    hessian: np.ndarray | None,
    accuracy: Accuracy,
) -> Minimum:
    """Newton steps; Hessians are computed only where corrections by the steps before do not suffice."""
    before, within = np.inf, accuracy.within
    gradient = objective.gradient(coef, scores)
    for taken in range(accuracy.most_steps + 1):
        check_time()
        free = _free(coef, gradient, objective)
        step, predicted, enough = gradient, np.nan, CORRECTED_BELOW * within
        if hessian is not None:
            step, predicted = _corrected_direction(hessian, gradient, free, objective.shared)
        if not accuracy.renewed and taken and not predicted >= 0:
            predicted = 0.0
            break
        if hessian is None or not predicted <= (CORRECTED_BELOW * before if accuracy.renewed else np.inf):
            hessian, enough = objective.hessian(scores, 0.0), within
            step, predicted = _direction(hessian, gradient, free, objective.shared)
        if taken == accuracy.most_steps:
            break
        if predicted <= LINE_SEARCH_SLACK * value:
            ended = _minimum_at(objective, coef, hessian)
            # The value may have fallen far since it was computed.
            if predicted <= LINE_SEARCH_SLACK * ended.value or value <= ended.value:
                return ended
            value = ended.value
        length, new, scores = _search_along(objective, coef, scores, gradient, step, predicted)
        if length == 0.0:
            # Rounding leaves nothing to gain, or next to nothing.
            return _minimum_at(objective, new, hessian, converged=predicted <= STUCK_ABOVE * value)
        if length == 1.0 and predicted <= enough * value:
            ended = _minimum_at(objective, new, hessian)
            if predicted <= enough * ended.value:
                return ended
            scores, value = ended.scores, ended.value
        slope = objective.gradient(new, scores)
        trusted = length == 1.0 or not accuracy.renewed
        hessian = _bfgs_update(hessian, new - coef, slope - gradient) if trusted else None
        coef, gradient, before = new, slope, predicted
    assert hessian is not None
    ended = _minimum_at(objective, coef, hessian, converged=False)
    return replace(ended, predicted=min(predicted, 0.5 * ended.value))


def _minimise_piecewise(objective: Smooth, coef: np.ndarray, scores: np.ndarray, value: float) -> Minimum:
    """Newton steps on a loss whose curvature vanishes here and there, so that it says little of longer steps."""
    share, idle = FIRST_SHARE, 0
    for _ in range(MOST_STEPS):
        check_time()
        gradient = objective.gradient(coef, scores)
        free = _free(coef, gradient, objective)
        step, predicted = _direction(objective.hessian(scores, share), gradient, free)
        if predicted <= LAST_FLAT_STEP_BELOW * value:
            value = objective.value(coef, scores)
            # A few rows at a kink may make the Hessian so steep that no gain is predicted; the broad one is not.
            step, predicted = _direction(objective.hessian(scores, np.inf), gradient, free)
            share = FIRST_SHARE
            if predicted <= LAST_FLAT_STEP_BELOW * value:
                return _polish(objective, coef, scores, value)
        before = value
        length, moved, _ = _search_along(objective, coef, scores, gradient, step, predicted)
        # Afresh: scores to which steps below their rounding were added may fall on and on while the model's do not.
        scores = objective.scores(moved)
        value = objective.value(moved, scores)
        idle = idle + 1 if before - value <= LAST_FLAT_STEP_BELOW * before else 0
        if length == 0.0 or not value < before or idle == MOST_IDLE_STEPS:
            # Rounding leaves nothing to gain: a convex function that falls along a step is lower at its end.
            return _minimum_at(
                objective, coef, objective.hessian(scores, 0.0), converged=predicted <= STUCK_ABOVE * before
            )
        coef = moved
        factor = SHARE_RAISED if length < SHORT_STEP else SHARE_LOWERED
        share = float(np.clip(share * factor, *SHARE_RANGE))
    return _minimum_at(objective, coef, objective.hessian(scores, 0.0), converged=False)


def _bfgs_update(hessian: np.ndarray, step: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Hessians that agree with how the gradient has changed along a step, and else differ little from what they were.

    ``H + y y' / y's - H s s' H / s'Hs`` for the step s and the change y, block by block.
    """
    s, y = step.reshape(len(hessian), -1, 1), change.reshape(len(hessian), -1, 1)
    image = hessian @ s
    measured, assumed = (s * y).sum(axis=1, keepdims=True), (s * image).sum(axis=1, keepdims=True)
    if not (np.all(measured > 0) and np.all(assumed > 0)):
        return hessian
    return hessian + y @ (y / measured).transpose(0, 2, 1) - image @ (image / assumed).transpose(0, 2, 1)


def _search_along(
    objective: Smooth, coef: np.ndarray, scores: np.ndarray, gradient: np.ndarray, step: np.ndarray, predicted: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """The length gone along a step, 0 if rounding leaves nothing, and coefficients and scores at its end."""
    if objective.lower is None:
        return _search_slope(objective, coef, scores, step, predicted)
    length, coef = _search_within_bounds(objective, coef, scores, gradient, step)
    return length, coef, objective.scores(coef)


def _minimum_at(objective: Smooth, coef: np.ndarray, hessian: np.ndarray, *, converged: bool = True) -> Minimum:
    """The minimum at given coefficients, its scores and value computed afresh: those of the steps have drifted."""
    scores = objective.scores(coef)
    return Minimum(coef, scores, objective.value(coef, scores), hessian, converged)


def _polish(objective: Smooth, coef: np.ndarray, scores: np.ndarray, value: float) -> Minimum:
    """The end of steps on a loss with flat pieces: plain Newton steps, exact on the pieces it has come to.

    They determine what flat directions leave open, on which the value hardly depends.
    """
    for _ in range(POLISHING_STEPS):
        gradient = objective.gradient(coef, scores)
        step, _ = _direction(objective.hessian(scores, 0.0), gradient, _free(coef, gradient, objective))
        new = _within(coef + step, objective)
        there = objective.scores(new)
        if not objective.value(new, there) <= value * (1 + LINE_SEARCH_SLACK):
            break
        coef, scores = new, there
    return _minimum_at(objective, coef, objective.hessian(scores, 0.0))


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


def _direction(
    hessian: np.ndarray, gradient: np.ndarray, free: np.ndarray | None, shared: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """The Newton step, and the predicted decrease of the value."""
    hessian, slope = _masked(hessian, gradient, free, shared)
    scaled, scale = scaled_to_ones(hessian, LEAST_DAMPING, below=LEAST_DAMPING)
    # Rounding may have made the Hessian of nearly dependent columns indefinite.
    for candidate in damped(scaled, LEAST_DAMPING):
        step, predicted = _solve(candidate, scale * slope)
        if predicted >= 0:
            return (scale * step).reshape(gradient.shape), predicted
    raise FloatingPointError("A refit has values that are not finite; rescale y, or remove extreme values from X.")


def _corrected_direction(
    hessian: np.ndarray, gradient: np.ndarray, free: np.ndarray | None, shared: np.ndarray | None
) -> tuple[np.ndarray, float]:
    """The same with a Hessian that may be wrong: if it is no good, what is predicted is not a number."""
    step, predicted = _solve(*_masked(hessian, gradient, free, shared))
    return step.reshape(gradient.shape), predicted if predicted >= 0 else np.nan


def _masked(
    hessian: np.ndarray, gradient: np.ndarray, free: np.ndarray | None, shared: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Hessian and slope by blocks, without what may not move."""
    slope = -gradient.reshape(len(hessian), -1)
    if free is None:
        return hessian, slope
    if shared is not None:
        # Where a bound holds one output of a column, the others have a true curvature along what they share.
        held = np.any(~free, axis=0)
        hessian = hessian - np.tile(shared * np.logical_or.outer(held, held), (len(free), len(free)))
    mask = free.reshape(slope.shape)
    hessian = hessian * (mask[:, :, None] & mask[:, None, :])
    np.einsum("bii->bi", hessian)[~mask] = 1.0
    return hessian, slope * mask


def _solve(hessian: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, float]:
    try:
        step = np.linalg.solve(hessian, slope[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        return slope, np.nan
    predicted = 0.5 * float(np.vdot(slope, step))
    return step, predicted if np.isfinite(predicted) else np.nan


def _search_slope(
    objective: Smooth, coef: np.ndarray, scores: np.ndarray, step: np.ndarray, predicted: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Along the step, all the way if the slope there is small enough, else to where it is.

    Returns the length gone, and coefficients and scores there. On flat pieces a Newton step is of any length but the
    right one, and it pays to search more closely.
    """
    change = objective.scores(step)
    fall, rise = (FLAT_SLOPE, FLAT_SLOPE) if objective.flat else (SMOOTH_SLOPE, SMOOTH_RISE)
    length, bracket = 1.0, SlopeBracket(-2 * predicted)
    for count in range(1, MOST_TRIALS):
        check_time()
        if count > CLOSE_AFTER and np.array_equal(scores + bracket.low * change, scores + bracket.high * change):
            break  # rounding of the scores leaves nothing between
        new, there = coef + length * step, scores + length * change
        slope = objective.slope_along(new, there, step, change)
        if -fall * 2 * predicted <= slope <= rise * 2 * predicted:
            return length, new, there
        if slope < 0:
            bracket.falls_at(length, slope)
        else:
            bracket.rises_at(length, slope)
        length = bracket.next_length(length)
    new, there = coef + bracket.low * step, scores + bracket.low * change
    value = objective.value(coef, scores)
    if not objective.value(new, there) < value - LINE_SEARCH_SLACK * abs(value):
        return 0.0, coef, scores  # the slopes are rounding too
    return bracket.low, new, there


def _search_within_bounds(
    objective: Smooth, coef: np.ndarray, scores: np.ndarray, gradient: np.ndarray, step: np.ndarray
) -> tuple[float, np.ndarray]:
    """Backtracking along the step projected onto the bounds: the length, 0 if nothing is gained, and the end."""
    value = objective.value(coef, scores)

    def try_length(length: float) -> Trial[np.ndarray]:
        new = _within(coef + length * step, objective)
        expected = max(0.0, float(np.sum(gradient * (coef - new))))
        return Trial(objective.value(new, objective.scores(new)), expected, new)

    found = backtrack(try_length, value, LINE_SEARCH_SLACK * value, SHORTEST_STEP)
    return (0.0, coef) if found is None else (found[0], found[1].point)
