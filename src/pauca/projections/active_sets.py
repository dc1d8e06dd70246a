"""Projections of active sets: vectors given by the indices and values of their nonzero entries."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pauca.checks import ParameterChecks
from pauca.projections.intersection import check_center, nearest_of_both
from pauca.projections.l1_ball import check_vector, check_weights, nearest


class ActiveSet(NamedTuple):
    """A vector by its nonzero entries; all others are zero.

    Functions that take one take any pair of indices and values.
    """

    indices: np.ndarray
    values: np.ndarray


def active_onto_l1_ball(z: tuple[Any, Any], radius: float, weights: Any = None) -> ActiveSet:
    """The point of an l1 ball that is nearest to a vector given as an active set.

    As ``onto_l1_ball``. Zeros stay zeros, so that entries outside the active set are never touched. The time is linear
    in the entries of the set; indices that are not in ascending order are sorted once, to see whether any is there
    twice.

    Parameters
    ----------
    z : pair of array-likes (indices, values)
        Indices that differ from one another, in any order.
    radius : float
        Not negative.
    weights : array-like, default=None
        Positive weights in the norm, one for each entry of the set.

    Returns
    -------
    w : ActiveSet
        The nonzero entries, in the order given; a copy of z if z is in the ball.

    Examples
    --------
    >>> from pauca.projections import active_onto_l1_ball
    >>> active_onto_l1_ball(([7, 1_000_000, 4], [3.0, -1.0, 0.5]), radius=3.0)
    ActiveSet(indices=array([      7, 1000000]), values=array([ 2.5, -0.5]))
    """
    indices, values = _pair("z", z)
    radius = ParameterChecks("active_onto_l1_ball").number("radius", radius)
    scales = None if weights is None else check_weights(weights, len(values))
    found = nearest(values.astype(np.float64, copy=False), radius, scales)
    if np.array_equal(found, values):
        return ActiveSet(indices.copy(), values.copy())
    return _nonzero(indices, found, values.dtype)


def active_onto_l1_and_l2_balls(
    z: tuple[Any, Any], radius: float, center: tuple[Any, Any], center_radius: float
) -> ActiveSet:
    """The nearest point in an l1 ball and an l2 ball about a center, for active sets.

    As ``onto_l1_and_l2_balls``. Only entries in which z or the center are not zero are touched; their indices are
    sorted once, to match the two.

    Parameters
    ----------
    z : pair of array-likes (indices, values)
        Indices that differ from one another, in any order.
    radius : float
        Of the l1 ball; not negative.
    center : pair of array-likes (indices, values)
        A point of the l1 ball.
    center_radius : float
        Of the l2 ball; not negative.

    Returns
    -------
    w : ActiveSet
        With ascending indices; a copy of z if z is in both balls.

    Examples
    --------
    >>> from pauca.projections import active_onto_l1_and_l2_balls
    >>> active_onto_l1_and_l2_balls(([5], [3.0]), 2.0, center=([900], [1.0]), center_radius=1.0)
    ActiveSet(indices=array([  5, 900]), values=array([0.9486833 , 0.68377223]))
    """
    indices, values = _pair("z", z)
    center_indices, center_values = _pair("center", center)
    check = ParameterChecks("active_onto_l1_and_l2_balls")
    radius, center_radius = check.number("radius", radius), check.number("center_radius", center_radius)
    check_center(center_values, radius)
    union, positions = np.unique(np.concatenate([indices, center_indices]), return_inverse=True)
    point, middle = np.zeros(len(union)), np.zeros(len(union))
    point[positions[: len(indices)]] = values
    middle[positions[len(indices) :]] = center_values
    found = nearest_of_both(point, radius, middle, center_radius)
    if np.array_equal(found, point):
        return ActiveSet(indices.copy(), values.copy())
    return _nonzero(union, found, values.dtype)


def _pair(name: str, pair: tuple[Any, Any]) -> ActiveSet:
    try:
        indices, values = pair
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a pair: indices and values.") from None
    values = check_vector(f"The values of {name}", values)
    return ActiveSet(_check_indices(name, indices, len(values)), values)


def _check_indices(name: str, values: Any, length: int) -> np.ndarray:
    """Indices that differ from one another, one for each value."""
    indices = np.asarray(values)
    if indices.ndim != 1 or len(indices) != length:
        raise ValueError(f"The indices and values of {name} must be vectors of one length.")
    if not length:
        return indices.astype(np.intp)
    if indices.dtype.kind not in "iu":
        raise TypeError(f"The indices of {name} must be integers; got an array of dtype {indices.dtype}.")
    if indices.dtype.kind == "u":
        indices = indices.astype(np.intp)  # beside signed ones, NumPy would make floats of them
    if indices.min() < 0:
        raise ValueError(f"The indices of {name} must not be negative; got {indices.min()}.")
    if not (indices[1:] > indices[:-1]).all() and len(np.unique(indices)) < length:
        raise ValueError(f"The indices of {name} must differ from one another; add up values of the same entry first.")
    return indices


def _nonzero(indices: np.ndarray, found: np.ndarray, dtype: np.dtype[Any]) -> ActiveSet:
    nonzero = found != 0.0
    return ActiveSet(indices[nonzero], found[nonzero].astype(dtype, copy=False))
