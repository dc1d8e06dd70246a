"""The quadratic around a fitted model: what additions, removals and swaps bring to second order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from pauca.constraints.units import Units
from pauca.design import Design, Entries
from pauca.design.base import CACHED_NUMBERS
from pauca.objectives import Bounds, weighted_gram
from pauca.solvers.factorisation import solve_or_nearest
from pauca.subsets.column_entries import ColumnEntries
from pauca.subsets.compiled_gains import gains_by_mean, products_beside
from pauca.subsets.explained_shares import ExplainedShares, ProductRows
from pauca.subsets.fit_cache import FitCache
from pauca.subsets.fit_records import Fit
from pauca.subsets.standardized_columns import few_at_a_time
from pauca.tolerances import DEPENDENT_BELOW

# Products of more numbers than this are not copied for kernels: what models explain is found from models nearby.
STACKED_NUMBERS = 1 << 20

# Columns of no more numbers than this are taken whole: to list the entries of those with mostly one value takes longer.
WHOLE_NUMBERS = 1 << 17

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
        self._classes: list[tuple[np.ndarray | slice, np.ndarray]] = []
        for size in np.unique(sizes[sizes > 0]):
            members = np.flatnonzero(sizes == size)
            columns = units.of(members).reshape(len(members), size)
            # All columns in order are taken as they are.
            self._classes.append((slice(None) if units.single else members, columns))
        self._products = [_products_within(design, columns) for _, columns in self._classes]

    def scaled(self, curvature: np.ndarray, penalty: np.ndarray) -> Blocks:
        """``curvature`` of shape (C,) times the products of the columns within every unit, and the penalty."""
        blocks = []
        for (members, columns), products in zip(self._classes, self._products, strict=True):
            size = columns.shape[1]
            if size == 1:
                # Standardised columns.
                blocks.append((curvature[:, None] + penalty[_lines(members, columns)])[..., None, None])
                continue
            block = curvature[:, None, None, None] * products
            block[..., range(size), range(size)] += penalty[columns]
            blocks.append(block)
        return blocks

    def reduce(self, blocks: Blocks, roots: np.ndarray, rows: Sequence[np.ndarray]) -> Blocks:
        """``blocks - half' half`` within every unit, where ``half`` is ``roots`` (C, p, p) times ``rows`` (p, d)."""
        reduced = []
        for (members, columns), block in zip(self._classes, blocks, strict=True):
            units, size = columns.shape
            left = np.empty_like(block)
            at_once = max(1, CACHED_NUMBERS // (roots.shape[0] * len(rows) * size))
            for some in (slice(start, start + at_once) for start in range(0, units, at_once)):
                # Of all columns in order nothing has to be gathered.
                of_some = some if isinstance(members, slice) else columns[some].ravel()
                half = roots @ np.stack([row[of_some] for row in rows])
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
                lines = _lines(members, columns)
                whole = None if block is before else before[..., 0, 0]
                gains[members] = _line_gains(num[:, lines], block[..., 0, 0], whole, _of(bounds, lines))
            else:
                gains[members] = _block_gains(num[:, columns], block, before)
        return gains


def _lines(members: np.ndarray | slice, columns: np.ndarray) -> np.ndarray | slice:
    """The columns of units of one column."""
    return members if isinstance(members, slice) else columns[:, 0]


def _of(bounds: Bounds | None, columns: np.ndarray | slice) -> Bounds | None:
    return None if bounds is None else (bounds[0][columns], bounds[1][columns])


def _line_gains(
    slope: np.ndarray, curvature: np.ndarray, whole: np.ndarray | None, bounds: Bounds | None
) -> np.ndarray:
    """Gains of single columns from arrays of shape (C, ..., columns), summed over the outputs.

    Columns that keep next to nothing of their ``whole`` curvature gain nothing; None where they keep all of it.
    """
    usable = curvature > (0.0 if whole is None else DEPENDENT_BELOW * whole)
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

    def __init__(
        self,
        fits: FitCache,
        fit: Fit,
        blocks: UnitBlocks,
        gram: ProductRows,
        columns: ColumnEntries,
        shares: ExplainedShares | None = None,
    ) -> None:
        self._objective = fits.objective
        self._fit = fit
        self._blocks = blocks
        self._gram = gram
        self._columns = columns
        self._shares = shares
        self._fits = fits
        self._pool = fits.pool
        self._rows, self._scores = fits.on_rows(fit)
        self._features = self._objective.units.of(fit.units)
        self._refined: dict[int, float] = {}

    @cached_property
    def slope(self) -> np.ndarray:
        """Minus the gradient, shape (C, d)."""
        objective = self._objective
        weighted = (
            self._rows.to_data(objective.smooth.derivative(self._rows.y, self._scores)) * objective.design.weights
        )
        slope = -objective.design.products(weighted)
        penalty = objective.penalty[self._features]
        slope[:, self._features] -= penalty * self._fit.coef[:, objective.free :]
        return slope

    @cached_property
    def _curvature(self) -> np.ndarray:
        """That of the losses of the model's rows, shape (C, G), or (1, G) where it is the same for all outputs."""
        rows, smooth = self._rows, self._objective.smooth
        if smooth.quadratic:
            return np.ones((1, len(rows.weights)))
        return smooth.broad_curvature(rows.y, self._scores, rows.weights)

    @cached_property
    def _weights(self) -> np.ndarray:
        """The same times the weights of the rows."""
        return np.asarray(self._rows.weights * self._curvature)

    @cached_property
    def mean_curvature(self) -> np.ndarray:
        """Of each output, shape (C,)."""
        return np.asarray(self._weights.sum(axis=1))

    @cached_property
    def _of_data(self) -> np.ndarray:
        """Curvature of the weighted losses of all rows of the data, shape (C, n)."""
        return np.asarray(self._rows.to_data(self._curvature) * self._objective.design.weights)

    @cached_property
    def own(self) -> Blocks:
        """About the Hessian within every unit."""
        return self._blocks.scaled(self.mean_curvature, self._objective.penalty)

    def exact_own(self) -> np.ndarray:
        """The second derivative along every column, shape (C, d)."""
        objective = self._objective
        own = objective.design.squares(self._of_data) + objective.penalty
        if objective.smooth.coupled:
            for some in few_at_a_time(np.arange(own.shape[1]), objective.design.n_rows):
                shared = objective.smooth.row_coupling(self._scores[0], objective.design.columns(some))
                assert shared is not None
                own[:, some] -= np.einsum("dt,dt->d", shared, shared)
        return own

    def own_gains(self) -> np.ndarray:
        """What each unit gains if it alone moves, shape (U,)."""
        return self._blocks.gains(self.slope, self.own, self.own, self._objective.bounds)

    @cached_property
    def refit_gains(self) -> np.ndarray:
        """What each unit gains if the chosen ones move with it, shape (U,)."""
        objective, features = self._objective, self._features
        left, single = self.own, objective.units.single and objective.n_outputs == 1
        if single and self._shares is not None and len(features) * self.slope.shape[1] > STACKED_NUMBERS:
            kept = (1.0 - self._shares.of(features.tolist())) * self.mean_curvature[0] + objective.penalty
            left = [kept[None, :, None, None]]
        elif len(features):
            if single and objective.bounds is None:
                rows = self._gram.each(features)
                gains = gains_by_mean(rows, features, self.mean_curvature[0], objective.penalty, self.slope[0])
                if gains is not None:
                    return gains
            left = self._left()
        return self._blocks.gains(self.slope, left, self.own, objective.bounds)

    def refined_gains(self, units: list[int]) -> np.ndarray:
        """The same for a few units of one column each, by the Hessian itself, shape (b,)."""
        unknown = [unit for unit in units if unit not in self._refined]
        if unknown:
            self._refined.update(zip(unknown, self._refine(unknown).tolist(), strict=True))
        return np.array([self._refined[unit] for unit in units])

    def _refine(self, units: list[int]) -> np.ndarray:
        gains = np.empty(len(units))
        quick = self._products_beside(units, pairs=False)
        if quick is not None:
            features, own, left = quick
            bounds, slope = _of(self._objective.bounds, features), self.slope[:, features]
            return _line_gains(feasible_slope(slope, bounds), left.T, own[None], bounds)
        for places, columns in self._parts(units, len(self._rows.weights)):
            features = columns.features
            left, own = np.empty((len(self._weights), len(features))), np.empty((len(self._weights), len(features)))
            for output in range(len(self._weights)):
                cross, squares = columns.cross(output), columns.squares(output)
                own[output] = squares + self._objective.penalty[features]
                left[output] = own[output] - np.einsum(
                    "qb,qb->b", cross, solve_or_nearest(self._hessians[output], cross)
                )
            bounds = _of(self._objective.bounds, features)
            gains[places] = _line_gains(feasible_slope(self.slope[:, features], bounds), left, own, bounds)
        return gains

    def pair_gains(self, units: list[int]) -> np.ndarray:
        """What each two of a few units of one column gain together by the Hessian itself: (b, b), 0 on the diagonal."""
        quick = self._products_beside(units, pairs=True)
        if quick is not None:
            features, own, left = quick
            slope, alone = self.slope[:, features], left.diagonal() + self._objective.penalty[features]
            self._refined.update(zip(units, _line_gains(slope, alone[None], own[None], None).tolist(), strict=True))
            return _pair_gains(slope[0], left, alone, own)
        parts = self._parts(units, 1)
        columns = parts[0][1] if len(parts) == 1 else _Whole(self, units)
        features, gains = columns.features, np.zeros((len(units), len(units)))
        slopes, penalty = self.slope[:, features], self._objective.penalty[features]
        alone, own = np.empty((2, len(self._weights), len(units)))
        for output in range(len(self._weights)):
            cross, left = columns.cross(output), columns.products(output)
            own[output] = left.diagonal() + penalty
            left -= cross.T @ solve_or_nearest(self._hessians[output], cross)
            alone[output] = left.diagonal() + penalty
            for slope in slopes if len(self._weights) == 1 else slopes[[output]]:
                gains += _pair_gains(slope, left, alone[output], own[output])
        self._refined.update(zip(units, _line_gains(slopes, alone, own, None).tolist(), strict=True))
        return gains

    def _products_beside(self, units: list[int], *, pairs: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """By kernels: the columns of a few units, the Hessian of each, and what the chosen ones leave.

        What is left is that of each with the penalty, shape (b, 1), or of all ``pairs`` without, shape (b, b).
        """
        objective, features = self._objective, self._objective.units.of(units)
        many = len(features) * objective.design.n_rows > WHOLE_NUMBERS
        if objective.n_outputs > 1 or (many and not objective.smooth.coupled):
            return None
        found = products_beside(
            objective.smooth,
            objective.y[0],
            self._rows.to_data(self._scores)[0],
            self._of_data[0],
            self._pool.gather(self._fit.units),
            objective.full_penalty(self._features),
            self._pool.gather(units)[objective.free :],
            pairs=pairs,
        )
        if found is None:
            return None
        penalty = objective.penalty[features]
        return features, found[0] + penalty, found[1] if pairs else found[1] + penalty[:, None]

    def _parts(self, units: list[int], n_rows: int) -> list[tuple[np.ndarray, _Whole | _Listed]]:
        """Some units of one column, a few at a time: whole columns, and those most of whose rows have one value."""
        features, design = self._objective.units.of(units), self._objective.design
        groups: list[tuple[np.ndarray, Entries | np.ndarray | None]] = [(np.arange(len(features)), None)]
        if self._rows.merged and len(features) * design.n_rows > WHOLE_NUMBERS:
            groups = self._columns.parts(features)
        parts: list[tuple[np.ndarray, _Whole | _Listed]] = []
        for places, columns in groups:
            listed = isinstance(columns, Entries)
            for at in few_at_a_time(np.arange(len(places)), n_rows if listed else design.n_rows):
                some = places[at]
                if isinstance(columns, Entries):
                    parts.append((some, _Listed(self, features[some], columns.part(at[0], at[-1] + 1))))
                else:
                    parts.append((some, _Whole(self, [units[place] for place in some.tolist()])))
        return parts

    @cached_property
    def _hessians(self) -> list[np.ndarray]:
        """The Hessian of each output on the chosen columns."""
        objective, found = self._objective, []
        if objective.n_outputs == 1 and not (objective.smooth.flat or objective.smooth.joint):
            # No broader than at the model.
            exact = self._fits.exact_hessian(self._fit)[0]
            return [exact + np.diag(_damping(np.diag(exact)))]
        chosen = self._pool.gather(self._fit.units, self._rows)
        penalty = np.concatenate([objective.free_penalty, objective.penalty[self._features]])
        for row in self._weights:
            hessian = weighted_gram(chosen, row)
            hessian.flat[:: len(hessian) + 1] += penalty + _damping(np.diag(hessian))
            found.append(hessian)
        return found

    def _left(self) -> Blocks:
        """What the chosen units S leave of every unit, by ``M c G_S:`` with ``M' M`` the inverse of the block on S."""
        rows, mean = self._gram.each(self._features), self.mean_curvature
        block, penalty = np.stack([row[self._features] for row in rows]), self._objective.penalty[self._features]
        roots = np.empty((len(mean), *block.shape))
        for curvature, root in zip(mean, roots, strict=True):
            hessian = curvature * block
            hessian.flat[:: len(hessian) + 1] += penalty + _damping(np.diag(hessian))
            # To invert the small factor and multiply takes a third of the time of a solution for all columns.
            np.multiply(curvature, np.linalg.inv(np.linalg.cholesky(hessian)), out=root)
        return self._blocks.reduce(self.own, roots, rows)


class _Whole:
    """Whole columns beside those of a model."""

    def __init__(self, quadratic: LocalQuadratic, units: list[int]) -> None:
        self._quadratic = quadratic
        self.features = quadratic._objective.units.of(units)
        self._z = quadratic._pool.gather(units)[quadratic._objective.free :]
        self._chosen = quadratic._pool.gather(quadratic._fit.units)

    def cross(self, output: int) -> np.ndarray:
        """Products with the chosen columns, shape (q, b)."""
        cross = self._chosen @ (self._z * self._quadratic._of_data[output]).T
        shared, chosen = self._shared(output, self._z), self._shared(output, self._chosen)
        return cross if shared is None or chosen is None else cross - chosen @ shared.T

    def squares(self, output: int) -> np.ndarray:
        """Products of each column with itself, shape (b,)."""
        squares = np.vecdot(self._z * self._quadratic._of_data[output], self._z)
        shared = self._shared(output, self._z)
        return np.asarray(squares if shared is None else squares - np.vecdot(shared, shared))

    def products(self, output: int) -> np.ndarray:
        """Products of each two columns, shape (b, b)."""
        products = (self._z * self._quadratic._of_data[output]) @ self._z.T
        shared = self._shared(output, self._z)
        return np.asarray(products if shared is None else products - shared @ shared.T)

    def _shared(self, output: int, z: np.ndarray) -> np.ndarray | None:
        """How rows that depend on each other couple columns."""
        smooth = self._quadratic._objective.smooth
        return smooth.row_coupling(self._quadratic._scores[output], z) if smooth.coupled else None


class _Listed:
    """The same for columns most of whose rows have one value: the rows of the model stand for all others."""

    def __init__(self, quadratic: LocalQuadratic, features: np.ndarray, entries: Entries) -> None:
        self._quadratic = quadratic
        self.features = features
        self._columns = entries
        rows, of_row = self._columns.rows, quadratic._rows.of_row
        self._groups = rows if of_row is None else of_row[rows]
        self._chosen = quadratic._pool.gather(quadratic._fit.units, quadratic._rows)

    def cross(self, output: int) -> np.ndarray:
        """Products with the chosen columns, shape (q, b)."""
        sums = self._columns.sums(self._of_entries(output), self._groups, self._quadratic._weights[output])
        return np.asarray(self._chosen @ sums.T)

    def squares(self, output: int) -> np.ndarray:
        """Products of each column with itself, shape (b,)."""
        return self._columns.squares(self._of_entries(output), float(self._quadratic.mean_curvature[output]))

    def products(self, output: int) -> np.ndarray:
        """Products of each two columns, shape (b, b)."""
        n_rows = self._quadratic._objective.design.n_rows
        return self._columns.products(self._of_entries(output), float(self._quadratic.mean_curvature[output]), n_rows)

    def _of_entries(self, output: int) -> np.ndarray:
        curvature = self._quadratic._curvature[output, self._groups]
        return np.asarray(self._quadratic._objective.design.weights[self._columns.rows] * curvature)
