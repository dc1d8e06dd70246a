"""Steps that several methods take."""

from __future__ import annotations

import numbers
from collections.abc import Iterable

from pauca.search.history import Stop
from pauca.subsets.base import REMOVALS, RULES, Subset


def next_addition(subset: Subset, rule: str, tol: float) -> int | Stop:
    """The unit to add next, or why there is none.

    The gain held against ``tol`` is the decrease after refitting, and a unit that does not reach it is not taken
    (Zhang 2011, Fig. 4; Fig. 1 of the same paper takes it and then stops).
    """
    if subset.value <= subset.perfect_below:
        return Stop.PERFECT
    unit = subset.best_addition(rule)
    if unit is None:
        return Stop.LIMITS if subset.held_back() else Stop.EXHAUSTED
    gain = subset.decrease(unit)
    if gain <= subset.negligible:
        return Stop.NO_GAIN
    if gain < tol:
        return Stop.TOLERANCE
    return unit


def one_of(name: str, value: object, allowed: Iterable[str]) -> None:
    """Refuse an option that is not among its allowed names."""
    allowed = tuple(allowed)
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")


def check_rule(rule: object) -> None:
    """Refuse a selection rule that does not exist."""
    one_of("rule", rule, RULES)


def check_removal(removal: object) -> None:
    """Refuse a removal cost that does not exist."""
    one_of("removal", removal, REMOVALS)


def check_count(name: str, value: object, least: int) -> None:
    """Refuse what is not an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}.")


def check_share(name: str, value: object) -> None:
    """Refuse what is not a number strictly between 0 and 1."""
    if not isinstance(value, numbers.Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {value!r}.")
