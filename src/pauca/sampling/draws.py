"""Few weights drawn to stand for many: what needs the coefficients and the moments of the columns, but no X.

Conventions
-----------
coef     : dense coefficients, shape (d,), or (C, d) for C outputs, which share the drawn features
moments  : what a unit of squared weight costs, shape (d,): the second moments ``m_j`` of the columns, their variances
           ``s_j`` where an intercept is fitted, plus the ridge where there is one
strength : ``|w_j|`` times whatever the method weighs it by; for several outputs |.| is the 2-norm of the C weights,
           since the excess is a sum over outputs and ``sum_j |w_j|^2 moments_j / p_j`` is least for ``p_j`` in
           proportion to ``|w_j|_2 sqrt(moments_j)``
features : those with strength, ascending; all other features are never drawn

Features without moment are constant: no score depends on them, and none of the methods takes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

METHODS = ("magnitude", "moments", "systematic", "truncate")

RandomNumbers = np.random.Generator | np.random.RandomState


@dataclass(frozen=True, eq=False)
class Draw:
    """A sparse vector of coefficients: ``values`` of shape (m,), or (C, m), at the ascending indices ``support``."""

    support: np.ndarray
    values: np.ndarray


class Sampling(Protocol):
    """A way to draw, laid out for given coefficients, from which any number of draws can be had."""

    features: np.ndarray
    """Features that may be drawn, ascending, shape (N,)."""
    coef: np.ndarray
    """Their coefficients, shape (C, N)."""
    chances: np.ndarray
    """Chance of each to be in a draw at all, shape (N,)."""

    def draw(self, rng: RandomNumbers) -> tuple[np.ndarray, np.ndarray]:
        """Places in ``features``, ascending, and what the coefficients there are multiplied by."""
        ...


def draw(coef: np.ndarray, moments: np.ndarray, k: int, method: str, rng: RandomNumbers) -> Draw:
    """Draw a sparse vector in place of a dense one.

    Parameters
    ----------
    coef : ndarray of shape (d,) or (C, d)
        Dense coefficients.
    moments : ndarray of shape (d,)
        Second moments of the columns, not negative; their variances where an intercept is fitted beside them.
    k : int
        Number of draws for "magnitude" and "moments", which may meet a feature more than once; number of features for
        "systematic" and "truncate".
    method : {"magnitude", "moments", "systematic", "truncate"}
    rng : numpy.random.Generator or RandomState
        Where random numbers come from; "truncate" needs none.

    Returns
    -------
    Draw
        Support and values; both empty if no coefficient counts.

    Notes
    -----
    Time and memory are ``O(d + k log d)``, and all arrays but one mask are as long as there are coefficients that are
    not zero.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> drawn = draw(np.array([5.0, 0.0, -1.0, 0.5]), np.ones(4), 2, "systematic", rng)
    >>> drawn.support, drawn.values
    (array([0, 2]), array([ 5. , -1.5]))
    """
    sampling = lay_out(coef, moments, k, method)
    places, factors = sampling.draw(rng)
    values = sampling.coef[:, places] * factors
    return Draw(sampling.features[places], values if np.ndim(coef) == 2 else values[0])


def lay_out(coef: np.ndarray, moments: np.ndarray, k: int, method: str) -> Sampling:
    """The sampling of a method, from which any number of draws can be had; arguments as for ``draw``."""
    outputs = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    magnitude = np.abs(outputs[0]) if len(outputs) == 1 else _norms(outputs)
    features = np.flatnonzero((magnitude > 0) & (moments > 0))
    # Both factors are brought to at most one, so that no product leaves the range of floating-point numbers.
    strength = _share_of_largest(magnitude[features])
    if method != "magnitude":
        strength *= np.sqrt(_share_of_largest(np.asarray(moments, dtype=np.float64)[features]))
        features, strength = features[strength > 0], strength[strength > 0]
    return KINDS[method](features, np.ascontiguousarray(outputs[:, features]), strength, k)


@dataclass(frozen=True, eq=False)
class WithReplacement:
    """K draws with replacement: ``u_j = counts_j w_j / (K p_j)`` with ``p_j`` in proportion to the strength.

    Shalev-Shwartz, Srebro and Zhang (2010), Algorithm 1, for the strength ``|w_j|``; Li, Yang, Zhang and Jin (2017),
    Algorithm 2, for ``|w_j| sqrt(m_j)``. The mean of u is w.
    """

    features: np.ndarray
    coef: np.ndarray
    shares: np.ndarray
    """``p``, shape (N,), summing to one."""
    draws: int

    @classmethod
    def of(cls, features: np.ndarray, coef: np.ndarray, strength: np.ndarray, k: int) -> WithReplacement:
        """Draws in proportion to ``strength``."""
        return cls(features, coef, strength / strength.sum() if len(strength) else strength, k)

    @property
    def chances(self) -> np.ndarray:
        """``1 - (1 - p_j)^K``."""
        with np.errstate(divide="ignore"):  # one feature has all of p
            return -np.expm1(self.draws * np.log1p(-np.minimum(self.shares, 1.0)))

    def draw(self, rng: RandomNumbers) -> tuple[np.ndarray, np.ndarray]:
        """Distinct features of K draws, each with its share of them over its chance."""
        if not len(self.shares):
            return _nothing()
        ends = np.cumsum(self.shares)
        met = np.searchsorted(ends, rng.random(self.draws) * ends[-1], side="right")
        places, counts = np.unique(np.minimum(met, len(ends) - 1), return_counts=True)
        return places, counts / (self.draws * self.shares[places])


@dataclass(frozen=True, eq=False)
class Systematic:
    """K distinct features: ``u_j = w_j / pi_j`` for those drawn, with chances ``pi_j = min(1, tau strength_j)``.

    Features that are certain (``pi_j = 1``) keep their weight. The chances of all others, laid end to end in the order
    of the columns, fill strata of length one, and one point falls into each: Deville's systematic sampling (Tillé
    2006). A feature that reaches over the end of a stratum might be hit twice; where the point of a stratum falls
    depends on whether that feature was drawn before, so that it never is and every chance is kept. The mean of u is w.

    It is the same design as ordered pivotal sampling (Chauvet 2012), whose variance has a closed form
    (``pauca.sampling.expected``) and is never above that of K draws with replacement at ``p = pi / K`` (Chauvet and
    Ruiz-Gazen 2017). One common random start for all strata, as in plain systematic sampling, has neither.
    """

    features: np.ndarray
    coef: np.ndarray
    chances: np.ndarray
    ends: np.ndarray
    """Where the pieces of features end on the line of strata, shape (N,); those that are certain have no length."""
    strata: int

    @classmethod
    def of(cls, features: np.ndarray, coef: np.ndarray, strength: np.ndarray, k: int) -> Systematic:
        """Draws of ``k`` distinct features, or of all if there are no more."""
        certain = _certain(strength, k)
        strata = max(min(k, len(strength)) - int(np.count_nonzero(certain)), 0)
        length = np.where(certain, 0.0, strength)
        ends = np.cumsum(length)
        if strata:
            ends *= strata / ends[-1]
            length *= strata / length.sum()
        return cls(features, coef, np.where(certain, 1.0, length), ends, strata)

    def draw(self, rng: RandomNumbers) -> tuple[np.ndarray, np.ndarray]:
        """Those that are certain and one of each stratum."""
        drawn = np.zeros(len(self.chances), dtype=bool)
        drawn[self.chances == 1.0] = True
        if self.strata:
            drawn[self._one_of_each(rng.random(self.strata))] = True
        places = np.flatnonzero(drawn)
        return places, 1.0 / self.chances[places]

    def _one_of_each(self, uniform: np.ndarray) -> list[int]:
        """The features that the points of all strata fall on."""
        starts = np.arange(self.strata)
        first, before, after = self.borders()
        last = np.append(first[1:], len(self.ends) - 1)
        # Where the point falls if the feature that reaches in was drawn in the stratum before, and if it was not.
        if_drawn = after + uniform * (1.0 - after)
        cut = after / (1.0 - before)
        beyond = np.where(cut < 1.0, (uniform - cut) / np.where(cut < 1.0, 1.0 - cut, 1.0), 0.0)
        if_not = np.where(uniform < cut, uniform * (1.0 - before), after + beyond * (1.0 - after))
        found = [np.searchsorted(self.ends, starts + points, side="right") for points in (if_not, if_drawn)]
        # Rounding must not put a point outside its stratum, nor on a feature that was drawn already.
        not_again = np.where(before > 0, np.minimum(first + 1, last), first)
        choices = zip(np.clip(found[0], first, last).tolist(), np.clip(found[1], not_again, last).tolist(), strict=True)
        borders = [*np.where(before > 0, first, -1).tolist()[1:], -1]
        chosen, drawn_before = [], 0
        for pair, border in zip(choices, borders, strict=True):
            chosen.append(pair[drawn_before])
            drawn_before = int(chosen[-1] == border)
        return chosen

    def borders(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The feature at the start of every stratum, and how much of it lies before and after that point."""
        starts = np.arange(self.strata, dtype=np.float64)
        first = np.searchsorted(self.ends, starts, side="right")
        before = starts - np.where(first > 0, self.ends[first - 1], 0.0)
        return first, np.maximum(before, 0.0), self.ends[first] - starts


@dataclass(frozen=True, eq=False)
class Truncation:
    """The ``k`` strongest features with their weights as they are; of equal ones those with the lowest index.

    Nothing is drawn, and the mean is not w: no guarantee, but with a refit usually the best (docs/sparsify.md).
    """

    features: np.ndarray
    coef: np.ndarray
    chances: np.ndarray

    @classmethod
    def of(cls, features: np.ndarray, coef: np.ndarray, strength: np.ndarray, k: int) -> Truncation:
        """The ``k`` strongest, or all if there are no more."""
        kept = np.zeros(len(strength))
        kept[_strongest(strength, k)] = 1.0
        return cls(features, coef, kept)

    def draw(self, rng: RandomNumbers) -> tuple[np.ndarray, np.ndarray]:
        """Always the same; no random number is used."""
        places = np.flatnonzero(self.chances)
        return places, np.ones(len(places))


KINDS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray, int], Sampling]] = {
    "magnitude": WithReplacement.of,
    "moments": WithReplacement.of,
    "systematic": Systematic.of,
    "truncate": Truncation.of,
}


def _certain(strength: np.ndarray, k: int) -> np.ndarray:
    """Which features are in every draw of ``k``: those whose share of what is left to the others would exceed one."""
    certain = np.zeros(len(strength), dtype=bool)
    if k >= len(strength):
        certain[:] = True
        return certain
    top = _strongest(strength, k)
    certain[top] = True
    # Sums from the smallest up: what is left after the largest must not be had by subtraction.
    left = np.cumsum(np.append(strength[~certain].sum(), strength[top][::-1]))[1:][::-1]
    exceeds = strength[top] * (k - np.arange(k)) >= left
    certain[top if exceeds.all() else top[int(np.argmin(exceeds)) :]] = exceeds.all()
    return certain


def _strongest(strength: np.ndarray, k: int) -> np.ndarray:
    """Places of the ``k`` largest, largest first; of equal ones the lowest place."""
    if k < len(strength):
        least = np.partition(strength, len(strength) - k)[len(strength) - k]
        above = np.flatnonzero(strength > least)
        places = np.concatenate([above, np.flatnonzero(strength == least)[: k - len(above)]])
    else:
        places = np.arange(len(strength))
    return places[np.lexsort((places, -strength[places]))]


def _norms(outputs: np.ndarray) -> np.ndarray:
    """2-norms of the columns, without overflow."""
    largest = np.abs(outputs).max(initial=0.0)
    return np.sqrt(np.sum((outputs / largest) ** 2, axis=0)) * largest if largest > 0 else np.zeros(outputs.shape[1])


def _share_of_largest(values: np.ndarray) -> np.ndarray:
    return values / values.max(initial=0.0) if len(values) else values.copy()


def _nothing() -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(0, dtype=np.intp), np.zeros(0)
