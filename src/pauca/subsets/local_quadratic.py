"""The quadratic around a fitted model: what additions, removals and swaps bring to second order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from pauca.constraints.units import Units
from pauca.design import Design
from pauca.objectives import Bounds, weighted_gram
from pauca.solvers.factorisation import solve_or_nearest
from pauca.subsets.fit_cache import FitCache
from pauca.subsets.fit_records import Fit
from pauca.subsets.standardized_columns import few_at_a_time
from pauca.tolerances import DEPENDENT_BELOW

# What the chosen columns leave of others is found for so many numbers at a time, which stay in the cache.
REDUCED_NUMBERS = 1 << 17

Blocks = list[np.ndarray]
"""For each class of units of one size m: shape (C, units, m, m)."""


def feasible_slope(slope: np.ndarray, bounds: Bounds | None) -> np.ndarray:
    """Slopes with those set to zero along which a coefficient of zero may not move."""
    if bounds is None:
        return slope
    return np.where(((slope > 0) & (bounds[1] <= 0)) | ((slope < 0) & (bounds[0] >= 0)), 0.0, slope)


class UnitBlocks:
    """Units sorted into classes of one size, so that a class is worked on at once.

    Conventions
    -----------
    C outputs, d columns, U units; m is the number of columns of a unit
    num : (C, d), the slope along every column
    den : blocks (C, units, m, m), the curvature within every unit
    """

    def __init__(self, units: Units, design: Design) -> None:
        self._n_units = len(units)
        self.usable = units.any(design.usable)
        """Mask of the units with at least one column that varies."""
        sizes = units.sizes()
        self._classes: list[tuple[np.ndarray, np.ndarray]] = []
        for size in np.unique(sizes[sizes > 0]):
            members = np.flatnonzero(sizes == size)
            self._classes.append((members, units.of(members).reshape(len(members), size)))
        self._products = [_products_within(design, columns) for _, columns in self._classes]

    def scaled(self, curvature: np.ndarray, penalty: np.ndarray) -> Blocks:
        """``curvature`` of shape (C,) times the products of the columns within every unit, and the penalty."""
        blocks = []
        for (_, columns), products in zip(self._classes, self._products, strict=True):
            size = columns.shape[1]
            block = curvature[:, None, None, None] * products
            block[..., range(size), range(size)] += penalty[columns]
            blocks.append(block)
        return blocks

    def reduce(self, blocks: Blocks, roots: np.ndarray, rows: Sequence[np.ndarray]) -> Blocks:
        """``blocks - half' half`` within every unit, where ``half`` is ``roots`` (C, p, p) times ``rows`` (p, d)."""
        reduced = []
        for (_, columns), block in zip(self._classes, blocks, strict=True):
            units, size = columns.shape
            left = np.empty_like(block)
            at_once = max(1, REDUCED_NUMBERS // (roots.shape[0] * len(rows) * size))
            for some in (slice(start, start + at_once) for start in range(0, units, at_once)):
                half = roots @ np.stack([row[columns[some].ravel()] for row in rows])
                half = half.reshape(*half.shape[:2], -1, size)
                equation = "cpum,cpum->cu" if size == 1 else "cpum,cpun->cumn"
                change = np.einsum(equation, half, half, optimize=size > 1)
                left[:, some] = block[:, some] - (change[:, :, None, None] if size == 1 else change)
            reduced.append(left)
        return reduced

    def gains(self, num: np.ndarray, den: Blocks, own: Blocks, bounds: Bounds | None) -> np.ndarray:
        """What the best step in each unit gains by the quadratic, shape (U,); zero for dependent columns.

        ``own`` is the curvature before the chosen columns took their share. Units of one column keep bounds exactly; of
        larger units only columns that would move out of bounds at once are left out.
        """
        gains = np.zeros(self._n_units)
        num = feasible_slope(num, bounds)
        for (members, columns), block, before in zip(self._classes, den, own, strict=True):
            if columns.shape[1] == 1:
                lines = columns[:, 0]
                gains[members] = _line_gains(num[:, lines], block[..., 0, 0], before[..., 0, 0], _of(bounds, lines))
            else:
                gains[members] = _block_gains(num[:, columns], block, before)
        return gains


def _of(bounds: Bounds | None, columns: np.ndarray) -> Bounds | None:
    return None if bounds is None else (bounds[0][columns], bounds[1][columns])


def _line_gains(slope: np.ndarray, curvature: np.ndarray, whole: np.ndarray, bounds: Bounds | None) -> np.ndarray:
    """Gains of single columns from arrays of shape (C, ..., columns), summed over the outputs."""
    usable = curvature > DEPENDENT_BELOW * whole
    curvature = np.where(usable, curvature, np.inf)
    if bounds is None:
        return 0.5 * (slope * slope / curvature).sum(axis=0)
    step = np.clip(slope / curvature, *bounds)
    return np.where(usable, step * (slope - 0.5 * np.where(usable, curvature, 0.0) * step), 0.0).sum(axis=0)


def _pair_gains(slope: np.ndarray, cross: np.ndarray, left: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Gains of pairs of columns by what the model leaves of their Hessian: ``cross`` between two, ``left`` of each.

    They are zero for pairs with a column that depends on the model, or on the other.
    """
    determinant = np.outer(left, left) - cross * cross
    usable = left > DEPENDENT_BELOW * own
    usable = np.outer(usable, usable) & (determinant > DEPENDENT_BELOW * np.outer(own, own))
    np.fill_diagonal(usable, val=False)
    squares = np.outer(slope * slope, left)
    twice = squares + squares.T - 2.0 * np.outer(slope, slope) * cross
    return np.divide(0.5 * twice, determinant, out=np.zeros_like(cross), where=usable)


def _block_gains(slope: np.ndarray, den: np.ndarray, own: np.ndarray) -> np.ndarray:
    diagonal = np.einsum("cuii->cui", own)
    scale = np.zeros_like(diagonal)
    np.divide(1.0, np.sqrt(diagonal, where=diagonal > 0, out=np.ones_like(diagonal)), out=scale, where=diagonal > 0)
    scaled = den * scale[..., :, None] * scale[..., None, :]
    size = scaled.shape[-1]
    # Directions that depend on chosen columns keep next to no curvature, and no slope either.
    scaled[..., range(size), range(size)] += DEPENDENT_BELOW
    scaled[..., range(size), range(size)] += diagonal <= 0
    slope = slope * scale
    step = solve_or_nearest(scaled, slope[..., None])[..., 0]
    return 0.5 * np.einsum("cum,cum->u", slope, step)


def _products_within(design: Design, columns: np.ndarray) -> np.ndarray:
    """Weighted products of the standardised columns of every unit, shape (units, m, m)."""
    units, size = columns.shape
    if size == 1:
        return np.ones((units, 1, 1))
    blocks = np.empty((units, size, size))
    numbers = design.n_rows * size
    for some, block in zip(few_at_a_time(columns, numbers), few_at_a_time(blocks, numbers), strict=True):
        part = design.columns(some.ravel()).reshape(*some.shape, -1)
        block[:] = (part * design.weights) @ part.transpose(0, 2, 1)
    return blocks


def _damping(diagonal: np.ndarray) -> np.ndarray:
    """What keeps the Hessian of columns that depend on each other, or have no curvature, invertible."""
    return np.where(diagonal > 0, DEPENDENT_BELOW * diagonal, 1.0)


class ProductRows(Protocol):
    """Products of columns, such as ``GramRows``."""

    def each(self, features: np.ndarray) -> list[np.ndarray]:
        """Products of each of some columns with all."""
        ...


class LocalQuadratic:
    """Slopes at a fitted model, and about its curvature along every unit.

    The curvature of the loss is taken to be the same for all rows, its mean at the model: then the Hessian is that mean
    times products of columns, which hold for every model. This ranks candidates; few of them are looked at closely.

    Conventions (C outputs; c the mean curvature of an output, G the products of standardised columns)
    -----------
    slope : (C, d), minus the gradient
    own   : ``c G_uu`` and the penalty, the Hessian within every unit
    left  : ``own - c G_uS (G_SS + penalty / c)^-1 G_Su``, what the chosen units S leave of every unit
    """

    def __init__(self, fits: FitCache, fit: Fit, blocks: UnitBlocks, gram: ProductRows) -> None:
        self._objective = fits.objective
        self._fit = fit
        self._blocks = blocks
        self._gram = gram
        self._pool = fits.pool
        self.scores = fits.scores(fit)
        self._features = self._objective.units.of(fit.units)
        self._refined: dict[int, float] = {}

    @cached_property
    def slope(self) -> np.ndarray:
        """Minus the gradient, shape (C, d)."""
        objective = self._objective
        force = objective.smooth.derivative(objective.y, self.scores) * objective.design.weights
        slope = -objective.design.products(force)
        penalty = objective.penalty[self._features]
        slope[:, self._features] -= penalty * self._fit.coef[:, objective.free :]
        return slope

    @cached_property
    def weights(self) -> np.ndarray:
        """Curvature of the weighted losses, shape (C, n), or (1, n) where it is the same for all outputs."""
        objective = self._objective
        v = objective.design.weights
        if objective.smooth.quadratic:
            return v[None]
        return v * objective.smooth.broad_curvature(objective.y, self.scores, v)

    @cached_property
    def own(self) -> Blocks:
        """About the Hessian within every unit."""
        mean = self.weights.sum(axis=1)
        return self._blocks.scaled(mean, self._objective.penalty)

    def exact_own(self) -> np.ndarray:
        """The second derivative along every column, shape (C, d)."""
        objective = self._objective
        own = objective.design.squares(self.weights) + objective.penalty
        if objective.smooth.coupled:
            for some in few_at_a_time(np.arange(own.shape[1]), objective.design.n_rows):
                shared = objective.smooth.row_coupling(self.scores[0], objective.design.columns(some))
                assert shared is not None
                own[:, some] -= np.einsum("dt,dt->d", shared, shared)
        return own

    def own_gains(self) -> np.ndarray:
        """What each unit gains if it alone moves, shape (U,)."""
        return self._blocks.gains(self.slope, self.own, self.own, self._objective.bounds)

    @cached_property
    def refit_gains(self) -> np.ndarray:
        """What each unit gains if the chosen ones move with it, shape (U,)."""
        left = self._left() if len(self._features) else self.own
        return self._blocks.gains(self.slope, left, self.own, self._objective.bounds)

    def refined_gains(self, units: list[int]) -> np.ndarray:
        """The same for a few units of one column each, by the Hessian itself, shape (b,)."""
        unknown = [unit for unit in units if unit not in self._refined]
        if unknown:
            self._refined.update(zip(unknown, self._refine(unknown).tolist(), strict=True))
        return np.array([self._refined[unit] for unit in units])

    def _refine(self, units: list[int]) -> np.ndarray:
        chosen = self._pool.gather(self._fit.units)
        hessians = [self._hessian(chosen, output) for output in range(len(self.weights))]
        parts = few_at_a_time(units, self._objective.design.n_rows)
        return np.concatenate([self._refine_some(some, chosen, hessians) for some in parts])

    def _refine_some(
        self, units: list[int], chosen: np.ndarray, hessians: list[tuple[np.ndarray, np.ndarray | None]]
    ) -> np.ndarray:
        objective, features = self._objective, self._objective.units.of(units)
        z = self._pool.gather(units)[objective.free :]
        left, own = np.empty((len(self.weights), len(features))), np.empty((len(self.weights), len(features)))
        for output, (row, (hessian, coupling)) in enumerate(zip(self.weights, hessians, strict=True)):
            weighted = z * row
            cross = chosen @ weighted.T
            own[output] = np.vecdot(weighted, z) + objective.penalty[features]
            if coupling is not None:
                new = objective.smooth.row_coupling(self.scores[output], z)
                assert new is not None
                cross -= coupling @ new.T
                own[output] -= np.einsum("bt,bt->b", new, new)
            left[output] = own[output] - np.einsum("qb,qb->b", cross, solve_or_nearest(hessian, cross))
        slope = feasible_slope(self.slope, objective.bounds)[:, features]
        return _line_gains(slope, left, own, _of(objective.bounds, features))

    def pair_gains(self, units: list[int]) -> np.ndarray:
        """What each two of a few units of one column gain together by the Hessian itself: (b, b), 0 on the diagonal."""
        objective, features = self._objective, self._objective.units.of(units)
        z, chosen = self._pool.gather(units)[objective.free :], self._pool.gather(self._fit.units)
        gains = np.zeros((len(features), len(features)))
        slopes = self.slope[:, features]
        for output, row in enumerate(self.weights):
            hessian, coupling = self._hessian(chosen, output)
            weighted = z * row
            cross, left = chosen @ weighted.T, weighted @ z.T
            if coupling is not None:
                new = objective.smooth.row_coupling(self.scores[output], z)
                assert new is not None
                cross -= coupling @ new.T
                left -= new @ new.T
            own = left.diagonal() + objective.penalty[features]
            left -= cross.T @ solve_or_nearest(hessian, cross)
            for slope in slopes if len(self.weights) == 1 else slopes[[output]]:
                gains += _pair_gains(slope, left, left.diagonal() + objective.penalty[features], own)
        return gains

    def _hessian(self, chosen: np.ndarray, output: int) -> tuple[np.ndarray, np.ndarray | None]:
        """The Hessian of an output on the chosen columns, and how rows that depend on each other couple them."""
        objective = self._objective
        hessian = weighted_gram(chosen, self.weights[output])
        penalty = np.concatenate([objective.free_penalty, objective.penalty[self._features]])
        hessian.flat[:: len(hessian) + 1] += penalty + _damping(np.diag(hessian))
        coupling = objective.smooth.row_coupling(self.scores[output], chosen) if objective.smooth.coupled else None
        return (hessian, None) if coupling is None else (hessian - coupling @ coupling.T, coupling)

    def _left(self) -> Blocks:
        """What the chosen units S leave of every unit, by ``M c G_S:`` with ``M' M`` the inverse of the block on S."""
        rows, mean = self._gram.each(self._features), self.weights.sum(axis=1)
        block, penalty = np.stack([row[self._features] for row in rows]), self._objective.penalty[self._features]
        roots = np.empty((len(mean), *block.shape))
        for curvature, root in zip(mean, roots, strict=True):
            hessian = curvature * block
            hessian.flat[:: len(hessian) + 1] += penalty + _damping(np.diag(hessian))
            # To invert the small factor and multiply takes a third of the time of a solution for all columns.
            np.multiply(curvature, np.linalg.inv(np.linalg.cholesky(hessian)), out=root)
        return self._blocks.reduce(self.own, roots, rows)
