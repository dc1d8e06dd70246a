"""Results of the reproductions as JSON, as small pictures, and as one page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from PIL import Image

INCHES = (3.4, 2.7)
DOTS_PER_INCH = 100
PALETTE = 128
"""Colours of a picture: so few keep it small."""

DEFAULT = "pauca's default"
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#7f7f7f", "#bcbd22", "#17becf")
# Contenders of one paper keep their colours from figure to figure; others take those that are left, in order.
COLOUR_OF = dict(zip(("FoBa-obj", "Forward-obj", "FoBa-gdt", "Forward-gdt"), COLOURS, strict=False))
WIDEST, NARROWEST = 2.2, 1.2
"""Later curves are narrower and lie on the ones before, so that curves that coincide can be distinguished."""


@dataclass(frozen=True)
class Table:
    """A table: published figures beside ours."""

    title: str
    header: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Panel:
    """One pair of axes with its curves, each a list of x and a list of y; ``log`` names the logarithmic axes."""

    title: str
    x: str
    y: str
    curves: dict[str, tuple[list[float], list[float]]]
    log: str = ""
    dashed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Claim:
    """A published conclusion, and what was found here."""

    published: str
    found: str
    holds: bool


@dataclass(frozen=True)
class Result:
    """What one item has shown."""

    text: str
    """What was run, and where that differs from the paper."""
    claims: list[Claim]
    tables: list[Table] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)


@dataclass(frozen=True)
class Item:
    """A table or figure of a paper, or several that share their computations."""

    title: str
    run: Callable[[bool, Path], Result]


def write_result(file: Path, result: Result, *, quick: bool, seconds: float) -> None:
    """Keep a result and the processor time it took; an interrupted run leaves no half of the file."""
    content = {"quick": quick, "seconds": round(seconds, 1), **asdict(result)}
    part = file.with_suffix(".part")
    # Numbers of NumPy become plain ones.
    part.write_text(json.dumps(content, indent=1, default=lambda number: number.item()), encoding="utf-8")
    part.replace(file)


def read_result(file: Path, *, quick: bool) -> tuple[Result, float] | None:
    """A kept result and the processor time it took; None if there is none of this kind."""
    if not file.exists():
        return None
    content = json.loads(file.read_text(encoding="utf-8"))
    if content["quick"] != quick:
        return None
    parts = {"claims": Claim, "tables": Table, "panels": Panel}
    found = {name: [kind(**one) for one in content[name]] for name, kind in parts.items()}
    return Result(content["text"], **found), content["seconds"]


def draw(panels: list[Panel], file: Path) -> None:
    """Draw all panels of an item side by side, two to a row where there are four, with one legend below."""
    columns = 2 if len(panels) == 4 else min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(columns * INCHES[0], rows * INCHES[1] + 0.4), layout="constrained")
    styles, handles = _styles(panels), dict[str, Any]()
    for axes, panel in zip(figure.subplots(rows, columns, squeeze=False).ravel(), panels, strict=False):
        handles |= _draw_panel(axes, panel, styles)
    ordered = {name: handles[name] for name in [*sorted(handles, key=list(styles).index)[1:], DEFAULT]}
    figure.legend(ordered.values(), ordered, loc="outside lower center", ncols=2 * columns, fontsize=7, frameon=False)
    buffer = BytesIO()
    figure.savefig(buffer, dpi=DOTS_PER_INCH)
    Image.open(buffer).convert("RGB").quantize(PALETTE, dither=Image.Dither.NONE).save(file, optimize=True)


def _styles(panels: list[Panel]) -> dict[str, tuple[str, float]]:
    """Colour and width of every curve; pauca's default is black, the widest, and drawn first."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.curves if name != DEFAULT))
    left = iter([colour for colour in COLOURS if colour not in {COLOUR_OF.get(name) for name in names}])
    widths = np.linspace(WIDEST, NARROWEST, len(names)).tolist()
    styles = {name: (COLOUR_OF.get(name) or next(left), width) for name, width in zip(names, widths, strict=True)}
    return {DEFAULT: ("black", 1.3 * WIDEST)} | styles


def _draw_panel(axes: Any, panel: Panel, styles: dict[str, tuple[str, float]]) -> dict[str, Any]:
    """Draw the curves of a panel; returns a handle for each."""
    handles = {}
    for name, (colour, width) in styles.items():
        if name in panel.curves:
            x, y = panel.curves[name]
            style = "--" if name in panel.dashed else "-"
            marker = "" if len(x) > 20 or name in panel.dashed else "o"
            (handles[name],) = axes.plot(x, y, style, color=colour, lw=width, marker=marker, ms=1.5 + width)
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(panel.x, fontsize=8)
    axes.set_ylabel(panel.y, fontsize=8)
    axes.tick_params(labelsize=7)
    if "x" in panel.log:
        axes.set_xscale("log")
        _label(axes.xaxis, [x for curve, _ in panel.curves.values() for x in curve])
    elif all(float(x).is_integer() for curve, _ in panel.curves.values() for x in curve):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if "y" in panel.log:
        axes.set_yscale("log")
        _label(axes.yaxis, [y for _, curve in panel.curves.values() for y in curve])
    return handles


def _label(axis: Any, values: list[float]) -> None:
    """On a logarithmic axis of less than two decades: plain numbers at 1, 2 and 5, or more where that is too few."""
    axis.set_minor_formatter(NullFormatter())
    low, high = np.nanmin(values), np.nanmax(values)
    if low > 0 and high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 10 * low else (1, 1.5, 2, 3, 4, 5, 7)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def page(items: dict[str, Item], results: dict[str, tuple[Result, float]]) -> str:
    """All results as one page of Markdown; pictures lie beside it."""
    return "\n".join(_page(items, results)) + "\n"


def _page(items: dict[str, Item], results: dict[str, tuple[Result, float]]) -> Iterator[str]:
    yield "# Tables and figures of the papers"
    yield ""
    yield "Written by `make papers DATA=FOLDER`. Published figures are beside ours. Black, thick curves are pauca's"
    yield 'default (`method="exchange"` for searches), which is not in the papers. What each item is in code:'
    yield "[Papers to code](../papers.md). Times are those of one core."
    yield from ("", "## What is confirmed", "", _row(["item", "published", "confirmed"]), _row(["---"] * 3))
    for name, (result, _) in results.items():
        for claim in result.claims:
            link = f"[{items[name].title}](#{_slug(items[name].title)})"
            yield _row([link, claim.published, "yes" if claim.holds else f"**no**: {claim.found}"])
    for name, (result, seconds) in results.items():
        yield from ("", f"## {items[name].title}", "")
        yield from (f"`python -m benchmarks.papers {name}`, {seconds:.0f} s", "", result.text, "")
        for claim in result.claims:
            yield f"- Published: {claim.published}. {_verdict(claim.holds)}: {claim.found}."
        for table in result.tables:
            yield from ("", f"**{table.title}**", "", _row(table.header), _row(["---"] * len(table.header)))
            yield from map(_row, table.rows)
        if result.panels:
            yield from ("", f"![{items[name].title}]({name}.png)")


def _slug(title: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _verdict(holds: bool) -> str:
    return "Confirmed" if holds else "**Not confirmed**"


def _row(cells: list[str]) -> str:
    # A bar within a cell would end it.
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
