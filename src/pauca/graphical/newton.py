"""The maximum of a Gaussian likelihood for given edges: Newton's method in the entries that may differ from zero."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv

from pauca.graphical.cholesky import Factor, factored, invert
from pauca.graphical.errors import LARGEST_ENTRY, NoMaximumError
from pauca.graphical.hessian import Curvature, Pattern, hessian

# A step whose slope promises less than this is the last: Newton's error is squared by taking it.
LAST_STEP_BELOW = 1e-12
MOST_STEPS = 100

# A Hessian that rounding has made indefinite still tells a step where the precision has no larger entries.
TELLING_UP_TO = 1e7

# Up to so many entries the Hessian is formed and factored, beyond them it is applied.
FACTORED_UP_TO = 300

# The decrease a step must bring, as a share of what its slope promises, and the rounding of the numbers that a value is
# the sum of. Where correlations are strong, they are a good deal larger than the value.
SUFFICIENT = 1e-4
ROUNDING = 4e-15

# A step that gets nowhere has met rounding, unless its slope has promised more than this.
STUCK_BELOW = 1e-4
SHORTEST_STEP = 1e-9


class Start(NamedTuple):
    """Where a fit begins."""

    theta: np.ndarray
    """A precision matrix. What it has off the pattern is dropped."""
    sigma: np.ndarray | None = None
    """Its inverse, where that is known and the pattern drops nothing."""
    logdet: float = 0.0
    """Then the logarithm of its determinant, and the trace of S Theta must be that of the identity."""


def fit_block(covariance: np.ndarray, first: np.ndarray, second: np.ndarray, start: Start) -> tuple[np.ndarray, float]:
    """The precision matrix with these edges that maximises the likelihood of a covariance, and its log determinant.

    It minimises ``-logdet Theta + tr(S Theta)``, and is the only one whose inverse equals S on the edges and on the
    diagonal (Dempster 1972). Steps are halved until the matrix is positive definite and Q has fallen enough.

    Parameters
    ----------
    covariance : ndarray of shape (m, m)
        With a diagonal of ones.
    first, second : ndarray of shape (q,)
        Ends of the edges.
    start : Start
        If it is not definite on the pattern, the search begins at the identity.
    """
    m = len(covariance)
    if len(first) == m * (m - 1) // 2:
        complete = invert(covariance)
        if complete is None or _is_too_large(complete.matrix):
            raise NoMaximumError(np.arange(m))
        return complete.matrix, -complete.logdet
    pattern = Pattern.of(m, first, second)
    theta, sigma, value = _begun(covariance, pattern, start)
    wanted = pattern.read(covariance)
    curved = None if len(wanted) <= FACTORED_UP_TO else Curvature(pattern, pattern.read(theta))
    for _ in range(MOST_STEPS):
        if _is_too_large(theta):
            break
        gradient = pattern.count * (wanted - pattern.read(sigma))
        if not gradient.any():
            return theta, m - value
        step = None if curved is not None else _formed_step(pattern, sigma, gradient)
        if step is None:
            if _is_too_large(theta, TELLING_UP_TO):
                break
            curved = curved or Curvature(pattern, pattern.read(theta))
            step = curved.solve(sigma, -gradient)
        slope = float(gradient @ step)
        rounding = ROUNDING * (m + float(np.abs(covariance * theta).sum()))
        found = _along(covariance, theta, value, pattern.matrix(step), slope, rounding)
        if found is None and -slope > STUCK_BELOW:
            break
        if found is not None:
            theta, value, factor = found
        if found is None or -slope <= max(LAST_STEP_BELOW, rounding):
            # At the optimum the trace of S Theta is that of the identity.
            return theta, m - value
        sigma = factor.inverse()
    raise NoMaximumError(np.arange(m))


def _begun(covariance: np.ndarray, pattern: Pattern, start: Start) -> tuple[np.ndarray, np.ndarray, float]:
    """Theta, its inverse and Q where a fit begins."""
    m = pattern.n_nodes
    if start.sigma is not None:
        return start.theta, start.sigma, m - start.logdet
    theta = pattern.matrix(pattern.read(start.theta))
    factor = factored(theta)
    if factor is None:
        return np.eye(m), np.eye(m), float(m)
    return theta, factor.inverse(), float(np.vdot(covariance, theta)) - factor.logdet


def _formed_step(pattern: Pattern, sigma: np.ndarray, gradient: np.ndarray) -> np.ndarray | None:
    """Newton's step by a factor of the Hessian; None if rounding has made it indefinite."""
    curved = hessian(sigma, pattern.first, pattern.second)
    # Scaled to a diagonal of ones it can be factored much further towards a singular covariance.
    scale = 1.0 / np.sqrt(np.diagonal(curved))
    curved *= scale
    curved *= scale[:, None]
    _, step, failed = dposv(curved, -scale * gradient, lower=1, overwrite_a=1)
    return None if failed else scale * step


def _along(
    covariance: np.ndarray, theta: np.ndarray, value: float, direction: np.ndarray, slope: float, rounding: float
) -> tuple[np.ndarray, float, Factor] | None:
    """The first of the steps 1, 1/2, 1/4, ... that keeps the matrix definite and lowers the value enough, if any."""
    length = 1.0
    while length > SHORTEST_STEP:
        there = theta + length * direction
        factor = factored(there)
        if factor is not None:
            reached = float(np.vdot(covariance, there)) - factor.logdet
            if reached <= value + SUFFICIENT * length * slope + rounding:
                return there, reached, factor
        length *= 0.5
    return None


def _is_too_large(theta: np.ndarray, most: float = LARGEST_ENTRY) -> bool:
    """Whether a precision matrix has grown beyond what data can tell."""
    return bool(np.diagonal(theta).max() > most)
