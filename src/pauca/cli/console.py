"""What the command line shows on stderr: errors of one line, notes, and the progress of a long fit."""

from __future__ import annotations

import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pauca.wording import closest_name, quoted

if TYPE_CHECKING:
    from pauca.runs.run import Progress

# Seconds before the progress bar appears, and between two updates of it.
BAR_DELAY = 0.5
BAR_INTERVAL = 0.1
BAR_WIDTH = 24


INTERRUPTED = 130
"""The exit code after Ctrl-C."""


class CommandError(Exception):
    """An error that is shown in one line, and its exit code."""

    code = 1


class DataError(CommandError):
    """An invalid file or table."""


class UsageError(CommandError):
    """Invalid options."""

    code = 2


class Aborted(BaseException):
    """Ctrl-C for the second time. Not an Exception, so that no library catches it."""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The end of a message on an unknown name: the closest known name, or the known names."""
    known = list(names)
    close = closest_name(name, known)
    if close:
        return f"; did you mean {close!r}?"
    return f"; there are {quoted(known)}" if known else ""


def count(number: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def one_line(text: str) -> str:
    """Text without line breaks and control characters, which names from files may hold."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))


class Console:
    """Prints notes on stderr unless it is quiet, and keeps them for --json."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Print a note, once."""
        line = one_line(text)
        if line in self.notes:
            return
        self.notes.append(line)
        if not self.quiet:
            print(f"pauca: {line}", file=sys.stderr, flush=True)

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Print warnings as notes."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            finally:
                messages = [str(warning.message) for warning in caught]
        for message in messages:
            self.note(message)


class ProgressBar:
    """The callback of a fit: draws a bar with the time left, and stops the search after Ctrl-C."""

    def __init__(self, *, visible: bool, time_limit: float | None = None) -> None:
        self.interrupted = False
        self._visible = visible and sys.stderr.isatty()
        self._time_limit = time_limit
        self._started = self._drawn = time.monotonic()
        self._shares: dict[int | None, float] = {}
        self._on_screen = False

    def __call__(self, progress: Progress) -> bool:
        """Record a move; True stops the search."""
        now = time.monotonic()
        # The progress of a search that starts with all columns is unknown.
        self._shares[progress.fold] = progress.size / progress.k if progress.k and progress.size <= progress.k else 0.0
        if self._visible and now - self._started > BAR_DELAY and now - self._drawn > BAR_INTERVAL:
            self._drawn, self._on_screen = now, True
            sys.stderr.write(f"\r{self.line(progress, now - self._started)}\x1b[K")
            sys.stderr.flush()
        return self.interrupted

    def line(self, progress: Progress, elapsed: float) -> str:
        """The bar, the current run, and the time left."""
        share = min(1.0, sum(self._shares.values()) / (1 + progress.n_folds))
        full = int(BAR_WIDTH * share)
        run = "all rows" if progress.fold is None else f"fold {progress.fold + 1} of {progress.n_folds}"
        left = elapsed * (1 - share) / share if share > 0 else None
        if self._time_limit is not None:
            limit = max(0.0, self._time_limit - elapsed)
            left = limit if left is None else min(left, limit)
        estimate = "" if left is None else f", about {_duration(left)} left"
        return f"[{'#' * full}{'.' * (BAR_WIDTH - full)}] {run}, size {progress.size}{estimate}"

    @contextmanager
    def handling_interrupts(self) -> Iterator[None]:
        """Ctrl-C once stops the fit and keeps what it found; a second time it ends the program."""
        # Only the main thread may set signal handlers.
        is_main = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGINT, self._interrupt) if is_main else None
        try:
            yield
        finally:
            if is_main:
                signal.signal(signal.SIGINT, before)
            if self._on_screen:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()

    def _interrupt(self, number: int, frame: Any) -> None:
        if self.interrupted:
            raise Aborted
        self.interrupted = True
        raise KeyboardInterrupt  # the search catches it and keeps what it has found


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
