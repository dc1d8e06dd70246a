"""Checks of a loss that a user wrote, on a few of the real targets: value, derivative and curvature must agree."""

from __future__ import annotations

import numpy as np

from pauca.derivative_check import FunctionCheck, falls
from pauca.losses.base import Loss

# Rows that are checked, from the least target to the largest.
ROWS = 32

# Sign and scale are checked, not digits: a derivative may be off by this share.
DERIVATIVE_TOLERANCE = 1e-2

# Rounding of user-supplied functions, as a share of the largest number that they have returned.
ROUNDING_SHARE = 1e-9

# Kinks are sought by halving intervals of scores so many times; a derivative that still rises by this share of its size
# jumps there.
HALVINGS = 36
LARGEST_JUMP = 0.05

# How far from where the search starts, and from the targets (in their standard deviations), scores are checked.
AWAY_FROM_START = (-2.0, -0.5, 0.5, 2.0)
AWAY_FROM_TARGETS = (-1.0, -0.1, 0.1, 1.0)


def check_loss(loss: Loss, y: np.ndarray, weights: np.ndarray, n_outputs: int) -> None:
    """Raise ``ValueError`` if a loss that a user wrote is not convex or its derivatives are wrong.

    ``y`` has shape (C, n), or (n,) where all scores of a row share one loss.
    """
    y, weights = y[..., weights > 0], weights[weights > 0]
    with np.errstate(all="ignore"):  # far scores may overflow; what matters is checked below
        loss = loss.tuned(y if y.ndim == 2 else y[None], weights)
        start = _LossCheck(loss, y).constants(weights, n_outputs)
        order = np.argsort(y if y.ndim == 1 else y[0], kind="stable")
        few = order[np.unique(np.linspace(0, len(order) - 1, ROWS).astype(np.intp))]
        check = _LossCheck(loss, np.ascontiguousarray(y[..., few]))
        begin = np.repeat(start[:, None], len(few), axis=1)
        check.is_finite_at(begin)
        scores = [begin, *_scores(check.y, begin, joint=loss.joint)]
        for a in scores:
            check.has_right_signs_at(a)
            check.rises_by_its_derivative_at(a)
            check.agrees_with_its_slopes_at(a)
        if not loss.joint:
            check.is_convex_over(np.sort(scores, axis=0))
            if not loss.has_lines:
                check.is_smooth_between(np.min(scores, axis=0), np.max(scores, axis=0))
        if hasattr(loss, "probabilities"):
            check.has_probabilities_at(begin if loss.joint else begin[:1])


def _scores(y: np.ndarray, begin: np.ndarray, *, joint: bool) -> list[np.ndarray]:
    """Scores about where the search starts and, where scores are on the scale of targets, about the targets."""
    wave = np.cos(np.arange(begin.size)).reshape(begin.shape)
    near = [begin + away * wave for away in AWAY_FROM_START]
    return near if joint else near + [y + away * _spread(y) for away in AWAY_FROM_TARGETS]


def _spread(y: np.ndarray) -> float:
    return float(np.std(y)) or 1.0


class _LossCheck:
    """A loss on some targets; each method checks one property and raises ``ValueError`` if it does not hold."""

    def __init__(self, loss: Loss, y: np.ndarray) -> None:
        self.loss = loss
        self.y = y
        self._check = FunctionCheck(loss, lambda function: f"{type(loss).__name__}.{function}")

    def constants(self, weights: np.ndarray, n_outputs: int) -> np.ndarray:
        """Where the search starts, shape (C,)."""
        found = self._check.call("constants", self.y, weights, n_outputs, where=_on(self.y, weights))
        found = self._check.array("constants", found, (n_outputs,))
        return np.where(np.isfinite(found), found, 0.0)

    def is_finite_at(self, a: np.ndarray) -> None:
        """All three are finite where the search starts."""
        for method in ("value", "derivative", "curvature"):
            found = self._of(method, a)
            if not np.all(np.isfinite(found)):
                where = self._where(a, ~np.isfinite(found))
                self._check.reject(method, f"is not finite {where}, where the search starts")

    def has_right_signs_at(self, a: np.ndarray) -> None:
        """Value and curvature are not negative."""
        for method, hint in (("value", " Add a constant, so that its least value is zero."), ("curvature", "")):
            found = self._of(method, a)
            finite = np.where(np.isfinite(found), found, 0.0)
            bad = finite < -ROUNDING_SHARE * max(float(np.abs(finite).max()), 1.0)
            if bad.any():
                self._check.reject(
                    method, f"is {finite[bad][0]:.4g} {self._where(a, bad)}; it must not be negative.{hint}"
                )

    def rises_by_its_derivative_at(self, a: np.ndarray) -> None:
        """A convex value rises by no less than its derivative below, and no more than its derivative above.

        So this holds at kinks as well, and for steps of any length.
        """
        step = 1e-4 * min(_spread(self.y), 1.0) + 1e-7 * np.abs(a)
        for part in range(len(a)) if self.loss.joint else (...,):
            below, above = a.copy(), a.copy()
            below[part] -= step[part]
            above[part] += step[part]
            width = above[part] - below[part]
            values = self._of("value", below), self._of("value", above)
            slopes = self._of("derivative", below)[part], self._of("derivative", above)[part]
            rise = (values[1] - values[0]) / width
            size = np.maximum(np.abs(slopes[0]), np.abs(slopes[1]))
            # Terms of the order of one may have cancelled, as the constant that makes the least value zero.
            rounding = 8 * np.finfo(float).eps * (1 + np.abs(values[0]) + np.abs(values[1])) / width
            slack = (
                DERIVATIVE_TOLERANCE * size
                + rounding
                + ROUNDING_SHARE * np.nanmax(size, initial=0.0, where=np.isfinite(size))
            )
            bad = (rise < np.minimum(*slopes) - slack) | (rise > np.maximum(*slopes) + slack)
            bad &= np.isfinite(rise) & np.isfinite(size)
            if bad.any():
                claimed = f"is {0.5 * (slopes[0] + slopes[1])[bad][0]:.4g} {self._where(a, bad)}"
                self._check.reject(
                    "derivative", f"{claimed}, where value rises by {rise[bad][0]:.4g} per unit; they must agree"
                )

    def agrees_with_its_slopes_at(self, a: np.ndarray) -> None:
        """Derivative and curvature are the same one by one and together."""
        together = self._check.call("slopes", self.y, a, where=_on(self.y, a))
        for method, found in zip(("derivative", "curvature"), together, strict=True):
            if not np.allclose(found, self._of(method, a), rtol=DERIVATIVE_TOLERANCE, equal_nan=True):
                self._check.reject("slopes", f"gives another {method} than {method} does")

    def is_convex_over(self, scores: np.ndarray) -> None:
        """The derivative does not fall from one score to the next; scores of shape (P, C, n), ascending."""
        slopes = np.array([self._of("derivative", a) for a in scores])
        for low, high, below, above in zip(slopes[:-1], slopes[1:], scores[:-1], scores[1:], strict=True):
            bad = np.isfinite(low) & np.isfinite(high) & falls(low, high, DERIVATIVE_TOLERANCE, ROUNDING_SHARE)
            if bad.any():
                change = f"falls from {low[bad][0]:.4g} {self._where(below, bad)} to {high[bad][0]:.4g} at"
                self._check.reject("derivative", f"{change} score {above[bad][0]:.4g}: the loss is not convex")

    def is_smooth_between(self, low: np.ndarray, high: np.ndarray) -> None:
        """The derivative does not jump: halving where it rises most ends at a kink if there is one."""
        below, above = self._of("derivative", low), self._of("derivative", high)
        size = np.maximum(np.abs(below), np.abs(above))
        earlier = above - below
        for halving in range(HALVINGS):
            earlier = above - below if halving == HALVINGS // 2 else earlier
            middle = 0.5 * (low + high)
            slope = self._of("derivative", middle)
            left = slope - below > above - slope
            low, below = np.where(left, low, middle), np.where(left, below, slope)
            high, above = np.where(left, middle, high), np.where(left, slope, above)
        resolved = high - low < 1e-5 * _spread(self.y)  # targets may differ by little more than rounding
        lasting = above - below > 0.5 * earlier  # a steep rise falls as the interval does
        bad = np.isfinite(size) & resolved & lasting & (above - below > LARGEST_JUMP * size)
        if bad.any():
            jump = f"jumps from {below[bad][0]:.4g} to {above[bad][0]:.4g} {self._where(low, bad)}"
            self._check.reject(
                "derivative",
                f"{jump}: the loss has a kink there, and fits need a smooth one. Round it off over a small width, as "
                "Huber's loss does, or use 'absolute_error', 'quantile' or 'hinge', which have solvers of their own.",
            )

    def has_probabilities_at(self, a: np.ndarray) -> None:
        """Probabilities have one row for each class and sum to one."""
        found = self._check.call("probabilities", a, where=_on(a))
        expected = a.shape if self.loss.joint else (2, a.shape[1])
        found = self._check.array("probabilities", found, expected, f" for scores of shape {a.shape}")
        if not (np.all(found >= 0) and np.allclose(found.sum(axis=0), 1.0, atol=DERIVATIVE_TOLERANCE)):
            self._check.reject(
                "probabilities", "returns numbers that are negative or do not sum to one over the classes"
            )

    def _of(self, method: str, a: np.ndarray) -> np.ndarray:
        """What a method returns for some scores, in the right shape."""
        found = self._check.call(method, self.y.copy(), a.copy(), where=_on(self.y, a))
        expected = a.shape[1:] if self.loss.joint and method == "value" else a.shape
        return self._check.array(method, found, expected, f" for scores of shape {a.shape}")

    def _where(self, a: np.ndarray, bad: np.ndarray) -> str:
        """The first row in which something is wrong."""
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        if self.loss.joint:
            row = index[-1]
            return f"for class {self.y[row]:g} at scores {np.round(a[:, row], 3).tolist()}"
        return f"for target {self.y[index]:.4g} at score {a[index]:.4g}"


def _on(*arrays: np.ndarray) -> str:
    return f"on arrays of shape {' and '.join(str(array.shape) for array in arrays)}"
