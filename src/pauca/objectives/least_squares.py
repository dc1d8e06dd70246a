"""Gram rows, computed when needed and stacked, and weighted least squares with an optional ridge and intercept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pauca.clock import check_time
from pauca.design import ChunkedDesign, DenseDesign, Design
from pauca.design.base import WIDE_NUMBERS, row_blocks
from pauca.model import Model, Snapshot

# A pass over X for 32 rows takes about four times as long as for one. More rows gain nothing further.
ROWS_PER_PASS = 32

# Where many rows are known to be needed, nothing is computed in vain.
KNOWN_ROWS_PER_PASS = 256

# Designs this narrow get the whole Gram matrix in one pass.
WHOLE_UP_TO = 4 * ROWS_PER_PASS

# On data that fit in the cache, arithmetic takes most of the time, and many rows computed in vain are not cheap; a row
# of dense data takes as long among others as by itself.
SMALL_BYTES = 1 << 20
SMALL_ROWS_PER_PASS = 8

# No pass computes more than this many bytes of rows, and the rows kept take at most the larger of twice as much and an
# eighth of X.
PASS_BYTES = 1 << 26

# Rows for which a new stack has room beyond those it starts with.
SPARE_ROWS = 16


class GramRows:
    """Cached rows ``j -> X_j' V X`` of the Gram matrix of standardised columns.

    When a row is missing, the pass over X that computes it also computes the rows that are likely to be needed next.
    """

    def __init__(self, design: Design) -> None:
        self._design = design
        self._rows: dict[int, np.ndarray] = {}
        row_bytes = 8 * max(1, design.n_features)  # the bootstrap refits models without features too
        small = design.nbytes <= SMALL_BYTES
        in_cache = 1 if isinstance(design, DenseDesign) else SMALL_ROWS_PER_PASS
        at_most = max(1, PASS_BYTES // row_bytes)
        self._per_pass = min(in_cache if small else ROWS_PER_PASS, at_most)
        self._known_per_pass = min(KNOWN_ROWS_PER_PASS, at_most)
        self._most_kept = max(4 * self._per_pass, max(2 * PASS_BYTES, design.nbytes // 8) // row_bytes)
        self.passes = 0
        self.computed = 0

    def row(self, feature: int, likely: Callable[[int, int], Iterable[int]] | None = None) -> np.ndarray:
        """The Gram row of ``feature``; ``likely(feature, count)`` returns rows likely to be needed next."""
        row = self._rows.get(feature)
        if row is None:
            self._compute(self._batch(feature, likely))
            row = self._rows[feature]
        return row

    def known(self) -> list[int]:
        """The features whose rows are cached."""
        return list(self._rows)

    def rows(self, features: Sequence[int] | np.ndarray, columns: np.ndarray | slice = slice(None)) -> np.ndarray:
        """The Gram rows of several features, stacked; ``columns`` keeps only some entries of each."""
        found = self.each(features, columns)
        width = self._design.n_features if isinstance(columns, slice) else len(columns)
        return np.stack(found) if found else np.zeros((0, width))

    def each(self, features: Sequence[int] | np.ndarray, columns: np.ndarray | slice = slice(None)) -> list[np.ndarray]:
        """The same one by one: together they may be as large as X."""
        needed = [int(j) for j in features]
        found = {j: self._rows[j][columns] for j in needed if j in self._rows}
        missing = [j for j in needed if j not in found]
        for start in range(0, len(missing), self._known_per_pass):
            check_time()
            batch = missing[start : start + self._known_per_pass]
            found.update(zip(batch, self._compute(batch)[:, columns], strict=True))
        return [found[j] for j in needed]

    def _batch(self, feature: int, likely: Callable[[int, int], Iterable[int]] | None) -> list[int]:
        if self._design.n_features <= WHOLE_UP_TO:
            return [j for j in range(self._design.n_features) if j not in self._rows]
        if likely is None or self._per_pass == 1:
            return [feature]
        others = (int(j) for j in likely(feature, self._per_pass - 1))
        # In order, as the columns lie in memory.
        return sorted({feature, *(j for j in others if j not in self._rows)})

    def _compute(self, features: list[int]) -> np.ndarray:
        block = self._design.gram(features)
        self.passes += 1
        self.computed += len(features)
        for j, row in zip(features, block, strict=True):
            self._rows[j] = row
        while len(self._rows) > self._most_kept:
            # Oldest first: dictionaries keep the order of insertion.
            self._rows.pop(next(iter(self._rows)))
        return block


# A target whose standard deviation is below this share of its mean is constant up to rounding.
CONSTANT_TARGET_BELOW = 4 * np.finfo(float).eps

# Up to this condition number, coefficients from the Gram matrix have ten correct digits.
WELL_CONDITIONED = 1e6

# Below this share of the empty model's value, values from the Gram matrix are differences of nearly equal numbers.
NEARLY_PERFECT = 1e-6

# The coefficients are refined against the residuals until a step changes them by less than this share.
REFINED_BELOW = 1e-9
MOST_REFINEMENTS = 4


@dataclass(eq=False)
class _Buffer:
    """Memory for rows, of which the first ``used`` hold some."""

    memory: np.ndarray
    used: int


class RowStack:
    """A stack of rows, shape (k, d), that never changes: a row more makes another stack.

    The other stack is in the same memory, behind this one's last row, unless another row is there already.
    """

    def __init__(self, buffer: _Buffer, size: int, own_bytes: int) -> None:
        self._buffer = buffer
        self.array = buffer.memory[:size]
        self._unclaimed = own_bytes

    @classmethod
    def empty(cls, width: int) -> RowStack:
        """No rows yet."""
        return cls(_Buffer(np.empty((SPARE_ROWS, width)), 0), 0, 8 * SPARE_ROWS * width)

    @classmethod
    def holding(cls, rows: np.ndarray) -> RowStack:
        """The rows of an array, which is shared."""
        return cls(_Buffer(rows, len(rows)), len(rows), rows.nbytes)

    def claim(self) -> int:
        """Bytes that were taken for this stack, or for those it came from, since they were last claimed."""
        claimed, self._unclaimed = self._unclaimed, 0
        return claimed

    def appended(self, row: np.ndarray) -> RowStack:
        """With a row more."""
        size, own = len(self.array), self._unclaimed
        buffer = self._buffer
        if buffer.used > size or size == len(buffer.memory):
            buffer = _Buffer(np.empty((2 * size + SPARE_ROWS, len(row))), size)
            buffer.memory[:size], own = self.array, buffer.memory.nbytes
        buffer.memory[size] = row
        buffer.used = size + 1
        return RowStack(buffer, size + 1, own)

    def without(self, position: int, *, in_place: bool) -> RowStack:
        """Without one of the rows; ``in_place`` where this stack is not used again."""
        size, rows = len(self.array) - 1, self.array
        if in_place and self._buffer.used == size + 1:
            for later in range(position, size):
                rows[later] = rows[later + 1]
            self._buffer.used = size
            return RowStack(self._buffer, size, self._unclaimed)
        memory = np.empty((size + SPARE_ROWS, rows.shape[1]))
        memory[:position], memory[position:size] = rows[:position], rows[position + 1 :]
        return RowStack(_Buffer(memory, size), size, memory.nbytes)


def centred_target(y: np.ndarray, weights: np.ndarray, *, center: bool) -> tuple[float, np.ndarray]:
    """The weighted mean of ``y`` (zero without ``center``), and what is left of y without it."""
    if not center:
        return 0.0, y - 0.0
    mean = float(weights @ y)
    target = y - mean
    left = float(weights @ target)  # rounding of the mean
    target -= left
    return mean + left, target


def mean_square(target: np.ndarray, weights: np.ndarray) -> float:
    """The weighted mean of the squares, block by block: of many rows another array would take more than all else."""
    if len(target) <= WIDE_NUMBERS:
        return float(weights @ np.square(target))
    return sum(float(weights[rows] @ np.square(target[rows])) for rows in row_blocks(len(target), 1, WIDE_NUMBERS))


def ridge_penalty(design: Design, ridge: float, *, standardize: bool) -> np.ndarray:
    """The ridge in standardised coordinates, shape (d,): ``ridge / spread_j^2``, or ``ridge`` itself."""
    if not ridge:
        return np.zeros(design.n_features)
    if standardize:
        return np.where(design.usable, float(ridge), 0.0)
    penalty = np.zeros(design.n_features)
    with np.errstate(over="ignore"):
        np.divide(ridge, design.spread**2, out=penalty, where=design.usable)
    return penalty


@dataclass(frozen=True)
class LeastSquares:
    """``Q(w) = (1/2) sum_i v_i (x_i w + b - y_i)^2 + (ridge/2) |w|^2`` with b minimised out.

    With ``standardize`` the ridge is on standardised coefficients: ``(ridge/2) sum_j (spread_j w_j)^2``.

    Conventions
    -----------
    Coordinates are those of the standardised columns: ``z_j = spread_j w_j``. In them the Hessian has the diagonal
    ``1 + penalty_j`` (``curvature``) and the correlations of the columns elsewhere, whatever the units of the data.
    ``finish`` converts models to the user's units.
    """

    design: Design
    y: np.ndarray
    """Shape (n,); shared by the objectives of all folds and ridges."""
    center: bool
    intercept: float
    """The weighted mean of y; zero without an intercept."""
    ridge: float
    null_value: float
    """Q of the empty model."""
    slope: np.ndarray
    """Minus the gradient at the empty model, shape (d,)."""
    penalty: np.ndarray
    """The ridge in standardised coordinates, shape (d,)."""

    @classmethod
    def of(
        cls, design: Design, y: np.ndarray, *, ridge: float = 0.0, center: bool = True, standardize: bool = False
    ) -> LeastSquares:
        """The objective of a design and a target ``y`` of shape (n,)."""
        v = design.weights
        intercept, target = centred_target(y, v, center=center)
        value = 0.5 * mean_square(target, v)
        if value <= 0.5 * (CONSTANT_TARGET_BELOW * intercept) ** 2:
            target, value = np.zeros_like(target), 0.0
        penalty = ridge_penalty(design, ridge, standardize=standardize)
        return cls(design, y, center, intercept, ridge, value, design.correlate(target), penalty)

    @property
    def target(self) -> np.ndarray:
        """What is left of y without its mean, shape (n,): made when it is needed, which is rare."""
        if not self.null_value:
            return np.zeros(len(self.y))
        return centred_target(self.y, self.design.weights, center=self.center)[1]

    @property
    def curvature(self) -> np.ndarray:
        """Diagonal of the Hessian in standardised coordinates, shape (d,)."""
        return 1.0 + self.penalty

    @property
    def little_below(self) -> float:
        """Values below this one are of fits so close that only residuals computed from X are accurate enough."""
        return NEARLY_PERFECT * self.null_value

    def residual(self, support: Sequence[int], coef: np.ndarray) -> np.ndarray:
        """Target minus fit, shape (n,), computed from X."""
        residual = self.target
        for rows, block in self.design.blocks(support):
            residual[rows] -= block @ coef
        return residual

    def finish(self, snapshots: Sequence[Snapshot], gram: GramRows) -> list[Model]:
        """Models in the user's units.

        Snapshots are accurate up to the Gram matrix, which is enough for well conditioned models that do not fit nearly
        perfectly. The others are refined with residuals computed from X.
        """
        least = self.little_below
        # The Hessian's trace is about k, so k times its inverse's trace bounds its condition number.
        inaccurate = [
            position
            for position, one in enumerate(snapshots)
            if one.support
            and (one.value < least or len(one.support) * float(np.add.reduce(one.variance)) > WELL_CONDITIONED)
        ]
        if inaccurate:
            refined = self._refined([snapshots[position] for position in inaccurate], gram)
            changed = dict(zip(inaccurate, refined, strict=True))
            snapshots = [changed.get(position, one) for position, one in enumerate(snapshots)]
        return self._models(snapshots)

    def _models(self, snapshots: Sequence[Snapshot]) -> list[Model]:
        """Models from accurate coefficients, which lie one after the other here: all models are converted at once."""
        sizes = [len(one.support) for one in snapshots]
        owner = np.repeat(np.arange(len(sizes)), sizes)
        columns = np.array([column for one in snapshots for column in one.support], dtype=np.intp)
        order = np.lexsort((columns, owner))
        columns = columns[order]
        coef = np.concatenate([one.coef for one in snapshots])[order]
        variance = np.concatenate([one.variance for one in snapshots])[order]
        values = [one.value for one in snapshots]
        if len(columns) and not isinstance(self.design, ChunkedDesign):  # rows in chunks are not read again
            # Steps of a search keep values by sums; those that are reported are of the residuals.
            found = self._values_from_residuals(columns, coef, owner, len(sizes)).tolist()
            values = [new if size else old for new, old, size in zip(found, values, sizes, strict=True)]
        squares = coef * coef
        importance = 0.5 * squares / variance
        penalties = np.bincount(owner, self.penalty[columns] * squares, len(sizes))
        coef /= self.design.spread[columns]
        shifts = np.bincount(owner, self.design.mean[columns] * coef, len(sizes))
        models, end = [], 0
        for size, value, shift, penalty in zip(sizes, values, shifts.tolist(), penalties.tolist(), strict=True):
            own = slice(end, end := end + size)
            models.append(
                Model(
                    support=columns[own],
                    coef=coef[own],
                    intercept=self.intercept - shift,
                    objective=float(value),
                    importance=importance[own],
                    units=columns[own],
                    shrinkage=0.5 * penalty,
                )
            )
        return models

    def _refined(self, snapshots: list[Snapshot], gram: GramRows) -> list[Snapshot]:
        """Snapshots refined together: each round is one pass over the few columns they use.

        A Gram matrix's inverse with a gradient from true residuals (the corrected seminormal equations) gives the
        accuracy of a QR factorisation, and the value is then a sum of squares, not a difference.
        """
        used, positions = _columns_of(snapshots)
        hessian = gram.rows(used, used)
        hessian.flat[:: len(used) + 1] += self.penalty[used]
        inverses = [np.linalg.inv(hessian[position[:, None], position]) for position in positions]
        coef = _stacked([one.coef for one in snapshots], len(used), positions)
        for _ in range(MOST_REFINEMENTS):
            slope, value = self._slopes_from_residuals(used, coef)
            step = np.zeros_like(coef)
            for column, (position, inverse) in enumerate(zip(positions, inverses, strict=True)):
                step[position, column] = inverse @ slope[position, column]
            value -= 0.5 * np.einsum("ij,ij->j", slope, step)
            coef += step
            if np.all(np.abs(step).max(axis=0) <= REFINED_BELOW * np.abs(coef).max(axis=0)):
                break
        return [
            Snapshot(
                snapshot.support, coef[position, column], max(float(value[column]), 0.0), np.diag(inverses[column])
            )
            for column, (position, snapshot) in enumerate(zip(positions, snapshots, strict=True))
        ]

    def _values_from_residuals(
        self, columns: np.ndarray, coef: np.ndarray, owner: np.ndarray, n_models: int
    ) -> np.ndarray:
        """The values of models, from the coefficients of all of them on ``columns``; ``owner`` says whose each is."""
        used = np.array(sorted(set(columns.tolist())), dtype=np.intp)
        stacked = np.zeros((len(used), n_models))
        stacked[used.searchsorted(columns), owner] = coef
        target, weights = self.target, self.design.weights
        values = self.penalty[used] @ (stacked * stacked) if self.ridge else np.zeros(n_models)
        for rows, block in self.design.blocks(used):
            residual = target[rows, None] - block @ stacked
            residual *= residual
            values += weights[rows] @ residual
        return 0.5 * values

    def _slopes_from_residuals(self, used: np.ndarray, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Minus the gradient on the columns ``used``, and the value, for each column of ``coef``."""
        slope = -self.penalty[used, None] * coef
        value = 0.5 * self.penalty[used] @ coef**2
        target = self.target
        for rows, block in self.design.blocks(used):
            root = np.sqrt(self.design.weights[rows])[:, None]
            np.multiply(block, root, out=block)
            residual = root * target[rows, None] - block @ coef
            slope += block.T @ residual
            value += 0.5 * np.einsum("ij,ij->j", residual, residual)
        return slope, value


def _columns_of(snapshots: Sequence[Snapshot]) -> tuple[np.ndarray, list[np.ndarray]]:
    """All columns that models use, ascending, and the positions of each model's own among them."""
    used = sorted(set().union(*(one.support for one in snapshots)))
    place = {column: position for position, column in enumerate(used)}
    positions = [np.array([place[column] for column in one.support], dtype=np.intp) for one in snapshots]
    return np.array(used, dtype=np.intp), positions


def _stacked(parts: Sequence[np.ndarray], n_used: int, positions: Sequence[np.ndarray]) -> np.ndarray:
    """A number for each coefficient of each model, one model to a column, over the columns that are used."""
    stacked = np.zeros((n_used, len(parts)))
    for column, (position, part) in enumerate(zip(positions, parts, strict=True)):
        stacked[position, column] = part
    return stacked
