"""What the steps of a fit hand on to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from joblib import effective_n_jobs

from pauca.design import Design
from pauca.estimators.settings import SearchSettings
from pauca.model_selection.fold_losses import RowBlocks
from pauca.model_selection.folds import Fold
from pauca.model_selection.grids import RidgeGrid, SizeRange, size_range_for
from pauca.results.choice import Choice
from pauca.runs.parallel import ParallelRuns
from pauca.runs.problem import LinearProblem
from pauca.runs.run import SearchRun, Stop


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """What sizes and ridges are compared on."""

    y: np.ndarray
    folds: list[Fold]
    blocks: RowBlocks


@dataclass(frozen=True, eq=False)
class FitInputs:
    """Parameters and data of a fit, checked."""

    settings: SearchSettings
    problem: LinearProblem
    design: Design
    """All rows of the problem."""
    weights: np.ndarray
    grid: RidgeGrid
    held_out: HeldOutRows | None


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search has led to."""

    run: SearchRun
    """The path, fitted with ``ridge``."""
    answer: int
    choice: Choice | None
    ridge: float
    search_ridge: float
    searches: Mapping[float, SearchRun]
    """The searches on all rows, by their ridges; that of ``search_ridge`` has led to the path."""
    runs: Sequence[SearchRun]
    """All searches, also those of folds."""
    stop: Stop | None = None
    """What has ended some search early."""


def compared_sizes(inputs: FitInputs) -> tuple[SizeRange, ParallelRuns, Design]:
    """The sizes to compare, how runs share the cores, and the rows of the first one."""
    settings, design = inputs.settings, inputs.design
    sizes = (settings.sizes,) if isinstance(settings.sizes, int) else settings.sizes
    assert sizes is not None
    n_units = int(np.count_nonzero(inputs.problem.units.any(design.usable)))
    size_range = size_range_for(sizes, n_units, int(np.count_nonzero(inputs.weights)))
    return size_range, ParallelRuns(settings.run_budget, effective_n_jobs(settings.n_jobs)), design
