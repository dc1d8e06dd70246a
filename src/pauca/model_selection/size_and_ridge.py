"""Size, ridge of the search and ridge of the fit chosen together: every candidate scored on held-out rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from pauca.clock import GRACE, limited_until
from pauca.design import Design, designs_of_folds, make_design
from pauca.methods import Exchange, Forward
from pauca.model_selection.folds import Fold, FoldWeights
from pauca.model_selection.grids import SIZE_GROWTH, RidgeGrid, SizeRange
from pauca.model_selection.held_out import FoldBlocks, FoldMeasure, HeldOutModel, Measure, as_refits, at_most
from pauca.model_selection.ridge_fits import Refitter, has_dependent, refit_path, refitter, share_products
from pauca.model_selection.rules import SIZES_AHEAD, Chosen, HeldOutLosses, choose, nothing_scored
from pauca.model_selection.scoring import Models
from pauca.model_selection.size_selection import STOPPED_BY_USER, Selection
from pauca.results.choice import EXPLAINED, Choice, Rule, standard_errors
from pauca.results.surface import Surface
from pauca.runs.parallel import ParallelRuns
from pauca.runs.problem import LinearProblem
from pauca.runs.run import Budget, Goal, History, Method, SearchRun, Stop, ended_early

# The share of a time limit that forward selection may take, before the requested search.
FORWARD_SHARE = 0.5

# Instead of exchange with all its starts: several times as fast, and on held-out rows the models of exchange are no
# better (docs/choosing_k.md). The path on all rows is then found by the requested method. Where swaps have closed forms
# they are kept, as models of forward selection alone are worse; where they take refits they are not.
SWAPS_ALONE = Exchange(scouts=(), detour=0)
QUICK_SEARCH = Forward(shortlist=1.3, batch=SIZE_GROWTH)

Table = dict[int, np.ndarray]
"""Sums over blocks by size, each of shape (R, blocks of the fold); there is always a size 0."""


@dataclass(frozen=True, eq=False)
class ScoredFold:
    """What a fold says of the models of every search."""

    measure: FoldBlocks
    tables: list[Table]

    def losses(self, sizes: Sequence[int]) -> np.ndarray:
        """Sums of shape (searches, ridges, sizes, blocks of the fold)."""
        found = [np.stack([at_most(table, size) for size in sizes], axis=1) for table in self.tables]
        return np.stack(found)


class Comparison:
    """All candidates on the rows that the folds hold out."""

    def __init__(self, folds: Sequence[ScoredFold], sizes: Sequence[int]) -> None:
        self.sizes = np.array(sizes)
        blocks = 1 + max(int(fold.measure.blocks.max()) for fold in folds)
        weight = np.zeros(blocks)
        parts = [fold.losses((0, *sizes)) for fold in folds]
        total = np.zeros((*parts[0].shape[:-1], blocks))
        for fold, part in zip(folds, parts, strict=True):
            total[..., fold.measure.blocks] += part
            weight[fold.measure.blocks] += fold.measure.weight
        self.losses = HeldOutLosses(total[:, :, 1:], weight)
        self.constant = HeldOutLosses(total[0, 0, 0], weight)
        """The model without features."""
        with np.errstate(over="ignore", invalid="ignore"):
            self._by_fold = [
                HeldOutLosses(part, fold.measure.weight).observed for fold, part in zip(folds, parts, strict=True)
            ]

    def bar(self, place: tuple[int, int, int]) -> None:
        """Leave out a candidate, which has no model on all rows."""
        self.losses.sums[place] = np.inf
        self.losses.__dict__.pop("mean", None)

    def scores(self, scoring: str) -> tuple[np.ndarray, np.ndarray]:
        """Mean scores of all candidates, higher being better, and their standard errors."""
        if scoring != EXPLAINED:
            return -self.losses.observed, self.losses.error(np.zeros(len(self.losses.weight)))
        null = float(self.constant.observed)
        if not null > 0:
            return np.zeros(self.losses.observed.shape), np.zeros(self.losses.observed.shape)
        lowest = -np.finfo(float).max / 2
        with np.errstate(over="ignore", invalid="ignore"):
            left = self.losses.observed / null
            mean = 1.0 - left
            error = self._error_of_shares(left) / null
        # Nothing is explained by a model that is the constant itself, whatever rounding says.
        mean = np.where(np.isfinite(mean), np.where(error > 0, mean, np.where(mean > 1e-12, mean, 0.0)), lowest)
        mean[..., self.sizes == 0] = 0.0
        error[..., self.sizes == 0] = 0.0
        return mean, error

    def _error_of_shares(self, left: np.ndarray) -> np.ndarray:
        """Standard errors of the losses, less the shares ``left`` of the constant's loss of the same rows.

        Rows that are far from the mean raise the loss of the constant as they raise what is explained of it: the
        error of a ratio is that of what is left once the denominator's own spread is taken out (the delta method).
        """
        finite = np.where(np.isfinite(left), left, 0.0)
        residual = HeldOutLosses(self.losses.sums - finite[..., None] * self.constant.sums, self.losses.weight)
        return residual.error(np.zeros(len(self.losses.weight)))

    def fold_scores(self, scoring: str, search: int, ridge: int) -> np.ndarray:
        """Scores of every fold at one pair of ridges, shape (folds, sizes)."""
        losses = np.stack([part[search, ridge, 1:] for part in self._by_fold])
        if scoring != EXPLAINED:
            return -losses
        null = float(self.constant.observed)
        if not null > 0:
            return np.zeros(losses.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = (np.stack([part[0, 0, 0] for part in self._by_fold])[:, None] - losses) / null
        scores = np.where(np.isfinite(scores), scores, -np.finfo(float).max / 2 / len(scores))
        scores[:, self.sizes == 0] = 0.0
        return scores

    def choice(self, found: Chosen, rule: Rule, scoring: str, grid: RidgeGrid | None = None) -> Choice:
        """The choice as a user sees it; ``grid`` has the ridges, where there were several."""
        search, ridge, size = found.place
        mean, error = self.scores(scoring)
        surface, null = (
            None,
            float(self.constant.observed) if scoring == EXPLAINED and self.constant.observed > 0 else 1.0,
        )
        if grid is not None:
            surface = Surface(
                np.array(grid.search),
                np.array(grid.fit),
                self.sizes,
                mean,
                found.error / null,
                grid.fit[ridge],
                grid.search[search],
                error,
            )
        return Choice(
            rule,
            scoring,
            self.sizes,
            mean[search, ridge],
            error[search, ridge],
            self.fold_scores(scoring, search, ridge),
            int(self.sizes[size]),
            surface,
            int(self.sizes[found.best[2]]),
            n_folds=len(self._by_fold),
            one_error_size=int(self.sizes[found.within_one_error]),
            difference_error=self.losses.error(self.losses.sums[found.place])[search, ridge] / null,
        )


def weigh_folds(rule: Rule, measure: Measure, found: Sequence[tuple[Fold, Models]], sizes: Sequence[int]) -> Choice:
    """The choice among ``sizes`` by the models of every fold."""
    if not found:
        return nothing_scored(sizes[-1], rule, measure.scoring)
    folds = []
    for number, (fold, models) in enumerate(found):
        scored, needed = measure.of_fold(fold, number), sorted(models)
        sums = scored.sums([as_refits(models[size]) for size in needed])
        folds.append(ScoredFold(scored, [dict(zip(needed, sums, strict=True))]))
    comparison = Comparison(folds, sizes)
    return comparison.choice(choose(comparison.losses, comparison.sizes, rule), rule, measure.scoring)


class SurfaceSelection(Selection):
    """The search for a size and two ridges: on all rows and on those of every fold, one run for each search ridge."""

    problem: LinearProblem

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
        self._quick_search = QUICK_SEARCH
        self._refitters: dict[int, Refitter] = {}
        self._known: dict[int, dict[frozenset[int], np.ndarray]] = {}
        self._measures: dict[int, FoldMeasure] = {}

    def advance(self, size_range: SizeRange, design: Design | None, runs: ParallelRuns) -> None:
        """Continue all runs to the largest size in the range."""
        if size_range.sizes is not None:  # all of them are on the paths
            self._quick_search = replace(QUICK_SEARCH, batch=0.0)
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
            run = compared_by(replace(problem, ridge=ridge).begin(weights, design), self._quick_search)
            if runs:
                share_products(run.subset, runs[0].subset)
            runs, design = [*runs, run], run.design
        if number:
            ridges = self._in_units(self.grid.fit, self.grid.fit_in_units, weights, design)
            standardize = self.problem.standardize
            self._refitters[number] = refitter(runs[0].subset, ridges, standardize=standardize)
            self._known[number] = {}
            self._measures[number] = self.measure.of_fold(self.folds[number - 1], number - 1)
        return runs

    def _continue(self, run: SearchRun, goal: Goal, budget: Budget) -> History:
        """Continue a search; sizes that it does not reach within a time limit are those of forward selection.

        Forward selection is far faster, so it comes first: without it only the smallest sizes would be compared.
        """
        if budget.time_limit is None or isinstance(run.method, Forward):
            return run.advance(goal, budget)
        deadline = time.monotonic() + budget.time_limit
        forward = SearchRun(Forward(), run.design, run.subset.restarted())
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
        refit, known = self._refitters[number], self._known[number]
        for run in self._runs[number]:
            if run.history is None:
                return
            best = run.history.best
            compared = {at_most(best, size).support for size in (0, *size_range.compared_up_to(max(best)))}
            new = sorted((support for support in compared if frozenset(support) not in known), key=len)
            if new:
                sums = self._measures[number].sums([refit(support) for support in new])
                known.update(zip(map(frozenset, new), sums, strict=True))

    def _finished(self) -> list[int]:
        """The folds all of whose runs were scored, and none cut off by an interrupt or the callback."""
        finished = []
        for number, known in sorted(self._known.items()):
            stops = [None if run.history is None else run.history.stop for run in self._runs[number]]
            if known and None not in stops and not STOPPED_BY_USER.intersection(stops):
                finished.append(number)
        # The differences between two models on the rows of a single fold say little.
        return finished if len(finished) >= min(2, len(self.folds)) else []

    def comparable(self, size_range: SizeRange) -> list[int]:
        """Sizes that the runs on all rows and those of the finished folds have reached."""
        ends = [max(size_range.largest, 0)]
        for number in (0, *self._finished()):
            histories = [run.history for run in self._runs[number] if run.history is not None and run.stopped_early]
            ends += [max(history.best) for history in histories]
        least = len(self.whole.subset.limits.always)
        best = {size for run in self._runs[0] if run.history is not None for size in run.history.best}
        sizes = [size for size in sorted(best) if size >= least]
        return [size for size in size_range.among(sizes) if size <= min(ends)] or sizes[-1:]

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
            choice, further = self.compared(size_range, runs)
            if further is None:
                return choice
            size_range = further

    def compared(self, size_range: SizeRange, runs: ParallelRuns) -> tuple[Choice, SizeRange | None]:
        """The choice among the sizes of a range, and the range to compare next; None if the choice is final."""
        choice, judged = self.weigh(self.comparable(size_range))
        reached = max(max(run.history.best) for run in self._runs[0] if run.history is not None)
        ended = runs.ended or self.stopped_early
        further = None if ended else size_range.further(judged, reached)
        return self.complete(choice) if further is None else choice, further

    def complete(self, choice: Choice) -> Choice:
        """The choice with what kept it from comparing more."""
        largest = int(choice.sizes.max())
        usable = int(np.count_nonzero(self.problem.units.any(self.whole.design.usable)))
        falling = choice.scored and len(choice.sizes) > 1 and 0 < choice.chosen == choice.best == largest < usable
        limited = self.whole.history is not None and self.whole.history.stop is Stop.LIMITS
        return replace(super().complete(choice), falling=falling and not limited)

    def weigh(self, sizes: Sequence[int]) -> tuple[Choice, int]:
        """The choice among some sizes, and the size that must be well within them for the choice to be final.

        It is the smallest that is as good as the best, before a constant is compared. Where searches are quick, and the
        rule has standard errors, it is the largest that may be as good: held-out losses may rise and fall again.
        """
        folds = self.scored_folds()
        if not folds:
            assert self.whole.history is not None
            largest = max(self.whole.history.best)
            return nothing_scored(largest, self.rule, self.measure.scoring), largest
        comparison = Comparison(folds, sizes)
        self._bar_missing(comparison)
        ahead = SIZES_AHEAD[self.problem.target.loss.classifies]
        found = choose(comparison.losses, comparison.sizes, self.rule, ahead=ahead)
        grid = self.grid_on_all_rows()
        shown = None if grid.single else grid
        looks_further = self._compares_pairs and swaps_suffice(self.whole)
        judged = found.promising if looks_further else found.leading
        return comparison.choice(found, self.rule, self.measure.scoring, shown), int(sizes[judged])

    def _bar_missing(self, comparison: Comparison) -> None:
        """Leave out what has no model on all rows: sizes that a search has not met, dependent columns at ridge 0."""
        for search, run in enumerate(self._runs[0]):
            known = {} if run.history is None else run.history.best
            for place, size in enumerate(comparison.sizes.tolist()):
                for position, ridge in enumerate(self.grid.fit):
                    if size not in known or (not ridge and self._has_dependent(search, run, known[size].support)):
                        comparison.bar((search, position, place))

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

            runs.run([search], n_folds=len(self.folds))
        run = self._runs[0][place]
        assert run.history is not None
        if ridge != search_ridge:
            problem, chosen = replace(self.problem, ridge=ridge), choice.among(run.history.best).chosen
            refitted = None
            with ended_early(self.note), limited_until(runs.deadline + GRACE):
                refitted = refitted_run(problem, run, self.weights)
            # Whatever the time: the answer has the ridge that was chosen for it.
            run = refitted or refitted_run(problem, run, self.weights, only=chosen)
        assert run.history is not None
        return run, choice.among(run.history.best), (ridge, search_ridge)


def compared_by(run: SearchRun, quick: Forward) -> SearchRun:
    """The run whose models are compared: by a quick search instead of exchange.

    Where features have prices, forward selection ranks by gain per price, so its models are others than those of
    exchange at the same size.
    """
    if not isinstance(run.method, Exchange):
        return run
    if not run.subset.closed_form and run.subset.limits.price is None:
        return SearchRun(quick, run.design, run.subset)
    if not swaps_suffice(run):
        return run
    return SearchRun(replace(SWAPS_ALONE, rule=run.method.rule), run.design, run.subset)


def swaps_suffice(run: SearchRun) -> bool:
    """Whether models of swaps alone, which are found quickly, predict as well as those of exchange.

    Where limits keep swaps from going far, and among more columns than rows, exchange needs its detours and starts: on
    sparse truths folds by swaps alone led to losses 1.18 times as high there (docs/choosing_k.md).
    """
    subset, design = run.subset, run.design
    return subset.closed_form and not subset.limits.can_be_relaxed and len(design.usable) <= design.n_rows


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
    share_products(fitted.subset, run.subset)
    supports = {size: snapshot.support for size, snapshot in run.history.best.items() if size}
    if only is not None:
        supports = {size: support for size, support in supports.items() if size == only}
    history: History = copy(run.history)
    history.best = refit_path(fitted.subset, supports)
    return SearchRun(run.method, run.design, fitted.subset, history)
