"""The largest weights as they are: nothing is drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pauca.sparsification.base import RandomNumbers, Sampling


@dataclass(frozen=True, eq=False)
class Truncation(Sampling):
    """The ``k`` strongest features with their weights as they are; of equal ones those with the lowest index.

    The mean is not w, so there is no guarantee; with a refit it is usually the best all the same.
    """

    kept: np.ndarray
    """One for those kept and zero for all others, shape (N,)."""

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


def strongest(strength: np.ndarray, k: int) -> np.ndarray:
    """Places of the ``k`` largest, largest first; of equal ones the lowest place."""
    if k < len(strength):
        least = np.partition(strength, len(strength) - k)[len(strength) - k]
        above = np.flatnonzero(strength > least)
        places = np.concatenate([above, np.flatnonzero(strength == least)[: k - len(above)]])
    else:
        places = np.arange(len(strength))
    return places[np.lexsort((places, -strength[places]))]
