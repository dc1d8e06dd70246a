"""Choosing k: paths on all rows and on every fold, scored and weighed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pauca.design import Design
from pauca.model_selection.folds import Fold
from pauca.model_selection.rules import choose_by_criterion, choose_by_folds, criterion_values
from pauca.model_selection.scoring import Models, explained, mean_losses, scored
from pauca.model_selection.sizes import SizeRange
from pauca.results.choice import EXPLAINED, Choice
from pauca.search.driver import Budget, Goal
from pauca.search.parallel import Watch
from pauca.search.problem import LinearProblem, Problem, SearchRun
from pauca.search.stop import Stop


@dataclass(eq=False)
class Selection:
    """The search for a size: one run on all rows, and one on the rows of every fold."""

    problem: Problem
    weights: np.ndarray
    folds: list[Fold]
    tol: float

    def __post_init__(self) -> None:
        self._runs: dict[int, SearchRun] = {}

    @property
    def whole(self) -> SearchRun:
        """The run on all rows."""
        return self._runs[0]

    def advance(self, reach: SizeRange, design: Design | None, watch: Watch) -> None:
        """Lead all runs on to the largest size in reach."""
        goal = Goal(reach.largest, self.tol)

        def job(place: int) -> Callable[[Budget], None]:
            def work(budget: Budget) -> None:
                if watch.ended and place:
                    return
                if place not in self._runs:
                    weights = self.folds[place - 1].weights if place else self.weights
                    self._runs[place] = self.problem.begin(weights, None if place else design)
                if self._runs[place].advance(goal, budget).stop is Stop.INTERRUPTED:
                    watch.ended = True

            return work

        watch.run([job(place) for place in range(1 + len(self.folds))])

    @property
    def stopped_early(self) -> bool:
        """Whether some run was ended by time, callback or interrupt."""
        return any(run.stopped_early for run in self._runs.values())

    def fold_runs(self) -> list[tuple[Fold, SearchRun]]:
        """The folds that have got anywhere, and their searches."""
        places = [place for place in range(1, 1 + len(self.folds)) if place in self._runs]
        found = [(self.folds[place - 1], self._runs[place]) for place in places]
        return [(fold, run) for fold, run in found if run.history is not None]

    def fold_models(self) -> list[tuple[Fold, Models]]:
        """The folds that have got anywhere, and their models."""
        return [(fold, run.models(0)) for fold, run in self.fold_runs()]

    def comparable(self, reach: SizeRange) -> list[int]:
        """Sizes that all runs have come to, as far as nothing ended them early."""
        runs = list(self._runs.values())
        ends = [max(a.history.best) for a in runs if a.stopped_early and a.history is not None]
        if len(runs) <= len(self.folds):
            ends.append(0)
        within = min(ends, default=reach.largest)
        best = self.whole.history.best if self.whole.history is not None else {}
        least = len(self.whole.subset.limits.always)
        sizes = [size for size in sorted(best) if size >= least]
        return [size for size in sizes if reach.compared(size) and size <= within] or sizes[-1:]


def choose_size(selection: Selection, reach: SizeRange, watch: Watch, design: Design | None, weigh: Weigh) -> Choice:
    """Look at more and more sizes until the best is well within them."""
    while True:
        selection.advance(reach, design, watch)
        choice = weigh(selection, selection.comparable(reach))
        assert selection.whole.history is not None
        further = reach.further(choice.best, max(selection.whole.history.best))
        if further is None or watch.ended or selection.stopped_early:
            return choice
        reach = further


Weigh = Callable[[Selection, list[int]], Choice]


def by_criterion(criterion: str) -> Weigh:
    """A choice by an information criterion on the rows of the fit."""

    def weigh(selection: Selection, sizes: list[int]) -> Choice:
        problem, models = _problem(selection), selection.whole.models(0)
        rows = np.flatnonzero(selection.weights > 0)
        losses = mean_losses(problem, models, sizes, rows, selection.weights, held_out=False)
        values = criterion_values(
            criterion,
            problem.target.loss,
            losses=losses,
            coefficients=[np.size(models[size].coef) for size in sizes],
            sizes=sizes,
            n_rows=len(rows),
            n_units=len(problem.units),
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
            scores = explained(_problem(selection), selection.weights, found, sizes)
        else:
            scores = np.array([scored(scorer, estimator, _problem(selection).X, y, *one, sizes) for one in found])
        return choose_by_folds(np.array(sizes), scores, rule, EXPLAINED if scorer is None else name)

    return weigh


def _problem(selection: Selection) -> LinearProblem:
    """The rows and losses that a linear model is weighed by."""
    assert isinstance(selection.problem, LinearProblem)
    return selection.problem
