"""Projections of active sets: vectors told by the indices and values of their entries that are not zero."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pauca.projections.checks import indices_for, radius_of, vector, weights_for
from pauca.projections.intersection import check_center, nearest_of_both
from pauca.projections.l1_ball import nearest


class ActiveSet(NamedTuple):
    """A vector by its entries that are not zero; all others are.

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
        The entries that are left, in the order given; a copy of z if z is in the ball.

    Examples
    --------
    >>> from pauca.projections import active_onto_l1_ball
    >>> active_onto_l1_ball(([7, 1_000_000, 4], [3.0, -1.0, 0.5]), radius=3.0)
    ActiveSet(indices=array([      7, 1000000]), values=array([ 2.5, -0.5]))
    """
    indices, values = _pair("z", z)
    radius = radius_of("radius", radius)
    scales = None if weights is None else weights_for(weights, len(values))
    found = nearest(values.astype(np.float64, copy=False), radius, scales)
    if np.array_equal(found, values):
        return ActiveSet(indices.copy(), values.copy())
    return _left(indices, found, values.dtype)


def active_onto_l1_and_l2_balls(
    z: tuple[Any, Any], radius: float, center: tuple[Any, Any], center_radius: float
) -> ActiveSet:
    """The nearest point in an l1 ball and an l2 ball about a center, for active sets.

    As ``onto_l1_and_l2_balls``. Only entries in which z or the center are not zero are touched; their indices are
    sorted once, to bring the two together.

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
    radius, center_radius = radius_of("radius", radius), radius_of("center_radius", center_radius)
    check_center(center_values, radius)
    together, places = np.unique(np.concatenate([indices, center_indices]), return_inverse=True)
    point, middle = np.zeros(len(together)), np.zeros(len(together))
    point[places[: len(indices)]] = values
    middle[places[len(indices) :]] = center_values
    found = nearest_of_both(point, radius, middle, center_radius)
    if np.array_equal(found, point):
        return ActiveSet(indices.copy(), values.copy())
    return _left(together, found, values.dtype)


def _pair(name: str, pair: tuple[Any, Any]) -> ActiveSet:
    try:
        indices, values = pair
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a pair: indices and values.") from None
    values = vector(f"The values of {name}", values)
    return ActiveSet(indices_for(name, indices, len(values)), values)


def _left(indices: np.ndarray, found: np.ndarray, dtype: np.dtype[Any]) -> ActiveSet:
    left = found != 0.0
    return ActiveSet(indices[left], found[left].astype(dtype, copy=False))
