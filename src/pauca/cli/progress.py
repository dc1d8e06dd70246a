"""A long fit from the outside: a bar with the time left, and Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pauca.cli.messages import Aborted

if TYPE_CHECKING:
    from pauca.search.driver import Progress

# Shorter fits show no bar, and longer ones draw it no oftener than this, in seconds.
PATIENCE = 0.5
BETWEEN = 0.1

WIDTH = 24


class Watcher:
    """The callback of a fit: draws the bar, and ends the search once Ctrl-C was pressed."""

    def __init__(self, *, draws: bool, time_limit: float | None = None) -> None:
        self.interrupted = False
        self._draws = draws and sys.stderr.isatty()
        self._time_limit = time_limit
        self._began = self._drawn = time.monotonic()
        self._done: dict[int | None, float] = {}
        self._shown = False

    def __call__(self, progress: Progress) -> bool:
        """Be told of a move; True ends the search."""
        now = time.monotonic()
        # Of a search that begins with all columns nobody knows how far it is.
        self._done[progress.fold] = progress.size / progress.k if progress.k and progress.size <= progress.k else 0.0
        if self._draws and now - self._began > PATIENCE and now - self._drawn > BETWEEN:
            self._drawn, self._shown = now, True
            sys.stderr.write(f"\r{self.line(progress, now - self._began)}\x1b[K")
            sys.stderr.flush()
        return self.interrupted

    def line(self, progress: Progress, elapsed: float) -> str:
        """The bar, the run it is at, and the time left."""
        share = min(1.0, sum(self._done.values()) / (1 + progress.n_folds))
        full = int(WIDTH * share)
        run = "all rows" if progress.fold is None else f"fold {progress.fold + 1} of {progress.n_folds}"
        left = elapsed * (1 - share) / share if share > 0 else None
        if self._time_limit is not None:
            rest = max(0.0, self._time_limit - elapsed)
            left = rest if left is None else min(left, rest)
        told = "" if left is None else f", about {_duration(left)} left"
        return f"[{'#' * full}{'.' * (WIDTH - full)}] {run}, size {progress.size}{told}"

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Ctrl-C once ends the fit and keeps what it found, whenever it comes; twice it ends everything."""
        # Elsewhere than in the main thread Python has no say over signals.
        handles = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGINT, self._interrupt) if handles else None
        try:
            yield
        finally:
            if handles:
                signal.signal(signal.SIGINT, before)
            if self._shown:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()

    def _interrupt(self, number: int, frame: Any) -> None:
        if self.interrupted:
            raise Aborted
        self.interrupted = True
        raise KeyboardInterrupt  # the search catches it, and keeps what it has


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
