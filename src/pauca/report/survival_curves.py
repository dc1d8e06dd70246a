"""Survival curves by groups of risk, as a drawing that needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from pauca.report.formatting import Markup, escaped, joined, percent, short_number, table, tag
from pauca.results.plots import COLOURS, INK

# The drawing in its own units; the page scales it. Names of the curves stand to the right of the axes.
WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 150, 14, 46
LEAST_DISTANCE = 30


class SurvivalCurves(Protocol):
    """Curves of groups of rows from low to high risk, each of shape (n_groups, n_times)."""

    times: np.ndarray
    seen: np.ndarray
    predicted: np.ndarray
    n_rows: np.ndarray
    events: np.ndarray

    @property
    def labels(self) -> list[str]: ...  # noqa: D102


def survival_content(curves: SurvivalCurves) -> Markup:
    """The drawing, and a table with the middle of the time and its end."""
    middle, end = len(curves.times) // 2, len(curves.times) - 1
    heads = ["Group", "Rows", "Events"]
    heads += [f"Free of the event at {short_number(float(curves.times[place]))}" for place in (middle, end)]
    body = [
        [label, str(size), str(events), *(f"{percent(float(row[place]), 0)}" for place in (middle, end))]
        for label, size, events, row in zip(curves.labels, curves.n_rows, curves.events, curves.seen, strict=True)
    ]
    return joined([_drawing(curves), table("Rows, events and survival of each group", heads, body)])


def _drawing(curves: SurvivalCurves) -> Markup:
    last = float(curves.times[-1]) or 1.0
    lines = [_axes(last)]
    heights = _apart([float(row[-1]) for row in curves.seen])
    for number, (label, seen, predicted) in enumerate(zip(curves.labels, curves.seen, curves.predicted, strict=True)):
        colour = COLOURS[number % len(COLOURS)]
        lines.append(_path(_steps(curves.times, seen, last), colour, ""))
        lines.append(_path(_points(curves.times, predicted, last), colour, ' stroke-dasharray="5 4"'))
        lines.append(_text(WIDTH - RIGHT + 8, heights[number], label, "start", colour))
    title = "Share free of the event over time, by predicted risk: seen (steps) and predicted (dashed)"
    body = Markup(f"<title>{escaped(title)}</title>" + "".join(lines))
    return tag("svg", body, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", style="max-width:100%;height:auto")


def _axes(last: float) -> str:
    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _y(share)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e6e8eb"/>')
        parts.append(_text(LEFT - 8, y, f"{100 * share:.0f} %", "end", INK))
    for tick in _ticks(last):
        x = _x(tick, last)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_y(0):.1f}" y2="{_y(0) + 5:.1f}" stroke="{INK}"/>')
        parts.append(_text(x, _y(0) + 17, short_number(tick), "middle", INK))
    parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{_y(0):.1f}" y2="{_y(0):.1f}" stroke="{INK}"/>')
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "time", "middle", INK))
    return "".join(parts)


def _ticks(last: float) -> list[float]:
    """About five round numbers from zero on."""
    raw = last / 5
    power = 10.0 ** np.floor(np.log10(raw))
    step = float(power * min((1, 2, 5, 10), key=lambda factor: abs(factor * power - raw)))
    return [step * number for number in range(int(last / step + 1e-9) + 1)]


def _apart(ends: Sequence[float]) -> list[float]:
    """Heights of names beside the ends of their curves, moved apart where they would overlap."""
    order = np.argsort([-end for end in ends], kind="stable")
    heights, lowest = [0.0] * len(ends), TOP + 6.0
    for place in order:
        heights[place] = lowest = max(_y(ends[place]), lowest)
        lowest += LEAST_DISTANCE
    over = max(heights) - _y(0)
    return [height - max(over, 0.0) for height in heights]


def _x(time: float, last: float) -> float:
    return LEFT + time / last * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return TOP + (1.0 - share) * (HEIGHT - TOP - BOTTOM)


def _points(times: np.ndarray, shares: np.ndarray, last: float) -> list[tuple[float, float]]:
    return [(_x(time, last), _y(share)) for time, share in zip(times.tolist(), shares.tolist(), strict=True)]


def _steps(times: np.ndarray, shares: np.ndarray, last: float) -> list[tuple[float, float]]:
    corners = _points(times, shares, last)
    found = corners[:1]
    for (_, before), (x, y) in pairwise(corners):
        found += [(x, before), (x, y)]
    return found


def _path(points: Sequence[tuple[float, float]], colour: str, style: str) -> str:
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"{style}/>'


def _text(x: float, y: float, text: Any, anchor: str, colour: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" dominant-baseline="middle" font-size="13" '
        f'fill="{colour}">{escaped(text)}</text>'
    )
