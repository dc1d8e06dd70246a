"""Numbers that theorems can be asked about: everything else is refused with a sentence."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

# A count that is a whole number but for rounding is that number.
ROUNDING = 1e-9
# Products of powers of numbers within this range are floats; nobody has asked about others.
SMALLEST, LARGEST = 1e-30, 1e30


def number(name: str, value: Any, *, above: float = 0.0) -> float:
    """A number above a bound, which is mostly zero, and neither tiny nor huge."""
    if not _is_number(value) or not above < float(value) < math.inf:
        wanted = "positive" if above == 0.0 else f"above {above:g}"
        raise ValueError(f"{name} must be {wanted} and finite; got {value!r}.")
    if not SMALLEST <= float(value) <= LARGEST:
        raise ValueError(f"{name} must lie between {SMALLEST:g} and {LARGEST:g}; got {value!r}.")
    return float(value)


def not_negative(name: str, value: Any) -> float:
    """A number that is not negative."""
    if not _is_number(value) or not 0.0 <= float(value) <= LARGEST:
        raise ValueError(f"{name} must be a number between 0 and {LARGEST:g}; got {value!r}.")
    return float(value)


def share(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    if not _is_number(value) or not 0.0 < float(value) < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {value!r}.")
    return float(value)


def count(name: str, value: Any, least: int = 1) -> int:
    """An integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}.")
    return int(value)


def one_of(name: str, value: Any, allowed: Iterable[str]) -> None:
    """An option among its allowed names."""
    allowed = tuple(allowed)
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")


def at_least(value: float) -> int:
    """The smallest integer that is not below a number."""
    nearest = round(value)
    return nearest if abs(value - nearest) <= ROUNDING * max(nearest, 1) else math.ceil(value)


def at_most(value: float) -> int:
    """The largest integer that is not above a number."""
    nearest = round(value)
    return nearest if abs(value - nearest) <= ROUNDING * max(nearest, 1) else math.floor(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
