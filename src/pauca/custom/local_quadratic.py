"""What every unit would bring to a fitted model, to second order: who is worth a look in truth."""

from __future__ import annotations

import numpy as np

from pauca.custom.fits import LARGEST_HESSIAN, Fit, Fits

# So many units that the diagonal of the Hessian ranks first are looked at with what they share with the chosen ones;
# more where there is no diagonal, and the size of the gradient ranks them.
SHORTLIST = 16
LONGER_LIST = 32

# What the chosen coordinates leave of the curvature along a direction is taken to be no less than this share.
LEAST_LEFT = 1e-6


class LocalQuadratic:
    """The quadratic around a fit, as far as gradients tell.

    Conventions (g the gradient; D the diagonal of the Hessian H, or ones where it is not known; B the inverse of H on
    the model, d the direction ``-g_u / D_u`` in which unit u would set out)
    -----------
    guess         : ``g_u' D_u^-1 g_u / 2``, what u gains if it moves alone and the diagonal is all there is
    stiffness     : ``d'Hd / d'Dd``, the curvature along d in parts of what D says
    stiffness left: ``(d'Hd - d'H B H d) / d'Dd``, what the model leaves of it

    A unit gains about guess over stiffness if it moves alone, and guess over the stiffness left if the model moves with
    it. ``H d`` is the difference of two gradients, or comes from the objective's own Hessian.
    """

    def __init__(self, fits: Fits, fit: Fit) -> None:
        self._fits = fits
        self.fit = fit
        self.w = fits.point(fit)
        self.gradient = fits.gradient(fit)
        problem = fits.problem
        self._known_diagonal = problem.curvature is not None
        self._diagonal = np.ones(problem.n_coords)
        if problem.curvature is not None:
            own = np.asarray(problem.curvature(self.w), dtype=np.float64)
            positive = own[np.isfinite(own) & (own > 0)]
            least = LEAST_LEFT * float(positive.min()) if len(positive) else 1.0
            self._diagonal = np.where(own > least, own, least)
        self._bent: dict[int, tuple[np.ndarray, np.ndarray] | None] = {}

    @property
    def inverse(self) -> np.ndarray:
        """About the inverse of the Hessian on the coordinates of the fit."""
        return self._fits.inverse(self.fit)

    def guess(self, gradient: np.ndarray) -> np.ndarray:
        """What the diagonal says of every unit where the gradient is the given one, shape (n_units,)."""
        return self._fits.problem.totals(0.5 * gradient * gradient / self._diagonal)

    def shortlist(self, guess: np.ndarray, addable: np.ndarray) -> list[int]:
        """The units that a guess ranks first."""
        scores = np.where(addable & (guess > 0), guess, -np.inf)
        return highest(scores, SHORTLIST if self._known_diagonal else LONGER_LIST)

    def alone(self, units: list[int]) -> np.ndarray:
        """What some units gain if each moves alone."""
        guess = self.guess(self.gradient)[units]
        return guess if self._known_diagonal else guess / self.stiffness(units, None, self.fit.coords)

    def refitted(self, units: list[int]) -> np.ndarray:
        """What some units gain if the chosen ones move with them."""
        return self.guess(self.gradient)[units] / self.stiffness(units, self.inverse, self.fit.coords)

    def stiffness(self, units: list[int], inverse: np.ndarray | None, coords: np.ndarray) -> np.ndarray:
        """The curvature along some units in parts of what the diagonal says, less what moves with them.

        That is the model on ``coords``, with this inverse Hessian; None for nothing.
        """
        self._ask_hessian(units)
        found = np.full(len(units), LEAST_LEFT)
        for place, unit in enumerate(units):
            along = self._along(unit)
            if along is None:
                continue
            direction, bent = along
            own = float(direction @ bent)
            left = own if inverse is None else own - float(bent[coords] @ inverse @ bent[coords])
            found[place] = max(left, LEAST_LEFT * own, 1e-300) / float(direction @ (self._diagonal * direction))
        return found

    def removals(self) -> np.ndarray:
        """What leaving out each chosen unit costs, ``w_u' (B_uu)^-1 w_u / 2``, in the order of the fit."""
        owner = self._fits.problem.units.owner[self.fit.coords]
        free = len(self._fits.problem.free)
        costs = []
        for unit in self.fit.units:
            places = free + np.flatnonzero(owner[free:] == unit)
            block, coef = self.inverse[np.ix_(places, places)], self.fit.coef[places]
            try:
                costs.append(0.5 * float(coef @ np.linalg.solve(block, coef)))
            except np.linalg.LinAlgError:
                costs.append(0.0)
        return np.maximum(costs, 0.0)

    def _along(self, unit: int) -> tuple[np.ndarray, np.ndarray] | None:
        """The direction in which a unit would set out, and the Hessian times it; None if the domain ends at once."""
        if unit not in self._bent:
            direction = self._direction(unit)
            bent = self._fits.problem.bend(self.w, self.gradient, direction)
            self._bent[unit] = None if bent is None else (direction, bent)
        return self._bent[unit]

    def _direction(self, unit: int) -> np.ndarray:
        own = self._fits.problem.units.of([unit])
        direction = np.zeros_like(self.w)
        direction[own] = -self.gradient[own] / self._diagonal[own]
        if not np.any(direction):
            direction[own] = 1.0
        return direction

    def _ask_hessian(self, units: list[int]) -> None:
        """All that is wanted of the Hessian at once, where the objective has one."""
        problem = self._fits.problem
        units = [unit for unit in units if unit not in self._bent]
        new = problem.units.of(units)
        if problem.hessian is None or not len(new) or len(new) + len(self.fit.coords) > LARGEST_HESSIAN:
            return
        coords = np.concatenate([self.fit.coords, new])
        hessian = np.asarray(problem.hessian(self.w, coords), dtype=np.float64)
        for unit in units:
            direction = self._direction(unit)
            bent = np.zeros_like(self.w)
            bent[coords] = hessian @ direction[coords]
            self._bent[unit] = direction, bent


def highest(scores: np.ndarray, count: int) -> list[int]:
    """Indices of the highest scores above minus infinity, highest first, ties in order."""
    count = min(count, len(scores))
    if not count:
        return []
    some = np.argpartition(-scores, count - 1)[:count]
    some = some[scores[some] > -np.inf]
    return [int(i) for i in sorted(some, key=lambda i: (-scores[i], i))]
