"""Made-up data with a known truth: a few columns, a target that depends on some of them, noise.

Every problem is a function of its seed. The true features are drawn at random, their coefficients have random signs and
magnitudes uniform in [0.5, 2]. Numbers to predict are the signal plus noise scaled to ``snr``, the variance of the
signal over that of the noise; classes, coded as -1 and 1, are drawn with the odds ``exp(signal)``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.signal import lfilter
from scipy.special import expit

Matrix = Any
"""A NumPy array or a SciPy CSC array."""


class Problem(NamedTuple):
    """Data to select features from: X of shape (n, d), y of shape (n,)."""

    X: Matrix
    y: np.ndarray


class Shape(NamedTuple):
    """Rows, columns and the number of true features."""

    n: int
    d: int
    k: int

    def __str__(self) -> str:
        return f"{self.n} x {self.d}, k = {self.k}"


def autoregressive(shape: Shape, rho: float, snr: float, seed: int) -> Problem:
    """Rows of unit-variance normals whose neighbours correlate by ``rho``: columns i and j by ``rho ** |i - j|``."""
    rng = np.random.default_rng(seed)
    X = _chained(shape, rho, rng)
    return Problem(X, _target(X, shape.k, snr, rng))


def autoregressive_classes(shape: Shape, rho: float, seed: int) -> Problem:
    """Columns as in ``autoregressive``, and two classes."""
    rng = np.random.default_rng(seed)
    X = _chained(shape, rho, rng)
    return Problem(X, np.where(rng.uniform(size=shape.n) < expit(_signal(X, shape.k, rng)), 1.0, -1.0))


def two_clouds(shape: Shape, distance: float, seed: int) -> tuple[Problem, np.ndarray]:
    """Two classes of normal rows about ``beta`` and ``-beta``, and the columns where beta is not zero.

    Liu, Fujimaki and Ye (2014), section D.1.1: entries of beta uniform in [0, 1] and scaled to the norm ``distance``.
    """
    rng = np.random.default_rng(seed)
    true = rng.choice(shape.d, size=shape.k, replace=False)
    beta = np.zeros(shape.d)
    beta[true] = rng.uniform(size=shape.k)
    beta *= distance / np.linalg.norm(beta)
    y = np.repeat([1.0, -1.0], shape.n // 2)
    return Problem(rng.standard_normal((shape.n, shape.d)) + y[:, None] * beta, y), true


def sparse_normal(shape: Shape, filled: float, snr: float, seed: int) -> Problem:
    """CSC matrix with a share ``filled`` of normal entries in random places."""
    rng = np.random.default_rng(seed)
    # A place drawn twice counts once: at a share of 0.001 that loses one entry in two thousand.
    places = np.unique(rng.integers(shape.n * shape.d, size=round(filled * shape.n * shape.d)))
    column, row = np.divmod(places, shape.n)
    starts = np.concatenate(([0], np.cumsum(np.bincount(column, minlength=shape.d))))
    entries = (rng.standard_normal(len(places)), row.astype(np.int32), starts.astype(np.int32))
    X = sparse.csc_array(entries, shape=(shape.n, shape.d))
    return Problem(X, _target(X, shape.k, snr, rng))


def bytes_of(X: Matrix) -> int:
    """Memory that X itself takes."""
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse.issparse(X) else X.nbytes


def _chained(shape: Shape, rho: float, rng: np.random.Generator) -> np.ndarray:
    X = rng.standard_normal((shape.n, shape.d))
    X[:, 1:] *= np.sqrt(1 - rho**2)
    return lfilter([1.0], [1.0, -rho], X, axis=1)


def _target(X: Matrix, k: int, snr: float, rng: np.random.Generator) -> np.ndarray:
    signal = _signal(X, k, rng)
    return signal + rng.standard_normal(X.shape[0]) * np.sqrt(signal.var() / snr)


def _signal(X: Matrix, k: int, rng: np.random.Generator) -> np.ndarray:
    support = rng.choice(X.shape[1], size=k, replace=False)
    coef = rng.choice([-1.0, 1.0], size=k) * rng.uniform(0.5, 2.0, size=k)
    return X[:, support] @ coef
