"""Objectives restricted to a few columns, and warm starts from similar sets of columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pauca.clock import check_time
from pauca.losses import Loss, Slopes
from pauca.objectives.merged_rows import Rows
from pauca.solvers.newton import Minimum


@dataclass(frozen=True, eq=False)
class WarmStart:
    """A start for the search of a minimum, and what is known there."""

    coef: np.ndarray
    """Shape (C, q), the intercept first."""
    scores: np.ndarray | None = None
    """Their scores, if they are known."""
    value: float | None = None
    """The value there, if it is known. Otherwise the start may be a bad one, and is compared with others."""
    hessian: np.ndarray | None = None
    """The Hessian among some coefficients, at a nearby point."""
    hessian_scores: np.ndarray | None = None
    """The scores of that point."""
    positions: np.ndarray | None = None
    """The positions of those coefficients."""
    basis: np.ndarray | None = None
    """Rows that may be at their kinks, of a piecewise linear loss: one line for every output."""
    unchanged: np.ndarray | None = None
    """Another start: the coefficients that stay after a removal, as they were, shape (C, q)."""

    @property
    def valued(self) -> bool:
        """Whether the value is known; a preview may have left the domain of the loss."""
        return self.value is not None and math.isfinite(self.value)

    def of_output(self, output: int) -> WarmStart:
        """The start for one of several outputs without a joint loss."""
        here = slice(output, output + 1)
        return replace(
            self,
            coef=self.coef[here],
            scores=None if self.scores is None else self.scores[here],
            value=None if self.value is None else self.value / len(self.coef),
            hessian=None if self.hessian is None else self.hessian[here],
            hessian_scores=None if self.hessian_scores is None else self.hessian_scores[here],
            basis=None if self.basis is None else self.basis[here],
            unchanged=None if self.unchanged is None else self.unchanged[here],
        )


def warm_start_near(
    minimum: Minimum,
    before: np.ndarray,
    features: np.ndarray,
    *,
    free: int,
    curved: bool,
    inverse: np.ndarray | None = None,
) -> WarmStart:
    """A start for the columns ``features`` from the minimum on the columns ``before``.

    Coefficients of added columns start at zero. Where columns are removed, the others change as in the quadratic around
    the minimum, if the loss is ``curved``: that of its Hessian or, where it has none, of an ``inverse`` Hessian.
    """
    positions, old = shared_positions(before, features, free)
    removed = np.zeros(0, dtype=np.intp)
    if len(old) < minimum.coef.shape[1]:
        removed = np.delete(np.arange(minimum.coef.shape[1]), old)
    coef = np.zeros((len(minimum.coef), free + len(features)))
    coef[:, positions] = minimum.coef[:, old]
    if not curved:
        return WarmStart(coef, basis=minimum.basis)
    if minimum.hessian is None:
        if not len(removed):
            return WarmStart(coef, minimum.scores, minimum.value)
        if inverse is None:
            return WarmStart(coef)
        moved = coef.copy()
        moved[:, positions] += _change_by_inverse(inverse, minimum.coef, old, removed)
        return WarmStart(moved, unchanged=coef)
    hessian, unchanged = _part(minimum.hessian, old, old, minimum.coef.shape), None
    if len(removed):
        unchanged = coef.copy()
        change = _change_after_removal(
            hessian, _part(minimum.hessian, old, removed, minimum.coef.shape), minimum.coef[:, removed]
        )
        coef[:, positions] += change.reshape(len(coef), -1)
    scores, value = (None, None) if len(removed) else (minimum.scores, minimum.value)
    return WarmStart(coef, scores, value, hessian, minimum.scores, positions, unchanged=unchanged)


def shared_positions(before: np.ndarray, features: np.ndarray, free: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the shared columns among the coefficients on ``features``, and among those on ``before``."""
    place = {j: i for i, j in enumerate(before.tolist(), free)}
    pairs = [(i, i) for i in range(free)]
    pairs += [(i, place[j]) for i, j in enumerate(features.tolist(), free) if j in place]
    new, old = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    return new, old


def _part(hessian: np.ndarray, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A part of every block of a Hessian, by positions within one output."""
    outputs, size = shape
    if len(hessian) < outputs:
        rows, columns = _of_outputs(rows, outputs, size), _of_outputs(columns, outputs, size)
    return hessian[:, rows[:, None], columns]


def _of_outputs(positions: np.ndarray, outputs: int, size: int) -> np.ndarray:
    """Positions within one output as positions of all outputs, one output after the other."""
    return (np.arange(outputs)[:, None] * size + positions).ravel()


def _change_after_removal(hessian: np.ndarray, across: np.ndarray, removed: np.ndarray) -> np.ndarray:
    """The change of the coefficients that stay when others are removed: ``H_kk^-1 H_kr w_r``."""
    gradient = across @ removed.reshape(len(hessian), -1, 1)
    try:
        return np.linalg.solve(hessian, gradient)[:, :, 0]
    except np.linalg.LinAlgError:
        return np.zeros(gradient.shape[:2])


def _change_by_inverse(inverse: np.ndarray, coef: np.ndarray, kept: np.ndarray, removed: np.ndarray) -> np.ndarray:
    """The same from an inverse Hessian A: ``-A_kr A_rr^-1 w_r``, shape (C, kept)."""
    outputs, size = coef.shape
    rest, gone = _of_outputs(kept, outputs, size), _of_outputs(removed, outputs, size)
    if len(gone) == 1 and inverse[gone[0], gone[0]]:
        weight = coef[0, removed] / inverse[gone[0], gone[0]]
        return -(inverse[rest[:, None], gone] @ weight)[None]
    try:
        weight = np.linalg.solve(inverse[gone[:, None], gone], coef[:, removed].ravel())
    except np.linalg.LinAlgError:
        return np.zeros((outputs, len(kept)))
    return -(inverse[rest[:, None], gone] @ weight).reshape(outputs, -1)


# Hessians are summed over blocks of rows of about so many numbers, which stay in the cache.
HESSIAN_NUMBERS = 1 << 18


class Restricted:
    """``sum_i v_i L(y_i, offset_i + coef z_i) + sum penalty coef^2 / 2`` over coefficients of shape (C, q).

    The derivatives of the loss at the last point are cached.

    Conventions
    -----------
    n rows, those of ``rows``, which may stand for several of the data each
    columns : (q, n), one column of Z to a row; an intercept is a column of ones without penalty
    scores  : (C, n)
    """

    def __init__(
        self,
        loss: Loss,
        rows: Rows,
        columns: np.ndarray,
        penalty: np.ndarray,
        *,
        bounds: tuple[np.ndarray, np.ndarray] | None = None,
        offset: np.ndarray | None = None,
    ) -> None:
        self._loss = loss
        self._rows = rows
        self._y = rows.y
        self._weights = rows.weights
        self._columns = columns
        self._penalty = penalty
        self._offset = offset
        self.lower: np.ndarray | None = None
        self.upper: np.ndarray | None = None
        if bounds is not None:
            self.lower, self.upper = bounds
        self.flat = loss.flat
        self.shared: np.ndarray | None = None
        self._slopes: Slopes | None = None
        self._at: np.ndarray | None = None
        self._derivative: np.ndarray | None = None
        self._constant_hessian: np.ndarray | None = None

    def with_loss(self, loss: Loss) -> Restricted:
        """The same objective with another loss."""
        bounds = None if self.lower is None or self.upper is None else (self.lower, self.upper)
        return Restricted(loss, self._rows, self._columns, self._penalty, bounds=bounds, offset=self._offset)

    def scores(self, coef: np.ndarray) -> np.ndarray:
        """The linear scores without the offset."""
        return coef @ self._columns

    def value(self, coef: np.ndarray, scores: np.ndarray) -> float:
        """Weighted mean loss and penalty; infinite where the loss overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            total = self._mean(self._loss.value(self._y, self._shifted(scores))) + self._ridge_term(coef)
        return np.inf if np.isnan(total) else total

    def gradient(self, coef: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """The gradient."""
        gradient = self._weighted_derivative(scores) @ self._columns.T
        gradient += self._penalty * coef
        return gradient

    def slope_along(self, coef: np.ndarray, scores: np.ndarray, step: np.ndarray, change: np.ndarray) -> float:
        """Derivative along a step of the coefficients that changes the scores by ``change``."""
        with np.errstate(over="ignore", invalid="ignore"):
            along = float(np.vdot(self._weighted_derivative(scores), change) + np.vdot(self._penalty * coef, step))
        return np.inf if np.isnan(along) else along

    def hessian(self, scores: np.ndarray, share: float) -> np.ndarray:
        """Blocks (C, q, q), or (1, C q, C q) for a joint loss.

        ``share`` times the broad curvature is added; infinity takes the broad curvature alone.
        """
        if self._loss.quadratic:
            if self._constant_hessian is None:
                one = weighted_gram(self._columns, self._weights) + np.diag(self._penalty)
                self._constant_hessian = np.broadcast_to(one, (len(scores), *one.shape))
            return self._constant_hessian
        curvature = self._slopes_at(scores).curvature
        shifted = self._shifted(scores)
        if share:
            broad = self._loss.broad_curvature(self._y, shifted, self._weights)
            curvature = broad if share == np.inf else curvature + share * broad
        blocks = np.stack([weighted_gram(self._columns, self._weights * row) for row in curvature])
        blocks += np.diag(self._penalty)
        shared = self._loss.row_coupling(shifted, self._columns)
        if shared is not None:
            blocks -= shared @ shared.T
        coupling = self._loss.coupling(self._slopes_at(scores).curvature)
        return blocks if coupling is None else self._coupled(blocks, coupling)

    def bordered(self, scores: np.ndarray, known: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """A Hessian whose block at ``positions`` is known from a nearby point; only the other rows are computed."""
        size = len(self._columns)
        if len(positions) == size:
            return known
        others = np.delete(np.arange(size), positions)
        curvature = self._slopes_at(scores).curvature
        coupling = self._loss.coupling(curvature)
        new = self._columns[others]
        image = self._loss.coupled_image(self._shifted(scores), new)
        parts = [new * (self._weights * row) for row in curvature]
        rows = np.stack([(part if image is None else part - image) @ self._columns.T for part in parts])
        rows[:, range(len(others)), others] += self._penalty[others]
        if coupling is not None:
            return self._bordered_jointly(known, positions, others, rows, coupling)
        whole = np.empty((len(known), size, size))
        whole[:, positions[:, None], positions] = known
        whole[:, others], whole[:, :, others] = rows, rows.transpose(0, 2, 1)
        return whole

    def _bordered_jointly(
        self, known: np.ndarray, positions: np.ndarray, others: np.ndarray, rows: np.ndarray, coupling: np.ndarray
    ) -> np.ndarray:
        """The single block of a joint loss, from the rows of each output."""
        outputs, size = len(coupling), len(self._columns)
        root = np.sqrt(self._weights)
        part = (coupling[:, None] * (self._columns * root)).reshape(outputs * size, -1)
        new, old = (_of_outputs(places, outputs, size) for places in (others, positions))
        across = -part[new] @ part.T
        across += np.tile(self._shared_by(outputs)[others], (outputs, outputs))
        for output in range(outputs):
            mine = slice(output * len(others), (output + 1) * len(others))
            across[mine, output * size : (output + 1) * size] += rows[output]
        whole = np.empty((outputs * size, outputs * size))
        whole[old[:, None], old] = known[0]
        whole[new], whole[:, new] = across, across.T
        return whole[None]

    def _coupled(self, blocks: np.ndarray, coupling: np.ndarray) -> np.ndarray:
        """The single block of a joint loss.

        Adding a constant to all scores of a row does not change the loss, so the Hessian is zero along coefficients
        that are equal for all outputs. The gradient has no component there either, so any positive curvature will do.
        """
        outputs, size, _ = blocks.shape
        whole = np.zeros((outputs * size, outputs * size))
        for rows in _row_blocks(self._columns, outputs):
            check_time()
            root = np.sqrt(self._weights[rows])
            part = (coupling[:, None, rows] * (self._columns[:, rows] * root)).reshape(outputs * size, len(root))
            whole -= part @ part.T
        whole += np.tile(self._shared_by(outputs), (outputs, outputs))
        for output in range(outputs):
            own = slice(output * size, (output + 1) * size)
            whole[own, own] += blocks[output]
        return whole[None]

    def _shared_by(self, outputs: int) -> np.ndarray:
        """What is added for each pair of outputs along what they share, shape (q, q)."""
        if self.shared is None:
            self.shared = weighted_gram(self._columns, self._weights) / outputs
        return self.shared

    def _slopes_at(self, scores: np.ndarray) -> Slopes:
        """Derivatives of the loss; those of the last point are cached."""
        if self._slopes is None or scores is not self._at:
            self._at, self._slopes = scores, self._loss.slopes(self._y, self._shifted(scores))
            self._derivative = None
        return self._slopes

    def _weighted_derivative(self, scores: np.ndarray) -> np.ndarray:
        """Weighted first derivatives of the loss; those of the last point are cached."""
        slopes = self._slopes_at(scores)
        if self._derivative is None:
            self._derivative = slopes.derivative * self._weights
        return self._derivative

    def _mean(self, losses: np.ndarray) -> float:
        return float(np.sum(losses @ self._weights))

    def _ridge_term(self, coef: np.ndarray) -> float:
        return 0.5 * float(np.sum(self._penalty * coef * coef))

    def _shifted(self, scores: np.ndarray) -> np.ndarray:
        return scores if self._offset is None else scores + self._offset


def weighted_gram(columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """``columns diag(weights) columns'``, shape (q, q)."""
    check_time()
    if columns.size <= HESSIAN_NUMBERS:
        part = columns * np.sqrt(weights)
        return np.asarray(part @ part.T)
    gram = np.zeros((len(columns), len(columns)))
    for rows in _row_blocks(columns, 1):
        check_time()
        part = columns[:, rows] * np.sqrt(weights[rows])
        gram += part @ part.T
    return gram


def _row_blocks(columns: np.ndarray, times: int) -> list[slice]:
    size, n_rows = columns.shape
    step = max(256, HESSIAN_NUMBERS // max(1, size * times))
    return [slice(start, start + step) for start in range(0, n_rows, step)]
