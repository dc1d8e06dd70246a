"""The maximum of a Gaussian likelihood for given edges: Newton's method in the entries that may differ from zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv
from scipy.sparse import csr_array

from pauca.graphs.definite import invert, logdet
from pauca.graphs.errors import NoMaximumError

# A step whose slope promises less than this is the last: Newton's error is squared by taking it.
LAST_STEP_BELOW = 1e-12
MOST_STEPS = 100

# Beyond so many entries the Hessian is applied, not formed: conjugate gradients, each of whose steps costs as much as
# there are entries times nodes. They end at this share of the gradient, or at the gradient itself if that is smaller.
FORMED_UP_TO = 400
FIRST_RESIDUAL = 0.1
MOST_PRODUCTS = 500

# The decrease a step must bring, as a share of what its slope promises, and the rounding of a value per node.
SUFFICIENT = 1e-4
ROUNDING = 4e-15

# A diagonal entry of the precision of correlations is 1 / (1 - R^2). Beyond this one node depends on its neighbours.
LARGEST_ENTRY = 1e10


@dataclass(frozen=True, eq=False)
class Pattern:
    """The entries of a symmetric matrix that may differ from zero: the diagonal, then one for each edge.

    ``first`` and ``second`` are the row and column of each, ``count`` is how often it stands in the matrix.
    """

    n_nodes: int
    first: np.ndarray
    second: np.ndarray
    count: np.ndarray

    @classmethod
    def of(cls, n_nodes: int, first: np.ndarray, second: np.ndarray) -> Pattern:
        """The pattern of a graph with these edges."""
        every = np.arange(n_nodes)
        count = np.concatenate([np.ones(n_nodes), np.full(len(first), 2.0)])
        return cls(n_nodes, np.concatenate([every, first]), np.concatenate([every, second]), count)

    def read(self, matrix: np.ndarray) -> np.ndarray:
        """These entries of a matrix."""
        return matrix[self.first, self.second]

    def matrix(self, entries: np.ndarray) -> np.ndarray:
        """The symmetric matrix of these entries."""
        made = np.zeros((self.n_nodes, self.n_nodes))
        made[self.first, self.second] = entries
        made[self.second, self.first] = entries
        return made


def fit_block(
    covariance: np.ndarray, first: np.ndarray, second: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, float]:
    """The precision matrix with these edges that maximises the likelihood of a covariance, and its log determinant.

    It minimises ``-logdet Theta + tr(S Theta)``, and is the only one whose inverse equals S on the edges and on the
    diagonal (Dempster 1972). Steps are halved until the matrix is positive definite and Q has fallen enough.

    Parameters
    ----------
    covariance : ndarray of shape (m, m)
        With a diagonal of ones.
    first, second : ndarray of shape (q,)
        Ends of the edges.
    start : ndarray of shape (m, m)
        A precision matrix to begin with. What it has elsewhere is dropped; if it is not definite then, the search
        begins at the identity.
    """
    m = len(covariance)
    if len(first) == m * (m - 1) // 2:
        complete = invert(covariance)
        if complete is None or _is_too_large(complete.matrix):
            raise NoMaximumError(np.arange(m))
        return complete.matrix, -complete.logdet
    pattern = Pattern.of(m, first, second)
    theta = pattern.matrix(pattern.read(start))
    value = value_of(covariance, theta)
    if not np.isfinite(value):
        theta, value = np.eye(m), float(m)
    wanted = pattern.read(covariance)
    for _ in range(MOST_STEPS):
        inverse = invert(theta)
        if inverse is None or _is_too_large(theta):
            break
        gradient = pattern.count * (wanted - pattern.read(inverse.matrix))
        newton = _formed_step if len(gradient) <= FORMED_UP_TO else _applied_step
        step = newton(pattern, inverse.matrix, gradient)
        slope = float(gradient @ step)
        theta, value = _along(covariance, theta, value, pattern.matrix(step), slope)
        if -slope <= LAST_STEP_BELOW:
            # At the optimum the trace of S Theta is that of the identity.
            return theta, m - value
    raise NoMaximumError(np.arange(m))


def value_of(covariance: np.ndarray, theta: np.ndarray) -> float:
    """``-logdet Theta + tr(S Theta)``, infinite unless Theta is positive definite."""
    grown = logdet(theta)
    return np.inf if grown is None else float(np.vdot(covariance, theta)) - grown


def hessian(sigma: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Second derivatives ``tr(Sigma U Sigma V)`` of Q in entries; where ``first == second`` an entry is diagonal."""
    rows, columns = sigma[first], sigma[second]
    made = rows[:, first] * columns[:, second]
    made += rows[:, second] * columns[:, first]
    halved = np.where(first == second, 0.5, 1.0)
    made *= 2.0 * halved
    made *= halved[:, None]
    return made


def _formed_step(pattern: Pattern, sigma: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Newton's step by a factor of the Hessian."""
    curved = hessian(sigma, pattern.first, pattern.second)
    # Scaled to a diagonal of ones it can be factored much further towards a singular covariance.
    scale = 1.0 / np.sqrt(np.diagonal(curved))
    curved *= scale
    curved *= scale[:, None]
    _, step, failed = dposv(curved, -scale * gradient, lower=1, overwrite_a=1)
    if failed:
        raise NoMaximumError(np.arange(pattern.n_nodes))
    return scale * step


def _applied_step(pattern: Pattern, sigma: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """About Newton's step, by conjugate gradients scaled by the diagonal of the Hessian."""
    first, second = pattern.first, pattern.second
    rows = sigma[first]
    own = np.diagonal(sigma)
    scale = 0.5 * pattern.count**2 * (own[first] * own[second] + pattern.read(sigma) ** 2)

    mirrored = np.concatenate([first, second[pattern.n_nodes :]]), np.concatenate([second, first[pattern.n_nodes :]])

    def curved(direction: np.ndarray) -> np.ndarray:
        entries = np.concatenate([direction, direction[pattern.n_nodes :]])
        moved = csr_array((entries, mirrored), shape=sigma.shape) @ sigma
        return pattern.count * np.einsum("ek,ek->e", rows, np.ascontiguousarray(moved.T)[second])

    step, residual = np.zeros_like(gradient), -gradient
    scaled = residual / scale
    direction, left = scaled, float(residual @ scaled)
    enough = min(FIRST_RESIDUAL, float(np.sqrt(left))) ** 2 * left
    for _ in range(MOST_PRODUCTS):
        bent = curved(direction)
        length = left / float(direction @ bent)
        step += length * direction
        residual = residual - length * bent
        scaled = residual / scale
        before, left = left, float(residual @ scaled)
        if left <= enough:
            break
        direction = scaled + (left / before) * direction
    return step


def _along(
    covariance: np.ndarray, theta: np.ndarray, value: float, direction: np.ndarray, slope: float
) -> tuple[np.ndarray, float]:
    """The first of the steps 1, 1/2, 1/4, ... that keeps the matrix definite and lowers the value enough."""
    length, slack = 1.0, ROUNDING * len(theta)
    while True:
        there = theta + length * direction
        reached = value_of(covariance, there)
        if reached <= value + SUFFICIENT * length * slope + slack:
            return there, reached
        length *= 0.5


def _is_too_large(theta: np.ndarray) -> bool:
    """Whether a precision matrix has grown beyond what data can tell."""
    return bool(np.diagonal(theta).max() > LARGEST_ENTRY)
