"""The charts as figures of plotly, in plain dicts, and plotly's own script.

Plotly parses some HTML in every text it draws, so names from the data are escaped here.
"""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from pauca.report.formatting import count, number, percent, points
from pauca.report.model_data import ModelData
from pauca.report.size_explorer import score_head, shown_sizes
from pauca.results.choice import EXPLAINED, Choice, Surface
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
from pauca.wording import column_names

Figure = dict[str, Any]

CURRENT, CHOSEN = "#1d1d1f", COLOURS[1]
BAND = "rgba(31, 90, 153, 0.16)"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"

LAYOUT = {
    "font": {"family": FONT, "size": 13, "color": INK},
    "height": 360,
    "paper_bgcolor": "white",
    "plot_bgcolor": "white",
    "dragmode": False,
    "hovermode": "closest",
    "showlegend": False,
}
X_AXIS = {
    "fixedrange": True,
    "showline": True,
    "linecolor": INK,
    "ticks": "outside",
    "zeroline": False,
    "showgrid": False,
    "tickformat": "d",
    "nticks": 12,
}
Y_AXIS = {"fixedrange": True, "gridcolor": "#e6e8eb", "zeroline": False, "automargin": True}

LONGEST_NAME = 15
# More lines than this cannot be distinguished and make the page slow.
MOST_LINES = 60
MOST_MARKERS = 30


def plotly_script() -> str:
    """Plotly's script, to be embedded in the page."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ImportError("report needs plotly; install it with: pip install plotly") from error
    return get_plotlyjs()


def figures(data: ModelData) -> dict[str, Figure]:
    """Figures by the name of their chart, in the form of plotly's script."""
    drawn = {"accuracy": _accuracy(data)}
    choice = data.path.choice
    if choice is not None and choice.scoring != EXPLAINED:
        drawn["score"] = _score(data, choice)
    if data.path.sizes[-1] > 0:
        drawn["coefficients"] = _coefficients(data)
    if choice is not None and choice.surface is not None and len(choice.surface.ridges) > 1:
        drawn["ridges"] = _ridges(data, choice, choice.surface)
    return drawn


def _ridges(data: ModelData, choice: Choice, surface: Surface) -> Figure:
    """Scores of all sizes and ridges for the search of the chosen model; dots mark what is as good as the best."""
    figure = _figure(data, "ridge")
    search = int(np.flatnonzero(surface.search_ridges == surface.search_ridge)[0])
    percents, (low, high) = choice.scoring == EXPLAINED, surface_range(surface)
    mean, sizes = surface.mean[search], surface.sizes.tolist()
    labels = [f"{ridge:.3g}" for ridge in surface.ridges]
    texts = [
        [
            f"{count(size, data.noun)}, ridge {label}: {percent(value) if percents else number(value, 4)}"
            for size, value in zip(sizes, row, strict=True)
        ]
        for label, row in zip(labels, mean.tolist(), strict=True)
    ]
    figure["data"].append(
        {
            "type": "heatmap",
            "x": sizes,
            "y": labels,
            "z": np.maximum(mean, low).tolist(),
            "zmin": low,
            "zmax": high,
            "text": texts,
            "hoverinfo": "text",
            "showscale": False,
            "colorscale": [[0, "white"], [1, BLUE]],
        }
    )
    rows, columns = np.nonzero(as_good(choice)[search])
    marks = {"size": 5, "color": "white", "line": {"color": INK, "width": 1}}
    good = _line([sizes[k] for k in columns], [labels[r] for r in rows], "as good as the best", marker=marks)
    chosen = {"size": 15, "symbol": "square-open", "color": CHOSEN, "line": {"width": 2.5}}
    taken = _line([choice.chosen], [f"{surface.ridge:.3g}"], "chosen", marker=chosen)
    figure["data"] += [{**one, "mode": "markers", "hoverinfo": "skip"} for one in (good, taken)]
    figure["layout"]["yaxis"] |= {"type": "category", "showgrid": False}
    return figure


def _accuracy(data: ModelData) -> Figure:
    """Share explained on the training data, and on held-out rows if that is the score."""
    path, choice, sizes = data.path, data.path.choice, shown_sizes(data)
    training = [100 * path.explained(size) for size in sizes]
    figure = _figure(data, "explained (%)")
    bottom, top = min(0.0, *training), max(0.0, *training)
    line, symbol = {"color": BLUE, "dash": "solid", "width": 2}, "circle"
    if choice is not None and choice.scoring == EXPLAINED:
        low, high = score_range(choice)
        bottom, top = min(bottom, 100 * low), max(top, 100 * high)
        figure["data"] += _scores(data, choice, 100.0)
        line, symbol = {"color": INK, "dash": "dot", "width": 2}, "square"
    labels = [f"{count(size, data.noun)}: {percent(share / 100)}" for size, share in zip(sizes, training, strict=True)]
    marker = {"size": 5, "symbol": symbol}
    figure["data"].append(_line(sizes, training, "training data", line=line, marker=marker, text=labels))
    figure["layout"]["yaxis"]["range"] = [bottom - 0.02 * (top - bottom), top + 0.06 * (top - bottom or 1)]
    return figure


def _score(data: ModelData, choice: Choice) -> Figure:
    figure = _figure(data, _escape(short(choice.criterion_name, 30)))
    figure["data"] += _scores(data, choice, 1.0)
    figure["layout"]["yaxis"]["range"] = list(score_range(choice))
    return figure


def _scores(data: ModelData, choice: Choice, unit: float) -> list[dict[str, Any]]:
    """The line of the scores, and a band of one standard error."""
    lines = []
    sizes, mean = choice.sizes.tolist(), (unit * choice.mean).tolist()
    labels = [percent(float(value)) if unit == 100 else number(float(value), 4) for value in choice.mean]
    if choice.standard_error is not None:
        error = (unit * choice.standard_error).tolist()
        upper = [value + e for value, e in zip(mean, error, strict=True)]
        lower = [value - e for value, e in zip(mean, error, strict=True)]
        outline = _line([*sizes, *reversed(sizes)], [*upper, *reversed(lower)], "± one standard error")
        band = {"fill": "toself", "fillcolor": BAND, "line": {"width": 0}, "mode": "lines", "hoverinfo": "skip"}
        lines.append({**outline, **band})
        errors = [points(float(e)) if unit == 100 else number(float(e), 2) for e in choice.standard_error]
        labels = [f"{value} (± {e})" for value, e in zip(labels, errors, strict=True)]
    labels = [f"{count(size, data.noun)}: {label}" for size, label in zip(sizes, labels, strict=True)]
    name = "held-out rows" if choice.by_folds else _escape(short(score_head(choice), 40))
    style = {"line": {"color": BLUE, "width": 2.5}, "marker": {"size": 6}}
    return [*lines, _line(sizes, mean, name, text=labels, **style)]


def _coefficients(data: ModelData) -> Figure:
    curves = coefficient_curves(data.path, data.size)
    shown = set(shown_sizes(data))
    keep = [index for index, size in enumerate(curves.sizes) if size in shown]
    sizes = [curves.sizes[index] for index in keep]
    figure = _figure(data, "coefficient / its maximum" if curves.signed else "norm over outputs / its maximum")
    names = column_names(data.path.column_names, curves.columns[:MOST_LINES])
    short_forms = short_names(names[:NAMED_LINES], LONGEST_NAME)
    ends = []
    for row in reversed(range(len(names))):
        values = curves.relative[row, keep]
        if not np.isfinite(values).any():
            continue
        y = [None if np.isnan(value) else round(value, 4) for value in values.tolist()]
        text = _escape(short(names[row], 60))
        if row >= NAMED_LINES:
            grey = {"color": GREY, "width": 1, "dash": "dash"}
            figure["data"].append({**_line(sizes, y, text, line=grey), "mode": "lines", "hoverinfo": "skip"})
            continue
        style = {"color": COLOURS[row % len(COLOURS)], "width": 2, "dash": "solid" if row < len(COLOURS) else "dash"}
        figure["data"].append(_line(sizes, y, text, line=style, marker={"size": 5}, text=text))
        if np.isfinite(values[-1]):
            ends.append((float(values[-1]), _escape(short_forms[names[row]]), style["color"]))
    bottom = -1.12 if np.nanmin(curves.relative, initial=0) < 0 else -0.06
    ends.sort()
    heights = spread_out([end for end, *_ in ends], 0.075 * (1.12 - bottom), bottom, 1.12)
    for (_, name, colour), height in zip(ends, heights, strict=True):
        label = {"x": 1.01, "xref": "paper", "xanchor": "left", "y": height, "text": name, "showarrow": False}
        figure["layout"]["annotations"].append({**label, "font": {"color": colour, "size": 12}})
    figure["layout"]["yaxis"] |= {"range": [bottom, 1.12], "zeroline": True, "zerolinecolor": INK}
    figure["layout"]["margin"]["r"] = 128 if ends else 16
    return figure


def _line(x: list[Any], y: list[Any], name: str, **style: Any) -> dict[str, Any]:
    """A line with markers, unless there are many sizes; a line of a single point is invisible without one."""
    markers = len(x) <= MOST_MARKERS or sum(value is not None for value in y) < 2
    mode = "lines+markers" if markers else "lines"
    return {"type": "scatter", "x": x, "y": y, "name": name, "mode": mode, "hoverinfo": "text", **style}


def _figure(data: ModelData, y_title: str) -> Figure:
    """An empty figure over the sizes. The first shape and annotation mark the current size, the second the chosen."""
    first, last = shown_sizes(data)[0], shown_sizes(data)[-1]
    margin = 0.04 * (last - first or 1)
    line = {"type": "line", "x0": data.size, "x1": data.size, "y0": 0, "yref": "paper"}
    text = {"x": data.size, "yref": "paper", "showarrow": False, "yanchor": "bottom"}
    side = "right" if data.size > (first + last) / 2 else "left"
    layout = {
        **LAYOUT,
        "margin": {"l": 58, "r": 16, "t": 46, "b": 52},
        "shapes": [
            {**line, "y1": 1.0, "line": {"color": CURRENT, "width": 1.5}},
            {**line, "y1": 1.07, "line": {"color": CHOSEN, "width": 1.5, "dash": "dash"}},
        ],
        "annotations": [
            {**text, "y": 0.995, "text": "", "font": {"color": CURRENT}, "xanchor": "left"},
            {**text, "y": 1.06, "text": f"chosen: {data.size}", "font": {"color": CHOSEN}, "xanchor": side},
        ],
        "xaxis": {
            **X_AXIS,
            "title": {"text": f"number of {data.noun}s", "standoff": 8},
            "range": [first - margin, last + margin],
            **({"dtick": 1} if last <= 12 else {}),
        },
        "yaxis": {**Y_AXIS, "title": {"text": y_title, "standoff": 6}},
    }
    return {"data": [], "layout": layout}


def _escape(text: str) -> str:
    """Text without anything that plotly would parse as HTML."""
    return html.escape(text, quote=False)
