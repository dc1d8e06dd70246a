"""Checks of functions that a user wrote: how they are called, what they return, and how slopes are compared.

``losses.checks`` checks losses with it, ``custom.gradient_check`` whole objectives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

# Kinds of arrays that hold real numbers: bool, int and float.
NUMBERS = "biuf"


class FunctionCheck:
    """The functions of one object; whatever is wrong raises a ``ValueError`` that begins with the function's name.

    Parameters
    ----------
    owner : object
    title : callable
        What to call a function of the owner in a message, from its name.
    """

    def __init__(self, owner: object, title: Callable[[str], str]) -> None:
        self._owner = owner
        self._title = title

    def reject(self, function: str, problem: str) -> NoReturn:
        """Raise the ``ValueError``."""
        raise ValueError(f"{self._title(function)} {problem}{'' if problem.endswith('.') else '.'}")

    def call(self, function: str, *arguments: Any, where: str) -> Any:
        """What a function returns; it must not fail, and must leave arrays that it is given as they are."""
        before = [np.array(one) for one in arguments if isinstance(one, np.ndarray)]
        try:
            with np.errstate(all="ignore"):
                found = getattr(self._owner, function)(*arguments)
        except Exception as error:
            raise ValueError(f"{self._title(function)} fails {where}: {error}") from error
        after = [one for one in arguments if isinstance(one, np.ndarray)]
        if not all(np.array_equal(*pair, equal_nan=True) for pair in zip(before, after, strict=True)):
            self.reject(function, "changes the array it is given; it must make a new one")
        return found

    def array(self, function: str, found: Any, shape: tuple[int, ...], given: str = "") -> np.ndarray:
        """What a function has returned, as an array of a shape; ``given`` may describe the arguments."""
        if np.shape(found) != shape or np.asarray(found).dtype.kind not in NUMBERS:
            self.reject(function, f"returns {described(found)}{given}, not an array of numbers of shape {shape}")
        return np.asarray(found, dtype=np.float64)


def described(found: Any) -> str:
    """What was returned, in a few words."""
    if np.shape(found) == ():
        return type(found).__name__
    kind = np.asarray(found).dtype
    return f"an array of shape {np.shape(found)}" + ("" if kind.kind in NUMBERS else f" and type {kind}")


def falls(before: Any, after: Any, share: float, rounding: float) -> Any:
    """Whether slopes fall from one point to the next, as those of no convex function do, elementwise.

    By more than ``share`` of the larger one and ``rounding``.
    """
    return after < before - share * np.maximum(np.abs(before), np.abs(after)) - rounding
