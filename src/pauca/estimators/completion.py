"""From a search to what a fit keeps: proofs, and the parameters of the loss, as far as time and Ctrl-C allow."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pauca.estimators.certify import follow_search, prove_fit
from pauca.estimators.loss_parameters import estimate_parameters
from pauca.estimators.settings import SearchSettings
from pauca.results.choice import Choice
from pauca.runs.problem import LinearProblem
from pauca.runs.run import SearchRun, Stop, ended_early


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
    """The searches on all rows, by their ridges."""
    runs: Sequence[SearchRun]
    """All searches, also those of folds."""
    stop: Stop | None = None
    """What has ended some search early."""

    @property
    def search(self) -> SearchRun:
        """The search that has led to the path."""
        return self.searches[self.search_ridge]


def completed(
    problem: LinearProblem, found: SearchResult, settings: SearchSettings, weights: np.ndarray, deadline: float
) -> tuple[LinearProblem, SearchResult]:
    """The result of a search with proofs and with the parameters of its loss, and the problem with these."""
    stops: list[Stop] = []
    left = None if deadline == math.inf else max(0.0, deadline - time.monotonic())
    with ended_early(stops.append):
        prove_fit(settings.method, found.search, left, size_was_chosen=found.choice is not None)
        if found.run is not found.search:
            follow_search(found.run, found.search)
        if problem.target.loss.has_estimated:
            assert found.run.history is not None
            problem, run = estimate_parameters(
                problem,
                found.run,
                found.answer,
                ridge=found.ridge,
                search_ridge=found.search_ridge,
                weights=weights,
                goal=settings.goal(max(found.run.history.best)),
                budget=replace(settings.run_budget, time_limit=left),
            )
            found = replace(found, run=run)
    return problem, replace(found, stop=found.stop or next(iter(stops), None))
