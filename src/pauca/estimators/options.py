"""Parameters that cannot be meant are refused before any data are looked at, in scikit-learn's words."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np


def check_number(
    estimator: Any, name: str, value: Any, *, positive: bool = False, below: float = math.inf, otherwise: str = ""
) -> float:
    """A number that is not negative, or positive if asked, and below a limit; ``otherwise`` names what else may be."""
    wanted = f"a float in the range {'(0' if positive else '[0'}, {below:g}){otherwise}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(refusal(estimator, name, wanted, value))
    try:
        number = float(value)
    except OverflowError:  # an integer of hundreds of digits
        number = math.inf
    if not 0 <= number < below or (positive and number == 0):
        raise ValueError(refusal(estimator, name, wanted, number))
    return number


def check_count(estimator: Any, name: str, value: Any, otherwise: str = "") -> int:
    """An integer of at least one; ``otherwise`` tells what else there might have been."""
    wanted = f"an int in the range [1, inf) {otherwise}".rstrip()
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(refusal(estimator, name, wanted, value))
    if value < 1:
        raise ValueError(refusal(estimator, name, wanted, value))
    return int(value)


def one_of(estimator: Any, name: str, value: Any, allowed: tuple[str, ...]) -> None:
    """One of a few words."""
    if value not in allowed:
        raise ValueError(refusal(estimator, name, f"one of {', '.join(map(repr, allowed))}", value))


def check_flag(estimator: Any, name: str, value: Any) -> None:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(refusal(estimator, name, "a bool", value))


def check_callable(estimator: Any, name: str, value: Any) -> None:
    """Something that can be called, or None."""
    if value is not None and not callable(value):
        raise TypeError(refusal(estimator, name, "a callable or None", value))


def refusal(estimator: Any, name: str, wanted: str, value: Any) -> str:
    """What is said of a parameter that cannot be meant, in scikit-learn's words."""
    return f"The {name!r} parameter of {type(estimator).__name__} must be {wanted}. Got {value!r} instead."
