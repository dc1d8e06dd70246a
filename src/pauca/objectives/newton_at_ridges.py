"""Newton's method for one small problem at several ridges at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pauca.clock import check_time
from pauca.compiled import plain
from pauca.losses import Loss, Slopes
from pauca.objectives.newton_one_output import given_refits
from pauca.solvers.newton import EXACT
from pauca.solvers.quasi_newton import correct_inverses

# Weighted columns of all ridges are gathered in blocks of about this many numbers, which stay in the cache.
BLOCK_NUMBERS = 1 << 18

# Losses of several rows at once are computed of rows up to this length: of longer ones that takes up to five times as
# long as one by one.
SHORT_ROWS = 1 << 12

MOST_STEPS = 50
MOST_HALVINGS = 30

# Hessians of no more multiplications than this, all ridges together, are computed at every step: the further steps that
# old ones need would take longer.
CHEAP_HESSIANS = 1 << 19

# Others are kept as long as each step leaves no more than this share of what the one before predicted: of many rows
# new Hessians cost as much as a step or two.
KEEP_HESSIAN_BELOW = 0.01

# A step with an old Hessian may be predicted to gain so much less than there is to gain.
LEFT_BY_OLD = 1e-2

# After a step that is predicted to take away more than this share of the value it is computed anew: where classes are
# separated it falls to next to nothing, and the first one says nothing of how accurate the minimum is.
LARGE_DECREASE = 0.1

# A step is halved as long as the slope at its end is above this share of what it was: convex functions fall until then.
LARGEST_RISE = 0.25

# Keeps Hessians of dependent columns invertible.
DAMPING = 1e-12


@dataclass(frozen=True, eq=False)
class RidgeMinima:
    """Minima of one problem at several ridges."""

    coef: np.ndarray
    """Shape (R, q)."""
    hessian: np.ndarray
    """About the Hessians there, shape (R, q, q)."""
    value: np.ndarray | None
    """About the values there, shape (R,), where they were needed."""


@dataclass(frozen=True, eq=False)
class NearbyHessians:
    """Hessians of a problem that has some of the columns, at about the start: what is missing is computed there."""

    hessian: np.ndarray
    """Shape (R, s, s)."""
    positions: np.ndarray
    """Where these columns are among those of the problem, shape (s,)."""


def minimise_at_ridges(
    loss: Loss,
    y: np.ndarray,
    weights: np.ndarray,
    columns: np.ndarray,
    penalty: np.ndarray,
    start: np.ndarray,
    within: float,
    nearby: NearbyHessians | None = None,
    about: np.ndarray | None = None,
) -> RidgeMinima | None:
    """Minima of ``sum_i v_i L(y_i, coef z_i) + sum penalty coef^2 / 2`` for several penalties, one to a row.

    Every step of every row is a product of matrices that all rows share, so that R ridges cost little more than one.

    Parameters
    ----------
    y, weights : shape (G,)
    columns : shape (q, G)
    penalty, start : shape (R, q)
    within : the last step is predicted to gain at most about this share of the value
    nearby : Hessians to begin with
    about : the values that the minima may have, shape (R,)

    Returns
    -------
    RidgeMinima, or None where some row does not converge
    """
    problem = _Batch(loss, y, weights, columns)
    cheap = problem.has_cheap_hessians(len(start))
    coef, scores = start.copy(), start @ columns
    given = None if loss.coupled else given_refits(loss, y, weights, columns, scores[0], len(start))
    if given is not None:
        # One after the other: minima agree with those of steps at all ridges together within the tolerance of both.
        hessian, limits = np.empty((len(coef), len(columns), len(columns))), (EXACT.most_steps, MOST_STEPS)
        found = given.kernels.minimise_each(given.data, plain(penalty), coef, hessian, cheap, float(within), *limits)
        return RidgeMinima(coef, hessian, None) if found else None
    directions = _Directions(problem, len(coef), nearby)
    open_ = np.arange(len(coef))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        value = problem.values(coef, scores, penalty) if about is None else about.copy()
        slopes = problem.slopes(scores)
        for _ in range(MOST_STEPS):
            check_time()
            step, predicted, left = directions.next(open_, slopes, coef[open_], scores, penalty[open_])
            if not np.isfinite(predicted).all():
                return None
            last = left <= within * value[open_]
            if last.any():  # these steps are taken as they are
                coef[open_[last]] += step[last]
                if last.all():
                    return RidgeMinima(coef, directions.hessian, value)
                on = ~last
                open_, scores, step, predicted = open_[on], scores[on], step[on], predicted[on]
            moved = problem.search(coef[open_], scores, penalty[open_], step, predicted)
            if moved is None:
                return None
            coef[open_], scores, slopes = moved
            fallen = predicted > LARGE_DECREASE * value[open_]
            if fallen.any():
                some = open_[fallen]
                value[some] = problem.values(coef[some], scores[fallen], penalty[some])
    return None


class _Directions:
    """Newton steps of several rows; Hessians are kept, and corrected by the steps, as long as they lead on."""

    def __init__(self, problem: _Batch, n_rows: int, nearby: NearbyHessians | None) -> None:
        size = problem.size
        self._cheap = problem.has_cheap_hessians(n_rows)
        self._problem, self._nearby = problem, None if self._cheap else nearby
        self.hessian = np.zeros((n_rows, size, size))
        """The Hessians that the steps were made with."""
        self._inverse = np.zeros((n_rows, size, size))
        self._predicted = np.full(n_rows, -np.inf if self._nearby is None else np.inf)
        """What the last steps predicted; minus infinity where there is no Hessian yet, infinity where it is nearby."""
        self._coef, self._gradient = np.zeros((n_rows, size)), np.full((n_rows, size), np.nan)
        """Where the last steps began; not numbers before the first."""

    def next(
        self, rows: np.ndarray, slopes: Slopes, coef: np.ndarray, scores: np.ndarray, penalty: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The steps of some rows, their predicted decreases, and the same by which they are judged to be the last.

        What is predicted is not a number where there is no step.
        """
        problem = self._problem
        gradient = problem.gradients(slopes, coef, penalty)
        try:
            if self._cheap:
                self.hessian[rows] = hessian = problem.hessians(slopes, scores, penalty)
                step = -np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
                predicted = -0.5 * np.vecdot(gradient, step)
                return step, predicted, predicted
            if self._nearby is not None:
                self._renew(rows, problem.bordered(slopes, scores, penalty, self._nearby))
                self._nearby = None
            self._correct(rows, coef, gradient)
            step, predicted = self._along(rows, gradient)
            before = self._predicted[rows]
            # What this step leaves is about the share of it that the last one has left.
            share = np.where(before < np.inf, predicted / before, 1.0)
            left = predicted / LEFT_BY_OLD * np.minimum(1.0, share)
            old = ~((predicted > 0) & (predicted <= KEEP_HESSIAN_BELOW * before))
            if old.any():
                some = Slopes(slopes.derivative[old], slopes.curvature[old])
                self._renew(rows[old], problem.hessians(some, scores[old], penalty[old]))
                step[old], predicted[old] = self._along(rows[old], gradient[old])
                left[old] = predicted[old]
        except np.linalg.LinAlgError:
            return gradient, np.full(len(coef), np.nan), np.zeros(len(coef))
        self._predicted[rows] = predicted
        return step, predicted, left

    def _correct(self, rows: np.ndarray, coef: np.ndarray, gradient: np.ndarray) -> None:
        """Broyden, Fletcher, Goldfarb and Shanno's correction of inverses by the last steps."""
        s, y = coef - self._coef[rows], gradient - self._gradient[rows]
        self._coef[rows], self._gradient[rows] = coef, gradient
        known = np.flatnonzero(np.isfinite(y).all(axis=1))
        inverse = self._inverse[rows[known]]
        correct_inverses(inverse, s[known], y[known])
        self._inverse[rows[known]] = inverse

    def _renew(self, rows: np.ndarray, hessian: np.ndarray) -> None:
        self.hessian[rows], self._inverse[rows] = hessian, np.linalg.inv(hessian)

    def _along(self, rows: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        step = -(self._inverse[rows] @ gradient[:, :, None])[:, :, 0]
        return step, -0.5 * np.vecdot(gradient, step)


class _Batch:
    """Values and derivatives of one problem at several coefficients, one to a row."""

    def __init__(self, loss: Loss, y: np.ndarray, weights: np.ndarray, columns: np.ndarray) -> None:
        self._loss, self._y, self._weights, self._columns = loss, y, weights, columns
        self.size = len(columns)

    def has_cheap_hessians(self, n_rows: int) -> bool:
        """Whether the Hessians of all rows are computed at every step."""
        cheap = n_rows * self.size**2 * len(self._y) <= CHEAP_HESSIANS
        # Those of coupled rows take sums over all columns.
        return cheap and not self._loss.coupled

    def values(self, coef: np.ndarray, scores: np.ndarray, penalty: np.ndarray) -> np.ndarray:
        """Shape (R,)."""
        found = 0.5 * np.vecdot(penalty * coef, coef)
        for some in self._parts(len(scores)):
            losses = self._loss.value(np.broadcast_to(self._y, scores[some].shape), scores[some])
            found[some] += losses @ self._weights
        return found

    def slopes(self, scores: np.ndarray) -> Slopes:
        """First and second derivatives of the weighted losses, shape (R, G) each."""
        found = Slopes(np.empty(scores.shape), np.empty(scores.shape))
        for some in self._parts(len(scores)):
            parts = self._loss.slopes(np.broadcast_to(self._y, scores[some].shape), scores[some])
            for whole, part in zip(found, parts, strict=True):
                np.multiply(part, self._weights, out=whole[some])
        return found

    def _parts(self, n_rows: int) -> list[slice]:
        """All rows at once where they are few, else each by itself: larger arrays leave the cache."""
        return [slice(None)] if len(self._y) <= SHORT_ROWS else [slice(row, row + 1) for row in range(n_rows)]

    def gradients(self, slopes: Slopes, coef: np.ndarray, penalty: np.ndarray) -> np.ndarray:
        """Shape (R, q)."""
        return slopes.derivative @ self._columns.T + penalty * coef

    def hessians(self, slopes: Slopes, scores: np.ndarray, penalty: np.ndarray) -> np.ndarray:
        """Shape (R, q, q)."""
        columns, (rows, size) = self._columns, penalty.shape
        hessian = np.zeros((rows * size, size))
        step = max(256, BLOCK_NUMBERS // (rows * size))
        for start in range(0, columns.shape[1], step):
            here = slice(start, start + step)
            part = columns[:, here]
            hessian += (slopes.curvature[:, None, here] * part).reshape(rows * size, -1) @ part.T
        hessian = hessian.reshape(rows, size, size)
        for row, a in enumerate(scores):
            shared = self._loss.row_coupling(a, columns)
            if shared is None:
                break
            hessian[row] -= shared @ shared.T
        diagonal = np.einsum("rqq->rq", hessian)
        diagonal *= 1 + DAMPING
        diagonal += penalty
        return hessian

    def bordered(self, slopes: Slopes, scores: np.ndarray, penalty: np.ndarray, nearby: NearbyHessians) -> np.ndarray:
        """Hessians of which a block is known, shape (R, q, q)."""
        columns, known = self._columns, nearby.positions
        whole = np.empty((len(scores), self.size, self.size))
        whole[:, known[:, None], known] = nearby.hessian
        for other in np.delete(np.arange(self.size), known).tolist():
            weighted = slopes.curvature * columns[other]
            image = self._loss.coupled_image(scores, columns[other])
            row = (weighted if image is None else weighted - image) @ columns.T
            row[:, other] *= 1 + DAMPING
            row[:, other] += penalty[:, other]
            whole[:, other], whole[:, :, other] = row, row
        return whole

    def search(
        self,
        coef: np.ndarray,
        scores: np.ndarray,
        penalty: np.ndarray,
        step: np.ndarray,
        predicted: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, Slopes] | None:
        """Where the steps end, halved until no slope rises too far; None where halving does not help."""
        change, length = step @ self._columns, np.ones(len(step))
        rise = LARGEST_RISE * 2.0 * predicted
        for _ in range(MOST_HALVINGS):
            new = coef + length[:, None] * step
            there = scores + (change if (length == 1.0).all() else length[:, None] * change)
            slopes = self.slopes(there)
            along = np.vecdot(slopes.derivative, change)
            along += np.vecdot(penalty * new, step)
            far = ~(along <= rise)
            if not far.any():
                return new, there, slopes
            length[far] *= 0.5
        return None
