"""How far the objective falls if a single coefficient moves, for all candidates at once."""

from __future__ import annotations

import numpy as np

from pauca.objectives import SmoothObjective
from pauca.tolerances import TIED_WITHIN

# Candidates are taken in blocks of about this many numbers, which stay in the cache.
BLOCK_NUMBERS = 1 << 17
FIRST_BLOCK = 2

MOST_STEPS = 40

# A gain is known when what is left of it is below this share.
KNOWN_WITHIN = 1e-10

# Newton steps are trusted as long as they leave no more than this share of the slope.
TRUSTED_BELOW = 0.3

# Without a bound on how fast the curvature changes, candidates are passed over if even this many times what the local
# quadratic promises would not make them the best.
CAUTION = 4.0


def coordinate_gains(
    objective: SmoothObjective, scores: np.ndarray, slope: np.ndarray, curvature: np.ndarray, price: np.ndarray
) -> np.ndarray:
    """``Q(w) - min_t Q(w + t e_j)`` for every feature j that may be the best per price, and zero for the others.

    Liu, Fujimaki and Ye (2014), Algorithm 1 with the objective rule, where this takes a solve per feature. Here all
    features are bounded from what is known at t = 0, and few are solved, many at a time.

    Parameters
    ----------
    scores : linear scores of the current model, shape (n,)
    slope : minus the gradient, shape (d,); not a number for columns that may not be chosen
    curvature : second derivatives, shape (d,)
    price : shape (d,)
    """
    search = _CoordinateSearch(objective, scores)
    ceiling = search.ceiling(slope, curvature, np.arange(len(slope))) / price
    ceiling[~np.isfinite(slope)] = -np.inf
    order = np.argsort(-ceiling, kind="stable")
    order = order[ceiling[order] > 0]
    gains = np.zeros(len(slope))
    best = 0.0
    start, width = 0, FIRST_BLOCK
    while start < len(order) and ceiling[order[start]] >= best * (1 - TIED_WITHIN):
        some = order[start : start + width]
        gains[some] = search.gains(some, slope[some], curvature[some])
        best = max(best, float((gains[some] / price[some]).max()))
        start += width
        width = min(2 * width, max(1, BLOCK_NUMBERS // len(scores)))
    return gains


class _CoordinateSearch:
    """The functions ``t -> Q(w + t e_j)`` around one model."""

    def __init__(self, objective: SmoothObjective, scores: np.ndarray) -> None:
        self._objective = objective
        self._loss = objective.smooth
        self._y = objective.y[0]
        self._scores = scores
        self._weights = objective.design.weights
        self._before = float(self._weights @ self._loss.value(self._y, scores))
        self._extent = objective.design.extent() if self._loss.self_concordance else None

    def ceiling(self, slope: np.ndarray, curvature: np.ndarray, features: np.ndarray) -> np.ndarray:
        """An upper bound of what is left to gain where slope and curvature are known.

        With ``|L'''| <= M L''`` the curvature falls no faster than by ``e^(-M |z t|)``. With ``R = M max |z|`` and
        ``x = |slope| R / curvature`` the gain is at most ``curvature / R^2 (x + (1 - x) log(1 - x))`` for x < 1.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            quadratic = np.where(slope == 0, 0.0, 0.5 * slope * slope / curvature)
            if self._loss.self_concordance is None:
                return CAUTION * quadratic
            if self._extent is None:
                return quadratic
            rate = self._loss.self_concordance * self._extent[features]
            x = np.abs(slope) * rate / curvature
            # The series x^2 (1/2 + x/6 + ...) where the logarithm would lose its digits.
            exact = np.where(x < 1e-4, x * x * (0.5 + x / 5), x + (1 - x) * np.log1p(-x))
            bound = curvature / (rate * rate) * exact
        return np.where(slope == 0, 0.0, np.where(x < 1, bound, np.inf))

    def gains(self, features: np.ndarray, slope: np.ndarray, curvature: np.ndarray) -> np.ndarray:
        """Gains of some features by safeguarded Newton steps."""
        objective = self._objective
        z = objective.design.columns(features)
        squares = z * z
        penalty = objective.penalty[features]
        bracket = _Bracket(len(features))
        if objective.bounds is not None:
            bracket.low, bracket.high = (bound[features].copy() for bound in objective.bounds)
        limits = bracket.low.copy(), bracket.high.copy()
        t = np.zeros(len(features))
        active = np.arange(len(features))
        shrunk, promised = np.ones(len(features), dtype=bool), np.zeros(len(features))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for iteration in range(MOST_STEPS):
                bracket.narrow(active, t[active], slope)
                if iteration == 0:
                    t = np.clip(slope / curvature, *limits)
                    promised = 0.5 * t * slope
                else:
                    # Where the last step was no good, as on an exponential, the next would not be either.
                    proposed = np.where(shrunk, t[active] + slope / curvature, np.nan)
                    t[active] = bracket.inside(active, proposed, iteration)
                slope_before = slope
                slope, curvature = self._slopes(z[active], squares[active], t[active], penalty[active])
                shrunk = np.abs(slope) <= TRUSTED_BELOW * np.abs(slope_before)
                # By convexity no more is left than the slope over the rest of the bracket.
                left = np.fmin(
                    self.ceiling(slope, curvature, features[active]), bracket.most_gain(active, t[active], slope)
                )
                # Where numbers have overflowed, the search goes on.
                open_ = ~(np.isfinite(slope) & (left <= KNOWN_WITHIN * promised[active]))
                active, slope, curvature, shrunk = active[open_], slope[open_], curvature[open_], shrunk[open_]
                if not len(active):
                    break
            gains = self._before - self._values(z, t) - 0.5 * penalty * t * t
        return np.where(gains > 0, gains, 0.0)

    def _values(self, z: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Mean losses at steps t, shape (b,)."""
        moved = self._moved(z, t)
        return self._loss.value(np.broadcast_to(self._y, moved.shape), moved) @ self._weights

    def _slopes(
        self, z: np.ndarray, squares: np.ndarray, t: np.ndarray, penalty: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Slope and curvature at steps t, shape (b,) each."""
        moved = self._moved(z, t)
        derivative, curvature = self._loss.slopes(np.broadcast_to(self._y, moved.shape), moved)
        v = self._weights
        slope = -np.einsum("bn,bn->b", derivative * v, z) - penalty * t
        return slope, np.einsum("bn,bn->b", curvature * v, squares) + penalty

    def _moved(self, z: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Scores after steps t along columns z."""
        moved = self._scores + t[:, None] * z
        if self._objective.idle is not None:
            moved[:, self._objective.idle] = 0.0
        return moved


class _Bracket:
    """Where minima lie: between the last points with a slope up and a slope down."""

    def __init__(self, size: int) -> None:
        self.low, self.high = np.full(size, -np.inf), np.full(size, np.inf)
        self._slope_low, self._slope_high = np.full(size, np.nan), np.full(size, np.nan)

    def narrow(self, positions: np.ndarray, t: np.ndarray, slope: np.ndarray) -> None:
        """Take in slopes (minus the derivative) at points t."""
        up = slope > 0
        below, above = positions[up], positions[~up]
        self.low[below], self._slope_low[below] = t[up], slope[up]
        self.high[above], self._slope_high[above] = t[~up], slope[~up]

    def inside(self, positions: np.ndarray, proposed: np.ndarray, iteration: int) -> np.ndarray:
        """Proposed points, or by false position and bisection others where those leave the bracket or are none."""
        low, high = self.low[positions], self.high[positions]
        rise, fall = self._slope_low[positions], self._slope_high[positions]
        middle = 0.5 * (low + high)
        straight = low + (high - low) * rise / (rise - fall)
        within = straight if iteration % 3 else middle
        within = np.where(np.isnan(proposed), middle, within)
        # An end that has overflowed would draw the line to the other.
        within = np.where((within > low) & (within < high), within, middle)
        outward = np.where(np.isfinite(low), low + 2 * np.abs(low) + 1e-3, high - 2 * np.abs(high) - 1e-3)
        fallback = np.where(np.isfinite(middle), within, outward)
        return np.where((proposed > low) & (proposed < high), proposed, fallback)

    def most_gain(self, positions: np.ndarray, t: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """The slope times the way to the end of the bracket it points to."""
        way = np.where(slope > 0, self.high[positions] - t, t - self.low[positions])
        return np.where(slope == 0, 0.0, np.abs(slope) * way)
