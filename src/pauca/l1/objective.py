"""Data and a loss as a function on an l1 ball, with the intercept minimised out, and its duality gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pauca.design import Design
from pauca.losses import Loss
from pauca.losses.base import Lines
from pauca.model import Model
from pauca.objectives.smooth import target_origin
from pauca.solvers.factorisation import solve_or_nearest
from pauca.solvers.line_search import Trial, backtrack, exact_length
from pauca.tolerances import LINE_SEARCH_SLACK

# The intercept of a class that no row with weight belongs to would be infinite: this is as good, to rounding.
INFINITE_INTERCEPT = 50.0

# The most Newton steps for an intercept. From this one on every other step halves the bracket: Newton's steps may crawl
# along a loss with flat pieces.
MOST_STEPS = 200
HALVING_AFTER = 10

# A share of the trace that keeps the Hessian invertible where a class has next to no probability left.
LEAST_CURVATURE = 1e-14

# Gains below this share of the value are hidden by its rounding.
GAIN_ROUNDING = 1e-13

# No step changes a constant of a shared loss by more: where probabilities are near zero or one Newton's goes too far.
LONGEST_STEP = 4.0


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point of the ball: few coordinates that are not zero, and the intercepts."""

    coords: np.ndarray
    """Coordinates, ascending: feature j of output c is ``c d + j``."""
    coef: np.ndarray
    """Their values, none of them zero."""
    intercepts: np.ndarray
    """Of all outputs, shape (C,), for centred columns."""

    @property
    def norm(self) -> float:
        """The l1 norm."""
        return float(np.abs(self.coef).sum())


@dataclass(frozen=True, eq=False)
class DualityGap:
    """An iterate, its objective, and what its gradient proves of all models in the ball."""

    iterate: Iterate
    value: float
    """Q at the iterate, by the loss itself."""
    lower: float
    """No model in the ball has a Q below this."""
    gap: float
    """By how much the loss that is minimised, or its envelope, might still fall."""


@dataclass(frozen=True, eq=False)
class BallObjective:
    """``Q(w) = sum_i v_i L(y_i, x_i w + b) + (ridge/2) |w|^2``, summed over outputs, b minimised out.

    Conventions
    -----------
    Coordinates are those in which the ball is ``sum_j |u_j| <= radius``. The column of ``u_j`` is ``unit_j`` times the
    standardised column, so that ``w_j = u_j unit_j / spread_j``: with ``unit = spread`` u is w itself, and with
    ``unit = 1`` the ball is ``sum_j spread_j |w_j| <= radius``. Coordinates of several outputs lie one after the
    other, shape (C d,).
    """

    design: Design
    loss: Loss
    """The loss itself, not an envelope of it."""
    y: np.ndarray
    """Targets of shape (C, n); classes of shape (n,) where all outputs share one loss."""
    n_outputs: int
    ridge: float
    center: bool
    unit: np.ndarray
    """Shape (d,); zero for columns that cannot be used."""
    origin: float = 0.0
    """What was taken from the targets, and comes back in the intercepts of models."""

    @classmethod
    def of(
        cls,
        design: Design,
        y: np.ndarray,
        loss: Loss,
        *,
        n_outputs: int | None = None,
        ridge: float = 0.0,
        center: bool = True,
        standardize: bool = False,
    ) -> BallObjective:
        """The objective of a design and targets; ``standardize`` measures coefficients in units of column scale."""
        outputs = y if y.ndim == 2 else y[None]
        unit = np.where(design.usable, 1.0 if standardize else design.spread, 0.0)
        origin = target_origin(loss, outputs, design.weights) if center else 0.0
        if origin:
            y, outputs = y - origin, outputs - origin
        loss = loss.tuned(outputs, design.weights)
        return cls(design, loss, y, n_outputs or len(outputs), ridge, center, unit, origin)

    @property
    def weights(self) -> np.ndarray:
        """Row weights that sum to one."""
        return self.design.weights

    @cached_property
    def penalty(self) -> np.ndarray:
        """The ridge in these coordinates, shape (d,)."""
        penalty = np.zeros(self.design.n_features)
        if self.ridge:
            ratio = np.zeros_like(penalty)
            np.divide(self.unit, self.design.spread, out=ratio, where=self.design.usable)
            penalty = self.ridge * ratio**2
        return penalty

    @cached_property
    def _without_weight(self) -> np.ndarray | None:
        """Rows without weight, if there are any: what they hold must not overflow."""
        return None if np.all(self.weights > 0) else np.flatnonzero(self.weights == 0)

    @cached_property
    def _constants(self) -> np.ndarray:
        """Constant scores to start from, shape (C,), infinite for a class without weight."""
        if not self.center:
            return np.zeros(self.n_outputs)
        return self.loss.constants(self.y, self.weights, self.n_outputs)

    @cached_property
    def fixed(self) -> np.ndarray:
        """Outputs whose intercept does not move, shape (C,): all where there is none."""
        return ~np.isfinite(self._constants) | (not self.center)

    @cached_property
    def null(self) -> Iterate:
        """The model without features."""
        known = self._constants[np.isfinite(self._constants)]
        far = INFINITE_INTERCEPT + (float(np.abs(known).max()) if len(known) else 0.0)
        start = np.clip(self._constants, -far, far)
        scores = np.repeat(start[:, None], self.design.n_rows, axis=1)
        if self.center:
            start = start + best_intercept_shifts(self.loss, self.y, self.weights, scores, self.fixed)[0]
        return Iterate(np.zeros(0, dtype=np.intp), np.zeros(0), start)

    @cached_property
    def null_value(self) -> float:
        """Q of the model without features."""
        return self.value(self.loss, self.scores(self.null), self.null)

    def value(self, loss: Loss, scores: np.ndarray, iterate: Iterate) -> float:
        """Q by a loss, at an iterate with these scores."""
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(np.sum(loss.value(self.y, scores) @ self.weights))
        return (total if np.isfinite(total) else np.inf) + self.ridge_term(iterate.coords, iterate.coef)

    def ridge_term(self, coords: np.ndarray, coef: np.ndarray) -> float:
        """The ridge's part of Q."""
        return 0.5 * float(self.penalty[coords % self.design.n_features] @ coef**2) if self.ridge else 0.0

    def scores(self, iterate: Iterate) -> np.ndarray:
        """Scores of all rows, shape (C, n)."""
        scores = np.repeat(iterate.intercepts[:, None], self.design.n_rows, axis=1)
        if len(iterate.coords):
            features, coef = self._by_feature(iterate)
            for rows, block in self.design.blocks(features):
                scores[:, rows] += coef @ block.T
            if self._without_weight is not None:
                scores[:, self._without_weight] = iterate.intercepts[:, None]
        return scores

    def minimise_intercepts(self, loss: Loss, iterate: Iterate) -> tuple[Iterate, np.ndarray]:
        """The iterate with the intercepts that are best for a loss, and its scores."""
        scores = self.scores(iterate)
        if not self.center or loss.quadratic:
            return iterate, scores
        shift, _ = best_intercept_shifts(loss, self.y, self.weights, scores, self.fixed)
        return Iterate(iterate.coords, iterate.coef, iterate.intercepts + shift), scores + shift[:, None]

    def columns(self, features: np.ndarray) -> np.ndarray:
        """Columns of some features in these coordinates, shape (m, n)."""
        columns = self.design.columns(features)
        columns *= self.unit[features][:, None]
        if self._without_weight is not None:
            columns[:, self._without_weight] = 0.0
        return columns

    def gram(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Weighted products of the columns of some features with those of others."""
        together = np.concatenate([features, others])
        product = np.zeros((len(features), len(others)))
        for rows, block in self.design.blocks(together):
            left = block[:, : len(features)] * self.weights[rows, None]
            product += left.T @ block[:, len(features) :]
        product *= self.unit[others]
        product *= self.unit[features][:, None]
        return product

    def gradient(self, loss: Loss, scores: np.ndarray, iterate: Iterate) -> np.ndarray:
        """The gradient in all coordinates, shape (C d,): one pass over X."""
        slopes = loss.derivative(self.y, scores)
        if self.n_outputs == 1:
            gradient = self.design.correlate(slopes[0]) * self.unit
        else:
            gradient = (self.design.products(slopes * self.weights) * self.unit).ravel()
        if self.ridge:
            gradient[iterate.coords] += self.penalty[iterate.coords % self.design.n_features] * iterate.coef
        return gradient

    def best_length(
        self,
        loss: Loss,
        scores: np.ndarray,
        change: np.ndarray,
        ridge_slopes: tuple[float, float],
        longest: float,
    ) -> float:
        """The length of at most ``longest`` that minimises Q along a step that changes the scores by ``change``.

        ``ridge_slopes`` are the first and second derivative of the ridge at the start of the step.
        """
        slope, curvature = ridge_slopes
        weighted = change * self.weights

        def slope_at(length: float) -> float:
            of_loss = float(np.sum(loss.derivative(self.y, scores + length * change) * weighted))
            return of_loss + slope + length * curvature

        return exact_length(slope_at, longest)

    def smoothness(self, loss: Loss) -> float | None:
        """``max_j (beta s_j + ridge)``, which bounds the curvature along any step in the ball; None without a beta.

        A step of l1 norm t has curvature at most that times t^2, since ``u'Hu <= (sum_j |u_j| sqrt(H_jj))^2``: the
        mean of squares of a column counts, not its largest entry.
        """
        beta = loss.smoothness
        return None if beta is None else float((beta * self.unit**2 + self.penalty).max(initial=0.0))

    def duality_gap(
        self, loss: Loss, radius: float, iterate: Iterate, scores: np.ndarray, gradient: np.ndarray
    ) -> DualityGap:
        """The certificate of an iterate (Frank and Wolfe 1956; Shalev-Shwartz, Srebro and Zhang 2010, Lemma A.3).

        By convexity no u in the ball has ``Q(u) < Q(w) + g (u - w)``, and the least of the right-hand side is
        ``Q(w) - gap`` with ``gap = g w + radius max_j |g_j|``. It is proven for b minimised out: what is left of the
        slope in b counts with how far away the best b may be. A loss below another proves a bound for both.
        """
        gap = duality_gap(gradient[iterate.coords], iterate.coef, radius, float(np.abs(gradient).max(initial=0.0)))
        value = minimised = self.value(loss, scores, iterate)
        if self.center and not loss.quadratic:
            slopes = np.abs(loss.derivative(self.y, scores) @ self.weights)
            gap += float(np.where(self.fixed, 0.0, slopes) @ self._intercept_distances(radius, iterate))
        if loss is not self.loss:
            value = self.value(self.loss, scores, iterate)
        return DualityGap(iterate, value, minimised - gap, gap)

    def _intercept_distances(self, radius: float, iterate: Iterate) -> np.ndarray:
        """How far the best intercept of any model in the ball may be from that of an iterate, shape (C,).

        Scores of models in the ball differ from their constant by at most r, the radius times the largest entry of any
        column. Derivatives rise with scores; so where their mean is zero, the constant is within r of that of the empty
        model. Of classes that share a loss, sorted by how far their constants moved, no two neighbours are more than
        2 r apart: otherwise all classes above would have become more likely in every row.
        """
        distance = radius * float((self.unit * self.design.extent()).max(initial=0.0))
        if self.loss.joint:
            distance *= 2.0 * (self.n_outputs - 1)
        return np.where(self.fixed, 0.0, distance + np.abs(iterate.intercepts - self.null.intercepts))

    def size(self, iterate: Iterate) -> int:
        """Number of features that an iterate uses."""
        return len(self.support(iterate))

    def support(self, iterate: Iterate) -> np.ndarray:
        """The features that an iterate uses, ascending."""
        return np.unique(iterate.coords % self.design.n_features)

    def models(self, iterates: Sequence[Iterate]) -> list[Model]:
        """Models in the user's units; the importance of features is to second order, all others being fixed."""
        return [self._model(iterate) for iterate in iterates]

    def _model(self, iterate: Iterate) -> Model:
        features, coef = self._by_feature(iterate)
        scores = self.scores(iterate)
        loss = self.loss.smoothed(self.y if self.y.ndim == 2 else self.y[None], self.weights, center=self.center)
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = loss.derivative(self.y, scores) * self.weights
            curvature = loss.broad_curvature(self.y, scores, self.weights)
        gradient, second = np.zeros_like(coef), np.zeros_like(coef)
        for rows, block in self.design.blocks(features):
            gradient += slopes[:, rows] @ block
            second += (curvature[:, rows] * self.weights[rows]) @ (block * block)
        spread = self.design.spread[features]
        ridge = self.ridge / spread**2
        importance = np.sum(coef * (0.5 * (second + ridge) * coef - gradient - ridge * coef), axis=0)
        w = coef / spread
        intercept = self.origin + iterate.intercepts - w @ self.design.mean[features]
        importance = np.maximum(np.where(np.isfinite(importance), importance, 0.0), 0.0)
        return Model.of_columns(features, w, intercept, self.value(self.loss, scores, iterate), importance)

    def _by_feature(self, iterate: Iterate) -> tuple[np.ndarray, np.ndarray]:
        """Features in use, and the coefficients of their standardised columns, shape (C, m)."""
        output, feature = np.divmod(iterate.coords, self.design.n_features)
        features, position = np.unique(feature, return_inverse=True)
        coef = np.zeros((self.n_outputs, len(features)))
        coef[output, position] = iterate.coef * self.unit[feature]
        return features, coef


def duality_gap(gradient: np.ndarray, coef: np.ndarray, radius: float, steepest: float | None = None) -> float:
    """``g w + radius max_j |g_j|``: by how much a convex function with this gradient may fall in the ball at most.

    ``steepest`` is the largest slope where ``gradient`` holds some coordinates only.
    """
    steepest = float(np.abs(gradient).max(initial=0.0)) if steepest is None else steepest
    return float(gradient @ coef) + radius * steepest


def best_intercept_shifts(
    loss: Loss, y: np.ndarray, weights: np.ndarray, scores: np.ndarray, fixed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Constants to add to the scores of every output so that the mean loss is least, and the slopes left there.

    Both have shape (C,). Outputs that are ``fixed`` are left alone.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if loss.joint:
            return _shift_jointly(loss, y, weights, scores, fixed)
        found = [
            (0.0, 0.0) if fixed[c] else _shift_alone(loss, y[c : c + 1], weights, scores[c : c + 1])
            for c in range(len(scores))
        ]
    return np.array([shift for shift, _ in found]), np.array([left for _, left in found])


def regular_hessian(hessian: np.ndarray) -> np.ndarray:
    """The Hessian of the constants with curvature where it has none.

    All constants may rise together without any change where outputs share a loss: steps leave that direction alone.
    """
    size = len(hessian)
    trace = float(np.trace(hessian)) or 1.0
    return hessian + trace / size**2 + np.diag(np.full(size, LEAST_CURVATURE * trace))


def _shift_to_kink(lines: Lines, weights: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """The constant at which a mean of kinked lines stops falling, exactly; zero is among its slopes."""
    jumps, kinks = (lines.high - lines.low) * weights, lines.direction * lines.offset - scores
    order = np.argsort(kinks, kind="stable")
    falling = float(np.where(np.broadcast_to(lines.direction, scores.shape) > 0, lines.low, -lines.high) @ weights)
    position = int(np.searchsorted(np.cumsum(jumps[order]), -falling * (1 - LINE_SEARCH_SLACK)))
    return float(kinks[order[min(position, len(order) - 1)]]), 0.0


def _shift_alone(loss: Loss, y: np.ndarray, weights: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """Newton's method for the root of a slope that only rises, kept within a bracket."""
    lines = loss.lines(y[0])
    if lines is not None:
        return _shift_to_kink(lines, weights, scores[0])
    low, high = -np.inf, np.inf
    outward = float(np.abs(y - scores)[0] @ weights) or 1.0  # targets may be of any size
    shift, best = 0.0, (0.0, np.inf)
    for count in range(MOST_STEPS):
        derivative, curvature = loss.slopes(y, scores + shift)
        slope, scale = float(derivative[0] @ weights), float(np.abs(derivative[0]) @ weights)
        if abs(slope) < abs(best[1]):
            best = shift, slope
        if abs(slope) <= LINE_SEARCH_SLACK * scale:
            break
        low, high = (low, shift) if not slope < 0 else (shift, high)
        total = float(curvature[0] @ weights)
        following = shift - slope / total if total > 0 else np.nan
        if not low < following < high or (count > HALVING_AFTER and count % 2):
            if np.isfinite(low) and np.isfinite(high):
                following = 0.5 * (low + high)
            else:
                following = shift + outward if slope < 0 else shift - outward
                outward *= 2.0
        if np.array_equal(scores + following, scores + shift):
            break  # rounding of the scores leaves nothing to gain
        shift = following
    return best


def _shift_jointly(
    loss: Loss, y: np.ndarray, weights: np.ndarray, scores: np.ndarray, fixed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Damped Newton steps for the constants of outputs that share a loss.

    Steps are judged by the value, and where rounding hides what they gain by the slope they end at.
    """
    moving = np.flatnonzero(~fixed)
    shift, smallest = np.zeros(len(scores)), np.inf
    value = float(loss.value(y, scores) @ weights)
    slope, step = _newton_step(loss, y, weights, scores, moving)
    for _ in range(MOST_STEPS):
        steepest = float(np.abs(slope).max(initial=0.0))
        predicted = -float(slope @ step)
        if steepest <= LINE_SEARCH_SLACK * min(1.0, value) or not predicted > 0:
            break
        step = step * min(1.0, LONGEST_STEP / float(np.abs(step).max()))
        expected = -float(slope @ step)

        def try_length(
            length: float, shift: np.ndarray = shift, step: np.ndarray = step, expected: float = expected
        ) -> Trial[np.ndarray]:
            there = shift + length * step
            return Trial(float(loss.value(y, scores + there[:, None]) @ weights), length * expected, there)

        found = backtrack(try_length, value, LINE_SEARCH_SLACK * value, LINE_SEARCH_SLACK)
        if found is None:
            break
        _, (reached, _, there) = found
        next_slope, next_step = _newton_step(loss, y, weights, scores + there[:, None], moving)
        smallest = min(smallest, steepest)
        if predicted <= GAIN_ROUNDING * value and not float(np.abs(next_slope).max()) < smallest:
            break
        shift, value, slope, step = there, reached, next_slope, next_step
    return shift, slope


def _newton_step(
    loss: Loss, y: np.ndarray, weights: np.ndarray, scores: np.ndarray, moving: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Slopes in the constants, and Newton's step; zero for those that do not move."""
    derivative, curvature = loss.slopes(y, scores)
    hessian = np.diag(curvature @ weights)
    coupled = loss.coupling(curvature)
    if coupled is not None:
        hessian -= (coupled * weights) @ coupled.T
    slope, step = np.zeros(len(scores)), np.zeros(len(scores))
    slope[moving] = (derivative @ weights)[moving]
    step[moving] = -solve_or_nearest(regular_hessian(hessian[moving[:, None], moving]), slope[moving, None])[:, 0]
    return slope, step
