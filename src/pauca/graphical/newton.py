"""The maximum of a Gaussian likelihood for given edges: Newton's method in the entries that may differ from zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv
from scipy.sparse import csr_array

from pauca.clock import check_time
from pauca.graphical.covariance import LARGEST_ENTRY, NoMaximumError
from pauca.graphical.covariance_update import CholeskyFactor, cholesky, invert
from pauca.solvers.line_search import Trial, backtrack
from pauca.tolerances import LINE_SEARCH_SLACK

# Conjugate gradients for a step of Newton's method end at this share of the gradient, or at the gradient itself if that
# is smaller, and take so many steps at most.
CG_TOLERANCE = 0.1
MOST_PRODUCTS = 500

# A step predicted to gain less than this is the last: Newton's error is squared by taking it.
LAST_STEP_BELOW = 1e-12
MOST_STEPS = 100

# Where rounding has made the Hessian indefinite, conjugate gradients are used as long as the precision has no larger
# entries.
ITERATIVE_UP_TO = 1e7

# Up to so many entries the Hessian is formed and factored, beyond them it is applied.
FACTORED_UP_TO = 300

# With more edges than this share of the nodes squared, a product of the Hessian is two products of matrices. With 400
# nodes and 2, 5, 10 and 49 % it takes 1.5, 0.6, 0.25 and 0.07 of the time that products entry by entry take.
MANY_EDGES = 0.05

# A step that gains nothing has met rounding, unless its slope has predicted more than this.
STUCK_BELOW = 1e-4
SHORTEST_STEP = 1e-9


@dataclass(frozen=True, eq=False)
class Pattern:
    """The entries of a symmetric matrix that may differ from zero: the diagonal, then one for each edge.

    ``first`` and ``second`` are the row and column of each, ``count`` is how often it occurs in the matrix.
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


def hessian(sigma: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Second derivatives ``tr(Sigma U Sigma V)`` of Q in entries; where ``first == second`` an entry is diagonal."""
    rows, columns = sigma[first], sigma[second]
    made = rows[:, first] * columns[:, second]
    made += rows[:, second] * columns[:, first]
    halved = np.where(first == second, 0.5, 1.0)
    made *= 2.0 * halved
    made *= halved[:, None]
    return made


class HessianOperator:
    """The Hessian of Q, applied and never formed: a product costs as much as there are entries times nodes.

    Were all entries of Theta free, the inverse of the Hessian would take a matrix G to ``Theta G Theta``. Conjugate
    gradients that are scaled by its entries of the pattern take half as many steps as with the diagonal. Where edges
    are few this is a sparse matrix, formed once; where they are many, two products of matrices. ``theta`` holds the
    entries of a precision matrix, for the scaling.
    """

    def __init__(self, pattern: Pattern, theta: np.ndarray) -> None:
        m, first, second = pattern.n_nodes, pattern.first, pattern.second
        self._pattern, self._many = pattern, len(first) - m > MANY_EDGES * m**2
        entry = np.concatenate([np.arange(len(first)), np.arange(m, len(first))])
        row, column = np.concatenate([first, second[m:]]), np.concatenate([second, first[m:]])
        matrix = csr_array((entry, (row, column)), shape=(m, m))
        # The entries of a direction change with every product, their positions do not.
        self._entry, self._direction = matrix.data, matrix.astype(np.float64)
        self._direction.data = theta[self._entry]
        degree = np.bincount(row, minlength=m).astype(float)
        self._scaled: Callable[[np.ndarray], np.ndarray]
        within_two_steps = np.bincount(row, weights=degree[column], minlength=m)
        if within_two_steps[first].sum() > m**3:
            dense = pattern.matrix(theta)
            self._scaled = lambda right: pattern.read(dense @ pattern.matrix(right / pattern.count) @ dense)
            return
        both = np.arange(len(row))
        ones = np.ones(len(row))
        begin = csr_array((ones, (row, both)), shape=(m, len(row)))
        end = csr_array((ones, (column, both)), shape=(m, len(row)))
        # From an entry (i, j) to an entry (u, v), in either order: Theta_iu Theta_vj.
        linked = (self._direction[first] @ begin).multiply(self._direction[second] @ end)
        share = csr_array((1.0 / pattern.count[entry], (both, entry)), shape=(len(row), len(first)))
        scaling = csr_array(linked @ share)
        self._scaled = lambda right: np.asarray(scaling @ right)

    def solve(self, sigma: np.ndarray, right: np.ndarray, share: float | None = None) -> np.ndarray:
        """The inverse of the Hessian times ``right``, up to a share of it, by conjugate gradients.

        ``sigma`` is the inverse of the precision matrix at which the Hessian is taken. The share is by default that of
        a gradient in Newton's method: smaller the smaller the gradient.
        """
        check_time()
        at_first = None if self._many else np.take(sigma, self._pattern.first[self._pattern.n_nodes :], axis=1)
        found, residual = np.zeros_like(right), right
        scaled = self._scaled(residual)
        direction, left = scaled, float(residual @ scaled)
        share = min(CG_TOLERANCE, float(np.sqrt(left))) if share is None else share
        enough = share**2 * left
        for _ in range(MOST_PRODUCTS):
            check_time()
            product = self._product(sigma, at_first, direction)
            length = left / float(direction @ product)
            found += length * direction
            residual = residual - length * product
            scaled = self._scaled(residual)
            before, left = left, float(residual @ scaled)
            if left <= enough:
                break
            direction = scaled + (left / before) * direction
        return found

    def _product(self, sigma: np.ndarray, at_first: np.ndarray | None, direction: np.ndarray) -> np.ndarray:
        """The Hessian times a direction: ``Sigma D Sigma`` at the entries."""
        if at_first is None:
            pattern = self._pattern
            return np.asarray(pattern.count * pattern.read(sigma @ pattern.matrix(direction) @ sigma))
        self._direction.data = direction[self._entry]
        moved = self._direction @ sigma
        own = np.einsum("ke,ke->e", sigma, moved)
        edges = np.take(moved, self._pattern.second[self._pattern.n_nodes :], axis=1)
        between = np.einsum("ke,ke->e", at_first, edges)
        return np.asarray(self._pattern.count * np.concatenate([own, between]))


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

    The covariance has a diagonal of ones, and the edges the ends ``first`` and ``second``. If ``start`` is not definite
    on the pattern, the search begins at the identity.
    """
    m = len(covariance)
    if len(first) == m * (m - 1) // 2:
        complete = invert(covariance)
        if complete is None or _is_too_large(complete.matrix):
            raise NoMaximumError(np.arange(m))
        return complete.matrix, -complete.logdet
    pattern = Pattern.of(m, first, second)
    theta, sigma, value = _start_values(covariance, pattern, start)
    target = pattern.read(covariance)
    operator = None if len(target) <= FACTORED_UP_TO else HessianOperator(pattern, pattern.read(theta))
    for _ in range(MOST_STEPS):
        check_time()
        if _is_too_large(theta):
            break
        gradient = pattern.count * (target - pattern.read(sigma))
        if not gradient.any():
            return theta, m - value
        step = None if operator is not None else _factored_step(pattern, sigma, gradient)
        if step is None:
            if _is_too_large(theta, ITERATIVE_UP_TO):
                break
            operator = operator or HessianOperator(pattern, pattern.read(theta))
            step = operator.solve(sigma, -gradient)
        slope = float(gradient @ step)
        # Where correlations are strong, the terms of a value are a good deal larger than the value.
        slack = LINE_SEARCH_SLACK * (m + float(np.abs(covariance * theta).sum()))
        found = _search_along(covariance, theta, value, pattern.matrix(step), slope, slack)
        if found is None and -slope > STUCK_BELOW:
            break
        if found is not None:
            theta, value, factor = found
        if found is None or -slope <= max(LAST_STEP_BELOW, slack):
            # At the optimum the trace of S Theta is that of the identity.
            return theta, m - value
        sigma = factor.inverse()
    raise NoMaximumError(np.arange(m))


def _start_values(covariance: np.ndarray, pattern: Pattern, start: Start) -> tuple[np.ndarray, np.ndarray, float]:
    """Theta, its inverse and Q at the start of a fit."""
    m = pattern.n_nodes
    if start.sigma is not None:
        return start.theta, start.sigma, m - start.logdet
    theta = pattern.matrix(pattern.read(start.theta))
    factor = cholesky(theta)
    if factor is None:
        return np.eye(m), np.eye(m), float(m)
    return theta, factor.inverse(), float(np.vdot(covariance, theta)) - factor.logdet


def _factored_step(pattern: Pattern, sigma: np.ndarray, gradient: np.ndarray) -> np.ndarray | None:
    """Newton's step by a factor of the Hessian; None if rounding has made it indefinite."""
    second = hessian(sigma, pattern.first, pattern.second)
    # Scaled to a diagonal of ones it can be factored much further towards a singular covariance.
    scale = 1.0 / np.sqrt(np.diagonal(second))
    second *= scale
    second *= scale[:, None]
    _, step, failed = dposv(second, -scale * gradient, lower=1, overwrite_a=1)
    return None if failed else scale * step


def _search_along(
    covariance: np.ndarray, theta: np.ndarray, value: float, direction: np.ndarray, slope: float, slack: float
) -> tuple[np.ndarray, float, CholeskyFactor] | None:
    """The end of the longest step that keeps the matrix definite and lowers the value enough, if there is one."""

    def try_length(length: float) -> Trial[tuple[np.ndarray, CholeskyFactor]] | None:
        there = theta + length * direction
        factor = cholesky(there)
        if factor is None:
            return None
        return Trial(float(np.vdot(covariance, there)) - factor.logdet, -length * slope, (there, factor))

    found = backtrack(try_length, value, slack, SHORTEST_STEP)
    if found is None:
        return None
    _, (reached, _, (there, factor)) = found
    return there, reached, factor


def _is_too_large(theta: np.ndarray, largest: float = LARGEST_ENTRY) -> bool:
    """Whether a precision matrix has larger entries than data can determine."""
    return bool(np.diagonal(theta).max() > largest)
