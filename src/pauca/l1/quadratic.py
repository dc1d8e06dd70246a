"""A quadratic in an l1 ball, minimised exactly: for few coordinates, whose Hessian is at hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

# A share of the diagonal that keeps Hessians of dependent columns invertible, and steps from following rounding where
# the Hessian is singular. It bends steps, not the objective; solving twice straightens them.
DAMPING = 1e-9
DAMPED_MORE = 1e-6

# Shares of the way to the minimum of a face that are tried, all coordinates that would change their sign set to zero.
SHARES = (1.0, 0.5, 0.25, 0.1)

# So many faces are tried for every coordinate before what was found is taken for good enough.
FACES_PER_COORDINATE = 4
FEWEST_FACES = 50

# Gaps below this share of the quantities they are a difference of are rounding.
ROUNDING = 1e-15


def minimise_in_ball(
    hessian: np.ndarray, gradient: np.ndarray, bound: float, start: np.ndarray, accuracy: float = 0.0
) -> np.ndarray:
    """The u in the ball that minimises a quadratic with this ``gradient`` at ``start``, to within ``accuracy``.

    The quadratic is minimised on a face of the ball (some coordinates, each of one sign, their absolute values summing
    to at most ``bound``) by solving linear equations. Coordinates whose gradient exceeds that of the face come in
    together, those that would change their sign go out together, as long as this lowers the value. Where it does not,
    one comes in at a time and the step ends where the first reaches zero, as in Wolfe's algorithm (1976), which ends
    after finitely many steps; and where rounding spoils even that, the step is towards a vertex.

    All is reckoned from ``start``, in whose neighbourhood values are differences that would drown in the values
    themselves.
    """
    norm = float(np.abs(start).sum())
    u = start if norm <= bound else start * (bound / norm)
    face, settled = _Face(hessian, gradient, bound, start), False
    now = face.at(u)
    for _ in range(FEWEST_FACES + FACES_PER_COORDINATE * len(u)):
        if now.gap <= max(accuracy, now.rounding):
            break
        slope = now.slope
        steep, inside = np.abs(slope), u != 0
        # The gradient on a face where the minimum was found is the same for all coordinates, up to its sign.
        level = float(steep[inside].max(initial=0.0)) if np.abs(u).sum() >= (1 - 1e-12) * bound else 0.0
        entering = ~inside & (steep > level) if settled else np.zeros_like(inside)
        if settled and not entering.any():
            break
        chosen = inside | entering
        if not chosen.any():
            chosen[steep.argmax()] = True
        # From the boldest step to the most cautious: the first that is better is taken.
        for found, whole in face.tries(chosen, u, slope, settled):
            ahead = face.at(found)
            if ahead.better_than(now):
                u, settled, now = found, whole, ahead
                break
        else:
            if settled:
                break
            settled = True  # nothing more to be had on this face: see who else might come in
    return u


class _Point(NamedTuple):
    """What is known of a point: the gradient, by how much the value differs from that at the start, and the gap."""

    slope: np.ndarray
    value: float
    gap: float
    rounding: float

    def better_than(self, other: _Point) -> bool:
        """Whether the value is lower; where rounding hides that, whether the gap is."""
        if abs(self.value - other.value) <= self.rounding:
            return self.gap < other.gap
        return self.value < other.value


class _Face:
    """Minima of a quadratic where some coordinates have given signs: those they have, or that lower the value."""

    def __init__(self, hessian: np.ndarray, gradient: np.ndarray, bound: float, start: np.ndarray) -> None:
        self._hessian = hessian
        self._gradient = gradient
        self._bound = bound
        self._start = start

    def at(self, u: np.ndarray) -> _Point:
        """What is known of u."""
        away = u - self._start
        product = self._hessian @ away
        slope = self._gradient + product
        gap = float(slope @ u) + self._bound * float(np.abs(slope).max(initial=0.0))
        value = float(away @ (self._gradient + 0.5 * product))
        return _Point(slope, value, gap, ROUNDING * self._bound * float(np.abs(slope).max(initial=0.0)))

    def tries(
        self, chosen: np.ndarray, u: np.ndarray, slope: np.ndarray, settled: bool
    ) -> Iterator[tuple[np.ndarray, bool]]:
        """Where to go from u, and whether that is the minimum of its face."""
        signs = self._signs(u, slope)
        minimum = self._minimum(chosen, u, slope)
        for share in SHARES:
            yield self._clipped(minimum if share == 1 else u + share * (minimum - u), signs, share)
        if settled:
            only = np.where(chosen & (u == 0), np.abs(slope), -1.0).argmax()
            chosen = u != 0
            chosen[only] = True
            minimum = self._minimum(chosen, u, slope)
        yield self._up_to_zero(minimum, signs, u)
        yield self._toward_vertex(u, slope), False

    def _clipped(self, wished: np.ndarray, signs: np.ndarray, share: float) -> tuple[np.ndarray, bool]:
        """A point on the way to the minimum of a face, coordinates of the wrong sign set to zero."""
        right = wished * signs >= 0
        found = np.where(right, wished, 0.0)
        norm = float(np.abs(found).sum())
        found = found if norm <= self._bound else found * (self._bound / norm)
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
        way[best] -= self._bound * np.sign(slope[best])
        bend = float(way @ self._hessian @ way)
        return u + (min(1.0, -float(slope @ way) / bend) if bend > 0 else 1.0) * way

    @staticmethod
    def _signs(u: np.ndarray, slope: np.ndarray) -> np.ndarray:
        return np.where(u != 0, np.sign(u), -np.sign(slope))

    def _minimum(self, chosen: np.ndarray, u: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """The least value where the coordinates ``chosen`` satisfy ``signs' u <= bound``, whatever their signs."""
        places = np.flatnonzero(chosen)
        sign = self._signs(u, slope)[places]
        step, pull = self._solve(places, np.column_stack([-slope[places], sign])).T
        excess = float(sign @ (u[places] + step)) - self._bound
        if excess > 0:
            step = step - (excess / float(sign @ pull)) * pull
        found = np.zeros(len(u))
        found[places] = u[places] + step
        return found

    def _solve(self, places: np.ndarray, right: np.ndarray) -> np.ndarray:
        block = self._hessian[places[:, None], places]
        diagonal = np.where(block.diagonal() > 0, block.diagonal(), 1.0)
        damped = block.copy()
        for damping in (DAMPING, DAMPED_MORE):
            damped.flat[:: len(places) + 1] = diagonal * (1.0 + damping)
            try:
                factor = cho_factor(damped, check_finite=False)
            except LinAlgError:
                continue
            found = cho_solve(factor, right, check_finite=False)
            return found + cho_solve(factor, right - block @ found, check_finite=False)
        return np.linalg.lstsq(damped, right, rcond=None)[0]
