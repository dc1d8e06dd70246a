"""What can go wrong between a shell and a fit, in one line each."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

NAMES_SHOWN = 5


class CommandError(Exception):
    """Something to be told in one line, and the exit code that goes with it."""

    code = 1


class BadData(CommandError):  # noqa: N818
    """Files or tables that are not as they must be."""


class BadUsage(CommandError):  # noqa: N818
    """Options that cannot be meant."""

    code = 2


class Aborted(BaseException):
    """Ctrl-C for the second time; no library may catch it and go on."""


def listed(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(map(repr, names[:NAMES_SHOWN]))
    more = len(names) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A guess at what was meant, to be put at the end of a sentence; empty if there is none."""
    known = list(names)
    lower = {one.lower(): one for one in known}
    close = [lower[one] for one in difflib.get_close_matches(name.lower(), lower, n=1)]
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are {listed(known)}" if known else ""


def counted(number: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
