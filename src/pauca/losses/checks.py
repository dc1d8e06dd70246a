"""A loss of the user's own is tried on a few of the real targets before any work: what it says must agree."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from pauca.losses.base import Loss

# So many rows are tried, from the least target to the largest.
ROWS = 32

# Sign and scale are looked at, not digits: a derivative may be off by this share.
LOOSE = 1e-2

# Shares of the largest number at hand that pass for rounding.
ROUNDING = 1e-9

# How far from where the search begins, and from the targets (in their standard deviations), scores are tried.
AWAY_FROM_START = (-2.0, -0.5, 0.5, 2.0)
AWAY_FROM_TARGETS = (-1.0, -0.1, 0.1, 1.0)


def inspect_loss(loss: Loss, y: np.ndarray, weights: np.ndarray, n_outputs: int) -> None:
    """Raise ``ValueError`` with a sentence if a loss of the user's own cannot be what it says it is.

    ``y`` has shape (C, n), or (n,) where all scores of a row share one loss. The losses of pauca itself are under test
    elsewhere.
    """
    if type(loss).__module__.partition(".")[0] == "pauca":
        return
    y, weights = y[..., weights > 0], weights[weights > 0]
    with np.errstate(all="ignore"):  # far scores may overflow; what matters is looked at below
        loss = loss.tuned(y if y.ndim == 2 else y[None], weights)
        start = _Trial(loss, y).constants(weights, n_outputs)
        order = np.argsort(y if y.ndim == 1 else y[0], kind="stable")
        few = order[np.unique(np.linspace(0, len(order) - 1, ROWS).astype(np.intp))]
        trial = _Trial(loss, np.ascontiguousarray(y[..., few]))
        begin = np.repeat(start[:, None], len(few), axis=1)
        trial.is_finite_at(begin)
        scores = [begin, *_scores(trial.y, begin, joint=loss.joint)]
        for a in scores:
            trial.has_right_signs_at(a)
            trial.rises_by_its_derivative_at(a)
            trial.agrees_with_its_slopes_at(a)
        if not loss.joint:
            trial.is_convex_over(np.sort(scores, axis=0))
        if hasattr(loss, "probabilities"):
            trial.has_probabilities_at(begin if loss.joint else begin[:1])


def _scores(y: np.ndarray, begin: np.ndarray, *, joint: bool) -> list[np.ndarray]:
    """Scores about where the search begins and, where a score may stand for a target, about the targets."""
    wave = np.cos(np.arange(begin.size)).reshape(begin.shape)
    near = [begin + away * wave for away in AWAY_FROM_START]
    return near if joint else near + [y + away * _spread(y) for away in AWAY_FROM_TARGETS]


def _spread(y: np.ndarray) -> float:
    return float(np.std(y)) or 1.0


class _Trial:
    """A loss on some targets; each method looks at one thing and refuses the loss if that is wrong."""

    def __init__(self, loss: Loss, y: np.ndarray) -> None:
        self.loss = loss
        self.y = y

    def constants(self, weights: np.ndarray, n_outputs: int) -> np.ndarray:
        """Where the search begins, shape (C,)."""
        found = np.asarray(self._call("constants", self.y, weights, n_outputs), dtype=np.float64)
        if found.shape != (n_outputs,):
            self._refuse("constants", f"returns shape {found.shape} where there are {n_outputs} scores")
        return np.where(np.isfinite(found), found, 0.0)

    def is_finite_at(self, a: np.ndarray) -> None:
        """All three are finite where the search begins."""
        for method in ("value", "derivative", "curvature"):
            found = self._of(method, a)
            if not np.all(np.isfinite(found)):
                where = self._where(a, ~np.isfinite(found))
                self._refuse(method, f"is not finite {where}, where the search begins")

    def has_right_signs_at(self, a: np.ndarray) -> None:
        """Value and curvature are not negative."""
        for method, hint in (("value", " Add a constant, so that its least value is zero."), ("curvature", "")):
            found = self._of(method, a)
            finite = np.where(np.isfinite(found), found, 0.0)
            bad = finite < -ROUNDING * max(float(np.abs(finite).max()), 1.0)
            if bad.any():
                self._refuse(method, f"is {finite[bad][0]:.4g} {self._where(a, bad)}; it must not be negative.{hint}")

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
            slack = LOOSE * size + rounding + ROUNDING * np.nanmax(size, initial=0.0, where=np.isfinite(size))
            bad = (rise < np.minimum(*slopes) - slack) | (rise > np.maximum(*slopes) + slack)
            bad &= np.isfinite(rise) & np.isfinite(size)
            if bad.any():
                said = f"is {0.5 * (slopes[0] + slopes[1])[bad][0]:.4g} {self._where(a, bad)}"
                self._refuse("derivative", f"{said}, where value rises by {rise[bad][0]:.4g} per unit; they must agree")

    def agrees_with_its_slopes_at(self, a: np.ndarray) -> None:
        """Derivative and curvature are the same one by one and together."""
        together = self._call("slopes", self.y, a)
        for method, found in zip(("derivative", "curvature"), together, strict=True):
            if not np.allclose(found, self._of(method, a), rtol=LOOSE, equal_nan=True):
                self._refuse("slopes", f"gives another {method} than {method} does")

    def is_convex_over(self, scores: np.ndarray) -> None:
        """The derivative does not fall from one score to the next; scores of shape (P, C, n), ascending."""
        slopes = np.array([self._of("derivative", a) for a in scores])
        for low, high, below, above in zip(slopes[:-1], slopes[1:], scores[:-1], scores[1:], strict=True):
            size = np.maximum(np.abs(low), np.abs(high))
            bad = np.isfinite(size) & (high < low - LOOSE * size - ROUNDING)
            if bad.any():
                falls = f"falls from {low[bad][0]:.4g} {self._where(below, bad)} to {high[bad][0]:.4g} at"
                self._refuse("derivative", f"{falls} score {above[bad][0]:.4g}: the loss is not convex")

    def has_probabilities_at(self, a: np.ndarray) -> None:
        """Probabilities have one row for each class and sum to one."""
        found = np.asarray(self._call("probabilities", a))
        wanted = a.shape if self.loss.joint else (2, a.shape[1])
        if found.shape != wanted:
            self._refuse("probabilities", f"returns shape {found.shape} for scores of shape {a.shape}, not {wanted}")
        if not (np.all(found >= 0) and np.allclose(found.sum(axis=0), 1.0, atol=LOOSE)):
            self._refuse("probabilities", "returns numbers that are negative or do not sum to one over the classes")

    def _of(self, method: str, a: np.ndarray) -> np.ndarray:
        """What a method says of some scores, in the right shape."""
        y, given = self.y.copy(), a.copy()
        found = self._call(method, y, given)
        if not (np.array_equal(y, self.y) and np.array_equal(given, a)):
            self._refuse(method, "changes the arrays it is given; it must make new ones")
        wanted = a.shape[1:] if self.loss.joint and method == "value" else a.shape
        if np.shape(found) != wanted:
            self._refuse(method, f"returns shape {np.shape(found)} for scores of shape {a.shape}, not {wanted}")
        if np.asarray(found).dtype.kind not in "biuf":
            self._refuse(method, f"returns {np.asarray(found).dtype}, not numbers")
        return np.asarray(found, dtype=np.float64)

    def _call(self, method: str, *arrays: Any) -> Any:
        try:
            return getattr(self.loss, method)(*arrays)
        except Exception as error:
            shapes = " and ".join(str(array.shape) for array in arrays if isinstance(array, np.ndarray))
            raise ValueError(
                f"{type(self.loss).__name__}.{method} fails on arrays of shape {shapes}: {error}"
            ) from error

    def _where(self, a: np.ndarray, bad: np.ndarray) -> str:
        """The first place that something was wrong at."""
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        if self.loss.joint:
            row = place[-1]
            return f"for class {self.y[row]:g} at scores {np.round(a[:, row], 3).tolist()}"
        return f"for target {self.y[place]:.4g} at score {a[place]:.4g}"

    def _refuse(self, method: str, what: str) -> NoReturn:
        raise ValueError(f"{type(self.loss).__name__}.{method} {what}{'' if what.endswith('.') else '.'}")
