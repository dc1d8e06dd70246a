"""How models do on rows that they were not fitted on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from pauca.losses import Loss
from pauca.model import Model
from pauca.model_selection.folds import Fold
from pauca.search.problem import Target

Models = dict[int, Model]
"""Models by size, or by their place among others; the empty one has number 0."""


class Measured(Protocol):
    """Data, a target, and the loss by which models are held against each other, with nothing left open."""

    @property
    def X(self) -> Any: ...  # noqa: N802, D102 - X is X

    @property
    def target(self) -> Target: ...  # noqa: D102

    @property
    def measure(self) -> Loss: ...  # noqa: D102


def explained(
    problem: Measured, weights: np.ndarray, found: Sequence[tuple[Fold, Models]], sizes: Sequence[int]
) -> np.ndarray:
    """One minus the loss on rows held out over that of the constants, which all folds share as their measure.

    Of the empty model it is 0 in every fold, whatever its loss there: nothing is explained. Its mean would be 0 but for
    rounding, and as the smallest size it is chosen or not by its mean alone.
    """
    losses = np.array(
        [
            mean_losses(problem, models, (0, *sizes), fold.test, weights, held_out=True).sum(axis=1)
            for fold, models in found
        ]
    )
    constant = losses[:, 0].mean()
    if not constant > 0:
        return np.zeros((len(found), len(sizes)))
    with np.errstate(over="ignore", invalid="ignore"):
        scores = (constant - losses[:, 1:]) / constant
    scores[:, [all(_at_most(models, size) is models[0] for _, models in found) for size in sizes]] = 0.0
    return np.where(np.isfinite(scores), scores, -np.finfo(float).max / len(found))


def scored(
    scorer: Callable[..., float],
    estimator: Any,
    X: Any,
    y: np.ndarray,
    fold: Fold,
    models: Models,
    sizes: Sequence[int],
) -> list[float]:
    """What a scorer says of the models of some sizes on the rows held out."""
    fitted = copy.copy(estimator)
    # The rows of a fold are arrays, whatever the user's table was.
    fitted.__dict__.pop("feature_names_in_", None)
    rows, target = X[fold.test], y[fold.test]
    scores = []
    for size in sizes:
        fitted._put(_at_most(models, size))
        scores.append(float(scorer(fitted, rows, target)))
    return scores


def _at_most(models: Models, size: int) -> Model:
    """The model of a size, or of the next smaller one: a path that ended early has no better to offer."""
    return models[max(known for known in models if known <= size)]


def mean_losses(
    problem: Measured, models: Models, sizes: Sequence[int], rows: np.ndarray, weights: np.ndarray, *, held_out: bool
) -> np.ndarray:
    """Weighted mean losses on some rows, shape (sizes, C), or (sizes, 1) where outputs share a loss."""
    chosen = [_at_most(models, size) for size in sizes]
    columns = np.unique(np.concatenate([model.support for model in chosen])).astype(np.intp)
    block = _columns(problem.X, columns, rows)
    target = problem.target
    y = target.y[rows] if target.loss.joint else target.y[:, rows]
    share = weights[rows] / weights[rows].sum()
    value = problem.measure.held_out if held_out else problem.measure.value
    found = []
    for model in chosen:
        coef = np.zeros((target.n_outputs, len(columns)))
        coef[:, np.searchsorted(columns, model.support)] = model.coef
        scores = np.atleast_1d(model.intercept)[:, None] + coef @ block.T
        with np.errstate(over="ignore"):
            found.append(np.atleast_1d(value(y, scores) @ share))
    return np.array(found)


def _columns(X: Any, support: np.ndarray, rows: np.ndarray) -> np.ndarray:
    block = X[:, support][rows].toarray() if hasattr(X, "toarray") else X[np.ix_(rows, support)]
    return np.asarray(block, dtype=np.float64)
