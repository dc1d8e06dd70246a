"""A path as plain JSON, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from pauca.export.json_reader import JsonReader, written
from pauca.export.values import read_array, write_array
from pauca.model import Model
from pauca.results.choice import CRITERIA, FOLD_RULES, Choice
from pauca.results.path import Path
from pauca.search.history import Move
from pauca.search.stop import Stop

FIELDS = ("features", "outputs", "classes", "groups", "prices", "choice", "stop", "moves", "models")

# A model has a coefficient, mostly zero, for every column. More columns than this no memory would hold.
MOST_FEATURES = 2**31 - 1

# Names of events, and how many units each names.
MOVES = [("add", 1), ("drop", 1), ("swap", 2)]

RULES_OF_FOLDS = {rule: rule for rule in FOLD_RULES}
RULES_OF_CRITERIA = {rule: rule for rule in CRITERIA}

# Free coordinates, the floor and what sizes count, for paths of linear models.
LINEAR = (None, 0.0, None)

STOPS = {stop.value: stop for stop in Stop}


def write_path(path: Path) -> dict[str, Any]:
    """The fields of a file that hold the path."""
    names, labels, owner = path.column_names, path.group_labels, path.owner
    return {
        "features": {"count": path.n_features, "names": None if names is None else [str(name) for name in names]},
        "outputs": path.output_names,
        "classes": path.two_classes,
        "groups": None
        if labels is None or owner is None
        else {"labels": write_array(labels, "groups"), "owner": owner.tolist()},
        "prices": None if path.prices is None else path.prices.tolist(),
        "choice": None if path.choice is None else _write_choice(path.choice),
        "stop": path.stop.value,
        "moves": [_plain(move) for move in path.moves],
        "models": [_write_model(model) for model in path],
        **({"own": _write_own(path)} if path.free is not None or (None, path.floor, path.noun) != LINEAR else {}),
    }


def read_path(fields: dict[str, JsonReader]) -> Path:
    """The path from these fields; whatever does not go together is refused."""
    free, floor, noun = _read_own(fields.get("own"))
    n_features, names = _read_features(fields["features"], 0 if free is None else len(free))
    n_coords = n_features + (0 if free is None else len(free))
    if free is not None and len(free) and free[-1] >= n_coords:
        fields["own"].refuse("there is a free coordinate beyond the last")
    outputs, classes = _read_outputs(fields["outputs"]), _read_classes(fields["classes"])
    if outputs is not None and classes is not None:
        fields["classes"].refuse("two classes are told apart by a single output")
    labels, owner = _read_groups(fields["groups"], n_coords, free)
    n_units = n_coords if labels is None else len(labels)
    n_outputs = 1 if outputs is None else len(outputs)
    prices = _read_prices(fields["prices"], n_units)
    events = [_read_move(move, n_units - 1) for move in fields["moves"].items()]
    stop = fields["stop"].one_of(STOPS)
    models: dict[int, Model] = {}
    for place in fields["models"].items():
        model = _read_model(place, n_coords, n_outputs, n_units, owner, None if free is None else len(free))
        if model.size <= max(models, default=-1):
            place.refuse("the models must be in the order of their sizes, one of each size")
        models[model.size] = model
    if 0 not in models:
        fields["models"].refuse("the model of size 0 is missing")
    choice = _read_choice(fields["choice"], models)
    kept = models, events, stop, n_features, names, labels, owner, outputs, classes, prices, choice
    return Path(*kept, free, floor, noun)


def _write_own(path: Path) -> dict[str, Any]:
    """What a path that is not of a linear model has besides."""
    return {"free": None if path.free is None else path.free.tolist(), "floor": path.floor, "noun": path.noun}


def _read_own(place: JsonReader | None) -> tuple[np.ndarray | None, float | None, str | None]:
    """Free coordinates, the floor and what sizes count; a linear model has none, zero and no word for it."""
    if place is None:
        return LINEAR
    fields = place.fields(["free", "floor", "noun"])
    free = None if fields["free"].value is None else np.array(fields["free"].ascending(MOST_FEATURES), dtype=np.intp)
    floor = None if fields["floor"].value is None else fields["floor"].number()
    return free, floor, None if fields["noun"].value is None else fields["noun"].text()


def _write_model(model: Model) -> dict[str, Any]:
    return {
        "units": model.units.tolist(),
        "support": model.support.tolist(),
        "coef": model.coef.tolist(),
        "intercept": np.asarray(model.intercept).tolist(),
        "objective": float(model.objective),
        "importance": [written(worth) for worth in model.importance.tolist()],
        "importance_is_exact": bool(model.importance_is_exact),
        "diverged": bool(model.diverged),
        "converged": bool(model.converged),
        **({} if model.free is None else {"free": model.free.tolist()}),
    }


def _read_model(
    place: JsonReader, n_coords: int, n_outputs: int, n_units: int, owner: np.ndarray | None, n_free: int | None
) -> Model:
    names = ["units", "support", "coef", "intercept", "objective", "importance", "importance_is_exact", "diverged"]
    # The transitions of a tagger and the diagonal of a graph are free too, though no path has coordinates for them.
    fields = place.fields([*names, "converged", *([] if n_free is None else ["free"])], optional=["free"])
    units = fields["units"].ascending(n_units - 1)
    support = fields["support"].ascending(n_coords - 1)
    if not set(support if owner is None else owner[support].tolist()) <= set(units):
        fields["support"].refuse("there is a column of a unit that was not chosen")
    if owner is None and support != units:
        fields["support"].refuse("where there are no groups, the units are the columns themselves")
    return Model(
        support=np.array(support, dtype=np.intp),
        coef=_read_coef(fields["coef"], n_outputs, len(support)),
        intercept=_read_intercept(fields["intercept"], n_outputs),
        objective=fields["objective"].number(),
        importance=np.array([worth.real() for worth in fields["importance"].items(len(units))], dtype=np.float64),
        units=np.array(units, dtype=np.intp),
        diverged=fields["diverged"].flag(),
        importance_is_exact=fields["importance_is_exact"].flag(),
        converged=fields["converged"].flag(),
        free=np.array(fields["free"].numbers(n_free), dtype=np.float64) if "free" in fields else None,
    )


def _read_coef(place: JsonReader, n_outputs: int, n_columns: int) -> np.ndarray:
    if n_outputs == 1:
        return np.array(place.numbers(n_columns), dtype=np.float64)
    rows = [row.numbers(n_columns) for row in place.items(n_outputs)]
    return np.array(rows, dtype=np.float64).reshape(n_outputs, n_columns)


def _read_intercept(place: JsonReader, n_outputs: int) -> float | np.ndarray:
    return place.number() if n_outputs == 1 else np.array(place.numbers(n_outputs), dtype=np.float64)


def _read_features(place: JsonReader, n_free: int) -> tuple[int, np.ndarray | None]:
    fields = place.fields(["count", "names"])
    count = fields["count"].integer(1, MOST_FEATURES)
    if fields["names"].value is None:
        return count, None
    return count, np.array(fields["names"].texts(count + n_free), dtype=object)


def _read_outputs(place: JsonReader) -> list[str] | None:
    if place.value is None:
        return None
    return place.texts() or place.refuse("the list is empty; a single output without a name is null")


def _read_classes(place: JsonReader) -> list[str] | None:
    return None if place.value is None else place.texts(2)


def _read_groups(
    place: JsonReader, n_coords: int, free: np.ndarray | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    if place.value is None:
        return None, None
    fields = place.fields(["labels", "owner"])
    labels = read_array(fields["labels"])
    # Free coordinates belong to no group: their number is that after the last.
    nobody = set() if free is None else set(free.tolist())
    items = fields["owner"].items(n_coords)
    owner = [item.integer(0, len(labels) - (column not in nobody)) for column, item in enumerate(items)]
    return labels, np.array(owner, dtype=np.intp)


def _read_prices(place: JsonReader, n_units: int) -> np.ndarray | None:
    return None if place.value is None else np.array(place.numbers(n_units), dtype=np.float64)


def _write_choice(choice: Choice) -> dict[str, Any]:
    folds, error = choice.fold_scores, choice.standard_error
    return {
        "rule": choice.rule,
        "scoring": choice.scoring,
        "sizes": choice.sizes.tolist(),
        "mean": [written(value) for value in choice.mean.tolist()],
        "standard_error": None if error is None else [written(value) for value in error.tolist()],
        "folds": None if folds is None else [[written(value) for value in row] for row in folds.tolist()],
        "chosen": choice.chosen,
    }


def _read_choice(place: JsonReader, models: dict[int, Model]) -> Choice | None:
    if place.value is None:
        return None
    fields = place.fields(["rule", "scoring", "sizes", "mean", "standard_error", "folds", "chosen"])
    sizes = fields["sizes"].ascending(max(models))
    if not sizes or not set(sizes) <= set(models):
        fields["sizes"].refuse("there must be sizes, and a model of each")
    by_folds = fields["folds"].value is not None
    rule = fields["rule"].one_of(RULES_OF_FOLDS if by_folds else RULES_OF_CRITERIA)
    chosen = fields["chosen"].integer(0, max(models))
    if chosen not in sizes:
        fields["chosen"].refuse("the size chosen is not among those compared")
    return Choice(
        rule,
        fields["scoring"].text(),
        np.array(sizes),
        _reals(fields["mean"], len(sizes)),
        _reals(fields["standard_error"], len(sizes)) if by_folds else None,
        np.array([_reals(row, len(sizes)) for row in fields["folds"].items()]) if by_folds else None,
        chosen,
    )


def _reals(place: JsonReader, length: int) -> np.ndarray:
    return np.array([item.real() for item in place.items(length)], dtype=np.float64)


def _read_move(place: JsonReader, most: int) -> Move:
    action, *features = place.items() or [place]
    if (action.value, len(features)) not in MOVES:
        place.refuse('a move is ["add", j], ["drop", i] or ["swap", i, j]')
    name = action.text()
    if name == "swap" and isinstance(features[0].value, list):
        out, into = (tuple(one.integer(0, most) for one in side.items()) for side in features)
        return (name, out, into)
    return (name, *(feature.integer(0, most) for feature in features))  # type: ignore[return-value]


def _plain(move: Move) -> list[Any]:
    return [np.asarray(part).tolist() if not isinstance(part, str) else part for part in move]
