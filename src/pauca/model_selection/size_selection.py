"""Choosing k: paths on all rows and on every fold, scored and weighed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pauca.design import Design
from pauca.model_selection.folds import Fold
from pauca.model_selection.grids import SizeRange
from pauca.model_selection.rules import choose_by_criterion
from pauca.model_selection.scoring import Models, criterion_values, mean_losses
from pauca.results.choice import Choice
from pauca.runs.parallel import ParallelRuns
from pauca.runs.problem import LinearProblem, Problem
from pauca.runs.run import Budget, Goal, History, SearchRun, Stop, interrupted_once


class Selection:
    """The search for a size: one run on all rows, and one on the rows of every fold."""

    def __init__(self, problem: Problem, weights: np.ndarray, folds: list[Fold], tol: float) -> None:
        self.problem = problem
        self.weights = weights
        self.folds = folds
        self.tol = tol
        self.was_interrupted = False
        self._runs: dict[int, list[SearchRun]] = {}

    @property
    def whole(self) -> SearchRun:
        """The run on all rows."""
        return self._runs[0][0]

    def advance(self, size_range: SizeRange, design: Design | None, runs: ParallelRuns) -> None:
        """Continue all runs to the largest size in the range."""
        goal = Goal(size_range.largest, self.tol)

        def job(number: int) -> Callable[[Budget], None]:
            def work(budget: Budget) -> None:
                if runs.ended and number:
                    return
                try:
                    self._advance(number, goal, budget, None if number else design)
                    if number:
                        self._score(number, size_range)
                except KeyboardInterrupt:
                    if self._runs.get(0, [None])[0] is None or self.whole.history is None:
                        raise  # there is nothing to keep yet
                    interrupted_once()
                    runs.ended = self.was_interrupted = True
                if self._interrupted(number):
                    runs.ended = True

            return work

        runs.run([job(number) for number in range(1 + len(self.folds))])

    def _advance(self, number: int, goal: Goal, budget: Budget, design: Design | None) -> None:
        if number not in self._runs:
            self._runs[number] = self._begin(number, design)
        deadline = None if budget.time_limit is None else time.monotonic() + budget.time_limit
        todo = self._runs[number]
        for position, run in enumerate(todo):
            left = None if deadline is None else max(0.0, deadline - time.monotonic()) / (len(todo) - position)
            if self._continue(run, goal, replace(budget, time_limit=left)).stop is Stop.INTERRUPTED:
                return

    def _continue(self, run: SearchRun, goal: Goal, budget: Budget) -> History:
        return run.advance(goal, budget)

    def _begin(self, number: int, design: Design | None) -> list[SearchRun]:
        """The runs on all rows (0) or on those of a fold."""
        if not number:
            return [self.problem.begin(self.weights, design)]
        fold = self.folds[number - 1]
        return [fold.problem(self.problem).begin(fold.weights, design)]

    def _score(self, number: int, size_range: SizeRange) -> None:
        """What is to be done with the models of a fold as soon as they are there."""

    def _interrupted(self, number: int) -> bool:
        runs = self._runs.get(number, [])
        return any(run.history is not None and run.history.stop is Stop.INTERRUPTED for run in runs)

    @property
    def stopped_early(self) -> Stop | None:
        """What has ended some run early: time, callback or interrupt."""
        if self.was_interrupted:
            return Stop.INTERRUPTED
        ended = [run.history.stop for run in self.all_runs() if run.history is not None and run.stopped_early]
        return ended[0] if ended else None

    def all_runs(self) -> list[SearchRun]:
        """The runs on all rows, and those of the folds."""
        return [run for runs in self._runs.values() for run in runs]

    def fold_runs(self) -> list[tuple[Fold, SearchRun]]:
        """The folds that have models, and their runs."""
        numbers = [number for number in range(1, 1 + len(self.folds)) if number in self._runs]
        found = [(self.folds[number - 1], self._runs[number][0]) for number in numbers]
        return [(fold, run) for fold, run in found if run.history is not None]

    def fold_models(self) -> list[tuple[Fold, Models]]:
        """The folds that have models, and these models."""
        return [(fold, run.models(0)) for fold, run in self.fold_runs()]

    def comparable(self, size_range: SizeRange) -> list[int]:
        """Sizes that all runs have reached; a run that was ended early limits them."""
        runs = [run for run in self.all_runs() if run.history is not None]
        ends = [max(a.history.best) for a in runs if a.stopped_early and a.history is not None]
        if len(runs) < (1 + len(self.folds)) * len(self._runs[0]):
            ends.append(0)
        within = min(ends, default=size_range.largest)
        least = len(self.whole.subset.limits.always)
        best = {size for run in self._runs[0] if run.history is not None for size in run.history.best}
        sizes = [size for size in sorted(best) if size >= least]
        return [size for size in sizes if size_range.compared(size) and size <= within] or sizes[-1:]


def choose_size(
    selection: Selection, size_range: SizeRange, runs: ParallelRuns, design: Design | None, weigh: ChoiceRule
) -> Choice:
    """Compare more and more sizes until the best is well within them."""
    while True:
        selection.advance(size_range, design, runs)
        choice = weigh(selection, selection.comparable(size_range))
        assert selection.whole.history is not None
        further = size_range.further(choice.best, max(selection.whole.history.best))
        if further is None or runs.ended or selection.stopped_early:
            return choice
        size_range = further


ChoiceRule = Callable[[Selection, list[int]], Choice]


def by_criterion(criterion: str) -> ChoiceRule:
    """A choice by an information criterion on the rows of the fit."""

    def weigh(selection: Selection, sizes: list[int]) -> Choice:
        problem, models = _problem(selection), selection.whole.models(0)
        rows = np.flatnonzero(selection.weights > 0)
        losses = mean_losses(problem, models, sizes, rows, selection.weights)
        values = criterion_values(
            criterion,
            problem.target.loss,
            losses=losses,
            coefficients=[np.size(models[size].coef) + problem.n_intercepts for size in sizes],
            sizes=sizes,
            n_rows=len(rows),
            n_units=len(problem.units),
        )
        return choose_by_criterion(np.array(sizes), values, criterion)

    return weigh


def _problem(selection: Selection) -> LinearProblem:
    """The rows and losses that a linear model is weighed by."""
    assert isinstance(selection.problem, LinearProblem)
    return selection.problem
