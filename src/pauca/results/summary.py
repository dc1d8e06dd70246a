"""A model in words and numbers, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pauca.results.choice import EXPLAINED
from pauca.results.data_summary import COUNTED_ONCE, encoding_notes
from pauca.results.instructions import IN_PYTHON, Instructions
from pauca.wording import FORCED_IN, aligned, column_names, held_at_bound, printable, quoted

if TYPE_CHECKING:
    from pauca.results.path import Path

# Figures of predictions in words.
FIGURES = {
    "auc": "AUC {:.3f}",
    "accuracy": "accuracy {:.3f}",
    "concordance": "concordance {:.3f}",
    "brier": "Brier score {:.3f}",
    "r2": "R² {:.3f}",
    "rmse": "root mean squared error {:.4g}",
    "mae": "mean absolute error {:.4g}",
}

# What predictions are where the fit had an offset or an exposure.
KNOWN_PARTS = {
    "exposure": "Predictions are rates per unit of exposure, unless the exposure of a row is given: the expected count "
    "or amount is the rate times the exposure.",
    "offset": "The model was fitted with an offset, a known part of the score of every row: predictions take it as 0 "
    "unless it is given.",
}


def notes_on_loss(dispersion: float | None, known_part: str | None) -> list[str]:
    """What must be known to read predictions: how counts vary around them, and what the fit knew of every row."""
    notes = [] if dispersion is None else [f"Counts of mean m have the variance m + {dispersion:.3g} m²."]
    return notes if known_part is None else [*notes, KNOWN_PARTS[known_part]]


def notes_on_score(path: Path) -> Iterator[str]:
    """Which class the score is about that chose the size, unless it is about all rows alike."""
    choice, classes = path.choice, path.two_classes
    if choice is not None and choice.scored_class is not None and classes is not None:
        yield f"{choice.scoring} is that of class {classes[choice.scored_class]!r}."


# A single feature that explains this share may be the target in another form. In 817 tables of textbooks most pairs of
# numbers with such a squared correlation, 0.98, are one quantity twice: grams and ounces, totals and parts, dates.
NEARLY_ALL = 0.98


def cautions(path: Path, size: int) -> Iterator[str]:
    """Why a model may be worth less on new rows than it seems: it uses an identifier, or the target in another form."""
    yield from _identifiers(path, size)
    yield from _all_by_one(path, size)


def _all_by_one(path: Path, size: int) -> Iterator[str]:
    """That one feature alone explains nearly all."""
    if not size or 1 not in path.sizes or not _has_share(path):
        return
    (unit,), choice = path[1].units.tolist(), path.choice
    place = choice.position(1) if choice is not None and choice.scored and choice.scoring == EXPLAINED else None
    share = path.explained(1) if choice is None or place is None else float(choice.mean[place])
    if unit in path[size].units and share >= NEARLY_ALL:
        where = "of the fit" if place is None else "held out"
        yield (
            f"{quoted([path.unit_name(unit)])} alone explains {100 * share:.1f} % on rows {where}: make sure that it "
            "is known before the target is, and is not the target in another form."
        )


def _identifiers(path: Path, size: int) -> Iterator[str]:
    """What a model that uses an identifier is worth on new rows."""
    found = path.identifiers_in(size)
    if found:
        names = quoted(column_names(path.column_names, found))
        are = f"{names} looks like an identifier" if len(found) == 1 else f"{names} look like identifiers"
        yield f"{are}: unless the order of the rows matters, such numbers say nothing about new rows."


# Coefficients of so many outputs are shown side by side, those of more one table below the other.
OUTPUTS_PER_TABLE = 6

# A category or group of more columns than the first number shows only the second number of them.
MOST_IN_GROUP, SHOWN_IN_GROUP = 8, 5

# An importance for which the time of the fit was too short.
NOT_COMPUTED = "not computed"

# A share that is shown as nothing.
NO_SHARE = 5e-5

# Of free coordinates the first few are shown.
MOST_FREE = 6


def summarize(path: Path, size: int, how: Instructions = IN_PYTHON, explained_of: str = "") -> str:
    """The model of ``size`` as text: its features, their coefficients and importances, and ``how`` to get others.

    ``explained_of`` is what shares are shares of, such as the variance.
    """
    table = []
    for first in range(0, len(path.output_names or [""]), OUTPUTS_PER_TABLE):
        rows = _rows(path, size, slice(first, first + OUTPUTS_PER_TABLE), whole=how.whole)
        head, *lines = aligned(rows, left=2 if path.has_parts(size) else 1)
        table += [head, "-" * len(head), *lines, ""]
    above = [_head(path, size, explained_of, how), *fewer_text(path, size, how), ""]
    return "\n".join([*above, *table, *_notes(path, size, how), *_end(path, size)])


def _head(path: Path, size: int, explained_of: str, how: Instructions) -> str:
    """The line above the table: how many, at what price, how good."""
    of = path.n_features if path.group_labels is None else len(path.group_labels)
    words = [f"{size} {path.counted}{'' if size == 1 else 's'} of {of}"]
    n_terms = len(path[size].support)
    if n_terms > size:  # of groups and of categories, which may have many levels
        words.append(f"{n_terms} coefficients")
    if path.prices is not None:
        words.append(f"total cost {path.cost(size):.6g}")
    words.append(f"objective {path[size].objective:.6g}")
    if _has_share(path):
        whole = f" of the {explained_of}" if explained_of else ""
        of_fit = f" on the rows of the fit{how.other_rows}" if explained_of and size else ""
        words.append(f"{100 * path.explained(size):.2f} %{whole} explained{_held_out(path, size) or of_fit}")
    return ", ".join(words)


def _held_out(path: Path, size: int) -> str:
    """The share explained on held-out rows, where it was measured: what the rows of the fit say alone flatters."""
    choice = path.choice
    place = None if choice is None or choice.scoring != EXPLAINED or not choice.scored else choice.position(size)
    if choice is None or place is None or not size:
        return ""
    # The word stands beside the number: where columns outnumber rows it may be far too high. Of another size than the
    # chosen one too: whoever sets it by hand has these figures before him.
    return f", {100 * choice.mean[place]:.2f} % on held-out rows (optimistic)"


def fewer_text(path: Path, size: int, how: Instructions) -> Iterator[str]:
    """What fewer features would give, where ``size`` was chosen and half of it gives nearly as much."""
    choice = path.choice
    if choice is None or not choice.is_of(size) or choice.fewer_size is None:
        return
    units = path[choice.fewer_size].units.tolist() if choice.fewer_is_on_path else choice.fewer_units
    yield choice.fewer(path.counted, [path.unit_name(unit) for unit in units], how)


def _notes(path: Path, size: int, how: Instructions) -> Iterator[str]:
    """What must be known to read the table."""
    model = path[size]
    if path.choice is not None and path.choice.is_of(size):
        if path.noun is not None and size == 0:
            helps = "helps on held-out data" if path.choice.by_folds else f"lowers the {path.choice.criterion_name}"
            yield f"No {path.noun} {helps}."
        else:
            yield path.choice.message_for(how)
        if path.choice.held_out:
            text = figures_text(path.choice.held_out)
            text = text[0].upper() + text[1:]
            yield f"{text} on the held-out rows, optimistic since these rows also chose the model{how.honest}."
        if path.choice.smaller:
            get = how.smaller if path.choice.smaller_is_on_path else how.smaller_best
            yield f"{path.choice.smaller} {get.format(size=path.choice.one_error_size)}"
    elif path.choice is not None and path.choice.by_folds and path.choice.scored:
        yield path.choice.comparison(size, how)
    yield from notes_on_score(path)
    yield from cautions(path, size)
    if path.certificate is not None and path.certificate.message(size):
        yield path.certificate.message_for(size, how)
    yield from map(printable, encoding_notes(path.raw_columns(size)))
    if path.counts_categories(size):
        yield COUNTED_ONCE
    classes = path.two_classes
    if size and classes is not None:
        yield f"positive coefficients favour class {classes[1]!r}, negative ones {classes[0]!r}"
    if size:
        about = "" if model.importance_is_exact else "about "
        left_out = f"if the {path.counted} is left out and the others are refitted"
        late = "; the fit ended before all were computed" if np.isnan(model.importance).any() else ""
        yield f"importance: {about}{_lost(path, size)} {left_out}{late}"
    yield from _reading(path, size, how)
    if model.diverged:
        yield (
            "The data are separable, at least in part, so some coefficients diverge: their sizes mean little, and "
            "without a ridge new rows may be predicted badly."
        )


def figures_text(figures: Mapping[str, float]) -> str:
    """``AUC 0.996, accuracy 0.982 and Brier score 0.019``."""
    words = [FIGURES[name].format(value) for name, value in figures.items() if name in FIGURES]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def thresholds_text(classes: Sequence[str], thresholds: np.ndarray) -> str:
    """``low | mid -0.5, mid | high 0.94``: the thresholds between classes in an order, as R writes them."""
    pairs = zip(pairwise(classes), thresholds.tolist(), strict=True)
    return ", ".join(f"{low} | {high} {threshold:.4g}" for (low, high), threshold in pairs)


def _lost(path: Path, size: int) -> str:
    """What importances measure."""
    if path.floor is None:
        return "the rise of the objective"
    if path[size].shrinkage:
        return "the rise of the objective, ridge included, as a share of the empty model's,"
    return "the drop in the share explained"


def _end(path: Path, size: int) -> Iterator[str]:
    """Why the search ended, where that is why the model has its size."""
    if path.choice is None and size == max(path.sizes):
        yield path.stop.message


def _rows(path: Path, size: int, outputs: slice, *, whole: bool) -> list[list[str]]:
    """The table's cells: the head, a row for each feature, the most valuable first, and what is always in."""
    model = path[size]
    shown = (path.output_names or ["coefficient"])[outputs]
    coef = np.atleast_2d(model.coef)[outputs]
    grouped = path.has_parts(size)
    blank = [""] if grouped else []
    priced = [] if path.prices is None else ["cost"]
    below = [path.counted, _part(path)] if grouped else [path.counted]
    rows = [[*below, *shown, "importance", *priced]]
    names = dict(zip(model.support.tolist(), path.names(size), strict=True))
    places = {column: place for place, column in enumerate(model.support.tolist())}
    for position in np.argsort(-model.importance, kind="stable"):
        importance = _importance(path, float(model.importance[position]))
        unit = int(model.units[position])
        price = [] if path.prices is None else [f"{path.prices[unit]:.6g}"]
        forced = f" ({FORCED_IN})" if unit in path.forced else ""
        label = [f"{path.unit_name(unit)}{forced}"] if grouped else []
        columns = path.columns_of(size, unit)
        of_columns = np.atleast_2d(model.coef)[:, [places[column] for column in columns]]
        shown_columns = columns if whole else largest_of(columns, of_columns)
        for column in shown_columns:
            numbers = [f"{value:.6g}" for value in coef[:, places[column]]]
            name = names[column] + ("" if grouped else forced)
            rows.append([*label, name, *numbers, importance, *price])
            label, importance, price = blank, "", [""] * len(priced)
        if len(shown_columns) < len(columns):
            more = f"and {len(columns) - len(shown_columns)} more"
            rows.append([*label, more, *[""] * len(shown), importance, *price])
    for name, values in _free_rows(path, size):
        rows.append([*blank, name, *(f"{value:.6g}" for value in values[outputs]), "", *([""] * len(priced))])
    return rows


def largest_of(columns: list[int], coef: np.ndarray) -> list[int]:
    """Those of the columns of a group that are shown: all of a few, of many the ones with the largest coefficients."""
    if len(columns) <= MOST_IN_GROUP:
        return columns
    largest = np.argsort(-np.linalg.norm(coef, axis=0), kind="stable")[:SHOWN_IN_GROUP]
    return [columns[place] for place in sorted(largest.tolist())]


def _reading(path: Path, size: int, how: Instructions) -> Iterator[str]:
    """What must be known to read the names, coefficients and importances of the table."""
    model = path[size]
    held = column_names(path.column_names, model.support[model.held])
    if held:
        yield f"{held_at_bound(held)}: the fit would go beyond if the bounds let it."
    folded = not how.whole and any(len(path.columns_of(size, int(unit))) > MOST_IN_GROUP for unit in model.units)
    if folded and how.coefficients:
        yield f"Of large {_wholes(path)} the largest coefficients are shown; {how.coefficients.format(size=size)}."
    if path.is_nameless and len(model.support) and how.names:
        yield how.names
    if _has_share(path) and size > 1:
        whole = path[0].objective - (path.floor or 0.0)
        weak = [int(unit) for unit, lost in zip(model.units, model.importance, strict=True) if lost < NO_SHARE * whole]
        idle = [unit for unit in weak if unit not in path.forced]
        if idle:
            one = "" if len(idle) == 1 else ", if only one of them were left out"
            yield f"Next to nothing would be lost without {quoted([path.unit_name(unit) for unit in idle])}{one}."


def _wholes(path: Path) -> str:
    return "groups" if path.encoding is None else "categories"


def _part(path: Path) -> str:
    """What a group consists of: a column of a raw table of terms, a sensor of columns, groups of features."""
    if path.encoding is not None:
        return "term"
    return "column" if path.noun else "feature"


def _importance(path: Path, importance: float) -> str:
    """The importance of a unit, as a share where there is one."""
    if np.isnan(importance):
        return NOT_COMPUTED
    if path.floor is None:
        return f"{importance:.4g}"
    return f"{100 * importance / (path[0].objective - path.floor):.2f} %" if _has_share(path) else "0.00 %"


def _has_share(path: Path) -> bool:
    """Whether there is something that a share can be explained of."""
    return path.floor is not None and path[0].objective > path.floor


def _free_rows(path: Path, size: int) -> list[tuple[str, list[float]]]:
    """What is always in: the intercept of every output, or the first few free coordinates."""
    model = path[size]
    if model.free is None:
        return [("(intercept)", np.atleast_1d(model.intercept).tolist())]
    if path.free is None:  # they have no names among the coordinates
        return []
    shown = column_names(path.column_names, path.free[:MOST_FREE].tolist())
    return [(_in_brackets(name), [value]) for name, value in zip(shown, model.free.tolist(), strict=False)]


def _in_brackets(name: str) -> str:
    """What is always in stands in brackets; names such as "(intercept)" have them."""
    return name if name.startswith("(") and name.endswith(")") else f"({name})"
