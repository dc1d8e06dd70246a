"""Checks of parameters before any data are looked at, in scikit-learn's wording; errors of what cannot be computed."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ParameterChecks:
    """Checks of the parameters of one class or function, whose name every message mentions."""

    owner: str

    def number(
        self, name: str, value: Any, *, positive: bool = False, below: float = math.inf, otherwise: str = ""
    ) -> float:
        """A number that is not negative, or positive if required, and below a limit.

        ``otherwise`` names the values that are allowed besides numbers.
        """
        if type(value) is float and (0 < value < below or (value == 0 and not positive)):
            # As a rule: to put the words of an error together takes longer than the check.
            return value
        wanted = f"a float in the range {'(0' if positive else '[0'}, {below:g}){otherwise}"
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError(self.message(name, wanted, value))
        try:
            number = float(value)
        except OverflowError:  # an integer of hundreds of digits
            number = math.inf
        if not 0 <= number < below or (positive and number == 0):
            raise ValueError(self.message(name, wanted, number))
        return number

    def count(self, name: str, value: Any, otherwise: str = "", *, least: int = 1) -> int:
        """An integer of at least ``least``."""
        wanted = f"an int in the range [{least}, inf) {otherwise}".rstrip()
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise TypeError(self.message(name, wanted, value))
        if value < least:
            raise ValueError(self.message(name, wanted, value))
        return int(value)

    def verbose(self, value: Any) -> int:
        """The parameter ``verbose``: 0, or more to show progress; True and False count as 1 and 0."""
        return self.count("verbose", int(value) if isinstance(value, bool | np.bool_) else value, least=0)

    def one_of(self, name: str, value: Any, allowed: Iterable[Any]) -> None:
        """One of a few values."""
        options = list(allowed)
        if not isinstance(value, str | None) or value not in options:
            raise ValueError(self.message(name, f"one of {', '.join(map(repr, options))}", value))

    def flag(self, name: str, value: Any) -> bool:
        """True or False."""
        if not isinstance(value, bool | np.bool_):
            raise TypeError(self.message(name, "a bool", value))
        return bool(value)

    def optional_callable(self, name: str, value: Any) -> None:
        """A callable, or None."""
        if value is not None and not callable(value):
            raise TypeError(self.message(name, "a callable or None", value))

    def optional_text(self, name: str, value: Any) -> str | None:
        """A text that is not empty, or None."""
        if not isinstance(value, str | None):
            raise TypeError(self.message(name, "a str or None", value))
        if value is not None and not value.strip():
            raise ValueError(self.message(name, "a str that is not empty, or None", value))
        return value

    def time_limit(self, value: Any) -> float | None:
        """A positive number of seconds, or None for no limit."""
        return None if value is None else self.number("time_limit", value, positive=True)

    def message(self, name: str, wanted: str, value: Any) -> str:
        """What a parameter must be, and what it is."""
        return f"The {name!r} parameter of {self.owner} must be {wanted}. Got {value!r} instead."


OUT_OF_RANGE = (
    "The numbers of this fit leave the range of floating-point numbers. Bring the columns of X, and y, to similar "
    "sizes, remove extreme values, or set a ridge."
)


@contextmanager
def arithmetic_in_words() -> Iterator[None]:
    """A context in which NumPy warns of no overflow, and what cannot be computed raises an error in words."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        if hasattr(error, RAISED_BY_USERS_CODE):
            raise
        raise ValueError(f"{OUT_OF_RANGE} ({type(error).__name__}: {error})") from error


RAISED_BY_USERS_CODE = "_raised_by_users_function"
"""Marks errors that ``arithmetic_in_words`` leaves alone."""


@contextmanager
def users_function() -> Iterator[None]:
    """A context in which a function is called that a user wrote: its errors leave a fit as they are."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        setattr(error, RAISED_BY_USERS_CODE, True)
        raise
