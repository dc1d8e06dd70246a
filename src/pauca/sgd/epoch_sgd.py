"""Epoch SGD as an object that learns from chunks of rows, for one output or for each class against the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import pauca.sgd.state as slot
from pauca.clock import interrupts_held
from pauca.losses import Loss, SquaredError
from pauca.losses.compiled_slopes import compiled_slope
from pauca.sgd.reservoir import Samples
from pauca.sgd.state import new_state

# Coefficients are read out so many at a time, so that no further arrays as long as the features are made.
FEATURES_AT_ONCE = 1 << 16

# Rows that must be converted are so a few at a time, about so many numbers (8 MB).
NUMBERS_AT_ONCE = 1 << 20


class EpochSGD:
    """Stochastic gradient descent in epochs, inside an l1 ball and near the start of each epoch.

    A row with target y and score ``a = x.w + b`` moves w to ``w - learning_rate L'(y, a) x``, projected onto both
    balls, ``||w||_1 <= radius`` and ``||w - c||_2 <= center_radius``, where c is where the epoch started. An epoch
    starts from the average of the iterates of the last, takes twice as many rows, half the learning rate, and a
    center_radius less by the root of two. The intercept moves with it, is averaged alike, and lies in neither ball. The
    cost of a row grows with its nonzero entries, not with the number of features.

    Li, Yang, Zhang and Jin (2017), Algorithm 1: for squared loss, entries in [-1, 1] and ``|y| <= radius`` the excess
    loss falls as the inverse of the number of rows, without strong convexity.

    ``learning_rate`` and ``first_epoch`` are step size and number of rows of the first epoch, ``center_radius`` (by
    default ``radius``) the radius of its l2 ball. The intercept starts at ``intercept``, and stays there without
    ``fit_intercept``. It is learned like the coefficient of a column that holds ``intercept_scale`` throughout, which
    should be of the size of a row: then rows multiplied by anything are learned alike.

    Examples
    --------
    >>> import numpy as np
    >>> from pauca.losses import SquaredError
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (4000, 50))
    >>> y = 2 * X[:, 3] - X[:, 7] + 0.5
    >>> learner = EpochSGD(50, SquaredError(), radius=3.0, learning_rate=0.2, first_epoch=100)
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
        radius: float,
        *,
        learning_rate: float,
        first_epoch: int,
        center_radius: float | None = None,
        intercept: float = 0.0,
        fit_intercept: bool = True,
        intercept_scale: float = 1.0,
    ) -> None:
        if n_features > np.iinfo(np.int32).max:
            raise ValueError(f"There may be at most {np.iinfo(np.int32).max} features; got {n_features}.")
        self._slope = compiled_slope(loss)
        self.loss = loss
        self.fit_intercept = fit_intercept
        self._intercept_rate = float(intercept_scale) ** 2 if fit_intercept else 0.0
        self._state = new_state(int(n_features))
        numbers, counts = self._state.numbers, self._state.counts
        numbers[slot.RADIUS] = radius
        numbers[slot.LEARNING_RATE] = learning_rate
        numbers[slot.CENTER_RADIUS] = radius if center_radius is None else center_radius
        numbers[slot.INTERCEPT] = numbers[slot.INTERCEPT_CENTER] = intercept
        counts[slot.EPOCH_LENGTH] = first_epoch

    @property
    def n_features(self) -> int:
        """Columns of every chunk."""
        return len(self._state.features)

    @property
    def n_samples_seen(self) -> int:
        """Rows learned from, without those of weight zero."""
        return int(self._state.counts[slot.SAMPLES])

    @property
    def n_epochs(self) -> int:
        """Epochs completed."""
        return int(self._state.counts[slot.EPOCHS])

    def learn(
        self, X: Any, y: np.ndarray, weights: np.ndarray | None = None, *, order: np.ndarray | None = None
    ) -> None:
        """Take the rows of a chunk, or those in ``order``, one after the other; classes are coded as -1 and 1.

        Chunks of any size give the same numbers, to the last bit, as one chunk of all rows. A CSR matrix of double
        precision is read in place; others are converted a few rows at a time. Weights multiply the steps, so their mean
        should be about one; a row of weight zero is skipped.
        """
        X, y, weights, order = self._validate(X, y, weights, order)
        for block in row_blocks(X, order):
            rows = slice(None) if block.rows is None else block.rows
            self._learn(block, y[rows], weights[rows] if len(weights) else weights)

    @property
    def average(self) -> tuple[np.ndarray, float]:
        """Coefficients and intercept of the averaged iterate, which is the paper's solution.

        They are averaged over as many steps as the last complete epoch had, or over all steps of the current epoch once
        these are more: while they are fewer, the average of the last epoch, from which the current one started, counts
        for those that lack. So it moves from one epoch's average to the next without a jump.
        """
        numbers, counts = self._state.numbers, self._state.counts
        rows = int(counts[slot.ROWS])
        # The last epoch was half as long as this one. Before the first there was none.
        lacking = max(0, int(counts[slot.EPOCH_LENGTH]) // 2 - rows) if counts[slot.EPOCHS] else int(rows == 0)
        whole = rows + lacking
        coef = np.zeros(self.n_features)
        for some, features in self._touched():
            height = features[:, slot.HEIGHT]
            total = features[:, slot.PAST] + height * rows - np.sign(height) * numbers[slot.THRESHOLD_SUM]
            coef[some] = (total + lacking * features[:, slot.CENTER]) / whole
        return coef, float(numbers[slot.INTERCEPT_CENTER] + numbers[slot.INTERCEPT_SUM] / whole)

    @property
    def last(self) -> tuple[np.ndarray, float]:
        """Coefficients and intercept of the last iterate: sparser than the average, and often better."""
        coef = np.zeros(self.n_features)
        for some, features in self._touched():
            height = features[:, slot.HEIGHT]
            coef[some] = height - np.sign(height) * self._state.numbers[slot.THRESHOLD]
        return coef, float(self._state.numbers[slot.INTERCEPT])

    @property
    def norm(self) -> float:
        """l1 norm of the last iterate."""
        numbers, counts = self._state.numbers, self._state.counts
        return float(numbers[slot.HEIGHT_SUM] - counts[slot.ACTIVE] * numbers[slot.THRESHOLD])

    @property
    def moments(self) -> np.ndarray:
        """Weighted means of the squares of the entries of each column, over all rows learned."""
        weight = self._state.numbers[slot.WEIGHT_SUM]
        return self._state.features[:, slot.SQUARES] / (weight if weight > 0 else 1.0)

    def _learn(self, block: RowBlock, y: np.ndarray, weights: np.ndarray) -> None:
        with interrupts_held():
            from pauca.sgd.kernels import learn_rows

        longest = int(np.diff(block.starts).max(initial=0))
        buffers = np.empty(longest + 1, dtype=np.int32), np.empty(longest + 1)

        def learn(some: RowBlock, y: np.ndarray, weights: np.ndarray) -> int:
            arrays = (some.data, some.indices, some.starts, some.order, y, weights)
            return learn_rows(self._state, *arrays, *self._slope, self._intercept_rate, *buffers)

        while (done := learn(block, y, weights)) < len(block.order):
            # It stopped before a row in which some column occurs twice.
            i = int(block.order[done])
            learn(sum_duplicates(block, i), y[i : i + 1], weights[i : i + 1])
            block = block._replace(order=block.order[done + 1 :])

    def _touched(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Indices and numbers of all features that are not zero throughout the epoch, some at a time."""
        touched = self._state.touched[: self._state.counts[slot.TOUCHED]]
        for first in range(0, len(touched), FEATURES_AT_ONCE):
            some = touched[first : first + FEATURES_AT_ONCE]
            yield some, self._state.features[some]

    def _validate(self, X: Any, y: Any, weights: Any, order: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """A chunk in the types of the kernel; errors are raised before anything is learned from it."""
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


def compile_kernels() -> None:
    """Learn one row: loading or compiling the kernel may take longer than a fit's time limit, and is no part of it."""
    EpochSGD(1, SquaredError(), 1.0, learning_rate=1.0, first_epoch=1).learn(np.ones((1, 1)), np.ones(1), np.ones(1))


class RowBlock(NamedTuple):
    """Rows as compiled code reads them: CSR with values of double precision and indices of 32 bits, and their order."""

    data: np.ndarray
    indices: np.ndarray
    starts: np.ndarray
    order: np.ndarray
    rows: np.ndarray | None
    """Which rows of X the block holds; None where it is X itself."""


def row_blocks(X: Any, order: np.ndarray) -> Iterator[RowBlock]:
    """The rows of X in the given order. X is not copied, but for a few rows at a time where it must be."""
    if sparse.issparse(X):
        X = X.tocsr()
        if X.data.dtype == np.float64 and X.indices.dtype == np.int32:
            yield RowBlock(X.data, X.indices, X.indptr.astype(np.int64, copy=False), order, None)
            return
        lengths = np.diff(X.indptr)[order]
    else:
        lengths = np.full(len(order), X.shape[1])
    ends = np.cumsum(lengths)
    first = 0
    while first < len(order):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + NUMBERS_AT_ONCE, side="right")))
        taken = order[first:last]
        block = sparse.csr_array(X[taken]) if sparse.issparse(X) else _dense_to_csr(X[taken])
        yield RowBlock(
            np.ascontiguousarray(block.data, dtype=np.float64),
            block.indices.astype(np.int32, copy=False),
            block.indptr.astype(np.int64, copy=False),
            np.arange(len(taken)),
            taken,
        )
        first = last


def _dense_to_csr(block: np.ndarray) -> sparse.csr_array:
    """Dense rows with all their entries stored, zeros too."""
    n_rows, width = block.shape
    indices = np.tile(np.arange(width, dtype=np.int32), n_rows)
    starts = np.arange(0, block.size + 1, width)
    return sparse.csr_array((np.ascontiguousarray(block).ravel(), indices, starts), shape=block.shape)


def sum_duplicates(block: RowBlock, i: int) -> RowBlock:
    """One row alone, with the sums of entries that occur in it more than once."""
    entries = slice(block.starts[i], block.starts[i + 1])
    columns, positions = np.unique(block.indices[entries], return_inverse=True)
    values = np.bincount(positions, weights=block.data[entries])
    return RowBlock(values, columns, np.array([0, len(columns)]), np.zeros(1, dtype=np.int64), np.array([i]))


@dataclass(frozen=True)
class SGDSettings:
    """Settings of epoch SGD that depend on the data."""

    radius: float
    """Radius of the l1 ball."""
    learning_rate: float
    """Step size of the first epoch."""
    first_epoch: int
    """Number of rows of the first epoch."""


class OneVsRestSGD:
    """Epoch SGD for all outputs: a single one, or for several classes one for each against the rest."""

    def __init__(
        self,
        n_features: int,
        loss: Loss,
        settings: SGDSettings,
        encode: Callable[[np.ndarray], np.ndarray],
        intercepts: np.ndarray,
        *,
        average: bool,
        fit_intercept: bool,
        intercept_scale: float,
    ) -> None:
        self.encode = encode
        """Targets of shape (n,) to targets of every output, shape (C, n)."""
        self._average = average
        self._learners = [
            EpochSGD(
                n_features,
                loss,
                settings.radius,
                learning_rate=settings.learning_rate,
                first_epoch=settings.first_epoch,
                intercept=float(intercept),
                fit_intercept=fit_intercept,
                intercept_scale=intercept_scale,
            )
            for intercept in intercepts
        ]

    @property
    def n_outputs(self) -> int:
        """How many learners there are."""
        return len(self._learners)

    def learn(self, samples: Samples, order: np.ndarray | None = None) -> None:
        """Learn rows, in the order given."""
        for learner, y in zip(self._learners, self.encode(samples.y), strict=True):
            learner.learn(samples.X, y, samples.weights, order=order)

    def solution(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (C, d) and intercepts (C,) of the averaged or the last iterates, as chosen."""
        return self.average() if self._average else self.last()

    def average(self) -> tuple[np.ndarray, np.ndarray]:
        """Averaged iterates, as Li, Yang, Zhang and Jin (2017) return them."""
        return _stacked([learner.average for learner in self._learners])

    def last(self) -> tuple[np.ndarray, np.ndarray]:
        """The last iterates: sparser, and in practice often better."""
        return _stacked([learner.last for learner in self._learners])

    @property
    def norm(self) -> float:
        """l1 norm of the last iterates, the largest over the outputs."""
        return max(learner.norm for learner in self._learners)

    @property
    def moments(self) -> np.ndarray:
        """Mean squares of the features over all rows learned."""
        return self._learners[0].moments


def _stacked(models: list[tuple[np.ndarray, float]]) -> tuple[np.ndarray, np.ndarray]:
    return np.stack([coef for coef, _ in models]), np.array([intercept for _, intercept in models])
