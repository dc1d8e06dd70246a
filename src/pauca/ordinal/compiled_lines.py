"""Ordered classes by compiled kernels, as soon as it pays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from pauca.compiled import Kernels
from pauca.losses import Slopes
from pauca.ordinal.tridiagonal import Tridiagonal

# Scores and thresholds no further than this from the middle may be exponentiated apart and multiplied.
NARROW = 300.0

KERNELS = Kernels("pauca.ordinal.kernels", "find_thresholds")


@dataclass(frozen=True, eq=False)
class OrderedRows:
    """Rows in the order of their classes, and what bounds the thresholds between them."""

    order: np.ndarray
    """Their places among the data."""
    weights: np.ndarray
    ends: np.ndarray
    """Where the rows of each class begin, and the last end."""
    between: np.ndarray
    """Weights of the classes between two thresholds."""
    alike: np.ndarray
    """The best thresholds of scores that are all alike."""
    least_curvature: float
    trusted_below: float
    last_below: float
    most_steps: int

    @cached_property
    def given(self) -> tuple[Any, ...]:
        """What the search for thresholds is given of them."""
        limits = np.array([self.least_curvature, self.trusted_below, self.last_below, NARROW])
        shares = self.weights / self.weights.sum()
        return self.order, shares, self.weights, self.ends, self.between, self.alike, limits, self.most_steps

    def unknown(self) -> _Near:
        """Where thresholds start when nothing is known of scores."""
        none, m = np.zeros(len(self.order)), len(self.alike)
        return _Near(none, none, none, self.alike, np.ones(m), np.zeros(max(0, m - 1)))


class _Near(NamedTuple):
    """Scores in the order of classes with their best thresholds, and how these change with the scores."""

    x: np.ndarray
    up: np.ndarray
    down: np.ndarray
    thresholds: np.ndarray
    pivots: np.ndarray
    below: np.ndarray


class CompiledLines:
    """Scores of the rows with their best thresholds; what belongs to the last scores is kept.

    ``of_any`` finds thresholds whatever it takes, for the lines where plain Newton steps do not.
    """

    def __init__(self, rows: OrderedRows, of_any: Callable[[np.ndarray], np.ndarray]) -> None:
        self._rows = rows
        self._of_any = of_any
        self._last: Lines | None = None
        self._near = rows.unknown()

    def at(self, a: np.ndarray, *, curved: bool = False) -> Lines | None:
        """Scores of shape (..., n); None without kernels, or where exponentials would overflow.

        Those that derivatives are asked for tell where the thresholds of the next scores are.
        """
        kernels = KERNELS.instead_of(a.size)
        if kernels is None:
            return None
        if self._last is None or self._last.of is not a:
            self._last = self._solved(kernels, a)
        found = self._last
        if curved and found is not None:
            bent, hessian = found.bent, found.hessian.only(0)
            self._near = _Near(found.x[0], bent.up[0], bent.down[0], found.found[0], hessian.pivots, hessian.below)
        return found

    def rows(self) -> RowsInOrder | None:
        """What compiled refits are given; None without kernels."""
        return None if KERNELS.module is None else RowsInOrder(self._rows, self._near, self._keep)

    def _keep(self, near: _Near) -> None:
        self._near = near

    def _solved(self, kernels: ModuleType, a: np.ndarray) -> Lines | None:
        # Code is compiled for arrays that may be written to: others would be compiled for anew.
        rows, lines = self._rows, np.require(a.reshape(-1, a.shape[-1]), requirements=("C", "W"))
        (b, n), m = lines.shape, len(rows.alike)
        middles, found, solved = np.empty(b), np.empty((b, m)), np.empty(b, dtype=np.bool_)
        x, e = np.empty((2, b, n))
        if not kernels.find_thresholds(lines, *rows.given, *self._near, middles, x, e, found, solved):
            return None
        if not solved.all():
            found[~solved] = self._of_any(lines[~solved])
            if not np.abs(found).max() <= NARROW:
                return None
        return Lines(kernels, rows, a, middles, x, e, found)


class RowsInOrder(NamedTuple):
    """Rows as compiled refits take them: see ``CompiledRows``."""

    rows: OrderedRows
    near: _Near
    remember: Callable[[_Near], None]

    @property
    def order(self) -> np.ndarray:
        """Places among the data of the rows in the order of their classes."""
        return self.rows.order

    def data(self, columns: np.ndarray, scores: np.ndarray) -> Any:
        """Columns (q, n) and scores (n,) in this order; kernels write to what is known of scores nearby."""
        _, shares, *given = self.rows.given
        near = [np.array(part) for part in self.near]
        x, up, down, *rest = near
        from pauca.ordinal.refit_kernels import Ordered

        known: tuple[Any, ...] = self.rows.weights, columns, scores, shares, *given[1:], x, np.zeros(len(x)), up, down
        known = *known, *rest, np.zeros(1)
        return Ordered(*known)

    def keep(self, data: Any) -> bool:
        """Remember where thresholds were last; False where some were not found."""
        if data.failed[0]:
            return False
        self.remember(_Near(data.x, data.up, data.down, data.thresholds, data.pivots, data.below))
        return True


@dataclass(frozen=True, eq=False)
class _Bent:
    """Derivatives of rows in the order of the data, and weighted curvatures of their sides in that of the classes."""

    derivative: np.ndarray
    curvature: np.ndarray
    up: np.ndarray
    down: np.ndarray


@dataclass(frozen=True, eq=False)
class Lines:
    """Scores of shape (..., n), as B lines in the order of classes, with their best thresholds."""

    kernels: ModuleType
    rows: OrderedRows
    of: np.ndarray
    middles: np.ndarray
    """Shape (B,)."""
    x: np.ndarray
    """Scores around their middles, shape (B, n)."""
    e: np.ndarray
    """Exponentials of ``x``."""
    found: np.ndarray
    """Thresholds around the middle, shape (B, m)."""

    def thresholds(self) -> np.ndarray:
        """The best thresholds, shape (..., m)."""
        return (self.found + self.middles[:, None]).reshape(*self.of.shape[:-1], -1)

    def losses(self) -> np.ndarray:
        """Losses of all rows."""
        found = np.empty_like(self.x)
        self.kernels.losses(self.e, self.found, self.rows.ends, self.rows.order, found)
        return found.reshape(self.of.shape)

    def slopes(self) -> Slopes:
        """Derivatives and curvatures of all rows at fixed thresholds."""
        return Slopes(self.bent.derivative.reshape(self.of.shape), self.bent.curvature.reshape(self.of.shape))

    @cached_property
    def bent(self) -> _Bent:
        """What the best thresholds leave of slopes and curvatures."""
        rows, found = self.rows, np.empty((4, *self.x.shape))
        self.kernels.slopes(self.e, self.found, rows.weights, rows.ends, rows.order, *found)
        return _Bent(*found)

    @cached_property
    def hessian(self) -> Tridiagonal:
        """Second derivatives in the thresholds, shape (B, m)."""
        rows, (b, m) = self.rows, self.found.shape
        pivots, below = np.empty((b, m)), np.empty((b, m - 1))
        self.kernels.hessians(
            self.found, self.bent.up, self.bent.down, rows.ends, rows.between, rows.least_curvature, pivots, below
        )
        return Tridiagonal(pivots, below)

    def across(self, columns: np.ndarray) -> np.ndarray:
        """Second derivatives in thresholds and columns (..., n), shape (..., m)."""
        columns = np.broadcast_to(columns, np.broadcast_shapes(columns.shape, self.of.shape))
        in_order = columns.reshape(-1, columns.shape[-1]).take(self.rows.order, axis=1)
        found = np.empty((len(in_order), self.found.shape[1]))
        self.kernels.across(in_order, self.bent.up, self.bent.down, self.rows.ends, found)
        return found.reshape(*columns.shape[:-1], found.shape[1])

    def image(self, moved: np.ndarray) -> np.ndarray:
        """How weighted slopes of rows change when thresholds are moved, (..., m): shape (..., n)."""
        each = np.ascontiguousarray(moved.reshape(-1, moved.shape[-1]))
        found = np.empty((len(each), self.x.shape[1]))
        self.kernels.image(each, self.rows.order, self.bent.up, self.bent.down, self.rows.ends, found)
        return found.reshape(*moved.shape[:-1], found.shape[1])
