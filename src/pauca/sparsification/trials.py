"""Draws on real data: what each costs, what that was to be, and the refit of the best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from pauca.design import Design
from pauca.losses import Loss
from pauca.objectives import SmoothObjective, WarmStart
from pauca.solvers.newton import minimise
from pauca.sparsification.base import Draw, RandomNumbers, Sampling, Spread, Unbiased
from pauca.sparsification.draws import lay_out


@dataclass(frozen=True, eq=False)
class Fitted:
    """Coefficients on few features, shape (C, m), intercepts, shape (C,), and the objective Q."""

    support: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    objective: float
    importance: np.ndarray
    """By how much Q would rise without each feature, shape (m,): after a refit with the others refitted, exactly for
    squared loss and else to second order; of a draw about that, with the others left as they are."""


@dataclass(frozen=True, eq=False)
class Expectation:
    """What a draw costs in the mean over all draws, above the dense model."""

    excess: float | None
    """None where nothing is known."""
    is_exact: bool
    """Whether it is that, or no more than an upper bound."""
    bound: float | None
    """What holds whatever the correlations of the columns: that of the papers."""


@dataclass(frozen=True, eq=False)
class Trials:
    """A dense model on data: ``Q(w) = sum_i v_i L(y_i, x_i w + b) + (ridge/2) |w|^2``, b at its best for every w.

    Conventions
    -----------
    coef : dense coefficients in the units of X, shape (C, d)
    y    : targets of shape (C, n); classes of shape (n,) where all outputs share one loss
    """

    objective: SmoothObjective
    coef: np.ndarray

    @classmethod
    def of(cls, design: Design, y: np.ndarray, loss: Loss, coef: np.ndarray, *, ridge: float, center: bool) -> Trials:
        """Trials with a dense model on the data of a design."""
        return cls(SmoothObjective.of(design, y, loss, n_outputs=len(coef), ridge=ridge, center=center), coef)

    @cached_property
    def moments(self) -> np.ndarray:
        """Second moments of the columns, about their means where there is an intercept; zero if they are constant."""
        design = self.objective.design
        return np.where(design.usable, design.spread**2, 0.0)

    @cached_property
    def dense(self) -> Fitted:
        """The dense model itself, at its best intercept."""
        return self.weigh(Draw(np.arange(self.coef.shape[1]), self.coef))

    @cached_property
    def constant(self) -> Fitted:
        """The model without features."""
        return self.weigh(Draw(np.zeros(0, dtype=np.intp), np.zeros((len(self.coef), 0))))

    @cached_property
    def _curvature(self) -> float:
        """One number for the curvature of the loss."""
        objective = self.objective
        return objective.smooth.typical_curvature(objective.y, objective.null.scores, objective.design.weights)

    def lay_out(self, k: int, method: str) -> Sampling:
        """A way to draw ``k``, by what squared weights cost: ``beta m_j + ridge``, beta being one if there is none."""
        beta = self.objective.loss.smoothness or 1.0
        cost = np.where(self.moments > 0, beta * self.moments + self.objective.ridge, 0.0)
        return lay_out(self.coef, cost, k, method)

    def draw(self, sampling: Sampling, rng: RandomNumbers) -> Fitted:
        """One draw, at its best intercept."""
        places, factors = sampling.draw(rng)
        return self.weigh(Draw(sampling.features[places], sampling.coef[:, places] * factors))

    def weigh(self, drawn: Draw) -> Fitted:
        """A draw with its best intercept and its objective."""
        objective, design = self.objective, self.objective.design
        matrix = _scattered(drawn.support, drawn.values.T, design.n_features)
        scores = np.concatenate([block for _, block in design.scores(matrix)]).T
        if objective.idle is not None:
            scores[:, objective.idle] = 0.0
        constant = self._constant(scores)
        value = float(np.sum(objective.loss.value(objective.y, scores + constant[:, None]) @ design.weights))
        value += 0.5 * objective.ridge * float(np.vdot(drawn.values, drawn.values))
        intercept = constant - drawn.values @ design.mean[drawn.support]
        bend = self._curvature * self.moments[drawn.support] + objective.ridge
        worth = 0.5 * bend * np.sum(drawn.values**2, axis=0)
        return Fitted(drawn.support, drawn.values, intercept, value, worth)

    def refit(self, drawn: Fitted) -> Fitted:
        """The best model on the support of a draw; never above it."""
        objective, design, support = self.objective, self.objective.design, drawn.support
        free = objective.free
        columns = np.empty((free + len(support), design.n_rows))
        columns[:free] = 1.0
        for rows, block in design.blocks(support):
            columns[free:, rows] = block.T
        start = np.empty((len(drawn.coef), free + len(support)))
        start[:, free:] = drawn.coef * design.spread[support]
        start[:, :free] = (drawn.intercept + drawn.coef @ design.mean[support])[:, None]
        found = objective.minimise(columns, support, WarmStart(start))
        value = objective.reported(found, support)
        # Losses with kinks are minimised through an envelope, which may end a little above where it started.
        if value > drawn.objective:
            return drawn
        coef = found.coef[:, free:] / design.spread[support]
        constant = found.coef[:, :free].sum(axis=1)
        worth = _worth(found.hessian, found.coef, free)
        return Fitted(support, coef, constant - coef @ design.mean[support], value, worth)

    def expect(self, sampling: Unbiased) -> Expectation:
        """What a draw costs in the mean: exactly for squared loss, at most for losses that are smooth or Lipschitz.

        As the mean of draws is w, terms of first order vanish. What is left is half the spread of the scores for
        squared loss, at most beta times that for a smooth one, and at most rho times the root of the spread for a
        Lipschitz one (``rho sqrt(C)`` for the sum over C outputs), besides half the ridge times that of the weights.
        """
        moments = self.moments[sampling.features]
        spread = sampling.spread(moments, lambda coef: self._root_weighted(sampling.features, coef))
        # Columns that are constant are never drawn: what they add to the ridge term of the dense model is saved.
        left_out = np.delete(self.coef, sampling.features, axis=1)
        saved = 0.5 * self.objective.ridge * float(np.vdot(left_out, left_out))
        excess, bound = self._cost(spread), self._cost(sampling.ceiling(moments))
        return Expectation(
            None if excess is None else excess - saved,
            self.objective.loss.quadratic,
            None if bound is None else bound - saved,
        )

    def _cost(self, spread: Spread) -> float | None:
        loss = self.objective.loss
        found = []
        if loss.smoothness is not None:
            found.append(0.5 * loss.smoothness * spread.scores)
        if loss.lipschitz is not None:
            outputs = 1 if loss.joint else len(self.coef)
            found.append(loss.lipschitz * float(np.sqrt(outputs * spread.scores)))
        return min(found) + 0.5 * self.objective.ridge * spread.weights if found else None

    def _constant(self, scores: np.ndarray) -> np.ndarray:
        """The best constants to add to centred scores of shape (C, n)."""
        objective = self.objective
        v = objective.design.weights
        if not objective.center:
            return np.zeros(len(scores))
        if objective.loss.quadratic:
            return np.asarray((objective.y - scores) @ v)
        none = np.zeros(0, dtype=np.intp)
        problem = objective.restricted(np.ones((1, len(v))), none, offset=scores)
        return minimise(problem, np.zeros((len(scores), 1))).coef[:, 0]

    def _root_weighted(self, features: np.ndarray, coef: Any) -> Iterator[np.ndarray]:
        """Row blocks of scores times the roots of the weights."""
        design = self.objective.design
        for rows, block in design.scores(_scattered(features, coef, design.n_features)):
            yield block * np.sqrt(design.weights[rows, None])


def _worth(hessian: np.ndarray, coef: np.ndarray, free: int) -> np.ndarray:
    """What every feature of a minimum is worth: ``w_j' (A_jj)^-1 w_j / 2`` with A the inverse Hessian."""
    inverse = np.linalg.pinv(hessian, hermitian=True)
    outputs, size = coef.shape
    if len(inverse) == outputs:
        variance = np.einsum("cii->ci", inverse)[:, free:]
        return np.asarray(0.5 * np.sum(coef[:, free:] ** 2 / np.maximum(variance, np.finfo(float).tiny), axis=0))
    # One block for all outputs: a feature has a place in the part of each.
    places = np.arange(free, size)[:, None] + size * np.arange(outputs)
    blocks, own = inverse[0][places[:, :, None], places[:, None, :]], coef[:, free:].T[:, :, None]
    return np.asarray(0.5 * np.sum(own * np.linalg.solve(blocks, own), axis=(1, 2)))


def _scattered(features: np.ndarray, coef: Any, n_features: int) -> Any:
    """Coefficients of shape (N, m) of some features, as those of all: shape (d, m), dense or sparse as they were."""
    if not sparse.issparse(coef):
        scattered = np.zeros((n_features, coef.shape[1]))
        scattered[features] = coef
        return scattered
    few = coef.tocoo()
    return sparse.csc_array((few.data, (features[few.row], few.col)), shape=(n_features, coef.shape[1]))
