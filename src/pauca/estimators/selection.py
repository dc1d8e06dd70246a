"""Choosing k: paths on all rows and on every fold, scored and weighed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pauca.choice import Reach, choose_by_criterion, choose_by_folds, criterion_values
from pauca.design import Design
from pauca.estimators.folds import Fold
from pauca.estimators.held_out import Models, explained, mean_losses, scored
from pauca.estimators.task import Attempt, Startable, Task
from pauca.estimators.watch import Watch
from pauca.path import EXPLAINED, Budget, Choice, Goal, Stop


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
        losses = mean_losses(task, models, sizes, rows, selection.weights, held_out=False)
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
            scores = explained(_task(selection), selection.weights, found, sizes)
        else:
            scores = np.array([scored(scorer, estimator, _task(selection).X, y, *one, sizes) for one in found])
        return choose_by_folds(np.array(sizes), scores, rule, EXPLAINED if scorer is None else name)

    return weigh


def _task(selection: Selection) -> Task:
    """The rows and losses that a linear model is weighed by."""
    assert isinstance(selection.task, Task)
    return selection.task
