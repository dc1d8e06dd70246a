"""The sections of the page, in the order in which a reader asks: what, how good, why, how sure, from what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pauca.report.formatting import count, listed, percent, short_number, unbroken
from pauca.report.markup import Markup, joined, name_of, table, tag
from pauca.report.model_data import ModelData
from pauca.report.model_table import MOST_OUTPUTS, layout, rows
from pauca.report.sizes import score_head, score_text
from pauca.results.choice import EXPLAINED
from pauca.search.stop import Stop
from pauca.version import __version__

MOST_STABLE = 30


def header(facts: ModelData, title: str) -> Markup:
    """Title, the answer in plain words, and the few numbers that matter."""
    figures = [(f"{facts.noun}s chosen", f"{facts.size} of {facts.candidates}"), *_goodness(facts)]
    if facts.path.prices is not None:
        figures.append(("total price", short_number(facts.path.cost(facts.size))))
    cards = joined(tag("div", tag("dt", name), tag("dd", value)) for name, value in figures)
    lead, *why = _lead(facts)
    known = [] if title == facts.task else [tag("p", f"{facts.task}.", class_="task")]
    return tag(
        "header", tag("h1", name_of(title)), *known, tag("p", lead, class_="lead"), tag("dl", cards, class_="cards"),
        *(tag("p", text) for text in why),
    )  # fmt: skip


def _goodness(facts: ModelData) -> list[tuple[str, str]]:
    choice = facts.path.choice
    fit = ("explained on the data of the fit", percent(facts.path.explained(facts.size)))
    scored = None if choice is None or not choice.by_folds else choice.position(facts.size)
    if choice is None or scored is None:
        return [fit]
    text = score_text(choice, facts.size) or ""
    head = score_head(choice)
    return [(head[0].lower() + head[1:] if choice.scoring == EXPLAINED else head, text), fit]


def _lead(facts: ModelData) -> list[str]:
    choice = facts.path.choice
    names = _most_valuable_first(facts)
    most = 12 if sum(map(len, names)) <= 150 else 5
    order = ", the most valuable first" if len(names) > 1 else ""
    first = f"The model uses {listed(names, most)}{order}." if names else "The model always predicts the same."
    sentence = "" if choice is None else unbroken(choice.message)
    if choice is None:
        unseen = "How good it is on rows it has not seen was not measured; it will be somewhat less good there."
        return [first, unseen] if names else [first]
    if facts.size != choice.chosen:
        return [first, f"This size was taken by hand. Of the sizes compared, {sentence}"]
    if not choice.by_folds:
        return [first, f"{sentence} How good it is on rows it has not seen was not measured."]
    return [first, sentence]


def _most_valuable_first(facts: ModelData) -> list[str]:
    path, model = facts.path, facts.path[facts.size]
    names = path.names(facts.size) if path.group_labels is None else [str(label) for label in path.groups(facts.size)]
    return [names[place] for place in np.argsort(-model.importance, kind="stable")]


def the_model(facts: ModelData) -> Markup:
    """The table of chosen features, and how to read it."""
    path, model = facts.path, facts.path[facts.size]
    about = "" if model.importance_is_exact else "about "
    notes = []
    if facts.size:
        notes.append(
            f"Worth is {about}how much of the share explained would be lost if the {facts.noun} were left out and the "
            "others fitted again."
        )
    if facts.size and path.two_classes is not None:
        notes.append(f"Positive coefficients speak for {path.two_classes[1]}, negative ones for {path.two_classes[0]}.")
    if path.output_names is not None and len(path.output_names) > MOST_OUTPUTS:
        notes.append(f"The coefficients of the first {MOST_OUTPUTS} of {len(path.output_names)} outputs are shown.")
    what = (
        "the prediction" if facts.classes is None and facts.settings.get("loss") != "poisson" else "the model's score"
    )
    if facts.size:
        notes.append(
            f"A coefficient says by how much {what} changes when the feature rises by one unit and the others stay."
        )
    if model.diverged:
        notes.append(
            "Some coefficients would grow on, as where rows can be told apart without error: their sizes say little."
        )
    caption = f"The chosen model: {count(facts.size, facts.noun)} of {facts.candidates}"
    shape = layout(path)
    content = table(caption, shape.heads, rows(path, facts.size), shape.n_names)
    return _section("The model", notes, content)


def _section(title: str, notes: Sequence[str], content: Markup, **attributes: str) -> Markup:
    """A heading and what to know, with the content beside it where there is room."""
    words = tag("div", tag("h2", title), *(tag("p", note, class_="note") for note in notes))
    return tag("section", words, tag("div", content), class_=" ".join(["split", *attributes.values()]))


def all_sizes(facts: ModelData, found: Sequence[dict[str, Any]]) -> Markup:
    """A row for every size."""
    choice, priced = facts.path.choice, facts.path.prices is not None
    heads = ["Size", *([] if choice is None else [score_head(choice)]), "Explained on the data of the fit"]
    heads += [*(["Price"] if priced else []), "Came in", "Went out"]
    body = []
    for record in found:
        size = f"{record['size']} (chosen)" if record["size"] == facts.size else str(record["size"])
        numbers = [*([] if choice is None else [record["score"]]), record["explained"]]
        numbers += [record["price"]] if priced else []
        body.append([size, *numbers, _names(record["entered"]), _names(record["left"])])
    caption = "Every size" if len(found) == len(facts.path.sizes) else f"{len(found)} of {len(facts.path.sizes)} sizes"
    notes = [f"{facts.noun.capitalize()}s that come in and go out do so as against the size above."]
    content = table(f"{caption}: how good it is, and what comes in and goes out", heads, body)
    return _section("All sizes at a glance", notes, content, kind="sizes")


def _names(names: list[str]) -> Markup:
    most = 12
    pieces = [name_of(name) for name in names[:most]]
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return Markup(", ".join([*pieces, *more]))


def stability(facts: ModelData) -> Markup:
    """How often each feature was chosen when rows were drawn anew."""
    found = facts.stability
    if found is None:
        return Markup("")
    order = sorted(found.frequency.items(), key=lambda item: (-item[1], item[0]))[:MOST_STABLE]
    chosen = set(facts.path.names(facts.size))
    if facts.path.group_labels is not None:
        chosen |= {str(label) for label in facts.path.groups(facts.size)}
    body = [[name, _bar(share), "yes" if name in chosen else "no"] for name, share in order]
    of = count(found.size, facts.noun)
    text = (
        f"The search for {of} was repeated on {found.n_resamples} samples of the rows. A {facts.noun} that is chosen "
        "nearly always is there for a reason; one that comes and goes has others that can take its place."
    )
    heads = [facts.noun.capitalize(), "Chosen", "In the model"]
    content = table(f"How often each {facts.noun} was chosen", heads, body)
    return _section("How sure is the choice?", [text], content, kind="stability")


def _bar(share: float) -> Markup:
    width = f"width:{100 * min(max(share, 0.0), 1.0):.0f}%"
    return joined(
        [
            tag("span", tag("span", "", style=width), class_="bar", aria_hidden="true"),
            tag("span", percent(share, 0), class_="share"),
        ]
    )


def alternatives(facts: ModelData) -> Markup:
    """What could stand in for the chosen features."""
    found = facts.alternatives
    if not found:
        return Markup("")
    body = [[one.feature, name_of(one.replacement), percent(one.explained_lost, 2)] for one in found]
    notes = [
        f"If a chosen {facts.noun} cannot be had, these are the best in its place, and what is lost of the share "
        "explained on the data of the fit.",
        f"Where that is nearly all the {facts.noun} is worth, nothing can stand in for it.",
    ]
    content = table("Replacements and what they cost", [facts.noun.capitalize(), "Replacement", "Explained lost"], body)
    return _section("What could stand in?", notes, content, kind="alternatives")


def settings(facts: ModelData) -> Markup:
    """What the model was made from, and how."""
    path = facts.path
    known: list[tuple[str, str | Markup]] = [("Kind of model", facts.kind)]
    known += [("Features to choose from", str(path.n_features))]
    if path.group_labels is not None:
        known.append(("Groups to choose from", str(len(path.group_labels))))
    if facts.classes is not None:
        known.append(("Classes", name_of(listed(facts.classes, 20))))
    elif path.output_names is not None:
        known.append(("Predicted", name_of(listed(path.output_names, 20))))
    if path.column_names is None:
        known.append(("Names", "the table had no names; x3 is its fourth column, counting from x0"))
    known += [(name, tag("code", text)) for name, text in facts.settings.items()]
    ended = "All sizes to be compared were reached." if path.choice and path.stop is Stop.SIZE else path.stop.message
    known += [("Why the search ended", ended), ("pauca", __version__)]
    lines = joined(tag("div", tag("dt", name), tag("dd", value)) for name, value in known)
    notes = ["The rows themselves are not in this file.", "Settings that are not listed are the usual ones."]
    return _section("Data and settings", notes, tag("dl", lines, class_="settings"))
