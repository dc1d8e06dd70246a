"""Data the tests share: one problem in every form a design may take, and small judges."""

import itertools

import dask.array as dask_array
import numpy as np
from scipy import sparse

from pauca.design.chunks.base import CHUNK_SHARE
from pauca.design.chunks.cluster import DaskChunks
from pauca.design.chunks.sources import ArrayChunks


def integers(n=60, d=12, seed=0):
    """Correlated small integers, a third of them zero: every dtype and format holds the same numbers."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-9, 10, size=(n, d))
    X[:, 1:] += X[:, :-1] // 2
    X[rng.random((n, d)) < 1 / 3] = 0
    y = X @ rng.integers(-2, 3, size=d) + rng.normal(0, 10, n)
    return X.astype(float), y


def _strided(X):
    wide = np.zeros((X.shape[0], 2 * X.shape[1]))
    wide[:, ::2] = X
    return wide[:, ::2]


def _view(X):
    return np.pad(X, ((1, 2), (3, 1)))[1:-2, 3:-1]


def _reversed(X):
    return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]


def in_chunks(X, rows=17):
    """A table that is read in chunks of so many rows."""
    chunks = ArrayChunks(X)
    chunks.memory = rows * CHUNK_SHARE * 8 * X.shape[1]
    return chunks


DESIGNS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "float32-F": lambda X: np.asfortranarray(X, dtype=np.float32),
    "int8": lambda X: X.astype(np.int8),
    "view": _view,
    "strided": _strided,
    "reversed": _reversed,
    "csc": sparse.csc_array,
    "csr": sparse.csr_array,
    "csc-matrix": sparse.csc_matrix,
    "csr-float32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "chunks": in_chunks,
    "chunks-float32": lambda X: in_chunks(X.astype(np.float32)),
    "dask": lambda X: DaskChunks.of(dask_array.from_array(X, chunks=(17, 5))),
}

METHODS = ["forward", "backward", "foba", "exchange"]


def ar_problem(n, d, k, rho=0.9, snr=5.0, seed=0):
    """Columns with correlation rho^|i-j| and k random true features."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    w = np.zeros(d)
    w[rng.choice(d, k, replace=False)] = rng.choice([-1, 1], k) * rng.uniform(0.5, 2, k)
    signal = X @ w
    return X, signal + rng.standard_normal(n) * signal.std() / np.sqrt(snr)


def objective(X, y, support, *, weights=None, ridge=0.0, center=True):
    """Q of the best model on ``support``, straight from its definition by a dense least-squares solve."""
    v = np.full(len(y), 1 / len(y)) if weights is None else weights / np.sum(weights)
    if center:
        X, y = X - v @ X, y - v @ y
    root = np.sqrt(v)[:, None]
    support = list(support)
    A = np.vstack([root * X[:, support], np.sqrt(ridge) * np.eye(len(support))])
    b = np.concatenate([root[:, 0] * y, np.zeros(len(support))])
    w = np.linalg.lstsq(A, b, rcond=None)[0] if support else np.zeros(0)
    return 0.5 * np.sum((b - A @ w) ** 2)


def best_subset(X, y, k):
    """The optimum over all subsets of size k, by enumeration."""
    return min(itertools.combinations(range(X.shape[1]), k), key=lambda S: objective(X, y, S))
