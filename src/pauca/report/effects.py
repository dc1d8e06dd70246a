"""What a change of each feature does to the prediction, in words, with intervals and how often it was chosen."""

from __future__ import annotations

import math

from pauca.export.formula import Formula
from pauca.report.formatting import MINUS, NONE, SPACE, Markup, short_number, table, tag, whole_percent
from pauca.report.model_data import ModelData
from pauca.results.data_summary import ColumnValues
from pauca.tables.encoding import MISSING, NUMBER
from pauca.wording import AT_BOUND, FORCED_IN

FREQUENCY_NOTE = (
    "Selected says how often the feature was chosen when the search was repeated on part of the rows. A feature that "
    "is often left out has close alternatives"
)
AND_ITS_INTERVAL = ", and its interval, which takes the choice as given, says too much"
EXAMPLES_OF_ODDS = f"odds of 1 are 50{SPACE}%, odds of 3 are 75{SPACE}%"
# Links whose scores are logarithms: a change of the score multiplies what is predicted.
LOGARITHMS = ("log_loss", "exp", "log_hazard", "cumulative")


def effects(data: ModelData) -> Markup:
    """The section; empty for several outputs or classes, and where the link has no words."""
    formula = data.formula
    if formula is None or not data.size or len(formula.coef) > 1:
        return Markup("")
    steps = [step_of(data, place) for place in range(len(formula.names))]
    order = sorted(range(len(steps)), key=lambda place: -abs(formula.coef[0, place]) * steps[place])
    heads = [data.part.capitalize(), "Change", f"Effect on {_target(formula)}"]
    intervals = data.inference is not None
    frequency = _frequencies(data)
    of_ratio = " of the ratio" if formula.link in LOGARITHMS else ""
    heads += [f"{100 * data.inference.confidence:g} % interval{of_ratio}"] if data.inference is not None else []
    heads += [] if frequency is None else ["Selected"]
    rows = []
    for place in order:
        name, coef, step = formula.names[place], float(formula.coef[0, place]), steps[place]
        cells = [name, change_text(data, place), _words(formula, coef * step)]
        if intervals:
            cells.append(_interval(data, formula, place, step))
        rows.append([*cells, *([] if frequency is None else [frequency.get(name, NONE)])])
    content = table(f"What a change of one {data.part} does while the others stay as they are", heads, rows)
    text = tag(
        "div", tag("h2", f"What each {data.part} does"), *(tag("p", note, class_="note") for note in _notes(data))
    )
    return tag("section", text, tag("div", content), class_="split effects")


def _notes(data: ModelData) -> list[str]:
    formula, notes = data.formula, []
    assert formula is not None
    if formula.link == "log_loss":
        notes.append(
            f"Odds are the probability of a class divided by that of the other: {EXAMPLES_OF_ODDS}. An odds ratio is "
            "what they are multiplied by."
        )
    if formula.link == "cumulative" and data.classes is not None:
        *_, before, last = data.classes
        notes.append(
            f"Odds are a probability divided by that of the opposite: {EXAMPLES_OF_ODDS}. Those of a higher class are "
            f"about lying beyond a class or not, such as {last} instead of {before} or lower; the model takes a change "
            "to multiply them alike, whatever the class."
        )
    if formula.link == "log_hazard":
        notes.append(
            "The risk at any time (the hazard) is how fast events come among those that have had none so far. A hazard "
            f"ratio is what it is multiplied by: above 1 {data.event} comes sooner, below 1 later."
        )
    notes.append(
        "These are differences between rows whose other selected features are equal. They do not say what would happen "
        "if a feature were changed on purpose."
    )
    if data.inference is not None:
        made = (
            f"Intervals come from {data.inference.n_resamples} fits of these features to resampled rows (bootstrap)."
            if data.inference.method == "bootstrap"
            else "Intervals come from the curvature of the likelihood."
        )
        notes += [made, data.inference.caution]
    if data.data_summary is None or not data.data_summary.values:
        notes.append("The values that columns had in the fit are not known of this model, so all changes are by 1.")
    if _frequencies(data) is not None:
        notes.append(f"{FREQUENCY_NOTE}{AND_ITS_INTERVAL if data.inference is not None else ''}.")
    return notes


def _target(formula: Formula) -> str:
    if formula.link == "cumulative":
        return "the odds of a higher class"
    if formula.classes is not None:
        return (
            f"the odds of {formula.classes[1]}" if formula.link == "log_loss" else f"the score of {formula.classes[1]}"
        )
    names = {"inverse": "the linear score", "log_hazard": "the risk at any time (hazard)"}
    return names.get(formula.link or "", "the prediction")


def _values(data: ModelData, place: int) -> ColumnValues | None:
    assert data.formula is not None
    return None if data.data_summary is None else data.data_summary.values.get(data.formula.columns[place])


def step_of(data: ModelData, place: int) -> float:
    """The change that is put into words: one for levels, and where nothing is known of the column."""
    assert data.formula is not None
    values = _values(data, place)
    return 1.0 if values is None or data.formula.terms[place].kind != NUMBER else values.step


def change_text(data: ModelData, place: int) -> str:
    """The change of a term that is put into words."""
    assert data.formula is not None
    term, values = data.formula.terms[place], _values(data, place)
    if term.kind != NUMBER:
        column = next(one for one in data.path.raw_columns(data.size) if one.name == term.raw)
        other = short_number(column.fill or 0.0) if column.levels is None else column.baseline
        return f"{'missing' if term.kind == MISSING else term.level} instead of {other}"
    if values is not None and values.binary:
        return "1 instead of 0"
    return f"{short_number(step_of(data, place))} more"


def _words(formula: Formula, change: float) -> str:
    """A change of the score as people say it: 35 % higher (ratio 1.35), multiplied by 3.2, or 12.3 lower."""
    if formula.link not in LOGARITHMS:
        return f"{short_number(float(f'{abs(change):.3g}'))} {'higher' if change >= 0 else 'lower'}"
    if abs(change) > 20:  # odds beyond hundreds of millions
        return f"{'far higher' if change > 0 else 'far lower'} (logarithm of the ratio {_signed(change)})"
    ratio = math.exp(change)
    if formula.link == "log_hazard":
        return f"multiplied by {ratio_text(ratio)}"
    if ratio >= 2:
        return f"{ratio_text(ratio)} times as high"
    return f"{whole_percent(abs(ratio - 1))} {'higher' if ratio >= 1 else 'lower'} (ratio {ratio_text(ratio)})"


def ratio_text(ratio: float) -> str:
    """A ratio with two or three digits."""
    return f"{ratio:.2f}" if 0.1 <= ratio < 10 else f"{ratio:.3g}"


def _signed(value: float) -> str:
    return f"{float(f'{value:.3g}'):.6g}".replace("-", MINUS)


def _interval(data: ModelData, formula: Formula, place: int, step: float) -> str:
    """The interval of an effect, as ratios where the words name ratios."""
    assert data.inference is not None
    ends = [float(end[place]) * step for end in (data.inference.lower, data.inference.upper)]
    held = data.inference.at_bound is not None and bool(data.inference.at_bound[place])
    if not all(map(math.isfinite, ends)):
        return AT_BOUND if held else NONE
    mark = f" ({AT_BOUND})" if held else ""
    if formula.link in LOGARITHMS:
        ratios = (ratio_text(math.exp(end)) if abs(end) < 20 else ("huge" if end > 0 else "0") for end in ends)
        return " to ".join(ratios) + mark
    return " to ".join(_signed(end) for end in ends) + mark


def _frequencies(data: ModelData) -> dict[str, str] | None:
    """How often each feature was chosen on part of the rows: by ``stability`` if it was called, else by folds."""
    path, support = data.path, data.path[data.size].support
    unit_of = dict(zip(path.names(data.size), support if path.owner is None else path.owner[support], strict=True))
    units = {name: path.unit_name(int(unit)) for name, unit in unit_of.items()}
    forced = {name: FORCED_IN for name, unit in unit_of.items() if int(unit) in path.forced}
    if data.stability is not None:
        shares = data.stability.frequency
        return {name: whole_percent(shares.get(unit, 0.0)) for name, unit in units.items()} | forced
    folds = None if data.evaluation is None else data.evaluation.fold_choices
    if not folds:
        return None
    counts = {name: sum(unit in fold for fold in folds) for name, unit in units.items()}
    return {name: f"{found} of {len(folds)} folds" for name, found in counts.items()} | forced
