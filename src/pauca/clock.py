"""The time limit of a fit, known to all of its loops.

A limit is set where a fit is run, and checked deep within it, by solvers that know nothing of who called them. Every
loop whose turns may take long calls ``check_time``; whoever sets a limit has something to fall back on.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

GRACE = 0.3
"""Seconds by which what comes first or last in a fit may exceed its limit.

The first move of a search is made even if the limit is shorter, so that fits that are taken up again get on, and the
last refit of a small model is not lost because of a few milliseconds.
"""


class OutOfTime(Exception):
    """The time limit has passed before an answer was found."""


class _Limit(threading.local):
    deadline = math.inf


_limit = _Limit()


def limited_until(deadline: float) -> AbstractContextManager[None]:
    """A context in which ``check_time`` raises ``OutOfTime`` after ``deadline``, a time of ``time.monotonic``.

    An earlier limit from outside stays in force. Threads that are started within have no limit.
    """
    return _NO_LIMIT if deadline == math.inf else _LimitedUntil(deadline)


_NO_LIMIT = nullcontext()


class _LimitedUntil:
    __slots__ = ("_before", "_deadline")

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline

    def __enter__(self) -> None:
        self._before = _limit.deadline
        _limit.deadline = min(self._before, self._deadline)

    def __exit__(self, *_: object) -> None:
        _limit.deadline = self._before


def check_time() -> None:
    """Raise ``OutOfTime`` after the deadline of this thread."""
    if time.monotonic() >= _limit.deadline:
        raise OutOfTime


def seconds_left() -> float:
    """How long it is to the deadline of this thread; infinity where there is none."""
    return _limit.deadline - time.monotonic()


def deadline_after(seconds: float | None) -> float:
    """The time that is so many seconds from now; infinity for None."""
    return math.inf if seconds is None else time.monotonic() + seconds


@contextmanager
def interrupts_held() -> Iterator[None]:
    """A context in which Ctrl-C waits for the end; elsewhere than in the main thread it never comes.

    It is for imports of Numba: once it is imported in part, every later import in the process fails.
    """
    before, held = signal.getsignal(signal.SIGINT), []
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def hold(*given: Any) -> None:
        held.append(given)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            before(*held[0])
