"""Choosing k: paths on all rows and on every fold, scored and weighed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pauca.choice import Reach, choose_by_criterion, choose_by_folds, criterion_values
from pauca.design import Design
from pauca.estimators.folds import Fold
from pauca.estimators.task import Attempt, Startable, Task
from pauca.estimators.watch import Watch
from pauca.model import Model
from pauca.path import EXPLAINED, Budget, Choice, Goal, Stop

Models = dict[int, Model]


@dataclass(eq=False)
class Selection:
    """The search for a size: one attempt on all rows, and one on the rows of every fold."""

    task: Startable
    weights: np.ndarray
    folds: list[Fold]
    tol: float

    def __post_init__(self) -> None:
        self._attempts: dict[int, Attempt] = {}

    @property
    def whole(self) -> Attempt:
        """The attempt on all rows."""
        return self._attempts[0]

    def advance(self, reach: Reach, design: Design | None, watch: Watch) -> None:
        """Lead all attempts on to the largest size in reach."""
        goal = Goal(reach.largest, self.tol)

        def job(place: int) -> Callable[[Budget], None]:
            def work(budget: Budget) -> None:
                if watch.ended and place:
                    return
                if place not in self._attempts:
                    weights = self.folds[place - 1].weights if place else self.weights
                    self._attempts[place] = self.task.begin(weights, None if place else design)
                if self._attempts[place].advance(goal, budget).stop is Stop.INTERRUPTED:
                    watch.ended = True

            return work

        watch.run([job(place) for place in range(1 + len(self.folds))])

    @property
    def stopped_early(self) -> bool:
        """Whether some attempt was ended by time, callback or interrupt."""
        return any(attempt.stopped_early for attempt in self._attempts.values())

    def fold_attempts(self) -> list[tuple[Fold, Attempt]]:
        """The folds that have got anywhere, and their searches."""
        places = [place for place in range(1, 1 + len(self.folds)) if place in self._attempts]
        found = [(self.folds[place - 1], self._attempts[place]) for place in places]
        return [(fold, attempt) for fold, attempt in found if attempt.trail is not None]

    def fold_models(self) -> list[tuple[Fold, Models]]:
        """The folds that have got anywhere, and their models."""
        return [(fold, attempt.models(0)) for fold, attempt in self.fold_attempts()]

    def comparable(self, reach: Reach) -> list[int]:
        """Sizes that all attempts have come to, as far as nothing ended them early."""
        attempts = list(self._attempts.values())
        ends = [max(a.trail.best) for a in attempts if a.stopped_early and a.trail is not None]
        if len(attempts) <= len(self.folds):
            ends.append(0)
        within = min(ends, default=reach.largest)
        best = self.whole.trail.best if self.whole.trail is not None else {}
        least = len(self.whole.subset.limits.always)
        sizes = [size for size in sorted(best) if size >= least]
        return [size for size in sizes if reach.compared(size) and size <= within] or sizes[-1:]


def choose_size(selection: Selection, reach: Reach, watch: Watch, design: Design | None, weigh: Weigh) -> Choice:
    """Look at more and more sizes until the best is well within them."""
    while True:
        selection.advance(reach, design, watch)
        choice = weigh(selection, selection.comparable(reach))
        assert selection.whole.trail is not None
        further = reach.further(choice.best, max(selection.whole.trail.best))
        if further is None or watch.ended or selection.stopped_early:
            return choice
        reach = further


Weigh = Callable[[Selection, list[int]], Choice]


def by_criterion(criterion: str) -> Weigh:
    """A choice by an information criterion on the rows of the fit."""

    def weigh(selection: Selection, sizes: list[int]) -> Choice:
        task, models = _task(selection), selection.whole.models(0)
        rows = np.flatnonzero(selection.weights > 0)
        losses = _mean_losses(task, models, sizes, rows, selection.weights, held_out=False)
        values = criterion_values(
            criterion,
            task.target.loss,
            losses=losses,
            coefficients=[np.size(models[size].coef) for size in sizes],
            sizes=sizes,
            n_rows=len(rows),
            n_units=len(task.units),
        )
        return choose_by_criterion(np.array(sizes), values, criterion)

    return weigh


def by_folds(rule: str, scorer: Callable[..., float] | None, name: str, estimator: Any, y: np.ndarray) -> Weigh:
    """A choice by scores on rows held out: a scorer's, or the share of the loss that is gone."""

    def weigh(selection: Selection, sizes: list[int]) -> Choice:
        found = selection.fold_models()
        if not found:
            # Nothing to go by: what was asked to stop keeps what it has.
            return choose_by_folds(np.array(sizes[-1:]), np.zeros((1, 1)), rule, name)
        if scorer is None:
            scores = _explained(selection, found, sizes)
        else:
            scores = np.array([_scored(scorer, estimator, _task(selection).X, y, *one, sizes) for one in found])
        return choose_by_folds(np.array(sizes), scores, rule, EXPLAINED if scorer is None else name)

    return weigh


def _task(selection: Selection) -> Task:
    """The rows and losses that a linear model is weighed by."""
    assert isinstance(selection.task, Task)
    return selection.task


def _explained(selection: Selection, found: list[tuple[Fold, Models]], sizes: list[int]) -> np.ndarray:
    """One minus the loss on rows held out over that of the constants, which all folds share as their measure."""
    task, weights = _task(selection), selection.weights
    losses = np.array(
        [
            _mean_losses(task, models, (0, *sizes), fold.test, weights, held_out=True).sum(axis=1)
            for fold, models in found
        ]
    )
    constant = losses[:, 0].mean()
    if not constant > 0:
        return np.zeros((len(found), len(sizes)))
    with np.errstate(over="ignore", invalid="ignore"):
        scores = (constant - losses[:, 1:]) / constant
    return np.where(np.isfinite(scores), scores, -np.finfo(float).max / len(found))


def _scored(
    scorer: Callable[..., float], estimator: Any, X: Any, y: np.ndarray, fold: Fold, models: Models, sizes: list[int]
) -> list[float]:
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


def _mean_losses(
    task: Task, models: Models, sizes: Sequence[int], rows: np.ndarray, weights: np.ndarray, *, held_out: bool
) -> np.ndarray:
    """Weighted mean losses on some rows, shape (sizes, C), or (sizes, 1) where outputs share a loss."""
    chosen = [_at_most(models, size) for size in sizes]
    columns = np.unique(np.concatenate([model.support for model in chosen])).astype(np.intp)
    block = _columns(task.X, columns, rows)
    target = task.target
    y = target.y[rows] if target.loss.joint else target.y[:, rows]
    share = weights[rows] / weights[rows].sum()
    value = task.measure.held_out if held_out else task.measure.value
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
