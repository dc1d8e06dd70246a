"""Epoch SGD as an object that rows are handed to, chunk after chunk."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from pauca.losses import Loss
from pauca.losses.compiled import compiled_slope
from pauca.sgd.rows import Rows, merged, row_blocks
from pauca.sgd.state import (
    ACTIVE,
    BOUND,
    CENTRE,
    EPOCHS,
    HEIGHT,
    HEIGHTS,
    INTERCEPT,
    INTERCEPT_CENTRE,
    INTERCEPT_SUM,
    LENGTH,
    MEMBERS,
    PAST,
    RADIUS,
    ROWS,
    SEEN,
    SQUARES,
    STEP,
    THRESHOLD,
    THRESHOLDS,
    WEIGHT,
    new_state,
)

# Coefficients are read out so many at a time, so that no further arrays as long as the features are made.
FEATURES_AT_ONCE = 1 << 16


class EpochSGD:
    """Stochastic gradient descent in epochs, inside an l1 ball and near the start of each epoch.

    A row with target y and score ``a = x.w + b`` moves w to ``w - step L'(y, a) x``, projected onto both balls,
    ``||w||_1 <= bound`` and ``||w - c||_2 <= radius``, where c is where the epoch started. An epoch starts from the
    average of the iterates of the last, takes twice as many rows, half the step, and a radius less by the root of two.
    The intercept moves with it, is averaged alike, and lies in neither ball. What a row costs grows with its
    entries, not with the features.

    Li, Yang, Zhang and Jin (2017), Algorithm 1: for squared loss, entries in [-1, 1] and ``|y| <= bound`` the excess
    loss falls as the inverse of the number of rows, without strong convexity.

    Parameters
    ----------
    n_features : int
        Columns of every chunk.
    loss : Loss
        ``SquaredError()``, ``Huber(threshold)``, ``AbsoluteError()`` or ``Quantile(level)`` for numbers; ``LogLoss()``
        or ``Hinge()`` for classes coded as -1 and 1.
    bound : float
        The most that ``||w||_1`` may be.
    step : float
        The step of the first epoch.
    first_epoch : int
        How many rows the first epoch takes.
    center_radius : float or None, default=None
        The radius of the first epoch; None: ``bound``.
    intercept : float, default=0.0
        Where the intercept starts, and where it stays without ``fit_intercept``.
    fit_intercept : bool, default=True
        Whether the intercept is learned.
    intercept_scale : float, default=1.0
        The intercept is learned like the coefficient of a column that holds this number throughout. It should be of the
        size of a row: then rows multiplied by anything are learned alike.

    Examples
    --------
    >>> import numpy as np
    >>> from pauca.losses import SquaredError
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (4000, 50))
    >>> y = 2 * X[:, 3] - X[:, 7] + 0.5
    >>> learner = EpochSGD(50, SquaredError(), bound=3.0, step=0.2, first_epoch=100)
    >>> learner.learn(X[:1000], y[:1000])
    >>> learner.learn(X[1000:], y[1000:])
    >>> coef, intercept = learner.average
    >>> [round(float(number), 2) + 0 for number in (coef[3], coef[7], intercept)]
    [2.0, -1.0, 0.5]
    """

    def __init__(
        self,
        n_features: int,
        loss: Loss,
        bound: float,
        *,
        step: float,
        first_epoch: int,
        center_radius: float | None = None,
        intercept: float = 0.0,
        fit_intercept: bool = True,
        intercept_scale: float = 1.0,
    ) -> None:
        scales = (
            ("bound", bound),
            ("step", step),
            ("center_radius", center_radius),
            ("intercept_scale", intercept_scale),
        )
        for name, number in scales:
            if number is not None and not (0 < number < math.inf):
                raise ValueError(f"{name} must be a positive number; got {number!r}.")
        for name, count in (("n_features", n_features), ("first_epoch", first_epoch)):
            if count != int(count) or count < 1:
                raise ValueError(f"{name} must be a whole number and at least 1; got {count!r}.")
        if n_features > np.iinfo(np.int32).max:
            raise ValueError(f"There may be at most {np.iinfo(np.int32).max} features; got {n_features}.")
        if not math.isfinite(intercept):
            raise ValueError(f"intercept must be finite; got {intercept!r}.")
        self._slope = compiled_slope(loss)
        self.loss = loss
        self.fit_intercept = fit_intercept
        self._intercept_rate = float(intercept_scale) ** 2 if fit_intercept else 0.0
        self._state = new_state(int(n_features))
        numbers, counts = self._state.numbers, self._state.counts
        numbers[BOUND] = bound
        numbers[STEP] = step
        numbers[RADIUS] = bound if center_radius is None else center_radius
        numbers[INTERCEPT] = numbers[INTERCEPT_CENTRE] = intercept
        counts[LENGTH] = first_epoch

    @property
    def n_features(self) -> int:
        """Columns of every chunk."""
        return len(self._state.features)

    @property
    def n_seen(self) -> int:
        """Rows learned from, those without weight left out."""
        return int(self._state.counts[SEEN])

    @property
    def n_epochs(self) -> int:
        """Epochs completed."""
        return int(self._state.counts[EPOCHS])

    def learn(
        self, X: Any, y: np.ndarray, weights: np.ndarray | None = None, *, order: np.ndarray | None = None
    ) -> None:
        """Take the rows of a chunk one after the other.

        Chunks of any size give the same numbers, to the last bit, as one chunk of all rows.

        Parameters
        ----------
        X : CSR matrix or array of shape (n, n_features)
            Finite numbers. A CSR matrix of double precision is read in place; others are brought into that form a few
            rows at a time.
        y : array of shape (n,)
            Targets; classes as -1 and 1.
        weights : array of shape (n,), optional
            They multiply the steps, so their mean should be about one. A row of weight zero is passed over.
        order : array of int, optional
            Which rows, in which order; by default all, from the first to the last.
        """
        X, y, weights, order = self._checked(X, y, weights, order)
        for rows in row_blocks(X, order):
            some = slice(None) if rows.taken is None else rows.taken
            self._learn(rows, y[some], weights[some] if len(weights) else weights)

    @property
    def average(self) -> tuple[np.ndarray, float]:
        """Coefficients and intercept as the paper answers: an average of iterates.

        They are averaged over as many steps as the last complete epoch had, or over all steps of the current epoch once
        these are more: while they are fewer, the average of the last epoch, from which the current one started, counts
        for those that lack. So it moves from one epoch's average to the next without a jump.
        """
        numbers, counts = self._state.numbers, self._state.counts
        rows = int(counts[ROWS])
        # The last epoch was half as long as this one. Before the first there was none.
        lacking = max(0, int(counts[LENGTH]) // 2 - rows) if counts[EPOCHS] else int(rows == 0)
        whole = rows + lacking
        coef = np.zeros(self.n_features)
        for some, features in self._members():
            height = features[:, HEIGHT]
            total = features[:, PAST] + height * rows - np.sign(height) * numbers[THRESHOLDS]
            coef[some] = (total + lacking * features[:, CENTRE]) / whole
        return coef, float(numbers[INTERCEPT_CENTRE] + numbers[INTERCEPT_SUM] / whole)

    @property
    def last(self) -> tuple[np.ndarray, float]:
        """Coefficients and intercept of the last iterate: sparser than the average, and often better."""
        coef = np.zeros(self.n_features)
        for some, features in self._members():
            height = features[:, HEIGHT]
            coef[some] = height - np.sign(height) * self._state.numbers[THRESHOLD]
        return coef, float(self._state.numbers[INTERCEPT])

    @property
    def norm(self) -> float:
        """l1 norm of the last iterate."""
        numbers, counts = self._state.numbers, self._state.counts
        return float(numbers[HEIGHTS] - counts[ACTIVE] * numbers[THRESHOLD])

    @property
    def moments(self) -> np.ndarray:
        """Weighted means of the squares of the entries of each column, over all rows seen."""
        weight = self._state.numbers[WEIGHT]
        return self._state.features[:, SQUARES] / (weight if weight > 0 else 1.0)

    def copy(self) -> EpochSGD:
        """A learner in the same state that goes its own way."""
        other = object.__new__(EpochSGD)
        vars(other).update(vars(self))
        other._state = type(self._state)(*(array.copy() for array in self._state))
        return other

    def _learn(self, rows: Rows, y: np.ndarray, weights: np.ndarray) -> None:
        from pauca.sgd.kernel import learn_rows

        longest = int(np.diff(rows.starts).max(initial=0))
        room = np.empty(longest + 1, dtype=np.int32), np.empty(longest + 1)

        def take(some: Rows, y: np.ndarray, weights: np.ndarray) -> int:
            arrays = (some.data, some.indices, some.starts, some.order, y, weights)
            return learn_rows(self._state, *arrays, *self._slope, self._intercept_rate, *room)

        while (done := take(rows, y, weights)) < len(rows.order):
            # It stopped before a row in which some column stands twice.
            i = int(rows.order[done])
            take(merged(rows, i), y[i : i + 1], weights[i : i + 1])
            rows = rows._replace(order=rows.order[done + 1 :])

    def _members(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Indices and numbers of all features that are not zero throughout, some at a time."""
        members = self._state.members[: self._state.counts[MEMBERS]]
        for first in range(0, len(members), FEATURES_AT_ONCE):
            some = members[first : first + FEATURES_AT_ONCE]
            yield some, self._state.features[some]

    def _checked(self, X: Any, y: Any, weights: Any, order: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """All of a chunk in the types of the kernel, refused before anything is learned from it."""
        X = X if sparse.issparse(X) else np.asanyarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X must have two dimensions and {self.n_features} columns; got the shape {X.shape}.")
        if X.dtype.kind not in "fiub":
            raise ValueError(f"X must hold numbers; got the type {X.dtype}.")
        n_rows = X.shape[0]
        y = np.ascontiguousarray(y, dtype=np.float64)
        weights = np.empty(0) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        for name, numbers in (("y", y), ("weights", weights)):
            if numbers.shape != (n_rows,) and not (name == "weights" and numbers.size == 0):
                raise ValueError(f"{name} must have one number for each of the {n_rows} rows; got {numbers.shape}.")
            if not np.all(np.isfinite(numbers)):
                raise ValueError(f"{name} must be finite.")
        if np.any(weights < 0):
            raise ValueError(f"weights must not be negative; the least is {weights.min():g}.")
        self.loss.check_target(y)
        if order is None:
            return X, y, weights, np.arange(n_rows)
        order = np.ascontiguousarray(order)
        if order.ndim != 1 or order.dtype.kind not in "iu" or np.any((order < 0) | (order >= n_rows)):
            raise ValueError(f"order must hold row numbers from 0 to {n_rows - 1}.")
        return X, y, weights, order.astype(np.int64, copy=False)
