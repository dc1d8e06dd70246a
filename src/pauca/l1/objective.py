"""Data and a loss as a function on an l1 ball, with the intercept minimised out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pauca.design import Design
from pauca.l1.line_search import settled
from pauca.losses import Loss
from pauca.model import Model

# The intercept of a class that no row with weight belongs to would be infinite: this is as good, to rounding.
FAR = 50.0


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point of the ball: few coordinates that are not zero, and the intercepts."""

    places: np.ndarray
    """Coordinates, ascending: feature j of output c is ``c d + j``."""
    coef: np.ndarray
    """Their values, none of them zero."""
    free: np.ndarray
    """Constants of all outputs, shape (C,), to be added to centred columns."""

    @property
    def norm(self) -> float:
        """The l1 norm."""
        return float(np.abs(self.coef).sum())


@dataclass(frozen=True, eq=False)
class BallObjective:
    """``Q(w) = sum_i v_i L(y_i, x_i w + b) + (ridge/2) |w|^2``, summed over outputs, b minimised out.

    Conventions
    -----------
    Coordinates are those in which the ball is ``sum_j |u_j| <= bound``. The column of ``u_j`` is ``unit_j`` times the
    standardised column, so that ``w_j = u_j unit_j / spread_j``: with ``unit = spread`` u is w itself, and with
    ``unit = 1`` the ball is ``sum_j spread_j |w_j| <= bound``. Coordinates of several outputs lie one after the
    other, shape (C d,).
    """

    design: Design
    loss: Loss
    """The loss as the user means it."""
    y: np.ndarray
    """Targets of shape (C, n); classes of shape (n,) where all outputs share one loss."""
    n_outputs: int
    ridge: float
    center: bool
    unit: np.ndarray
    """Shape (d,); zero for columns that cannot be used."""

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
        scaled: bool = False,
    ) -> BallObjective:
        """The objective of a design and targets; ``scaled`` measures coefficients in units of column scale."""
        outputs = y if y.ndim == 2 else y[None]
        unit = np.where(design.usable, 1.0 if scaled else design.spread, 0.0)
        loss = loss.tuned(outputs, design.weights)
        return cls(design, loss, y, n_outputs or len(outputs), ridge, center, unit)

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
    def _idle(self) -> np.ndarray | None:
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
        """Outputs whose constant is left alone, shape (C,): all without an intercept."""
        return ~np.isfinite(self._constants) | (not self.center)

    @cached_property
    def null(self) -> Iterate:
        """The model without features."""
        known = self._constants[np.isfinite(self._constants)]
        far = FAR + (float(np.abs(known).max()) if len(known) else 0.0)
        start = np.clip(self._constants, -far, far)
        scores = np.repeat(start[:, None], self.design.n_rows, axis=1)
        if self.center:
            start = start + settled(self.loss, self.y, self.weights, scores, self.fixed)[0]
        return Iterate(np.zeros(0, dtype=np.intp), np.zeros(0), start)

    @cached_property
    def null_value(self) -> float:
        """Q of the model without features."""
        return self.value(self.loss, self.scores(self.null), self.null)

    def value(self, loss: Loss, scores: np.ndarray, at: Iterate) -> float:
        """Q by a loss, at an iterate with these scores."""
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(np.sum(loss.value(self.y, scores) @ self.weights))
        return (total if np.isfinite(total) else np.inf) + self.penalised(at.places, at.coef)

    def penalised(self, places: np.ndarray, coef: np.ndarray) -> float:
        """The ridge's part of Q."""
        return 0.5 * float(self.penalty[places % self.design.n_features] @ coef**2) if self.ridge else 0.0

    def scores(self, at: Iterate) -> np.ndarray:
        """Scores of all rows, shape (C, n)."""
        scores = np.repeat(at.free[:, None], self.design.n_rows, axis=1)
        if len(at.places):
            features, coef = self._by_feature(at)
            for rows, block in self.design.blocks(features):
                scores[:, rows] += coef @ block.T
            if self._idle is not None:
                scores[:, self._idle] = at.free[:, None]
        return scores

    def settled(self, loss: Loss, at: Iterate) -> tuple[Iterate, np.ndarray]:
        """The iterate with the intercepts that are best for a loss, and its scores."""
        scores = self.scores(at)
        if not self.center or loss.quadratic:
            return at, scores
        shift, _ = settled(loss, self.y, self.weights, scores, self.fixed)
        return Iterate(at.places, at.coef, at.free + shift), scores + shift[:, None]

    def columns(self, features: np.ndarray) -> np.ndarray:
        """Columns of some features in these coordinates, shape (m, n)."""
        columns = self.design.columns(features)
        columns *= self.unit[features][:, None]
        if self._idle is not None:
            columns[:, self._idle] = 0.0
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

    def gradient(self, loss: Loss, scores: np.ndarray, at: Iterate) -> np.ndarray:
        """The gradient in all coordinates, shape (C d,): one pass over X."""
        slopes = loss.derivative(self.y, scores)
        if self.n_outputs == 1:
            gradient = self.design.correlate(slopes[0]) * self.unit
        else:
            gradient = (self.design.products(slopes * self.weights) * self.unit).ravel()
        if self.ridge:
            gradient[at.places] += self.penalty[at.places % self.design.n_features] * at.coef
        return gradient

    def steepness(self, loss: Loss) -> float | None:
        """``max_j (beta s_j + ridge)``, which bounds the curvature along any step in the ball; None without a beta.

        A step of l1 norm t has curvature at most that times t^2, since ``u'Hu <= (sum_j |u_j| sqrt(H_jj))^2``: the
        mean of squares of a column counts, not its largest entry.
        """
        beta = loss.smoothness
        return None if beta is None else float((beta * self._squares + self.penalty).max(initial=0.0))

    @cached_property
    def _squares(self) -> np.ndarray:
        return self.unit**2

    def far_intercepts(self, bound: float, at: Iterate) -> np.ndarray:
        """How far the best intercept of any model in the ball may be from that of an iterate, shape (C,).

        Scores of models in the ball differ from their constant by at most r, the bound times the largest entry of any
        column. Derivatives rise with scores; so where their mean is zero, the constant is within r of that of the empty
        model. Of classes that share a loss, sorted by how far their constants moved, no two neighbours are more than
        2 r apart: otherwise all classes above would have become more likely in every row.
        """
        reach = bound * float((self.unit * self.design.extent()).max(initial=0.0))
        if self.loss.joint:
            reach *= 2.0 * (self.n_outputs - 1)
        return np.where(self.fixed, 0.0, reach + np.abs(at.free - self.null.free))

    def size(self, at: Iterate) -> int:
        """Number of features that an iterate uses."""
        return len(self.support(at))

    def support(self, at: Iterate) -> np.ndarray:
        """The features that an iterate uses, ascending."""
        return np.unique(at.places % self.design.n_features)

    def finish(self, iterates: Sequence[Iterate]) -> list[Model]:
        """Models in the user's units.

        What a feature is worth is told to second order, with all others left as they are.
        """
        return [self._model(at) for at in iterates]

    def _model(self, at: Iterate) -> Model:
        features, coef = self._by_feature(at)
        scores = self.scores(at)
        loss = self.loss.smoothed(self.y if self.y.ndim == 2 else self.y[None], self.weights, center=self.center)
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = loss.derivative(self.y, scores) * self.weights
            curvature = loss.broad_curvature(self.y, scores, self.weights)
        gradient, bend = np.zeros_like(coef), np.zeros_like(coef)
        for rows, block in self.design.blocks(features):
            gradient += slopes[:, rows] @ block
            bend += (curvature[:, rows] * self.weights[rows]) @ (block * block)
        spread = self.design.spread[features]
        ridge = self.ridge / spread**2
        worth = np.sum(coef * (0.5 * (bend + ridge) * coef - gradient - ridge * coef), axis=0)
        w = coef / spread
        intercept = at.free - w @ self.design.mean[features]
        single = self.n_outputs == 1
        return Model(
            support=features,
            coef=w[0] if single else w,
            intercept=float(intercept[0]) if single else intercept,
            objective=self.value(self.loss, scores, at),
            importance=np.maximum(np.where(np.isfinite(worth), worth, 0.0), 0.0),
            units=features,
            importance_is_exact=False,
        )

    def _by_feature(self, at: Iterate) -> tuple[np.ndarray, np.ndarray]:
        """Features in use, and the coefficients of their standardised columns, shape (C, m)."""
        output, feature = np.divmod(at.places, self.design.n_features)
        features, place = np.unique(feature, return_inverse=True)
        coef = np.zeros((self.n_outputs, len(features)))
        coef[output, place] = at.coef * self.unit[feature]
        return features, coef
