"""Figures next to their targets, as markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

COLUMNS = ("problem", "figure", "target", "measured", "reached")


class Figure(NamedTuple):
    """One measured figure; without a limit it is shown for comparison and judged by nobody."""

    problem: str
    name: str
    measured: float
    limit: float | None = None
    at_least: bool = False
    unit: str = ""
    digits: int = 2

    @property
    def reached(self) -> bool | None:
        """Whether the limit is kept, judged on the figure before rounding."""
        if self.limit is None:
            return None
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def cells(self) -> tuple[str, ...]:
        """Row of the table."""
        target = "-"
        if self.limit is not None:
            target = f"{'at least' if self.at_least else 'at most'} {self.limit:g}{self.unit}"
        verdict = {None: "-", True: "yes", False: "NO"}[self.reached]
        return self.problem, self.name, target, f"{self.measured:.{self.digits}f}{self.unit}", verdict


def table(figures: Iterable[Figure]) -> Iterator[str]:
    """Lines of a markdown table."""
    yield from lines(COLUMNS, [figure.cells() for figure in figures])


def lines(columns: tuple[str, ...], cells: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Lines of a markdown table with any columns."""
    rows = [columns, *cells]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    yield f"| {padded[0]} |"
    yield f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    yield from (f"| {line} |" for line in padded[1:])


def verdict(figures: Iterable[Figure]) -> str:
    """One sentence on all figures that have a target."""
    judged = [figure.reached for figure in figures if figure.reached is not None]
    return f"{sum(judged)} of {len(judged)} targets reached."
