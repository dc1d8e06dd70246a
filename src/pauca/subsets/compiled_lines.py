"""Gains along single columns by compiled kernels, where there are some for the loss."""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np

from pauca.compiled import Kernels, count_missed, plain
from pauca.design import Entries
from pauca.losses import Loss
from pauca.losses.compiled_curves import compiled_curve

# About what a kernel saves of a call, and for each number that is looked at, in seconds.
SAVED_BY_CALL = 3e-4
SAVED_BY_NUMBER = 3e-8


def _load() -> ModuleType:
    from pauca.subsets import kernels

    return kernels


KERNELS, COUPLED_KERNELS = Kernels(_load, "gains_of_entries"), Kernels(_load, "gains_of_columns", "Ordered(")


class Lines(NamedTuple):
    """What is known of b columns, shape (b,) each."""

    slope: np.ndarray
    curvature: np.ndarray
    penalty: np.ndarray
    rate: np.ndarray
    """How fast the curvature may change: 0 where it is constant, not a number where nothing is known of it."""
    low: np.ndarray
    high: np.ndarray
    """Bounds of the step, infinite where there are none."""


class CompiledSearch:
    """Searches along columns from a model of one output, by kernels as soon as it pays.

    Conventions
    -----------
    rows : targets, weights and scores of all rows of the data that have weight; merged : those of merged rows
    """

    def __init__(self, loss: Loss, before: float) -> None:
        self._curve = None if loss.coupled or loss.joint else compiled_curve(loss)
        self._before = before

    def of_columns(
        self, rows: tuple[np.ndarray, np.ndarray, np.ndarray], z: np.ndarray, lines: Lines, within: float
    ) -> np.ndarray | None:
        """Gains along whole columns, shape (b,); None without a kernel."""
        curve, kernels = self._curve, self._kernels(z.size)
        if curve is None or kernels is None:
            return None
        gains = np.empty(len(z))
        kernels.gains_of_columns(
            kernels.Data(*curve, *map(plain, rows)),
            plain(z),
            Lines(*map(plain, lines)),
            within,
            self._before,
            gains,
        )
        return gains

    def of_coupled_columns(
        self, loss: Loss, scores: np.ndarray, z: np.ndarray, lines: Lines, within: float
    ) -> np.ndarray | None:
        """The same for a loss that couples all rows of the data."""
        kernels, rows = COUPLED_KERNELS.module, loss.compiled_rows()
        if kernels is None or rows is None:
            return None
        columns, gains = z.take(rows.order, axis=1), np.empty(len(z))
        data = rows.data(columns, scores.take(rows.order))
        kernels.gains_of_columns(data, columns, Lines(*map(plain, lines)), within, self._before, gains)
        return gains if rows.keep(data) else None

    def of_entries(
        self,
        rows: tuple[np.ndarray, np.ndarray, np.ndarray],
        merged: tuple[np.ndarray, np.ndarray, np.ndarray],
        entries: Entries,
        lines: Lines,
        within: float,
    ) -> np.ndarray | None:
        """Gains along columns given by their entries; None without a kernel."""
        curve, kernels = self._curve, self._kernels(len(merged[0]) * len(entries.base))
        if curve is None or kernels is None:
            return None
        gains = np.empty(len(entries.base))
        kernels.gains_of_entries(
            kernels.Data(*curve, *map(plain, rows)),
            kernels.Data(*curve, *map(plain, merged)),
            entries.starts().astype(np.int64, copy=False),
            entries.rows.astype(np.int64, copy=False),
            plain(entries.values),
            plain(entries.base),
            Lines(*map(plain, lines)),
            within,
            self._before,
            gains,
        )
        return gains

    def _kernels(self, numbers: int) -> ModuleType | None:
        if self._curve is None:
            return None
        found = KERNELS.module
        if found is None:
            count_missed(SAVED_BY_CALL + SAVED_BY_NUMBER * numbers)
        return found
