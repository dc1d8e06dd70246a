"""A calculator in the page: type the values of a row, see its prediction. The page's script computes it.

It asks for the columns of the table that the model uses: numbers are typed, categories and zeros and ones are lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pauca.report.formatting import Markup, joined, name_tag, short_number, tag
from pauca.report.model_data import ModelData
from pauca.results.data_summary import ColumnValues
from pauca.tables import ColumnEncoding, Term
from pauca.tables.encoding import LEVEL, MISSING

# A form with more fields than this is of no use.
MOST_FIELDS = 60

LINKS = {"identity", "exp", "inverse", "log_hazard", "log_loss", "softmax", "cumulative", None}

MISSING_OPTION = "(missing)"


@dataclass
class Field:
    """A column of the table that the form asks for, and the terms of the formula that it gives values to."""

    name: str
    encoding: ColumnEncoding | None
    values: ColumnValues | None = None
    terms: list[tuple[int, Term]] = field(default_factory=list)

    @property
    def options(self) -> list[str]:
        """What a list offers; empty where a number is typed."""
        if self.encoding is not None and self.encoding.levels is not None:
            levels = sorted(self.encoding.levels, key=_order)
            return [str(level) for level in levels] + ([MISSING_OPTION] if self.may_be_missing else [])
        if self.values is not None and self.values.binary:
            return ["0", "1", *([MISSING_OPTION] if self.may_be_missing else [])]
        return []

    @property
    def may_be_missing(self) -> bool:
        """Whether the model predicts rows in which the column is missing."""
        return self.encoding is not None and self.encoding.fill is not None

    @property
    def start(self) -> str:
        """What the field holds at first: the most frequent level, or the median."""
        if self.encoding is not None and self.encoding.levels is not None:
            return str(self.encoding.baseline)
        median = 0.0 if self.values is None else self.values.median
        return f"{round(median) if self.options else median:.6g}"

    @property
    def hint(self) -> str:
        """What stands below the field."""
        empty = ["empty: missing"] if self.may_be_missing and not self.options else []
        if self.encoding is not None and self.encoding.levels is not None:
            return f"baseline: {self.encoding.baseline}"
        if self.values is None or self.options:
            return "; ".join(empty)
        seen = f"{short_number(self.values.lowest)} to {short_number(self.values.highest)} in the fit"
        return "; ".join([seen, *empty])

    def script_data(self) -> dict[str, Any]:
        """The terms as the script fills them in: from the number, or from the place in the list."""
        options = self.options
        terms = []
        for place, term in self.terms:
            wanted = None
            if term.kind == LEVEL:
                wanted = options.index(str(term.level))
            terms.append([place, term.kind, wanted, term.fill])
        numeric = self.encoding is None or self.encoding.levels is None
        range_ = None if self.values is None or options else [self.values.lowest, self.values.highest]
        return {
            "terms": terms,
            "list": bool(options),
            "numbers": [0, 1] if numeric and options else None,
            "missing": len(options) - 1 if MISSING_OPTION in options else None,
            "optional": self.may_be_missing,
            "range": range_,
        }


def _order(level: Any) -> tuple[bool, Any]:
    return isinstance(level, str), level


def calculator_data(data: ModelData) -> dict[str, Any] | None:
    """What the script needs; None where the model has no formula, or too many features."""
    formula = data.formula
    if formula is None or not data.size or len(formula.names) > MOST_FIELDS or formula.link not in LINKS:
        return None
    return {
        "coef": formula.coef.tolist(),
        "intercept": formula.intercept.tolist(),
        "link": formula.link,
        "classes": None if formula.classes is None else [str(label) for label in formula.classes],
        "outputs": formula.outputs,
        "thresholds": None if formula.thresholds is None else formula.thresholds.tolist(),
        "threshold": 0.5 if data.evaluation is None else data.evaluation.threshold,
        "fields": [one.script_data() for one in _fields(data)],
        "event": data.event,
        "baseline": None if data.baseline is None else {"times": data.baseline.times, "hazard": data.baseline.hazard},
    }


def _fields(data: ModelData) -> Sequence[Field]:
    """A field for every column of the table that the formula uses."""
    formula = data.formula
    assert formula is not None
    encodings = {one.name: one for one in data.path.raw_columns(data.size)}
    values = {} if data.data_summary is None else data.data_summary.values
    found: dict[str, Field] = {}
    for place, (column, term) in enumerate(zip(formula.columns, formula.terms, strict=True)):
        one = found.setdefault(term.raw, Field(term.raw, encodings.get(term.raw)))
        one.terms.append((place, term))
        if term.kind not in (LEVEL, MISSING):
            one.values = values.get(column)
    return list(found.values())


def calculator(data: ModelData) -> Markup:
    """The section; empty where there is nothing to compute."""
    if calculator_data(data) is None:
        return Markup("")
    fields = _fields(data)
    known = any(one.values is not None for one in fields)
    typed = any(not one.options for one in fields)
    has_categories = any(one.encoding is not None and one.encoding.levels is not None for one in fields)
    at_first = [
        *(["the median of a number"] if known else []),
        *(["the most frequent level"] if has_categories else []),
    ]
    notes = [
        "Type the values of a row; the prediction follows. Nothing leaves this page.",
        *([f"At first the fields hold {' and '.join(at_first)} in the rows of the fit."] if at_first else []),
        *([] if known or not typed else ["Numbers start at 0, since medians and ranges are not known of this model."]),
        *data.about_predictions,
        *(_about_hazards(data) if data.predicts_hazard else []),
        "A model is not a diagnosis or a decision: it knows these columns and nothing else.",
    ]
    text = tag("div", tag("h2", "Calculator"), *(tag("p", note, class_="note") for note in notes))
    result = tag("p", "", id="calculated", class_="result", aria_live="polite")
    outside = tag("p", "", id="outside", class_="caution", aria_live="polite", hidden="")
    asked = joined([*(_form_field(place, one) for place, one in enumerate(fields)), *_when(data)])
    form = tag("div", asked, class_="fields")
    return tag("section", text, tag("div", form, result, outside), class_="split calculator screen", id="calculator")


def _about_hazards(data: ModelData) -> list[str]:
    """What is predicted of times to an event."""
    ratio = "The risk at any time (hazard) is compared with that of the row that the fields hold at first."
    if data.baseline is None:
        return [ratio]
    return [
        f"The probability is that of {data.event} by the time that is typed, by Breslow's estimate.",
        ratio,
    ]


def _when(data: ModelData) -> list[Markup]:
    """For times to an event: fields for the time that the probability is about, and for the stratum."""
    baseline = data.baseline
    if baseline is None:
        return []
    known = None if data.evaluation is None else data.evaluation.horizon
    start = baseline.middle if known is None else known
    hint = f"last event of the fit: {short_number(float(f'{baseline.last:.4g}'))}"
    until = Markup(
        f'<input type="number" step="any" min="0" max="{baseline.last:.17g}" id="until" value="{start:.6g}" '
        'aria-describedby="until-hint">'
    )
    label = tag("label", "by time", for_="until")
    found = [tag("div", label, until, tag("span", hint, id="until-hint", class_="hint"))]
    if baseline.strata:
        options = joined(tag("option", name, value=str(place)) for place, name in enumerate(baseline.strata))
        found.append(tag("div", tag("label", "stratum", for_="stratum"), tag("select", options, id="stratum")))
    return found


def _form_field(place: int, one: Field) -> Markup:
    """A labelled field for a number, or a list of levels."""
    identity, hint = f"value-{place}", f"range-{place}"
    if one.options:
        options = joined(
            tag("option", text, value=str(number), **({"selected": ""} if text == one.start else {}))
            for number, text in enumerate(one.options)
        )
        control = tag("select", options, id=identity, aria_describedby=hint)
    else:
        control = Markup(
            f'<input type="number" step="any" id="{identity}" value="{one.start}" aria-describedby="{hint}">'
        )
    label = tag("label", name_tag(one.name), for_=identity)
    return tag("div", label, control, tag("span", one.hint, id=hint, class_="hint"))
