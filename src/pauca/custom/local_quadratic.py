"""What every unit would bring to a fitted model, to second order."""

from __future__ import annotations

import numpy as np

from pauca.custom.fit_cache import LARGEST_HESSIAN, FitCache, PartialFit
from pauca.subsets.base import highest_scores

# For so many units that the diagonal of the Hessian ranks first, its products along them are computed, a gradient each;
# for more where there is no diagonal, and the size of the gradient ranks them.
RANKED_BY_DIAGONAL = 16
RANKED_BY_GRADIENT = 32

# What the chosen coordinates leave of the curvature along a direction is taken to be no less than this share.
LEAST_LEFT = 1e-6


class LocalQuadratic:
    """The quadratic around a fit, as far as it follows from gradients.

    Conventions (g the gradient; D the diagonal of the Hessian H, or ones where it is not known; B the inverse of H on
    the model, d the direction ``-g_u / D_u`` in which unit u would start to move)
    -----------
    diagonal gain : ``g_u' D_u^-1 g_u / 2``, what u gains if it moves alone and the diagonal is all there is
    stiffness     : ``d'Hd / d'Dd``, the curvature along d relative to that of D
    stiffness left: ``(d'Hd - d'H B H d) / d'Dd``, what the model leaves of it

    A unit gains about its diagonal gain over the stiffness if it moves alone, and over the stiffness left if the model
    moves with it. ``H d`` is the difference of two gradients, or comes from the objective's own Hessian.
    """

    def __init__(self, fits: FitCache, fit: PartialFit) -> None:
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
            # Where weights diverge, a curvature may be so small that a share of it is zero.
            least = max(LEAST_LEFT * float(positive.min()), np.finfo(float).tiny) if len(positive) else 1.0
            self._diagonal = np.where(own > least, own, least)
        self._products: dict[int, tuple[np.ndarray, np.ndarray] | None] = {}

    @property
    def inverse(self) -> np.ndarray:
        """About the inverse of the Hessian on the coordinates of the fit."""
        return self._fits.inverse(self.fit)

    def diagonal_gains(self, gradient: np.ndarray) -> np.ndarray:
        """What every unit gains by the diagonal where the gradient is the given one, shape (n_units,)."""
        return self._fits.problem.totals(0.5 * gradient * gradient / self._diagonal)

    def shortlist(self, gains: np.ndarray, allowed: np.ndarray) -> list[int]:
        """The allowed units with the highest gains by the diagonal."""
        scores = np.where(allowed & (gains > 0), gains, -np.inf)
        return highest_scores(scores, RANKED_BY_DIAGONAL if self._known_diagonal else RANKED_BY_GRADIENT)

    def gains_alone(self, units: list[int]) -> np.ndarray:
        """What some units gain if each moves alone."""
        gains = self.diagonal_gains(self.gradient)[units]
        return gains if self._known_diagonal else gains / self.stiffness(units, None, self.fit.coords)

    def refit_gains(self, units: list[int]) -> np.ndarray:
        """What some units gain if the chosen ones move with them."""
        return self.diagonal_gains(self.gradient)[units] / self.stiffness(units, self.inverse, self.fit.coords)

    def stiffness(self, units: list[int], inverse: np.ndarray | None, coords: np.ndarray) -> np.ndarray:
        """The curvature along some units relative to the diagonal's, less what moves with them.

        That is the model on ``coords``, with this inverse Hessian; None for nothing.
        """
        self._use_hessian(units)
        found = np.full(len(units), LEAST_LEFT)
        for position, unit in enumerate(units):
            along = self._hessian_along(unit)
            if along is None:
                continue
            direction, product = along
            own = float(direction @ product)
            left = own if inverse is None else own - float(product[coords] @ inverse @ product[coords])
            found[position] = max(left, LEAST_LEFT * own, 1e-300) / float(direction @ (self._diagonal * direction))
        return found

    def removal_costs(self) -> np.ndarray:
        """What removing each chosen unit costs, ``w_u' (B_uu)^-1 w_u / 2``, in the order of the fit."""
        owner = self._fits.problem.units.owner[self.fit.coords]
        free = len(self._fits.problem.free)
        costs = []
        for unit in self.fit.units:
            positions = free + np.flatnonzero(owner[free:] == unit)
            block, coef = self.inverse[np.ix_(positions, positions)], self.fit.coef[positions]
            try:
                costs.append(0.5 * float(coef @ np.linalg.solve(block, coef)))
            except np.linalg.LinAlgError:
                costs.append(0.0)
        return np.maximum(costs, 0.0)

    def _hessian_along(self, unit: int) -> tuple[np.ndarray, np.ndarray] | None:
        """The direction in which a unit starts to move, and the Hessian times it; None if the domain ends at once."""
        if unit not in self._products:
            direction = self._direction(unit)
            product = self._fits.problem.hessian_product(self.w, self.gradient, direction)
            self._products[unit] = None if product is None else (direction, product)
        return self._products[unit]

    def _direction(self, unit: int) -> np.ndarray:
        own = self._fits.problem.units.of([unit])
        direction = np.zeros_like(self.w)
        direction[own] = -self.gradient[own] / self._diagonal[own]
        if not np.any(direction):
            direction[own] = 1.0
        return direction

    def _use_hessian(self, units: list[int]) -> None:
        """All products with the Hessian that are needed, at once, where the objective has one."""
        problem = self._fits.problem
        units = [unit for unit in units if unit not in self._products]
        new = problem.units.of(units)
        if problem.hessian is None or not len(new) or len(new) + len(self.fit.coords) > LARGEST_HESSIAN:
            return
        coords = np.concatenate([self.fit.coords, new])
        hessian = np.asarray(problem.hessian(self.w, coords), dtype=np.float64)
        for unit in units:
            direction = self._direction(unit)
            product = np.zeros_like(self.w)
            product[coords] = hessian @ direction[coords]
            self._products[unit] = direction, product
