"""A dense model on data: the objective of sparse draws, its expectation, and the refit on their features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from pauca.constraints.limits import Limits
from pauca.design import Design
from pauca.losses import Loss
from pauca.methods import Exchange
from pauca.model import Model
from pauca.objectives import LeastSquares, Rows, SmoothObjective, WarmStart
from pauca.runs.run import Budget, Goal, SearchRun
from pauca.solvers.factorisation import solve_or_nearest
from pauca.solvers.newton import minimise
from pauca.sparsification.draws import make_sampling
from pauca.sparsification.sampling import RandomNumbers, Sampling, Truncation, UnbiasedSampling, Variance
from pauca.subsets.least_squares import LeastSquaresSubset
from pauca.subsets.smooth import SmoothSubset


@dataclass(frozen=True, eq=False)
class Expectation:
    """The expected excess of a draw over the dense model."""

    excess: float | None
    """None where no bound is known."""
    is_exact: bool
    """Whether it is exact, or an upper bound."""
    bound: float | None
    """The bound of the papers, which holds whatever the correlations of the columns."""


@dataclass(frozen=True, eq=False)
class SparsificationProblem:
    """A dense model on data: ``Q(w) = sum_i v_i L(y_i, x_i w + b) + (ridge/2) |w|^2``, b at its best for every w.

    Conventions
    -----------
    coef : dense coefficients in the units of X, shape (C, d)
    y    : targets of shape (C, n); classes of shape (n,) where all outputs share one loss
    """

    objective: SmoothObjective
    coef: np.ndarray

    @classmethod
    def of(
        cls, design: Design, y: np.ndarray, loss: Loss, coef: np.ndarray, *, ridge: float, center: bool
    ) -> SparsificationProblem:
        """The problem for the data of a design."""
        return cls(SmoothObjective.of(design, y, loss, n_outputs=len(coef), ridge=ridge, center=center), coef)

    @cached_property
    def moments(self) -> np.ndarray:
        """Second moments of the columns, about their means where there is an intercept; zero if they are constant."""
        design = self.objective.design
        return np.where(design.usable, design.spread**2, 0.0)

    @cached_property
    def dense(self) -> Model:
        """The dense model itself, with its best intercept."""
        return self.evaluate(np.arange(self.coef.shape[1]), self.coef)

    @cached_property
    def constant(self) -> Model:
        """The model without features."""
        model = self.evaluate(np.zeros(0, dtype=np.intp), np.zeros((len(self.coef), 0)))
        return replace(model, importance_is_exact=True)

    @cached_property
    def _curvature(self) -> float:
        """One number for the curvature of the loss."""
        objective = self.objective
        rows = objective.rows
        return objective.smooth.typical_curvature(rows.y, objective.null.scores, rows.weights)

    def sampling(self, k: int, truncation: str) -> Sampling:
        """A sampling scheme; a squared weight costs ``beta m_j + ridge``, beta being one if the loss has none."""
        beta = self.objective.loss.smoothness or 1.0
        cost = np.where(self.moments > 0, beta * self.moments + self.objective.ridge, 0.0)
        return make_sampling(self.coef, cost, k, truncation)

    def searched(self, k: int) -> Sampling:
        """The ``k`` features of all with the least Q, as exchange finds them, with their dense coefficients."""
        objective, subset = self.objective, None
        if objective.loss.quadratic and len(self.coef) == 1:
            squares = LeastSquares.of(
                objective.design, objective.y[0], ridge=objective.ridge, center=objective.center, standardize=False
            )
            subset = LeastSquaresSubset.start(squares, Limits())
        run = SearchRun(Exchange(), objective.design, subset or SmoothSubset.start(objective, Limits()))
        models = run.advance(Goal(k), Budget()).best
        features = np.array(sorted(models[max(models)].support), dtype=np.intp)
        return Truncation(features, self.coef[:, features], np.ones(len(features)))

    def draw(self, sampling: Sampling, rng: RandomNumbers) -> Model:
        """One draw, with its best intercept."""
        positions, factors = sampling.draw(rng)
        return self.evaluate(sampling.features[positions], sampling.coef[:, positions] * factors)

    def evaluate(self, support: np.ndarray, coef: np.ndarray) -> Model:
        """The model with coefficients of shape (C, m), its best intercept and its objective.

        The importance of a feature is about the rise of Q without it, all other coefficients unchanged.
        """
        objective, design = self.objective, self.objective.design
        matrix = _scattered(support, coef.T, design.n_features)
        scores = np.concatenate([block for _, block in design.scores(matrix)]).T
        scores[:, design.weights == 0] = 0.0
        constant = self._constant(scores)
        value = float(np.sum(objective.loss.value(objective.y, scores + constant[:, None]) @ design.weights))
        value += 0.5 * objective.ridge * float(np.vdot(coef, coef))
        intercept = constant - coef @ design.mean[support] + objective.origin
        curvature = self._curvature * self.moments[support] + objective.ridge
        return Model.of_columns(support, coef, intercept, value, 0.5 * curvature * np.sum(coef**2, axis=0))

    def refit(self, drawn: Model) -> Model:
        """The best model on the support of a draw; its objective is never above that of the draw.

        The importance of a feature is the rise of Q without it, the others refitted: exact for squared loss, else to
        second order.
        """
        objective, design, support = self.objective, self.objective.design, drawn.support
        weights = np.atleast_2d(drawn.coef)
        free = objective.free
        columns = np.concatenate([np.ones((free, design.n_rows)), design.columns(support)])
        start = np.empty((len(weights), free + len(support)))
        start[:, free:] = weights * design.spread[support]
        start[:, :free] = (drawn.intercept - objective.origin + weights @ design.mean[support])[:, None]
        rows = Rows(objective.y, design.weights)
        found = objective.minimise(rows, columns, support, WarmStart(start))
        value = objective.reported(rows, found, support)
        # Losses with kinks are minimised through an envelope, which may end a little above where it started.
        if value > drawn.objective:
            return replace(drawn, importance_is_exact=objective.loss.quadratic)
        coef = found.coef[:, free:] / design.spread[support]
        constant = found.coef[:, :free].sum(axis=1)
        hessian = found.hessian
        if hessian is None:
            hessian = objective.restricted(rows, columns, support).hessian(found.scores, 0.0)
        intercept = constant - coef @ design.mean[support] + objective.origin
        importance = _importance(hessian, found.coef, free)
        return Model.of_columns(support, coef, intercept, value, importance, exact=objective.loss.quadratic)

    def expected_excess(self, sampling: UnbiasedSampling) -> Expectation:
        """The expected excess of a draw: exact for squared loss, an upper bound for smooth or Lipschitz losses.

        As the mean of draws is w, terms of first order vanish. What is left is half the variance of the scores for
        squared loss, at most beta times that for a smooth one, and at most rho times the root of the variance for a
        Lipschitz one (``rho sqrt(C)`` for the sum over C outputs), besides half the ridge times that of the weights.
        """
        moments = self.moments[sampling.features]
        variance = sampling.variance(moments, lambda coef: self._root_weighted(sampling.features, coef))
        # Columns that are constant are never drawn: what they add to the ridge term of the dense model is saved.
        left_out = np.delete(self.coef, sampling.features, axis=1)
        saved = 0.5 * self.objective.ridge * float(np.vdot(left_out, left_out))
        excess, bound = self._cost(variance), self._cost(sampling.variance_bound(moments))
        return Expectation(
            None if excess is None else excess - saved,
            self.objective.loss.quadratic,
            None if bound is None else bound - saved,
        )

    def _cost(self, variance: Variance) -> float | None:
        loss = self.objective.loss
        found = []
        if loss.smoothness is not None:
            found.append(0.5 * loss.smoothness * variance.scores)
        if loss.lipschitz is not None:
            outputs = 1 if loss.joint else len(self.coef)
            found.append(loss.lipschitz * float(np.sqrt(outputs * variance.scores)))
        return min(found) + 0.5 * self.objective.ridge * variance.weights if found else None

    def _constant(self, scores: np.ndarray) -> np.ndarray:
        """The best constants to add to centred scores of shape (C, n)."""
        objective = self.objective
        v = objective.design.weights
        if not objective.center:
            return np.zeros(len(scores))
        if objective.loss.quadratic:
            return np.asarray((objective.y - scores) @ v)
        none = np.zeros(0, dtype=np.intp)
        problem = objective.restricted(Rows(objective.y, v), np.ones((1, len(v))), none, offset=scores)
        return minimise(problem, np.zeros((len(scores), 1))).coef[:, 0]

    def _root_weighted(self, features: np.ndarray, coef: Any) -> Iterator[np.ndarray]:
        """Row blocks of scores times the roots of the weights."""
        design = self.objective.design
        for rows, block in design.scores(_scattered(features, coef, design.n_features)):
            yield block * np.sqrt(design.weights[rows, None])


def _importance(hessian: np.ndarray, coef: np.ndarray, free: int) -> np.ndarray:
    """The importance of every feature of a minimum: ``w_j' (A_jj)^-1 w_j / 2`` with A the inverse Hessian."""
    inverse = np.linalg.pinv(hessian, hermitian=True)
    outputs, size = coef.shape
    if len(inverse) == outputs:
        variance = np.einsum("cii->ci", inverse)[:, free:]
        return np.asarray(0.5 * np.sum(coef[:, free:] ** 2 / np.maximum(variance, np.finfo(float).tiny), axis=0))
    # One block for all outputs: a feature has a position in the part of each.
    positions = np.arange(free, size)[:, None] + size * np.arange(outputs)
    blocks, own = inverse[0][positions[:, :, None], positions[:, None, :]], coef[:, free:].T[:, :, None]
    return np.asarray(0.5 * np.sum(own * solve_or_nearest(blocks, own), axis=(1, 2)))


def _scattered(features: np.ndarray, coef: Any, n_features: int) -> Any:
    """Coefficients of shape (N, m) of some features, as those of all: shape (d, m), dense or sparse as they were."""
    if not sparse.issparse(coef):
        scattered = np.zeros((n_features, coef.shape[1]))
        scattered[features] = coef
        return scattered
    few = coef.tocoo()
    return sparse.csc_array((few.data, (features[few.row], few.col)), shape=(n_features, coef.shape[1]))
