"""Sums over one chunk of rows: functions that return plain arrays, to be added up over all chunks.

Conventions
-----------
block  : (rows, d), a chunk in its own dtype; every sum is in double precision
point  : (D,), about which sums are taken: near the means, so that no digits are lost
Sums   : a tuple of arrays, which ``add`` adds up in place
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk

Sums = tuple[Any, ...]

# Chunks are converted in blocks of about this many numbers (1 MB), which stay in the cache; products of blocks with
# fewer rows than this would not run at full speed.
CONVERTED_NUMBERS = 1 << 17
LEAST_ROWS = 256


def add(total: Sums, part: Sums) -> Sums:
    """The sums of two parts, in the arrays of the first."""
    for one, other in zip(total, part, strict=True):
        np.add(one, other, out=one)
    return total


def take(block: np.ndarray) -> np.ndarray:
    """The chunk itself."""
    return block


def mean(block: np.ndarray) -> np.ndarray:
    """Means of the columns."""
    return block.mean(axis=0, dtype=np.float64)


def converted(block: np.ndarray, point: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of rows about a point, in double precision; each is overwritten by the next."""
    step = max(LEAST_ROWS, CONVERTED_NUMBERS // block.shape[1])
    buffer = np.empty((min(step, len(block)), block.shape[1]))
    for start in range(0, len(block), step):
        rows = slice(start, min(start + step, len(block)))
        yield rows, np.subtract(block[rows], point, out=buffer[: rows.stop - start])


def moments(
    block: np.ndarray,
    target: np.ndarray | None,
    weights: np.ndarray | None,
    part: np.ndarray | None,
    sampled: np.ndarray | None,
    point: np.ndarray,
    n_parts: int,
    whole: bool,
    ranges: bool,
) -> Sums:
    """Weight, sums, and products (the lower triangle of all, or squares and those with the target) of every part.

    Then the smallest and largest entries, if ``ranges`` are wanted, and the ``sampled`` rows of the chunk.
    """
    d, width = block.shape[1], len(point)
    weight, first = np.zeros(n_parts), np.zeros((n_parts, width))
    second = np.zeros((n_parts, width, width) if whole else (n_parts, 2, width))
    low, high = (np.full(d, np.inf), np.full(d, -np.inf)) if ranges else (np.zeros(0), np.zeros(0))
    for number in range(n_parts):
        for Z, v in _rows_of(block, target, weights, part, number, point):
            weight[number] += len(Z) if v is None else v.sum()
            first[number] += np.ones(len(Z)) @ Z if v is None else v @ Z
            if ranges:
                np.minimum(low, Z[:, :d].min(axis=0), out=low)
                np.maximum(high, Z[:, :d].max(axis=0), out=high)
            if v is not None:
                np.multiply(Z, np.sqrt(v)[:, None], out=Z)
            if whole:
                # Both are written by rows, which is by columns for BLAS: no copy is made.
                dsyrk(1.0, Z.T, beta=1.0, c=second[number].T, overwrite_c=1)
            else:
                second[number, 0] += np.einsum("ij,ij->j", Z, Z)
                second[number, 1] += Z[:, -1] @ Z
    sample = () if sampled is None else (block[sampled],)
    # Half of a symmetric matrix is enough to be sent.
    return weight, first, second[:, *np.tril_indices(width)] if whole else second, low, high, sample


def unpacked(packed: np.ndarray, width: int) -> np.ndarray:
    """Symmetric matrices of shape (parts, D, D) from their lower triangles."""
    whole = np.zeros((len(packed), width, width))
    rows, columns = np.tril_indices(width)
    whole[:, rows, columns] = packed
    whole[:, columns, rows] = packed
    return whole


def add_moments(total: Sums, part: Sums) -> Sums:
    """The moments of two parts, in the arrays of the first."""
    low, high = total[3], total[4]
    np.minimum(low, part[3], out=low)
    np.maximum(high, part[4], out=high)
    return (*add(total[:3], part[:3]), low, high, total[5] + part[5])


def gram_rows(
    block: np.ndarray,
    target: np.ndarray | None,
    weights: np.ndarray | None,
    part: np.ndarray | None,
    point: np.ndarray,
    n_parts: int,
    features: np.ndarray,
) -> Sums:
    """Products of some columns with all, and with the target, of every part of the rows: shape (parts, b, D)."""
    products = np.zeros((n_parts, len(features), len(point)))
    for number in range(n_parts):
        for Z, v in _rows_of(block, target, weights, part, number, point):
            left = Z[:, features]
            if v is not None:
                left *= v[:, None]
            products[number] += left.T @ Z
    return (products,)


def _rows_of(
    block: np.ndarray,
    target: np.ndarray | None,
    weights: np.ndarray | None,
    part: np.ndarray | None,
    number: int,
    point: np.ndarray,
) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """Blocks of rows of one part about a point, the target behind the columns, with their weights."""
    chosen = None
    if part is not None or weights is not None:
        inside = np.ones(len(block), dtype=bool) if part is None else part == number
        chosen = np.flatnonzero(inside if weights is None else inside & (weights > 0))
    count, (d, width) = len(block) if chosen is None else len(chosen), (block.shape[1], len(point))
    step = max(LEAST_ROWS, CONVERTED_NUMBERS // width)
    buffer = np.empty((min(step, count), width))
    for start in range(0, count, step):
        rows: Any = slice(start, min(start + step, count))
        rows = rows if chosen is None else chosen[rows]
        values = block[rows]
        Z = buffer[: len(values)]
        np.subtract(values, point[:d], out=Z[:, :d])
        if target is not None:
            np.subtract(target[rows], point[d], out=Z[:, d])
        yield Z, None if weights is None else weights[rows]


def products(block: np.ndarray, left: np.ndarray, point: np.ndarray) -> Sums:
    """Products of ``left`` of shape (m, rows) with the columns about a point, shape (m, d)."""
    total = np.zeros((len(left), block.shape[1]))
    for rows, Z in converted(block, point):
        total += left[:, rows] @ Z
    return (total,)


def squares(block: np.ndarray, weights: np.ndarray, point: np.ndarray) -> Sums:
    """Squares of the columns about a point with ``weights`` of shape (m, rows), shape (m, d)."""
    total = np.zeros((len(weights), block.shape[1]))
    for rows, Z in converted(block, point):
        total += weights[:, rows] @ np.multiply(Z, Z, out=Z)
    return (total,)


def ranges(block: np.ndarray, point: np.ndarray) -> Sums:
    """The smallest entries about a point, with minus sign, and the largest."""
    return -(block.min(axis=0) - point), block.max(axis=0) - point


def widest(total: Sums, part: Sums) -> Sums:
    """The larger of two entries, in the arrays of the first."""
    for one, other in zip(total, part, strict=True):
        np.maximum(one, other, out=one)
    return total


def scores(block: np.ndarray, coef: Any, point: np.ndarray) -> np.ndarray:
    """Scores of the columns about a point, for coefficients of shape (d, m): shape (rows, m)."""
    found = np.empty((len(block), coef.shape[1]))
    for rows, Z in converted(block, point):
        found[rows] = Z @ coef
    return found


def not_finite(block: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The first row and column that hold no finite number, and whether that is NaN; nothing where all do."""
    bad = np.argwhere(~np.isfinite(block[:, columns]))
    if not len(bad):
        return np.zeros(0, dtype=np.intp)
    row, place = bad[0]
    return np.array([row, columns[place], np.isnan(block[row, columns[place]])], dtype=np.intp)
