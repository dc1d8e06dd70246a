"""Pieces of HTML. Text goes in as text and is escaped; what is HTML already has a type of its own."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(text: str) -> Markup:
    """Text as HTML."""
    return text if isinstance(text, Markup) else Markup(html.escape(text))


def tag(name: str, *content: str, **attributes: str) -> Markup:
    """An element; a trailing underscore of an attribute's name is dropped, other underscores are hyphens."""
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{html.escape(v)}"' for key, v in attributes.items())
    return Markup(f"<{name}{written}>{joined(content)}</{name}>")


def joined(pieces: Iterable[str]) -> Markup:
    """Pieces one after the other."""
    return Markup("".join(escaped(piece) for piece in pieces))


def name_of(text: str) -> Markup:
    """A stranger's name: shown as it is, and kept from changing the direction of what stands around it."""
    return tag("bdi", " ".join(text.split()) or "(no name)")


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], n_names: int = 1) -> Markup:
    """A table whose first columns hold names, and the others numbers; it scrolls if there is no room for it."""
    head = joined(
        tag(
            "th",
            escaped(text) if isinstance(text, Markup) else name_of(text),
            scope="col",
            class_=_kind(place, n_names),
        )
        for place, text in enumerate(heads)
    )
    body = joined(tag("tr", *_cells(row, n_names)) for row in rows)
    inside = tag("table", tag("caption", caption), tag("thead", tag("tr", head)), tag("tbody", body))
    return tag("div", inside, class_="scroll", role="region", tabindex="0", aria_label=caption)


def _cells(row: Sequence[str], n_names: int) -> Iterable[Markup]:
    for place, text in enumerate(row):
        if place == n_names - 1:
            yield tag("th", name_of(text), scope="row", class_=_kind(place, n_names))
        else:
            yield tag("td", name_of(text) if text and place < n_names else escaped(text), class_=_kind(place, n_names))


def _kind(place: int, n_names: int) -> str:
    return "name" if place < n_names else "number"


def data_block(identity: str, value: Any) -> Markup:
    """Values for the page's script, in a block that nothing inside it can end."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(f'<script type="application/json" id="{identity}">{text}</script>')
