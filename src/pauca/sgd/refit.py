"""The second stage of Li, Yang, Zhang and Jin (2017): few of the coefficients, and the refit of these features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from pauca.constraints.limits import Limits
from pauca.constraints.units import Units
from pauca.losses import Loss
from pauca.methods import Forward
from pauca.model import Model
from pauca.runs.problem import LinearProblem, Target
from pauca.sgd.epoch_sgd import OneVsRestSGD
from pauca.sgd.reservoir import Samples
from pauca.sparsification.draws import draw


@dataclass(frozen=True)
class SecondStage:
    """How few features are chosen from the coefficients of all, and refitted."""

    target: Callable[[np.ndarray], Target]
    """Targets of shape (n,) to the target of the refit."""
    k: int | None
    """Number of features; None: all that are not zero, without a refit."""
    truncation: str
    """How they are chosen, as for ``pauca.sparsification.draw``."""
    refit: bool
    ridge: float
    center: bool
    """Whether an intercept is fitted."""

    @property
    def refits(self) -> bool:
        """Whether coefficients are fitted again."""
        return self.refit and self.k is not None

    def run(self, learner: OneVsRestSGD, samples: Samples, rng: np.random.Generator) -> tuple[Model, Model, np.ndarray]:
        """The empty model, the chosen one, and chosen features that the refit had to leave out."""
        target, weights = self.target(samples.y), samples.weights / samples.weights.sum()
        if self.refits:
            return self._truncate_and_refit(learner, samples.X, target, weights, rng)
        return self.run_without_refit(learner, samples, rng)

    def run_without_refit(
        self, learner: OneVsRestSGD, samples: Samples, rng: np.random.Generator
    ) -> tuple[Model, Model, np.ndarray]:
        """As ``run``, with the coefficients as they were learned."""
        target, weights = self.target(samples.y), samples.weights / samples.weights.sum()
        model = self._truncate(learner, samples.X, target, weights, rng)
        null, _ = self._refit(samples.X, target, weights, model.support[:0])
        return null, model, model.support[:0]

    def held_out_loss(self, learner: OneVsRestSGD, train: Samples, held_out: Samples, seed: int) -> float:
        """Mean loss of the chosen model on ``held_out``, refitted on ``train``."""
        _, model, _ = self.run(learner, train, np.random.default_rng(seed))
        loss = _tuned_loss(self.target(train.y), train.weights / train.weights.sum())
        columns, coef = held_out.X[:, model.support], np.atleast_2d(model.coef)
        scores = np.asarray((columns @ coef.T).T) + np.atleast_1d(model.intercept)[:, None]
        with np.errstate(over="ignore"):
            losses = loss.held_out(self.target(held_out.y).y, scores)
        return float(np.sum(losses @ held_out.weights) / held_out.weights.sum())

    def _truncate_and_refit(
        self, learner: OneVsRestSGD, X: Any, target: Target, weights: np.ndarray, rng: np.random.Generator
    ) -> tuple[Model, Model, np.ndarray]:
        """As ``run``, with a refit. Truncation refits ``1.5 k`` features, then the ``k`` most important of these."""
        assert self.k is not None
        k, moments = self.k, nonzero_moments(learner.moments, X)  # rows of a refit need not hold all features
        candidates = k + k // 2 if self.truncation == "truncate" else k
        support, _ = truncate(learner.solution()[0], moments, candidates, self.truncation, rng)
        null, model = self._refit(X, target, weights, support)
        # How important a feature is beside the others is only known after a refit.
        if model.size > k:
            best = np.sort(np.argsort(-model.importance, kind="stable")[:k])
            null, model = self._refit(X, target, weights, model.support[best])
        missing = model.size < min(k, len(support))
        return null, model, np.setdiff1d(support, model.support) if missing else support[:0]

    def _refit(self, X: Any, target: Target, weights: np.ndarray, support: np.ndarray) -> tuple[Model, Model]:
        """The empty model and the best on the columns ``support``, without those that depend on others before them."""
        used = support if len(support) else np.zeros(1, dtype=np.intp)  # a table has a column
        columns, units = X if len(used) == X.shape[1] else X[:, used], Units.columns(len(used))
        loss = _tuned_loss(target, weights)
        problem = LinearProblem(columns, target, Forward(), units, Limits(), None, self.ridge, self.center, loss)
        subset = problem.begin(weights).subset
        if len(support):
            subset.fill()
        # The empty model answers, so that importances are estimates and no feature is refitted once more for them.
        null, model = subset.finish([subset.null, subset.snapshot()], 0)
        return null, replace(model, support=used[model.support], units=used[model.units])

    def _truncate(
        self, learner: OneVsRestSGD, X: Any, target: Target, weights: np.ndarray, rng: np.random.Generator
    ) -> Model:
        """The model with few of the coefficients as they were learned."""
        all_coef, intercept = learner.solution()
        support, coef = truncate(all_coef, learner.moments, self.k, self.truncation, rng)
        moments = learner.moments[support]
        few_coef = np.zeros_like(all_coef)
        few_coef[:, support] = coef
        scores = np.asarray((X @ few_coef.T).T) + intercept[:, None]
        loss = _tuned_loss(target, weights)
        objective = float(np.sum(loss.value(target.y, scores) @ weights) + 0.5 * self.ridge * np.sum(coef**2))
        curvature = loss.typical_curvature(target.y, scores, weights)
        importance = 0.5 * (curvature * moments + self.ridge) * np.sum(coef**2, axis=0)
        largest = np.finfo(float).max  # squares of extreme coefficients may overflow
        return Model.of_columns(support, coef, intercept, objective, np.minimum(importance, largest))


def truncate(
    coef: np.ndarray, moments: np.ndarray, k: int | None, truncation: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Support and values of at most ``k`` of the coefficients of shape (C, d); all nonzero ones where k is None.

    Where no more than ``k`` features have occurred, nothing is drawn.
    """
    if k is None:
        support = np.flatnonzero(np.any(coef, axis=0))
        return support, coef[:, support]
    if np.count_nonzero(moments) <= k:
        support = np.flatnonzero(moments)
        return support, coef[:, support]
    drawn = draw(coef, moments, k, truncation, rng)
    return drawn.support, drawn.values


def nonzero_moments(moments: np.ndarray, X: Any) -> np.ndarray:
    """Mean squares of the columns that have nonzero entries in X, and zero for all others."""
    if not sparse.issparse(X):
        return np.where(np.any(X, axis=0), moments, 0.0)
    found = np.zeros(X.shape[1])
    occurring = X.indices[X.data != 0]
    found[occurring] = moments[occurring]
    return found


def _tuned_loss(target: Target, weights: np.ndarray) -> Loss:
    """The loss with all its parameters set from the target."""
    return target.loss.tuned(target.y if target.y.ndim == 2 else target.y[None], weights)
