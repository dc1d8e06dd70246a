"""What the command line shows on stderr: errors of one line, notes, and the progress of a long fit."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pauca.results.instructions import parameters_as_options
from pauca.wording import closest_name, quoted

if TYPE_CHECKING:
    from pauca.runs.run import Progress

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


SLOW_START = 2.0
"""Seconds of importing after which a word is said: on a busy machine scikit-learn alone may take ten."""

LONGEST_WAIT = 5.0
"""Seconds after which it is said again."""


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


def require_file(path: str, what: str) -> None:
    """Raise an error if there is no such file, with the nearest name; ``-`` is standard input."""
    if path == "-" or (os.path.exists(path) and not os.path.isdir(path)):
        return
    if os.path.isdir(path):
        raise DataError(f"{path} is a folder, not {what}")
    folder = os.path.dirname(path) or "."
    stem, ending = os.path.splitext(os.path.basename(path))
    # Endings are left out, as all tables share them; of files that differ by the ending alone, the same one is taken.
    known = sorted(os.listdir(folder) if os.path.isdir(folder) else [], key=lambda name: name.endswith(ending))
    stems = {os.path.splitext(name)[0]: name for name in known}
    close = closest_name(stem, stems)
    raise DataError(f"there is no file {path}" + (f"; did you mean {stems[close]!r}?" if close else ""))


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
    def starting(self) -> Iterator[None]:
        """Say that the program is starting, if what is done here takes long, and again while it does."""
        began, ended = time.monotonic(), threading.Event()

        def say() -> None:
            wait, so_far = SLOW_START, ""
            while not ended.wait(wait):
                print(f"pauca: starting{so_far}", file=sys.stderr, flush=True)
                wait = LONGEST_WAIT
                so_far = f", {time.monotonic() - began + wait:.0f} s so far"

        thread = threading.Thread(target=say, daemon=True)
        if not self.quiet:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            if not self.quiet:
                thread.join()

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
            self.note(parameters_as_options(message))


class FitProgress:
    """The callback of a fit: shows its progress, and stops the search after Ctrl-C."""

    def __init__(self, *, visible: bool, time_limit: float | None = None) -> None:
        self.interrupted = False
        self._visible = visible
        self._time_limit = time_limit
        self._report: Any = None

    def __call__(self, progress: Progress) -> bool:
        """Record a move; True stops the search."""
        if self._report is not None:
            self._report(progress)
        return self.interrupted

    def runs_begin(self, n_runs: int, n_folds: int, at_once: int = 1, may_grow: bool = False) -> None:
        """A round of runs begins."""
        if self._report is not None:
            self._report.runs_begin(n_runs, n_folds, at_once, may_grow)

    def run_ended(self, number: int) -> None:
        """A run is complete."""
        if self._report is not None:
            self._report.run_ended(number)

    @contextmanager
    def showing(self, phase: str) -> Iterator[None]:
        """Show on stderr what is being done, and how much is left where that is known."""
        if not self._visible:
            yield
            return
        from pauca.runs.progress import ProgressReport

        self._report = ProgressReport(time_limit=self._time_limit)
        self._report.phase(phase)
        try:
            with self._report:
                yield
        finally:
            self._report = None

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

    def _interrupt(self, number: int, frame: Any) -> None:
        if self.interrupted:
            raise Aborted
        self.interrupted = True
        raise KeyboardInterrupt  # the search catches it and keeps what it has found
