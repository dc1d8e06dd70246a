"""The nearest point of an l1 ball, in linear time: pivots instead of a sort."""

from __future__ import annotations

from typing import Any

import numpy as np

from pauca.checks import ParameterChecks

# Rounds that only drop entries, before medians decide the rest. More would not help where these have not.
CHEAP_ROUNDS = 8

# Beyond this ratio the squares of weights no longer fit into floats side by side.
WIDEST_WEIGHTS = 1e100


def onto_l1_ball(z: Any, radius: float, weights: Any = None) -> np.ndarray:
    """The point of an l1 ball that is nearest to z.

    Minimises ``|w - z|`` over ``sum_j |w_j| <= radius``, or over ``sum_j weights_j |w_j| <= radius``. The answer is z
    with all entries drawn towards zero by the same amount: ``w_j = sign(z_j) max(|z_j| - theta, 0)``, or by
    ``theta weights_j``.

    The amount is found by pivots and not by sorting (Duchi, Shalev-Shwartz, Singer and Chandra 2008). Medians are the
    pivots here: each round decides half of the entries that are left, so that the time is linear in the worst case and
    not only on average, and nothing is random.

    Parameters
    ----------
    z : array-like of shape (d,)
        Finite numbers. float32 is answered in float32, all else in float64; sums are taken in float64.
    radius : float
        Not negative; the ball of radius zero holds zero alone.
    weights : array-like of shape (d,), default=None
        Positive weights of the entries in the norm, such as the scales of columns.

    Returns
    -------
    w : ndarray of shape (d,)
        A copy of z if z is in the ball.

    Examples
    --------
    >>> from pauca.projections import onto_l1_ball
    >>> onto_l1_ball([3.0, -1.0, 0.5], radius=2.0)
    array([2., 0., 0.])
    >>> onto_l1_ball([3.0, -1.0, 0.5], radius=3.0)
    array([ 2.5, -0.5,  0. ])
    """
    z, radius = check_vector("z", z), ParameterChecks("onto_l1_ball").number("radius", radius)
    scales = None if weights is None else check_weights(weights, len(z))
    return nearest(z.astype(np.float64, copy=False), radius, scales).astype(z.dtype, copy=False)


def nearest(z: np.ndarray, radius: float, weights: np.ndarray | None = None) -> np.ndarray:
    """``onto_l1_ball`` for arguments that have been checked: always a new array."""
    if len(z) == 0 or norm_in(z, radius, weights) <= 1.0:
        return z.copy()
    if radius == 0.0:
        return np.zeros_like(z)
    # In units of their largest, weights and entries can be divided and squared without overflow. Without weights no
    # units are needed, and none are taken: they would round.
    if weights is not None:
        largest, heaviest = float(np.abs(z).max()), float(weights.max())
        radius = radius / largest / heaviest
        # Beside z the radius underflows: the ball is a point.
        return largest * _shrunk(z / largest, radius, weights / heaviest) if radius > 0 else np.zeros_like(z)
    return _shrunk(z, radius, None)


def norm_in(z: np.ndarray, radius: float, weights: np.ndarray | None = None) -> float:
    """The l1 norm in units of the radius; infinite where one entry alone is beyond it by far."""
    magnitudes = np.abs(z)
    if weights is not None:
        heaviest = float(weights.max())
        magnitudes, radius = magnitudes * (weights / heaviest), radius / heaviest
    largest = float(magnitudes.max(initial=0.0))
    # Sums of numbers near the largest float overflow, and so do quotients by the smallest radii.
    if largest > radius:
        return np.inf
    return float(np.sum(magnitudes / radius)) if largest > 0 else 0.0


def _shrunk(z: np.ndarray, radius: float, weights: np.ndarray | None) -> np.ndarray:
    """The nearest point for z outside the ball.

    An entry reaches zero when the amount theta reaches its height ``|z_j| / weights_j``. Everything is measured from
    the highest entry downwards: with ``depth = highest - height`` and ``level = highest - theta``, entries are
    ``weights_j max(level - depth_j, 0)``. All terms of their sum are positive, so nothing cancels even where z is
    1e150 and the radius is 1.
    """
    heights = np.abs(z) if weights is None else np.abs(z) / weights
    top = int(np.argmax(heights))
    depths = heights[top] - heights
    # The highest entry alone fills the ball at this level; whatever lies deeper is zero.
    deepest = radius if weights is None else radius / float(weights[top]) ** 2
    kept = depths < deepest
    shares = None if weights is None else (weights[kept] / weights[top]) ** 2
    level = _level(depths[kept] / deepest, shares)
    w: np.ndarray = np.maximum(level * deepest - depths, 0.0)
    if weights is not None:
        w *= weights
    np.copysign(w, z, out=w)
    w += 0.0  # no zero has a sign
    return w


def _level(depths: np.ndarray, shares: np.ndarray | None) -> float:
    """The level with ``sum_j shares_j max(level - depths_j, 0) = 1``, for depths of which one is zero."""
    # If all entries lay above the level, this would be it. It is never too high, so that whatever lies below can go
    # (Michelot 1986). A few such rounds are mostly enough: then all that are left lie above.
    for _ in range(CHEAP_ROUNDS):
        filled, sunk = _sums(depths, shares)
        level = (1.0 + sunk) / filled
        above = depths < level
        if above.all():
            return level
        depths, shares = _chosen(depths, shares, above)
    return _level_by_medians(depths, shares)


def _level_by_medians(depths: np.ndarray, shares: np.ndarray | None) -> float:
    """The same, whatever the entries: each round decides half of them.

    ``filled`` and ``sunk`` are the sums of ``shares`` and of ``shares * depths`` over entries known to lie above the
    level. The median of the others is either above it too, and half of them with it, or below it, and the other half
    with it.
    """
    filled, sunk = 0.0, 0.0
    while len(depths):
        pivot = np.partition(depths, len(depths) // 2)[len(depths) // 2]
        more, deeper = _sums(*_chosen(depths, shares, depths < pivot))
        if (filled + more) * pivot - (sunk + deeper) >= 1.0:
            left = depths < pivot
        else:
            more, deeper = _sums(*_chosen(depths, shares, depths <= pivot))
            filled, sunk = filled + more, sunk + deeper
            left = depths > pivot
        depths, shares = _chosen(depths, shares, left)
    return (1.0 + sunk) / filled


def _chosen(depths: np.ndarray, shares: np.ndarray | None, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    return depths[chosen], None if shares is None else shares[chosen]


def _sums(depths: np.ndarray, shares: np.ndarray | None) -> tuple[float, float]:
    if shares is None:
        return float(len(depths)), float(np.sum(depths))
    return float(np.sum(shares)), float(shares @ depths)


def check_vector(name: str, values: Any) -> np.ndarray:
    """A finite vector, as float32 if it is that and as float64 otherwise; copied only to change its type."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers; got an array of dtype {array.dtype}.")
    if array.ndim != 1:
        raise ValueError(f"{name} must be a vector; got an array of shape {array.shape}.")
    array = array if array.dtype == np.float32 else array.astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite; entry {bad} is {array[bad]}.")
    return array


def check_weights(values: Any, length: int) -> np.ndarray:
    """Positive weights, one for each entry, not so different in size that their squares overflow."""
    weights = check_vector("weights", values).astype(np.float64, copy=False)
    if len(weights) != length:
        raise ValueError(f"There must be one weight for each entry: got {len(weights)} weights for {length} entries.")
    if length and weights.min() <= 0:
        bad = int(np.argmin(weights))
        raise ValueError(f"weights must be positive; that of entry {bad} is {weights[bad]}.")
    if length and weights.min() < weights.max() / WIDEST_WEIGHTS:
        raise ValueError(f"weights must lie within a factor of {WIDEST_WEIGHTS:g} of one another; rescale the entries.")
    return weights
