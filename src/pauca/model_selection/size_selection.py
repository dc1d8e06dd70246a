"""Choosing k: paths on all rows and on every fold, scored and weighed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from pauca.clock import GRACE, check_time, limited_until
from pauca.design import Design
from pauca.model_selection.folds import Fold
from pauca.model_selection.grids import SizeRange
from pauca.model_selection.rules import choose_by_criterion
from pauca.model_selection.scoring import Models, mean_losses
from pauca.results.choice import Choice
from pauca.runs.parallel import ParallelRuns
from pauca.runs.problem import LinearProblem, Problem
from pauca.runs.run import Budget, Goal, History, SearchRun, Stop, ended_early, interrupted_once

STOPPED_BY_USER = frozenset({Stop.INTERRUPTED, Stop.CALLBACK})
"""What ends a run in the middle, and leaves it with sizes that say little."""

ENDED = {Stop.TIME: "the time limit", Stop.CALLBACK: "the callback asked to stop", Stop.INTERRUPTED: "the interrupt"}
"""What ended a comparison early, in words."""


class Selection:
    """The search for a size: one run on all rows, and one on the rows of every fold."""

    search_share: ClassVar[float] = 1.0
    """The share of a fold's time that its runs may take; the rest is for scoring their models."""

    def __init__(self, problem: Problem, weights: np.ndarray, folds: list[Fold], tol: float) -> None:
        self.problem = problem
        self.weights = weights
        self.folds = folds
        self.tol = tol
        self.ended_by: Stop | None = None
        """What has ended some of the work other than a run."""
        self._runs: dict[int, list[SearchRun]] = {}
        self._unfinished: set[int] = set()
        """The runs on all rows (0) and on those of folds that have not come to the end of the range, or their own."""

    @property
    def whole(self) -> SearchRun:
        """The run on all rows."""
        return self._runs[0][0]

    def noted_whole(self) -> SearchRun:
        """The run on all rows, with what has ended it or any other."""
        assert self.whole.history is not None
        self.whole.history.stop = self.stopped_early or self.whole.history.stop
        return self.whole

    def advance(self, size_range: SizeRange, design: Design | None, runs: ParallelRuns) -> None:
        """Continue all runs to the largest size in the range, and those that their share of the time has cut off again.

        How long the others take is not known before, so each has a share; what they leave is spent here.
        """
        self._unfinished = set(range(1 + len(self.folds)))
        self._continue_all(size_range, design, runs)
        while self._unfinished and self.stopped_early is Stop.TIME and runs.much_is_left and not runs.ended:
            self.ended_by = None
            self._continue_all(size_range, design, runs, again=True)

    def _continue_all(
        self, size_range: SizeRange, design: Design | None, runs: ParallelRuns, *, again: bool = False
    ) -> None:
        """Continue all runs that are not finished."""
        goal = Goal(size_range.largest, self.tol)

        def job(number: int) -> Callable[[Budget], None]:
            def work(budget: Budget) -> None:
                if runs.ended and number:
                    return
                if number == 0:
                    self._advance_on_all_rows(goal, budget, design)
                else:
                    # Without this fold there is still the run on all rows.
                    with ended_early(self.note), limited_until(runs.deadline + GRACE):
                        check_time()  # to begin a fold takes several passes over its rows
                        self._advance(number, goal, budget, None)
                        self._score(number, size_range)
                        self._note_if_finished(number)
                if self._interrupted(number):
                    runs.ended = runs.interrupted = True

            return work

        jobs = {number: job(number) for number in sorted(self._unfinished)}
        runs.run(jobs, len(self.folds), has_end=not again, may_grow=size_range.largest < size_range.most)
        if runs.interrupted:
            self.note(Stop.INTERRUPTED)

    def _advance_on_all_rows(self, goal: Goal, budget: Budget, design: Design | None) -> None:
        try:
            self._advance(0, goal, budget, design)
            self._note_if_finished(0)
        except KeyboardInterrupt:
            if 0 not in self._runs or self.whole.history is None:
                raise  # there is nothing to keep yet
            interrupted_once()
            self.note(Stop.INTERRUPTED)

    def _note_if_finished(self, number: int) -> None:
        if not any(run.stopped_early for run in self._runs[number]):
            self._unfinished.discard(number)

    def note(self, stop: Stop) -> None:
        """Remember what has ended some of the work."""
        if self.ended_by is not Stop.INTERRUPTED:
            self.ended_by = stop

    def _advance(self, number: int, goal: Goal, budget: Budget, design: Design | None) -> None:
        if number not in self._runs:
            self._runs[number] = self._begin(number, design)
        share = self.search_share if number else 1.0
        deadline = None if budget.time_limit is None else time.monotonic() + share * budget.time_limit
        todo = self._runs[number]
        for position, run in enumerate(todo):
            left = None if deadline is None else max(0.0, deadline - time.monotonic()) / (len(todo) - position)
            if (
                self._continue(run, goal, replace(budget, time_limit=left, search=position, n_searches=len(todo))).stop
                is Stop.INTERRUPTED
            ):
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
        if self.ended_by is Stop.INTERRUPTED:
            return True
        runs = self._runs.get(number, [])
        return any(run.history is not None and run.history.stop is Stop.INTERRUPTED for run in runs)

    @property
    def stopped_early(self) -> Stop | None:
        """What has ended some run early: time, callback or interrupt."""
        ended = [run.history.stop for run in self.all_runs() if run.history is not None and run.stopped_early]
        return self.ended_by or (ended[0] if ended else None)

    def all_runs(self) -> list[SearchRun]:
        """The runs on all rows, and those of the folds."""
        return [run for runs in self._runs.values() for run in runs]

    def _finished(self) -> list[int]:
        """The folds whose runs were not cut off by an interrupt or the callback."""
        finished = [number for number in sorted(self._runs) if number and self._is_whole(number)]
        # What a single one of several folds says is not enough.
        return finished if len(finished) >= min(2, len(self.folds)) else []

    def _is_whole(self, number: int) -> bool:
        stops = [None if run.history is None else run.history.stop for run in self._runs[number]]
        return None not in stops and not STOPPED_BY_USER.intersection(stops)

    def fold_runs(self) -> list[tuple[Fold, SearchRun]]:
        """The folds that can be compared, and their runs."""
        return [(self.folds[number - 1], self._runs[number][0]) for number in self._finished()]

    def fold_models(self) -> list[tuple[Fold, Models]]:
        """The folds that can be compared, and their models."""
        return [(fold, run.models(0)) for fold, run in self.fold_runs()]

    def complete(self, choice: Choice) -> Choice:
        """The choice with what kept it from comparing more."""
        ended = ENDED.get(self.stopped_early or Stop.SIZE, "")
        return replace(choice, ended=ended, n_folds=len(self.folds))

    def comparable(self, size_range: SizeRange) -> list[int]:
        """Sizes that the runs to be compared have reached; one that was cut off limits them."""
        within = min(self._ends(), default=size_range.largest)
        least = len(self.whole.subset.limits.always)
        best = {size for run in self._runs[0] if run.history is not None for size in run.history.best}
        sizes = [size for size in sorted(best) if size >= least]
        return [size for size in size_range.among(sizes) if size <= within] or sizes[-1:]

    def _ends(self) -> list[int]:
        """Where the runs to be compared were cut off; those that have no more to add do not count."""
        return [
            self._reached(number, run)
            for number in self._unfinished.intersection((0, *self._finished()))
            for run in self._runs[number]
            if run.history is not None and (run.stopped_early or run.history.stop is Stop.SIZE)
        ]

    def _reached(self, number: int, run: SearchRun) -> int:
        """The largest size that can be compared of a run."""
        assert run.history is not None
        return max(run.history.best)


def choose_size(
    selection: Selection, size_range: SizeRange, runs: ParallelRuns, design: Design | None, weigh: ChoiceRule
) -> Choice:
    """Compare more and more sizes until the best is well within them."""
    while True:
        selection.advance(size_range, design, runs)
        sizes, choice = selection.comparable(size_range), None
        with ended_early(selection.note):
            choice = weigh(selection, sizes)
        choice = choice or weigh(selection, sizes)  # it takes little time; a second interrupt ends the fit
        assert selection.whole.history is not None
        further = size_range.further(choice.best, max(selection.whole.history.best))
        if further is None or runs.ended or selection.stopped_early:
            return selection.complete(choice)
        size_range = further


ChoiceRule = Callable[[Selection, list[int]], Choice]


def by_criterion(criterion: str) -> ChoiceRule:
    """A choice by an information criterion on the rows of the fit."""

    def weigh(selection: Selection, sizes: list[int]) -> Choice:
        return weigh_models(_problem(selection), selection.whole.models(0), sizes, selection.weights, criterion)

    return weigh


def weigh_models(
    problem: LinearProblem, models: Models, sizes: Sequence[int], weights: np.ndarray, criterion: str
) -> Choice:
    """The information criterion of models of several sizes on the rows of the fit, and the size where it is lowest."""
    rows = np.flatnonzero(weights > 0)
    losses = mean_losses(problem, models, sizes, rows, weights)
    fits = [problem.target.loss.minus_twice_log_likelihood(row, len(rows)) for row in losses]
    parameters = [problem.n_parameters(len(models[size].support)) for size in sizes]
    return choose_by_criterion(criterion, fits, parameters, sizes, len(rows), len(problem.units))


def _problem(selection: Selection) -> LinearProblem:
    """The rows and losses that a linear model is weighed by."""
    assert isinstance(selection.problem, LinearProblem)
    return selection.problem
