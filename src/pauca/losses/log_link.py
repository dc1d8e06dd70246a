"""Losses of positive means with a logarithmic link: Poisson, gamma, Tweedie, negative binomial. Gamma's inverse link.

Each is half the unit deviance of its family, so that a perfect fit has the value zero.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammaln, xlogy

from pauca.losses.base import Loss, Slopes

# The range in which the dispersion of a negative binomial is estimated: from next to Poisson's to far beyond any data.
DISPERSIONS = (1e-5, 1e5)

# Shapes of the gamma distribution up to this; a model that leaves less than its inverse is taken to be perfect.
LARGEST_SHAPE = 1e12


# Where the score of a slope has no closed form it is bisected to rounding in this range.
LARGEST_SCORE = 600.0
BISECTIONS = 60


class LogLink(Loss):
    """What losses of a mean ``e^a`` share."""

    explains = "deviance"
    link = "exp"
    ratio = "ratio of means"

    def prediction(self, a: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp(a)

    def constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        return float(np.log(weights @ y))

    def diverges_for(self, y: np.ndarray) -> bool:
        # Only zeros ask for a mean of zero.
        return self.may_diverge and not np.all(y > 0)


def _check_not_negative(y: np.ndarray, name: str, what: str) -> None:
    if np.any(y < 0):
        raise ValueError(f"{name} loss needs {what}s: y must not be negative, but its minimum is {y.min():g}.")
    if not np.all(np.any(y > 0, axis=-1)):
        raise ValueError(f"{name} loss needs a positive {what} in every output, in a row that has weight.")


def _check_positive(y: np.ndarray, name: str) -> None:
    if np.any(y <= 0):
        raise ValueError(
            f"{name} loss needs amounts: y must be positive, but its minimum is {y.min():g}. For amounts that may be "
            "zero use loss='tweedie'."
        )


class Poisson(LogLink):
    """Counts with mean ``e^a``: ``e^a - y a`` plus the constant ``y log y - y``, which makes a perfect fit zero."""

    ratio = "rate ratio"
    free_dispersion = False
    self_concordance = 1.0
    may_diverge = True

    def check_target(self, y: np.ndarray) -> None:
        _check_not_negative(y, "Poisson", "count")

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        # With r = a - log y this is y (e^r - 1 - r), which does not lose digits for large counts.
        counts = np.where(y > 0, y, 1.0)
        r = a - np.log(counts)
        return np.where(y > 0, np.maximum(counts * (np.expm1(r) - r), 0.0), np.exp(a))

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.exp(a) - y

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.exp(a)

    def slopes(self, y: np.ndarray, a: np.ndarray) -> Slopes:
        mean = np.exp(a)
        return Slopes(mean - y, mean)

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        inside = t >= -y
        u = np.where(inside, t + y, 0.0)
        return np.where(inside, xlogy(u, u) - u - xlogy(y, y) + y, np.inf)

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        return 2.0 * n_rows * float(np.sum(losses))


class Gamma(LogLink):
    """Positive amounts with mean ``e^a`` and a constant coefficient of variation.

    ``y e^-a + a`` plus the constant ``-1 - log y``, which makes a perfect fit zero.
    """

    free_dispersion = True
    self_concordance = 1.0

    def check_target(self, y: np.ndarray) -> None:
        _check_positive(y, "Gamma")

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        r = np.log(y) - a
        return np.maximum(np.expm1(r) - r, 0.0)

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).derivative

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).curvature

    def slopes(self, y: np.ndarray, a: np.ndarray) -> Slopes:
        ratio = np.exp(np.log(y) - a)
        return Slopes(1.0 - ratio, ratio)

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        inside = t <= 1
        u = np.where(inside, 1.0 - t, 0.0)
        return np.where(inside, t * np.log(y) + xlogy(u, u) + t, np.inf)

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        return n_rows * sum(_gamma_likelihood(float(loss)) for loss in losses)


class GammaInverseLink(Loss):
    """Positive amounts with mean ``1 / a`` and a constant coefficient of variation: the canonical link of the gamma.

    ``y a - log a`` plus a constant, for scores ``a > 0``; infinite for others.
    """

    explains = "deviance"
    free_dispersion = True
    link = "inverse"

    def check_target(self, y: np.ndarray) -> None:
        _check_positive(y, "Gamma")

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        inside = a > 0
        r = y * np.where(inside, a, 1.0) - 1.0
        with np.errstate(divide="ignore"):  # of scores next to zero
            return np.where(inside, np.maximum(r - np.log1p(r), 0.0), np.inf)

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).derivative

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).curvature

    def slopes(self, y: np.ndarray, a: np.ndarray) -> Slopes:
        # Left of the domain the derivative is that of its wall, so that a step that has left it is seen to rise.
        with np.errstate(divide="ignore", over="ignore"):
            mean = 1.0 / np.maximum(a, 0.0)
            return Slopes(y - mean, mean * mean)

    def concordance_at(self, a: np.ndarray) -> float | None:
        # (1 + x)^-2 is nowhere below e^-2x.
        least = float(a.min(initial=np.inf))
        return 2.0 / least if 0 < least < np.inf else None

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        inside = t < y
        return np.where(inside, np.log(y) - np.log(np.where(inside, y - t, 1.0)), np.inf)

    def prediction(self, a: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return 1.0 / np.maximum(a, 0.0)

    def constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        return float(1.0 / (weights @ y))

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        return n_rows * sum(_gamma_likelihood(float(loss)) for loss in losses)


def _gamma_likelihood(loss: float) -> float:
    """``-2 log L`` of a row from the mean loss, at the shape that is likeliest: ``log(shape) - digamma(shape) = loss``.

    Up to the terms that depend on y alone.
    """
    if loss < 1.0 / LARGEST_SHAPE:
        shape = LARGEST_SHAPE
    else:  # log(s) - digamma(s) lies between 1 / (2 s) and 1 / s
        shape = brentq(lambda s: np.log(s) - digamma(s) - loss, 0.4 / loss, 1.1 / loss)
    return float(2.0 * (gammaln(shape) - shape * np.log(shape) + shape + shape * loss))


class Tweedie(LogLink):
    """Amounts that are often zero, such as claims, with mean ``m = e^a`` and variance ``~ m^power``.

    ``m^(2-p) / (2-p) + y m^(1-p) / (p-1)`` plus a constant that makes a perfect fit zero, for the power p.

    Parameters
    ----------
    power : float, default=1.5
        Between 1 (Poisson) and 2 (gamma), both excluded; the larger, the less large amounts count.
    """

    free_dispersion = True
    may_diverge = True

    def __init__(self, power: float = 1.5) -> None:
        if not 1 < power < 2:
            raise ValueError(
                f"The power of Tweedie must lie between 1 and 2; got {power!r}. Use 'poisson' for 1, 'gamma' for 2."
            )
        self.power = power

    @property
    def self_concordance(self) -> float:  # type: ignore[override]
        """The faster of the two rates at which the curvature can change."""
        return max(2.0 - self.power, self.power - 1.0)

    def check_target(self, y: np.ndarray) -> None:
        _check_not_negative(y, "Tweedie", "amount")

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        up, down = 2.0 - self.power, self.power - 1.0
        amounts = np.where(y > 0, y, 1.0)
        r = a - np.log(amounts)
        positive = amounts**up * (np.expm1(up * r) / up + np.expm1(-down * r) / down)
        return np.where(y > 0, np.maximum(positive, 0.0), np.exp(up * a) / up)

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).derivative

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).curvature

    def slopes(self, y: np.ndarray, a: np.ndarray) -> Slopes:
        up, down = 2.0 - self.power, self.power - 1.0
        mean, amount = np.exp(up * a), np.zeros(np.shape(a))
        np.multiply(y, np.exp(-down * a), out=amount, where=y > 0)
        return Slopes(mean - amount, up * mean + down * amount)

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        inside = (y > 0) | (t >= 0)
        steep = np.where(inside & ((y > 0) | (t > 0)), t, 1.0)
        a = self._score_of_slope(y, steep)
        # Of no amount and no slope it is that of a score of minus infinity.
        return np.where(inside, np.where((y > 0) | (t > 0), steep * a - self.value(y, a), 0.0), np.inf)

    def _score_of_slope(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        """The score at which the derivative is t, by bisection: there is no closed form."""
        low, high = np.full(np.shape(t), -LARGEST_SCORE), np.full(np.shape(t), LARGEST_SCORE)
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            above = self.derivative(y, middle) > t
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return 0.5 * (low + high)

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        # The extended quasi-likelihood of Nelder and Pregibon (1987): the density has no closed form.
        return n_rows * float(np.sum(np.log(np.maximum(losses, np.finfo(float).tiny))))


class NegativeBinomial(LogLink):
    """Counts with mean ``m = e^a`` and variance ``m + dispersion m^2``.

    ``(y + 1/d) log(1 + d m) - y a`` plus a constant that makes a perfect fit zero, for the dispersion d.

    Parameters
    ----------
    dispersion : float or None, default=None
        None: estimated by maximum likelihood, together with the model of the chosen size.
    """

    ratio = "rate ratio"
    free_dispersion = False
    self_concordance = 1.0
    may_diverge = True

    def __init__(self, dispersion: float | None = None) -> None:
        if dispersion is not None and not 0 < dispersion < np.inf:
            raise ValueError(
                f"The dispersion of NegativeBinomial must be positive and finite, or None; got {dispersion!r}. "
                "Use loss='poisson' for 0."
            )
        self.dispersion = dispersion

    def check_target(self, y: np.ndarray) -> None:
        _check_not_negative(y, "Negative binomial", "count")
        fractional = y[y != np.floor(y)]
        if len(fractional):
            raise ValueError(
                f"Negative binomial loss needs counts: y holds {fractional[0]:g}. For rates give the counts as y and "
                "what they are divided by as exposure."
            )

    def tuned(self, y: np.ndarray, weights: np.ndarray) -> NegativeBinomial:
        constant = np.log(np.maximum(y @ weights, np.finfo(float).tiny))
        return self.tuned_at(y, np.broadcast_to(constant[:, None], y.shape), weights)

    def tuned_at(self, y: np.ndarray, a: np.ndarray, weights: np.ndarray) -> NegativeBinomial:
        if self.dispersion is not None:
            return self
        # Ten digits, so that it settles where it is estimated in turn with coefficients.
        return NegativeBinomial(float(f"{_likeliest_dispersion(y, self.prediction(a), weights):.10g}"))

    @property
    def has_estimated(self) -> bool:  # type: ignore[override]
        """Whether the dispersion is to be estimated."""
        return self.dispersion is None

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        d = self._dispersion
        # With q = (1 + d m) / (1 + d y) this is (y + 1/d) log q - y r, and log1p keeps its digits near a perfect fit.
        counts = np.where(y > 0, y, 1.0)
        r = a - np.log(counts)
        near = np.log1p(d * counts / (1.0 + d * counts) * np.expm1(np.minimum(r, 700.0)))
        far = a + np.log(d) - np.log1p(d * counts)  # of means that overflow
        log_ratio = np.where(r < 700.0, near, far)
        positive = np.maximum((counts + 1.0 / d) * log_ratio - counts * r, 0.0)
        return np.where(y > 0, positive, np.logaddexp(0.0, a + np.log(d)) / d)

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).derivative

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).curvature

    def slopes(self, y: np.ndarray, a: np.ndarray) -> Slopes:
        d = self._dispersion
        odds = np.exp(np.minimum(a + np.log(d), 700.0))  # beyond, all but one of 1e304 parts are dispersion
        other = 1.0 / (1.0 + odds)
        share = odds * other
        return Slopes(share / d - y * other, (y + 1.0 / d) * share * other)

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        d = self._dispersion
        inside = (t >= -y) & (t <= 1.0 / d)
        up, down = np.where(inside, y + t, 0.0), np.where(inside, 1.0 / d - t, 0.0)
        constant = xlogy(y, y) - (y + 1.0 / d) * np.log1p(d * y)
        # The score of slope t has the odds d (y + t) / (1 - d t).
        total = y + 1.0 / d
        found = xlogy(up, up) + xlogy(down, down) - xlogy(total, total) - up * np.log(d) - constant
        return np.where(inside, found, np.inf)

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        return 2.0 * n_rows * float(np.sum(losses))

    @property
    def _dispersion(self) -> float:
        if self.dispersion is None:
            raise ValueError("NegativeBinomial() has no dispersion yet: give it one, or call tuned(y, weights) first.")
        return self.dispersion


def _likeliest_dispersion(y: np.ndarray, mean: np.ndarray, weights: np.ndarray) -> float:
    """The dispersion of highest likelihood for counts of given means, both of shape (C, n)."""
    # Sums over n rows of functions of y alone are sums over the few counts that occur.
    counts, place = np.unique(y, return_inverse=True)
    share = np.bincount(place.ravel(), weights=np.broadcast_to(weights, y.shape).ravel())

    def slope(log_dispersion: float) -> float:
        """The sign of the derivative of the likelihood: minus its derivative in ``s = 1/d``."""
        s = np.exp(-log_dispersion)
        fitted = np.log1p(mean / s) + (y - mean) / (s + mean)
        return float(np.sum(fitted @ weights) - share @ (digamma(counts + s) - digamma(s)))

    low, high = np.log(DISPERSIONS)
    if slope(low) <= 0:  # no more varied than Poisson's
        return DISPERSIONS[0]
    return float(np.exp(brentq(slope, low, high, xtol=1e-13))) if slope(high) < 0 else DISPERSIONS[1]
