"""Newton's method for outputs that share a loss, without their Hessian: its products with steps are all it takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pauca.clock import check_time
from pauca.losses import Loss
from pauca.objectives.merged_rows import Rows
from pauca.objectives.newton_one_output import MOST_LEFT
from pauca.objectives.restricted import Restricted, weighted_gram
from pauca.solvers.factorisation import positive_inverse
from pauca.solvers.line_search import search_by_slope
from pauca.solvers.newton import MOST_STEPS, MOST_TRIALS, SMOOTH_RISE, SMOOTH_SLOPE, Accuracy, Minimum
from pauca.tolerances import DEPENDENT_BELOW, LINE_SEARCH_SLACK

# Conjugate gradients end when they leave no more than this share of the gradient, in the measure of the blocks: of
# steps that promise more than the share ROUGH_ABOVE of the value, and of the last ones, which have to be exact.
LEFT_BY_ROUGH, LEFT_BY_LAST = 0.1, 0.01
ROUGH_ABOVE = 1e-4

# What steps are preconditioned by is kept as long as no more products than this are needed; blocks of the Hessian cost
# about as much.
MOST_PRODUCTS_KEPT = 6

# The whole Hessian takes the place of its blocks where they needed more products than this share of the coefficients,
# which is about what it costs; of more coefficients than so many it is never computed. Classes that are nearly
# separable need hundreds of products with blocks (ten digits, 20 pixels: 390 a refit).
HESSIAN_COST_SHARE = 0.125
LARGEST_HESSIAN = 800

# Where so many products, or as many steps as the solver with Hessians may take, do not suffice, that takes over. Of
# classes that are all but separable a minimum may be a hundred steps away.
MOST_PRODUCTS = 200

# Rows without curvature change no product: all of them together add less than this share of the ridge. They are left
# out where no more than this share of all rows is left.
LEFT_OUT_BELOW = 1e-3
LEFT_OUT_ABOVE = 0.8

# Rows whose slopes differ by less than this share of the first, all of them together, between the two lengths that
# enclose a minimum along a step are not looked at again.
SETTLED_BELOW = 1e-6

# Blocks are inverted together as long as that takes about so many operations; the clock is read between.
INVERTED_WORK = 1 << 24


class _Point(NamedTuple):
    """Where a step has led, and the derivatives there."""

    length: float
    coef: np.ndarray
    scores: np.ndarray
    gradient: np.ndarray
    derivative: np.ndarray
    """Of every row's loss in its scores, shape (C, G)."""
    curvature: np.ndarray
    """The diagonal of the Hessian of every row's loss, shape (C, G)."""


class BentRows(NamedTuple):
    """The rows whose curvature matters at a point: products with the Hessian are those of these rows."""

    columns: np.ndarray
    weights: np.ndarray
    curvature: np.ndarray
    coupling: np.ndarray


class JointOutputs:
    """``sum_i v_i L(y_i, coef z_i) + sum penalty coef^2 / 2`` over coefficients of shape (C, q).

    The Hessian of a row is ``diag(h) - u u'``, so that its product with a step costs as much as a gradient, where the
    Hessian itself costs C q times as much.

    Conventions
    -----------
    scores, curvature : (C, G); columns : (q, G); penalty : (q,), the same for all outputs
    """

    def __init__(self, loss: Loss, rows: Rows, columns: np.ndarray, penalty: np.ndarray) -> None:
        self._loss, self._y, self._weights, self._columns, self._penalty = loss, rows.y, rows.weights, columns, penalty
        self._rows = rows
        self._inverse: np.ndarray | None = None
        """What steps are preconditioned by: the inverse Hessian, (1, C q, C q), or that of its blocks, (C, q, q)."""
        self._products = 0
        self._shared: np.ndarray | None = None

    def minimise(
        self,
        start: np.ndarray,
        scores: np.ndarray | None,
        about: float,
        accuracy: Accuracy,
        hessian: np.ndarray | None = None,
    ) -> Minimum | None:
        """The minimum from a start, as in ``pauca.solvers.newton``; None where the steps lead nowhere.

        ``scores`` are those of the start, if they are known; ``about`` is a value that is hardly above that of the
        minimum; ``hessian`` is one of a point nearby, shape (C q, C q).
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            try:
                self._inverse = None if hessian is None else positive_inverse(hessian[None])
                return self._minimise(start, scores, about, accuracy)
            except np.linalg.LinAlgError:
                return None

    def scores(self, coef: np.ndarray) -> np.ndarray:
        """The linear scores, shape (C, G)."""
        return coef @ self._columns

    def value(self, coef: np.ndarray, scores: np.ndarray) -> float:
        """Weighted mean loss and penalty."""
        loss = float(np.sum(self._loss.value(self._y, scores) @ self._weights))
        return loss + 0.5 * float(np.sum(self._penalty * coef * coef))

    def _minimise(
        self, start: np.ndarray, scores: np.ndarray | None, about: float, accuracy: Accuracy
    ) -> Minimum | None:
        at = self._point(1.0, start, start @ self._columns if scores is None else scores)
        enough = max(accuracy.within, LINE_SEARCH_SLACK)
        most = min(accuracy.most_steps, MOST_STEPS)
        predicted, before = 0.0, np.inf
        for taken in range(most + 1):
            direction = self._direction(at, about)
            if direction is None:
                return None
            step, predicted = direction
            if taken == most:
                break
            if accuracy.unless_above < np.inf:
                value = self.value(at.coef, at.scores)
                if value - MOST_LEFT * max(predicted, before - value) > accuracy.unless_above:
                    return self._ended(at.coef, predicted)
                before = value
            nothing_left = predicted <= LINE_SEARCH_SLACK * about
            found = at if nothing_left else self._search(at, step, predicted)
            if (nothing_left or found.length == 1.0) and predicted <= enough * about:
                ended = self._ended(found.coef)
                # The value may be far below what was known of it.
                if predicted <= enough * ended.value:
                    return ended
                about = ended.value
            if nothing_left or not found.length:
                return None
            at = found
        return self._ended(at.coef, predicted) if most == accuracy.most_steps else None

    def _point(self, length: float, coef: np.ndarray, scores: np.ndarray) -> _Point:
        derivative, curvature = self._loss.slopes(self._y, scores)
        gradient = (derivative * self._weights) @ self._columns.T
        gradient += self._penalty * coef
        return _Point(length, coef, scores, gradient, derivative, curvature)

    def _direction(self, at: _Point, about: float) -> tuple[np.ndarray, float] | None:
        """About the Newton step, by conjugate gradients (Hestenes and Stiefel 1952), and its predicted decrease."""
        bent, rows = self._bent(at)
        if self._inverse is None:
            self._inverse = self._inverse_blocks(bent)
        elif self._products > MOST_PRODUCTS_KEPT:
            worth = len(self._inverse) == 1 or self._products > HESSIAN_COST_SHARE * at.coef.size
            whole = worth and at.coef.size <= LARGEST_HESSIAN
            self._inverse = self._inverse_hessian(at, bent, rows) if whole else self._inverse_blocks(bent)
        step, left = np.zeros_like(at.coef), -at.gradient
        towards = self._preconditioned(left)
        length = first = float(np.vdot(left, towards))
        if not 0 <= first < np.inf:
            return None
        share = LEFT_BY_ROUGH if 0.5 * first > ROUGH_ABOVE * about else LEFT_BY_LAST
        along = towards
        for self._products in range(1, MOST_PRODUCTS):
            check_time()
            product = self._product(along, bent)
            curved = float(np.vdot(along, product))
            if not curved > 0:
                break
            step += (length / curved) * along
            left = left - (length / curved) * product
            towards = self._preconditioned(left)
            length, before = float(np.vdot(left, towards)), length
            if not length > share * share * first:
                break
            along = towards + (length / before) * along
        else:
            return None
        # What all outputs share changes no loss of a row.
        step -= step.mean(axis=0)
        predicted = -0.5 * float(np.vdot(at.gradient, step))
        return (step, predicted) if 0 <= predicted < np.inf else None

    def _bent(self, at: _Point) -> tuple[BentRows, np.ndarray | slice]:
        """The rows whose curvature matters, and which these are."""
        coupling = self._loss.coupling(at.curvature)
        assert coupling is not None
        ridge = self._penalty[self._penalty > 0].min(initial=np.inf)
        total = (at.curvature.sum(axis=0) - np.einsum("cn,cn->n", coupling, coupling)) * self._weights
        rows = np.flatnonzero(total > LEFT_OUT_BELOW * ridge / len(total)) if ridge < np.inf else np.arange(len(total))
        if not 0 < len(rows) <= LEFT_OUT_ABOVE * len(total):
            return BentRows(self._columns, self._weights, at.curvature, coupling), slice(None)
        columns, weights = self._columns.take(rows, axis=1), self._weights[rows]
        return BentRows(columns, weights, at.curvature.take(rows, axis=1), coupling.take(rows, axis=1)), rows

    def _product(self, step: np.ndarray, bent: BentRows) -> np.ndarray:
        """The Hessian times a step of the coefficients."""
        change = step @ bent.columns
        across = np.einsum("cn,cn->n", bent.coupling, change)
        change *= bent.curvature
        change -= bent.coupling * across
        change *= bent.weights
        product = change @ bent.columns.T
        product += self._penalty * step
        return np.asarray(product)

    def _inverse_blocks(self, bent: BentRows) -> np.ndarray:
        """Inverses of the Hessian's blocks of every output, shape (C, q, q)."""
        own = (bent.curvature - bent.coupling * bent.coupling) * bent.weights
        size = len(bent.columns)
        blocks = np.empty((len(own), size, size))
        for row, block in zip(own, blocks, strict=True):
            check_time()
            np.matmul(bent.columns * row, bent.columns.T, out=block)
        diagonal = np.einsum("cii->ci", blocks)
        diagonal += self._penalty
        # Outputs whose rows are all certain have no curvature; any positive one will do for a start.
        diagonal += DEPENDENT_BELOW * diagonal.max(axis=1, keepdims=True) + np.finfo(float).tiny
        at_once = max(1, INVERTED_WORK // size**3)
        for first in range(0, len(blocks), at_once):
            check_time()
            some = slice(first, first + at_once)
            blocks[some] = np.linalg.inv(blocks[some])
        return blocks

    def _inverse_hessian(self, at: _Point, bent: BentRows, rows: np.ndarray | slice) -> np.ndarray:
        """The inverse of the whole Hessian, shape (1, C q, C q)."""
        there = Rows(self._y[rows], bent.weights)
        restricted = Restricted(self._loss, there, bent.columns, self._penalty)
        # What all outputs share, along which there is no curvature, is that of all rows.
        if self._shared is None:
            self._shared = weighted_gram(self._columns, self._weights) / len(at.coef)
        restricted.shared = self._shared
        hessian = restricted.hessian(at.scores[:, rows], 0.0)
        diagonal = np.einsum("cii->ci", hessian)
        diagonal += DEPENDENT_BELOW * diagonal
        return np.linalg.inv(hessian)

    def _preconditioned(self, right: np.ndarray) -> np.ndarray:
        assert self._inverse is not None
        blocks = right.reshape(len(self._inverse), -1, 1)
        return np.matmul(self._inverse, blocks).reshape(right.shape)

    def _search(self, at: _Point, step: np.ndarray, predicted: float) -> _Point:
        """All the way along the step if the slope there is small enough, else to where it is."""
        change = step @ self._columns
        end = self._reached(at, step, change, 1.0)
        slope = float(np.vdot(end.gradient, step))
        if -2.0 * SMOOTH_SLOPE * predicted <= slope <= 2.0 * SMOOTH_RISE * predicted:
            return end
        ridge = float(np.sum(self._penalty * at.coef * step)), float(np.sum(self._penalty * step * step))
        line = Line(self._loss, self._rows, at, change, ridge, SETTLED_BELOW * predicted)
        line.take(end.derivative, slope)

        def end_of(length: float) -> tuple[float, float]:
            return (slope if length == 1.0 else line.slope(length)), length

        length = search_by_slope(end_of, predicted, fall=SMOOTH_SLOPE, rise=SMOOTH_RISE, most_trials=MOST_TRIALS)
        return at._replace(length=0.0) if length is None else self._reached(at, step, change, length)

    def _reached(self, at: _Point, step: np.ndarray, change: np.ndarray, length: float) -> _Point:
        return self._point(length, at.coef + length * step, at.scores + length * change)

    def _ended(self, coef: np.ndarray, predicted: float | None = None) -> Minimum:
        """The minimum at some coefficients, its scores computed afresh: those of the steps have drifted."""
        scores = coef @ self._columns
        value = self.value(coef, scores)
        left = 0.0 if predicted is None else min(predicted, 0.5 * value)
        return Minimum(coef, scores, value, None, predicted is None, left)


class Line:
    """Slopes along a step.

    As the loss is convex, the slope of every row rises along it: rows whose slopes are the same at two lengths have it
    everywhere between them, and are looked at no more.
    """

    def __init__(
        self, loss: Loss, rows: Rows, at: _Point, change: np.ndarray, ridge: tuple[float, float], negligible: float
    ) -> None:
        self._loss, self._y, self._weights, self._scores, self._change = loss, rows.y, rows.weights, at.scores, change
        self._constant, self._rising = ridge
        """What the slope is beside that of the open rows, at the start of the step, and how fast it rises."""
        self._settled_below = negligible / len(rows.weights)
        self._low: np.ndarray = self._slopes(at.derivative)
        self._high: np.ndarray | None = None

    def slope(self, length: float) -> float:
        """The slope at some length."""
        derivative = self._loss.derivative(self._y, self._scores + length * self._change)
        slopes = self._slopes(derivative)
        total = self._constant + length * self._rising + float(np.sum(slopes))
        self._narrow(slopes, total)
        return total

    def take(self, derivative: np.ndarray, total: float) -> None:
        """Take in the derivatives of all rows at a length where the slope is ``total``."""
        self._narrow(self._slopes(derivative), total)

    @property
    def open_rows(self) -> int:
        """How many rows are still looked at."""
        return len(self._weights)

    def _slopes(self, derivative: np.ndarray) -> np.ndarray:
        return np.einsum("cn,cn->n", derivative, self._change) * self._weights

    def _narrow(self, slopes: np.ndarray, total: float) -> None:
        """The slopes of the open rows on the side where the slope is ``total``; rows that have settled are closed."""
        if total < 0:
            self._low = slopes
        else:  # also where it has overflowed
            self._high = slopes
        if self._high is None:
            return
        open_ = ~(self._high - self._low <= self._settled_below)
        if np.count_nonzero(open_) > LEFT_OUT_ABOVE * len(open_):
            return
        self._constant += float(np.sum(self._low[~open_]))
        self._y, self._weights, self._low, self._high = (
            part[open_] for part in (self._y, self._weights, self._low, self._high)
        )
        self._scores, self._change = self._scores[:, open_], self._change[:, open_]
