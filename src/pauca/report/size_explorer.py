"""The sizes of a path on the page: a record for each, and the slider that steps through them beside the charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pauca.report.calculator import calculator_data
from pauca.report.formatting import (
    MINUS,
    NONE,
    SPACE,
    Markup,
    count,
    joined,
    number,
    percent,
    points,
    short_number,
    tag,
)
from pauca.report.model_data import ModelData, layout, table_rows
from pauca.results.choice import EXPLAINED, Choice
from pauca.results.path import Path
from pauca.results.plots import NAMED_LINES

# Of more sizes than this only some are shown: a page of ten thousand would be slow to load and to read.
MOST_SIZES = 300
# Cells of all tables together, which keeps the page below one and a half megabytes.
MOST_CELLS = 40_000

CHARTS = {
    "explained": "Share explained by size",
    "coefficients": "Coefficients by size",
    "ridges": "Held-out score by size and ridge (dark: good; dots: as good as the best; square: chosen)",
}
CHART_TEXT = "The numbers are in the table of all sizes below."
NOTE = (
    f"Explained is the share of a constant prediction's error that the model removes: 100{SPACE}% is perfect, "
    f"0{SPACE}% is no better than a constant. On the training data it grows with size as a rule; rows held out of the "
    "fit show how well new rows are predicted. Added and removed compare a size with the one before. Units differ "
    "between features, so every coefficient is drawn relative to its largest value at any size."
)
OF_FOLDS = (
    "Every fold of the rows chooses its own {nouns}, which may differ from those listed: a score on held-out rows is "
    "that of searching models of this size, not of these very {nouns}."
)


def shown_sizes(data: ModelData) -> list[int]:
    """All sizes, or if there are too many, the chosen and the best one and others at equal distances."""
    sizes = data.path.sizes
    if len(sizes) <= MOST_SIZES:
        return sizes
    indices = np.linspace(0, len(sizes) - 1, MOST_SIZES - 2).round().astype(int)
    always = {data.size} if data.path.choice is None else {data.size, data.path.choice.best}
    return sorted({*(sizes[index] for index in indices), *always})


def size_records(data: ModelData) -> list[dict[str, Any]]:
    """A record for each size that is shown; all numbers are formatted."""
    path, sizes = data.path, shown_sizes(data)
    most = _most_rows(path, sizes)
    before: list[str] = []
    records = []
    for size in sizes:
        names = data.unit_names(size)
        cells = table_rows(path, size, path.sizes, most)
        n_features = len(path[size].support)
        n_listed = n_features if most is None else min(most, n_features)
        note = f"The {n_listed} most important of {n_features} features are listed." if n_listed < n_features else ""
        records.append(
            {
                "size": size,
                "label": count(size, data.noun),
                "entered": [name for name in names if name not in set(before)],
                "left": [name for name in before if name not in set(names)],
                "explained": percent(path.explained(size)),
                "score": score_text(path.choice, size),
                "cost": None if path.prices is None else short_number(path.cost(size)),
                "compared": _comparison(data, size),
                "rows": cells,
                "note": note,
            }
        )
        before = names
    return records


def number_names(records: list[dict[str, Any]], n_names: int, names: list[str]) -> list[dict[str, Any]]:
    """The records with indices in place of names, which are appended to ``names``: the page holds each name once."""
    indices = {name: index for index, name in enumerate(names)}

    def index_of(name: str) -> int:
        if name not in indices:
            indices[name] = len(names)
            names.append(name)
        return indices[name]

    return [
        {
            **record,
            "entered": [index_of(name) for name in record["entered"]],
            "left": [index_of(name) for name in record["left"]],
            "rows": [[*map(index_of, cells[:n_names]), *cells[n_names:]] for cells in record["rows"]],
        }
        for record in records
    ]


def score_head(choice: Choice) -> str:
    """What the scores are called."""
    if not choice.by_folds:
        return choice.criterion_name
    return "Explained on held-out rows" if choice.scoring == EXPLAINED else f"{choice.scoring} on held-out rows"


def score_text(choice: Choice | None, size: int) -> str | None:
    """The score of a size with its standard error."""
    if choice is None:
        return None
    index = choice.position(size)
    if index is None:
        return NONE
    mean = float(choice.mean[index])
    if choice.standard_error is None:
        return number(mean)
    error = float(choice.standard_error[index])
    if choice.scoring == EXPLAINED:
        limit = f", at most 100{SPACE}%" if mean + error > 1 else ""
        return f"{percent(mean)} (±{SPACE}{points(error)}{limit})"
    return f"{number(mean, 4)} (±{SPACE}{number(error, 2)})"


def _comparison(data: ModelData, size: int) -> str:
    """What a size gains and loses compared with the chosen one."""
    if size == data.size:
        return f"This is the {data.chosen} size."
    path = data.path
    text = f"{count(abs(size - data.size), data.noun)} {'fewer' if size < data.size else 'more'} than {data.chosen}: "
    text = text[0].upper() + text[1:] + _score_difference(path, size, data.size)
    if path.prices is not None:
        cost, chosen_cost = path.cost(size), path.cost(data.size)
        both = f"{short_number(cost)} instead of {short_number(chosen_cost)}"
        amount = f"{short_number(abs(cost - chosen_cost))} {'cheaper' if cost < chosen_cost else 'more expensive'}"
        text += ", at the same cost" if cost == chosen_cost else f", and {amount} ({both})"
    return text + "."


def _score_difference(path: Path, size: int, chosen: int) -> str:
    choice = path.choice
    index, at_chosen = (None, None) if choice is None else (choice.position(size), choice.position(chosen))
    if choice is None or index is None or at_chosen is None:
        text = _points_difference(path.explained(size) - path.explained(chosen), "explained on the training data")
        return text if choice is None else f"{text} (this size was not scored on held-out rows)"
    change = float(choice.mean[index] - choice.mean[at_chosen])
    if choice.standard_error is None:
        return f"{choice.criterion_name} {number(abs(change), 3)} {'higher, which is worse' if change > 0 else 'lower'}"
    errors = choice.standard_error if choice.difference_error is None else choice.difference_error
    error = float(errors[index])
    if choice.scoring == EXPLAINED:
        text, unit = _points_difference(change, "explained on held-out rows"), f"{points(error)} percentage points"
    else:
        direction = "higher" if change > 0 else "lower"
        text, unit = f"{choice.scoring} {number(abs(change), 3)} {direction} on held-out rows", number(error, 2)
    return f"{text}, {'within' if abs(change) <= error else 'more than'} one standard error of the difference ({unit})"


def _points_difference(change: float, what: str) -> str:
    if abs(change) < 0.0005:
        return f"as much {what}"
    return f"{points(abs(change))} percentage points {'more' if change > 0 else 'less'} {what}"


def _most_rows(path: Path, sizes: list[int]) -> int | None:
    """The largest number of rows a table may have so that all tables together stay small; None for no limit."""
    lengths = np.array([len(path[size].support) for size in sizes])
    allowed = MOST_CELLS // len(layout(path, path.sizes).heads)
    if lengths.sum() <= allowed:
        return None
    limits = np.arange(1, lengths.max() + 1)
    totals = np.array([np.minimum(lengths, limit).sum() for limit in limits])
    return max(10, int(limits[totals <= allowed].max(initial=10)))


def size_explorer(data: ModelData, records: Sequence[dict[str, Any]], charts: Mapping[str, Markup]) -> Markup:
    """The slider over the sizes, the model of the current size, and the charts."""
    start = [record["size"] for record in records].index(data.size)
    slider = Markup(
        f'<input type="range" id="size" min="0" max="{len(records) - 1}" step="1" value="{start}" '
        'aria-describedby="size-help">'
    )
    control = tag(
        "div",
        tag("label", f"Number of {data.noun}s", for_="size"),
        tag("output", records[start]["label"], for_="size", id="size-now"),
        tag("button", MINUS, type="button", id="fewer", aria_label="One size smaller"),
        slider,
        tag("button", "+", type="button", id="more", aria_label="One size larger"),
        tag("button", f"Back to the {data.chosen} size", type="button", id="back"),
        class_="control",
    )
    help_text = "Move the slider, use the arrow keys or click on a chart to see the model of every size."
    needing = "The slider needs" if calculator_data(data) is None else "The slider and the calculator need"
    drawn = joined(_chart(data, name, chart) for name, chart in charts.items())
    return tag(
        "section",
        tag("h2", f"How many {data.noun}s?"),
        tag("noscript", tag("p", f"{needing} JavaScript; the tables and charts do not.")),
        tag("p", help_text, id="size-help", class_="screen"),
        control,
        tag("div", _current_size(data), tag("div", drawn, class_="charts"), class_="beside"),
        tag("p", " ".join([NOTE, *_about_folds(data)]), class_="note"),
        class_="explorer",
    )


def _about_folds(data: ModelData) -> list[str]:
    """Whose scores stand beside the features of a size."""
    choice = data.path.choice
    return [OF_FOLDS.format(nouns=f"{data.noun}s")] if choice is not None and choice.by_folds else []


def _current_size(data: ModelData) -> Markup:
    """The panel that the page's script fills with the record of the current size."""
    lines = [("Explained on the training data", "explained"), ("Added", "entered"), ("Removed", "left")]
    if data.path.prices is not None:
        lines.insert(1, ("Total cost", "cost"))
    if data.path.choice is not None:
        lines.insert(0, (score_head(data.path.choice), "score"))
    values = joined(tag("div", tag("dt", name), tag("dd", "", id=f"current-{key}")) for name, key in lines)
    return tag(
        "div",
        tag("p", "", id="current-compared", aria_live="polite", class_="compared"),
        tag("dl", values, class_="current"),
        tag("div", "", id="current-table"),
        class_="panel",
    )


def _chart(data: ModelData, name: str, drawn: Markup) -> Markup:
    choice = data.path.choice
    title = CHARTS.get(name, "")
    if name == "coefficients" and data.n_drawn > NAMED_LINES:
        title += f" (the {NAMED_LINES} most important of {data.n_drawn} {data.part}s are named)"
    if name == "score" and choice is not None:
        title = f"{score_head(choice)} by size" + ("" if choice.by_folds else " (lower is better)")
    return tag(
        "figure",
        tag("figcaption", tag("span", title), *_legend(choice, name)),
        tag("div", drawn, id=f"chart-{name}", class_="chart", role="img", aria_label=f"{title}. {CHART_TEXT}"),
    )


def _legend(choice: Choice | None, chart: str) -> list[Markup]:
    """What the lines of a chart are, where they are not named in it."""
    if choice is None or not choice.by_folds or chart != ("explained" if choice.scoring == EXPLAINED else "score"):
        return []
    lines = [("held-out", "held-out rows, ± one standard error"), ("training", "training data")]
    lines = lines if chart == "explained" else lines[:1]
    return [tag("span", tag("span", "", class_=f"line {kind}", aria_hidden="true"), text) for kind, text in lines]
