"""How a long fit is doing, on stderr: nothing for the first moment, then a bar or lines, with what is left."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self, TextIO

from pauca.runs.run import Progress

# Seconds before anything is shown, between two updates of a bar, and between two lines where there is no terminal: no
# wait above five seconds is silent.
DELAY = 0.5
INTERVAL = 0.2
LINE_INTERVAL = 4.0

BAR_WIDTH = 24


# What is left of a run is never called less than this share of a usual one, however long it takes.
LEAST_LEFT = 0.1

# The share of a run that must be done before what is left is inferred from it.
ENOUGH_DONE = 0.1

# The share of a search's time that must be over before the rest is told as more than a lower bound.
SURE_DONE = 0.25

# No more than this share is called done while a fit goes on: rounds that nobody knew of may follow the last one known.
MOST_DONE = 0.99

# Seconds that are left are told from here on: fewer would be "0 s".
LEAST_TOLD = 0.5


class TimeLeft:
    """What is left of a fit: a round of runs, on all rows and on those of every fold, and a last search on all rows.

    Runs of folds take about as long as each other, their scores included, and the last search about as long as one of
    them. So what is left is known once the first fold is complete. Before that there is a lower bound, for a fold takes
    no less than its share of the run on all rows. A round to larger sizes may follow, which nobody knows of before: the
    share that is done leaves room for one that takes as long as this one.
    """

    def __init__(self) -> None:
        self._n_folds = self._n_runs = 0
        self._at_once = 1
        self._may_grow = False
        """Whether a round to larger sizes may follow this one."""
        self._began = 0.0
        self._base = self._share = 0.0
        """The share that was done when this round began, and the largest so far."""
        self._largest, self._from = 0, 0
        """The largest size so far, and that at which this round began."""
        self._n_ended = 0
        """How many runs of this round have ended."""
        self._ends: list[float] = []
        """When runs of folds of this round ended."""
        self._whole: float | None = None
        """Seconds that the run on all rows of this round took."""
        self._each: float | None = None
        """Seconds that each fold took of this round, or of the one before."""
        self._last = False

    def runs_begin(self, n_runs: int, n_folds: int, now: float, at_once: int = 1, *, may_grow: bool = False) -> None:
        """Note a round, or the last search, which is a run by itself."""
        self._base, self._may_grow = self._share, may_grow
        self._n_runs, self._n_folds, self._at_once = n_runs, n_folds, at_once
        self._last, self._began, self._n_ended, self._whole = n_runs == 1 and n_folds > 0, now, 0, None
        self._from = 0 if self._last else self._largest
        self._ends = self._ends if self._last else []

    def run_ended(self, number: int, now: float) -> None:
        """Note that a run is complete: on all rows (0) or on those of a fold."""
        self._n_ended += 1
        if number:
            self._ends.append(now)
            self._each = (now - self._began) / len(self._ends)
        elif not self._last:
            # The run on all rows has no scores, and is no measure of the others.
            self._whole, self._began = now - self._began, now

    def share(self, progress: Progress) -> float | None:
        """The share of the work known of by now that is done; None where nothing is known of it.

        It never falls: a round to larger sizes, which nobody knew of, is part of what was left. And it stays below 1,
        for a fit that reports is not over.
        """
        if progress.k is None or (progress.n_folds and not self._n_folds):
            return None
        # The latest move may be one of a run that has ended since.
        is_over = self._n_folds > 0 and progress.fold is None and self._n_ended > 0 and not self._last
        within = 0.0 if is_over else self._within(progress)
        n_runs = max(1, self._n_runs)
        last = self._n_folds > 0 and not self._last
        done = min(n_runs, self._n_ended + within) / (n_runs * (1 + self._may_grow) + last)
        self._share = max(self._share, self._base + (1.0 - self._base) * min(1.0, done))
        return min(self._share, MOST_DONE)

    def seconds(self, progress: Progress, now: float) -> float | None:
        """Seconds left; None where nothing is known, or the run in progress takes longer than those before."""
        if not self._n_folds:
            return self._seconds_of_search(progress, now - self._began)
        if self._each is None:
            return None
        since = now - (self._ends[-1] if self._ends and not self._last else self._began)
        is_late = since > self._at_once * self._each
        running = None if is_late else max(self._each - since, LEAST_LEFT * self._each)
        if not self._last:
            return None if running is None else running + (self._n_folds - len(self._ends)) * self._each
        # Larger models take longer: about as the square of the size. At the largest nothing tells what is left.
        done = (progress.size / progress.k) ** 2 if progress.k else 0.0
        return since * (1 / done - 1) if SURE_DONE <= done < 1 else running

    def _seconds_of_search(self, progress: Progress, since: float) -> float | None:
        """Seconds left of a search to a given size, once enough is done; None before."""
        if progress.n_folds or self._n_ended or not progress.k:
            return None
        # With what comes before the first move, time goes with a lower power of the size: at half the size of k = 20 to
        # 60, by exchange for squared error, classes and Huber's loss, this says 1.1 to 1.4 times what is left.
        done = (progress.search + (progress.size / progress.k) ** 1.5) / progress.n_searches
        return since * (1 / done - 1) if SURE_DONE <= done < 1 else None

    def at_least(self, progress: Progress, now: float) -> float | None:
        """A lower bound of the seconds left, where they are not known; None where there is none.

        Later sizes of a run take no less than those before, and a fold has ``(n_folds - 1) / n_folds`` of the rows.
        """
        if progress.n_folds and not self._n_folds:
            return None
        if not self._n_folds:
            done = self._within(progress)
            return (now - self._began) * (1 / done - 1) if ENOUGH_DONE <= done <= 1 else None
        if self._last:
            return None
        if self._ends and self._each is not None:  # the fold in progress is late: the others and the last search
            return (self._n_folds - len(self._ends)) * self._each
        since, left = now - self._began, 0.0
        if (whole := self._whole) is None:
            done = self._within(progress)
            if done < ENOUGH_DONE or progress.fold is not None:
                return None
            whole = since / done
            since, left = 0.0, whole - since
        folds = (self._n_folds - 1) * whole / self._at_once
        return left + max(folds - since, LEAST_LEFT * folds)

    def _within(self, progress: Progress) -> float:
        """The share of the run in progress that is done."""
        self._largest = max(self._largest, progress.size)
        steps = (progress.k or 0) - self._from
        done = (progress.size - self._from) / steps if steps > 0 else 0.0
        # A search that begins with more features than requested does not say how far it is.
        return (progress.search + (max(0.0, done) if done <= 1 else 0.0)) / progress.n_searches


class Bar:
    """A bar on a terminal, drawn with what every terminal understands."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, share: float | None, text: str) -> None:
        """Draw the bar, or the text alone where no share is known."""
        full = int(BAR_WIDTH * (share or 0.0))
        bar = "" if share is None else f"[{'#' * full}{'.' * (BAR_WIDTH - full)}] "
        self._stream.write(f"\r{bar}{text}\x1b[K")
        self._stream.flush()

    def close(self) -> None:
        """Take it off the screen."""
        self._stream.write("\r\x1b[K")
        self._stream.flush()


class TqdmBar:
    """The bar of tqdm."""

    def __init__(self, stream: TextIO) -> None:
        from tqdm import tqdm

        self._bar = tqdm(total=1.0, file=stream, leave=False, bar_format="{l_bar}{bar:24}| {postfix}")

    def show(self, share: float | None, text: str) -> None:
        """Draw the bar."""
        self._bar.n = share or 0.0
        self._bar.set_postfix_str(text)

    def close(self) -> None:
        """Take it off the screen."""
        self._bar.close()


class RichBar:
    """The bar of rich."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        text = TextColumn("{task.description}", markup=False)
        console = Console(file=stream)
        self._progress = Progress(BarColumn(BAR_WIDTH), text, console=console, transient=True, redirect_stdout=False)
        self._task = self._progress.add_task("", total=None)
        self._progress.start()

    def show(self, share: float | None, text: str) -> None:
        """Draw the bar."""
        total = None if share is None else 1.0
        self._progress.update(self._task, completed=share or 0.0, total=total, description=text)

    def close(self) -> None:
        """Take it off the screen."""
        self._progress.stop()


def bar_on(stream: TextIO) -> Bar | TqdmBar | RichBar:
    """The bar of rich or of tqdm, whichever is installed, else one of our own."""
    for kind in (RichBar, TqdmBar):
        try:
            return kind(stream)
        except ImportError:
            continue
    return Bar(stream)


class ProgressReport:
    """Shows the progress of a fit on a stream: a bar on a terminal (of rich or tqdm if installed), lines elsewhere.

    It is the callback of the search, and a context: a thread draws while it is open, so that a single long step is not
    silent either.

    Parameters
    ----------
    stream : text stream, default=None
        None: stderr.
    time_limit : float or None, default=None
        What is left is at most what is left of it.
    """

    def __init__(self, stream: TextIO | None = None, time_limit: float | None = None) -> None:
        self._given = stream
        self._time_limit = time_limit
        self._left = TimeLeft()
        self._latest: Progress | None = None
        self._phase = ""
        self._n_steps, self._done, self._phase_began = 0, 0, 0.0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._bar: Bar | TqdmBar | RichBar | None = None
        self._outer: ProgressReport | None = None

    def __call__(self, progress: Progress) -> bool:
        """Record a move; never ends the search."""
        with self._lock:
            self._latest = progress
        return False

    def runs_begin(self, n_runs: int, n_folds: int, at_once: int = 1, may_grow: bool = False) -> None:
        """A round of runs begins, so many at a time; another to larger sizes may follow."""
        with self._lock:
            self._left.runs_begin(n_runs, n_folds, time.monotonic(), at_once, may_grow=may_grow)

    def run_ended(self, number: int) -> None:
        """A run is complete: on all rows (0), or on those of a fold."""
        with self._lock:
            self._left.run_ended(number, time.monotonic())

    def phase(self, name: str, n_steps: int = 0) -> None:
        """What is being done, where it is not a search of this fit, and in how many steps, which take equally long."""
        with self._lock:
            self._phase, self._latest = name, None
            self._n_steps, self._done, self._phase_began = n_steps, 0, time.monotonic()

    def step(self, n_steps: int = 1) -> None:
        """A step of the phase is complete, or several."""
        with self._lock:
            self._done += n_steps

    def __enter__(self) -> Self:
        self._outer, _open.report = _open.report, self
        self._stream = sys.stderr if self._given is None else self._given
        self._live = bool(getattr(self._stream, "isatty", lambda: False)())
        self._started = time.monotonic()
        self._left.runs_begin(1, 0, self._started)
        self._closed.clear()
        self._thread = threading.Thread(target=self._draw, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        _open.report = self._outer
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def line(self, now: float) -> tuple[float | None, str]:
        """What is shown now: the share that is done, where that is known, and words."""
        elapsed = now - self._started
        with self._lock:
            progress, phase = self._latest, self._phase
            if progress is None:
                return self._phase_line(now, phase or "preparing", f"{duration(elapsed)} so far")
            share, left = self._left.share(progress), self._left.seconds(progress, now)
            least = self._left.at_least(progress, now) if left is None else None
        run = "all rows" if progress.fold is None else f"fold {progress.fold + 1} of {progress.n_folds}"
        size = f"size {progress.size}" if progress.k is None else f"size {progress.size} of {progress.k}"
        if self._time_limit is not None:
            limit = max(0.0, self._time_limit - elapsed)
            left = limit if left is None else min(left, limit)
        estimate = _left("about", left)
        if least is not None and (left is None or least < left):
            estimate = _left("at least", least)
        open_end = estimate and left is not None and progress.n_folds and self._time_limit is None
        more = f" for sizes up to {progress.k}" if open_end and progress.k else ""
        text = f"{run}, {size}, {duration(elapsed)} so far{estimate}{more}"
        return share, text

    def _phase_line(self, now: float, phase: str, so_far: str) -> tuple[float | None, str]:
        """The line of a phase that is no search of this fit."""
        if not self._n_steps:
            return None, f"{phase}, {so_far}"
        left = ""
        if self._done:
            seconds = (self._n_steps - self._done) * (now - self._phase_began) / self._done
            if self._time_limit is not None:
                seconds = min(seconds, max(0.0, self._time_limit - (now - self._started)))
            left = _left("about", seconds)
        share = min(MOST_DONE, self._done / self._n_steps)
        return share, f"{phase}, {min(self._done + 1, self._n_steps):,} of {self._n_steps:,}, {so_far}{left}"

    def _draw(self) -> None:
        """Draw until the report is closed."""
        wait = DELAY if self._live else LINE_INTERVAL
        while not self._closed.wait(wait):
            share, text = self.line(time.monotonic())
            if self._live:
                self._bar = self._bar or bar_on(self._stream)
                self._bar.show(share, text)
                wait = INTERVAL
            else:
                done = "" if share is None else f"{100 * share:.0f} % done, "
                self._stream.write(f"pauca: {done}{text}\n")
                self._stream.flush()


class _Open(threading.local):
    report: ProgressReport | None = None


_open = _Open()


@contextmanager
def showing(verbose: int, time_limit: float | None = None) -> Iterator[ProgressReport | None]:
    """A context in which progress is shown, unless it is shown already, if ``verbose`` is not 0: the report of it."""
    if not verbose or _open.report is not None:
        yield _open.report if verbose else None
        return
    with ProgressReport(time_limit=time_limit) as report:
        yield report


def phase(name: str, n_steps: int = 0) -> Callable[..., None]:
    """Show what is being done from now on, if anything is shown; the answer is to be called after every step.

    It may be given a number of steps that are complete.
    """
    report = _open.report
    if report is None:
        return lambda n_steps=1: None
    report.phase(name, n_steps)
    return report.step


def reported(callback: Callable[[Progress], bool | None] | None) -> Callable[[Progress], bool | None] | None:
    """The callback of a search, which also updates what is shown, if anything is."""
    return with_progress(_open.report, callback)


def with_progress(
    report: ProgressReport | None,
    callback: Callable[[Progress], bool | None] | None,
    time_limit: float | None = None,
) -> Callable[[Progress], bool | None] | None:
    """A callback that is told what is left, at most the time limit, and also updates the report."""
    return report if callback is None else _ToldWhatIsLeft(report, callback, time_limit)


class _ToldWhatIsLeft:
    """A callback that is told what is left, and a report beside it, if there is one."""

    def __init__(
        self, report: ProgressReport | None, callback: Callable[[Progress], bool | None], time_limit: float | None
    ) -> None:
        self._report, self._callback, self._left, now = report, callback, TimeLeft(), time.monotonic()
        self._others: list[Any] = [one for one in (report, callback) if hasattr(one, "runs_begin")]
        self._deadline = math.inf if time_limit is None else now + time_limit
        self._left.runs_begin(1, 0, now)

    def runs_begin(self, n_runs: int, n_folds: int, at_once: int = 1, may_grow: bool = False) -> None:
        """A round of runs begins, so many at a time; another to larger sizes may follow."""
        self._left.runs_begin(n_runs, n_folds, time.monotonic(), at_once, may_grow=may_grow)
        for other in self._others:
            other.runs_begin(n_runs, n_folds, at_once, may_grow)

    def run_ended(self, number: int) -> None:
        """A run is complete: on all rows (0), or on those of a fold."""
        self._left.run_ended(number, time.monotonic())
        for other in self._others:
            other.run_ended(number)

    def __call__(self, progress: Progress) -> bool | None:
        now = time.monotonic()
        left = self._left.seconds(progress, now)
        if self._report is not None:
            self._report(progress)
        at_most = max(0.0, self._deadline - now)
        return self._callback(replace(progress, seconds_left=None if left is None else min(left, at_most)))


def _left(how: str, seconds: float | None) -> str:
    """How long it takes from now; nothing where the time that was estimated is over and it goes on."""
    return "" if seconds is None or seconds < LEAST_TOLD else f", {how} {duration(seconds)} left"


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    if seconds < 600:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
