"""Piecewise linear losses (absolute error, quantile, hinge), and their smooth envelopes."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from pauca.losses.base import Lines, Loss
from pauca.losses.classification import check_binary_target, of_wrong_labels


def weighted_quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """The smallest value with at least ``share`` of the weight at or below it."""
    order = np.argsort(values)  # ties have one value: a stable order of 5000 takes five times as long
    cumulative = np.cumsum(weights[order])
    position = np.searchsorted(cumulative, share * cumulative[-1] * (1 - 1e-12))
    return float(values[order[min(position, len(values) - 1)]])


# The curvature that ranks candidates is that of an envelope with this share of the rows in its curved part, whose width
# is at least this share of the typical loss over the steepest slope.
BROAD_SHARE = 0.5
NARROWEST = 0.1

# A refit that does not converge restarts from the minimum of an envelope so many times wider, at most so many times.
WIDER = 8.0
MOST_WIDENINGS = 6


class PiecewiseLinear(Loss):
    """``max(lowest r, highest r)`` of a residual ``r = direction a - offset``.

    Without ridge and bounds it is minimised exactly, from vertex to vertex. Elsewhere, and to rank candidates, it is
    taken through its Moreau envelope: with ``beta = lipschitz^2 / eps`` the envelope is smooth, lies below
    the loss by at most ``eps / 2``, and its minimiser is within ``eps`` of the loss's own minimum, since refits are
    far more accurate than the other half. ``eps`` is ``accuracy`` times the loss of the best constant.

    Shalev-Shwartz, Srebro and Zhang (2010), Lemma 2.5; their Corollary 2.6 gives all of ``eps`` to the refit and so
    ends at ``1.5 eps``.

    Parameters
    ----------
    accuracy : float, default=1e-3
        How far the loss of a fitted model may be above the minimum on the same features, as a share of the loss of the
        best constant, where it is minimised through the envelope.
    """

    flat = True
    has_lines = True
    lowest: float
    highest: float

    def __init__(self, accuracy: float = 1e-3) -> None:
        if not 0 < accuracy < 1:
            raise ValueError(
                f"The accuracy of {type(self).__name__} must lie strictly between 0 and 1; got {accuracy!r}."
            )
        self.accuracy = accuracy

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        """The steeper of the two slopes."""
        return max(-self.lowest, self.highest)

    @abstractmethod
    def residual(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        """The residual r."""

    @abstractmethod
    def direction(self, y: np.ndarray) -> np.ndarray | float:
        """The derivative of the residual in the score: 1, or y itself where y is a sign."""

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        r = self.residual(y, a)
        return np.maximum(self.lowest * r, self.highest * r)

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        """A subgradient; the mean of the two slopes at the kink."""
        r = self.residual(y, a)
        middle = 0.5 * (self.lowest + self.highest)
        return np.where(r < 0, self.lowest, np.where(r > 0, self.highest, middle)) * self.direction(y)

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.zeros_like(a)

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        slope = t * self.direction(y)
        return np.where((slope >= self.lowest) & (slope <= self.highest), t * y, np.inf)

    def lines(self, y: np.ndarray) -> Lines:
        return Lines(self.direction(y), -self.residual(y, np.zeros_like(y)), self.lowest, self.highest)

    def smoothed(self, y: np.ndarray, weights: np.ndarray, *, center: bool) -> Loss:
        scores = [self.constant(output, weights) if center else 0.0 for output in y]
        losses = [self.value(output, np.full_like(output, score)) for output, score in zip(y, scores, strict=True)]
        least = float(np.sum(losses @ weights))
        # If a constant fits perfectly, any envelope will do.
        return Envelope(self, len(y) * self.lipschitz**2 / (self.accuracy * least) if least > 0 else 1.0)

    def envelope(self, beta: float) -> Loss:
        return Envelope(self, beta)


class AbsoluteError(PiecewiseLinear):
    """``|a - y|``: the score models the median of y."""

    lowest, highest = -1.0, 1.0
    of_residuals = True

    def residual(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return a - y

    def direction(self, y: np.ndarray) -> float:
        return 1.0

    def constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        return weighted_quantile(y, weights, self.highest_share)

    @property
    def highest_share(self) -> float:
        """The share of targets that lie below the score at the optimum."""
        return -self.lowest / (self.highest - self.lowest)

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        # Laplace noise (asymmetric for quantiles) with the maximum likelihood scale of each output.
        return 2.0 * n_rows * float(np.sum(np.log(np.maximum(losses, np.finfo(float).tiny))))


class Quantile(AbsoluteError):
    """``max(level (y - a), (level - 1) (y - a))``: the score models a quantile of y.

    Parameters
    ----------
    level : float, default=0.5
        The level of the quantile, strictly between 0 and 1.
    accuracy : float, default=1e-3
        The share of the best constant's loss by which a fit may miss the optimum.
    """

    def __init__(self, level: float = 0.5, accuracy: float = 1e-3) -> None:
        if not 0 < level < 1:
            raise ValueError(f"The level of Quantile must lie strictly between 0 and 1; got {level!r}.")
        super().__init__(accuracy)
        self.level = level

    @property
    def lowest(self) -> float:  # type: ignore[override]
        """Slope where the score is below y."""
        return -self.level

    @property
    def highest(self) -> float:  # type: ignore[override]
        """Slope where the score is above y."""
        return 1.0 - self.level


class Hinge(PiecewiseLinear):
    """``max(0, 1 - y a)``: the shortfall from a margin of one."""

    classifies = True
    lowest, highest = -1.0, 0.0

    def check_target(self, y: np.ndarray) -> None:
        check_binary_target(y)

    def residual(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return y * a - 1.0

    def direction(self, y: np.ndarray) -> np.ndarray:
        return y

    def constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        return 1.0 if float(weights @ y) > 0 else -1.0

    def mislabelled(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return of_wrong_labels(self, y, a)


class Envelope(Loss):
    """The Moreau envelope ``min_u (beta / 2) u^2 + L(a - u)`` of a piecewise linear loss, in closed form.

    With ``t = clip(beta r, lowest, highest)`` it is ``t r - t^2 / (2 beta)``: a parabola about the kink, and lines
    beyond it.
    """

    flat = True
    narrow = True

    def __init__(self, loss: PiecewiseLinear, beta: float, typical: float | None = None, widenings: int = 0) -> None:
        self.loss = loss
        self._typical = beta * loss.accuracy if typical is None else typical
        self._widenings = widenings
        self.smoothness = beta
        self.classifies = loss.classifies  # type: ignore[misc]

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        """That of the loss."""
        return self.loss.lipschitz

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        t, r = self._slope(y, a)
        return t * (r - (0.5 / self._beta) * t)

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self._slope(y, a)[0] * self.loss.direction(y)

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        r = self._beta * self.loss.residual(y, a)
        return self._beta * ((r > self.loss.lowest) & (r < self.loss.highest))

    def broad_curvature(self, y: np.ndarray, a: np.ndarray, weights: np.ndarray) -> np.ndarray:
        # Hardly any row lies on the parabola of an accurate envelope. The share of rows in a wider band about the kink
        # estimates their density there, to which the curvature of the mean loss tends.
        distance = np.abs(self.loss.residual(y, a))
        shares = np.tile(weights, distance.size // len(weights))
        width = weighted_quantile(distance.ravel(), shares, BROAD_SHARE) or float(shares @ distance.ravel())
        # Where most rows lie at the kink itself, as they may for a constant, the band is a share of the typical loss.
        width = max(width, NARROWEST * self.loss.lipschitz / self.typical_curvature(y, a, weights))
        return (distance <= width) * ((self.loss.highest - self.loss.lowest) / (2.0 * width))

    def typical_curvature(self, y: np.ndarray, a: np.ndarray, weights: np.ndarray) -> float:
        # lipschitz^2 over the loss of the best constant: what the smoothing was set from.
        return self._typical

    def easier(self) -> Loss | None:
        wider = Envelope(self.loss, self._beta / WIDER, self._typical, self._widenings + 1)
        return wider if wider._widenings <= MOST_WIDENINGS else None

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        return self.loss.conjugate(y, t) + t * t / (2.0 * self._beta)

    def constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        return self.loss.constant(y, weights)

    def check_target(self, y: np.ndarray) -> None:
        self.loss.check_target(y)

    def _slope(self, y: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r = self.loss.residual(y, a)
        return np.clip(self._beta * r, self.loss.lowest, self.loss.highest), r

    @property
    def _beta(self) -> float:
        assert self.smoothness is not None
        return self.smoothness
