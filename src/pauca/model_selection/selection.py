"""Choosing k: paths on all rows and on every fold, scored and weighed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pauca.design import Design
from pauca.model_selection.folds import Fold
from pauca.model_selection.scoring import (
    Models,
    Scorer,
    choose_by_criterion,
    criterion_values,
    mean_losses,
    weigh_folds,
)
from pauca.model_selection.sizes import SizeRange
from pauca.results.choice import Choice
from pauca.search.driver import Budget, Goal
from pauca.search.history import Stop
from pauca.search.parallel import ParallelRuns
from pauca.search.problem import LinearProblem, Problem, SearchRun


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

    def advance(self, size_range: SizeRange, design: Design | None, runs: ParallelRuns) -> None:
        """Continue all runs to the largest size in the range."""
        goal = Goal(size_range.largest, self.tol)

        def job(number: int) -> Callable[[Budget], None]:
            def work(budget: Budget) -> None:
                if runs.ended and number:
                    return
                if number not in self._runs:
                    weights = self.folds[number - 1].weights if number else self.weights
                    self._runs[number] = self.problem.begin(weights, None if number else design)
                if self._runs[number].advance(goal, budget).stop is Stop.INTERRUPTED:
                    runs.ended = True

            return work

        runs.run([job(number) for number in range(1 + len(self.folds))])

    @property
    def stopped_early(self) -> bool:
        """Whether some run was ended by time, callback or interrupt."""
        return any(run.stopped_early for run in self._runs.values())

    def fold_runs(self) -> list[tuple[Fold, SearchRun]]:
        """The folds that have models, and their runs."""
        numbers = [number for number in range(1, 1 + len(self.folds)) if number in self._runs]
        found = [(self.folds[number - 1], self._runs[number]) for number in numbers]
        return [(fold, run) for fold, run in found if run.history is not None]

    def fold_models(self) -> list[tuple[Fold, Models]]:
        """The folds that have models, and these models."""
        return [(fold, run.models(0)) for fold, run in self.fold_runs()]

    def comparable(self, size_range: SizeRange) -> list[int]:
        """Sizes that all runs have reached; a run that was ended early limits them."""
        runs = list(self._runs.values())
        ends = [max(a.history.best) for a in runs if a.stopped_early and a.history is not None]
        if len(runs) <= len(self.folds):
            ends.append(0)
        within = min(ends, default=size_range.largest)
        best = self.whole.history.best if self.whole.history is not None else {}
        least = len(self.whole.subset.limits.always)
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


def by_folds(rule: str, scorer: Scorer | None, y: np.ndarray) -> ChoiceRule:
    """A choice by scores on rows held out: a scorer's, or the share of the constant model's loss that is gone."""

    def weigh(selection: Selection, sizes: list[int]) -> Choice:
        return weigh_folds(rule, scorer, _problem(selection), selection.weights, y, selection.fold_models(), sizes)

    return weigh


def _problem(selection: Selection) -> LinearProblem:
    """The rows and losses that a linear model is weighed by."""
    assert isinstance(selection.problem, LinearProblem)
    return selection.problem
