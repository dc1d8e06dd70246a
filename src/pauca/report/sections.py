"""The sections of the page besides the size explorer, each made from the model data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pauca.report.formatting import (
    MINUS,
    Markup,
    count,
    enumerate_names,
    joined,
    name_tag,
    number,
    percent,
    short_number,
    table,
    tag,
    unbroken,
    whole_percent,
)
from pauca.report.model_data import MOST_OUTPUTS, ModelData, layout, table_rows
from pauca.report.performance import headline_figures
from pauca.report.size_explorer import score_head, score_text
from pauca.report.survival_curves import survival_content
from pauca.results.choice import EXPLAINED
from pauca.results.data_summary import COUNTED_ONCE, DataSummary, encoding_notes
from pauca.results.instructions import ON_PAGE
from pauca.results.summary import MOST_IN_GROUP, cautions, fewer_text, notes_on_score, thresholds_text
from pauca.runs.run import Stop
from pauca.version import __version__
from pauca.wording import FORCED_IN, held_at_bound

# Features in the table of stability, and names in a cell of the table of sizes.
MOST_STABLE = 30
MOST_NAMES = 12


def header(data: ModelData, title: str) -> Markup:
    """Title, the selected features, how the size was chosen, and the main figures."""
    figures = [(f"{data.noun}s selected", f"{data.size} of {data.candidates}"), *_accuracy(data)]
    figures += [] if data.evaluation is None else headline_figures(data.evaluation)
    if data.path.prices is not None:
        figures.append(("total cost", short_number(data.path.cost(data.size))))
    cards = joined(tag("div", tag("dt", name), tag("dd", value)) for name, value in figures)
    headline = [] if title == data.headline else [tag("p", f"{data.headline}.", class_="headline")]
    return tag(
        "header",
        tag("h1", name_tag(title)),
        *headline,
        tag("p", _features_used(data), class_="lead"),
        *(tag("p", unbroken(text)) for text in fewer_text(data.path, data.size, ON_PAGE)),
        *(tag("p", text) for text in _rows_used(data)),
        tag("dl", cards, class_="cards"),
        *(tag("p", text) for text in _reason(data)),
        *(tag("p", text) for text in cautions(data.path, data.size)),
    )


def _accuracy(data: ModelData) -> list[tuple[str, str]]:
    choice = data.path.choice
    of = f"{data.explained_of} " if data.explained_of else ""
    training = (f"{of}explained on the training data", percent(data.path.explained(data.size)))
    if choice is None or not choice.by_folds or choice.position(data.size) is None:
        return [training]
    head = score_head(choice)
    head = of + head[0].lower() + head[1:] if choice.scoring == EXPLAINED else head
    nested = None if data.evaluation is None else data.evaluation.score
    if nested is not None:
        shown = percent(nested) if choice.scoring == EXPLAINED else number(nested, 4)
        return [(f"{head} (nested folds)", shown), training]
    # Not the figure of rows that had no part in the choice, which may stand beside it.
    did = "chose the size" if choice.is_of(data.size) else "compared sizes"
    label = f"{head} (optimistic: these folds {did}), ± one standard error"
    return [(label, score_text(choice, data.size) or ""), training]


def _features_used(data: ModelData) -> str:
    importance = data.path[data.size].importance
    order = np.argsort(-importance, kind="stable")
    names = [data.unit_names(data.size)[index] for index in order]
    if not names:
        return "The model predicts a constant."
    shown = enumerate_names(names, 12 if sum(map(len, names)) <= 150 else 5)
    ordered = len(names) > 1 and not np.isnan(importance).any()
    return f"The model uses {shown}{', in order of importance' if ordered else ''}."


def _rows_used(data: ModelData) -> list[str]:
    """Rows, events and missing values of the fit."""
    data_summary = data.data_summary
    if data_summary is None:
        return []
    rows = f"It was fitted to {data_summary.n_rows} rows"
    if data_summary.class_counts is not None and data.classes is not None:
        counts = [f"{many} of {name}" for name, many in zip(data.classes, data_summary.class_counts, strict=True)]
        rows += f": {enumerate_names(counts)}"
        if len(counts) == 2:
            rows += f" ({percent(data_summary.class_counts[1] / data_summary.n_rows)} are {data.classes[1]}, the event)"
    if data.survival is not None:
        rows += f" with {count(int(data.survival.events.sum()), 'event')}"
    return [f"{rows}. {_missing_values(data, data_summary)}"]


def _missing_values(data: ModelData, data_summary: DataSummary) -> str:
    if data_summary.n_dropped:
        other = "1 other row was" if data_summary.n_dropped == 1 else f"{data_summary.n_dropped} other rows were"
        left_out = f"{other} left out, since values were missing there."
        return (
            left_out
            if not data_summary.missing
            else f"{left_out} {_missing_values(data, replace(data_summary, n_dropped=0))}"
        )
    if not data_summary.missing:
        return "No values were missing in them."
    listed = enumerate_names([f"{name} in {count(many, 'row')}" for name, many in data_summary.missing.items()])
    how = (
        "In columns of numbers they were replaced by medians, and marked by terms of their own; in categories they are "
        "a level of their own"
        if data.parameters.get("missing") == "category"
        else "They were replaced by medians and most frequent levels"
    )
    return f"Values were missing: {listed}. {how}."


def _reason(data: ModelData) -> list[str]:
    """Why the model has this size, what is known of its accuracy on new rows, and whether it is proved to be best."""
    certificate = data.path.certificate
    proof = "" if certificate is None else certificate.message_for(data.size, ON_PAGE)
    return [*_reason_of_size(data), *notes_on_score(data.path), *([unbroken(proof)] if proof else [])]


def _reason_of_size(data: ModelData) -> list[str]:
    choice = data.path.choice
    if choice is None:
        unknown = "How well it predicts new rows was not measured; expect less than on the training data."
        return [unknown] if data.size and data.evaluation is None else []
    message = unbroken(choice.message_for(ON_PAGE))
    if not choice.is_of(data.size):
        if choice.by_folds and choice.scored:
            return [unbroken(choice.comparison(data.size, ON_PAGE))]
        return [f"This size was set by hand. Among the sizes compared, {message}"]
    measured = choice.by_folds or data.evaluation is not None
    text = message if measured else f"{message} How well it predicts new rows was not measured."
    return [text, *([unbroken(choice.smaller)] if choice.smaller else [])]


def selected_model(data: ModelData) -> Markup:
    """The table of selected features, and how to read it."""
    path, model = data.path, data.path[data.size]
    notes = []
    if data.size:
        about = "" if model.importance_is_exact else "approximately "
        lost = "the rise of the objective, ridge included, as a share of the empty model's," if model.shrinkage else ""
        notes.append(
            f"Importance is {about}{lost or 'the share explained that is lost'} if the {data.noun} is dropped and the "
            "others are refitted (drop-column importance)."
            + (" The fit ended before all were computed." if np.isnan(model.importance).any() else "")
        )
    if data.size and path.two_classes is not None:
        notes.append(
            f"A positive coefficient makes {path.two_classes[1]} more likely, a negative one {path.two_classes[0]}."
        )
    if data.size and data.classes is not None and data.formula is not None and data.formula.thresholds is not None:
        first, last = data.classes[0], data.classes[-1]
        notes.append(
            f"A positive coefficient makes classes towards {last} more likely, a negative one those towards {first}."
        )
        between = thresholds_text(data.classes, data.formula.thresholds).replace("-", MINUS)
        notes.append(f"The thresholds that the score is compared with: {between}.")
    if path.output_names is not None and len(path.output_names) > MOST_OUTPUTS:
        notes.append(f"The coefficients of the first {MOST_OUTPUTS} of {len(path.output_names)} outputs are shown.")
    if path.output_names is None and any(len(path.columns_of(data.size, unit)) > MOST_IN_GROUP for unit in model.units):
        notes.append(
            f"Of large {path.counted}s the largest coefficients are shown; the next table has all {data.part}s."
        )
    forced = [path.unit_name(unit) for unit in model.units if int(unit) in path.forced]
    if forced:
        were = "was" if len(forced) == 1 else "were"
        notes.append(f"{enumerate_names(forced)} {were} {FORCED_IN}, not selected.")
    if data.path.counts_categories(data.size):
        notes.append(COUNTED_ONCE)
    notes += encoding_notes(data.path.raw_columns(data.size))
    if data.size:
        what = "the prediction" if data.predicts_scores else "the linear score"
        what = f"the logarithm of the hazard, the risk of {data.event} at any time," if data.predicts_hazard else what
        notes.append(
            f"A coefficient is the change in {what} when the {data.part} increases by one unit and the others stay "
            "fixed."
        )
    notes += data.about_predictions
    held = [name for name, at in zip(path.names(data.size), model.held, strict=True) if at]
    if held:
        notes.append(f"{held_at_bound(held)}: the fit would go beyond if the bounds let it.")
    if model.diverged:
        notes.append(
            "Some coefficients diverge, as they do when the classes are separable, so their magnitudes mean little; "
            "a small ridge keeps them finite."
        )
    caption = f"The selected model: {count(data.size, data.noun)} of {data.candidates}"
    shape, rows = layout(path, [data.size]), table_rows(path, data.size, [data.size])
    return _section("The model", notes, table(caption, shape.heads, rows, shape.n_names), "model")


def _section(title: str, notes: Sequence[str], content: Markup, css_class: str = "") -> Markup:
    """A heading and notes, with the content beside them if the window is wide enough."""
    text = tag("div", tag("h2", title), *(tag("p", note, class_="note") for note in notes))
    return tag("section", text, tag("div", content), class_=f"split {css_class}".strip())


def all_sizes(data: ModelData, records: Sequence[dict[str, Any]]) -> Markup:
    """A row for every size."""
    choice, has_costs = data.path.choice, data.path.prices is not None
    heads = ["Size", *([] if choice is None else [score_head(choice)]), "Explained on the training data"]
    heads += [*(["Cost"] if has_costs else []), "Added", "Removed"]
    body = []
    for record in records:
        size = f"{record['size']} ({data.chosen})" if record["size"] == data.size else str(record["size"])
        numbers = [*([] if choice is None else [record["score"]]), record["explained"]]
        numbers += [record["cost"]] if has_costs else []
        body.append([size, *numbers, _name_list(record["entered"]), _name_list(record["left"])])
    n_sizes = len(data.path.sizes)
    caption = "Every size" if len(records) == n_sizes else f"{len(records)} of {n_sizes} sizes"
    notes = [f"Added and removed are the {data.noun}s that differ from the row above.", *_about_scores(data)]
    content = table(f"{caption}: what it explains, and which {data.noun}s it adds and removes", heads, body)
    return _section("All sizes", notes, content, "sizes")


def _about_scores(data: ModelData) -> list[str]:
    """Why scores of the table may differ from those of the sentence on the choice."""
    choice = data.path.choice
    if choice is None or choice.surface is None or choice.surface.mean[:, :, 0].size < 2:
        return []
    return [
        f"All sizes have the ridge of the chosen one here, {choice.surface.ridge:.3g}. At a ridge of its own a size "
        "may score higher, as the chart of sizes and ridges shows; the best of all candidates is sought there."
    ]


def _name_list(names: list[str]) -> Markup:
    more = [f"and {len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    return Markup(", ".join([*map(name_tag, names[:MOST_NAMES]), *more]))


def survival(data: ModelData) -> Markup:
    """Survival by groups of predicted risk, of test rows or else those of the fit, for models of times to an event."""
    curves = data.findings.test_survival or data.survival
    if curves is None:
        return Markup("")
    tested = curves is data.findings.test_survival
    rows = "test rows" if tested else "rows of the training data"
    notes = [
        f"The {rows} in groups of about equal size by their predicted risk; rows of equal risk are in one group. "
        f"Steps show the share of a group that was free of {data.event} (Kaplan and Meier's estimate), "
        "dashed lines what the model predicts.",
        "Groups that lie far apart, and dashes that follow their steps, are signs of a good model"
        f"{'' if tested else '; on new rows both are somewhat worse'}.",
    ]
    return _section("Survival by risk", notes, survival_content(curves), "survival")


def stability(data: ModelData) -> Markup:
    """How often each feature was selected on random subsamples of the rows."""
    found = data.stability
    if found is None:
        return Markup("")
    order = sorted(found.frequency.items(), key=lambda item: (-item[1], item[0]))[:MOST_STABLE]
    in_model = {*data.path.names(data.size), *data.unit_names(data.size)}
    body = [
        [name, FORCED_IN if name in found.forced else _bar(share), "yes" if name in in_model else "no"]
        for name, share in order
    ]
    note = (
        f"The search for {count(found.size, data.noun)} was repeated on {found.n_resamples} random subsamples of the "
        f"rows. A {data.noun} that is selected nearly every time is a stable choice; one that is selected only "
        "sometimes has close alternatives."
    )
    heads = [data.noun.capitalize(), "Selected", "In the model"]
    return _section("Stability", [note], table(f"How often each {data.noun} was selected", heads, body), "stability")


def _bar(share: float) -> Markup:
    width = f"width:{100 * min(max(share, 0.0), 1.0):.0f}%"
    bar = tag("span", tag("span", "", style=width), class_="bar", aria_hidden="true")
    return joined([bar, tag("span", whole_percent(share), class_="share")])


def alternatives(data: ModelData) -> Markup:
    """The best replacement of each selected feature."""
    if not data.alternatives:
        return Markup("")
    body = [
        [one["feature"], name_tag(one["replacement"]), percent(one["explained_lost"], 2)] for one in data.alternatives
    ]
    shrunken = data.alternatives.shrunken
    lost = "how much the objective rises" if shrunken else "the share explained on the training data that each loses"
    notes = [
        f"If a selected {data.noun} is not available, these are its best replacements, and {lost}.",
        f"A number close to the importance of the {data.noun} means that nothing can replace it.",
    ]
    notes += data.alternatives.notes
    heads = [data.noun.capitalize(), "Replacement", data.alternatives.lost.capitalize()]
    return _section("Alternatives", notes, table("Replacements and what they lose", heads, body), "alternatives")


def settings(data: ModelData) -> Markup:
    """The candidates, the parameters of the estimator, and why the search stopped."""
    path = data.path
    lines: list[tuple[str, str | Markup]] = [("Estimator", data.estimator)]
    lines += [(f"Candidate {data.noun}s", str(data.candidates))]
    if path.group_labels is not None:
        lines.append((f"Candidate {data.part}s in them", str(path.n_features)))
    if data.classes is not None:
        lines.append(("Classes", name_tag(enumerate_names(data.classes, 20))))
    elif path.output_names is not None:
        lines.append(("Outputs", name_tag(enumerate_names(path.output_names, 20))))
    if path.column_names is None:
        lines.append(("Column names", "none: x0 is the first column of the table, x3 the fourth"))
    lines += [(name, tag("code", text)) for name, text in data.parameters.items()]
    reason = "All sizes to be compared were reached." if path.choice and path.stop is Stop.SIZE else path.stop.message
    lines += [("Why the search stopped", reason), ("pauca version", __version__)]
    content = joined(tag("div", tag("dt", name), tag("dd", value)) for name, value in lines)
    notes = ["This page holds no rows of the data.", "Parameters that are not listed have their default values."]
    return _section("Data and parameters", notes, tag("dl", content, class_="settings"))
