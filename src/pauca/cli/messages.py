"""What can go wrong between a shell and a fit, in one line each."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pauca.wording import closest_name, quoted


class CommandError(Exception):
    """Something to be told in one line, and the exit code that goes with it."""

    code = 1


class BadData(CommandError):
    """Files or tables that are not as they must be."""


class BadUsage(CommandError):
    """Options that cannot be meant."""

    code = 2


class Aborted(BaseException):
    """Ctrl-C for the second time; no library may catch it and go on."""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A guess at what was meant, to be put at the end of a sentence; empty if there is none."""
    known = list(names)
    close = closest_name(name, known)
    if close:
        return f"; did you mean {close!r}?"
    return f"; there are {quoted(known)}" if known else ""


def counted(number: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class Voice:
    """Says things on stderr, unless it is to be quiet, and remembers them for --json."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Say something that a user should know, once."""
        line = one_line(text)
        if line in self.notes:
            return
        self.notes.append(line)
        if not self.quiet:
            print(f"pauca: {line}", file=sys.stderr, flush=True)

    @contextmanager
    def over_warnings(self) -> Iterator[None]:
        """Say what Python would warn of."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            finally:
                told = [str(warning.message) for warning in caught]
        for text in told:
            self.note(text)


def one_line(text: str) -> str:
    """Text without line breaks, fit for a terminal: what comes from files may hold anything."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
