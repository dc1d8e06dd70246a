"""Names and values as they appear in messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

NAMES_SHOWN = 5

FORCED_IN = "forced in"
"""The mark of what ``always`` has put into a model: it was not chosen."""


AT_BOUND = "at its bound"
"""The mark of a coefficient that ``bounds`` keep from going further."""


def held_at_bound(names: Sequence[str]) -> str:
    """``'age' is at its bound``, for one coefficient or for several."""
    return f"{quoted(names)} {'is at its bound' if len(names) == 1 else 'are at their bounds'}"


def column_names(names: Sequence[str] | np.ndarray | None, columns: Iterable[int]) -> list[str]:
    """Names of some columns; ``x3`` stands for column 3 of a table without names."""
    return [f"x{j}" if names is None else str(names[j]) for j in columns]


def printable(text: str) -> str:
    """Text for a terminal or a plot, in which nothing is obeyed instead of shown.

    Escapes, line breaks and marks of direction stand as Python writes them.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def quoted(names: Sequence[str], more: int = 0) -> str:
    """The first few names in quotes, and how many more there are."""
    more += max(0, len(names) - NAMES_SHOWN)
    shown = ", ".join(map(repr, names[:NAMES_SHOWN]))
    return f"{shown} and {more} more" if more else shown


def quoted_columns(names: Sequence[str] | np.ndarray | None, columns: Sequence[int] | np.ndarray) -> str:
    """The names of the first few columns in quotes, and how many more there are."""
    return quoted(column_names(names, columns[:NAMES_SHOWN]), max(0, len(columns) - NAMES_SHOWN))


def closest_name(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant, whatever its case; None if none is near.

    Of two names of which one is twice as long, one must contain the other: ``id`` shares letters with ``died``. Levels
    of a category, as in ``city=Lyon``, do not count.
    """
    by_letters, name = {known.casefold(): known for known in names}, name.casefold()
    for near in get_close_matches(name, by_letters):
        short, long = sorted((near.partition("=")[0], name), key=len)
        if 2 * len(short) > len(long) or short in long:
            return by_letters[near]
    return None


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Rows of cells as lines, the first ``left`` columns aligned left and the others right."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    signs = ["<" if index < left else ">" for index in range(len(widths))]
    return [
        "  ".join(f"{cell:{sign}{width}}" for cell, sign, width in zip(row, signs, widths, strict=True)).rstrip()
        for row in rows
    ]


def plain(value: Any) -> Any:
    """A value as people write it: ``1.0``, not ``np.float64(1.0)``."""
    return value.item() if getattr(value, "shape", None) == () else value
