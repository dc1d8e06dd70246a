"""Size, ridge of the search and ridge of the fit chosen together: every candidate scored on held-out rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial

import numpy as np

from pauca.clock import GRACE, interrupts_held, limited_until
from pauca.design import Design, designs_of_folds, make_design
from pauca.methods import Forward
from pauca.methods.exchange import swaps_suffice
from pauca.model_selection.comparison import Comparison, ScoredFold, Table
from pauca.model_selection.folds import Fold, FoldWeights
from pauca.model_selection.grids import GAINED_BY_LIGHTEST, SIZE_GROWTH, RidgeGrid, SizeRange
from pauca.model_selection.held_out import FoldMeasure, HeldOutModel, Measure, at_most
from pauca.model_selection.ridge_fits import (
    Refitter,
    RidgeFits,
    fits_of_search,
    has_dependent,
    refit_path,
    refitter,
)
from pauca.model_selection.rules import SIZES_AHEAD, choose, nothing_scored
from pauca.model_selection.size_selection import STOPPED_BY_USER, Selection
from pauca.results.choice import Choice, Rule, standard_errors
from pauca.runs.parallel import ParallelRuns
from pauca.runs.problem import LinearProblem
from pauca.runs.progress import phase
from pauca.runs.run import Budget, Goal, History, Method, SearchRun, Stop, ended_early

# The share of a time limit that forward selection may take, before the requested search.
FORWARD_SHARE = 0.5

# The share of a fold's time that its searches may take, where time is limited: to fit and score what they find at all
# ridges takes about twice as long. Without it the last folds had no time left, and the comparison ended at their sizes.
SEARCH_SHARE = 0.3


class SurfaceSelection(Selection):
    """The search for a size and two ridges: on all rows and on those of every fold, one run for each search ridge."""

    problem: LinearProblem
    search_share = SEARCH_SHARE

    def __init__(
        self,
        problem: LinearProblem,
        weights: np.ndarray,
        folds: list[Fold],
        tol: float,
        grid: RidgeGrid,
        measure: Measure,
        rule: Rule,
    ) -> None:
        super().__init__(problem, weights, folds, tol)
        self.grid = grid
        self.measure = measure
        self.rule = rule
        self._compares_pairs = standard_errors(rule) > 0
        self._designs: list[Design] | None = None
        self._growth = SIZE_GROWTH
        self._refitters: dict[int, Refitter] = {}
        self._known: dict[int, dict[frozenset[int], np.ndarray]] = {}
        self._measures: dict[int, FoldMeasure] = {}
        self._forward: dict[SearchRun, SearchRun] = {}
        """Forward selection beside runs whose time is limited."""

    def advance(self, size_range: SizeRange, design: Design | None, runs: ParallelRuns) -> None:
        """Continue all runs to the largest size in the range."""
        if size_range.sizes is not None:  # all of them are on the paths
            self._growth = 0.0
        if not self._runs and design is not None and self.problem.target.loss.quadratic:
            weights = FoldWeights(self.folds)
            self._designs = designs_of_folds(self.problem.X, design, weights, center=self.problem.center)
        super().advance(size_range, design, runs)

    def _begin(self, number: int, design: Design | None) -> list[SearchRun]:
        fold = self.folds[number - 1] if number else None
        weights = self.weights if fold is None else fold.weights
        problem = self.problem if fold is None else fold.problem(self.problem)
        if fold is not None and fold.X is not None:
            design = make_design(fold.X, weights, center=problem.center)
        elif number and self._designs is not None:
            design = self._designs[number - 1]
        runs: list[SearchRun] = []
        for ridge in self._in_units(self.grid.search, self.grid.search_in_units, weights, design):
            run = problem.searched_at(ridge).begin(weights, design)
            run.method = run.method.for_comparison(run, self._growth)
            if runs:
                run.subset.use_products_of(runs[0].subset)
            runs, design = [*runs, run], run.design
        if number:
            self._known[number] = {}
            self._measures[number] = self.measure.of_fold(self.folds[number - 1], number - 1)
        return runs

    def _refitter(self, number: int, ridges: tuple[float, ...]) -> Refitter:
        """Fits of any set of features at some ridges on the rows of a fold."""
        run, weights = self._runs[number][0], self.folds[number - 1].weights
        in_units = self._in_units(ridges, self.grid.fit_in_units, weights, run.design)
        return refitter(run.subset, in_units, standardize=self.problem.standardize)

    def _continue(self, run: SearchRun, goal: Goal, budget: Budget) -> History:
        """Continue a search; sizes that it does not reach within a time limit are those of forward selection.

        Forward selection is far faster, so it comes first: without it only the smallest sizes would be compared.
        """
        if budget.time_limit is None or isinstance(run.method, Forward):
            return run.advance(goal, budget)
        deadline = time.monotonic() + budget.time_limit
        if run not in self._forward:
            self._forward[run] = SearchRun(Forward(), run.design, run.subset.restarted())
        forward = self._forward[run]
        quick = forward.advance(goal, replace(budget, time_limit=FORWARD_SHARE * budget.time_limit))
        left = 0.0 if quick.stop in STOPPED_BY_USER else max(0.0, deadline - time.monotonic())
        history = run.advance(goal, replace(budget, time_limit=left))
        if history.stop is Stop.TIME:
            history.best = quick.best | history.best
        return history

    def _in_units(
        self, ridges: tuple[float, ...], in_units: bool, weights: np.ndarray, design: Design | None
    ) -> list[float]:
        """Ridges as numbers: those that are found for the user come in units that the rows of the fit make."""
        unit = self.problem.ridge_unit(weights, design) if in_units else 1.0
        return [ridge * unit for ridge in ridges]

    def _score(self, number: int, size_range: SizeRange) -> None:
        """Fit and score what the runs of a fold have chosen, at all ridges of the fit."""
        if number not in self._refitters:
            self._refitters[number] = self._refitter(number, self.grid.fit)
        refit, known = self._refitters[number], self._known[number]
        fits = dict[frozenset[int], RidgeFits]()
        for path, run in enumerate(self._runs[number]):
            if run.history is None:
                break
            best = run.history.best
            for size in (0, *size_range.compared_up_to(max(best))):
                model = at_most(best, size)
                support = frozenset(model.support)
                if support in known or support in fits:
                    continue
                found = fits_of_search(run.subset, model) if self.grid.fits_as_searched else None
                fits[support] = refit(model.support, path, model) if found is None else found
        if fits:
            known.update(zip(fits, self._measures[number].sums(list(fits.values())), strict=True))

    def _is_whole(self, number: int) -> bool:
        return bool(self._known.get(number)) and super()._is_whole(number)

    def _reached(self, number: int, run: SearchRun) -> int:
        """The largest size that can be compared of a run; of those of folds, that was scored."""
        return max(self._table(run, self._known[number]), default=0) if number else super()._reached(number, run)

    def scored_folds(self) -> list[ScoredFold]:
        """What the finished folds say of the models of every search."""
        return [
            ScoredFold(
                self._measures[number],
                [self._table(run, self._known[number]) for run in self._runs[number]],
            )
            for number in self._finished()
        ]

    @staticmethod
    def _table(run: SearchRun, known: dict[frozenset[int], np.ndarray]) -> Table:
        assert run.history is not None
        best = {size: frozenset(snapshot.support) for size, snapshot in run.history.best.items()}
        return {size: known[support] for size, support in best.items() if support in known}

    def choose(self, size_range: SizeRange, runs: ParallelRuns, design: Design) -> Choice:
        """Compare more and more sizes until the chosen one is well within them."""
        while True:
            self.advance(size_range, design, runs)
            choice = self.compared(size_range, runs)
            if isinstance(choice, Choice):
                break
            size_range = choice
        while self._may_be_too_heavy(choice) and not (runs.ended or self.stopped_early):
            with ended_early(self.note), limited_until(runs.deadline + GRACE):
                self._compare_lighter_ridges()
            make, _ = self.weigh(self.comparable(size_range))
            choice = self.complete(make())
        return choice

    def _may_be_too_heavy(self, choice: Choice) -> bool:
        """Whether the lightest ridge of a grid that grows was chosen, and gained much."""
        grows, surface = self.grid.grows and self.measure.scorer is None, choice.surface
        if not (grows and choice.scored and choice.chosen) or surface is None:
            return False
        return surface.gained_by_lightest(choice.chosen) > GAINED_BY_LIGHTEST

    def _compare_lighter_ridges(self) -> None:
        """Score what the folds have chosen at lighter ridges as well; if this is cut off, nothing changes."""
        grid, known = self.grid.lighter(), dict[int, dict[frozenset[int], np.ndarray]]()
        added = grid.fit[: len(grid.fit) - len(self.grid.fit)]
        folds = self._finished()
        step = phase("comparing lighter ridges", sum(len(self._known[number]) for number in folds))
        for number in folds:
            refit, before = self._refitter(number, added), self._known[number]
            supports, fits = sorted(before, key=len), []
            for support in supports:
                fits.append(refit(sorted(support)))
                step()
            sums = self._measures[number].sums(fits)
            known[number] = {
                support: np.concatenate([lighter, before[support]])
                for support, lighter in zip(supports, sums, strict=True)
            }
        refitters = {number: self._refitter(number, grid.fit) for number in known}
        with interrupts_held():
            self.grid, self._known, self._refitters = grid, known, refitters

    def compared(self, size_range: SizeRange, runs: ParallelRuns) -> Choice | SizeRange:
        """The choice among the sizes of a range, or the range to compare next."""
        make, judged = self.weigh(self.comparable(size_range))
        reached = max(max(run.history.best) for run in self._runs[0] if run.history is not None)
        ended = runs.ended or self.stopped_early
        further = None if ended else size_range.further(judged, reached)
        return self.complete(make()) if further is None else further

    def complete(self, choice: Choice) -> Choice:
        """The choice with what kept it from comparing more."""
        largest = int(choice.sizes.max())
        usable = len(self.problem.limits.candidates(self.problem.units.any(self.whole.design.usable)))
        falling = choice.scored and len(choice.sizes) > 1 and 0 < choice.chosen == choice.best == largest < usable
        limited = self.whole.history is not None and self.whole.history.stop is Stop.LIMITS
        return replace(super().complete(choice), falling=falling and not limited)

    def weigh(self, sizes: Sequence[int]) -> tuple[Callable[[], Choice], int]:
        """What makes the choice among some sizes, and the size that must be well within them for it to be final.

        It is the smallest that is as good as the best, before a constant is compared. Where searches are quick, and the
        rule has standard errors, it is the largest that may be as good: held-out losses may rise and fall again. For
        classes all are quick, and a choice that is a constant is left at that: noise would be taken for signal.
        """
        folds = self.scored_folds()
        if not folds:
            assert self.whole.history is not None
            largest = max(self.whole.history.best)
            return partial(nothing_scored, largest, self.rule, self.measure.scoring), largest
        comparison = Comparison(folds, sizes)
        comparison.be_careful(self.grid.n_added)
        comparison.bar(self._missing(sizes))
        classifies = self.problem.target.loss.classifies
        found = choose(comparison.losses, comparison.sizes, self.rule, ahead=SIZES_AHEAD[classifies])
        grid = self.grid_on_all_rows()
        shown = None if grid.single else grid
        worth_it = found.place[2] > 0 if classifies else swaps_suffice(self.whole)
        judged = found.promising if self._compares_pairs and worth_it else found.leading
        return partial(comparison.choice, found, self.rule, self.measure.scoring, shown), int(sizes[judged])

    def _missing(self, sizes: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """What has no model on all rows: sizes that a search has not met, dependent columns at ridge 0."""
        for search, run in enumerate(self._runs[0]):
            known = {} if run.history is None else run.history.best
            for place, size in enumerate(sizes):
                for position, ridge in enumerate(self.grid.fit):
                    if size not in known or (not ridge and self._has_dependent(search, run, known[size].support)):
                        yield search, position, place

    def _has_dependent(self, search: int, run: SearchRun, units: tuple[int, ...]) -> bool:
        # A search without a ridge takes no such columns.
        return self.grid.search[search] > 0 and has_dependent(run.subset, units)

    def grid_on_all_rows(self) -> RidgeGrid:
        """The ridges as they are on all rows."""
        design, grid = self._runs[0][0].design, self.grid
        search = tuple(self._in_units(grid.search, grid.search_in_units, self.weights, design))
        fit = tuple(self._in_units(grid.fit, grid.fit_in_units, self.weights, design))
        return RidgeGrid(search, fit)

    def searches(self) -> dict[float, SearchRun]:
        """The runs on all rows, by their ridges."""
        return dict(zip(self.grid_on_all_rows().search, self._runs[0], strict=True))

    def held_out_models(self, choice: Choice) -> list[HeldOutModel]:
        """The chosen candidate as it was fitted for every fold that was scored."""
        grid, surface, search, ridge = self.grid_on_all_rows(), choice.surface, 0, 0
        if surface is not None:
            search, ridge = grid.search.index(surface.search_ridge), grid.fit.index(surface.ridge)
        found = []
        for number in self._finished():
            history, fold = self._runs[number][search].history, self.folds[number - 1]
            assert history is not None
            units = at_most(history.best, choice.chosen).support
            fits = self._refitters[number](units)
            found.append(HeldOutModel(fold.test, units, fits.columns, fits.coef[ridge], fits.intercept[ridge], fold.X))
        return found

    def fitted(self, choice: Choice, runs: ParallelRuns) -> tuple[SearchRun, Choice, tuple[float, float]]:
        """The path on all rows at the chosen ridges, the choice among its sizes, and the ridges of fit and search."""
        grid, surface = self.grid_on_all_rows(), choice.surface
        search_ridge, ridge = grid.search[0], grid.fit[0]
        if surface is not None:
            search_ridge, ridge = surface.search_ridge, surface.ridge
        place = grid.search.index(search_ridge)
        if not (runs.ended or self.stopped_early):

            def search(budget: Budget) -> None:
                self._runs[0][place] = searched_by(self.problem.method, self._runs[0][place], self.tol, budget)

            runs.run({0: search}, len(self.folds))
        run = self._runs[0][place]
        assert run.history is not None
        problem = replace(self.problem, ridge=ridge)
        if problem.differs_from_search(search_ridge):
            chosen = choice.among(run.history.best).chosen
            refitted = None
            with ended_early(self.note), limited_until(runs.deadline + GRACE):
                refitted = refitted_run(problem, run, self.weights)
            # Whatever the time: the answer has the ridge that was chosen for it.
            run = refitted or refitted_run(problem, run, self.weights, only=chosen)
        assert run.history is not None
        return run, choice.among(run.history.best), (ridge, search_ridge)


def searched_by(method: Method, run: SearchRun, tol: float, budget: Budget | None = None) -> SearchRun:
    """The path of a method to the largest size of a run, which may be by a quicker one; it has its fits at hand.

    Sizes that the method does not reach, as within a budget, are those of the run; if something ends it, all are.
    """
    assert run.history is not None
    if run.method == method:
        return run
    found = SearchRun(method, run.design, run.subset.restarted())
    history = found.advance(Goal(max(run.history.best), tol), budget or Budget())
    if found.stopped_early:
        kept = copy(run.history)
        kept.stop = history.stop
        return SearchRun(run.method, run.design, run.subset, kept)
    history.best = run.history.best | history.best
    if history.stop is Stop.SIZE:  # the size is where the run has ended
        history.stop = run.history.stop
    return found


def refitted_run(problem: LinearProblem, run: SearchRun, weights: np.ndarray, only: int | None = None) -> SearchRun:
    """The path of a run, or the model of one size, fitted again with the ridge of ``problem``."""
    assert run.history is not None
    fitted = problem.begin(weights, run.design)
    fitted.subset.use_products_of(run.subset)
    supports = {size: snapshot.support for size, snapshot in run.history.best.items() if size}
    if only is not None:
        supports = {size: support for size, support in supports.items() if size == only}
    history: History = copy(run.history)
    history.best = refit_path(fitted.subset, supports)
    return SearchRun(run.method, run.design, fitted.subset, history)
