"""Systematic sampling: draws of distinct features with capped probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import solve_banded

from pauca.sparsification.sampling import RandomNumbers, Sampling, Scores, UnbiasedSampling, Variance, strongest

# A probability closer to one than this is one: sums of strengths are known to about so much.
CERTAIN_WITHIN = 1e-12


class Strata(NamedTuple):
    """The line of probabilities, cut into strata of length one; arrays of shape (K,)."""

    first: np.ndarray
    """The feature at the start of a stratum; it may begin in the stratum before."""
    before: np.ndarray
    """How much of it lies before the start."""
    after: np.ndarray
    """How much of it lies after."""


@dataclass(frozen=True, eq=False)
class Systematic(UnbiasedSampling):
    """K distinct features: ``u_j = w_j / pi_j`` for those drawn, with probabilities ``pi_j = min(1, tau strength_j)``.

    Features that are certain (``pi_j = 1``) keep their weight. The probabilities of all others, laid end to end in the
    order of the columns, fill strata of length one, and one point falls into each: Deville's systematic sampling (Tillé
    2006). A feature across the end of a stratum might be hit twice; where the point of a stratum falls depends on
    whether that feature was drawn before, so that it never is and every probability is kept. The mean of u is w.

    It is the same design as ordered pivotal sampling (Chauvet 2012): features duel one after the other in the order of
    the columns, each with whoever is left of the duels before. Hence its variance is known exactly, see ``variance``,
    and is never above that of K draws with replacement at ``p = pi / K`` (Chauvet and Ruiz-Gazen 2017). As the certain
    features add none of it, it is not above that of K draws with replacement by the same strength either: with R for
    the length of the sum of the uncertain ``x_j w_j``, T for the sum of their lengths and S for that of the certain
    ones, ``(T^2 - R^2) / (K - c) <= ((S + T)^2 - (S + R)^2) / K`` since c are certain with ``S >= c T / (K - c)``. One
    common random start for all strata, as in plain systematic sampling, has no such bound.
    """

    probabilities: np.ndarray
    """``pi``, shape (N,)."""
    ends: np.ndarray
    """Where the features end on the line of strata, shape (N,); those that are certain have no length."""
    count: int
    """Number of strata."""

    @classmethod
    def of(cls, features: np.ndarray, coef: np.ndarray, strength: np.ndarray, k: int) -> Sampling:
        """Draws of ``k`` distinct features, or of all if there are no more."""
        certain = _certain(strength, k)
        count = min(k, len(strength)) - int(np.count_nonzero(certain))
        if not count:  # all other features have probability zero
            features, coef, every = features[certain], coef[:, certain], np.ones(np.count_nonzero(certain))
            return cls(features, coef, every, np.zeros_like(every), 0)
        length = np.where(certain, 0.0, strength)
        ends = np.cumsum(length)
        length *= count / ends[-1]
        ends *= count / ends[-1]
        ends[ends >= ends[-1]] = count
        return cls(features, coef, np.where(certain, 1.0, length), ends, count)

    @property
    def inclusion(self) -> np.ndarray:
        """``pi``."""
        return self.probabilities

    def draw(self, rng: RandomNumbers) -> tuple[np.ndarray, np.ndarray]:
        """Those that are certain and one of each stratum."""
        drawn = self.probabilities == 1.0
        if self.count:
            drawn[self._one_of_each(rng.random(self.count))] = True
        positions = np.flatnonzero(drawn)
        return positions, 1.0 / self.probabilities[positions]

    def _one_of_each(self, uniform: np.ndarray) -> list[int]:
        """The features that the points of all strata fall on."""
        starts = np.arange(self.count)
        first, before, after = self.strata
        last = np.append(first[1:], np.searchsorted(self.ends, self.count))
        # Where the point falls if the feature that begins before was drawn there, and if it was not. Taken together the
        # point is uniform over its stratum: it hits that feature only in the second case, and more often then.
        if_drawn = after + uniform * (1.0 - after)
        cut = after / (1.0 - before)
        beyond = (uniform - cut) / np.maximum(1.0 - cut, np.finfo(float).tiny)
        if_not = np.where(uniform < cut, uniform * (1.0 - before), after + beyond * (1.0 - after))
        # Rounding must not put a point outside its stratum, nor on a feature that was drawn already.
        other = np.minimum(first + 1, last)
        fresh = np.clip(np.searchsorted(self.ends, starts + if_not, side="right"), first, last).tolist()
        again = np.clip(np.searchsorted(self.ends, starts + if_drawn, side="right"), other, last).tolist()
        shared = np.where(before > 0, first, -1).tolist()
        chosen = [-2]
        for one, another, common in zip(fresh, again, shared, strict=True):
            chosen.append(another if chosen[-1] == common else one)
        return chosen[1:]

    def variance(self, moments: np.ndarray, scores: Scores) -> Variance:
        """The variance of pivotal sampling, summed over its duels.

        Probabilities change by a martingale from duel to duel, so the variances of its steps add up. With ``z_j = x_j
        w_j / pi_j``, a duel of j with whoever carries the probability a that is left has the variance ``a pi_j |z_j -
        z|^2`` if the winner carries on with ``a + pi_j < 1``, and ``(1 - a) (1 - pi_j) |z_j - z|^2`` if the winner is
        drawn and the loser carries on with ``a + pi_j - 1``. Who carries is random, but its mean and mean square are
        not: with A for the sum of the probabilities in a stratum, T for that of ``pi_j |z_j|^2`` and t for that of
        ``pi_j z_j``, all of one stratum's duels come to ``A T - |t|^2``, less what the carrier brought of it. One
        product with X suffices.
        """
        squares = self._squares
        weights = float(squares @ (1.0 / self.probabilities - 1.0))
        if not self.count:
            return Variance(0.0, weights)
        first, before, after = self.strata
        probability = self.probabilities[first]
        whole = np.append(1.0 - before[1:], 1.0)  # A
        stays = before / (1.0 - after)  # the loser of the duel at the start is not the feature from before
        lone = squares[first] * moments[first] / probability**2
        inside, stratum = self._inside
        within = np.bincount(stratum, (squares * moments)[inside] / self.probabilities[inside], minlength=self.count)
        carried = self._carried(lone[:, None], within[:, None], whole, stays)[:, 0]
        total = after * carried + within
        variance = float(whole @ total - after**2 @ carried)
        duels = before[1:] * (1.0 - probability[1:])
        variance += float(duels @ (lone[1:] + total[:-1] / whole[:-1]))
        for output in self.coef:
            for block in scores(self._matrix(output)):
                inner, at_start = block[:, : self.count].T, block[:, self.count :].T
                mean = self._carried(at_start, inner, whole, stays)
                sums = after[:, None] * mean + inner
                variance -= float(np.vdot(sums, sums)) - float(after**2 @ np.einsum("ki,ki->k", mean, mean))
                cross = np.einsum("ki,ki->k", at_start[1:], sums[:-1])
                variance -= 2.0 * float(duels @ (cross / whole[:-1]))
        return Variance(max(variance, 0.0), weights)

    def variance_bound(self, moments: np.ndarray) -> Variance:
        """``sum_j |w_j|^2 m_j / pi_j`` over those that are not certain: that of draws with replacement."""
        each = np.where(self.probabilities < 1.0, self._squares / self.probabilities, 0.0)
        return Variance(float(each @ moments), float(each.sum()))

    @cached_property
    def strata(self) -> Strata:
        """Where the strata start."""
        starts = np.arange(self.count, dtype=np.float64)
        first = np.searchsorted(self.ends, starts, side="right")
        before = starts - np.where(first > 0, self.ends[first - 1], 0.0)
        return Strata(first, np.maximum(before, 0.0), self.ends[first] - starts)

    @cached_property
    def _inside(self) -> tuple[np.ndarray, np.ndarray]:
        """Features that are neither certain nor at the start of a stratum, and their strata."""
        free = self.probabilities < 1.0
        free[self.strata.first] = False
        positions = np.flatnonzero(free)
        return positions, np.searchsorted(self.strata.first, positions, side="right") - 1

    def _matrix(self, coef: np.ndarray) -> sparse.csc_array:
        """Coefficients of 2K scores: what lies inside each stratum, and ``z`` of the feature at its start."""
        inside, stratum = self._inside
        first = self.strata.first
        values = np.concatenate([coef[inside], coef[first] / self.probabilities[first]])
        columns = np.concatenate([stratum, self.count + np.arange(self.count)])
        shape = (len(self.probabilities), 2 * self.count)
        return sparse.csc_array((values, (np.concatenate([inside, first]), columns)), shape=shape)

    def _carried(self, at_start: np.ndarray, inner: np.ndarray, whole: np.ndarray, stays: np.ndarray) -> np.ndarray:
        """Means over who carries on at the start of every stratum, shape (K, m): a linear recursion over strata."""
        after = self.strata.after
        target = (1.0 - stays)[:, None] * at_start
        target[1:] += (stays[1:] / whole[:-1])[:, None] * inner[:-1]
        bands = np.ones((2, self.count))
        bands[1, :-1] = -stays[1:] * after[:-1] / whole[:-1]
        return np.asarray(solve_banded((1, 0), bands, target))


def _certain(strength: np.ndarray, k: int) -> np.ndarray:
    """Which features are in every draw of ``k``: those whose share of what is left to the others would exceed one."""
    if k >= len(strength):
        return np.ones(len(strength), dtype=bool)
    certain = np.zeros(len(strength), dtype=bool)
    top = strongest(strength, k)
    certain[top] = True
    # Sums from the smallest up: what is left after the largest must not be computed by subtraction.
    left = np.cumsum(np.append(strength[~certain].sum(), strength[top][::-1]))[1:][::-1]
    exceeds = strength[top] * (k - np.arange(k)) >= left * (1.0 - CERTAIN_WITHIN)
    if not exceeds.all():
        certain[top[int(np.argmin(exceeds)) :]] = False
    return certain
