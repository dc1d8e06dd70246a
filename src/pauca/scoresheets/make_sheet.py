"""From a table of the chosen features to a sheet: rows, points, and what cutting and rounding cost on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pauca.scoresheets.point_search import FittedPoints, PointSearch, real_model
from pauca.scoresheets.rows import SheetRow, cuts_of
from pauca.scoresheets.sheet import ScoreSheet, sheet_totals
from pauca.statistics.round_steps import round_step

# Sheets of the pool lose no more than this share of what the best explains, and are at most so many.
POOL_WITHIN = 0.02
MOST_IN_POOL = 10

LEAST_PROBABILITY = 1e-3


def check_cuts(cuts: Any, names: Sequence[str]) -> None:
    """Raise an error for cuts that are neither None, "auto" nor thresholds of features of the model."""
    if cuts is None or (isinstance(cuts, str) and cuts == "auto"):
        return
    if not isinstance(cuts, Mapping):
        raise ValueError(f"cuts must be None, 'auto' or a dict of thresholds by feature; got {cuts!r}.")
    for name, thresholds in cuts.items():
        if name not in names:
            raise ValueError(
                f"cuts names {name!r}, which is not a feature of the model: {', '.join(map(repr, names))}."
            )
        try:
            numbers = np.asarray([] if isinstance(thresholds, bool) else thresholds, dtype=np.float64)
        except (TypeError, ValueError):
            numbers = np.zeros(0)
        if not numbers.size or numbers.ndim > 1 or not np.all(np.isfinite(numbers)):
            raise ValueError(f"The cuts of {name!r} must be finite numbers, such as [50, 65]; got {thresholds!r}.")


def make_sheet(
    table: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    features: Sequence[tuple[str, int]],
    signs: np.ndarray,
    *,
    max_points: int,
    cuts: Any,
    outcome: str,
    folds: Sequence[tuple[np.ndarray, np.ndarray]],
    ridge: float = 0.0,
) -> ScoreSheet:
    """A sheet for columns of ``table``, of shape (n, k), with classes -1 and 1.

    ``features`` are names and indices, and ``signs`` those of their coefficients, which points have too; ``cuts`` is
    None, "auto", or thresholds by name; ``folds`` are pairs of rows to fit and rows to score; ``ridge`` is that of the
    model.
    """
    rows = _sheet_rows(table, features, cuts)
    columns = np.column_stack([row.values(table[:, place]) for place, row in rows])
    places = [place for place, _ in rows]

    def search_points(weights: np.ndarray) -> PointSearch:
        return PointSearch(columns, y, weights, max_points, ridge, owners=places, signs=signs[places].tolist())

    search = search_points(weights)
    best = search.run()
    lines = [row for _, row in rows]
    counted = weights > 0
    n_rows = (int(np.count_nonzero(counted)), int(np.count_nonzero(counted & (y > 0))))
    sheets = [replace(_sheet(lines, one, columns, outcome), n_rows=n_rows) for one in _near(search, best, y, weights)]
    models = {"model": table}
    if any(row.threshold is not None for row in lines):
        models["cut"] = columns
    held_out = _held_out(columns, y, weights, ridge, search_points, folds, models) if folds else {}
    return replace(sheets[0], held_out=held_out, pool=tuple(sheets[1:]))


def _sheet_rows(table: np.ndarray, features: Sequence[tuple[str, int]], cuts: Any) -> list[tuple[int, SheetRow]]:
    """Rows with the place of their feature in the table."""
    found = []
    for place, (name, column) in enumerate(features):
        values = table[:, place]
        if cuts is None:
            thresholds = None
        elif isinstance(cuts, Mapping):
            thresholds = np.atleast_1d(cuts[name]).astype(float).tolist() if name in cuts else None
        else:
            thresholds = None if _is_binary(values) else cuts_of(values)
        if thresholds is None:
            unit = None if _is_binary(values) else round_step(values)
            found.append((place, SheetRow(name, column, unit, None)))
        else:
            found += [(place, SheetRow(name, column, None, cut)) for cut in sorted(thresholds)]
    return found


def _is_binary(values: np.ndarray) -> bool:
    return bool(np.all((values == 0.0) | (values == 1.0)))


def _near(search: PointSearch, best: FittedPoints, y: np.ndarray, weights: np.ndarray) -> list[FittedPoints]:
    share = float(weights @ (y > 0))
    null = -share * np.log(share) - (1 - share) * np.log1p(-share)
    limit = best.objective + POOL_WITHIN * max(null - best.objective, 0.0)
    near = [one for one in search.fitted.values() if one.objective <= limit and one is not best and one.scale > 0]
    others = [one for one in near if search.allows(one.points)]
    return [best, *sorted(others, key=lambda one: one.objective)[:MOST_IN_POOL]]


def _sheet(rows: Sequence[SheetRow], found: FittedPoints, columns: np.ndarray, outcome: str) -> ScoreSheet:
    lines = tuple(replace(row, points=point) for row, point in zip(rows, found.points, strict=True))
    used = tuple(line for line in lines if line.points) or lines
    columns_used = {line.column for line in used}
    without = {line.column: line for line in lines if line.column not in columns_used}
    totals = sheet_totals(columns @ np.array(found.points, dtype=np.float64), found.scale, found.constant)
    return ScoreSheet(used, found.scale, found.constant, outcome, totals, 2.0 * found.loss, tuple(without.values()))


def _held_out(
    columns: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    ridge: float,
    search_points: Callable[[np.ndarray], PointSearch],
    folds: Sequence[tuple[Any, Any]],
    models: Mapping[str, np.ndarray],
) -> dict[str, dict[str, float]]:
    """Mean deviance and AUC over folds, of sheets ("points") and of models without rounding, by their columns."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ("points", *models)}
    for number, (train, test) in enumerate(folds, 1):
        v = np.zeros(len(y))
        v[train] = weights[train]
        if len(np.unique(y[v > 0])) < 2:
            raise ValueError(
                f"Without the rows of fold {number} there is one class only: cv must be folds that keep both classes, "
                "such as StratifiedKFold."
            )
        v /= v.sum()
        sheet = search_points(v).run()
        scores_of = {
            "points": sheet.constant + sheet.scale * (columns[test] @ np.array(sheet.points, dtype=np.float64))
        }
        for name, own in models.items():
            constant, *coef = real_model(own, y, v, ridge)
            scores_of[name] = constant + own[test] @ np.array(coef)
        for name, scores in scores_of.items():
            found[name].append((_deviance(y[test], scores, weights[test]), auc(y[test], scores, weights[test])))
    return {
        name: {"deviance": _mean(deviance for deviance, _ in values), "auc": _mean(area for _, area in values)}
        for name, values in found.items()
    }


def _mean(values: Iterable[float]) -> float:
    """The mean of the numbers among some values; not a number if there are none."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan


def _deviance(y: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> float:
    losses = np.minimum(np.logaddexp(0.0, -y * scores), -np.log(LEAST_PROBABILITY))
    return float(2.0 * (weights @ losses) / weights.sum())


def auc(y: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> float:
    """The share of pairs of both classes in the right order, ties counting half."""
    values, place = np.unique(scores, return_inverse=True)
    yes = np.bincount(place, weights=weights * (y > 0), minlength=len(values))
    no = np.bincount(place, weights=weights * (y < 0), minlength=len(values))
    below = np.cumsum(no) - no
    total = yes.sum() * no.sum()
    return float(yes @ (below + 0.5 * no) / total) if total else np.nan
