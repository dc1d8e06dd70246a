"""The table of a model: a row for each feature, the most important first, and one for the intercept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pauca.report.formatting import number, percent, short_number
from pauca.results.path import Path

MOST_OUTPUTS = 6


@dataclass(frozen=True)
class Layout:
    """The column heads of the tables, and how many columns at the left hold names."""

    heads: list[str]
    n_names: int


def layout(path: Path) -> Layout:
    """The columns, which are the same for every size of a path."""
    grouped = path.group_labels is not None
    outputs = ["Coefficient"] if path.output_names is None else path.output_names[:MOST_OUTPUTS]
    cost = [] if path.prices is None else ["Cost"]
    heads = [*(["Group"] if grouped else []), "Feature", *outputs, "Importance", *cost]
    return Layout(heads, 2 if grouped else 1)


def rows(path: Path, size: int, most: int | None = None) -> list[list[str]]:
    """The cells of at most so many features; the first row of a group holds its importance and cost."""
    model = path[size]
    null = path[0].objective
    coef = np.atleast_2d(model.coef)[:MOST_OUTPUTS]
    intercept = np.atleast_1d(model.intercept)[:MOST_OUTPUTS]
    names = dict(zip(model.support.tolist(), path.names(size), strict=True))
    positions = {column: position for position, column in enumerate(model.support.tolist())}
    labels = path.group_labels
    cells = []
    for index in np.argsort(-model.importance, kind="stable"):
        unit = int(model.units[index])
        importance = percent(float(model.importance[index]) / null, 2) if null > 0 else percent(0.0)
        cost = [] if path.prices is None else [short_number(float(path.prices[unit]))]
        label = [] if labels is None else [str(labels[unit])]
        for column in path.columns_of(size, unit):
            numbers = [number(value) for value in coef[:, positions[column]].tolist()]
            cells.append([*label, names[column], *numbers, importance, *cost])
            importance, cost = "", [""] * len(cost)
    blank = [""] * (0 if path.prices is None else 1)
    last = ["(intercept)", *(number(value) for value in intercept.tolist()), "", *blank]
    return [*cells[:most], [*([] if labels is None else [""]), *last]]
