"""Draws with replacement, as in both papers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pauca.sparsification.base import RandomNumbers, Sampling, Scores, Spread, Unbiased


@dataclass(frozen=True, eq=False)
class WithReplacement(Unbiased):
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
    def chances(self) -> np.ndarray:
        """``1 - (1 - p_j)^K``."""
        with np.errstate(divide="ignore"):  # a single feature has all of p
            return -np.expm1(self.draws * np.log1p(-np.minimum(self.shares, 1.0)))

    def draw(self, rng: RandomNumbers) -> tuple[np.ndarray, np.ndarray]:
        """Distinct features of K draws; each has its share of the draws over its chance in one."""
        if not len(self.shares):
            return np.zeros(0, dtype=np.intp), np.zeros(0)
        ends = np.cumsum(self.shares)
        met = np.searchsorted(ends, rng.random(self.draws) * ends[-1], side="right")
        places, counts = np.unique(np.minimum(met, len(ends) - 1), return_counts=True)
        return places, counts / (self.draws * self.shares[places])

    def spread(self, moments: np.ndarray, scores: Scores) -> Spread:
        """``(1/K) (sum_j |w_j|^2 m_j / p_j - sum_i v_i (x_i w)^2)``, and the same with moments of one."""
        ceiling = self.ceiling(moments)
        dense = sum(float(np.vdot(block, block)) for block in scores(self.coef.T))
        return Spread(
            max(ceiling.scores - dense / self.draws, 0.0),
            max(ceiling.weights - float(self._squares.sum()) / self.draws, 0.0),
        )

    def ceiling(self, moments: np.ndarray) -> Spread:
        """``(1/K) sum_j |w_j|^2 m_j / p_j``.

        With ``|x| <= 1`` this is at most ``|w|_1^2 / K`` for draws by magnitude (Lemma A.1 of Shalev-Shwartz et al.),
        and it is ``(sum_j |w_j| sqrt(m_j))^2 / K`` for draws by moments (Theorem 3 of Li et al.), the least there is.
        """
        each = self._squares / (self.draws * self.shares)
        return Spread(float(each @ moments), float(each.sum()))
