"""Refits of piecewise linear losses at their exact minimum, where there is neither a ridge nor a bound."""

from __future__ import annotations

import numpy as np

from pauca.losses import Loss
from pauca.objectives.merged_rows import Rows
from pauca.objectives.restricted import WarmStart
from pauca.solvers.edge_following import PiecewiseLinearProblem, follow_edges
from pauca.solvers.newton import Minimum


def exact_minimum(
    loss: Loss, rows: Rows, output: int, columns: np.ndarray, start: WarmStart, width: float
) -> Minimum | None:
    """The minimum of ``sum_i v_i L(y_i, coef z_i)`` for one output and columns of shape (q, G).

    None where the loss has no kinks to follow, or the columns are dependent. The scores of rows at their kinks are off
    it by their slope times ``width``: there the loss's envelope of curvature ``1 / width`` has the slopes that prove
    the minimum, and all that is computed from slopes agrees with it.
    """
    lines = loss.lines(rows.y[output])
    if lines is None or not len(columns):
        return None
    direction = np.broadcast_to(lines.direction, lines.offset.shape)
    signed = columns if np.all(direction == 1.0) else columns * direction
    problem = PiecewiseLinearProblem(signed, lines.offset, rows.weights, lines.low, lines.high)
    basis = np.zeros(0, dtype=np.intp) if start.basis is None else start.basis[0]
    found = follow_edges(problem, start.coef[0], basis if rows.of_row is None else rows.of_row[basis])
    if found is None:
        return None
    at = found.at_kinks
    scores = found.coef @ columns
    scores[at] = direction[at] * (lines.offset[at] + width * found.slopes[at])
    curved = columns[:, at]
    hessian = (curved * (rows.weights[at] / width)) @ curved.T
    basis = found.basis if rows.first is None else rows.first[found.basis]
    return Minimum(found.coef[None], scores[None], found.value, hessian[None], basis=basis[None])
