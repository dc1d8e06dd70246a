"""Small dense blocks, one for each unit: its own piece of the Hessian and what a step in it would gain."""

from __future__ import annotations

import numpy as np

from pauca.design import Design
from pauca.objectives import Bounds
from pauca.subset.base import DEPENDENT_BELOW
from pauca.subset.ranking import towards
from pauca.units import Units

# Columns of units with several are gathered in batches of about this many numbers (32 MB).
GATHERED_NUMBERS = 1 << 22

Blocks = list[np.ndarray]
"""For each class of units of one size m: shape (C, units, m, m)."""


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

        ``own`` says what there was before others took their share. Bounds are kept exactly by units of one column; of
        larger units only columns that would move out of bounds at once are left out.
        """
        gains = np.zeros(self._n_units)
        num = towards(num, bounds)
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
        num = towards(num, bounds)
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
