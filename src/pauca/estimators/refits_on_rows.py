"""The chosen features fitted again to the data of a fit: on other rows, on resampled rows; their standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pauca.constraints.limits import Limits
from pauca.constraints.units import Units
from pauca.design import make_design
from pauca.estimators.training_data import TrainingData
from pauca.losses.offset import parts_of
from pauca.model import Model
from pauca.model_selection.folds import Fold
from pauca.model_selection.held_out import HeldOutModel, Measure, RowBlocks, at_most
from pauca.model_selection.ridge_fits import RidgeFits, refitter
from pauca.model_selection.scoring import Scorer, read_columns
from pauca.objectives.least_squares import ridge_penalty
from pauca.results.data_summary import ColumnValues, DataSummary
from pauca.results.inference import FEWEST_ROWS
from pauca.results.path import Path
from pauca.runs.progress import phase
from pauca.runs.run import Budget, Goal
from pauca.statistics.round_steps import round_step
from pauca.statistics.standard_errors import coefficient_covariance, pearson_dispersion

# Columns are read so many at a time: a path may use many, of many rows.
COLUMNS_AT_ONCE = 16


def fold_models(data: TrainingData, size: int, folds: Sequence[Fold]) -> list[HeldOutModel]:
    """Models of ``size`` features that are searched again on the rows of every fold, at the ridges of the fit."""
    searched = data.problem.searched_at(data.search_ridge)
    found, step = [], phase("fitting without each fold", len(folds))
    for fold in folds:
        run = fold.problem(searched).begin(fold.weights)
        history = run.advance(Goal(max(1, size)), Budget(whole=True))
        support = at_most(history.best, size).support
        fits = refitter(run.subset, [data.problem.ridge], standardize=data.problem.standardize)(support)
        found.append(HeldOutModel(fold.test, support, fits.columns, fits.coef[0], fits.intercept[0], fold.X))
        step()
    return found


def held_out_score(
    data: TrainingData, folds: Sequence[Fold], models: Sequence[HeldOutModel], scorer: Scorer | None
) -> float:
    """The score of models on the rows that they have not seen, as sizes are compared by it.

    The share of the loss of each fold's own constant that is explained, or the mean score of a scorer.
    """
    measure = Measure(data.problem, scorer, data.y, RowBlocks.of(data.weights, data.row_groups, folds))
    sums = []
    for number, (fold, model) in enumerate(zip(folds, models, strict=True)):
        of_fold = measure.of_fold(fold if model.X is None else replace(fold, X=model.X), number)
        fits = [RidgeFits(model.columns, model.coef[None], model.intercept[None])]
        if scorer is None:
            fits.append(refitter(data.problem.begin(fold.weights).subset, [0.0], standardize=True)([]))
        seen = of_fold.weight > 0  # what is added for wrong labels is not among the rows
        sums.append([float(part[:, seen].sum()) for part in of_fold.sums(fits)])
    if scorer is not None:
        return float(-np.mean(sums))
    lost, null = np.sum(sums, axis=0)
    return float(1.0 - lost / null) if null > 0 else 0.0


def bootstrap_coefficients(
    data: TrainingData, support: np.ndarray, n_resamples: int, random_state: int | None
) -> np.ndarray:
    """Coefficients of the columns ``support`` and the intercept on resampled rows, shape (n_resamples, outputs, q).

    Columns that do not vary in a resample have no coefficient there: NaN.
    """
    rng, problem, weights = np.random.default_rng(random_state), data.problem, data.weights
    n_rows, every = len(weights), np.arange(len(weights))
    bounds = problem.bounds
    narrow = replace(
        problem,
        X=read_columns(problem.X, support, every),
        units=Units.columns(len(support)),
        limits=Limits(),
        bounds=None if bounds is None else (bounds[0][support], bounds[1][support]),
    )
    draws = np.full((n_resamples, problem.target.n_outputs, len(support) + int(data.has_intercept)), np.nan)
    weighted, step = np.flatnonzero(weights), phase("fitting resampled rows", n_resamples)
    for draw in draws:
        counts = np.bincount(rng.choice(weighted, size=len(weighted)), minlength=n_rows)
        sample = weights * counts / (weights @ counts)
        run = narrow.begin(sample)
        usable = np.flatnonzero(run.design.usable)
        fits = refitter(run.subset, [problem.ridge], standardize=problem.standardize)(usable.tolist())
        draw[:, fits.columns] = fits.coef[0]
        if data.has_intercept:
            draw[:, -1] = fits.intercept[0]
        step()
    return draws


def spread_of_draws(draws: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standard errors and ends of the intervals of coefficients, from draws of shape (n_resamples, q).

    A coefficient that fewer than two resamples have has none of them: NaN.
    """
    found = np.full((3, draws.shape[1]), np.nan)
    often = np.count_nonzero(~np.isnan(draws), axis=0) >= 2
    known = draws[:, often]
    found[0, often] = np.nanstd(known, axis=0, ddof=1)
    found[1:, often] = np.nanquantile(known, [0.5 - confidence / 2, 0.5 + confidence / 2], axis=0)
    return found[0], found[1], found[2]


def rare_columns(data: TrainingData, support: np.ndarray, outcomes: Sequence[np.ndarray]) -> list[int]:
    """Places in ``support`` of columns of zeros and ones with few rows, of any outcome, on their rarer side."""
    rows = np.flatnonzero(data.weights)
    columns = read_columns(data.problem.X, support, rows)
    found = []
    for place, column in enumerate(columns.T):
        if not np.all((column == 0.0) | (column == 1.0)):
            continue
        ones = column == 1.0
        side = ones if 2 * np.count_nonzero(ones) <= len(rows) else ~ones
        if min(int(np.count_nonzero(side & outcome[rows])) for outcome in outcomes) < FEWEST_ROWS:
            found.append(place)
    return found


def likelihood_errors(data: TrainingData, model: Model) -> np.ndarray:
    """Standard errors of the coefficients and the intercept from the curvature of the likelihood, shape (q,).

    Coefficients at a bound have none, NaN: the likelihood is not at its maximum along them. They are held there for
    the errors of the others.
    """
    problem = data.problem
    loss, target, offset = parts_of(problem.measure, problem.target.y)
    if loss.free_dispersion is None and not loss.coupled:
        raise ValueError(
            f"There are no standard errors in closed form for {loss!r}, whose likelihood is not that of an exponential "
            'family: use inference("bootstrap").'
        )
    n_rows = len(data.weights)
    columns, scores = _fitted_scores(data, model, offset)
    penalty = np.zeros(len(model.support))
    if problem.ridge and len(penalty):
        design = make_design(columns, data.weights, center=problem.center)
        # The penalty in standardised coordinates, back in the user's units.
        penalty = ridge_penalty(design, problem.ridge, standardize=problem.standardize) * design.spread**2
    if loss.coupled:
        loss, columns = loss.tuned(target, data.weights), columns - data.weights @ columns
    if data.has_intercept:
        columns, penalty = np.column_stack([columns, np.ones(n_rows)]), np.append(penalty, 0.0)
    free = ~np.append(model.held, np.zeros(columns.shape[1] - len(model.support), dtype=bool))
    covariance = coefficient_covariance(loss, target[0], scores, data.weights, columns[:, free], penalty[free])
    errors = np.full(columns.shape[1], np.nan)
    errors[free] = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    return errors


def overdispersion(data: TrainingData, model: Model) -> float | None:
    """How many times as large as by its likelihood the variance of counts is; None for losses that know no variance.

    Of classes the variance follows from the mean.
    """
    loss, target, offset = parts_of(data.problem.measure, data.problem.target.y)
    if loss.free_dispersion is not False or loss.classifies or loss.coupled:
        return None
    scores = _fitted_scores(data, model, offset)[1]
    n_coefficients = len(model.support) + int(data.has_intercept)
    return pearson_dispersion(loss, target[0], scores, data.weights, n_coefficients)


def _fitted_scores(data: TrainingData, model: Model, offset: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """The columns of the model in the rows of the fit, and their scores."""
    n_rows = len(data.weights)
    columns = read_columns(data.problem.X, model.support, np.arange(n_rows))
    return columns, columns @ np.asarray(model.coef) + model.intercept + np.broadcast_to(np.ravel(offset), n_rows)


def within_bounds(
    data: TrainingData, model: Model, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of the coefficients and the intercept, cut off at the bounds of the coefficients."""
    if data.problem.bounds is None:
        return lower, upper
    n_free = len(lower) - len(model.support)
    low, high = (bound[model.support] for bound in data.problem.bounds)
    low, high = np.append(low, [-np.inf] * n_free), np.append(high, [np.inf] * n_free)
    return np.clip(lower, low, high), np.clip(upper, low, high)


def summary_of_data(data: TrainingData, path: Path, classes: np.ndarray | None) -> DataSummary:
    """Facts about the data of a fit for reports and files; ``classes`` are all there are, in the order of the model."""
    rows = np.flatnonzero(data.weights > 0)
    counts = None
    if classes is not None:
        found = dict(zip(*(part.tolist() for part in np.unique(data.y[rows], return_counts=True)), strict=True))
        counts = [found.get(label, 0) for label in classes.tolist()]
    values = {}
    if data.in_memory:
        values = _column_values(data.problem.X, np.unique(np.concatenate([model.support for model in path])), rows)
    return DataSummary(len(rows), counts, missing_values(data), values)


def missing_values(data: TrainingData) -> dict[str, int]:
    """In how many rows of the fit a column of the raw table is missing, for columns where there are such rows."""
    if data.table is None or data.table.raw is None or data.table.encoding is None:
        return {}
    rows = np.flatnonzero(data.weights > 0)
    columns = zip(data.table.encoding.raw_names, data.table.raw.columns, strict=True)
    counts = {name: int(np.count_nonzero(column.missing[rows])) for name, column in columns}
    return {name: many for name, many in counts.items() if many}


def _column_values(X: Any, columns: np.ndarray, rows: np.ndarray) -> dict[int, ColumnValues]:
    found = {}
    for first in range(0, len(columns), COLUMNS_AT_ONCE):
        some = columns[first : first + COLUMNS_AT_ONCE].astype(np.intp)
        for column, values in zip(some.tolist(), read_columns(X, some, rows).T, strict=True):
            found[column] = ColumnValues(
                round_step(values), float(np.median(values)), float(values.min()), float(values.max())
            )
    return found
