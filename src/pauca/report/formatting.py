"""Numbers, names and HTML as the page shows them. Text is escaped; a type of its own marks what is HTML already."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

MINUS = "\N{MINUS SIGN}"
NONE = "\N{EN DASH}"
SPACE = "\N{NO-BREAK SPACE}"

LONG_NAME = 20


def number(value: float, digits: int = 5) -> str:
    """A number with so many significant digits: 605.71, 12346, 0.011710, 1.2300e-09."""
    if not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    fixed = -4 <= exponent < 7
    text = f"{value:.{max(0, digits - 1 - exponent)}f}" if fixed else f"{value:.{digits - 1}e}"
    return text.replace("-", MINUS)


def short_number(value: float) -> str:
    """A cost or a count: 12, 0.5, 1500."""
    return f"{value:.6g}".replace("-", MINUS) if math.isfinite(value) else NONE


def percent(share: float, digits: int = 1) -> str:
    """A fraction as a percentage: 50.1 %."""
    return f"{points(share, digits)}{SPACE}%" if math.isfinite(share) else NONE


def whole_percent(share: float) -> str:
    """A fraction as a whole percentage, with a digit or in words where it would be 100 % but is less: 99.6 %."""
    if not 0.995 <= share < 1:
        return percent(share, 0)
    return percent(share, 1) if share < 0.9995 else f"nearly 100{SPACE}%"


def points(share: float, digits: int = 1) -> str:
    """A fraction in percentage points, without the percent sign."""
    return f"{100 * share:z.{digits}f}".replace("-", MINUS)


def unbroken(text: str) -> str:
    """Text whose percentages and errors stay on one line."""
    return text.replace(" %", f"{SPACE}%").replace("± ", f"±{SPACE}")


def count(many: int, noun: str) -> str:
    """``1 feature``, ``2 features``, ``no features``."""
    return f"{many or 'no'} {noun}{'' if many == 1 else 's'}"


def enumerate_names(names: Sequence[str], most: int = 12) -> str:
    """``a, b and c``; long lists are shortened."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(text: str) -> Markup:
    """Text as HTML."""
    return text if isinstance(text, Markup) else Markup(html.escape(text))


def tag(name: str, *content: str, **attributes: str) -> Markup:
    """An element; in attribute names a trailing underscore is dropped, other underscores become hyphens."""
    pairs = "".join(f' {key.rstrip("_").replace("_", "-")}="{html.escape(v)}"' for key, v in attributes.items())
    return Markup(f"<{name}{pairs}>{joined(content)}</{name}>")


def joined(pieces: Iterable[str]) -> Markup:
    """Pieces one after the other."""
    return Markup("".join(escaped(piece) for piece in pieces))


def name_tag(text: str) -> Markup:
    """A name from the data, isolated so that it cannot change the writing direction of the text around it.

    Long ones may be broken after an underscore.
    """
    name = escaped(" ".join(text.split()) or "(no name)")
    return tag("bdi", name if len(name) < LONG_NAME else Markup(name.replace("_", "_<wbr>")))


# Tables with more columns of numbers than this are set in smaller type, with fewer digits.
MANY_NUMBERS = 4


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], n_names: int = 1) -> Markup:
    """A table whose first columns hold names and the others numbers; it scrolls if it is too wide."""
    head = joined(
        tag("th", text if isinstance(text, Markup) else name_tag(text), scope="col", class_=_cell_class(index, n_names))
        for index, text in enumerate(heads)
    )
    labels = [" ".join(text.split()) for text in heads]
    body = joined(tag("tr", *_cells(row, n_names, labels)) for row in rows)
    inside = tag("table", tag("caption", caption), tag("thead", tag("tr", head)), tag("tbody", body))
    kind = "scroll many" if len(heads) - n_names > MANY_NUMBERS else "scroll"
    return tag("div", inside, class_=kind, role="region", tabindex="0", aria_label=caption)


def _cells(row: Sequence[str], n_names: int, labels: Sequence[str]) -> Iterable[Markup]:
    """Cells with the heads of their columns, which stand before them where the screen is too narrow for columns."""
    for index, text in enumerate(row):
        kind = _cell_class(index, n_names)
        if index == n_names - 1:
            yield tag("th", name_tag(text), scope="row", class_=kind)
        else:
            content = name_tag(text) if text and kind == "name" else text
            yield tag("td", content, class_=kind, data_label=labels[index])


def _cell_class(index: int, n_names: int) -> str:
    return "name" if index < n_names else "number"


def data_block(identity: str, value: Any) -> Markup:
    """Values for the page's script, escaped so that nothing in them can end the block."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(f'<script type="application/json" id="{identity}">{text}</script>')
