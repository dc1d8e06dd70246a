"""Small tridiagonal systems, many at a time: the Hessians in the thresholds between classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEAST_PIVOT = 1e-14


@dataclass(frozen=True, eq=False)
class Tridiagonal:
    """Symmetric positive definite tridiagonal matrices as ``L D L'``: pivots D (..., m), and L below its diagonal."""

    pivots: np.ndarray
    below: np.ndarray

    @classmethod
    def of(cls, diagonal: np.ndarray, off: np.ndarray) -> Tridiagonal:
        """Matrices with these entries; ``diagonal`` is taken over."""
        below = np.empty_like(off)
        for j in range(off.shape[-1]):
            below[..., j] = off[..., j] / diagonal[..., j]
            # What rounding leaves of a pivot that is next to nothing may be negative.
            left = diagonal[..., j + 1] - below[..., j] * off[..., j]
            diagonal[..., j + 1] = np.maximum(left, LEAST_PIVOT * diagonal[..., j + 1])
        return cls(diagonal, below)

    def only(self, place: int) -> Tridiagonal:
        """One of the matrices."""
        return Tridiagonal(self.pivots[place], self.below[place])

    def reshaped(self, shape: tuple[int, ...]) -> Tridiagonal:
        """With other leading axes."""
        return Tridiagonal(self.pivots.reshape(*shape, -1), self.below.reshape(*shape, self.below.shape[-1]))

    def half_solve(self, right: np.ndarray) -> np.ndarray:
        """``D^-1/2 L^-1 right``, shape (..., m): its squares add up to ``right' (L D L')^-1 right``."""
        return self._forward(right) / np.sqrt(self.pivots)

    def solve(self, right: np.ndarray) -> np.ndarray:
        """The solutions, shape (..., m)."""
        found = self._forward(right) / self.pivots
        for j in reversed(range(self.below.shape[-1])):
            found[..., j] -= self.below[..., j] * found[..., j + 1]
        return found

    def _forward(self, right: np.ndarray) -> np.ndarray:
        found = right.copy()
        for j in range(self.below.shape[-1]):
            found[..., j + 1] -= self.below[..., j] * found[..., j]
        return found


def solve_one(diagonal: list[float], off: list[float], right: list[float]) -> list[float]:
    """The solution of one system, by numbers: arrays so short take longer to call than to compute."""
    pivots, found, below = list(diagonal), list(right), []
    for j, across in enumerate(off):
        below.append(across / pivots[j])
        pivots[j + 1] = max(pivots[j + 1] - below[j] * across, LEAST_PIVOT * pivots[j + 1])
        found[j + 1] -= below[j] * found[j]
    found = [there / pivot for there, pivot in zip(found, pivots, strict=True)]
    for j in reversed(range(len(off))):
        found[j] -= below[j] * found[j + 1]
    return found
