"""The largest weights as they are: nothing is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pauca.sampling.base import RandomNumbers, Sampling, Scores, Spread


@dataclass(frozen=True, eq=False)
class Truncation(Sampling):
    """The ``k`` strongest features with their weights as they are; of equal ones those with the lowest index.

    The mean is not w, so there is no guarantee; with a refit it is usually the best all the same.
    """

    kept: np.ndarray
    """One for those kept and zero for all others, shape (N,)."""

    unbiased: ClassVar[bool] = False

    @classmethod
    def of(cls, features: np.ndarray, coef: np.ndarray, strength: np.ndarray, k: int) -> Sampling:
        """The ``k`` strongest, or all if there are no more."""
        kept = np.zeros(len(strength))
        kept[strongest(strength, k)] = 1.0
        return cls(features, coef, kept)

    @property
    def chances(self) -> np.ndarray:
        """One or zero."""
        return self.kept

    def draw(self, rng: RandomNumbers) -> tuple[np.ndarray, np.ndarray]:
        """Always the same; no random number is used."""
        places = np.flatnonzero(self.kept)
        return places, np.ones(len(places))

    def spread(self, moments: np.ndarray, scores: Scores) -> Spread:
        """``sum_i v_i (x_i w')^2`` and ``|w'|^2``, where w' is what was left out."""
        left_out = self.coef * (1.0 - self.kept)
        there = sum(float(np.vdot(block, block)) for block in scores(left_out.T))
        return Spread(there, float(np.vdot(left_out, left_out)))

    def ceiling(self, moments: np.ndarray) -> Spread:
        """``(sum_j |w'_j| sqrt(m_j))^2``, the triangle inequality, and ``|w'|^2``."""
        left_out = self._squares * (1.0 - self.kept)
        return Spread(float(np.sqrt(left_out * moments).sum()) ** 2, float(left_out.sum()))


def strongest(strength: np.ndarray, k: int) -> np.ndarray:
    """Places of the ``k`` largest, largest first; of equal ones the lowest place."""
    if k < len(strength):
        least = np.partition(strength, len(strength) - k)[len(strength) - k]
        above = np.flatnonzero(strength > least)
        places = np.concatenate([above, np.flatnonzero(strength == least)[: k - len(above)]])
    else:
        places = np.arange(len(strength))
    return places[np.lexsort((places, -strength[places]))]
