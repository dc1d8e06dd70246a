"""A calculator in the page: type the values of a row, see its prediction. The page's script computes it."""

from __future__ import annotations

from typing import Any

from pauca.report.formatting import Markup, joined, name_tag, short_number, tag
from pauca.report.model_data import ModelData

# A form with more fields than this is of no use.
MOST_FIELDS = 60

LINKS = {"identity", "exp", "inverse", "log_loss", "softmax", "cumulative", None}


def calculator_data(data: ModelData) -> dict[str, Any] | None:
    """What the script needs; None where the model has no formula, or too many features."""
    formula = data.formula
    if formula is None or not data.size or len(formula.names) > MOST_FIELDS or formula.link not in LINKS:
        return None
    columns = data.columns
    return {
        "coef": formula.coef.tolist(),
        "intercept": formula.intercept.tolist(),
        "link": formula.link,
        "classes": None if formula.classes is None else [str(label) for label in formula.classes],
        "outputs": formula.outputs,
        "thresholds": None if formula.thresholds is None else formula.thresholds.tolist(),
        "threshold": 0.5 if data.evaluation is None else data.evaluation.threshold,
        "ranges": None if columns is None else [[column.lowest, column.highest] for column in columns],
    }


def calculator(data: ModelData) -> Markup:
    """The section; empty where there is nothing to compute."""
    if calculator_data(data) is None:
        return Markup("")
    assert data.formula is not None
    fields = joined(_field(data, place, name) for place, name in enumerate(data.formula.names))
    known = data.columns is not None
    notes = [
        "Type the values of a row; the prediction follows. Nothing leaves this page.",
        *(["At first every value is the median of the rows of the fit."] if known else []),
        "A model is not a diagnosis or a decision: it knows these features and nothing else.",
    ]
    text = tag("div", tag("h2", "Calculator"), *(tag("p", note, class_="note") for note in notes))
    result = tag("p", "", id="calculated", class_="result", aria_live="polite")
    outside = tag("p", "", id="outside", class_="caution", aria_live="polite", hidden="")
    form = tag("div", fields, class_="fields", id="calculator")
    return tag("section", text, tag("div", form, result, outside), class_="split calculator screen")


def _field(data: ModelData, place: int, name: str) -> Markup:
    """A labelled field for a number."""
    value, hint = 0.0, ""
    if data.columns is not None:
        column = data.columns[place]
        value, hint = column.median, f"{short_number(column.lowest)} to {short_number(column.highest)} in the fit"
    field = Markup(
        f'<input type="number" step="any" id="value-{place}" value="{value:.6g}" aria-describedby="range-{place}">'
    )
    label = tag("label", name_tag(name), for_=f"value-{place}")
    return tag("div", label, field, tag("span", hint, id=f"range-{place}", class_="hint"))
