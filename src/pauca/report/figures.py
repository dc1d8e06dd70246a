"""The charts as plotly figures, and plotly's own script.

Plotly parses some HTML in every text it draws, so names from the data are escaped here.
"""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from pauca.report.formatting import number, percent, points
from pauca.report.model_data import ModelData
from pauca.report.sizes import score_head, shown_sizes
from pauca.results.choice import EXPLAINED
from pauca.results.curves import coefficient_curves, score_range
from pauca.results.plots import BLUE, COLOURS, GREY, INK, NAMED_LINES, short, short_names, spread_out
from pauca.wording import column_names

SLIDER, CHOSEN = "#1d1d1f", COLOURS[1]
BAND = "rgba(31, 90, 153, 0.16)"
LONGEST_NAME = 15
# More lines than this cannot be distinguished and make the page slow.
MOST_LINES = 60
MOST_DOTS = 30


def plotly_script() -> str:
    """Plotly's script, to be embedded in the page."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ImportError('report needs plotly; install it with: pip install "pauca[report]"') from error
    return get_plotlyjs()


def figures(data: ModelData) -> dict[str, dict[str, Any]]:
    """Figures by the name of their chart, in the form of plotly's script."""
    import plotly.graph_objects as go

    drawn = {"accuracy": _accuracy(go, data)}
    choice = data.path.choice
    if choice is not None and choice.scoring != EXPLAINED:
        drawn["score"] = _score(go, data)
    if data.path.sizes[-1] > 0:
        drawn["coefficients"] = _coefficients(go, data)
    return {name: figure.to_plotly_json() for name, figure in drawn.items()}


def _accuracy(go: Any, data: ModelData) -> Any:
    """Share explained on the training data, and on held-out rows if that is the score."""
    path, choice = data.path, data.path.choice
    sizes = shown_sizes(data)
    fit = [100 * path.explained(size) for size in sizes]
    both = choice is not None and choice.scoring == EXPLAINED
    figure = _figure(go, data, "explained (%)")
    bottom, top = min(0.0, *fit), max(0.0, *fit)
    if both:
        assert choice is not None
        low, high = score_range(choice)
        bottom, top = min(bottom, 100 * low), max(top, 100 * high)
        _add_scores(go, figure, data, 100.0)
    figure.add_scatter(
        x=sizes,
        y=fit,
        name="training data",
        mode=_mode(len(sizes)),
        line={"color": INK if both else BLUE, "dash": "dot" if both else "solid", "width": 2},
        marker={"size": 5, "symbol": "square" if both else "circle"},
        text=[f"{_size_text(data, size)}: {percent(share / 100)}" for size, share in zip(sizes, fit, strict=True)],
        hoverinfo="text",
    )
    figure.update_yaxes(range=[bottom - 0.02 * (top - bottom), top + 0.06 * (top - bottom or 1)])
    return figure


def _score(go: Any, data: ModelData) -> Any:
    choice = data.path.choice
    assert choice is not None
    figure = _figure(go, data, _text(short(choice.criterion_name, 30)))
    _add_scores(go, figure, data, 1.0)
    figure.update_yaxes(range=list(score_range(choice)))
    return figure


def _add_scores(go: Any, figure: Any, data: ModelData, unit: float) -> None:
    """The scores with a band of one standard error."""
    choice = data.path.choice
    assert choice is not None
    sizes, mean = choice.sizes.tolist(), (unit * choice.mean).tolist()
    labels = [percent(float(value)) if unit == 100 else number(float(value), 4) for value in choice.mean]
    if choice.standard_error is not None:
        error = (unit * choice.standard_error).tolist()
        upper = [value + e for value, e in zip(mean, error, strict=True)]
        lower = [value - e for value, e in zip(mean, error, strict=True)]
        figure.add_scatter(
            x=[*sizes, *reversed(sizes)],
            y=[*upper, *reversed(lower)],
            fill="toself",
            fillcolor=BAND,
            line={"width": 0},
            mode="lines",
            name="± one standard error",
            hoverinfo="skip",
        )
        errors = [points(float(e)) if unit == 100 else number(float(e), 2) for e in choice.standard_error]
        labels = [f"{value} (± {e})" for value, e in zip(labels, errors, strict=True)]
    figure.add_scatter(
        x=sizes,
        y=mean,
        name="held-out rows" if choice.by_folds else _text(short(score_head(choice), 40)),
        mode=_mode(len(sizes)),
        line={"color": BLUE, "width": 2.5},
        marker={"size": 6},
        text=[f"{_size_text(data, size)}: {label}" for size, label in zip(sizes, labels, strict=True)],
        hoverinfo="text",
    )


def _coefficients(go: Any, data: ModelData) -> Any:
    path = data.path
    curves = coefficient_curves(path, data.size)
    keep = [index for index, size in enumerate(curves.sizes) if size in set(shown_sizes(data))]
    sizes = [curves.sizes[index] for index in keep]
    title = "coefficient / its maximum" if curves.signed else "norm over outputs / its maximum"
    figure = _figure(go, data, title)
    names = column_names(path.column_names, curves.columns[:MOST_LINES])
    short_forms = short_names(names[:NAMED_LINES], LONGEST_NAME)
    ends = []
    for row in reversed(range(len(names))):
        line = curves.relative[row, keep]
        if not np.isfinite(line).any():
            continue
        named = row < NAMED_LINES
        colour = COLOURS[row % len(COLOURS)] if named else GREY
        text = _text(short(names[row], 60))
        figure.add_scatter(
            x=sizes,
            y=[None if np.isnan(value) else round(value, 4) for value in line.tolist()],
            name=text,
            mode=_mode(len(sizes), int(np.isfinite(line).sum())) if named else "lines",
            line={"color": colour, "width": 2 if named else 1, "dash": "solid" if row < len(COLOURS) else "dash"},
            marker={"size": 5},
            hoverinfo="text" if named else "skip",
            **({"text": text} if named else {}),
        )
        if named and np.isfinite(line[-1]):
            ends.append((float(line[-1]), _text(short_forms[names[row]]), colour))
    bottom = -1.12 if np.nanmin(curves.relative, initial=0) < 0 else -0.06
    ends.sort()
    heights = spread_out([end for end, *_ in ends], 0.075 * (1.12 - bottom), bottom, 1.12)
    for (_, name, colour), height in zip(ends, heights, strict=True):
        figure.add_annotation(
            x=1.01,
            xref="paper",
            xanchor="left",
            y=height,
            text=name,
            showarrow=False,
            font={"color": colour, "size": 12},
        )
    figure.update_yaxes(range=[bottom, 1.12], zeroline=True, zerolinecolor=INK)
    figure.update_layout(margin={"r": 128 if ends else 16})
    return figure


def _figure(go: Any, data: ModelData, y_title: str) -> Any:
    """An empty figure over the sizes. The first shape and annotation mark the current size, the second the chosen."""
    sizes = shown_sizes(data)
    figure = go.Figure()
    line = {"type": "line", "x0": data.size, "x1": data.size, "y0": 0, "yref": "paper"}
    text = {"x": data.size, "yref": "paper", "showarrow": False, "yanchor": "bottom"}
    late = data.size > (sizes[0] + sizes[-1]) / 2
    figure.update_layout(
        template=go.layout.Template(),
        font={"family": "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif", "size": 13},
        font_color=INK,
        height=360,
        margin={"l": 58, "r": 16, "t": 46, "b": 52},
        paper_bgcolor="white",
        plot_bgcolor="white",
        dragmode=False,
        hovermode="closest",
        showlegend=False,
        shapes=[
            {**line, "y1": 1.0, "line": {"color": SLIDER, "width": 1.5}},
            {**line, "y1": 1.07, "line": {"color": CHOSEN, "width": 1.5, "dash": "dash"}},
        ],
        annotations=[
            {**text, "y": 0.995, "text": "", "font": {"color": SLIDER}, "xanchor": "left"},
            {
                **text,
                "y": 1.06,
                "text": f"chosen: {data.size}",
                "font": {"color": CHOSEN},
                "xanchor": "right" if late else "left",
            },
        ],
    )
    figure.update_xaxes(
        title={"text": f"number of {data.noun}s", "standoff": 8},
        range=[sizes[0] - 0.04 * (sizes[-1] - sizes[0] or 1), sizes[-1] + 0.04 * (sizes[-1] - sizes[0] or 1)],
        fixedrange=True,
        showline=True,
        linecolor=INK,
        ticks="outside",
        zeroline=False,
        showgrid=False,
        tickformat="d",
        nticks=12,
        **({"dtick": 1} if sizes[-1] <= 12 else {}),
    )
    figure.update_yaxes(
        title={"text": y_title, "standoff": 6}, fixedrange=True, gridcolor="#e6e8eb", zeroline=False, automargin=True
    )
    return figure


def _mode(many: int, present: int = 2) -> str:
    """Markers unless there are many sizes; a line with a single point is invisible without one."""
    return "lines+markers" if many <= MOST_DOTS or present < 2 else "lines"


def _size_text(data: ModelData, size: int) -> str:
    return f"{size} {data.noun}{'' if size == 1 else 's'}"


def _text(text: str) -> str:
    """Text without anything that plotly would parse as HTML."""
    return html.escape(text, quote=False)
