"""What the command says beside its answer: notes on stderr, in one place so that --quiet is quiet."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


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
