"""Proportional odds as a loss of one score: the thresholds between classes are minimised out, which couples rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pauca.losses import Loss, Slopes
from pauca.losses.classification import LEAST_PROBABILITY
from pauca.tolerances import LINE_SEARCH_SLACK, SUFFICIENT_DECREASE

# Newton's method ends with a step predicted to gain less than this: it leaves about the square of that. Where a class
# has less than this share of the weight, all that it changes is as small, and the last step gains less in proportion.
LAST_STEP_BELOW = 1e-12
RARE_BELOW = 1e-3

# Steps predicted to gain less than this share of the weight of the rarest class are taken as they are.
TRUSTED_SHARE = 1e-3
MOST_STEPS = 100
MOST_HALVINGS = 40

# e to this power is within floating-point numbers.
LARGEST_EXPONENT = 700.0

# A step leaves at least this share of the distance between two thresholds.
LEAST_LEFT = 0.1


def sigmoid(x: np.ndarray) -> np.ndarray:
    """``1 / (1 + e^-x)`` for any x, with all digits of small values: a heavy row may have a tiny probability."""
    return 1.0 / (1.0 + np.exp(np.minimum(-x, LARGEST_EXPONENT)))


def _softplus(x: np.ndarray) -> np.ndarray:
    """``log(1 + e^x)``, several times faster than ``logaddexp``."""
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0.0)


class CumulativeLogit(Loss):
    """Minus the log-likelihood of ordered classes with ``P(class <= c) = 1 / (1 + e^(a - threshold_c))``.

    McCullagh (1980). The thresholds are free: they are those of the highest likelihood for the scores of all rows, so
    the loss is bound to its rows by ``tuned``. A constant in all scores moves them along and changes nothing.
    """

    classifies = True
    coupled = True
    shift_invariant = True
    may_diverge = True
    smoothness = 0.5
    lipschitz = 1.0

    def tuned(self, y: np.ndarray, weights: np.ndarray) -> Loss:
        return BoundCumulativeLogit(y[0], weights)

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        return 2.0 * n_rows * float(np.sum(losses))

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        raise ValueError("The loss of ordered classes has no value before it knows all rows: call tuned(y, weights).")

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.value(y, a)

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.value(y, a)


class BoundCumulativeLogit(CumulativeLogit):
    """The loss of given rows; scores always have shape (..., n), and targets are not looked at again.

    Conventions
    -----------
    m = C - 1 thresholds between the C classes that have weight; u = threshold above a row's class less its score, l the
    same for the threshold below: infinite for the last class and minus infinity for the first
    The loss of a row is ``log(1 + e^-u) + log(1 + e^l) - log(1 - e^-(u - l))``; the last term is its class's.
    """

    def __init__(self, codes: np.ndarray, weights: np.ndarray) -> None:
        self.weights = weights
        rows = np.flatnonzero(weights > 0)
        self.present, place = np.unique(codes[rows], return_inverse=True)
        """The classes that have weight."""
        self._rows = rows[np.argsort(place, kind="stable")]
        self._code = np.clip(np.searchsorted(self.present, codes), 0, len(self.present) - 1)
        self._known = np.isin(codes, self.present)
        self._starts = np.searchsorted(np.sort(place), np.arange(len(self.present)))
        self._share = np.bincount(place, weights=weights[rows]) / weights[rows].sum()
        below = np.cumsum(self._share)[:-1]
        self._start = np.log(below) - np.log1p(-below)
        self._trusted_below = TRUSTED_SHARE * float(self._share.min())
        self._last_below = LAST_STEP_BELOW * min(1.0, float(self._share.min()) / RARE_BELOW)
        self._at: np.ndarray | None = None
        self._found = self._start
        self._sorted_code, self._sorted_weights = self._code[self._rows], weights[self._rows]

    def tuned(self, y: np.ndarray, weights: np.ndarray) -> Loss:
        return self

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.losses(a, self.thresholds(a))

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).derivative

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).curvature

    def slopes(self, y: np.ndarray, a: np.ndarray) -> Slopes:
        above, below = self._probabilities(a, self.thresholds(a), self._code)
        return Slopes(above - below, above * (1.0 - above) + below * (1.0 - below))

    def row_coupling(self, a: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """How the slopes along columns change with the thresholds, in units of their own curvature."""
        hessian, across, _ = self._across(a, columns)
        return np.linalg.solve(np.linalg.cholesky(hessian), -across[..., None])[..., 0]

    def coupled_image(self, a: np.ndarray, columns: np.ndarray) -> np.ndarray:
        hessian, across, (above, below) = self._across(a, columns)
        moved = np.zeros((*across.shape[:-1], across.shape[-1] + 2))
        moved[..., 1:-1] = np.linalg.solve(hessian, across[..., None])[..., 0]
        image = np.zeros((*across.shape[:-1], len(self.weights)))
        parts = above * moved[..., self._sorted_code + 1] + below * moved[..., self._sorted_code]
        image[..., self._rows] = parts * self._sorted_weights
        return image

    def _across(self, a: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
        """Second derivatives in the thresholds, and in thresholds and columns; curvature above and below the rows."""
        thresholds, lines = self.thresholds(a), a[..., self._rows]
        _, hessian = self._newton(lines, thresholds)
        bent = tuple(p * (1.0 - p) for p in self._probabilities(lines, thresholds, self._sorted_code))
        weighted = columns[..., self._rows] * self._sorted_weights
        up = np.add.reduceat(weighted * bent[0], self._starts, axis=-1)[..., :-1]
        down = np.add.reduceat(weighted * bent[1], self._starts, axis=-1)[..., 1:]
        return hessian, up + down, bent

    def thresholds(self, a: np.ndarray) -> np.ndarray:
        """The best thresholds for scores of shape (..., n): shape (..., m). Those of the last scores are kept."""
        if a is not self._at:
            self._at, self._found = a, self._best_thresholds(a)
        return self._found

    def _best_thresholds(self, a: np.ndarray) -> np.ndarray:
        lines = a.reshape(-1, a.shape[-1])[:, self._rows]
        middle = lines @ self._sorted_weights / self._sorted_weights.sum()
        found = self._start + middle[:, None]
        open_ = np.arange(len(lines))
        for _ in range(MOST_STEPS):
            some, start = (lines, found) if len(open_) == len(lines) else (lines[open_], found[open_])
            gradient, hessian = self._newton(some, start)
            step = -np.linalg.solve(hessian, gradient[..., None])[..., 0]
            predicted = -0.5 * np.einsum("bm,bm->b", gradient, step)
            if predicted.max() > self._trusted_below:
                step = self._shortened(some, start, step, predicted)
            found[open_] = start + step
            open_ = open_[predicted > self._last_below]
            if not len(open_):
                break
        # Scores change little from call to call.
        self._start = found[0] - middle[0]
        return found.reshape(*a.shape[:-1], found.shape[1])

    def _shortened(self, lines: np.ndarray, start: np.ndarray, step: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """Newton's steps, each halved until the thresholds keep their order and the value falls."""
        value = self._mean(lines, start)
        gaps, change = np.diff(start, axis=1), np.diff(step, axis=1)
        closing = np.where(change < 0, -change / gaps, 0.0).max(axis=1, initial=0.0)
        length = np.minimum(1.0, (1.0 - LEAST_LEFT) / np.maximum(closing, 1e-300))
        for _ in range(MOST_HALVINGS):
            there = self._mean(lines, start + length[:, None] * step)
            fallen = there <= value - SUFFICIENT_DECREASE * length * predicted + LINE_SEARCH_SLACK * value
            risen = ~fallen & (predicted > self._trusted_below)
            if not risen.any():
                break
            length = np.where(risen, 0.5 * length, length)
        return np.asarray(length[:, None] * step)

    def _mean(self, lines: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        upper, lower = self._distances(lines, thresholds, self._sorted_code)
        losses = _softplus(-upper) + _softplus(lower)
        return losses @ self._sorted_weights + self._between(thresholds)[0]

    def _newton(self, lines: np.ndarray, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian in the thresholds, for scores of the rows with weight in the order of classes."""
        above, below = self._probabilities(lines, thresholds, self._sorted_code)
        v, starts, m = self._sorted_weights, self._starts, thresholds.shape[-1]
        _, first, second = self._between(thresholds)
        gradient = first - np.add.reduceat(v * above, starts, axis=-1)[..., :-1]
        gradient += np.add.reduceat(v * below, starts, axis=-1)[..., 1:]
        own = np.add.reduceat(v * above * (1.0 - above), starts, axis=-1)[..., :-1]
        own += np.add.reduceat(v * below * (1.0 - below), starts, axis=-1)[..., 1:]
        hessian = np.zeros((*thresholds.shape, m))
        every, lower = np.arange(m), np.arange(m - 1)
        hessian[..., every, every] = own
        hessian[..., lower, lower] += second
        hessian[..., lower + 1, lower + 1] += second
        hessian[..., lower, lower + 1] = hessian[..., lower + 1, lower] = -second
        # Classes that are separated without error leave thresholds without curvature.
        hessian[..., every, every] += 1e-12 * self._share.min()
        return gradient, hessian

    def _between(self, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the distances between thresholds add: value, gradient in thresholds, curvature in distances."""
        gaps, share = np.diff(thresholds, axis=-1), self._share[1:-1] * self.weights.sum()
        left = -np.expm1(-gaps)
        first = -share * np.exp(-gaps) / left
        gradient = np.zeros(thresholds.shape)
        gradient[..., 1:] += first
        gradient[..., :-1] -= first
        return -np.log(left) @ share, gradient, share * np.exp(-gaps) / (left * left)

    def _distances(self, a: np.ndarray, thresholds: np.ndarray, code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        infinite = np.full((*thresholds.shape[:-1], 1), np.inf)
        padded = np.concatenate([-infinite, thresholds, infinite], axis=-1)
        return padded[..., code + 1] - a, padded[..., code] - a

    def _probabilities(self, a: np.ndarray, thresholds: np.ndarray, code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of a class above a row's own, and of one below."""
        upper, lower = self._distances(a, thresholds, code)
        return sigmoid(-upper), sigmoid(lower)

    def losses(self, a: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Losses of all rows at given thresholds, shape (..., n)."""
        upper, lower = self._distances(a, thresholds, self._code)
        with np.errstate(invalid="ignore"):
            width = np.where(np.isfinite(upper) & np.isfinite(lower), upper - lower, np.inf)
        return _softplus(-upper) + _softplus(lower) - np.log(-np.expm1(-width))

    def held_out_losses(
        self, y: np.ndarray, weights: np.ndarray, test: np.ndarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Losses at the thresholds of the rows of the fit; no probability counts as less than the least one."""
        most, known = -np.log(LEAST_PROBABILITY), self._known[test]

        def losses(a: np.ndarray) -> np.ndarray:
            found = self.losses(a, self.thresholds(a))[..., test]
            return np.where(known, np.minimum(found, most), most)

        return losses


def class_probabilities(a: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Probabilities of the classes at scores of shape (n,): shape (n, C)."""
    up_to = sigmoid(thresholds - a[:, None])
    above = sigmoid(a[:, None] - thresholds)
    first, last = up_to[:, :1], above[:, -1:]
    # F(t) - F(s) = F(t) (1 - F(s)) (1 - e^(s - t)) keeps the digits of classes that are hardly likely.
    between = up_to[:, 1:] * above[:, :-1] * -np.expm1(-np.diff(thresholds))
    return np.hstack([first, between, last])
