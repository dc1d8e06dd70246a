"""A quadratic in an l1 ball, minimised exactly: for few coordinates, whose Hessian is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from pauca.clock import check_time
from pauca.l1.objective import duality_gap
from pauca.solvers.factorisation import damped

# A share of the diagonal that keeps Hessians of dependent columns invertible, and steps from following rounding where
# the Hessian is singular. It bends steps, not the objective; solving twice straightens them.
LEAST_DAMPING = 1e-9

# Shares of the way to the minimum of a face that are tried, all coordinates that would change their sign set to zero.
STEP_LENGTHS = (1.0, 0.5, 0.25, 0.1)

# So many faces are tried for every coordinate before what was found counts as good enough.
FACES_PER_COORDINATE = 4
FEWEST_FACES = 50

# A gap is the difference of two products of gradient and coefficients, each rounded to a few units in the last place:
# below this share of them it is rounding.
GAP_ROUNDING = 1e-15

# A model whose norm is less by no more than this share is on the surface of the ball.
ON_SURFACE = 1 - 1e-12


def minimise_in_ball(
    hessian: np.ndarray, gradient: np.ndarray, radius: float, start: np.ndarray, accuracy: float = 0.0
) -> np.ndarray:
    """The u in the ball that minimises a quadratic with this ``gradient`` at ``start``, to within ``accuracy``.

    The quadratic is minimised on a face of the ball (some coordinates, each of one sign, their absolute values summing
    to at most ``radius``) by solving linear equations. Coordinates whose gradient exceeds that of the face come in
    together, those that would change their sign go out together, as long as this lowers the value. Where it does not,
    one comes in at a time and the step ends where the first reaches zero, as in Wolfe's algorithm (1976), which ends
    after finitely many steps; and where rounding spoils even that, the step is towards a vertex.

    Values are differences from that at ``start``: near it they would drown in the rounding of the values themselves.
    """
    norm = float(np.abs(start).sum())
    u = start if norm <= radius else start * (radius / norm)
    face, at_minimum = _Face(hessian, gradient, radius, start), False
    now = face.at(u)
    for _ in range(FEWEST_FACES + FACES_PER_COORDINATE * len(u)):
        check_time()
        if now.gap <= max(accuracy, now.rounding):
            break
        slope = now.slope
        steep, inside = np.abs(slope), u != 0
        # The gradient on a face where the minimum was found is the same for all coordinates, up to its sign.
        level = float(steep[inside].max(initial=0.0)) if np.abs(u).sum() >= ON_SURFACE * radius else 0.0
        entering = ~inside & (steep > level) if at_minimum else np.zeros_like(inside)
        if at_minimum and not entering.any():
            break
        chosen = inside | entering
        if not chosen.any():
            chosen[steep.argmax()] = True
        for found, whole in face.candidates(chosen, u, slope, at_minimum):
            there = face.at(found)
            if there.better_than(now):
                u, at_minimum, now = found, whole, there
                break
        else:
            if at_minimum:
                break
            at_minimum = True  # nothing more to gain on this face: other coordinates may come in
    return u


class _PointOnFace(NamedTuple):
    """What is known of a point: the gradient, by how much the value differs from that at the start, and the gap."""

    slope: np.ndarray
    value: float
    gap: float
    rounding: float

    def better_than(self, other: _PointOnFace) -> bool:
        """Whether the value is lower; where rounding hides that, whether the gap is."""
        if abs(self.value - other.value) <= self.rounding:
            return self.gap < other.gap
        return self.value < other.value


class _Face:
    """Minima of a quadratic where some coordinates have given signs: those they have, or that lower the value."""

    def __init__(self, hessian: np.ndarray, gradient: np.ndarray, radius: float, start: np.ndarray) -> None:
        self._hessian = hessian
        self._gradient = gradient
        self._radius = radius
        self._start = start

    def at(self, u: np.ndarray) -> _PointOnFace:
        """What is known of u."""
        away = u - self._start
        product = self._hessian @ away
        slope = self._gradient + product
        steepest = float(np.abs(slope).max(initial=0.0))
        value = float(away @ (self._gradient + 0.5 * product))
        gap = duality_gap(slope, u, self._radius, steepest)
        return _PointOnFace(slope, value, gap, GAP_ROUNDING * self._radius * steepest)

    def candidates(
        self, chosen: np.ndarray, u: np.ndarray, slope: np.ndarray, at_minimum: bool
    ) -> Iterator[tuple[np.ndarray, bool]]:
        """Where to go from u, and whether that is the minimum of its face; from the boldest to the most cautious."""
        signs = self._signs(u, slope)
        minimum = self._minimum(chosen, u, slope)
        for share in STEP_LENGTHS:
            yield self._clipped(minimum if share == 1 else u + share * (minimum - u), signs, share)
        if at_minimum:
            only = np.where(chosen & (u == 0), np.abs(slope), -1.0).argmax()
            chosen = u != 0
            chosen[only] = True
            minimum = self._minimum(chosen, u, slope)
        yield self._up_to_zero(minimum, signs, u)
        yield self._toward_vertex(u, slope), False

    def _clipped(self, target: np.ndarray, signs: np.ndarray, share: float) -> tuple[np.ndarray, bool]:
        """A point on the way to the minimum of a face, coordinates of the wrong sign set to zero."""
        right = target * signs >= 0
        found = np.where(right, target, 0.0)
        norm = float(np.abs(found).sum())
        found = found if norm <= self._radius else found * (self._radius / norm)
        return found, share == 1 and bool(right.all())

    @staticmethod
    def _up_to_zero(minimum: np.ndarray, signs: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, bool]:
        """The way from u to the minimum of a face, up to where the first coordinate reaches zero."""
        wrong = minimum * signs < 0
        if not wrong.any():
            return minimum, True
        share = np.full(len(u), np.inf)
        share[wrong] = u[wrong] / (u[wrong] - minimum[wrong])
        first = int(share.argmin())
        found = u + share[first] * (minimum - u)
        found[first] = 0.0
        return found, False

    def _toward_vertex(self, u: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """The way to the vertex of the steepest coordinate, up to the minimum on it."""
        best = int(np.abs(slope).argmax())
        way = -u
        way[best] -= self._radius * np.sign(slope[best])
        curvature = float(way @ self._hessian @ way)
        return u + (min(1.0, -float(slope @ way) / curvature) if curvature > 0 else 1.0) * way

    @staticmethod
    def _signs(u: np.ndarray, slope: np.ndarray) -> np.ndarray:
        return np.where(u != 0, np.sign(u), -np.sign(slope))

    def _minimum(self, chosen: np.ndarray, u: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """The least value where the coordinates ``chosen`` satisfy ``signs' u <= radius``, whatever their signs."""
        coords = np.flatnonzero(chosen)
        sign = self._signs(u, slope)[coords]
        step, pull = self._solve(coords, np.column_stack([-slope[coords], sign])).T
        excess = float(sign @ (u[coords] + step)) - self._radius
        if excess > 0:
            step = step - (excess / float(sign @ pull)) * pull
        found = np.zeros(len(u))
        found[coords] = u[coords] + step
        return found

    def _solve(self, coords: np.ndarray, right: np.ndarray) -> np.ndarray:
        block = self._hessian[coords[:, None], coords]
        regular = block.copy()
        np.fill_diagonal(regular, np.where(block.diagonal() > 0, block.diagonal(), 1.0))
        for candidate in damped(regular, LEAST_DAMPING):
            try:
                factor = cho_factor(candidate, check_finite=False)
            except LinAlgError:
                continue
            found = cho_solve(factor, right, check_finite=False)
            return found + cho_solve(factor, right - block @ found, check_finite=False)
        return np.linalg.lstsq(regular, right, rcond=None)[0]
