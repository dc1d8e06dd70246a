"""From the coefficients that stay to fitted models: refitted on rows, or as they were learnt."""

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
from pauca.search.problem import LinearProblem, Target
from pauca.sgd.one_vs_rest import Learners
from pauca.sgd.reservoir import Rows
from pauca.sgd.truncation import FewCoefficients, few_of


def refitted(
    X: Any, target: Target, weights: np.ndarray, support: np.ndarray, ridge: float, *, center: bool
) -> tuple[Model, Model]:
    """The empty model and the best on the columns ``support``; those that depend on others before them are left out."""
    looked_at = support if len(support) else np.zeros(1, dtype=np.intp)  # a table has a column
    columns = X if len(looked_at) == X.shape[1] else X[:, looked_at]
    units, measure = Units.columns(len(looked_at)), _measure(target, weights)
    subset = (
        LinearProblem(columns, target, Forward(), units, Limits(), None, ridge, center, measure).begin(weights).subset
    )
    if len(support):
        subset.fill()
    # The empty model answers: what features are worth is an estimate then, and none of them is refitted once more.
    null, model = subset.finish([subset.null, subset.snapshot()], 0)
    return null, replace(model, support=looked_at[model.support], units=looked_at[model.units])


def that_occur(moments: np.ndarray, X: Any) -> np.ndarray:
    """Mean squares of the columns that hold anything but zeros in X, and zero for all others."""
    if not sparse.issparse(X):
        return np.where(np.any(X, axis=0), moments, 0.0)
    found = np.zeros(X.shape[1])
    occurring = X.indices[X.data != 0]
    found[occurring] = moments[occurring]
    return found


def few_refitted(
    X: Any,
    target: Target,
    weights: np.ndarray,
    learners: Learners,
    k: int,
    method: str,
    rng: np.random.Generator,
    ridge: float,
    *,
    center: bool,
) -> tuple[Model, Model, np.ndarray]:
    """The empty model, the best on the features chosen in the second stage, and those that had to be left out.

    Truncation refits half as many again as are wanted, and once more those of them that are worth most: what a feature
    is worth beside the others only a refit tells.
    """
    truncates = method == "truncate"
    moments = that_occur(learners.moments, X)  # rows of a refit need not hold all features
    few = few_of(*learners.answer(), moments, k + k // 2 if truncates else k, method, rng)
    null, model = refitted(X, target, weights, few.support, ridge, center=center)
    if model.size > k:
        best = np.sort(np.argsort(-model.importance, kind="stable")[:k])
        null, model = refitted(X, target, weights, model.support[best], ridge, center=center)
    missing = model.size < min(k, len(few.support))
    return null, model, np.setdiff1d(few.support, model.support) if missing else few.support[:0]


@dataclass(frozen=True)
class FewJudge:
    """Judges what was learnt by the few features that are made of it, refitted and tried on rows held out."""

    target: Callable[[np.ndarray], Target]
    k: int
    method: str
    ridge: float
    center: bool
    seed: int

    def __call__(self, learners: Learners, train: Rows, held: Rows) -> float:
        """Mean loss on the rows held out."""
        weights, target = train.weights / train.weights.sum(), self.target(train.y)
        rng, how = np.random.default_rng(self.seed), (self.k, self.method)
        _, model, _ = few_refitted(train.X, target, weights, learners, *how, rng, self.ridge, center=self.center)
        loss = target.loss.tuned(target.y if target.y.ndim == 2 else target.y[None], weights)
        used, coef = held.X[:, model.support], np.atleast_2d(model.coef)
        scores = np.asarray((used @ coef.T).T) + np.atleast_1d(model.intercept)[:, None]
        with np.errstate(over="ignore"):
            losses = loss.held_out(self.target(held.y).y, scores)
        return float(np.sum(losses @ held.weights) / held.weights.sum())


def as_learnt(
    X: Any, target: Target, weights: np.ndarray, few: FewCoefficients, moments: np.ndarray, ridge: float
) -> Model:
    """The model with coefficients as they are; ``moments`` are the mean squares of its columns."""
    coef = np.zeros((len(few.coef), X.shape[1]))
    coef[:, few.support] = few.coef
    scores = np.asarray((X @ coef.T).T) + few.intercept[:, None]
    loss = _measure(target, weights)
    objective = float(np.sum(loss.value(target.y, scores) @ weights) + 0.5 * ridge * np.sum(few.coef**2))
    curvature = loss.typical_curvature(target.y, scores, weights)
    single = target.n_outputs == 1
    return Model(
        support=few.support,
        coef=few.coef[0] if single else few.coef,
        intercept=float(few.intercept[0]) if single else few.intercept,
        objective=objective,
        importance=0.5 * (curvature * moments + ridge) * np.sum(few.coef**2, axis=0),
        units=few.support,
        importance_is_exact=False,
    )


def _measure(target: Target, weights: np.ndarray) -> Loss:
    """The loss with nothing left open."""
    return target.loss.tuned(target.y if target.y.ndim == 2 else target.y[None], weights)
