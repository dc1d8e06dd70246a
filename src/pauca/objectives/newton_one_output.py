"""Newton's method for models of one output without bounds, in few calls: small refits take as long as their calls."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pauca.compiled import plain
from pauca.losses import Loss
from pauca.losses.compiled_curves import GivenRows, LossKernels
from pauca.objectives.restricted import weighted_gram
from pauca.solvers.line_search import search_by_slope
from pauca.solvers.newton import CORRECTED_BELOW, MOST_TRIALS, SMOOTH_RISE, SMOOTH_SLOPE, Accuracy, Minimum
from pauca.tolerances import LINE_SEARCH_SLACK

# Hessians of no more multiplications than this take no longer than the further steps that an old one would need.
CHEAP_HESSIAN = 1 << 19

# Where so many steps do not suffice, the general solver takes over, which has further means.
MOST_STEPS = 60

# What is left to gain is taken to be at most so many times what the next step predicts. Of 386 refits of swaps on seven
# tables (words, spam, amounts, ordered classes and others) it was at most 2.2 times the first prediction, but for spam:
# there at most 6.2 times. Of 1,900 steps of refits of ten digits it was above 5 times the prediction at 4 %, most of
# them on the way to infinity, where the gain of the last step, which counts there too, was no smaller.
MOST_LEFT = 8.0

# Compiled refits are not to be interrupted, and of more numbers than this BLAS computes their products as fast. Systems
# of more columns LAPACK solves in less time: text to 200 words took longer with kernels than without.
MOST_NUMBERS = 1 << 19
MOST_COLUMNS = 64

REFITS = LossKernels("pauca.objectives.newton_kernels", "minimise")


def has_cheap_hessian(loss: Loss, size: int, n_rows: int) -> bool:
    """Whether the Hessian of a model of one output is computed at every step, so that none is handed on."""
    # Without kernels the Hessian of rows that are coupled takes sums over risk sets, or classes, of every column.
    return size * size * n_rows <= CHEAP_HESSIAN and (not loss.coupled or loss.compiled_rows() is not None)


def given_refits(
    loss: Loss, y: np.ndarray, weights: np.ndarray, columns: np.ndarray, scores: np.ndarray, count: int = 1
) -> GivenRows | None:
    """What compiled refits, of which there are ``count`` on these rows, are given; None where NumPy's are made."""
    if not 0 < len(columns) <= MOST_COLUMNS or columns.size > MOST_NUMBERS:
        return None
    return REFITS.given(loss, y, weights, columns, scores, instead_of=count * len(y), calls=count)


class _Point(NamedTuple):
    """Where a step has led, and the derivatives there."""

    length: float
    coef: np.ndarray
    scores: np.ndarray
    gradient: np.ndarray
    curvature: np.ndarray
    """Of the loss of every row, shape (G,)."""


class OneOutput:
    """``sum_i v_i L(y_i, coef z_i) + sum penalty coef^2 / 2`` over coefficients of shape (q,).

    Conventions
    -----------
    y, weights, scores : (G,); columns : (q, G), an intercept is a column of ones; penalty : (q,)
    """

    def __init__(
        self, loss: Loss, y: np.ndarray, weights: np.ndarray, columns: np.ndarray, penalty: np.ndarray
    ) -> None:
        self._loss, self._y, self._weights, self._columns, self._penalty = loss, y, weights, columns, penalty
        self.cheap = has_cheap_hessian(loss, *columns.shape)
        """Whether Hessians are computed at every step."""

    def minimise(
        self, start: np.ndarray, scores: np.ndarray | None, hessian: np.ndarray | None, about: float, accuracy: Accuracy
    ) -> Minimum | None:
        """The minimum from a start, as in ``pauca.solvers.newton``; None where the steps lead nowhere.

        Start and ``scores`` have one row. What is not known may be None: ``scores`` are those of the start, ``hessian``
        is one of a point nearby. ``about`` is the value of the start.
        """
        here = start[0] @ self._columns if scores is None else scores[0]
        hessian = None if self.cheap else hessian
        given = given_refits(self._loss, self._y, self._weights, self._columns, here)
        if given is not None:
            found = self._compiled(given, start[0], hessian, about, accuracy)
            if given.kept():
                return found
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            try:
                return self._minimise(start[0], here, hessian, about, accuracy)
            except np.linalg.LinAlgError:
                return None

    def _compiled(
        self, given: GivenRows, start: np.ndarray, hessian: np.ndarray | None, about: float, accuracy: Accuracy
    ) -> Minimum | None:
        """The same by a compiled kernel."""
        coef, scores, found = np.array(start), np.array(given.data.scores), np.empty(2)
        known = hessian is not None
        about_hessian = np.array(hessian) if known else np.empty((len(coef), len(coef)))
        ended = given.kernels.minimise(
            given.data,
            plain(self._penalty),
            coef,
            scores,
            about_hessian,
            known,
            self.cheap,
            float(about),
            float(accuracy.within),
            accuracy.most_steps,
            MOST_STEPS,
            accuracy.renewed,
            float(accuracy.unless_above),
            found,
        )
        if ended == given.kernels.NOWHERE:
            return None
        at_minimum = ended == given.kernels.AT_MINIMUM
        value, left = found.tolist()
        at = coef[None], given.of_data(scores)[None], value, about_hessian[None], at_minimum, left
        return Minimum(*at, exactly=at_minimum and self.cheap)

    def _minimise(
        self, start: np.ndarray, scores: np.ndarray, hessian: np.ndarray | None, about: float, accuracy: Accuracy
    ) -> Minimum | None:
        at = self._point(1.0, start, scores)
        before, most = np.inf, min(accuracy.most_steps, MOST_STEPS)
        for taken in range(most + 1):
            exact = hessian is None
            if hessian is not None:
                step, predicted = _direction(hessian, at.gradient)
                exact = not 0 <= predicted <= (CORRECTED_BELOW * before if accuracy.renewed else np.inf)
            if hessian is None or exact:
                hessian = self._hessian(at.scores, at.curvature)
                step, predicted = _direction(hessian, at.gradient)
            if not 0 <= predicted < np.inf:
                return None
            if taken == most:
                break
            if accuracy.unless_above < np.inf:
                value = self._value(at.coef, at.scores) if taken else about
                if value - MOST_LEFT * predicted > accuracy.unless_above:
                    left = min(predicted, 0.5 * value)
                    return Minimum(at.coef[None], at.scores[None], value, hessian[None], False, left)
            nothing_left = predicted <= LINE_SEARCH_SLACK * about
            found = at if nothing_left else self._search(at, step, predicted)
            enough = max(accuracy.within if exact else CORRECTED_BELOW * accuracy.within, LINE_SEARCH_SLACK)
            if (nothing_left or found.length == 1.0) and predicted <= enough * about:
                ended = self._ended(found.coef, hessian)
                # The value may be far below what was known of it.
                if predicted <= enough * ended.value:
                    return ended
                about = ended.value
            if nothing_left or not found.length:
                return None
            keep = not self.cheap and (found.length == 1.0 or not accuracy.renewed)
            change = found.coef - at.coef, found.gradient - at.gradient
            hessian, at, before = _corrected(hessian, *change) if keep else None, found, predicted
        assert hessian is not None
        return self._ended(at.coef, hessian, predicted) if most == accuracy.most_steps else None

    def hessian(self, scores: np.ndarray) -> np.ndarray:
        """The Hessian at scores of shape (1, G), as one block."""
        return self._hessian(scores[0], self._loss.curvature(self._y, scores[0]))[None]

    def scores(self, coef: np.ndarray) -> np.ndarray:
        """The linear scores, shape (1, G)."""
        return coef @ self._columns

    def value(self, coef: np.ndarray, scores: np.ndarray) -> float:
        """Weighted mean loss and penalty, for coefficients of shape (1, q); not a number where the loss overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._value(coef[0], scores[0])

    def _value(self, coef: np.ndarray, scores: np.ndarray) -> float:
        return float(self._weights @ self._loss.value(self._y, scores)) + 0.5 * float(self._penalty @ (coef * coef))

    def _point(self, length: float, coef: np.ndarray, scores: np.ndarray) -> _Point:
        derivative, curvature = self._loss.slopes(self._y, scores)
        gradient = self._columns @ (self._weights * derivative)
        gradient += self._penalty * coef
        return _Point(length, coef, scores, gradient, curvature)

    def _hessian(self, scores: np.ndarray, curvature: np.ndarray) -> np.ndarray:
        hessian = weighted_gram(self._columns, self._weights * curvature)
        hessian.flat[:: len(hessian) + 1] += self._penalty
        shared = self._loss.row_coupling(scores, self._columns)
        if shared is not None:
            hessian -= shared @ shared.T
        return hessian

    def _search(self, at: _Point, step: np.ndarray, predicted: float) -> _Point:
        """All the way along the step if the slope there is small enough, else to where it is."""
        change = step @ self._columns

        def end_of(length: float) -> tuple[float, _Point]:
            there = self._point(length, at.coef + length * step, at.scores + length * change)
            return float(there.gradient @ step), there

        found = search_by_slope(end_of, predicted, fall=SMOOTH_SLOPE, rise=SMOOTH_RISE, most_trials=MOST_TRIALS)
        return at._replace(length=0.0) if found is None else found

    def _ended(self, coef: np.ndarray, hessian: np.ndarray, predicted: float | None = None) -> Minimum:
        """The minimum at some coefficients, its scores computed afresh: those of the steps have drifted."""
        scores = coef @ self._columns
        value = self._value(coef, scores)
        if predicted is not None:
            return Minimum(coef[None], scores[None], value, hessian[None], False, min(predicted, 0.5 * value))
        if self.cheap:
            hessian = self._hessian(scores, self._loss.curvature(self._y, scores))
        return Minimum(coef[None], scores[None], value, hessian[None], exactly=self.cheap)


def _direction(hessian: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, float]:
    """The Newton step, and the predicted decrease of the value."""
    step = np.linalg.solve(hessian, -gradient)
    return step, -0.5 * float(gradient @ step)


def _corrected(hessian: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The Hessian corrected by how the gradient has changed along a step (Broyden, Fletcher, Goldfarb, Shanno)."""
    image = hessian @ s
    measured, assumed = float(s @ y), float(s @ image)
    if not (measured > 0 and assumed > 0):
        return hessian
    return hessian + np.outer(y, y / measured) - np.outer(image, image / assumed)
