"""The quadratic that a smooth objective looks like around a fitted model, and what it says of every unit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from pauca.objectives import GramRows, weighted_gram
from pauca.subset.base import DEPENDENT_BELOW
from pauca.subset.fits import Fit, Fits
from pauca.subset.unit_blocks import Blocks, UnitBlocks

# Exchanges are looked at for so many pairs at a time, which stay in the cache.
EXCHANGE_NUMBERS = 1 << 16


class LocalQuadratic:
    """Slopes and curvatures at a fitted model, each made when it is first asked for.

    Outputs that share a loss are taken one by one: this ranks candidates, and refits decide.

    Conventions (C outputs; H the Hessian with curvature weights ``v h``, A the inverse of its block on S and intercept)
    -----------
    slope : (C, d), minus the gradient
    own   : H within every unit
    left  : ``own - H_uS A H_Su``, what S leaves of every unit

    Adding u gains about ``slope_u' (left_u)^-1 slope_u / 2``, dropping i costs about ``w_i' (A_ii)^-1 w_i / 2``.
    """

    def __init__(self, fits: Fits, fit: Fit, blocks: UnitBlocks, gram: GramRows) -> None:
        self._objective = fits.objective
        self._fit = fit
        self._blocks = blocks
        self._gram = gram
        self._pool = fits.pool
        self.scores = fits.scores(fit)
        self._features = self._objective.units.of(fit.units)
        self._penalty = np.concatenate([self._objective.free_penalty, self._objective.penalty[self._features]])

    @cached_property
    def slope(self) -> np.ndarray:
        """Minus the gradient, shape (C, d)."""
        return self._slope_from(self._objective.design.products(self._force))

    @property
    def _force(self) -> np.ndarray:
        """Derivatives of the weighted losses in the scores, shape (C, n)."""
        objective = self._objective
        return objective.smooth.derivative(objective.y, self.scores) * objective.design.weights

    def _slope_from(self, products: np.ndarray) -> np.ndarray:
        slope = -products
        penalty = self._objective.penalty[self._features]
        slope[:, self._features] -= penalty * self._fit.coef[:, self._objective.free :]
        return slope

    @cached_property
    def _z(self) -> np.ndarray:
        return self._pool.gather(self._fit.units)

    @cached_property
    def weights(self) -> np.ndarray:
        """``v h``, shape (C, n), or (1, n) where it is the same for all outputs."""
        objective = self._objective
        v = objective.design.weights
        if objective.smooth.quadratic:
            return v[None]
        return v * objective.smooth.broad_curvature(objective.y, self.scores, v)

    @cached_property
    def own(self) -> Blocks:
        """The Hessian within every unit."""
        objective = self._objective
        sums = self._rows[:, 0] if objective.free and "_rows" in vars(self) and not objective.smooth.quadratic else None
        return self._blocks.own(objective.design, self.weights, sums, objective.penalty)

    @cached_property
    def left(self) -> Blocks:
        """What the chosen units leave of every unit."""
        half = self._root @ self._rows
        return self._blocks.reduce(self.own, half)

    def own_gains(self) -> np.ndarray:
        """What each unit gains if it alone moves, shape (U,)."""
        return self._blocks.gains(self.slope, self.own, self.own, self._bounds)

    def refit_gains(self) -> np.ndarray:
        """What each unit gains if the chosen ones move with it, shape (U,)."""
        return self._blocks.gains(self.slope, self.left, self.own, self._bounds)

    def removal_costs(self) -> np.ndarray:
        """What leaving out each chosen unit costs, in the order of the fit, shape (k,)."""
        return np.array([self._removal(unit)[0] for unit in self._fit.units])

    def exchanges(self) -> Iterator[tuple[int, float, np.ndarray]]:
        """For each chosen unit: what leaving it out costs, and what each unit gains afterwards, shape (U,)."""
        if self._objective.units.single:
            yield from self._line_exchanges()
            return
        for unit in self._fit.units:
            cost, places, force, root = self._removal(unit)
            shared = self._projected[:, places]
            slope = self.slope + (force[:, None, :] @ shared)[:, 0]
            left = self._blocks.reduce(self.left, root.transpose(0, 2, 1) @ shared, 1.0)
            yield unit, cost, self._blocks.gains(slope, left, self.own, self._bounds)

    def _line_exchanges(self) -> Iterator[tuple[int, float, np.ndarray]]:
        """The same where every unit is a single column, for many chosen ones at a time."""
        free = self._objective.free
        coef = self._fit.coef[:, free:]
        variance = np.einsum("cpi,cpi->ci", self._root, self._root)[:, free:]
        force = coef / variance
        costs = 0.5 * np.sum(coef * force, axis=0)
        at_once = max(1, EXCHANGE_NUMBERS // self.slope.size)
        for start in range(0, len(costs), at_once):
            some = slice(start, start + at_once)
            shared = self._projected[:, free:][:, some]
            slope = self.slope[:, None] + force[:, some, None] * shared
            given_back = shared * shared / variance[:, some, None]
            gains = self._blocks.gains_on_lines(slope, self.left, given_back, self.own, self._bounds)
            yield from zip(self._fit.units[some], costs[some].tolist(), gains, strict=True)

    def _removal(self, unit: int) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Cost of a removal, the places of its coefficients, ``(A_ii)^-1 w_i`` and a root of ``(A_ii)^-1``."""
        places = self._objective.free + np.flatnonzero(self._objective.units.owner[self._features] == unit)
        # Columns of M at these places: a thin factor of A_ii, whose own inverse is a root of (A_ii)^-1.
        root = np.linalg.inv(np.linalg.qr(self._root[:, :, places], mode="r"))
        coef = self._fit.coef[:, places]
        half = (root.transpose(0, 2, 1) @ coef[:, :, None])[:, :, 0]
        return 0.5 * float(np.sum(half * half)), places, (root @ half[:, :, None])[:, :, 0], root

    @cached_property
    def _rows(self) -> np.ndarray:
        """Products of the intercept and the chosen columns with every column, shape (C, q, d)."""
        objective = self._objective
        if objective.smooth.quadratic:
            rows = np.zeros((1, len(self._z), objective.design.n_features))
            rows[0, objective.free :] = self._gram.rows(self._features)
        else:
            rows = self._rows_and_slope()
        for place, feature in enumerate(self._features, objective.free):
            rows[:, place, feature] += objective.penalty[feature]
        return rows * self._moving[:, :, None]

    def _rows_and_slope(self) -> np.ndarray:
        """The rows without penalty; slopes come along if they are not known yet, which saves a pass over X."""
        left = [self._z * row for row in self.weights]
        shape = len(left), len(self._z), self._objective.design.n_features
        if "slope" in vars(self):
            return self._objective.design.products(np.concatenate(left)).reshape(shape)
        products = self._objective.design.products(np.concatenate([self._force, *left]))
        outputs = len(products) - len(left) * len(self._z)
        self.slope = self._slope_from(products[:outputs])
        return products[outputs:].reshape(shape)

    @cached_property
    def _root(self) -> np.ndarray:
        """Triangular M with ``A = M' M``, shape (C, q, q)."""
        hessian = np.stack([weighted_gram(self._z, row) for row in self.weights])
        size = hessian.shape[1]
        diagonal = np.einsum("cii->ci", hessian) + self._penalty
        # Columns without curvature are left as they are.
        scale = np.where(diagonal > 0, diagonal, 1.0) ** -0.5
        moving = scale * self._moving
        scaled = hessian * moving[:, :, None] * moving[:, None, :]
        damping = DEPENDENT_BELOW
        while True:
            scaled[:, range(size), range(size)] = 1.0 + damping
            try:
                return np.linalg.inv(np.linalg.cholesky(scaled)) * scale[:, None, :]
            except np.linalg.LinAlgError:
                damping *= 100.0

    @cached_property
    def _inverse(self) -> np.ndarray:
        """A, shape (C, q, q)."""
        return self._root.transpose(0, 2, 1) @ self._root

    @cached_property
    def _moving(self) -> np.ndarray:
        """Which coefficients no bound holds in their place, shape (C, q) or (1, q)."""
        objective = self._objective
        moving = np.ones((len(self.weights), len(self._z)), dtype=bool)
        if objective.bounds is not None:
            coef, slope = self._fit.coef[:, objective.free :], self.slope[:, self._features]
            lower, upper = (bound[self._features] for bound in objective.bounds)
            held = ((coef <= lower) & (slope < 0)) | ((coef >= upper) & (slope > 0))
            moving[:, objective.free :] = ~held.any(axis=0) if len(moving) == 1 else ~held
        return moving

    @cached_property
    def _projected(self) -> np.ndarray:
        """``A H_S:``, shape (C, q, d)."""
        return self._inverse @ self._rows

    @property
    def _bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        return self._objective.bounds
