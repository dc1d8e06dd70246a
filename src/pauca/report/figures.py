"""The charts of the page over the sizes of a path, each drawn for a wide and for a narrow screen."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pauca.report.drawing import Drawing, Margins, text_width, ticks
from pauca.report.formatting import Markup, count, joined, number, percent, points
from pauca.report.model_data import ModelData
from pauca.report.size_explorer import shown_sizes
from pauca.results.choice import EXPLAINED, Choice
from pauca.results.plots import (
    BLUE,
    COLOURS,
    GREY,
    INK,
    NAMED_LINES,
    as_good,
    coefficient_curves,
    score_range,
    short,
    short_names,
    spread_out,
    surface_range,
)
from pauca.results.surface import Surface
from pauca.wording import column_names

CURRENT, CHOSEN = "#1d1d1f", COLOURS[1]
BAND = "#dbe5ef"

# More lines than this cannot be distinguished and make the page slow; more sizes than this have no marks or cells.
MOST_LINES = 30
MOST_MARKERS = 30
MOST_CELLS = 60
LINE_HEIGHT = 16


@dataclass(frozen=True)
class Screen:
    """How large a chart is drawn, and how long the names in it may be."""

    css_class: str
    width: float
    height: float
    longest_name: int


SCREENS = (Screen("wide", 560, 340, 22), Screen("narrow", 343, 310, 12))


def figures(data: ModelData) -> dict[str, Markup]:
    """Drawings by the name of their chart."""
    drawn = {"explained": _explained}
    choice = data.path.choice
    if choice is not None and choice.scoring != EXPLAINED:
        drawn["score"] = _score
    if data.path.sizes[-1] > 0:
        drawn["coefficients"] = _coefficients
    if choice is not None and choice.surface is not None and len(choice.surface.ridges) > 1:
        drawn["ridges"] = _ridges
    return {
        name: joined(_finished(data, draw(data, screen), screen) for screen in SCREENS) for name, draw in drawn.items()
    }


def _finished(data: ModelData, drawing: Drawing, screen: Screen) -> Markup:
    """A drawing with marks at the chosen size and at the one that is shown, which the page's script moves."""
    drawing.rule_at(data.size, CURRENT, "", css_class="now", low=True)
    drawing.rule_at(data.size, CHOSEN, f"chosen: {data.size}", dash="5 4")
    first, last = shown_sizes(data)[0], shown_sizes(data)[-1]
    numbers = {"first": first, "last": last, "left": drawing.x(first), "right": drawing.x(last)}
    return drawing.svg(f"sizes-chart {screen.css_class}", **numbers)


def _panel(
    data: ModelData, screen: Screen, y_range: tuple[float, float], right: float = 14, left: float = 46
) -> Drawing:
    """An empty panel over the sizes."""
    first, last = shown_sizes(data)[0], shown_sizes(data)[-1]
    margin = 0.03 * (last - first or 1)
    margins = Margins(left=left, right=right)
    return Drawing(screen.width, screen.height, (first - margin, last + margin), y_range, margins)


def _axes(data: ModelData, drawing: Drawing, y_title: str) -> None:
    """Axes of the sizes and of what is drawn over them."""
    first, last = shown_sizes(data)[0], shown_sizes(data)[-1]
    drawing.axes(
        f"number of {data.noun}s",
        y_title,
        x_ticks=ticks(first, last, drawing.n_x_ticks, whole=True),
        y_ticks=ticks(*drawing.y_range),
        y_text="{:g}".format,
    )


def _marked(drawing: Drawing, xy: list[tuple[float, float]], texts: list[str]) -> None:
    """A line, with dots that show their numbers unless there are many."""
    drawing.line(xy, BLUE)
    if len(xy) <= MOST_MARKERS:
        drawing.dots(xy, BLUE, texts)


def _explained(data: ModelData, screen: Screen) -> Drawing:
    """Share explained on the training data, and on held-out rows if that is the score."""
    path, choice, sizes = data.path, data.path.choice, shown_sizes(data)
    training = [100 * path.explained(size) for size in sizes]
    bottom, top = min(0.0, *training), max(0.0, *training)
    held_out = choice is not None and choice.scoring == EXPLAINED
    if choice is not None and held_out:
        low, high = score_range(choice)
        bottom, top = min(bottom, 100 * low), max(top, 100 * high)
    drawing = _panel(data, screen, (bottom, top + 0.05 * (top - bottom or 1)))
    _axes(data, drawing, "explained (%)")
    labels = [f"{count(size, data.noun)}: {percent(share / 100)}" for size, share in zip(sizes, training, strict=True)]
    if choice is not None and held_out:
        _draw_scores(data, drawing, choice, 100.0)
        drawing.line(list(zip(sizes, training, strict=True)), INK, dash="2 4")
    else:
        _marked(drawing, list(zip(sizes, training, strict=True)), labels)
    return drawing


def _score(data: ModelData, screen: Screen) -> Drawing:
    choice = data.path.choice
    assert choice is not None
    drawing = _panel(data, screen, score_range(choice))
    _axes(data, drawing, short(choice.criterion_name, 30))
    _draw_scores(data, drawing, choice, 1.0)
    return drawing


def _draw_scores(data: ModelData, drawing: Drawing, choice: Choice, unit: float) -> None:
    """The line of the scores, and a band of one standard error."""
    sizes, mean = choice.sizes.tolist(), (unit * choice.mean).tolist()
    labels = [percent(float(value)) if unit == 100 else number(float(value), 4) for value in choice.mean]
    if choice.standard_error is not None:
        error = (unit * choice.standard_error).tolist()
        upper = [(size, value + e) for size, value, e in zip(sizes, mean, error, strict=True)]
        lower = [(size, value - e) for size, value, e in zip(sizes, mean, error, strict=True)]
        drawing.area([*upper, *reversed(lower)], BAND)
        errors = [points(float(e)) if unit == 100 else number(float(e), 2) for e in choice.standard_error]
        labels = [f"{value} (± {e})" for value, e in zip(labels, errors, strict=True)]
    labels = [f"{count(size, data.noun)}: {label}" for size, label in zip(sizes, labels, strict=True)]
    _marked(drawing, list(zip(sizes, mean, strict=True)), labels)


def _coefficients(data: ModelData, screen: Screen) -> Drawing:
    curves = coefficient_curves(data.path, data.size)
    shown = set(shown_sizes(data))
    keep = [index for index, size in enumerate(curves.sizes) if size in shown]
    bottom = -1.1 if np.nanmin(curves.relative, initial=0) < 0 else -0.06
    names = column_names(data.path.column_names, curves.columns[:MOST_LINES])
    short_forms = short_names(names[:NAMED_LINES], screen.longest_name)
    margin = 10 + max(map(text_width, short_forms.values()), default=0.0)
    drawing = _panel(data, screen, (bottom, 1.1), margin)
    _axes(data, drawing, "coefficient / its largest" if curves.signed else "norm over outputs / its largest")
    drawing.line([(drawing.x_range[0], 0.0), (drawing.x_range[1], 0.0)], INK, width=1)
    ends = []
    for row in reversed(range(len(names))):
        values = curves.relative[row, keep]
        named = row < NAMED_LINES
        colour = COLOURS[row % len(COLOURS)] if named else GREY
        dash = "" if row < len(COLOURS) or not named else "5 3"
        for run in _runs([curves.sizes[index] for index in keep], values):
            drawing.line(run, colour, width=2 if named else 1, dash=dash)
            if named and (len(run) == 1 or len(keep) <= MOST_MARKERS):
                drawing.dots(run, colour, [names[row]] * len(run), radius=2.5)
        if named and len(values) and np.isfinite(values[-1]):
            ends.append((float(values[-1]), short_forms[names[row]], colour))
    ends.sort()
    gap = LINE_HEIGHT / (drawing.y(bottom) - drawing.y(1.1)) * (1.1 - bottom)
    heights = spread_out([end for end, *_ in ends], gap, bottom, 1.1)
    for (_, name, colour), height in zip(ends, heights, strict=True):
        drawing.text(screen.width - margin + 6, drawing.y(height), name, "start", colour)
    return drawing


def _runs(sizes: list[int], values: np.ndarray) -> list[list[tuple[float, float]]]:
    """The parts of a curve between the sizes at which it is missing."""
    found = np.flatnonzero(np.isfinite(values))
    breaks = [0, *(place + 1 for place, (a, b) in enumerate(pairwise(found.tolist())) if b > a + 1), len(found)]
    parts = [found[a:b].tolist() for a, b in pairwise(breaks)]
    return [[(sizes[place], float(values[place])) for place in part] for part in parts if part]


def _ridges(data: ModelData, screen: Screen) -> Drawing:
    """Scores of all sizes and ridges for the search of the chosen model; dots mark what is as good as the best."""
    choice = data.path.choice
    assert choice is not None
    assert choice.surface is not None
    surface: Surface = choice.surface
    search = int(np.flatnonzero(surface.search_ridges == surface.search_ridge)[0])
    low, high = surface_range(surface)
    shares = (np.clip(surface.mean[search], low, high) - low) / (high - low)
    good, every = as_good(choice)[search], surface.sizes.tolist()
    step = -(-len(every) // MOST_CELLS)
    drawing = _panel(data, screen, (-0.5, len(surface.ridges) - 0.5), left=56)
    drawing.x_range = (drawing.x_range[0] - 0.5, drawing.x_range[1] + 0.5)
    drawing.axes(
        f"number of {data.noun}s",
        "ridge",
        x_ticks=ticks(every[0], every[-1], drawing.n_x_ticks, whole=True),
        y_ticks=range(len(surface.ridges)),
        y_text=lambda tick: f"{surface.ridges[int(tick)]:.2g}",
    )
    for place in range(0, len(every), step):
        for row in range(len(surface.ridges)):
            drawing.cell(every[place], row, _blend(float(shares[row, place])), (step / 2, 0.5))
            if good[row, place]:
                drawing.dots([(every[place], row)], "#ffffff", radius=3)
    drawing.box(choice.chosen, int(np.flatnonzero(surface.ridges == surface.ridge)[0]), CHOSEN)
    return drawing


def _blend(share: float) -> str:
    """A colour between white and blue."""
    ends = zip((255, 255, 255), (int(BLUE[place : place + 2], 16) for place in (1, 3, 5)), strict=True)
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in ends)
