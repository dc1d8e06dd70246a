"""What a path looks like over its sizes: numbers for pictures and reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pauca.results.choice import Choice
    from pauca.results.path import Path


@dataclass(frozen=True, eq=False)
class CoefficientCurves:
    """Coefficients over the sizes, each feature's divided by the largest it ever has.

    Attributes
    ----------
    sizes : list of int
        The sizes above 0.
    columns : list of int
        The features that are in any model, the most important first.
    relative : ndarray of shape (len(columns), len(sizes))
        NaN where the feature is not in the model. With several outputs, the norm over the outputs, which has no sign.
    signed : bool
        Whether there is a single output, so that signs mean something.
    """

    sizes: list[int]
    columns: list[int]
    relative: np.ndarray
    signed: bool


def coefficient_curves(path: Path, chosen: int | None = None) -> CoefficientCurves:
    """The coefficients of all features over all sizes; ordered by importance in the chosen model."""
    sizes = [size for size in path.sizes if size]
    columns = by_importance(path, reference_size(path) if chosen is None else chosen)
    place = {column: row for row, column in enumerate(columns)}
    values = np.full((len(columns), len(sizes)), np.nan)
    signed = path.output_names is None or len(path.output_names) == 1
    for position, size in enumerate(sizes):
        model = path[size]
        coef = np.atleast_2d(model.coef)
        rows = [place[column] for column in model.support.tolist()]
        values[rows, position] = coef[0] if signed else np.linalg.norm(coef, axis=0)
    largest = np.nanmax(np.abs(values), axis=1, keepdims=True) if values.size else np.ones((len(columns), 1))
    return CoefficientCurves(sizes, columns, values / np.where(largest > 0, largest, 1.0), signed)


def by_importance(path: Path, size: int) -> list[int]:
    """All columns that are in any model: those of the model of one size first, each part in the order of importance.

    Other columns are ordered by their largest importance in any model. Columns of a group share its importance.
    """
    most: dict[int, float] = {}
    for model in path:
        for column, importance in _importances(path, model.size):
            most[column] = max(most.get(column, importance), importance)
    here = dict(_importances(path, size))
    return sorted(most, key=lambda column: (column not in here, -here.get(column, most[column]), column))


def reference_size(path: Path) -> int:
    """The size that was chosen, or the largest."""
    return path.sizes[-1] if path.choice is None else path.choice.chosen


def score_range(choice: Choice) -> tuple[float, float]:
    """The heights between which the scores are worth looking at: a fall far beyond the best size may leave the picture.

    A model with far too many features can be so wrong on rows held out that everything else would be flat beside it.
    """
    error = np.zeros(len(choice.mean)) if choice.standard_error is None else choice.standard_error
    low, high = choice.mean - error, choice.mean + error
    upto = choice.sizes <= max(choice.best, choice.chosen)
    if choice.by_folds:
        bottom, top = low[upto].min(), high[upto].max()
        bottom = max(low.min(), bottom - 0.3 * (top - bottom))
    else:
        bottom, top = low.min(), high[upto].max()
        top = min(high.max(), top + 0.3 * (top - bottom))
    margin = 0.06 * (top - bottom) or 0.5
    return float(bottom - margin), float(top + margin)


def _importances(path: Path, size: int) -> list[tuple[int, float]]:
    model = path[size]
    importance = dict(zip(model.units.tolist(), np.nan_to_num(model.importance).tolist(), strict=True))
    units = model.support if path.owner is None else path.owner[model.support]
    return [(column, importance[unit]) for column, unit in zip(model.support.tolist(), units.tolist(), strict=True)]
