"""The slider over the sizes, and the curves beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pauca.report.markup import Markup, joined, tag
from pauca.report.model_data import ModelData
from pauca.report.sizes import score_head
from pauca.results.choice import EXPLAINED

CHARTS = {
    "accuracy": "Accuracy against size",
    "coefficients": "Coefficients against size",
}
EXPLAINED_MEANS = (
    "Explained is the share of a constant prediction's error that the model removes: "
    "100\N{NO-BREAK SPACE}% is perfect, 0\N{NO-BREAK SPACE}% is no better than a constant."
)
INSTEAD = "The numbers are in the table of all sizes below."
RISES = "On the data of the fit it always rises with size; rows held out from the fit are the honest measure."
PARTS = "Units differ, so every curve of coefficients is drawn in parts of the largest value it has at any size."


def which_size(facts: ModelData, found: Sequence[dict[str, Any]], charts: Sequence[str]) -> Markup:
    """The slider over the sizes, what the size it stands at is like, and the curves."""
    start = [record["size"] for record in found].index(facts.size)
    slider = Markup(
        f'<input type="range" id="size" min="0" max="{len(found) - 1}" step="1" value="{start}" '
        'aria-describedby="size-help">'
    )
    facts_here = [("On the data of the fit", "explained")]
    if facts.path.choice is not None:
        facts_here.insert(0, (score_head(facts.path.choice), "score"))
    if facts.path.prices is not None:
        facts_here.append(("Total price", "price"))
    lines = joined(
        tag("div", tag("dt", name), tag("dd", "", id=f"here-{key}"))
        for name, key in [*facts_here, ("Came in", "entered"), ("Went out", "left")]
    )
    control = tag(
        "div",
        tag("label", f"Number of {facts.noun}s", for_="size"),
        tag("output", found[start]["label"], for_="size", id="size-now"),
        tag("button", "\N{MINUS SIGN}", type="button", id="fewer", aria_label="One size smaller"),
        slider,
        tag("button", "+", type="button", id="more", aria_label="One size larger"),
        tag("button", "Back to the chosen size", type="button", id="back"),
        class_="control",
    )
    help_text = "Move the slider, or use the arrow keys, to see the best model found of every size."
    here = tag(
        "div",
        tag("p", "", id="here-compared", aria_live="polite", class_="compared"),
        tag("dl", lines, class_="here"),
        tag("div", "", id="here-table"),
        class_="panel",
    )
    drawn = joined(
        tag(
            "figure",
            tag("figcaption", tag("span", _chart_title(facts, name)), *_key(facts, name)),
            tag(
                "div",
                "",
                id=f"chart-{name}",
                class_="chart",
                role="img",
                aria_label=f"{_chart_title(facts, name)}. {INSTEAD}",
            ),
        )
        for name in charts
    )
    return tag(
        "section",
        tag("h2", f"How many {facts.noun}s?"),
        tag("noscript", tag("p", "The slider and the curves need JavaScript; the tables on this page do not.")),
        tag("p", help_text, id="size-help", class_="screen"),
        control,
        tag("div", here, tag("div", drawn, class_="charts"), class_="beside"),
        tag("p", f"{EXPLAINED_MEANS} {RISES} {PARTS}", class_="note"),
        class_="explorer",
    )


def _chart_title(facts: ModelData, chart: str) -> str:
    choice = facts.path.choice
    if chart != "score" or choice is None:
        return CHARTS[chart]
    return f"{score_head(choice)} against size" + ("" if choice.by_folds else " (lower is better)")


def _key(facts: ModelData, chart: str) -> list[Markup]:
    """What the lines of a chart are, where they are not named in it."""
    choice = facts.path.choice
    if choice is None or not choice.by_folds or chart != ("accuracy" if choice.scoring == EXPLAINED else "score"):
        return []
    lines = [("held", "held-out rows, ± one standard error"), ("fit", "data of the fit")]
    lines = lines if chart == "accuracy" else lines[:1]
    return [tag("span", tag("span", "", class_=f"line {kind}", aria_hidden="true"), words) for kind, words in lines]
