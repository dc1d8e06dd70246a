"""Survival curves by groups of risk, as a drawing that needs no script; the baseline hazard, for the calculator."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from pauca.report.drawing import Drawing, Margins, spread_labels, ticks
from pauca.report.formatting import Markup, joined, short_number, table, tag, whole_percent
from pauca.results.plots import COLOURS

# A baseline hazard is given at no more than so many times of events over all strata: a probability is then within what
# a few of a thousand events change.
MOST_TIMES = 1000

TITLE = "Share free of the event over time, by predicted risk: seen (steps) and predicted (dashed)"


class SurvivalCurves(Protocol):
    """Curves of groups of rows from low to high risk, each of shape (n_groups, n_times)."""

    times: np.ndarray
    seen: np.ndarray
    predicted: np.ndarray
    n_rows: np.ndarray
    events: np.ndarray

    @property
    def labels(self) -> list[str]: ...  # noqa: D102


@dataclass(frozen=True)
class BaselineHazard:
    """The cumulative hazard of a score of zero in every stratum, at some of the times of events."""

    strata: list[str]
    times: list[list[float]]
    hazard: list[list[float]]

    @property
    def middle(self) -> float:
        """A time in the middle of all."""
        return float(np.median(np.unique(np.concatenate(self.times))))

    @property
    def last(self) -> float:
        """The latest time that is known of."""
        return max(times[-1] for times in self.times if times)


def baseline_hazard(model: Any) -> BaselineHazard | None:
    """That of a fitted model of times to an event; None where the model has none, or only that of another size."""
    times = np.asarray(getattr(model, "event_times_", []))
    if not len(times):
        return None
    strata = [str(label) for label in np.asarray(model.strata_).tolist()]
    most = max(2, MOST_TIMES // max(1, len(strata)))
    found = BaselineHazard(strata, [], [])
    for stratum in range(max(1, len(strata))):
        here = np.flatnonzero(model.event_strata_ == stratum)
        if len(here) > most:
            here = here[np.linspace(0, len(here) - 1, most).round().astype(np.intp)]
        found.times.append(times[here].tolist())
        found.hazard.append(np.asarray(model.baseline_hazard_)[here].tolist())
    return found


def survival_content(curves: SurvivalCurves) -> Markup:
    """The drawing, and a table with the middle of the time and its end."""
    middle, end = len(curves.times) // 2, len(curves.times) - 1
    heads = ["Group", "Rows", "Events"]
    heads += [f"Free of the event at {short_number(float(curves.times[place]))}" for place in (middle, end)]
    body = [
        [label, str(size), str(events), *(f"{whole_percent(float(row[place]))}" for place in (middle, end))]
        for label, size, events, row in zip(curves.labels, curves.n_rows, curves.events, curves.seen, strict=True)
    ]
    drawn = joined(_drawing(curves, *size) for size in (("wide", 640, 340, 140), ("narrow", 343, 300, 96)))
    chart = tag("div", drawn, role="img", aria_label=TITLE, class_="chart")
    return joined([chart, table("Rows, events and survival of each group", heads, body)])


def _drawing(curves: SurvivalCurves, css_class: str, width: float, height: float, names: float) -> Markup:
    last = float(curves.times[-1]) or 1.0
    drawing = Drawing(width, height, (0.0, last), (0.0, 1.0), Margins(right=names, top=24))
    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    drawing.axes("time", "free of the event", x_ticks=ticks(0, last), y_ticks=shares, y_text="{:.0%}".format)
    order = np.argsort([-float(row[-1]) for row in curves.seen], kind="stable")
    ends = [drawing.y(float(curves.seen[place][-1])) for place in order]
    heights = dict(zip(order.tolist(), spread_labels(ends, 16, 24, height - 44), strict=True))
    for place, (label, seen, predicted) in enumerate(zip(curves.labels, curves.seen, curves.predicted, strict=True)):
        colour = COLOURS[place % len(COLOURS)]
        drawing.line(_steps(curves.times, seen), colour)
        drawing.line(list(zip(curves.times.tolist(), predicted.tolist(), strict=True)), colour, dash="5 4")
        drawing.text(width - names + 6, heights[place], label, "start", colour)
    return drawing.svg(css_class)


def _steps(times: np.ndarray, shares: np.ndarray) -> list[tuple[float, float]]:
    corners = list(zip(times.tolist(), shares.tolist(), strict=True))
    found = corners[:1]
    for (_, before), (x, y) in pairwise(corners):
        found += [(x, before), (x, y)]
    return found
