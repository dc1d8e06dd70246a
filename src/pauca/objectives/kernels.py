"""Previews of models of one output, compiled: the steps of ``approximate_refits``, model by model.

Sums are taken in another order than NumPy's, and exponentials may differ in the last bit; nothing else differs.

Conventions
-----------
scores : (G,); own : (G,), a further column, if there is one: its coefficient is the last
"""

from __future__ import annotations

import numpy as np

from pauca.losses.kernels import Data, compiled, is_finite, loss_of, slopes_of, weigh
from pauca.objectives.approximate_refits import MOST_SHORTENINGS
from pauca.solvers.newton import SMOOTH_RISE
from pauca.tolerances import DEPENDENT_BELOW, TINY


@compiled
def add_columns(columns: np.ndarray, coef: np.ndarray, own: np.ndarray, scores: np.ndarray) -> None:
    """Linear scores; ``own`` is the further column where ``coef`` has one entry more than there are columns."""
    q, n = columns.shape
    for i in range(n):
        scores[i] = 0.0
    j = 0
    while j + 4 <= q:
        c0, c1, c2, c3 = coef[j], coef[j + 1], coef[j + 2], coef[j + 3]
        z0, z1, z2, z3 = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
        for i in range(n):
            scores[i] += c0 * z0[i] + c1 * z1[i] + c2 * z2[i] + c3 * z3[i]
        j += 4
    while j < q:
        c0, z0 = coef[j], columns[j]
        for i in range(n):
            scores[i] += c0 * z0[i]
        j += 1
    if len(coef) > q:
        c0 = coef[q]
        for i in range(n):
            scores[i] += c0 * own[i]


@compiled
def correlate(columns: np.ndarray, own: np.ndarray, derivative: np.ndarray, found: np.ndarray) -> None:
    """Products of all columns with one vector."""
    q, n = columns.shape
    j = 0
    while j + 4 <= q:
        z0, z1, z2, z3 = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for i in range(n):
            f = derivative[i]
            s0 += f * z0[i]
            s1 += f * z1[i]
            s2 += f * z2[i]
            s3 += f * z3[i]
        found[j], found[j + 1], found[j + 2], found[j + 3] = s0, s1, s2, s3
        j += 4
    while j < q:
        z0, s0 = columns[j], 0.0
        for i in range(n):
            s0 += derivative[i] * z0[i]
        found[j] = s0
        j += 1
    if len(found) > q:
        s0 = 0.0
        for i in range(n):
            s0 += derivative[i] * own[i]
        found[q] = s0


@compiled
def find_gradient(
    data: Data,
    own: np.ndarray,
    penalty: np.ndarray,
    coef: np.ndarray,
    scores: np.ndarray,
    curvature: np.ndarray,
    derivative: np.ndarray,
    gradient: np.ndarray,
) -> None:
    """The gradient and, on the way, the curvature of every row."""
    slopes_of(data, scores, derivative, curvature)
    for i in range(len(scores)):
        derivative[i] *= data.weights[i]
    correlate(data.columns, own, derivative, gradient)
    for j in range(len(coef)):
        gradient[j] += penalty[j] * coef[j]


@compiled
def find_value(data: Data, penalty: np.ndarray, coef: np.ndarray, scores: np.ndarray) -> float:
    """Weighted mean loss and penalty."""
    ridge = 0.0
    for j in range(len(coef)):
        ridge += penalty[j] * coef[j] * coef[j]
    return loss_of(data, scores) + 0.5 * ridge


@compiled
def dot(a: np.ndarray, b: np.ndarray) -> float:
    """The product of two vectors."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled
def find_step(inverse: np.ndarray, gradient: np.ndarray, step: np.ndarray) -> float:
    """The step by an inverse Hessian, and what it is predicted to gain."""
    predicted = 0.0
    for j in range(len(gradient)):
        step[j] = -dot(inverse[j], gradient)
        predicted -= 0.5 * step[j] * gradient[j]
    return predicted


@compiled
def correct_inverse(inverse: np.ndarray, s: np.ndarray, y: np.ndarray, image: np.ndarray) -> None:
    """The inverse Hessian corrected by a step s along which the gradient has changed by y."""
    measured = dot(s, y)
    if not (measured > 0.0 and measured < np.inf):
        return
    p, share = len(s), 1.0 / measured
    for j in range(p):
        image[j] = dot(inverse[j], y)
    along = 0.5 * (share + share * share * dot(y, image))
    for j in range(p):
        image[j] = along * s[j] - share * image[j]
    for j in range(p):
        for k in range(p):
            inverse[j, k] += s[j] * image[k] + image[j] * s[k]


@compiled
def begin_addition(
    data: Data,
    curved: np.ndarray,
    new: np.ndarray,
    penalty: float,
    known: np.ndarray,
    weighted: np.ndarray,
    across: np.ndarray,
    inverse: np.ndarray,
) -> None:
    """The inverse Hessian bordered by a new column; ``curved`` is the weighted curvature of every row."""
    q = len(data.columns)
    weigh(data, curved, new, weighted)
    correlate(data.columns, new, weighted, across)
    own = across[q] + penalty
    left = own
    regressed = inverse[q]
    for j in range(q):
        total = 0.0
        for k in range(q):
            total += known[j, k] * across[k]
        regressed[j] = total
    for j in range(q):
        left -= across[j] * regressed[j]
    left = 1.0 / max(left, DEPENDENT_BELOW * own)
    for j in range(q):
        share = regressed[j] * left
        for k in range(q):
            inverse[j, k] = known[j, k] + share * regressed[k]
        inverse[j, q] = -share
    for j in range(q):
        inverse[q, j] = inverse[j, q]
    inverse[q, q] = left


@compiled
def begin_removal(known: np.ndarray, fitted: np.ndarray, out: int, coef: np.ndarray, inverse: np.ndarray) -> None:
    """Where the quadratic around a minimum has its own minimum without a column, and its inverse Hessian there."""
    p = len(fitted)
    variance = max(known[out, out], TINY)
    for j in range(p):
        share = known[j, out] / variance
        coef[j] = fitted[j] - share * fitted[out]
        for k in range(p):
            inverse[j, k] = known[j, k] - share * known[k, out]
    coef[out] = 0.0
    for j in range(p):
        inverse[out, j] = 0.0
        inverse[j, out] = 0.0


@compiled
def gain_of_one(
    columns: np.ndarray, penalty: np.ndarray, curved: np.ndarray, gradient: np.ndarray, inverse: np.ndarray
) -> float:
    """What a step of the one best coefficient would gain, by the curvature there."""
    q, n = columns.shape
    best = 0.0
    for j in range(q):
        if not inverse[j, j] > 0.0:
            continue
        z, own = columns[j], penalty[j]
        for i in range(n):
            own += curved[i] * z[i] * z[i]
        if own > 0.0:
            best = max(best, 0.5 * gradient[j] * gradient[j] / own)
    return best


@compiled
def take_steps(
    data: Data,
    own: np.ndarray,
    penalty: np.ndarray,
    value: float,
    within: float,
    most_steps: int,
    coef: np.ndarray,
    scores: np.ndarray,
    inverse: np.ndarray,
    gradient: np.ndarray,
    vectors: np.ndarray,
    rows: np.ndarray,
) -> float:
    """Quasi-Newton steps of one model, in place; returns what the next step is predicted to gain."""
    p, n = len(coef), len(scores)
    step, before, old, image = vectors[0], vectors[1], vectors[2], vectors[3]
    change, start, derivative, curvature = rows[0], rows[1], rows[2], rows[3]
    predicted = find_step(inverse, gradient, step)
    for _ in range(most_steps):
        if not predicted > within * value:
            break
        add_columns(data.columns, step, own, change)
        for j in range(p):
            before[j] = coef[j]
            old[j] = gradient[j]
        for i in range(n):
            start[i] = scores[i]
        reach, twice, short = 1.0, 2.0 * predicted, False
        for _ in range(MOST_SHORTENINGS + 1):
            for j in range(p):
                coef[j] = before[j] + reach * step[j]
            for i in range(n):
                scores[i] = start[i] + reach * change[i]
            find_gradient(data, own, penalty, coef, scores, curvature, derivative, gradient)
            slope = dot(gradient, step)
            short = slope <= SMOOTH_RISE * twice
            if short:
                break
            # The secant's zero, between the start and here.
            share = twice / (slope + twice) if is_finite(slope) else 0.1
            reach *= min(max(share, 0.1), 0.7)
        if not short:
            # No length will do: the model stays where it is, and every further step would too.
            for j in range(p):
                coef[j] = before[j]
                gradient[j] = old[j]
            for i in range(n):
                scores[i] = start[i]
            break
        for j in range(p):
            before[j] = coef[j] - before[j]
            old[j] = gradient[j] - old[j]
        correct_inverse(inverse, before, old, image)
        predicted = find_step(inverse, gradient, step)
    return predicted


@compiled
def preview(
    data: Data,
    penalty: np.ndarray,
    fitted: np.ndarray,
    value: float,
    known: np.ndarray,
    new: np.ndarray,
    new_penalty: np.ndarray,
    removed: np.ndarray,
    within: float,
    most_steps: int,
    renewed: bool,
    coef: np.ndarray,
    scores: np.ndarray,
    values: np.ndarray,
    inverses: np.ndarray,
    predicted: np.ndarray,
) -> None:
    """A few steps to the minimum with each of some new columns or, where there are none, without some of its own.

    The model has coefficients ``fitted`` and the inverse Hessian ``known``; the last five are filled.
    """
    weights, columns, at = data.weights, data.columns, data.scores
    q, n = columns.shape
    b, p = coef.shape
    rows, vectors = np.empty((4, n)), np.empty((4, p))
    gradient, all_penalties, forced, curved = np.empty(p), np.empty(p), np.empty(n), np.empty(n)
    for j in range(q):
        all_penalties[j] = penalty[j]
    derivative, curvature = rows[2], rows[3]
    if len(new):
        slopes_of(data, at, forced, curved)
        for i in range(n):
            forced[i] *= weights[i]
            curved[i] *= weights[i]
        for m in range(b):
            begin_addition(data, curved, new[m], new_penalty[m], known, rows[0], vectors[0], inverses[m])
    for m in range(b):
        if len(new):
            own = new[m]
            all_penalties[q] = new_penalty[m]
            for i in range(n):
                scores[m, i] = at[i]
            for j in range(q):
                coef[m, j] = fitted[j]
                gradient[j] = 0.0
            coef[m, q] = 0.0
            gradient[q] = dot(forced, own)
        else:
            own = columns[0]
            begin_removal(known, fitted, removed[m], coef[m], inverses[m])
            add_columns(columns, coef[m], own, scores[m])
            find_gradient(data, own, all_penalties, coef[m], scores[m], curvature, derivative, gradient)
        left = take_steps(
            data,
            own,
            all_penalties,
            value,
            within,
            most_steps,
            coef[m],
            scores[m],
            inverses[m],
            gradient,
            vectors,
            rows,
        )
        values[m] = find_value(data, all_penalties, coef[m], scores[m])
        if renewed:
            slopes_of(data, scores[m], derivative, curvature)
            for i in range(n):
                curvature[i] *= weights[i]
            one = gain_of_one(columns, all_penalties, curvature, gradient, inverses[m])
            left = one if not left > one else left
        most = 0.5 * values[m]
        predicted[m] = (left if left < most else most) if left > 0.0 else 0.0
