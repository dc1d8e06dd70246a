"""What a loss knows of the rows: known parts of scores, and parameters that are estimated with the model."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from pauca.losses.offset import with_offset
from pauca.model_selection.scoring import read_columns
from pauca.model_selection.size_and_ridge import refitted_run
from pauca.runs.problem import LinearProblem, Target
from pauca.runs.run import Budget, Goal, SearchRun
from pauca.warnings import PaucaWarning

# Parameters and coefficients are estimated in turn. They hardly depend on each other, and agree to ten digits after
# three or four turns.
MOST_ALTERNATIONS = 12


def estimate_parameters(
    problem: LinearProblem,
    run: SearchRun,
    size: int,
    *,
    ridge: float,
    search_ridge: float,
    weights: np.ndarray,
    goal: Goal,
    budget: Budget,
) -> tuple[LinearProblem, SearchRun]:
    """The problem with the parameters of its loss set by the model of ``size``, and the path of that problem.

    The parameters of the search before were those of a constant, so features are searched once more.
    """
    estimated = _with_parameters_at(problem, run, size, weights)
    found = estimated.searched_at(search_ridge).begin(weights, run.design)
    found.advance(goal, budget)
    assert found.history is not None
    if found.stopped_early or size not in found.history.best:
        found = run
    for _ in range(MOST_ALTERNATIONS):
        found = refitted_run(replace(estimated, ridge=ridge), found, weights)
        latest = _with_parameters_at(problem, found, size, weights)
        if latest.target.loss == estimated.target.loss:
            break
        estimated = latest
    return estimated, found


def _with_parameters_at(problem: LinearProblem, run: SearchRun, size: int, weights: np.ndarray) -> LinearProblem:
    model, target = run.models(size)[size], problem.target
    block = read_columns(problem.X, model.support, np.arange(len(weights)))
    scores = np.atleast_1d(model.intercept)[:, None] + np.atleast_2d(model.coef) @ block.T
    loss = target.loss.tuned_at(target.y, scores, weights)
    return replace(problem, target=replace(target, loss=loss), measure=loss)


def offset_target(target: Target, known: np.ndarray, scoring: Any) -> Target:
    """The target of scores that have a known part, shape (n,)."""
    if scoring is not None:
        raise ValueError(
            "'scoring' cannot be combined with offset or exposure: scorers of scikit-learn do not know them. Leave it "
            "out to compare models by their loss."
        )
    loss, pairs = with_offset(target.loss, target.y, known)
    return Target(pairs, loss, target.n_outputs)


def needs_known_part(kind: str) -> str:
    """What to pass where rows are compared with their predictions, and the fit had an offset or an exposure."""
    if kind == "exposure":
        return (
            "This model was fitted with an exposure and predicts rates per unit of it, which cannot be compared with "
            "the counts or amounts of rows whose exposure is not known: pass exposure=, one number for every row, as "
            "to predict()."
        )
    return (
        "This model was fitted with an offset, a known part of the score of every row: pass offset=, one number for "
        "every row, as to predict()."
    )


def warn_of_known_part(kind: str | None, offset: Any, exposure: Any = None) -> None:
    """Warn where predictions are scored without what the fit had of the rows: y may be rates, so it is no error."""
    if kind is not None and offset is None and exposure is None:
        warnings.warn(needs_known_part(kind), PaucaWarning, stacklevel=3)
