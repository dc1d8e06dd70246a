"""Scores of models on rows held out, information criteria, and the rules that choose a size by them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import gammaln
from sklearn.metrics import check_scoring, get_scorer_names

from pauca.losses import Loss
from pauca.model import Model
from pauca.model_selection.folds import Fold
from pauca.results.choice import EXPLAINED, Choice
from pauca.search.problem import Target


def criterion_values(
    criterion: str,
    loss: Loss,
    *,
    losses: np.ndarray,
    coefficients: Sequence[int],
    sizes: Sequence[int],
    n_rows: int,
    n_units: int,
) -> np.ndarray:
    """The criterion of every model, lower being better.

    ``-2 log L + 2 q`` (Akaike 1974), ``-2 log L + q log n`` (Schwarz 1978), or the latter with ``2 log (p over k)``
    for the number of models of the same size (Chen and Chen 2008, with their gamma = 1).

    Parameters
    ----------
    losses : mean losses on the rows of the fit, shape (models, C), or (models, 1) where outputs share a loss
    coefficients : number of coefficients of every model
    sizes : number of units of every model
    """
    fits = np.array([loss.minus_twice_log_likelihood(row, n_rows) for row in losses])
    return penalised(criterion, fits, coefficients=coefficients, sizes=sizes, n_rows=n_rows, n_units=n_units)


def penalised(
    criterion: str,
    fits: np.ndarray,
    *,
    coefficients: Sequence[int],
    sizes: Sequence[int],
    n_rows: int,
    n_units: int,
) -> np.ndarray:
    """The criterion of models whose ``-2 log L`` is known."""
    q, k = np.asarray(coefficients, dtype=float), np.asarray(sizes, dtype=float)
    if criterion == "aic":
        return fits + 2.0 * q
    values = fits + np.log(n_rows) * q
    if criterion == "ebic":
        values = values + 2.0 * (gammaln(n_units + 1) - gammaln(k + 1) - gammaln(n_units - k + 1))
    return values


# Scores that differ by less are the same, and the smaller size is taken.
SAME_WITHIN = 1e-12


def choose_by_folds(sizes: np.ndarray, fold_scores: np.ndarray, rule: str, scoring: str) -> Choice:
    """The choice by scores of shape (folds, sizes), higher being better.

    "best" takes the highest mean. "1se" takes the smallest size whose mean is within one standard error of that: what
    cannot be distinguished from the best is as good, and smaller (Breiman, Friedman, Olshen and Stone, 1984).
    """
    mean = fold_scores.mean(axis=0)
    spread = fold_scores.std(axis=0, ddof=1) if len(fold_scores) > 1 else np.zeros(len(sizes))
    error = spread / np.sqrt(len(fold_scores))
    same = SAME_WITHIN * max(1.0, float(np.abs(mean).max()))
    best = int(np.flatnonzero(mean >= mean.max() - same)[0])
    enough = mean[best] - (error[best] if rule == "1se" else 0.0) - same
    chosen = int(sizes[np.flatnonzero(mean >= enough)[0]])
    return Choice(rule, scoring, sizes, mean, error, fold_scores, chosen)


def choose_by_criterion(sizes: np.ndarray, values: np.ndarray, criterion: str) -> Choice:
    """The choice by an information criterion, lower being better; the smallest size among equals."""
    return Choice(criterion, criterion, sizes, values, None, None, int(sizes[np.argmin(values)]))


Models = dict[int, Model]
"""Models by size, or by their position among others; the empty one has number 0."""


class Scorable(Protocol):
    """Data, a target, and the loss by which models are compared, with all its parameters set."""

    @property
    def X(self) -> Any: ...  # noqa: N802, D102 - X is X

    @property
    def target(self) -> Target: ...  # noqa: D102

    @property
    def measure(self) -> Loss: ...  # noqa: D102


def explained(
    problem: Scorable, weights: np.ndarray, found: Sequence[tuple[Fold, Models]], sizes: Sequence[int]
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


@dataclass(frozen=True, eq=False)
class Scorer:
    """A scorer of scikit-learn, and the estimator whose predictions it scores."""

    name: str
    score: Callable[..., float]
    estimator: Any

    def scores(self, X: Any, y: np.ndarray, fold: Fold, models: Models, sizes: Sequence[int]) -> list[float]:
        """Scores of the models of some sizes on the rows held out."""
        fitted = copy.copy(self.estimator)
        # The rows of a fold are arrays, whatever the user's table was.
        fitted.__dict__.pop("feature_names_in_", None)
        rows, target = X[fold.test], y[fold.test]
        found = []
        for size in sizes:
            fitted._set_model(_at_most(models, size))
            found.append(float(self.score(fitted, rows, target)))
        return found


def scorer_for(estimator: Any, scoring: Any) -> Scorer | None:
    """The scorer that ``scoring`` names; None where models are compared by their loss."""
    if scoring is None:
        return None
    if isinstance(scoring, str) and scoring not in get_scorer_names():
        raise ValueError(
            f"scoring={scoring!r} is not a scorer that scikit-learn knows; "
            "sklearn.metrics.get_scorer_names() lists them."
        )
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", type(scoring).__name__)
    return Scorer(name, check_scoring(estimator, scoring), estimator)


def _at_most(models: Models, size: int) -> Model:
    """The model of a size, or of the next smaller one: a path that ended early has no better to offer."""
    return models[max(known for known in models if known <= size)]


def mean_losses(
    problem: Scorable, models: Models, sizes: Sequence[int], rows: np.ndarray, weights: np.ndarray, *, held_out: bool
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


def weigh_folds(
    rule: str,
    scorer: Scorer | None,
    problem: Scorable,
    weights: np.ndarray,
    y: np.ndarray,
    found: Sequence[tuple[Fold, Models]],
    sizes: Sequence[int],
) -> Choice:
    """The choice among ``sizes`` by scores on the rows that each fold holds out."""
    scoring = EXPLAINED if scorer is None else scorer.name
    if not found:
        # No fold has a model yet: the run was stopped, and keeps what it has.
        return choose_by_folds(np.array(sizes[-1:]), np.zeros((1, 1)), rule, scoring)
    if scorer is None:
        scores = explained(problem, weights, found, sizes)
    else:
        scores = np.array([scorer.scores(problem.X, y, fold, models, sizes) for fold, models in found])
    return choose_by_folds(np.array(sizes), scores, rule, scoring)
