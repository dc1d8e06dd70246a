"""Refits of piecewise linear losses at their exact minimum, where there is neither a ridge nor a bound."""

from __future__ import annotations

import numpy as np

from pauca.losses import Loss
from pauca.objectives.restricted import WarmStart
from pauca.solvers.edge_following import PiecewiseLinearProblem, follow_edges
from pauca.solvers.newton import Minimum


def exact_minimum(
    loss: Loss, y: np.ndarray, weights: np.ndarray, columns: np.ndarray, start: WarmStart, width: float
) -> Minimum | None:
    """The minimum of ``sum_i v_i L(y_i, coef z_i)`` for y of shape (1, n) and columns of shape (q, n).

    None where the loss has no kinks to follow, or the columns are dependent. The scores of rows at their kinks are off
    it by their slope times ``width``: there the loss's envelope of curvature ``1 / width`` has the slopes that prove
    the minimum, and all that is computed from slopes agrees with it.
    """
    lines = loss.lines(y[0])
    if lines is None or not len(columns):
        return None
    counted = slice(None) if np.all(weights > 0) else np.flatnonzero(weights)
    direction, target = np.broadcast_to(lines.direction, y[0].shape)[counted], lines.offset[counted]
    signed = columns[:, counted] if np.all(direction == 1.0) else columns[:, counted] * direction
    problem = PiecewiseLinearProblem(signed, target, weights[counted], lines.low, lines.high)
    rows = np.zeros(0, dtype=np.intp) if start.basis is None else start.basis[0]
    rows = rows if isinstance(counted, slice) else np.searchsorted(counted, rows)
    found = follow_edges(problem, start.coef[0], rows)
    if found is None:
        return None
    basis, kinks = found.basis, found.at_kinks
    if not isinstance(counted, slice):
        basis, kinks = counted[basis], counted[kinks]
    scores = found.coef @ columns
    at = found.at_kinks
    scores[kinks] = direction[at] * (target[at] + width * found.slopes[at])
    curved = columns[:, kinks]
    hessian = (curved * (weights[kinks] / width)) @ curved.T
    return Minimum(found.coef[None], scores[None], found.value, hessian[None], basis=basis[None])
