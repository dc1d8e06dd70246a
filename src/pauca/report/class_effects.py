"""For more than two classes: which features speak for each class and which against it, in words."""

from __future__ import annotations

import numpy as np

from pauca.report.effects import change_text, ratio_text, step_of
from pauca.report.formatting import NONE, SPACE, Markup, joined, name_tag, table, tag
from pauca.report.model_data import ModelData

# Features named on each side of a class; those with less than this share of the strongest effect are not.
MOST_NAMED = 4
LEAST_SHARE = 0.1

NOTES = (
    "For each class the features that change its probability most, the strongest first.",
    "The number is what a change multiplies the probability of the class by, compared with that of all classes "
    "on average (their geometric mean), while the other features stay as they are.",
)


def class_effects(data: ModelData) -> Markup:
    """The section; empty where there are not more than two classes with probabilities."""
    formula = data.formula
    if formula is None or formula.link != "softmax" or not data.size:
        return Markup("")
    steps = np.array([step_of(data, place) for place in range(len(formula.names))])
    # A number that is added to the scores of all classes changes no probability.
    changes = (formula.coef - formula.coef.mean(axis=0)) * steps
    rows = [
        [name, _named(data, row), _named(data, row, against=True)]
        for name, row in zip(data.classes or [], changes, strict=True)
    ]
    content = table(
        "What multiplies the probability of each class", ["Class", "More likely", "Less likely"], rows, n_names=1
    )
    text = tag("div", tag("h2", "What speaks for each class"), *(tag("p", note, class_="note") for note in NOTES))
    return tag("section", text, tag("div", content), class_="split effects classes")


def _named(data: ModelData, changes: np.ndarray, *, against: bool = False) -> str:
    """The strongest features of one side of a class, with the change that each is about and its ratio."""
    assert data.formula is not None
    sided = -changes if against else changes
    order = [int(place) for place in np.argsort(-sided, kind="stable")[:MOST_NAMED]]
    strong = [place for place in order if sided[place] > LEAST_SHARE * np.abs(changes).max()]
    if not strong:
        return NONE
    ratios = np.exp(np.clip(changes, -20.0, 20.0))
    return joined(
        tag("div", name_tag(_what(data, place)), f": {ratio_text(float(ratios[place]))}{SPACE}times")
        for place in strong
    )


def _what(data: ModelData, place: int) -> str:
    assert data.formula is not None
    term = data.formula.terms[place]
    return f"{term.raw if data.formula.is_raw else data.formula.names[place]}, {change_text(data, place)}"
