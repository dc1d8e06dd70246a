"""From the coefficients that stay to fitted models: refitted on rows, or as they were learnt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from pauca.estimators.task import Target, Task
from pauca.losses import Loss
from pauca.methods import Forward
from pauca.model import Model
from pauca.stream.second_stage import FewCoefficients
from pauca.units import Limits, Units


def refitted(
    X: Any, target: Target, weights: np.ndarray, support: np.ndarray, ridge: float, *, center: bool
) -> tuple[Model, Model]:
    """The empty model and the best on the columns ``support``; those that depend on others before them are left out."""
    looked_at = support if len(support) else np.zeros(1, dtype=np.intp)  # a table has a column
    columns = X if len(looked_at) == X.shape[1] else X[:, looked_at]
    units, measure = Units.columns(len(looked_at)), _measure(target, weights)
    subset = Task(columns, target, Forward(), units, Limits(), None, ridge, center, measure).begin(weights).subset
    if len(support):
        subset.fill()
    # The empty model answers: what features are worth is an estimate then, and none of them is refitted once more.
    null, model = subset.finish([subset.null, subset.snapshot()], 0)
    return null, replace(model, support=looked_at[model.support], units=looked_at[model.units])


def occurring(X: Any) -> np.ndarray:
    """Which columns hold anything but zeros, shape (d,)."""
    if not sparse.issparse(X):
        return np.asarray(np.any(X, axis=0))
    found = np.zeros(X.shape[1], dtype=bool)
    found[X.indices[X.data != 0]] = True
    return found


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
        worth=0.5 * (curvature * moments + ridge) * np.sum(few.coef**2, axis=0),
        units=few.support,
        worth_is_exact=False,
    )


def _measure(target: Target, weights: np.ndarray) -> Loss:
    """The loss with nothing left open."""
    return target.loss.tuned(target.y if target.y.ndim == 2 else target.y[None], weights)
