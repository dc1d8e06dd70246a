"""What columns gain by the quadratic around a model, compiled: the sums of ``local_quadratic`` in fewer passes."""

from __future__ import annotations

import math

import numpy as np

from pauca.losses.kernels import Data, compiled, slopes_of, weigh
from pauca.objectives.kernels import correlate, dot
from pauca.tolerances import DEPENDENT_BELOW

# Columns that are taken through all steps at a time, so that they stay in the cache.
AT_ONCE = 512


@compiled
def factorise(matrix: np.ndarray) -> bool:
    """The triangle L of ``L L'`` below the diagonal, in its place; False if the matrix is not positive definite."""
    q = len(matrix)
    for j in range(q):
        for k in range(j + 1):
            left = matrix[j, k]
            for m in range(k):
                left -= matrix[j, m] * matrix[k, m]
            if k < j:
                matrix[j, k] = left / matrix[k, k]
            elif left > 0.0:
                matrix[j, j] = math.sqrt(left)
            else:
                return False
    return True


@compiled
def damp(matrix: np.ndarray, penalty: np.ndarray) -> None:
    """Add a penalty to the diagonal, and what keeps the Hessian of dependent columns invertible."""
    for j in range(len(matrix)):
        own = matrix[j, j]
        matrix[j, j] += penalty[j] + (DEPENDENT_BELOW * own if own > 0.0 else 1.0)


@compiled
def gains_by_mean(
    products: np.ndarray,
    features: np.ndarray,
    curvature: float,
    penalty: np.ndarray,
    slope: np.ndarray,
    gains: np.ndarray,
) -> bool:
    """What every column gains beside the chosen ``features``, with one curvature for all rows.

    ``products`` are those of the features with all columns, which have length one; shape (q, d).
    """
    q, d = products.shape
    triangle, own = np.empty((q, q)), np.empty(q)
    for j in range(q):
        own[j] = penalty[features[j]]
        for k in range(q):
            triangle[j, k] = curvature * products[j, features[k]]
    damp(triangle, own)
    if not factorise(triangle):
        return False
    half, left = np.empty((q, AT_ONCE)), np.empty(AT_ONCE)
    for start in range(0, d, AT_ONCE):
        width = min(AT_ONCE, d - start)
        for i in range(width):
            left[i] = curvature + penalty[start + i]
        for j in range(q):
            line, row = half[j], products[j]
            for i in range(width):
                line[i] = curvature * row[start + i]
            for k in range(j):
                share, other = triangle[j, k], half[k]
                for i in range(width):
                    line[i] -= share * other[i]
            scale = 1.0 / triangle[j, j]
            for i in range(width):
                line[i] *= scale
                left[i] -= line[i] * line[i]
        for i in range(width):
            whole, steep = curvature + penalty[start + i], slope[start + i]
            gains[start + i] = 0.5 * steep * steep / left[i] if left[i] > DEPENDENT_BELOW * whole else 0.0
    return True


@compiled
def products_beside(
    data: Data,
    curved: np.ndarray,
    penalty: np.ndarray,
    z: np.ndarray,
    own: np.ndarray,
    left: np.ndarray,
) -> bool:
    """Products of new columns by the Hessian in the scores, and what the columns of a model leave of them.

    ``own`` has those of each with itself; ``left`` what is left of these, shape (b, 1), or of all of them, (b, b).
    """
    columns = data.columns
    (q, n), b = columns.shape, len(z)
    triangle, weighted, spare = np.empty((q, q)), np.empty(n), np.empty(n)
    slopes_of(data, data.scores, weighted, spare)  # where rows are coupled, by the Hessian of these scores
    for j in range(q):
        weigh(data, curved, columns[j], weighted)
        correlate(columns, z[0], weighted, triangle[j])
    damp(triangle, penalty)
    if not factorise(triangle):
        return False
    beside, pairs = np.empty((b, q)), left.shape[1] > 1
    for m in range(b):
        weigh(data, curved, z[m], weighted)
        own[m] = dot(weighted, z[m])
        line = beside[m]
        correlate(columns, z[0], weighted, line)
        for j in range(q):
            for k in range(j):
                line[j] -= triangle[j, k] * line[k]
            line[j] /= triangle[j, j]
        if pairs:
            for k in range(m + 1):
                left[m, k] = dot(weighted, z[k]) - dot(line, beside[k])
                left[k, m] = left[m, k]
        else:
            left[m, 0] = own[m] - dot(line, line)
    return True
