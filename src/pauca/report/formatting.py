"""Numbers and names as people write them."""

from __future__ import annotations

import math
from collections.abc import Sequence

MINUS = "\N{MINUS SIGN}"
NONE = "\N{EN DASH}"
SPACE = "\N{NO-BREAK SPACE}"


def number(value: float, digits: int = 5) -> str:
    """A number with so many significant digits: 605.71, 12346, 0.011710, 1.2300e-09."""
    if not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    plain = -4 <= exponent < 7
    text = f"{value:.{max(0, digits - 1 - exponent)}f}" if plain else f"{value:.{digits - 1}e}"
    return text.replace("-", MINUS)


def short_number(value: float) -> str:
    """A price or a count: 12, 0.5, 1500."""
    return f"{value:.6g}".replace("-", MINUS) if math.isfinite(value) else NONE


def percent(share: float, digits: int = 1) -> str:
    """A share of one as a percentage: 50.1 %."""
    return f"{points(share, digits)}{SPACE}%" if math.isfinite(share) else NONE


def points(share: float, digits: int = 1) -> str:
    """A share of one in percentage points, without the sign."""
    text = f"{100 * share:.{digits}f}"
    return ("0.0" if float(text) == 0 and digits == 1 else text).replace("-", MINUS)


def unbroken(text: str) -> str:
    """Text whose percentages and errors stay on one line."""
    return text.replace(" %", f"{SPACE}%").replace("± ", f"±{SPACE}")


def count(many: int, noun: str) -> str:
    """``1 feature``, ``2 features``, ``no features``."""
    return f"{many or 'no'} {noun}{'' if many == 1 else 's'}"


def listed(names: Sequence[str], most: int = 12) -> str:
    """``a, b and c``; long lists are cut."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
