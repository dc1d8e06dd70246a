"""What a way to draw few weights for many is: chances, draws, and how far the draws lie from what they stand for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

RandomNumbers = np.random.Generator | np.random.RandomState

Scores = Callable[[Any], Iterator[np.ndarray]]
"""From coefficients of shape (N, m), dense or sparse, to row blocks of the m scores of every row.

Scores are those of the columns ``features``, centred where an intercept is fitted; every row is multiplied by the root
of its weight, so that sums of squares are weighted means.
"""


@dataclass(frozen=True, eq=False)
class Draw:
    """A sparse vector of coefficients: ``values`` of shape (m,), or (C, m), at the ascending indices ``support``."""

    support: np.ndarray
    values: np.ndarray


class Spread(NamedTuple):
    """How far draws u lie from the dense w, in the mean over all draws."""

    scores: float
    """``E sum_i v_i |x_i (u - w)|^2``, scores centred where an intercept is fitted."""
    weights: float
    """``E |u - w|^2``."""


@dataclass(frozen=True, eq=False)
class Sampling(ABC):
    """A way to draw, laid out for given coefficients, from which any number of draws can be had."""

    features: np.ndarray
    """Features that may be drawn, ascending, shape (N,)."""
    coef: np.ndarray
    """Their dense coefficients w, shape (C, N)."""

    @property
    @abstractmethod
    def chances(self) -> np.ndarray:
        """The chance of each feature to be in a draw at all, shape (N,)."""

    @abstractmethod
    def draw(self, rng: RandomNumbers) -> tuple[np.ndarray, np.ndarray]:
        """Places in ``features``, ascending, and what the coefficients there are multiplied by."""


@dataclass(frozen=True, eq=False)
class Unbiased(Sampling):
    """A way to draw whose mean is w, so that what the draws cost in the mean can be foretold."""

    @abstractmethod
    def spread(self, moments: np.ndarray, scores: Scores) -> Spread:
        """How far draws lie from w, exactly; ``moments`` are those of the columns ``features``."""

    @abstractmethod
    def ceiling(self, moments: np.ndarray) -> Spread:
        """What the spread never exceeds, whatever the correlations of the columns."""

    @property
    def _squares(self) -> np.ndarray:
        """``|w_j|^2`` over all outputs."""
        return np.einsum("cj,cj->j", self.coef, self.coef)
