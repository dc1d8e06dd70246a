"""Draws of few coefficients in place of many, from the coefficients and the moments of the columns, without X.

Conventions
-----------
coef     : dense coefficients, shape (d,), or (C, d) for C outputs, which share the drawn features
moments  : what a unit of squared weight costs, shape (d,): the second moments ``m_j`` of the columns, their variances
           ``s_j`` where an intercept is fitted, plus the ridge where there is one
strength : ``|w_j|`` times the factor of the scheme; for several outputs |.| is the 2-norm of the C weights,
           since the excess is a sum over outputs and ``sum_j |w_j|^2 moments_j / p_j`` is least for ``p_j`` in
           proportion to ``|w_j|_2 sqrt(moments_j)``
features : those with strength, ascending; all other features are never drawn

Features without moment are constant: no score depends on them, and no scheme takes them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pauca.sparsification.sampling import Draw, RandomNumbers, Sampling, Truncation, WithReplacement
from pauca.sparsification.systematic import Systematic

SCHEMES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray, int], Sampling]] = {
    "magnitude": WithReplacement.of,
    "moments": WithReplacement.of,
    "systematic": Systematic.of,
    "truncate": Truncation.of,
}
TRUNCATIONS = tuple(SCHEMES)


def draw(coef: np.ndarray, moments: np.ndarray, k: int, truncation: str, rng: RandomNumbers) -> Draw:
    """Draw a sparse vector in place of a dense one.

    Parameters
    ----------
    coef : ndarray of shape (d,) or (C, d)
        Dense coefficients.
    moments : ndarray of shape (d,)
        Second moments of the columns, not negative; their variances where an intercept is fitted beside them.
    k : int
        Number of draws for "magnitude" and "moments", which may draw a feature more than once; number of features for
        "systematic" and "truncate".
    truncation : {"magnitude", "moments", "systematic", "truncate"}
    rng : numpy.random.Generator or RandomState
        Source of random numbers; "truncate" needs none.

    Returns
    -------
    Draw
        Support and values; both empty if all coefficients are zero or have constant columns.

    Notes
    -----
    Time is ``O(d + k log d)``. All arrays but a few masks are only as long as there are coefficients that are not zero.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> drawn = draw(np.array([5.0, 0.0, -1.0, 0.5]), np.ones(4), 2, "systematic", rng)
    >>> drawn.support, drawn.values
    (array([0, 2]), array([ 5. , -1.5]))
    """
    sampling = make_sampling(coef, moments, k, truncation)
    positions, factors = sampling.draw(rng)
    values = sampling.coef[:, positions] * factors
    return Draw(sampling.features[positions], values if np.ndim(coef) == 2 else values[0])


def make_sampling(coef: np.ndarray, moments: np.ndarray, k: int, truncation: str) -> Sampling:
    """The sampling scheme for given coefficients; arguments as for ``draw``."""
    outputs, moments = np.atleast_2d(np.asarray(coef, dtype=np.float64)), np.asarray(moments)
    features = np.flatnonzero(np.any(outputs != 0, axis=0) & (moments > 0))
    weights = np.ascontiguousarray(outputs[:, features])
    # Both factors are scaled to at most one, so that no product leaves the range of floating-point numbers.
    strength = _share_of_largest(_norms(weights))
    if truncation != "magnitude":
        strength *= np.sqrt(_share_of_largest(moments[features].astype(np.float64)))
    if not np.all(strength > 0):  # they underflow beside the largest
        features, weights, strength = features[strength > 0], weights[:, strength > 0], strength[strength > 0]
    return SCHEMES[truncation](features, weights, strength, k)


def _norms(weights: np.ndarray) -> np.ndarray:
    """2-norms of the columns, without overflow."""
    if len(weights) == 1:
        return np.abs(weights[0])
    largest = np.abs(weights).max(initial=0.0) or 1.0
    return np.asarray(np.sqrt(np.sum((weights / largest) ** 2, axis=0)) * largest)


def _share_of_largest(values: np.ndarray) -> np.ndarray:
    """Values over the largest of them."""
    return values / values.max() if len(values) else values.copy()
