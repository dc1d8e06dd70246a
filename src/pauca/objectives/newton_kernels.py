"""Newton refits of models of one output, compiled: the steps of ``newton_one_output``.

Sums are taken in another order than NumPy's, and exponentials may differ in the last bit; nothing else differs.

Conventions
-----------
scores : (G,); columns : (q, G); coef, penalty : (q,)
"""

from __future__ import annotations

import numpy as np

from pauca.losses.kernels import Data, compiled, slopes_of, weigh
from pauca.objectives.kernels import add_columns, correlate, dot, find_gradient, find_value
from pauca.objectives.newton_one_output import MOST_LEFT
from pauca.solvers.newton import CORRECTED_BELOW, MOST_TRIALS, SMOOTH_RISE, SMOOTH_SLOPE
from pauca.tolerances import LINE_SEARCH_SLACK

# How a refit has ended: its steps lead nowhere, it is at the minimum, or its steps have ended early.
NOWHERE, AT_MINIMUM, EARLY = 0, 1, 2


@compiled
def find_hessian(
    data: Data, curvature: np.ndarray, penalty: np.ndarray, curved: np.ndarray, spare: np.ndarray, hessian: np.ndarray
) -> None:
    """The Hessian of the mean loss and the penalty, from the curvature of every row."""
    columns = data.columns
    q, n = columns.shape
    for i in range(n):
        curved[i] = data.weights[i] * curvature[i]
    for j in range(q):
        weigh(data, curved, columns[j], spare)
        correlate(columns[: j + 1], columns[j], spare, hessian[j, : j + 1])
        for m in range(j):
            hessian[m, j] = hessian[j, m]
        hessian[j, j] += penalty[j]


@compiled
def solve(matrix: np.ndarray, spare: np.ndarray, x: np.ndarray) -> bool:
    """Solve a linear system in the place of its right side, by elimination; False if the matrix is singular."""
    q = len(x)
    for j in range(q):
        for k in range(q):
            spare[j, k] = matrix[j, k]
    for j in range(q):
        pivot = j
        for k in range(j + 1, q):
            if abs(spare[k, j]) > abs(spare[pivot, j]):
                pivot = k
        if spare[pivot, j] == 0.0:
            return False
        if pivot != j:
            for k in range(q):
                spare[j, k], spare[pivot, k] = spare[pivot, k], spare[j, k]
            x[j], x[pivot] = x[pivot], x[j]
        for k in range(j + 1, q):
            share = spare[k, j] / spare[j, j]
            if share != 0.0:
                for m in range(j + 1, q):
                    spare[k, m] -= share * spare[j, m]
                x[k] -= share * x[j]
    for j in range(q - 1, -1, -1):
        for k in range(j + 1, q):
            x[j] -= spare[j, k] * x[k]
        x[j] /= spare[j, j]
    return True


@compiled
def find_direction(hessian: np.ndarray, gradient: np.ndarray, spare: np.ndarray, step: np.ndarray) -> float:
    """The Newton step, and the predicted decrease of the value; not a number where the Hessian is singular."""
    for j in range(len(gradient)):
        step[j] = -gradient[j]
    if not solve(hessian, spare, step):
        return np.nan
    return -0.5 * dot(gradient, step)


@compiled
def correct(hessian: np.ndarray, s: np.ndarray, y: np.ndarray, image: np.ndarray) -> None:
    """The Hessian corrected by how the gradient has changed along a step."""
    q = len(s)
    for j in range(q):
        image[j] = dot(hessian[j], s)
    measured, assumed = dot(s, y), dot(s, image)
    if not (measured > 0.0 and assumed > 0.0):
        return
    for j in range(q):
        a, b = y[j] / measured, image[j] / assumed
        for k in range(q):
            hessian[j, k] += a * y[k] - b * image[k]


@compiled
def search_length(
    data: Data,
    penalty: np.ndarray,
    coef: np.ndarray,
    scores: np.ndarray,
    step: np.ndarray,
    change: np.ndarray,
    predicted: float,
    new: np.ndarray,
    there: np.ndarray,
    curvature: np.ndarray,
    derivative: np.ndarray,
    gradient: np.ndarray,
) -> float:
    """All the way along the step if the slope there is small enough, else to where it is; 0 if no length will do."""
    length, low, high = 1.0, 0.0, np.inf
    first = -2.0 * predicted
    slope_low, slope_high = first, np.nan
    for trial in range(1, MOST_TRIALS + 1):
        for j in range(len(coef)):
            new[j] = coef[j] + length * step[j]
        for i in range(len(scores)):
            there[i] = scores[i] + length * change[i]
        find_gradient(data, data.columns[0], penalty, new, there, curvature, derivative, gradient)
        slope = dot(gradient, step)
        if SMOOTH_SLOPE * first <= slope <= -SMOOTH_RISE * first:
            return length
        if slope < 0.0:
            low, slope_low = length, slope
        else:
            high, slope_high = length, slope
        if high == np.inf:
            length *= 4.0
        elif trial % 3 == 0 or not 0.0 < slope_high < np.inf:
            length = 0.5 * (low + high)
        else:
            length = low - slope_low * (high - low) / (slope_high - slope_low)
    return 0.0


@compiled
def minimise(
    data: Data,
    penalty: np.ndarray,
    coef: np.ndarray,
    scores: np.ndarray,
    hessian: np.ndarray,
    known: bool,
    cheap: bool,
    about: float,
    within: float,
    most_steps: int,
    longest: int,
    renewed: bool,
    unless_above: float,
    found: np.ndarray,
) -> int:
    """The minimum from ``coef`` with its ``scores`` and, where it is ``known``, about its Hessian, all in place.

    ``about`` is about the value of the start, ``longest`` the most steps that may be needed. Fills ``found`` with the
    value, and what one more step would gain; returns how the steps have ended. The Hessian of a minimum where it is
    ``cheap`` is the one there.
    """
    columns = data.columns
    q, n = columns.shape
    vectors, rows, spare = np.empty((5, q)), np.empty((4, n)), np.empty((q, q))
    step, new, gradient, slope, image = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    change, there, curvature, derivative = rows[0], rows[1], rows[2], rows[3]
    own = columns[0]
    find_gradient(data, own, penalty, coef, scores, curvature, derivative, gradient)
    before, predicted = np.inf, 0.0
    most = min(most_steps, longest)
    for taken in range(most + 1):
        exact = not known
        if known:
            predicted = find_direction(hessian, gradient, spare, step)
            exact = not 0.0 <= predicted <= (CORRECTED_BELOW * before if renewed else np.inf)
        if exact:
            find_hessian(data, curvature, penalty, there, derivative, hessian)
            known = True
            predicted = find_direction(hessian, gradient, spare, step)
        if not 0.0 <= predicted < np.inf:
            return NOWHERE
        if taken == most:
            break
        if unless_above < np.inf:
            value = find_value(data, penalty, coef, scores) if taken else about
            if value - MOST_LEFT * predicted > unless_above:
                found[0], found[1] = value, min(predicted, 0.5 * value)
                return EARLY
        length = 0.0
        nothing_left = predicted <= LINE_SEARCH_SLACK * about
        if not nothing_left:
            for j in range(q):
                slope[j] = gradient[j]
            add_columns(columns, step, own, change)
            length = search_length(
                data,
                penalty,
                coef,
                scores,
                step,
                change,
                predicted,
                new,
                there,
                curvature,
                derivative,
                gradient,
            )
            if length == 0.0:
                return NOWHERE
            for j in range(q):
                step[j] = new[j] - coef[j]
                slope[j] = gradient[j] - slope[j]
                coef[j] = new[j]
            for i in range(n):
                scores[i] = there[i]
        enough = max(within if exact else CORRECTED_BELOW * within, LINE_SEARCH_SLACK)
        if (nothing_left or length == 1.0) and predicted <= enough * about:
            # Afresh: the scores of the steps have drifted, and the value may be far below what was known of it.
            add_columns(columns, coef, own, there)
            value = find_value(data, penalty, coef, there)
            if predicted <= enough * value:
                for i in range(n):
                    scores[i] = there[i]
                found[0], found[1] = value, 0.0
                if cheap:
                    slopes_of(data, scores, derivative, curvature)
                    find_hessian(data, curvature, penalty, there, derivative, hessian)
                return AT_MINIMUM
            about = value
        if nothing_left:
            return NOWHERE
        known = not cheap and (length == 1.0 or not renewed)
        if known:
            correct(hessian, step, slope, image)
        before = predicted
    if most < most_steps:
        return NOWHERE
    add_columns(columns, coef, own, scores)
    found[0] = find_value(data, penalty, coef, scores)
    found[1] = min(predicted, 0.5 * found[0])
    return EARLY


@compiled
def minimise_each(
    data: Data,
    penalties: np.ndarray,
    coefs: np.ndarray,
    hessians: np.ndarray,
    cheap: bool,
    within: float,
    most_steps: int,
    longest: int,
) -> bool:
    """The minima for several penalties, one to a row, from the coefficients in the same row; False if one has none."""
    scores, found = np.empty(len(data.y)), np.empty(2)
    many = len(coefs) > 0  # True, but not as a literal, for which all of the kernel would be compiled again
    for row in range(len(coefs)):
        add_columns(data.columns, coefs[row], data.columns[0], scores)
        about = find_value(data, penalties[row], coefs[row], scores)
        ended = minimise(
            data,
            penalties[row],
            coefs[row],
            scores,
            hessians[row],
            not many,
            cheap,
            about,
            within,
            most_steps,
            longest,
            many,
            np.inf,
            found,
        )
        if ended != AT_MINIMUM:
            return False
    return True
