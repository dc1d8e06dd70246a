"""The data of a fit, and what is computed from them after it: replacements of features, other samples of rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from joblib import effective_n_jobs

from pauca.design import Chunks, GatheredColumns
from pauca.estimators.raw_tables import FitTable
from pauca.model_selection.folds import Fold
from pauca.model_selection.grids import SIZE_GROWTH
from pauca.model_selection.held_out import HeldOutModel
from pauca.results.alternatives import Alternatives
from pauca.results.path import Path
from pauca.results.stability import Stability, count_choices, halves
from pauca.runs.parallel import ParallelRuns
from pauca.runs.problem import LinearProblem
from pauca.runs.progress import phase
from pauca.runs.run import Budget, Goal, History, SearchRun, Stop, ended_early
from pauca.warnings import PaucaWarning


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What a fit was made from: references to the user's own arrays, never copies, and never in a file."""

    problem: LinearProblem
    """With the ridge of the fitted model."""
    weights: np.ndarray
    y: np.ndarray
    searches: Mapping[float, SearchRun]
    """The searches on all rows, by their ridges."""
    search_ridge: float
    folds: list[Fold] = field(default_factory=list)
    """The folds that size or ridge were chosen by."""
    row_groups: np.ndarray | None = None
    held_out: Sequence[HeldOutModel] = ()
    """The chosen model as it was fitted for every fold."""
    table: FitTable | None = None
    """What X was made from, where that was a raw table or one with names for display."""

    @property
    def has_intercept(self) -> bool:
        """Whether the models have an intercept."""
        return self.problem.center and not self.problem.target.loss.shift_invariant

    @property
    def in_memory(self) -> bool:
        """Whether rows can be read as often as one likes."""
        return not isinstance(self.problem.X, Chunks | GatheredColumns)


def find_alternatives(data: TrainingData, path: Path, size: int, count: int) -> Alternatives:
    """For each feature of the model of ``size`` the best ``count`` others in its place, refitted.

    They are compared at the ridge of the model, as importances are: at a strong ridge of the search all losses would
    look small.
    """
    phase("looking for replacements")
    model, null = path[size], path[0].objective - (path.floor or 0.0)
    subset = data.problem.begin(data.weights).subset
    for unit in model.units.tolist():
        if unit not in subset.support:
            subset.add(unit)
    found = subset.replacements(count) if subset.support else {}
    order = model.units[np.argsort(-model.importance, kind="stable")]
    records = [
        {
            "feature": path.unit_name(int(unit)),
            "replacement": path.unit_name(swap.into),
            "objective": float(subset.value - swap.decrease),
            "explained_lost": float(-swap.decrease / null) if null > 0 else 0.0,
        }
        for unit in order
        for swap in found.get(int(unit), [])
    ]
    return Alternatives(records, path.counted, data.problem.ridge, data.search_ridge, shrunken=model.shrinkage > 0)


def measure_stability(
    data: TrainingData,
    path: Path,
    size: int,
    n_resamples: int,
    random_state: int | None,
    n_jobs: int | None,
    *,
    classes: np.ndarray | None,
) -> Stability:
    """How often each feature is chosen when ``size`` of them are chosen on random halves of the rows.

    The halves keep the shares of the ``classes``.
    """
    strata = np.zeros(len(data.weights)) if classes is None else classes
    resamples = halves(n_resamples, data.weights, strata, random_state)
    supports: list[list[str]] = []
    stops: list[Stop] = []
    searched = data.problem.searched_at(data.search_ridge)
    step = phase("searching on halves of the rows", len(resamples))

    def job(number: int) -> Callable[[Budget], None]:
        def work(budget: Budget) -> None:
            if stops or runs.ended:
                return
            with ended_early(stops.append):
                run = searched.begin(resamples[number])
                history = search_one_size(run, max(1, size), replace(budget, whole=True))
                if history.stop is Stop.CALLBACK:  # an interrupt, where another thread has met it
                    stops.append(history.stop)
                    return
                best = history.best[max(known for known in history.best if known <= size)]
                supports.append([path.unit_name(unit) for unit in best.support])
                step()

        return work

    runs = ParallelRuns(Budget(), effective_n_jobs(n_jobs))
    runs.run({number: job(number) for number in range(len(resamples))}, len(resamples) - 1)
    if len(supports) < len(resamples):
        if len(supports) < 2:
            raise KeyboardInterrupt
        warnings.warn(
            f"stability() was interrupted: frequencies are those of {len(supports)} of {len(resamples)} random halves "
            "of the rows.",
            PaucaWarning,
            stacklevel=4,
        )
    chosen = [path.unit_name(int(unit)) for unit in path[size].units]
    forced = [path.unit_name(unit) for unit in sorted(path.forced)]
    return count_choices(supports, chosen, size, path.counted, forced)


def search_one_size(run: SearchRun, size: int, budget: Budget) -> History:
    """The search of a run to the model of one size, which need not have those of the sizes below it."""
    for method in run.method.for_one_size(run, SIZE_GROWTH):
        history = SearchRun(method, run.design, run.subset).advance(Goal(size), budget)
    return history
