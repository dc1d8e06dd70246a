"""What is known at a point of the ball once the gradient has been seen there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pauca.l1.objective import BallObjective, Iterate
from pauca.losses import Loss


@dataclass(frozen=True, eq=False)
class Look:
    """An iterate, what it is worth, and what is proven of all others."""

    at: Iterate
    value: float
    """Q at the iterate, by the loss as the user means it."""
    lower: float
    """No model in the ball has a Q below this."""
    gap: float
    """By how much the loss that is minimised might still fall."""


def look(
    objective: BallObjective, loss: Loss, bound: float, at: Iterate, scores: np.ndarray, gradient: np.ndarray
) -> Look:
    """The certificate of an iterate (Frank and Wolfe 1956; Shalev-Shwartz, Srebro and Zhang 2010, Lemma A.3).

    By convexity no u in the ball has ``Q(u) < Q(w) + g (u - w)``, and the least of the right-hand side is
    ``Q(w) - gap`` with ``gap = g w + bound max_j |g_j|``. It is proven for b minimised out: what is left of the
    slope in b counts with how far away the best b may be. A loss below the one that is meant proves a bound for both.
    """
    gap = float(gradient[at.places] @ at.coef) + bound * float(np.abs(gradient).max(initial=0.0))
    smooth = objective.value(loss, scores, at)
    left = 0.0
    if objective.center and not loss.quadratic:
        slopes = np.abs(loss.derivative(objective.y, scores) @ objective.weights)
        left = float(np.where(objective.fixed, 0.0, slopes) @ objective.far_intercepts(bound, at))
    value = smooth if loss is objective.loss else objective.value(objective.loss, scores, at)
    return Look(at, value, smooth - gap - left, gap + left)
