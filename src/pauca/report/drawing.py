"""Small drawings as SVG: axes, lines, bands, marks and names. They need no script, and all text in them is escaped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pauca.report.formatting import Markup, escaped
from pauca.results.plots import INK

GRID = "#e6e8eb"
FONT_SIZE = 13
WIDE = "mwMW%@\N{HORIZONTAL ELLIPSIS}"

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Margins:
    """Space around the panel."""

    left: float = 46
    right: float = 14
    top: float = 34
    bottom: float = 44


@dataclass
class Drawing:
    """A panel with two axes, in the units of the data; pieces are drawn in the order in which they come."""

    width: float
    height: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    margins: Margins = field(default_factory=Margins)
    pieces: list[str] = field(default_factory=list)

    def x(self, value: float) -> float:
        """Where a value is, from the left."""
        low, high = self.x_range
        return self.margins.left + (value - low) / (high - low) * (self.width - self.margins.left - self.margins.right)

    def y(self, value: float) -> float:
        """Where a value is, from the top; what is outside of the panel is drawn at its edge."""
        low, high = self.y_range
        share = (min(max(value, low), high) - low) / (high - low)
        return self.height - self.margins.bottom - share * (self.height - self.margins.top - self.margins.bottom)

    @property
    def n_x_ticks(self) -> int:
        """How many ticks have room for their numbers."""
        return max(2, int((self.width - self.margins.left - self.margins.right) / 45))

    def axes(
        self, x_title: str, y_title: str, *, x_ticks: Sequence[float], y_ticks: Sequence[float], y_text: Text
    ) -> None:
        """Both axes with their ticks; the title of the vertical one stands above it."""
        left, right = self.margins.left, self.width - self.margins.right
        bottom = self.height - self.margins.bottom
        for tick in y_ticks:
            self._rule(left, right, self.y(tick), self.y(tick), GRID)
            self.text(left - 6, self.y(tick), y_text(tick), "end")
        for tick in x_ticks:
            self._rule(self.x(tick), self.x(tick), bottom, bottom + 4, INK)
            self.text(self.x(tick), bottom + 15, f"{tick:g}", "middle")
        self._rule(left, right, bottom, bottom, INK)
        self.text((left + right) / 2, self.height - 8, x_title, "middle")
        self.text(4, 10, y_title, "start")

    def line(self, points: Points, colour: str, *, width: float = 2, dash: str = "") -> None:
        """A line through points."""
        if len(points) > 1:
            dashes = f' stroke-dasharray="{dash}"' if dash else ""
            path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
            self.pieces.append(
                f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"{dashes}/>'
            )

    def area(self, points: Points, colour: str) -> None:
        """A filled shape."""
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.pieces.append(f'<polygon points="{path}" fill="{colour}"/>')

    def dots(self, points: Points, colour: str, texts: Sequence[str] = (), *, radius: float = 3) -> None:
        """Dots, with texts that a pointer shows."""
        for number, (x, y) in enumerate(points):
            title = f"<title>{escaped(texts[number])}</title>" if texts else ""
            where = f'cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="{radius:g}"'
            self.pieces.append(
                f'<circle {where} fill="{colour}">{title}</circle>' if title else f'<circle {where} fill="{colour}"/>'
            )

    def cell(self, x: float, y: float, colour: str, half: tuple[float, float]) -> None:
        """A filled box about a point, so many units of the data to either side."""
        left, right, top, bottom = self.x(x - half[0]), self.x(x + half[0]), self.y(y + half[1]), self.y(y - half[1])
        self.pieces.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left + 0.3:.1f}" height="{bottom - top + 0.3:.1f}" '
            f'fill="{colour}"/>'
        )

    def box(self, x: float, y: float, colour: str, size: float = 12) -> None:
        """An empty square about a point."""
        left, top = self.x(x) - size / 2, self.y(y) - size / 2
        self.pieces.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{size:g}" height="{size:g}" fill="none" stroke="{colour}" '
            'stroke-width="2.5"/>'
        )

    def rule_at(
        self, value: float, colour: str, text: str, *, css_class: str = "", dash: str = "", low: bool = False
    ) -> None:
        """A vertical line with a text above it, on the side where there is more room."""
        x, late = self.x(value), value > sum(self.x_range) / 2
        top = self.margins.top - (2 if low else 12)
        style = f' stroke-dasharray="{dash}"' if dash else ""
        named = f' class="{css_class}"' if css_class else ""
        self.pieces.append(
            f'<line{named} x1="{x:.1f}" x2="{x:.1f}" y1="{top:g}" y2="{self.height - self.margins.bottom:g}" '
            f'stroke="{colour}" stroke-width="1.5"{style}/>'
        )
        anchor, shift = ("end", -4) if late else ("start", 4)
        self.text(x + shift, self.margins.top + (8 if low else -6), text, anchor, colour, css_class)

    def text(self, x: float, y: float, text: str, anchor: str, colour: str = INK, css_class: str = "") -> None:
        """A text at a place of the drawing, not of the data."""
        named = f' class="{css_class}"' if css_class else ""
        self.pieces.append(
            f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" dominant-baseline="middle" '
            f'fill="{colour}">{escaped(text)}</text>'
        )

    def svg(self, css_class: str = "", **data: float) -> Markup:
        """The drawing; ``data`` are numbers for the page's script."""
        numbers = "".join(f' data-{name}="{value:.6g}"' for name, value in data.items())
        named = f' class="{css_class}"' if css_class else ""
        return Markup(
            f'<svg{named} viewBox="0 0 {self.width:g} {self.height:g}" font-size="{FONT_SIZE}" aria-hidden="true"'
            f' focusable="false"{numbers}>{"".join(self.pieces)}</svg>'
        )

    def _rule(self, x1: float, x2: float, y1: float, y2: float, colour: str) -> None:
        self.pieces.append(f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}" stroke="{colour}"/>')


Text = Callable[[float], str]


def ticks(low: float, high: float, about: int = 5, *, whole: bool = False) -> list[float]:
    """About so many round numbers within a range."""
    raw = (high - low) / about
    if not raw > 0:
        return [low]
    power = 10.0 ** np.floor(np.log10(raw))
    step = float(power * min((1, 2, 5, 10), key=lambda factor: abs(factor * power - raw)))
    step = max(step, 1.0) if whole else step
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [round(number * step, 12) for number in range(first, last + 1)]


def text_width(text: str) -> float:
    """About how wide a text is drawn, and rather more than less: fonts differ."""
    return FONT_SIZE * sum(0.95 if letter in WIDE else 0.75 if letter.isupper() else 0.64 for letter in text)


def spread_labels(desired: Sequence[float], gap: float, top: float, bottom: float) -> list[float]:
    """Places of labels from top to bottom, in ascending order, at least ``gap`` apart where there is room."""
    places, last = [], top - gap
    for place in desired:
        last = max(place, last + gap)
        places.append(last)
    over = max(0.0, (places[-1] if places else 0.0) - bottom)
    for index in range(len(places) - 1, -1, -1):
        limit = bottom - gap * (len(places) - 1 - index)
        places[index] = min(places[index], limit) if over else places[index]
    return places
