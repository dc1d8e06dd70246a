"""One fit of a sparse linear model: from checked data to the models of every size."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from pauca.clock import GRACE, deadline_after, limited_until
from pauca.constraints.parsing import Columns, ConstraintParser, check_independent
from pauca.design import ChunkedDesign, Design, make_design
from pauca.estimators.certify import MOST_BOUNDED, NARROW, certificate_of, follow_search, prove_fit
from pauca.estimators.fitted_base import check_finite_models
from pauca.estimators.identifiers import columns_like_identifiers
from pauca.estimators.input_checks import check_moments
from pauca.estimators.offset_and_dispersion import estimate_parameters
from pauca.estimators.raw_tables import FitTable
from pauca.estimators.settings import SearchSettings, largest_size
from pauca.losses.offset import parts_of
from pauca.methods import Backward
from pauca.methods.exact import Exact
from pauca.model import Model
from pauca.model_selection.chunked_selection import StreamedSelection, measure_by_moments
from pauca.model_selection.folds import Fold, FoldWeights, make_folds
from pauca.model_selection.grids import RidgeGrid, SizeRange, make_grid, size_range_for
from pauca.model_selection.held_out import HeldOutModel, Measure, RowBlocks
from pauca.model_selection.scoring import Scorer
from pauca.model_selection.size_and_ridge import SurfaceSelection, refitted_run
from pauca.model_selection.size_selection import Selection, by_criterion, choose_size, weigh_models
from pauca.results.choice import Choice
from pauca.results.fit_statistics import FitStatistics
from pauca.results.path import Path
from pauca.runs.chunked_search import Gathering
from pauca.runs.parallel import ParallelRuns
from pauca.runs.problem import LinearProblem, Target, design_for, has_closed_form
from pauca.runs.run import Budget, Goal, Move, SearchRun, Stop, ended_early
from pauca.statistics.criteria import has_moments, least_squares_loss


@dataclass(frozen=True, eq=False)
class CheckedData:
    """The data of a fit, checked."""

    X: Any
    y: np.ndarray
    """As users and scorers know it."""
    weights: np.ndarray
    target: Target
    """As the loss wants it."""
    names: np.ndarray | None
    row_groups: Any
    """Kept together by folds; None for none."""
    classes: np.ndarray | None
    """Whose shares folds keep; None for none."""
    table: FitTable | None = None
    """What X was made from, where that was a raw table."""


@dataclass(frozen=True, eq=False)
class ResumePoint:
    """Where a search to a given size ended, and of what problem it was."""

    key: tuple[Any, ...]
    tol: float
    moves: Sequence[Move]
    size: int

    def moves_to(self, goal: Goal, key: tuple[Any, ...]) -> Sequence[Move]:
        """The moves from which a search may go on: of the same data and method, and with no lesser goal."""
        if self.key != key:
            return ()
        # A growing run that is beyond the size now wanted has passed it; a shrinking one has not reached it yet.
        grew = any(move[0] == "add" for move in self.moves)
        went_too_far = goal.tol > self.tol or (grew and goal.reached(self.size - 1))
        return () if went_too_far else self.moves


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """What sizes and ridges are compared on."""

    y: np.ndarray
    folds: list[Fold]
    blocks: RowBlocks
    scorer: Scorer | None


@dataclass(frozen=True, eq=False)
class FitInputs:
    """All that the search of a fit depends on."""

    settings: SearchSettings
    problem: LinearProblem
    design: Design
    """All rows of the problem."""
    weights: np.ndarray
    grid: RidgeGrid
    held_out: HeldOutRows | None
    resume: ResumePoint | None
    deadline: float
    """When the time limit is over."""

    @property
    def seconds_left(self) -> float | None:
        """Seconds until then; None without a limit."""
        return None if self.deadline == np.inf else max(0.0, self.deadline - time.monotonic())

    @property
    def n_units(self) -> int:
        """Number of units that vary."""
        return int(np.count_nonzero(self.problem.units.any(self.design.usable)))


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What the search of a fit has led to."""

    run: SearchRun
    """The path, fitted with ``ridge``."""
    answer: int
    choice: Choice | None
    ridge: float
    search_ridge: float
    searches: Mapping[float, SearchRun]
    """The searches on all rows, by their ridges."""
    runs: Sequence[SearchRun]
    """All searches, also those of folds."""
    stop: Stop | None = None
    """What has ended some search early."""
    key: tuple[Any, ...] | None = None
    """A key that differs between different problems, where the search may be resumed."""
    held_out: Sequence[HeldOutModel] = ()
    """The chosen model as it was fitted for every fold."""


@dataclass(frozen=True, eq=False)
class FittedPath:
    """A path, and what it was made from."""

    path: Path
    found: SearchResult
    problem: LinearProblem
    """With the ridge of the path."""
    constraints: ConstraintParser
    usable: np.ndarray
    """Columns that vary."""
    resume: ResumePoint | None
    table: FitTable | None
    folds: list[Fold]
    """Those that size or ridge were chosen by."""


def fit_path(
    settings: SearchSettings,
    data: CheckedData,
    scorer: Scorer | None,
    resume: ResumePoint | None,
    output_labels: tuple[list[str] | None, list[str] | None],
) -> FittedPath:
    """Run the method on checked data: the models of every size, and which of them answers.

    ``output_labels`` are names of several outputs, or of the two classes of a single one. Without a ``scorer`` models
    are compared by their loss.
    """
    names = data.names
    columns = Columns(data.X.shape[1], names) if data.table is None else data.table.columns()
    constraints = ConstraintParser(columns, **settings.constraints)
    held_out = _hold_out(settings, data, scorer) if settings.uses_folds else None
    design = _make_design(settings, data, constraints, held_out)
    check_moments(settings.owner, design, data.X, names)
    inputs = _make_inputs(settings, data, constraints, design, held_out, resume)
    problem = inputs.problem
    if problem.limits.always and problem.units.single and 0.0 in inputs.grid.search:
        check_independent(design, np.array(problem.limits.always, dtype=np.intp), names)
    if isinstance(design, ChunkedDesign) and problem.closed_form and isinstance(problem.method, Backward):
        design.compute_all_products()
    if isinstance(design, ChunkedDesign) and not problem.closed_form:
        problem, found = _search_gathered(inputs, design)
    else:
        found = _search(inputs)
    search = found.searches[found.search_ridge]
    n_candidates = len(problem.limits.candidates(problem.units.any(design.usable)))
    proves = isinstance(settings.method, Exact) or n_candidates <= (NARROW if found.choice is None else MOST_BOUNDED)
    stops: list[Stop] = []
    # A fit that is cut short from here on keeps what it has.
    with ended_early(stops.append), limited_until(inputs.deadline + GRACE):
        if proves:
            left = inputs.seconds_left
            chosen = found.choice is not None
            prove_fit(settings.method, search, left, n_columns=n_candidates, size=found.answer, size_was_chosen=chosen)
            if found.run is not search:
                follow_search(found.run, search)
        if data.target.loss.has_estimated:
            problem, found = _estimate_loss(inputs, problem, found)
        choice = _with_fewer_units(inputs, problem, found)
        found = found if choice is found.choice else replace(found, choice=choice)
    with limited_until(inputs.deadline + GRACE):
        history, models = found.run.history, found.run.models(found.answer)
    check_finite_models(models)
    if stops and found.stop is None:
        found = replace(found, stop=stops[0])
    assert history is not None
    assert history.stop is not None
    used = sorted({int(column) for model in models.values() for column in model.support})
    path = Path(
        models,
        history.moves,
        found.stop or history.stop,
        found.run.design.n_features,
        names,
        problem.units.labels,
        None if problem.units.single else problem.units.owner,
        *output_labels,
        problem.limits.price,
        found.choice,
        noun=None if data.table is None else data.table.noun(constraints),
        certificate=certificate_of(search, models, names, (found.ridge, found.search_ridge)) if proves else None,
        statistics=path_statistics(models, problem, data.weights, found.run, found.ridge),
        encoding=None if data.table is None else data.table.encoding,
        forced=frozenset(problem.limits.always),
        identifiers=columns_like_identifiers(data.table or FitTable(data.X, names), used),
    )
    again = None if found.key is None else ResumePoint(found.key, settings.tol, path.moves, max(models))
    folds = [] if held_out is None else held_out.folds
    problem = problem.at_ridge(found.ridge)
    return FittedPath(path, found, problem, constraints, design.usable, again, data.table, folds)


# Rows times columns squared, up to which the fit of all columns, for Mallows' Cp, takes about a tenth of a second: it
# is made when a path is shown, saved or copied.
FULL_FIT_NUMBERS = 50_000_000


def path_statistics(
    models: Mapping[int, Model], problem: LinearProblem, weights: np.ndarray, run: SearchRun, ridge: float
) -> FitStatistics:
    """Figures of textbooks for the models of a path."""
    n_rows, n_columns = int(np.count_nonzero(weights)), int(np.count_nonzero(run.design.usable))
    design, n_outputs, center = run.design, problem.target.n_outputs, problem.center
    loss, target, offset = parts_of(problem.measure, problem.target.y)
    plain = loss.quadratic and n_outputs == 1 and problem.bounds is None and not np.any(offset)
    few = n_columns < n_rows and design.n_rows * n_columns**2 <= FULL_FIT_NUMBERS
    full = None
    if plain and few and not isinstance(design, ChunkedDesign):
        full = partial(_fit_of_all, design, np.ravel(target), weights, models[0].loss, center=center)
    return FitStatistics(models, problem.measure, ridge, n_rows, n_columns, n_outputs, center, full)


def _fit_of_all(
    design: Design, y: np.ndarray, weights: np.ndarray, null: float, *, center: bool
) -> tuple[float, int] | None:
    """Loss and rank of the least squares fit of all columns; None if X or y are no longer those of the fit.

    They are the user's own arrays. Columns are standardised by the moments of the fit, and ``null`` is the loss of the
    empty model: other values would have others.
    """
    y = y - y @ weights if center else y
    columns = design.columns(np.flatnonzero(design.usable))
    known = has_moments(columns, y, weights, null, center=center)
    return least_squares_loss(columns, y, weights) if known else None


def _hold_out(settings: SearchSettings, data: CheckedData, scorer: Scorer | None) -> HeldOutRows:
    row_groups = data.row_groups
    labels = data.y if data.classes is None else data.classes
    folds = make_folds(settings.cv, labels, row_groups, data.weights, classifies=data.classes is not None)
    folds = folds if data.table is None else data.table.folds(folds)
    return HeldOutRows(data.y, folds, RowBlocks.of(data.weights, row_groups, folds), scorer)


def _make_design(
    settings: SearchSettings, data: CheckedData, constraints: ConstraintParser, held_out: HeldOutRows | None
) -> Design:
    folds = () if held_out is None else FoldWeights(held_out.folds)
    closed_form = has_closed_form(data.target, constraints.units, constraints.bounds())
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named by check_moments
        return design_for(
            data.X, data.target, data.weights, center=settings.fit_intercept, closed_form=closed_form, folds=folds
        )


def _make_inputs(
    settings: SearchSettings,
    data: CheckedData,
    constraints: ConstraintParser,
    design: Design,
    held_out: HeldOutRows | None,
    resume: ResumePoint | None,
) -> FitInputs:
    target, weights = data.target, data.weights
    outputs = target.y if target.y.ndim == 2 else target.y[None]
    problem = LinearProblem(
        data.X,
        target,
        settings.method,
        constraints.units,
        constraints.limits(largest_size(settings.sizes), design.usable),
        constraints.bounds(),
        0.0,
        settings.fit_intercept,
        target.loss.tuned(outputs, weights),
        settings.standardize,
    )
    grid = settings.given_ridges if held_out is None else _compared_ridges(settings, problem, design, weights)
    by_unit = grid.search_in_units and bool(np.any(problem.units.relative_sizes() > 1))
    problem = replace(problem, searches_by_unit=by_unit)
    deadline = deadline_after(settings.run_budget.time_limit)
    return FitInputs(settings, problem, design, weights, grid, held_out, resume, deadline)


def _compared_ridges(
    settings: SearchSettings, problem: LinearProblem, design: Design, weights: np.ndarray
) -> RidgeGrid:
    return make_grid(
        settings.ridge,
        settings.search_ridge,
        chooses_size=settings.chooses_size,
        loss=problem.target.loss,
        n_rows=int(np.count_nonzero(weights)),
        n_units=int(np.count_nonzero(problem.units.any(design.usable))),
    )


def _search(inputs: FitInputs) -> SearchResult:
    """A path at the ridges that were given or chosen."""
    settings, problem, grid = inputs.settings, inputs.problem, inputs.grid
    compares = inputs.held_out is not None and (settings.chooses_size or not grid.single)
    if isinstance(problem.method, Exact) and (compares or settings.criterion):
        problem = replace(problem, method=problem.method.search)  # only the models on all rows are proved
    if compares:
        return _search_and_choose(inputs, problem)
    (search_ridge,), (ridge,), choice, key = grid.search, grid.fit, None, None
    searched = problem.at_ridge(search_ridge)
    if settings.criterion is None:
        run, answer, key = _search_to_size(inputs, searched)
    else:
        run, choice = _search_and_weigh(inputs, searched, settings.criterion)
        answer = choice.chosen
    fitted, stops = run, list[Stop]()
    if ridge != search_ridge:
        # What is cut short keeps the ridge of the search.
        with ended_early(stops.append), limited_until(inputs.deadline + GRACE):
            fitted = refitted_run(replace(problem, ridge=ridge), run, inputs.weights)
        ridge = search_ridge if fitted is run else ridge
    stop = next(iter(stops), None)
    return SearchResult(fitted, answer, choice, ridge, search_ridge, {search_ridge: run}, [run], stop, key)


def _search_gathered(inputs: FitInputs, design: ChunkedDesign) -> tuple[LinearProblem, SearchResult]:
    """A path on gathered columns of a table in chunks, and the problem on them: more until none is missing."""
    started, limit = time.monotonic(), inputs.settings.run_budget.time_limit
    gathering = Gathering(inputs.problem, inputs.weights, design, largest_size(inputs.settings.sizes))
    while True:
        problem = gathering.problem()
        on_all_rows = make_design(problem.X, inputs.weights, center=problem.center)
        found = _search(replace(inputs, problem=problem, design=on_all_rows))
        ended = any(run.stopped_early for run in found.runs)
        late = limit is not None and time.monotonic() - started >= limit
        if ended or late or not gathering.widened(found.runs):
            return problem, found


def _search_to_size(inputs: FitInputs, problem: LinearProblem) -> tuple[SearchRun, int, tuple[Any, ...]]:
    """Models up to a given size, which of them answers, and a key of the problem."""
    settings = inputs.settings
    assert not isinstance(settings.sizes, tuple | str)
    goal, run = settings.goal(settings.sizes), problem.begin(inputs.weights, inputs.design)
    key = (
        problem.method,
        problem.target.loss,
        problem.standardize,
        run.subset.data_key(),
        problem.units.key(),
        problem.limits.key(),
    )
    resume = () if inputs.resume is None else inputs.resume.moves_to(goal, key)
    history = run.advance(goal, settings.run_budget, resume)
    return run, problem.method.answer(history, goal), key


def _search_and_weigh(inputs: FitInputs, problem: LinearProblem, criterion: str) -> tuple[SearchRun, Choice]:
    """A path on all rows, and the size with the lowest information criterion."""
    selection = Selection(problem, inputs.weights, [], inputs.settings.tol)
    choice = choose_size(selection, *_compared_sizes(inputs), by_criterion(criterion))
    return selection.whole, choice


def _search_and_choose(inputs: FitInputs, problem: LinearProblem) -> SearchResult:
    """Paths on all rows and on those of every fold, and the size and ridges they lead to."""
    settings, held_out = inputs.settings, inputs.held_out
    assert held_out is not None
    if held_out.scorer is not None:
        held_out.scorer.check(problem.X, held_out.y, problem.target.n_outputs)
    folds, rule = held_out.folds, settings.selection_rule
    measure = Measure(problem, held_out.scorer, held_out.y, held_out.blocks)
    by_moments = measure_by_moments(inputs.design, problem, folds, measure)
    if by_moments is None:
        selection = SurfaceSelection(problem, inputs.weights, folds, settings.tol, inputs.grid, measure, rule)
    else:
        selection = StreamedSelection(problem, inputs.weights, folds, settings.tol, inputs.grid, by_moments, rule)
    size_range, runs, design = _compared_sizes(inputs)
    run, choice, ridges = selection.fitted(selection.choose(size_range, runs, design), runs)
    searches, stop = selection.searches(), selection.stopped_early
    choice = choice if held_out.scorer is None else replace(choice, scored_class=held_out.scorer.scored_class)
    held_out_models = selection.held_out_models(choice)
    runs_of_all = selection.all_runs()
    return SearchResult(run, choice.chosen, choice, *ridges, searches, runs_of_all, stop, held_out=held_out_models)


def _compared_sizes(inputs: FitInputs) -> tuple[SizeRange, ParallelRuns, Design]:
    """The sizes to compare, how runs share the cores, and the rows of the first one."""
    settings = inputs.settings
    sizes = (settings.sizes,) if isinstance(settings.sizes, int) else settings.sizes
    assert sizes is not None
    size_range = size_range_for(sizes, inputs.n_units, int(np.count_nonzero(inputs.weights)))
    return size_range, ParallelRuns(settings.run_budget, effective_n_jobs(settings.n_jobs)), inputs.design


def _with_fewer_units(inputs: FitInputs, problem: LinearProblem, found: SearchResult) -> Choice | None:
    """The choice with the features of the smaller model that it points to, where the path does not have it."""
    choice = found.choice
    if choice is None or choice.fewer_size is None or choice.fewer_is_on_path or choice.surface is None:
        return choice
    size, run = choice.fewer_size, found.searches[choice.surface.best_of(choice.fewer_size)[0]]
    method = problem.method.search if isinstance(problem.method, Exact) else problem.method
    history = run.history
    if run.method != method:  # the folds had a quicker one
        run = SearchRun(method, run.design, run.subset.restarted())
        history = run.advance(inputs.settings.goal(size), Budget(time_limit=inputs.seconds_left))
    assert history is not None
    units = history.best[size].support if size in history.best else ()
    return replace(choice, fewer_units=tuple(sorted(int(unit) for unit in units)))


def _estimate_loss(
    inputs: FitInputs, problem: LinearProblem, found: SearchResult
) -> tuple[LinearProblem, SearchResult]:
    """The problem and its path with the parameters of the loss that are estimated together with the model.

    An information criterion compares all sizes at these parameters too. Where another size is better then, they are
    estimated with that one; where sizes are better at each other's parameters, each is judged at its own.
    """
    assert found.run.history is not None
    begun, tried = problem, dict[int, tuple[LinearProblem, SearchResult]]()
    while found.answer not in tried:
        problem, run = estimate_parameters(
            begun,
            found.run,
            found.answer,
            ridge=found.ridge,
            search_ridge=found.search_ridge,
            weights=inputs.weights,
            goal=inputs.settings.goal(max(found.run.history.best)),
            budget=replace(inputs.settings.run_budget, time_limit=inputs.seconds_left),
        )
        found, choice = replace(found, run=run), found.choice
        if inputs.settings.criterion is None or choice is None:
            return problem, found
        models = run.models(found.answer)
        sizes = [size for size in choice.sizes.tolist() if size in models]
        again = weigh_models(problem, models, sizes, inputs.weights, inputs.settings.criterion)
        found = replace(found, choice=replace(again, ended=choice.ended, n_folds=choice.n_folds))
        tried[found.answer] = problem, found
        if again.chosen == found.answer:
            return problem, found
        found = replace(found, answer=again.chosen)
    return _best_at_own_parameters(tried)


def _best_at_own_parameters(
    tried: Mapping[int, tuple[LinearProblem, SearchResult]],
) -> tuple[LinearProblem, SearchResult]:
    """The best of several sizes, each with the parameters that are estimated with its own model."""
    own = {}
    for size, (_, found) in tried.items():
        assert found.choice is not None
        own[size] = float(found.choice.mean[found.choice.sizes == size][0])
    best = min(own, key=lambda size: (own[size], size))
    problem, found = tried[best]
    assert found.choice is not None
    mean = found.choice.mean.copy()
    for size, value in own.items():
        mean[found.choice.sizes == size] = value
    return problem, replace(found, choice=replace(found.choice, mean=mean, chosen=best))
