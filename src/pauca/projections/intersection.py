"""The nearest point of an l1 ball cut with an l2 ball about one of its points."""

from __future__ import annotations

from typing import Any

import numpy as np

from pauca.checks import ParameterChecks
from pauca.projections.l1_ball import check_vector, nearest, norm_in

# A center that is outside the l1 ball by rounding alone, as averages of its points may be, is projected.
CENTER_SLACK = 1e-6
# Halving an interval of floats more often than this leaves it as it is.
MOST_HALVINGS = 200


def onto_l1_and_l2_balls(z: Any, radius: float, center: Any, center_radius: float) -> np.ndarray:
    """The point nearest to z that is in an l1 ball about zero and in an l2 ball about a center.

    Minimises ``|w - z|`` over ``sum_j |w_j| <= radius`` and ``|w - center| <= center_radius``. By Lagrange's rule the
    answer is the projection onto the l1 ball alone of some point between center and z, and the nearer that point is
    to z, the further is its projection from the center: so it is found by bisection (Li, Yang, Zhang and Jin 2017,
    Algorithm 3). Projections of the points between are joined by straight pieces; as soon as both ends of the interval
    are on the same piece, a quadratic equation gives the answer to rounding, where the paper stops at a tolerance.

    Parameters
    ----------
    z : array-like of shape (d,)
        Finite numbers. float32 is answered in float32, all else in float64.
    radius : float
        Of the l1 ball; not negative.
    center : array-like of shape (d,)
        A point of the l1 ball.
    center_radius : float
        Of the l2 ball; not negative.

    Returns
    -------
    w : ndarray of shape (d,)
        A copy of z if z is in both balls.

    Examples
    --------
    >>> from pauca.projections import onto_l1_and_l2_balls
    >>> onto_l1_and_l2_balls([3.0, 0.0], radius=2.0, center=[0.0, 1.0], center_radius=1.0)
    array([0.9486833 , 0.68377223])
    """
    check = ParameterChecks("onto_l1_and_l2_balls")
    z, radius = check_vector("z", z), check.number("radius", radius)
    center, center_radius = check_vector("center", center), check.number("center_radius", center_radius)
    if len(center) != len(z):
        raise ValueError(f"center must be as long as z: got {len(center)} and {len(z)} entries.")
    check_center(center, radius)
    found = nearest_of_both(
        z.astype(np.float64, copy=False), radius, center.astype(np.float64, copy=False), center_radius
    )
    return found.astype(z.dtype, copy=False)


def check_center(center: np.ndarray, radius: float) -> None:
    """Refuse a center outside the l1 ball: the two balls need not meet."""
    norm = norm_in(center.astype(np.float64, copy=False), radius * (1.0 + CENTER_SLACK))
    if norm > 1.0:
        raise ValueError(
            f"center must lie in the l1 ball of radius {radius:g}; its l1 norm is {_l1(center):.10g}. "
            "Project it first, or use a larger radius."
        )


def nearest_of_both(z: np.ndarray, radius: float, center: np.ndarray, center_radius: float) -> np.ndarray:
    """``onto_l1_and_l2_balls`` for float64 arguments that have been checked."""
    center, far = nearest(center, radius), nearest(z, radius)
    if distance(far, center) <= center_radius:
        return far
    if center_radius == 0.0:
        return center
    # Half of z - center: the whole may overflow where both are near the largest float.
    half_step = 0.5 * z - 0.5 * center
    # Projections bring points nearer to one another, so up to this share of the way nothing leaves the l2 ball.
    low, high = min(center_radius / distance(z, center), 1.0), 1.0
    near = nearest(center + 2.0 * (low * half_step), radius)
    for _ in range(MOST_HALVINGS):
        if _same_piece(near, far, radius):
            break
        middle = np.sqrt(low) * np.sqrt(high) if high > 4.0 * low else 0.5 * (low + high)
        if not low < middle < high:
            break
        w = nearest(center + 2.0 * (middle * half_step), radius)
        if distance(w, center) <= center_radius:
            low, near = middle, w
        else:
            high, far = middle, w
    return _crossing(near, far, center, center_radius)


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """The l2 norm of a - b, whatever its size."""
    half = 0.5 * a - 0.5 * b
    largest = float(np.abs(half).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    scaled = half / largest
    return 2.0 * largest * float(np.sqrt(scaled @ scaled))


def _same_piece(a: np.ndarray, b: np.ndarray, radius: float) -> bool:
    """Whether two projections onto the l1 ball lie in the same open face of it, or both inside.

    The points that are projected into one open face are a convex set, on which the projection is affine.
    """
    return np.array_equal(np.sign(a), np.sign(b)) and _on_surface(a, radius) == _on_surface(b, radius)


def _on_surface(w: np.ndarray, radius: float) -> bool:
    return norm_in(w, radius * (1.0 - 1e-12)) > 1.0


def _crossing(near: np.ndarray, far: np.ndarray, center: np.ndarray, center_radius: float) -> np.ndarray:
    """The point between a point in the l2 ball and one outside where the ball ends; in the l1 ball as both are."""
    step = far - near
    largest = float(np.abs(step).max())
    if largest == 0.0:
        return near
    # |offset + t direction| = 1 in units of the radius, solved in the form whose terms have one sign.
    offset, direction = (near - center) / center_radius, step / largest
    a, b, c = float(direction @ direction), float(offset @ direction), 1.0 - float(offset @ offset)
    if c <= 0.0:
        return near
    t = c / (b + np.sqrt(b * b + a * c))
    return near + min(t * center_radius, largest) * direction


def _l1(values: np.ndarray) -> float:
    largest = float(np.abs(values).max())
    return largest * float(np.sum(np.abs(values) / largest))
