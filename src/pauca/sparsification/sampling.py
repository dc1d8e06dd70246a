"""Schemes that put few coefficients in place of many: their draws, and the variance of these. Truncation is one."""

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


class Variance(NamedTuple):
    """The expected squared distance of draws u from the dense w."""

    scores: float
    """``E sum_i v_i |x_i (u - w)|^2``, scores centred where an intercept is fitted."""
    weights: float
    """``E |u - w|^2``."""


@dataclass(frozen=True, eq=False)
class Sampling(ABC):
    """A sampling scheme for given coefficients, from which any number of draws can be made."""

    features: np.ndarray
    """Features that may be drawn, ascending, shape (N,)."""
    coef: np.ndarray
    """Their dense coefficients w, shape (C, N)."""

    @property
    @abstractmethod
    def inclusion(self) -> np.ndarray:
        """The probability of each feature to be in a draw, shape (N,)."""

    @abstractmethod
    def draw(self, rng: RandomNumbers) -> tuple[np.ndarray, np.ndarray]:
        """Positions in ``features``, ascending, and factors of the coefficients there."""


@dataclass(frozen=True, eq=False)
class UnbiasedSampling(Sampling):
    """A scheme whose mean is w, so that the expected cost of a draw is known."""

    @abstractmethod
    def variance(self, moments: np.ndarray, scores: Scores) -> Variance:
        """The exact variance; ``moments`` are those of the columns ``features``."""

    @abstractmethod
    def variance_bound(self, moments: np.ndarray) -> Variance:
        """An upper bound of the variance, whatever the correlations of the columns."""

    @property
    def _squares(self) -> np.ndarray:
        """``|w_j|^2`` over all outputs."""
        return np.einsum("cj,cj->j", self.coef, self.coef)


@dataclass(frozen=True, eq=False)
class Truncation(Sampling):
    """The ``k`` strongest features with their weights as they are; of equal ones those with the lowest index.

    The mean is not w, so there is no guarantee; with a refit it is usually the best nevertheless.
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
    def inclusion(self) -> np.ndarray:
        """One or zero."""
        return self.kept

    def draw(self, rng: RandomNumbers) -> tuple[np.ndarray, np.ndarray]:
        """Always the same; no random number is used."""
        positions = np.flatnonzero(self.kept)
        return positions, np.ones(len(positions))


def strongest(strength: np.ndarray, k: int) -> np.ndarray:
    """Positions of the ``k`` largest, largest first; of equal ones the lowest position."""
    if k < len(strength):
        least = np.partition(strength, len(strength) - k)[len(strength) - k]
        above = np.flatnonzero(strength > least)
        positions = np.concatenate([above, np.flatnonzero(strength == least)[: k - len(above)]])
    else:
        positions = np.arange(len(strength))
    return positions[np.lexsort((positions, -strength[positions]))]


@dataclass(frozen=True, eq=False)
class WithReplacement(UnbiasedSampling):
    """K draws with replacement: ``u_j = counts_j w_j / (K p_j)`` with ``p_j`` in proportion to the strength.

    Shalev-Shwartz, Srebro and Zhang (2010), Algorithm 1, for the strength ``|w_j|``; Li, Yang, Zhang and Jin (2017),
    Algorithm 2, for ``|w_j| sqrt(m_j)``. The mean of u is w.
    """

    shares: np.ndarray
    """``p``, shape (N,), summing to one."""
    draws: int

    @classmethod
    def of(cls, features: np.ndarray, coef: np.ndarray, strength: np.ndarray, k: int) -> Sampling:
        """Draws in proportion to ``strength``."""
        return cls(features, coef, strength / strength.sum() if len(strength) else strength, k)

    @property
    def inclusion(self) -> np.ndarray:
        """``1 - (1 - p_j)^K``."""
        with np.errstate(divide="ignore"):  # a single feature has all of p
            return -np.expm1(self.draws * np.log1p(-np.minimum(self.shares, 1.0)))

    def draw(self, rng: RandomNumbers) -> tuple[np.ndarray, np.ndarray]:
        """Distinct features of K draws; the factor of each is its share of the draws over its probability."""
        if not len(self.shares):
            return np.zeros(0, dtype=np.intp), np.zeros(0)
        ends = np.cumsum(self.shares)
        drawn = np.searchsorted(ends, rng.random(self.draws) * ends[-1], side="right")
        positions, counts = np.unique(np.minimum(drawn, len(ends) - 1), return_counts=True)
        return positions, counts / (self.draws * self.shares[positions])

    def variance(self, moments: np.ndarray, scores: Scores) -> Variance:
        """``(1/K) (sum_j |w_j|^2 m_j / p_j - sum_i v_i (x_i w)^2)``, and the same with moments of one."""
        bound = self.variance_bound(moments)
        dense = sum(float(np.vdot(block, block)) for block in scores(self.coef.T))
        return Variance(
            max(bound.scores - dense / self.draws, 0.0),
            max(bound.weights - float(self._squares.sum()) / self.draws, 0.0),
        )

    def variance_bound(self, moments: np.ndarray) -> Variance:
        """``(1/K) sum_j |w_j|^2 m_j / p_j``.

        With ``|x| <= 1`` this is at most ``|w|_1^2 / K`` for draws by magnitude (Lemma A.1 of Shalev-Shwartz et al.),
        and it is ``(sum_j |w_j| sqrt(m_j))^2 / K`` for draws by moments (Theorem 3 of Li et al.), the least there is.
        """
        each = self._squares / (self.draws * self.shares)
        return Variance(float(each @ moments), float(each.sum()))
