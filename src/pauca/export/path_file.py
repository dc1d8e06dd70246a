"""A path as plain JSON, and back. The fields are named after the attributes of ``Path``, ``Model`` and ``Choice``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pauca.export.json_files import JsonReader, encode_float
from pauca.export.json_values import read_array, write_array
from pauca.model import Model
from pauca.relaxations.size_proof import SizeProof
from pauca.results.certificate import Certificate
from pauca.results.choice import FOLD_RULES, Choice, Rule
from pauca.results.fit_statistics import Statistics
from pauca.results.path import Path
from pauca.results.surface import Surface
from pauca.runs.run import Move, Stop
from pauca.statistics.criteria import CRITERIA

FIELDS = ("features", "output_names", "two_classes", "feature_groups", "costs", "choice", "stop", "moves", "models")

# A model has a coefficient, mostly zero, for every column: a file that claims more columns than this is invalid.
MOST_FEATURES = 2**31 - 1

# Names of moves, and how many units each names.
MOVES = [("add", 1), ("drop", 1), ("swap", 2)]

# Free coordinates, the floor of the objective and what sizes count, for paths of linear models.
LINEAR = (None, 0.0, None)

STOPS = {stop.value: stop for stop in Stop}


def write_path(path: Path) -> dict[str, Any]:
    """The fields of a file that hold the path."""
    names, labels, owner = path.column_names, path.group_labels, path.owner
    groups = None
    if labels is not None and owner is not None:
        groups = {"labels": write_array(labels, "feature_groups"), "group_of_feature": owner.tolist()}
    document = {
        "features": {"count": path.n_features, "names": None if names is None else [str(name) for name in names]},
        "output_names": path.output_names,
        "two_classes": path.two_classes,
        "feature_groups": groups,
        "costs": None if path.prices is None else path.prices.tolist(),
        "choice": None if path.choice is None else _write_choice(path.choice),
        "stop": path.stop.value,
        "moves": [_write_move(move) for move in path.moves],
        "models": [_write_model(model) for model in path],
    }
    if path.free is not None or (None, path.floor, path.noun) != LINEAR:
        free = None if path.free is None else path.free.tolist()
        document["custom"] = {"free": free, "floor": path.floor, "noun": path.noun}
    if path.statistics:
        document["statistics"] = {
            str(size): _write_figures(figures) for size, figures in sorted(path.statistics.items())
        }
    if path.forced:
        document["forced"] = sorted(path.forced)
    if path.identifiers:
        document["identifiers"] = sorted(path.identifiers)
    if path.certificate is not None:
        document["certificate"] = _write_certificate(path.certificate)
    return document


def read_path(fields: dict[str, JsonReader]) -> Path:
    """The path from these fields, which are checked against each other."""
    free, floor, noun = _read_custom(fields["custom"]) if "custom" in fields else LINEAR
    n_free = 0 if free is None else len(free)
    n_features, names = _read_features(fields["features"], n_free)
    n_coords = n_features + n_free
    if free is not None and n_free and free[-1] >= n_coords:
        fields["custom"].fail("a free coordinate is beyond the last coordinate")
    outputs = fields["output_names"].optional(_read_outputs)
    classes = fields["two_classes"].optional(lambda reader: reader.strings(2))
    if outputs is not None and classes is not None:
        fields["two_classes"].fail("two classes have a single output, but there are output names")
    labels, owner = _read_groups(fields["feature_groups"], n_coords, free)
    n_units = n_coords if labels is None else len(labels)
    n_outputs = 1 if outputs is None else len(outputs)
    costs = fields["costs"].optional(lambda reader: np.array(reader.finite_list(n_units), dtype=np.float64))
    moves = [_read_move(move, n_units - 1) for move in fields["moves"].items()]
    stop = fields["stop"].lookup(STOPS)
    models: dict[int, Model] = {}
    for reader in fields["models"].items():
        model = _read_model(reader, n_coords, n_outputs, n_units, owner, None if free is None else n_free)
        if model.size <= max(models, default=-1):
            reader.fail("the models must be in the order of their sizes, one of each size")
        models[model.size] = model
    if 0 not in models:
        fields["models"].fail("the model of size 0 is missing")
    choice = fields["choice"].optional(lambda reader: _read_choice(reader, models, n_units))
    certificate = (
        _read_certificate(fields["certificate"], models, names, n_features) if "certificate" in fields else None
    )
    return Path(
        models,
        moves,
        stop,
        n_features,
        names,
        labels,
        owner,
        outputs,
        classes,
        costs,
        choice,
        free,
        floor,
        noun,
        certificate,
        _read_statistics(fields["statistics"], models) if "statistics" in fields else {},
        forced=frozenset(fields["forced"].increasing_integers(n_units - 1) if "forced" in fields else ()),
        identifiers=frozenset(
            fields["identifiers"].increasing_integers(n_features - 1) if "identifiers" in fields else ()
        ),
    )


def _read_statistics(reader: JsonReader, models: dict[int, Model]) -> Statistics:
    sizes, found = {str(size): size for size in models}, {}
    for key, item in reader.entries().items():
        if key not in sizes:
            item.fail("there is no model of this size")
        found[sizes[key]] = {name: value.number() for name, value in item.entries().items()}
    return found


def _write_certificate(certificate: Certificate) -> dict[str, Any]:
    return {
        "n_candidates": certificate.n_candidates,
        "n_forced": certificate.n_forced,
        "limited": certificate.limited,
        "reason": certificate.reason,
        "search_ridge": certificate.search_ridge,
        **({"n_copies": certificate.n_copies} if certificate.n_copies else {}),
        "ridge": certificate.ridge,
        "stopped_after": certificate.stopped_after,
        **({"interrupted": True} if certificate.interrupted else {}),
        "proofs": [
            {
                "size": size,
                "objective": proof.objective,
                "lower_bound": proof.lower_bound if proof.lower_bound > -np.inf else None,
                "nodes": proof.nodes,
                "always_in": list(proof.always_in),
                "never_in": list(proof.never_in),
            }
            for size, proof in sorted(certificate.proofs.items())
        ],
    }


def _read_certificate(
    reader: JsonReader, models: dict[int, Model], names: np.ndarray | None, n_features: int
) -> Certificate:
    names_of_fields = ["n_candidates", "n_forced", "limited", "reason", "search_ridge", "proofs"]
    fields = reader.fields(names_of_fields, optional=["n_copies", "ridge", "stopped_after", "interrupted"])
    search_ridge = fields["search_ridge"].optional(JsonReader.finite)
    proofs: dict[int, SizeProof] = {}
    for item in fields["proofs"].items():
        parts = item.fields(["size", "objective", "lower_bound", "nodes", "always_in", "never_in"])
        size = parts["size"].integer(1, n_features)
        if size not in models or size in proofs:
            item.fail("a proof must be of a size that there is one model of")
        always_in, never_in = (parts[key].increasing_integers(n_features - 1) for key in ("always_in", "never_in"))
        bound, objective = parts["lower_bound"].optional(JsonReader.finite), parts["objective"].finite()
        bound = -np.inf if bound is None else bound
        if search_ridge is None and objective != models[size].objective:
            item.fail("a proof must be of the objective of the model")
        if bound > objective:
            item.fail("a lower bound is above the objective of the model")
        nodes = parts["nodes"].integer(0, MOST_FEATURES)
        proofs[size] = SizeProof(objective, bound, nodes, tuple(always_in), tuple(never_in))
    return Certificate(
        proofs,
        fields["n_candidates"].integer(0, n_features),
        fields["n_forced"].integer(0, n_features),
        fields["limited"].flag(),
        names,
        fields["reason"].optional(JsonReader.string),
        search_ridge,
        fields["n_copies"].integer(0, n_features) if "n_copies" in fields else 0,
        ridge=fields["ridge"].optional(JsonReader.finite) if "ridge" in fields else None,
        stopped_after=fields["stopped_after"].optional(JsonReader.finite) if "stopped_after" in fields else None,
        interrupted="interrupted" in fields and fields["interrupted"].flag(),
    )


def _read_custom(reader: JsonReader) -> tuple[np.ndarray | None, float | None, str | None]:
    """Free coordinates, the floor of the objective and what sizes count, for paths of custom objectives."""
    fields = reader.fields(["free", "floor", "noun"])
    free = fields["free"].optional(lambda found: np.array(found.increasing_integers(MOST_FEATURES), dtype=np.intp))
    return free, fields["floor"].optional(JsonReader.finite), fields["noun"].optional(JsonReader.string)


def _read_features(reader: JsonReader, n_free: int) -> tuple[int, np.ndarray | None]:
    fields = reader.fields(["count", "names"])
    count = fields["count"].integer(0, MOST_FEATURES)  # a graph of one variable has no edges
    return count, fields["names"].optional(lambda names: np.array(names.strings(count + n_free), dtype=object))


def _read_outputs(reader: JsonReader) -> list[str]:
    return reader.strings() or reader.fail("the list is empty; a single output without a name is null")


def _read_groups(
    reader: JsonReader, n_coords: int, free: np.ndarray | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    if reader.value is None:
        return None, None
    fields = reader.fields(["labels", "group_of_feature"])
    labels = read_array(fields["labels"])
    # Free coordinates belong to no group: theirs is the number after the last group.
    ungrouped = set() if free is None else set(free.tolist())
    items = fields["group_of_feature"].items(n_coords)
    owner = [item.integer(0, len(labels) - (column not in ungrouped)) for column, item in enumerate(items)]
    return labels, np.array(owner, dtype=np.intp)


def _write_model(model: Model) -> dict[str, Any]:
    return {
        "units": model.units.tolist(),
        "support": model.support.tolist(),
        "coef": model.coef.tolist(),
        "intercept": np.asarray(model.intercept).tolist(),
        "objective": float(model.objective),
        "importance": [encode_float(value) for value in model.importance.tolist()],
        "importance_is_exact": bool(model.importance_is_exact),
        "diverged": bool(model.diverged),
        "converged": bool(model.converged),
        **({"shrinkage": float(model.shrinkage)} if model.shrinkage else {}),
        **({} if model.free is None else {"free": model.free.tolist()}),
        **({} if model.at_bound is None else {"at_bound": np.flatnonzero(model.at_bound).tolist()}),
    }


def _read_model(
    reader: JsonReader, n_coords: int, n_outputs: int, n_units: int, owner: np.ndarray | None, n_free: int | None
) -> Model:
    names = ["units", "support", "coef", "intercept", "objective", "importance", "importance_is_exact", "diverged"]
    # The transitions of a tagger and the diagonal of a graph are free too, though no path has coordinates for them.
    optional = ["free", "shrinkage", "at_bound"]
    fields = reader.fields([*names, "converged", *([] if n_free is None else ["free"])], optional=optional)
    units = fields["units"].increasing_integers(n_units - 1)
    support = fields["support"].increasing_integers(n_coords - 1)
    if not set(support if owner is None else owner[support].tolist()) <= set(units):
        fields["support"].fail("a column belongs to a unit that was not selected")
    if owner is None and support != units:
        fields["support"].fail("without groups, the units must be the columns themselves")
    coef, at_bound = _read_coef(fields["coef"], n_outputs, len(support)), None
    if "at_bound" in fields:  # places in the coefficients, one output after the other
        places = fields["at_bound"].increasing_integers(coef.size - 1)
        at_bound = np.isin(np.arange(coef.size), places).reshape(coef.shape)
    return Model(
        support=np.array(support, dtype=np.intp),
        coef=coef,
        intercept=fields["intercept"].finite()
        if n_outputs == 1
        else np.array(fields["intercept"].finite_list(n_outputs)),
        objective=fields["objective"].finite(),
        importance=_read_numbers(fields["importance"], len(units)),
        units=np.array(units, dtype=np.intp),
        diverged=fields["diverged"].flag(),
        importance_is_exact=fields["importance_is_exact"].flag(),
        converged=fields["converged"].flag(),
        free=np.array(fields["free"].finite_list(n_free), dtype=np.float64) if "free" in fields else None,
        shrinkage=fields["shrinkage"].finite() if "shrinkage" in fields else 0.0,
        at_bound=at_bound,
    )


def _read_coef(reader: JsonReader, n_outputs: int, n_columns: int) -> np.ndarray:
    if n_outputs == 1:
        return np.array(reader.finite_list(n_columns), dtype=np.float64)
    rows = [row.finite_list(n_columns) for row in reader.items(n_outputs)]
    return np.array(rows, dtype=np.float64).reshape(n_outputs, n_columns)


MOST_FOLDS = 1 << 31


def _write_choice(choice: Choice) -> dict[str, Any]:
    folds, error = choice.fold_scores, choice.standard_error
    return {
        "rule": choice.rule,
        "scoring": choice.scoring,
        "sizes": choice.sizes.tolist(),
        "mean": _write_numbers(choice.mean),
        "standard_error": None if error is None else _write_numbers(error),
        "fold_scores": None if folds is None else [_write_numbers(row) for row in folds],
        "chosen": choice.chosen,
        "best": choice.best,
        "ended": choice.ended,
        "falling": choice.falling,
        "n_folds": choice.n_folds,
        "difference_error": None if choice.difference_error is None else _write_numbers(choice.difference_error),
        "surface": None if choice.surface is None else _write_surface(choice.surface),
        "one_error_size": choice.one_error_size,
        "instead_of": choice.instead_of,
        **({"held_out": _write_figures(choice.held_out)} if choice.held_out else {}),
        **({"fewer_units": list(choice.fewer_units)} if choice.fewer_units else {}),
        **({} if choice.scored_class is None else {"scored_class": choice.scored_class}),
    }


def _write_figures(figures: Mapping[str, float]) -> dict[str, Any]:
    return {name: encode_float(value) for name, value in figures.items()}


def _write_surface(surface: Surface) -> dict[str, Any]:
    return {
        "search_ridges": surface.search_ridges.tolist(),
        "ridges": surface.ridges.tolist(),
        "mean": _write_numbers(surface.mean.ravel()),
        "standard_error": _write_numbers(surface.standard_error.ravel()),
        "score_error": _write_numbers(surface.score_error.ravel()),
        "search_ridge": surface.search_ridge,
        "ridge": surface.ridge,
    }


def _read_choice(reader: JsonReader, models: dict[int, Model], n_units: int) -> Choice:
    names = ["rule", "scoring", "sizes", "mean", "standard_error", "fold_scores", "chosen"]
    names += ["best", "ended", "falling", "n_folds", "difference_error", "surface", "one_error_size", "instead_of"]
    fields = reader.fields(names, optional=["held_out", "fewer_units", "scored_class"])
    sizes = fields["sizes"].increasing_integers(max(models))
    if not sizes or not set(sizes) <= set(models):
        fields["sizes"].fail("there must be at least one size, and a model of each")
    by_folds = fields["fold_scores"].value is not None
    chosen, best = (fields[name].integer(0, max(models)) for name in ("chosen", "best"))
    if chosen not in sizes:
        fields["chosen"].fail("the chosen size is not among the compared sizes")
    if best not in sizes:
        fields["best"].fail("the best size is not among the compared sizes")
    folds = [_read_numbers(row, len(sizes)) for row in fields["fold_scores"].items()] if by_folds else []
    return Choice(
        _read_rule(fields["rule"], by_folds),
        fields["scoring"].string(),
        np.array(sizes),
        _read_numbers(fields["mean"], len(sizes)),
        _read_numbers(fields["standard_error"], len(sizes)) if by_folds else None,
        np.array(folds).reshape(len(folds), len(sizes)) if by_folds else None,
        chosen,
        fields["surface"].optional(lambda surface: _read_surface(surface, sizes)),
        best,
        fields["ended"].string(),
        fields["falling"].flag(),
        fields["n_folds"].integer(0, MOST_FOLDS),
        fields["difference_error"].optional(lambda errors: _read_numbers(errors, len(sizes))),
        {name: item.number() for name, item in fields["held_out"].entries().items()} if "held_out" in fields else {},
        fields["one_error_size"].optional(lambda size: size.integer(0, max(models))),
        fields["instead_of"].string(),
        tuple(fields["fewer_units"].increasing_integers(n_units - 1)) if "fewer_units" in fields else (),
        fields["scored_class"].integer(0, 1) if "scored_class" in fields else None,
    )


def _read_rule(reader: JsonReader, by_folds: bool) -> Rule:
    if by_folds and not isinstance(reader.value, str):
        errors = reader.finite()
        return errors if errors >= 0 else reader.fail("a number of standard errors must not be negative")
    return str(reader.lookup({rule: rule for rule in (FOLD_RULES if by_folds else CRITERIA)}))


def _read_surface(reader: JsonReader, sizes: list[int]) -> Surface:
    names = ["search_ridges", "ridges", "mean", "standard_error", "score_error", "search_ridge", "ridge"]
    fields = reader.fields(names)
    searches, ridges = (_read_ridges(fields[name]) for name in ("search_ridges", "ridges"))
    shape = len(searches), len(ridges), len(sizes)
    mean, error, of_score = (
        _read_numbers(fields[name], int(np.prod(shape))).reshape(shape)
        for name in ("mean", "standard_error", "score_error")
    )
    search_ridge, ridge = fields["search_ridge"].finite(), fields["ridge"].finite()
    if search_ridge not in searches or ridge not in ridges:
        fields["ridge"].fail("the chosen ridges are not among the compared ridges")
    return Surface(searches, ridges, np.array(sizes), mean, error, ridge, search_ridge, of_score)


def _read_ridges(reader: JsonReader) -> np.ndarray:
    ridges = np.array(reader.finite_list(len(reader.items())), dtype=np.float64)
    if not len(ridges) or ridges.min() < 0:
        reader.fail("there must be at least one ridge, and none may be negative")
    return ridges


def _write_numbers(numbers: np.ndarray) -> list[Any]:
    return [encode_float(value) for value in numbers.tolist()]


def _read_numbers(reader: JsonReader, length: int) -> np.ndarray:
    return np.array([item.number() for item in reader.items(length)], dtype=np.float64)


def _write_move(move: Move) -> list[Any]:
    return [np.asarray(part).tolist() if not isinstance(part, str) else part for part in move]


def _read_move(reader: JsonReader, last_unit: int) -> Move:
    action, *units = reader.items() or [reader]
    if (action.value, len(units)) not in MOVES:
        reader.fail('a move is ["add", j], ["drop", i] or ["swap", i, j]')
    name = action.string()
    if name == "swap" and isinstance(units[0].value, list):
        removed, added = (tuple(unit.integer(0, last_unit) for unit in side.items()) for side in units)
        return (name, removed, added)
    return (name, *(unit.integer(0, last_unit) for unit in units))  # type: ignore[return-value]
