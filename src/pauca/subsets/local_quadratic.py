"""The quadratic around a fitted model: what additions, removals and swaps bring to second order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from pauca.constraints.units import Units
from pauca.design import Design
from pauca.objectives import Bounds, GramRows, weighted_gram
from pauca.subsets.fits import Fit, Fits
from pauca.tolerances import DEPENDENT_BELOW

# Columns of units with several are gathered in batches of about this many numbers (32 MB).
GATHERED_NUMBERS = 1 << 22

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

    def __init__(self, units: Units, usable: np.ndarray) -> None:
        self._n_units = len(units)
        self.usable = units.any(usable)
        """Mask of the units with at least one column that varies."""
        sizes = units.sizes()
        self._classes: list[tuple[np.ndarray, np.ndarray]] = []
        for size in np.unique(sizes[sizes > 0]):
            members = np.flatnonzero(sizes == size)
            self._classes.append((members, units.of(members).reshape(len(members), size)))

    def own(self, design: Design, weights: np.ndarray, sums: np.ndarray | None, penalty: np.ndarray) -> Blocks:
        """Curvature within every unit for row weights of shape (C, n); ``sums`` are their products, if known."""
        blocks = []
        for _, columns in self._classes:
            size = columns.shape[1]
            if size == 1:
                block = design.squares(weights, sums)[:, columns[:, 0], None, None]
            else:
                block = _gathered(design, weights, columns)
            block[..., range(size), range(size)] += penalty[columns]
            blocks.append(block)
        return blocks

    def reduce(self, blocks: Blocks, half: np.ndarray, sign: float = -1.0) -> Blocks:
        """``blocks + sign * half' half`` within every unit, for ``half`` of shape (C, p, d)."""
        reduced = []
        for (_, columns), block in zip(self._classes, blocks, strict=True):
            if columns.shape[1] == 1:
                part = half[:, :, columns[:, 0]]
                change = np.einsum("cpu,cpu->cu", part, part)[..., None, None]
            else:
                part = half[:, :, columns]
                change = np.einsum("cpum,cpun->cumn", part, part, optimize=True)
            reduced.append(block + sign * change)
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

    def gains_on_lines(
        self, num: np.ndarray, den: Blocks, given_back: np.ndarray, own: Blocks, bounds: Bounds | None
    ) -> np.ndarray:
        """Gains of units of one column each for several cases at once, shape (cases, U).

        ``num`` and ``given_back``, which is added to the curvature, have shape (C, cases, d).
        """
        gains = np.zeros((num.shape[1], self._n_units))
        if not self._classes:
            return gains
        members, columns = self._classes[0][0], self._classes[0][1][:, 0]
        if len(columns) < self._n_units:
            num, given_back = num[:, :, columns], given_back[:, :, columns]
        bounds = _of(bounds, columns)
        num = feasible_slope(num, bounds)
        curvature = den[0][:, None, :, 0, 0] + given_back
        gains[:, members] = _line_gains(num, curvature, own[0][:, None, :, 0, 0], bounds)
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
    step = np.linalg.solve(scaled, slope[..., None])[..., 0]
    return 0.5 * np.einsum("cum,cum->u", slope, step)


def _gathered(design: Design, weights: np.ndarray, columns: np.ndarray) -> np.ndarray:
    units, size = columns.shape
    blocks = np.empty((len(weights), units, size, size))
    at_once = max(1, GATHERED_NUMBERS // (design.n_rows * size))
    for start in range(0, units, at_once):
        some = columns[start : start + at_once]
        part = design.columns(some.ravel()).reshape(*some.shape, -1)
        for output, row in enumerate(weights):
            blocks[output, start : start + at_once] = (part * row) @ part.transpose(0, 2, 1)
    return blocks


# Exchanges are evaluated for so many pairs at a time, which stay in the processor's cache.
EXCHANGE_NUMBERS = 1 << 16


class LocalQuadratic:
    """Slopes and curvatures at a fitted model, each computed when it is first needed.

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
        """What removing each chosen unit costs, in the order of the fit, shape (k,)."""
        return np.array([self._removal(unit)[0] for unit in self._fit.units])

    def exchanges(self) -> Iterator[tuple[int, float, np.ndarray]]:
        """For each chosen unit: what removing it costs, and what each unit gains afterwards, shape (U,)."""
        if self._objective.units.single:
            yield from self._line_exchanges()
            return
        for unit in self._fit.units:
            cost, positions, force, root = self._removal(unit)
            shared = self._projected[:, positions]
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
        """Cost of a removal, the positions of its coefficients, ``(A_ii)^-1 w_i`` and a root of ``(A_ii)^-1``."""
        positions = self._objective.free + np.flatnonzero(self._objective.units.owner[self._features] == unit)
        # Columns of M at these positions: a thin factor of A_ii, whose own inverse is a root of (A_ii)^-1.
        root = np.linalg.inv(np.linalg.qr(self._root[:, :, positions], mode="r"))
        coef = self._fit.coef[:, positions]
        half = (root.transpose(0, 2, 1) @ coef[:, :, None])[:, :, 0]
        return 0.5 * float(np.sum(half * half)), positions, (root @ half[:, :, None])[:, :, 0], root

    @cached_property
    def _rows(self) -> np.ndarray:
        """Products of the intercept and the chosen columns with every column, shape (C, q, d)."""
        objective = self._objective
        if objective.smooth.quadratic:
            rows = np.zeros((1, len(self._z), objective.design.n_features))
            rows[0, objective.free :] = self._gram.rows(self._features)
        else:
            rows = self._rows_and_slope()
        for position, feature in enumerate(self._features, objective.free):
            rows[:, position, feature] += objective.penalty[feature]
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
        """Which coefficients are not held by a bound, shape (C, q) or (1, q)."""
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
